//! From expressions to instructions: three-address code for any target, each instruction at the level where it belongs.
//!
//! A [`Sink`] receives the instructions: the PTX kernel builder places them in the scope of their level, the printers for Rust
//! and CUDA C turn them into statements, and [`Counter`] only counts, so that two forms of one address can be compared.
//!
//! What `ptxas` does not do by itself is done here: partial sums of the outer levels are formed first and so leave the
//! loop, a division by a constant becomes a multiplication whose exactness is proven from the range of its operand, and a
//! product is widened only if its range needs it.

use std::collections::HashMap;
use std::fmt;

use super::expr::{Expr, Level, Node, Pool, moved};

/// The machine type of a value, from its range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// `0..2³²`
    U32,
    /// `−2³¹..2³¹`
    S32,
    /// `0..2⁶⁴`
    U64,
    /// `−2⁶³..2⁶³`
    S64,
}

impl Ty {
    /// True for the two 64-bit types.
    pub fn wide(self) -> bool {
        matches!(self, Ty::U64 | Ty::S64)
    }

    /// Its least and greatest value.
    pub fn range(self) -> (i128, i128) {
        match self {
            Ty::U32 => (0, u32::MAX.into()),
            Ty::S32 => (i32::MIN.into(), i32::MAX.into()),
            Ty::U64 => (0, u64::MAX.into()),
            Ty::S64 => (i64::MIN.into(), i64::MAX.into()),
        }
    }

    /// Its name in Rust, which is also what the command and the macros call it.
    pub fn name(self) -> &'static str {
        match self {
            Ty::U32 => "u32",
            Ty::S32 => "i32",
            Ty::U64 => "u64",
            Ty::S64 => "i64",
        }
    }

    /// The type of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Ty::U32, Ty::S32, Ty::U64, Ty::S64]
            .into_iter()
            .find(|ty| ty.name() == name)
    }

    /// True for the two signed types.
    pub fn signed(self) -> bool {
        matches!(self, Ty::S32 | Ty::S64)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An argument of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// A constant.
    Imm(i64),
    /// The result of an instruction, or a variable: a number that the sink gave out.
    Reg(u32, Ty),
}

/// What an instruction computes; arithmetic is modulo the width of its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a·b
    Mul,
    /// a·b + c
    Mad,
    /// a·b of 32-bit values, 64 bits wide
    MulWide,
    /// a·b of 32-bit values + c, 64 bits wide
    MadWide,
    /// the high half of a·b
    MulHi,
    /// a << b
    Shl,
    /// a >> b, arithmetic for signed types
    Shr,
    /// a & b
    And,
    /// a ^ b
    Xor,
    /// ⌊a / b⌋: only where no multiplication is exact
    Div,
    /// a 32-bit value of the type of `a`, extended to 64 bits
    Widen,
    /// the low 32 bits of a
    Narrow,
}

/// Receives instructions.
pub trait Sink {
    /// Adds one instruction of type `ty` at `level`; returns its result.
    fn op(&mut self, level: Level, ty: Ty, op: Op, args: &[Operand]) -> Operand;

    /// The operand that holds a variable.
    fn var(&mut self, name: &str, ty: Ty) -> Operand;
}

/// The machine type that holds every value of `e`.
pub fn type_of(pool: &Pool, e: Expr) -> Ty {
    let f = pool.facts(e);
    if f.lo >= 0 && f.hi < 1 << 32 {
        Ty::U32
    } else if f.lo >= -(1 << 31) && f.hi < 1 << 31 {
        Ty::S32
    } else if f.lo >= 0 {
        Ty::U64
    } else {
        Ty::S64
    }
}

/// Operands already computed. Entries of inner levels are dropped when their loop ends.
pub type Memo = HashMap<Expr, Operand>;

