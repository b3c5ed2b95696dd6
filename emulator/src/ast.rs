//! The syntax tree: what the text says, before names are resolved.
//!
//! Bodies are flat lists of statements in which `{` and `}` are statements of their own, so that neither parser nor decoder
//! recurses on input. Everything borrows from the text.

use crate::lexer::Span;
use crate::source::Lines;
use crate::types::ScalarType;

/// A whole module.
#[derive(Debug, Default)]
pub(crate) struct ModuleAst<'a> {
    pub(crate) version: String,
    pub(crate) target: String,
    /// `.address_size 32`.
    pub(crate) short_addresses: bool,
    /// Module-level `.global`, `.const` and `.shared` variables.
    pub(crate) variables: Vec<Variable<'a>>,
    pub(crate) kernels: Vec<KernelAst<'a>>,
    /// `.func`s, each name once: a definition takes the place of its prototypes.
    pub(crate) functions: Vec<FunctionAst<'a>>,
    /// `.alias NAME, FUNCTION`.
    pub(crate) aliases: Vec<(&'a str, &'a str)>,
    /// `.file` and `.loc`.
    pub(crate) lines: Lines,
}

impl<'a> ModuleAst<'a> {
    /// The number of function `name`, through its alias if it is one.
    pub(crate) fn function(&self, name: &str) -> Option<usize> {
        let name = self
            .aliases
            .iter()
            .find(|(alias, _)| *alias == name)
            .map_or(name, |(_, target)| *target);
        self.functions.iter().position(|f| f.name == name)
    }

    /// Every `.global` and `.const` variable, those inside kernels and functions last: a variable's number is its place here.
    pub(crate) fn statics(&self) -> Vec<&Variable<'a>> {
        let bodies = self
            .kernels
            .iter()
            .map(|k| &k.body)
            .chain(self.functions.iter().filter_map(|f| f.body.as_ref()));
        let inner = bodies.flatten().filter_map(|s| match s {
            Stmt::Variable(v) => Some(v),
            _ => None,
        });
        self.variables
            .iter()
            .chain(inner)
            .filter(|v| matches!(v.space, Space::Global | Space::Const))
            .collect()
    }
}

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    /// `.shared::cluster`: the shared memory of all blocks of a cluster.
    Cluster,
    Local,
    Param,
    Const,
}

/// An initialiser element.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Init<'a> {
    Int(i64),
    Float(f64),
    /// The address of a variable or function plus an offset; with `shift`, only the byte that starts at that bit (`0xff00(name)`).
    Symbol {
        name: &'a str,
        span: Span,
        offset: i64,
        shift: Option<u8>,
    },
}

/// A declared variable of any memory space (registers are [`Registers`]).
#[derive(Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    pub(crate) space: Space,
    pub(crate) ty: ScalarType,
    /// Elements of a `.v2` or `.v4`, else 1.
    pub(crate) vector: u8,
    pub(crate) align: u32,
    /// Dimensions of an array, else 0.
    pub(crate) dims: u8,
    /// Bytes; `None` for the open array of `.extern .shared`.
    pub(crate) size: Option<u64>,
    pub(crate) is_extern: bool,
    /// `.attribute(.managed)`: the host reaches it as well.
    pub(crate) is_managed: bool,
    /// For `.param .u64 .ptr`.
    pub(crate) is_pointer: bool,
    /// Initialisers and the number of the element that each is for.
    pub(crate) init: Vec<(u64, Init<'a>)>,
}

/// `.func`, defined or only declared.
#[derive(Debug)]
pub(crate) struct FunctionAst<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    pub(crate) returns: Vec<Formal<'a>>,
    pub(crate) params: Vec<Formal<'a>>,
    /// `None` for a prototype.
    pub(crate) body: Option<Vec<Stmt<'a>>>,
}

/// A parameter or return value of a function.
#[derive(Debug)]
pub(crate) enum Formal<'a> {
    Param(Variable<'a>),
    Register(Registers<'a>),
}

/// `.entry`.
#[derive(Debug)]
pub(crate) struct KernelAst<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    pub(crate) params: Vec<Variable<'a>>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) required_cluster: Option<[u32; 3]>,
    pub(crate) max_cluster: Option<u32>,
    pub(crate) body: Vec<Stmt<'a>>,
}

