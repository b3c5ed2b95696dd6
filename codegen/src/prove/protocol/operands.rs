//! Operands of `mma.sync` and `mma.sp`: as many registers as the instruction takes, and metadata where, and only where, A is sparse.
//!
//! ```text
//! mma.sp…m16n8k16 d, a, b, c, %r7, 0x3     A has half of its elements; the words of lanes 3, 7, 11, … say which: selectors 0 to 3
//! mma.sp…m16n8k32 d, a, b, c, %r7, 0x3     lanes 2·selector and 2·selector + 1: selectors 0 and 1
//! ```
//!
//! What metadata says is data, as the elements are: that it is of the atom whose elements are multiplied is not followed. `Kernel::gemm` takes register and
//! selector from the layout of the metadata's fragment.

use layout_core::atoms::{MmaAtom, Scalar};

use crate::ir::{Class, Entry, Inst};
use crate::prove::ProofError;
use crate::prove::protocol::meant::each;

/// Fields of 4 bits in the registers of a warp.
const FIELDS: i64 = 256;

pub(in crate::prove) fn kept(entry: &Entry) -> Result<(), ProofError> {
    let mut wrong = None;
    each(&entry.nodes, &mut |inst| {
        if let Inst::Mma {
            atom,
            d,
            a,
            b,
            c,
            metadata,
        } = inst
        {
            let counts = [d, a, b, c].map(|all| all.len() as i64);
            let [a, b, c] = atom.registers();
            let selectors = selectors(atom);
            let given = metadata.map(|m| i64::from(m.selector));
            let is_word = metadata.is_none_or(|m| m.register.class == Class::B32);
            let fits = match (selectors, given) {
                (None, None) => true,
                (Some(all), Some(selector)) => selector < all && is_word,
                _ => false,
            };
            if counts != [c, a, b, c] || !fits {
                wrong = Some(atom.name);
            }
        }
    });
    match wrong {
        Some(name) => Err(ProofError::Malformed {
            what: format!(
                "{name} has operands that it does not take: registers of D, A, B and C by its layouts, and of a sparse A a word of metadata with one of its selectors"
            ),
        }),
        None => Ok(()),
    }
}

/// Selectors of a sparse instruction: its fields are those of a part of the lanes.
fn selectors(atom: &MmaAtom) -> Option<i64> {
    if atom.a.size() >= atom.m * atom.k {
        return None;
    }
    let chunk = match (atom.slot_bits[0], atom.a_type) {
        (32, Scalar::Tf32) => 2,
        (4, _) => 8,
        _ => 4,
    };
    Some(FIELDS * chunk / (atom.m * atom.k))
}

#[cfg(test)]
mod tests {
    use layout_core::{Layout, TiledMma, atoms};

    use super::*;
    use crate::Arch;
    use crate::ir::{Axis, Element, Kernel, Metadata, Node, Reg};
    use crate::prove::prove;

    /// c = a·bᵀ, of 64 columns and one warp a tile.
    fn product() -> Result<Kernel, Box<dyn std::error::Error>> {
        let mut k = Kernel::new("k", 32);
        let one = Layout::parse("(1,1,1):(0,0,0)")?;
        let mma = TiledMma::sparse(atoms::MMA_SP_ORDERED_M16N8K32_F16, &one, [16, 8, 64])?;
        let (m, n) = (k.size("m", 1 << 15), k.size("n", 1 << 15));
        let [half, whole, rows] = [32, 64, 1].map(|n| k.constant(n));
        let a = k.input("a", Element::F16, &[m, half]);
        let b = k.input("b", Element::F16, &[n, whole]);
        let words = k.input("words", Element::S32, &[rows, half]);
        let c = k.output("c", Element::F32, &[m, n]);
        let (i, j, zero) = (
            k.tiles(Axis::X, m, 16)?,
            k.tiles(Axis::Y, n, 8)?,
            k.constant(0),
        );
        let lane = k.lane();
        let a = a
            .tile(&mut k, &[16, 32], &[i, zero])?
            .partition_a(&mut k, &mma, lane)?;
        let b = b
            .tile(&mut k, &[8, 64], &[j, zero])?
            .partition_b(&mut k, &mma, lane)?;
        let words = words.tile(&mut k, &[1, 32], &[zero, zero])?;
        let words = words.partition_metadata(&mut k, &mma, lane)?;
        let (a, b, words) = (
            k.load_fragment(&a)?,
            k.load_fragment(&b)?,
            k.load_fragment(&words)?,
        );
        let sums = k.accumulators(&mma, [16, 8], lane)?;
        k.gemm(&mma, (&a, &words), &b, &sums)?;
        let c = c
            .tile(&mut k, &[16, 8], &[i, j])?
            .partition_c(&mut k, &mma, lane)?;
        k.store_fragment(&c, &sums)?;
        Ok(k)
    }

    #[test]
    fn wrong_operands_are_refused() {
        let kernel = product()
            .expect("a kernel")
            .build(Arch(80))
            .expect("proven");
        let refused = |change: &dyn Fn(&mut Inst)| {
            let mut entry = kernel.entry().clone();
            let node = entry.nodes.iter_mut().find_map(|node| match node {
                Node::Inst(s) if matches!(s.inst, Inst::Mma { .. }) => Some(s),
                _ => None,
            });
            change(&mut node.expect("a product").inst);
            let code = prove(&entry).map_err(|e| e.code());
            code.expect_err("a wrong operand")
        };
        let metadata = |f: &dyn Fn(&mut Option<Metadata>)| {
            refused(&|inst| {
                if let Inst::Mma { metadata, .. } = inst {
                    f(metadata);
                }
            })
        };
        assert_eq!(metadata(&|m| *m = None), "malformed");
        // This instruction has selectors 0 and 1.
        assert_eq!(
            metadata(&|m| m.as_mut().expect("it").selector = 2),
            "malformed"
        );
        let word = |m: &mut Option<Metadata>, class, id| {
            m.as_mut().expect("it").register = Reg { class, id };
        };
        assert_eq!(metadata(&|m| word(m, Class::F32, 0)), "malformed");
        // A register that nothing sets.
        assert_eq!(metadata(&|m| word(m, Class::B32, 9999)), "register");
        let fewer = refused(&|inst| {
            if let Inst::Mma { a, .. } = inst {
                a.pop();
            }
        });
        assert_eq!(fewer, "malformed");
        let dense = refused(&|inst| {
            if let Inst::Mma { atom, .. } = inst {
                *atom = atoms::MMA_M16N8K16_F16.into();
            }
        });
        assert_eq!(dense, "malformed");
    }
}
