//! Mistakes in clusters: who gets a copy, who is told that a stage is released, when blocks meet.

use super::hopper::{Edit, Is, edit, node};
use super::kinds::{Make, drop_node, inst, kind, statement};
use crate::ir::{Entry, Hopper, Inst, Node, Remote};

/// The access to another block that an instruction is.
fn reached(node: &Node) -> Option<&Remote> {
    match inst(node)? {
        Inst::Hopper(h) => match &**h {
            Hopper::Remote(remote) => Some(remote),
            _ => None,
        },
        _ => None,
    }
}

/// The kinds, for a kernel whose blocks run in clusters; none of another has a place for them.
pub(super) fn all(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let meets: Is = |h| matches!(h, Hopper::ClusterBarrier { .. });
    let shared: Is = |h| {
        matches!(
            h,
            Hopper::TensorCopy {
                blocks: Some(_),
                ..
            }
        )
    };
    let arrive: Is = |h| matches!(h, Hopper::ArriveAt { .. });
    let mut all = vec![
        kind(
            entry,
            "a cluster that does not meet",
            node(meets),
            drop_node,
        ),
        kind(
            entry,
            "a cluster that meets earlier",
            node(meets),
            |list, i| {
                if i > 0 {
                    list.swap(i - 1, i);
                }
            },
        ),
        kind(
            entry,
            "a part copied twice, another not",
            node(shared),
            move |list, i| {
                // The next copy to all is this one again.
                if i + 1 < list.len() && node(shared)(&list[i + 1]) {
                    list[i + 1] = list[i].clone();
                }
            },
        ),
        kind(
            entry,
            "stages never released to a cluster",
            node(arrive),
            drop_node,
        ),
        kind(
            entry,
            "stages released to a cluster twice",
            node(arrive),
            |list, i| {
                list.insert(i, list[i].clone());
            },
        ),
    ];
    let remote: Is = |h| matches!(h, Hopper::Remote(_));
    all.extend([
        kind(
            entry,
            "an access to another block left out",
            node(remote),
            drop_node,
        ),
        kind(
            entry,
            "an access to another block twice",
            node(remote),
            |list, i| list.insert(i, list[i].clone()),
        ),
        kind(
            entry,
            "an access to the block of the access behind it",
            node(remote),
            move |list, i| {
                let mut later = list.get(i + 1..).unwrap_or_default().iter();
                let other = later.find_map(reached).map(|r| r.block);
                if let Some(other) = other
                    && let Some(statement) = statement(&mut list[i])
                    && let Inst::Hopper(h) = &mut statement.inst
                    && let Hopper::Remote(r) = &mut **h
                {
                    r.block = other;
                }
            },
        ),
        kind(
            entry,
            "a barrier of the block for one of the cluster",
            node(meets),
            |list, i| list[i] = Node::Inst(Inst::Barrier.into()),
        ),
    ]);
    let edits: [(&'static str, Is, Edit); 10] = [
        ("a cluster that meets and orders nothing", meets, |h| {
            if let Hopper::ClusterBarrier { orders } = h {
                *orders = false;
            }
        }),
        ("an access to another block moved", remote, |h| {
            if let Hopper::Remote(r) = h {
                r.at = r.at.moved(4);
            }
        }),
        ("an access to another block moved back", remote, |h| {
            if let Hopper::Remote(r) = h {
                r.at = r.at.moved(-128);
            }
        }),
        ("an access to a block by another number", remote, |h| {
            if let Hopper::Remote(r) = h {
                r.block = r.at.base();
            }
        }),
        ("a copy to the own block alone", shared, |h| {
            if let Hopper::TensorCopy { blocks, .. } = h {
                *blocks = None;
            }
        }),
        ("a copy to the first block alone", shared, |h| {
            if let Hopper::TensorCopy { blocks, .. } = h {
                *blocks = Some(1);
            }
        }),
        ("a copy to the other block alone", shared, |h| {
            if let Hopper::TensorCopy { blocks, .. } = h {
                *blocks = Some(2);
            }
        }),
        ("a copy to more blocks than there are", shared, |h| {
            if let Hopper::TensorCopy { blocks, .. } = h {
                *blocks = blocks.map(|to| 2 * to + 1);
            }
        }),
        ("a stage released to the own block alone", arrive, |h| {
            if let Hopper::ArriveAt { at, stage, .. } = *h {
                *h = Hopper::Arrive { at, stage };
            }
        }),
        ("another stage released to a cluster", arrive, |h| {
            if let Hopper::ArriveAt { at, .. } = h {
                *at = at.moved(-8);
            }
        }),
    ];
    for (name, is, f) in edits {
        all.push(kind(entry, name, node(is), edit(f)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{inst, lists};
    use super::super::mma::Case;
    use super::super::printed;
    use super::{edit, node};
    use crate::gemm::Operands;
    use crate::index::code::Operand;
    use crate::ir::{Entry, Hopper, Inst, LoopEnd, Node, Reg, Src, class_of};
    use crate::prove::prove;

    /// Edits all instructions of Hopper.
    fn each(entry: &mut Entry, f: fn(&mut Hopper)) {
        lists(&mut entry.nodes, &mut |list| {
            for i in 0..list.len() {
                if node(|_| true)(&list[i]) {
                    edit(f)(list, i);
                }
            }
        });
    }

    /// Every copy to all blocks goes to the first one.
    fn wrong_mask(entry: &mut Entry) {
        each(entry, |h| {
            if let Hopper::TensorCopy {
                blocks: Some(to), ..
            } = h
            {
                *to = 1;
            }
        });
    }

    /// Consumers tell their own block as often as both together.
    fn other_not_told(entry: &mut Entry) {
        each(entry, |h| {
            if let Hopper::ArriveAt { at, stage, .. } = *h {
                *h = Hopper::Arrive { at, stage };
            }
        });
    }

    /// Mbarriers are made for the consumers of one block.
    fn arrivals_of_one_block(entry: &mut Entry) {
        entry.rings[0].consumers /= 2;
        each(entry, |h| {
            if let Hopper::BarrierInit { count, .. } = h {
                *count = count.div_ceil(2);
            }
        });
    }

    /// A block expects the bytes that it copies: its tile of A, and half of B's.
    fn own_bytes(entry: &mut Entry) {
        each(entry, |h| {
            if let Hopper::Expect { bytes, .. } = h {
                *bytes = *bytes / 3 * 2;
            }
        });
    }

    /// The threads of a block wait for each other alone.
    fn blocks_begin_alone(entry: &mut Entry) {
        for node in &mut entry.nodes {
            if let Node::Inst(s) = node
                && matches!(&s.inst, Inst::Hopper(h) if matches!(**h, Hopper::ClusterBarrier { .. }))
            {
                s.inst = Inst::Barrier;
            }
        }
    }

    /// The producer ends when it has filled the last stage.
    fn blocks_end_early(entry: &mut Entry) {
        let waits = |n: &Node| matches!(inst(n), Some(Inst::Hopper(h)) if matches!(**h, Hopper::Wait { .. }));
        lists(&mut entry.nodes, &mut |list| {
            // Those of its loop have instructions behind them that use the stage.
            let fills = list.iter().any(|n| matches!(n, Node::Loop(_)));
            if fills {
                list.retain(|n| !waits(n));
            }
        });
    }

    /// The first box of a block's part of B in place of the second.
    fn half_copied_twice(entry: &mut Entry) {
        lists(&mut entry.nodes, &mut |list| {
            let shared = node(|h| {
                matches!(
                    h,
                    Hopper::TensorCopy {
                        blocks: Some(_),
                        ..
                    }
                )
            });
            let at: Vec<usize> = (0..list.len()).filter(|&i| shared(&list[i])).collect();
            if let [first, second] = at[..] {
                list[second] = list[first].clone();
            }
        });
    }

    /// Each block goes round its loops along k as often as its index along x says.
    fn iterations_by_rank(entry: &mut Entry) {
        let Operand::Reg(id, ty) = entry.variables["ctaid.x"] else {
            panic!("the block's index is a register");
        };
        let class = class_of(ty);
        let of_block = Src::Reg(Reg { class, id });
        lists(&mut entry.nodes, &mut |list| {
            for node in list {
                if let Node::Loop(l) = node
                    && let LoopEnd::Below { limit, .. } = &mut l.end
                {
                    (*limit, l.meant.limit) = (of_block, Some(of_block));
                }
            }
        });
    }

    /// A mistake: its name, how it is made, what the prover says, and what the sanitizer finds.
    type Mistake = (&'static str, fn(&mut Entry), &'static str, &'static str);

    const MISTAKES: [Mistake; 8] = [
        (
            "a wrong mask",
            wrong_mask,
            "49152 bytes are expected, and copies bring 16384",
            "Deadlock",
        ),
        (
            "the other block is not told",
            other_not_told,
            "which give none of them back to it",
            "SharedRace",
        ),
        (
            "arrivals of one block",
            arrivals_of_one_block,
            "16 threads release a stage, and its mbarrier counts 8",
            "Deadlock",
        ),
        (
            "bytes of the own copies",
            own_bytes,
            "32768 bytes are expected, and copies bring 49152",
            "ReadBeforeWait",
        ),
        (
            "no barrier of the cluster at the start",
            blocks_begin_alone,
            "a fence of the thread that made them and a barrier of the cluster",
            "Mbarrier",
        ),
        (
            "a block that ends before the last arrivals",
            blocks_end_early,
            "its producer is to wait for the last stages",
            "BlockExited",
        ),
        (
            "half copied twice",
            half_copied_twice,
            "two copies to the same bytes",
            "UndefinedShared",
        ),
        (
            "iterations by rank",
            iterations_by_rank,
            "blocks of a cluster go round the loop that uses it another number of times",
            "Deadlock",
        ),
    ];

    /// Each is refused for what it is, and seen when it is run.
    #[test]
    fn mistakes_in_clusters() {
        let nn = Operands::ALL[0];
        let sizes = &[[136, 264, 456, 0]];
        let subject = Case::plain("wgmma-f16-128x256x64+cluster2x1", nn, sizes).subject();
        assert_eq!((subject.judge)(&printed(&subject, &subject.entry)), None);
        let mut wrong = Vec::new();
        for (name, make, reason, finding) in MISTAKES {
            let mut entry = subject.entry.clone();
            make(&mut entry);
            let said = prove(&entry).map_or_else(|e| e.to_string(), |_| "accepted".to_owned());
            let seen = (subject.judge)(&printed(&subject, &entry)).unwrap_or_default();
            if !said.contains(reason) || !seen.contains(&format!("kind: {finding}")) {
                wrong.push((name, said, seen));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
