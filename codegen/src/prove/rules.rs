//! The rules of the prover's arithmetic against the meaning of each instruction: at random at full width, exhaustively over small ranges.

use crate::index::code::{Op, Ty};
use crate::ir::{Binary, Class, Cmp, Kernel, ParamKind, Src, Type};
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::meaning::{self, Operation, integer_type};
use crate::prove::algebra::numbers::Tables;
use crate::prove::algebra::symbols::Symbols;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::{Machine, Val};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A number near a power of two or another place where something wraps around, or any.
    fn number(&mut self) -> i64 {
        let near = self.below(7) as i64 - 3;
        let sign = self.of(&[1, -1]);
        match self.below(4) {
            0 => near,
            1 => (sign << self.of(&[4, 8, 15, 16, 31, 32, 33, 40])) + near,
            2 => self.next() as i64 >> self.below(64),
            _ => i64::from(self.next() as u32 >> self.below(32)),
        }
    }
}

const TYPES: [Ty; 4] = [Ty::U32, Ty::S32, Ty::U64, Ty::S64];
const COMPARISONS: [Cmp; 7] = [
    Cmp::Eq,
    Cmp::Ne,
    Cmp::Lt,
    Cmp::Le,
    Cmp::Gt,
    Cmp::Ge,
    Cmp::Neu,
];

fn operations() -> Vec<Operation> {
    let index = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Mad,
        Op::MulWide,
        Op::MadWide,
        Op::MulHi,
        Op::Shl,
        Op::Shr,
        Op::And,
        Op::Xor,
        Op::Div,
        Op::Widen,
        Op::Narrow,
    ];
    let mut all: Vec<Operation> = index.map(Operation::Index).to_vec();
    all.extend([
        Operation::Rem,
        Operation::Min,
        Operation::Max,
        Operation::Or,
    ]);
    all
}

/// A value and the bits that it is to be, of a register of so many bits.
struct Held {
    value: Lin,
    bits: i64,
    width: u32,
}

