//! Random expressions and predicates of what can be named somewhere.

use tilewright::codegen::ir::{Cmp, Rounding, Shuffle};
use tilewright::codegen::view::Combine;

use crate::program::{Float, FloatOp, FloatUnary, Int, IntOp, Integer, Ix, Pair, PairOp, Pred};
use crate::random::Random;

/// What can be named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    pub(crate) threads: i64,
    pub(crate) sizes: usize,
    pub(crate) scalars: usize,
    pub(crate) axes: usize,
    pub(crate) counters: usize,
    pub(crate) step: bool,
    /// A map gives coordinates.
    pub(crate) coordinates: bool,
    pub(crate) fragments: Vec<usize>,
    pub(crate) ints: Vec<usize>,
    pub(crate) floats: Vec<usize>,
}

const COMPARISONS: [Cmp; 6] = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];

/// A comparison.
pub(crate) fn cmp(r: &mut Random) -> Cmp {
    r.pick(&COMPARISONS)
}

/// A number that matters somewhere.
pub(crate) fn constant(r: &mut Random, a: &Around) -> i64 {
    let t = a.threads;
    match r.below(12) {
        0..=6 => r.pick(&[0, 1, 2, 3, 4, 5, 7, 8]),
        7 => r.pick(&[15, 16, 31, 32, 33, 63, 64]),
        8 | 9 => r.pick(&[t - 1, t, t + 1, t / 2, 2 * t]),
        _ => r.below(2 * t as usize + 2) as i64,
    }
}

fn boxed(a: Ix, b: Ix) -> Box<[Ix; 2]> {
    Box::new([a, b])
}

/// Something made of a counter: its parity, its half, …
pub(crate) fn derived(r: &mut Random, e: Ix) -> Ix {
    let same = || Box::new(e.clone());
    match r.below(12) {
        0..=2 => Ix::Rem(same(), 2),
        3 => Ix::Rem(same(), r.pick(&[3, 4, 5])),
        4 => Ix::Rem(Box::new(Ix::Div(same(), 2)), 2),
        5 => Ix::Scale(Box::new(Ix::Rem(Box::new(Ix::Div(same(), 2)), 2)), 2),
        6 => Ix::Div(same(), r.pick(&[2, 3, 4])),
        7 => Ix::Xor(boxed(e.clone(), Ix::Const(r.pick(&[1, 2, 3])))),
        8 => Ix::Add(boxed(
            Ix::Scale(same(), r.pick(&[2, 3])),
            Ix::Const(r.pick(&[0, 1, 2])),
        )),
        9 => Ix::Rem(Box::new(Ix::Add(boxed(e.clone(), Ix::Const(1)))), 2),
        _ => e,
    }
}

/// An index expression; all threads of a block agree on it if `uniform`.
pub(crate) fn index(r: &mut Random, a: &Around, uniform: bool, depth: usize) -> Ix {
    if depth == 0 || r.chance(40) {
        let mut leaves = vec![Ix::Const(constant(r, a))];
        leaves.extend((0..a.sizes).map(Ix::Size));
        leaves.extend((0..a.axes).map(Ix::Tile));
        leaves.extend((0..a.counters).flat_map(|i| [Ix::Counter(i), Ix::Counter(i)]));
        leaves.extend(a.step.then_some(Ix::Step));
        if r.chance(3) {
            leaves.push(Ix::Block(r.below(3), r.pick(&[1, 2, 4])));
        }
        if !uniform {
            leaves.extend([Ix::Thread, Ix::Thread, Ix::Lane, Ix::Warp]);
            if a.coordinates {
                leaves.extend([0, 1, 0, 1].map(Ix::Coordinate));
            }
        }
        let leaf = r.pick(&leaves);
        return if matches!(leaf, Ix::Counter(_) | Ix::Step) && r.chance(60) {
            derived(r, leaf)
        } else {
            leaf
        };
    }
    let one = index(r, a, uniform, depth - 1);
    let constants = Ix::Const(constant(r, a));
    match r.below(13) {
        12 => {
            let other = index(r, a, uniform, depth - 1);
            let [by, with] = [r.pick(&[1, 2, 8]), r.pick(&[1, -1, 3])];
            Ix::Linear(vec![(by, one), (with, other)], constant(r, a))
        }
        0 | 1 => Ix::Add(boxed(one, constants)),
        2 => Ix::Sub(boxed(one, constants)),
        3 => Ix::Add(boxed(one, index(r, a, uniform, depth - 1))),
        4 => Ix::Sub(boxed(one, index(r, a, uniform, depth - 1))),
        5 => Ix::Scale(Box::new(one), r.pick(&[2, 3, 4, -1])),
        6 => Ix::Smaller(boxed(one, index(r, a, uniform, depth - 1))),
        7 => Ix::Choose(
            Box::new([
                one,
                constants,
                index(r, a, uniform, depth - 1),
                index(r, a, uniform, depth - 1),
            ]),
            cmp(r),
        ),
        8 => Ix::TilesIn(Box::new(one), r.pick(&[2, 3, 4, 8])),
        9 => Ix::Mul(boxed(one, index(r, a, uniform, depth - 1))),
        _ => derived(r, one),
    }
}

