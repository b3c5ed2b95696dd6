//! Findings of one cause are one finding.
//!
//! A compiler unrolls loops, so that one missing barrier is a race in eight loads, and one missing guard eight accesses out of bounds. Findings are taken
//! together if they are of one kind and either of one line of the source program, or of one instruction name in a stretch of PTX
//! without a label, a branch or a synchronisation. The first speaks, and the lines of the others follow it.
//!
//! Example: `ld.shared.f32` in lines 40, 42 and 44, all three racing with a store before a barrier that is missing, is one finding at line 40 with
//! [`Finding::also`] = `[42, 44]`.

use std::collections::HashMap;

use crate::ir::{Op, Program};
use crate::report::Finding;
use crate::source::{Lines, SourceLine};

/// What findings of one cause share.
#[derive(PartialEq, Eq, Hash)]
enum Cause {
    Source(SourceLine, String),
    Stretch(u32, String),
}

/// Instructions behind which a new stretch begins, by the start of their names.
const ENDS: [&str; 14] = [
    "bar.",
    "barrier.",
    "bra",
    "brx",
    "call",
    "ret",
    "exit",
    "mbarrier.",
    "fence",
    "membar",
    "cp.async.wait",
    "cp.async.bulk.wait",
    "wgmma.wait",
    "griddepcontrol",
];

/// The number of the stretch that each line of the text is in.
fn stretches(program: &Program) -> HashMap<u32, u32> {
    let mut starts = vec![false; program.insts.len() + 1];
    for (pc, (inst, meta)) in program.insts.iter().zip(&program.meta).enumerate() {
        if let Op::Bra { target, .. } | Op::Spin { target, .. } = inst.op
            && let Some(start) = starts.get_mut(target as usize)
        {
            *start = true;
        }
        starts[pc + 1] |= ENDS.iter().any(|end| meta.opcode.starts_with(end));
    }
    let mut number = 0;
    let lines = program.meta.iter().zip(starts);
    lines
        .map(|(meta, start)| {
            number += u32::from(start);
            (meta.line, number)
        })
        .collect()
}

/// Takes together what has one cause, and says which line of the source each finding is of. `findings` are in the order of the text.
pub(crate) fn merge(program: &Program, lines: &Lines, findings: Vec<Finding>) -> Vec<Finding> {
    let stretches = if findings.len() > 1 {
        stretches(program)
    } else {
        HashMap::new()
    };
    let mut known = HashMap::new();
    let mut out: Vec<Finding> = Vec::new();
    for mut finding in findings {
        finding.source = lines.source(finding.line);
        let name = finding.opcode.split('.').next().unwrap_or_default();
        let cause = if let Some(source) = &finding.source {
            Cause::Source(source.clone(), name.to_owned())
        } else {
            let stretch = stretches.get(&finding.line).copied().unwrap_or(0);
            Cause::Stretch(stretch, name.to_owned())
        };
        match known.entry((finding.kind, cause)) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(finding);
            }
            std::collections::hash_map::Entry::Occupied(place) => {
                let first = &mut out[*place.get()];
                first.count += finding.count;
                if first.line != finding.line && first.also.last() != Some(&finding.line) {
                    first.also.push(finding.line);
                }
            }
        }
    }
    out
}
