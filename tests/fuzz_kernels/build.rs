//! A program through the public builder.

use std::collections::HashMap;

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Shuffle};
use tilewright::codegen::pipeline::{AnyRing, Ring, Staged};
use tilewright::codegen::value::{
    Bf16x2, BrainPair, F16x2, F32, HalfPair, Predicate, S32, U32, Variable,
};
use tilewright::codegen::view::{Fragment, Partition, Use, Values, View, ViewError};
use tilewright::{Layout, LayoutError, Operand, Swizzled, TiledCopy, TiledMma, atoms};

use crate::judge::STATED;
use crate::program::{
    self, Blocks, By, Float, FloatOp, FloatUnary, Int, IntOp, Integer, Ix, Memory, Pair, PairOp,
    Pred, Program, Scalar, Share, Stmt, Tile,
};
use crate::typed;

macro_rules! arithmetic {
    ($k:expr, $op:expr, $a:expr, $b:expr) => {
        match $op {
            FloatOp::Add => $a.add($k, $b),
            FloatOp::Sub => $a.sub($k, $b),
            FloatOp::Mul => $a.mul($k, $b),
            FloatOp::Min => $a.min($k, $b),
            FloatOp::Max => $a.max($k, $b),
            FloatOp::MinNan => $a.min_nan($k, $b),
            FloatOp::MaxNan => $a.max_nan($k, $b),
        }
    };
}

/// The bits of what becomes of pairs.
macro_rules! paired {
    ($k:expr, $op:expr, $a:expr, $b:expr) => {{
        let made = match *$op {
            PairOp::Arithmetic(op) => arithmetic!($k, op, $a, $b),
            PairOp::Fma => $a.fma($k, $b, $a),
            PairOp::Neg => $a.neg($k),
            PairOp::Abs => $a.abs($k),
            PairOp::Exp2 => $a.exp2($k),
            PairOp::Tanh => $a.tanh($k),
            PairOp::Swap => $a.shuffle($k, Shuffle::Butterfly, 1),
        };
        made.bits($k)
    }};
}

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
    stages: Vec<View>,
    step: Option<Expr>,
    fragments: HashMap<usize, Fragment>,
    taken: HashMap<usize, Values>,
    ints: HashMap<usize, Variable<i32>>,
    floats: HashMap<usize, Variable<f32>>,
    it: Option<F32>,
    coordinates: Option<[Expr; 2]>,
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
            let name = format!("y{i}");
            if global.special {
                k.partial_output(&name, global.element, &extents)
            } else {
                k.output(&name, global.element, &extents)
            }
        } else {
            k.input(&format!("x{i}"), global.element, &extents)
        };
        if global.special && !global.output {
            k.assume_distinct(&view, "the fuzz gives a permutation");
        }
        if let Some([low, high]) = &global.range {
            let (low, high) = (scope.ix(&mut k, low)?, scope.ix(&mut k, high)?);
            k.assume_range(&view, low, high, "the fuzz gives such");
        }
        scope.globals.push(view);
    }
    for (i, tile) in p.shared.iter().enumerate() {
        let name = format!("s{i}");
        let view = match &tile.tile {
            Tile::Given(text) => {
                let layout =
                    Swizzled::parse(text).map_err(|e| Unbuildable(format!("{text}: {e}")))?;
                k.shared(&name, tile.element, &layout)?
            }
            Tile::For(shape, uses) => {
                let uses: Built<Vec<Use>> = uses
                    .iter()
                    .map(|(load, share)| used(*load, share, *shape))
                    .collect();
                let view = k.shared_for(&name, tile.element, *shape, &uses?)?;
                let derived = view
                    .derivation()
                    .map(tilewright::derive::Derivation::wavefronts);
                assert!(derived.is_some_and(|n| n > 0), "a derived layout");
                view
            }
        };
        scope.shared.push(view);
    }
    for (count, axis) in p.axes.iter().zip(AXES) {
        let extent = scope.ix(&mut k, &count.extent)?;
        scope.tiles.push(match count.blocks {
            Blocks::Tiles => k.tiles(axis, extent, count.tile)?,
            Blocks::TilesFromLast => k.tiles_from_last(axis, extent, count.tile)?,
            Blocks::Fixed => k.blocks(axis, count.tile as u32)?,
        });
    }
    if let Some(blocks) = p.resident {
        k.blocks_per_multiprocessor(blocks);
    }
    if p.lines {
        k.lines();
    }
    scope.block(&mut k, &p.body)?;
    Ok(k)
}

