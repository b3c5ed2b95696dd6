//! What runs and checks the plans, itself checked: matrices against their definition, the comparison with results that are right, wrong and
//! just right enough, and the emulator's runs with kernels written by hand.

mod common;

use std::collections::BTreeMap;

use common::Random;
use common::emulated::{product, strict};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Element, ParamKind};
use tilewright::emulator::{FindingKind, Options};
use tilewright::host::{
    GemmKernel, Inputs, Matrix, On, Outcome, RunOptions, check, check_rows, run_with, tolerance,
};
use tilewright::kernels::gemm::{
    Activation, Alignment, Argument, ArgumentValue, Batch, Bias, Config, DataType, Emitted,
    Epilogue, Gemm, Launch, Operands, Proof, Trans,
};

/// The bytes of a number in an element type.
fn encoded(element: Element, value: f64) -> Vec<u8> {
    Matrix::random(element, 1, 1, 1, 0).filled(value).bytes
}

/// Changes element (r, c) of matrix b.
fn set(matrix: &mut Matrix, [b, r, c]: [usize; 3], value: f64) {
    let size = matrix.element.bytes() as usize;
    let at = (b * matrix.stride + r * matrix.ld + c) * size;
    matrix.bytes[at..at + size].copy_from_slice(&encoded(matrix.element, value));
}

/// Elements lie where the definition says and are drawn from [−1, 1); all else is a gap, and a change in any gap is seen.
#[test]
fn matrices_are_their_definition() {
    let mut random = Random::new(1);
    for seed in 0..300 {
        let [rows, cols, count] = [random.below(5), random.below(5), 1 + random.below(3)];
        let ld = cols.max(1) + random.below(4);
        let stride = match random.below(3) {
            0 => 0,
            _ => rows * ld + random.below(5),
        };
        let m = Matrix::random_batch(Element::F32, (rows, cols, ld), (count, stride), seed);
        let len = m.bytes.len() / 4;
        let mut owned = vec![false; len];
        for b in 0..count {
            let one = m.matrix(b as usize);
            for (r, c) in (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))) {
                let at = (b * stride + r * ld + c) as usize;
                owned[at] = true;
                let value = one.at(r as usize, c as usize);
                assert!((-1.0..1.0).contains(&value));
                assert_eq!((value as f32).to_le_bytes(), m.bytes[4 * at..4 * at + 4]);
            }
        }
        assert_eq!(
            owned.last(),
            (len > 0).then_some(&true),
            "it ends with an element"
        );
        for (at, owned) in owned.into_iter().enumerate() {
            let mut changed = m.clone();
            changed.bytes[4 * at + 1] ^= 4;
            assert_eq!(changed.gaps_untouched(&m), owned, "{m:?}, element {at}");
            let value = f32::from_le_bytes(m.bytes[4 * at..4 * at + 4].try_into().expect("four"));
            assert_eq!(value.is_nan(), !owned);
        }
    }
}

/// Whole numbers have no NaN: their gaps hold one that is never drawn.
#[test]
fn gaps_of_whole_numbers_are_seen_too() {
    for element in [Element::S8, Element::S32] {
        let m = Matrix::random(element, 60, 50, 51, 3);
        let gap = encoded(element, f64::NAN);
        let size = element.bytes() as usize;
        let gaps = m.bytes.chunks(size).filter(|e| *e == gap).count();
        assert_eq!(gaps, 59, "{element}");
    }
}