/// Emits what is missing of `e` and returns the operand that holds it.
pub fn emit(pool: &mut Pool, e: Expr, memo: &mut Memo, sink: &mut dyn Sink) -> Operand {
    if let Some(&operand) = memo.get(&e) {
        return operand;
    }
    let level = pool.facts(e).level;
    let ty = type_of(pool, e);
    let operand = match pool.node(e).clone() {
        Node::Const(c) => return Operand::Imm(c),
        Node::Var { name } => sink.var(&name, ty),
        Node::Pin(x) => {
            let v = emit(pool, x, memo, sink);
            resize(v, ty, level, sink)
        }
        Node::Field { x, shift, mask } => emit_field(pool, x, shift, mask, (level, ty), memo, sink),
        Node::Xor(items) => {
            let mut acc: Option<Operand> = None;
            for x in by_level(pool, items) {
                let v = emit_as(pool, x, ty, memo, sink);
                let v = resize(v, ty, level, sink);
                acc = Some(match acc {
                    None => v,
                    Some(a) => sink.op(level, ty, Op::Xor, &[a, v]),
                });
            }
            acc.unwrap_or(Operand::Imm(0))
        }
        Node::Sum(terms, k) => emit_sum(pool, &terms, k, (level, ty), memo, sink),
        Node::Mul(a, b) => {
            let (ta, tb) = (type_of(pool, a), type_of(pool, b));
            let (a, b) = (emit(pool, a, memo, sink), emit(pool, b, memo, sink));
            if ty.wide() && !ta.wide() && !tb.wide() && ta == tb {
                sink.op(level, ta, Op::MulWide, &[a, b])
            } else {
                let (a, b) = (resize(a, ty, level, sink), resize(b, ty, level, sink));
                sink.op(level, ty, Op::Mul, &[a, b])
            }
        }
        Node::Div(x, d) => emit_div(pool, x, d, level, memo, sink),
        Node::DivFast {
            x,
            multiplier,
            shift,
        } => {
            let one = pool.constant(1);
            let next = pool.add(x, one);
            let v = emit(pool, next, memo, sink);
            let m = emit(pool, multiplier, memo, sink);
            let s = emit(pool, shift, memo, sink);
            let high = sink.op(level, Ty::U32, Op::MulHi, &[v, m]);
            sink.op(level, Ty::U32, Op::Shr, &[high, s])
        }
    };
    memo.insert(e, operand);
    operand
}

/// As [`emit`], but a narrow field of a wide value stays wide where it is about to meet one.
fn emit_as(pool: &mut Pool, e: Expr, ty: Ty, memo: &mut Memo, sink: &mut dyn Sink) -> Operand {
    match *pool.node(e) {
        Node::Field { x, shift, mask }
            if ty.wide() && type_of(pool, x).wide() && !memo.contains_key(&e) =>
        {
            let level = pool.facts(e).level;
            emit_field(pool, x, shift, mask, (level, Ty::U64), memo, sink)
        }
        _ => emit(pool, e, memo, sink),
    }
}

/// Outer levels first, so that what does not change in a loop is combined before it.
fn by_level(pool: &Pool, mut items: Vec<Expr>) -> Vec<Expr> {
    items.sort_by_key(|&x| (pool.as_const(x).is_some(), pool.facts(x).level));
    items
}

fn resize(v: Operand, ty: Ty, level: Level, sink: &mut dyn Sink) -> Operand {
    match v {
        Operand::Reg(_, from) if from.wide() && !ty.wide() => sink.op(level, ty, Op::Narrow, &[v]),
        Operand::Reg(_, from) if !from.wide() && ty.wide() => sink.op(level, ty, Op::Widen, &[v]),
        _ => v,
    }
}

fn emit_field(
    pool: &mut Pool,
    x: Expr,
    shift: i32,
    mask: u64,
    (level, ty): (Level, Ty),
    memo: &mut Memo,
    sink: &mut dyn Sink,
) -> Operand {
    let facts = pool.facts(x);
    let v = emit(pool, x, memo, sink);
    let from = type_of(pool, x);
    // Work at the wider of the two widths: bits of a wide value may come down, those of a narrow one go up.
    let at = if from.wide() || ty.wide() {
        if from.signed() { Ty::S64 } else { Ty::U64 }
    } else {
        from
    };
    let mut v = resize(v, at, level, sink);
    if shift > 0 {
        v = sink.op(level, at, Op::Shl, &[v, Operand::Imm(shift.into())]);
    } else if shift < 0 {
        v = sink.op(level, at, Op::Shr, &[v, Operand::Imm((-shift).into())]);
    }
    let width = if at.wide() { u64::MAX } else { u32::MAX.into() };
    let possible = if facts.nonnegative() {
        moved(facts.bits, shift) & width
    } else {
        width
    };
    if possible & !mask != 0 {
        v = sink.op(
            level,
            at,
            Op::And,
            &[v, Operand::Imm((mask & width) as i64)],
        );
    }
    resize(v, ty, level, sink)
}

