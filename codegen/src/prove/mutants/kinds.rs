//! The kinds of mistakes.

use crate::index::code::{Op, Operand};
use crate::ir::{Binary, Cmp, Entry, Inst, Logic, LoopEnd, Node, Reg, Src, Statement};

pub(super) type Make = Box<dyn Fn(&mut Entry, usize)>;

/// Every list of nodes of a kernel, inner ones too.
pub(super) fn lists(nodes: &mut Vec<Node>, f: &mut impl FnMut(&mut Vec<Node>)) {
    f(nodes);
    for node in nodes.iter_mut() {
        match node {
            Node::If(b) => {
                lists(&mut b.then, f);
                lists(&mut b.otherwise, f);
            }
            Node::Loop(l) => {
                lists(&mut l.entry, f);
                lists(&mut l.body, f);
            }
            Node::Roles(roles) => {
                for role in roles {
                    lists(&mut role.body, f);
                }
            }
            _ => {}
        }
    }
}

/// The nodes for which `is` holds, by their number: `edit` gets the list and the position.
fn at(
    entry: &mut Entry,
    is: impl Fn(&Node) -> bool,
    number: usize,
    edit: impl FnOnce(&mut Vec<Node>, usize),
) -> usize {
    let mut seen = 0;
    let mut edit = Some(edit);
    lists(&mut entry.nodes, &mut |list| {
        let mut here = None;
        for (i, node) in list.iter().enumerate() {
            if is(node) {
                if seen == number {
                    here = Some(i);
                }
                seen += 1;
            }
        }
        if let (Some(i), Some(edit)) = (here, edit.take_if(|_| here.is_some())) {
            edit(list, i);
        }
    });
    seen
}

fn count(entry: &Entry, is: impl Fn(&Node) -> bool) -> usize {
    at(&mut entry.clone(), is, usize::MAX, |_, _| {})
}

pub(super) fn inst(node: &Node) -> Option<&Inst> {
    match node {
        Node::Inst(s) => Some(&s.inst),
        _ => None,
    }
}

pub(super) fn statement(node: &mut Node) -> Option<&mut Statement> {
    match node {
        Node::Inst(s) => Some(s),
        _ => None,
    }
}

pub(super) fn drop_node(list: &mut Vec<Node>, i: usize) {
    list.remove(i);
}

/// A kind that edits one node.
pub(super) fn kind(
    entry: &Entry,
    name: &'static str,
    is: impl Fn(&Node) -> bool + Clone + 'static,
    edit: impl Fn(&mut Vec<Node>, usize) + Clone + 'static,
) -> (&'static str, usize, Make) {
    let places = count(entry, is.clone());
    let make = move |e: &mut Entry, n: usize| {
        let edit = edit.clone();
        at(e, is.clone(), n, move |list, i| edit(list, i));
    };
    (name, places, Box::new(make))
}

fn is_access(node: &Node) -> bool {
    matches!(
        inst(node),
        Some(
            Inst::Load { .. }
                | Inst::Store { .. }
                | Inst::LoadMatrix { .. }
                | Inst::StoreMatrix { .. }
                | Inst::CopyAsync { .. }
        )
    )
}

fn is_barrier(node: &Node) -> bool {
    matches!(inst(node), Some(Inst::Barrier | Inst::WarpBarrier))
}

fn is_index(ops: &'static [Op]) -> impl Fn(&Node) -> bool + Clone {
    move |node| {
        matches!(inst(node), Some(Inst::Index { op, args, .. })
            if ops.contains(op) && args.iter().any(|a| matches!(a, Operand::Imm(_))))
    }
}

fn literals(f: impl Fn(i64) -> i64 + Clone + 'static) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        if let Some(Statement {
            inst: Inst::Index { args, .. },
            ..
        }) = statement(&mut list[i])
            && let Some(Operand::Imm(k)) = args.iter_mut().find(|a| matches!(a, Operand::Imm(_)))
        {
            *k = f(*k);
        }
    }
}

fn is_integer_compare(node: &Node) -> bool {
    matches!(inst(node), Some(Inst::Compare { ty, .. }) if ty.bytes() >= 4
        && !matches!(ty, crate::ir::Type::F32 | crate::ir::Type::F64))
}

