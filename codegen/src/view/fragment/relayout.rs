//! From one register layout to another.
//!
//! A fragment has the layout that the instruction left which made it; the next instruction may want another one. Three ways lead there, and the layouts say
//! which one is cheapest:
//!
//! 1. *Nothing.* Every thread already has what it needs, if need be in another order of its registers. So C of one `mma.sync`, converted to 16 bits, is A of the next:
//!    two atoms side by side along N are one atom along K.
//! 2. *Shuffles.* Every word is somewhere in the same warp, and the lane that has it is a sum over the bits of the lane that needs it.
//! 3. *Shared memory.* A tile whose layout is derived from the two accesses, and a barrier.
//!
//! What moves where is looked up element by element in the two layouts, for every thread and value, so a plan that exists is right. The
//! accesses of the third way are proven with the kernel, as any others.

use std::collections::{BTreeSet, HashMap};

use layout_core::{Layout, Operand, TiledMma};

use super::{Fragment, registers_of};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Class, Cmp, Kernel, Reg, Shuffle, Type};
use crate::value::{F32, Predicate, U32};
use crate::view::partition::{Owners, by_mode, first_holder, has_runs};
use crate::view::tiled::operand_tv;
use crate::view::uses::derived;
use crate::view::{Partition, Use, View, ViewError};

/// What a barrier costs, in wavefronts of a warp.
const BARRIER: usize = 8;

/// Lanes of a warp.
const LANES: usize = 32;

/// A number that each lane computes as a sum over the bits of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ByLane {
    base: i64,
    bits: [i64; 5],
}

impl ByLane {
    /// The sum that gives `list` for the lanes of every warp, if there is one.
    fn of(list: &[usize]) -> Option<Self> {
        let at = |lane: usize| list[lane] as i64;
        let base = at(0);
        let bits = [0, 1, 2, 3, 4].map(|b| at(1 << b) - base);
        let sum = |lane: usize| -> i64 {
            let set = (0..5).filter(|b| lane >> b & 1 == 1);
            base + set.map(|b| bits[b]).sum::<i64>()
        };
        let holds = list
            .iter()
            .enumerate()
            .all(|(t, &x)| sum(t % LANES) == x as i64);
        (holds && bits.iter().all(|&b| b >= 0)).then_some(Self { base, bits })
    }

    fn expression(&self, k: &mut Kernel) -> Result<Expr, ViewError> {
        let lane = k.lane();
        let sum = index(&mut k.pool, &Layout::flat(&[2; 5], &self.bits)?, &[lane])?;
        let base = k.pool.constant(self.base);
        Ok(k.pool.add(sum, base))
    }
}

/// Where a word comes from: the lane, and which of that lane's words.
#[derive(Debug)]
struct Source {
    lane: ByLane,
    word: ByLane,
    /// The words that some lane needs.
    words: Vec<usize>,
    /// Every lane has it itself.
    own: bool,
}

impl Source {
    /// Shuffles, and choices between what they give.
    fn cost(&self) -> usize {
        let n = self.words.len();
        if self.own { n - 1 } else { 2 * n - 1 }
    }
}

