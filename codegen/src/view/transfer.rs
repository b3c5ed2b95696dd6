//! Loads, stores and copies through shares of tiles.

use super::partition::Instruction;
use super::remote::not_reached;
use super::words::{held, words};
use super::{Partition, ViewError};
use crate::index::Expr;
use crate::ir::{
    Binary, Cache, Class, Cmp, Element, Extent, Kernel, Origin, Reg, Role, Space, Type,
};

/// A thread's values of a tile, on their way from one share to another. To compute with them, load a [`Fragment`](crate::view::Fragment).
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Swizzled};
///
/// let mut k = Kernel::new("k", 32);
/// let tile = k.shared("tile", Element::F16, &Swizzled::parse("128:1")?)?;
/// let lane = k.lane();
/// let share = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, lane)?.vectors(&k, 4)?;
/// let values = k.load_tile(&share)?; // one load of 8 bytes, taken apart
/// assert_eq!((values.element(), values.len()), (Element::F16, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Values {
    element: Element,
    /// A register for each value.
    registers: Vec<Reg>,
    origin: Origin,
}

impl Values {
    /// Their type.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, Swizzled};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.shared("tile", Element::S8, &Swizzled::parse("128:1")?)?;
    /// let lane = k.lane();
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, lane)?;
    /// assert_eq!(k.load_tile(&share)?.element(), Element::S8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn element(&self) -> Element {
        self.element
    }

    /// How many a thread has.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, Swizzled};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.shared("tile", Element::S8, &Swizzled::parse("128:1")?)?;
    /// let lane = k.lane();
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, lane)?;
    /// let values = k.load_tile(&share)?;
    /// assert_eq!((values.len(), values.is_empty()), (4, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn len(&self) -> usize {
        self.registers.len()
    }

    /// It has none: never, as every share has at least one.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, Swizzled};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let tile = k.shared("tile", Element::S8, &Swizzled::parse("32:1")?)?;
    /// let lane = k.lane();
    /// let share = tile.partition(&mut k, &Layout::parse("(32,1):(1,0)")?, lane)?;
    /// assert!(!k.load_tile(&share)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }
}

impl Kernel {
    /// This thread's values of a tile: 0 for what is outside the buffer.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let tile = x.tile(&mut k, &[128], &[block])?;
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(1,32)")?, thread)?;
    /// assert_eq!(k.load_tile(&share)?.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`] for a buffer without an element type.
    #[track_caller]
    pub fn load_tile(&mut self, from: &Partition) -> Result<Values, ViewError> {
        self.at_line();
        let element = self.element_of(from)?;
        let (class, _) = held(element);
        let registers = self.regs(class, from.values as usize);
        self.if_aligned(&[from], |k, whole| {
            k.load_all(from, element, &registers, whole)
        })?;
        let origin = self.here();
        Ok(Values {
            element,
            registers,
            origin,
        })
    }

    /// Stores this thread's values of a tile; what is outside the buffer is left out.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // y = x.
    /// let mut k = Kernel::new("copy", 32);
    /// let n = k.size("n", 1 << 20);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let shares = Layout::parse("(32,4):(1,32)")?;
    /// let from = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &shares, thread)?;
    /// let to = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &shares, thread)?;
    /// let values = k.load_tile(&from)?;
    /// k.store_tile(&to, &values)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Elements`] or [`ViewError::Shapes`] if the values are not those of the tile.
    #[track_caller]
    pub fn store_tile(&mut self, to: &Partition, values: &Values) -> Result<(), ViewError> {
        self.at_line();
        let element = self.element_of(to)?;
        if let Some(what) = self.out_of_reach("values of a tile", values.origin) {
            return Err(ViewError::OutOfReach { what });
        }
        if values.element != element {
            return Err(ViewError::Elements {
                from: format!("values of {}", values.element),
                to: format!("{} of {element}", to.describe(self)),
            });
        }
        if values.registers.len() != to.values as usize {
            return Err(ViewError::Shapes {
                from: format!("{} values", values.registers.len()),
                to: to.describe(self),
            });
        }
        self.if_aligned(&[to], |k, whole| {
            k.store_all(to, element, &values.registers, whole)
        })
    }

