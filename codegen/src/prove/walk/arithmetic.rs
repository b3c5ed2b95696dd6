//! What instructions compute, as values: integers exactly, predicates as statements, data not at all.
//!
//! A value stands for the bits of its register: it is what they mean modulo `2^32`, or `2^64`. Sums and products keep that, whatever the operands' types. Any other
//! instruction reads its operands first, as numbers in the range of its type ([`Machine::read`]): a value that is shown to be in that range is its own number, and any
//! other one becomes a symbol of the range, defined by the value. So no rule meets a number that wraps around.
//!
//! [`meaning`](crate::prove::algebra::meaning) says what each instruction does to bits; `tests` holds the rules against it.

use std::rc::Rc;

use crate::index::code::{Op, Ty};
use crate::ir::{Axis, Binary, Cmp, Inst, Logic, Meaning, ParamKind, Reg, Special, Src, Type};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::meaning::{self, Operation, integer_type};
use crate::prove::algebra::numbers::Num;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Datum, Machine, Val};

impl Machine<'_> {
    /// The number that a type reads where the bits are those of `x`: `x` itself where its range, or the facts, show that it is in the range of the type.
    pub(in crate::prove) fn read(&mut self, x: &Lin, ty: Ty) -> Lin {
        let (least, most) = ty.range();
        let (lo, hi) = self.symbols.range(x);
        let (low, high) = (lo >= least, hi <= most);
        if low && high {
            return *x;
        }
        let shown = |m: &mut Self| {
            // The bounds of 64-bit types are too far apart for differences of 64 bits.
            let near = !x.is_far() && (!ty.wide() || (high && least == 0));
            near && x.as_number().is_none() && {
                m.learn_promises();
                (low || m.not_less(x, least as i64)) && (high || m.not_more(x, most as i64))
            }
        };
        if shown(self) {
            return *x;
        }
        self.symbols.read(x, ty)
    }

    /// `x ≥ least` by the facts.
    fn not_less(&mut self, x: &Lin, least: i64) -> bool {
        let facts = self.facts.clone();
        let symbols = &mut self.symbols;
        // What is divided is negative where its dividend is.
        let dividend = x.single().and_then(|s| match &symbols.info(s).definition {
            Definition::Shr(of, _) | Definition::Div(of, _) => Some(*of),
            _ => None,
        });
        let x = match dividend {
            Some(of) if least == 0 => of,
            _ => x.plus(-least),
        };
        symbols.at_least_zero(&x, &facts)
    }

    /// `x ≤ most` by the facts.
    fn not_more(&mut self, x: &Lin, most: i64) -> bool {
        let facts = self.facts.clone();
        let room = Lin::constant(most).sub(x);
        self.symbols.at_least_zero(&room, &facts)
    }

    /// `x ≥ 0`, by its range or by the facts.
    pub(in crate::prove) fn not_negative(&mut self, x: &Lin) -> bool {
        self.symbols.range(x).0 >= 0 || self.not_less(x, 0)
    }

    /// What every launch keeps to becomes a fact.
    fn learn_promises(&mut self) {
        for promise in self.promises() {
            if !self.facts.all.contains(&promise) {
                self.learn(&promise);
            }
        }
    }

    /// `a cmp b`
    pub(in crate::prove) fn comparison(
        &mut self,
        cmp: Cmp,
        ty: Type,
        a: Src,
        b: Src,
    ) -> Rc<Formula> {
        // Integers that were made of data, and of which nothing more is known.
        let of_data = |m: &Self, src| {
            let datum = m.datum(src);
            datum.is_some_and(|datum| !matches!(datum, Datum::Literal(_)))
        };
        let data = of_data(self, a) || of_data(self, b);
        let both = self.datum(a).is_some() && self.datum(b).is_some();
        if let Some(ty) = integer_type(ty).filter(|_| !(data && both)) {
            let (x, y) = (self.source(a), self.source(b));
            let (x, y) = (self.read(&x, ty), self.read(&y, ty));
            // Numbers whose difference may not be one of 64 bits.
            if [x, y].iter().any(Lin::is_far) {
                return Rc::new(Formula::Opaque(self.symbols.opaque(), true));
            }
            return compared(cmp, &x, &y);
        }
        let (Some(x), Some(y)) = (self.datum(a), self.datum(b)) else {
            return Rc::new(Formula::Opaque(self.symbols.opaque(), true));
        };
        // Of floats, `neu` alone is the opposite of another comparison: with NaN, neither of `lt` and `ge` holds, nor of `eq` and `ne`.
        let (key, negated) = match cmp {
            Cmp::Neu => (Cmp::Eq, true),
            other => (other, false),
        };
        let symbols = &mut self.symbols;
        let lasts = x.lasts() && y.lasts();
        let id = self.opaque.entry((key, ty, x, y));
        let id = id.or_insert_with(|| symbols.opaque_of_data(lasts));
        let f = Formula::Opaque(*id, false);
        if negated { f.not() } else { Rc::new(f) }
    }

    /// What all threads have alike, if it is that.
    fn datum(&self, src: Src) -> Option<Datum> {
        match src {
            Src::Reg(r) => match self.registers.get(&r) {
                Some(Val::Data(datum)) => datum.filter(Datum::is_uniform),
                _ => None,
            },
            literal => Some(Datum::Literal(literal)),
        }
    }

    pub(in crate::prove) fn compute(&mut self, inst: &Inst) {
        let (to, value) = match inst {
            Inst::Index {
                op,
                ty,
                from,
                to,
                args,
            } => {
                let args: Vec<Lin> = args.iter().map(|&a| self.operand(a)).collect();
                let op = Operation::Index(*op);
                (*to, Val::Int(self.integer_op(op, *ty, *from, &args)))
            }
            Inst::Special { to, register } => (*to, Val::Int(self.special(*register))),
            Inst::Param { to, kind, name } => (*to, self.parameter(*kind, name)),
            Inst::ToGlobal { to, from } => (*to, Val::Int(self.integer(*from))),
            Inst::SharedBase { to } => (*to, Val::Int(self.shared_base())),
            Inst::Move { to, from, .. } => {
                let value = match from {
                    Src::Reg(r) => self.registers.get(r).cloned(),
                    Src::Int(k) => Some(Val::Int(Lin::constant(*k))),
                    Src::F32(_) | Src::F64(_) => Some(Val::Data(Some(Datum::Literal(*from)))),
                };
                (*to, value.unwrap_or(Val::Data(None)))
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
                let integer = |ty: &Type| integer_type(*ty).filter(|_| *ty != Type::B32);
                if let (Some(ty), Some(from_ty)) = (integer(to_ty), integer(from_ty)) {
                    let x = self.integer(*from);
                    let op = if ty.wide() { Op::Widen } else { Op::Narrow };
                    let op = Operation::Index(op);
                    (*to, Val::Int(self.integer_op(op, ty, from_ty, &[x])))
                } else {
                    (*to, Val::Data(None))
                }
            }
            other => {
                let results = other.results().into_iter();
                let made: Vec<(Reg, Option<Val>)> =
                    results.map(|to| (to, self.made_by(other))).collect();
                for (to, value) in made {
                    self.registers.insert(to, value.unwrap_or(Val::Data(None)));
                }
                return;
            }
        };
        let value = match value {
            Val::Data(None) => self.made_by(inst).unwrap_or(value),
            value => value,
        };
        self.registers.insert(to, value);
    }

    /// A predicate or a chosen value is what it is to be.
    pub(in crate::prove) fn as_meant(&mut self, inst: &Inst) -> Result<(), ProofError> {
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
        let of_binary = matches!(meaning, Meaning::Extreme { .. } | Meaning::Divided { .. });
        if matches!(inst, Inst::Binary { .. }) && !of_binary {
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
                held == Some(Val::Pred(f)) || self.compares(inst, cmp, [&a, &b], and)
            }
            Meaning::Logic { op, a, b } => {
                let (a, b) = (self.predicate(a), self.predicate(b));
                held == Some(Val::Pred(joined(op, &a, &b)))
            }
            Meaning::Select { p, a, b } => {
                let (a, b) = (self.evaluate(a), self.evaluate(b));
                let p = self.predicate(p);
                let chosen = self.symbols.ite(&p, &a, &b, threads);
                self.holds_here(held.as_ref(), &chosen)
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
                self.holds_here(held.as_ref(), &all)
            }
            Meaning::Extreme { op, of, end } => {
                let (of, end) = (self.evaluate(of), Lin::constant(end));
                let extreme = match op {
                    Binary::Max => self.symbols.max(&of, &end),
                    _ => self.symbols.min(&of, &end),
                };
                self.holds_here(held.as_ref(), &extreme)
            }
            Meaning::Divided { op, of, by } => {
                let (of, by) = (self.evaluate(of), self.evaluate(by));
                let divided = match op {
                    Binary::Div => self.symbols.quotient(&of, &by),
                    _ => self.symbols.remainder(&of, &by),
                };
                self.holds_here(held.as_ref(), &divided)
            }
        };
        if right {
            return Ok(());
        }
        Err(ProofError::Meaning {
            register: crate::print::register(to),
        })
    }

    /// A register has a value in the threads that are here: what is computed for the threads of a role may be anything in others.
    fn holds_here(&mut self, held: Option<&Val>, wanted: &Lin) -> bool {
        let Some(Val::Int(held)) = held else {
            return false;
        };
        let facts = self.facts.clone();
        self.symbols.is_zero(&held.sub(wanted), &facts)
    }

    /// An instruction compares two values, in the threads that are here.
    fn compares(&mut self, inst: &Inst, how: Cmp, [a, b]: [&Lin; 2], with: Option<Reg>) -> bool {
        let Inst::Compare {
            cmp,
            a: x,
            b: y,
            and,
            ..
        } = inst
        else {
            return false;
        };
        let mut same = *cmp == how && *and == with;
        for (found, wanted) in [(x, a), (y, b)] {
            let found = match found {
                Src::Reg(r) => self.integer(*r),
                Src::Int(k) => Lin::constant(*k),
                Src::F32(_) | Src::F64(_) => return false,
            };
            same &= self.holds_here(Some(&Val::Int(found)), wanted);
        }
        same
    }

    pub(in crate::prove) fn selected(&mut self, a: Src, b: Src, p: Reg) -> Val {
        let is_data = |m: &Self, s: Src| match s {
            Src::Reg(r) => !matches!(m.registers.get(&r), Some(Val::Int(_))),
            Src::Int(_) => false,
            Src::F32(_) | Src::F64(_) => true,
        };
        if is_data(self, a) || is_data(self, b) {
            return Val::Data(None);
        }
        let (x, y) = (self.source(a), self.source(b));
        let p = self.predicate(p);
        Val::Int(self.symbols.ite(&p, &x, &y, self.threads))
    }

    pub(in crate::prove) fn binary(&mut self, op: Binary, ty: Type, a: Src, b: Src) -> Val {
        let known = |m: &Self, s: Src| match s {
            Src::Reg(r) => matches!(m.registers.get(&r), Some(Val::Int(_))),
            Src::Int(_) => true,
            Src::F32(_) | Src::F64(_) => false,
        };
        match (integer_type(ty), Operation::of(op)) {
            (Some(ty), Some(op)) if known(self, a) && known(self, b) => {
                let args = [self.source(a), self.source(b)];
                Val::Int(self.integer_op(op, ty, ty, &args))
            }
            _ => Val::Data(None),
        }
    }

    pub(in crate::prove) fn special(&mut self, register: Special) -> Lin {
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
                // A launch of clusters has whole ones, and blocks without a tile.
                let whole = self.entry.cluster[axis as usize] == 1;
                if let Some(tile) = tile.filter(|_| whole) {
                    // The launch has no tile that begins beyond what the tiles cover.
                    let extent = self.evaluate(tile.extent);
                    let left = extent.sub(&x.scale(tile.tile)).plus(-1);
                    self.learn(&Rc::new(Formula::ge(left)));
                }
                x
            }
        }
    }

    pub(in crate::prove) fn parameter(&mut self, kind: ParamKind, name: &str) -> Val {
        let number = self.entry.params.iter().position(|p| p.name == name);
        let param = number.map(|n| &self.entry.params[n]);
        let most = param.and_then(|p| p.most).map(i128::from);
        let multiple = param.map_or(1, |p| p.multiple as i64).max(1);
        let symbol = |m: &mut Self, lo: i128, hi: i128| {
            let unit = m.symbols.free(lo, hi / i128::from(multiple), false);
            m.params.push(unit);
            Val::Int(Lin::symbol(unit).scale(multiple))
        };
        let of = |ty: Ty| ty.range();
        match kind {
            ParamKind::U32 => symbol(self, 0, most.unwrap_or(of(Ty::U32).1)),
            ParamKind::U64 => symbol(self, 0, most.unwrap_or(of(Ty::U64).1)),
            ParamKind::S32 => symbol(self, of(Ty::S32).0, of(Ty::S32).1),
            // Addresses are multiples of what the widest access needs: the launch contract says so.
            ParamKind::Pointer => symbol(self, 0, 1 << 47),
            ParamKind::F32 | ParamKind::F64 | ParamKind::TensorMap => {
                Val::Data(number.map(Datum::Param))
            }
        }
    }

    /// Any number of a type.
    pub(in crate::prove) fn any(&mut self, ty: Ty) -> Lin {
        let (least, most) = ty.range();
        Lin::symbol(self.symbols.free(least, most, true))
    }

    /// An integer operation. Its rules, with `[x]` for the number that the operation's type reads in x:
    ///
    /// ```text
    /// a + b, a − b, a·b, a·b + c     as they are: equal modulo 2^w
    /// a << k                         a·2^k, for a constant k < w
    /// mul.wide, mad.wide             [a]·[b] + c
    /// mul.hi, by a constant          a quotient of [a], if its type is unsigned (`quotient`)
    /// a >> k                         ⌊[a] / 2^k⌋, for a constant k < w
    /// a & k                          low bits, the same for all numbers with these bits; a − (a & ¬k) where k has the highest bit
    /// a ^ b                          of [a] and [b] without sign
    /// a / k                          ⌊[a] / k⌋, for a constant k > 0 and [a] ≥ 0
    /// min, max                       of [a] and [b]
    /// cvt to 64 bits, to 32 bits     [a] of the type that it comes from; as it is
    /// ```
    pub(in crate::prove) fn integer_op(
        &mut self,
        op: Operation,
        ty: Ty,
        from: Ty,
        args: &[Lin],
    ) -> Lin {
        let result = match op {
            Operation::Index(Op::MulWide | Op::MadWide) if ty.signed() => Ty::S64,
            Operation::Index(Op::MulWide | Op::MadWide) => Ty::U64,
            _ => ty,
        };
        if let Some(known) = by_numbers(op, ty, from, args) {
            return known;
        }
        let value = match op {
            Operation::Index(op) => self.index_op(op, ty, from, args),
            Operation::Min | Operation::Max => {
                let [a, b] = [args[0], args[1]].map(|x| self.read(&x, ty));
                Some(match op {
                    Operation::Min => self.symbols.min(&a, &b),
                    _ => self.symbols.max(&a, &b),
                })
            }
            Operation::Rem => {
                let [a, b] = [args[0], args[1]].map(|x| self.read(&x, ty));
                self.divides(&a, &b).then(|| self.symbols.remainder(&a, &b))
            }
            Operation::Or => None,
        };
        value.unwrap_or_else(|| self.any(result))
    }

    /// A number that is not negative is divided by one that is at least 1, in every thread: of others nothing is known.
    fn divides(&mut self, x: &Lin, by: &Lin) -> bool {
        self.symbols.range(by).0 >= 1 && self.not_negative(x)
    }

    fn index_op(&mut self, op: Op, ty: Ty, from: Ty, args: &[Lin]) -> Option<Lin> {
        let width = meaning::width(ty);
        match (op, args) {
            (Op::Add, [a, b]) => Some(a.add(b)),
            (Op::Sub, [a, b]) => Some(a.sub(b)),
            (Op::Mul, [a, b]) => a.mul(b),
            (Op::Mad, [a, b, c]) => Some(a.mul(b)?.add(c)),
            (Op::MulWide, [a, b]) => {
                let (a, b) = (self.read(a, ty), self.read(b, ty));
                a.mul(&b)
            }
            (Op::MadWide, [a, b, c]) => {
                let (a, b) = (self.read(a, ty), self.read(b, ty));
                Some(a.mul(&b)?.add(c))
            }
            (Op::MulHi, [a, b]) if !ty.signed() => {
                let (x, m) = match (a.as_constant(), b.as_constant()) {
                    (_, Some(m)) => (a, m),
                    (Some(m), None) => (b, m),
                    (None, None) => return None,
                };
                let x = self.read(x, ty);
                Some(self.high_product(&x, m, ty))
            }
            (Op::Shl, [a, b]) => {
                let by = amount(b, width)?;
                Some(a.scale(1_i64.wrapping_shl(by)))
            }
            (Op::Shr, [a, b]) => {
                let by = amount(b, width)?;
                let a = self.read(a, ty);
                if ty.signed() {
                    return Some(self.symbols.shr(&a, by));
                }
                if let Some(quotient) = self.quotient(&a, by) {
                    return Some(quotient);
                }
                let quotient = self.symbols.shr(&a, by);
                // What facts say of the dividend, and its range does not.
                if self.symbols.range(&a).0 < 0 {
                    self.learn(&Rc::new(Formula::ge(quotient)));
                }
                Some(quotient)
            }
            (Op::And, [a, b]) => {
                let (a, mask) = match (a.as_constant(), b.as_constant()) {
                    (_, Some(mask)) => (a, mask),
                    (Some(mask), None) => (b, mask),
                    (None, None) => return None,
                };
                let all = u64::MAX >> (64 - width);
                let mask = mask as u64 & all;
                // A mask with its highest bit set keeps the sign: all but the low bits.
                if mask >> (width - 1) == 0 {
                    return Some(self.symbols.and(a, mask));
                }
                let less = self.symbols.and(a, !mask & all);
                Some(a.sub(&less))
            }
            (Op::Xor, [a, b]) => {
                let ty = meaning::unsigned(ty);
                let (a, b) = (self.read(a, ty), self.read(b, ty));
                Some(self.symbols.xor(&a, &b))
            }
            (Op::Div, [a, b]) => {
                let (a, b) = (self.read(a, ty), self.read(b, ty));
                if let Some(d) = b.as_constant().filter(|&d| d > 0) {
                    return Some(self.divided(&a, d));
                }
                self.divides(&a, &b).then(|| self.symbols.quotient(&a, &b))
            }
            (Op::Widen, [a]) => Some(self.read(a, from)),
            (Op::Narrow, [a]) => Some(*a),
            _ => None,
        }
    }
}

/// A constant amount of a shift, if it leaves anything.
fn amount(by: &Lin, width: u32) -> Option<u32> {
    let by = u32::try_from(by.as_constant()?).ok();
    by.filter(|by| *by < width)
}

/// The result of an operation on numbers alone. Sums and products stay what they are, so that what differs by them does so without a wrap.
fn by_numbers(op: Operation, ty: Ty, from: Ty, args: &[Lin]) -> Option<Lin> {
    let sums = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Mad,
        Op::MulWide,
        Op::MadWide,
        Op::Shl,
    ];
    if sums.into_iter().any(|sum| op == Operation::Index(sum)) {
        return None;
    }
    let args: Option<Vec<Num>> = args.iter().map(Lin::as_number).collect();
    let args = args?;
    let value = |args: &[i64]| meaning::value(op, ty, from, args);
    Some(Lin::number(match args[..] {
        [a] => a.map_some(|a| value(&[a]))?,
        [a, b] => a.zip_some(b, |a, b| value(&[a, b]))?,
        _ => return None,
    }))
}

/// The statement that two integers compare so.
pub(in crate::prove) fn compared(cmp: Cmp, x: &Lin, y: &Lin) -> Rc<Formula> {
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
