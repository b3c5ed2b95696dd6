//! Mistakes with named barriers, and with the end of a stage that is held across a loop.

use super::hopper::{Edit, Is, edit, node};
use super::kinds::{Make, drop_node, inst, kind, lists};
use crate::ir::{Entry, Hopper, Inst, Node};

fn hopper(node: &Node) -> Option<&Hopper> {
    match inst(node) {
        Some(Inst::Hopper(inst)) => Some(inst),
        _ => None,
    }
}

fn is_product(node: &Node) -> bool {
    matches!(hopper(node), Some(Hopper::Wgmma { .. }))
}

/// Moves node `i` of a list behind `to`, or ahead of it.
fn shifted(list: &mut Vec<Node>, i: usize, to: Option<usize>) {
    if let Some(to) = to {
        let node = list.remove(i);
        list.insert(to, node);
    }
}

/// What stands in a loop gets a place in front of it, or behind it.
fn out_of_loop(list: &mut Vec<Node>, i: usize, is: fn(&Node) -> bool, behind: bool) {
    let Node::Loop(l) = &mut list[i] else {
        return;
    };
    if let Some(at) = l.body.iter().position(is) {
        let node = l.body.remove(at);
        list.insert(i + usize::from(behind), node);
    }
}

fn is_named(node: &Node) -> bool {
    matches!(hopper(node), Some(Hopper::NamedBarrier { .. }))
}

fn is_arrival(node: &Node) -> bool {
    matches!(
        hopper(node),
        Some(Hopper::Arrive { .. } | Hopper::ArriveAt { .. })
    )
}

fn is_stage_wait(node: &Node) -> bool {
    matches!(hopper(node), Some(Hopper::Wait { .. }))
}

fn is_loop(node: &Node) -> bool {
    matches!(node, Node::Loop(_))
}