fn emit_sum(
    pool: &mut Pool,
    terms: &[(i64, Expr)],
    k: i64,
    (level, ty): (Level, Ty),
    memo: &mut Memo,
    sink: &mut dyn Sink,
) -> Operand {
    // The part of the outer levels is a value of its own, computed outside the loop.
    let outer: Vec<_> = terms
        .iter()
        .copied()
        .filter(|&(_, x)| pool.facts(x).level < level)
        .collect();
    let mut acc = None;
    let mut rest: Vec<(i64, Expr)> = terms.to_vec();
    if !outer.is_empty() && outer.len() < terms.len() {
        let mut partial = pool.constant(0);
        for &(c, x) in &outer {
            let x = pool.scale(x, c);
            partial = pool.add(partial, x);
        }
        rest.retain(|t| !outer.contains(t));
        let v = emit(pool, partial, memo, sink);
        acc = Some(resize(v, ty, level, sink));
    }
    // Start from a term that needs no multiplication, and let wide products accumulate.
    rest.sort_by_key(|&(c, x)| (c != 1, c < 0, matches!(pool.node(x), Node::Mul(..)), x));
    for (c, x) in rest {
        // a·b + c in one instruction, unless the product is at hand or leaves the loop.
        if let (1, Node::Mul(a, b), Some(sum)) = (c, pool.node(x).clone(), acc)
            && !memo.contains_key(&x)
            && pool.facts(x).level == level
        {
            acc = Some(emit_fused(pool, (a, b), sum, (level, ty), memo, sink));
            continue;
        }
        let from = type_of(pool, x);
        let v = emit(pool, x, memo, sink);
        let term_needs_wide = ty.wide() && !from.wide() && {
            let f = pool.facts(x);
            let (a, b) = (f.lo * i128::from(c), f.hi * i128::from(c));
            let range = if from.signed() {
                -(1i128 << 31)..1i128 << 31
            } else {
                0..1i128 << 32
            };
            !range.contains(&a) || !range.contains(&b)
        };
        let fits = c > 0
            && if from.signed() {
                c < 1 << 31
            } else {
                c < 1 << 32
            };
        if term_needs_wide && fits {
            let factor = Operand::Imm(c);
            acc = Some(match acc {
                None => sink.op(level, from, Op::MulWide, &[v, factor]),
                Some(a) => sink.op(level, from, Op::MadWide, &[v, factor, a]),
            });
            continue;
        }
        // A product that stays narrow is formed before it is widened.
        let at = if ty.wide() && !from.wide() && !term_needs_wide && c != 1 {
            from
        } else {
            ty
        };
        let v = resize(v, at, level, sink);
        let power = c > 0 && c.count_ones() == 1;
        if at == ty && !power && c != -1 {
            let factor = Operand::Imm(c);
            acc = Some(match acc {
                None => sink.op(level, ty, Op::Mul, &[v, factor]),
                Some(a) => sink.op(level, ty, Op::Mad, &[v, factor, a]),
            });
            continue;
        }
        let v = match c {
            1 | -1 => v,
            _ if power => sink.op(
                level,
                at,
                Op::Shl,
                &[v, Operand::Imm(c.trailing_zeros().into())],
            ),
            _ => sink.op(level, at, Op::Mul, &[v, Operand::Imm(c)]),
        };
        let v = resize(v, ty, level, sink);
        acc = Some(match (acc, c) {
            (None, -1) => sink.op(level, ty, Op::Sub, &[Operand::Imm(0), v]),
            (None, _) => v,
            (Some(a), -1) => sink.op(level, ty, Op::Sub, &[a, v]),
            (Some(a), _) => sink.op(level, ty, Op::Add, &[a, v]),
        });
    }
    match acc {
        None => Operand::Imm(k),
        Some(v) if k == 0 => v,
        Some(v) => sink.op(level, ty, Op::Add, &[v, Operand::Imm(k)]),
    }
}

/// `a·b + sum`, of type `ty`.
fn emit_fused(
    pool: &mut Pool,
    (a, b): (Expr, Expr),
    sum: Operand,
    (level, ty): (Level, Ty),
    memo: &mut Memo,
    sink: &mut dyn Sink,
) -> Operand {
    let (ta, tb) = (type_of(pool, a), type_of(pool, b));
    let (a, b) = (emit(pool, a, memo, sink), emit(pool, b, memo, sink));
    if ty.wide() && !ta.wide() && ta == tb {
        return sink.op(level, ta, Op::MadWide, &[a, b, sum]);
    }
    let (a, b) = (resize(a, ty, level, sink), resize(b, ty, level, sink));
    sink.op(level, ty, Op::Mad, &[a, b, sum])
}

/// The multiplier and shift with `⌊x/d⌋ = (x·m) >> p` for all `0 ≤ x ≤ n`: exact iff `(m·d − 2ᵖ)·n < 2ᵖ` (Granlund and Montgomery 1994).
/// m is below 2³²; `product_below` bounds the product: 2³² if only its low half is kept, 2⁶⁴ if the high half is.
pub fn magic(d: u64, n: u64, product_below: u128) -> Option<(u64, u32)> {
    magic_from(0, (d, n), 1 << 32, product_below)
}

