//! Random problems for the `mma.sync` plans: every transpose, every alignment, epilogue and type of C, batches and schedules.
//!
//! A matrix is drawn by the width of the widest copy that serves it, from one element to 16 bytes, so that each width is as likely as
//! any other, whether it is the rows, the address or the distance of the matrices of a batch that keep it from being wider.

use tilewright::codegen::Arch;
use tilewright::kernels::gemm::{
    Activation, Alignment, Batch, Bias, Config, DataType, Epilogue, Gemm, Mainloop, Operands,
    PlanError, Schedule, Specialized, Trans,
};

use super::Random;

/// The types that these plans compute in.
pub(crate) const TYPES: [DataType; 9] = [
    DataType::F16,
    DataType::F16Acc16,
    DataType::Bf16,
    DataType::Tf32,
    DataType::S8,
    DataType::E4m3,
    DataType::E5m2,
    DataType::F64,
    DataType::F32,
];

/// A problem, the schedule to solve it by, and the seed of its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) problem: Gemm,
    pub(crate) schedule: Schedule,
    pub(crate) seed: u64,
}

/// The plans of a type in the family of `mma.sync`, those by fused multiply-adds too.
pub(crate) fn plans_of(data_type: DataType) -> Vec<Specialized> {
    let of_warps = |config: &Config| {
        matches!(
            config.mainloop,
            Mainloop::Simt { .. } | Mainloop::MmaSync { .. }
        )
    };
    let all = Config::table().filter(|config| config.data_type == data_type && of_warps(config));
    let all: Vec<_> = all.map(Config::kernel).collect();
    assert!(!all.is_empty(), "no plan computes in {data_type}");
    all
}

/// The first of `plans` that serves a case, adapted to it, and its place.
///
/// Plans of large tiles have no kernels for narrow copies; they say so, and that the operands can be packed: if that can be done, it must
/// serve. Plans for `sm_75` have no C in bf16. Nothing else is refused, and never by all plans of a type.
pub(crate) fn adapted<'p>(
    plans: impl Iterator<Item = &'p Specialized>,
    case: &Case,
) -> (&'p Specialized, Specialized) {
    let problem = &case.problem;
    for plan in plans {
        let refusal = match plan.specialize(problem, case.schedule) {
            Ok(adapted) => return (plan, adapted),
            Err(refusal) => refusal,
        };
        let text = refusal.to_string();
        if plan.min_arch() < Arch(80) && text.contains("C in bf16") {
            continue;
        }
        assert!(
            matches!(refusal, PlanError::Unsupported { .. })
                && text.contains("copies of")
                && text.contains("--pack") == (problem.batch.count == 1),
            "{case:?}: {text}"
        );
        assert!(
            plan.tile() != [64, 64, 32],
            "the smallest tile takes all: {case:?}: {text}"
        );
        if problem.batch.count == 1 {
            assert!(!case.schedule.pack, "{case:?}: {text}");
            let packed = Schedule {
                pack: true,
                ..case.schedule
            };
            match plan.specialize(problem, packed) {
                Ok(adapted) => return (plan, adapted),
                Err(error) => panic!("{case:?}: {text}, and if they are packed: {error}"),
            }
        }
    }
    panic!("no plan serves {case:?}");
}

/// `count` cases, the same for the same seed, the four transposes in turn.
pub(crate) fn cases(data_type: DataType, count: u64, seed: u64) -> Vec<Case> {
    let mut random = Random::new(seed);
    let operands = Operands::ALL.into_iter().cycle();
    operands
        .zip(0..count)
        .map(|(operands, seed)| case(&mut random, data_type, operands, seed))
        .collect()
}

/// A matrix in memory.
struct Placement {
    ld: u64,
    stride: u64,
    alignment: u32,
}

fn place(random: &mut Random, bytes: u32, (rows, cols): (u64, u64)) -> Placement {
    let width = bytes << random.below(u64::from((16 / bytes).ilog2()) + 1);
    let (step, whole) = (u64::from(width / bytes), u64::from(16 / bytes));
    // Rows, address or both are no more aligned than the width.
    let (odd_rows, odd_address) = match random.below(3) {
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    };
    let ld_step = if odd_rows { step } else { whole };
    let mut ld = cols.max(1).next_multiple_of(ld_step) + ld_step * random.below(3);
    if ld_step < whole && (ld / ld_step).is_multiple_of(2) {
        ld += ld_step;
    }
    Placement {
        ld,
        stride: rows * ld + step * random.below(4),
        alignment: if odd_address { width } else { 16 },
    }
}

/// A size: rarely 0, often small, at most `most`.
fn size(random: &mut Random, most: u64) -> u64 {
    match random.below(40) {
        0 => 0,
        1..9 => 1 + random.below(16),
        _ => 1 + random.below(most),
    }
}

/// One of the elements of a list.
fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn case(random: &mut Random, data_type: DataType, operands: Operands, seed: u64) -> Case {
    let count = match random.below(4) {
        0 => 2 + random.below(3),
        _ => 1,
    };
    let most = if count > 1 { 50 } else { 120 };
    // A batch has blocks enough: its sums are not split.
    let split = match random.below(2) {
        0 if count == 1 => 2 + random.below(3) as u32,
        _ => 1,
    };
    let (m, n) = (size(random, most), size(random, most));
    let k = size(random, if split > 1 { 250 } else { most });
    let mut problem = Gemm::packed(m, n, k, operands);
    problem.output = match random.below(2) {
        0 => None,
        _ => Some(one_of(random, data_type.results())),
    };
    let transposed = |rows, cols, trans| {
        if trans == Trans::N {
            (rows, cols)
        } else {
            (cols, rows)
        }
    };
    let mut a = place(random, data_type.bytes(), transposed(m, k, operands.a));
    let mut b = place(random, data_type.bytes(), transposed(k, n, operands.b));
    let c = place(random, problem.result(data_type).bytes(), (m, n));
    // All products may share an A or a B.
    match random.below(6) {
        0 => a.stride = 0,
        1 => b.stride = 0,
        _ => {}
    }
    (problem.lda, problem.ldb, problem.ldc) = (a.ld, b.ld, c.ld);
    problem.alignment = Alignment {
        a: a.alignment,
        b: b.alignment,
        c: c.alignment,
    };
    problem.batch = if count == 1 {
        Batch::ONE
    } else {
        Batch {
            count,
            strides: [a.stride, b.stride, c.stride],
        }
    };
    problem.epilogue = epilogue(random, data_type);
    (problem.alpha, problem.beta) = if data_type == DataType::S8 {
        (random.below(5) as f64 - 2.0, random.below(5) as f64 - 2.0)
    } else {
        (random.scalar(), random.scalar())
    };
    Case {
        problem,
        schedule: Schedule {
            split,
            // A batch is not packed.
            pack: random.below(3) == 0 && problem.batch.count == 1,
        },
        seed,
    }
}

/// The activations of a type: no more than max(x, 0) where sums are not floats of 32 bits or fewer.
pub(crate) fn activations(data_type: DataType) -> &'static [Activation] {
    match data_type {
        DataType::S8 | DataType::F64 => &[Activation::Identity, Activation::Relu],
        _ => &[Activation::Identity, Activation::Relu, Activation::Gelu],
    }
}

fn epilogue(random: &mut Random, data_type: DataType) -> Epilogue {
    Epilogue {
        bias: one_of(random, &[Bias::None, Bias::None, Bias::Row, Bias::Column]),
        activation: match random.below(2) {
            0 => Activation::Identity,
            _ => one_of(random, activations(data_type)),
        },
    }
}