fn compare(f: impl Fn(&mut Inst) + Clone + 'static) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        if let Some(s) = statement(&mut list[i]) {
            f(&mut s.inst);
        }
    }
}

fn moved(by: i64) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    move |list, i| {
        if let Some(s) = statement(&mut list[i]) {
            match &mut s.inst {
                Inst::Load { at, .. }
                | Inst::Store { at, .. }
                | Inst::LoadMatrix { at, .. }
                | Inst::StoreMatrix { at, .. } => {
                    *at = at.moved(by);
                }
                Inst::CopyAsync { to, .. } => *to = to.moved(by),
                _ => {}
            }
        }
    }
}

/// The smaller or larger of two integers.
fn is_clamp(node: &Node) -> bool {
    use crate::ir::Type::{F32, F64};
    matches!(inst(node), Some(Inst::Binary { op: Binary::Min | Binary::Max, ty, .. })
        if ty.bytes() >= 4 && !matches!(ty, F32 | F64))
}

fn clamped(by: i64) -> impl Fn(&mut Vec<Node>, usize) + Clone {
    compare(move |inst| {
        if let Inst::Binary { b: Src::Int(k), .. } = inst {
            *k += by;
        }
    })
}

/// A predicate on which threads differ.
fn some_threads(entry: &Entry) -> Option<Reg> {
    fn find(nodes: &[Node]) -> Option<Reg> {
        nodes.iter().find_map(|node| match inst(node) {
            Some(Inst::Compare { to, .. }) => Some(*to),
            _ => None,
        })
    }
    find(&entry.nodes)
}

