//! How the kernels on rows of a matrix share them out among threads.
//!
//! ```text
//! rows × cols of x ──▶ tiles of `rows` whole rows, a block each
//! a row of a tile  ──▶ `across` threads: a warp or a part of one, or several warps
//! a thread         ──▶ `steps` times one vector or several, `across` vectors apart
//! ```
//!
//! Neighbouring threads touch neighbouring vectors. A vector has 16 bytes, or the largest power of two that divides a row: with an odd number of columns, rows begin at
//! any element. If each thread loaded 8 neighbouring elements one by one, the lanes of a load would be 16 bytes apart. Rows of up to 1024 elements are in a warp or less, longer ones in several warps; up to
//! 32,768 elements, a row is in the registers of a block. Longer rows are read tile by tile, twice or more often; from `sm_90` on, they are in the shared memory of a cluster of 2, 4 or 8 blocks,
//! which exchange what they combine through distributed shared memory ([`RowTile::in_cluster`]).

use layout_codegen::Arch;
use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Combine, Fragment, Partition, View, ViewError};
use layout_core::{Layout, LayoutError, Swizzled};

use crate::KernelError;
use crate::online::total;

/// The most rows of a matrix.
pub const MOST_ROWS: i64 = 1 << 30;

/// The longest row, in elements.
pub const LONGEST: i64 = 131_072;

/// How rows are shared out.
#[derive(Clone, Copy)]
struct Sharing {
    /// The longest row of a warp, in elements.
    of_warp: i64,
    /// Bytes of a longer row that a thread has, about.
    bytes: i64,
    /// The most threads of a row.
    threads: i64,
    /// The least threads of a block.
    least_threads: i64,
    /// The longest row that is in the registers of a block.
    in_registers: i64,
    /// The most blocks of a cluster that share a row.
    blocks: i64,
}

const FORWARD: Sharing = Sharing {
    of_warp: 1024,
    bytes: 64,
    threads: 1024,
    least_threads: 128,
    in_registers: 32_768,
    blocks: 1,
};

/// The parts of a row are in the shared memory of blocks of few threads, of which a multiprocessor has several: one loads while another stores.
const CLUSTER: Sharing = Sharing {
    threads: 256,
    blocks: 8,
    ..FORWARD
};

/// Bytes of a row in each block of a cluster; twice as many in the longest rows.
const BYTES_OF_BLOCK: i64 = 32_768;

const BACKWARD: Sharing = Sharing {
    of_warp: 512,
    bytes: 32,
    threads: 512,
    least_threads: 256,
    in_registers: 8192,
    blocks: 1,
};

/// The element types of kernels on rows.
pub const ELEMENTS: [Element; 3] = [Element::F32, Element::F16, Element::Bf16];

/// How a block shares out rows among its threads: a tile of `rows × cols`.
///
/// A kernel for this tile takes any number of rows and 0 to [`most`](Self::most) columns; it is fastest for the number that the tile was made for.
///
/// ```
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::rows::RowTile;
///
/// let tile = RowTile::new(Element::Bf16, 1000)?;
/// assert_eq!((tile.rows, tile.cols, tile.threads), (4, 1024, 128)); // a warp a row
/// assert_eq!(tile.shares.to_string(), "((32,4),(8,4)):((32,1),(4,1024))");
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowTile {
    /// The type of the elements: f32, f16 or bf16.
    pub element: Element,
    /// Rows of the tile.
    pub rows: i64,
    /// Columns of the tile.
    pub cols: i64,
    /// The longest row that a kernel for this tile takes.
    pub most: i64,
    /// Elements of a vector.
    pub vector: i64,
    /// Steps of a thread, each of a vector, or of as many as fill a register.
    pub steps: i64,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of a cluster that share a row, one tile each; 1 without clusters.
    pub blocks: i64,
    /// (thread, value) → row + rows·column of the tile.
    pub shares: Layout,
    /// The same for one step.
    pub step: Layout,
}

impl RowTile {
    /// The tile for rows of `cols` elements; of 131,072 at most.
    ///
    /// # Errors
    ///
    /// [`KernelError::Element`] for other types than f32, f16 and bf16.
    pub fn new(element: Element, cols: u64) -> Result<Self, KernelError> {
        Self::for_result(element, element, cols)
    }

