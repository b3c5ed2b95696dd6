//! The epilogue by TMA: each warp writes strips of 16 rows to shared memory by `stmatrix`, and one lane issues a copy for each.
//!
//! ```text
//! fragment                  (thread, value) → element of the tile       blocks of 16 × 16: four registers of two 16-bit elements a lane
//! place of a warp           (row, column) → element                     Sw<3,3,3> o (16,64):(64,1) where 64 columns are 128 bytes
//! lane l points at          row l mod 16, column 8·(l div 16)           of a block, 8 neighbours of a row
//! ```
//!
//! Warps do not wait for each other. Each has two places in shared memory, and fills one while the other is copied. TMA clips a box at the edges of the array.

use layout_core::Layout;

use super::buffer::LINE;
use super::tma::{PERIOD, panels};
use super::{Fragment, View, ViewError, in_bytes};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Extent, Kernel, MapHandle, Reg, Space};

/// Rows of a strip, and columns of a block.
const BLOCK: i64 = 16;

/// Bytes of an element.
const BYTES: i64 = 2;

/// Places of a warp.
const PLACES: i64 = 2;

/// Lanes of a warp.
const LANES: i64 = 32;

/// A strip of a warp: where it begins, of the first warp, and the registers of its blocks.
struct Strip {
    at: [i64; 2],
    blocks: Vec<[Reg; 4]>,
}

/// The strips of a fragment.
struct Strips {
    all: Vec<Strip>,
    /// Columns of each.
    columns: i64,
    /// Warp → row, and column, from where the first warp's begin.
    of_warp: [Layout; 2],
    warps: i64,
}

impl Strips {
    /// Those of a thread-value layout over `shape`, whose values are two in a register; none if warps do not hold blocks as `stmatrix` takes them.
    fn of(tv: &Layout, shape: [i64; 2], registers: &[Reg]) -> Result<Option<Self>, ViewError> {
        let [rows, columns] = shape;
        let (threads, values) = (tv.get(0)?.size(), tv.get(1)?.size());
        if threads % LANES != 0 || values != 2 * registers.len() as i64 {
            return Ok(None);
        }
        let place = |thread, value| {
            let e = tv.at(&[thread, value]);
            [e % rows, e / rows]
        };
        let mut pairs = Vec::new();
        for (pair, &register) in (0..).zip(registers) {
            let [first, second] = [0, 1].map(|i| place(0, 2 * pair + i));
            if second != [first[0], first[1] + 1] {
                return Ok(None);
            }
            pairs.push((first, 2 * pair, register));
        }
        pairs.sort_by_key(|(at, ..)| *at);
        // Register j of a block is rows 8·(j mod 2) and columns 8·(j div 2) on.
        let corner = |j: i64| [8 * (j % 2), 8 * (j / 2)];
        let mut blocks: Vec<([i64; 2], [Reg; 4])> = Vec::new();
        while let Some(&(first, ..)) = pairs.first() {
            let mut of_block = Vec::new();
            for j in 0..4 {
                let [down, across] = corner(j);
                let at = pairs
                    .iter()
                    .position(|(at, ..)| *at == [first[0] + down, first[1] + across]);
                let Some(at) = at else {
                    return Ok(None);
                };
                let (_, value, register) = pairs.remove(at);
                for thread in 0..threads {
                    let [row, column] = place(thread / LANES * LANES, 0);
                    let [row0, column0] = place(0, 0);
                    let lane = thread % LANES;
                    let wanted = [
                        first[0] + down + lane / 4 + row - row0,
                        first[1] + across + 2 * (lane % 4) + column - column0,
                    ];
                    if place(thread, value) != wanted {
                        return Ok(None);
                    }
                }
                of_block.push(register);
            }
            if let Ok(registers) = <[Reg; 4]>::try_from(of_block) {
                blocks.push((first, registers));
            }
        }
        blocks.sort_by_key(|(at, _)| *at);
        let all = [4, 2, 1].into_iter().find_map(|wide| {
            let strips: Vec<Strip> = blocks
                .chunks(wide)
                .map(|blocks| Strip {
                    at: blocks[0].0,
                    blocks: blocks.iter().map(|(_, registers)| *registers).collect(),
                })
                .collect();
            let neighbours = blocks.chunks(wide).all(|blocks| {
                let [row, column] = blocks[0].0;
                let side_by_side = (0..)
                    .zip(blocks)
                    .all(|(i, (at, _))| *at == [row, column + BLOCK * i]);
                blocks.len() == wide && side_by_side
            });
            neighbours.then_some((strips, BLOCK * wide as i64))
        });
        let Some((all, wide)) = all else {
            return Ok(None);
        };
        let of_warp = tv.get(0)?.compose(&Layout::mode(threads / LANES, LANES)?)?;
        let by_mode =
            |strides: [i64; 2]| Layout::flat(&[rows, columns], &strides)?.compose(&of_warp);
        Ok(Some(Self {
            of_warp: [by_mode([1, 0])?, by_mode([0, 1])?],
            all,
            columns: wide,
            warps: threads / LANES,
        }))
    }
}

