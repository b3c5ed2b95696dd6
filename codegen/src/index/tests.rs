//! Every operation against its definition, exhaustively on small widths: expressions are grown at random from two small
//! variables, and each result is evaluated at every value of both.

use super::code::{Op, Operand, Sink, Ty, emit, magic};
use super::{Expr, Level, Pool};

/// A small deterministic generator (xorshift64*), so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

const X_HI: i64 = 31;
const Y_HI: i64 = 11;

fn everywhere(pool: &Pool, e: Expr, f: impl Fn(i128, i128) -> i128, what: &str) {
    let facts = pool.facts(e);
    for x in 0..=X_HI {
        for y in 0..=Y_HI {
            let got = pool.evaluate(e, &|name| if name == "x" { x } else { y });
            assert_eq!(
                got,
                f(x.into(), y.into()),
                "{what} at x={x} y={y}: {:?}",
                pool.node(e)
            );
            assert!(
                facts.lo <= got && got <= facts.hi,
                "{what}: {got} outside {facts:?}"
            );
            if facts.lo >= 0 {
                assert_eq!(
                    got & !i128::from(facts.bits),
                    0,
                    "{what}: {got:#x} has a bit outside {:#x}",
                    facts.bits
                );
            }
        }
    }
}

/// Executes instructions on concrete values: an interpreter for what `emit` writes.
struct Machine<'a> {
    values: Vec<i128>,
    var: &'a dyn Fn(&str) -> i64,
}

fn wrap(v: i128, ty: Ty) -> i128 {
    match ty {
        Ty::U32 => i128::from(v as u32),
        Ty::S32 => i128::from(v as i32),
        Ty::U64 => i128::from(v as u64),
        Ty::S64 => i128::from(v as i64),
    }
}

impl Sink for Machine<'_> {
    fn op(&mut self, _: Level, ty: Ty, op: Op, args: &[Operand]) -> Operand {
        let get = |i: usize| match args[i] {
            Operand::Imm(k) => i128::from(k),
            Operand::Reg(id, _) => self.values[id as usize],
        };
        let wide = if ty.signed() { Ty::S64 } else { Ty::U64 };
        let (v, ty) = match op {
            Op::Add => (wrap(get(0) + get(1), ty), ty),
            Op::Sub => (wrap(get(0) - get(1), ty), ty),
            Op::Mul => (wrap(get(0).wrapping_mul(get(1)), ty), ty),
            Op::Mad => (wrap(get(0).wrapping_mul(get(1)) + get(2), ty), ty),
            Op::MulWide => (wrap(wrap(get(0), ty) * wrap(get(1), ty), wide), wide),
            Op::MadWide => (
                wrap(wrap(get(0), ty) * wrap(get(1), ty) + get(2), wide),
                wide,
            ),
            Op::MulHi => (
                wrap((get(0) * get(1)) >> if ty.wide() { 64 } else { 32 }, ty),
                ty,
            ),
            Op::Shl => (wrap(get(0) << get(1), ty), ty),
            Op::Shr => (wrap(wrap(get(0), ty) >> get(1), ty), ty),
            Op::And => (wrap(get(0) & get(1), ty), ty),
            Op::Xor => (wrap(get(0) ^ get(1), ty), ty),
            Op::Div => (wrap(get(0).div_euclid(get(1)), ty), ty),
            Op::Widen | Op::Narrow => (wrap(get(0), ty), ty),
        };
        self.values.push(v);
        Operand::Reg(self.values.len() as u32 - 1, ty)
    }

    fn var(&mut self, name: &str, ty: Ty) -> Operand {
        self.values.push((self.var)(name).into());
        Operand::Reg(self.values.len() as u32 - 1, ty)
    }
}

