//! Buffers and the views of them: declared, moved, cut into tiles, transposed.

use std::sync::Arc;

use layout_core::derive::Derivation;
use layout_core::{Layout, LayoutError, Swizzled};

use super::ViewError;
use crate::index::{Expr, Node};
use crate::ir::{
    Arrangement, Axis, Buffer, Cmp, Element, Extent, Kernel, LoopHandle, Role, Space, StageUse,
    Stride,
};

/// A buffer, seen from a coordinate.
///
/// Modes are the buffer's, in its order; [`View::transposed`] reverses them. Coordinates and extents are in elements.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::ir::Element;
///
/// let mut k = Kernel::new("k", 32);
/// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
/// let x = k.input("x", Element::F32, &[rows, cols]);
/// let (i, j) = (k.constant(3), k.constant(0));
/// // Columns 0 to 31 of rows 48 to 63, as 32 rows of 16.
/// let tile = x.tile(&mut k, &[16, 32], &[i, j])?.transposed();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct View {
    pub(super) buffer: usize,
    /// The element; none where a family moves bits.
    pub(super) element: Option<Element>,
    /// Where this view begins in its buffer.
    pub(super) origin: Vec<Expr>,
    /// The address of that place: none in shared memory, unless it is asked for ([`View::located`]).
    pub(super) base: Option<Expr>,
    /// The tile's shape, where the view is one.
    pub(super) tile: Option<Vec<i64>>,
    /// Modes are given in reverse.
    pub(super) reversed: bool,
    /// The buffer's leading modes that a slice has fixed; they do not belong to the view.
    pub(super) front: usize,
    /// Where the view ends along each mode of its buffer, if that is before the buffer does.
    pub(super) ends: Vec<Option<Expr>>,
    /// A 0 for each of the buffer's last modes that are fixed: the stage of a ring, and which tile it holds.
    pub(super) back: Vec<Expr>,
    /// How its layout was derived, if it was.
    pub(super) derivation: Option<Arc<Derivation>>,
    /// The use of a stage of a ring over TMA that it is.
    pub(super) used: Option<StageUse>,
    /// The rank of the block of the cluster whose shared memory it is in, if that is not the own block's.
    pub(super) block: Option<Expr>,
}

/// What the address of a packed buffer is a multiple of: the widest access.
const VECTOR: u64 = 16;

/// Elements that a tile has at most.
pub(super) const MAX_TILE: i64 = 1 << 24;

/// Tiles that go through a ring at most.
pub(crate) const MAX_TILES: i64 = 1 << 31;

/// An extent of a tile of `of`, checked.
pub(super) fn checked(of: impl Into<String>, extent: i64) -> Result<i64, ViewError> {
    if (1..=MAX_TILE).contains(&extent) {
        return Ok(extent);
    }
    Err(ViewError::Extent {
        of: of.into(),
        extent,
        most: MAX_TILE,
    })
}

/// Bytes of a row of banks: tiles in shared memory begin with one.
pub(crate) const LINE: i64 = 128;

/// Bytes of shared memory that a block can have on the largest architectures.
const SHARED_LIMIT: u64 = 232_448;

/// Bytes of shared memory that a kernel can declare; the launch gives more (CUDA C++ Programming Guide, shared memory).
const STATIC_SHARED_LIMIT: u64 = 49_152;

impl Kernel {
    /// A size: an unsigned 32-bit parameter in `0..=most`, which the launch contract keeps.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("scale", 128);
    /// let n = k.size("n", 1 << 30);
    /// assert_eq!(k.range(n), (0, 1 << 30));
    /// ```
    #[track_caller]
    pub fn size(&mut self, name: &str, most: i64) -> Expr {
        self.at_line();
        self.param_u32(name, most)
    }

    /// A matrix (or a tensor of any rank) in global memory that the kernel only reads: packed, its last mode contiguous.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    /// k.input("x", Element::F16, &[rows, cols]);
    /// // A launch passes x at a multiple of 16 bytes.
    /// assert_eq!((k.params()[2].name.as_str(), k.params()[2].multiple), ("x", 16));
    /// ```
    #[track_caller]
    pub fn input(&mut self, name: &str, element: Element, extents: &[Expr]) -> View {
        self.at_line();
        self.packed(name, element, extents, Role::Input)
    }

