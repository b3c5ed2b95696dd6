//! Epilogues as functions of the user's: run on the emulator with every check of the sanitizer on, against sums in double precision.
//!
//! Each epilogue runs for ragged sizes, every way a kernel ends: vectors and single elements, tiles moved back, packed operands, partial sums
//! added by a second kernel, and batches.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Cmp, Element};
use tilewright::codegen::value::Predicate;
use tilewright::host::{Arg, GemmKernel, Inputs, Matrix, On, Role, run};
use tilewright::kernels::gemm::epilogue::{Function, Input};
use tilewright::kernels::gemm::{
    ArgumentValue, Batch, Bias, Config, DataType, Epilogue, Gemm, Operands, PlanError, Schedule,
    Specialized, Trans,
};

/// Sizes and schedules: one element, a tile, and more than tiles in every direction, with rows aligned to 16 bytes and to single elements.
const CASES: [([u64; 3], Schedule); 8] = [
    ([1, 1, 1], WHOLE),
    ([64, 64, 64], WHOLE),
    ([37, 53, 29], WHOLE),
    ([130, 136, 72], WHOLE),
    ([65, 200, 40], WHOLE),
    ([70, 67, 33], WHOLE),
    (
        [100, 136, 300],
        Schedule {
            split: 3,
            pack: false,
        },
    ),
    (
        [65, 71, 203],
        Schedule {
            split: 2,
            pack: true,
        },
    ),
];

const WHOLE: Schedule = Schedule {
    split: 1,
    pack: false,
};

/// A plan with an epilogue.
fn fused(name: &str, finish: Function) -> Specialized {
    let config: Config = name.parse().expect("a configuration");
    config.with_epilogue(finish).expect("an epilogue that fits")
}

/// The sums of a problem, row by row.
fn sums(problem: &Gemm, inputs: &Inputs) -> Vec<f64> {
    let (m, n, k) = (problem.m as usize, problem.n as usize, problem.k as usize);
    let a = |i: usize, p: usize| match problem.operands.a {
        Trans::N => inputs.a.at(i, p),
        Trans::T => inputs.a.at(p, i),
    };
    let b = |p: usize, j: usize| match problem.operands.b {
        Trans::N => inputs.b.at(p, j),
        Trans::T => inputs.b.at(j, p),
    };
    let mut all = Vec::new();
    for i in 0..m {
        for j in 0..n {
            all.push((0..k).map(|p| a(i, p) * b(p, j)).sum());
        }
    }
    all
}

/// C of one run, which was clean, wrote nothing between the rows, and counted the wavefronts that were proven.
fn result(
    plan: &Specialized,
    problem: &Gemm,
    schedule: Schedule,
    inputs: &Inputs,
    given: Vec<(&'static str, Arg<'_>)>,
) -> Matrix {
    let kernel = GemmKernel::new(plan, problem, schedule, Arch(80)).expect("a kernel");
    let mut args = kernel.args(inputs).expect("they fit");
    args.extend(given);
    let outcome = run(&kernel, On::Emulator, args).expect("a run");
    outcome.assert_clean();
    outcome.assert_counted_as_proven();
    let c = kernel.result(inputs, &outcome).expect("C");
    assert!(c.gaps_untouched(&inputs.c), "the gaps of C are written");
    c
}

/// Numbers in [−1, 1), the same in every run.
fn vector(len: u64, seed: u64) -> Vec<f32> {
    let matrix = Matrix::random(Element::F32, 1, len, len, seed);
    matrix.packed().into_iter().map(|v| v as f32).collect()
}

/// What every check is for: each case of [`CASES`] that the family has, all transposes in turn, on a plan.
fn cases(
    plan: &Specialized,
    output: Element,
    mut check: impl FnMut(&Gemm, Schedule, &Inputs, &[f64]),
) {
    for (i, ([m, n, k], schedule)) in CASES.into_iter().enumerate() {
        if plan.data_type == DataType::F32 && schedule != WHOLE {
            continue;
        }
        let operands = Operands::ALL[i % 4];
        let mut problem = Gemm::packed(m, n, k, operands);
        problem.output = Some(output);
        if i % 2 == 1 {
            problem.ldc += 8;
        }
        let inputs = Inputs::random(&problem, plan.data_type, i as u64);
        check(&problem, schedule, &inputs, &sums(&problem, &inputs));
    }
}

/// Rounds to nearest even and saturates, as conversions do.
fn quantised(value: f64) -> f64 {
    value.round_ties_even().clamp(-128.0, 127.0)
}

