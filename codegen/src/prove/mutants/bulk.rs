//! Mistakes in copies by TMA from shared to global memory: each is refused, and found by the emulator where a run makes it.

use super::kinds::{Make, drop_node, inst, kind, statement};
use crate::ir::{BulkStore, Entry, Hopper, Inst, Node};

/// The thread that issues a box may fence what its warp wrote as well; the prover asks it of those who wrote, as the barrier orders one thread's fence for
/// another.
const LATE_FENCE: &str = "the fence behind the barrier";

/// The same elements by the same thread.
const TWICE: &str = "a box stored twice";

/// Lanes of a warp run in step on the emulator: none is ahead of the one that waits.
const LATE_LANES: &str = "no barrier behind a wait";

type Is = fn(&BulkStore) -> bool;

type Edit = fn(&mut BulkStore);

fn bulk(node: &Node) -> Option<&BulkStore> {
    match inst(node) {
        Some(Inst::Hopper(h)) => match &**h {
            Hopper::Bulk(inst) => Some(inst),
            _ => None,
        },
        _ => None,
    }
}

/// Nodes that are such an instruction.
fn node(is: Is) -> impl Fn(&Node) -> bool + Clone {
    move |node| bulk(node).is_some_and(is)
}

/// Edits one instruction.
fn edit(f: Edit) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        if let Some(statement) = statement(&mut list[i])
            && let Inst::Hopper(h) = &mut statement.inst
            && let Hopper::Bulk(inst) = &mut **h
        {
            f(inst);
        }
    }
}

/// The barrier of the warp that stands next to an instruction.
fn without_barrier(beside: isize) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        let at = i.wrapping_add_signed(beside);
        if matches!(list.get(at).and_then(inst), Some(Inst::WarpBarrier)) {
            list.remove(at);
        }
    }
}

/// The kinds, for a kernel that has such copies.
pub(super) fn all(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let fence: Is = |b| matches!(b, BulkStore::Fence);
    let sent: Is = |b| matches!(b, BulkStore::Box { .. });
    let commit: Is = |b| matches!(b, BulkStore::Commit);
    let wait: Is = |b| matches!(b, BulkStore::Wait { .. });
    // The last wait has no barrier behind it: nothing is written any more.
    let wait_for_some: Is = |b| matches!(b, BulkStore::Wait { pending: 1.. });
    let later = |list: &mut Vec<Node>, i: usize| {
        if i + 1 < list.len() {
            list.swap(i, i + 1);
        }
    };
    let is_matrix = |n: &Node| matches!(inst(n), Some(Inst::StoreMatrix { .. }));
    vec![
        kind(entry, "no fence before a box", node(fence), drop_node),
        kind(entry, LATE_FENCE, node(fence), later),
        kind(
            entry,
            "no barrier before a box",
            node(fence),
            without_barrier(1),
        ),
        kind(entry, LATE_LANES, node(wait_for_some), without_barrier(1)),
        kind(entry, "boxes not waited for", node(wait), drop_node),
        kind(
            entry,
            "boxes of one group more may still read",
            node(wait),
            edit(|b| {
                if let BulkStore::Wait { pending } = b {
                    *pending += 1;
                }
            }),
        ),
        kind(
            entry,
            "a group of boxes not closed",
            node(commit),
            drop_node,
        ),
        kind(entry, "a box not stored", node(sent), drop_node),
        kind(entry, TWICE, node(sent), |list, i| {
            list.insert(i, list[i].clone());
        }),
        kind(
            entry,
            "a box stored by every lane",
            node(sent),
            |list, i| {
                if let Some(s) = statement(&mut list[i]) {
                    s.guard = None;
                }
            },
        ),
        kind(
            entry,
            "a box at the coordinates of another",
            node(sent),
            edit(|b| {
                if let BulkStore::Box { coordinates, .. } = b {
                    coordinates.swap(0, 1);
                }
            }),
        ),
        kind(
            entry,
            "a box of another place",
            node(sent),
            edit(|b| {
                if let BulkStore::Box { from, .. } = b {
                    *from = from.moved(2048);
                }
            }),
        ),
        kind(
            entry,
            "a box that begins within its place",
            node(sent),
            edit(|b| {
                if let BulkStore::Box { from, .. } = b {
                    *from = from.moved(128);
                }
            }),
        ),
        kind(entry, "matrices not stored", is_matrix, drop_node),
        kind(entry, "matrices of another row", is_matrix, |list, i| {
            if let Some(Inst::StoreMatrix { at, .. }) = statement(&mut list[i]).map(|s| &mut s.inst)
            {
                *at = at.moved(128);
            }
        }),
        kind(entry, "matrices of other columns", is_matrix, |list, i| {
            if let Some(Inst::StoreMatrix { at, .. }) = statement(&mut list[i]).map(|s| &mut s.inst)
            {
                *at = at.moved(16);
            }
        }),
    ]
}

