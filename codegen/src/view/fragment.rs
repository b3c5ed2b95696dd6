//! Fragments: views of registers.
//!
//! Registers are the third space. A [`Fragment`] is a tile of which each thread holds its part in registers: the element, the registers, and
//! the layout from (thread, value) to the coordinate in the tile. Elements of less than 32 bits lie together in words, as the matrix
//! instructions take them, the first in the lowest bits.
//!
//! ```
//! use layout_codegen::ir::{Axis, Kernel};
//! use layout_codegen::Arch;
//! use layout_codegen::ir::Element;
//! use layout_core::{Layout, TiledMma, atoms};
//!
//! // c = a·bᵀ for one warp a tile and k = 16: 16 x 8 elements of c.
//! let mut k = Kernel::new("product", 32);
//! let (m, n, depth) = (k.size("m", 1 << 20), k.size("n", 1 << 20), k.pool.constant(16));
//! let (a, b) = (k.input("a", Element::F16, &[m, depth]), k.input("b", Element::F16, &[n, depth]));
//! let c = k.output("c", Element::F32, &[m, n]);
//! let (i, j, zero) = (k.tiles(Axis::X, m, 16)?, k.tiles(Axis::Y, n, 8)?, k.pool.constant(0));
//! let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
//! let lane = k.lane();
//! let a = a.tile(&mut k, &[16, 16], &[i, zero])?.partition_a(&mut k, &mma, lane)?;
//! let b = b.tile(&mut k, &[8, 16], &[j, zero])?.partition_b(&mut k, &mma, lane)?;
//! let c = c.tile(&mut k, &[16, 8], &[i, j])?.partition_c(&mut k, &mma, lane)?;
//! let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
//! let sums = k.accumulators(&mma, [16, 8], lane)?;
//! k.gemm(&mma, &a, &b, &sums)?;
//! k.store_fragment(&c, &sums)?;
//! assert_eq!(k.build(Arch(80))?.proof.covered, ["c"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use layout_core::atoms::Scalar;
use layout_core::{Layout, Operand, TiledMma};

use super::partition::{Instruction, by_mode};
use super::tiled::operand_tv;
use super::words::held;
use super::{Partition, ViewError};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::Element;
use crate::ir::{Class, Kernel, Reg, Space, Type};

/// A tile in the registers of threads.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Operand, Swizzled, TiledCopy, TiledMma, atoms};
///
/// let mut k = Kernel::new("k", 32);
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
/// let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
/// let tile = k.shared("a", Element::F16, &Swizzled::parse("(16,16):(16,1)")?)?;
/// let lane = k.lane();
/// let rows = tile.partition_s(&mut k, &copy, lane)?;
/// let a = k.load_fragment(&rows)?;
/// // Eight halves of each lane, two to a register.
/// assert_eq!((a.element(), a.shape(), a.registers().len(), a.values()), (Element::F16, &[16, 16][..], 4, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fragment {
    element: Element,
    registers: Vec<Reg>,
    /// Values in a register.
    each: usize,
    shape: Vec<i64>,
    /// (thread, value) → element of the tile, its first mode fastest.
    tv: Layout,
    thread: Expr,
}