/// An integer.
pub(crate) fn int(r: &mut Random, a: &Around, uniform: bool, depth: usize) -> Int {
    if depth == 0 || r.chance(30) {
        return match r.below(10) {
            0 => Int::Const(r.pick(&[
                0,
                1,
                5,
                500,
                0x7fff_ffff,
                0x8000_0000,
                3_000_000_000,
                0xffff_fffd,
                0xffff_ffff,
            ])),
            1 => Int::Const(constant(r, a) as u32),
            2 | 3 if a.scalars > 0 => Int::Argument(r.below(a.scalars)),
            4 | 5 if !a.ints.is_empty() => Int::Variable(r.pick(&a.ints)),
            6 | 7 if !uniform && !a.fragments.is_empty() => {
                Int::Data(r.pick(&a.fragments), r.below(4))
            }
            _ => Int::Index(index(r, a, uniform, 1)),
        };
    }
    let both = |r: &mut Random| {
        let first = int(r, a, uniform, depth - 1);
        let second = if r.chance(60) {
            Int::Const(constant(r, a) as u32)
        } else {
            int(r, a, uniform, depth - 1)
        };
        Box::new([first, second])
    };
    let op = match r.below(12) {
        0 | 1 => IntOp::Add,
        2 | 3 => IntOp::Sub,
        4 => r.pick(&[IntOp::Mul, IntOp::Mul, IntOp::MulHi]),
        5 => IntOp::Min,
        6 | 7 => IntOp::Max,
        8 => r.pick(&[IntOp::And, IntOp::Or, IntOp::Xor]),
        9 => IntOp::Shl,
        10 => IntOp::Shr,
        _ if r.chance(30) && !uniform => {
            let mode = r.pick(&[
                Shuffle::Butterfly,
                Shuffle::Index,
                Shuffle::Up,
                Shuffle::Down,
            ]);
            let x = int(r, a, uniform, depth - 1);
            return Int::Shuffle(
                mode,
                Box::new([x, Int::Const(r.pick(&[0, 1, 2, 4, 16, 31]))]),
            );
        }
        _ if r.chance(50) => {
            let p = pred(r, a, uniform, depth - 1);
            return Int::Select(Box::new(p), both(r));
        }
        _ if r.chance(30) => {
            let selector = r.pick(&[0x3210, 0x5410, 0x7632, 0x0123, 0x8888, 0xffff, 0x4401]);
            return Int::Permute(both(r), selector);
        }
        _ if r.chance(40) => {
            let pair = pair(r);
            let halves = Box::new([
                float(r, a, uniform, depth - 1),
                float(r, a, uniform, depth - 1),
            ]);
            return Int::Pair(pair, halves);
        }
        _ if r.chance(40) => {
            let swap = !uniform && r.chance(15);
            let op = match r.below(9) {
                _ if swap => PairOp::Swap,
                0..=3 => PairOp::Arithmetic(float_op(r)),
                4 => PairOp::Fma,
                5 => PairOp::Neg,
                6 => PairOp::Abs,
                7 => PairOp::Exp2,
                _ => PairOp::Tanh,
            };
            // Functions of bfloat16 are younger than the machine.
            let brain = !matches!(op, PairOp::Exp2 | PairOp::Tanh) && r.chance(50);
            return Int::Pairs(brain, op, both(r));
        }
        _ => {
            let to = r.pick(&[Integer::S32, Integer::S32, Integer::U32, Integer::S8]);
            let rounding = r.pick(&[
                Rounding::Nearest,
                Rounding::Zero,
                Rounding::Down,
                Rounding::Up,
            ]);
            return Int::Float(Box::new(float(r, a, uniform, depth - 1)), to, rounding);
        }
    };
    Int::Binary(op, r.chance(50), both(r))
}

fn pair(r: &mut Random) -> Pair {
    r.pick(&[Pair::F16, Pair::Bf16, Pair::E4m3, Pair::E5m2])
}

fn float_op(r: &mut Random) -> FloatOp {
    r.pick(&[
        FloatOp::Add,
        FloatOp::Sub,
        FloatOp::Mul,
        FloatOp::Min,
        FloatOp::Max,
        FloatOp::MinNan,
        FloatOp::MaxNan,
    ])
}

/// How values are combined.
pub(crate) fn combine(r: &mut Random) -> Combine {
    r.pick(&[
        Combine::Add,
        Combine::Add,
        Combine::Max,
        Combine::Min,
        Combine::MaxNan,
        Combine::MinNan,
    ])
}

