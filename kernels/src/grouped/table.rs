//! The tiles of the rows of groups, found on the device.
//!
//! ```text
//! ends             3  3  9                         groups of 3, 0 and 6 rows; a tile has 4 rows
//! tiles before     0  1  1  3                      ⌈3 / 4⌉ = 1, 0, ⌈6 / 4⌉ = 2: a running sum
//! tile_row         0  3  7  …  3                   the first row of tile i; the last element is the number of tiles
//! tile_group       0  2  2  …
//! row_tile         0  0  0  1  1  1  1  2  2  …    −1 for rows that no group has
//! ```
//!
//! Each block has the running maximum of the ends and the running sum of the tiles in shared memory, by scans in ⌈log₂ G⌉ steps. Each thread then looks for the group of its tile and of its row by bisection.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{Predicate, S32, U32};
use layout_codegen::view::{View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzled};

use super::{Done, Kind, MOST_GROUPS, Sizes};
use crate::KernelError;

/// Threads of a block: one for each group.
const THREADS: i64 = MOST_GROUPS;

/// Running numbers of the groups in shared memory: element g is of the groups before g.
struct Running {
    all: View,
}

impl Running {
    fn declare(k: &mut Kernel, name: &str) -> Result<Self, KernelError> {
        let all = numbers(k, name, THREADS + 1)?;
        Ok(Self { all })
    }

    /// Stores the number behind the thread's group, and 0 in front of the first.
    fn store(&self, k: &mut Kernel, own: S32) -> Done {
        let (thread, zero) = (k.thread(), k.constant(0));
        let next = k.linear(&[(1, thread)], 1);
        self.all.store(k, &[next], own)?;
        let first = Predicate::of(k, thread, Cmp::Eq, zero);
        k.when(first, |k| self.all.store(k, &[zero], S32::from(0)))
    }

    fn load(&self, k: &mut Kernel, group: Expr) -> Result<S32, ViewError> {
        self.all.load::<i32>(k, &[group])
    }

    /// Combines the numbers of each group and all before it: the thread's number of its own group and the result. Barriers are around.
    fn scan(
        &self,
        k: &mut Kernel,
        own: S32,
        combine: fn(S32, &mut Kernel, S32) -> S32,
    ) -> Result<S32, ViewError> {
        let thread = k.thread();
        let next = k.linear(&[(1, thread)], 1);
        self.store(k, own)?;
        k.barrier();
        let (mut sum, mut distance) = (own, 1);
        while distance < THREADS {
            // The element before the first is 0, which changes neither a sum nor a maximum of numbers that are not negative.
            let from = k.linear(&[(1, thread)], 1 - distance);
            let from = k.clamp(from, 0, THREADS);
            let before = self.load(k, from)?;
            sum = combine(sum, k, before);
            k.barrier();
            self.all.store(k, &[next], sum)?;
            k.barrier();
            distance *= 2;
        }
        Ok(sum)
    }

    /// How many groups end at `number` or before: of numbers that grow, the index of the group that has it.
    fn group_of(&self, k: &mut Kernel, number: S32) -> Result<Expr, ViewError> {
        let mut found = k.constant(0);
        let mut step = THREADS / 2;
        while step > 0 {
            let behind = k.linear(&[(1, found)], step);
            let end = self.load(k, behind)?;
            let is_behind = end.le(k, number);
            let group = S32::index(k, found);
            let more = group.add(k, S32::from(step as i32));
            let group = is_behind.select(k, more, group).to_index(k);
            found = k.clamp(group, 0, THREADS - step);
            step /= 2;
        }
        Ok(found)
    }
}

/// So many numbers in shared memory.
fn numbers(k: &mut Kernel, name: &str, count: i64) -> Result<View, KernelError> {
    let layout = Swizzled::plain(Layout::mode(count, 1)?);
    Ok(k.shared(name, Element::S32, &layout)?)
}

