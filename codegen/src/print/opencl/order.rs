//! The order of loads and products in a loop that multiplies.
//!
//! A GPU of AMD hides the latency of local memory by its wavefronts, and has as many of them as registers allow. So in a loop of products
//! a vector is loaded from local memory where it is first used, not a step ahead as on NVIDIA. Compilers turn that around: clang loads all that
//! it can first, which takes 200 registers a thread. So each group of loads is held between the products before it and its own by `KEEP`: a
//! macro that on AMD's compilers is an empty instruction through which values go, and nothing elsewhere.
//!
//! ```text
//! KEEP(sums of the step before)    loads of this step    KEEP(what was loaded)    products of this step
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::ir::{Address, Class, Inst, Node, Reg, Space, Src, Statement, Type};

/// Products that a loop has at least for its loads to be ordered.
const PRODUCTS: usize = 16;

/// Values that one `KEEP` takes: an assembler statement has at most 30 operands, and each value is two.
const KEPT: usize = 8;

/// Registers of 32 bits of the sums that leave room for four wavefronts a SIMD: half of the 64 that each of them has on GCN.
const SUMS_OF_FOUR: usize = 32;

/// A vector that is loaded when it is used.
pub(super) struct Held {
    /// The vector's name and its declaration with the load.
    pub(super) vector: String,
    pub(super) load: String,
    /// Its registers, and the address.
    pub(super) to: Vec<Reg>,
    pub(super) at: Address,
    pub(super) ty: Type,
    /// Of global memory: it is loaded where it is stored to local memory, behind the products.
    pub(super) global: bool,
}

/// What is held back in the loop that is being printed.
#[derive(Default)]
pub(super) struct Order {
    held: Vec<Held>,
    /// Sums of the products since the last loads.
    sums: Vec<Reg>,
    /// The numbers of values that `KEEP` was used with.
    pub(super) arities: BTreeSet<usize>,
}

impl Order {
    /// Holds a load back.
    pub(super) fn hold(&mut self, held: Held) {
        self.held.push(held);
    }

    /// Notes a product.
    pub(super) fn product(&mut self, inst: &Inst) {
        if let Some(to) = sum(inst)
            && !self.sums.contains(&to)
        {
            self.sums.push(to);
        }
    }

    /// The loads that must come before nodes: those of registers that the first mentions, and with them those of the products of one step that
    /// begin with it. A step ends where a sum is added to again.
    pub(super) fn due(&mut self, nodes: &[Node]) -> Vec<Held> {
        let Some(Node::Inst(first)) = nodes.first() else {
            return self.all();
        };
        if !is_arithmetic(&first.inst) && !is_load(&first.inst) {
            return self.all();
        }
        let mut mentioned = BTreeSet::new();
        mention(&mut mentioned, first);
        let results: BTreeSet<Reg> = first.inst.results().into_iter().collect();
        let is_due = |h: &Held, mentioned: &BTreeSet<Reg>| {
            h.to.iter().any(|r| mentioned.contains(r))
                || (results.contains(&h.at.base()) && !h.global)
        };
        if !self.held.iter().any(|h| is_due(h, &mentioned)) {
            return Vec::new();
        }
        let mut sums = BTreeSet::new();
        for node in nodes {
            let Node::Inst(s) = node else { break };
            let Some(to) = sum(&s.inst) else { break };
            if !sums.insert(to) {
                break;
            }
            mention(&mut mentioned, s);
        }
        let all = std::mem::take(&mut self.held).into_iter();
        let (due, later) = all.partition(|h| is_due(h, &mentioned));
        self.held = later;
        due
    }

    /// Every load that is held back.
    pub(super) fn all(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }

    /// The sums since the last loads.
    pub(super) fn sums(&mut self) -> Vec<Reg> {
        std::mem::take(&mut self.sums)
    }

    /// The lines that keep values where they are.
    pub(super) fn keep(&mut self, names: &[String]) -> Vec<String> {
        let groups = names.chunks(KEPT);
        groups
            .map(|some| {
                self.arities.insert(some.len());
                format!("KEEP{}({});", some.len(), some.join(", "))
            })
            .collect()
    }
}

/// Whether a loop multiplies enough for its loads to be ordered.
pub(super) fn multiplies(body: &[Node]) -> bool {
    let products = body.iter().filter(|node| match node {
        Node::Inst(s) => sum(&s.inst).is_some(),
        _ => false,
    });
    products.count() >= PRODUCTS
}

/// Whether a load may be held back: a vector of floats, without a guard; of global memory only with `global`.
pub(super) fn holds(s: &Statement, global: bool) -> bool {
    let float = |r: &Reg| matches!(r.class, Class::F32 | Class::F64);
    match &s.inst {
        Inst::Load { at, to, .. } => {
            let space = at.space() == Space::Shared || global;
            space && s.guard.is_none() && to.len() > 1 && to.iter().all(float)
        }
        _ => false,
    }
}

/// Whether a loop's sums leave room for four wavefronts a SIMD. Then these hide the latency of global memory too, and a tile that were on its way
/// during the products would only take the registers that the fourth needs.
pub(super) fn four_wavefronts(body: &[Node]) -> bool {
    let sums: BTreeSet<Reg> = body
        .iter()
        .filter_map(|node| match node {
            Node::Inst(s) => sum(&s.inst),
            _ => None,
        })
        .collect();
    let words = |r: &Reg| if r.class == Class::F64 { 2 } else { 1 };
    multiplies(body) && sums.iter().map(words).sum::<usize>() <= SUMS_OF_FOUR
}

/// Adds the registers that a statement reads or writes.
fn mention(all: &mut BTreeSet<Reg>, s: &Statement) {
    all.extend(s.inst.sources());
    all.extend(s.inst.results());
    all.extend(s.guard.map(|g| g.reg));
}

/// The sum that a product is added to.
fn sum(inst: &Inst) -> Option<Reg> {
    match inst {
        Inst::MulAdd {
            ty: Type::F32 | Type::F64,
            to,
            c: Src::Reg(c),
            ..
        } if c == to => Some(*to),
        _ => None,
    }
}

fn is_load(inst: &Inst) -> bool {
    matches!(inst, Inst::Load { .. })
}

/// An instruction that touches no memory and that all threads go past on their own.
fn is_arithmetic(inst: &Inst) -> bool {
    !matches!(
        inst,
        Inst::Store { .. } | Inst::Barrier | Inst::WarpBarrier | Inst::Load { .. }
    )
}

/// What `KEEP` is.
pub(super) fn macros(arities: &BTreeSet<usize>) -> String {
    let mut out = String::new();
    if arities.is_empty() {
        return out;
    }
    let parameters = |n: usize| -> Vec<String> {
        let all = (0..n).map(|i| char::from(b'a' + i as u8).to_string());
        all.collect()
    };
    out.push_str("// The order of loads and products, for compilers that would load everything first; no instruction.\n");
    out.push_str("#if defined(__AMDGCN__)\n");
    for &n in arities {
        let names = parameters(n);
        let operands: Vec<_> = names.iter().map(|p| format!("\"+v\"({p})")).collect();
        let _ = writeln!(
            out,
            "#define KEEP{n}({}) __asm__ volatile(\"\" : {} : : \"memory\")",
            names.join(", "),
            operands.join(", ")
        );
    }
    out.push_str("#else\n");
    for &n in arities {
        let _ = writeln!(out, "#define KEEP{n}({})", parameters(n).join(", "));
    }
    out.push_str("#endif\n");
    out
}
