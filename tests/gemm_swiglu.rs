//! SwiGLU of `examples/gemm_swiglu.rs`: clean, near the exact values and counted as proven over ragged sizes; infinities and NaN; its command line.

#[path = "../examples/gemm_swiglu.rs"]
#[allow(dead_code)]
mod example;

use clap::Parser as _;
use half::{bf16, f16};
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{Arg, BufferElement, GemmKernel, On, run};
use tilewright::kernels::gemm::epilogue::Function;
use tilewright::kernels::gemm::{Batch, Config, DataType, Gemm, Operands, Schedule};

/// What the command gives for these flags.
fn command(flags: &str) -> Result<Value, (String, String)> {
    let words = std::iter::once("gemm_swiglu").chain(flags.split_whitespace());
    let command = example::Command::try_parse_from(words);
    let command = command.map_err(|e| ("usage".to_owned(), e.to_string()))?;
    command.run().map_err(|e| (e.code, e.message))
}

/// Near: within what `allowed` of the example says, which is stated there.
#[test]
fn ragged_sizes_are_near_clean_and_counted_as_proven() {
    for (seed, (sizes, tile)) in [
        ([1, 1, 1], "64x64x32"),
        ([7, 5, 0], "64x64x32"),
        ([31, 37, 41], "64x64x32"),
        ([64, 32, 32], "64x64x32"),
        ([67, 71, 200], "64x64x32"),
        ([130, 66, 100], "64x64x32"),
        ([70, 132, 36], "64x64x32"),
        ([65, 80, 136], "64x128x64"),
        ([128, 128, 64], "128x256x64"),
        ([137, 264, 456], "128x256x64"),
    ]
    .into_iter()
    .enumerate()
    {
        for (trans, dtype) in [("nt", "bf16"), ("nn", "f16"), ("tn", "bf16"), ("tt", "f16")] {
            let [m, n, k] = sizes;
            // Rows that the large tiles copy begin at multiples of 16 bytes.
            let m = if trans.starts_with('t') && tile != "64x64x32" {
                m / 8 * 8
            } else {
                m
            };
            let flags = format!(
                "--dtype {dtype} --m {m} --n {n} --k {k} --trans {trans} --tile {tile} --on emulator --seed {seed}"
            );
            let report = command(&flags).expect(&flags);
            assert_eq!(report["passed"], true, "{flags}: {report}");
            assert_eq!(report["findings"], 0, "{flags}: {report}");
            let smem = report["smem"].as_array().expect("a list");
            assert_eq!(smem.len(), 8, "{report}");
            for access in smem {
                let counted =
                    [&access["wavefronts"], &access["ideal"]].map(|w| w == &access["measured"]);
                assert_eq!(counted, [true; 2], "{flags}: {access}");
            }
        }
    }
}

/// The gate is each of `numbers`, and the other product the same times 1, -1 and 0.
fn specials<T: BufferElement + Into<f64>>(data_type: DataType, numbers: &[f64], of: fn(f64) -> T) {
    let (m, n, k) = (numbers.len(), 3, 8);
    let signs = [1.0, -1.0, 0.0];
    // The first of the k products is the sum.
    let operand = |first: &[f64]| -> Vec<T> {
        let rows = first
            .iter()
            .map(|&x| (0..k).map(move |p| if p == 0 { x } else { 0.0 }));
        rows.flatten().map(of).collect()
    };
    let (a, gate, up) = (operand(numbers), operand(&[1.0; 3]), operand(&signs));
    let name = format!("mma-{data_type}-64x64x32");
    let config = name.parse().expect("a configuration");
    let plan = example::swiglu(config).expect("a plan");
    let problem = Gemm::packed(m as u64, n as u64, k as u64, Operands::ALL[1]);
    let kernel = GemmKernel::new(&plan, &problem, Schedule::default(), Arch(80)).expect("a kernel");
    let args = [
        ("A", Arg::input(&a)),
        ("B", Arg::input(&gate)),
        ("B2", Arg::input(&up)),
        ("C", Arg::output::<T>(m * n)),
    ];
    let outcome = run(&kernel, On::Emulator, args).expect("a run");
    outcome.assert_clean();
    let c: Vec<T> = outcome.get("C").expect("C");
    for (i, &x) in numbers.iter().enumerate() {
        let x = of(x).into();
        for (j, sign) in signs.into_iter().enumerate() {
            let y = x * sign;
            let (got, exact): (f64, f64) = (c[i * n + j].into(), example::exact(x, y));
            let rounded: f64 = of(exact).into();
            let near = if rounded.is_finite() {
                let output = problem.result(data_type);
                (got - exact).abs() <= example::allowed(1e-6, [x.abs(), y.abs()], exact, output)
            } else {
                got.to_bits() == rounded.to_bits() || (got.is_nan() && rounded.is_nan())
            };
            assert!(near, "{data_type}: silu({x})·{y} is {got}, and not {exact}");
        }
    }
}

