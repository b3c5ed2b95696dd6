//! Between memory and fragments.

use super::{Fragment, registers_of};
use crate::index::layout::index;
use crate::ir::{Class, Element, Kernel, Space, Type};
use crate::value::F32;
use crate::view::partition::Instruction;
use crate::view::words::held;
use crate::view::{Partition, ViewError};
use layout_core::Operand;

/// The type that registers of a class are loaded and stored by.
pub(super) fn type_of(class: Class) -> Type {
    match class {
        Class::F32 => Type::F32,
        Class::F64 => Type::F64,
        Class::B16 => Type::B16,
        Class::B64 => Type::B64,
        Class::B32 | Class::Pred => Type::B32,
    }
}

impl Kernel {
    /// Loads what this thread holds of a tile to registers, by the share's instruction: loads, or `ldmatrix`. What is outside the buffer is 0.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let tile = k.shared("a", Element::F16, &Swizzled::parse("(16,32):(32,1)")?)?;
    /// let lane = k.lane();
    /// // Pair by pair, or by two ldmatrix.
    /// let pairs = tile.partition_a(&mut k, &mma, lane)?.vectors(&k, 2)?;
    /// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    /// let matrices = tile.partition_s(&mut k, &copy, lane)?;
    /// let (a, b) = (k.load_fragment(&pairs)?, k.load_fragment(&matrices)?);
    /// assert_eq!((a.values(), b.values()), (16, 16));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`] for a buffer without an element type; [`ViewError::Space`] for a share of `cp.async`, which does not write
    /// registers; [`ViewError::Vector`] if a thread's values do not fill words.
    #[track_caller]
    pub fn load_fragment(&mut self, from: &Partition) -> Result<Fragment, ViewError> {
        self.at_line();
        let matrices = matches!(from.by, Instruction::Matrices { .. });
        let factor = matrices
            || matches!(
                from.operand,
                Some(Operand::A | Operand::B | Operand::Metadata)
            );
        let fragment = self.empty_fragment(from, factor)?;
        match &from.by {
            Instruction::Plain => {
                self.if_aligned(&[from], |k, whole| k.load_packed(from, &fragment, whole))?;
            }
            Instruction::Matrices {
                points,
                values,
                trans,
            } => {
                let name = self.buffer(from.view.buffer).name.clone();
                let registers = fragment.registers.chunks(*values as usize / fragment.each);
                for (i, to) in (0..).zip(registers) {
                    let number = self.pool.constant(i);
                    let by: Vec<_> = points
                        .iter()
                        .map(|map| index(&mut self.pool, map, &[from.thread, number]))
                        .collect::<Result<_, _>>()?;
                    let at = from.view.element(self, &from.view.ordered(&by))?;
                    self.load_matrix(to.to_vec(), *trans, at);
                    self.tag(&format!("read {name}"));
                }
            }
            Instruction::Async { .. } => {
                return Err(ViewError::Space {
                    instruction: "an asynchronous copy",
                    writes: true,
                    wanted: Some(Space::Shared),
                    buffer: "a fragment".to_owned(),
                    space: Space::Global,
                });
            }
        }
        Ok(fragment)
    }

