//! A random product on Hopper, and its kernel through the public layer.

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Ring, Staged, Stages, WarpRole};
use tilewright::codegen::view::{Fragment, View, ViewError};
use tilewright::{Layout, TiledMma, atoms};

use crate::random::Random;

/// The largest extent of a matrix.
const MOST: i64 = 1 << 14;

/// The operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    F16,
    Bf16,
    Tf32,
    E4m3,
}

impl Form {
    fn element(self) -> Element {
        match self {
            Self::F16 => Element::F16,
            Self::Bf16 => Element::Bf16,
            Self::Tf32 => Element::F32,
            Self::E4m3 => Element::E4m3,
        }
    }

    fn scalar(self) -> atoms::Scalar {
        match self {
            Self::F16 => atoms::Scalar::F16,
            Self::Bf16 => atoms::Scalar::Bf16,
            Self::Tf32 => atoms::Scalar::Tf32,
            Self::E4m3 => atoms::Scalar::E4m3,
        }
    }

    /// Elements in 16 bytes.
    pub(crate) fn align(self) -> usize {
        16 / self.element().bytes() as usize
    }

    /// Elements along k of one instruction.
    fn depth(self) -> i64 {
        32 / i64::from(self.element().bytes())
    }
}

/// How blocks and roles take tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Schedule {
    /// A block a tile.
    Grid,
    /// So many blocks that take tile after tile.
    Persistent([u32; 2]),
    /// The same by so many roles that take turns, each with its part of the rows.
    InTurns(u32, [u32; 2]),
    /// A block a tile, clusters along x (which have b in common) or y (a).
    Cluster(Axis, u32),
}

/// What the author does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// The consumers take so many steps more than are filled.
    Steps(i64),
    /// The consumers begin with another use of a stage.
    Before(i64),
    /// The producer begins so.
    BeforeFill(i64),
    /// One tile of a stage is not loaded.
    NoLoad,
    /// One is loaded twice.
    LoadTwice,
    /// Products of a step more are in flight when a stage is given back.
    InFlight(u32),
    /// A stage is not given back.
    Keep,
    /// It is given back before its products are issued.
    GiveEarly,
    /// It is given back twice.
    GiveTwice,
    /// Sums are read while products are in flight.
    ReadSums,
    /// Products read the stage of the step before.
    Stale,
    /// The tile of c is stored twice.
    StoreTwice,
    /// The tile of another block is stored.
    StoreElsewhere,
    /// A cluster does not wait for its last stages.
    NoDrain,
    /// Another role has the turn.
    Turn,
    /// A warp of consumers does something else.
    HalfRole,
    /// A barrier of the block in a role.
    Barrier,
    /// The consumers count their turns by another size.
    OtherSize,
    /// What the stage holds is called something else by the consumers.
    OtherTile,
}

