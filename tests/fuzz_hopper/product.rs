//! A random matrix product on Hopper, and what it is to compute.

use half::{bf16, f16};
use tilewright::atoms;
use tilewright::codegen::ir::{Axis, Element};
use tilewright::codegen::pipeline::WarpRole;
use tilewright::host::Arg;

use crate::Case;
use crate::mistakes::Mistake;
use crate::random::Random;

/// The operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    F16,
    Bf16,
    Tf32,
    E4m3,
}

impl Form {
    pub(crate) fn element(self) -> Element {
        match self {
            Self::F16 => Element::F16,
            Self::Bf16 => Element::Bf16,
            Self::Tf32 => Element::F32,
            Self::E4m3 => Element::E4m3,
        }
    }

    pub(crate) fn scalar(self) -> atoms::Scalar {
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
    pub(crate) fn depth(self) -> i64 {
        32 / i64::from(self.element().bytes())
    }
}

/// The blocks of a persistent kernel, and which tiles they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tiles {
    Rectangle([u32; 2]),
    Rows(u32),
    Columns(u32),
    Groups(u32, u32),
    /// So many rows of tiles together, of up to 4 × 4 tiles.
    Layouts(u32, i64),
    List(u32),
}

/// Rows and columns of tiles in an order by layouts, at most.
pub(crate) const BY_LAYOUTS: i64 = 4;

impl Tiles {
    fn random(r: &mut Random) -> Self {
        let blocks = 1 + r.below(4) as u32;
        match r.below(10) {
            0..4 => Self::Rectangle([1 + r.below(3) as u32, 1 + r.below(2) as u32]),
            4 => Self::Rows(blocks),
            5 => Self::Columns(blocks),
            6 | 7 => Self::Groups(blocks, 1 + r.below(4) as u32),
            8 => Self::Layouts(blocks, r.pick(&[1, 2, 4])),
            _ => Self::List(blocks),
        }
    }
}

/// How blocks and roles take tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Schedule {
    /// A block a tile.
    Grid,
    /// So many blocks that take tile after tile.
    Persistent(Tiles),
    /// The same by so many roles in a ping-pong schedule, each with its part of the rows.
    InTurns(u32, Tiles),
    /// A block a tile, so many roles that read the same stages, each with its part of the rows.
    Roles(u32),
    /// A block a tile, clusters along x (which have b in common) or y (a).
    Cluster(Axis, u32),
}