/// The same with a shift of at least `least`.
fn magic_from(
    least: u32,
    (d, n): (u64, u64),
    multiplier_below: u128,
    product_below: u128,
) -> Option<(u64, u32)> {
    (least..127).find_map(|p| {
        let two_p = 1u128 << p;
        let m = two_p.div_ceil(d.into());
        if m >= multiplier_below || (n > 0 && m > (product_below - 1) / u128::from(n)) {
            return None;
        }
        // The excess is below d, so that its product with n fits.
        let exact = (m * u128::from(d) - two_p) * u128::from(n) < two_p;
        exact.then_some((m as u64, p))
    })
}

/// `⌊x / d⌋` of a value that is never negative, by multiplication: the low half of one product where the range allows it, else the high
/// half, after a shift by the divisor's factors of two if the multiplier would not fit, else with a multiplier of one bit more
/// than the word has, whose top bit is added by hand.
fn emit_div(
    pool: &mut Pool,
    x: Expr,
    d: i64,
    level: Level,
    memo: &mut Memo,
    sink: &mut dyn Sink,
) -> Operand {
    let facts = pool.facts(x);
    let ty = type_of(pool, x);
    let mut v = emit(pool, x, memo, sink);
    if !facts.nonnegative() {
        return sink.op(level, ty, Op::Div, &[v, Operand::Imm(d)]);
    }
    let (mut n, mut d) = (facts.hi as u64, d as u64);
    let quotient = n / d;
    // A signed value that is never negative has the same bits.
    let ty = if ty.wide() { Ty::U64 } else { Ty::U32 };
    let word: u32 = if ty.wide() { 64 } else { 32 };
    let below = 1u128 << word;
    let shift_right = |v: Operand, by: u32, sink: &mut dyn Sink| match by {
        0 => v,
        _ => sink.op(level, ty, Op::Shr, &[v, Operand::Imm(by.into())]),
    };
    let result = if let Some((m, p)) = magic_from(0, (d, n), below, below) {
        let product = sink.op(level, ty, Op::Mul, &[v, Operand::Imm(m as i64)]);
        shift_right(product, p, sink)
    } else {
        let high = |d, n| magic_from(word, (d, n), below, u128::MAX);
        let twos = d.trailing_zeros();
        if high(d, n).is_none() && twos > 0 {
            v = shift_right(v, twos, sink);
            (n, d) = (n >> twos, d >> twos);
        }
        if let Some((m, p)) = high(d, n) {
            let product = sink.op(level, ty, Op::MulHi, &[v, Operand::Imm(m as i64)]);
            shift_right(product, p - word, sink)
        } else if ty.wide() {
            sink.op(level, ty, Op::Div, &[v, Operand::Imm(d as i64)])
        } else {
            // m = 2^word + m': x·m >> (word + s) = (((x − h) >> 1) + h) >> (s − 1) with h = x·m' >> word, s = ⌈log₂ d⌉.
            let s = u64::BITS - (d - 1).leading_zeros();
            let m = (1u128 << (word + s)).div_ceil(d.into()) - below;
            let h = sink.op(level, ty, Op::MulHi, &[v, Operand::Imm(m as i64)]);
            let rest = sink.op(level, ty, Op::Sub, &[v, h]);
            let half = shift_right(rest, 1, sink);
            let sum = sink.op(level, ty, Op::Add, &[half, h]);
            shift_right(sum, s - 1, sink)
        }
    };
    if quotient < 1 << 32 {
        resize(result, Ty::U32, level, sink)
    } else {
        result
    }
}

/// A sink that adds up what instructions cost and keeps none.
#[derive(Default, Debug)]
pub struct Counter {
    /// The cost so far, in simple instructions.
    pub cost: usize,
    next: u32,
}

impl Sink for Counter {
    fn op(&mut self, _: Level, ty: Ty, op: Op, _: &[Operand]) -> Operand {
        self.cost += match op {
            // A hardware division is a subroutine of some twenty instructions.
            Op::Div => 20,
            // Shifts and additions join in one instruction on every machine that counts; multiplications take longer.
            Op::Mul | Op::Mad | Op::MulWide | Op::MadWide | Op::MulHi => 2,
            _ => 1,
        };
        self.next += 1;
        let ty = if matches!(op, Op::MulWide | Op::MadWide) {
            if ty.signed() { Ty::S64 } else { Ty::U64 }
        } else {
            ty
        };
        Operand::Reg(self.next, ty)
    }

    fn var(&mut self, _: &str, ty: Ty) -> Operand {
        self.next += 1;
        Operand::Reg(self.next, ty)
    }
}

/// What `exprs` cost together, in simple instructions, nothing computed before.
pub fn cost(pool: &mut Pool, exprs: &[Expr]) -> usize {
    let (mut memo, mut counter) = (Memo::new(), Counter::default());
    for &e in exprs {
        emit(pool, e, &mut memo, &mut counter);
    }
    counter.cost
}
