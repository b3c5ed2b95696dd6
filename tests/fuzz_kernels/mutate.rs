//! Mutations: one part of a program becomes another.

use tilewright::codegen::ir::{Cmp, Element};

use crate::expressions::{self, Around};
use crate::generate::{self, note};
use crate::layouts;
use crate::program::{Blocks, By, Float, Int, IntOp, Ix, Memory, Pred, Program, Share, Stmt, Tile};
use crate::random::Random;
use crate::typed;
use crate::visit::{self, Visitor};

/// The kinds of parts that a mutation may hit.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Block,
    Stmt,
    Share,
    Pred,
    Int,
    Float,
    Ix,
}

const KINDS: [Kind; 12] = [
    Kind::Block,
    Kind::Block,
    Kind::Block,
    Kind::Stmt,
    Kind::Stmt,
    Kind::Share,
    Kind::Share,
    Kind::Pred,
    Kind::Int,
    Kind::Float,
    Kind::Ix,
    Kind::Ix,
];

/// Mutates the n-th part of a kind.
struct Nth<'r> {
    kind: Kind,
    left: Option<usize>,
    seen: usize,
    r: &'r mut Random,
    around: Around,
}

impl Nth<'_> {
    fn is_it(&mut self, kind: Kind) -> bool {
        if kind != self.kind {
            return false;
        }
        self.seen += 1;
        self.left == Some(self.seen - 1)
    }
}

impl Visitor for Nth<'_> {
    fn block(&mut self, b: &mut Vec<Stmt>) {
        if self.is_it(Kind::Block) {
            block(self.r, &self.around, b);
        }
    }

    fn stmt(&mut self, s: &mut Stmt) {
        if self.is_it(Kind::Stmt) {
            stmt(self.r, &self.around, s);
        }
    }

    fn share(&mut self, s: &mut Share) {
        if self.is_it(Kind::Share) {
            share(self.r, &self.around, s);
        }
    }

    fn pred(&mut self, p: &mut Pred) {
        if self.is_it(Kind::Pred) {
            pred(self.r, &self.around, p);
        }
    }

    fn int(&mut self, e: &mut Int) {
        if self.is_it(Kind::Int) {
            int(self.r, &self.around, e);
        }
    }

    fn float(&mut self, e: &mut Float) {
        if self.is_it(Kind::Float) {
            *e = expressions::float(self.r, &self.around, false, 1);
        }
    }

    fn ix(&mut self, e: &mut Ix) {
        if self.is_it(Kind::Ix) {
            index(self.r, &self.around, e);
        }
    }
}

/// What may be named in a program, somewhere.
struct Everything(Around);

impl Visitor for Everything {
    fn stmt(&mut self, s: &mut Stmt) {
        note(s, &mut self.0);
        match s {
            Stmt::Loop { .. } => self.0.counters = 1,
            Stmt::Pipeline { .. } => self.0.step = true,
            _ => {}
        }
    }
}

/// One mutation.
pub(crate) fn mutate(r: &mut Random, p: &mut Program) {
    if r.chance(8) {
        return whole(r, p);
    }
    let mut all = Everything(Around {
        threads: p.threads.into(),
        sizes: p.sizes.len(),
        scalars: p.scalars.len(),
        axes: p.axes.len(),
        ..Around::default()
    });
    visit::program(p, &mut all);
    let kind = r.pick(&KINDS);
    let mut nth = Nth {
        kind,
        left: None,
        seen: 0,
        r,
        around: all.0,
    };
    visit::program(p, &mut nth);
    let left = nth.r.below(nth.seen);
    (nth.left, nth.seen) = (Some(left), 0);
    visit::program(p, &mut nth);
}

