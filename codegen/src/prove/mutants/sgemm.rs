//! Mutants of the SGEMM plans.

use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

use super::{Subject, judged};
use crate::Arch;
use crate::gemm::{Config, Operands, Trans};

/// Numbers between −1 and 1.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut x = seed;
    (0..n)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 16) as f32 / 32768.0 - 1.0
        })
        .collect()
}

fn bytes(all: &[f32]) -> Vec<u8> {
    all.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A problem: m, n, k, what leading dimensions have beyond their rows, α and β.
type Problem = (usize, usize, usize, usize, f32, f32);

const PROBLEMS: [Problem; 5] = [
    (64, 64, 32, 0, 1.0, 0.0),
    (130, 67, 21, 3, 1.5, -0.5),
    (65, 132, 8, 4, 1.0, 1.0),
    (1, 70, 9, 1, 2.0, 0.0),
    (70, 66, 24, 2, 0.0, 0.5),
];

/// Runs the text on every problem: clean, right, and nothing but C written.
fn judge(text: &str, name: &str, operands: Operands, tile: usize) -> Option<String> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(e) => return Some(e.to_string()),
    };
    for (m, n, k, more, alpha, beta) in PROBLEMS {
        let what = format!("{m}x{n}x{k}");
        let stored = |t: Trans, r: usize, c: usize| if t == Trans::N { (r, c) } else { (c, r) };
        let ((ar, ac), (br, bc)) = (stored(operands.a, m, k), stored(operands.b, k, n));
        let (lda, ldb, ldc) = (ac + more, bc + more, n + more);
        let (a, b, c) = (
            numbers((ar - 1) * lda + ac, 1),
            numbers((br - 1) * ldb + bc, 2),
            numbers((m - 1) * ldc + n, 3),
        );
        let mut memory = GlobalMemory::new();
        let mut place = |all: &[f32]| {
            let at = memory.alloc(4 * all.len() as u64, 256).expect("memory");
            memory.write(at, &bytes(all)).expect("allocated");
            at
        };
        let at = [place(&a), place(&b), place(&c)];
        let sizes = [m, n, k, lda, ldb, ldc];
        let mut args: Vec<Arg> = at.iter().map(|&p| Arg::Ptr(p)).collect();
        args.extend(sizes.iter().map(|&v| Arg::U32(v as u32)));
        args.extend([Arg::F32(alpha), Arg::F32(beta)]);
        let launch = Launch {
            grid: [n.div_ceil(tile) as u32, m.div_ceil(tile) as u32, 1],
            block: [(tile * tile / 64) as u32, 1, 1],
            cluster: [1, 1, 1],
            dynamic_shared: 0,
            args,
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 16,
            global_races: true,
            ..Options::default()
        };
        let report = match run(&module, name, &launch, &mut memory, &options) {
            Ok(report) => report,
            Err(e) => return Some(e.to_string()),
        };
        if let Some(finding) = report.findings.first() {
            return Some(format!("{what}: {finding:?}"));
        }
        let out = memory.read(at[2], 4 * c.len()).expect("allocated");
        let out: Vec<f32> = out
            .chunks(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        for r in 0..m {
            for col in 0..ldc.min(c.len() - r * ldc) {
                let old = f64::from(c[r * ldc + col]);
                let of = |all: &[f32], t: Trans, ld: usize, i: usize, j: usize| {
                    f64::from(
                        all[if t == Trans::N {
                            i * ld + j
                        } else {
                            j * ld + i
                        }],
                    )
                };
                let sum = |col: usize| -> f64 {
                    (0..k)
                        .map(|i| of(&a, operands.a, lda, r, i) * of(&b, operands.b, ldb, i, col))
                        .sum()
                };
                let wanted = if col < n {
                    f64::from(alpha) * sum(col) + f64::from(beta) * old
                } else {
                    old
                };
                let got = f64::from(out[r * ldc + col]);
                if (got - wanted).abs() > 1e-4 {
                    return Some(format!("{what}: C({r}, {col}) is {got} and not {wanted}"));
                }
            }
        }
    }
    None
}

#[test]
fn mutants_of_sgemm() {
    let mut all = 0;
    for (plan, operands) in [
        ("sgemm-maxas-64", Operands::ALL[0]),
        ("sgemm-maxas-64", Operands::ALL[1]),
        ("sgemm-maxas-64", Operands::ALL[2]),
        ("sgemm-maxas-128", Operands::ALL[3]),
    ] {
        let plan = plan.parse::<Config>().expect("a plan").kernel();
        let entries = plan.entries(operands, Arch(80));
        let entry = entries.expect("it is built").remove(0);
        let (name, tile) = (entry.name.clone(), plan.tile()[0] as usize);
        let subject = Subject {
            name: format!("{plan}, {operands}"),
            entry,
            others: Vec::new(),
            judge: Box::new(move |text| judge(text, &name, operands, tile)),
        };
        let (made, refuted) = judged(&subject, 9);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= 800, "{all} mutants");
}
