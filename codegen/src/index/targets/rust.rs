//! Rust: a `const fn` that needs no library.
//!
//! Values that are used once are written where they are used, so that short functions read like ones written by hand:
//!
//! ```text
//! pub const fn offset(row: u32, col: u32) -> u32 {
//!     debug_assert!(row < 8 && col < 64);
//!     (col ^ (row << 3)) + (row << 6)
//! }
//! ```
//!
//! Arithmetic that is exact is written with operators, arithmetic that is meant to wrap as `wrapping_add` and its like, so the
//! function computes the same in every profile. Coordinates are checked where debug assertions are on. The text comes from
//! strings alone, so that a program that writes index functions has no parser of Rust in it.

use std::fmt::Write as _;

use super::program::{Argument, Program, Statement};
use crate::index::code::{Op, Ty};
use crate::index::spec::{IndexError, Parameter, check_identifier};

/// Nested operations, and letters, after which a value gets a name of its own.
const DEPTH: usize = 5;
const LETTERS: usize = 60;
/// The longest line that is not broken, as `rustfmt` has it.
const COLUMNS: usize = 100;

/// Words that are no names, in any edition, also those that are kept for later ones.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if",
    "impl", "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub",
    "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The function: `pub const fn name(…) -> …`.
pub(super) fn text(program: &Program) -> Result<String, IndexError> {
    check(&program.name)?;
    for p in &program.parameters {
        check(&p.name)?;
    }
    let mut out = String::new();
    for line in &program.about {
        let _ = writeln!(out, "{}", format!("/// {line}").trim_end());
    }
    out.push_str("#[inline]\n#[must_use]\n");
    out.push_str(&signature(program));

    let mut lines = assertions(program);
    let uses = program.uses();
    let first = program.parameters.len();
    for (p, _) in program
        .parameters
        .iter()
        .zip(&uses)
        .filter(|(_, n)| **n == 0)
    {
        lines.push(format!("let _ = {};", p.name));
    }
    let names = program.parameters.iter().map(|p| Value::name(&p.name));
    let mut printer = Printer {
        program,
        values: names.collect(),
    };
    let prefix = program.temporary_prefix();
    for (i, s) in program.statements.iter().enumerate() {
        let value = printer.statement(s);
        let last = program.result == Argument::Value(first + i);
        let short = value.depth < DEPTH && value.text.len() <= LETTERS;
        if uses[first + i] == 1 && (short || last) {
            printer.values.push(value);
        } else {
            let name = format!("{prefix}{i}");
            lines.push(format!("let {name} = {};", value.text));
            printer.values.push(Value::name(&name));
        }
    }
    lines.push(printer.argument(program.result, program.ty).text);
    for line in lines {
        let _ = writeln!(out, "    {line}");
    }
    out.push_str("}\n");
    Ok(out)
}

fn check(name: &str) -> Result<(), IndexError> {
    check_identifier(name)?;
    if KEYWORDS.contains(&name) {
        return Err(IndexError::Name {
            name: name.to_owned(),
            reason: "is a keyword of Rust",
        });
    }
    Ok(())
}

/// The function's head, on one line or with a line for each parameter.
fn signature(program: &Program) -> String {
    let parameters = program.parameters.iter();
    let parameters: Vec<String> = parameters
        .map(|p| format!("{}: {}", p.name, p.ty.name()))
        .collect();
    let (name, result) = (&program.name, program.ty.name());
    let line = format!(
        "pub const fn {name}({}) -> {result} {{\n",
        parameters.join(", ")
    );
    if line.len() <= COLUMNS {
        return line;
    }
    let mut lines = format!("pub const fn {name}(\n");
    for parameter in parameters {
        let _ = writeln!(lines, "    {parameter},");
    }
    let _ = writeln!(lines, ") -> {result} {{");
    lines
}

/// What the parameters must satisfy beyond their types.
fn assertions(program: &Program) -> Vec<String> {
    let checks: Vec<String> = program.parameters.iter().flat_map(in_range).collect();
    if checks.is_empty() {
        return checks;
    }
    let line = format!("debug_assert!({});", checks.join(" && "));
    if line.len() + 4 <= COLUMNS {
        return vec![line];
    }
    let each = checks
        .iter()
        .map(|check| format!("debug_assert!({check});"));
    each.collect()
}