/// A program.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // They are drawn one by one.
pub(crate) struct Program {
    pub(crate) form: Form,
    /// a is k x m, b is k x n.
    pub(crate) transposed: [bool; 2],
    /// Warpgroups along m and n.
    groups: [i64; 2],
    /// Atoms of a warpgroup along m and n.
    atoms: [i64; 2],
    /// Columns of an atom.
    n: i64,
    /// Instructions along k of a step.
    depth: i64,
    pub(crate) stages: i64,
    lag: i64,
    /// a and b have a ring each.
    two_rings: bool,
    /// a comes to registers from global memory.
    from_registers: bool,
    schedule: Schedule,
    /// Sums leave by TMA, as bf16.
    pub(crate) boxes: bool,
    /// The producer is the first role.
    producer_first: bool,
    /// Registers are set.
    registers: bool,
    /// Each step is written out, and not by `consume` and `produce`.
    by_hand: bool,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Program {
    /// Rows and columns of a role's tile, and elements along k of a stage.
    pub(crate) fn tile(&self) -> [i64; 3] {
        let [gm, gn] = self.groups;
        let [am, an] = self.atoms;
        [
            64 * gm * am,
            self.n * gn * an,
            self.depth * self.form.depth(),
        ]
    }

    fn has(&self, mistake: Mistake) -> bool {
        self.mistakes.contains(&mistake)
    }
}

/// A random program.
pub(crate) fn program(r: &mut Random) -> Program {
    let form = r.pick(&[Form::F16, Form::Bf16, Form::Bf16, Form::Tf32, Form::E4m3]);
    let halves = matches!(form, Form::F16 | Form::Bf16);
    let stages = 1 + r.below(5) as i64;
    let blocks = [1 + r.below(3) as u32, 1 + r.below(2) as u32];
    let schedule = match r.below(8) {
        0..3 => Schedule::Grid,
        3..5 => Schedule::Persistent(blocks),
        5 => Schedule::InTurns(2 + r.below(2) as u32, blocks),
        _ => Schedule::Cluster(r.pick(&[Axis::X, Axis::Y]), r.pick(&[2, 2, 4])),
    };
    let groups = if matches!(schedule, Schedule::InTurns(..)) {
        [1, 1]
    } else {
        r.pick(&[[1, 1], [2, 1], [1, 2], [1, 1]])
    };
    let mut p = Program {
        form,
        transposed: [r.chance(30) && halves, r.chance(30) && halves],
        groups,
        atoms: [r.pick(&[1, 1, 2]), r.pick(&[1, 1, 2])],
        n: r.pick(&[8, 16, 24, 32, 64]),
        depth: r.pick(&[1, 2, 4, 4]),
        stages,
        lag: r.below(stages as usize) as i64,
        two_rings: r.chance(20),
        from_registers: halves && r.chance(10),
        schedule,
        boxes: r.chance(35),
        producer_first: r.chance(30),
        registers: r.chance(50),
        by_hand: r.chance(40),
        mistakes: Vec::new(),
    };
    if r.chance(55) {
        for _ in 0..r.pick(&[1, 1, 2]) {
            p.mistakes.push(mistake(r));
        }
    }
    p.by_hand |= p.mistakes.iter().any(|m| {
        matches!(
            m,
            Mistake::InFlight(_)
                | Mistake::Keep
                | Mistake::GiveEarly
                | Mistake::GiveTwice
                | Mistake::OtherTile
        )
    });
    p
}

fn mistake(r: &mut Random) -> Mistake {
    let by = r.pick(&[-1, 1, 2]);
    match r.below(19) {
        0 => Mistake::Steps(by),
        1 => Mistake::Before(by),
        2 => Mistake::BeforeFill(by),
        3 => Mistake::NoLoad,
        4 => Mistake::LoadTwice,
        5 => Mistake::InFlight(1 + r.below(3) as u32),
        6 => Mistake::Keep,
        7 => Mistake::GiveEarly,
        8 => Mistake::GiveTwice,
        9 => Mistake::ReadSums,
        10 => Mistake::Stale,
        11 => Mistake::StoreTwice,
        12 => Mistake::StoreElsewhere,
        13 => Mistake::NoDrain,
        14 => Mistake::Turn,
        15 => Mistake::HalfRole,
        16 => Mistake::Barrier,
        17 => Mistake::OtherSize,
        _ => Mistake::OtherTile,
    }
}

/// What all roles know.
struct Setting<'p> {
    p: &'p Program,
    arrays: [View; 3],
    sizes: [Expr; 3],
    mma: TiledMma,
    /// a and b in one ring, or one each.
    rings: Rings,
    steps: Expr,
}

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
pub(crate) fn kernel(p: &Program) -> Result<Kernel, ViewError> {
    let [tm, tn, tk] = p.tile();
    let [gm, gn] = p.groups;
    let takers = match p.schedule {
        Schedule::InTurns(roles, _) => i64::from(roles),
        _ => 1,
    };
    let warps = (4 * gm * gn) as u32;
    let mut k = Kernel::new("fuzzed", 32 * warps * takers as u32 + 128);
    if let Schedule::Cluster(axis, blocks) = p.schedule {
        let mut all = [1; 3];
        all[axis as usize] = blocks;
        k.clusters(all);
    }
    let [m, n, depth, lda, ldb] = ["m", "n", "k", "lda", "ldb"].map(|name| k.size(name, MOST));
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
    let stages = if takers > 1 {
        stages.ping_pong(takers as u32)
    } else {
        stages
    };
    let staged = |name, rows, transposed| {
        let shape = if transposed { [tk, rows] } else { [rows, tk] };
        Staged::new(name, element, shape, &[])
    };
    let (tile_a, tile_b) = (
        staged("tile_a", tm, p.transposed[0]),
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
    };
    let s = &setting;
    let registers = |role: WarpRole<'static>, count| {
        if p.registers {
            role.registers(count)
        } else {
            role
        }
    };
    let producer = |k: &mut Kernel| {
        k.producer(registers(WarpRole::new("producer", 4), 40), |k| {
            s.turns(k, |k, turn| {
                for part in 0..takers {
                    let turn = s.part(k, turn, (part, takers));
                    s.fill(k, turn)?;
                }
                Ok(())
            })?;
            match (p.schedule, &s.rings) {
                (Schedule::Cluster(..), _) if p.has(Mistake::NoDrain) => Ok(()),
                (Schedule::Cluster(..), Rings::Both(ring)) => k.drain(ring, s.steps),
                (Schedule::Cluster(..), Rings::OnlyB(ring)) => k.drain(ring, s.steps),
                (Schedule::Cluster(..), Rings::Each(a, b)) => {
                    k.drain(a, s.steps)?;
                    k.drain(b, s.steps)
                }
                _ => Ok(()),
            }
        })
    };
    if p.producer_first {
        producer(&mut k)?;
    }
    for part in 0..takers {
        let name = ["first", "second", "third"][part as usize];
        let role = registers(
            WarpRole::new(name, warps),
            if takers * gm * gn > 2 { 152 } else { 208 },
        );
        k.role(role, |k, thread| {
            s.turns(k, |k, turn| {
                let turn = s.part(k, turn, (part, takers));
                s.tile(k, turn, (part, takers), thread)
            })
        })?;
    }
    if !p.producer_first {
        producer(&mut k)?;
    }
    Ok(k)
}

