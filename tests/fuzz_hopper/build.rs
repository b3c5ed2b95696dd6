//! The kernel of a random product, through the public layer.

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, TileOrder, TileScheduler, WarpRole};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{Layout, TiledMma, atoms};

use crate::mistakes::Mistake;
use crate::product::{BY_LAYOUTS, Product, Schedule, Tiles};

/// The largest extent of a matrix.
pub(crate) const MOST: i64 = 1 << 14;

/// What all roles know.
struct Setting<'p> {
    p: &'p Product,
    arrays: [View; 3],
    sizes: [Expr; 3],
    mma: TiledMma,
    /// a and b in one ring, or one each.
    rings: Rings,
    steps: Expr,
    /// The tiles of persistent blocks.
    tiles: Option<TileScheduler>,
}

#[expect(clippy::large_enum_variant, reason = "a kernel has few rings")]
enum Rings {
    Both(Ring<'static, 2>),
    Each(Ring<'static, 1>, Ring<'static, 1>),
    /// a is not in a ring.
    OnlyB(Ring<'static, 1>),
}

/// One turn of a role: its tile, and how many steps came before.
#[derive(Clone, Copy)]
struct Turn {
    at: [Expr; 2],
    before: Expr,
    number: Expr,
}

type Done = Result<(), ViewError>;

/// The kernel of a program.
pub(crate) fn kernel(p: &Product) -> Result<Kernel, ViewError> {
    let [_, tn, tk] = p.tile();
    let [gm, gn] = p.groups;
    let roles = p.roles();
    let ordered_roles = p.fills();
    let warps = (4 * gm * gn) as u32;
    let idle = u32::from(p.has(Mistake::NoRole));
    let mut k = Kernel::new("fuzzed", 32 * (warps * roles as u32 + idle) + 128);
    if let Schedule::Cluster(axis, blocks) = p.schedule {
        let mut all = [1; 3];
        all[axis as usize] = blocks;
        k.clusters(all);
    }
    let most = match p.tiles_of_blocks() {
        Some((Tiles::Layouts(..), tile)) => tile.map(|along| BY_LAYOUTS * along),
        _ => [MOST; 2],
    };
    let [m, n] = [("m", most[0]), ("n", most[1])].map(|(name, most)| k.size(name, most));
    let [depth, lda, ldb] = ["k", "lda", "ldb"].map(|name| k.size(name, MOST));
    let element = p.form.element();
    let [rows_a, rows_b] = [[m, depth], [n, depth]];
    let shape = |[row, column]: [Expr; 2], transposed| {
        if transposed {
            [column, row]
        } else {
            [row, column]
        }
    };
    let a = k.pitched_input("a", element, shape(rows_a, p.transposed[0]), lda);
    let b = k.pitched_input("b", element, shape(rows_b, p.transposed[1]), ldb);
    let out = if p.boxes { Element::Bf16 } else { Element::F32 };
    let c = k.output("c", out, &[m, n]);

    let atom = atoms::wgmma(p.n, p.form.scalar(), atoms::Scalar::F32)?;
    let mma = TiledMma::new(atom, &Layout::flat(&[gm, gn, 1], &[1, gm, 0])?)?;
    let stages = Stages::new(p.stages).lag(p.lag);
    let stages = if ordered_roles > 1 {
        stages.ping_pong(ordered_roles as u32)
    } else {
        stages
    };
    let staged = |name, rows, transposed| {
        let shape = if transposed { [tk, rows] } else { [rows, tk] };
        Staged::new(name, element, shape, &[])
    };
    let (tile_a, tile_b) = (
        staged("tile_a", p.rows_of_stage(), p.transposed[0]),
        staged("tile_b", tn, p.transposed[1]),
    );
    let rings = if p.from_registers {
        Rings::OnlyB(k.tma_ring(stages, [tile_b])?)
    } else if p.two_rings {
        Rings::Each(k.tma_ring(stages, [tile_a])?, k.tma_ring(stages, [tile_b])?)
    } else {
        Rings::Both(k.tma_ring(stages, [tile_a, tile_b])?)
    };
    let setting = Setting {
        p,
        arrays: [a, b, c],
        sizes: [m, n, depth],
        mma,
        rings,
        steps: k.tiles_in(depth, tk)?,
        tiles: scheduler(p, &mut k, [m, n])?,
    };
    let s = &setting;
    if p.beside {
        k.wait_for_grid();
        k.launch_dependents();
    }
    if p.producer_first {
        s.producer(&mut k)?;
    }
    for part in 0..roles {
        let name = ["first", "second", "third"][part as usize];
        let less = u32::from(part == 0 && p.has(Mistake::HalfRole));
        let role = p.role(
            WarpRole::new(name, warps - less),
            if roles * gm * gn > 2 { 152 } else { 208 },
        );
        k.role(role, |k, thread| {
            s.turns(k, |k, turn| {
                let of_role = if p.has(Mistake::OtherRole) { 0 } else { part };
                let turn = s.part(k, turn, (of_role, roles));
                s.tile(k, turn, (part, roles), thread)
            })
        })?;
        if less > 0 {
            k.role(WarpRole::new("idle", less), |_, _| Done::Ok(()))?;
        }
    }
    if !p.producer_first {
        s.producer(&mut k)?;
    }
    Ok(k)
}

/// How persistent blocks take tiles, if they are.
fn scheduler(
    p: &Product,
    k: &mut Kernel,
    extents: [Expr; 2],
) -> Result<Option<TileScheduler>, ViewError> {
    let Some((tiles, tile)) = p.tiles_of_blocks() else {
        return Ok(None);
    };
    let (blocks, order) = match tiles {
        Tiles::Rectangle(blocks) => {
            return Ok(Some(TileScheduler::rectangle(extents, tile, blocks)));
        }
        Tiles::Rows(blocks) => (blocks, TileOrder::Rows),
        Tiles::Columns(blocks) => (blocks, TileOrder::Columns),
        Tiles::Groups(blocks, rows) => (blocks, TileOrder::Groups(rows)),
        Tiles::Layouts(blocks, rows) => {
            let extents = [rows, BY_LAYOUTS, BY_LAYOUTS / rows];
            let down = Layout::flat(&extents, &[1, 0, rows])?;
            (
                blocks,
                TileOrder::Layouts([down, Layout::flat(&extents, &[0, 1, 0])?]),
            )
        }
        Tiles::List(blocks) => {
            let (rows, columns) = (
                k.tiles_in(extents[0], tile[0])?,
                k.tiles_in(extents[1], tile[1])?,
            );
            let (tiles, zero) = (k.mul(rows, columns), k.constant(0));
            let list = k.input("list", Element::S32, &[tiles]);
            k.assume_distinct(&list, "each tile is taken once");
            k.assume_range(&list, zero, tiles, "numbers of tiles");
            (blocks, TileOrder::List(list))
        }
    };
    Ok(Some(TileScheduler::linear(extents, tile, blocks, order)))
}

impl Setting<'_> {
    fn producer(&self, k: &mut Kernel) -> Done {
        let (p, steps, ordered_roles) = (self.p, self.steps, self.p.fills());
        let role = p.role(WarpRole::new("producer", 4), 40);
        let fill = |k: &mut Kernel| {
            self.turns(k, |k, turn| {
                for part in 0..ordered_roles {
                    let turn = if ordered_roles > 1 {
                        self.part(k, turn, (part, ordered_roles))
                    } else {
                        turn
                    };
                    self.fill(k, turn)?;
                }
                Ok(())
            })?;
            let uses = match p.schedule {
                Schedule::Cluster(..) if !p.has(Mistake::NoDrain) => steps,
                _ => match &self.tiles {
                    Some(tiles) if p.drains && ordered_roles == 1 => {
                        let tiles = k.tiles_of_block(tiles)?;
                        k.mul(tiles, steps)
                    }
                    _ => return Ok(()),
                },
            };
            match &self.rings {
                Rings::Both(ring) => k.drain(ring, uses),
                Rings::OnlyB(ring) => k.drain(ring, uses),
                Rings::Each(a, b) => {
                    k.drain(a, uses)?;
                    k.drain(b, uses)
                }
            }
        };
        if p.has(Mistake::AllProduce) {
            k.role(role, |k, _| fill(k))
        } else {
            k.producer(role, fill)
        }
    }

    /// For each tile of the block.
    fn turns(&self, k: &mut Kernel, body: impl FnOnce(&mut Kernel, Turn) -> Done) -> Done {
        let ([_, tn, _], [m, n, _]) = (self.p.tile(), self.sizes);
        match self.p.schedule {
            Schedule::Grid | Schedule::Cluster(..) | Schedule::Roles(_) => {
                let rows = self.p.rows_of_stage();
                let at = [k.tiles(Axis::X, m, rows)?, k.tiles(Axis::Y, n, tn)?];
                let zero = k.constant(0);
                let turn = Turn {
                    at,
                    before: zero,
                    number: zero,
                };
                body(k, turn)
            }
            Schedule::Persistent(_) | Schedule::InTurns(..) => {
                let in_turns = matches!(self.p.schedule, Schedule::InTurns(..));
                let Some(tiles) = &self.tiles else {
                    return Ok(());
                };
                k.persistent(tiles, |k, tile| {
                    let number = tile.number();
                    let before = if in_turns {
                        number
                    } else {
                        k.mul(number, self.steps)
                    };
                    let at = tile.at();
                    body(k, Turn { at, before, number })
                })
            }
        }
    }

    /// A role's part of the block's tile.
    fn part(&self, k: &mut Kernel, turn: Turn, (part, of): (i64, i64)) -> Turn {
        if of == 1 {
            return turn;
        }
        if let Schedule::Roles(_) = self.p.schedule {
            let row = k.linear(&[(of, turn.at[0])], part);
            let at = [row, turn.at[1]];
            return Turn { at, ..turn };
        }
        let number = k.linear(&[(of, turn.number)], part);
        let row = k.linear(&[(of, turn.at[0])], part);
        Turn {
            at: [row, turn.at[1]],
            before: k.mul(number, self.steps),
            number: turn.number,
        }
    }

    /// The tile of an array at a step, and its load to a stage.
    fn load(&self, k: &mut Kernel, which: usize, turn: Turn, step: Expr, to: &View) -> Done {
        let [_, tn, tk] = self.p.tile();
        let (rows, row) = ([self.p.rows_of_stage(), tn][which], turn.at[which]);
        let step = if self.p.has(Mistake::OtherBox) {
            k.linear(&[(1, step)], 1)
        } else {
            step
        };
        let transposed = self.p.transposed[which];
        let (shape, at) = if transposed {
            ([tk, rows], [step, row])
        } else {
            ([rows, tk], [row, step])
        };
        let from = self.arrays[which].tile(k, &shape, &at)?;
        match self.p.schedule {
            // Blocks one below the other have b in common, those side by side a.
            Schedule::Cluster(axis, _)
                if (axis == Axis::X) == (which == 1) || self.p.has(Mistake::OtherMulticast) =>
            {
                k.tma_multicast(&from, to, axis)
            }
            _ => k.tma_load(&from, to),
        }
    }

    fn fill(&self, k: &mut Kernel, turn: Turn) -> Done {
        let p = self.p;
        let mut before = turn.before;
        for m in &p.mistakes {
            if let Mistake::BeforeFill(by) = m {
                before = k.linear(&[(1, before)], *by);
            }
        }
        let loads = |k: &mut Kernel, step: Expr, all: &[(usize, &View)]| -> Done {
            for (i, (which, to)) in all.iter().enumerate() {
                if p.has(Mistake::NoLoad) && i == 0 {
                    continue;
                }
                self.load(k, *which, turn, step, to)?;
                if p.has(Mistake::LoadTwice) && i == 0 {
                    self.load(k, *which, turn, step, to)?;
                }
            }
            Ok(())
        };
        match &self.rings {
            Rings::Both(ring) => k.produce(ring, before, self.steps, |k, [a, b], step| {
                loads(k, step, &[(0, &a), (1, &b)])
            }),
            Rings::OnlyB(ring) => k.produce(ring, before, self.steps, |k, [b], step| {
                loads(k, step, &[(1, &b)])
            }),
            Rings::Each(of_a, of_b) => k.for_loop("fill", 0, 1, self.steps, |k, step| {
                let index = k.add(before, step);
                k.fill_stage(of_a, index, step, |k, [a]| loads(k, step, &[(0, &a)]))?;
                k.fill_stage(of_b, index, step, |k, [b]| loads(k, step, &[(1, &b)]))
            }),
        }
    }

    /// A tile of c.
    fn tile(&self, k: &mut Kernel, turn: Turn, (part, of): (i64, i64), thread: Expr) -> Done {
        let (p, [tm, tn, _]) = (self.p, self.p.tile());
        let sums = k.accumulators(&self.mma, [tm, tn], thread)?;
        let consume = |k: &mut Kernel| self.consume(k, (turn, part), &sums, thread);
        if of > 1 && self.p.fills() > 1 {
            let role = if p.has(Mistake::Turn) {
                (part + 1) % of
            } else {
                part
            } as u32;
            let turn = (role, turn.number);
            match &self.rings {
                Rings::Both(ring) => k.ping_pong(ring, turn, consume)?,
                Rings::OnlyB(ring) => k.ping_pong(ring, turn, consume)?,
                Rings::Each(a, b) => {
                    k.ping_pong(a, turn, |k| k.ping_pong(b, turn, consume))?;
                }
            }
        } else {
            consume(k)?;
        }
        if p.has(Mistake::Barrier) {
            k.barrier();
        }
        let mut at = turn.at;
        if p.has(Mistake::StoreElsewhere) {
            at[1] = k.linear(&[(1, at[1])], 1);
        }
        let c = self.arrays[2].tile(k, &[tm, tn], &at)?;
        for _ in 0..=usize::from(p.has(Mistake::StoreTwice)) {
            if p.boxes {
                let sums = k.convert_fragment(&sums, Element::Bf16)?;
                k.tma_store(&c, &sums)?;
            } else {
                let c = c.partition_c(k, &self.mma, thread)?;
                k.store_fragment(&c.vectors(k, 2)?, &sums)?;
            }
        }
        Ok(())
    }

    /// The products of a step, of what is in shared memory.
    fn multiply(
        &self,
        k: &mut Kernel,
        (turn, part): (Turn, i64),
        step: Expr,
        (a, b): (Option<&View>, &View),
        (sums, thread): (&Fragment, Expr),
    ) -> Done {
        let turned = |view: &View, which: usize| {
            let wrong = which == 1 && self.p.has(Mistake::Untransposed);
            if self.p.transposed[which] == wrong {
                view.clone()
            } else {
                view.transposed()
            }
        };
        let b = turned(b, 1);
        if let Some(a) = a {
            let [tm, _, tk] = self.p.tile();
            let a = turned(a, 0);
            let a = if let Schedule::Roles(_) = self.p.schedule {
                let at = [k.constant(part), k.constant(0)];
                a.tile(k, &[tm, tk], &at)?
            } else {
                a
            };
            k.gemm(&self.mma, &a, &b, sums)?;
        } else {
            let [tm, _, tk] = self.p.tile();
            let (shape, at) = if self.p.transposed[0] {
                ([tk, tm], [step, turn.at[0]])
            } else {
                ([tm, tk], [turn.at[0], step])
            };
            let a = turned(&self.arrays[0].tile(k, &shape, &at)?, 0);
            let a = a.partition_a(k, &self.mma, thread)?;
            let a = k.load_fragment(&a)?;
            k.gemm(&self.mma, &a, &b, sums)?;
        }
        if self.p.has(Mistake::ReadSums) {
            sums.update(k, |k, x| x.add(k, 1.0))?;
        }
        Ok(())
    }

    fn consume(
        &self,
        k: &mut Kernel,
        (turn, part): (Turn, i64),
        sums: &Fragment,
        thread: Expr,
    ) -> Done {
        let p = self.p;
        let (mut before, mut steps) = (turn.before, self.steps);
        for m in &p.mistakes {
            match m {
                Mistake::Before(by) => before = k.linear(&[(1, before)], *by),
                Mistake::Steps(by) => steps = k.linear(&[(1, steps)], *by),
                Mistake::OtherSize => steps = k.tiles_in(self.sizes[0], p.tile()[2])?,
                _ => {}
            }
        }
        let with = (sums, thread);
        if !p.by_hand {
            match &self.rings {
                Rings::Both(ring) => {
                    return k.consume(ring, before, steps, |k, [a, b], step| {
                        self.multiply(k, (turn, part), step, (Some(&a), &b), with)
                    });
                }
                Rings::OnlyB(ring) => {
                    return k.consume(ring, before, steps, |k, [b], step| {
                        self.multiply(k, (turn, part), step, (None, &b), with)
                    });
                }
                Rings::Each(..) => {}
            }
        }
        let in_flight = p.mistakes.iter().find_map(|m| match m {
            Mistake::InFlight(more) => Some(*more),
            _ => None,
        });
        let give = |k: &mut Kernel, index: Expr| -> Done {
            let by = p.mistakes.iter().find_map(|m| match m {
                Mistake::GiveOther(by) => Some(*by),
                _ => None,
            });
            let index = by.map_or(index, |by| k.linear(&[(1, index)], by));
            match &self.rings {
                Rings::Both(ring) => k.release(ring, index),
                Rings::OnlyB(ring) => k.release(ring, index),
                Rings::Each(a, b) => {
                    let b = if p.has(Mistake::GiveOtherRing) { a } else { b };
                    k.release(a, index)?;
                    k.release(b, index)
                }
            }
        };
        k.for_loop("multiply", 0, 1, steps, |k, step| {
            let index = k.add(before, step);
            let called = if p.has(Mistake::OtherTile) {
                k.linear(&[(1, step)], 1)
            } else {
                step
            };
            let (a, b) = match &self.rings {
                Rings::Both(ring) => {
                    let [a, b] = k.arrived(ring, index, called)?;
                    (Some(a), b)
                }
                Rings::OnlyB(ring) => {
                    let [b] = k.arrived(ring, index, called)?;
                    (None, b)
                }
                Rings::Each(of_a, of_b) => {
                    let ([a], [b]) = (
                        k.arrived(of_a, index, called)?,
                        k.arrived(of_b, index, called)?,
                    );
                    (Some(a), b)
                }
            };
            if p.has(Mistake::GiveEarly) {
                give(k, index)?;
            }
            self.multiply(k, (turn, part), step, (a.as_ref(), &b), with)?;
            if !p.has(Mistake::NoWait) {
                k.wait_wgmma(p.lag as u32 + in_flight.unwrap_or(0));
            }
            if !p.has(Mistake::Keep) && !p.has(Mistake::GiveEarly) {
                give(k, index)?;
            }
            if p.has(Mistake::GiveTwice) {
                give(k, index)?;
            }
            if p.has(Mistake::Stale) {
                self.multiply(k, (turn, part), step, (a.as_ref(), &b), with)?;
            }
            Ok::<(), ViewError>(())
        })?;
        k.wait_wgmma(0);
        Ok(())
    }
}