/// The tensor map and the shared memory of one store.
struct Sends {
    map: MapHandle,
    /// (row, column, warp, place, strip)
    places: View,
    warp: Expr,
    lane: Expr,
    lane0: Reg,
}

impl Kernel {
    /// Stores a fragment of 16-bit elements to a tile of global memory by TMA, through shared memory. Global stores are whole lines and take no address or predicate registers. Each
    /// warp has its own shared memory, so no barrier of the block is needed. Elements outside of the array are not stored. Its rows must be multiples of 16 bytes; the launch
    /// checks it.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// // c = 0
    /// let mut k = Kernel::new("zeros", 128);
    /// let (m, n) = (k.size("m", 1 << 20), k.size("n", 1 << 20));
    /// let c = k.output("c", Element::F16, &[m, n]);
    /// let (i, j, thread) = (k.tiles(Axis::X, m, 64)?, k.tiles(Axis::Y, n, 64)?, k.thread());
    /// let warps = Layout::parse("(4,1,1):(1,0,0)")?;
    /// let sixteen = [16, 16, 16].map(|n| Layout::mode(n, 1));
    /// let [rows, columns, depth] = sixteen;
    /// let tile = [Layout::mode(64, 1)?, columns?, depth?];
    /// # let _ = rows?;
    /// let mma = TiledMma::with_tile(atoms::MMA_M16N8K16_F16, &warps, &tile)?;
    /// let sums = k.accumulators(&mma, [64, 64], thread)?;
    /// let zeros = k.convert_fragment(&sums, Element::F16)?;
    /// let c = c.tile(&mut k, &[64, 64], &[i, j])?;
    /// k.tma_store(&c, &zeros)?;
    /// assert_eq!(k.build(Arch(90))?.proof.covered, ["c"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Space`], [`ViewError::NoTile`], [`ViewError::Shapes`], [`ViewError::Elements`]; [`ViewError::Fragment`] if warps do not hold blocks of 16 × 16 as
    /// accumulators do; [`ViewError::SharedMemory`].
    #[track_caller]
    pub fn tma_store(&mut self, to: &View, from: &Fragment) -> Result<(), ViewError> {
        self.at_line();
        let shape = to.tile_shape(self)?.to_vec();
        let space = to.space(self);
        if space != Space::Global {
            return Err(ViewError::Space {
                instruction: "a store by TMA",
                writes: true,
                wanted: Some(Space::Global),
                buffer: to.name(self).to_owned(),
                space,
            });
        }
        from.own(self)?;
        let described: Vec<_> = shape.iter().map(ToString::to_string).collect();
        let tile = || format!("a tile {} of `{}`", described.join("x"), to.name(self));
        if to.element != Some(from.element()) || i64::from(from.element().bytes()) != BYTES {
            return Err(ViewError::Elements {
                from: from.describe(),
                to: format!("{}, of 16-bit elements", tile()),
            });
        }
        let &[rows, columns] = &shape[..] else {
            return Err(ViewError::Shapes {
                from: from.describe(),
                to: tile(),
            });
        };
        if shape != from.shape() || to.reversed {
            return Err(ViewError::Shapes {
                from: from.describe(),
                to: tile(),
            });
        }
        let strips = Strips::of(&from.tv, [rows, columns], &from.registers)?;
        let strips = strips.ok_or_else(|| ViewError::Fragment {
            operation: "a store by TMA",
            fragment: from.describe(),
            reason: "its warps do not hold blocks of 16 rows and 16 columns as accumulators of mma.sync side by side, or of wgmma, do".to_owned(),
        })?;
        let sends = self.sends(to, from, &strips)?;
        for (number, strip) in (0..).zip(&strips.all) {
            self.send_strip(to, &strips, (number, strip), &sends)?;
        }
        self.parting.sends = true;
        Ok(())
    }

