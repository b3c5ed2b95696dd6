//! What a kernel's main loop is made of: products, loads, stores, and everything else.
//!
//! A multiply-add or a load that is issued does the product's work; every other instruction takes an issue slot from them. Published kernels that
//! multiply on FMA units are compared by this share: the DGEMM of the HD 7970 walk-through spends 57 % of its loop on multiply-adds and loads, maxas 98.5 % on
//! multiply-adds alone. The counts are those of the representation that is printed, one for each instruction of the text.
//!
//!
//! Of a branch in the loop the shorter side that is not empty counts: edges, element by element, are longer than what steady iterations take.

use std::fmt;
use std::ops::AddAssign;

use crate::ir::{BulkStore, Entry, Hopper, Inst, LoopEnd, Node, Remote, Type};

/// Instructions of one iteration of a loop, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mix {
    /// Multiply-adds of floats, or instructions of tensor cores, which multiply far more each.
    pub products: u32,
    /// Loads of global and shared memory, into registers or (`cp.async`) into shared memory.
    pub loads: u32,
    /// Stores.
    pub stores: u32,
    /// Everything else: barriers, addresses, counters, comparisons, branches, conversions.
    pub others: u32,
}

impl AddAssign for Mix {
    fn add_assign(&mut self, other: Self) {
        self.products += other.products;
        self.loads += other.loads;
        self.stores += other.stores;
        self.others += other.others;
    }
}

impl Mix {
    /// The main loop of a kernel: the one that multiplies most in an iteration, the first of equals. None if no loop multiplies.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::mix::Mix;
    /// use layout_codegen::value::F32;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("powers", 32);
    /// let (n, x) = (k.size("n", 100), k.variable(F32::from(1.0)));
    /// k.for_loop("i", 0, 1, n, |k, _| {
    ///     let next = x.get(k).fma(k, 2.0, 1.0);
    ///     x.set(k, next);
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// // The variable is read and set; the counter, its comparison and the branch.
    /// let mix = Mix::of(k.build(Arch(80))?.entry());
    /// assert_eq!(mix, Some(Mix { products: 1, others: 5, ..Mix::default() }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(entry: &Entry) -> Option<Self> {
        let mut loops = Vec::new();
        count(&entry.nodes, &mut loops);
        let multiplies = loops.into_iter().filter(|mix| mix.products > 0);
        // Of equals `max_by_key` takes the last.
        multiplies.rev().max_by_key(|mix| mix.products)
    }

    /// All instructions.
    ///
    /// ```
    /// use layout_codegen::mix::Mix;
    ///
    /// let mix = Mix { products: 16, loads: 4, stores: 1, others: 3 };
    /// assert_eq!(mix.all(), 24);
    /// ```
    pub fn all(self) -> u32 {
        self.products + self.loads + self.stores + self.others
    }

    /// The share of products and loads, in 0..=1.
    ///
    /// ```
    /// use layout_codegen::mix::Mix;
    ///
    /// let mix = Mix { products: 16, loads: 4, stores: 1, others: 4 };
    /// assert_eq!(format!("{:.2}", mix.useful()), "0.80");
    /// ```
    pub fn useful(self) -> f64 {
        f64::from(self.products + self.loads) / f64::from(self.all().max(1))
    }

    /// The share of products, in 0..=1.
    ///
    /// ```
    /// use layout_codegen::mix::Mix;
    ///
    /// let mix = Mix { products: 16, loads: 4, stores: 0, others: 0 };
    /// assert_eq!(format!("{:.2}", mix.multiplying()), "0.80");
    /// ```
    pub fn multiplying(self) -> f64 {
        f64::from(self.products) / f64::from(self.all().max(1))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} products, {} loads, {} stores, {} others: {:.1} % products and loads",
            self.products,
            self.loads,
            self.stores,
            self.others,
            100.0 * self.useful()
        )
    }
}

/// The instructions of a region; those of loops in it are added to `loops` and not to the region.
fn count(nodes: &[Node], loops: &mut Vec<Mix>) -> Mix {
    let mut mix = Mix::default();
    for node in nodes {
        match node {
            Node::Inst(statement) => *kind(&statement.inst, &mut mix) += 1,
            Node::Comment(_) | Node::Assume(_) => {}
            Node::If(branch) => {
                let then = count(&branch.then, loops);
                let otherwise = count(&branch.otherwise, loops);
                mix.others += 1;
                if branch.otherwise.is_empty() {
                    mix += then;
                } else if then.all() < otherwise.all() {
                    mix += then;
                    // Over the other side.
                    mix.others += 1;
                } else {
                    mix += otherwise;
                }
            }
            Node::Loop(iterations) => {
                mix += count(&iterations.entry, loops);
                let before = loops.len();
                let mut body = count(&iterations.body, loops);
                // A loop over tiles, around the one over k.
                if loops[before..].iter().any(|inner| inner.products > 0) {
                    continue;
                }
                body.others += match iterations.end {
                    LoopEnd::Below { .. } => 3,
                    LoopEnd::While { .. } | LoopEnd::Left => 2,
                };
                loops.push(body);
            }
            Node::Roles(roles) => {
                for role in roles {
                    mix += count(&role.body, loops);
                }
            }
            Node::Leave { .. } | Node::Exit { .. } => mix.others += 1,
        }
    }
    mix
}

/// Where an instruction is counted.
fn kind<'m>(inst: &Inst, mix: &'m mut Mix) -> &'m mut u32 {
    let float = |ty: Type| {
        matches!(
            ty,
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64
        )
    };
    match inst {
        Inst::Mma { .. } => &mut mix.products,
        Inst::Hopper(inst) => match **inst {
            Hopper::Wgmma { .. } => &mut mix.products,
            Hopper::TensorCopy { .. }
            | Hopper::Fetch { .. }
            | Hopper::Remote(Remote { stores: false, .. }) => &mut mix.loads,
            Hopper::Remote(_) | Hopper::Bulk(BulkStore::Box { .. }) => &mut mix.stores,
            _ => &mut mix.others,
        },
        Inst::MulAdd { ty, .. } if float(*ty) => &mut mix.products,
        Inst::Load { .. } | Inst::LoadMatrix { .. } | Inst::CopyAsync { .. } => &mut mix.loads,
        Inst::Store { .. } | Inst::StoreMatrix { .. } => &mut mix.stores,
        _ => &mut mix.others,
    }
}
