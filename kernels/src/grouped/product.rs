//! The product by tiles: persistent blocks that find their tiles in the table.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::pipeline::{TileOrder, TileScheduler, WarpRole};
use layout_codegen::value::F32;
use layout_codegen::view::{Fragment, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzle, Swizzled, TiledMma, atoms};

use super::{
    Done, Grouped, Kind, MOST, MOST_GROUPS, MOST_K, MOST_ROWS, MOST_SCALES, SIZES, Sizes, Tile,
};
use crate::KernelError;
use crate::block_scaled::{BLOCK, Scales};
use crate::mainloop::{self, MainLoop};

/// Rows of tiles that blocks compute at the same time share columns of b in the level-2 cache.
const GROUP: u32 = 8;

/// Columns of a strip of c, which goes through shared memory so that whole lines of 128 bytes are stored.
const STRIP: i64 = 64;

/// What the roles have in common.
struct Parts {
    what: Grouped,
    n: Expr,
    /// The most rows of all groups.
    most_rows: i64,
    arrays: [View; 2],
    scales: Option<[View; 2]>,
    c: View,
    tile_row: View,
    tile_group: View,
    row_tile: View,
    main: MainLoop,
    /// [`STRIP`] columns of a tile of c, and how the sums of so many lie.
    strip: Option<View>,
    of_strip: TiledMma,
    /// Iterations of the ring for a tile.
    steps: Expr,
    tiles: TileScheduler,
}

/// A tile of c: its number among the tiles of rows, its first row, and which tile of columns.
#[derive(Clone, Copy)]
struct At {
    tile: Expr,
    row: Expr,
    column: Expr,
}

/// The kernel `grouped_<element>_<tile>(m, n, k, groups, tile_row, tile_group, row_tile, a, b, c)`.
pub(super) fn product(what: &Grouped, arch: Arch) -> Result<Proven, KernelError> {
    let warpgroups = what.tile.m / 64;
    let mut k = Kernel::new(&name(what), 128 * (warpgroups as u32 + 1));
    let parts = Parts::declare(&mut k, *what)?;
    let [of_consumers, of_producer] = if warpgroups == 2 {
        [232, 40]
    } else {
        [240, 24]
    };
    let consumers = WarpRole::new("consumers", 4 * warpgroups as u32);
    k.role(consumers.registers(of_consumers), |k, thread| {
        k.persistent(&parts.tiles, |k, tile| {
            let at = parts.at(k, tile.at())?;
            let before = k.mul(tile.number(), parts.steps);
            let sums = parts.sums(k, before, (at, thread))?;
            let sums = k.convert_fragment(&sums, what.result)?;
            parts.store(k, (at, thread), &sums)
        })
    })?;
    k.producer(WarpRole::new("producer", 4).registers(of_producer), |k| {
        k.persistent(&parts.tiles, |k, tile| {
            let at = parts.at(k, tile.at())?;
            let before = k.mul(tile.number(), parts.steps);
            parts.load(k, before, at)
        })
    })?;
    Ok(k.build(arch)?)
}

fn name(what: &Grouped) -> String {
    let Tile { m, n, .. } = what.tile;
    let mut name = format!("grouped_{}_{m}x{n}", what.element);
    for (is, option) in [
        (what.scales == Some(Scales::Rows), "rows".to_owned()),
        (what.scales == Some(Scales::Blocks), "blocks".to_owned()),
        (what.kind == Kind::Masked, what.kind.to_string()),
        (what.result == Element::F32, what.result.to_string()),
    ] {
        if is {
            name = format!("{name}_{option}");
        }
    }
    name
}