impl Fragment {
    /// The type of its elements.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// assert_eq!(k.accumulators(&mma, [16, 8], lane)?.element(), Element::F32);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn element(&self) -> Element {
        self.element
    }

    /// A thread's registers. Elements of less than 32 bits lie together in them, the first in the lowest bits.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// assert_eq!(k.accumulators(&mma, [32, 16], lane)?.registers().len(), 16);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn registers(&self) -> &[Reg] {
        &self.registers
    }

    /// Values of a thread.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let half = TiledMma::new(atoms::MMA_M16N8K16_F16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&half, [16, 8], lane)?;
    /// assert_eq!((sums.values(), sums.registers().len()), (4, 2)); // sums of f16, two to a register
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values(&self) -> usize {
        self.registers.len() * self.each
    }

    /// Extents of the tile.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 64);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(2,1,1):(1,0,0)")?)?;
    /// let thread = k.thread();
    /// assert_eq!(k.accumulators(&mma, [32, 8], thread)?.shape(), [32, 8]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// Coordinates in the tile of this thread's value `value`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// // Value 3 of lane l is row l / 4 + 8, column 2·(l mod 4) + 1.
    /// let at = sums.coordinates(&mut k, 3)?;
    /// assert_eq!(at.map(|e| k.pool.evaluate(e, &|_| 5)), [9, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for values below [`Fragment::values`] of a tile of two modes.
    pub fn coordinates(&self, k: &mut Kernel, value: usize) -> Result<[Expr; 2], ViewError> {
        let value = k.pool.constant(value as i64);
        let mut at = [value; 2];
        for (at, map) in at.iter_mut().zip(by_mode(&self.shape, &self.tv)?) {
            *at = index(&mut k.pool, &map, &[self.thread, value])?;
        }
        Ok(at)
    }

    /// The registers in the order of another layout (thread, value) → element of the tile, if every thread holds there what it holds here.
    fn in_order_of(&self, tv: &Layout) -> Option<Vec<Reg>> {
        if *tv == self.tv {
            return Some(self.registers.clone());
        }
        let sizes = |l: &Layout| Some((l.get(0).ok()?.size(), l.get(1).ok()?.size()));
        let (threads, values) = sizes(tv)?;
        if sizes(&self.tv)? != (threads, values) {
            return None;
        }
        let own: Vec<i64> = (0..values).map(|v| self.tv.at(&[0, v])).collect();
        let mut order = Vec::new();
        for v in 0..values {
            let here = own.iter().position(|&x| x == tv.at(&[0, v]))?;
            let same = |t| self.tv.at(&[t, here as i64]) == tv.at(&[t, v]);
            if !(0..threads).all(same) {
                return None;
            }
            order.push(here);
        }
        let together = order.chunks(self.each).map(|group| {
            let first = group[0];
            let whole = first % self.each == 0 && (first..).zip(group).all(|(i, &at)| i == at);
            whole.then(|| self.registers[first / self.each])
        });
        together.collect()
    }

    /// How it is called in an error.
    fn describe(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(ToString::to_string).collect();
        format!("a fragment of {} {}", shape.join("x"), self.element)
    }
}

