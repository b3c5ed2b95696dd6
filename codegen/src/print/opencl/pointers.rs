//! Which 64-bit registers hold addresses of global memory, and of memory that is only read.
//!
//! The representation has addresses as 64-bit integers. OpenCL C has pointers, and a compiler that sees pointers knows their address
//! space and that parameters do not alias. So a register is a pointer if every value that it gets is one: a parameter, or a pointer plus a
//! distance in bytes, or one of two pointers.
//!
//! ```text
//! rd2 = A                     pointer          rd5 = rd2 + u64(r7)·8       pointer
//! rd9 = rd2 & 15              integer          rd7 = p1 ? rd2 : rd3        pointer, if rd3 is one
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::index::code::{Op, Operand};
use crate::ir::{Binary, Class, Entry, Inst, Node, Reg, Role, Src, class_of};

/// The registers that hold addresses of global memory.
pub(super) struct Pointers {
    /// Each with whether what it points at may be written.
    all: BTreeMap<Reg, bool>,
}

impl Pointers {
    pub(super) fn of(entry: &Entry) -> Self {
        let mut instructions = Vec::new();
        collect(&entry.nodes, &mut instructions);
        let values: Vec<(Reg, Made)> = instructions
            .iter()
            .flat_map(|inst| inst.results().into_iter().map(|r| (r, made(inst))))
            .filter(|(r, _)| r.class == Class::B64)
            .collect();
        let parameters: BTreeMap<Reg, &str> = instructions
            .iter()
            .filter_map(|inst| match inst {
                Inst::Param { to, name, .. } => Some((*to, name.as_str())),
                _ => None,
            })
            .collect();
        let roots: BTreeMap<Reg, bool> = instructions
            .iter()
            .filter_map(|inst| match inst {
                Inst::ToGlobal { to, from } => {
                    let name = parameters.get(from)?;
                    Some((*to, written(entry, name)))
                }
                _ => None,
            })
            .collect();
        Self {
            all: solve(&roots, &values),
        }
    }

    /// Whether a register is a pointer.
    pub(super) fn contains(&self, reg: Reg) -> bool {
        self.all.contains_key(&reg)
    }

    /// Whether what a pointer points at may be written.
    pub(super) fn writable(&self, reg: Reg) -> bool {
        self.all.get(&reg).copied().unwrap_or(true)
    }
}

/// Whether a kernel writes the buffer of a parameter.
pub(super) fn written(entry: &Entry, parameter: &str) -> bool {
    let mut of = entry.buffers.iter().filter(|b| b.name == parameter);
    let first = of.next();
    first.is_none_or(|b| b.role != Role::Input) || of.any(|b| b.role != Role::Input)
}

/// The instructions of a region, in order.
fn collect<'e>(nodes: &'e [Node], all: &mut Vec<&'e Inst>) {
    for node in nodes {
        match node {
            Node::Inst(s) => all.push(&s.inst),
            Node::If(branch) => {
                collect(&branch.then, all);
                collect(&branch.otherwise, all);
            }
            Node::Loop(iterations) => {
                collect(&iterations.entry, all);
                collect(&iterations.body, all);
            }
            Node::Roles(roles) => roles.iter().for_each(|role| collect(&role.body, all)),
            Node::Comment(_) | Node::Assume(_) | Node::Leave { .. } | Node::Exit { .. } => {}
        }
    }
}

/// How a value comes to be a pointer.
#[derive(Clone)]
enum Made {
    /// If exactly one of these is a pointer.
    One(Vec<Reg>),
    /// If both are.
    Both([Reg; 2]),
    /// It never is.
    Never,
}

impl Made {
    fn holds(&self, pointers: &BTreeSet<Reg>) -> bool {
        match self {
            Made::One(of) => of.iter().filter(|r| pointers.contains(r)).count() == 1,
            Made::Both(of) => of.iter().all(|r| pointers.contains(r)),
            Made::Never => false,
        }
    }

    fn of(&self) -> &[Reg] {
        match self {
            Made::One(of) => of,
            Made::Both(of) => of,
            Made::Never => &[],
        }
    }
}

fn made(inst: &Inst) -> Made {
    let wide = |v: &Operand| match v {
        Operand::Reg(id, ty) if ty.wide() => Some(Reg {
            class: class_of(*ty),
            id: *id,
        }),
        _ => None,
    };
    let reg = |s: &Src| match s {
        Src::Reg(r) => Some(*r),
        _ => None,
    };
    match inst {
        Inst::Index {
            op: Op::Add, args, ..
        } => Made::One(args.iter().filter_map(wide).collect()),
        Inst::Index {
            op: Op::Sub, args, ..
        } => Made::One(args.first().and_then(wide).into_iter().collect()),
        Inst::Index {
            op: Op::Mad | Op::MadWide,
            args,
            ..
        } => Made::One(args.get(2).and_then(wide).into_iter().collect()),
        Inst::Binary {
            op: Binary::Add,
            a,
            b,
            ..
        } => Made::One([reg(a), reg(b)].into_iter().flatten().collect()),
        Inst::Move { from, .. } => Made::One(reg(from).into_iter().collect()),
        Inst::Select { a, b, .. } => match (reg(a), reg(b)) {
            (Some(a), Some(b)) => Made::Both([a, b]),
            _ => Made::Never,
        },
        _ => Made::Never,
    }
}

/// The largest set of registers in which every value is made from members.
fn solve(roots: &BTreeMap<Reg, bool>, values: &[(Reg, Made)]) -> BTreeMap<Reg, bool> {
    // What some value reaches, and then without those that also get another value.
    let mut pointers: BTreeSet<Reg> = roots.keys().copied().collect();
    grow(&mut pointers, values);
    loop {
        let refuted: Vec<Reg> = values
            .iter()
            .filter(|(to, how)| {
                pointers.contains(to) && !roots.contains_key(to) && !how.holds(&pointers)
            })
            .map(|(to, _)| *to)
            .collect();
        if refuted.is_empty() {
            break;
        }
        for r in refuted {
            pointers.remove(&r);
        }
    }
    let mut all: BTreeMap<Reg, bool> = pointers.into_iter().map(|r| (r, false)).collect();
    all.extend(roots.iter().map(|(&r, &w)| (r, w)));
    // Written if any of its values is.
    loop {
        let mut changed = false;
        for (to, how) in values {
            let writes = |r: &Reg| all.get(r).copied().unwrap_or(false);
            let writes = how.of().iter().any(writes);
            if let Some(known) = all.get_mut(to)
                && writes
                && !*known
            {
                (*known, changed) = (true, true);
            }
        }
        if !changed {
            return all;
        }
    }
}

fn grow(pointers: &mut BTreeSet<Reg>, values: &[(Reg, Made)]) {
    loop {
        let before = pointers.len();
        for (to, how) in values {
            if how.of().iter().any(|r| pointers.contains(r)) {
                pointers.insert(*to);
            }
        }
        if pointers.len() == before {
            return;
        }
    }
}
