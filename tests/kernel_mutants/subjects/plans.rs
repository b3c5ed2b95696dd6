//! The subjects of the GEMM plans: a family, a type and a schedule each, and the problems that their mutants are tried on.
//!
//! Two problems catch most mutants: ragged ones, the second with a sum that fills the ring of stages. What survives both is tried on the others:
//!
//! - sizes in every eighth or sixteenth of a tile's rows, columns and sums, with 1 to 6 tiles of the sum, so that a distance to an edge is 0 somewhere, and a ring
//!   ends at any stage;
//! - more tiles, more groups of tiles, sums in which the ring comes round several times, no products at all, a C that is not read (of NaN, which an empty product
//!   does not hide), rows of C at odd addresses;
//! - sums half way between two numbers of 16 bits ([`Values`]), where the last bit in f32 decides.

use std::cell::OnceCell;
use std::sync::Arc;

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{GemmKernel, Inputs, Matrix};
use tilewright::kernels::gemm::{
    Alignment, Config, DataType, Emitted, Gemm, Order, Schedule, Scheduler, Specialized,
    TileSchedule,
};

use super::{Runs, Subject, outcome, seen};

/// A plan, its operands, how it is scheduled, bytes of alignment of A and B, and the first two problems.
pub(super) struct Family {
    pub(super) plan: &'static str,
    pub(super) operands: &'static str,
    pub(super) schedule: Schedule,
    pub(super) width: u32,
    pub(super) problems: [[u64; 3]; 2],
}

/// What the matrices hold.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Random,
    /// A·B + β·C is less than half of an f32's last place below what is half way between two numbers of C's type, of which the upper is even.
    TieOfSum,
    /// A·B is 0, and β·C half way between two numbers, of which the lower is even.
    TieOfC,
}

/// One problem: sizes, α and β, how far apart the rows of C are beyond their length, and the values.
#[derive(Clone, Copy)]
struct Case {
    size: [u64; 3],
    factors: [f64; 2],
    gap: u64,
    values: Values,
}

impl Case {
    fn of(size: [u64; 3]) -> Self {
        Self {
            size,
            factors: [1.25, -0.75],
            gap: 0,
            values: Values::Random,
        }
    }
}

/// The problems beside the first two.
fn others(plan: &Specialized, [[m, n, _], [_, _, long]]: [[u64; 3]; 2]) -> Vec<Case> {
    let [tm, tn, tk] = plan.tile();
    let [tm, tn, tk] = [tm, tn, tk].map(u64::from);
    let mut all = Vec::new();
    // Tiles of blocks that take tile after tile are large, and their copies are those of the others.
    let step = if plan.scheduler.is_persistent() { 5 } else { 1 };
    // Copies that threads issue each have edges of their own; a bulk copy is one.
    let every = if plan.name().starts_with("wgmma") {
        4
    } else {
        2
    };
    for i in (0..24).step_by(step) {
        let even = i < 16;
        // In part `p` of 16 of a tile, or of 8, after `tiles` whole ones.
        let within = |tile: u64, tiles: u64, p: u64| {
            let parts = if even && tile >= 128 { 16 } else { 8 };
            let size = tiles * tile + p % parts * (tile / parts) + 1 + 5 * i % (tile / parts);
            if even {
                size.next_multiple_of(8)
            } else {
                size | 1
            }
        };
        // A ring ends at any of its stages.
        let turns = if i % every == 0 {
            i / every % 6 * tk
        } else {
            0
        };
        let size = [
            within(tm, u64::from(i == 11), i),
            within(tn, u64::from(i == 17), 3 * i + 1),
            turns + within(tk, 0, 7 * i + 2) - u64::from(even) * (i % 8),
        ];
        all.push(Case {
            gap: u64::from(i % 4 == 3),
            ..Case::of(size)
        });
    }
    if plan.name().starts_with("wgmma") && step == 1 {
        // Operands are transposed in tiles of 128, to rows of whole vectors.
        for i in 0..16 {
            let size = [
                8 * i + 1 + i % 8,
                (8 * (3 * i % 16) + 8) | 1,
                16 * (1 + i % 7),
            ];
            all.push(Case::of(size));
        }
    }
    all.extend([
        Case::of([m, n, 3 * long]),
        Case::of([2 * tm + tm / 2, 2 * tn + tn / 4, tk]),
        Case::of([9 * tm - 3, tn - 3, 8]),
        Case::of([m, n, 0]),
        Case {
            factors: [1.0, 0.0],
            ..Case::of([m, n, long])
        },
        Case {
            factors: [0.0, 1.5],
            ..Case::of([m, n, tk])
        },
    ]);
    let below = match plan.data_type {
        DataType::F16 | DataType::F16Acc16 => Some(1.0 - f64::powi(0.5, 14)),
        DataType::Bf16 => Some(1.0 - f64::powi(0.5, 18)),
        _ => None,
    };
    if let Some(beta) = below {
        let ties = [
            (Values::TieOfSum, [1.0, beta]),
            (Values::TieOfC, [1.0, 1.5]),
        ];
        for (i, (values, factors)) in [ties, ties].into_iter().flatten().enumerate() {
            let gap = i as u64 / 2;
            all.push(Case {
                factors,
                gap,
                values,
                ..Case::of([m, n, tk])
            });
        }
    }
    all
}