/// What PyTorch's `silu(x) * y` makes of infinities, NaN and numbers beyond the range of exp.
#[test]
fn infinities_and_nan_are_those_of_pytorch() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let numbers = [inf, -inf, nan, 200.0, -200.0, 3e4, -3e4, 0.0, -0.0, 0.5];
    specials(DataType::F16, &numbers, f16::from_f64);
    specials(DataType::Bf16, &numbers, bf16::from_f64);
}

#[test]
fn the_launch_contract_is_complete() {
    let report = command("--m 4096 --n 14336 --k 4096 --on none").expect("a report");
    let launch = &report["launch"];
    assert_eq!(launch["kernel"], "mma_bf16_128x256x64_nt_dual_swiglu");
    assert_eq!(launch["grid"], json!([8, 112, 4]));
    assert_eq!(launch["block"], json!([256, 1, 1]));
    assert_eq!(launch["shared_bytes"], 3 * (128 + 256) * 64 * 2);
    let named = |p: &Value| p["name"].as_str().map(str::to_owned);
    let names: Vec<_> = launch["params"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(named)
        .collect();
    assert_eq!(
        names,
        ["A", "B", "B2", "C", "m", "n", "k", "lda", "ldb", "ldc"]
    );
    assert_eq!(
        (&report["passed"], &report["time_ms"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn nothing_to_do_passes() {
    for (m, n) in [(0, 7), (7, 0), (0, 0)] {
        let report = command(&format!("--m {m} --n {n} --k 9 --on emulator")).expect("a report");
        assert_eq!(
            (&report["passed"], &report["launch"]),
            (&json!(true), &Value::Null),
            "{report}"
        );
    }
}

#[test]
fn absurd_input_is_refused() {
    for (flags, code, part) in [
        ("--m -1", "usage", "-1 is negative"),
        ("--dtype f64", "usage", "possible values: f16, bf16"),
        ("--trans no", "usage", "nn, nt, tn or tt"),
        (
            "--tile 1x1",
            "unknown_tile",
            "128x256x64, 64x128x64, 64x64x32",
        ),
        (
            "--k 33 --tile 128x256x64 --on none",
            "unsupported",
            "take mma-bf16-64x64x64",
        ),
        ("--m 3000000000 --on none", "too_large", "m is 3000000000"),
        (
            "--m 4000000 --n 1000000 --on emulator",
            "too_large",
            "GiB of memory",
        ),
    ] {
        let (is, message) = command(flags).expect_err(flags);
        assert_eq!(is, code, "{flags}: {message}");
        assert!(message.contains(part), "{flags}: {message}");
    }
}

/// A dual plan names what it does not support, and a function that asks for a second product is refused where there is only one.
#[test]
fn what_a_dual_product_lacks_is_refused() {
    let plan: Config = "mma-f16-64x64x32".parse().expect("a configuration");
    let dual = example::swiglu(plan).expect("a plan");
    let problem = Gemm::packed(64, 64, 64, Operands::ALL[1]);
    let batch = Batch {
        count: 2,
        strides: [4096; 3],
    };
    for (problem, schedule) in [
        (
            problem,
            Schedule {
                split: 2,
                pack: false,
            },
        ),
        (
            problem,
            Schedule {
                split: 1,
                pack: true,
            },
        ),
        (Gemm { batch, ..problem }, Schedule::default()),
    ] {
        let error = dual
            .specialize(&problem, schedule)
            .map(|_| ())
            .expect_err("refused");
        assert_eq!(error.code(), "unsupported");
        assert!(error.to_string().contains("in a dual product"), "{error}");
    }
    let single = Function::new("f", |k, c| c.second::<f32>(k).map(|_| ()));
    let single = plan.with_epilogue(single).expect("a plan");
    let error = single
        .emit(Operands::ALL[0], Arch(80))
        .map(|_| ())
        .expect_err("refused");
    assert!(error.to_string().contains("with_dual_epilogue"), "{error}");
    let taken = Function::new("f", |_, _| Ok(())).by_row("B2", Element::F32);
    let error = plan
        .with_dual_epilogue(taken)
        .map(|_| ())
        .expect_err("refused");
    assert!(error.to_string().contains("the name is taken"), "{error}");
}

/// On the tensor cores of Hopper: two products of a warpgroup's rows, from stages that TMA fills.
#[test]
fn products_of_warpgroups_are_near_and_clean() {
    for flags in [
        "--dtype bf16 --m 130 --n 136 --k 200 --trans nt --tile 128x256x64",
        "--dtype f16 --m 72 --n 200 --k 328 --trans nn --tile 128x128x64",
        "--dtype bf16 --m 64 --n 64 --k 64 --trans tt",
    ] {
        let report = command(&format!("{flags} --arch sm_90 --on emulator")).expect(flags);
        assert_eq!(report["passed"], true, "{flags}: {report}");
        assert_eq!(report["findings"], 0, "{flags}: {report}");
        for access in report["smem"].as_array().expect("a list") {
            assert_eq!(
                access["wavefronts"], access["measured"],
                "{flags}: {access}"
            );
        }
    }
    let refused = command("--m 63 --n 63 --k 63 --arch sm_90 --on emulator").expect_err("odd rows");
    assert_eq!(refused.0, "unsupported");
}
