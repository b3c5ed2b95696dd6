//! Distributed shared memory: shared tiles as other blocks of the cluster have them.
//!
//! All blocks of a cluster have the same tiles at the same places, so that a tile of another block is the own tile and a rank. Loads and stores of fragments, tiles and elements
//! reach it; matrix loads, asynchronous copies and atomic operations do not.
//!
//! ```text
//! partials of each block      part.in_block(k, r)      ── mapa, ld.shared::cluster ──▶ registers of any block
//! ```

use super::{View, ViewError};
use crate::index::Expr;
use crate::ir::{Kernel, Space};

/// What does not reach a view of another block.
pub(super) fn not_reached(instruction: &str, name: &str) -> ViewError {
    ViewError::OutOfReach {
        what: format!(
            "{instruction} reaches the block's own shared memory, and `{name}` is seen in another block: take loads and stores of fragments, tiles or elements"
        ),
    }
}

impl View {
    /// The same tile in the shared memory of the block of rank `rank` in the cluster ([`Kernel::clusters`]), to be loaded from and stored to as any view. The rank is proven to be of
    /// the cluster.
    ///
    /// The prover asks for [`Kernel::cluster_barrier`] between what a block writes and what others read of it, and behind the last access to other blocks. Between two of these
    /// barriers, a tile that other blocks access is either only read, or written through such views alone, each element by one thread of the cluster. What is read at last, all blocks have
    /// written, or have been sent.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::value::{F32, Value};
    /// use layout_core::Swizzled;
    ///
    /// // y[cluster] = the sum of x over the cluster's two blocks, an element each.
    /// let mut k = Kernel::new("sum", 32);
    /// k.clusters([2, 1, 1]);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let y = k.output("y", Element::F32, &[n]);
    /// let block = k.tiles(Axis::X, n, 32)?;
    /// let own = k.shared("own", Element::F32, &Swizzled::parse("32:1")?)?;
    /// let (lane, rank) = (k.lane(), k.cluster_rank(Axis::X)?);
    /// let i = k.linear(&[(32, block), (1, lane)], 0);
    /// let mine: F32 = x.load(&mut k, &[i])?;
    /// own.store(&mut k, &[lane], mine)?;
    /// k.cluster_barrier();
    /// let one = k.constant(1);
    /// let other = k.linear(&[(-1, rank), (1, one)], 0);
    /// let other: F32 = own.in_block(&mut k, other)?.load(&mut k, &[lane])?;
    /// let sum = mine.add(&mut k, other);
    /// k.cluster_barrier();
    /// y.store(&mut k, &[i], sum)?;
    /// assert!(k.build(Arch(90))?.ptx.contains("ld.shared::cluster.f32"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::OutOfReach`] for a view that is not of shared memory, or is a stage of a ring, and in a kernel without clusters.
    #[track_caller]
    pub fn in_block(&self, k: &mut Kernel, rank: Expr) -> Result<Self, ViewError> {
        k.at_line();
        self.own(k)?;
        let name = self.name(k).to_owned();
        let refuse = |why: &str| {
            Err(ViewError::OutOfReach {
                what: format!("`{name}` is not seen in another block: {why}"),
            })
        };
        if !k.has_clusters() {
            return refuse("the kernel has no clusters (`Kernel::clusters`)");
        }
        if self.space(k) != Space::Shared {
            return refuse("it is in global memory, which all blocks see");
        }
        if self.used.is_some() || !self.back.is_empty() {
            return refuse("it is a stage of a ring, which its pipeline guards");
        }
        Ok(Self {
            block: Some(rank),
            ..self.clone()
        })
    }
}