/// C of a problem in double precision, from the definition and nothing else, rounded to its type.
fn solved(problem: &Gemm, inputs: &Inputs) -> Matrix {
    let mut c = inputs.c.clone();
    for b in 0..problem.batch.count as usize {
        let (a, x, old) = (inputs.a.matrix(b), inputs.b.matrix(b), inputs.c.matrix(b));
        for (i, j) in (0..old.rows).flat_map(|i| (0..old.cols).map(move |j| (i, j))) {
            let term = |l: usize| {
                let left = match problem.operands.a {
                    Trans::N => a.at(i, l),
                    Trans::T => a.at(l, i),
                };
                let right = match problem.operands.b {
                    Trans::N => x.at(l, j),
                    Trans::T => x.at(j, l),
                };
                left * right
            };
            let sum: f64 = (0..problem.k as usize).map(term).sum();
            let mut value = problem.alpha * sum;
            if problem.beta != 0.0 {
                value += problem.beta * old.at(i, j);
            }
            value += match (&inputs.bias, problem.epilogue.bias) {
                (Some(bias), Bias::Row) => bias.at(0, i),
                (Some(bias), Bias::Column) => bias.at(0, j),
                _ => 0.0,
            };
            let value = match problem.epilogue.activation {
                Activation::Identity => value,
                Activation::Relu => value.max(0.0),
                // x·(1 + tanh t)/2 is x·σ(2t).
                Activation::Gelu => {
                    let t =
                        (2.0 / std::f64::consts::PI).sqrt() * (value + 0.044_715 * value.powi(3));
                    value * f64::midpoint(1.0, t.tanh())
                }
            };
            set(&mut c, [b, i, j], value);
        }
    }
    c
}

/// A problem of each epilogue and type of C, the transposes in turn, in a batch.
fn problems(data_type: DataType) -> Vec<Gemm> {
    let mut all = Vec::new();
    let operands = Operands::ALL.iter().cycle();
    let whole = data_type == DataType::S8;
    for (&output, operands) in data_type.results().iter().cycle().zip(operands).take(12) {
        for bias in [Bias::None, Bias::Row, Bias::Column] {
            for activation in [Activation::Identity, Activation::Relu, Activation::Gelu] {
                let mut problem = Gemm::packed(7, 9, 11, *operands);
                problem.output = Some(output);
                problem.epilogue = Epilogue { bias, activation };
                (problem.alpha, problem.beta) = if whole { (2.0, -3.0) } else { (1.5, -0.5) };
                problem.ldc = 10;
                problem.batch = Batch {
                    count: 2,
                    strides: [0, 101, 75],
                };
                if !(whole && activation == Activation::Gelu) {
                    all.push(problem);
                }
            }
        }
    }
    all
}

#[test]
fn right_results_pass_and_wrong_ones_do_not() {
    for data_type in DataType::ALL {
        for (seed, problem) in (0..).zip(problems(data_type)) {
            let inputs = Inputs::random(&problem, data_type, seed);
            let right = solved(&problem, &inputs);
            let judge = |problem: &Gemm, inputs: &Inputs, c: &Matrix| {
                check(problem, data_type, inputs, c).expect("shapes agree")
            };
            let good = judge(&problem, &inputs, &right);
            assert!(good.passed && good.gaps_untouched, "{problem:?}: {good:?}");
            assert_eq!(
                check_rows(&problem, data_type, &inputs, &right, 3).map(|c| c.passed),
                Ok(true)
            );

            // One element off, in either product.
            for b in 0..2 {
                let mut wrong = right.clone();
                let value = right.matrix(b).at(4, 5);
                set(&mut wrong, [b, 4, 5], value + 20.0);
                let bad = judge(&problem, &inputs, &wrong);
                assert!(
                    !bad.passed && bad.gaps_untouched && bad.max_abs_err > 10.0,
                    "{bad:?}"
                );
            }
            if !data_type.result().is_integer() {
                for value in [f64::NAN, f64::INFINITY] {
                    let mut wrong = right.clone();
                    set(&mut wrong, [1, 6, 8], value);
                    assert!(!judge(&problem, &inputs, &wrong).passed, "{value}");
                    let rows = check_rows(&problem, data_type, &inputs, &wrong, 2);
                    assert_eq!(rows.map(|c| c.passed), Ok(false), "the last row is checked");
                }
            }
            // A gap, between rows and between matrices.
            for at in [9, 70] {
                let mut wrong = right.clone();
                let size = wrong.element.bytes() as usize;
                wrong.bytes[at * size] ^= 1;
                let bad = judge(&problem, &inputs, &wrong);
                assert!(!bad.passed && !bad.gaps_untouched, "{bad:?}");
                let bad = check_rows(&problem, data_type, &inputs, &wrong, 3);
                assert_eq!(bad.map(|c| c.passed), Ok(false));
            }
            // Another epilogue, or another order of what is done.
            let mut forgotten = problem;
            forgotten.epilogue.bias = match problem.epilogue.bias {
                Bias::None => continue,
                Bias::Row | Bias::Column => Bias::None,
            };
            let without = solved(&forgotten, &inputs);
            assert!(!judge(&problem, &inputs, &without).passed, "{problem:?}");
        }
    }
}

