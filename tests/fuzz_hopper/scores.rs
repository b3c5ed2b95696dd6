//! A random product of scores on Hopper: o = round(q·kᵀ)·v, as attention has it. Keys and values have rings of their own, and the rounded scores are the first factor of the second
//! product, from registers.

use half::{bf16, f16};
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::pipeline::{
    OrderBarrier, Ring, Staged, Stages, TileOrder, TileScheduler, WarpRole,
};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{Layout, Swizzled, TiledMma, atoms};

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
    Persistent(u32, bool),
    /// As [`Schedule::Grid`], in clusters that load keys and values together.
    Cluster(u32),
}

/// Whether, and how often, the threads of a role exchange numbers through shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exchange {
    None,
    /// Once for its rows.
    Once,
    /// In each step.
    EachStep,
}

/// A program.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is drawn for itself.
pub(crate) struct Scores {
    pub(crate) form: Form,
    /// Consumer roles, each with rows of its own.
    roles: i64,
    /// Warpgroups of a role, and atoms of each along the rows.
    pub(crate) groups: i64,
    atoms: i64,
    /// Keys of a step, and elements of a head.
    pub(crate) keys: i64,
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
    /// q is read from a stage that each role holds while it goes through the keys.
    pub(crate) held: bool,
    /// Roles issue products in turns.
    order: bool,
    /// The scores of the next step are issued ahead of the sums of this one.
    pub(crate) ahead: bool,
    pub(crate) exchange: Exchange,
    pub(crate) mistakes: Vec<Mistake>,
}

/// A random program.
pub(crate) fn random(r: &mut Random) -> Scores {
    let stages = [1 + r.below(4) as i64, 1 + r.below(4) as i64];
    let roles = r.pick(&[1, 1, 2, 2, 3]);
    let (registers, producer_first) = (r.chance(50), r.chance(30));
    let (held, ahead) = (r.chance(50), r.chance(40));
    Scores {
        form: r.pick(&[Form::F16, Form::Bf16]),
        roles,
        groups: r.pick(&[1, 1, if roles < 3 { 2 } else { 1 }]),
        atoms: r.pick(&[1, 1, 2]),
        keys: r.pick(&[16, 32, 48, 64]),
        head: r.pick(&[16, 32, 64, 64]),
        stages,
        lags: stages.map(|stages| {
            if ahead {
                0
            } else {
                r.below(stages as usize) as i64
            }
        }),
        schedule: match r.below(4) {
            0 | 1 => Schedule::Grid,
            2 => Schedule::Persistent(2 + r.below(2) as u32, r.chance(50)),
            _ => Schedule::Cluster(2),
        },
        values_first: r.chance(10),
        producer_first,
        // Warpgroups begin at multiples of four warps.
        producer_warps: if registers || producer_first {
            4
        } else {
            r.pick(&[1, 2, 4])
        },
        registers,
        boxes: r.chance(30),
        held,
        order: roles > 1 && r.chance(60),
        ahead,
        exchange: r.pick(&[
            Exchange::None,
            Exchange::None,
            Exchange::Once,
            Exchange::EachStep,
        ]),
        mistakes: Mistake::some(r, 60),
    }
}

impl Scores {
    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistakes.contains(&mistake)
    }

    /// What the first mistake of a kind says.
    pub(crate) fn by<T>(&self, of: impl Fn(&Mistake) -> Option<T>) -> Option<T> {
        self.mistakes.iter().find_map(of)
    }

    /// Rows of a role.
    pub(crate) fn rows(&self) -> i64 {
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
        let steps = n.div_ceil(self.keys as usize);
        let exchanges = match self.exchange {
            Exchange::None => 0,
            Exchange::Once => 1,
            // The first step is ahead of the loop.
            Exchange::EachStep => steps.saturating_sub(usize::from(self.ahead)),
        };
        for o in &mut wanted {
            *o += exchanges as f32;
        }
        let arg = |all: &[f32]| self.form.arg(all);
        let sizes = vec![("m", m), ("n", n)];
        Case {
            what: format!("{m} queries, {n} keys"),
            wanted,
            inputs: vec![
                ("q", arg(&q)),
                ("keys", arg(&keys)),
                ("values", arg(&values)),
            ],
            sizes,
            output: "o",
            halves: self.boxes,
        }
    }
}

/// What all roles know.
pub(crate) struct Setting<'p> {
    pub(crate) p: &'p Scores,
    /// q, keys, values, o.
    pub(crate) arrays: [View; 4],
    /// m, n, and the columns of o.
    sizes: [Expr; 3],
    /// For the scores, and for o.
    pub(crate) mma: [TiledMma; 2],
    /// Of keys, and of values.
    pub(crate) rings: [Ring<'static, 1>; 2],
    /// Of q, one of each role.
    pub(crate) of_q: Vec<Ring<'static, 1>>,
    pub(crate) order: Option<OrderBarrier>,
    /// By role, what its threads exchange.
    pub(crate) own: Vec<View>,
    /// Steps of the loop, and uses of the rings of keys and values.
    pub(crate) steps: Expr,
    uses: Expr,
    /// Of no keys the first tile is one outside of the arrays.
    outside: Expr,
}