    /// Copies a tile, value by value, by the instruction of the two shares: loads and stores, where all of a thread's loads are in flight
    /// before its first store, or `cp.async`, which [`Kernel::commit_group`] and [`Kernel::wait_group`] (or [`Kernel::wait_all`]) wait for. What is
    /// outside the source is 0 in the target. Rows that are not aligned to what `cp.async` copies go through registers.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("copy", 32);
    /// let n = k.size("n", 1 << 20);
    /// let (x, y) = (k.input("x", Element::F16, &[n]), k.output("y", Element::F16, &[n]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 256)?, k.thread());
    /// let shares = Layout::parse("(32,8):(8,1)")?;
    /// let from = x.tile(&mut k, &[256], &[block])?.partition(&mut k, &shares, thread)?.vectors(&k, 8)?;
    /// let to = y.tile(&mut k, &[256], &[block])?.partition(&mut k, &shares, thread)?.vectors(&k, 8)?;
    /// k.copy(&from, &to)?;
    /// let copy = k.build(Arch(80))?;
    /// assert!(copy.ptx.contains("ld.global.nc.v4.b32") && copy.ptx.contains("st.global.v4.b32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Elements`] or [`ViewError::Shapes`] if the two sides do not meet, [`ViewError::Instructions`] if they are for different
    /// instructions, or for one that does not copy from memory to memory.
    #[track_caller]
    pub fn copy(&mut self, from: &Partition, to: &Partition) -> Result<(), ViewError> {
        self.at_line();
        let (a, b) = (self.element_of(from)?, self.element_of(to)?);
        if a != b {
            return Err(ViewError::Elements {
                from: format!("{} of {a}", from.describe(self)),
                to: format!("{} of {b}", to.describe(self)),
            });
        }
        if from.values != to.values {
            return Err(ViewError::Shapes {
                from: from.describe(self),
                to: to.describe(self),
            });
        }
        if from.by != Instruction::Plain || to.by != Instruction::Plain {
            return self.copy_async_tile(from, to);
        }
        self.if_aligned(&[from, to], |k, whole| k.copy_plain(from, to, whole))
    }

    fn copy_plain(
        &mut self,
        from: &Partition,
        to: &Partition,
        whole: bool,
    ) -> Result<(), ViewError> {
        let element = self.element_of(from)?;
        let width = self.width(from, whole);
        if width != self.width(to, whole) {
            let registers = self.regs(held(element).0, from.values as usize);
            self.load_all(from, element, &registers, whole)?;
            return self.store_all(to, element, &registers, whole);
        }
        // Words stay whole.
        let (class, ty, n) = words(element, width);
        let firsts = (0..from.values).step_by(width as usize);
        let all: Vec<_> = firsts.map(|first| (first, self.regs(class, n))).collect();
        for (first, words) in &all {
            self.load_words(from, *first, words, ty)?;
        }
        all.iter()
            .try_for_each(|(first, words)| self.store_words(to, *first, words, ty))
    }

    /// By `cp.async` where rows are aligned to what it copies, through registers elsewhere.
    fn copy_async_tile(&mut self, from: &Partition, to: &Partition) -> Result<(), ViewError> {
        let Instruction::Async { bytes, cached } = from.by else {
            return Err(self.one_instruction(from, to));
        };
        if from.by != to.by {
            return Err(self.one_instruction(from, to));
        }
        self.if_aligned(&[from, to], |k, whole| {
            if !whole || from.view.ends.iter().any(Option::is_some) {
                return k.copy_plain(from, to, whole);
            }
            for value in (0..from.values).step_by(from.vector as usize) {
                let (target, _) = k.place_of(to, value, true)?;
                let size = k.size_inside(from, value)?;
                let by = from.coordinates(k, value)?;
                let source = from.view.element(k, &from.view.ordered(&by))?;
                k.copy_async(target, source, (bytes, cached), size);
                let name = k.buffer(to.view.buffer).name.clone();
                k.tag(&format!("write {name}"));
            }
            Ok(())
        })
    }

