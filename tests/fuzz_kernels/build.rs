//! A program through the public builder.

use std::collections::HashMap;

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Rounding};
use tilewright::codegen::pipeline::Staged;
use tilewright::codegen::value::{F32, Predicate, S32, U32, Variable};
use tilewright::codegen::view::{Fragment, Partition, View, ViewError};
use tilewright::{Layout, LayoutError, Swizzled, TiledCopy, TiledMma, atoms};

use crate::program::{
    By, Float, FloatOp, Int, IntOp, Ix, Memory, Pred, Program, Scalar, Share, Stmt,
};

/// Why the builder refuses a program.
#[derive(Debug)]
pub(crate) struct Unbuildable(pub(crate) String);

impl From<ViewError> for Unbuildable {
    fn from(e: ViewError) -> Self {
        Self(e.to_string())
    }
}

impl From<LayoutError> for Unbuildable {
    fn from(e: LayoutError) -> Self {
        Self(e.to_string())
    }
}

type Built<T = ()> = Result<T, Unbuildable>;

/// A scalar argument.
#[derive(Clone, Copy)]
enum Passed {
    U(U32),
    S(S32),
    F(F32),
}

/// What can be named where a statement stands.
#[derive(Clone, Default)]
struct Scope {
    sizes: Vec<Expr>,
    scalars: Vec<Passed>,
    globals: Vec<View>,
    shared: Vec<View>,
    tiles: Vec<Expr>,
    counters: Vec<Expr>,
    stage: Option<View>,
    step: Option<Expr>,
    fragments: HashMap<usize, Fragment>,
    ints: HashMap<usize, Variable<i32>>,
    floats: HashMap<usize, Variable<f32>>,
    it: Option<F32>,
    /// Loops and pipelines so far, for their names.
    names: usize,
}

fn missing<T>(what: &str) -> Built<T> {
    Err(Unbuildable(format!("there is no such {what}")))
}

/// The kernel, not proven.
pub(crate) fn kernel(p: &Program) -> Built<Kernel> {
    let mut k = Kernel::new("fuzzed", p.threads);
    let mut scope = Scope::default();
    for (i, size) in p.sizes.iter().enumerate() {
        let name = format!("n{i}");
        scope.sizes.push(k.size(&name, size.most));
    }
    for (i, scalar) in p.scalars.iter().enumerate() {
        let name = format!("a{i}");
        scope.scalars.push(match scalar {
            Scalar::U32 => Passed::U(k.argument(&name)),
            Scalar::S32 => Passed::S(k.argument(&name)),
            Scalar::F32 => Passed::F(k.argument(&name)),
        });
    }
    for (i, global) in p.globals.iter().enumerate() {
        let extents = scope.all(&mut k, &global.extents)?;
        let view = if global.output {
            k.output(&format!("y{i}"), global.element, &extents)
        } else {
            k.input(&format!("x{i}"), global.element, &extents)
        };
        scope.globals.push(view);
    }
    for (i, tile) in p.shared.iter().enumerate() {
        let layout = Swizzled::parse(&tile.layout)
            .map_err(|e| Unbuildable(format!("{}: {e}", tile.layout)))?;
        scope
            .shared
            .push(k.shared(&format!("s{i}"), tile.element, &layout)?);
    }
    for ((extent, tile), axis) in p.axes.iter().zip([Axis::X, Axis::Y, Axis::Z]) {
        let extent = scope.ix(&mut k, extent)?;
        scope.tiles.push(k.tiles(axis, extent, *tile)?);
    }
    scope.block(&mut k, &p.body)?;
    Ok(k)
}

fn layout(text: &str) -> Built<Layout> {
    Layout::parse(text).map_err(|e| Unbuildable(format!("{text}: {e}")))
}

impl Scope {
    fn block(&mut self, k: &mut Kernel, all: &[Stmt]) -> Built {
        all.iter().try_for_each(|s| self.stmt(k, s))
    }

    fn fragment(&self, name: usize) -> Built<&Fragment> {
        match self.fragments.get(&name) {
            Some(fragment) => Ok(fragment),
            None => missing("fragment"),
        }
    }

