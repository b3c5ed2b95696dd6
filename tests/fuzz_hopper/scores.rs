//! A random product of scores on Hopper: o = round(q·kᵀ)·v, as attention has it. Keys and values have rings of their own, and the rounded scores are the first factor of the second
//! product, from registers.

use half::{bf16, f16};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, WarpRole};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{Layout, TiledMma, atoms};

use crate::Case;
use crate::build::MOST;
use crate::mistakes::Mistake;
use crate::product::Form;
use crate::random::Random;

/// How blocks take rows of o.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Schedule {
    /// A block for those of its roles.
    Grid,
    /// So many blocks that take rows after rows.
    Persistent(u32),
    /// As [`Schedule::Grid`], in clusters that load keys and values together.
    Cluster(u32),
}

/// A program.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    form: Form,
    /// Consumer roles, each with rows of its own.
    roles: i64,
    /// Warpgroups of a role, and atoms of each along the rows.
    groups: i64,
    atoms: i64,
    /// Keys of a step, and elements of a head.
    keys: i64,
    head: i64,
    /// Of keys, and of values.
    stages: [i64; 2],
    lags: [i64; 2],
    schedule: Schedule,
    /// The producer fills values before keys.
    values_first: bool,
    producer_first: bool,
    producer_warps: u32,
    /// Registers are set.
    registers: bool,
    /// o leaves by TMA, rounded.
    boxes: bool,
    pub(crate) mistakes: Vec<Mistake>,
}

/// A random program.
pub(crate) fn random(r: &mut Random) -> Scores {
    let stages = [1 + r.below(4) as i64, 1 + r.below(4) as i64];
    let roles = r.pick(&[1, 1, 2, 2, 3]);
    let (registers, producer_first) = (r.chance(50), r.chance(30));
    Scores {
        form: r.pick(&[Form::F16, Form::Bf16]),
        roles,
        groups: r.pick(&[1, 1, if roles < 3 { 2 } else { 1 }]),
        atoms: r.pick(&[1, 1, 2]),
        keys: r.pick(&[16, 32, 48, 64]),
        head: r.pick(&[16, 32, 64, 64]),
        stages,
        lags: stages.map(|stages| r.below(stages as usize) as i64),
        schedule: match r.below(4) {
            0 | 1 => Schedule::Grid,
            2 => Schedule::Persistent(1 + r.below(3) as u32),
            _ => Schedule::Cluster(2),
        },
        values_first: r.chance(25),
        producer_first,
        // Warpgroups begin at multiples of four warps.
        producer_warps: if registers || producer_first {
            4
        } else {
            r.pick(&[1, 2, 4])
        },
        registers,
        boxes: r.chance(30),
        mistakes: Mistake::some(r),
    }
}

impl Scores {
    fn has(&self, mistake: Mistake) -> bool {
        self.mistakes.contains(&mistake)
    }

    /// What the first mistake of a kind says.
    fn by<T>(&self, of: impl Fn(&Mistake) -> Option<T>) -> Option<T> {
        self.mistakes.iter().find_map(of)
    }

    /// Rows of a role.
    fn rows(&self) -> i64 {
        64 * self.groups * self.atoms
    }

    /// Rounded as the scores are.
    fn rounded(&self, x: f32) -> f32 {
        if self.form == Form::F16 {
            f16::from_f32(x).to_f32()
        } else {
            bf16::from_f32(x).to_f32()
        }
    }