/// `.reg .b32 %r<10>;` or `.reg .pred p, q;`.
#[derive(Debug)]
pub(crate) struct Registers<'a> {
    pub(crate) name: &'a str,
    pub(crate) span: Span,
    pub(crate) ty: ScalarType,
    /// Elements of each register: 2 or 4 for `.v2` and `.v4`, else 1.
    pub(crate) vector: u8,
    /// `Some(n)` for `name<n>`.
    pub(crate) count: Option<u32>,
}

/// A statement of a body.
#[derive(Debug)]
pub(crate) enum Stmt<'a> {
    Open,
    Close,
    Label(&'a str, Span),
    Registers(Registers<'a>),
    Variable(Variable<'a>),
    /// `name: .branchtargets A, B;`
    BranchTargets(&'a str, Span, Vec<(&'a str, Span)>),
    /// `name: .callprototype …;` or `name: .calltargets f, g;`: what an indirect call may do, which the called function itself says.
    CallShape,
    Instr(InstrAst<'a>),
}

/// One instruction as written.
#[derive(Debug, Clone)]
pub(crate) struct InstrAst<'a> {
    pub(crate) span: Span,
    /// Predicate register and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool, Span)>,
    pub(crate) name: &'a str,
    pub(crate) mods: Vec<(&'a str, Span)>,
    pub(crate) operands: Vec<OperandAst<'a>>,
}

/// An operand and its place.
#[derive(Debug, Clone)]
pub(crate) struct OperandAst<'a> {
    pub(crate) span: Span,
    pub(crate) kind: OperandKind<'a>,
}

/// The forms of an operand.
#[derive(Debug, Clone)]
pub(crate) enum OperandKind<'a> {
    /// A register, symbol or label, perhaps with a component (`%tid.x`) and a constant offset (`sym+4`).
    Name {
        name: &'a str,
        dim: Option<&'a str>,
        offset: i64,
    },
    /// Element 0 to 3 of a vector register (`%v.y`), which the decoder makes of a name.
    Component(&'a str, u8),
    /// `array[4]`, `array[%r]` or `array[%r + 4]`.
    Element {
        array: &'a str,
        index: Option<&'a str>,
        offset: i64,
    },
    /// What the decoder has computed for the instruction: `%r + 4`, or the address of `array[%r]`, by its number.
    Computed(usize),
    /// `!%p`.
    Not(&'a str),
    /// `%p|%q`.
    Pair(Box<OperandAst<'a>>, Box<OperandAst<'a>>),
    Int(i64),
    F32(u32),
    F64(f64),
    /// `{a, b}`.
    Vector(Vec<OperandAst<'a>>),
    /// `(a, b)`, of `call`.
    List(Vec<OperandAst<'a>>),
    /// `[base + offset]` or `[base + offset, {coordinates}]`.
    Address {
        base: Option<&'a str>,
        offset: i64,
        coords: Vec<OperandAst<'a>>,
    },
    /// `_`.
    Sink,
}

impl OperandAst<'_> {
    /// The operand as an error message shows it.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            OperandKind::Name {
                name, dim: Some(d), ..
            } => format!("{name}.{d}"),
            OperandKind::Name { name, .. } => (*name).to_owned(),
            OperandKind::Component(name, k) => {
                format!("{name}.{}", ["x", "y", "z", "w"][usize::from(*k & 3)])
            }
            OperandKind::Element {
                array,
                index,
                offset,
            } => match index {
                Some(index) => format!("{array}[{index}+{offset}]"),
                None => format!("{array}[{offset}]"),
            },
            OperandKind::Computed(_) => "a sum".to_owned(),
            OperandKind::Not(name) => format!("!{name}"),
            OperandKind::Pair(a, b) => format!("{}|{}", a.describe(), b.describe()),
            OperandKind::Int(v) => v.to_string(),
            OperandKind::F32(b) => format!("0f{b:08x}"),
            OperandKind::F64(v) => v.to_string(),
            OperandKind::Vector(_) => "{…}".to_owned(),
            OperandKind::List(_) => "(…)".to_owned(),
            OperandKind::Address { base, offset, .. } => {
                format!("[{}+{offset}]", base.unwrap_or(""))
            }
            OperandKind::Sink => "_".to_owned(),
        }
    }
}