fn whole(r: &mut Random, p: &mut Program) {
    match r.below(6) {
        0 => p.threads = r.pick(&[8, 16, 31, 32, 33, 48, 64, 128]),
        1 if !p.globals.is_empty() => {
            let i = r.below(p.globals.len());
            let global = &mut p.globals[i];
            global.output = !global.output;
        }
        2 if !p.globals.is_empty() => {
            let i = r.below(p.globals.len());
            p.globals[i].element = r.pick(&[Element::F32, Element::F16, Element::S32, Element::S8]);
        }
        3 if !p.axes.is_empty() => {
            let i = r.below(p.axes.len());
            let axis = &mut p.axes[i];
            if r.chance(40) {
                axis.blocks = r.pick(&[Blocks::Tiles, Blocks::TilesFromLast, Blocks::Fixed]);
                return;
            }
            let tile = axis.tile;
            axis.tile = r.pick(&[tile + 1, tile - 1, tile * 2, tile / 2]).max(1);
        }
        4 if !p.sizes.is_empty() => {
            let i = r.below(p.sizes.len());
            p.sizes[i].most = r.pick(&[0, 1, 5, 100, 1 << 16, 1 << 31, (1 << 32) - 1]);
        }
        _ => {
            if let Some(tile) = p.shared.first_mut() {
                let n: i64 = 32 << r.below(3);
                tile.tile = Tile::Given(layouts::row(r, n));
            }
        }
    }
}

/// A layout of a warp's threads that is not an operand's.
fn written([rows, cols]: [i64; 2]) -> String {
    let threads = 32 * rows * cols;
    format!("({threads},8):(1,{threads})")
}

fn block(r: &mut Random, a: &Around, b: &mut Vec<Stmt>) {
    if b.is_empty() {
        return b.push(Stmt::Barrier);
    }
    let (i, j) = (r.below(b.len()), r.below(b.len()));
    match r.below(14) {
        // A barrier or a wait above all.
        0..=2 => {
            let meets = |s: &Stmt| {
                matches!(
                    s,
                    Stmt::Barrier
                        | Stmt::WarpBarrier
                        | Stmt::Wait(_)
                        | Stmt::WaitAll
                        | Stmt::Commit
                )
            };
            let all: Vec<usize> = (0..b.len()).filter(|i| meets(&b[*i])).collect();
            let i = if all.is_empty() { i } else { r.pick(&all) };
            b.remove(i);
        }
        3 => {
            b.remove(i);
        }
        4 => b.insert(i, b[j].clone()),
        5 | 6 => {
            let s = b.remove(i);
            b.insert(j, s);
        }
        7 => b.swap(i, j),
        8 => {
            let rest = b.split_off(i.max(j));
            let inner = b.split_off(i.min(j));
            let p = expressions::some_pred(r, a, 50);
            b.push(Stmt::When(p, inner));
            b.extend(rest);
        }
        9 => b.insert(
            i,
            r.pick(&[
                Stmt::Barrier,
                Stmt::WarpBarrier,
                Stmt::Commit,
                Stmt::Wait(0),
                Stmt::Wait(1),
            ]),
        ),
        10 => {
            let inner = b.split_off(i);
            b.push(Stmt::Loop {
                start: 0,
                step: 1,
                limit: expressions::index(r, a, true, 1),
                body: inner,
            });
        }
        11 => b.insert(i, Stmt::Exit(expressions::some_pred(r, a, 40))),
        12 => b.insert(i, Stmt::Break(expressions::some_pred(r, a, 40))),
        _ => {
            let rest = b.split_off(i);
            let p = expressions::some_pred(r, a, 60);
            b.push(Stmt::WhenElse(p, rest.clone(), rest));
        }
    }
}