#[test]
fn a_forgotten_activation_or_sign_is_found() {
    for data_type in [
        DataType::F16,
        DataType::F16Acc16,
        DataType::F64,
        DataType::S8,
    ] {
        for (seed, problem) in (0..).zip(problems(data_type)) {
            let inputs = Inputs::random(&problem, data_type, seed);
            let mut other = problem;
            other.epilogue.activation = match problem.epilogue.activation {
                Activation::Identity => Activation::Relu,
                Activation::Relu | Activation::Gelu => Activation::Identity,
            };
            let wrong = solved(&other, &inputs);
            let judged = check(&problem, data_type, &inputs, &wrong).expect("shapes agree");
            assert!(!judged.passed, "{problem:?}: {judged:?}");
            let mut other = problem;
            other.alpha = -problem.alpha;
            let wrong = solved(&other, &inputs);
            let judged = check(&problem, data_type, &inputs, &wrong).expect("shapes agree");
            assert!(!judged.passed, "{problem:?}: {judged:?}");
        }
    }
}

/// As in BLAS: with β = 0 what is in C does not matter, with α = 0 what is in A and B.
#[test]
fn what_is_not_read_does_not_matter_to_the_check() {
    for (alpha, beta) in [(0.0, -1.0), (1.0, 0.0), (0.0, 0.0)] {
        let mut problem = Gemm::packed(5, 6, 7, Operands::ALL[1]);
        (problem.alpha, problem.beta) = (alpha, beta);
        let mut inputs = Inputs::random(&problem, DataType::F32, 1);
        let right = solved(&problem, &inputs);
        if alpha == 0.0 {
            inputs.a = inputs.a.filled(f64::NAN);
            inputs.b = inputs.b.filled(f64::INFINITY);
        }
        if beta == 0.0 {
            inputs.c = inputs.c.filled(f64::NAN);
        }
        let judged = check(&problem, DataType::F32, &inputs, &right).expect("shapes agree");
        assert!(judged.passed, "{alpha}, {beta}: {judged:?}");
    }
}

/// Cut off to 11 bits of mantissa: the worst that sums in f16 can do at a step, for normal numbers.
fn cut_to_f16(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !((1 << 42) - 1))
}

/// Sums that are cut off to f16 at every fourth product, as tensor cores may, and sums in f32 that are cut off likewise, are within the
/// tolerance and not by much: a factor of 1000 is too coarse to find anything with.
#[test]
fn sums_that_are_cut_off_are_within_the_tolerance() {
    let cut_to_f32 = |x: f64| f64::from_bits(x.to_bits() & !((1 << 29) - 1));
    let cases: [(DataType, &dyn Fn(f64) -> f64); 2] = [
        (DataType::F16Acc16, &cut_to_f16),
        (DataType::Bf16, &cut_to_f32),
    ];
    for (data_type, cut) in cases {
        for k in [1_u64, 4, 17, 64, 256, 1024] {
            let mut problem = Gemm::packed(1, 1, k, Operands::ALL[0]);
            problem.output = Some(Element::F32);
            let bound = tolerance(&problem, data_type);
            let mut worst = 0.0_f64;
            for seed in 0..50 {
                // Positive terms: what is cut off adds up.
                let draw = |seed| -> Vec<f64> {
                    let drawn = Matrix::random(data_type.operand(), 1, k, k, seed).packed();
                    drawn.into_iter().map(f64::abs).collect()
                };
                let (a, b) = (draw(seed), draw(!seed));
                let terms: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
                let exact: f64 = terms.iter().sum();
                let sum = terms
                    .chunks(4)
                    .fold(0.0, |sum, four| cut(sum + four.iter().sum::<f64>()));
                worst = worst.max((exact - sum) / exact);
            }
            assert!(
                worst <= bound
                    && bound <= 1000.0 * worst.max(data_type.accumulator().unit_roundoff()),
                "{data_type}, {k}: {worst} and {bound}"
            );
        }
    }
}