fn in_range(p: &Parameter) -> Vec<String> {
    let (least, most) = p.ty.range();
    let (name, literal) = (&p.name, |k| constant(k, p.ty).text);
    let mut checks = Vec::new();
    if i128::from(p.lo) > least {
        checks.push(format!("{name} >= {}", literal(p.lo)));
    }
    if i128::from(p.hi) < most && p.hi < i64::MAX {
        let end = i128::from(p.hi) + 1;
        checks.push(if end <= most {
            format!("{name} < {}", literal(p.hi + 1))
        } else {
            format!("{name} <= {}", literal(p.hi))
        });
    }
    checks
}

/// What an expression is at its top, which says where it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Literal,
    Method,
    Product,
    Sum,
    Xor,
    /// Shifts, casts, masks and negative numbers: in parentheses wherever they are operands.
    Other,
}

/// An expression.
#[derive(Clone)]
struct Value {
    text: String,
    kind: Kind,
    /// Operations nested in it.
    depth: usize,
}

impl Value {
    fn name(name: &str) -> Self {
        Self::new(name.to_owned(), Kind::Name)
    }

    fn new(text: String, kind: Kind) -> Self {
        Self {
            text,
            kind,
            depth: 0,
        }
    }

    /// As an operand: in parentheses if it is itself an operation, which leaves no precedence to remember.
    fn grouped(&self) -> String {
        match self.kind {
            Kind::Name | Kind::Literal | Kind::Method => self.text.clone(),
            Kind::Product | Kind::Sum | Kind::Xor | Kind::Other => format!("({})", self.text),
        }
    }
}

/// `k` as a literal of type `ty`.
fn constant(k: i64, ty: Ty) -> Value {
    let text = match ty {
        Ty::U32 => (k as u32).to_string(),
        Ty::U64 => (k as u64).to_string(),
        Ty::S32 => (k as i32).to_string(),
        Ty::S64 => k.to_string(),
    };
    let kind = if text.starts_with('-') {
        Kind::Other
    } else {
        Kind::Literal
    };
    Value::new(text, kind)
}

/// `k` as a mask: large ones in hexadecimal.
fn mask(k: i64, ty: Ty) -> Value {
    let bits = if ty.wide() {
        k as u64
    } else {
        u64::from(k as u32)
    };
    if bits < 10 || ty.signed() {
        return constant(k, ty);
    }
    Value::new(format!("{bits:#x}"), Kind::Literal)
}

/// `left op right`, without parentheses around products in sums.
fn binary(left: &Value, op: &str, right: &Value) -> Value {
    let kind = match op {
        "*" => Kind::Product,
        "+" | "-" => Kind::Sum,
        "^" => Kind::Xor,
        _ => Kind::Other,
    };
    let keeps = |value: &Value, kinds: &[Kind]| {
        if kinds.contains(&value.kind) {
            value.text.clone()
        } else {
            value.grouped()
        }
    };
    let (left, right) = match kind {
        Kind::Sum => (
            keeps(left, &[Kind::Product, Kind::Sum]),
            keeps(right, &[Kind::Product]),
        ),
        Kind::Xor => (keeps(left, &[Kind::Xor]), right.grouped()),
        _ => (left.grouped(), right.grouped()),
    };
    Value::new(format!("{left} {op} {right}"), kind)
}

fn cast(value: &Value, ty: &str) -> Value {
    Value::new(format!("{} as {ty}", value.grouped()), Kind::Other)
}

/// `receiver.name(arguments)`. A bare literal has no type to call a method of: it gets `ty`.
fn method(receiver: &Value, ty: Ty, name: &str, arguments: &[Value]) -> Value {
    let receiver = match receiver.kind {
        Kind::Literal => format!("{}{}", receiver.text, ty.name()),
        Kind::Other if receiver.text.starts_with('-') => {
            format!("({}{})", receiver.text, ty.name())
        }
        _ => receiver.grouped(),
    };
    let arguments: Vec<&str> = arguments.iter().map(|a| a.text.as_str()).collect();
    let text = format!("{receiver}.{name}({})", arguments.join(", "));
    Value::new(text, Kind::Method)
}

struct Printer<'a> {
    program: &'a Program,
    values: Vec<Value>,
}

