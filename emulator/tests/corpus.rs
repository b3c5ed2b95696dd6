//! Kernels in CUDA C, written for this, with the PTX that a compiler made of them, against results that were computed otherwise.
//!
//! `corpus/NAME.cu` has the source and says in its first lines how it is launched; `corpus/NAME.*.ptx` are the compiler's outputs for several
//! architectures, with and without `-G`. Every kernel has the signature `run(out, in, n)`: it reads `in`, words of [`input`], and fills `out`, `n`
//! words. `corpus/expected.txt` has those words and what was printed; `corpus/README.md` says where they come from.
//!
//! Each output must run without a finding and give the same words; those of approximate functions agree within the tolerance that
//! the source states, since the ISA leaves their last bits open.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

/// The words of the input buffer.
fn input(count: u32) -> Vec<u32> {
    (0..count)
        .map(|i| {
            let mut x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9);
            x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
            x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
            x ^ x >> 16
        })
        .collect()
}

/// How results are compared.
#[derive(Debug, Clone, Copy)]
enum Compare {
    Exact,
    /// Relative error of single or double precision; absolute below 1.
    F32(f64),
    F64(f64),
}

/// The first lines of a source.
#[derive(Debug)]
struct Case {
    grid: u32,
    block: u32,
    shared: u32,
    input: u32,
    out: u32,
    /// Bytes of a fourth parameter, a structure.
    parameter: Vec<u8>,
    compare: Compare,
}