    /// Allocates the shared memory of the warps, and makes the tensor map.
    fn sends(&mut self, to: &View, from: &Fragment, strips: &Strips) -> Result<Sends, ViewError> {
        let derived = panels([BLOCK, strips.columns], BYTES)?;
        let shared = in_bytes(&derived, BYTES)?;
        let place = BLOCK * strips.columns * BYTES;
        let map = self.map_of(to, [BLOCK, strips.columns], strips.columns * BYTES)?;
        let at = self.shared_bytes().next_multiple_of(PERIOD as u64);
        let bytes = strips.warps * PLACES * place;
        self.extend_shared(at + (bytes.max(LINE)) as u64)?;
        let count = strips.all.len() as i64;
        let extents = [BLOCK, strips.columns, strips.warps, PLACES, count].map(Extent::Fixed);
        let name = self.unique_buffer(&format!("{}_boxes", to.name(self)));
        let outer = vec![PLACES * place, place, 0];
        let places = self.shared_at(&name, BYTES, shared, at as i64, extents.into(), outer);
        self.describe(format!(
            "{name} (a place of a warp) = {derived}: what a box of TMA reads"
        ));
        let lane = self.lane();
        Ok(Sends {
            map,
            places,
            warp: self.pool.shr(from.thread, 5),
            lane,
            lane0: self.first_lane(),
        })
    }

    fn send_strip(
        &mut self,
        to: &View,
        strips: &Strips,
        (number, strip): (i64, &Strip),
        sends: &Sends,
    ) -> Result<(), ViewError> {
        let [place, which, zero] = [number % PLACES, number, 0].map(|c| self.pool.constant(c));
        self.open_region();
        if number >= PLACES || self.in_loop() {
            // The copy of what was here before has read it. With an odd number of strips the last one of the previous iteration used the same place as the first.
            let odd = number == 0 && strips.all.len() as i64 % PLACES != 0;
            let pending = if odd { 0 } else { PLACES as u32 - 1 };
            self.wait_for_boxes(pending, sends.lane0);
            self.warp_barrier();
        }
        let row = self.pool.rem(sends.lane, BLOCK);
        let half = self.pool.shr(sends.lane, 4);
        let half = self.pool.scale(half, 8);
        for (block, registers) in (0..).zip(&strip.blocks) {
            let first = self.pool.constant(BLOCK * block);
            let column = self.pool.add(first, half);
            let by = [row, column, sends.warp, place, which];
            let at = sends.places.element(self, &by)?;
            self.store_matrix(registers.to_vec(), false, at);
            let name = sends.places.name(self).to_owned();
            self.tag(&format!("write {name}"));
        }
        self.fence_for_copies();
        self.warp_barrier();
        let from = sends
            .places
            .element(self, &[zero, zero, sends.warp, place, which])?;
        let mut by = Vec::new();
        for (mode, map) in strips.of_warp.iter().enumerate() {
            let of_warp = index(&mut self.pool, map, &[sends.warp])?;
            let within = self.pool.constant(strip.at[mode]);
            by.push(self.pool.add(of_warp, within));
        }
        let at = to.coordinates(self, &by);
        self.store_box(sends.map, &at, from, sends.lane0);
        self.commit_boxes(sends.lane0);
        self.close_region();
        Ok(())
    }

    /// Waits until the copies have read shared memory, before the block exits.
    pub(crate) fn boxes_are_read(&mut self) {
        if std::mem::take(&mut self.parting.sends) {
            let lane0 = self.first_lane();
            self.wait_for_boxes(0, lane0);
        }
    }
}
