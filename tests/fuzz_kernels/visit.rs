//! All parts of a program, one after the other.

use crate::program::{By, Float, Int, Ix, Pred, Program, Share, Stmt, Tile};

/// What looks at the parts of a program; each part before what is in it.
pub(crate) trait Visitor {
    fn block(&mut self, _: &mut Vec<Stmt>) {}
    fn stmt(&mut self, _: &mut Stmt) {}
    fn share(&mut self, _: &mut Share) {}
    fn pred(&mut self, _: &mut Pred) {}
    fn int(&mut self, _: &mut Int) {}
    fn float(&mut self, _: &mut Float) {}
    fn ix(&mut self, _: &mut Ix) {}
}

pub(crate) fn program(p: &mut Program, v: &mut dyn Visitor) {
    for global in &mut p.globals {
        global.extents.iter_mut().for_each(|e| ix(e, v));
    }
    p.axes.iter_mut().for_each(|axis| ix(&mut axis.extent, v));
    for tile in &mut p.shared {
        if let Tile::For(_, uses) = &mut tile.tile {
            for (_, s) in uses {
                share(s, v);
            }
        }
    }
    block(&mut p.body, v);
}

fn block(b: &mut Vec<Stmt>, v: &mut dyn Visitor) {
    v.block(b);
    for s in b {
        stmt(s, v);
    }
}

pub(crate) fn stmt(s: &mut Stmt, v: &mut dyn Visitor) {
    v.stmt(s);
    match s {
        Stmt::Load(_, s) | Stmt::Store(s, _) | Stmt::Take(_, s) | Stmt::Put(s, _) => share(s, v),
        Stmt::Copy(from, to) => {
            share(from, v);
            share(to, v);
        }
        Stmt::PutInt(_, at, value) | Stmt::Atomic(_, at, _, value) => {
            for e in at {
                ix(e, v);
            }
            int(value, v);
        }
        Stmt::PutFloat(_, at, value) => {
            for e in at {
                ix(e, v);
            }
            float(value, v);
        }
        Stmt::Fill(_, like, value) => {
            share(like, v);
            float(value, v);
        }
        Stmt::Map(_, _, f) | Stmt::MapAt(_, _, f) | Stmt::LetFloat(_, f) | Stmt::SetFloat(_, f) => {
            float(f, v);
        }
        Stmt::Accumulators(.., thread) => ix(thread, v),
        Stmt::Typed(_, _, at, thread) => {
            for e in at {
                ix(e, v);
            }
            ix(thread, v);
        }
        Stmt::Assume(a, _, b) => [a, b].into_iter().for_each(|e| ix(e, v)),
        Stmt::Let(_, i) | Stmt::Set(_, i) => int(i, v),
        Stmt::Break(p) | Stmt::Exit(p) => pred(p, v),
        Stmt::When(p, then) => {
            pred(p, v);
            block(then, v);
        }
        Stmt::WhenElse(p, then, other) => {
            pred(p, v);
            block(then, v);
            block(other, v);
        }
        Stmt::Region(body) => block(body, v),
        Stmt::Loop { limit, body, .. } => {
            ix(limit, v);
            block(body, v);
        }
        Stmt::Pipeline { rings, steps, body } => {
            let shares = rings
                .iter_mut()
                .flat_map(|ring| ring.fill.iter_mut().flatten());
            shares.for_each(|s| share(s, v));
            ix(steps, v);
            block(body, v);
        }
        Stmt::Sum(..)
        | Stmt::MulAdd(..)
        | Stmt::Convert(..)
        | Stmt::Assign(..)
        | Stmt::Reduce(..)
        | Stmt::Words(..)
        | Stmt::Update(..)
        | Stmt::Unpack(..)
        | Stmt::Fold(..)
        | Stmt::Split(..)
        | Stmt::Relayout(..)
        | Stmt::Operand(..)
        | Stmt::Gemm(..)
        | Stmt::Comment(_)
        | Stmt::Commit
        | Stmt::Wait(_)
        | Stmt::WaitAll
        | Stmt::Barrier
        | Stmt::WarpBarrier => {}
    }
}