const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// The product of one warp, and of rows and columns of them.
fn product([rows, cols]: [i64; 2]) -> Built<TiledMma> {
    let warps = layout(&format!("({rows},{cols},1):(1,{rows},0)"))?;
    Ok(TiledMma::new(atoms::MMA_M16N8K16_F16, &warps)?)
}

/// `ldmatrix` of an operand.
fn matrices(operand: Operand, warps: [i64; 2]) -> Built<TiledCopy> {
    let mma = product(warps)?;
    Ok(TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, operand)?)
}

/// The copy of a share, if it has one.
fn copy(by: &By, stores: bool) -> Built<Option<TiledCopy>> {
    let (atom, threads, values) = match by {
        By::Async(bytes, threads, values) => {
            let atom = match bytes {
                4 => atoms::CP_ASYNC_4,
                8 => atoms::CP_ASYNC_8,
                _ => atoms::CP_ASYNC_16,
            };
            // All that is copied asynchronously here has 32 bits.
            (atom.recast(32)?, threads, values)
        }
        By::Tiled(elements, threads, values) => {
            let atom = atoms::vector_copy(*elements, atoms::Scalar::F32, stores)?;
            (atom, threads, values)
        }
        By::Matrices(operand, warps) => return matrices(*operand, *warps).map(Some),
        By::Layout(..) | By::Operand(..) | By::Along(..) => return Ok(None),
    };
    Ok(Some(TiledCopy::new(
        atom,
        &layout(threads)?,
        &layout(values)?,
    )?))
}