    /// A random launch: sizes around those of tiles and of the rings, small whole numbers.
    pub(crate) fn case(&self, r: &mut Random) -> Case {
        let m = crate::near(r, self.rows() * self.roles);
        let steps = r.below(self.stages[0].max(self.stages[1]) as usize + 3);
        let n = (steps * self.keys as usize).saturating_sub(r.pick(&[0, 0, 1, 9]));
        let d = self.head as usize;
        let [q, keys, values] = [m, n, n].map(|rows| crate::numbers(r, rows * d));
        let mut wanted = vec![0.0; m * d];
        for (row, o) in q.chunks(d).zip(wanted.chunks_mut(d)) {
            for (key, value) in keys.chunks(d).zip(values.chunks(d)) {
                // Whole numbers below 2^24: exact, but for the rounding.
                let score: f32 = row.iter().zip(key).map(|(x, y)| x * y).sum();
                let score = self.rounded(score);
                for (o, v) in o.iter_mut().zip(value) {
                    *o += score * v;
                }
            }
        }
        let arg = |all: &[f32]| self.form.arg(all);
        Case {
            what: format!("{m} queries, {n} keys"),
            wanted,
            inputs: vec![
                ("q", arg(&q)),
                ("keys", arg(&keys)),
                ("values", arg(&values)),
            ],
            sizes: vec![("m", m), ("n", n)],
            output: "o",
            halves: self.boxes,
        }
    }
}

/// What all roles know.
struct Setting<'p> {
    p: &'p Scores,
    /// q, keys, values, o.
    arrays: [View; 4],
    /// m, n, and the width of a head.
    sizes: [Expr; 3],
    /// For the scores, and for o.
    mma: [TiledMma; 2],
    /// Of keys, and of values.
    rings: [Ring<'static, 1>; 2],
    steps: Expr,
}

/// Rows of a block: their tile, the column of it, and how many steps came before.
#[derive(Clone, Copy)]
struct Turn {
    at: [Expr; 2],
    before: Expr,
}

type Done = Result<(), ViewError>;

/// The kernel of a program.
pub(crate) fn kernel(p: &Scores) -> Result<Kernel, ViewError> {
    let warps = (4 * p.groups) as u32;
    let idle = u32::from(p.has(Mistake::NoRole));
    let mut k = Kernel::new(
        "fuzzed",
        32 * (warps * p.roles as u32 + p.producer_warps + idle),
    );
    if let Schedule::Cluster(blocks) = p.schedule {
        k.clusters([blocks, 1, 1]);
    }
    let element = p.form.element();
    let [m, n] = ["m", "n"].map(|name| k.size(name, MOST));
    let width = k.constant(p.head);
    let [q, keys, values] = [("q", m), ("keys", n), ("values", n)]
        .map(|(name, rows)| k.input(name, element, &[rows, width]));
    let out = if p.boxes { Element::Bf16 } else { Element::F32 };
    let o = k.output("o", out, &[m, width]);
    let groups = Layout::flat(&[p.groups, 1, 1], &[1, 0, 0])?;
    let mma = |n: i64| -> Result<TiledMma, ViewError> {
        let atom = atoms::wgmma(n, p.form.scalar(), atoms::Scalar::F32)?;
        Ok(TiledMma::new(atom, &groups)?)
    };
    let mut ring = |name, i: usize| {
        let tile = Staged::new(name, element, [p.keys, p.head], &[]);
        k.tma_ring(Stages::new(p.stages[i]).lag(p.lags[i]), [tile])
    };
    let s = Setting {
        p,
        arrays: [q, keys, values, o],
        sizes: [m, n, width],
        mma: [mma(p.keys)?, mma(p.head)?],
        rings: [ring("tile_k", 0)?, ring("tile_v", 1)?],
        steps: k.tiles_in(n, p.keys)?,
    };
    let registers = |role: WarpRole<'static>, count| {
        if p.registers {
            role.registers(count)
        } else {
            role
        }
    };
    let producer = |k: &mut Kernel| {
        let role = registers(WarpRole::new("producer", p.producer_warps), 40);
        if p.has(Mistake::AllProduce) {
            k.role(role, |k, _| s.produce(k))
        } else {
            k.producer(role, |k| s.produce(k))
        }
    };
    if p.producer_first {
        producer(&mut k)?;
    }
    for part in 0..p.roles {
        let name = ["first", "second", "third"][part as usize];
        let less = u32::from(part == 0 && p.has(Mistake::HalfRole));
        let most = if p.roles * p.groups > 2 { 112 } else { 208 };
        k.role(
            registers(WarpRole::new(name, warps - less), most),
            |k, thread| {
                let part = if p.has(Mistake::OtherRole) { 0 } else { part };
                s.turns(k, |k, turn| s.consume(k, (turn, part), thread))
            },
        )?;
        if less > 0 {
            k.role(WarpRole::new("idle", less), |_, _| Done::Ok(()))?;
        }
    }
    if !p.producer_first {
        producer(&mut k)?;
    }
    Ok(k)
}