impl Parts {
    fn declare(k: &mut Kernel, what: Grouped) -> Result<Self, KernelError> {
        let Tile {
            m: tm,
            n: tn,
            stages,
        } = what.tile;
        let sizes = Sizes::declare(k, what.kind, SIZES);
        let (n, depth) = (k.size("n", MOST), k.size("k", MOST_K));
        let table = ["tile_row", "tile_group", "row_tile"];
        let [tile_row, tile_group, row_tile] =
            table.map(|name| k.input(name, Element::S32, &[sizes.table]));
        let a = k.input("a", what.element, &[sizes.rows, depth]);
        let b = k.input("b", what.element, &[sizes.groups, n, depth]);
        let of_k = k.tiles_in(depth, BLOCK)?;
        let scales = match what.scales {
            None => None,
            Some(Scales::Rows) => {
                let of_a = k.input("scale_a", Element::F32, &[sizes.rows]);
                let all = k.mul(sizes.groups, n);
                Some([of_a, k.input("scale_b", Element::F32, &[all])])
            }
            Some(_) => {
                let [pitch_a, pitch_b] =
                    ["ld_scale_a", "ld_scale_b"].map(|name| k.size(name, MOST_SCALES));
                let blocks = k.tiles_in(n, BLOCK)?;
                let all = k.mul(sizes.groups, blocks);
                Some([
                    k.pitched_input("scale_a", Element::F32, [of_k, sizes.rows], pitch_a),
                    k.pitched_input("scale_b", Element::F32, [all, of_k], pitch_b),
                ])
            }
        };
        let c = k.partial_output("c", what.result, &[sizes.rows, n]);

        let main = MainLoop::declare(k, what.element, what.scales, [tm, tn, stages])?;
        let strip = Layout::flat(&[tm, STRIP], &[STRIP, 1])?;
        let strip = Swizzled::new(Swizzle::new(3, 3, 3)?, 0, strip)?;
        let of_strip = TiledMma::new(
            atoms::wgmma(STRIP, atoms::Scalar::Bf16, atoms::Scalar::F32)?,
            &Layout::flat(&[tm / 64, 1, 1], &[1, 0, 0])?,
        )?;
        let strip = match what.result {
            Element::F32 => None,
            _ => Some(k.shared("strip", Element::Bf16, &strip)?),
        };

        // Data say how many tiles there are.
        let last = sizes.last(k);
        let count = tile_row.load::<i32>(k, &[last])?.to_index(k);
        let most_rows = match what.kind {
            Kind::Offsets => MOST_ROWS,
            Kind::Masked => MOST_GROUPS * MOST,
        };
        let count = k.clamp(count, 0, most_rows / tm + MOST_GROUPS);
        let order = TileOrder::Groups(GROUP);
        let tiles = TileScheduler::linear([count, n], [1, tn], what.blocks, order);
        let steps = k.tiles_in(depth, main.depth)?;
        Ok(Self {
            what,
            n,
            most_rows,
            arrays: [a, b],
            scales,
            c,
            tile_row,
            tile_group,
            row_tile,
            main,
            strip,
            of_strip,
            steps,
            tiles,
        })
    }

    fn at(&self, k: &mut Kernel, [tile, column]: [Expr; 2]) -> Result<At, ViewError> {
        let row = self.tile_row.load::<i32>(k, &[tile])?.to_index(k);
        let row = k.clamp(row, 0, self.most_rows);
        Ok(At { tile, row, column })
    }

    /// The group of a tile.
    fn group(&self, k: &mut Kernel, at: At) -> Result<Expr, ViewError> {
        let group = self.tile_group.load::<i32>(k, &[at.tile])?.to_index(k);
        Ok(k.clamp(group, 0, MOST_GROUPS - 1))
    }

    /// The producer's part of a tile.
    fn load(&self, k: &mut Kernel, before: Expr, at: At) -> Done {
        let ([a, b], Tile { m, n, .. }, zero) = (&self.arrays, self.what.tile, k.constant(0));
        let group = self.group(k, at)?;
        let (a, b) = (a.at(k, &[at.row, zero])?, b.slice(k, &[group])?);
        let (main, depth) = (&self.main, self.main.depth);
        k.produce(&main.ring, before, self.steps, |k, [to_a, to_b], step| {
            let from_a = a.tile(k, &[m, depth], &[zero, step])?;
            let from_b = b.tile(k, &[n, depth], &[at.column, step])?;
            k.tma_load(&from_a, &to_a)?;
            k.tma_load(&from_b, &to_b)?;
            let Some([of_a, _]) = &self.scales else {
                return Ok(());
            };
            main.load_scales(k, (before, step), |k, _| {
                let of_a = of_a.at(k, &[zero, at.row])?;
                of_a.tile(k, &[1, m], &[step, zero])
            })
        })
    }