    /// A matrix in global memory that the kernel only reads, whose rows are `pitch` elements apart: at least as many as the columns, which a launch is held to.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let [rows, cols, pitch] = ["rows", "cols", "pitch"].map(|name| k.size(name, 1 << 15));
    /// k.pitched_input("x", Element::F16, [rows, cols], pitch);
    /// let nothing = k.build(Arch(80))?;
    /// let sizes = |name: &str| Some(if name == "pitch" { 104 } else { 100 });
    /// assert_eq!(nothing.buffers(sizes)?[0].bytes, 100 * 104 * 2);
    /// assert!(nothing.buffers(|name| Some(if name == "pitch" { 96 } else { 100 })).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn pitched_input(
        &mut self,
        name: &str,
        element: Element,
        extents: [Expr; 2],
        pitch: Expr,
    ) -> View {
        self.at_line();
        self.pitched((name, Role::Input), element, extents, pitch)
    }

    /// A matrix (or a tensor of any rank) in global memory of which the kernel writes every element exactly once: packed, its last mode contiguous.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let n = k.size("n", 1 << 20);
    /// k.output("y", Element::F32, &[n]);
    /// let error = k.build(Arch(80)).unwrap_err();
    /// assert_eq!(error.to_string(), "output `y` is not written exactly once: nothing is stored");
    /// ```
    #[track_caller]
    pub fn output(&mut self, name: &str, element: Element, extents: &[Expr]) -> View {
        self.at_line();
        self.packed(name, element, extents, Role::Output)
    }

    /// A matrix in global memory of which the kernel writes every element exactly once, whose rows are `pitch` elements apart: at least as many as the columns, which a launch is held to. What is
    /// between two rows is not written.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    ///
    /// // The index of its column in each element of a matrix.
    /// let mut k = Kernel::new("columns", 128);
    /// let [rows, cols, pitch] = ["rows", "cols", "pitch"].map(|name| k.size(name, 1 << 15));
    /// let y = k.pitched_output("y", Element::S32, [rows, cols], pitch);
    /// let (block, row, thread) = (k.tiles(Axis::X, cols, 128)?, k.tiles(Axis::Y, rows, 1)?, k.thread());
    /// let column = k.linear(&[(128, block), (1, thread)], 0);
    /// let value = layout_codegen::value::S32::index(&mut k, column);
    /// y.store(&mut k, &[row, column], value)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn pitched_output(
        &mut self,
        name: &str,
        element: Element,
        extents: [Expr; 2],
        pitch: Expr,
    ) -> View {
        self.at_line();
        self.pitched((name, Role::Output), element, extents, pitch)
    }

    fn pitched(
        &mut self,
        (name, role): (&str, Role),
        element: Element,
        [rows, columns]: [Expr; 2],
        pitch: Expr,
    ) -> View {
        let reason = match role {
            Role::Input => "rows of an input do not overlap",
            _ => "rows of an output do not overlap",
        };
        if let Err(error) = self.assume(columns, Cmp::Le, pitch, reason) {
            self.mistake(error.to_string());
        }
        let strides = vec![Stride::Value(pitch), Stride::Fixed(1)];
        self.tensor(name, element, &[rows, columns], strides, role)
    }

    /// A matrix (or a tensor of any rank) in global memory of which the kernel writes some elements, each at most once, or combines elements with values by
    /// atomic operations alone ([`View::atomic`]). What it does not write keeps what it holds: a launch passes the tensor with its content.
    ///
    /// ```
    /// use layout_codegen::{Arch, Usage};
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    ///
    /// // cache[position + i] = x[i]
    /// let mut k = Kernel::new("append", 128);
    /// let [n, rows, position] = ["n", "rows", "position"].map(|name| k.size(name, 1 << 28));
    /// let (x, cache) = (k.input("x", Element::F32, &[n]), k.partial_output("cache", Element::F32, &[rows]));
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let value = x.load::<f32>(&mut k, &[i])?;
    /// cache.part(&mut k, &[position], &[n])?.store(&mut k, &[i], value)?;
    /// let append = k.build(Arch(80))?;
    /// assert_eq!(append.buffer("cache").map(|(_, _, usage)| usage), Some(Usage::Partial));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn partial_output(&mut self, name: &str, element: Element, extents: &[Expr]) -> View {
        self.at_line();
        self.packed(name, element, extents, Role::Partial)
    }

    fn packed(&mut self, name: &str, element: Element, extents: &[Expr], role: Role) -> View {
        let mut strides = Vec::new();
        let mut next = Stride::Fixed(1);
        for &extent in extents.iter().rev() {
            strides.push(next);
            next = Stride::Value(match next {
                Stride::Fixed(_) => extent,
                Stride::Value(s) => self.pool.mul(s, extent),
            });
        }
        strides.reverse();
        self.tensor(name, element, extents, strides, role)
    }

    fn tensor(
        &mut self,
        name: &str,
        element: Element,
        extents: &[Expr],
        strides: Vec<Stride>,
        role: Role,
    ) -> View {
        for &extent in extents {
            self.of_sizes(&format!("`{}`", name.escape_default()), extent);
        }
        let extents = extents.iter().map(|&e| Extent::Value(e)).collect();
        let bytes = element.bytes().into();
        let mut view = self.global(name, bytes, extents, strides, role);
        self.param_multiple(name, VECTOR);
        self.set_element(view.buffer, element);
        view.element = Some(element);
        view
    }

    /// A buffer of global memory by extents and strides.
    pub(crate) fn global(
        &mut self,
        name: &str,
        bytes: i64,
        extents: Vec<Extent>,
        strides: Vec<Stride>,
        role: Role,
    ) -> View {
        let base = self.param_pointer(name);
        self.global_at(name, base, bytes, extents, strides, role)
    }

    /// A buffer of global memory whose address is a value that the kernel has already.
    pub(crate) fn global_at(
        &mut self,
        name: &str,
        base: Expr,
        bytes: i64,
        extents: Vec<Extent>,
        strides: Vec<Stride>,
        role: Role,
    ) -> View {
        // An address is a multiple of the element.
        if let Node::Var { name } = self.pool.node(base).clone() {
            self.param_multiple(&name, bytes as u64);
        }
        let zero = self.pool.constant(0);
        let origin = vec![zero; extents.len()];
        let buffer = self.add_buffer(Buffer {
            name: name.to_owned(),
            space: Space::Global,
            bytes,
            element: None,
            extents,
            arrangement: Arrangement::Global { base, strides },
            role,
            stated: Vec::new(),
        });
        View {
            buffer,
            element: None,
            origin,
            base: Some(base),
            tile: None,
            reversed: false,
            front: 0,
            ends: Vec::new(),
            back: Vec::new(),
            derivation: None,
            used: None,
            block: None,
        }
    }

    /// A tile in shared memory by a layout from its coordinates to elements, such as one that was derived. It overlaps no other.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::Swizzled;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let tile = Swizzled::parse("Sw<5,0,5> o (32,32):(32,1)")?;
    /// k.shared("a", Element::F32, &tile)?;
    /// let twice = k.shared("b", Element::F64, &Swizzled::parse("32768:1")?);
    /// assert!(twice.is_err()); // 256 KiB more
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::SharedMemory`], or a layout that does not count bytes.
    #[track_caller]
    pub fn shared(
        &mut self,
        name: &str,
        element: Element,
        layout: &Swizzled,
    ) -> Result<View, ViewError> {
        self.at_line();
        self.checked_new_name("a shared buffer", name);
        self.staged(name, element, layout, (None, LINE))
    }

    /// A tile in shared memory at a multiple of `least` bytes, once or for each stage of a ring. A view of a ring's tile has two more modes, which are
    /// fixed: the stage, and the number of the tile that it holds, which has no stride.
    pub(crate) fn staged(
        &mut self,
        name: &str,
        element: Element,
        layout: &Swizzled,
        (stages, least): (Option<i64>, i64),
    ) -> Result<View, ViewError> {
        let bytes = i64::from(element.bytes());
        // Before it is counted in bytes: that of a small tile does not overflow.
        if layout
            .cosize()
            .unsigned_abs()
            .max(layout.offset().unsigned_abs())
            > SHARED_LIMIT
        {
            return Err(ViewError::SharedMemory {
                bytes: layout.cosize().unsigned_abs().saturating_mul(bytes as u64),
                limit: SHARED_LIMIT,
            });
        }
        let in_bytes = in_bytes(layout, bytes)?;
        // Where no bit of the swizzle reaches, so that an offset is an immediate.
        let align = (1i64 << in_bytes.swizzle().width()).max(least);
        let aligned = |byte: i64| (byte + align - 1) / align * align;
        let offset = aligned(self.shared_bytes() as i64);
        let (one, stride) = (layout.cosize() * bytes, aligned(layout.cosize() * bytes));
        let before_last = stages.map_or(0, |n| stride.saturating_mul(n - 1));
        let end = offset.saturating_add(before_last).saturating_add(one) as u64;
        self.extend_shared(end)?;
        let shape = layout.layout();
        let tile = (0..shape.rank())
            .map(|i| Ok(shape.get(i)?.size()))
            .collect::<Result<Vec<_>, LayoutError>>()?;
        let mut extents: Vec<_> = tile.iter().map(|&n| Extent::Fixed(n)).collect();
        let mut outer = Vec::new();
        if let Some(stages) = stages {
            extents.extend([stages, MAX_TILES].map(Extent::Fixed));
            outer.extend([stride, 0]);
        }
        let fixed = outer.len();
        let mut view = self.shared_at(name, bytes, in_bytes, offset, extents, outer);
        view.back = vec![self.pool.constant(0); fixed];
        self.set_element(view.buffer, element);
        view.element = Some(element);
        view.tile = Some(tile);
        Ok(view)
    }

    /// Reserves shared memory up to a byte.
    pub(crate) fn extend_shared(&mut self, end: u64) -> Result<(), ViewError> {
        if end > SHARED_LIMIT {
            return Err(ViewError::SharedMemory {
                bytes: end,
                limit: SHARED_LIMIT,
            });
        }
        self.reserve_shared(end, 1024, end > STATIC_SHARED_LIMIT);
        Ok(())
    }

    /// Whether an extent is known to be a multiple of a number, or is a size that a launch can keep to it.
    pub(super) fn is_multiple(&self, e: Expr, of: i64) -> bool {
        match self.pool.node(e) {
            Node::Const(c) => c % of == 0,
            Node::Var { .. } => true,
            Node::Mul(a, b) => self.is_multiple(*a, of) || self.is_multiple(*b, of),
            _ => of.count_ones() == 1 && self.pool.facts(e).trailing_zeros() >= of.trailing_zeros(),
        }
    }

    /// A view of a buffer whose elements are of a type, so that tiles of it can be copied.
    pub(crate) fn of_element(&mut self, view: View, element: Element) -> View {
        self.set_element(view.buffer, element);
        View {
            element: Some(element),
            ..view
        }
    }

    /// Says that the address of a buffer and its rows are multiples of `bytes` bytes; the launch contract refuses others.
    pub(crate) fn rows_aligned(&mut self, view: &View, bytes: i64) {
        let buffer = self.buffer(view.buffer);
        let element = buffer.bytes;
        let Arrangement::Global { base, strides } = buffer.arrangement.clone() else {
            return;
        };
        let strides = strides.iter().filter_map(|s| match s {
            Stride::Value(e) => Some((*e, (bytes / element).max(1))),
            Stride::Fixed(_) => None,
        });
        for (e, multiple) in strides.chain([(base, bytes)]) {
            if let Node::Var { name } = self.pool.node(e).clone() {
                self.param_multiple(&name, multiple as u64);
            }
        }
    }

    /// A buffer of shared memory at a byte of it: the first modes by a layout to bytes, the others by strides in bytes.
    pub(crate) fn shared_at(
        &mut self,
        name: &str,
        bytes: i64,
        layout: Swizzled,
        offset: i64,
        extents: Vec<Extent>,
        outer: Vec<i64>,
    ) -> View {
        let zero = self.pool.constant(0);
        let origin = vec![zero; extents.len()];
        let buffer = self.add_buffer(Buffer {
            name: name.to_owned(),
            space: Space::Shared,
            bytes,
            element: None,
            extents,
            arrangement: Arrangement::Shared {
                layout,
                outer,
                offset,
            },
            role: Role::Partial,
            stated: Vec::new(),
        });
        View {
            buffer,
            element: None,
            origin,
            base: None,
            tile: None,
            reversed: false,
            front: 0,
            ends: Vec::new(),
            back: Vec::new(),
            derivation: None,
            used: None,
            block: None,
        }
    }

    /// The index of a tile along an axis of the grid, which has as many blocks as tiles of `tile` elements cover `extent`: the launch contract
    /// computes them.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let n = k.size("n", 1000);
    /// let block = k.tiles(Axis::X, n, 64)?;
    /// assert_eq!(k.range(block), (0, 15)); // of 16 tiles
    /// assert!(k.tiles(Axis::X, n, 32).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::GridAxis`] if the axis counts something else, [`ViewError::Extent`] for a tile without elements.
    #[track_caller]
    pub fn tiles(&mut self, axis: Axis, extent: Expr, tile: i64) -> Result<Expr, ViewError> {
        self.at_line();
        let tile = checked("the grid", tile)?;
        self.of_sizes("the grid", extent);
        let most = self.pool.facts(extent).hi;
        let count = (most + i128::from(tile) - 1) / i128::from(tile);
        let name = ['x', 'y', 'z'][axis as usize];
        if !self.tile_axis(axis, extent, tile) {
            return Err(ViewError::GridAxis { axis: name });
        }
        let count = u64::try_from(count.max(1)).unwrap_or(u64::MAX / 16);
        let index = self.block_index(axis, self.whole_clusters(axis, count));
        self.tiling(index, extent, tile);
        if tile == 1 {
            self.block_is_inside(axis, index, extent);
        }
        Ok(index)
    }

    /// [`Kernel::tiles`], and how many tiles there are: the extent of an output with one element for each tile, such as a scale of it. The index is inside of that.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
    /// use layout_codegen::value::Predicate;
    /// use layout_codegen::view::Combine;
    /// use layout_core::Layout;
    ///
    /// // The sum of each 128 elements.
    /// let mut k = Kernel::new("sums", 128);
    /// let n = k.size("n", 1 << 20);
    /// let [block, blocks] = k.counted_tiles(Axis::X, n, 128)?;
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[blocks]));
    /// let (thread, zero) = (k.thread(), k.constant(0));
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let own = x.load::<f32>(&mut k, &[i])?;
    /// let sum = k.reduce(own, &Layout::parse("128:0")?, Combine::Add)?;
    /// let first = Predicate::of(&mut k, thread, Cmp::Eq, zero);
    /// k.when(first, |k| y.store(k, &[block], sum))?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::tiles`].
    #[track_caller]
    pub fn counted_tiles(
        &mut self,
        axis: Axis,
        extent: Expr,
        tile: i64,
    ) -> Result<[Expr; 2], ViewError> {
        self.at_line();
        let index = self.tiles(axis, extent, tile)?;
        let count = self.tiles_in(extent, tile)?;
        if tile > 1 {
            self.tiling(index, count, 1);
            self.block_is_inside(axis, index, count);
        }
        Ok([index, count])
    }

    /// There is a block for each of `count` tiles: its own is inside.
    fn block_is_inside(&mut self, axis: Axis, index: Expr, count: Expr) {
        if self.cluster[axis as usize] == 1 {
            let one = self.pool.constant(1);
            let next = self.pool.add(index, one);
            self.kept_by_launch(next, count);
        }
    }
}

