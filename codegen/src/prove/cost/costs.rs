//! What accesses cost: wavefronts of shared memory, sectors of global memory.

use layout_core::banks::{self, Access as Op, BankModel};

use crate::prove::algebra::numbers::{Mask, Num, alike};
use crate::prove::memory::access::AccessProof;
use crate::prove::walk::execute::Trace;
use crate::prove::walk::memory::Access;
use crate::quick::QuickMap;

/// What a global access costs in sectors of 32 bytes. Lanes in different rows share none, since rows may be any distance apart; rows are taken to begin
/// at sectors.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel};
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Swizzled};
///
/// // y = x through shared memory, an element a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1000);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let tile = k.shared("tile", Element::F32, &Swizzled::parse("128:1")?)?;
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let tile = tile.partition(&mut k, &one, thread)?;
/// k.copy(&x, &tile)?;
/// k.copy(&tile, &y)?;
/// let proof = k.build(Arch(80))?.proof;
/// let read = &proof.global[0];
/// assert_eq!((read.access.as_str(), read.sectors, read.ideal), ("read x", 4, 4)); // 128 bytes a warp
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GlobalCost {
    /// The buffer, and whether it is read or written.
    pub access: String,
    /// The most sectors of a warp's execution.
    pub sectors: u32,
    /// Sectors if its bytes were side by side.
    pub ideal: u32,
}

impl Trace {
    pub(in crate::prove) fn shared_costs(&self, model: &BankModel) -> Vec<AccessProof> {
        let mut all: Vec<AccessProof> = Vec::new();
        let mut known = Costs::default();
        let mut alike: QuickMap<(Op, Num, Mask, bool), Option<Wavefronts>> = QuickMap::default();
        for a in self.accesses.iter().chain(&self.fetches) {
            let Some(op) = a.op.filter(|_| a.tagged) else {
                continue;
            };
            // Rounds of the banks make no difference.
            let rounds = a.at.range().0.div_euclid(ROUND) * ROUND;
            let key = (op, a.at.plus(-rounds), a.active, a.maybe);
            let found = if a.exact {
                *alike
                    .entry(key)
                    .or_insert_with(|| cost(model, op, a, &mut known))
            } else {
                // A lane has a word of its own at most.
                Some((32, 1))
            };
            let Some((wavefronts, ideal)) = found else {
                continue;
            };
            match all.iter_mut().find(|c| c.access == a.name) {
                Some(c) => {
                    c.wavefronts = c.wavefronts.max(wavefronts);
                    c.ideal = c.ideal.max(ideal);
                    c.exact &= a.exact;
                }
                None => all.push(AccessProof {
                    access: a.name.clone(),
                    op,
                    wavefronts,
                    ideal,
                    exact: a.exact,
                }),
            }
        }
        all
    }

    pub(in crate::prove) fn global_costs(&self) -> Vec<GlobalCost> {
        let mut all: Vec<GlobalCost> = Vec::new();
        let mut known: QuickMap<Footprint, (u32, u32)> = QuickMap::default();
        for a in &self.global {
            let terms = a.address.terms.list();
            let mut rows: Vec<u32> = terms.iter().map(|(_, c)| c.pattern()).collect();
            rows.sort_unstable();
            rows.dedup();
            // Whole sectors make no difference.
            let k = a.address.k;
            let k = k.plus(-(k.range().0.div_euclid(SECTOR) * SECTOR));
            let (sectors, ideal) = *known
                .entry((rows, k, a.bytes, a.facts.active))
                .or_insert_with_key(|(rows, k, bytes, active)| sectors(rows, *k, *bytes, *active));
            match all.iter_mut().find(|c| c.access == a.name) {
                Some(c) => (c.sectors, c.ideal) = (c.sectors.max(sectors), c.ideal.max(ideal)),
                None => all.push(GlobalCost {
                    access: a.name.clone(),
                    sectors,
                    ideal,
                }),
            }
        }
        all
    }
}

/// The key of a global access: the terms that separate rows of threads, the addresses within a row, the bytes of each thread, the active threads.
type Footprint = (Vec<u32>, Num, u32, Mask);

/// Wavefronts, and their ideal.
type Wavefronts = (u32, u32);

/// What warps were found to cost.
type Costs = QuickMap<(Op, [i64; 32]), Option<Wavefronts>>;

/// Bytes of a sector.
const SECTOR: i64 = 32;

/// Bytes of one word in each bank: whole rounds of the banks move no word to another bank.
const ROUND: i64 = 128;

/// The most wavefronts of a warp and their ideal. If it is not exact which lanes take part, only warps count of which all do. The last warp of a block may have
/// fewer than 32 lanes.
fn cost(model: &BankModel, op: Op, access: &Access, known: &mut Costs) -> Option<Wavefronts> {
    let (numbers, active) = (access.at.values(), access.active.list());
    let byte = |t: usize| if active[t] { numbers.at(t) } else { -1 };
    let at: Vec<i64> = (0..active.len()).map(byte).collect();
    let counts = |warp: &&[i64]| {
        warp.iter().all(|&a| a >= 0) || (!access.maybe && warp.iter().any(|&a| a >= 0))
    };
    at.chunks(32)
        .filter(counts)
        .filter_map(|lanes| {
            let active = lanes.iter().filter(|&&a| a >= 0);
            let rounds = active.min().map_or(0, |least| least / ROUND * ROUND);
            let mut warp = [-1; 32];
            for (lane, &a) in warp.iter_mut().zip(lanes).filter(|(_, a)| **a >= 0) {
                *lane = a - rounds;
            }
            *known.entry((op, warp)).or_insert_with(|| {
                let counted = banks::wavefronts(model, op, &warp).ok()?;
                Some((counted.wavefronts, counted.ideal))
            })
        })
        .max()
}

/// The most sectors of a warp. Lanes that differ by numbers alone share sectors; those that differ by a multiple of a symbol, such as lanes in different
/// rows, do not, since rows may be any distance apart.
fn sectors(rows: &[u32], address: Num, bytes: u32, active: Mask) -> (u32, u32) {
    let (active, numbers) = (active.list(), address.values());
    let rows = alike(rows.to_vec(), active.len());
    let mut most = 0;
    let mut ideal = 0;
    for warp in 0..active.len().div_ceil(32) {
        let lanes = 32 * warp..(32 * warp + 32).min(active.len());
        let mut sectors: Vec<(u32, i64)> = Vec::new();
        let mut n = 0;
        for t in lanes.filter(|&t| active[t]) {
            let first = numbers.at(t);
            let last = first.saturating_add(i64::from(bytes) - 1);
            n += bytes;
            let touched = first.div_euclid(SECTOR)..=last.div_euclid(SECTOR);
            sectors.extend(touched.map(|sector| (rows.of[t], sector)));
        }
        sectors.sort_unstable();
        sectors.dedup();
        most = most.max(sectors.len() as u32);
        ideal = ideal.max(n.div_ceil(SECTOR as u32));
    }
    (most, ideal)
}
