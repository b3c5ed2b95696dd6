//! What the emulator reported, as JSON: what `tilewright run --json` and the package for Python say.

use ptx_emulator::{Counters, Finding, SourceLine};
use serde_json::{Value, json};

/// A finding: its kind, place, lanes and message.
///
/// ```
/// use tilewright::emulator::{GlobalMemory, Launch, Module, Options, run};
/// use tilewright::host::finding_to_json;
///
/// let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
///     .visible .entry wild() { .reg .b64 %d<1>; mov.u64 %d0, 64; st.global.u64 [%d0], %d0; ret; }";
/// let (module, mut memory) = (Module::parse(text)?, GlobalMemory::new());
/// let report = run(&module, "wild", &Launch::default(), &mut memory, &Options::default())?;
/// let finding = finding_to_json(&report.findings[0]);
/// assert_eq!((finding["kind"].as_str(), finding["line"].as_u64()), (Some("out_of_bounds"), Some(4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn finding_to_json(finding: &Finding) -> Value {
    json!({
        "kind": finding.kind.code(),
        "line": finding.line,
        "column": finding.column,
        "opcode": finding.opcode,
        "block": finding.block,
        "warp": finding.warp,
        "lanes": finding.lanes,
        "address": finding.address,
        "message": finding.message,
        "count": finding.count,
        "source": finding.source.as_ref().map(source_to_json),
        "also": finding.also,
    })
}

/// A line of the program that the PTX was compiled from.
///
/// ```
/// use tilewright::emulator::SourceLine;
/// use tilewright::host::source_to_json;
///
/// let line = SourceLine { file: "scan.cu".to_owned(), line: 7, column: 3, inlined_at: None };
/// assert_eq!(source_to_json(&line)["line"], 7);
/// ```
pub fn source_to_json(source: &SourceLine) -> Value {
    json!({
        "file": source.file,
        "line": source.line,
        "column": source.column,
        "inlined_at": source.inlined_at.as_deref().map(source_to_json),
    })
}

/// What a run cost: instructions, and the wavefronts of each access to shared memory.
///
/// ```
/// use tilewright::emulator::Counters;
/// use tilewright::host::counters_to_json;
///
/// assert_eq!(counters_to_json(&Counters::default())["wavefronts"], 0);
/// ```
pub fn counters_to_json(counters: &Counters) -> Value {
    let shared = counters.shared().map(|access| {
        json!({
            "line": access.line,
            "opcode": access.opcode,
            "warps": access.warps,
            "wavefronts": access.wavefronts,
            "ideal": access.ideal_wavefronts,
            "min": access.min_wavefronts,
            "max": access.max_wavefronts,
        })
    });
    json!({
        "warp_instructions": counters.warp_instructions,
        "lane_instructions": counters.lane_instructions,
        "wavefronts": counters.wavefronts,
        "ideal_wavefronts": counters.ideal_wavefronts,
        "shared": shared.collect::<Vec<_>>(),
    })
}