/// Rows of a block: their tile, the column of it, how many steps came before, and how many runs of rows.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    at: [Expr; 2],
    pub(crate) before: Expr,
    pub(crate) number: Expr,
}

/// A role and its thread.
#[derive(Clone, Copy)]
pub(crate) struct Consumer {
    pub(crate) part: i64,
    pub(crate) thread: Expr,
}

/// The factor q.
pub(crate) enum Queries {
    Registers(Box<Fragment>),
    Stage(View),
}

pub(crate) type Done = Result<(), ViewError>;

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
    let rings = [ring("tile_k", 0)?, ring("tile_v", 1)?];
    let mma = [mma(p.keys)?, mma(p.head)?];
    let arrays = [q, keys, values, o];
    let s = p.setting(&mut k, (arrays, [m, n, width]), mma, rings)?;
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
            |k, thread| s.turns(k, |k, turn| s.consume(k, turn, Consumer { part, thread })),
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

impl Scores {
    /// What all roles know of this program.
    fn setting(
        &self,
        k: &mut Kernel,
        (arrays, sizes): ([View; 4], [Expr; 3]),
        mma: [TiledMma; 2],
        rings: [Ring<'static, 1>; 2],
    ) -> Result<Setting<'_>, ViewError> {
        let (roles, zero, n) = (self.roles as usize, k.constant(0), sizes[1]);
        let (mut of_q, mut own, mut order) = (Vec::new(), Vec::new(), None);
        if self.held {
            for name in &["tile_q", "tile_q1", "tile_q2"][..roles] {
                let shape = [self.rows(), self.head];
                let tile = Staged::new(name, self.form.element(), shape, &[]);
                of_q.push(k.tma_ring(Stages::new(1), [tile])?);
            }
        }
        if self.exchange != Exchange::None {
            let layout = Swizzled::parse(&format!("{}:1", 128 * self.groups));
            let layout = layout.expect("a layout");
            for name in &["own", "own1", "own2"][..roles] {
                own.push(k.shared(name, Element::F32, &layout)?);
            }
        }
        if self.order {
            let more = u32::from(self.has(Mistake::OrderMore));
            order = Some(k.order_barrier(self.roles as u32 + more)?);
        }
        let mut steps = k.tiles_in(n, self.keys)?;
        let (mut uses, mut outside) = (steps, zero);
        if self.ahead {
            let behind = k.linear(&[(1, n)], -self.keys);
            let behind = k.clamp(behind, 0, MOST);
            steps = k.tiles_in(behind, self.keys)?;
            uses = k.linear(&[(1, steps)], 1);
            let one = k.constant(1);
            outside = k.choose(n, Cmp::Gt, zero, zero, one);
        }
        Ok(Setting {
            p: self,
            arrays,
            sizes,
            mma,
            rings,
            of_q,
            order,
            own,
            steps,
            uses,
            outside,
        })
    }
}