    fn view(&self, k: &mut Kernel, share: &Share) -> Built<View> {
        let whole = match share.of {
            Memory::Global(i) => self.globals.get(i),
            Memory::Shared(i) => self.shared.get(i),
            Memory::Stage => self.stage.as_ref(),
        };
        let Some(whole) = whole.cloned() else {
            return missing("buffer");
        };
        let moved = if share.moved.is_empty() {
            whole
        } else {
            let by = self.all(k, &share.moved)?;
            whole.at(k, &by)?
        };
        let at = self.all(k, &share.at)?;
        let tile = moved.tile(k, &share.shape, &at)?;
        Ok(if share.transposed {
            tile.transposed()
        } else {
            tile
        })
    }

    fn share(&self, k: &mut Kernel, share: &Share) -> Built<Partition> {
        let view = self.view(k, share)?;
        let thread = self.ix(k, &share.thread)?;
        let part = match &share.by {
            By::Layout(text, vector) => {
                let part = view.partition(k, &layout(text)?, thread)?;
                if *vector > 1 {
                    part.vectors(k, *vector)?
                } else {
                    part
                }
            }
            By::Async(bytes, threads, values) => {
                let atom = match bytes {
                    4 => atoms::CP_ASYNC_4,
                    8 => atoms::CP_ASYNC_8,
                    _ => atoms::CP_ASYNC_16,
                };
                // All that is copied asynchronously here has 32 bits.
                let copy = TiledCopy::new(atom.recast(32)?, &layout(threads)?, &layout(values)?)?;
                match share.of {
                    Memory::Global(_) => view.partition_s(k, &copy, thread)?,
                    _ => view.partition_d(k, &copy, thread)?,
                }
            }
        };
        Ok(match share.fill {
            Some(value) => part.filled(k, value)?,
            None => part,
        })
    }

    fn stmt(&mut self, k: &mut Kernel, s: &Stmt) -> Built {
        match s {
            Stmt::Load(name, from) => {
                let from = self.share(k, from)?;
                let loaded = k.load_fragment(&from)?;
                self.fragments.insert(*name, loaded);
            }
            Stmt::Store(to, from) => {
                let to = self.share(k, to)?;
                k.store_fragment(&to, self.fragment(*from)?)?;
            }
            Stmt::Copy(from, to) => {
                let (from, to) = (self.share(k, from)?, self.share(k, to)?);
                k.copy(&from, &to)?;
            }
            Stmt::Fill(name, like, value) => {
                let (like, value) = (self.share(k, like)?, self.float(k, value)?);
                let filled = k.fragment_of(&like, value)?;
                self.fragments.insert(*name, filled);
            }
            Stmt::Map(name, from, f) => {
                let from = self.fragment(*from)?.clone();
                let mut trouble = None;
                let mapped = from.map(k, |k, x| {
                    self.it = Some(x);
                    match self.float(k, f) {
                        Ok(value) => value,
                        Err(e) => {
                            trouble = Some(e);
                            x
                        }
                    }
                })?;
                self.it = None;
                if let Some(e) = trouble {
                    return Err(e);
                }
                self.fragments.insert(*name, mapped);
            }
            Stmt::Sum(name, a, b) => {
                let sum = self
                    .fragment(*a)?
                    .zip(k, self.fragment(*b)?, |k, a, b| a.add(k, b))?;
                self.fragments.insert(*name, sum);
            }
            Stmt::MulAdd(name, of) => {
                let [a, b, c] = of.map(|name| self.fragment(name));
                let sum = a?.zip3(k, [b?, c?], |k, a, b, c| a.fma(k, b, c))?;
                self.fragments.insert(*name, sum);
            }
            Stmt::Convert(name, from, to) => {
                let converted = self.fragment(*from)?.convert(k, *to)?;
                self.fragments.insert(*name, converted);
            }
            Stmt::Assign(to, from) => self.fragment(*to)?.assign(k, self.fragment(*from)?)?,
            Stmt::Reduce(name, from, mode, how) => {
                let reduced = self.fragment(*from)?.reduce(k, *mode, *how)?;
                self.fragments.insert(*name, reduced);
            }
            Stmt::Let(name, value) => {
                let value = self.signed(k, value)?;
                let variable = k.variable(value);
                self.ints.insert(*name, variable);
            }
            Stmt::Set(name, value) => {
                let value = self.signed(k, value)?;
                match self.ints.get(name) {
                    Some(variable) => variable.set(k, value),
                    None => return missing("variable"),
                }
            }
            Stmt::LetFloat(name, value) => {
                let value = self.float(k, value)?;
                let variable = k.variable(value);
                self.floats.insert(*name, variable);
            }
            Stmt::SetFloat(name, value) => {
                let value = self.float(k, value)?;
                match self.floats.get(name) {
                    Some(variable) => variable.set(k, value),
                    None => return missing("variable"),
                }
            }
            Stmt::Commit => k.commit_group(),
            Stmt::Wait(n) => k.wait_group(*n),
            Stmt::WaitAll => k.wait_all(),
            Stmt::Barrier => k.barrier(),
            Stmt::WarpBarrier => k.warp_barrier(),
            Stmt::When(p, then) => {
                let p = self.pred(k, p)?;
                k.when(p, |k| self.block(k, then))?;
            }
            Stmt::WhenElse(p, then, other) => {
                let p = self.pred(k, p)?;
                let cell = std::cell::RefCell::new(self);
                k.when_else(
                    p,
                    |k| cell.borrow_mut().block(k, then),
                    |k| cell.borrow_mut().block(k, other),
                )?;
            }
            Stmt::Region(body) => k.region(|k| self.block(k, body))?,
            Stmt::Loop {
                start,
                step,
                limit,
                body,
            } => {
                let limit = self.ix(k, limit)?;
                self.names += 1;
                let name = format!("loop{}", self.names);
                k.for_loop(&name, *start, *step, limit, |k, counter| {
                    self.counters.push(counter);
                    let done = self.block(k, body);
                    self.counters.pop();
                    done
                })?;
            }
            Stmt::Break(p) => {
                let p = self.pred(k, p)?;
                k.break_when(p);
            }
            Stmt::Exit(p) => {
                let p = self.pred(k, p)?;
                k.exit_when(p);
            }
            Stmt::Pipeline {
                stages,
                element,
                shape,
                fill,
                steps,
                body,
            } => self.pipeline(k, (*stages, *element, *shape), fill, steps, body)?,
            Stmt::Product { a, b, c } => self.product(k, [a, b, c])?,
        }
        Ok(())
    }

