//! One row: the text, its main loops, and what ptxas makes of it.
//!
//! What ptxas makes of a text is a function of the text, so a row whose text has the hash of the golden row is not assembled again.
//!
//! A text is not assembled for every architecture (all texts for all of them are 25,000 assemblies of a third of a second):
//!
//! * `sm_86` and `sm_89` give the main kernel the registers that `sm_80` gives it, in each of 70 texts drawn from seven plans; they are
//!   left out for plans from `sm_80` on.
//! * From one architecture to another the registers differed by 23 at most, products of 8-bit floats apart, which `sm_90` and `sm_100`
//!   widen. A text to whose limit [`ROOM`] registers are left on the first architecture is assembled for that one alone.
//! * Texts with less room are assembled for one of the others, in turn by their hash; those of 8-bit floats for `sm_100` too, where they
//!   come nearest to the limit.
//! * Listed plans are assembled for all others.

use std::collections::BTreeMap;

use tilewright::codegen::Arch;
use tilewright::gpu::ptxas::Ptxas;
use tilewright::kernels::gemm::{DataType, Emitted, PlanError};

use crate::loops::{entry, main_loops};
use crate::product::Variant;
use crate::table::{Cell, Row, hash};

/// Registers to the limit that no other architecture can take: twice the largest difference that was seen.
const ROOM: u32 = 48;

/// The text of a variant for an architecture; none if a block needs more shared memory than that has.
pub(crate) fn emit(variant: &Variant, arch: Arch) -> Option<Emitted> {
    match variant.plan.emit(variant.operands, arch) {
        Ok(kernel) => Some(kernel),
        Err(PlanError::SharedMemory { .. }) => None,
        Err(e) => panic!("{}, {}, {arch}: {e}", variant.plan.name(), variant.operands),
    }
}

/// The row of a text, without cells; the static shared memory is added with them.
pub(crate) fn unmeasured(variant: &Variant, kernel: &Emitted) -> Row {
    let text = entry(&kernel.ptx, &kernel.kernel).expect("a module has its entry");
    let loops = main_loops(text);
    assert!(!loops.is_empty(), "{} has no main loop", kernel.kernel);
    let dynamic = variant.plan.shared_bytes(variant.operands);
    Row {
        text: hash(&kernel.ptx),
        shared: dynamic.expect("a plan that emits has its layouts") + static_bytes(text),
        loops,
        cells: BTreeMap::new(),
    }
}

/// Bytes of `.shared .align 16 .b8 smem[8192];` within an entry.
fn static_bytes(entry: &str) -> u32 {
    let declared = entry.lines().filter(|l| l.trim().starts_with(".shared "));
    let sizes =
        declared.filter_map(|l| l.split_once('[')?.1.split_once(']')?.0.parse::<u32>().ok());
    sizes.sum()
}

/// The number behind a directive of an entry.
fn directive(entry: &str, name: &str) -> Option<u32> {
    let line = entry.lines().find_map(|l| l.strip_prefix(name))?;
    line.split(',').next()?.trim().parse().ok()
}

/// The registers that a thread of this entry can have: so many blocks as it asks for share 65,536.
fn limit(entry: &str) -> u32 {
    let threads = directive(entry, ".reqntid").unwrap_or(1024);
    let blocks = directive(entry, ".minnctapersm").unwrap_or(1);
    (65_536 / (threads * blocks) / 8 * 8).min(255)
}

/// Kernels that may spill: how their entries begin, where, and bytes at most. Of `sgemm-128x128x16` nt with stores of C narrower than 16 bytes these
/// architectures keep two blocks a multiprocessor with 128 registers and six accesses to local memory for 3,072 FFMA; without the bound there
/// would be one block, and nothing to do while it waits.
const SPILLS: [(&str, &[Arch], u32); 1] = [("sgemm_128x128x16_nt_", &[Arch(86), Arch(89)], 72)];