    fn one_instruction(&self, from: &Partition, to: &Partition) -> ViewError {
        let [from, to] = [from, to].map(|share| {
            let by = match share.by {
                Instruction::Plain => "loads and stores".to_owned(),
                Instruction::Async { bytes, .. } => format!("asynchronous copies of {bytes} bytes"),
                Instruction::Matrices { .. } => "loads of matrices".to_owned(),
            };
            format!("{} by {by}", share.describe(self))
        });
        ViewError::Instructions { from, to }
    }

    /// The bytes of a vector that are inside the buffer: none where all of it is known to be.
    fn size_inside(&mut self, share: &Partition, value: i64) -> Result<Option<Reg>, ViewError> {
        let by = share.coordinates(self, value)?;
        let by = share.view.ordered(&by);
        let bytes = self.buffer(share.view.buffer).bytes;
        let last = by.len() - 1;
        let mut row = None;
        for (mode, &by) in by.iter().enumerate() {
            row = self.not_below(share, by, mode, row);
        }
        for (mode, &by) in by[..last].iter().enumerate() {
            if let Some((left, constant)) = self.left(share, by, mode) {
                row = Some(self.compare_here(Cmp::Gt, left, -constant, row));
            }
        }
        Ok(match (self.left(share, by[last], last), row) {
            (None, None) => None,
            (Some((left, constant)), row) => {
                let row = row.unwrap_or_else(|| self.compare_here(Cmp::Gt, left, -constant, None));
                Some(self.bytes_inside(row, (left, -constant), (share.vector, bytes)))
            }
            (None, Some(row)) => {
                let all = self.pool.constant(share.vector);
                Some(self.bytes_inside(row, (all, 0), (share.vector, bytes)))
            }
        })
    }

    /// Elements from a coordinate to the end of its mode of the buffer, without their constant and the constant; none where every thread is known
    /// to be inside.
    fn left(&mut self, share: &Partition, by: Expr, mode: usize) -> Option<(Expr, i64)> {
        let buffer = self.buffer(share.view.buffer);
        match buffer.extents[share.view.front + mode] {
            Extent::Value(extent) => self.left_to(share, by, mode, extent),
            _ => None,
        }
    }

    /// As [`Kernel::left`], to an end of the mode.
    fn left_to(
        &mut self,
        share: &Partition,
        by: Expr,
        mode: usize,
        extent: Expr,
    ) -> Option<(Expr, i64)> {
        let (view, extents) = (&share.view, &self.buffer(share.view.buffer).extents);
        let in_buffer = view.front + mode;
        let together = if in_buffer + 1 == extents.len() {
            share.vector
        } else {
            1
        };
        let at = self.pool.add(view.origin[in_buffer], by);
        let left = self.pool.sub(extent, at);
        if self.pool.as_const(extent).is_some() && self.pool.facts(left).lo >= together.into() {
            return None;
        }
        // Constants stay in the comparison, so that values at constant distances share a register.
        let (_, constant) = self.pool.terms(left);
        let less = self.pool.constant(-constant);
        Some((self.pool.add(left, less), constant))
    }

    /// Values that are touched at once: where rows are not known to be `whole` vectors, those of a buffer whose rows are of any length are
    /// touched one by one.
    pub(super) fn width(&self, share: &Partition, whole: bool) -> i64 {
        if ends_in_a_row(share) {
            1
        } else if whole || self.row(share).is_none() {
            share.vector
        } else {
            1
        }
    }

    /// The extent of the contiguous mode, if it is not a constant.
    fn row(&self, share: &Partition) -> Option<Expr> {
        match self.buffer(share.view.buffer).extents.last() {
            Some(Extent::Value(row)) => Some(*row),
            _ => None,
        }
    }

    fn load_all(
        &mut self,
        from: &Partition,
        element: Element,
        to: &[Reg],
        whole: bool,
    ) -> Result<(), ViewError> {
        let width = self.width(from, whole);
        let (class, ty, n) = words(element, width);
        for (first, to) in (0..).step_by(width as usize).zip(to.chunks(width as usize)) {
            if n == to.len() {
                self.load_words(from, first, to, ty)?;
                continue;
            }
            let words = self.regs(class, n);
            self.load_words(from, first, &words, ty)?;
            self.take_apart(element, &words, to);
        }
        Ok(())
    }

