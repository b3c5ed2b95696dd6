//! The product by tiles: persistent blocks that find their tiles in the table.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::pipeline::{
    PersistentTile, Ring, Staged, Stages, TileOrder, TileScheduler, WarpRole,
};
use layout_codegen::view::{Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, TiledMma, atoms};

use super::{Done, Grouped, Kind, MOST, MOST_GROUPS, MOST_K, MOST_ROWS, Sizes, Tile};
use crate::KernelError;

/// Rows of tiles that blocks compute at the same time share columns of b in the level-2 cache.
const GROUP: u32 = 8;

/// What the roles have in common.
struct Parts {
    what: Grouped,
    /// Elements of a stage along k.
    tk: i64,
    n: Expr,
    /// The most rows of all groups.
    most_rows: i64,
    arrays: [View; 2],
    scales: Option<[View; 2]>,
    c: View,
    tile_row: View,
    tile_group: View,
    row_tile: View,
    mma: TiledMma,
    ring: Ring<'static, 2>,
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
    let Tile { m, ping_pong, .. } = what.tile;
    let warpgroups = if ping_pong { 2 } else { m / 64 };
    let mut k = Kernel::new(&name(what), 128 * (warpgroups as u32 + 1));
    let parts = Parts::declare(&mut k, *what)?;
    let registers = if warpgroups == 2 {
        [232, 40]
    } else {
        [240, 24]
    };
    if ping_pong {
        for half in 0..2 {
            let role = WarpRole::new(["first", "second"][half as usize], 4);
            k.role(role.registers(registers[0]), |k, thread| {
                k.persistent(&parts.tiles, |k, tile| {
                    let (before, at) = parts.half(k, tile, half)?;
                    let to = parts.rows_of(k, at, thread)?;
                    let sums = parts.sums(k, thread)?;
                    k.ping_pong(&parts.ring, (half as u32, tile.number()), |k| {
                        parts.multiply(k, before, &sums)
                    })?;
                    parts.store(k, at, &to, &sums)
                })
            })?;
        }
    } else {
        let role = WarpRole::new("consumers", 4 * warpgroups as u32).registers(registers[0]);
        k.role(role, |k, thread| {
            k.persistent(&parts.tiles, |k, tile| {
                let at = parts.at(k, tile.at())?;
                let before = k.mul(tile.number(), parts.steps);
                let to = parts.rows_of(k, at, thread)?;
                let sums = parts.sums(k, thread)?;
                parts.multiply(k, before, &sums)?;
                parts.store(k, at, &to, &sums)
            })
        })?;
    }
    k.producer(WarpRole::new("producer", 4).registers(registers[1]), |k| {
        k.persistent(&parts.tiles, |k, tile| {
            if ping_pong {
                for half in 0..2 {
                    let (before, at) = parts.half(k, tile, half)?;
                    parts.load(k, before, at)?;
                }
                return Ok::<(), ViewError>(());
            }
            let at = parts.at(k, tile.at())?;
            let before = k.mul(tile.number(), parts.steps);
            parts.load(k, before, at)
        })
    })?;
    Ok(k.build(arch)?)
}