impl Fragment {
    /// This fragment as `tv` shares it out, a layout from (thread, value) to the element of the tile: without an instruction if every thread has what it
    /// needs, else by shuffles or through shared memory, whichever takes fewer wavefronts.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let thread = k.thread();
    /// let sums = k.accumulators(&mma, [16, 8], thread)?;
    /// // Four neighbours of a row in each lane.
    /// let rows = sums.relayout(&mut k, &Layout::parse("((2,16),4):((64,1),16)")?)?;
    /// assert_eq!(rows.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for a layout of another number of threads or elements; [`ViewError::Derive`] and [`ViewError::SharedMemory`] of the tile in shared memory.
    #[track_caller]
    pub fn relayout(&self, k: &mut Kernel, tv: &Layout) -> Result<Self, ViewError> {
        k.at_line();
        self.own(k)?;
        let refuse = |reason: String| self.refuse("a change of the register layout", reason);
        let elements: i64 = self.shape.iter().product();
        let threads = self.tv.get(0)?.size();
        if tv.rank() != 2 || tv.get(0)?.size() != threads {
            return Err(refuse(format!(
                "{tv} is not (thread, value) of {threads} threads"
            )));
        }
        let values = tv.get(1)?.size();
        if values % self.each as i64 != 0 {
            return Err(refuse(format!(
                "{values} values of a thread do not fill words of {}",
                self.each
            )));
        }
        let (least, most) = tv.offset_range();
        if least < 0 || most >= elements {
            return Err(refuse(format!(
                "{tv} gives elements from {least} to {most}, and there are {elements}"
            )));
        }
        let done = |registers: Vec<Reg>| Self {
            registers,
            tv: *tv,
            ..self.clone()
        };
        if let Some(registers) = self.in_order_of(tv) {
            return Ok(done(registers));
        }
        let sources = self.sources(tv);
        if let Some(sources) = &sources
            && sources.iter().all(|s| s.own && s.words.len() == 1)
        {
            let words = sources.iter().map(|s| self.registers[s.words[0]]);
            return Ok(done(words.collect()));
        }
        let shared = self.through_shared(tv);
        let shuffles = sources.map(|all| (all.iter().map(Source::cost).sum::<usize>(), all));
        match (shuffles, shared) {
            (Some((cost, sources)), Ok(shared)) if cost <= shared.cost => {
                let moved = self.shuffled(k, &sources)?;
                Ok(Self {
                    origin: k.here(),
                    ..done(moved)
                })
            }
            (Some((_, sources)), Err(_)) => {
                let moved = self.shuffled(k, &sources)?;
                Ok(Self {
                    origin: k.here(),
                    ..done(moved)
                })
            }
            (_, shared) => shared?.emit(k, self),
        }
    }

    /// This fragment as an operand of a tiled mma ([`Fragment::relayout`]).
    ///
    /// ```
    /// use layout_codegen::ir::{Element, Kernel};
    /// use layout_core::{Layout, Operand, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(4,1,1):(1,0,0)")?)?;
    /// let thread = k.thread();
    /// let weights = k.accumulators(&mma, [64, 32], thread)?.convert(&mut k, Element::F16)?;
    /// // C of one product is A of the next.
    /// let a = weights.operand(&mut k, &mma, Operand::A)?;
    /// assert_eq!((a.shape(), a.values()), (weights.shape(), weights.values()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Fragment::relayout`]; [`ViewError::Layout`] for a tile that the mma's does not divide.
    #[track_caller]
    pub fn operand(
        &self,
        k: &mut Kernel,
        mma: &TiledMma,
        operand: Operand,
    ) -> Result<Self, ViewError> {
        k.at_line();
        let tv = operand_tv(mma, operand, &self.shape)?;
        let mut fragment = self.relayout(k, &tv)?;
        // Factors are words without a meaning.
        let class = registers_of(self.element, operand != Operand::C).0;
        for register in &mut fragment.registers {
            if register.class != class {
                let to = k.reg(class);
                k.set(Type::B32, to, *register);
                *register = to;
            }
        }
        Ok(fragment)
    }

    /// For each word by `tv` the lanes that have it, if they are in the same warps and lanes can compute them.
    fn sources(&self, tv: &Layout) -> Option<Vec<Source>> {
        let threads = self.tv.get(0).ok()?.size() as usize;
        let words = tv.get(1).ok()?.size() as usize / self.each;
        let narrow = self
            .registers
            .iter()
            .all(|r| matches!(r.class, Class::B32 | Class::F32));
        if !narrow || !threads.is_multiple_of(LANES) {
            return None;
        }
        let word = |tv: &Layout, t: usize, w: usize| -> Vec<i64> {
            let first = w * self.each;
            let values = (first..first + self.each).map(|v| tv.at(&[t as i64, v as i64]));
            values.collect()
        };
        let mut holders: HashMap<Vec<i64>, Vec<(usize, usize)>> = HashMap::new();
        for t in 0..threads {
            for w in 0..self.registers.len() {
                holders
                    .entry(word(&self.tv, t, w))
                    .or_default()
                    .push((t, w));
            }
        }
        let mut all = Vec::new();
        for w in 0..words {
            let (mut lanes, mut from) = (Vec::new(), Vec::new());
            for t in 0..threads {
                let found = holders.get(&word(tv, t, w))?;
                let near = found.iter().filter(|(s, _)| s / LANES == t / LANES);
                let (s, q) = near.min_by_key(|(s, _)| (*s != t, *s))?;
                lanes.push(s % LANES);
                from.push(*q);
            }
            let words: BTreeSet<usize> = from.iter().copied().collect();
            all.push(Source {
                own: lanes.iter().enumerate().all(|(t, &s)| s == t % LANES),
                lane: ByLane::of(&lanes)?,
                word: ByLane::of(&from)?,
                words: words.into_iter().collect(),
            });
        }
        Some(all)
    }