/// Whole tiles, for the plans that take no others.
fn whole(plan: &Specialized) -> Vec<Case> {
    let [m, n, k] = plan.tile();
    let [m, n, k] = [m, n, k].map(u64::from);
    let sizes = [[3, 2, 1], [1, 1, 5], [2, 3, 3], [1, 1, 8]];
    let mut all: Vec<_> = sizes
        .map(|[x, y, z]| Case::of([x * m, y * n, z * k]))
        .into();
    for factors in [[1.0, 0.0], [0.0, 1.5]] {
        all.push(Case {
            factors,
            ..Case::of([m, n, 2 * k])
        });
    }
    all
}

/// A matrix of these values, zeros elsewhere.
fn of_values(like: &Matrix, value: impl Fn(usize, usize) -> f64) -> Matrix {
    let mut out = like.clone();
    let size = like.element.bytes() as usize;
    for r in 0..like.rows {
        for c in 0..like.cols {
            let at = (r * like.ld + c) * size;
            let bits = match like.element {
                Element::F16 => half::f16::from_f64(value(r, c)).to_bits(),
                _ => half::bf16::from_f64(value(r, c)).to_bits(),
            };
            out.bytes[at..at + size].copy_from_slice(&bits.to_le_bytes());
        }
    }
    out
}

/// The operands of a case.
fn inputs(case: Case, problem: &Gemm, data_type: DataType) -> Inputs {
    let random = Inputs::random(problem, data_type, 9);
    // 2 and a number below which an odd last place is 2, and a number that times 1.5 is half way above an even one.
    let (x, tie) = match data_type {
        DataType::Bf16 => (256.0, 131.0 / 128.0),
        _ => (2048.0, 1027.0 / 1024.0),
    };
    let transposed_b = problem.stored_b().0 == problem.n && problem.stored_b().1 == problem.k;
    match case.values {
        Values::Random if case.factors[1] == 0.0 => Inputs {
            c: random.c.filled(f64::NAN),
            ..random
        },
        // A store that a gap of NaN would hide: the gap gets β·C.
        Values::Random => {
            let mut c = random.c.clone().filled(3.0);
            let size = c.element.bytes() as usize;
            for row in 0..c.rows {
                let row = row * c.ld * size..(row * c.ld + c.cols) * size;
                c.bytes[row.clone()].copy_from_slice(&random.c.bytes[row]);
            }
            Inputs { c, ..random }
        }
        Values::TieOfSum => Inputs {
            a: of_values(&random.a, |_, _| 1.0),
            b: of_values(&random.b, |r, c| match if transposed_b { c } else { r } {
                0 => x,
                1 => 2.0,
                _ => 0.0,
            }),
            c: of_values(&random.c, |_, _| 1.0),
            ..random
        },
        Values::TieOfC => Inputs {
            a: of_values(&random.a, |_, _| 0.0),
            c: of_values(&random.c, |_, _| tie),
            ..random
        },
    }
}