#[test]
fn rows_are_scaled_and_quantised() {
    for name in ["mma-f16-64x64x32", "sgemm-maxas-64"] {
        rows_are_scaled_and_quantised_by(name);
    }
}

fn rows_are_scaled_and_quantised_by(name: &str) {
    let plan = fused(
        name,
        Function::new("quantised", |k, c| {
            for (j, s) in c.values::<f32>(k)?.into_iter().enumerate() {
                let scale = c.vector(k, "scale", j)?;
                let scaled = s.mul(k, scale);
                c.set(k, j, scaled)?;
            }
            Ok(())
        })
        .by_row("scale", Element::F32)
        .output(Element::S8),
    );
    let (mut seen, mut saturated) = (0, 0);
    cases(&plan, Element::S8, |problem, schedule, inputs, sums| {
        // Some rows beyond what 8 bits hold.
        let scale: Vec<f32> = vector(problem.m, 7).iter().map(|s| 60.0 * s).collect();
        let given = vec![("scale", Arg::input(&scale))];
        let c = result(&plan, problem, schedule, inputs, given);
        for (i, sum) in sums.iter().enumerate() {
            let (row, col) = (i / problem.n as usize, i % problem.n as usize);
            let exact = sum * f64::from(scale[row]);
            let (got, least, most) = (
                c.at(row, col),
                quantised(exact - 0.01),
                quantised(exact + 0.01),
            );
            assert!(
                (least..=most).contains(&got),
                "{problem:?} {row} {col}: {got}, {exact}"
            );
            seen += 1;
            saturated += usize::from(exact.abs() > 130.0);
        }
    });
    assert!(
        saturated > 100 && saturated < seen / 2,
        "{saturated} of {seen}"
    );
}

#[test]
fn residuals_are_added() {
    // α and β of the problem, and a residual with rows of its own; read in vectors where the caller promises that they are aligned.
    for (name, aligned) in [
        ("mma-f16-64x64x64", 2),
        ("mma-f16-64x64x64", 16),
        ("sgemm-maxas-128", 2),
        ("sgemm-r700-64", 16),
    ] {
        let plan = fused(
            name,
            Function::new("residual", |k, c| {
                let (alpha, factor) = (c.scalar(k, "alpha")?, c.scalar(k, "factor")?);
                let residual = c.matrix::<f32>(k, "residual")?;
                for (j, (s, r)) in c.values(k)?.into_iter().zip(residual).enumerate() {
                    let s = s.mul(k, alpha);
                    let s = factor.fma(k, r, s);
                    c.set(k, j, s)?;
                }
                Ok(())
            })
            .input(Input::matrix("residual", Element::F16).aligned_to(aligned))
            .scalar("alpha")
            .scalar("factor")
            .output(Element::F16),
        );
        cases(&plan, Element::F16, |problem, schedule, inputs, sums| {
            let mut problem = *problem;
            problem.alpha = 0.75;
            let ld = if aligned == 2 {
                problem.n + 3
            } else {
                problem.n.next_multiple_of(8)
            };
            let residual = Matrix::random(Element::F16, problem.m, problem.n, ld, 11);
            let given = vec![
                (
                    "residual",
                    Arg::matrix(&residual, Role::Input).aligned_to(aligned.into()),
                ),
                ("ld_residual", Arg::from(ld as u32)),
                ("factor", Arg::from(-1.5f32)),
            ];
            let c = result(&plan, &problem, schedule, inputs, given);
            for (i, sum) in sums.iter().enumerate() {
                let (row, col) = (i / problem.n as usize, i % problem.n as usize);
                let exact = 0.75 * sum - 1.5 * residual.at(row, col);
                let near = (c.at(row, col) - exact).abs() <= 1e-3 * exact.abs() + 1e-3;
                assert!(near, "{problem:?} {row} {col}: {}, {exact}", c.at(row, col));
            }
        });
    }
}

/// silu(x + bias of the column) = (x + b)·σ(x + b), in f32.
fn silu() -> Function {
    Function::new("silu", |k, c| {
        for (j, s) in c.values::<f32>(k)?.into_iter().enumerate() {
            let bias = c.vector(k, "bias", j)?;
            let x = s.add(k, bias);
            let e = x.mul(k, -std::f32::consts::LOG2_E).exp2(k);
            let sigmoid = e.add(k, 1.0).reciprocal(k);
            let out = x.mul(k, sigmoid);
            c.set(k, j, out)?;
        }
        Ok(())
    })
    .by_column("bias", Element::F32)
}

