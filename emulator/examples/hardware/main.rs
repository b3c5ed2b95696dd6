//! Writes programs with inputs and the emulator's results to a folder, to be compared bit by bit with a GPU.
//!
//! ```text
//! cargo run --release -p ptx-emulator --example hardware -- FOLDER
//! python3 FOLDER/compare.py
//! ```
//!
//! The folder holds PTX, inputs, expected results, a list of all launches (`manifest.json`) and `compare.py`, which needs a driver and nothing else: no
//! toolkit, no Rust, no package. There are five kinds of launches: `mma.sync` of every type, `wgmma` of every type, both also with a sparse A, tensor copies
//! of boxes, approximate functions, and straight-line programs of scalar instructions. Matrices come in families: numbers of about one magnitude, of a wide range, zeros and subnormal numbers, infinities and NaN.

// PTX is put together piece by piece.
#![allow(clippy::format_push_string, clippy::format_collect)]

mod boxes;
mod functions;
mod matrices;
mod numbers;
mod scalar;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, TensorMap, run};

/// A launch of a kernel `(in, out)`, or with a tensor map of the input `(in, out, map)`.
pub(crate) struct Case {
    pub(crate) name: String,
    /// File of the PTX.
    pub(crate) module: String,
    pub(crate) kernel: String,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) input: Vec<u8>,
    pub(crate) out_bytes: usize,
    /// What each row of 32-bit words of the output is, a word for each thread of a block; empty for a uniform output.
    pub(crate) rows: Vec<String>,
    /// Type of the elements of the output.
    pub(crate) element: &'static str,
    /// Names of the parts of the grid, in order, each as long as the others.
    pub(crate) families: &'static [&'static str],
    /// The kernel's tensor map, for an input at address 0.
    pub(crate) map: Option<TensorMap>,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder = std::env::args().nth(1).ok_or("usage: hardware FOLDER")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let mut entries = Vec::new();
    let mut save = |file: &str, text: &str, cases: Vec<Case>| -> Result<(), Failure> {
        std::fs::write(folder.join(file), text)?;
        let module = Module::parse_strict(text).map_err(|e| format!("{file}: {e}"))?;
        let stem = file.trim_end_matches(".ptx");
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        for case in cases {
            let result = emulate(&module, &case)?;
            let at = *known.entry(case.input.clone()).or_insert(inputs.len());
            if at == inputs.len() {
                inputs.extend_from_slice(&case.input);
            }
            entries.push(entry(&case, [at, outputs.len()]));
            outputs.extend_from_slice(&result);
        }
        std::fs::write(folder.join(format!("{stem}.in")), inputs)?;
        std::fs::write(folder.join(format!("{stem}.out")), outputs)?;
        Ok(())
    };
    for (file, text, case) in matrices::all() {
        save(&file, &text, vec![case])?;
    }
    for (file, text, cases) in boxes::all().into_iter().chain([functions::all()]) {
        save(&file, &text, cases)?;
    }
    for batch in 0..20 {
        let (file, text, cases) = scalar::batch(batch, 100);
        save(&file, &text, cases)?;
    }
    let list = format!("[\n{}\n]\n", entries.join(",\n"));
    std::fs::write(folder.join("manifest.json"), list)?;
    std::fs::write(folder.join("compare.py"), include_str!("compare.py"))?;
    Ok(())
}

/// The output of the case on the emulator. A finding is a bug of the case.
fn emulate(module: &Module, case: &Case) -> Result<Vec<u8>, Failure> {
    let mut memory = GlobalMemory::new();
    let input = memory.alloc(case.input.len() as u64, 256)?;
    let output = memory.alloc(case.out_bytes as u64, 256)?;
    memory.write(input, &case.input)?;
    let mut args = vec![Arg::Ptr(input), Arg::Ptr(output)];
    if let Some(map) = &case.map {
        let map = TensorMap {
            address: input,
            ..map.clone()
        };
        args.push(Arg::Bytes(map.encode()?.to_vec()));
    }
    let launch = Launch {
        grid: [case.grid, 1, 1],
        block: [case.block, 1, 1],
        args,
        ..Launch::default()
    };
    let options = Options::default();
    let report = run(module, &case.kernel, &launch, &mut memory, &options)?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{}: {finding}", case.name).into());
    }
    Ok(memory.read(output, case.out_bytes)?)
}

/// The line of the manifest.
fn entry(case: &Case, [input, output]: [usize; 2]) -> String {
    let quoted = |names: &[String]| {
        let all: Vec<String> = names.iter().map(|n| format!("{n:?}")).collect();
        format!("[{}]", all.join(","))
    };
    let families: Vec<String> = case.families.iter().map(|f| (*f).to_owned()).collect();
    let map = case.map.as_ref().map_or("null".to_owned(), boxes::json);
    let mut line = String::new();
    let _ = write!(
        line,
        "{{\"name\":{:?},\"module\":{:?},\"kernel\":{:?},\"grid\":{},\"block\":{},\"input\":[{input},{}],\"output\":[{output},{}],\"element\":{:?},\"rows\":{},\"families\":{},\"map\":{map}}}",
        case.name,
        case.module,
        case.kernel,
        case.grid,
        case.block,
        case.input.len(),
        case.out_bytes,
        case.element,
        quoted(&case.rows),
        quoted(&families)
    );
    line
}
