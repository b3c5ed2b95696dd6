//! `wgmma` of fragments and stages: B from a stage of a ring over TMA, A from a stage or from registers.
//!
//! An instruction multiplies 64 rows of A with N columns of B, 32 bytes along k. A matrix descriptor says where its operand is: the address of its first
//! element, and two distances that follow from the layout of the stage. Which rows and columns a warpgroup multiplies follows from the thread-value layout of C:
//!
//! ```text
//! C of 128 × 256 by two warpgroups      (thread, value) → row + 128·column
//!   first element of atom q             value q·128 of thread 128·w     → row 64·w, column 0     A from row 64·w, B from column 0
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use layout_core::atoms::{MmaAtom, Target};
use layout_core::{Layout, MatrixDescriptor, Operand, TiledMma};

use super::product::element_of;
use super::{Fragment, registers_of};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Cmp, Element, Factor, Kernel, Matrix, Reg, StageUse, Strides};
use crate::view::tiled::operand_tv;
use crate::view::{View, ViewError};

/// Threads of a warpgroup.
const THREADS: i64 = 128;

/// A factor of a product ([`Kernel::gemm`]): in the registers of threads, or a tile in shared memory that the instruction reads itself.
///
/// ```
/// use layout_codegen::ir::{Element, Kernel};
/// use layout_codegen::view::Multiplicand;
/// use layout_core::Swizzled;
///
/// let mut k = Kernel::new("k", 32);
/// let tile = k.shared("a", Element::F16, &Swizzled::parse("(64,64):(64,1)")?)?;
/// assert!(matches!(Multiplicand::from(&tile), Multiplicand::Shared(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Multiplicand<'f> {
    /// A fragment.
    Fragment(&'f Fragment),
    /// A tile in shared memory.
    Shared(&'f View),
    /// A fragment of the stored half of a sparse A, and of its metadata ([`View::partition_metadata`]).
    Sparse(&'f Fragment, &'f Fragment),
}

impl<'f> From<&'f Fragment> for Multiplicand<'f> {
    fn from(fragment: &'f Fragment) -> Self {
        Self::Fragment(fragment)
    }
}

impl<'f> From<&'f View> for Multiplicand<'f> {
    fn from(view: &'f View) -> Self {
        Self::Shared(view)
    }
}

impl<'f> From<(&'f Fragment, &'f Fragment)> for Multiplicand<'f> {
    fn from((stored, metadata): (&'f Fragment, &'f Fragment)) -> Self {
        Self::Sparse(stored, metadata)
    }
}

/// Whether an instruction is `wgmma`.
pub(super) fn is_of_warpgroup(atom: &MmaAtom) -> bool {
    atom.target == Target::SmOnly("sm_90a")
}

/// Where the atoms of a fragment of C begin, of a thread's first one: rows and columns of each atom, and of each warpgroup.
struct Atoms {
    /// Row and column of each atom of a warpgroup, from its first.
    within: Vec<[i64; 2]>,
    /// Warpgroup → row, and column.
    of_group: [Layout; 2],
    /// The number of atoms along the rows.
    down: usize,
}

impl Atoms {
    /// The atoms of a thread-value layout over `shape`; `None` if a warpgroup's elements are not those of `wgmma` atoms.
    fn of(atom: &MmaAtom, tv: &Layout, shape: [i64; 2]) -> Result<Option<Self>, ViewError> {
        let [rows, columns] = shape;
        let (threads, values) = (tv.get(0)?.size(), tv.get(1)?.size());
        let each = atom.c.get(1)?.size();
        if threads % THREADS != 0 || values % each != 0 {
            return Ok(None);
        }
        let place = |e: i64| [e % rows, e / rows];
        // Every warpgroup multiplies all of k: two that share k have the same sums.
        let firsts = (0..threads / THREADS).map(|group| place(tv.at(&[group * THREADS, 0])));
        if firsts.collect::<BTreeSet<_>>().len() as i64 != threads / THREADS {
            return Ok(None);
        }
        let groups = Layout::mode(threads / THREADS, THREADS)?;
        let of_group = tv.get(0)?.compose(&groups)?;
        for group in 0..threads / THREADS {
            for first in (0..values).step_by(each as usize) {
                let [row, column] = place(tv.at(&[group * THREADS, first]));
                for (thread, value) in (0..THREADS).flat_map(|t| (0..each).map(move |v| (t, v))) {
                    let in_atom = atom.c.at(&[thread, value]);
                    let wanted = [row + in_atom % atom.m, column + in_atom / atom.m];
                    if place(tv.at(&[group * THREADS + thread, first + value])) != wanted {
                        return Ok(None);
                    }
                }
            }
        }
        let within: Vec<_> = (0..values)
            .step_by(each as usize)
            .map(|first| place(tv.at(&[0, first])))
            .collect();
        let by_mode =
            |strides: [i64; 2]| Layout::flat(&[rows, columns], &strides)?.compose(&of_group);
        let down = within.iter().take_while(|at| at[1] == within[0][1]).count();
        Ok(Some(Self {
            of_group: [by_mode([1, 0])?, by_mode([0, 1])?],
            within,
            down,
        }))
    }
}