/// Groups of threads: all, runs of a power of two, and those with the same number in a run.
pub(crate) fn groups(r: &mut Random, threads: i64) -> String {
    let run = 1 << r.below(6);
    if threads % run != 0 || run == threads || r.chance(40) {
        return format!("{threads}:0");
    }
    let rest = threads / run;
    if r.chance(60) {
        format!("({run},{rest}):(0,1)")
    } else {
        format!("({run},{rest}):(1,0)")
    }
}

/// A float.
pub(crate) fn float(r: &mut Random, a: &Around, uniform: bool, depth: usize) -> Float {
    if depth == 0 || r.chance(40) {
        return match r.below(8) {
            0 | 1 => Float::Const(r.pick(&[0.0, 1.0, -1.0, 0.5, 3.0, f32::INFINITY, f32::NAN])),
            2 if a.scalars > 0 => Float::Argument(r.below(a.scalars)),
            3 if !a.floats.is_empty() => Float::Variable(r.pick(&a.floats)),
            4 => Float::OfInt(Box::new(int(r, a, uniform, 0)), r.chance(50)),
            5 => Float::OfBits(Box::new(int(r, a, uniform, 0))),
            _ if !uniform && !a.fragments.is_empty() => {
                Float::Data(r.pick(&a.fragments), r.below(4))
            }
            _ => Float::Const(2.0),
        };
    }
    let both = |r: &mut Random| {
        Box::new([
            float(r, a, uniform, depth - 1),
            float(r, a, uniform, depth - 1),
        ])
    };
    match r.below(14) {
        8 => {
            let op = r.pick(&[
                FloatUnary::Neg,
                FloatUnary::Abs,
                FloatUnary::Exp2,
                FloatUnary::Reciprocal,
                FloatUnary::Rsqrt,
                FloatUnary::Sqrt,
                FloatUnary::Log2,
                FloatUnary::Tanh,
                FloatUnary::WideSqrt,
            ]);
            Float::Unary(op, Box::new(float(r, a, uniform, depth - 1)))
        }
        9 => {
            let [first, second] = *both(r);
            Float::Fma(Box::new([first, second, float(r, a, uniform, 0)]))
        }
        10 => Float::Wide(float_op(r), both(r)),
        11 => {
            let word = if r.chance(50) {
                Int::Pair(pair(r), both(r))
            } else {
                int(r, a, uniform, depth - 1)
            };
            Float::Half(pair(r), Box::new(word), r.below(2))
        }
        12 if !uniform && !a.fragments.is_empty() => {
            Float::Combined(r.pick(&a.fragments), combine(r))
        }
        13 if !uniform && r.chance(30) => {
            let x = float(r, a, uniform, 0);
            Float::Reduced(Box::new(x), groups(r, a.threads), combine(r))
        }
        0 => Float::Select(Box::new(pred(r, a, uniform, depth - 1)), both(r)),
        1 if !uniform => {
            let mode = r.pick(&[Shuffle::Butterfly, Shuffle::Up, Shuffle::Down]);
            let x = float(r, a, uniform, depth - 1);
            let lane = Int::Const(r.pick(&[1, 2, 4, 8, 16]));
            Float::Shuffle(mode, Box::new(x), Box::new(lane))
        }
        _ => Float::Binary(float_op(r), both(r)),
    }
}

/// A predicate on which all threads of a block agree, `percent` times of a hundred, and any one else.
pub(crate) fn some_pred(r: &mut Random, a: &Around, percent: usize) -> Pred {
    let uniform = r.chance(percent);
    pred(r, a, uniform, 2)
}

/// An index expression, in the same way.
pub(crate) fn some_index(r: &mut Random, a: &Around, percent: usize) -> Ix {
    let uniform = r.chance(percent);
    index(r, a, uniform, 2)
}

/// A predicate; all threads of a block agree if `uniform`.
pub(crate) fn pred(r: &mut Random, a: &Around, uniform: bool, depth: usize) -> Pred {
    match r.below(if depth == 0 { 8 } else { 11 }) {
        0..=3 => {
            let levels = r.below(3);
            let left = index(r, a, uniform, levels);
            let right = if r.chance(75) {
                Ix::Const(constant(r, a))
            } else {
                index(r, a, uniform, 1)
            };
            Pred::Index(left, cmp(r), right)
        }
        4..=6 => {
            let (left, right) = (
                int(r, a, uniform, depth.min(2)),
                if r.chance(70) {
                    Int::Const(constant(r, a) as u32)
                } else {
                    int(r, a, uniform, 1)
                },
            );
            Pred::Int(r.chance(50), left, cmp(r), right)
        }
        7 => Pred::Float(float(r, a, uniform, 1), cmp(r), float(r, a, uniform, 1)),
        8 => Pred::Not(Box::new(pred(r, a, uniform, depth - 1))),
        n => {
            let both = Box::new([
                pred(r, a, uniform, depth - 1),
                pred(r, a, uniform, depth - 1),
            ]);
            if n == 9 {
                Pred::And(both)
            } else {
                Pred::Or(both)
            }
        }
    }
}