#[test]
fn a_bias_and_silu_follow_each_column() {
    for (name, output) in [
        ("mma-tf32-64x64x16", Element::F32),
        ("mma-bf16-64x64x32", Element::Bf16),
        ("mma-f16-64x64x32+sm75", Element::F16),
        ("mma-f16acc16-64x64x32", Element::F32),
        ("sgemm-maxas-64", Element::F32),
        ("sgemm-maxas-128", Element::F32),
        ("sgemm-r700-64", Element::F32),
    ] {
        let plan = fused(name, silu());
        let rounding = match output {
            Element::F32 => 1e-2,
            _ => output.unit_roundoff() + 1e-2,
        };
        cases(&plan, output, |problem, schedule, inputs, sums| {
            let bias = vector(problem.n, 3);
            let given = vec![("bias", Arg::input(&bias))];
            let c = result(&plan, problem, schedule, inputs, given);
            for (i, sum) in sums.iter().enumerate() {
                let (row, col) = (i / problem.n as usize, i % problem.n as usize);
                let x = sum + f64::from(bias[col]);
                let exact = x / (1.0 + (-x).exp());
                let near = (c.at(row, col) - exact).abs() <= rounding * exact.abs() + 0.02;
                assert!(
                    near,
                    "{name} {problem:?} {row} {col}: {}, {exact}",
                    c.at(row, col)
                );
            }
        });
    }
}

#[test]
fn integers_are_dequantised() {
    let plan = fused(
        "mma-s8-64x64x64",
        Function::new("dequantised", |k, c| {
            for (j, s) in c.values::<f32>(k)?.into_iter().enumerate() {
                let (row, column) = (c.vector(k, "rows", j)?, c.vector(k, "columns", j)?);
                let scaled = s.mul(k, row).mul(k, column);
                c.set(k, j, scaled)?;
            }
            Ok(())
        })
        .by_row("rows", Element::F32)
        .by_column("columns", Element::F32)
        .computes_in(Element::F32)
        .output(Element::Bf16),
    );
    cases(&plan, Element::Bf16, |problem, schedule, inputs, sums| {
        let (rows, columns) = (vector(problem.m, 5), vector(problem.n, 6));
        let given = vec![
            ("rows", Arg::input(&rows)),
            ("columns", Arg::input(&columns)),
        ];
        let c = result(&plan, problem, schedule, inputs, given);
        for (i, sum) in sums.iter().enumerate() {
            let (row, col) = (i / problem.n as usize, i % problem.n as usize);
            let exact = sum * f64::from(rows[row]) * f64::from(columns[col]);
            let near = (c.at(row, col) - exact).abs() <= exact.abs() / 256.0 + 1e-6;
            assert!(near, "{problem:?} {row} {col}: {}, {exact}", c.at(row, col));
        }
    });
}

/// An epilogue knows where it is: what lies right of the diagonal is 0, and integers stay integers.
#[test]
fn coordinates_are_those_of_c() {
    let plan = fused(
        "mma-s8-64x64x64",
        Function::new("causal", |k, c| {
            let row = c.row();
            for (j, s) in c.values::<i32>(k)?.into_iter().enumerate() {
                let col = c.column(k, j);
                let right = Predicate::of(k, col, Cmp::Gt, row);
                let kept = right.select(k, 0.into(), s);
                c.set(k, j, kept)?;
            }
            Ok(())
        }),
    );
    cases(&plan, Element::S32, |problem, schedule, inputs, sums| {
        let c = result(&plan, problem, schedule, inputs, Vec::new());
        for (i, sum) in sums.iter().enumerate() {
            let (row, col) = (i / problem.n as usize, i % problem.n as usize);
            let exact = if col > row { 0.0 } else { *sum };
            assert_eq!(
                c.at(row, col) as i64,
                exact as i64,
                "{problem:?} {row} {col}"
            );
        }
    });
}