/// How a share uses a tile of this shape.
fn used(load: bool, share: &Share, shape: [i64; 2]) -> Built<Use> {
    let using = match &share.by {
        By::Layout(text, vector) if load => Use::load(&layout(text)?).vectors(*vector),
        By::Layout(text, vector) => Use::store(&layout(text)?).vectors(*vector),
        By::Operand(operand, warps) => Use::operand(&product(*warps)?, *operand),
        by => match copy(by, !load)? {
            Some(copy) if load => Use::source(&copy),
            Some(copy) => Use::target(&copy),
            None => return missing("use"),
        },
    };
    let using = if share.transposed {
        using.transposed()
    } else {
        using
    };
    Ok(match share.shape[..] {
        [a, b] if [a, b] != shape => using.of([a, b]),
        _ => using,
    })
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

    fn memory(&self, of: Memory) -> Built<View> {
        let view = match of {
            Memory::Global(i) => self.globals.get(i),
            Memory::Shared(i) => self.shared.get(i),
            Memory::Stage(i) => self.stages.get(i),
        };
        match view {
            Some(view) => Ok(view.clone()),
            None => missing("buffer"),
        }
    }

    fn view(&self, k: &mut Kernel, share: &Share) -> Built<View> {
        let whole = self.memory(share.of)?;
        let whole = if let Some([at, extents]) = &share.part {
            let (at, extents) = (self.all(k, at)?, self.all(k, extents)?);
            whole.part(k, &at, &extents)?
        } else {
            whole
        };
        let whole = if share.slice.is_empty() {
            whole
        } else {
            let at = self.all(k, &share.slice)?;
            whole.slice(k, &at)?
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
            By::Operand(operand, warps) => {
                let mma = product(*warps)?;
                match operand {
                    Operand::A => view.partition_a(k, &mma, thread)?,
                    Operand::B => view.partition_b(k, &mma, thread)?,
                    Operand::C => view.partition_c(k, &mma, thread)?,
                    Operand::Metadata => view.partition_metadata(k, &mma, thread)?,
                }
            }
            By::Along(mode, other) => self.share(k, other)?.along(k, *mode, &view)?,
            by @ (By::Async(..) | By::Tiled(..) | By::Matrices(..)) => {
                let source = match (by, share.of) {
                    (By::Async(..), Memory::Global(_)) | (By::Matrices(..), _) => true,
                    (By::Tiled(..), Memory::Global(i)) => i == 0,
                    _ => false,
                };
                match copy(by, !source)? {
                    Some(copy) if source => view.partition_s(k, &copy, thread)?,
                    Some(copy) => view.partition_d(k, &copy, thread)?,
                    None => return missing("copy"),
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
            Stmt::Take(name, from) => {
                let from = self.share(k, from)?;
                let taken = k.load_tile(&from)?;
                self.taken.insert(*name, taken);
            }
            Stmt::Put(to, from) => {
                let to = self.share(k, to)?;
                match self.taken.get(from) {
                    Some(values) => k.store_tile(&to, values)?,
                    None => return missing("tile of values"),
                }
            }
            Stmt::Copy(from, to) => {
                let (from, to) = (self.share(k, from)?, self.share(k, to)?);
                k.copy(&from, &to)?;
            }
            Stmt::PutInt(to, at, value) => {
                let (at, value) = (self.all(k, at)?, self.signed(k, value)?);
                self.memory(*to)?.store(k, &at, value)?;
            }
            Stmt::PutFloat(to, at, value) => {
                let (at, value) = (self.all(k, at)?, self.float(k, value)?);
                self.memory(*to)?.store(k, &at, value)?;
            }
            Stmt::Atomic(to, at, how, value) => {
                let (at, value) = (self.all(k, at)?, self.signed(k, value)?);
                self.memory(*to)?.atomic(k, &at, *how, value)?;
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
            Stmt::MapAt(name, from, f) => {
                let from = self.fragment(*from)?.clone();
                let mut trouble = None;
                let mapped = from.map_at(k, |k, x, at| {
                    (self.it, self.coordinates) = (Some(x), Some(at));
                    self.float(k, f).unwrap_or_else(|e| {
                        trouble = Some(e);
                        x
                    })
                })?;
                (self.it, self.coordinates) = (None, None);
                if let Some(e) = trouble {
                    return Err(e);
                }
                self.fragments.insert(*name, mapped);
            }
            Stmt::Words(name, of) => {
                let new = self.words(k, of)?;
                self.fragments.insert(*name, new);
            }
            Stmt::Update(name, others) => {
                let fragment = self.fragment(*name)?;
                match others[..] {
                    [] => fragment.update(k, |k, x| x.mul(k, 0.5))?,
                    [a] => fragment.update_with(k, self.fragment(a)?, |k, x, a| x.add(k, a))?,
                    [a, b, ..] => {
                        let both = [self.fragment(a)?, self.fragment(b)?];
                        fragment.update_with_both(k, both, |k, x, a, b| a.fma(k, b, x))?;
                    }
                }
            }
            Stmt::Typed(t, of, at, thread) => {
                let of: Built<Vec<View>> = of.iter().map(|of| self.memory(*of)).collect();
                let at = [self.ix(k, &at[0])?, self.ix(k, &at[1])?];
                let thread = self.ix(k, thread)?;
                self.names += 1;
                typed::build(k, t, &of?, (at, thread), &format!("t{}", self.names))?;
            }
            Stmt::Unpack(name, from, packed, to) => {
                let unpacked = self.fragment(*from)?.unpack(k, *packed, *to)?;
                self.fragments.insert(*name, unpacked);
            }
            Stmt::Fold(name, from, mode, how) => {
                let folded = self.fragment(*from)?.fold(k, *mode, *how)?;
                self.fragments.insert(*name, folded);
            }
            Stmt::Split(name, from, mode, [parts, which]) => {
                let all = self.fragment(*from)?.split(*mode, *parts)?;
                match all.get(*which) {
                    Some(part) => self.fragments.insert(*name, part.clone()),
                    None => return missing("part"),
                };
            }
            Stmt::Relayout(name, from, to) => {
                let moved = self.fragment(*from)?.relayout(k, &layout(to)?)?;
                self.fragments.insert(*name, moved);
            }
            Stmt::Operand(name, from, operand, warps) => {
                let mma = product(*warps)?;
                let moved = self.fragment(*from)?.operand(k, &mma, *operand)?;
                self.fragments.insert(*name, moved);
            }
            Stmt::Accumulators(name, shape, warps, thread) => {
                let thread = self.ix(k, thread)?;
                let sums = k.accumulators(&product(*warps)?, *shape, thread)?;
                self.fragments.insert(*name, sums);
            }
            Stmt::Gemm(of, warps) => {
                let [a, b, c] = of.map(|name| self.fragment(name));
                k.gemm(&product(*warps)?, a?, b?, c?)?;
            }
            Stmt::Comment(text) => {
                k.describe(text);
                k.comment(text);
            }
            Stmt::Assume(a, cmp, b) => {
                let (a, b) = (self.ix(k, a)?, self.ix(k, b)?);
                k.assume(a, *cmp, b, STATED)
                    .map_err(|e| Unbuildable(e.to_string()))?;
            }
            Stmt::Convert(name, from, to) => {
                // There are two names for it.
                let from = self.fragment(*from)?;
                let converted = if name % 2 == 0 {
                    from.convert(k, *to)?
                } else {
                    k.convert_fragment(from, *to)?
                };
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
            Stmt::Pipeline { rings, steps, body } => self.pipeline(k, rings, steps, body)?,
        }
        Ok(())
    }

    fn words(&self, k: &mut Kernel, of: &[usize]) -> Built<Fragment> {
        let all: Built<Vec<&Fragment>> = of.iter().map(|name| self.fragment(*name)).collect();
        macro_rules! words {
            ($ty:ty, $one:expr, $two:expr, $three:expr) => {
                match all?[..] {
                    [a] => a.map_words::<$ty>(k, $one)?,
                    [a, b] => a.zip_words::<$ty>(k, b, $two)?,
                    [a, b, c] => a.zip3_words::<$ty>(k, [b, c], $three)?,
                    _ => return missing("word"),
                }
            };
        }
        macro_rules! floats {
            ($ty:ty) => {
                words!($ty, |k, a| a.neg(k), |k, a, b| a.add(k, b), |k, a, b, c| a
                    .fma(k, b, c))
            };
        }
        let first = of.first().copied().unwrap_or(usize::MAX);
        Ok(match self.fragment(first)?.element() {
            Element::F16 => floats!(HalfPair),
            Element::Bf16 => floats!(BrainPair),
            Element::F64 => floats!(f64),
            Element::S32 => words!(
                i32,
                |k, a| a.xor(k, 5),
                |k, a, b| a.add(k, b),
                |k, a, b, c| {
                    let product = a.mul(k, b);
                    product.add(k, c)
                }
            ),
            _ => floats!(f32),
        })
    }

    fn ring<'f, const N: usize>(
        &'f self,
        k: &mut Kernel,
        name: &str,
        of: &'f program::Ring,
    ) -> Built<Ring<'f, N>> {
        let names: [String; N] = std::array::from_fn(|i| format!("{name}_{i}"));
        let tiles = names
            .each_ref()
            .map(|name| Staged::new(name, Element::F32, of.shape, &[]));
        Ok(k.ring(of.stages, tiles, move |k, stages, step| {
            let scope = Self {
                // The tiles of other rings are out of reach.
                stages: stages.to_vec(),
                step: Some(step),
                ..self.clone()
            };
            let refused = |e: Unbuildable| ViewError::Pipeline {
                given: e.0,
                accepted: String::new(),
            };
            of.fill.iter().try_for_each(|[from, to]| {
                let from = scope.share(k, from).map_err(refused)?;
                let to = scope.share(k, to).map_err(refused)?;
                k.copy(&from, &to)
            })
        })?)
    }

    fn pipeline(
        &mut self,
        k: &mut Kernel,
        rings: &[program::Ring],
        steps: &Ix,
        body: &[Stmt],
    ) -> Built {
        enum Any<'f> {
            One(Ring<'f, 1>),
            Two(Ring<'f, 2>),
        }
        let around = Self {
            fragments: HashMap::new(),
            taken: HashMap::new(),
            ..self.clone()
        };
        let mut all = Vec::new();
        for ring in rings {
            self.names += 1;
            let name = format!("ring{}", self.names);
            all.push(if ring.fill.len() == 1 {
                Any::One(around.ring(k, &name, ring)?)
            } else {
                Any::Two(around.ring(k, &name, ring)?)
            });
        }
        let list: Vec<&dyn AnyRing> = all
            .iter()
            .map(|ring| match ring {
                Any::One(ring) => ring as &dyn AnyRing,
                Any::Two(ring) => ring,
            })
            .collect();
        let steps = self.ix(k, steps)?;
        k.pipeline(&list, steps, |k, step| {
            self.stages.clear();
            for ring in &all {
                match ring {
                    Any::One(ring) => self.stages.extend(step.arrived(k, ring)?),
                    Any::Two(ring) => self.stages.extend(step.arrived(k, ring)?),
                }
            }
            self.step = Some(step.index());
            self.block(k, body)
        })?;
        self.stages.clear();
        self.step = None;
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
            Ix::Block(axis, count) => k.block_index(AXES[axis % 3], *count),
            Ix::Coordinate(i) => {
                let at = self.coordinates.as_ref();
                known(at.and_then(|at| at.get(*i)), "coordinate")?
            }
            Ix::Held(share, value, mode) => {
                let share = self.share(k, share)?;
                let value = value % share.values();
                known(share.coordinates(k, value)?.get(*mode), "mode")?
            }
            Ix::Linear(terms, c) => {
                let all: Built<Vec<(i64, Expr)>> = terms
                    .iter()
                    .map(|(by, e)| Ok((*by, self.ix(k, e)?)))
                    .collect();
                k.linear(&all?, *c)
            }
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
            Ix::Clamp(e, least, most) => {
                let e = self.ix(k, e)?;
                k.clamp(e, *least, *most)
            }
            Ix::Data(of, at, signed) => {
                let (of, at) = (self.memory(*of)?, self.all(k, at)?);
                if *signed {
                    of.load::<i32>(k, &at)?.to_index(k)
                } else {
                    of.load::<u32>(k, &at)?.to_index(k)
                }
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
            Int::Element(of, at) => {
                let at = self.all(k, at)?;
                self.memory(*of)?.load(k, &at)?
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
            Int::Float(f, Integer::S32, rounding) => self.float(k, f)?.to_s32(k, *rounding),
            Int::Float(f, Integer::S8, rounding) => self.float(k, f)?.to_s8(k, *rounding),
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
            Int::Float(f, Integer::U32, rounding) => self.float(k, f)?.to_u32(k, *rounding),
            Int::Permute(both, selector) => {
                let (a, b) = (self.unsigned(k, &both[0])?, self.unsigned(k, &both[1])?);
                a.permute(k, b, *selector)
            }
            Int::Pair(pair, both) => {
                let (a, b) = (self.float(k, &both[0])?, self.float(k, &both[1])?);
                match pair {
                    Pair::F16 => a.pair_f16(k, b).bits(k),
                    Pair::Bf16 => a.pair_bf16(k, b).bits(k),
                    Pair::E4m3 => a.pair_e4m3(k, b),
                    Pair::E5m2 => a.pair_e5m2(k, b),
                }
            }
            Int::Pairs(brain, op, both) => {
                let (a, b) = (self.unsigned(k, &both[0])?, self.unsigned(k, &both[1])?);
                if *brain {
                    let (a, b): (Bf16x2, Bf16x2) = (a.as_bf16x2(k), b.as_bf16x2(k));
                    paired!(k, op, a, b)
                } else {
                    let (a, b): (F16x2, F16x2) = (a.as_f16x2(k), b.as_f16x2(k));
                    paired!(k, op, a, b)
                }
            }
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
            Int::Variable(_)
            | Int::Element(..)
            | Int::Select(..)
            | Int::Float(..)
            | Int::Binary(..) => self.signed(k, e)?.bits(k),
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
            Float::Element(of, at) => {
                let at = self.all(k, at)?;
                self.memory(*of)?.load(k, &at)?
            }
            Float::Data(fragment, value) => {
                let all = self.fragment(*fragment)?.thread_values::<f32>(k)?;
                all[value % all.len()]
            }
            Float::OfInt(e, true) => self.signed(k, e)?.to_f32(k),
            Float::OfInt(e, false) => self.unsigned(k, e)?.to_f32(k),
            Float::OfBits(e) => self.unsigned(k, e)?.as_f32(k),
            Float::Binary(op, both) => {
                let (a, b) = (self.float(k, &both[0])?, self.float(k, &both[1])?);
                arithmetic!(k, *op, a, b)
            }
            Float::Unary(op, x) => {
                let x = self.float(k, x)?;
                match op {
                    FloatUnary::Neg => x.neg(k),
                    FloatUnary::Abs => x.abs(k),
                    FloatUnary::Exp2 => x.exp2(k),
                    FloatUnary::Reciprocal => x.reciprocal(k),
                    FloatUnary::Rsqrt => x.rsqrt(k),
                    FloatUnary::Sqrt => x.sqrt(k),
                    FloatUnary::Log2 => x.log2(k),
                    FloatUnary::Tanh => x.tanh(k),
                    FloatUnary::WideSqrt => x.to_f64(k).sqrt(k).to_f32(k),
                }
            }
            Float::Fma(all) => {
                let [a, b, c] = all.each_ref().map(|e| self.float(k, e));
                a?.fma(k, b?, c?)
            }
            Float::Wide(op, both) => {
                let (a, b) = (self.float(k, &both[0])?, self.float(k, &both[1])?);
                let (a, b) = (a.to_f64(k), b.to_f64(k));
                let wide = match op {
                    FloatOp::Add => a.add(k, b),
                    FloatOp::Sub => a.sub(k, b),
                    FloatOp::Mul => a.mul(k, b),
                    FloatOp::Min => a.min(k, b),
                    FloatOp::Max => a.max(k, b),
                    FloatOp::MinNan => a.fma(k, b, a),
                    FloatOp::MaxNan => {
                        let b = b.neg(k).abs(k);
                        a.lt(k, b).select(k, a, b)
                    }
                };
                wide.to_f32(k)
            }
            Float::Half(pair, word, i) => {
                let word = self.unsigned(k, word)?;
                let both = match pair {
                    Pair::F16 => word.as_f16x2(k).to_f32(k),
                    Pair::Bf16 => word.as_bf16x2(k).to_f32(k),
                    Pair::E4m3 => word.e4m3_to_f32(k),
                    Pair::E5m2 => word.e5m2_to_f32(k),
                };
                both[i % 2]
            }
            Float::Combined(fragment, how) => self.fragment(*fragment)?.combine(k, *how)?,
            Float::Reduced(x, groups, how) => {
                let x = self.float(k, x)?;
                k.reduce(x, &layout(groups)?, *how)?
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
