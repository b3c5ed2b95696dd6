//! What holds of the proofs of all kernels that come with the crate: none rests on an assumption, and none takes absurdly much.

use std::fs;
use std::path::Path;

use layout_codegen::prove::prove;
use tilewright_kernels::gemm::{Config, Gemm, Operands, Schedule};

/// Cases that the solver may look into for a kernel; the most that one takes is about half of it.
const CASES: usize = 4_000;

/// Patterns that the numbers of a kernel's threads may have; the same holds of them.
const PATTERNS: usize = 600;

#[test]
fn proofs_take_little_and_assume_nothing() {
    let mut most = [(0, String::new()), (0, String::new())];
    for (number, plan) in Config::table().enumerate() {
        // The listed plan with one choice of transposes, and what adapts it to rows of any length, and to split sums.
        let operands = Operands::ALL[number % 4];
        let odd = Gemm::packed(1023, 1021, 1 << 20, operands);
        let schedule = |split| Schedule { split, pack: false };
        let adapted = [schedule(1), schedule(2)].map(|s| plan.specialize(&odd, s).ok());
        for plan in adapted.into_iter().flatten().chain([plan.kernel()]) {
            let entries = plan.entries(operands, plan.min_arch()).expect("entries");
            for entry in entries {
                let proof = prove(&entry).unwrap_or_else(|e| panic!("{}: {e}", entry.name()));
                assert!(proof.assumptions.is_empty(), "{}", entry.name());
                let counts = [proof.effort.cases, proof.effort.patterns];
                for (most, count) in most.iter_mut().zip(counts) {
                    if count > most.0 {
                        *most = (count, entry.name().to_owned());
                    }
                }
            }
        }
    }
    println!("most cases, most patterns: {most:?}");
    assert!(most[0].0 <= CASES, "cases: {:?}", most[0]);
    assert!(most[1].0 <= PATTERNS, "patterns: {:?}", most[1]);
}

/// The kernels of the examples, and what the families are made of, state nothing either.
#[test]
fn no_shipped_source_states_an_assumption() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![root.join("../examples"), root.join("src")];
    open.push(root.join("../codegen/src/pipeline"));
    let mut read = 0;
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).unwrap_or_else(|e| panic!("{}: {e}", at.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).expect("it is text");
                assert!(!text.contains(".assume("), "{}", path.display());
                read += 1;
            }
        }
    }
    assert!(read > 30, "{read} files");
}