impl Setting<'_> {
    /// For each run of rows of the block.
    fn turns(&self, k: &mut Kernel, body: impl FnOnce(&mut Kernel, Turn) -> Done) -> Done {
        let (rows, [m, _, width]) = (self.p.rows() * self.p.roles, self.sizes);
        if let Schedule::Persistent(blocks) = self.p.schedule {
            return k.persistent([m, width], [rows, self.p.head], [blocks, 1], |k, tile| {
                let before = k.mul(tile.number(), self.steps);
                let at = tile.at();
                body(k, Turn { at, before })
            });
        }
        let zero = k.constant(0);
        let at = [k.tiles(Axis::X, m, rows)?, zero];
        body(k, Turn { at, before: zero })
    }

    fn produce(&self, k: &mut Kernel) -> Done {
        let p = self.p;
        self.turns(k, |k, turn| self.fill(k, turn))?;
        if matches!(p.schedule, Schedule::Cluster(_)) && !p.has(Mistake::NoDrain) {
            k.drain(&self.rings[0], self.steps)?;
            k.drain(&self.rings[1], self.steps)?;
        }
        Ok(())
    }

    fn fill(&self, k: &mut Kernel, turn: Turn) -> Done {
        let p = self.p;
        let more = p.by(|m| match m {
            Mistake::BeforeFill(by) => Some(*by),
            _ => None,
        });
        let before = more.map_or(turn.before, |by| k.linear(&[(1, turn.before)], by));
        let order = if p.values_first { [1, 0] } else { [0, 1] };
        k.for_loop("fill", 0, 1, self.steps, |k, step| {
            let index = k.add(before, step);
            for which in order {
                let (ring, from) = (&self.rings[which], &self.arrays[1 + which]);
                k.fill_stage(ring, index, step, |k, [to]| {
                    let (of_keys, zero) = (which == 0, k.constant(0));
                    let row = if of_keys && p.has(Mistake::OtherBox) {
                        k.linear(&[(1, step)], 1)
                    } else {
                        step
                    };
                    let from = from.tile(k, &[p.keys, p.head], &[row, zero])?;
                    let times = if p.has(Mistake::NoLoad) && of_keys {
                        0
                    } else {
                        1 + usize::from(of_keys && p.has(Mistake::LoadTwice))
                    };
                    for _ in 0..times {
                        // With the mistake each block loads the whole: what is loaded together is the same in all.
                        let alone = p.has(Mistake::OtherMulticast);
                        if matches!(p.schedule, Schedule::Cluster(_)) && !alone {
                            k.tma_multicast(&from, &to, Axis::X)?;
                        } else {
                            k.tma_load(&from, &to)?;
                        }
                    }
                    Done::Ok(())
                })?;
            }
            Ok(())
        })
    }

    /// Rows of a role: scores of all keys, and their sums with the values.
    fn consume(&self, k: &mut Kernel, (turn, part): (Turn, i64), thread: Expr) -> Done {
        let (p, zero) = (self.p, k.constant(0));
        let (rows, head) = (p.rows(), p.head);
        let row = k.linear(&[(p.roles, turn.at[0])], part);
        let q = self.arrays[0].tile(k, &[rows, head], &[row, zero])?;
        let q = q.partition_a(k, &self.mma[0], thread)?;
        let q = k.load_fragment(&q.vectors(k, 2)?)?;
        let sums = k.accumulators(&self.mma[1], [rows, head], thread)?;
        let (mut before, mut steps) = (turn.before, self.steps);
        for m in &p.mistakes {
            match m {
                Mistake::Before(by) => before = k.linear(&[(1, before)], *by),
                Mistake::Steps(by) => steps = k.linear(&[(1, steps)], *by),
                Mistake::OtherSize => steps = k.tiles_in(self.sizes[0], p.keys)?,
                _ => {}
            }
        }
        k.for_loop("keys", 0, 1, steps, |k, step| {
            let index = k.add(before, step);
            self.step(k, (index, step), (&q, &sums), thread)
        })?;
        k.wait_wgmma(0);
        if p.has(Mistake::Barrier) {
            k.barrier();
        }
        let mut at = [row, turn.at[1]];
        if p.has(Mistake::StoreElsewhere) {
            at[0] = k.linear(&[(1, row)], 1);
        }
        let o = self.arrays[3].tile(k, &[rows, head], &at)?;
        for _ in 0..=usize::from(p.has(Mistake::StoreTwice)) {
            if p.boxes {
                let sums = k.convert_fragment(&sums, Element::Bf16)?;
                k.tma_store(&o, &sums)?;
            } else {
                let o = o.partition_c(k, &self.mma[1], thread)?;
                k.store_fragment(&o.vectors(k, 2)?, &sums)?;
            }
        }
        Ok(())
    }

    fn step(
        &self,
        k: &mut Kernel,
        (index, step): (Expr, Expr),
        (q, sums): (&Fragment, &Fragment),
        thread: Expr,
    ) -> Done {
        let (p, [of_keys, of_values]) = (self.p, &self.rings);
        let called = if p.has(Mistake::OtherTile) {
            k.linear(&[(1, step)], 1)
        } else {
            step
        };
        let given = p.by(|m| match m {
            Mistake::GiveOther(by) => Some(*by),
            _ => None,
        });
        let given = given.map_or(index, |by| k.linear(&[(1, index)], by));
        let (early, keep) = (p.has(Mistake::GiveEarly), p.has(Mistake::Keep));

        let scores = k.accumulators(&self.mma[0], [p.rows(), p.keys], thread)?;
        let [tile] = k.arrived(of_keys, index, called)?;
        if early {
            k.release(of_keys, given)?;
        }
        k.gemm(&self.mma[0], q, &tile, &scores)?;
        if !p.has(Mistake::NoWait) {
            k.wait_wgmma(0);
        }
        if !early {
            k.release(of_keys, given)?;
        }
        if p.has(Mistake::Stale) {
            k.gemm(&self.mma[0], q, &tile, &scores)?;
            k.wait_wgmma(0);
        }
        let weights = k.convert_fragment(&scores, p.form.element())?;
        let [tile] = k.arrived(of_values, index, step)?;
        let tile = if p.has(Mistake::Untransposed) {
            tile
        } else {
            tile.transposed()
        };
        k.gemm(&self.mma[1], &weights, &tile, sums)?;
        if p.has(Mistake::ReadSums) {
            sums.update(k, |k, x| x.add(k, 1.0))?;
        }
        let more = p.by(|m| match m {
            Mistake::InFlight(more) => Some(*more),
            _ => None,
        });
        // The scores of the next step are waited for with these sums.
        k.wait_wgmma(p.lags[1].min(1) as u32 + more.unwrap_or(0));
        if !keep {
            let ring = if p.has(Mistake::GiveOtherRing) {
                of_keys
            } else {
                of_values
            };
            k.release(ring, given)?;
        }
        if p.has(Mistake::GiveTwice) {
            k.release(of_values, given)?;
        }
        Ok(())
    }
}