    /// The same for a kernel whose result has elements of another type, such as the 8 bits of a norm that is quantised: a step fills whole registers of it.
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn for_result(element: Element, result: Element, cols: u64) -> Result<Self, KernelError> {
        Self::shared_out(element, result, cols, FORWARD)
    }

    /// The tile for an architecture: the same as [`RowTile::for_result`], but from `sm_90` on that of [`RowTile::in_cluster`] for rows of more than 32,768 elements of f32, or 16,384 of 16-bit types.
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn for_arch(
        element: Element,
        result: Element,
        cols: u64,
        arch: Arch,
    ) -> Result<Self, KernelError> {
        // Measured on an H200: of 32,768 elements of bf16 a cluster is faster, of f32 the registers of a block.
        let in_registers = if element.bytes() == 4 { 32_768 } else { 16_384 };
        if arch.0 >= 90 && cols > in_registers {
            return Self::in_cluster(element, result, cols);
        }
        Self::for_result(element, result, cols)
    }

    /// The tile for an architecture and a result with a scale for each 128 elements of a row ([`RmsNorm::blocks`](crate::norm::RmsNorm::blocks)): vectors have 16 bytes, and a step has whole blocks.
    /// Rows whose length is not a multiple of a vector are read element by element.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Element;
    /// use tilewright_kernels::rows::RowTile;
    ///
    /// let tile = RowTile::for_blocks(Element::Bf16, Element::E4m3, 100, Arch(89))?;
    /// assert_eq!((tile.rows, tile.cols, tile.vector), (8, 128, 8));
    /// # Ok::<(), tilewright_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn for_blocks(
        element: Element,
        result: Element,
        cols: u64,
        arch: Arch,
    ) -> Result<Self, KernelError> {
        let cols = cols.clamp(128, LONGEST as u64).next_multiple_of(8);
        Self::for_arch(element, result, cols, arch)
    }

    /// The tile of each block of a cluster that shares a row, from `sm_90` on. A row is read once, into the shared memory of 2, 4 or 8 blocks, or the registers of one.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    /// use tilewright_kernels::rows::RowTile;
    ///
    /// let tile = RowTile::in_cluster(Element::Bf16, Element::Bf16, 128_256)?;
    /// assert_eq!((tile.blocks, tile.threads, tile.cols), (8, 256, 16_384));
    /// assert!(tile.is_kept());
    /// # Ok::<(), tilewright_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn in_cluster(element: Element, result: Element, cols: u64) -> Result<Self, KernelError> {
        let bytes = i64::from(element.bytes());
        let longest = (CLUSTER.blocks * BYTES_OF_BLOCK / bytes) as u64;
        let of_block = BYTES_OF_BLOCK * if cols > longest { 2 } else { 1 };
        let of = Sharing {
            in_registers: of_block / bytes,
            ..CLUSTER
        };
        Self::shared_out(element, result, cols, of)
    }

    /// The tile for a kernel that keeps sums of columns in registers while a block goes from row to row ([`norm_backward`](crate::norm::norm_backward)): half as many elements a thread,
    /// and rows of up to 8192 elements in registers.
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn backward(element: Element, cols: u64) -> Result<Self, KernelError> {
        Self::shared_out(element, element, cols, BACKWARD)
    }

    fn shared_out(
        element: Element,
        result: Element,
        cols: u64,
        of: Sharing,
    ) -> Result<Self, KernelError> {
        KernelError::unless_among(element, &ELEMENTS)?;
        let cols = i64::try_from(cols).unwrap_or(i64::MAX).clamp(1, LONGEST);
        let widest = 16 / i64::from(element.bytes());
        let vector = (1 << cols.trailing_zeros()).min(widest);
        // A register has 4 bytes, of which a short vector fills a part.
        let least = 4 / i64::from(element.bytes().min(result.bytes()));
        let vectors_of_step = (least / vector).max(1);
        let part = vector * vectors_of_step;
        let power = |n: i64| (n as u64).next_power_of_two() as i64;
        let of_cluster = power((cols as u64).div_ceil(of.in_registers as u64) as i64);
        let blocks = of_cluster.min(of.blocks);
        // Of a block.
        let cols = (cols as u64).div_ceil(blocks as u64) as i64;
        let vectors = |each: i64| (cols as u64).div_ceil(each as u64) as i64;
        // Up to a warp 16 bytes a thread, and then more.
        let across = match cols {
            _ if cols <= of.of_warp => power(vectors(widest)).min(32),
            _ => power(vectors(of.bytes / i64::from(element.bytes()))).clamp(32, of.threads),
        };
        let long = cols > of.in_registers;
        let steps = if long {
            of.bytes / i64::from(element.bytes()) / part
        } else if blocks > 1 {
            // In as many parts as are loaded one after the other.
            (vectors(across * part) as u64).next_multiple_of(4) as i64
        } else {
            vectors(across * part)
        };
        let rows = (of.least_threads / across).max(1);
        let tile = across * part * steps;
        let shares = |steps| shares([across, rows], [vector, vectors_of_step * steps]);
        Ok(Self {
            element,
            rows,
            cols: tile,
            most: if long { LONGEST } else { blocks * tile },
            vector,
            steps,
            threads: (across * rows) as u32,
            blocks,
            shares: shares(steps)?,
            step: shares(1)?,
        })
    }

    /// What a thread has of tile (i, j) of a matrix.
    pub(crate) fn share(
        &self,
        k: &mut Kernel,
        of: &View,
        at: [Expr; 2],
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        of.tile(k, &[self.rows, self.cols], &at)?
            .partition(k, &self.shares, thread)?
            .vectors(k, self.vector)
    }

    /// Loads tile (i, j) of a matrix. Beyond the end of a row there is −∞, which adds nothing to a sum of powers.
    pub(crate) fn load_logits(
        &self,
        k: &mut Kernel,
        of: &View,
        at: [Expr; 2],
        thread: Expr,
    ) -> Result<Fragment, ViewError> {
        let of = self.share(k, of, at, thread)?;
        let of = of.filled(k, f32::NEG_INFINITY)?;
        k.load_fragment(&of)
    }

    /// Whether a whole row is kept, in the registers of a block or in the shared memory of a cluster.
    pub fn is_kept(&self) -> bool {
        self.most == self.blocks * self.cols
    }

    /// A kernel with a block for each tile of rows, or a cluster.
    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        let mut k = Kernel::new(name, self.threads);
        if self.blocks > 1 {
            k.clusters([1, self.blocks as u32, 1]);
            // As many as have room in shared memory.
            let large = self.cols * i64::from(self.element.bytes()) > BYTES_OF_BLOCK;
            k.blocks_per_multiprocessor(if large { 3 } else { 4 });
        }
        k
    }

    /// The first of the block's tiles of a row: its rank in the cluster, or 0.
    pub(crate) fn first(&self, k: &mut Kernel) -> Result<Expr, ViewError> {
        if self.blocks == 1 {
            return Ok(k.constant(0));
        }
        k.blocks(Axis::Y, self.blocks as u32)
    }

    /// Combines the elements of each row of a fragment, over all blocks that share it. `name` is that of the shared memory for it.
    pub(crate) fn reduce(
        &self,
        k: &mut Kernel,
        name: &str,
        (x, how): (&Fragment, Combine),
    ) -> Result<Fragment, ViewError> {
        let of_block = x.reduce(k, 1, how)?;
        if self.blocks == 1 {
            return Ok(of_block);
        }
        let own = of_block.thread_values::<f32>(k)?[0];
        let [all] = self.of_ranks(k, name, [own])?;
        let all = k.reduce(all, &self.ranks()?, how)?;
        of_block.map(k, |_, _| all)
    }

    /// What the blocks of a cluster have of some numbers, which are the same for all threads of a block: lane l has those of rank l mod `blocks`. `name` is that of the shared
    /// memory for them.
    pub(crate) fn of_ranks<const N: usize>(
        &self,
        k: &mut Kernel,
        name: &str,
        own: [F32; N],
    ) -> Result<[F32; N], ViewError> {
        let (zero, thread) = (k.constant(0), k.thread());
        let first = Predicate::of(k, thread, Cmp::Eq, zero);
        let parts = Swizzled::from(Layout::mode(N as i64, 1)?);
        let parts = k.shared(name, Element::F32, &parts)?;
        let at: Vec<Expr> = (0..N).map(|i| k.constant(i as i64)).collect();
        k.when(first, |k| {
            let mut each = at.iter().zip(own);
            each.try_for_each(|(&at, own)| parts.store(k, &[at], own))
        })?;
        k.cluster_barrier();
        let lane = k.lane();
        let rank = k.rem(lane, self.blocks);
        let parts = parts.in_block(k, rank)?;
        let mut all = own;
        for (all, &at) in all.iter_mut().zip(&at) {
            *all = parts.load(k, &[at])?;
        }
        Ok(all)
    }

    /// The maximum of each row and the sum of powers that belongs to it, over all blocks that share the row.
    pub(crate) fn over_blocks(&self, k: &mut Kernel, own: [F32; 2]) -> Result<[F32; 2], ViewError> {
        if self.blocks == 1 {
            return Ok(own);
        }
        let all = self.of_ranks(k, "parts", own)?;
        total(k, all, &self.ranks()?)
    }

    /// The layout of the groups of lanes that have one number of each rank: thread → group.
    pub(crate) fn ranks(&self) -> Result<Layout, ViewError> {
        Ok(Layout::flat(
            &[self.blocks, i64::from(self.threads) / self.blocks],
            &[0, 1],
        )?)
    }

    /// Does something in one of the blocks that share a row.
    pub(crate) fn once(
        &self,
        k: &mut Kernel,
        body: impl FnOnce(&mut Kernel) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        if self.blocks == 1 {
            return body(k);
        }
        let (zero, rank) = (k.constant(0), k.cluster_rank(Axis::Y)?);
        let first = Predicate::of(k, rank, Cmp::Eq, zero);
        k.when(first, body)
    }

    /// Waits for the other blocks that share a row: no block ends while another reads what it combined.
    pub(crate) fn end(&self, k: &mut Kernel) {
        if self.blocks > 1 {
            k.cluster_barrier();
        }
    }

    /// The layout of the groups of threads that share a row: thread → row of the tile.
    pub(crate) fn groups(&self) -> Result<Layout, ViewError> {
        let across = i64::from(self.threads) / self.rows;
        Ok(Layout::flat(&[across, self.rows], &[0, 1])?)
    }

    /// The same threads for a part of the columns.
    fn part(&self, parts: i64) -> Result<Self, ViewError> {
        let (steps, threads) = (self.steps / parts, i64::from(self.threads));
        let vectors = self.step.size() / threads / self.vector * steps;
        let threads = [threads / self.rows, self.rows];
        Ok(Self {
            cols: self.cols / parts,
            steps,
            shares: shares(threads, [self.vector, vectors])?,
            ..*self
        })
    }

    /// Columns of one step of all threads of a row.
    pub(crate) fn width(&self) -> i64 {
        self.cols / self.steps
    }

    /// What a thread has of step `at` of row tile `i` of a matrix.
    pub(crate) fn place(
        &self,
        k: &mut Kernel,
        of: &View,
        [i, at]: [Expr; 2],
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        of.tile(k, &[self.rows, self.width()], &[i, at])?
            .partition(k, &self.step, thread)?
            .vectors(k, self.vector)
    }
}

