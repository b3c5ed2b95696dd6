//! Data that threads have alike: what all of them load from one address of shared memory, what butterflies of whole warps make, and what is computed of that.
//!
//! ```text
//! y = shuffle.bfly(x, m)      lane l has what lane l ^ m has of x
//! z = x + y                   alike in lanes l and l ^ m, and wherever x is; with the five masks of a warp, in all lanes
//! load s[0]                   alike in all threads: what is written meanwhile would be a race
//! ```
//!
//! Each execution of an instruction makes a value of its own, which has a number. In a loop it is that of one iteration.

use crate::ir::{Binary, Inst, Reg, Shuffle, Space, Src};
use crate::prove::algebra::value::Lin;
use crate::prove::walk::execute::{Datum, Machine, Val};

/// Which threads have the same of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Same {
    /// With bit m, lanes l and l ^ m of each warp. Such masks are closed under exclusive or.
    masks: u32,
    /// All threads of the block.
    block: bool,
}

impl Same {
    const NONE: Same = Same {
        masks: 1,
        block: false,
    };
    const ALL: Same = Same {
        masks: u32::MAX,
        block: true,
    };

    /// Of what is computed of two values.
    fn and(self, other: Self) -> Self {
        Self {
            masks: self.masks & other.masks,
            block: self.block && other.block,
        }
    }

    /// Lanes `l` and `l ^ m` have the same, too.
    fn across(self, m: u32) -> Self {
        let more = (0..32).filter(|s| self.masks >> s & 1 == 1);
        let moved = more.fold(0, |all, s| all | 1 << (s ^ m));
        Self {
            masks: self.masks | moved,
            ..self
        }
    }
}

/// A value that an instruction has made of data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::prove) struct Made {
    number: u32,
    same: Same,
    /// The value, by its number, of which each lane has another lane's, and the mask of the butterfly.
    crossed: Option<(u32, u32)>,
}

impl Datum {
    /// Whether all threads of the block have it alike.
    pub(in crate::prove) fn is_uniform(&self) -> bool {
        match self {
            Datum::Param(_) | Datum::Literal(_) => true,
            Datum::Made(made) => made.same.block,
        }
    }

    /// Whether no launch changes it.
    pub(in crate::prove) fn lasts(&self) -> bool {
        !matches!(self, Datum::Made(_))
    }
}

impl Machine<'_> {
    /// A value of its own.
    fn new_datum(&mut self, mut same: Same, crossed: Option<(u32, u32)>) -> Val {
        // One warp is the block.
        if same.masks == u32::MAX && self.threads <= 32 {
            same.block = true;
        }
        self.data += 1;
        Val::Data(Some(Datum::Made(Made {
            number: self.data,
            same,
            crossed,
        })))
    }

    fn same_of(&self, reg: Reg) -> Same {
        let of_block = |block| if block { Same::ALL } else { Same::NONE };
        match self.registers.get(&reg) {
            Some(Val::Int(x)) => of_block(self.symbols.is_uniform(x)),
            Some(Val::Pred(f)) => of_block(f.is_uniform(&self.symbols)),
            Some(Val::Data(Some(Datum::Made(made)))) => made.same,
            Some(Val::Data(Some(_))) => Same::ALL,
            Some(Val::Data(None) | Val::Where(..)) | None => Same::NONE,
        }
    }

    fn made_of(&self, src: Src) -> Option<Made> {
        match src {
            Src::Reg(reg) => match self.registers.get(&reg) {
                Some(Val::Data(Some(Datum::Made(made)))) => Some(*made),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value that an instruction computes from data; none for an instruction that reads more than its operands.
    pub(in crate::prove) fn made_by(&mut self, inst: &Inst) -> Option<Val> {
        let mut same = match inst {
            Inst::Index { .. }
            | Inst::Select { .. }
            | Inst::Binary { .. }
            | Inst::MulAdd { .. }
            | Inst::Unary { .. }
            | Inst::Convert { .. }
            | Inst::Round { .. }
            | Inst::ConvertPair { .. }
            | Inst::Pack { .. }
            | Inst::Unpack { .. }
            | Inst::Permute { .. } => {
                let sources = inst.sources().into_iter();
                sources.fold(Same::ALL, |same, reg| same.and(self.same_of(reg)))
            }
            Inst::Shuffle {
                mode, from, lane, ..
            } => {
                let same = self.same_of(*from);
                return Some(match (mode, lane) {
                    (Shuffle::Butterfly, Src::Int(m @ 0..32)) => {
                        let of = self.made_of(Src::Reg(*from));
                        self.new_datum(same, of.map(|of| (of.number, *m as u32)))
                    }
                    (Shuffle::Index, Src::Int(0..32)) => {
                        let masks = u32::MAX;
                        self.new_datum(Same { masks, ..same }, None)
                    }
                    _ if same.block => self.new_datum(Same::ALL, None),
                    _ => return None,
                });
            }
            _ => return None,
        };
        // x op what the other lane has of x: that lane computes the same with its operands the other way round.
        if let Inst::Binary { op, a, b, .. } = inst
            && commutes(*op)
            && let (Some(x), Some(y)) = (self.made_of(*a), self.made_of(*b))
        {
            for (x, y) in [(x, y), (y, x)] {
                if let Some((of, m)) = y.crossed
                    && of == x.number
                {
                    same = same.across(m);
                }
            }
        }
        Some(self.new_datum(same, None))
    }

    /// What a load from shared memory gives: if all threads load from one address, they all have the same.
    pub(in crate::prove) fn loaded(&mut self, space: Space, address: &Lin, guarded: bool) -> Val {
        let alone = self.ranks.is_none() && !guarded && !self.left;
        let all = alone && self.divergent == 0 && self.facts.active.is_full();
        let same = if all && space == Space::Shared && self.symbols.is_uniform(address) {
            Same::ALL
        } else {
            Same::NONE
        };
        self.new_datum(same, None)
    }
}

/// Whether the bits of a result do not depend on the order of the operands. A NaN that an instruction gives is always the same one.
fn commutes(op: Binary) -> bool {
    match op {
        Binary::Add
        | Binary::Mul
        | Binary::MulHi
        | Binary::Min
        | Binary::Max
        | Binary::MinNan
        | Binary::MaxNan
        | Binary::And
        | Binary::Or
        | Binary::Xor => true,
        Binary::Sub | Binary::Div | Binary::Rem | Binary::Shl | Binary::Shr => false,
    }
}