    fn shuffled(&self, k: &mut Kernel, sources: &[Source]) -> Result<Vec<Reg>, ViewError> {
        self.whole_warps(k, false)?;
        let mut all = Vec::new();
        for source in sources {
            let lane = source.lane.expression(k)?;
            let lane = k.operand(lane);
            let which = source.word.expression(k)?;
            let mut got: Option<Reg> = None;
            for &word in &source.words {
                let mut value = self.registers[word];
                if !source.own {
                    value = k.shuffle(Shuffle::Index, value, lane);
                }
                got = Some(match got {
                    None => value,
                    Some(before) => {
                        let number = k.pool.constant(word as i64);
                        let p = Predicate::of(k, which, Cmp::Eq, number);
                        chosen(k, p, value, before)
                    }
                });
            }
            all.extend(got);
        }
        Ok(all)
    }

    /// The way through shared memory.
    fn through_shared(&self, tv: &Layout) -> Result<Through, ViewError> {
        let refuse = |reason: String| self.refuse("a change of the register layout", reason);
        let [rows, cols] = self.shape[..] else {
            return Err(refuse("it takes a tile of two modes".to_owned()));
        };
        let shape = [rows, cols];
        let bytes = i64::from(self.element.bytes());
        let widest = |tv: &Layout| -> Result<i64, ViewError> {
            let (modes, values) = (by_mode(&shape, tv)?, tv.get(1)?.size());
            for n in [16, 8, 4, 2] {
                if n * bytes <= 16 && values % n == 0 && has_runs(1, &modes, values, n)? {
                    return Ok(n);
                }
            }
            Ok(1)
        };
        let widths = [widest(&self.tv)?, widest(tv)?];
        let uses = [
            Use::store(&self.tv).vectors(widths[0]),
            Use::load(tv).vectors(widths[1]),
        ];
        let derivation = derived("a register layout", self.element, shape, &uses)?;
        let mut cost = BARRIER;
        for (values, width) in [(&self.tv, widths[0]), (tv, widths[1])] {
            let n = values.get(1)?.size() / width;
            cost +=
                n as usize * derivation.wavefronts() as usize / derivation.accesses().len().max(1);
        }
        Ok(Through {
            tv: *tv,
            shape,
            widths,
            uses,
            cost,
        })
    }
}

/// `a` where `p` holds, `b` elsewhere.
fn chosen(k: &mut Kernel, p: Predicate, a: Reg, b: Reg) -> Reg {
    if a.class == Class::F32 && b.class == Class::F32 {
        let [a, b] = [a, b].map(|r| F32::held(k, r));
        return p.select(k, a, b).register(k);
    }
    let [a, b] = [a, b].map(|r| U32::held(k, r));
    p.select(k, a, b).register(k)
}

/// A way through shared memory.
struct Through {
    tv: Layout,
    shape: [i64; 2],
    widths: [i64; 2],
    uses: [Use; 2],
    /// Wavefronts of a warp.
    cost: usize,
}

impl Through {
    fn emit(&self, k: &mut Kernel, from: &Fragment) -> Result<Fragment, ViewError> {
        let thread = k.thread();
        if from.thread != thread {
            let reason = "through shared memory it is shared out by the thread (`Kernel::thread`)";
            return Err(from.refuse("a change of the register layout", reason.to_owned()));
        }
        let name = k.unique("relayout");
        let tile = k.staged_for(&name, from.element, (self.shape, &self.uses), None)?;
        let part = |k: &mut Kernel,
                    tile: &View,
                    tv: &Layout,
                    width: i64|
         -> Result<Partition, ViewError> {
            let mut part = tile.share(k, tv, thread, Owners::Some)?.vectors(k, width)?;
            part.owner = first_holder(k, tv, thread)?;
            Ok(part)
        };
        let to = part(k, &tile, &from.tv, self.widths[0])?;
        if k.in_loop() {
            k.barrier(); // what the last iteration read
        }
        k.store_fragment(&to, from)?;
        k.barrier();
        let back = part(k, &tile, &self.tv, self.widths[1])?;
        k.load_fragment(&back)
    }
}