/// The layout (thread, value) → row + rows·column, of `across` threads along a row and `vectors` vectors of each.
fn shares([across, rows]: [i64; 2], [vector, vectors]: [i64; 2]) -> Result<Layout, LayoutError> {
    let thread = Layout::flat(&[across, rows], &[vector * rows, 1])?;
    let value = Layout::flat(&[vector, vectors], &[rows, vector * across * rows])?;
    Layout::tuple(&[thread, value])
}

/// Loads a tile of a row, by its number among those of its size.
pub(crate) type Load<'a> = dyn Fn(&mut Kernel, &RowTile, Expr) -> Result<Fragment, ViewError> + 'a;

/// Registers of a thread for what is loaded at once.
const REGISTERS: u64 = 32;

/// A row that is visited several times.
pub(crate) struct Row<'a> {
    tile: &'a RowTile,
    cols: Expr,
    thread: Expr,
    kept: Kept,
}

/// Where a row stays, as it was loaded.
enum Kept {
    /// Its tile `.0` in registers.
    Registers(Expr, Box<Fragment>),
    /// Its tile `.0` in shared memory, where a thread reads what it has written.
    Shared(Expr, View),
    /// Nowhere: it is loaded tile by tile.
    Memory,
}

impl<'a> Row<'a> {
    /// Loads the row, if it stays. An element of it is made of so many that are loaded.
    pub(crate) fn new(
        k: &mut Kernel,
        tile: &'a RowTile,
        (cols, thread): (Expr, Expr),
        (load, loaded): (&Load<'_>, i64),
    ) -> Result<Self, ViewError> {
        let first = tile.first(k)?;
        let kept = if tile.blocks > 1 {
            let of_row = Layout::flat(&[1, tile.cols], &[0, 1])?;
            let row = k.shared("row", tile.element, &Swizzled::from(of_row))?;
            let bytes = i64::from(tile.element.bytes()) * tile.cols / i64::from(tile.threads);
            let parts = ((loaded * bytes / 4) as u64)
                .div_ceil(REGISTERS)
                .next_power_of_two();
            let parts = parts.min(4) as i64;
            let part = tile.part(parts)?;
            let first_part = k.scale(first, parts);
            for number in 0..parts {
                let at = k.linear(&[(1, first_part)], number);
                let x = load(k, &part, at)?;
                let (zero, number) = (k.constant(0), k.constant(number));
                let to = part.share(k, &row, [zero, number], thread)?;
                k.store_fragment(&to, &x)?;
            }
            Kept::Shared(first, row)
        } else if tile.is_kept() {
            Kept::Registers(first, Box::new(load(k, tile, first)?))
        } else {
            Kept::Memory
        };
        Ok(Self {
            tile,
            cols,
            thread,
            kept,
        })
    }

    /// Visits each step of the row, by its number along the row and in f32. What `prepare` gives for a step is asked for one step ahead.
    pub(crate) fn visit<T>(
        &self,
        k: &mut Kernel,
        load: &Load<'_>,
        mut prepare: impl FnMut(&mut Kernel, Expr) -> Result<T, ViewError>,
        mut visit: impl FnMut(&mut Kernel, Expr, &Fragment, T) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        let tile = self.tile;
        let mut steps = |k: &mut Kernel, j: Expr, x: Option<&Fragment>| {
            let first = k.scale(j, tile.steps);
            let parts = x.map(|x| x.split(1, tile.steps as usize)).transpose()?;
            let mut next = Some(prepare(k, first)?);
            for step in 0..tile.steps {
                let at = k.linear(&[(1, first)], step);
                let x = match (&parts, &self.kept) {
                    (Some(parts), _) => parts[step as usize].clone(),
                    (None, Kept::Shared(_, row)) => {
                        let (zero, step) = (k.constant(0), k.constant(step));
                        let from = tile.place(k, row, [zero, step], self.thread)?;
                        k.load_fragment(&from)?
                    }
                    (None, _) => load(k, tile, j)?,
                };
                let x = x.convert(k, Element::F32)?;
                let Some(prepared) = next.take() else { break };
                if step + 1 < tile.steps {
                    let at = k.linear(&[(1, first)], step + 1);
                    next = Some(prepare(k, at)?);
                }
                visit(k, at, &x, prepared)?;
            }
            Ok(())
        };
        match &self.kept {
            Kept::Registers(j, x) => steps(k, *j, Some(x)),
            Kept::Shared(j, _) => steps(k, *j, None),
            Kept::Memory => k.for_loop("column", 0, tile.cols, self.cols, |k, column| {
                let j = k.div(column, tile.cols);
                let x = load(k, tile, j)?;
                steps(k, j, Some(&x))
            }),
        }
    }
}