/// Straight-line programs over arguments, of every operation and every type: each result has the bits that the instruction means, and each comparison holds where it does;
/// what was found to hold becomes a fact on the way, as behind a guard.
#[test]
fn programs_at_random_mean_what_their_instructions_mean() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let all = operations();
    // How often each operation was held against its meaning, and how often there was nothing to hold.
    let mut held = vec![[0_usize; 2]; all.len()];
    let (mut compared, mut unknown) = (0, 0);
    for _ in 0..1500 {
        let mut k = Kernel::new("k", 32);
        let kinds = [ParamKind::U32, ParamKind::S32];
        let arguments = kinds.map(|kind| k.param_scalar(&format!("{kind:?}"), kind));
        let most = 1_i64 << random.of(&[4, 16, 31]);
        let n = k.size("n", most);
        let n = k.value(n);
        let entry = k.finish();
        let _tables = Tables::new();
        let mut machine = Machine::new(&entry).expect("a machine");
        machine.nodes(&entry.nodes).expect("parameters");
        let mut at: Vec<(Sym, i64)> = Vec::new();
        let mut all_held: Vec<Held> = Vec::new();
        for (register, range) in [
            (arguments[0], (0, i64::from(u32::MAX))),
            (arguments[1], (i32::MIN.into(), i32::MAX.into())),
            (n, (0, most)),
        ] {
            let value = machine.integer(register);
            let bits = random.number().clamp(range.0, range.1);
            at.push((value.single().expect("a symbol"), bits));
            let width = 32;
            all_held.push(Held { value, bits, width });
        }
        for _ in 0..12 {
            let number = random.below(all.len());
            let op = all[number];
            let ty = match op {
                Operation::Index(Op::MulWide | Op::MadWide | Op::Narrow) => random.of(&TYPES[..2]),
                Operation::Index(Op::Widen) => random.of(&TYPES[2..]),
                _ => random.of(&TYPES),
            };
            let from = match op {
                Operation::Index(Op::Widen) => random.of(&TYPES[..2]),
                Operation::Index(Op::Narrow) => random.of(&TYPES[2..]),
                _ => ty,
            };
            let count = match op {
                Operation::Index(Op::Mad | Op::MadWide) => 3,
                Operation::Index(Op::Widen | Op::Narrow) => 1,
                _ => 2,
            };
            let mut args = Vec::new();
            for i in 0..count {
                let wide = matches!(op, Operation::Index(Op::MadWide)) && i == 2;
                let width = if wide { 64 } else { meaning::width(from) };
                let fit: Vec<&Held> = all_held.iter().filter(|h| h.width == width).collect();
                let shifts = matches!(op, Operation::Index(Op::Shl | Op::Shr)) && i == 1;
                let literal = if shifts {
                    (random.next() % 70) as i64
                } else {
                    random.number()
                };
                let takes_literal = fit.is_empty() || random.below(if i == 0 { 8 } else { 2 }) == 0;
                args.push(if takes_literal {
                    (Lin::constant(literal), literal)
                } else {
                    let held = fit[random.below(fit.len())];
                    (held.value, held.bits)
                });
            }
            let (values, bits): (Vec<Lin>, Vec<i64>) = args.into_iter().unzip();
            let value = machine.integer_op(op, ty, from, &values);
            let wide = matches!(op, Operation::Index(Op::MulWide | Op::MadWide));
            let width = if wide { 64 } else { meaning::width(ty) };
            let result = if width == 64 { Ty::U64 } else { Ty::U32 };
            let Some(bits) = meaning::value(op, ty, from, &bits) else {
                continue;
            };
            match machine.symbols.value(&value, &at) {
                Some(found) => {
                    held[number][0] += 1;
                    let [a, b] = [found, bits].map(|k| meaning::read(k.into(), result));
                    assert_eq!(a, b, "{op:?} {ty:?} from {from:?} of {values:?} at {at:?}");
                    all_held.push(Held { value, bits, width });
                }
                None => held[number][1] += 1,
            }
            // A guard of what is there.
            let ty = random.of(&TYPES);
            let fit: Vec<&Held> = all_held
                .iter()
                .filter(|h| h.width == meaning::width(ty))
                .collect();
            if fit.is_empty() {
                continue;
            }
            let (a, b) = (fit[random.below(fit.len())], random.number());
            let cmp = random.of(&COMPARISONS);
            let right = meaning::compare(cmp, ty, a.bits, b);
            let register = crate::ir::Reg {
                class: if ty.wide() { Class::B64 } else { Class::B32 },
                id: 1000,
            };
            machine.registers.insert(register, Val::Int(a.value));
            let f = machine.comparison(cmp, type_of(ty), register.into(), Src::Int(b));
            match machine.symbols.holds_at(&f, &at) {
                Some(found) => {
                    compared += 1;
                    assert_eq!(
                        found, right,
                        "{cmp:?} {ty:?} of {:?} and {b} at {at:?}",
                        a.value
                    );
                    let fact = if right { f } else { f.not() };
                    assert!(*fact != Formula::False);
                    machine.learn(&fact);
                }
                None => unknown += 1,
            }
        }
    }
    for (op, [known, unknown]) in all.iter().zip(&held) {
        // `or` has no rule but for numbers, and high words are known of constant factors alone.
        let few = matches!(op, Operation::Or | Operation::Index(Op::MulHi));
        assert!(
            *known > if few { 10 } else { 100 },
            "{op:?}: {known} known, {unknown} not"
        );
    }
    assert!(
        compared > 4 * unknown && compared > 5000,
        "{compared} {unknown}"
    );
}

fn type_of(ty: Ty) -> Type {
    let ty = match ty {
        Ty::U32 => Type::U32,
        Ty::S32 => Type::S32,
        Ty::U64 => Type::U64,
        Ty::S64 => Type::S64,
    };
    assert!(integer_type(ty).is_some());
    ty
}

