//! Mistakes in pipelines between roles, copies by TMA and products of warpgroups.

use layout_core::atoms::Scalar;

use super::kinds::{Make, drop_node, inst, kind, statement};
use crate::ir::{Entry, Factor, Hopper, Inst, Matrix, Node};

pub(super) type Is = fn(&Hopper) -> bool;

pub(super) type Edit = fn(&mut Hopper);

fn hopper(node: &Node) -> Option<&Hopper> {
    match inst(node) {
        Some(Inst::Hopper(inst)) => Some(inst),
        _ => None,
    }
}

/// Nodes that are such an instruction.
pub(super) fn node(is: Is) -> impl Fn(&Node) -> bool + Clone {
    move |node| hopper(node).is_some_and(is)
}

/// Edits one instruction.
pub(super) fn edit(f: Edit) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        if let Some(statement) = statement(&mut list[i])
            && let Inst::Hopper(inst) = &mut statement.inst
        {
            f(inst);
        }
    }
}

/// The first operand of a product that is in shared memory.
fn first_matrix(h: &mut Hopper) -> Option<&mut Matrix> {
    match h {
        Hopper::Wgmma {
            a: Factor::Shared(a),
            ..
        } => Some(a),
        Hopper::Wgmma { b, .. } => Some(b),
        _ => None,
    }
}

fn is_roles(node: &Node) -> bool {
    matches!(node, Node::Roles(roles) if roles.len() > 1)
}

fn for_all(list: &mut [Node], i: usize) {
    if let Some(statement) = statement(&mut list[i]) {
        statement.guard = None;
    }
}