/// GELU in f32 with every approximation as wrong as the PTX ISA lets it be, against the double-precision function: within 8 units of
/// roundoff of |x|, which is what the tolerance says of it.
#[test]
fn gelu_evaluated_in_single_precision_is_within_its_share() {
    let share = |activation| {
        let mut problem = Gemm::packed(1, 1, 0, Operands::ALL[0]);
        (problem.output, problem.epilogue.activation) = (Some(Element::F32), activation);
        tolerance(&problem, DataType::F16)
    };
    let own = share(Activation::Gelu) - 1.13 * share(Activation::Identity);
    // One roundoff of the result stays in it either way.
    let own = own + 0.13 * Element::F32.unit_roundoff();
    assert!(
        (own / Element::F32.unit_roundoff() - 8.0).abs() < 0.1,
        "{own}"
    );

    let moved = |x: f32, ulps: i32| {
        if x.is_normal() {
            f32::from_bits((x.to_bits() as i32 + ulps) as u32)
        } else {
            x
        }
    };
    let (c0, c1) = (-2.302_208_2_f32, 0.044_715_f32); // −log₂e·2√(2/π)
    let mut worst = 0.0_f64;
    for i in -120_000..=120_000 {
        let x = i as f32 / 10_000.0;
        if x == 0.0 {
            continue;
        }
        let exact = Activation::Gelu.apply(f64::from(x));
        let v = (c0 * x) * (c1 * (x * x)).mul_add(1.0, 1.0);
        for (up, down) in [(2, 1), (2, -1), (-2, 1), (-2, -1), (0, 0)] {
            let e = moved(v.exp2(), up);
            let sigma = moved(1.0 / (1.0 + e), down);
            let error = (f64::from(x * sigma) - exact).abs() / f64::from(x.abs());
            worst = worst.max(error);
        }
    }
    let worst = worst / Element::F32.unit_roundoff();
    assert!((2.0..8.0).contains(&worst), "{worst} units of roundoff");
}

/// Kernels written by hand, for how they are run.
const COPY: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u32 count)
{
    .reg .u64 %a<6>;
    .reg .u32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %a0, [from];
    ld.param.u64 %a1, [to];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r0;
    @%p bra done;
    mul.wide.u32 %a2, %r1, 4;
    add.u64 %a3, %a0, %a2;
    add.u64 %a4, %a1, %a2;
    ld.global.u32 %r2, [%a3];
    st.global.u32 [%a4], %r2;
done:
    ret;
}
.visible .entry again(.param .u64 from, .param .u64 to, .param .u32 count)
{
    .reg .u64 %a<6>;
    .reg .u32 %r<4>;
    ld.param.u64 %a0, [from];
    ld.param.u64 %a1, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %a2, %r1, 4;
    add.u64 %a3, %a0, %a2;
    add.u64 %a4, %a1, %a2;
    ld.global.u32 %r2, [%a3];
    st.global.u32 [%a4], %r2;
    ret;
}
";

/// A copy of 32 words.
fn copy(kernel: &str, from: ArgumentValue, to: ArgumentValue) -> Launch {
    let argument = |name: &str, kind, value| Argument {
        name: name.to_owned(),
        kind,
        value,
    };
    Launch {
        kernel: kernel.to_owned(),
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        shared_bytes: 0,
        arguments: vec![
            argument("from", ParamKind::Pointer, from),
            argument("to", ParamKind::Pointer, to),
            argument("count", ParamKind::U32, ArgumentValue::Int(32)),
        ],
        before: Vec::new(),
        after: Vec::new(),
        workspace_bytes: 0,
        inputs: Vec::new(),
    }
}

/// Runs launches on a problem whose matrices have 32 words each.
fn by_hand(launch: Launch, alignment: u32) -> (Inputs, Outcome) {
    let mut problem = Gemm::packed(4, 8, 8, Operands::ALL[0]);
    (problem.m, problem.epilogue.bias) = (4, Bias::Column);
    problem.alignment = Alignment {
        a: alignment,
        b: alignment,
        c: 16,
    };
    let inputs = Inputs::random(&problem, DataType::F32, 4);
    let emitted = Emitted {
        ptx: COPY.to_owned(),
        kernel: launch.kernel.clone(),
        proof: Proof::default(),
        mix: None,
        address_registers: BTreeMap::new(),
    };
    let kernel = GemmKernel::by_hand(emitted, launch, (&problem, DataType::F32));
    let options = RunOptions {
        emulator: Options {
            undefined_global: true,
            ..Options::default()
        },
        ..RunOptions::default()
    };
    let args = kernel.args(&inputs).expect("they fit");
    let run = run_with(&kernel, On::Emulator, args, &options).expect("it runs");
    (inputs, run)
}