impl Setting<'_> {
    /// For each run of rows of the block.
    fn turns(&self, k: &mut Kernel, body: impl FnOnce(&mut Kernel, Turn) -> Done) -> Done {
        let (rows, [m, _, columns]) = (self.p.rows() * self.p.roles, self.sizes);
        if let Schedule::Persistent(blocks, linear) = self.p.schedule {
            let (extents, tile) = ([m, columns], [rows, self.p.head]);
            let scheduler = if linear {
                TileScheduler::linear(extents, tile, blocks, TileOrder::Rows)
            } else {
                TileScheduler::rectangle(extents, tile, [blocks, 1])
            };
            return k.persistent(&scheduler, |k, tile| {
                let before = k.mul(tile.number(), self.uses);
                let (at, number) = (tile.at(), tile.number());
                body(k, Turn { at, before, number })
            });
        }
        let zero = k.constant(0);
        let at = [k.tiles(Axis::X, m, rows)?, zero];
        let (before, number) = (zero, zero);
        body(k, Turn { at, before, number })
    }

    fn produce(&self, k: &mut Kernel) -> Done {
        let p = self.p;
        self.turns(k, |k, turn| self.fill(k, turn))?;
        if matches!(p.schedule, Schedule::Cluster(_)) && !p.has(Mistake::NoDrain) {
            let one = k.constant(1);
            for ring in &self.of_q {
                k.drain(ring, one)?;
            }
            k.drain(&self.rings[0], self.uses)?;
            k.drain(&self.rings[1], self.uses)?;
        }
        Ok(())
    }

    fn fill(&self, k: &mut Kernel, turn: Turn) -> Done {
        let (p, zero) = (self.p, k.constant(0));
        let more = p.by(|m| match m {
            Mistake::BeforeFill(by) => Some(*by),
            _ => None,
        });
        let before = more.map_or(turn.before, |by| k.linear(&[(1, turn.before)], by));
        let order = if p.values_first { [1, 0] } else { [0, 1] };
        let late = p.has(Mistake::HeldLate);
        if !late {
            self.fill_queries(k, turn)?;
        }
        if p.ahead {
            self.fill_one(k, (before, zero), 0)?;
        }
        k.for_loop("fill", 0, 1, self.steps, |k, step| {
            for which in order {
                let ahead = i64::from(p.ahead && which == 0);
                let step = k.linear(&[(1, step)], ahead);
                self.fill_one(k, (before, step), which)?;
            }
            Done::Ok(())
        })?;
        if p.ahead {
            self.fill_one(k, (before, self.steps), 1)?;
        }
        if late {
            self.fill_queries(k, turn)?;
        }
        Ok(())
    }

    /// The tile of q of each role.
    fn fill_queries(&self, k: &mut Kernel, turn: Turn) -> Done {
        let (p, zero) = (self.p, k.constant(0));
        for (part, ring) in (0..).zip(&self.of_q) {
            let row = k.linear(&[(p.roles, turn.at[0])], part);
            let from = self.arrays[0].tile(k, &[p.rows(), p.head], &[row, zero])?;
            k.fill_stage(ring, turn.number, row, |k, [to]| k.tma_load(&from, &to))?;
        }
        Ok(())
    }

    /// The keys or values of a step.
    fn fill_one(&self, k: &mut Kernel, (before, step): (Expr, Expr), which: usize) -> Done {
        let (p, zero, of_keys) = (self.p, k.constant(0), which == 0);
        let (ring, from) = (&self.rings[which], &self.arrays[1 + which]);
        let index = k.add(before, step);
        k.fill_stage(ring, index, step, |k, [to]| {
            let other = of_keys && p.has(Mistake::OtherBox);
            let row = k.linear(&[(1, step), (1, self.outside)], i64::from(other));
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
        })
    }

    /// Rows of a role: scores of all keys, and their sums with the values.
    fn consume(&self, k: &mut Kernel, turn: Turn, role: Consumer) -> Done {
        let (p, zero, thread) = (self.p, k.constant(0), role.thread);
        let (rows, head) = (p.rows(), p.head);
        let part = if p.has(Mistake::OtherRole) {
            0
        } else {
            role.part
        };
        let row = k.linear(&[(p.roles, turn.at[0])], part);
        let q = if p.held {
            self.hold(k, (turn, row), role)?
        } else {
            let q = self.arrays[0].tile(k, &[rows, head], &[row, zero])?;
            let q = q.partition_a(k, &self.mma[0], thread)?;
            Queries::Registers(Box::new(k.load_fragment(&q.vectors(k, 2)?)?))
        };
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
        if p.has(Mistake::OrderOnce) && role.part == 0 {
            self.in_turn(k, role, |_| Ok(()))?;
        }
        if p.ahead {
            self.steps_ahead(k, (turn, [before, steps]), (&q, &sums), role)?;
        } else {
            k.for_loop("keys", 0, 1, steps, |k, step| {
                let index = k.add(before, step);
                self.step(k, (index, step), (&q, &sums), role)?;
                self.in_step(k, turn, &sums, role)
            })?;
        }
        k.wait_wgmma(0);
        self.give_back(k, turn, (&q, &sums), role)?;
        if p.exchange == Exchange::Once {
            self.exchange(k, &sums, role)?;
        }
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
        (q, sums): (&Queries, &Fragment),
        role: Consumer,
    ) -> Done {
        let (p, thread, [of_keys, of_values]) = (self.p, role.thread, &self.rings);
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
        self.in_turn(k, role, |k| self.scores(k, q, &tile, &scores))?;
        if !p.has(Mistake::NoWait) {
            k.wait_wgmma(0);
        }
        if !early {
            k.release(of_keys, given)?;
        }
        if p.has(Mistake::Stale) {
            self.scores(k, q, &tile, &scores)?;
            k.wait_wgmma(0);
        }
        let weights = k.convert_fragment(&scores, p.form.element())?;
        let [tile] = k.arrived(of_values, index, step)?;
        let tile = if p.has(Mistake::Untransposed) {
            tile
        } else {
            tile.transposed()
        };
        self.in_turn(k, role, |k| k.gemm(&self.mma[1], &weights, &tile, sums))?;
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