/// Every kind, with the number of places where it can be made.
pub(super) fn all(entry: &Entry) -> Vec<(&'static str, usize, Make)> {
    let is_barrier_only = |n: &Node| matches!(inst(n), Some(Inst::Barrier));
    let is_wait = |n: &Node| matches!(inst(n), Some(Inst::WaitGroup { .. }));
    let is_commit = |n: &Node| matches!(inst(n), Some(Inst::CommitGroup));
    let is_guarded = |n: &Node| matches!(n, Node::Inst(s) if s.guard.is_some());
    let is_store = |n: &Node| matches!(inst(n), Some(Inst::Store { .. }));
    let is_vector = |n: &Node| {
        matches!(inst(n), Some(Inst::Load { to, .. }) if to.len() > 1)
            || matches!(inst(n), Some(Inst::Store { from, .. }) if from.len() > 1)
    };
    let drop = drop_node;
    let mut all = vec![
        kind(entry, "a barrier dropped", is_barrier, drop),
        kind(entry, "a barrier earlier", is_barrier, |list, i| {
            if i > 0 {
                list.swap(i - 1, i);
            }
        }),
        kind(entry, "a barrier later", is_barrier, |list, i| {
            if i + 1 < list.len() {
                list.swap(i, i + 1);
            }
        }),
        kind(
            entry,
            "a barrier of the block for one of the warp",
            is_barrier_only,
            |list, i| {
                list[i] = Node::Inst(Inst::WarpBarrier.into());
            },
        ),
        kind(entry, "a wait for one group less", is_wait, |list, i| {
            if let Some(Statement {
                inst: Inst::WaitGroup { pending },
                ..
            }) = statement(&mut list[i])
            {
                *pending += 1;
            }
        }),
        kind(entry, "a wait dropped", is_wait, drop),
        kind(entry, "a group that is not closed", is_commit, drop),
        kind(
            entry,
            "an address moved by one element",
            is_access,
            moved(4),
        ),
        kind(entry, "an address moved by 16 bytes", is_access, moved(16)),
        kind(entry, "an address moved back", is_access, moved(-16)),
        kind(entry, "an address in another stage", is_access, moved(8192)),
        kind(
            entry,
            "an access without its guard",
            is_guarded,
            |list, i| {
                if let Some(s) = statement(&mut list[i]) {
                    s.guard = None;
                }
            },
        ),
        kind(entry, "a guard negated", is_guarded, |list, i| {
            if let Some(s) = statement(&mut list[i]) {
                s.guard = s.guard.map(crate::ir::Pred::not);
            }
        }),
        kind(entry, "an access widened", is_vector, |list, i| {
            if let Some(s) = statement(&mut list[i]) {
                let twice = |regs: &mut Vec<Reg>| {
                    let n = if regs.len() == 2 { 4 } else { 2 };
                    regs.truncate(n.min(regs.len()));
                    while regs.len() < n {
                        regs.push(regs[0]);
                    }
                };
                match &mut s.inst {
                    Inst::Load { to, .. } => twice(to),
                    Inst::Store { from, .. } => twice(from),
                    _ => {}
                }
            }
        }),
        kind(entry, "a store repeated elsewhere", is_store, |list, i| {
            let mut again = list[i].clone();
            if let Some(Statement {
                inst: Inst::Store { at, .. },
                ..
            }) = statement(&mut again)
            {
                *at = at.moved(32);
            }
            list.insert(i + 1, again);
        }),
        kind(entry, "a store dropped", is_store, drop),
        kind(
            entry,
            "a copy dropped",
            |n: &Node| matches!(inst(n), Some(Inst::CopyAsync { .. })),
            drop,
        ),
        kind(
            entry,
            "a shift by one more",
            is_index(&[Op::Shl, Op::Shr]),
            literals(|k| k + 1),
        ),
        kind(
            entry,
            "a shift by one less",
            is_index(&[Op::Shl, Op::Shr]),
            literals(|k| (k - 1).max(0)),
        ),
        kind(
            entry,
            "a mask without its lowest bit",
            is_index(&[Op::And]),
            literals(|k| k & (k - 1)),
        ),
        kind(
            entry,
            "a mask without its highest bit",
            is_index(&[Op::And]),
            literals(|k| if k > 0 { k ^ (1 << k.ilog2()) } else { k }),
        ),
        kind(
            entry,
            "a swizzle bit",
            is_index(&[Op::Xor]),
            literals(|k| k ^ (k & k.wrapping_neg())),
        ),
        kind(
            entry,
            "a constant added",
            is_index(&[Op::Add, Op::Mad, Op::MadWide]),
            literals(|k| k + 1),
        ),
        kind(
            entry,
            "an exclusive or for an addition",
            |n: &Node| matches!(inst(n), Some(Inst::Index { op: Op::Xor, .. })),
            |list, i| {
                if let Some(Statement {
                    inst: Inst::Index { op, .. },
                    ..
                }) = statement(&mut list[i])
                {
                    *op = Op::Add;
                }
            },
        ),
        kind(
            entry,
            "a bound one further",
            is_integer_compare,
            compare(|inst| {
                if let Inst::Compare { b: Src::Int(k), .. } = inst {
                    *k += 1;
                }
            }),
        ),
        kind(
            entry,
            "a bound one nearer",
            is_integer_compare,
            compare(|inst| {
                if let Inst::Compare { b: Src::Int(k), .. } = inst {
                    *k -= 1;
                }
            }),
        ),
        kind(
            entry,
            "a comparison that takes the bound in",
            is_integer_compare,
            compare(|inst| {
                if let Inst::Compare { cmp, .. } = inst {
                    *cmp = match *cmp {
                        Cmp::Lt => Cmp::Le,
                        Cmp::Le => Cmp::Lt,
                        Cmp::Gt => Cmp::Ge,
                        Cmp::Ge => Cmp::Gt,
                        Cmp::Eq => Cmp::Ne,
                        other => other,
                    };
                }
            }),
        ),
        kind(
            entry,
            "a bound of one mode forgotten",
            is_integer_compare,
            compare(|inst| {
                if let Inst::Compare { and, .. } = inst {
                    *and = None;
                }
            }),
        ),
        kind(
            entry,
            "one condition for both",
            |n: &Node| matches!(inst(n), Some(Inst::Logic { .. })),
            compare(|inst| {
                if let Inst::Logic { op, .. } = inst {
                    *op = match *op {
                        Logic::And => Logic::Or,
                        _ => Logic::And,
                    };
                }
            }),
        ),
        kind(
            entry,
            "a choice the other way",
            // Of sizes and coordinates; what is computed with data is not what is proven.
            |n: &Node| {
                matches!(inst(n), Some(Inst::Select { ty, .. })
                    if !matches!(ty, crate::ir::Type::F32 | crate::ir::Type::F64))
            },
            compare(|inst| {
                if let Inst::Select { a, b, .. } = inst {
                    std::mem::swap(a, b);
                }
            }),
        ),
        kind(
            entry,
            "a choice left out",
            // Of sizes and coordinates, as above.
            |n: &Node| matches!(inst(n), Some(Inst::Select { ty, .. }) if ty.bytes() >= 4 && !matches!(ty, crate::ir::Type::F32 | crate::ir::Type::F64)),
            |list, i| {
                if let Some(s) = statement(&mut list[i])
                    && let Inst::Select { ty, to, a, .. } = s.inst
                {
                    s.inst = Inst::Move { ty, to, from: a };
                }
            },
        ),
        kind(
            entry,
            "a branch the other way",
            |n: &Node| matches!(n, Node::If(_)),
            |list, i| {
                if let Node::If(b) = &mut list[i] {
                    b.when = b.when.not();
                }
            },
        ),
        kind(
            entry,
            "a branch always taken",
            |n: &Node| matches!(n, Node::If(_)),
            |list, i| {
                if let Node::If(b) = list.remove(i) {
                    for (j, node) in b.then.into_iter().enumerate() {
                        list.insert(i + j, node);
                    }
                }
            },
        ),
        kind(
            entry,
            "an exit dropped",
            |n: &Node| matches!(n, Node::Exit { .. } | Node::Leave { .. }),
            drop,
        ),
        kind(
            entry,
            "a loop with a longer step",
            |n: &Node| matches!(n, Node::Loop(_)),
            |list, i| {
                if let Node::Loop(l) = &mut list[i] {
                    l.step *= 2;
                }
            },
        ),
        kind(
            entry,
            "a loop that starts later",
            |n: &Node| matches!(n, Node::Loop(_)),
            |list, i| {
                if let Node::Loop(l) = &mut list[i]
                    && let Src::Int(k) = &mut l.start
                {
                    *k += l.step;
                }
            },
        ),
        kind(
            entry,
            "a loop with another limit",
            |n: &Node| matches!(n, Node::Loop(l) if matches!(l.end, LoopEnd::Below { .. })),
            |list, i| {
                if let Node::Loop(l) = &mut list[i]
                    && let LoopEnd::Below { limit, .. } = &mut l.end
                {
                    *limit = Src::Reg(l.counter);
                }
            },
        ),
        kind(
            entry,
            "a bound moved by a warp",
            is_integer_compare,
            compare(|inst| {
                if let Inst::Compare { b: Src::Int(k), .. } = inst {
                    *k += if *k > 32 && *k % 32 == 0 { -32 } else { 32 };
                }
            }),
        ),
        kind(entry, "a clamp left out", is_clamp, |list, i| {
            if let Some(s) = statement(&mut list[i])
                && let Inst::Binary { ty, to, a, .. } = s.inst
            {
                s.inst = Inst::Move { ty, to, from: a };
            }
        }),
        kind(
            entry,
            "the other end of a clamp",
            is_clamp,
            compare(|inst| {
                if let Inst::Binary { op, .. } = inst {
                    *op = if *op == Binary::Min {
                        Binary::Max
                    } else {
                        Binary::Min
                    };
                }
            }),
        ),
        kind(entry, "a clamp one further", is_clamp, clamped(1)),
        kind(entry, "a clamp one nearer", is_clamp, clamped(-1)),
        kind(
            entry,
            "a copy that reads all of its bytes",
            |n: &Node| matches!(inst(n), Some(Inst::CopyAsync { size: Some(_), .. })),
            compare(|inst| {
                if let Inst::CopyAsync { size, .. } = inst {
                    *size = None;
                }
            }),
        ),
    ];
    all.extend(super::hopper::all(entry));
    all.extend(super::cluster::all(entry));
    all.extend(super::bulk::all(entry));
    all.extend(super::named::all(entry));
    if let Some(p) = some_threads(entry) {
        all.push(kind(
            entry,
            "a barrier for some threads",
            is_barrier,
            move |list, i| {
                let barrier = list.remove(i);
                list.insert(
                    i,
                    Node::If(Box::new(crate::ir::If {
                        when: p.into(),
                        uniform: false,
                        then: vec![barrier],
                        otherwise: Vec::new(),
                        names: ["else", "end"],
                        meant: p.into(),
                    })),
                );
            },
        ));
    }
    all
}