impl Kernel {
    /// The block's index along an axis of which every launch has exactly `count` blocks, whatever the sizes are: they share the tiles among them in a loop.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // y = x by 264 blocks, each with every 264th tile.
    /// let mut k = Kernel::new("copy", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (block, thread, shares) = (k.blocks(Axis::X, 264)?, k.thread(), Layout::parse("(128,4):(1,128)")?);
    /// let tiles = k.tiles_in(n, 512)?;
    /// k.for_loop("i", 0, 264, tiles, |k, i| {
    ///     let tile = k.add(i, block);
    ///     let x = x.tile(k, &[512], &[tile])?.partition(k, &shares, thread)?;
    ///     let y = y.tile(k, &[512], &[tile])?.partition(k, &shares, thread)?;
    ///     k.copy(&x, &y)
    /// })?;
    /// let copy = k.build(Arch(80))?;
    /// assert_eq!(copy.grid(|_| Some(1000))?, [264, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::GridAxis`] if the axis counts something else. No block, or more than a grid has room for, is a mistake that [`Kernel::build`] reports.
    #[track_caller]
    pub fn blocks(&mut self, axis: Axis, count: u32) -> Result<Expr, ViewError> {
        self.at_line();
        if !self.whole_axis(axis, count) {
            let axis = ['x', 'y', 'z'][axis as usize];
            return Err(ViewError::GridAxis { axis });
        }
        Ok(self.block_index(axis, count.into()))
    }