fn stmt(r: &mut Random, a: &Around, s: &mut Stmt) {
    let other = match s.clone() {
        Stmt::When(p, then) => match r.below(3) {
            0 => Stmt::Region(then),
            1 => Stmt::When(Pred::Not(Box::new(p)), then),
            _ => Stmt::WhenElse(p, then.clone(), then),
        },
        Stmt::WhenElse(p, then, other) => match r.below(4) {
            0 => Stmt::When(p, then),
            1 => Stmt::Region(other),
            2 => Stmt::WhenElse(expressions::pred(r, a, true, 2), then, other),
            _ => Stmt::WhenElse(p, other, then),
        },
        Stmt::Loop {
            start,
            step,
            limit,
            body,
        } => match r.below(5) {
            0 => Stmt::Loop {
                start: start + r.pick(&[1, 2]),
                step,
                limit,
                body,
            },
            1 => Stmt::Loop {
                start,
                step: r.pick(&[step + 1, 2, 3, 1 << 31, 0]),
                limit,
                body,
            },
            2 => Stmt::Loop {
                start,
                step,
                limit: expressions::some_index(r, a, 70),
                body,
            },
            3 => Stmt::When(expressions::pred(r, a, true, 1), body),
            _ => Stmt::Loop {
                start,
                step,
                limit: Ix::Add(Box::new([limit, Ix::Const(r.pick(&[1, -1]))])),
                body,
            },
        },
        Stmt::Wait(n) => Stmt::Wait(r.pick(&[n + 1, n.saturating_sub(1), 2])),
        Stmt::WaitAll => Stmt::Wait(r.pick(&[0, 1])),
        Stmt::Barrier => r.pick(&[Stmt::WarpBarrier, Stmt::WaitAll]),
        Stmt::Reduce(to, from, mode, how) => match r.below(3) {
            0 => Stmt::Reduce(to, from, 1 - mode.min(1), how),
            1 => Stmt::Fold(to, from, mode, how),
            _ => Stmt::Reduce(to, from, mode, expressions::combine(r)),
        },
        Stmt::Fold(to, from, mode, how) => match r.below(3) {
            0 => Stmt::Fold(to, from, 1 - mode.min(1), how),
            _ => Stmt::Reduce(to, from, mode, how),
        },
        Stmt::Split(to, from, mode, [parts, which]) => match r.below(3) {
            0 => Stmt::Split(to, from, 1 - mode.min(1), [parts, which]),
            1 => Stmt::Split(to, from, mode, [parts, which + 1]),
            _ => Stmt::Split(to, from, mode, [parts * 2, which]),
        },
        Stmt::Typed(t, of, at, thread) => Stmt::Typed(typed::changed(r, t), of, at, thread),
        Stmt::Unpack(to, from, packed, _) => {
            Stmt::Unpack(to, from, packed, r.pick(&generate::ELEMENTS))
        }
        Stmt::Operand(to, from, _, warps) => Stmt::Relayout(to, from, written(warps)),
        Stmt::Accumulators(to, shape, [rows, cols], thread) => {
            Stmt::Accumulators(to, shape, [cols, rows], thread)
        }
        Stmt::Gemm([a, b, c], warps) => {
            r.pick(&[Stmt::Gemm([b, a, c], warps), Stmt::Gemm([a, b, a], warps)])
        }
        Stmt::Update(to, _) => Stmt::Update(to, vec![to; r.below(3)]),
        Stmt::Words(to, of) => Stmt::Words(to, vec![of[0]; 1 + r.below(3)]),
        Stmt::Sum(to, a, b) => Stmt::MulAdd(to, [a, a, b]),
        Stmt::Map(to, from, _) => Stmt::Convert(to, from, r.pick(&generate::ELEMENTS)),
        Stmt::Pipeline {
            mut rings,
            steps,
            mut body,
        } => {
            if r.chance(50) {
                body.push(Stmt::Barrier);
            }
            let i = r.below(rings.len());
            if let Some(ring) = rings.get_mut(i) {
                ring.stages = (ring.stages + r.pick(&[-1, 1])).max(1);
            }
            Stmt::Pipeline { rings, steps, body }
        }
        Stmt::Store(to, from) => Stmt::When(
            expressions::pred(r, a, false, 2),
            vec![Stmt::Store(to, from)],
        ),
        Stmt::Let(name, value) => Stmt::Set(name, value),
        other => Stmt::When(expressions::pred(r, a, true, 1), vec![other]),
    };
    *s = other;
}