fn share(s: &mut Share, v: &mut dyn Visitor) {
    v.share(s);
    let part = s.part.iter_mut().flatten().flatten();
    part.for_each(|e| ix(e, v));
    let coordinates = s.slice.iter_mut().chain(&mut s.moved).chain(&mut s.at);
    coordinates.for_each(|e| ix(e, v));
    if let By::Along(_, other) = &mut s.by {
        share(other, v);
    }
    ix(&mut s.thread, v);
}

fn pred(p: &mut Pred, v: &mut dyn Visitor) {
    v.pred(p);
    match p {
        Pred::Index(a, _, b) => [a, b].into_iter().for_each(|e| ix(e, v)),
        Pred::Int(_, a, _, b) => [a, b].into_iter().for_each(|e| int(e, v)),
        Pred::Float(a, _, b) => [a, b].into_iter().for_each(|e| float(e, v)),
        Pred::Not(p) => pred(p, v),
        Pred::And(both) | Pred::Or(both) => both.iter_mut().for_each(|p| pred(p, v)),
    }
}

fn int(e: &mut Int, v: &mut dyn Visitor) {
    v.int(e);
    match e {
        Int::Index(e) => ix(e, v),
        Int::Float(f, ..) => float(f, v),
        Int::Pair(_, both) => both.iter_mut().for_each(|e| float(e, v)),
        Int::Binary(_, _, both)
        | Int::Shuffle(_, both)
        | Int::Permute(both, _)
        | Int::Pairs(_, _, both) => both.iter_mut().for_each(|e| int(e, v)),
        Int::Select(p, both) => {
            pred(p, v);
            both.iter_mut().for_each(|e| int(e, v));
        }
        Int::Element(_, at) => at.iter_mut().for_each(|e| ix(e, v)),
        Int::Const(_) | Int::Argument(_) | Int::Variable(_) | Int::Data(..) => {}
    }
}

fn float(e: &mut Float, v: &mut dyn Visitor) {
    v.float(e);
    match e {
        Float::OfInt(e, _) | Float::OfBits(e) | Float::Half(_, e, _) => int(e, v),
        Float::Binary(_, both) | Float::Wide(_, both) => both.iter_mut().for_each(|e| float(e, v)),
        Float::Fma(all) => all.iter_mut().for_each(|e| float(e, v)),
        Float::Unary(_, e) | Float::Reduced(e, ..) => float(e, v),
        Float::Select(p, both) => {
            pred(p, v);
            both.iter_mut().for_each(|e| float(e, v));
        }
        Float::Shuffle(_, x, lane) => {
            float(x, v);
            int(lane, v);
        }
        Float::Element(_, at) => at.iter_mut().for_each(|e| ix(e, v)),
        Float::Const(_)
        | Float::It
        | Float::Argument(_)
        | Float::Variable(_)
        | Float::Data(..)
        | Float::Combined(..) => {}
    }
}

fn ix(e: &mut Ix, v: &mut dyn Visitor) {
    v.ix(e);
    match e {
        Ix::Add(both) | Ix::Sub(both) | Ix::Mul(both) | Ix::Xor(both) | Ix::Smaller(both) => {
            both.iter_mut().for_each(|e| ix(e, v));
        }
        Ix::Scale(e, _) | Ix::Div(e, _) | Ix::Rem(e, _) | Ix::TilesIn(e, _) | Ix::Bounded(e, _) => {
            ix(e, v);
        }
        Ix::Clamp(e, ..) => ix(e, v),
        Ix::Data(_, at, _) => at.iter_mut().for_each(|e| ix(e, v)),
        Ix::Choose(all, _) => all.iter_mut().for_each(|e| ix(e, v)),
        Ix::Linear(terms, _) => terms.iter_mut().for_each(|(_, e)| ix(e, v)),
        Ix::Held(of, ..) => share(of, v),
        Ix::Const(_)
        | Ix::Size(_)
        | Ix::Thread
        | Ix::Lane
        | Ix::Warp
        | Ix::Tile(_)
        | Ix::Counter(_)
        | Ix::Step
        | Ix::Block(..)
        | Ix::Coordinate(_) => {}
    }
}