    /// How many tiles of `tile` elements cover `extent`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let n = k.size("n", 1000);
    /// let steps = k.tiles_in(n, 32)?;
    /// assert_eq!(k.range(steps), (0, 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Extent`] for a tile without elements.
    #[track_caller]
    pub fn tiles_in(&mut self, extent: Expr, tile: i64) -> Result<Expr, ViewError> {
        self.at_line();
        let round = self.constant(checked("an extent", tile)? - 1);
        let end = self.add(extent, round);
        Ok(self.div(end, tile))
    }

    /// [`Kernel::tiles`] from the last tile to the first: where later tiles take longer, as the rows of causal attention do, the long ones begin
    /// first.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // y = x
    /// let mut k = Kernel::new("copy", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (i, thread) = (k.tiles_from_last(Axis::X, n, 512)?, k.thread());
    /// let shares = Layout::parse("(128,4):(1,128)")?;
    /// let x = x.tile(&mut k, &[512], &[i])?.partition(&mut k, &shares, thread)?;
    /// let y = y.tile(&mut k, &[512], &[i])?.partition(&mut k, &shares, thread)?;
    /// k.copy(&x, &y)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::tiles`].
    #[track_caller]
    pub fn tiles_from_last(
        &mut self,
        axis: Axis,
        extent: Expr,
        tile: i64,
    ) -> Result<Expr, ViewError> {
        self.at_line();
        let index = self.tiles(axis, extent, tile)?;
        let count = self.tiles_in(extent, tile)?;
        let one = self.pool.constant(1);
        let next = self.pool.add(index, one);
        let left = self.pool.sub(count, next);
        // There are as many blocks as tiles, so that it is never negative.
        let from_last = self.clamp(left, 0, i64::MAX);
        self.tiling(from_last, extent, tile);
        Ok(from_last)
    }
}