impl Printer<'_> {
    fn argument(&self, a: Argument, ty: Ty) -> Value {
        match a {
            Argument::Constant(k) => constant(k, ty),
            Argument::Value(v) if self.program.type_of(v) == ty => self.values[v].clone(),
            Argument::Value(v) => Value {
                depth: self.values[v].depth,
                ..cast(&self.values[v], ty.name())
            },
        }
    }

    fn statement(&self, s: &Statement) -> Value {
        let nested = s.arguments.iter().map(|a| match a {
            Argument::Constant(_) => 1,
            Argument::Value(v) => self.values[*v].depth + 1,
        });
        Value {
            depth: nested.max().unwrap_or(0),
            ..self.operation(s)
        }
    }

    /// The sum of `left` and argument `i`, both of type `ty`; adding a negative constant is a subtraction.
    fn sum(&self, s: &Statement, left: &Value, i: usize, ty: Ty) -> Value {
        match (s.exact, s.arguments[i]) {
            (true, Argument::Constant(k)) if k < 0 && k != i64::MIN => {
                binary(left, "-", &constant(-k, ty))
            }
            (true, a) => binary(left, "+", &self.argument(a, ty)),
            (false, Argument::Constant(k)) if k < 0 && k != i64::MIN => {
                method(left, ty, "wrapping_sub", &[constant(-k, ty)])
            }
            (false, a) => method(left, ty, "wrapping_add", &[self.argument(a, ty)]),
        }
    }

    fn operation(&self, s: &Statement) -> Value {
        let wide = if s.ty.signed() { Ty::S64 } else { Ty::U64 };
        let arg = |i: usize, ty: Ty| self.argument(s.arguments[i], ty);
        let product = || {
            if s.exact {
                binary(&arg(0, s.ty), "*", &arg(1, s.ty))
            } else {
                method(&arg(0, s.ty), s.ty, "wrapping_mul", &[arg(1, s.ty)])
            }
        };
        let distance = || match s.arguments[1] {
            Argument::Constant(k) => constant(k, Ty::S32),
            Argument::Value(_) => arg(1, Ty::U32),
        };
        let bits = || match s.arguments[1] {
            Argument::Constant(k) => mask(k, s.ty),
            Argument::Value(_) => arg(1, s.ty),
        };
        match s.op {
            Op::Add => self.sum(s, &arg(0, s.ty), 1, s.ty),
            Op::Sub => match (s.exact, s.arguments[0]) {
                (true, _) => binary(&arg(0, s.ty), "-", &arg(1, s.ty)),
                (false, Argument::Constant(0)) => method(&arg(1, s.ty), s.ty, "wrapping_neg", &[]),
                (false, _) => method(&arg(0, s.ty), s.ty, "wrapping_sub", &[arg(1, s.ty)]),
            },
            Op::Mul => product(),
            Op::Mad => self.sum(s, &product(), 2, s.ty),
            Op::MulWide | Op::MadWide => {
                let widened = |i: usize| match s.arguments[i] {
                    Argument::Constant(k) => constant(k, wide),
                    Argument::Value(_) => cast(&arg(i, s.ty), wide.name()),
                };
                // The product of two words always fits twice the width.
                let product = binary(&widened(0), "*", &widened(1));
                if s.op == Op::MadWide {
                    self.sum(s, &product, 2, wide)
                } else {
                    product
                }
            }
            Op::MulHi => {
                let (double, width) = if s.ty.wide() {
                    ("u128", 64)
                } else {
                    ("u64", 32)
                };
                let (a, b) = (cast(&arg(0, s.ty), double), cast(&arg(1, s.ty), double));
                let product = binary(&a, "*", &b);
                cast(
                    &binary(&product, ">>", &constant(width, Ty::S32)),
                    s.ty.name(),
                )
            }
            // Bits that leave a signed value are cut off as in every other type.
            Op::Shl => binary(&arg(0, s.ty), "<<", &distance()),
            Op::Shr => binary(&arg(0, s.ty), ">>", &distance()),
            Op::And => binary(&arg(0, s.ty), "&", &bits()),
            Op::Xor => binary(&arg(0, s.ty), "^", &bits()),
            Op::Div => method(&arg(0, s.ty), s.ty, "div_euclid", &[arg(1, s.ty)]),
            Op::Widen | Op::Narrow => arg(0, s.result),
        }
    }
}