/// What C held before, in 8-bit integers: C ← C + A·B, saturated.
#[test]
fn the_previous_c_is_read() {
    let plan = fused(
        "mma-s8-64x64x64",
        Function::new("accumulated", |k, c| {
            c.previous::<i32>(k, None, |k, s, old| s.add(k, old))
        })
        .output(Element::S8),
    );
    let mut inside = 0;
    cases(&plan, Element::S8, |problem, schedule, inputs, _| {
        // Small factors, so that not all sums are beyond 8 bits.
        let mut inputs = inputs.clone();
        for byte in inputs.a.bytes.iter_mut().chain(&mut inputs.b.bytes) {
            *byte = (i8::from_le_bytes([*byte]) / 50).to_le_bytes()[0];
        }
        // The second kernel of split sums reads C as well.
        let c = result(&plan, problem, schedule, &inputs, Vec::new());
        for (i, sum) in sums(problem, &inputs).iter().enumerate() {
            let (row, col) = (i / problem.n as usize, i % problem.n as usize);
            let exact = quantised(sum + inputs.c.at(row, col));
            assert_eq!(
                c.at(row, col) as i64,
                exact as i64,
                "{problem:?} {row} {col}"
            );
            inside += usize::from(exact.abs() < 127.0);
        }
    });
    assert!(inside > 1000, "{inside}");
}

#[test]
fn a_batch_shares_vectors() {
    let plan = fused("mma-f16-64x64x32", silu());
    let mut problem = Gemm::packed(40, 72, 24, Operands::ALL[1]);
    problem.batch = Batch {
        count: 3,
        strides: [40 * 24, 72 * 24, 40 * 72],
    };
    let inputs = Inputs::random(&problem, DataType::F16, 8);
    let bias = vector(72, 1);
    let kernel = GemmKernel::new(&plan, &problem, WHOLE, Arch(80)).expect("a kernel");
    let mut args = kernel.args(&inputs).expect("they fit");
    args.push(("bias", Arg::input(&bias)));
    let outcome = run(&kernel, On::Emulator, args).expect("a run");
    outcome.assert_clean();
    let c = kernel.result(&inputs, &outcome).expect("C");
    for b in 0..3 {
        let one = Inputs {
            a: inputs.a.matrix(b),
            b: inputs.b.matrix(b),
            ..inputs.clone()
        };
        let c = c.matrix(b);
        for (i, sum) in sums(&problem, &one).iter().enumerate() {
            let x = sum + f64::from(bias[i % 72]);
            let exact = x / (1.0 + (-x).exp());
            assert!((c.at(i / 72, i % 72) - exact).abs() <= 2e-3 * exact.abs() + 2e-3);
        }
    }
}