impl Family {
    fn problem(&self, case: Case, data_type: DataType) -> Gemm {
        let operands = self.operands.parse().expect("operands");
        let [m, n, k] = case.size;
        let packed = Gemm::packed(m, n, k, operands);
        let whole = u64::from(self.width / data_type.bytes()).max(1);
        let ld = |ld: u64| ld.next_multiple_of(whole) + u64::from(self.width < 16) * whole;
        // Integers have no fractions.
        let [alpha, beta] = match data_type {
            DataType::S8 => case.factors.map(f64::round),
            _ => case.factors,
        };
        Gemm {
            lda: ld(packed.lda),
            ldb: ld(packed.ldb),
            ldc: match case.gap {
                0 => packed.ldc.next_multiple_of(16) + 16,
                gap => (packed.ldc + gap) | 1,
            },
            alpha,
            beta,
            alignment: Alignment {
                a: self.width,
                b: self.width,
                c: 16,
            },
            ..packed
        }
    }

    pub(super) fn subject(self) -> Subject {
        let listed = self
            .plan
            .parse::<Config>()
            .map(Config::kernel)
            .expect("there is such a plan");
        self.of_plan(&listed)
    }

    /// Blocks of a persistent plan are as many as multiprocessors; here one takes all tiles.
    pub(super) fn of_one_block(self) -> Subject {
        let config: Config = self.plan.parse().expect("there is such a plan");
        let tiles = if config.scheduler == Scheduler::Persistent(Order::Linear) {
            TileSchedule::Linear {
                blocks: 1,
                tiles: [2, 2],
            }
        } else {
            TileSchedule::Rectangle([1, 1])
        };
        let plan = config.kernel().with_tiles(tiles).expect("one block");
        self.of_adapted(plan.clone(), &plan)
    }

    fn of_plan(self, listed: &Specialized) -> Subject {
        let first = self.problem(Case::of(self.problems[0]), listed.data_type);
        let plan = listed
            .specialize(&first, self.schedule)
            .unwrap_or_else(|e| panic!("{}: {e}", self.plan));
        self.of_adapted(plan, listed)
    }

    fn of_adapted(self, plan: Specialized, listed: &Specialized) -> Subject {
        let data_type = listed.data_type;
        let operands = self.operands.parse().expect("operands");
        let arch: Arch = plan.min_arch();
        let kernel = plan.emit(operands, arch).expect("the plan proves");
        let others = if listed.name().contains("r700") {
            whole(listed)
        } else {
            others(listed, self.problems)
        };
        let plan = Arc::new(plan);
        let runs = |case: Case| -> Option<Runs> {
            let problem = self.problem(case, data_type);
            let kernel: Emitted = kernel.clone();
            // Sizes that the kernel does not take are refused here.
            GemmKernel::emitted(&plan, &kernel, &problem).ok()?;
            let plan = plan.clone();
            let made = OnceCell::new();
            Some(Box::new(move |text, how| {
                let kernel = GemmKernel::emitted(&plan, &kernel, &problem);
                let kernel = kernel.map_err(|e| e.to_string())?;
                let inputs = made.get_or_init(|| inputs(case, &problem, data_type));
                let args = kernel.args(inputs).map_err(|e| e.to_string())?;
                seen(outcome(&kernel, text, args, how)?, &["C"])
            }))
        };
        let problems = self
            .problems
            .map(|size| runs(Case::of(size)).expect("it serves"));
        Subject {
            name: self.name(),
            text: kernel.ptx.clone(),
            problems: problems.into(),
            others: others
                .into_iter()
                .filter_map(|case| runs(case).or_else(|| runs(Case { gap: 0, ..case })))
                .collect(),
        }
    }

    fn name(&self) -> String {
        let how = match self.schedule {
            Schedule { pack: true, .. } => "-pack",
            Schedule { split: 2.., .. } => "-split",
            _ if self.width == 2 => "-unaligned",
            _ => "",
        };
        format!("{}-{}{how}", self.plan, self.operands)
    }
}