/// Each rule of symbols, over every value of its operand in a small range: the value is right, and in the range that the rule gives it.
#[test]
fn rules_hold_for_every_small_value() {
    let _tables = Tables::new();
    let mut checked = 0;
    for (lo, hi) in [(0, 15), (-8, 7), (0, 40), (-3, 20)] {
        for (c, k) in [
            (1, 0),
            (1, 3),
            (2, 0),
            (2, 1),
            (3, -2),
            (4, 8),
            (6, 6),
            (-1, 5),
            (-4, 3),
            (12, -24),
        ] {
            let mut symbols = Symbols::default();
            let sym = symbols.free(lo, hi, false);
            let x = Lin::symbol(sym).scale(c).plus(k);
            let at = |s: i64| c * s + k;
            let mut hold =
                |symbols: &mut Symbols, y: Lin, right: &dyn Fn(i64) -> i64, what: &str| {
                    let (least, most) = symbols.range(&y);
                    for s in lo as i64..=hi as i64 {
                        let found = symbols.value(&y, &[(sym, s)]);
                        let right = right(at(s));
                        assert_eq!(found, Some(right), "{what} of {c}·{s} + {k}");
                        assert!(
                            least <= right.into() && most >= right.into(),
                            "{what}: its range"
                        );
                        checked += 1;
                    }
                };
            for bits in 0..6 {
                let low = symbols.low(&x, bits);
                hold(&mut symbols, low, &|x| x.rem_euclid(1 << bits), "low bits");
                let shifted = symbols.shr(&x, bits);
                hold(&mut symbols, shifted, &|x| x >> bits, "a shift");
                let twice = symbols.shr(&shifted, 2);
                hold(
                    &mut symbols,
                    twice,
                    &|x| x >> bits >> 2,
                    "a shift of a shift",
                );
                let mixed = symbols.low(&shifted, 2);
                hold(
                    &mut symbols,
                    mixed,
                    &|x| (x >> bits) & 3,
                    "low bits of a shift",
                );
            }
            for d in 1..8 {
                let quotient = symbols.div(&x, d);
                hold(&mut symbols, quotient, &|x| x.div_euclid(d), "a quotient");
                let twice = symbols.div(&quotient, 3);
                hold(
                    &mut symbols,
                    twice,
                    &|x| x.div_euclid(d).div_euclid(3),
                    "a quotient of a quotient",
                );
                let shifted = symbols.shr(&quotient, 1);
                hold(
                    &mut symbols,
                    shifted,
                    &|x| x.div_euclid(d) >> 1,
                    "a shift of a quotient",
                );
            }
            for (first, length) in [(0, 3), (1, 2), (2, 3)] {
                let mask = ((1_u64 << length) - 1) << first;
                let part = symbols.and(&x, mask);
                hold(&mut symbols, part, &|x| x & mask as i64, "a mask");
            }
            for y in [-3, 0, 2, 7, 16] {
                let other = Lin::constant(y);
                let least = symbols.min(&x, &other);
                hold(&mut symbols, least, &|x| x.min(y), "the smaller");
                let most = symbols.max(&other, &x);
                hold(&mut symbols, most, &|x| x.max(y), "the larger");
                let either = symbols.xor(&x, &other);
                hold(&mut symbols, either, &|x| x ^ y, "an exclusive or");
                let sum = x.scale(3).plus(y);
                let either = symbols.xor(&x, &sum);
                let right = |x: i64| x ^ (3 * x + y);
                hold(&mut symbols, either, &right, "an exclusive or of two");
            }
            // Periods of a type, by steps of an eighth.
            for ty in [Ty::U32, Ty::S32] {
                let far = x.scale(1 << 29).plus(1);
                let read = symbols.read(&far, ty);
                let right = |x: i64| meaning::read(i128::from(x) * (1 << 29) + 1, ty) as i64;
                hold(&mut symbols, read, &right, "a type's number");
            }
        }
    }
    assert!(checked > 50_000, "{checked}");
}

/// The operations of pairs of values are those of index expressions, or those that only values have (`Rem`, `Min`, `Max`, `Or`).
#[test]
fn each_operation_of_values_has_its_meaning() {
    let value = |op: Binary, ty: Ty, a: i64, b: i64| {
        Operation::of(op).and_then(|op| meaning::value(op, ty, ty, &[a, b]))
    };
    for (op, unsigned, signed) in [
        (Binary::Add, 2, 2),
        (Binary::Sub, 0xffff_fff8, 0xffff_fff8),
        (Binary::Mul, 0xffff_fff1, 0xffff_fff1),
        (Binary::MulHi, 4, 0xffff_ffff),
        (Binary::Div, 0x3333_3332, 0),
        (Binary::Rem, 3, 0xffff_fffd),
        (Binary::Xor, 0xffff_fff8, 0xffff_fff8),
        (Binary::Min, 5, 0xffff_fffd),
        (Binary::Max, 0xffff_fffd, 5),
        (Binary::Shl, 0xffff_ffa0, 0xffff_ffa0),
        (Binary::Shr, 0x07ff_ffff, 0xffff_ffff),
        (Binary::And, 5, 5),
        (Binary::Or, 0xffff_fffd, 0xffff_fffd),
    ] {
        // -3 and 5
        let bits = |ty| value(op, ty, -3, 5).map(|k| k as u32);
        assert_eq!(
            [bits(Ty::U32), bits(Ty::S32)],
            [Some(unsigned), Some(signed)],
            "{op:?}"
        );
    }
    assert_eq!(Operation::of(Binary::MinNan), None);
    let high = |a, b| meaning::value(Operation::Index(Op::MulHi), Ty::U64, Ty::U64, &[a, b]);
    assert_eq!(high(-1, -1), Some(-2));
    assert_eq!(
        meaning::value(Operation::Index(Op::Div), Ty::S32, Ty::S32, &[-7, 2]),
        Some(-3)
    );
    assert_eq!(
        meaning::value(Operation::Index(Op::Div), Ty::U32, Ty::U32, &[7, 0]),
        None
    );
    assert!(
        meaning::compare(Cmp::Lt, Ty::S32, 0xffff_fffd, 5)
            && !meaning::compare(Cmp::Lt, Ty::U32, -3, 5)
    );
}