/// The kinds, for a kernel that has such instructions.
pub(super) fn all(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let named: Is = |h| matches!(h, Hopper::NamedBarrier { .. });
    let edits: [(&'static str, Edit); 8] = [
        ("the number of a named barrier", |h| {
            if let Hopper::NamedBarrier { id, .. } = h {
                *id += 1;
            }
        }),
        ("the number of the named barrier before", |h| {
            if let Hopper::NamedBarrier { id, .. } = h {
                *id -= 1;
            }
        }),
        ("a named barrier that no other role has", |h| {
            if let Hopper::NamedBarrier { id, .. } = h {
                *id = 15;
            }
        }),
        ("a named barrier of a warp more", |h| {
            if let Hopper::NamedBarrier { threads, .. } = h {
                *threads += 32;
            }
        }),
        ("a named barrier of a warp less", |h| {
            if let Hopper::NamedBarrier { threads, .. } = h {
                *threads -= 32;
            }
        }),
        ("a named barrier of one role", |h| {
            if let Hopper::NamedBarrier { threads, .. } = h {
                *threads /= 2;
            }
        }),
        ("a named barrier of twice the roles", |h| {
            if let Hopper::NamedBarrier { threads, .. } = h {
                *threads *= 2;
            }
        }),
        ("an arrival that waits, or a wait that does not", |h| {
            if let Hopper::NamedBarrier { waits, .. } = h {
                *waits = !*waits;
            }
        }),
    ];
    let edits = edits.map(|(name, f)| kind(entry, name, node(named), edit(f)));
    let mut all = Vec::from(edits);
    all.extend([
        kind(entry, "a named barrier dropped", is_named, drop_node),
        kind(entry, "a named barrier twice", is_named, |list, i| {
            list.insert(i, list[i].clone());
        }),
        kind(entry, "a named barrier one earlier", is_named, |list, i| {
            shifted(list, i, i.checked_sub(1));
        }),
        kind(entry, "a named barrier one later", is_named, |list, i| {
            let next = (i + 1 < list.len()).then_some(i + 1);
            shifted(list, i, next);
        }),
        kind(
            entry,
            "a named barrier ahead of the products before it",
            is_named,
            |list, i| {
                let before = list[..i].iter().rposition(is_named);
                shifted(list, i, before);
            },
        ),
        kind(
            entry,
            "a named barrier behind the products that follow",
            is_named,
            |list, i| {
                let last = list[i + 1..].iter().rposition(is_product);
                shifted(list, i, last.map(|last| i + 1 + last));
            },
        ),
        kind(
            entry,
            "a named barrier behind the next wait for a stage",
            is_named,
            |list, i| {
                let next = list[i + 1..].iter().position(is_stage_wait);
                shifted(list, i, next.map(|next| i + 1 + next));
            },
        ),
        kind(
            entry,
            "a named barrier ahead of the wait for a stage",
            is_named,
            |list, i| {
                let before = list[..i].iter().rposition(is_stage_wait);
                shifted(list, i, before);
            },
        ),
        kind(
            entry,
            "a named barrier for a barrier of the block",
            is_named,
            |list, i| {
                list[i] = Node::Inst(Inst::Barrier.into());
            },
        ),
        kind(
            entry,
            "a named barrier for one of the warp",
            is_named,
            |list, i| {
                list[i] = Node::Inst(Inst::WarpBarrier.into());
            },
        ),
        kind(
            entry,
            "a named barrier ahead of its loop",
            is_loop,
            |list, i| {
                out_of_loop(list, i, is_named, false);
            },
        ),
        kind(
            entry,
            "a named barrier behind its loop",
            is_loop,
            |list, i| {
                out_of_loop(list, i, is_named, true);
            },
        ),
        kind(
            entry,
            "a stage of a loop released ahead of it",
            is_loop,
            |list, i| {
                out_of_loop(list, i, is_arrival, false);
            },
        ),
        kind(
            entry,
            "a stage of a loop released behind it",
            is_loop,
            |list, i| {
                out_of_loop(list, i, is_arrival, true);
            },
        ),
        kind(
            entry,
            "a stage of a loop waited for ahead of it",
            is_loop,
            |list, i| {
                out_of_loop(list, i, is_stage_wait, false);
            },
        ),
    ]);
    all.extend(of_loops(entry));
    all.extend(of_products(entry));
    all.extend(of_roles(entry));
    all
}

fn is_complete(node: &Node) -> bool {
    matches!(hopper(node), Some(Hopper::WgmmaWait { .. }))
}

/// Products in flight, and the stages that they read.
fn of_products(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let before = |is: fn(&Node) -> bool| {
        move |list: &mut Vec<Node>, i: usize| {
            let before = list[..i].iter().rposition(is);
            shifted(list, i, before);
        }
    };
    let behind = |is: fn(&Node) -> bool| {
        move |list: &mut Vec<Node>, i: usize| {
            let next = list[i + 1..].iter().position(is);
            shifted(list, i, next.map(|next| i + 1 + next));
        }
    };
    vec![
        kind(
            entry,
            "a stage released ahead of the wait for its products",
            is_arrival,
            before(is_complete),
        ),
        kind(
            entry,
            "a stage released ahead of the last product",
            is_arrival,
            before(is_product),
        ),
        kind(
            entry,
            "a wait for products behind what releases a stage",
            is_complete,
            behind(is_arrival),
        ),
        kind(
            entry,
            "a wait for products behind the next wait for a stage",
            is_complete,
            behind(is_stage_wait),
        ),
        kind(
            entry,
            "a wait for products at the end",
            is_complete,
            |list, i| shifted(list, i, Some(list.len() - 1)),
        ),
        kind(
            entry,
            "a product behind the wait for it",
            is_product,
            behind(is_complete),
        ),
        kind(
            entry,
            "a product behind what releases a stage",
            is_product,
            behind(is_arrival),
        ),
    ]
}

/// What stands next to a loop and belongs outside of it.
fn of_loops(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    type Moves = fn(&mut Vec<Node>, usize);
    fn at_loop(list: &mut [Node], i: usize, node: Node, first: bool) {
        if let Node::Loop(l) = &mut list[i] {
            let at = if first { 0 } else { l.body.len() };
            l.body.insert(at, node);
        }
    }
    /// The nearest arrival behind a loop, and its place.
    fn behind(list: &[Node], i: usize) -> Option<usize> {
        list[i + 1..].iter().position(is_arrival).map(|n| i + 1 + n)
    }
    fn ahead(list: &[Node], i: usize) -> Option<usize> {
        list[..i].iter().rposition(is_stage_wait)
    }
    let moves: [(&'static str, Moves); 6] = [
        ("a held stage released in each iteration", |list, i| {
            if let Some(at) = behind(list, i) {
                let node = list.remove(at);
                at_loop(list, i, node, false);
            }
        }),
        (
            "a held stage released in each iteration, and behind",
            |list, i| {
                if let Some(at) = behind(list, i) {
                    let again = list[at].clone();
                    at_loop(list, i, again, false);
                }
            },
        ),
        ("a held stage released ahead of the loop", |list, i| {
            if let Some(at) = behind(list, i) {
                let node = list.remove(at);
                list.insert(i, node);
            }
        }),
        ("a held stage released right behind the loop", |list, i| {
            if let Some(at) = behind(list, i) {
                let node = list.remove(at);
                list.insert(i + 1, node);
            }
        }),
        ("a held stage waited for in each iteration", |list, i| {
            if let Some(at) = ahead(list, i) {
                let node = list.remove(at);
                at_loop(list, i - 1, node, true);
            }
        }),
        (
            "a held stage waited for again in each iteration",
            |list, i| {
                if let Some(at) = ahead(list, i) {
                    let again = list[at].clone();
                    at_loop(list, i, again, true);
                }
            },
        ),
    ];
    let moves = moves.map(|(name, moved)| kind(entry, name, is_loop, moved));
    moves.into()
}

/// The named barriers of one role in another.
fn of_roles(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    fn is_roles(node: &Node) -> bool {
        matches!(node, Node::Roles(roles) if roles.len() > 2)
    }
    /// Edits the named barriers of one role.
    fn each(body: &mut Vec<Node>, f: &mut dyn FnMut(&mut u32, &mut bool)) {
        lists(body, &mut |list| {
            for node in list {
                if let Node::Inst(s) = node
                    && let Inst::Hopper(h) = &mut s.inst
                    && let Hopper::NamedBarrier { id, waits, .. } = &mut **h
                {
                    f(id, waits);
                }
            }
        });
    }
    vec![
        kind(
            entry,
            "the first role's order barriers in the second",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i] {
                    let mut ids = Vec::new();
                    each(&mut roles[0].body, &mut |id, _| ids.push(*id));
                    let mut ids = ids.into_iter();
                    each(&mut roles[1].body, &mut |id, _| {
                        *id = ids.next().unwrap_or(*id);
                    });
                }
            },
        ),
        kind(
            entry,
            "two roles that exchange their order barriers",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i] {
                    for role in &mut roles[..2] {
                        each(&mut role.body, &mut |id, _| *id = 3 - (*id).min(2));
                    }
                }
            },
        ),
        kind(
            entry,
            "a role without its named barriers",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i] {
                    lists(&mut roles[0].body, &mut |list| {
                        list.retain(|n| !is_named(n));
                    });
                }
            },
        ),
        kind(
            entry,
            "all named barriers of a role wait",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i] {
                    each(&mut roles[0].body, &mut |_, waits| *waits = true);
                }
            },
        ),
        kind(
            entry,
            "no named barrier of a role waits",
            is_roles,
            |list, i| {
                if let Node::Roles(roles) = &mut list[i] {
                    each(&mut roles[1].body, &mut |_, waits| *waits = false);
                }
            },
        ),
    ]
}