fn name(what: &Grouped) -> String {
    let Tile {
        m, n, ping_pong, ..
    } = what.tile;
    let mut name = format!("grouped_{}_{m}x{n}", what.element);
    for (is, option) in [
        (ping_pong, "pingpong".to_owned()),
        (what.scaled, "scaled".to_owned()),
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
            ping_pong,
        } = what.tile;
        let sizes = Sizes::declare(k, what.kind);
        let (n, depth) = (k.size("n", MOST), k.size("k", MOST_K));
        let table = ["tile_row", "tile_group", "row_tile"];
        let [tile_row, tile_group, row_tile] =
            table.map(|name| k.input(name, Element::S32, &[sizes.table]));
        let a = k.input("a", what.element, &[sizes.rows, depth]);
        let b = k.input("b", what.element, &[sizes.groups, n, depth]);
        let scales = what.scaled.then(|| {
            let of_a = k.input("scale_a", Element::F32, &[sizes.rows]);
            let all = k.mul(sizes.groups, n);
            [of_a, k.input("scale_b", Element::F32, &[all])]
        });
        let c = k.partial_output("c", what.result, &[sizes.rows, n]);

        let (scalar, tk) = match what.element {
            Element::E4m3 => (atoms::Scalar::E4m3, 128),
            _ => (atoms::Scalar::Bf16, 64),
        };
        let atom = atoms::wgmma(tn, scalar, atoms::Scalar::F32)?;
        let side = if ping_pong { 1 } else { tm / 64 };
        let mma = TiledMma::new(atom, &Layout::flat(&[side, 1, 1], &[1, 0, 0])?)?;
        let staged = [
            Staged::new("tile_a", what.element, [tm, tk], &[]),
            Staged::new("tile_b", what.element, [tn, tk], &[]),
        ];
        let of_ring = Stages::new(stages).lag(1);
        let of_ring = if ping_pong {
            of_ring.ping_pong(2)
        } else {
            of_ring
        };
        let ring = k.tma_ring(of_ring, staged)?;

        // Data say how many tiles there are.
        let last = sizes.last(k);
        let count = tile_row.load::<i32>(k, &[last])?.to_index(k);
        let most_rows = match what.kind {
            Kind::Offsets => MOST_ROWS,
            Kind::Masked => MOST_GROUPS * MOST,
        };
        let count = k.clamp(count, 0, most_rows / tm + MOST_GROUPS);
        // In a ping-pong schedule a block has two tiles side by side.
        let across = if ping_pong { 2 * tn } else { tn };
        let order = TileOrder::Groups(GROUP);
        let tiles = TileScheduler::linear([count, n], [1, across], what.blocks, order);
        let steps = k.tiles_in(depth, tk)?;
        Ok(Self {
            what,
            tk,
            n,
            most_rows,
            arrays: [a, b],
            scales,
            c,
            tile_row,
            tile_group,
            row_tile,
            mma,
            ring,
            steps,
            tiles,
        })
    }

    fn at(&self, k: &mut Kernel, [tile, column]: [Expr; 2]) -> Result<At, ViewError> {
        let row = self.tile_row.load::<i32>(k, &[tile])?.to_index(k);
        let row = k.clamp(row, 0, self.most_rows);
        Ok(At { tile, row, column })
    }

    /// One of the two tiles of a block in a ping-pong schedule, and the iterations of the ring before it.
    fn half(
        &self,
        k: &mut Kernel,
        tile: PersistentTile,
        half: i64,
    ) -> Result<(Expr, At), ViewError> {
        let [row, column] = tile.at();
        let column = k.linear(&[(2, column)], half);
        let number = k.linear(&[(2, tile.number())], half);
        Ok((k.mul(number, self.steps), self.at(k, [row, column])?))
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
        k.produce(&self.ring, before, self.steps, |k, [to_a, to_b], step| {
            let from_a = a.tile(k, &[m, self.tk], &[zero, step])?;
            let from_b = b.tile(k, &[n, self.tk], &[at.column, step])?;
            k.tma_load(&from_a, &to_a)?;
            k.tma_load(&from_b, &to_b)
        })
    }

    fn sums(&self, k: &mut Kernel, thread: Expr) -> Result<Fragment, ViewError> {
        k.accumulators(&self.mma, [self.what.tile.m, self.what.tile.n], thread)
    }

    /// The consumers' part: adds the products of a tile to its sums.
    fn multiply(&self, k: &mut Kernel, before: Expr, sums: &Fragment) -> Done {
        k.consume(&self.ring, before, self.steps, |k, [x, y], _| {
            k.gemm(&self.mma, &x, &y, sums)
        })
    }

    /// The thread's share of a tile of c, of the rows that the tile owns.
    fn rows_of(&self, k: &mut Kernel, at: At, thread: Expr) -> Result<Partition, ViewError> {
        let Tile { m, n, .. } = self.what.tile;
        let zero = k.constant(0);
        let c = self.c.at(k, &[at.row, zero])?;
        let c = c.tile(k, &[m, n], &[zero, at.column])?;
        let c = c.partition_c(k, &self.mma, thread)?.vectors(k, 2)?;
        let owners = self.row_tile.at(k, &[at.row])?.tile(k, &[m], &[zero])?;
        c.where_equal(k, 0, &owners, at.tile)
    }

    /// Scales, rounds and stores the sums.
    fn store(&self, k: &mut Kernel, at: At, to: &Partition, sums: &Fragment) -> Done {
        let mut sums = sums.clone();
        if let Some([of_a, of_b]) = &self.scales {
            let (Tile { m, n, .. }, zero) = (self.what.tile, k.constant(0));
            let group = self.group(k, at)?;
            let of_a = of_a.at(k, &[at.row])?.tile(k, &[m], &[zero])?;
            // Columns behind the last have scales of the next matrix, and are not stored.
            let first = k.mul(group, self.n);
            let of_b = of_b.at(k, &[first])?.tile(k, &[n], &[at.column])?;
            for (mode, scales) in [of_a, of_b].iter().enumerate() {
                let scales = to.along(k, mode, scales)?;
                let scales = k.load_fragment(&scales)?;
                sums = sums.zip(k, &scales, |k, sum, scale| sum.mul(k, scale))?;
            }
        }
        let sums = k.convert_fragment(&sums, self.what.result)?;
        k.store_fragment(to, &sums)
    }
}
