//! The matrix products of `examples/hopper_gemm.rs`: proven, clean, right and counted as proven over ragged sizes, in as many lines as are promised.

#[path = "../examples/hopper_gemm.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod example;

use example::common::{Number as _, extent};
use example::{Schedule, errors, pitch};
use half::bf16;
use tilewright::host::{Arg, On, run};

const ALL: [Schedule; 4] = [
    Schedule::Plain,
    Schedule::Persistent,
    Schedule::PingPong,
    Schedule::Cluster,
];

#[test]
fn ragged_sizes_are_right_clean_and_counted_as_proven() {
    for schedule in ALL {
        for whole in [true, false] {
            let kernel = schedule.kernel(whole).expect("proven");
            assert_eq!(kernel.proof.covered, ["c"]);
            for (m, n, k) in [(300, 520, 200), (1, 8, 1), (257, 264, 0), (130, 257, 71)] {
                if whole && n % 8 != 0 {
                    continue;
                }
                let [a, b] = [(m, 1), (n, 2)]
                    .map(|(rows, seed)| bf16::random(rows * pitch(k as u64) as usize, seed));
                let sizes = [
                    ("m", m as u64),
                    ("n", n as u64),
                    ("k", k as u64),
                    ("lda", pitch(k as u64)),
                    ("ldb", pitch(k as u64)),
                ];
                let scalars = sizes.map(|(name, size)| extent(name, size));
                let mut args = vec![
                    ("a", Arg::input(&a)),
                    ("b", Arg::input(&b)),
                    ("c", Arg::output::<bf16>(m * n)),
                ];
                args.extend(
                    scalars
                        .into_iter()
                        .map(|(name, scalar)| (name, Arg::Scalar(scalar))),
                );
                let outcome = run(&kernel, On::Emulator, args).expect("runs");
                outcome.assert_clean();
                outcome.assert_counted_as_proven();
                let (error, within) = errors([m, n, k], &a, &b, &outcome).expect("c");
                assert!(within, "{schedule:?} {m} x {n} x {k}: {error}");
            }
        }
    }
}

/// Lines of a function without comments and blank lines.
fn lines_of(name: &str) -> usize {
    let text = include_str!("../examples/hopper_gemm.rs");
    let start = format!("pub(crate) fn {name}(");
    let lines = text.lines().skip_while(|line| !line.starts_with(&start));
    let lines = lines.take_while(|line| *line != "}");
    lines
        .filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"))
        .count()
        + 1
}

#[test]
fn kernels_are_short() {
    let plain = lines_of("plain");
    assert!((20..=120).contains(&plain), "{plain}");
    for name in ["persistent", "ping_pong", "cluster"] {
        let lines = lines_of(name);
        assert!(
            (10..=plain + 30).contains(&lines),
            "{name}: {lines} lines, the plain one {plain}"
        );
    }
}