/// Assembles a kernel. Returns its cell, or what is wrong with the kernel.
pub(crate) fn assemble(
    ptxas: &Ptxas,
    kernel: &Emitted,
    arch: Arch,
    first: u64,
) -> Result<Cell, String> {
    let what = |e: String| format!("{}, {arch}: {e}", kernel.kernel);
    let assembly = ptxas
        .assemble(&kernel.ptx, &arch.to_string())
        .map_err(|e| what(e.to_string()))?;
    let mut cell = Cell {
        registers: 0,
        others: 0,
        text: Some(hash(&kernel.ptx)).filter(|&text| text != first),
    };
    for r in &assembly.kernels {
        let known = SPILLS.iter().any(|(prefix, arches, bytes)| {
            r.kernel.starts_with(prefix) && arches.contains(&arch) && r.spill_store_bytes <= *bytes
        });
        if !known && (r.spills() || r.stack_bytes > 0) {
            return Err(what(format!(
                "{} spills {} bytes to a stack of {} with {} registers",
                r.kernel, r.spill_store_bytes, r.stack_bytes, r.registers
            )));
        }
        if r.kernel == kernel.kernel {
            cell.registers = r.registers;
        } else {
            cell.others = cell.others.max(r.registers);
        }
    }
    if cell.registers == 0 {
        return Err(what("the report has no line of the kernel".to_owned()));
    }
    Ok(cell)
}

/// The architectures that a variant is assembled for beside its first, whose cell and text are given.
pub(crate) fn others(variant: &Variant, listed: bool, kernel: &Emitted, cell: Cell) -> Vec<Arch> {
    let first = variant.plan.min_arch();
    let text = entry(&kernel.ptx, &kernel.kernel).expect("a module has its entry");
    let widened = matches!(variant.plan.data_type, DataType::E4m3 | DataType::E5m2);
    let near = cell.registers + ROOM > limit(text);
    let mut all = Arch::ALL.to_vec();
    all.retain(|&arch| {
        let alike = [Arch(86), Arch(89)].contains(&arch) && variant.plan.name().starts_with("mma");
        arch > first && variant.plan.runs_on(arch) && !alike && (listed || widened || near)
    });
    if !listed && !all.is_empty() {
        let turn = all[(hash(&kernel.ptx) % all.len() as u64) as usize];
        all.retain(|&arch| arch == turn || (widened && arch == Arch(100)));
    }
    all
}

/// Registers that a kernel may take beyond the golden ones, which were counted with `.maxntid`. Where a kernel says `.reqntid` instead, the same
/// instructions take a few more or fewer (12 at most in the texts that were compared): the assembler chooses otherwise within the launch bound. The bound itself (`.minnctapersm`) keeps
/// the blocks of a multiprocessor, and a spill is refused.
const SLACK: u32 = 16;

/// Where a row is worse than the golden one; nothing if it is not.
pub(crate) fn worse(name: &str, row: &Row, golden: &Row) -> Vec<String> {
    let mut all = Vec::new();
    if row.loops.len() != golden.loops.len() {
        all.push(format!(
            "{name}: {} main loops, golden {}",
            row.loops.len(),
            golden.loops.len()
        ));
    }
    for (i, (now, then)) in row.loops.iter().zip(&golden.loops).enumerate() {
        for (kind, now, then) in now.more_than(then) {
            all.push(format!("{name}: loop {i} has {now} {kind}, golden {then}"));
        }
    }
    if row.shared > golden.shared {
        all.push(format!(
            "{name}: {} bytes of shared memory, golden {}",
            row.shared, golden.shared
        ));
    }
    for (arch, now) in &row.cells {
        let Some(then) = golden.cells.get(arch) else {
            continue;
        };
        if now.registers > then.registers + SLACK || now.others > then.others + SLACK {
            all.push(format!("{name}: {now} registers on {arch}, golden {then}"));
        }
    }
    all
}
