//! Threads that combine what they hold.
//!
//! Threads whose results belong together differ in some bits of the thread's number. Bits of the lane are crossed by butterfly shuffles, one for each
//! bit and no other. Bits of the warp are crossed through shared memory: the lanes that hold different results write them side by side for all
//! warps, and after a barrier every thread reads those of the warps that belong to it. All threads combine in the same order, so that they have the same bits.

use std::collections::BTreeMap;

use layout_core::{Layout, Swizzled};

use crate::index::Expr;
use crate::ir::{Binary, Cache, Class, Cmp, Element, Kernel, Reg, Shuffle, Type};
use crate::view::ViewError;

/// How two values become one.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::view::Combine;
/// use layout_core::{Layout, TiledMma, atoms};
///
/// // The maxima of the rows of a product.
/// let mut k = Kernel::new("k", 32);
/// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
/// let lane = k.lane();
/// let maxima = k.accumulators(&mma, [16, 8], lane)?.reduce(&mut k, 1, Combine::Max)?;
/// assert_eq!((maxima.shape(), maxima.values()), (&[16, 1][..], 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combine {
    /// The sum.
    Add,
    /// The larger; of a number and NaN, the number.
    Max,
    /// The smaller; of a number and NaN, the number.
    Min,
    /// The larger; NaN if one is. From `sm_80`.
    MaxNan,
    /// The smaller; NaN if one is. From `sm_80`.
    MinNan,
}

impl Combine {
    pub(in crate::view) fn operation(self) -> Binary {
        match self {
            Combine::Add => Binary::Add,
            Combine::Max => Binary::Max,
            Combine::Min => Binary::Min,
            Combine::MaxNan => Binary::MaxNan,
            Combine::MinNan => Binary::MinNan,
        }
    }

    /// The registers and the type by which values of an element are combined.
    pub(super) fn of(self, element: Element) -> Option<(Class, Type)> {
        match (element, self) {
            (Element::F32, _) => Some((Class::F32, Type::F32)),
            (Element::S32, Combine::Add | Combine::Max | Combine::Min) => {
                Some((Class::B32, Type::S32))
            }
            _ => None,
        }
    }

    /// All of them combined, neighbours first: the error of a sum grows with the logarithm of their number.
    pub(super) fn all(self, k: &mut Kernel, ty: Type, values: &[Reg]) -> Reg {
        let mut row = values.to_vec();
        while row.len() > 1 {
            row = row
                .chunks(2)
                .map(|pair| match pair {
                    [a, b] => self.two(k, ty, *a, *b),
                    one => one[0],
                })
                .collect();
        }
        row[0]
    }

    fn two(self, k: &mut Kernel, ty: Type, a: Reg, b: Reg) -> Reg {
        let to = k.reg(a.class);
        k.binary(self.operation(), ty, to, a, b);
        to
    }
}

/// Lanes of a warp.
const LANES: usize = 32;

/// Which threads combine what they hold.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Bits of the lane that are combined.
    combined: Vec<usize>,
    /// Bits of the lane on which the results depend.
    apart: Vec<usize>,
    /// Lanes with the other bits not 0 hold nothing of their own.
    repeated: u64,
    warps: Warps,
}

/// Which warps combine what they hold.
#[derive(Debug)]
enum Warps {
    /// None.
    Alone,
    /// Those whose numbers differ in these bits.
    Bits { mask: u64, count: usize },
    /// All.
    All { count: usize },
}

impl Exchange {
    /// Threads combine along `axis` and keep apart along `other`: what each thread adds to the two coordinates.
    pub(super) fn new(axis: &[i64], other: &[i64]) -> Result<Self, String> {
        let threads = axis.len();
        let lanes = LANES.min(threads);
        let bits = |n: usize| (0..).take_while(move |b| 1 << b < n).map(|b| 1usize << b);
        let adds = |list: &[i64]| {
            (0..threads).all(|t| {
                let set = bits(lanes).filter(|b| t & b != 0);
                list[t] == list[t / LANES * LANES] + set.map(|b| list[b] - list[0]).sum::<i64>()
            })
        };
        if axis == vec![axis[0]; threads] {
            return Ok(Self {
                combined: Vec::new(),
                apart: Vec::new(),
                repeated: 0,
                warps: Warps::Alone,
            });
        }
        if !threads.is_multiple_of(LANES) {
            return Err(format!(
                "{threads} threads are no whole warps, and shuffles need whole warps"
            ));
        }
        if !adds(axis) || !adds(other) {
            return Err("its coordinates are no sums over the bits of the lane".to_owned());
        }
        let (mut combined, mut apart, mut repeated) = (Vec::new(), Vec::new(), 0);
        for b in bits(LANES) {
            match (axis[b] != axis[0], other[b] != other[0]) {
                (true, true) => {
                    return Err(format!(
                        "bit {} of the lane moves along both modes",
                        b.trailing_zeros()
                    ));
                }
                (true, false) => combined.push(b),
                (false, true) => apart.push(b),
                (false, false) => {}
            }
            if other[b] == other[0] {
                repeated |= b as u64;
            }
        }
        Ok(Self {
            combined,
            apart,
            repeated,
            warps: Self::warps(axis, other)?,
        })
    }