    fn store_all(
        &mut self,
        to: &Partition,
        element: Element,
        from: &[Reg],
        whole: bool,
    ) -> Result<(), ViewError> {
        let width = self.width(to, whole);
        let (class, ty, n) = words(element, width);
        for (first, from) in (0..)
            .step_by(width as usize)
            .zip(from.chunks(width as usize))
        {
            if n == from.len() {
                self.store_words(to, first, from, ty)?;
                continue;
            }
            let words = self.regs(class, n);
            self.put_together(element, from, &words);
            self.store_words(to, first, &words, ty)?;
        }
        Ok(())
    }

    pub(super) fn element_of(&self, share: &Partition) -> Result<Element, ViewError> {
        share.view.own(self)?;
        let held = share
            .owner
            .or(share.only.first().copied())
            .and_then(|_| self.out_of_reach("a share of a tile", share.origin));
        if let Some(what) = held {
            return Err(ViewError::OutOfReach { what });
        }
        share.view.element.ok_or_else(|| ViewError::NoTile {
            buffer: share.view.name(self).to_owned(),
        })
    }

    /// What `body` does with whole vectors where the rows of every share are aligned to them, and element by element elsewhere.
    pub(super) fn if_aligned(
        &mut self,
        shares: &[&Partition],
        body: impl Fn(&mut Self, bool) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        let mut aligned: Option<Reg> = None;
        for share in shares.iter().filter(|s| s.vector > 1) {
            if ends_in_a_row(share) {
                continue;
            }
            // Packed rows of a multiple of the vector begin and end at multiples of it.
            let Some(row) = self.row(share) else {
                continue;
            };
            let zero = self.pool.constant(0);
            let rest = self.pool.and(row, (share.vector - 1) as u64);
            match self.pool.as_const(rest) {
                Some(0) => continue,
                Some(_) => return body(self, false),
                None => {}
            }
            // One inequality, whose opposite is one as well: a path in a loop remembers either as a bound.
            let p = self.compare(Cmp::Le, rest, zero);
            aligned = Some(match aligned {
                None => p,
                Some(q) => self.combine(crate::ir::Logic::And, p, q, 0),
            });
        }
        match aligned {
            None => body(self, true),
            Some(p) => {
                // Outside loops each side computes its addresses itself, so that those of the other do not occupy registers.
                let apart = !self.in_loop();
                self.begin_if(p, true);
                for whole in [true, false] {
                    if !whole {
                        self.otherwise();
                    }
                    if apart {
                        self.open_region();
                    }
                    body(self, whole)?;
                    if apart {
                        self.close_region();
                    }
                }
                self.end_if();
                Ok(())
            }
        }
    }

    /// The place of a value, and the predicate that it is inside the buffer: none in shared memory, whose tiles are whole.
    fn place_of(
        &mut self,
        share: &Partition,
        value: i64,
        writes: bool,
    ) -> Result<(crate::ir::Address, Option<Reg>), ViewError> {
        let within = share.coordinates(self, value)?;
        let by = share.view.ordered(&within);
        let only = share.only.get(value as usize).copied();
        let owner = only.or(share.owner).filter(|_| writes);
        let inside = self.inside(share, &by, owner);
        let at = share.view.element(self, &by)?;
        Ok((at, inside))
    }

    /// The predicate that a coordinate is not below 0, and what else holds: as it was where no thread is known to have one below.
    fn not_below(
        &mut self,
        share: &Partition,
        by: Expr,
        mode: usize,
        and: Option<Reg>,
    ) -> Option<Reg> {
        let view = &share.view;
        let in_buffer = view.front + mode;
        let bounded = matches!(
            self.buffer(view.buffer).extents[in_buffer],
            Extent::Value(_)
        );
        let at = self.pool.add(view.origin[in_buffer], by);
        if !bounded || self.pool.facts(at).lo >= 0 {
            return and;
        }
        let (_, constant) = self.pool.terms(at);
        let less = self.pool.constant(-constant);
        let at = self.pool.add(at, less);
        Some(self.compare_here(Cmp::Ge, at, -constant, and))
    }

