//! What a wait or a barrier has to wait for, by the text: if on no path anything has begun since the last wait of its kind, it waits for nothing.
//!
//! A forward analysis over the lines of an entry: a line begins something, ends everything, or does neither; the statement in question does nothing. Example: behind
//! a loop that ends each turn with `wgmma.wait_group 0`, another wait finds no products in flight, whether the loop was entered or not.

use std::collections::BTreeMap;

use crate::mutate::{Statement, statement};
use crate::slice::{computes, entry};

/// What begins, and what ends it.
#[derive(Clone, Copy)]
enum Kind {
    Products,
    Copies,
    /// Accesses, which a barrier orders.
    Accesses {
        of_warp: bool,
    },
}

impl Kind {
    fn of(s: &Statement<'_>) -> Option<Self> {
        match s.opcode {
            op if op.starts_with("wgmma.wait_group") => Some(Self::Products),
            op if op.starts_with("cp.async.wait") || op == "cp.async.commit_group" => {
                Some(Self::Copies)
            }
            "bar.warp.sync" => Some(Self::Accesses { of_warp: true }),
            "bar.sync" => Some(Self::Accesses { of_warp: false }),
            _ => None,
        }
    }

    fn begins(self, s: &Statement<'_>) -> bool {
        let op = s.opcode;
        match self {
            Self::Products => op.starts_with("wgmma.mma_async"),
            Self::Copies => op.starts_with("cp.async.ca") || op.starts_with("cp.async.cg"),
            Self::Accesses { .. } => {
                !["bra", "ld.param", "mma.sync"]
                    .iter()
                    .any(|n| op.starts_with(n))
                    && !computes(s)
            }
        }
    }

    fn ends(self, s: &Statement<'_>) -> bool {
        let none = s.operands().trim() == "0;";
        let all = s.operands().trim() == "0xffffffff;";
        s.guard().is_empty()
            && match self {
                Self::Products => s.opcode.starts_with("wgmma.wait_group") && none,
                Self::Copies => {
                    s.opcode == "cp.async.wait_all" || (s.opcode == "cp.async.wait_group" && none)
                }
                Self::Accesses { of_warp } => {
                    (s.opcode == "bar.sync" && none)
                        || (of_warp && s.opcode == "bar.warp.sync" && all)
                }
            }
    }
}

/// Whether the wait or barrier of a line has nothing to wait for.
pub(crate) fn idle(lines: &[&str], at: usize) -> bool {
    let Some(kind) = statement(lines[at]).and_then(|s| Kind::of(&s)) else {
        return false;
    };
    let range = entry(lines, at);
    let label = |line: &str| line.trim().strip_suffix(':').map(str::to_owned);
    let labels: BTreeMap<String, usize> = range
        .clone()
        .filter_map(|i| Some((label(lines[i])?, i)))
        .collect();
    // Whether a line is reached, and whether something may be in flight before it.
    let mut before: Vec<Option<bool>> = vec![None; lines.len()];
    let mut work = vec![(range.start, false)];
    while let Some((i, pending)) = work.pop() {
        if i >= range.end || before[i].is_some_and(|known| known || !pending) {
            continue;
        }
        before[i] = Some(pending);
        let s = statement(lines[i]).filter(|_| i != at);
        let Some(s) = s else {
            work.push((i + 1, pending));
            continue;
        };
        let guarded = !s.guard().is_empty();
        if s.opcode.starts_with("bra") {
            let target = s.operands().trim().trim_end_matches(';');
            match labels.get(target) {
                Some(&target) => work.push((target, pending)),
                None => return false,
            }
        }
        let leaves = ["bra", "ret", "exit"]
            .iter()
            .any(|n| s.opcode.starts_with(n));
        if guarded || !leaves {
            work.push((i + 1, !kind.ends(&s) && (pending || kind.begins(&s))));
        }
    }
    before[at] == Some(false)
}