fn share(r: &mut Random, a: &Around, s: &mut Share) {
    let elements: i64 = s.shape.iter().product();
    match r.below(13) {
        11 => {
            if let By::Tiled(n, threads, values) | By::Async(n, threads, values) = s.by.clone() {
                s.by = r.pick(&[
                    By::Async(4 * n.min(4), threads.clone(), values.clone()),
                    By::Tiled(n.min(4), values, threads),
                ]);
            } else {
                s.slice = vec![expressions::some_index(r, a, 50)];
            }
        }
        12 => {
            if let By::Operand(operand, warps) | By::Matrices(operand, warps) = s.by {
                s.by = r.pick(&[By::Operand(operand, warps), By::Matrices(operand, warps)]);
            }
            s.slice.clear();
        }
        0 | 1 => {
            if let By::Layout(_, _) = s.by
                && elements % a.threads.max(1) == 0
                && elements > 0
            {
                let cols = s.shape.last().copied().unwrap_or(1);
                let cols = if s.shape.len() == 1 { elements } else { cols };
                let runs = r.pick(&[1, 1, 2, 4]);
                let values = elements / a.threads.max(1);
                if values % runs == 0 && cols % runs == 0 && elements % cols == 0 {
                    s.by = By::Layout(layouts::share(r, a.threads, values, cols, runs), runs);
                }
            }
        }
        2 | 3 => {
            let t = a.threads;
            s.thread = match r.below(4) {
                0 => Ix::Xor(Box::new([Ix::Thread, Ix::Const(r.pick(&[1, 2, 16, 32]))])),
                1 => Ix::Rem(Box::new(Ix::Add(Box::new([Ix::Thread, Ix::Const(1)]))), t),
                2 => Ix::Rem(
                    Box::new(Ix::Scale(Box::new(Ix::Thread), r.pick(&[2, 3, 5]))),
                    t,
                ),
                _ => Ix::Thread,
            };
        }
        4 | 5 => {
            if !s.at.is_empty() {
                let i = r.below(s.at.len());
                index(r, a, &mut s.at[i]);
            }
        }
        6 | 7 => {
            let rank = s.shape.len();
            s.moved = (0..rank)
                .map(|_| Ix::Const(r.pick(&[0, 0, 1, -1, 2])))
                .collect();
        }
        8 => s.transposed = !s.transposed,
        9 => s.fill = r.chance(50).then_some(1.0),
        _ => {
            s.of = match s.of {
                Memory::Global(i) => Memory::Global(i + 1 - 2 * (i & 1)),
                Memory::Shared(_) => Memory::Stage(0),
                Memory::Stage(i) => {
                    r.pick(&[Memory::Shared(0), Memory::Stage(i + 1 - 2 * (i & 1))])
                }
            };
        }
    }
}

fn pred(r: &mut Random, a: &Around, p: &mut Pred) {
    if r.chance(20) {
        *p = expressions::some_pred(r, a, 50);
        return;
    }
    let flipped = |cmp: Cmp, r: &mut Random| match (cmp, r.below(3)) {
        (Cmp::Lt, 0) => Cmp::Le,
        (Cmp::Le, 0) => Cmp::Lt,
        (Cmp::Gt, 0) => Cmp::Ge,
        (Cmp::Ge, 0) => Cmp::Gt,
        _ => expressions::cmp(r),
    };
    match p {
        Pred::Index(_, cmp, _) | Pred::Float(_, cmp, _) => *cmp = flipped(*cmp, r),
        Pred::Int(signed, _, cmp, _) => {
            if r.chance(50) {
                *signed = !*signed;
            } else {
                *cmp = flipped(*cmp, r);
            }
        }
        Pred::Not(inner) => *p = (**inner).clone(),
        Pred::And(both) => *p = Pred::Or(both.clone()),
        Pred::Or(both) => *p = Pred::And(both.clone()),
    }
}

fn int(r: &mut Random, a: &Around, e: &mut Int) {
    match e {
        Int::Const(c) if r.chance(70) => {
            *c = r.pick(&[
                c.wrapping_add(1),
                c.wrapping_sub(1),
                c.wrapping_neg(),
                *c | 1 << 31,
            ]);
        }
        Int::Binary(op, signed, _) if r.chance(70) => {
            if r.chance(50) {
                *signed = !*signed;
            } else {
                *op = r.pick(&[
                    IntOp::Add,
                    IntOp::Sub,
                    IntOp::Min,
                    IntOp::Max,
                    IntOp::Shr,
                    IntOp::And,
                    IntOp::Xor,
                    IntOp::MulHi,
                ]);
            }
        }
        _ => {
            let uniform = r.chance(50);
            *e = expressions::int(r, a, uniform, 2);
        }
    }
}

fn index(r: &mut Random, a: &Around, e: &mut Ix) {
    let same = Box::new(e.clone());
    let plus = |c| Ix::Add(Box::new([e.clone(), Ix::Const(c)]));
    *e = match r.below(9) {
        0 | 1 => plus(1),
        2 => plus(-1),
        3 => expressions::derived(r, e.clone()),
        4 => Ix::Bounded(same, r.pick(&[1, 7, 31, 100, 1 << 20])),
        5 => Ix::Scale(same, r.pick(&[0, 2, 3])),
        6 => Ix::Const(expressions::constant(r, a)),
        7 => Ix::Smaller(Box::new([e.clone(), expressions::index(r, a, true, 1)])),
        _ => expressions::some_index(r, a, 50),
    };
}