/// A layout of elements as one of bytes: strides and offset scaled, the swizzle's bits moved up.
///
/// # Errors
///
/// [`LayoutError`] for strides or a swizzle that do not fit.
pub fn in_bytes(layout: &Swizzled, bytes: i64) -> Result<Swizzled, LayoutError> {
    use layout_core::Swizzle;
    let up = bytes.trailing_zeros();
    let s = layout.swizzle();
    let swizzle = if s.is_identity() {
        s
    } else {
        Swizzle::new(s.b(), s.m() + up, s.s())?
    };
    let l = layout.layout();
    let scaled = Layout::mode(l.cosize(), bytes)?.compose(&l)?;
    Swizzled::new(swizzle, layout.offset() * bytes, scaled)
}

impl View {
    /// Coordinates in the buffer's order; those of the first modes that are fixed are left out.
    pub(super) fn ordered(&self, coordinates: &[Expr]) -> Vec<Expr> {
        let mut all = coordinates.to_vec();
        if self.reversed {
            all.reverse();
        }
        all.extend(&self.back);
        all
    }

    /// Modes of the view.
    fn rank(&self) -> usize {
        self.origin.len() - self.front - self.back.len()
    }

    /// The number of its buffer in the kernel.
    pub(crate) fn number(&self) -> usize {
        self.buffer
    }