/// A goes to C by way of the workspace, through three launches of two kernels.
#[test]
fn launches_run_in_order_and_share_a_workspace() {
    use ArgumentValue::{A, C, Workspace};
    let mut launch = copy("again", Workspace(0), Workspace(256));
    launch.before = vec![copy("copy", A, Workspace(0))];
    launch.after = vec![copy("copy", Workspace(256), C)];
    launch.workspace_bytes = 256 + 128;
    let (inputs, run) = by_hand(launch, 16);
    let report = run.report.as_ref().expect("something was launched");
    assert!(report.is_clean(), "{}", report.findings[0]);
    assert_eq!(run.bytes("C").expect("C"), inputs.a.bytes);
    assert_eq!(report.blocks, 3);
    // The loads: one line of `copy`, executed by two launches, and one of `again`.
    let loads: Vec<u64> = report
        .counters
        .instructions
        .iter()
        .filter(|i| i.opcode.starts_with("ld.global"))
        .map(|i| i.warps)
        .collect();
    assert_eq!(loads, [2, 1]);
    let lanes: u64 = report.counters.instructions.iter().map(|i| i.lanes).sum();
    assert_eq!(report.counters.lane_instructions, lanes);
}

/// The kinds of findings of a run.
fn kinds(run: &Outcome) -> Vec<FindingKind> {
    let report = run.report.as_ref().expect("something was launched");
    assert_eq!(report.total_findings as usize, report.findings.len());
    report.findings.iter().map(|f| f.kind).collect()
}

#[test]
fn what_a_launch_does_wrong_is_found_in_any_of_them() {
    use ArgumentValue::{A, Bias, C, Workspace};
    // Nobody wrote the second half of the workspace.
    let mut launch = copy("copy", Workspace(256), C);
    launch.before = vec![copy("again", A, Workspace(0))];
    launch.workspace_bytes = 512;
    assert_eq!(
        kinds(&by_hand(launch.clone(), 16).1),
        [FindingKind::UndefinedGlobal]
    );
    // The workspace is too small.
    launch.workspace_bytes = 100;
    let found = kinds(&by_hand(launch, 16).1);
    assert!(found.contains(&FindingKind::OutOfBounds), "{found:?}");
    // The bias has 8 elements, and 32 are read.
    let mut launch = copy("copy", A, C);
    launch.after = vec![copy("again", Bias, C)];
    assert_eq!(kinds(&by_hand(launch, 16).1), [FindingKind::OutOfBounds]);
}

/// Matrices are no more aligned than the problem promises.
#[test]
fn addresses_are_as_odd_as_promised() {
    use ArgumentValue::{A, C};
    for (alignment, found) in [(16, &[][..]), (4, &[]), (2, &[FindingKind::Misaligned])] {
        let launch = copy("copy", A, C);
        assert_eq!(kinds(&by_hand(launch, alignment).1), found, "{alignment}");
    }
}