/// The kinds, for a kernel that has such instructions.
pub(super) fn all(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let wait: Is = |h| matches!(h, Hopper::Wait { .. });
    let arrive: Is = |h| matches!(h, Hopper::Arrive { .. });
    let pass: Is = |h| matches!(h, Hopper::Pass { .. });
    let expect: Is = |h| matches!(h, Hopper::Expect { .. });
    let copy: Is = |h| matches!(h, Hopper::TensorCopy { .. });
    let init: Is = |h| matches!(h, Hopper::BarrierInit { .. });
    let product: Is = |h| matches!(h, Hopper::Wgmma { .. });
    let complete: Is = |h| matches!(h, Hopper::WgmmaWait { .. });
    let fence: Is = |h| matches!(h, Hopper::WgmmaFence | Hopper::BarrierInitFence);
    let fetch: Is = |h| matches!(h, Hopper::Fetch { .. });
    let commit: Is = |h| matches!(h, Hopper::WgmmaCommit);
    let registers: Is = |h| matches!(h, Hopper::SetRegisters { .. });
    let ordering: Is = |h| {
        matches!(
            h,
            Hopper::Wait { .. }
                | Hopper::Arrive { .. }
                | Hopper::Pass { .. }
                | Hopper::Expect { .. }
                | Hopper::WgmmaWait { .. }
                | Hopper::WgmmaCommit
        )
    };
    let mut all = vec![
        kind(entry, "a role's wait skipped", node(wait), drop_node),
        kind(entry, "a stage never released", node(arrive), drop_node),
        kind(
            entry,
            "no arrival on the order barrier",
            node(pass),
            drop_node,
        ),
        kind(entry, "bytes not expected", node(expect), drop_node),
        kind(entry, "a box not copied", node(copy), drop_node),
        kind(entry, "an mbarrier not made", node(init), drop_node),
        kind(entry, "a product left out", node(product), drop_node),
        kind(entry, "products not waited for", node(complete), drop_node),
        kind(entry, "a fence left out", node(fence), drop_node),
        kind(entry, "a group not closed", node(commit), drop_node),
        kind(entry, "part of a stage not read", node(fetch), drop_node),
        kind(
            entry,
            "a read of a stage earlier",
            node(fetch),
            |list, i| {
                if i > 0 {
                    list.swap(i - 1, i);
                }
            },
        ),
        kind(entry, "registers not changed", node(registers), drop_node),
        kind(
            entry,
            "an order of a pipeline earlier",
            node(ordering),
            |list, i| {
                if i > 0 {
                    list.swap(i - 1, i);
                }
            },
        ),
        kind(
            entry,
            "an order of a pipeline later",
            node(ordering),
            |list, i| {
                if i + 1 < list.len() {
                    list.swap(i, i + 1);
                }
            },
        ),
        kind(
            entry,
            "an order of a pipeline twice",
            node(ordering),
            |list, i| {
                list.insert(i, list[i].clone());
            },
        ),
        kind(entry, "a box copied twice", node(copy), |list, i| {
            list.insert(i, list[i].clone());
        }),
        kind(
            entry,
            "all lanes release a stage",
            node(arrive),
            |list, i| for_all(list, i),
        ),
        kind(
            entry,
            "all lanes arrive on the order barrier",
            node(pass),
            |list, i| {
                for_all(list, i);
            },
        ),
        kind(
            entry,
            "all threads make an mbarrier",
            node(init),
            |list, i| for_all(list, i),
        ),
    ];
    // The mbarriers of another ring lie behind or before those of this one.
    let of_ring = entry.rings.first().map_or(0, |r| 16 * r.stages);
    for (name, by) in [
        ("the mbarrier of a later ring", of_ring),
        ("the mbarrier of an earlier ring", -of_ring),
    ] {
        let barrier: Is = |h| {
            matches!(
                h,
                Hopper::Wait { .. }
                    | Hopper::Arrive { .. }
                    | Hopper::Expect { .. }
                    | Hopper::TensorCopy { .. }
            )
        };
        all.push(kind(entry, name, node(barrier), move |list, i| {
            if let Some(statement) = statement(&mut list[i])
                && let Inst::Hopper(inst) = &mut statement.inst
            {
                match &mut **inst {
                    Hopper::Wait { at, .. }
                    | Hopper::Arrive { at, .. }
                    | Hopper::Expect { at, .. }
                    | Hopper::TensorCopy { barrier: at, .. } => *at = at.moved(by),
                    _ => {}
                }
            }
        }));
    }
    all.push(kind(
        entry,
        "the phase of another wait",
        node(wait),
        |list, i| {
            let other = list[..i].iter().rev().find_map(|n| match hopper(n) {
                Some(Hopper::Wait { parity, .. }) => Some(*parity),
                _ => None,
            });
            if let (Some(other), Some(statement)) = (other, statement(&mut list[i]))
                && let Inst::Hopper(inst) = &mut statement.inst
                && let Hopper::Wait { parity, .. } = &mut **inst
            {
                *parity = other;
            }
        },
    ));
    let edits: [(&'static str, Is, Edit); 20] = [
        ("registers of a role", registers, |h| {
            if let Hopper::SetRegisters { count, .. } = h {
                *count += 8;
            }
        }),
        ("registers of a role the other way", registers, |h| {
            if let Hopper::SetRegisters { more, .. } = h {
                *more = !*more;
            }
        }),
        ("the mbarrier of another role", pass, |h| {
            if let Hopper::Pass { at, .. } = h {
                *at = at.moved(-8);
            }
        }),
        ("the role that arrives on the order barrier", pass, |h| {
            if let Hopper::Pass { role, .. } = h {
                *role += 1;
            }
        }),
        ("where a stage is read", fetch, |h| {
            if let Hopper::Fetch { at, .. } = h {
                *at = at.moved(8);
            }
        }),
        ("how much of a stage is read", fetch, |h| {
            if let Hopper::Fetch { to, .. } = h {
                to.truncate(1);
            }
        }),
        ("bytes that are expected", expect, |h| {
            if let Hopper::Expect { bytes, .. } = h {
                *bytes += 16;
            }
        }),
        ("arrivals of an mbarrier", init, |h| {
            if let Hopper::BarrierInit { count, .. } = h {
                *count += 1;
            }
        }),
        ("the mbarrier of another stage", wait, |h| {
            if let Hopper::Wait { at, .. } = h {
                *at = at.moved(8);
            }
        }),
        ("the mbarrier of another stage released", arrive, |h| {
            if let Hopper::Arrive { at, .. } = h {
                *at = at.moved(-8);
            }
        }),
        ("bytes expected of another stage", expect, |h| {
            if let Hopper::Expect { at, .. } = h {
                *at = at.moved(8);
            }
        }),
        ("the mbarrier of a copy", copy, |h| {
            if let Hopper::TensorCopy { barrier, .. } = h {
                *barrier = barrier.moved(8);
            }
        }),
        ("where a box lands", copy, |h| {
            if let Hopper::TensorCopy { to, .. } = h {
                *to = to.moved(1024);
            }
        }),
        ("the coordinates of a box", copy, |h| {
            if let Hopper::TensorCopy { coordinates, .. } = h {
                coordinates.swap(0, 1);
            }
        }),
        ("a stride of a descriptor", product, |h| {
            if let Hopper::Wgmma { b, .. } = h {
                b.high += 1;
            }
        }),
        ("the swizzle of a descriptor", product, |h| {
            if let Some(matrix) = first_matrix(h) {
                matrix.high ^= 3 << 30;
            }
        }),
        ("which index of an operand is contiguous", product, |h| {
            let halves = matches!(h, Hopper::Wgmma { atom, .. }
                if matches!(atom.a_type, Scalar::F16 | Scalar::Bf16));
            if let Some(matrix) = first_matrix(h).filter(|_| halves) {
                matrix.k_major = !matrix.k_major;
            }
        }),
        ("the operands of a product exchanged", product, |h| {
            if let Hopper::Wgmma {
                a: Factor::Shared(a),
                b,
                ..
            } = h
            {
                std::mem::swap(&mut a.low, &mut b.low);
            }
        }),
        ("a product that begins sums", product, |h| {
            if let Hopper::Wgmma { begins, .. } = h {
                *begins = !*begins;
            }
        }),
        ("groups of products that may be in flight", complete, |h| {
            if let Hopper::WgmmaWait { pending } = h {
                *pending += 1;
            }
        }),
    ];
    for (name, is, f) in edits {
        all.push(kind(entry, name, node(is), edit(f)));
    }
    all.extend(of_roles(entry));
    all
}

/// The kinds, for a kernel of roles: what a role leaves out another waits for.
fn of_roles(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    if entry.rings.is_empty() {
        return Vec::new();
    }
    vec![
        kind(
            entry,
            "the first and the last role exchanged",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i]
                    && let [first, .., last] = &mut roles[..]
                {
                    std::mem::swap(&mut first.body, &mut last.body);
                }
            },
        ),
        kind(entry, "a role that does nothing", is_roles, |list, i| {
            if let Node::Roles(roles) = &mut list[i] {
                roles[0].body.clear();
            }
        }),
        kind(entry, "a last role that ends early", is_roles, |list, i| {
            if let Node::Roles(roles) = &mut list[i]
                && let Some(last) = roles.last_mut()
            {
                last.body.pop();
            }
        }),
        kind(
            entry,
            "a loop left out",
            |n: &Node| matches!(n, Node::Loop(_)),
            drop_node,
        ),
        kind(
            entry,
            "a branch left out",
            |n: &Node| matches!(n, Node::If(_)),
            drop_node,
        ),
    ]
}