    /// The consumers' part: the sums of a tile, scaled.
    fn sums(
        &self,
        k: &mut Kernel,
        before: Expr,
        (at, thread): (At, Expr),
    ) -> Result<Fragment, ViewError> {
        let (Tile { m, n, .. }, zero) = (self.what.tile, k.constant(0));
        let to = self.tile_of_c(k, at, (n, at.column))?;
        let to = to.partition_c(k, &self.main.mma, thread)?;
        let steps = (before, self.steps);
        let Some([of_a, of_b]) = &self.scales else {
            return self
                .main
                .sums(k, steps, (&to, thread), |_, _| Ok(F32::from(1.0)));
        };
        let group = self.group(k, at)?;
        if self.what.scales == Some(Scales::Blocks) {
            let blocks = k.tiles_in(self.n, BLOCK)?;
            let first = k.scale(at.column, n);
            let (first, before) = (k.div(first, BLOCK), k.mul(group, blocks));
            let block = k.add(before, first);
            return self.main.sums(k, steps, (&to, thread), |k, step| {
                of_b.load(k, &[block, step])
            });
        }
        let sums = self
            .main
            .sums(k, steps, (&to, thread), |_, _| Ok(F32::from(1.0)))?;
        let of_a = of_a.at(k, &[at.row])?.tile(k, &[m], &[zero])?;
        // Columns behind the last have scales of the next matrix, and are not stored.
        let first = k.mul(group, self.n);
        let of_b = of_b.at(k, &[first])?.tile(k, &[n], &[at.column])?;
        mainloop::scaled(k, sums, &to, &[of_a, of_b])
    }

    /// A tile of c, of `columns` columns: that of the number `column`.
    fn tile_of_c(
        &self,
        k: &mut Kernel,
        at: At,
        (columns, column): (i64, Expr),
    ) -> Result<View, ViewError> {
        let zero = k.constant(0);
        let c = self.c.at(k, &[at.row, zero])?;
        c.tile(k, &[self.what.tile.m, columns], &[zero, column])
    }

    /// Stores the rows that the tile owns. Elements of 16 bits go through shared memory, strip by strip.
    fn store(&self, k: &mut Kernel, (at, thread): (At, Expr), sums: &Fragment) -> Done {
        let Tile { m, n, .. } = self.what.tile;
        let zero = k.constant(0);
        let owners = self.row_tile.at(k, &[at.row])?.tile(k, &[m], &[zero])?;
        let Some(strip) = &self.strip else {
            let c = self.tile_of_c(k, at, (n, at.column))?;
            let to = c.partition_c(k, &self.main.mma, thread)?.vectors(k, 2)?;
            let to = to.where_equal(k, 0, &owners, at.tile)?;
            return k.store_fragment(&to, sums);
        };
        let (strips, lines) = (n / STRIP, self.lines()?);
        let into = strip
            .partition_c(k, &self.of_strip, thread)?
            .vectors(k, 2)?;
        let out = strip.partition(k, &lines, thread)?.vectors(k, 8)?;
        for (number, part) in (0..).zip(sums.split(1, strips as usize)?) {
            // Each warp has rows of its own.
            k.warp_barrier();
            k.store_fragment(&into, &part)?;
            k.warp_barrier();
            let part = k.load_fragment(&out)?;
            let column = k.linear(&[(strips, at.column)], number);
            let to = self.tile_of_c(k, at, (STRIP, column))?;
            let to = to.partition(k, &lines, thread)?.vectors(k, 8)?;
            let to = to.where_equal(k, 0, &owners, at.tile)?;
            k.store_fragment(&to, &part)?;
        }
        Ok(())
    }

    /// (thread, value) → element of a strip, by columns: 8 lanes have a row of it, 8 neighbours each.
    fn lines(&self) -> Result<Layout, ViewError> {
        let m = self.what.tile.m;
        let threads = Layout::flat(&[8, 4, 4, m / 64], &[8 * m, 1, 16, 64])?;
        let values = Layout::flat(&[8, 4], &[m, 4])?;
        Ok(Layout::tuple(&[threads, values])?)
    }
}
