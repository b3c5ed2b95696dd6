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
//! 32,768 elements, a row is in the registers of a block. Longer rows are read tile by tile, twice or more often; from `sm_90` on, they are in the registers of a cluster of 2, 4 or 8 blocks,
//! which exchange what they combine through distributed shared memory ([`RowTile::in_cluster`]).

use layout_codegen::Arch;
use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Combine, Fragment, Partition, View, ViewError};
use layout_core::{Layout, Swizzled};

use crate::KernelError;

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

/// Two blocks of 512 threads on a multiprocessor: one loads while the other stores.
const CLUSTER: Sharing = Sharing {
    threads: 512,
    in_registers: 16_384,
    blocks: 8,
    ..FORWARD
};

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

    /// The tile for an architecture: the same as [`RowTile::for_result`], but from `sm_90` on that of [`RowTile::in_cluster`] for rows that a block has no registers for.
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
        if arch.0 >= 90 && cols > FORWARD.in_registers as u64 {
            return Self::in_cluster(element, result, cols);
        }
        Self::for_result(element, result, cols)
    }

    /// The tile of each block of a cluster that shares a row, from `sm_90` on. A row is read once, into the registers of 1, 2, 4 or 8 blocks.
    ///
    /// ```
    /// use layout_codegen::ir::Element;
    /// use tilewright_kernels::rows::RowTile;
    ///
    /// let tile = RowTile::in_cluster(Element::Bf16, Element::Bf16, 128_256)?;
    /// assert_eq!((tile.blocks, tile.threads, tile.cols), (8, 512, 16_384));
    /// assert!(tile.is_in_registers());
    /// # Ok::<(), tilewright_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`RowTile::new`].
    pub fn in_cluster(element: Element, result: Element, cols: u64) -> Result<Self, KernelError> {
        Self::shared_out(element, result, cols, CLUSTER)
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
        } else {
            vectors(across * part)
        };
        let rows = (of.least_threads / across).max(1);
        let tile = across * part * steps;
        let thread = Layout::flat(&[across, rows], &[vector * rows, 1])?;
        let shares = |steps: i64| {
            let value = [vector, vectors_of_step * steps];
            let value = Layout::flat(&value, &[rows, vector * across * rows])?;
            Layout::tuple(&[thread, value])
        };
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

    /// Whether a whole row is in the registers of a block, or of a cluster.
    pub fn is_in_registers(&self) -> bool {
        self.most == self.blocks * self.cols
    }

    /// A kernel with a block for each tile of rows, or a cluster.
    pub(crate) fn kernel(&self, name: &str) -> Kernel {
        let mut k = Kernel::new(name, self.threads);
        if self.blocks > 1 {
            k.clusters([1, self.blocks as u32, 1]);
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

    /// The maximum of each row of a fragment, of the block's part of it. A block of a cluster may have no element of a row: its maximum is the least number, and not −∞.
    pub(crate) fn most_of_block(
        &self,
        k: &mut Kernel,
        x: &Fragment,
    ) -> Result<Fragment, ViewError> {
        let most = x.reduce(k, 1, Combine::Max)?;
        if self.blocks == 1 {
            return Ok(most);
        }
        most.map(k, |k, most| most.max(k, f32::MIN))
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

    /// The layout of the groups of threads that share a row where all threads of the block do: thread → 0.
    pub(crate) fn block(&self) -> Result<Layout, KernelError> {
        Ok(Layout::mode(self.threads.into(), 0)?)
    }
}
