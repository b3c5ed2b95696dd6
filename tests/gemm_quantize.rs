//! The quantised product of `examples/gemm_quantize.rs`: clean, near the exact values and counted as proven over ragged sizes; infinities and NaN;
//! its command line.

#[path = "../examples/gemm_quantize.rs"]
#[allow(dead_code)]
mod example;

use clap::Parser as _;
use half::f16;
use serde_json::{Value, json};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{Arg, GemmKernel, On, run};
use tilewright::kernels::gemm::{Gemm, Operands, Schedule};

/// What the command gives for these flags.
fn command(flags: &str) -> Result<Value, (String, String)> {
    let words = std::iter::once("gemm_quantize").chain(flags.split_whitespace());
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
        ([64, 64, 32], "64x64x32"),
        ([67, 131, 200], "64x64x32"),
        ([130, 66, 100], "64x64x32"),
        ([65, 144, 136], "64x128x64"),
        ([128, 256, 64], "128x256x64"),
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
            assert_eq!(smem.len(), 6, "{report}");
            for access in smem {
                let counted =
                    [&access["wavefronts"], &access["ideal"]].map(|w| w == &access["measured"]);
                assert_eq!(counted, [true; 2], "{flags}: {access}");
            }
        }
    }
}

/// Ties go to even, what is too large is the nearest that there is, and NaN is 0: as a float of PyTorch that is rounded, clamped and converted to `int8`
/// on a GPU.
#[test]
fn ties_infinities_and_nan_are_those_of_pytorch() {
    let (inf, nan) = (f16::INFINITY, f16::NAN);
    let sums = [0.5, 1.5, 2.5, 3.5, 100.0, 127.4, 127.5, 128.0, 6e4, 0.0];
    let sums = sums.map(f16::from_f64).into_iter().chain([inf, nan]);
    let sums: Vec<f16> = sums.flat_map(|x| [x, -x]).collect();
    let (m, n, k) = (sums.len(), 2, 8);
    let mut a = vec![f16::ZERO; m * k];
    for (row, &sum) in a.chunks_mut(k).zip(&sums) {
        row[0] = sum;
    }
    let b: Vec<f16> = (0..n * k)
        .map(|i| if i % k == 0 { f16::ONE } else { f16::ZERO })
        .collect();
    let config = "mma-f16-128x256x64".parse().expect("a configuration");
    let plan = example::quantized(config).expect("a plan");
    let mut problem = Gemm::packed(m as u64, n as u64, k as u64, Operands::ALL[1]);
    problem.output = Some(Element::S8);
    let kernel = GemmKernel::new(&plan, &problem, Schedule::default(), Arch(80)).expect("a kernel");
    for scale in [1.0f32, -1.0, 0.0, f32::INFINITY] {
        let scales = vec![scale; m];
        let args = [
            ("A", Arg::input(&a)),
            ("B", Arg::input(&b)),
            ("C", Arg::output::<i8>(m * n)),
            ("scale", Arg::input(&scales)),
        ];
        let outcome = run(&kernel, On::Emulator, args).expect("a run");
        outcome.assert_clean();
        let c: Vec<i8> = outcome.get("C").expect("C");
        for (row, sum) in c.chunks(n).zip(&sums) {
            let scaled = f64::from(sum.to_f32() * scale);
            let wanted = scaled.round_ties_even().clamp(-128.0, 127.0) as i8; // NaN as 0
            assert_eq!(row, [wanted; 2], "{sum}·{scale}");
        }
    }
}

#[test]
fn the_launch_contract_is_complete() {
    let report = command("--m 4096 --n 4096 --k 4096 --dtype f16 --on none").expect("a report");
    let launch = &report["launch"];
    assert_eq!(launch["kernel"], "mma_f16_128x256x64_nt_c8_s8_quantized");
    assert_eq!(launch["grid"], json!([8, 16, 4]));
    let named = |p: &Value| p["name"].as_str().map(str::to_owned);
    let names: Vec<_> = launch["params"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(named)
        .collect();
    assert_eq!(
        names,
        ["A", "B", "C", "scale", "m", "n", "k", "lda", "ldb", "ldc"]
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
        ("--n -1", "usage", "-1 is negative"),
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
            "mma-bf16-64x64x64",
        ),
        ("--n 3000000000 --on none", "too_large", "n is 3000000000"),
        (
            "--m 4000000 --n 4000000 --on emulator",
            "too_large",
            "GiB of memory",
        ),
    ] {
        let (is, message) = command(flags).expect_err(flags);
        assert_eq!(is, code, "{flags}: {message}");
        assert!(message.contains(part), "{flags}: {message}");
    }
}