    fn pipeline(
        &mut self,
        k: &mut Kernel,
        (stages, element, shape): (i64, Element, [i64; 2]),
        fill: &[Share; 2],
        steps: &Ix,
        body: &[Stmt],
    ) -> Built {
        self.names += 1;
        let name = format!("ring{}", self.names);
        let around = Self {
            fragments: HashMap::new(),
            ..self.clone()
        };
        let tile = Staged::new(&name, element, shape, &[]);
        let ring = k.ring(stages, [tile], |k, [stage], step| {
            let scope = Self {
                stage: Some(stage),
                step: Some(step),
                ..around.clone()
            };
            let [from, to] = fill;
            let refused = |e: Unbuildable| ViewError::Pipeline {
                given: e.0,
                accepted: String::new(),
            };
            let from = scope.share(k, from).map_err(refused)?;
            let to = scope.share(k, to).map_err(refused)?;
            k.copy(&from, &to)
        })?;
        let steps = self.ix(k, steps)?;
        k.pipeline(&[&ring], steps, |k, step| {
            let [stage] = step.arrived(k, &ring)?;
            self.stage = Some(stage);
            self.step = Some(step.index());
            self.block(k, body)
        })?;
        (self.stage, self.step) = (None, None);
        Ok(())
    }

    fn product(&mut self, k: &mut Kernel, [a, b, c]: [&Share; 3]) -> Built {
        let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)")?)?;
        let lane = self.ix(k, &a.thread)?;
        let a = self.view(k, a)?.partition_a(k, &mma, lane)?;
        let b = self.view(k, b)?.partition_b(k, &mma, lane)?;
        let (a, b) = (k.load_fragment(&a)?, k.load_fragment(&b)?);
        let sums = k.accumulators(&mma, [16, 8], lane)?;
        k.gemm(&mma, &a, &b, &sums)?;
        let c = self.view(k, c)?.partition_c(k, &mma, lane)?;
        k.store_fragment(&c, &sums)?;
        Ok(())
    }

    fn all(&self, k: &mut Kernel, all: &[Ix]) -> Built<Vec<Expr>> {
        all.iter().map(|e| self.ix(k, e)).collect()
    }

    fn ix(&self, k: &mut Kernel, e: &Ix) -> Built<Expr> {
        let known = |e: Option<&Expr>, what| match e {
            Some(e) => Ok(*e),
            None => missing(what),
        };
        Ok(match e {
            Ix::Const(c) => k.constant(*c),
            Ix::Size(i) => known(self.sizes.get(*i), "size")?,
            Ix::Thread => k.thread(),
            Ix::Lane => k.lane(),
            Ix::Warp => k.warp(),
            Ix::Tile(i) => known(self.tiles.get(*i), "axis")?,
            Ix::Counter(i) => known(self.counters.get(*i), "loop")?,
            Ix::Step => known(self.step.as_ref(), "step")?,
            Ix::Add(both) | Ix::Sub(both) | Ix::Mul(both) | Ix::Xor(both) | Ix::Smaller(both) => {
                let (a, b) = (self.ix(k, &both[0])?, self.ix(k, &both[1])?);
                match e {
                    Ix::Add(_) => k.add(a, b),
                    Ix::Sub(_) => k.sub(a, b),
                    Ix::Mul(_) => k.mul(a, b),
                    Ix::Xor(_) => k.xor(a, b),
                    _ => k.smaller(a, b),
                }
            }
            Ix::Scale(e, c) => {
                let e = self.ix(k, e)?;
                k.scale(e, *c)
            }
            Ix::Div(e, d) => {
                let e = self.ix(k, e)?;
                k.div(e, *d)
            }
            Ix::Rem(e, d) => {
                let e = self.ix(k, e)?;
                k.rem(e, *d)
            }
            Ix::TilesIn(e, tile) => {
                let e = self.ix(k, e)?;
                k.tiles_in(e, *tile)?
            }
            Ix::Bounded(e, most) => {
                let e = self.ix(k, e)?;
                k.bounded(e, *most)
            }
            Ix::Choose(all, cmp) => {
                let all = self.all(k, &all[..])?;
                k.choose(all[0], *cmp, all[1], all[2], all[3])
            }
        })
    }

    fn signed(&self, k: &mut Kernel, e: &Int) -> Built<S32> {
        Ok(match e {
            Int::Const(c) => S32::from(*c as i32),
            Int::Index(e) => {
                let e = self.ix(k, e)?;
                S32::index(k, e)
            }
            Int::Variable(i) => match self.ints.get(i) {
                Some(variable) => variable.get(k),
                None => return missing("variable"),
            },
            Int::Binary(op, true, both) => {
                let (a, b) = (self.signed(k, &both[0])?, self.signed(k, &both[1])?);
                match op {
                    IntOp::Add => a.add(k, b),
                    IntOp::Sub => a.sub(k, b),
                    IntOp::Mul => a.mul(k, b),
                    IntOp::MulHi => a.mul_hi(k, b),
                    IntOp::Min => a.min(k, b),
                    IntOp::Max => a.max(k, b),
                    IntOp::And => a.and(k, b),
                    IntOp::Or => a.or(k, b),
                    IntOp::Xor => a.xor(k, b),
                    IntOp::Shl | IntOp::Shr => {
                        let by = b.bits(k);
                        if *op == IntOp::Shl {
                            a.shl(k, by)
                        } else {
                            a.shr(k, by)
                        }
                    }
                }
            }
            Int::Select(p, both) => {
                let p = self.pred(k, p)?;
                let (a, b) = (self.signed(k, &both[0])?, self.signed(k, &both[1])?);
                p.select(k, a, b)
            }
            Int::Float(f, true) => self.float(k, f)?.to_s32(k, Rounding::Down),
            _ => self.unsigned(k, e)?.as_s32(k),
        })
    }

    fn unsigned(&self, k: &mut Kernel, e: &Int) -> Built<U32> {
        Ok(match e {
            Int::Const(c) => U32::from(*c),
            Int::Index(e) => {
                let e = self.ix(k, e)?;
                U32::index(k, e)
            }
            Int::Argument(i) => match self.scalars.get(*i) {
                Some(Passed::U(x)) => *x,
                Some(Passed::S(x)) => x.bits(k),
                Some(Passed::F(x)) => x.bits(k),
                None => return missing("argument"),
            },
            Int::Data(fragment, value) => {
                let fragment = self.fragment(*fragment)?;
                if fragment.element() == Element::S32 {
                    let all = fragment.thread_values::<i32>(k)?;
                    all[value % all.len()].bits(k)
                } else {
                    let all = fragment.thread_values::<f32>(k)?;
                    all[value % all.len()].bits(k)
                }
            }
            Int::Float(f, false) => self.float(k, f)?.to_u32(k, Rounding::Zero),
            Int::Binary(op, false, both) => {
                let (a, b) = (self.unsigned(k, &both[0])?, self.unsigned(k, &both[1])?);
                match op {
                    IntOp::Add => a.add(k, b),
                    IntOp::Sub => a.sub(k, b),
                    IntOp::Mul => a.mul(k, b),
                    IntOp::MulHi => a.mul_hi(k, b),
                    IntOp::Min => a.min(k, b),
                    IntOp::Max => a.max(k, b),
                    IntOp::And => a.and(k, b),
                    IntOp::Or => a.or(k, b),
                    IntOp::Xor => a.xor(k, b),
                    IntOp::Shl => a.shl(k, b),
                    IntOp::Shr => a.shr(k, b),
                }
            }
            Int::Shuffle(mode, both) => {
                let (a, b) = (self.unsigned(k, &both[0])?, self.unsigned(k, &both[1])?);
                a.shuffle(k, *mode, b)
            }
            Int::Variable(_) | Int::Select(..) | Int::Float(..) | Int::Binary(..) => {
                self.signed(k, e)?.bits(k)
            }
        })
    }

    fn float(&self, k: &mut Kernel, e: &Float) -> Built<F32> {
        Ok(match e {
            Float::Const(c) => F32::from(*c),
            Float::It => match self.it {
                Some(x) => x,
                None => return missing("value"),
            },
            Float::Argument(i) => match self.scalars.get(*i) {
                Some(Passed::F(x)) => *x,
                Some(Passed::U(x)) => x.as_f32(k),
                Some(Passed::S(x)) => x.to_f32(k),
                None => return missing("argument"),
            },
            Float::Variable(i) => match self.floats.get(i) {
                Some(variable) => variable.get(k),
                None => return missing("variable"),
            },
            Float::Data(fragment, value) => {
                let all = self.fragment(*fragment)?.thread_values::<f32>(k)?;
                all[value % all.len()]
            }
            Float::OfInt(e, true) => self.signed(k, e)?.to_f32(k),
            Float::OfInt(e, false) => self.unsigned(k, e)?.to_f32(k),
            Float::OfBits(e) => self.unsigned(k, e)?.as_f32(k),
            Float::Binary(op, both) => {
                let (a, b) = (self.float(k, &both[0])?, self.float(k, &both[1])?);
                match op {
                    FloatOp::Add => a.add(k, b),
                    FloatOp::Mul => a.mul(k, b),
                    FloatOp::Min => a.min(k, b),
                    FloatOp::Max => a.max(k, b),
                    FloatOp::MaxNan => a.max_nan(k, b),
                }
            }
            Float::Select(p, both) => {
                let p = self.pred(k, p)?;
                let (a, b) = (self.float(k, &both[0])?, self.float(k, &both[1])?);
                p.select(k, a, b)
            }
            Float::Shuffle(mode, x, lane) => {
                let (x, lane) = (self.float(k, x)?, self.unsigned(k, lane)?);
                x.shuffle(k, *mode, lane)
            }
        })
    }

    fn pred(&self, k: &mut Kernel, p: &Pred) -> Built<Predicate> {
        macro_rules! compared {
            ($a:expr, $cmp:expr, $b:expr) => {
                match $cmp {
                    Cmp::Lt => $a.lt(k, $b),
                    Cmp::Le => $a.le(k, $b),
                    Cmp::Gt => $a.gt(k, $b),
                    Cmp::Ge => $a.ge(k, $b),
                    Cmp::Eq => $a.eq(k, $b),
                    _ => $a.ne(k, $b),
                }
            };
        }
        Ok(match p {
            Pred::Index(a, cmp, b) => {
                let (a, b) = (self.ix(k, a)?, self.ix(k, b)?);
                Predicate::of(k, a, *cmp, b)
            }
            Pred::Int(true, a, cmp, b) => {
                let (a, b) = (self.signed(k, a)?, self.signed(k, b)?);
                compared!(a, cmp, b)
            }
            Pred::Int(false, a, cmp, b) => {
                let (a, b) = (self.unsigned(k, a)?, self.unsigned(k, b)?);
                compared!(a, cmp, b)
            }
            Pred::Float(a, cmp, b) => {
                let (a, b) = (self.float(k, a)?, self.float(k, b)?);
                compared!(a, cmp, b)
            }
            Pred::Not(p) => self.pred(k, p)?.not(),
            Pred::And(both) => {
                let (a, b) = (self.pred(k, &both[0])?, self.pred(k, &both[1])?);
                a.and(k, b)
            }
            Pred::Or(both) => {
                let (a, b) = (self.pred(k, &both[0])?, self.pred(k, &both[1])?);
                a.or(k, b)
            }
        })
    }
}