    pub(crate) fn name<'k>(&self, k: &'k Kernel) -> &'k str {
        &k.buffer(self.buffer).name
    }

    /// Refuses a view of another kernel.
    pub(crate) fn own(&self, k: &Kernel) -> Result<(), ViewError> {
        let of = self.base.or_else(|| self.origin.first().copied());
        let mut of = of.into_iter().chain(self.block);
        match of.find_map(|e| k.elsewhere("a view", e)) {
            Some(what) => Err(ViewError::OutOfReach { what }),
            None => Ok(()),
        }
    }

    /// Bytes of the tile.
    pub(crate) fn bytes_of_tile(&self, k: &Kernel) -> i64 {
        let elements: i64 = self.tile.iter().flatten().product();
        elements * k.buffer(self.buffer).bytes
    }

    fn check_rank(&self, k: &Kernel, given: usize) -> Result<(), ViewError> {
        self.own(k)?;
        let modes = self.rank();
        if modes == given {
            return Ok(());
        }
        Err(ViewError::Rank {
            buffer: self.name(k).to_owned(),
            modes,
            given,
        })
    }

    /// The view with its modes in reverse: a matrix transposed.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    /// let x = k.input("x", Element::F32, &[rows, cols]);
    /// let (thread, zero) = (k.thread(), k.constant(0));
    /// let tile = x.tile(&mut k, &[2, 32], &[zero, zero])?;
    /// // Lane l has elements (0, l) and (1, l) of the tile, which are (l, 0) and (l, 1) of the transposed tile.
    /// let a = tile.partition(&mut k, &Layout::parse("(32,2):(2,1)")?, thread)?;
    /// let b = tile.transposed().partition(&mut k, &Layout::parse("(32,2):(1,32)")?, thread)?;
    /// assert_eq!(a.coordinates(&mut k, 1)?, [k.constant(1), thread]);
    /// assert_eq!(b.coordinates(&mut k, 1)?, [thread, k.constant(1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut tile = self.tile.clone();
        if let Some(shape) = &mut tile {
            shape.reverse();
        }
        Self {
            tile,
            reversed: !self.reversed,
            ..self.clone()
        }
    }

    /// The view from a coordinate on. In global memory it may be negative, or beyond the end: what is outside is not touched.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    /// let x = k.input("x", Element::F32, &[rows, cols]);
    /// let thread = k.thread();
    /// let row = x.at(&mut k, &[thread, thread])?;
    /// assert!(row.at(&mut k, &[thread]).is_err()); // x has two modes
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`].
    #[track_caller]
    pub fn at(&self, k: &mut Kernel, coordinates: &[Expr]) -> Result<Self, ViewError> {
        k.at_line();
        self.check_rank(k, coordinates.len())?;
        let by = self.ordered(coordinates);
        Ok(self.moved(k, &by)?)
    }

    /// The part of the view of global memory that begins at a coordinate and has the given extents: what is beyond it is outside, as if the buffer ended there.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let [rows, cols, first, n] = ["rows", "cols", "first", "n"].map(|name| k.size(name, 1 << 20));
    /// let x = k.input("x", Element::F32, &[rows, cols]);
    /// let zero = k.constant(0);
    /// // Rows first to first + n - 1.
    /// let some = x.part(&mut k, &[first, zero], &[n, cols])?;
    /// assert!(some.part(&mut k, &[zero], &[n]).is_err()); // it has two modes
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`]; [`ViewError::Space`] for shared memory.
    #[track_caller]
    pub fn part(&self, k: &mut Kernel, at: &[Expr], extents: &[Expr]) -> Result<Self, ViewError> {
        k.at_line();
        self.check_rank(k, extents.len())?;
        let mut part = self.at(k, at)?;
        let buffer = k.buffer(self.buffer);
        if buffer.space != Space::Global {
            return Err(ViewError::Space {
                instruction: "a part",
                writes: false,
                wanted: Some(Space::Global),
                buffer: buffer.name.clone(),
                space: buffer.space,
            });
        }
        let whole = buffer.extents.clone();
        part.ends.resize(whole.len(), None);
        let modes = self.ordered(extents).into_iter().enumerate();
        for (mode, extent) in modes {
            let mode = self.front + mode;
            let end = k.add(part.origin[mode], extent);
            let before = match part.ends[mode] {
                Some(before) => before,
                None if whole[mode] == Extent::Value(end) => continue,
                None => end,
            };
            part.ends[mode] = Some(k.smaller(before, end));
        }
        part.tile = None;
        Ok(part)
    }

    /// A stage of a ring, as the one that holds tile `tile`; of a ring over TMA as a use of that stage.
    pub(crate) fn stage(&self, stage: Expr, tile: Expr, used: Option<StageUse>) -> Self {
        let mut origin = self.origin.clone();
        if let [.., a, b] = &mut origin[..] {
            (*a, *b) = (stage, tile);
        }
        Self {
            origin,
            used,
            ..self.clone()
        }
    }

    /// The part of the buffer at coordinates of its first modes, which the view does not have any more: a head of a tensor of heads.
    ///
    /// The coordinates must be inside, as the index of a block along an axis of the grid is that [counts](Kernel::tiles) them one by one: they
    /// have no guard, and the prover refuses one that may be outside.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // y = x for a tensor of heads x rows x 64, 16 rows of a head a block.
    /// let mut k = Kernel::new("copy", 128);
    /// let (heads, rows, cols) = (k.size("heads", 1 << 16), k.size("rows", 1 << 20), k.constant(64));
    /// let x = k.input("x", Element::F32, &[heads, rows, cols]);
    /// let y = k.output("y", Element::F32, &[heads, rows, cols]);
    /// let (i, head, none) = (k.tiles(Axis::X, rows, 16)?, k.tiles(Axis::Y, heads, 1)?, k.constant(0));
    /// let (x, y) = (x.slice(&mut k, &[head])?, y.slice(&mut k, &[head])?);
    /// let (thread, shares) = (k.thread(), Layout::parse("((16,8),(4,2)):((64,1),(16,8))")?);
    /// let x = x.tile(&mut k, &[16, 64], &[i, none])?.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    /// let y = y.tile(&mut k, &[16, 64], &[i, none])?.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    /// k.copy(&x, &y)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`] if no mode would be left, or for a view that is transposed.
    #[track_caller]
    pub fn slice(&self, k: &mut Kernel, at: &[Expr]) -> Result<Self, ViewError> {
        k.at_line();
        self.own(k)?;
        if self.reversed || at.len() >= self.rank() {
            return Err(ViewError::Rank {
                buffer: self.name(k).to_owned(),
                modes: self.rank(),
                given: at.len(),
            });
        }
        let mut by = at.to_vec();
        by.resize(self.rank(), k.pool.constant(0));
        let mut slice = self.at(k, &by)?.pinned(k);
        slice.front += at.len();
        slice.tile = None;
        Ok(slice)
    }

    /// The tile of `shape` elements at tile coordinates `at`. Tiles at the end of the buffer may reach beyond it: what is outside is not touched.
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.size("cols", 1 << 20));
    /// let x = k.input("x", Element::F32, &[rows, cols]);
    /// let (i, j) = (k.constant(3), k.constant(0));
    /// // Rows 48 to 63, columns 0 to 31.
    /// x.tile(&mut k, &[16, 32], &[i, j])?;
    /// let error = x.tile(&mut k, &[16, 0], &[i, j]).unwrap_err();
    /// assert_eq!(error.to_string(), "`x` cannot be cut into tiles of 0 elements: a tile has 1 to 16777216 along a mode");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Rank`], or [`ViewError::Extent`] for a tile without elements.
    #[track_caller]
    pub fn tile(&self, k: &mut Kernel, shape: &[i64], at: &[Expr]) -> Result<Self, ViewError> {
        k.at_line();
        self.check_rank(k, shape.len())?;
        self.check_rank(k, at.len())?;
        for &extent in shape {
            checked(format!("`{}`", self.name(k)), extent)?;
        }
        let by: Vec<_> = at
            .iter()
            .zip(shape)
            .map(|(&at, &n)| k.scale(at, n))
            .collect();
        // What is the same for all values of the tile is computed once.
        let mut tile = self.at(k, &by)?.pinned(k);
        tile.tile = Some(shape.to_vec());
        Ok(tile)
    }

    /// The view moved by coordinates in the buffer's order; leading ones that are left out are 0.
    pub(crate) fn moved(&self, k: &mut Kernel, by: &[Expr]) -> Result<Self, LayoutError> {
        let origin = self.coordinates(k, by);
        let base = match self.base {
            None => {
                // What the outer modes add is older than what is added to it, so that sums begin alike wherever they are written.
                self.outer_bytes(k, &origin);
                None
            }
            Some(base) => {
                let distance = self.distance(k, by)?;
                Some(k.pool.add(base, distance))
            }
        };
        Ok(Self {
            origin,
            base,
            ..self.clone()
        })
    }

    /// The coordinates of the buffer that are `by` (in its order, leading zeros left out) away from where the view begins.
    pub(super) fn coordinates(&self, k: &mut Kernel, by: &[Expr]) -> Vec<Expr> {
        let mut all = self.origin.clone();
        for (at, &by) in all.iter_mut().rev().zip(by.iter().rev()) {
            *at = k.pool.add(*at, by);
        }
        all
    }

    /// The view with its address kept as one value, so that what is added to it is computed once.
    #[must_use]
    pub(crate) fn pinned(&self, k: &mut Kernel) -> Self {
        Self {
            base: self.base.map(|base| k.pool.pin(base)),
            ..self.clone()
        }
    }

    /// The same place by an address that a loop carries: it moves by one addition an iteration.
    #[must_use]
    pub(crate) fn carried(&self, k: &mut Kernel, name: &str, of: &LoopHandle) -> Self {
        Self {
            base: self.base.map(|base| k.induction_value(name, base, of)),
            ..self.clone()
        }
    }

    /// The view with its address as a value: moves are additions from there on. In shared memory that is possible without a swizzle.
    pub(super) fn located(&self, k: &mut Kernel) -> Result<Self, LayoutError> {
        let base = self.base(k)?;
        Ok(self.with_base(base))
    }

    /// The address of this view's first element.
    pub(crate) fn base(&self, k: &mut Kernel) -> Result<Expr, LayoutError> {
        match self.base {
            Some(base) => Ok(base),
            None => self.shared_byte(k, &self.origin),
        }
    }

    /// The same place by an address that equals its own: one that a loop carries, or that was chosen from several.
    #[must_use]
    pub(super) fn with_base(&self, base: Expr) -> Self {
        Self {
            base: Some(base),
            ..self.clone()
        }
    }
}
