//! Products of fragments, by the matrix instructions.

use std::sync::Arc;

use layout_core::atoms::Scalar;
use layout_core::{Operand, TiledMma};

use super::warpgroup::{Multiplicand, is_of_warpgroup};
use super::{Fragment, registers_of};
use crate::index::Expr;
use crate::ir::{Element, Kernel};
use crate::view::ViewError;
use crate::view::tiled::operand_tv;

/// The element that an operand's type is in memory; none for types without one.
pub(super) fn element_of(scalar: Scalar) -> Option<Element> {
    Some(match scalar {
        Scalar::F16 => Element::F16,
        Scalar::Bf16 => Element::Bf16,
        Scalar::F32 | Scalar::Tf32 => Element::F32,
        Scalar::F64 => Element::F64,
        Scalar::S8 => Element::S8,
        Scalar::S32 => Element::S32,
        Scalar::E4m3 => Element::E4m3,
        Scalar::E5m2 => Element::E5m2,
        _ => return None,
    })
}

impl Kernel {
    /// Accumulators of a tiled mma for a tile of C of `shape`, set to 0.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,2,1):(1,2,0)")?)?;
    /// let thread = k.thread();
    /// let sums = k.accumulators(&mma, [64, 64], thread)?;
    /// assert_eq!(sums.values(), 64 * 64 / 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Operand`] for sums of a type without a place in memory, [`ViewError::Layout`] for a tile that the mma's does not divide.
    #[track_caller]
    pub fn accumulators(
        &mut self,
        mma: &TiledMma,
        shape: [i64; 2],
        thread: Expr,
    ) -> Result<Fragment, ViewError> {
        self.at_line();
        let atom = mma.atom();
        let element = element_of(atom.c_type).ok_or_else(|| ViewError::Operand {
            instruction: atom.name,
            operand: 'C',
            given: "no element of memory".to_owned(),
            wanted: format!("{:?}", atom.c_type),
        })?;
        let tv = operand_tv(mma, Operand::C, &shape)?;
        let (class, each) = registers_of(element, false);
        let registers = self.regs(class, tv.get(1)?.size() as usize / each);
        for &r in &registers {
            self.clear(r);
        }
        Ok(Fragment {
            element,
            registers,
            each,
            shape: shape.into(),
            tv,
            thread,
            origin: self.here(),
        })
    }

    /// `c += a·bᵀ` by the mma's instruction: a over (M, K), b over (N, K), c over (M, N).
    ///
    /// `mma.sync` takes fragments. `wgmma` takes b, and a or a fragment of it, as the tile of a stage of a ring over TMA ([`Kernel::consume`]); a tile that is stored
    /// as K x N is [transposed](crate::view::View::transposed) first. Its products are complete when the stage is given back, or behind the steps.
    ///
    /// Fragments that `ldmatrix` loaded hold the same values in another order of registers, which is taken care of. Elements of f32 are
    /// multiplied as tf32: the instruction reads the upper 19 bits.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let (a, b) = (Swizzled::parse("(32,16):(16,1)")?, Swizzled::parse("(8,16):(16,1)")?);
    /// let (a, b) = (k.shared("a", Element::F16, &a)?, k.shared("b", Element::F16, &b)?);
    /// let lane = k.lane();
    /// let (a, b) = (a.partition_a(&mut k, &mma, lane)?, b.partition_b(&mut k, &mma, lane)?);
    /// let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
    /// let c = k.accumulators(&mma, [32, 8], lane)?;
    /// k.gemm(&mma, &a, &b, &c)?; // two instructions
    /// assert!(k.gemm(&mma, &b, &a, &c).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Instruction`] for an mma that is not emitted; [`ViewError::Operand`] for an operand of another place, element, shape or layout than the mma
    /// takes.
    #[track_caller]
    pub fn gemm<'f>(
        &mut self,
        mma: &TiledMma,
        a: impl Into<Multiplicand<'f>>,
        b: impl Into<Multiplicand<'f>>,
        c: &Fragment,
    ) -> Result<(), ViewError> {
        self.at_line();
        let atom = mma.atom();
        if is_of_warpgroup(&atom) {
            return self.gemm_of_warpgroup(mma, a.into(), b.into(), c);
        }
        let in_registers = |operand, factor| match factor {
            Multiplicand::Fragment(fragment) => Ok(fragment),
            Multiplicand::Shared(view) => Err(ViewError::Operand {
                instruction: atom.name,
                operand,
                given: format!("`{}` in shared memory", view.name(self)),
                wanted: "a fragment: load it first (`Kernel::load_fragment`)".to_owned(),
            }),
        };
        let (a, b) = (in_registers('A', a.into())?, in_registers('B', b.into())?);
        if atom.threads > 32 || atom.registers().contains(&0) {
            return Err(ViewError::Instruction {
                instruction: atom.name,
                accepted: "an atom of mma.sync, such as atoms::MMA_M16N8K16_BF16, or of wgmma (atoms::wgmma)",
            });
        }
        let mut operands = Vec::new();
        let types = [atom.a_type, atom.b_type, atom.c_type];
        let sides = [(Operand::A, a), (Operand::B, b), (Operand::C, c)];
        for ((operand, fragment), scalar) in sides.into_iter().zip(types) {
            let (letter, axes) = match operand {
                Operand::A => ('A', [a.shape[0], a.shape[1]]),
                Operand::B => ('B', [c.shape[1], a.shape[1]]),
                Operand::C => ('C', [a.shape[0], c.shape[1]]),
            };
            fragment.own(self)?;
            let refuse = |wanted: String| ViewError::Operand {
                instruction: atom.name,
                operand: letter,
                given: fragment.describe(),
                wanted,
            };
            let Some(element) = element_of(scalar).filter(|&e| e == fragment.element) else {
                return Err(refuse(format!("elements of {scalar:?}")));
            };
            if fragment.shape != axes {
                return Err(refuse(format!("{}x{}", axes[0], axes[1])));
            }
            let tv = operand_tv(mma, operand, &axes)?;
            let class = registers_of(element, operand != Operand::C).0;
            let registers = fragment
                .in_order_of(&tv)
                .filter(|all| all.iter().all(|r| r.class == class))
                .ok_or_else(|| refuse(format!("(thread, value) by {tv}")))?;
            operands.push(registers);
        }
        self.sets(&operands[2]);
        let instruction = Arc::new(atom);
        let [per_a, per_b, per_c] = atom.registers().map(|n| n as usize);
        let [a, b, c] = [&operands[0], &operands[1], &operands[2]];
        let (a, b): (Vec<_>, Vec<_>) = (a.chunks(per_a).collect(), b.chunks(per_b).collect());
        let c: Vec<_> = c.chunks(per_c).collect();
        // Atoms of a thread along M, N, K: a has M·K of them, b N·K, c M·N, the first mode fastest.
        let steps = (a.len() * b.len() / c.len()).isqrt();
        let (rows, columns) = (a.len() / steps, b.len() / steps);
        for step in 0..steps {
            for column in 0..columns {
                for row in 0..rows {
                    self.multiply_accumulate(
                        &instruction,
                        c[row + rows * column],
                        a[row + rows * step],
                        b[column + columns * step],
                    );
                }
            }
        }
        Ok(())
    }
}
