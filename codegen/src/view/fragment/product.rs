//! Products of fragments, by the matrix instructions.

use std::sync::Arc;

use layout_core::atoms::{MmaAtom, Scalar, SparseMmaAtom};
use layout_core::{Operand, TiledMma};

use super::warpgroup::{Multiplicand, is_of_warpgroup};
use super::{Fragment, registers_of};
use crate::index::Expr;
use crate::ir::{Element, Kernel, Metadata, Reg};
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
    /// `mma.sync` takes fragments. `mma.sp` ([`TiledMma::sparse`]) takes as a the fragments of the stored half, over (M, K/2), and of its metadata
    /// ([`View::partition_metadata`](crate::view::View::partition_metadata)). `wgmma` takes b, and a or a fragment of it, as the tile of a stage of a ring over TMA ([`Kernel::consume`]); a tile that is stored
    /// as K x N is [transposed](crate::view::View::transposed) first. Its products are complete when the stage is released, or behind the steps.
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
    /// With a sparse A:
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, Swizzled, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let one = Layout::parse("(1,1,1):(0,0,0)")?;
    /// let mma = TiledMma::sparse(atoms::MMA_SP_ORDERED_M16N8K32_F16, &one, [16, 8, 64])?;
    /// // a is 16 x 64, of which half is stored; 32 words say which half.
    /// let a = k.shared("a", Element::F16, &Swizzled::parse("(16,32):(32,1)")?)?;
    /// let words = k.shared("words", Element::S32, &Swizzled::parse("(1,32):(32,1)")?)?;
    /// let b = k.shared("b", Element::F16, &Swizzled::parse("(8,64):(64,1)")?)?;
    /// let lane = k.lane();
    /// let (a, b) = (a.partition_a(&mut k, &mma, lane)?, b.partition_b(&mut k, &mma, lane)?);
    /// let words = words.partition_metadata(&mut k, &mma, lane)?;
    /// let (a, b, words) = (k.load_fragment(&a)?, k.load_fragment(&b)?, k.load_fragment(&words)?);
    /// let c = k.accumulators(&mma, [16, 8], lane)?;
    /// k.gemm(&mma, (&a, &words), &b, &c)?; // two instructions, with selectors 0 and 1
    /// assert!(k.gemm(&mma, &a, &b, &c).is_err());
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
        let (a, metadata) = match a.into() {
            Multiplicand::Sparse(a, metadata) => (a, Some(metadata)),
            a => (self.in_registers(&atom, 'A', a)?, None),
        };
        let b = self.in_registers(&atom, 'B', b.into())?;
        if atom.threads > 32 || atom.registers().contains(&0) {
            return Err(ViewError::Instruction {
                instruction: atom.name,
                accepted: "an atom of mma.sync, such as atoms::MMA_M16N8K16_BF16, or of wgmma (atoms::wgmma)",
            });
        }
        let refuse = |given: &str, wanted: &str| ViewError::Operand {
            instruction: atom.name,
            operand: 'A',
            given: given.to_owned(),
            wanted: wanted.to_owned(),
        };
        let of_words = match (mma.sparse_atom(), metadata) {
            (None, None) => None,
            (Some(sparse), Some(metadata)) => Some((sparse, metadata)),
            (Some(_), None) => {
                return Err(refuse(
                    "a fragment without metadata",
                    "the fragments of its stored half and of its metadata: `(&a, &metadata)`",
                ));
            }
            (None, Some(_)) => {
                return Err(refuse(
                    "a fragment with metadata",
                    "all of A, without metadata",
                ));
            }
        };
        self.gemm_of_warp(mma, (a, of_words), b, c)
    }

    /// The fragment that a factor of `mma.sync` is.
    fn in_registers<'f>(
        &self,
        atom: &MmaAtom,
        operand: char,
        factor: Multiplicand<'f>,
    ) -> Result<&'f Fragment, ViewError> {
        let (given, wanted) = match factor {
            Multiplicand::Fragment(fragment) => return Ok(fragment),
            Multiplicand::Shared(view) => (
                format!("`{}` in shared memory", view.name(self)),
                "a fragment: load it first (`Kernel::load_fragment`)",
            ),
            Multiplicand::Sparse(fragment, _) => (
                format!("{} with metadata", fragment.describe()),
                "a fragment without metadata: only A is sparse",
            ),
        };
        Err(ViewError::Operand {
            instruction: atom.name,
            operand,
            given,
            wanted: wanted.to_owned(),
        })
    }

    /// `c += a·bᵀ` by `mma.sync` or `mma.sp`.
    fn gemm_of_warp(
        &mut self,
        mma: &TiledMma,
        (a, sparse): (&Fragment, Option<(SparseMmaAtom, &Fragment)>),
        b: &Fragment,
        c: &Fragment,
    ) -> Result<(), ViewError> {
        let atom = mma.atom();
        let [rows, depth] = of_two_modes(&atom, 'A', a)?;
        let [_, columns] = of_two_modes(&atom, 'C', c)?;
        let whole = if sparse.is_some() { 2 * depth } else { depth };
        let mut sides = vec![
            (Operand::A, a, element_of(atom.a_type), [rows, depth]),
            (Operand::B, b, element_of(atom.b_type), [columns, whole]),
            (Operand::C, c, element_of(atom.c_type), [rows, columns]),
        ];
        let selectors = sparse.map_or(1, |(sparse, _)| sparse.selectors() as usize);
        if let Some((sparse, metadata)) = sparse {
            let shape = [rows / atom.m, whole / sparse.metadata_k()? * atom.threads];
            sides.push((Operand::Metadata, metadata, Some(Element::S32), shape));
        }
        let operands = sides
            .into_iter()
            .map(|(operand, fragment, element, shape)| {
                self.operand_registers(mma, operand, fragment, (element, shape))
            })
            .collect::<Result<Vec<_>, _>>()?;
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
                    let word = row + rows * (step / selectors);
                    let metadata = operands.get(3).map(|words| Metadata {
                        register: words[word],
                        selector: (step % selectors) as u8,
                    });
                    self.multiply_accumulate_by(
                        &instruction,
                        c[row + rows * column],
                        (a[row + rows * step], metadata),
                        b[column + columns * step],
                    );
                }
            }
        }
        Ok(())
    }

    /// The registers of an operand in the order of the mma, if it has the element and the shape.
    fn operand_registers(
        &self,
        mma: &TiledMma,
        operand: Operand,
        fragment: &Fragment,
        (element, axes): (Option<Element>, [i64; 2]),
    ) -> Result<Vec<Reg>, ViewError> {
        fragment.own(self)?;
        let atom = mma.atom();
        let (letter, scalar) = match operand {
            Operand::A => ('A', format!("{:?}", atom.a_type)),
            Operand::B => ('B', format!("{:?}", atom.b_type)),
            Operand::C => ('C', format!("{:?}", atom.c_type)),
            Operand::Metadata => ('E', "s32: the words of metadata".to_owned()),
        };
        let refuse = |wanted: String| ViewError::Operand {
            instruction: atom.name,
            operand: letter,
            given: fragment.describe(),
            wanted,
        };
        let Some(element) = element.filter(|&e| e == fragment.element) else {
            return Err(refuse(format!("elements of {scalar}")));
        };
        if fragment.shape != axes {
            return Err(refuse(format!("{}x{}", axes[0], axes[1])));
        }
        let tv = operand_tv(mma, operand, &axes)?;
        let class = registers_of(element, operand != Operand::C).0;
        fragment
            .in_order_of(&tv)
            .filter(|all| all.iter().all(|r| r.class == class))
            .ok_or_else(|| refuse(format!("(thread, value) by {tv}")))
    }
}

/// Extents of a fragment that is a matrix.
fn of_two_modes(atom: &MmaAtom, operand: char, fragment: &Fragment) -> Result<[i64; 2], ViewError> {
    match fragment.shape[..] {
        [rows, columns] => Ok([rows, columns]),
        _ => Err(ViewError::Operand {
            instruction: atom.name,
            operand,
            given: fragment.describe(),
            wanted: "a fragment of two modes".to_owned(),
        }),
    }
}