    fn warps(axis: &[i64], other: &[i64]) -> Result<Warps, String> {
        let firsts = |list: &[i64]| list.iter().copied().step_by(LANES).collect::<Vec<i64>>();
        let (axis, other) = (firsts(axis), firsts(other));
        let count = axis.len();
        let mut classes: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (&a, &o) in axis.iter().zip(&other) {
            let parts = classes.entry(o).or_default();
            if !parts.contains(&a) {
                parts.push(a);
            }
        }
        if classes.values().all(|parts| parts.len() == 1) {
            return Ok(Warps::Alone);
        }
        let one_class = classes.len() == 1 && classes.values().all(|parts| parts.len() == count);
        if one_class {
            return Ok(Warps::All { count });
        }
        let mask = (0..count.ilog2())
            .map(|b| 1usize << b)
            .filter(|&b| axis[b] != axis[0] && other[b] == other[0])
            .sum::<usize>();
        // Each warp finds the parts of its class where only the bits of the mask differ.
        let found = count.is_power_of_two()
            && (0..count).all(|w| {
                let mine = (0..count).filter(|v| v & !mask == w & !mask);
                let mut parts: Vec<i64> = mine
                    .filter(|&v| other[v] == other[w])
                    .map(|v| axis[v])
                    .collect();
                parts.sort_unstable();
                parts.dedup();
                parts.len() == 1 << mask.count_ones() && parts.len() == classes[&other[w]].len()
            });
        if !found {
            return Err("its coordinates are no sums over the bits of the warp".to_owned());
        }
        Ok(Warps::Bits {
            mask: mask as u64,
            count,
        })
    }

    /// How many threads' parts a result has.
    pub(super) fn parts(&self) -> usize {
        let warps = match self.warps {
            Warps::Alone => 1,
            Warps::Bits { mask, .. } => 1 << mask.count_ones(),
            Warps::All { count } => count,
        };
        warps << self.combined.len()
    }

    /// Whether threads of several warps combine what they hold.
    pub(super) fn crosses_warps(&self) -> bool {
        !matches!(self.warps, Warps::Alone)
    }

    /// Combines each of the registers over the threads.
    pub(super) fn combine(
        &self,
        k: &mut Kernel,
        how: Combine,
        (element, ty): (Element, Type),
        values: &[Reg],
    ) -> Result<Vec<Reg>, ViewError> {
        let mut values = values.to_vec();
        for &bit in &self.combined {
            for value in &mut values {
                let there = k.shuffle(Shuffle::Butterfly, *value, bit as i64);
                *value = how.two(k, ty, *value, there);
            }
        }
        let (count, mask) = match self.warps {
            Warps::Alone => return Ok(values),
            Warps::Bits { mask, count } => (count, mask),
            Warps::All { count } => (count, u64::MAX),
        };
        self.through_shared(k, how, (element, ty), &values, (count, mask))
    }

    fn through_shared(
        &self,
        k: &mut Kernel,
        how: Combine,
        (element, ty): (Element, Type),
        values: &[Reg],
        (count, mask): (usize, u64),
    ) -> Result<Vec<Reg>, ViewError> {
        // (result, warp): the parts of a result lie side by side.
        let (results, warps) = ((values.len() << self.apart.len()) as i64, count as i64);
        let layout = Layout::flat(&[results, warps], &[warps, 1])?;
        let name = k.unique("partials");
        let partials = k.staged(
            &name,
            element,
            &Swizzled::from(layout),
            (None, crate::view::buffer::LINE),
        )?;
        let (thread, warp) = (k.thread(), k.warp());
        let mut first = k.pool.constant(0);
        for (i, &bit) in self.apart.iter().enumerate() {
            let bit_of = k.pool.shr(thread, bit.trailing_zeros());
            let bit_of = k.pool.and(bit_of, 1);
            let part = k.pool.scale(bit_of, 1 << i);
            first = k.pool.add(first, part);
        }
        let writes = (self.repeated != 0).then(|| {
            let (lane, one) = (k.pool.and(thread, self.repeated), k.pool.constant(1));
            k.compare(Cmp::Lt, lane, one)
        });
        if k.in_loop() {
            k.barrier(); // what the last iteration read
        }
        let slot = |k: &mut Kernel, i: usize| -> Expr {
            let more = k.pool.constant((i << self.apart.len()) as i64);
            k.pool.add(first, more)
        };
        for (i, &value) in values.iter().enumerate() {
            let slot = slot(k, i);
            let at = partials.element(k, &[slot, warp])?;
            k.store(writes.map(Into::into), ty, &[value], at);
            k.tag(&format!("write {name}"));
        }
        k.barrier();
        let parts: Vec<i64> = (0..warps).filter(|&w| w as u64 & !mask == 0).collect();
        let own = if mask == u64::MAX {
            k.pool.constant(0)
        } else {
            k.pool.and(warp, !mask & (count as u64 - 1))
        };
        let wide = [4, 2, 1].into_iter().find(|&n| {
            warps % n == 0
                && parts.chunks(n as usize).all(|run| {
                    run[0] % n == 0
                        && run.len() == n as usize
                        && run[run.len() - 1] == run[0] + n - 1
                })
        });
        let wide = wide.unwrap_or(1) as usize;
        let mut all = Vec::new();
        for (i, value) in values.iter().enumerate() {
            let slot = slot(k, i);
            let mut read = Vec::new();
            for run in parts.chunks(wide) {
                let part = k.pool.constant(run[0]);
                let part = k.pool.add(own, part);
                let at = partials.element(k, &[slot, part])?;
                let to = k.regs(value.class, wide);
                k.load(None, Cache::Coherent, ty, &to, at);
                k.tag(&format!("read {name}"));
                read.extend(to);
            }
            all.push(how.all(k, ty, &read));
        }
        Ok(all)
    }
}