    /// A fragment of f32 that is shared out as `share` and holds `value` everywhere: what a loop over tiles adds to ([`Fragment::update_with`]).
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F16, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 256)?, k.thread());
    /// let share = x.tile(&mut k, &[256], &[block])?.partition(&mut k, &Layout::parse("(32,8):(8,1)")?, thread)?;
    /// let sums = k.fragment_of(&share, 0.0)?;
    /// assert_eq!((sums.element(), sums.values()), (Element::F32, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`] for a view that is not cut into tiles.
    #[track_caller]
    pub fn fragment_of(
        &mut self,
        share: &Partition,
        value: impl Into<F32>,
    ) -> Result<Fragment, ViewError> {
        self.at_line();
        let value = value.into().src(self);
        let registers = self.regs(Class::F32, share.values as usize);
        for &register in &registers {
            self.set(Type::F32, register, value);
        }
        Ok(Fragment {
            element: Element::F32,
            registers,
            each: 1,
            shape: self.fragment_shape(share)?,
            tv: share.tv,
            thread: share.thread,
            origin: self.here(),
        })
    }

    /// New registers for a share of a tile.
    fn empty_fragment(&mut self, of: &Partition, factor: bool) -> Result<Fragment, ViewError> {
        let element = self.element_of(of)?;
        let (class, each) = registers_of(element, factor);
        if of.values % each as i64 != 0 {
            return Err(ViewError::Vector {
                buffer: of.view.name(self).to_owned(),
                elements: each as i64,
                reason: "a fragment's registers are whole, and a thread's values do not fill them",
            });
        }
        Ok(Fragment {
            element,
            registers: self.regs(class, of.values as usize / each),
            each,
            shape: self.fragment_shape(of)?,
            tv: of.tv,
            thread: of.thread,
            origin: self.here(),
        })
    }

    /// The extents of a share's fragment.
    fn fragment_shape(&self, of: &Partition) -> Result<Vec<i64>, ViewError> {
        match &of.shape {
            Some(shape) => Ok(shape.clone()),
            None => Ok(of.view.tile_shape(self)?.to_vec()),
        }
    }

    fn load_packed(
        &mut self,
        from: &Partition,
        to: &Fragment,
        whole: bool,
    ) -> Result<(), ViewError> {
        let (width, each) = (self.width(from, whole) as usize, to.each);
        if width >= each {
            let ty = type_of(to.registers[0].class);
            let firsts = (0..).step_by(width);
            return firsts
                .zip(to.registers.chunks(width / each))
                .try_for_each(|(first, words)| self.load_words(from, first, words, ty));
        }
        let (class, ty) = held(to.element);
        for (first, &word) in (0..).step_by(each).zip(&to.registers) {
            let parts = self.regs(class, each);
            for (value, &part) in (first..).zip(&parts) {
                self.load_words(from, value, &[part], ty)?;
            }
            self.put_together(to.element, &parts, &[word]);
        }
        Ok(())
    }

    /// Stores a fragment through a share of a tile; what is outside the buffer is left out.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// // c = 0.
    /// let mut k = Kernel::new("zeros", 32);
    /// let (m, n) = (k.size("m", 1 << 20), k.size("n", 1 << 20));
    /// let c = k.output("c", Element::F16, &[m, n]);
    /// let (i, j) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 8)?);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let c = c.tile(&mut k, &[16, 8], &[i, j])?.partition_c(&mut k, &mma, lane)?.vectors(&k, 2)?;
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// assert!(k.store_fragment(&c, &sums).is_err()); // c is of f16
    /// let sums = k.convert_fragment(&sums, Element::F16)?;
    /// k.store_fragment(&c, &sums)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["c"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Elements`] or [`ViewError::Shapes`] if the fragment is not what the share holds.
    #[track_caller]
    pub fn store_fragment(&mut self, to: &Partition, fragment: &Fragment) -> Result<(), ViewError> {
        self.at_line();
        let element = self.element_of(to)?;
        fragment.own(self)?;
        if fragment.element != element {
            return Err(ViewError::Elements {
                from: fragment.describe(),
                to: format!("{} of {element}", to.describe(self)),
            });
        }
        let same = self.fragment_shape(to)? == fragment.shape();
        let registers = fragment.in_order_of(&to.tv).filter(|_| same);
        let Some(registers) = registers.filter(|_| to.by == Instruction::Plain) else {
            return Err(ViewError::Shapes {
                from: fragment.describe(),
                to: to.describe(self),
            });
        };
        let fragment = Fragment {
            registers,
            ..fragment.clone()
        };
        self.if_aligned(&[to], |k, whole| k.store_packed(to, &fragment, whole))
    }

    fn store_packed(
        &mut self,
        to: &Partition,
        from: &Fragment,
        whole: bool,
    ) -> Result<(), ViewError> {
        let (width, each) = (self.width(to, whole) as usize, from.each);
        if width >= each {
            let ty = type_of(from.registers[0].class);
            let firsts = (0..).step_by(width);
            return firsts
                .zip(from.registers.chunks(width / each))
                .try_for_each(|(first, words)| self.store_words(to, first, words, ty));
        }
        let (class, ty) = held(from.element);
        for (first, &word) in (0..).step_by(each).zip(&from.registers) {
            let parts = self.regs(class, each);
            self.take_apart(from.element, &[word], &parts);
            for (value, &part) in (first..).zip(&parts) {
                self.store_words(to, value, &[part], ty)?;
            }
        }
        Ok(())
    }
}