impl Setting<'_> {
    /// For each tile of the block.
    fn turns(&self, k: &mut Kernel, body: impl FnOnce(&mut Kernel, Turn) -> Done) -> Done {
        let ([tm, tn, _], [m, n, _]) = (self.p.tile(), self.sizes);
        match self.p.schedule {
            Schedule::Grid | Schedule::Cluster(..) => {
                let at = [k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?];
                let zero = k.constant(0);
                let turn = Turn {
                    at,
                    before: zero,
                    number: zero,
                };
                body(k, turn)
            }
            Schedule::Persistent(blocks) => k.persistent([m, n], [tm, tn], blocks, |k, tile| {
                let before = k.mul(tile.number(), self.steps);
                let turn = Turn {
                    at: tile.at(),
                    before,
                    number: tile.number(),
                };
                body(k, turn)
            }),
            Schedule::InTurns(roles, blocks) => {
                let rows = tm * i64::from(roles);
                k.persistent([m, n], [rows, tn], blocks, |k, tile| {
                    let number = tile.number();
                    let turn = Turn {
                        at: tile.at(),
                        before: number,
                        number,
                    };
                    body(k, turn)
                })
            }
        }
    }

    /// A role's part of the block's tile.
    fn part(&self, k: &mut Kernel, turn: Turn, (part, of): (i64, i64)) -> Turn {
        if of == 1 {
            return turn;
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
        let [tm, tn, tk] = self.p.tile();
        let (rows, row) = ([tm, tn][which], turn.at[which]);
        let transposed = self.p.transposed[which];
        let (shape, at) = if transposed {
            ([tk, rows], [step, row])
        } else {
            ([rows, tk], [row, step])
        };
        let from = self.arrays[which].tile(k, &shape, &at)?;
        match self.p.schedule {
            // Blocks one below the other have b in common, those side by side a.
            Schedule::Cluster(axis, _) if (axis == Axis::X) == (which == 1) => {
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
        let consume = |k: &mut Kernel| self.consume(k, turn, &sums, thread);
        if of > 1 {
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
        turn: Turn,
        step: Expr,
        (a, b): (Option<&View>, &View),
        (sums, thread): (&Fragment, Expr),
    ) -> Done {
        let turned = |view: &View, which: usize| {
            if self.p.transposed[which] {
                view.transposed()
            } else {
                view.clone()
            }
        };
        let b = turned(b, 1);
        if let Some(a) = a {
            k.gemm(&self.mma, &turned(a, 0), &b, sums)?;
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

    fn consume(&self, k: &mut Kernel, turn: Turn, sums: &Fragment, thread: Expr) -> Done {
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
                        self.multiply(k, turn, step, (Some(&a), &b), with)
                    });
                }
                Rings::OnlyB(ring) => {
                    return k.consume(ring, before, steps, |k, [b], step| {
                        self.multiply(k, turn, step, (None, &b), with)
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
            match &self.rings {
                Rings::Both(ring) => k.release(ring, index),
                Rings::OnlyB(ring) => k.release(ring, index),
                Rings::Each(a, b) => {
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
            self.multiply(k, turn, step, (a.as_ref(), &b), with)?;
            k.wait_wgmma(p.lag as u32 + in_flight.unwrap_or(0));
            if !p.has(Mistake::Keep) && !p.has(Mistake::GiveEarly) {
                give(k, index)?;
            }
            if p.has(Mistake::GiveTwice) {
                give(k, index)?;
            }
            if p.has(Mistake::Stale) {
                self.multiply(k, turn, step, (a.as_ref(), &b), with)?;
            }
            Ok::<(), ViewError>(())
        })?;
        k.wait_wgmma(0);
        Ok(())
    }
}