impl Kernel {
    /// `c += a·bᵀ` by `wgmma`.
    pub(super) fn gemm_of_warpgroup(
        &mut self,
        mma: &TiledMma,
        a: Multiplicand<'_>,
        b: Multiplicand<'_>,
        c: &Fragment,
    ) -> Result<(), ViewError> {
        let atom = mma.atom();
        c.own(self)?;
        let refuse = |operand, given: String, wanted: String| ViewError::Operand {
            instruction: atom.name,
            operand,
            given,
            wanted,
        };
        let Multiplicand::Shared(b) = b else {
            return Err(refuse(
                'B',
                "a fragment".to_owned(),
                "a tile of a stage: wgmma reads B from shared memory".to_owned(),
            ));
        };
        if let Multiplicand::Sparse(a, _) = a {
            return Err(refuse(
                'A',
                format!("{} with metadata", a.describe()),
                "all of A, without metadata".to_owned(),
            ));
        }
        let &[rows, columns] = c.shape() else {
            return Err(refuse('C', c.describe(), "rows and columns".to_owned()));
        };
        let b_shape = b.tile_shape(self)?.to_vec();
        let depth = b_shape.last().copied().unwrap_or(0);
        let a_shape = match a {
            Multiplicand::Fragment(a) | Multiplicand::Sparse(a, _) => {
                a.own(self)?;
                a.shape().to_vec()
            }
            Multiplicand::Shared(a) => a.tile_shape(self)?.to_vec(),
        };
        let shapes = [
            ('A', a_shape, [rows, depth]),
            ('B', b_shape, [columns, depth]),
        ];
        for (operand, given, wanted) in shapes {
            if given != wanted {
                let shape: Vec<_> = given.iter().map(ToString::to_string).collect();
                let [x, y] = wanted;
                return Err(refuse(operand, shape.join("x"), format!("{x}x{y}")));
            }
        }
        if depth == 0 || depth % atom.k != 0 {
            return Err(refuse(
                'B',
                format!("{depth} elements along k"),
                format!("a multiple of {}", atom.k),
            ));
        }
        let tv = operand_tv(mma, Operand::C, &[rows, columns])?;
        let class = registers_of(c.element(), false).0;
        let sums = c
            .in_order_of(&tv)
            .filter(|all| all.iter().all(|r| r.class == class));
        let atoms = Atoms::of(&atom, &tv, [rows, columns])?;
        let (Some(sums), Some(atoms), true) =
            (sums, atoms, element_of(atom.c_type) == Some(c.element()))
        else {
            return Err(refuse(
                'C',
                c.describe(),
                format!("accumulators of {} atoms side by side", atom.name),
            ));
        };
        let steps = depth / atom.k;
        // Of a fragment the registers of each atom, those one below the other first.
        let fragment: Option<Vec<Vec<Reg>>> = match a {
            Multiplicand::Shared(_) => None,
            Multiplicand::Fragment(a) | Multiplicand::Sparse(a, _) => {
                let tv = operand_tv(mma, Operand::A, &[rows, depth])?;
                // B comes from its stage in the order of k, and so does A.
                let each = atom.a.get(1)?.size();
                let in_order = (0..tv.get(1)?.size()).all(|value| {
                    let step = value / each / atoms.down as i64;
                    let in_atom = atom.a.at(&[0, value % each]) / atom.m;
                    tv.at(&[0, value]) / rows == step * atom.k + in_atom
                });
                if !in_order {
                    return Err(refuse(
                        'A',
                        format!("a fragment whose elements along k are permuted: {tv}"),
                        "an mma whose tile has k in order, as B in shared memory has".to_owned(),
                    ));
                }
                let registers = a.in_order_of(&tv).filter(|all| {
                    let fits = element_of(atom.a_type) == Some(a.element());
                    fits && all
                        .iter()
                        .all(|r| r.class == registers_of(a.element(), true).0)
                });
                let registers = registers
                    .ok_or_else(|| refuse('A', a.describe(), format!("(thread, value) by {tv}")))?;
                let each = atom.registers()[0] as usize;
                Some(registers.chunks(each).map(<[Reg]>::to_vec).collect())
            }
        };
        let of_a = match a {
            Multiplicand::Shared(a) => {
                let operand = (element_of(atom.a_type), 'A');
                Some((a, self.described(&atom, a, operand)?))
            }
            Multiplicand::Fragment(_) | Multiplicand::Sparse(..) => None,
        };
        let of_b = self.described(&atom, b, (element_of(atom.b_type), 'B'))?;
        let group = self.pool.shr(c.thread, 7);
        let [row, column] =
            [0, 1].map(|mode| index(&mut self.pool, &atoms.of_group[mode], &[group]));
        let first = [row?, column?];
        let zero = self.pool.constant(0);
        let add = self.compare(Cmp::Eq, zero, zero);
        // Sums that have just been set to 0 begin with the product instead.
        let begins = self.withdraw_clears(&sums);
        let first_add = if begins {
            self.compare(Cmp::Ne, zero, zero)
        } else {
            add
        };
        self.sets(&sums);
        let instruction = Arc::new(atom);
        let each = sums.len() / atoms.within.len();
        self.wgmma_fence();
        for step in 0..steps {
            let k = self.pool.constant(step * atom.k);
            for (number, (at, d)) in atoms.within.iter().zip(sums.chunks(each)).enumerate() {
                let [row, column] = [0, 1].map(|mode| {
                    let within = self.pool.constant(at[mode]);
                    self.pool.add(first[mode], within)
                });
                let factor = if let Some((a, of_a)) = of_a {
                    Factor::Shared(self.stage_matrix(a, [row, k], of_a)?)
                } else {
                    let at = number % atoms.down + atoms.down * step as usize;
                    let registers = fragment.as_ref().and_then(|all| all.get(at));
                    Factor::Fragment(registers.cloned().unwrap_or_default())
                };
                let b = self.stage_matrix(b, [column, k], of_b)?;
                let how = match step {
                    0 => (begins, first_add),
                    _ => (false, add),
                };
                self.wgmma(&instruction, d, (factor, b), how);
            }
        }
        self.wgmma_commit();
        self.parting.products += 1;
        Ok(())
    }