#[cfg(test)]
mod tests {
    use layout_core::Swizzled;

    use super::super::layer::hopper::by_boxes;
    use super::*;
    use crate::ir::Arrangement;
    use crate::print::module;
    use crate::prove::prove;

    /// A block with six tiles, the last of them ragged: whatever is wrong with boxes is refused, and a run finds it.
    #[test]
    fn mistakes_with_boxes_are_refused_and_found() {
        let subject = by_boxes(&[[136, 520, 72]]);
        let mut unseen = Vec::new();
        for (what, places, make) in all(&subject.entry) {
            assert!(places > 0, "{what}");
            // The first place, one in the midst and the last; what they have in common is found where it shows.
            let mut found = Vec::new();
            for place in [0, places / 2, places - 1] {
                let mut mutant = subject.entry.clone();
                make(&mut mutant, place);
                assert_ne!(mutant.nodes, subject.entry.nodes, "{what} at {place}");
                let error = prove(&mutant).map(|p| p.covered);
                assert!(error.is_err(), "{what} at {place} is accepted");
                let others = subject.others.iter().cloned();
                let all: Vec<Entry> = [mutant].into_iter().chain(others).collect();
                found.extend((subject.judge)(&module(&all, "8.0", "sm_90a")));
            }
            if found.is_empty() {
                unseen.push(what);
            }
        }
        assert_eq!(unseen, [LATE_FENCE, LATE_LANES, TWICE]);
    }

    /// Boxes of C whose rows end within a piece of 16 bytes, which TMA stores as a whole, are refused.
    #[test]
    fn rows_that_end_within_a_piece() {
        let entry = by_boxes(&[[72, 520, 72]]).entry;
        let refusal = |multiple: u64| {
            let mut entry = entry.clone();
            let n = entry.params.iter_mut().find(|p| p.name == "n");
            n.expect("a size").multiple = multiple;
            prove(&entry).err().map(|e| e.to_string())
        };
        assert_eq!(refusal(8), None);
        let refusal = refusal(4).unwrap_or_default();
        assert!(refusal.contains("a piece of 16 bytes"), "{refusal}");
    }

    /// A place that is not swizzled as the box reads it is refused, whichever of the two is off.
    #[test]
    fn the_swizzle_is_that_of_the_box() {
        let subject = by_boxes(&[[128, 256, 64]]);
        let code = |entry: &Entry| prove(entry).map(|_| ()).map_err(|e| e.code());
        assert_eq!(code(&subject.entry), Ok(()));
        let mut narrow = subject.entry.clone();
        let map = narrow
            .tensor_maps
            .iter_mut()
            .find(|m| m.extents == [16, 64] && m.name.starts_with("c_"));
        let map = map.expect("a map of C");
        (map.swizzle, map.extents) = (64, [16, 32]);
        assert!(code(&narrow).is_err());
        let mut plain = subject.entry.clone();
        let place = plain.buffers.iter_mut().find(|b| b.name == "c_boxes");
        if let Arrangement::Shared { layout, .. } = &mut place.expect("places").arrangement {
            *layout = Swizzled::parse("(16,64):(128,2)").expect("a layout");
        }
        assert_eq!(code(&plain), Err("address"));
    }
}