/// What the epilogue reads is part of the launch contract: parameters in the order of the text, buffers with types and sizes.
#[test]
fn inputs_are_in_the_launch_contract() {
    let finish = Function::new("all", |k, c| {
        c.matrix::<f32>(k, "residual")?;
        c.vector::<f32>(k, "by_row", 0)?;
        c.scalar::<f32>(k, "limit")?;
        Ok(())
    })
    .scalar("limit")
    .by_row("by_row", Element::F16)
    .matrix("residual", Element::F32);
    let plan = fused("mma-f16-64x64x32", finish);
    let problem = Gemm::packed(48, 80, 32, Operands::ALL[0]);
    for split in [1, 2] {
        let schedule = Schedule { split, pack: false };
        let problem = Gemm {
            k: 128,
            lda: 128,
            ..problem
        };
        let plan = plan.specialize(&problem, schedule).expect("a plan");
        let kernel = plan.emit(problem.operands, Arch(80)).expect("a kernel");
        let launch = plan.launch(&problem).expect("valid").expect("work");
        for launch in launch.sequence() {
            let entry = format!(".entry {}(", launch.kernel);
            let (_, text) = kernel.ptx.split_once(&entry).expect("the entry");
            let (text, _) = text.split_once(')').expect("its parameters");
            let printed: Vec<_> = text
                .split(',')
                .map(|p| p.split_whitespace().last().expect("a name").to_owned())
                .collect();
            let named: Vec<_> = launch.arguments.iter().map(|a| a.name.clone()).collect();
            assert_eq!(printed, named);
        }
        let ends = launch.sequence().last().expect("a launch");
        let given: Vec<_> = ends
            .arguments
            .iter()
            .filter(|a| a.value == ArgumentValue::Given)
            .map(|a| a.name.as_str())
            .collect();
        assert_eq!(given, ["by_row", "residual", "ld_residual", "limit"]);
        let sizes: Vec<_> = launch.inputs.iter().map(|i| (i.rows, i.columns)).collect();
        assert_eq!(sizes, [(48, 1), (48, 80)]);
    }
    // Too short, too narrow, missing.
    let kernel = GemmKernel::new(&plan, &problem, WHOLE, Arch(80)).expect("a kernel");
    let inputs = Inputs::random(&problem, DataType::F16, 1);
    let residual = Matrix::random(Element::F32, 48, 80, 80, 1);
    let rows = Matrix::random(Element::F16, 1, 48, 48, 1);
    let refused = |ld: u32, rows: &Matrix| {
        let mut args = kernel.args(&inputs).expect("they fit");
        args.push(("residual", Arg::matrix(&residual, Role::Input)));
        args.push(("by_row", Arg::matrix(rows, Role::Input)));
        args.push(("limit", Arg::from(1.0f32)));
        args.push(("ld_residual", Arg::from(ld)));
        run(&kernel, On::Emulator, args)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(refused(80, &rows), Ok(()));
    for (ld, rows, what) in [
        (79, rows.clone(), "a row has 80 elements"),
        (81, rows.clone(), "residual"),
        (80, Matrix::random(Element::F16, 1, 47, 47, 1), "by_row"),
    ] {
        let error = refused(ld, &rows).expect_err("refused");
        assert!(error.contains(what), "{error}");
    }
}

/// Every refusal says what does not fit and what would.
#[test]
fn what_does_not_fit_is_refused() {
    let plan: Config = "mma-f16-64x64x32".parse().expect("a configuration");
    let same = |name: &str| Function::new(name, |_, _| Ok(()));
    for (finish, what) in [
        (same("two words"), "a name is a letter"),
        (same("f").scalar("9"), "a name is a letter"),
        (same("f").scalar("lda"), "the name is taken"),
        (
            same("f").scalar("x").by_row("x", Element::F32),
            "the name is taken",
        ),
        (
            same("f").by_row("alpha", Element::F32),
            "the problem's scalar",
        ),
        (
            same("f").by_row("x", Element::F64),
            "f32 is computed from f32, f16",
        ),
        (same("f").computes_in(Element::F64), "converted to f32 only"),
        (same("f").output(Element::E4m3), "it is stored in f32, f16"),
    ] {
        let error = plan.with_epilogue(finish).map(|_| ()).expect_err(what);
        assert_eq!(error.code(), "epilogue");
        assert!(error.to_string().contains(what), "{error}");
    }
    let undeclared = Function::new("f", |k, c| c.matrix::<f32>(k, "residual").map(|_| ()));
    let undeclared = undeclared.scalar("limit");
    let plan_of = |finish: Function| plan.with_epilogue(finish).expect("it fits");
    let emitted = plan_of(undeclared).emit(Operands::ALL[0], Arch(80));
    let error = emitted.map(|_| ()).expect_err("undeclared");
    assert!(
        error
            .to_string()
            .contains("among its inputs (limit): declare it"),
        "{error}"
    );

    // The function's instructions are proven with the rest of the kernel.
    let barrier = Function::new("f", |k, _| {
        k.barrier();
        Ok(())
    });
    let emitted = plan_of(barrier).emit(Operands::ALL[0], Arch(80));
    assert_eq!(emitted.map(|_| ()).map_err(|e| e.code()), Err("not_proven"));

    let problem = Gemm::packed(64, 64, 64, Operands::ALL[0]);
    let refused = |finish: Function, problem: Gemm| -> PlanError {
        let adapted = plan_of(finish).specialize(&problem, WHOLE);
        adapted.map(|_| ()).expect_err("refused")
    };
    let bias = Epilogue {
        bias: Bias::Row,
        ..Epilogue::default()
    };
    let batch = Batch {
        count: 2,
        strides: [4096; 3],
    };
    for (finish, problem, what) in [
        (
            same("f"),
            Gemm {
                alpha: 2.0,
                ..problem
            },
            "declare a scalar `alpha`",
        ),
        (
            same("f"),
            Gemm {
                beta: 1.0,
                ..problem
            },
            "declare a scalar `beta`",
        ),
        (
            same("f"),
            Gemm {
                epilogue: bias,
                ..problem
            },
            "compute it in the epilogue",
        ),
        (
            same("f").matrix("x", Element::F16),
            Gemm { batch, ..problem },
            "one by one",
        ),
        (
            same("f").output(Element::S8),
            Gemm {
                output: Some(Element::F32),
                ..problem
            },
            "have C in s8",
        ),
    ] {
        let error = refused(finish, problem);
        assert_eq!(error.code(), "unsupported");
        assert!(error.to_string().contains(what), "{error}");
    }
}
