//! Straight-line code with ranges: what all targets print.
//!
//! A [`Program`] records the instructions that [`emit`] selects. For each it keeps the interval of its mathematical result,
//! so that a target knows where plain arithmetic is exact and where the machine's wrapping is meant (a negative partial sum of
//! unsigned terms): Rust writes the one as `a + b` and the other as `a.wrapping_add(b)`, C computes the other without sign.

use crate::index::code::{Memo, Op, Operand, Sink, Ty, emit};
use crate::index::expr::{Expr, Level, Pool};
use crate::index::spec::{IndexError, Parameter, holds};

use super::{Target, c, ptx, rust};

/// An argument of a [`Statement`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A constant.
    Constant(i64),
    /// Parameter or result number `n`: parameters first, then statements in order.
    Value(usize),
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    /// What it computes.
    pub op: Op,
    /// The type it computes in.
    pub ty: Ty,
    /// Its arguments, to be taken as values of `ty` (of their own type for [`Op::Widen`] and [`Op::Narrow`]; the third of
    /// [`Op::MadWide`] as one of `result`).
    pub arguments: Vec<Argument>,
    /// The type of its result.
    pub result: Ty,
    /// Whether the result is the mathematical one, never wrapped.
    pub exact: bool,
    range: (i128, i128),
}

/// An index function as straight-line code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    pub(super) name: String,
    pub(super) about: Vec<String>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) statements: Vec<Statement>,
    pub(super) result: Argument,
    pub(super) ty: Ty,
}

impl Program {
    pub(super) fn new(
        pool: &mut Pool,
        e: Expr,
        name: &str,
        about: Vec<String>,
        parameters: Vec<Parameter>,
        ty: Ty,
    ) -> Self {
        let mut recorder = Recorder {
            parameters: &parameters,
            statements: Vec::new(),
        };
        let mut v = emit(pool, e, &mut Memo::new(), &mut recorder);
        if let Operand::Reg(_, from) = v
            && from.wide() != ty.wide()
        {
            let op = if ty.wide() { Op::Widen } else { Op::Narrow };
            v = recorder.op(0, ty, op, &[v]);
        }
        let statements = recorder.statements;
        Self {
            name: name.to_owned(),
            about,
            parameters,
            statements,
            result: argument(v),
            ty,
        }
    }

    /// Its parameters: coordinates, then strides.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The type of its result.
    pub fn result_type(&self) -> Ty {
        self.ty
    }

    /// Its instructions.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Its text in a target.
    ///
    /// # Errors
    ///
    /// [`IndexError::Name`] for names that the target reserves.
    pub fn text(&self, target: Target) -> Result<String, IndexError> {
        match target {
            Target::Ptx => ptx::text(self),
            Target::Rust => rust::text(self),
            Target::Cuda => c::text(self, c::Dialect::Cuda),
            Target::OpenCl => c::text(self, c::Dialect::OpenCl),
        }
    }

    /// The type of a parameter or result.
    pub(super) fn type_of(&self, value: usize) -> Ty {
        match value.checked_sub(self.parameters.len()) {
            None => self.parameters[value].ty,
            Some(i) => self.statements[i].result,
        }
    }

    /// How often each parameter and result is used.
    pub(super) fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.parameters.len() + self.statements.len()];
        let arguments = self.statements.iter().flat_map(|s| &s.arguments);
        for a in arguments.chain([&self.result]) {
            if let Argument::Value(v) = a {
                uses[*v] += 1;
            }
        }
        uses
    }

    /// A prefix for temporaries such that `prefix` followed by a number is no name of the caller's.
    pub(super) fn temporary_prefix(&self) -> String {
        let mut prefix = "t".to_owned();
        let taken = |prefix: &str| {
            let names = self.parameters.iter().map(|p| &p.name).chain([&self.name]);
            names.into_iter().any(|n| {
                n.strip_prefix(prefix)
                    .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
            })
        };
        while taken(&prefix) {
            prefix.push('_');
        }
        prefix
    }
}

fn argument(v: Operand) -> Argument {
    match v {
        Operand::Imm(k) => Argument::Constant(k),
        Operand::Reg(id, _) => Argument::Value(id as usize),
    }
}

/// The sink that keeps every instruction.
struct Recorder<'a> {
    parameters: &'a [Parameter],
    statements: Vec<Statement>,
}

impl Recorder<'_> {
    /// The values of an argument taken as `ty`.
    fn range(&self, a: Operand, ty: Ty) -> (i128, i128) {
        let (lo, hi) = match a {
            Operand::Imm(k) => (k.into(), k.into()),
            Operand::Reg(id, _) => match (id as usize).checked_sub(self.parameters.len()) {
                None => {
                    let p = &self.parameters[id as usize];
                    (p.lo.into(), p.hi.into())
                }
                Some(i) => self.statements[i].range,
            },
        };
        // A negative constant keeps its sign: adding it to unsigned values is a subtraction.
        if holds(ty, lo, hi) || matches!(a, Operand::Imm(_)) {
            (lo, hi)
        } else {
            ty.range()
        }
    }
}