/// The element that an operand's type is in memory; none for types without one.
fn element_of(scalar: Scalar) -> Option<Element> {
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

/// The registers of a fragment: their class, and the values in each. Operands of a product are words without a meaning.
fn registers_of(element: Element, factor: bool) -> (Class, usize) {
    match element.bytes() {
        4 if factor => (Class::B32, 1),
        4 | 8 => (held(element).0, 1),
        bytes => (Class::B32, 4 / bytes as usize),
    }
}

/// The type that registers of a class are loaded and stored by.
fn type_of(class: Class) -> Type {
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
    /// assert_eq!((a.registers().len(), b.registers().len()), (8, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`] for a buffer without an element type; [`ViewError::Space`] for a share of `cp.async`, which does not write
    /// registers; [`ViewError::Vector`] if a thread's values do not fill words.
    pub fn load_fragment(&mut self, from: &Partition) -> Result<Fragment, ViewError> {
        let matrices = matches!(from.by, Instruction::Matrices { .. });
        let factor = matrices || matches!(from.operand, Some(Operand::A | Operand::B));
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
            shape: of.view.tile_shape(self)?.to_vec(),
            tv: of.tv,
            thread: of.thread,
        })
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
    /// assert_eq!(sums.registers().len(), 64 * 64 / 128);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Operand`] for sums of a type without a place in memory, [`ViewError::Layout`] for a tile that the mma's does not divide.
    pub fn accumulators(
        &mut self,
        mma: &TiledMma,
        shape: [i64; 2],
        thread: Expr,
    ) -> Result<Fragment, ViewError> {
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
        })
    }

    /// `c += a·bᵀ` by the mma's instruction: a over (M, K), b over (N, K), c over (M, N).
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
    /// [`ViewError::Operand`] for a fragment of another element, shape or layout than the mma takes.
    pub fn gemm(
        &mut self,
        mma: &TiledMma,
        a: &Fragment,
        b: &Fragment,
        c: &Fragment,
    ) -> Result<(), ViewError> {
        let atom = mma.atom();
        let mut operands = Vec::new();
        let types = [atom.a_type, atom.b_type, atom.c_type];
        let sides = [(Operand::A, a), (Operand::B, b), (Operand::C, c)];
        for ((operand, fragment), scalar) in sides.into_iter().zip(types) {
            let (letter, axes) = match operand {
                Operand::A => ('A', [a.shape[0], a.shape[1]]),
                Operand::B => ('B', [c.shape[1], a.shape[1]]),
                Operand::C => ('C', [a.shape[0], c.shape[1]]),
            };
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

    /// A fragment in another type, in new registers: rounded to nearest even, or exact.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let rounded = k.convert_fragment(&sums, Element::F16)?;
    /// assert_eq!((rounded.element(), rounded.registers().len()), (Element::F16, 2));
    /// assert!(k.convert_fragment(&sums, Element::S8).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Conversion`] unless it is from f32 to f16 or bf16, from f16 to f32, or to the same type.
    pub fn convert_fragment(
        &mut self,
        fragment: &Fragment,
        to: Element,
    ) -> Result<Fragment, ViewError> {
        let from = fragment.element;
        let (registers, each) = match (from, to) {
            _ if from == to => (fragment.registers.clone(), fragment.each),
            (Element::F32, Element::F16 | Element::Bf16)
                if fragment.registers.len().is_multiple_of(2) =>
            {
                let ty = if to == Element::F16 {
                    Type::F16x2
                } else {
                    Type::Bf16x2
                };
                let pairs = fragment.registers.chunks(2);
                let words = pairs.map(|pair| self.convert_pair(ty, pair[0], pair[1]));
                (words.collect(), 2)
            }
            (Element::F16, Element::F32) => {
                let mut wide = Vec::new();
                for &word in &fragment.registers {
                    for half in self.unpack(word) {
                        let to = self.reg(Class::F32);
                        self.convert(Type::F32, to, Type::F16, half);
                        wide.push(to);
                    }
                }
                (wide, 1)
            }
            _ => return Err(ViewError::Conversion { from, to }),
        };
        Ok(Fragment {
            element: to,
            registers,
            each,
            ..fragment.clone()
        })
    }

    /// Calls `f` for each value of a thread, with the value in a register of its own and its coordinates in the tile; what `f` leaves in the
    /// register is the fragment's new value. An epilogue: a bias, an activation, a scale.
    ///
    /// ```
    /// use layout_codegen::ir::{Binary, Kernel, Type};
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// // ReLU.
    /// k.for_each_value(&sums, |k, value, [_row, _column]| {
    ///     k.binary(Binary::Max, Type::F32, value, value, 0.0f32);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `f`.
    pub fn for_each_value(
        &mut self,
        fragment: &Fragment,
        mut f: impl FnMut(&mut Self, Reg, [Expr; 2]) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        for (i, &word) in fragment.registers.iter().enumerate() {
            let first = i * fragment.each;
            if fragment.each == 1 {
                let at = fragment.coordinates(self, first)?;
                f(self, word, at)?;
                continue;
            }
            let parts = self.regs(Class::B16, fragment.each);
            self.take_apart(fragment.element, &[word], &parts);
            for (value, &part) in (first..).zip(&parts) {
                let at = fragment.coordinates(self, value)?;
                f(self, part, at)?;
            }
            self.put_together(fragment.element, &parts, &[word]);
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
    pub fn store_fragment(&mut self, to: &Partition, fragment: &Fragment) -> Result<(), ViewError> {
        let element = self.element_of(to)?;
        if fragment.element != element {
            return Err(ViewError::Elements {
                from: fragment.describe(),
                to: format!("{} of {element}", to.describe(self)),
            });
        }
        let same = to.view.tile.as_deref() == Some(fragment.shape());
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