/// Matrices that are not the problem's are refused by name before anything runs or is compared.
#[test]
fn matrices_of_another_problem_are_refused_by_name() {
    let nn = Operands::ALL[0];
    let problem = Gemm::packed(64, 64, 64, nn);
    let plan = "mma-f16-64x64x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("it is listed");
    let kernel = plan.emit(nn, Arch(80)).expect("it proves");
    let run = |inputs: &Inputs| product((&plan, &kernel), (&problem, inputs), strict());
    let right = Inputs::random(&problem, DataType::F16, 1);
    let c = run(&right).expect("they are the problem's").c;

    let singles = Inputs::random(&problem, DataType::F32, 1);
    let error = run(&singles).err().expect("A is of f32").to_string();
    assert_eq!(
        error,
        "A is 64x64 of f32 with rows 64 apart, and the problem takes 64x64 of f16 with rows 64 apart"
    );
    let small = Inputs::random(&Gemm::packed(8, 8, 8, nn), DataType::F16, 1);
    assert!(run(&small).is_err() && check(&problem, DataType::F16, &small, &c).is_err());
    let mut short = right.clone();
    short.b.bytes.pop();
    let error = run(&short).err().expect("a byte is missing").to_string();
    assert_eq!(error, "B is 8191 bytes, and the problem takes 8192 bytes");

    // With α = 0 nobody looks at A and B.
    let scaled_only = Gemm {
        alpha: 0.0,
        beta: 1.0,
        ..problem
    };
    let mut empty = right.clone();
    empty.a.bytes.clear();
    empty.b.bytes.clear();
    for checked in [
        check(&scaled_only, DataType::F16, &empty, &right.c),
        check_rows(&scaled_only, DataType::F16, &empty, &right.c, 5),
    ] {
        assert!(checked.expect("C is right").passed);
    }

    // One product is no batch of three, however good it is.
    let mut batch = problem;
    batch.batch.count = 3;
    assert!(check(&batch, DataType::F16, &right, &c).is_err());
    assert!(check_rows(&batch, DataType::F16, &right, &c, 8).is_err());
    let mut biased = problem;
    biased.epilogue.bias = Bias::Row;
    let error = check(&biased, DataType::F16, &right, &c).expect_err("there is no bias");
    assert!(
        error.to_string().starts_with("the bias is not there"),
        "{error}"
    );
}

/// C after a product of 64×64×64 that is scaled by α.
fn scaled(name: &str, alpha: f64) -> (Gemm, DataType, Inputs, Matrix) {
    let plan = name
        .parse::<Config>()
        .map(Config::kernel)
        .expect("it is listed");
    let nn = Operands::ALL[0];
    let problem = Gemm {
        alpha,
        ..Gemm::packed(64, 64, 64, nn)
    };
    let kernel = plan.emit(nn, Arch(80)).expect("it proves");
    let inputs = Inputs::random(&problem, plan.data_type, 3);
    let run = product((&plan, &kernel), (&problem, &inputs), strict());
    let c = run.expect("it runs").c;
    (problem, plan.data_type, inputs, c)
}

/// What C has no room for is infinite, and only that.
#[test]
fn overflow_is_right_where_the_type_ends() {
    let (problem, data_type, inputs, c) = scaled("mma-f16-64x64x32", 1e5);
    let infinite = |c: &Matrix| {
        (0..64)
            .flat_map(|i| (0..64).map(move |j| (i, j)))
            .filter(|&(i, j)| c.at(i, j).is_infinite())
            .count()
    };
    assert!(infinite(&c) > 1000, "{} of 4096", infinite(&c));
    assert!(
        check(&problem, data_type, &inputs, &c)
            .expect("shapes agree")
            .passed
    );
    // The same with one sign wrong, and with one number that has room.
    let first = |found: fn(f64) -> bool| {
        (0..64 * 64)
            .find(|&i| found(c.at(i / 64, i % 64)))
            .expect("there is one")
    };
    for (at, bits) in [
        (first(|v| v == f64::INFINITY), 0xfc00_u16),
        (first(|v| v.is_finite() && v > 0.0), 0x7c00),
    ] {
        let mut wrong = c.clone();
        wrong.bytes[2 * at..2 * at + 2].copy_from_slice(&bits.to_le_bytes());
        assert!(
            !check(&problem, data_type, &inputs, &wrong)
                .expect("shapes agree")
                .passed
        );
    }
}

/// Integers wrap.
#[test]
fn integers_are_exact_modulo_two_to_the_32() {
    let (problem, data_type, inputs, c) = scaled("mma-s8-64x64x64", 1_000_003.0);
    let exact = problem.alpha
        * (0..64)
            .map(|k| inputs.a.at(0, k) * inputs.b.at(k, 0))
            .sum::<f64>();
    assert!(exact.abs() > f64::from(i32::MAX), "{exact}");
    assert!(
        check(&problem, data_type, &inputs, &c)
            .expect("shapes agree")
            .passed
    );
    let mut wrong = c.clone();
    wrong.bytes[0] ^= 1;
    assert!(
        !check(&problem, data_type, &inputs, &wrong)
            .expect("shapes agree")
            .passed
    );
}