impl Sink for Recorder<'_> {
    fn op(&mut self, _: Level, ty: Ty, op: Op, args: &[Operand]) -> Operand {
        let wide = if ty.signed() { Ty::S64 } else { Ty::U64 };
        let result = match op {
            Op::MulWide | Op::MadWide => wide,
            _ => ty,
        };
        let get = |i: usize, ty: Ty| self.range(args[i], ty);
        let from = |a: Operand| match a {
            Operand::Reg(_, from) => from,
            Operand::Imm(_) => ty,
        };
        let add = |a: (i128, i128), b: (i128, i128)| (a.0 + b.0, a.1 + b.1);
        let mul = |a: (i128, i128), b: (i128, i128)| {
            let corners = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
            corners
                .into_iter()
                .fold((i128::MAX, i128::MIN), |(lo, hi), c| (lo.min(c), hi.max(c)))
        };
        let width = if ty.wide() { 64 } else { 32 };
        let exact = match op {
            Op::Add => add(get(0, ty), get(1, ty)),
            Op::Sub => {
                let b = get(1, ty);
                add(get(0, ty), (-b.1, -b.0))
            }
            Op::Mul | Op::MulWide => mul(get(0, ty), get(1, ty)),
            Op::Mad => add(mul(get(0, ty), get(1, ty)), get(2, ty)),
            Op::MadWide => add(mul(get(0, ty), get(1, ty)), get(2, wide)),
            Op::MulHi => {
                let (lo, hi) = mul(get(0, ty), bits_of(get(1, ty), ty));
                (lo >> width, hi >> width)
            }
            Op::Shl => match args[1] {
                Operand::Imm(k) => mul(get(0, ty), (1 << k, 1 << k)),
                Operand::Reg(..) => ty.range(),
            },
            Op::Shr => {
                let (a, by) = (get(0, ty), get(1, Ty::U32));
                if a.0 >= 0 {
                    (a.0 >> by.1, a.1 >> by.0)
                } else {
                    (a.0 >> by.0, (a.1 >> by.0).max(0))
                }
            }
            Op::And => match (args[1], get(0, ty)) {
                (Operand::Imm(mask), a) if mask >= 0 => {
                    let mask = i128::from(mask);
                    (0, if a.0 >= 0 { mask.min(a.1) } else { mask })
                }
                (_, a) if a.0 >= 0 => (0, a.1),
                _ => ty.range(),
            },
            Op::Xor => {
                let (a, b) = (get(0, ty), get(1, ty));
                if a.0 >= 0 && b.0 >= 0 {
                    (0, super::super::expr::cover(a.1.max(b.1)).into())
                } else {
                    ty.range()
                }
            }
            Op::Div => {
                let (a, d) = (get(0, ty), get(1, ty));
                (a.0.div_euclid(d.0.max(1)), a.1.div_euclid(d.0.max(1)))
            }
            Op::Widen | Op::Narrow => get(0, from(args[0])),
        };
        let mut fits = holds(result, exact.0, exact.1);
        if op == Op::Mad {
            // A negative constant may bring back a product that has already wrapped.
            let product = mul(get(0, ty), get(1, ty));
            fits &= holds(ty, product.0, product.1);
        }
        self.statements.push(Statement {
            op,
            ty,
            arguments: args.iter().map(|&a| argument(a)).collect(),
            result,
            exact: fits,
            range: if fits { exact } else { result.range() },
        });
        let id = self.parameters.len() + self.statements.len() - 1;
        Operand::Reg(id as u32, result)
    }

    fn var(&mut self, name: &str, ty: Ty) -> Operand {
        let found = self.parameters.iter().position(|p| p.name == name);
        // The callers have checked that every variable is a parameter.
        let id = found.unwrap_or(0);
        let declared = self.parameters[id].ty;
        let own = Operand::Reg(id as u32, declared);
        match (declared.wide(), ty.wide()) {
            (true, false) => self.op(0, ty, Op::Narrow, &[own]),
            (false, true) => self.op(0, ty, Op::Widen, &[own]),
            _ => Operand::Reg(id as u32, ty),
        }
    }
}

/// A constant multiplier whose top bit is set is written as a negative 64-bit number.
fn bits_of((lo, hi): (i128, i128), ty: Ty) -> (i128, i128) {
    if lo < 0 && lo == hi {
        let (_, most) = ty.range();
        (lo & most, lo & most)
    } else {
        (lo, hi)
    }
}