fn case(source: &str) -> Case {
    let field = |key: &str| {
        let line = source
            .lines()
            .find_map(|l| l.strip_prefix(&format!("// {key}: ")));
        line.unwrap_or_default()
    };
    let launch: Vec<&str> = field("launch").split(' ').collect();
    let number = |key: &str| {
        let at = launch
            .iter()
            .position(|w| *w == key)
            .expect("a number of the launch");
        launch[at + 1].parse().expect("a number")
    };
    let hex = field("parameter");
    Case {
        grid: number("grid"),
        block: number("block"),
        shared: number("shared"),
        input: number("in"),
        out: number("out"),
        parameter: (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal"))
            .collect(),
        compare: match field("compare").split_once(' ') {
            None => Compare::Exact,
            Some(("f32", tolerance)) => Compare::F32(tolerance.parse().expect("a tolerance")),
            Some((_, tolerance)) => Compare::F64(tolerance.parse().expect("a tolerance")),
        },
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Words and output of each kernel by name.
fn expected() -> BTreeMap<String, (Vec<u32>, String)> {
    let text = fs::read_to_string(folder().join("expected.txt")).expect("the expected results");
    let mut all: BTreeMap<String, (Vec<u32>, String)> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(n) = line.strip_prefix("# ") {
            n.clone_into(&mut name);
            all.insert(name.clone(), Default::default());
        } else if let Some(printed) = line.strip_prefix("> ") {
            let entry = all.entry(name.clone()).or_default();
            entry.1.push_str(printed);
            entry.1.push('\n');
        } else {
            let entry = all.entry(name.clone()).or_default();
            let words = line
                .split(' ')
                .map(|w| u32::from_str_radix(w, 16).expect("a word"));
            entry.0.extend(words);
        }
    }
    all
}

/// What is wrong with the results, if anything.
fn differs(compare: Compare, found: &[u32], expected: &[u32]) -> Option<String> {
    let close = |x: f64, y: f64, tolerance: f64| {
        x.to_bits() == y.to_bits()
            || (x.is_nan() && y.is_nan())
            || (x - y).abs() <= tolerance * y.abs().max(1.0)
    };
    let double = |w: &[u32]| f64::from_bits(u64::from(w[1]) << 32 | u64::from(w[0]));
    match compare {
        Compare::Exact => {
            let at = found.iter().zip(expected).position(|(a, b)| a != b)?;
            Some(format!(
                "word {at} is {:08x}, not {:08x}",
                found[at], expected[at]
            ))
        }
        Compare::F32(tolerance) => {
            let float = |w: u32| f64::from(f32::from_bits(w));
            let at = found
                .iter()
                .zip(expected)
                .position(|(a, b)| !close(float(*a), float(*b), tolerance))?;
            Some(format!(
                "word {at} is {}, not {}",
                float(found[at]),
                float(expected[at])
            ))
        }
        Compare::F64(tolerance) => {
            let at = found
                .chunks_exact(2)
                .zip(expected.chunks_exact(2))
                .position(|(a, b)| !close(double(a), double(b), tolerance))?;
            let (a, b) = (double(&found[2 * at..]), double(&expected[2 * at..]));
            Some(format!("double {at} is {a}, not {b}"))
        }
    }
}

/// Runs one output of the compiler; returns its words and what it printed.
fn outcome(case: &Case, ptx: &str) -> Result<(Vec<u32>, String), String> {
    let module = Module::parse_strict(ptx).map_err(|e| e.to_string())?;
    let mut memory = GlobalMemory::new();
    let input: Vec<u8> = input(case.input)
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let from = memory
        .alloc(input.len() as u64, 256)
        .map_err(|e| e.to_string())?;
    memory.write(from, &input).map_err(|e| e.to_string())?;
    let bytes = 4 * case.out as usize;
    let to = memory.alloc(bytes as u64, 256).map_err(|e| e.to_string())?;
    memory
        .write(to, &vec![0; bytes])
        .map_err(|e| e.to_string())?;
    let mut args = vec![Arg::Ptr(to), Arg::Ptr(from), Arg::U32(case.out)];
    if !case.parameter.is_empty() {
        args.push(Arg::Bytes(case.parameter.clone()));
    }
    let launch = Launch {
        grid: [case.grid, 1, 1],
        block: [case.block, 1, 1],
        dynamic_shared: case.shared,
        args,
        ..Launch::default()
    };
    let options = Options {
        undefined_global: true,
        step_limit: 1 << 24,
        ..Options::default()
    };
    let report = run(&module, "run", &launch, &mut memory, &options).map_err(|e| e.to_string())?;
    if let Some(finding) = report.findings.first() {
        return Err(finding.to_string());
    }
    let data = memory.read(to, bytes).map_err(|e| e.to_string())?;
    let words = data
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Ok((words.collect(), report.printed))
}

#[test]
fn compiled_kernels_run_clean_and_right() {
    let expected = expected();
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    let mut kernels: BTreeMap<String, u32> = BTreeMap::new();
    for path in &files {
        let file = path.file_name().map(|n| n.to_string_lossy().into_owned());
        let file = file.expect("a name");
        let name = file.split('.').next().expect("a name").to_owned();
        *kernels.entry(name.clone()).or_default() += 1;
        let source = fs::read_to_string(folder().join(format!("{name}.cu"))).expect("a source");
        let ptx = fs::read_to_string(path).expect("PTX");
        let case = case(&source);
        match outcome(&case, &ptx) {
            Err(what) => wrong.push(format!("{file}: {what}")),
            Ok((words, printed)) => match expected.get(&name) {
                None => wrong.push(format!("{file}: no expected results")),
                Some((right, text)) => {
                    if let Some(what) = differs(case.compare, &words, right) {
                        wrong.push(format!("{file}: {what}"));
                    }
                    if words.len() != right.len() {
                        wrong.push(format!("{file}: {} words expected", right.len()));
                    }
                    if printed != *text {
                        wrong.push(format!("{file}: printed {printed:?}, not {text:?}"));
                    }
                }
            },
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        files.len(),
        wrong.join("\n")
    );
    assert!(kernels.len() >= 60, "{} kernels", kernels.len());
    for name in expected.keys() {
        assert!(kernels.contains_key(name), "{name} has results and no PTX");
    }
}