    /// What a matrix descriptor says of the tile of a stage, and the use of the stage.
    fn described(
        &self,
        atom: &MmaAtom,
        view: &View,
        (element, operand): (Option<Element>, char),
    ) -> Result<(Strides, StageUse), ViewError> {
        let refuse = |given: String, wanted: &str| ViewError::Operand {
            instruction: atom.name,
            operand,
            given,
            wanted: wanted.to_owned(),
        };
        let name = view.name(self);
        if view.element != element {
            let given = view
                .element
                .map_or("no element".to_owned(), |e| e.to_string());
            return Err(refuse(
                format!("`{name}` of {given}"),
                &element.map_or("another type".to_owned(), |e| e.to_string()),
            ));
        }
        let Some(used) = view.used else {
            return Err(refuse(
                format!("`{name}`"),
                "a tile of a stage of a ring over TMA (`Kernel::tma_ring`)",
            ));
        };
        let bytes = self.buffer(view.buffer).bytes;
        let layout = self.panels_of(view)?;
        let descriptor = MatrixDescriptor::of(&layout, bytes, !view.reversed).map_err(|e| {
            let wanted = format!("a stage that a matrix descriptor describes: {e}");
            refuse(format!("`{name}`"), &wanted)
        })?;
        let strides = Strides {
            leading: descriptor.leading_bytes,
            stride: descriptor.stride_bytes,
            mode: descriptor.mode(),
        };
        Ok((strides, used))
    }

    /// The operand of `wgmma` in a stage from an index of its side and of k.
    fn stage_matrix(
        &mut self,
        view: &View,
        [side, k]: [Expr; 2],
        (strides, used): (Strides, StageUse),
    ) -> Result<Matrix, ViewError> {
        let by = view.ordered(&[side, k]);
        Ok(self.matrix_by((view, &by), !view.reversed, strides, used)?)
    }
}
