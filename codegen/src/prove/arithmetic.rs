//! What instructions compute, as values: integers exactly, predicates as statements, data not at all.

use std::rc::Rc;

use super::ProofError;
use super::execute::{Machine, Val};
use super::formula::Formula;
use super::numbers::Num;
use super::symbols::Definition;
use super::value::Lin;
use crate::index::code::{Op, Ty};
use crate::ir::{Axis, Binary, Cmp, Inst, Logic, Meaning, ParamKind, Reg, Special, Src, Type};

impl Machine<'_> {
    /// An unsigned value as it is; none where it may be negative, which the machine would read as a large one.
    pub(super) fn unsigned(&mut self, x: &Lin) -> Option<Lin> {
        let (lo, hi) = self.symbols.range(x);
        if hi >= 1 << 64 {
            return None;
        }
        let fits = lo >= 0 || {
            let facts = self.facts.clone();
            let symbols = &mut self.symbols;
            // What is divided is negative where its dividend is.
            let dividend = x.single().and_then(|s| match &symbols.info(s).definition {
                Definition::Shr(of, _) | Definition::Div(of, _) => Some(*of),
                _ => None,
            });
            symbols.at_least_zero(&dividend.unwrap_or(*x), &facts)
        };
        fits.then_some(*x)
    }

    /// `a cmp b`
    pub(super) fn comparison(&mut self, cmp: Cmp, ty: Type, a: Src, b: Src) -> Rc<Formula> {
        let integer = matches!(ty, Type::U32 | Type::U64 | Type::S32 | Type::S64);
        let data = |m: &Self, s: Src| match s {
            Src::Reg(r) => match m.registers.get(&r) {
                Some(Val::Data(uniform)) => Some(*uniform),
                Some(Val::Int(_)) => None,
                _ => Some(false),
            },
            _ => None,
        };
        let (da, db) = (data(self, a), data(self, b));
        if !integer || da.is_some() || db.is_some() {
            let uniform = da.unwrap_or(true) && db.unwrap_or(true);
            let (key, negated) = match cmp {
                Cmp::Neu | Cmp::Ne => (Cmp::Eq, true),
                Cmp::Ge if integer => (Cmp::Lt, true),
                other => (other, false),
            };
            let symbols = &mut self.symbols;
            // Registers of data are written once, or in a loop, where threads differ anyway.
            let id = if uniform {
                *self
                    .opaque
                    .entry((key, a, b))
                    .or_insert_with(|| symbols.opaque())
            } else {
                symbols.opaque()
            };
            let f = Formula::Opaque(id, !uniform);
            return if negated { f.not() } else { Rc::new(f) };
        }
        let (mut x, mut y) = (self.source(a), self.source(b));
        if matches!(ty, Type::U32 | Type::U64) {
            let (u, v) = (self.unsigned(&x), self.unsigned(&y));
            let (Some(u), Some(v)) = (u, v) else {
                let id = self.symbols.opaque();
                return Rc::new(Formula::Opaque(id, true));
            };
            (x, y) = (u, v);
        }
        compared(cmp, &x, &y)
    }

    pub(super) fn compute(&mut self, inst: &Inst) {
        let (to, value) = match inst {
            Inst::Index {
                op,
                ty,
                from,
                to,
                args,
            } => {
                let args: Vec<Lin> = args.iter().map(|&a| self.operand(a)).collect();
                (*to, Val::Int(self.arithmetic(*op, *ty, *from, &args)))
            }
            Inst::Special { to, register } => (*to, Val::Int(self.special(*register))),
            Inst::Param { to, kind, name } => (*to, self.parameter(*kind, name)),
            Inst::ToGlobal { to, from } => (*to, Val::Int(self.integer(*from))),
            Inst::SharedBase { to } => (*to, Val::Int(self.shared_base())),
            Inst::Move { to, from, .. } => {
                let value = match from {
                    Src::Reg(r) => self.registers.get(r).cloned(),
                    Src::Int(k) => Some(Val::Int(Lin::constant(*k))),
                    Src::F32(_) | Src::F64(_) => Some(Val::Data(true)),
                };
                (*to, value.unwrap_or(Val::Data(false)))
            }
            Inst::Compare {
                cmp,
                ty,
                to,
                a,
                b,
                and,
            } => {
                let f = self.comparison(*cmp, *ty, *a, *b);
                let f = match and {
                    Some(q) => Formula::and(&self.predicate(*q), &f),
                    None => f,
                };
                (*to, Val::Pred(f))
            }
            Inst::Logic { op, to, a, b } => {
                let (a, b) = (self.predicate(*a), self.predicate(*b));
                (*to, Val::Pred(joined(*op, &a, &b)))
            }
            Inst::Select { to, a, b, p, .. } => (*to, self.selected(*a, *b, *p)),
            Inst::Binary { op, ty, to, a, b } => (*to, self.binary(*op, *ty, *a, *b)),
            Inst::Convert {
                to_ty,
                from_ty,
                to,
                from,
            } => {
                let integer = |ty: &Type| matches!(ty, Type::U32 | Type::U64);
                if integer(to_ty) && integer(from_ty) {
                    let x = self.integer(*from);
                    let op = if to_ty.bytes() > from_ty.bytes() {
                        Op::Widen
                    } else {
                        Op::Narrow
                    };
                    let ty = if to_ty.bytes() == 8 { Ty::U64 } else { Ty::U32 };
                    let from = if from_ty.bytes() == 8 {
                        Ty::U64
                    } else {
                        Ty::U32
                    };
                    (*to, Val::Int(self.arithmetic(op, ty, from, &[x])))
                } else {
                    (*to, Val::Data(false))
                }
            }
            other => {
                for to in other.results() {
                    self.registers.insert(to, Val::Data(false));
                }
                return;
            }
        };
        self.registers.insert(to, value);
    }

    /// A predicate or a chosen value is what it is to be.
    pub(super) fn as_meant(&mut self, inst: &Inst) -> Result<(), ProofError> {
        let to = match inst {
            Inst::Compare { to, .. }
            | Inst::Logic { to, .. }
            | Inst::Select { to, .. }
            | Inst::Binary { to, .. } => *to,
            _ => return Ok(()),
        };
        let Some(meaning) = self.entry.meanings.get(&to).copied() else {
            return Ok(());
        };
        // A register that several instructions make has its meaning from the last.
        if matches!(inst, Inst::Binary { .. }) && !matches!(meaning, Meaning::NotNegative { .. }) {
            return Ok(());
        }
        let threads = self.threads;
        let held = self.registers.get(&to).cloned();
        let right = match meaning {
            Meaning::Compare { cmp, a, b, and } => {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                let f = compared(cmp, &a, &b);
                let f = match and {
                    Some(q) => Formula::and(&self.predicate(q), &f),
                    None => f,
                };
                held == Some(Val::Pred(f))
            }
            Meaning::Logic { op, a, b } => {
                let (a, b) = (self.predicate(a), self.predicate(b));
                held == Some(Val::Pred(joined(op, &a, &b)))
            }
            Meaning::Select { p, a, b } => {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                let p = self.predicate(p);
                held == Some(Val::Int(self.symbols.ite(&p, &a, &b, threads)))
            }
            Meaning::Inside {
                p,
                left,
                most,
                bytes,
            } => {
                let left = self.evaluate(left);
                let zero = Lin::constant(0);
                let some = self.symbols.max(&left, &zero);
                let some = self.symbols.min(&some, &Lin::constant(most));
                let p = self.predicate(p);
                let all = self.symbols.ite(&p, &some.scale(bytes), &zero, threads);
                held == Some(Val::Int(all))
            }
            Meaning::NotNegative { of } => {
                let (of, zero) = (self.evaluate(of), Lin::constant(0));
                held == Some(Val::Int(self.symbols.max(&of, &zero)))
            }
        };
        if right {
            return Ok(());
        }
        Err(ProofError::Meaning {
            register: crate::print::register(to),
        })
    }

    pub(super) fn selected(&mut self, a: Src, b: Src, p: Reg) -> Val {
        let is_data = |m: &Self, s: Src| match s {
            Src::Reg(r) => !matches!(m.registers.get(&r), Some(Val::Int(_))),
            Src::Int(_) => false,
            Src::F32(_) | Src::F64(_) => true,
        };
        if is_data(self, a) || is_data(self, b) {
            return Val::Data(false);
        }
        let (x, y) = (self.source(a), self.source(b));
        let p = self.predicate(p);
        Val::Int(self.symbols.ite(&p, &x, &y, self.threads))
    }

    pub(super) fn binary(&mut self, op: Binary, ty: Type, a: Src, b: Src) -> Val {
        let known = |m: &Self, s: Src| match s {
            Src::Reg(r) => matches!(m.registers.get(&r), Some(Val::Int(_))),
            Src::Int(_) => true,
            Src::F32(_) | Src::F64(_) => false,
        };
        let integer = matches!(ty, Type::S32 | Type::U32 | Type::B32);
        if !integer || !known(self, a) || !known(self, b) {
            return Val::Data(false);
        }
        let (x, y) = (self.source(a), self.source(b));
        let value = match op {
            Binary::Add => x.add(&y),
            Binary::Sub => x.sub(&y),
            Binary::Mul => match x.mul(&y) {
                Some(product) => product,
                None => self.unknown(),
            },
            Binary::Min => self.symbols.min(&x, &y),
            Binary::Max => self.symbols.max(&x, &y),
            Binary::Shl => match y.as_constant() {
                Some(k @ 0..=31) => x.scale(1 << k),
                _ => self.unknown(),
            },
            Binary::Shr => match y.as_constant() {
                Some(k @ 0..=31) => self.symbols.shr(&x, k as u32),
                _ => self.unknown(),
            },
            Binary::And => match y.as_constant() {
                Some(k) if k >= 0 => self.symbols.and(&x, k as u64),
                _ => self.unknown(),
            },
            Binary::Or | Binary::MinNan | Binary::MaxNan => self.unknown(),
        };
        Val::Int(self.fitted(value, Ty::S32))
    }

    pub(super) fn special(&mut self, register: Special) -> Lin {
        let [x, y, _] = self.entry.block.map(|n| n as usize);
        match register {
            Special::Thread(axis) => {
                let of = |t: usize| match axis {
                    Axis::X => t % x,
                    Axis::Y => t / x % y,
                    Axis::Z => t / x / y,
                };
                Lin::number(Num::each((0..self.threads).map(|t| of(t) as i64).collect()))
            }
            Special::Block(axis) => {
                let x = Lin::symbol(self.blocks[axis as usize]);
                let tile = self.entry.tile_axes.iter().find(|t| t.axis == axis);
                if let Some(tile) = tile {
                    // The launch has no tile that begins beyond what the tiles cover.
                    let extent = self.evaluate(tile.extent);
                    let left = extent.sub(&x.scale(tile.tile)).plus(-1);
                    self.learn(&Rc::new(Formula::ge(left)));
                }
                x
            }
        }
    }

    pub(super) fn parameter(&mut self, kind: ParamKind, name: &str) -> Val {
        let param = self.entry.params.iter().find(|p| p.name == name);
        let most = param.and_then(|p| p.most);
        let multiple = param.map_or(1, |p| p.multiple as i64).max(1);
        let symbol = |m: &mut Self, hi: i128| {
            let unit = m.symbols.free(0, hi / i128::from(multiple), false);
            Val::Int(Lin::symbol(unit).scale(multiple))
        };
        match kind {
            ParamKind::U32 => match most {
                Some(most) => symbol(self, most.into()),
                None => Val::Data(true),
            },
            ParamKind::U64 => symbol(self, most.map_or(i128::from(i64::MAX), i128::from)),
            // Addresses are multiples of what the widest access needs: the launch contract says so.
            ParamKind::Pointer => symbol(self, 1 << 47),
            ParamKind::S32 | ParamKind::F32 | ParamKind::F64 | ParamKind::TensorMap => {
                Val::Data(true)
            }
        }
    }

    /// A result as it is if it fits its type, else any value of the type.
    pub(super) fn fitted(&mut self, x: Lin, ty: Ty) -> Lin {
        // Modulo 2^64 in the machine, which is the same for sums and products; what it is not the same for asks for more.
        if ty.wide() {
            return x;
        }
        let (lo, hi) = self.symbols.range(&x);
        let (least, most) = (-(1i128 << 31), (1i128 << 32) - 1);
        if lo >= least && hi <= most {
            return x;
        }
        if let Some(k) = x.as_number() {
            return Lin::number(k.map(|k| k & 0xffff_ffff));
        }
        // It fits where the facts hold, and what every launch keeps to.
        for (a, b) in self.entry.promises.clone() {
            let (a, b) = (self.evaluate(a), self.evaluate(b));
            self.learn(&Rc::new(Formula::ge(b.sub(&a))));
        }
        let facts = self.facts.clone();
        let most = Lin::constant(i64::try_from(most).unwrap_or(i64::MAX));
        let least = Lin::constant(i64::try_from(least).unwrap_or(i64::MIN));
        if self.symbols.at_least_zero(&most.sub(&x), &facts)
            && self.symbols.at_least_zero(&x.sub(&least), &facts)
        {
            return x;
        }
        self.unknown()
    }

    pub(super) fn arithmetic(&mut self, op: Op, ty: Ty, from: Ty, args: &[Lin]) -> Lin {
        let product = |m: &mut Self, a: &Lin, b: &Lin| match a.mul(b) {
            Some(x) => x,
            None => m.unknown(),
        };
        let value = match (op, args) {
            (Op::Add, [a, b]) => a.add(b),
            (Op::Sub, [a, b]) => a.sub(b),
            (Op::Mul, [a, b]) => product(self, a, b),
            (Op::Mad, [a, b, c]) => product(self, a, b).add(c),
            (Op::MulWide, [a, b]) | (Op::MadWide, [a, b, _]) => {
                let wide = |m: &mut Self, x: &Lin| {
                    if ty.signed() { Some(*x) } else { m.unsigned(x) }
                };
                let (Some(a), Some(b)) = (wide(self, a), wide(self, b)) else {
                    return self.unknown();
                };
                let x = product(self, &a, &b);
                match args.get(2) {
                    Some(c) => x.add(c),
                    None => x,
                }
            }
            (Op::MulHi, [a, b]) => match (a.as_number(), b.as_number()) {
                (Some(a), Some(b)) if !ty.wide() => {
                    let high =
                        |a: i64, b: i64| ((u64::from(a as u32) * u64::from(b as u32)) >> 32) as i64;
                    Lin::number(a.zip(b, high))
                }
                _ => self.high_product(a, b, ty),
            },
            (Op::Shl, [a, b]) => match b.as_constant() {
                Some(k @ 0..=62) => a.scale(1 << k),
                _ => self.unknown(),
            },
            (Op::Shr, [a, b]) => match (b.as_constant(), ty.signed()) {
                (Some(k @ 0..=62), true) => self.symbols.shr(a, k as u32),
                (Some(k @ 0..=62), false) => match (self.quotient(a, k as u32), self.unsigned(a)) {
                    (Some(quotient), _) => quotient,
                    (None, Some(a)) => {
                        let quotient = self.symbols.shr(&a, k as u32);
                        // What facts say of the dividend, and its range does not.
                        if self.symbols.range(&a).0 < 0 {
                            self.learn(&Rc::new(Formula::ge(quotient)));
                        }
                        quotient
                    }
                    (None, None) => self.unknown(),
                },
                _ => self.unknown(),
            },
            (Op::And, [a, b]) => {
                let (a, b) = if a.as_constant().is_some() {
                    (b, a)
                } else {
                    (a, b)
                };
                match b.as_constant() {
                    // A mask with its high bits set keeps the sign: all but the low bits.
                    Some(k) if k < 0 => {
                        let low = (!k) as u64;
                        let less = self.symbols.and(a, low);
                        a.sub(&less)
                    }
                    Some(k) if !ty.wide() && k as u64 & 0x8000_0000 != 0 => {
                        let low = !(k as u64) & 0xffff_ffff;
                        let less = self.symbols.and(a, low);
                        a.sub(&less)
                    }
                    Some(k) => self.symbols.and(a, k as u64),
                    None => match (a.as_number(), b.as_number()) {
                        (Some(a), Some(b)) => Lin::number(a.zip(b, |a, b| a & b)),
                        _ => self.unknown(),
                    },
                }
            }
            (Op::Xor, [a, b]) => self.symbols.xor(a, b),
            (Op::Div, [a, b]) => match b.as_constant() {
                Some(d) if d > 0 => self.divided(a, d),
                _ => self.unknown(),
            },
            (Op::Widen, [a]) => {
                if from.signed() {
                    *a
                } else {
                    match self.unsigned(a) {
                        Some(a) => a,
                        None => self.unknown(),
                    }
                }
            }
            (Op::Narrow, [a]) => *a,
            _ => self.unknown(),
        };
        let result = match op {
            Op::MulWide | Op::MadWide => Ty::U64,
            _ => ty,
        };
        self.fitted(value, result)
    }
}

/// The statement that two integers compare so.
pub(super) fn compared(cmp: Cmp, x: &Lin, y: &Lin) -> Rc<Formula> {
    let ge = |x: Lin| Rc::new(Formula::ge(x));
    match cmp {
        Cmp::Ge => ge(x.sub(y)),
        Cmp::Le => ge(y.sub(x)),
        Cmp::Gt => ge(x.sub(y).plus(-1)),
        Cmp::Lt => ge(y.sub(x).plus(-1)),
        Cmp::Eq => Formula::and(&ge(x.sub(y)), &ge(y.sub(x))),
        Cmp::Ne | Cmp::Neu => Formula::or(&ge(x.sub(y).plus(-1)), &ge(y.sub(x).plus(-1))),
    }
}

/// Two statements to one.
fn joined(op: Logic, a: &Rc<Formula>, b: &Rc<Formula>) -> Rc<Formula> {
    match op {
        Logic::And => Formula::and(a, b),
        Logic::Or => Formula::or(a, b),
        Logic::Xor => Formula::or(&Formula::and(a, &b.not()), &Formula::and(&a.not(), b)),
    }
}