/// What the table's kernel and its parameters are called, and its tiles.
pub(crate) struct Of {
    pub(crate) kernel: String,
    /// The names of the number of rows, and of groups.
    pub(crate) sizes: [&'static str; 2],
    /// That of the ends of groups, or their counts.
    pub(crate) groups: &'static str,
    /// Rows of a tile, a power of two.
    pub(crate) tile: i64,
    /// Tiles begin at multiples of so many rows, a power of two: the first of a group at its first row or before it.
    pub(crate) align: i64,
}

/// The kernel `<name>(m, groups, offsets, tile_row, tile_group, row_tile)`.
pub(crate) fn table(of: &Of, kind: Kind, arch: Arch) -> Result<Proven, KernelError> {
    let (tile, align) = (of.tile, U32::from(of.align.ilog2()));
    let mut k = Kernel::new(&of.kernel, THREADS as u32);
    let sizes = Sizes::declare(&mut k, kind, of.sizes);
    let of_groups = k.input(of.groups, Element::S32, &[sizes.groups]);
    let [tile_row, tile_group, row_tile] = ["tile_row", "tile_group", "row_tile"]
        .map(|name| k.output(name, Element::S32, &[sizes.table]));
    let begins = Running::declare(&mut k, "begins")?;
    let counts = numbers(&mut k, "row_counts", THREADS)?;
    let tiles = Running::declare(&mut k, "tiles_before")?;
    let (block, thread) = (k.tiles(Axis::X, sizes.table, THREADS)?, k.thread());

    // Rows of the thread's group.
    let m = S32::index(&mut k, sizes.m);
    let given = of_groups.load::<i32>(&mut k, &[thread])?;
    let given = given.max(&mut k, 0).min(&mut k, m);
    let (begin, count) = match kind {
        Kind::Offsets => {
            let end = begins.scan(&mut k, given, S32::max)?;
            let begin = begins.load(&mut k, thread)?;
            (begin, end.sub(&mut k, begin))
        }
        Kind::Masked => {
            let next = k.linear(&[(1, thread)], 1);
            let end = S32::index(&mut k, next).mul(&mut k, m);
            begins.store(&mut k, end)?;
            (end.sub(&mut k, m), given)
        }
    };
    counts.store(&mut k, &[thread], count)?;
    // Rows of the tiles before the first of the group.
    let before = aligned(&mut k, begin, align);
    let before = begin.sub(&mut k, before);
    let whole = count.add(&mut k, before);
    let whole = whole.add(&mut k, S32::from(tile as i32 - 1));
    let own = whole.shr(&mut k, U32::from(tile.ilog2()));
    let some = count.gt(&mut k, 0);
    let own = some.select(&mut k, own, S32::from(0));
    tiles.scan(&mut k, own, S32::add)?;

    // The thread's tile.
    let i = k.linear(&[(THREADS, block), (1, thread)], 0);
    let number = S32::index(&mut k, i);
    let group = tiles.group_of(&mut k, number)?;
    let before = tiles.load(&mut k, group)?;
    let within = number.sub(&mut k, before);
    let within = within.shl(&mut k, U32::from(tile.ilog2()));
    let begin = begins.load(&mut k, group)?;
    let row = aligned(&mut k, begin, align).add(&mut k, within);
    let last = sizes.last(&mut k);
    let last = S32::index(&mut k, last);
    let end = k.constant(THREADS);
    let all = tiles.load(&mut k, end)?;
    let row = number.eq(&mut k, last).select(&mut k, all, row);
    tile_row.store(&mut k, &[i], row)?;
    let group = S32::index(&mut k, group);
    tile_group.store(&mut k, &[i], group)?;

    // The thread's row.
    let group = begins.group_of(&mut k, number)?;
    let begin = begins.load(&mut k, group)?;
    let within = number.sub(&mut k, begin);
    let rows = counts.load::<i32>(&mut k, &[group])?;
    let of_tiles = aligned(&mut k, begin, align);
    let of_tiles = number.sub(&mut k, of_tiles);
    let tile_within = of_tiles.shr(&mut k, U32::from(tile.ilog2()));
    let owner = tiles.load(&mut k, group)?.add(&mut k, tile_within);
    let owner = within.lt(&mut k, rows).select(&mut k, owner, S32::from(-1));
    row_tile.store(&mut k, &[i], owner)?;
    Ok(k.build(arch)?)
}

/// A number that is not negative, without its lowest bits.
fn aligned(k: &mut Kernel, number: S32, bits: U32) -> S32 {
    number.shr(k, bits).shl(k, bits)
}
