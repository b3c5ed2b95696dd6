//! Mutants of the tensor-core kernels: a small mistake in the text of a proven kernel must be caught, and the table says by what.
//!
//! As in `mutants`, which does the same for SGEMM, each mutant edits the PTX of a plan as a slip of its emitter would. The plans are the
//! smallest of their types; the problems are the smallest that reach the code, and each is first solved by the kernel as it is.

#[path = "../common/mod.rs"]
mod common;
mod edges;
mod kinds;
mod launches;
mod steady;

use common::mutant::{Mutant, Subject};
use tilewright::codegen::ir::Element;
use tilewright::host::Inputs;
use tilewright::kernels::gemm::{
    Activation, Alignment, Batch, Bias, Config, Epilogue, Gemm, Operands, Schedule,
};

/// A plan and a problem for it.
#[derive(Clone, Copy)]
struct Setting {
    plan: &'static str,
    trans: &'static str,
    /// m, n and k.
    size: [u64; 3],
    /// α and β.
    scalars: [f64; 2],
    /// Bytes that the rows of A and B are multiples of, and what their addresses are.
    width: u32,
    /// Elements between the rows of C.
    gap: u64,
    schedule: Schedule,
    output: Option<Element>,
    epilogue: Epilogue,
    /// Products of a batch.
    count: u64,
    /// The plan as it is listed, for aligned operands and any C.
    listed: bool,
}

/// Whole tiles but for the last, which moves back by 56 in both directions; sums of less than a turn of the loop.
const SHORT: Setting = Setting {
    plan: "mma-f16-64x64x32",
    trans: "nn",
    size: [72, 72, 40],
    scalars: [0.75, -1.0],
    width: 16,
    gap: 8,
    schedule: Schedule {
        split: 1,
        pack: false,
    },
    output: None,
    epilogue: Epilogue {
        bias: Bias::None,
        activation: Activation::Identity,
    },
    count: 1,
    listed: false,
};

/// Three turns of the loop without branches and, in a fourth, one element less than that loop would need.
const LONG: Setting = Setting {
    size: [72, 72, (4 * 4 + 3) * 32 - 1],
    ..SHORT
};

/// Less than a tile in every direction, so that nothing moves and all copies are at an edge.
const SMALL: Setting = Setting {
    size: [40, 44, 21],
    gap: 1,
    ..SHORT
};

const NARROW: Setting = Setting {
    size: [72, 69, (4 * 4 + 3) * 32 + 5],
    gap: 3,
    ..SHORT
};

impl Setting {
    fn problem(&self) -> Gemm {
        let [m, n, k] = self.size;
        let operands: Operands = self.trans.parse().expect("nn, nt, tn or tt");
        let plan = self
            .plan
            .parse::<Config>()
            .map(Config::kernel)
            .expect("there is such a plan");
        let data_type = plan.data_type;
        let packed = Gemm::packed(m, n, k, operands);
        let whole = u64::from(self.width / data_type.bytes()).max(1);
        // Rows that are no wider aligned than that.
        let ld = |ld: u64| ld.next_multiple_of(whole) + u64::from(self.width < 16) * whole;
        let mut problem = Gemm {
            lda: ld(packed.lda),
            ldb: ld(packed.ldb),
            ldc: packed.ldc + self.gap,
            alpha: self.scalars[0],
            beta: self.scalars[1],
            output: self.output,
            epilogue: self.epilogue,
            alignment: Alignment {
                a: self.width,
                b: self.width,
                c: 16,
            },
            ..packed
        };
        if self.count > 1 {
            let matrix = |(rows, _): (u64, u64), ld: u64| rows * ld + 16;
            problem.batch = Batch {
                count: self.count,
                strides: [
                    matrix(problem.stored_a(), problem.lda),
                    matrix(problem.stored_b(), problem.ldb),
                    matrix((m, n), problem.ldc),
                ],
            };
        }
        problem
    }

    /// The kernel itself passes, and every mutant of it is caught as expected.
    fn assert_caught(&self, mutants: &[Mutant]) {
        let problem = self.problem();
        let mut plan = self
            .plan
            .parse::<Config>()
            .map(Config::kernel)
            .expect("there is such a plan");
        let mut inputs = Inputs::random(&problem, plan.data_type, 9);

        if !self.listed {
            let adapted = plan.specialize(&problem, self.schedule);
            plan = adapted.unwrap_or_else(|e| panic!("{}: {e}", self.plan));
        }
        let kernel = plan.emit(problem.operands, plan.min_arch());
        // What is multiplied by 0 is not read.
        if problem.alpha == 0.0 {
            inputs.a = inputs.a.filled(f64::NAN);
            inputs.b = inputs.b.filled(f64::NAN);
        }
        if problem.beta == 0.0 {
            inputs.c = inputs.c.filled(f64::NAN);
        }
        let subject = Subject {
            plan: &plan,
            kernel: &kernel.expect("the plan proves"),
            problem: &problem,
            inputs: &inputs,
        };
        subject.assert_passes();
        let missed = mutants.iter().filter_map(|m| subject.missed(m));
        let missed: Vec<String> = missed.collect();
        assert!(missed.is_empty(), "{}", missed.join("\n"));
    }
}