#[test]
fn every_operation_equals_its_definition_on_random_expressions() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..600 {
        let mut pool = Pool::new();
        let (x, y) = (pool.var("x", 0, X_HI, 0), pool.var("y", 0, Y_HI, 1));
        let mut known: Vec<Expr> = vec![x, y];
        for step in 0..12 {
            let a = known[random.below(known.len() as u64) as usize];
            let b = known[random.below(known.len() as u64) as usize];
            let k = random.below(70) as i64 + 1;
            let (fa, fb) = (pool.facts(a), pool.facts(b));
            if fa.hi > 1 << 28 || fb.hi > 1 << 28 || fa.lo < -(1 << 28) {
                continue;
            }
            let before = |pool: &Pool, e: Expr, x: i128, y: i128| {
                pool.evaluate(e, &|n| if n == "x" { x as i64 } else { y as i64 })
            };
            let copy = pool.clone();
            let what = format!("round {round} step {step}");
            let e = match random.below(11) {
                0 => {
                    let e = pool.add(a, b);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) + before(&copy, b, x, y),
                        &what,
                    );
                    e
                }
                1 => {
                    let e = pool.scale(a, k);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) * i128::from(k),
                        &what,
                    );
                    e
                }
                2 => {
                    let e = pool.mul(a, b);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) * before(&copy, b, x, y),
                        &what,
                    );
                    e
                }
                3 if fa.lo >= 0 && fb.lo >= 0 => {
                    let e = pool.xor(a, b);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) ^ before(&copy, b, x, y),
                        &what,
                    );
                    e
                }
                4 if fa.lo >= 0 => {
                    let e = pool.div(a, k);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) / i128::from(k),
                        &what,
                    );
                    e
                }
                5 if fa.lo >= 0 => {
                    let e = pool.rem(a, k);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) % i128::from(k),
                        &what,
                    );
                    e
                }
                6 if fa.lo >= 0 => {
                    let (shift, mask) = (random.below(9) as i32 - 4, random.below(1 << 12));
                    let e = pool.field(a, shift, mask);
                    let reference = |v: i128| {
                        (if shift >= 0 { v << shift } else { v >> -shift }) & i128::from(mask)
                    };
                    everywhere(&pool, e, |x, y| reference(before(&copy, a, x, y)), &what);
                    e
                }
                7 => {
                    let c = pool.constant(k);
                    let e = pool.add(a, c);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) + i128::from(k),
                        &what,
                    );
                    e
                }
                8 if fa.lo >= 0 => {
                    let c = pool.constant(k);
                    let e = pool.xor(a, c);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) ^ i128::from(k),
                        &what,
                    );
                    e
                }
                9 => {
                    let e = pool.sub(a, b);
                    everywhere(
                        &pool,
                        e,
                        |x, y| before(&copy, a, x, y) - before(&copy, b, x, y),
                        &what,
                    );
                    e
                }
                10 => {
                    let e = pool.pin(a);
                    everywhere(&pool, e, |x, y| before(&copy, a, x, y), &what);
                    e
                }
                _ => continue,
            };
            known.push(e);
            // The instructions compute the same value.
            for x in [0, 1, 7, 13, X_HI] {
                for y in [0, 3, 8, Y_HI] {
                    let value = |n: &str| if n == "x" { x } else { y };
                    let mut machine = Machine {
                        values: Vec::new(),
                        var: &value,
                    };
                    let got = match emit(&mut pool, e, &mut super::code::Memo::new(), &mut machine)
                    {
                        Operand::Imm(k) => k.into(),
                        Operand::Reg(id, _) => machine.values[id as usize],
                    };
                    assert_eq!(
                        got,
                        pool.evaluate(e, &value),
                        "{what}: code at x={x} y={y} {:?}",
                        pool.node(e)
                    );
                }
            }
        }
    }
}

#[test]
fn division_by_multiplication_is_exact_over_its_range() {
    for d in 1..=100u64 {
        for n in [d - 1, d, 255, 1000, 65535] {
            let (m, p) = magic(d, n, 1 << 64).expect("16-bit ranges always have a multiplier");
            for x in 0..=n {
                assert_eq!(
                    (u128::from(x) * u128::from(m)) >> p,
                    u128::from(x / d),
                    "{x} / {d} with m={m} p={p}"
                );
            }
        }
    }
    assert_eq!(magic(48, 65535, 1 << 32), Some((43691, 21)));
}

#[test]
fn fields_on_one_diagonal_merge() {
    let mut pool = Pool::new();
    let t = pool.var("t", 0, 31, 0);
    let low = pool.rem(t, 16);
    let low = pool.scale(low, 16);
    let high = pool.shr(t, 4);
    let high = pool.rem(high, 2);
    let high = pool.scale(high, 256);
    let e = pool.add(low, high);
    assert_eq!(e, pool.scale(t, 16));
}