/// A program.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // They are drawn one by one.
pub(crate) struct Product {
    pub(crate) form: Form,
    /// a is k x m, b is k x n.
    pub(crate) transposed: [bool; 2],
    /// Warpgroups along m and n.
    pub(crate) groups: [i64; 2],
    /// Atoms of a warpgroup along m and n.
    pub(crate) atoms: [i64; 2],
    /// Columns of an atom.
    pub(crate) n: i64,
    /// Instructions along k of a step.
    pub(crate) depth: i64,
    pub(crate) stages: i64,
    pub(crate) lag: i64,
    /// a and b have a ring each.
    pub(crate) two_rings: bool,
    /// a comes to registers from global memory.
    pub(crate) from_registers: bool,
    pub(crate) schedule: Schedule,
    /// Sums leave by TMA, as bf16.
    pub(crate) boxes: bool,
    /// The producer is the first role.
    pub(crate) producer_first: bool,
    /// Registers are set.
    pub(crate) registers: bool,
    /// Each step is written out, and not by `consume` and `produce`.
    pub(crate) by_hand: bool,
    /// It may begin beside the grid before.
    pub(crate) beside: bool,
    /// The producer of persistent blocks waits until the last stages are released, as in a cluster.
    pub(crate) drains: bool,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Product {
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

    /// A role with its registers, if they are set.
    pub(crate) fn role(&self, role: WarpRole<'static>, registers: u32) -> WarpRole<'static> {
        if self.registers {
            role.registers(registers)
        } else {
            role
        }
    }

    /// What persistent blocks take, and the rows and columns of such a tile.
    pub(crate) fn tiles_of_blocks(&self) -> Option<(Tiles, [i64; 2])> {
        let [tm, tn, _] = self.tile();
        match self.schedule {
            Schedule::Persistent(tiles) => Some((tiles, [tm, tn])),
            Schedule::InTurns(roles, tiles) => Some((tiles, [tm * i64::from(roles), tn])),
            _ => None,
        }
    }

    /// Consumer roles.
    pub(crate) fn roles(&self) -> i64 {
        match self.schedule {
            Schedule::InTurns(roles, _) | Schedule::Roles(roles) => roles.into(),
            _ => 1,
        }
    }

    /// How often the producer fills stages for a tile of the block: for each role that takes turns.
    pub(crate) fn fills(&self) -> i64 {
        match self.schedule {
            Schedule::InTurns(roles, _) => roles.into(),
            _ => 1,
        }
    }

    /// Rows of a in a stage.
    pub(crate) fn rows_of_stage(&self) -> i64 {
        let [tm, ..] = self.tile();
        match self.schedule {
            Schedule::Roles(roles) => tm * i64::from(roles),
            _ => tm,
        }
    }

    pub(crate) fn has(&self, mistake: Mistake) -> bool {
        self.mistakes.contains(&mistake)
    }
}

/// A random program.
pub(crate) fn random(r: &mut Random) -> Product {
    let form = r.pick(&[Form::F16, Form::Bf16, Form::Bf16, Form::Tf32, Form::E4m3]);
    let halves = matches!(form, Form::F16 | Form::Bf16);
    let stages = 1 + r.below(5) as i64;
    let blocks = Tiles::random(r);
    let schedule = match r.below(18) {
        0..6 => Schedule::Grid,
        6..11 => Schedule::Persistent(blocks),
        11..13 => Schedule::InTurns(2 + r.below(2) as u32, blocks),
        13 => Schedule::Roles(2 + r.below(2) as u32),
        _ => Schedule::Cluster(r.pick(&[Axis::X, Axis::Y]), r.pick(&[2, 2, 4])),
    };
    let groups = if matches!(schedule, Schedule::InTurns(..) | Schedule::Roles(_)) {
        [1, 1]
    } else {
        r.pick(&[[1, 1], [2, 1], [1, 2], [1, 1]])
    };
    let mut p = Product {
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
        beside: r.chance(20),
        drains: r.chance(40),
        mistakes: Mistake::some(r, 0),
    };
    p.by_hand |= p.mistakes.iter().any(|m| {
        matches!(
            m,
            Mistake::InFlight(_)
                | Mistake::Keep
                | Mistake::GiveEarly
                | Mistake::GiveTwice
                | Mistake::GiveOther(_)
                | Mistake::GiveOtherRing
                | Mistake::Stale
                | Mistake::NoWait
                | Mistake::OtherTile
        )
    });
    p
}

impl Form {
    /// Numbers as an argument.
    pub(crate) fn arg(self, all: &[f32]) -> Arg<'static> {
        match self {
            Self::F16 => Arg::input(&all.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()),
            Self::Bf16 => Arg::input(&all.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>()),
            Self::Tf32 => Arg::input(all),
            Self::E4m3 => {
                let all: Vec<_> = all.iter().map(|&x| float8::F8E4M3::from_f32(x)).collect();
                Arg::input(&all)
            }
        }
    }
}

impl Product {
    /// A random launch: sizes around those of tiles and of the ring, small whole numbers.
    pub(crate) fn case(&self, r: &mut Random) -> Case {
        let [tm, tn, tk] = self.tile();
        let (m, n) = (crate::near(r, tm), crate::near(r, tn));
        // Rows of c that boxes are stored to are multiples of 16 bytes.
        let n = if self.boxes { n.next_multiple_of(8) } else { n };
        let steps = r.below(self.stages as usize + 3);
        let k = (steps * tk as usize).saturating_sub(r.pick(&[0, 0, 1, 9]));
        let align = self.form.align();
        // What is contiguous in a and b, and how far its rows are apart.
        let (columns_a, rows_a) = if self.transposed[0] { (m, k) } else { (k, m) };
        let (columns_b, rows_b) = if self.transposed[1] { (n, k) } else { (k, n) };
        let [lda, ldb] = [columns_a, columns_b].map(|c| c.max(1).next_multiple_of(align));
        let (a, b) = (
            crate::numbers(r, rows_a * lda),
            crate::numbers(r, rows_b * ldb),
        );
        let at = |all: &[f32], ld: usize, transposed: bool, row: usize, k: usize| {
            if transposed {
                all[k * ld + row]
            } else {
                all[row * ld + k]
            }
        };
        let wanted = (0..m * n).map(|i| {
            let terms = (0..k).map(|t| {
                at(&a, lda, self.transposed[0], i / n, t)
                    * at(&b, ldb, self.transposed[1], i % n, t)
            });
            // Whole numbers below 2^24: exact.
            terms.fold(0.0, |s, x| s + x)
        });
        let sizes = [("m", m), ("n", n), ("k", k), ("lda", lda), ("ldb", ldb)];
        let mut inputs = vec![("a", self.form.arg(&a)), ("b", self.form.arg(&b))];
        if let Some((Tiles::List(_), [rows, columns])) = self.tiles_of_blocks() {
            let tiles = m.div_ceil(rows as usize) * n.div_ceil(columns as usize);
            let first = r.below(tiles);
            // From some tile on backwards.
            let list: Vec<i32> = (0..tiles)
                .map(|i| ((first + tiles - i) % tiles) as i32)
                .collect();
            inputs.push(("list", Arg::input(&list)));
        }
        Case {
            what: format!("{m} x {n} x {k}"),
            wanted: wanted.collect(),
            inputs,
            sizes: sizes.to_vec(),
            output: "c",
            halves: self.boxes,
        }
    }
}