    fn inside(&mut self, share: &Partition, by: &[Expr], owner: Option<Reg>) -> Option<Reg> {
        let mut inside = owner;
        for (mode, &by) in by.iter().enumerate() {
            inside = self.not_below(share, by, mode, inside);
            let end = share.view.ends.get(share.view.front + mode);
            let end = end.copied().flatten();
            let of_part = end.and_then(|end| self.left_to(share, by, mode, end));
            for (left, constant) in [self.left(share, by, mode), of_part].into_iter().flatten() {
                inside = Some(self.compare_here(Cmp::Gt, left, -constant, inside));
            }
        }
        inside
    }

    pub(super) fn load_words(
        &mut self,
        from: &Partition,
        value: i64,
        to: &[Reg],
        ty: Type,
    ) -> Result<(), ViewError> {
        let own = from.of_own_block();
        let (at, inside) = self.place_of(&own, value, false)?;
        if let Some(block) = from.view.block {
            if inside.is_some() {
                for &r in to {
                    self.fill(r, from);
                }
            }
            self.reach(inside, at, block, (ty, to, false));
            return Ok(());
        }
        let buffer = self.buffer(from.view.buffer);
        let (name, input) = (buffer.name.clone(), buffer.role == Role::Input);
        let cache = if at.space() == Space::Global && input {
            Cache::ReadOnly
        } else {
            Cache::Coherent
        };
        if inside.is_some() {
            for &r in to {
                self.fill(r, from);
            }
        }
        if let Some((ring, index)) = self.use_of(&from.view) {
            self.fetch(to, at, &ring, index);
            self.tag(&format!("read {name}"));
            self.parting.fetched.insert(ring.number());
            return Ok(());
        }
        self.load(inside.map(Into::into), cache, ty, to, at);
        if at.space() == Space::Shared {
            self.tag(&format!("read {name}"));
        }
        Ok(())
    }

    pub(super) fn store_words(
        &mut self,
        to: &Partition,
        value: i64,
        from: &[Reg],
        ty: Type,
    ) -> Result<(), ViewError> {
        self.store_or_combine(to, value, from, ty, None)
    }

    /// Stores words, or combines what is there with them by an atomic operation.
    pub(super) fn store_or_combine(
        &mut self,
        to: &Partition,
        value: i64,
        from: &[Reg],
        ty: Type,
        atomic: Option<Binary>,
    ) -> Result<(), ViewError> {
        let own = to.of_own_block();
        let (at, inside) = self.place_of(&own, value, true)?;
        let name = self.buffer(to.view.buffer).name.clone();
        if let Some(block) = to.view.block {
            if atomic.is_some() {
                return Err(not_reached("an atomic operation", &name));
            }
            self.reach(inside, at, block, (ty, from, true));
            return Ok(());
        }
        self.stored(inside.map(Into::into), ty, from, at, atomic);
        if at.space() == Space::Shared {
            let verb = atomic.map_or("write", |_| "combine");
            self.tag(&format!("{verb} {name}"));
        }
        Ok(())
    }

    /// Sets a register to what is outside of a share's buffer.
    fn fill(&mut self, r: Reg, share: &Partition) {
        let bits = share.fill;
        match r.class {
            _ if bits == 0 => self.clear(r),
            Class::F32 => self.set(Type::F32, r, f32::from_bits(bits)),
            Class::B16 => self.set(Type::B16, r, i64::from(bits)),
            // Two elements, or one.
            _ if bits > 0xffff => self.set(Type::B32, r, i64::from(bits)),
            _ => self.set(Type::B32, r, i64::from(bits << 16 | bits)),
        }
    }

    pub(super) fn clear(&mut self, r: Reg) {
        match r.class {
            Class::F32 => self.set(Type::F32, r, 0.0f32),
            Class::F64 => self.set(Type::F64, r, 0.0f64),
            Class::B16 => self.set(Type::B16, r, 0),
            Class::B64 => self.set(Type::B64, r, 0),
            Class::B32 | Class::Pred => self.set(Type::B32, r, 0),
        }
    }
}

impl Partition {
    /// The same share of the block's own shared memory.
    fn of_own_block(&self) -> Self {
        let mut own = self.clone();
        own.view.block = None;
        own
    }
}

/// The view ends in the midst of rows, where a vector may be inside in part.
fn ends_in_a_row(share: &Partition) -> bool {
    matches!(share.view.ends.last(), Some(Some(_)))
}
