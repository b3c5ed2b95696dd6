//! Outputs: the grid writes every element exactly once.
//!
//! Along each mode of an output a block has an interval `[origin, origin + tile)` of elements, where the blocks of a launch have each tile
//! once: the grid cuts the mode into tiles, or has one block for each element, or one block has the whole mode. The block must write the part of
//! its intervals that is inside the output, each element once, and nothing else.
//!
//! A loop from 0 in steps of a tile cuts a mode into tiles as the grid does: each iteration has one. Where a launch has exactly B blocks along an axis, they can share
//! what an iteration has: the step is B tiles, and tile `B·iteration + block` is one block's. Without a loop, block b has tile b of a mode of at most B tiles ([`by_block`]), or the first of them stores all ([`one_block`]).
//!
//! ```text
//! coordinate = base + local      local: a number for each thread and store; together they have each element of the tile once
//! base       = origin            or less, for a tile that is moved back to the end, where the guard leaves out what is below the origin
//! ```
//!
//! Not each block has a tile in each iteration: what an iteration has may end before the block's share of it, clusters are whole, and an order of tiles may be that of a larger matrix.
//! The cases of a base are those of a tile that begins inside. So a block whose tile begins behind the end must store nothing: the facts at each store and box say that the tile begins
//! inside, unless the box begins where the tile does, because the copy cuts it off. A base that threads choose apart is no case.
//!
//! A loop may also deal out tiles of two modes by one number, in an order of its own: then the pairs of tiles that iterations and blocks have are counted ([`deals`]).
//!
//! Where several roles store, each in loops of its own that count the same tiles, an iteration's tile is what all of them store in that iteration ([`roles`]).
//!
//! Stores to the same element by the same thread stand on different sides of branches: for every element that is inside, the conditions of
//! exactly one of them must hold. A base that is chosen by a predicate is looked at case by case.
//!
//! An output that is read as well must be read by who stores it ([`reads`]).

mod apart;
mod boxes;
mod by_block;
mod conditions;
mod deals;
mod one_block;
mod reads;
mod roles;

use std::collections::BTreeMap;
use std::rc::Rc;

use boxes::Boxes;
use conditions::{Conditions, Room};

use crate::ir::{Entry, Extent, Role, Space};
use crate::prove::ProofError;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Each, Mask, Num};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::{Lin, Mono, Sym};
use crate::prove::walk::bulk;
use crate::prove::walk::execute::Trace;
use crate::prove::walk::memory::GlobalAccess;
use crate::quick::QuickMap;

/// Cases of one mode at most.
const CASES: usize = 16;

/// The positive number of which `x` is the product with `of`.
fn times(x: &Lin, of: &Lin) -> Option<i64> {
    if x == of {
        return Some(1);
    }
    let first = |x: &Lin| x.terms.list().first().and_then(|(_, c)| c.one());
    let s = first(x)?.checked_div(first(of)?)?;
    let same = (1..=1 << 20).contains(&s) && !of.is_far() && of.scale(s) == *x;
    same.then_some(s)
}

/// The outputs that are written exactly once; an output of which that cannot be shown is an error.
pub(in crate::prove) fn covered(
    entry: &Entry,
    trace: &mut Trace,
) -> Result<Vec<String>, ProofError> {
    let mut all = Vec::new();
    let global = std::mem::take(&mut trace.global);
    let sent = std::mem::take(&mut trace.boxes);
    for (number, buffer) in entry.buffers.iter().enumerate() {
        let stores: Vec<&GlobalAccess> = global
            .iter()
            .filter(|a| a.buffer == number && a.store)
            .collect();
        let loads: Vec<&GlobalAccess> = global
            .iter()
            .filter(|a| a.buffer == number && !a.store)
            .collect();
        if buffer.role == Role::Partial && buffer.space == Space::Global {
            if sent.iter().any(|b| b.buffer == number) {
                return Err(ProofError::Shared {
                    output: buffer.name.clone(),
                    reason: "copies by TMA write it".to_owned(),
                });
            }
            if stores.is_empty() {
                return Err(ProofError::Coverage {
                    output: buffer.name.clone(),
                    reason: "no element of it is stored".to_owned(),
                });
            }
            let common = roles::in_common_iterations(trace, &stores);
            let stores: Vec<&GlobalAccess> = common.iter().map(|s| &**s).collect();
            let axes = several(entry, trace);
            let distinct = |of: usize| entry.buffers[of].is_distinct();
            let deals = Output::new(entry, trace, number).known_deals(&stores);
            apart::at_most_once(trace, (&loads, &stores), (&axes, &deals), &distinct).map_err(
                |reason| ProofError::Shared {
                    output: buffer.name.clone(),
                    reason,
                },
            )?;
            reads::own(trace, &buffer.name, &loads, &stores)?;
            continue;
        }
        if buffer.role != Role::Output {
            continue;
        }
        let stores = roles::in_common_iterations(trace, &stores);
        let stores: Vec<&GlobalAccess> = stores.iter().map(|s| &**s).collect();
        let of_buffer = sent.iter().filter(|b| b.buffer == number);
        let of_buffer = roles::boxes_in_common_iterations(trace, of_buffer);
        let mut output = Output::new(entry, trace, number);
        Boxes::of(&of_buffer, &stores)
            .and_then(|boxes| output.written_once(&stores, &boxes))
            .map_err(|reason| ProofError::Coverage {
                output: buffer.name.clone(),
                reason,
            })?;
        // A copy stores at some time until the kernel ends, and by one lane what others have. On another path there is none.
        let apart = |load: &GlobalAccess, b: &bulk::SentBox| {
            let said = b.path.iter().chain(&b.stays);
            let mut opposites = said.map(|f| f.not());
            opposites.any(|f| load.path.contains(&f) || load.stays.contains(&f))
        };
        let together = |load: &&&GlobalAccess| of_buffer.iter().any(|b| !apart(load, b));
        if let Some(load) = loads.iter().find(together) {
            return Err(ProofError::Overwritten {
                access: load.name.clone(),
                output: buffer.name.clone(),
                reason: "a store by TMA writes it, which no barrier orders: read an input, or store the fragment by threads (`Kernel::store_fragment`)".to_owned(),
            });
        }
        reads::own(trace, &buffer.name, &loads, &stores)?;
        all.push(buffer.name.clone());
    }
    (trace.global, trace.boxes) = (global, sent);
    Ok(all)
}

/// Axes of the grid along which a launch may have several blocks.
fn several(entry: &Entry, trace: &Trace) -> Vec<Sym> {
    let several = |axis: &usize| entry.grid_limit[*axis] > 1;
    (0..3).filter(several).map(|a| trace.blocks[a]).collect()
}

/// The elements that a block has along a mode.
#[derive(Clone, Debug)]
enum Cut {
    /// All of them, so many.
    Whole(i64),
    /// The one with the block's index along an axis.
    Block(Sym),
    /// A tile: the first element, elements of a tile, and the elements of the output.
    Tile(Lin, i64, Lin),
}

/// One case of a mode's base.
#[derive(Clone, Debug)]
struct Case {
    /// What chosen values are in this case.
    chosen: Vec<(Sym, Lin)>,
    /// The statements that make it this case.
    when: Vec<Rc<Formula>>,
    /// The coordinate of local element 0.
    base: Lin,
    /// The base is below the block's first element.
    moved: bool,
}

/// The stores of one element of each thread: by their numbers, each with the element of its vector.
type Group = Vec<(usize, i64)>;

/// The stores of one element of each of some threads, and where in the tile that is.
struct Placed {
    stores: Group,
    place: Vec<Num>,
    /// Which threads these are, by the number of their class.
    class: usize,
}

struct Output<'a> {
    trace: &'a mut Trace,
    /// Elements of the output along each mode; none where there are as many as blocks.
    extents: Vec<Option<Lin>>,
    blocks: Vec<Option<Sym>>,
    /// Axes along which a launch may have several blocks, and iterations.
    axes: Vec<Sym>,
    /// The iterations of the loops in which it is stored.
    iterations: Vec<Sym>,
    /// The indices of blocks that store it alone.
    alone: Vec<(Sym, Lin)>,
}

impl<'a> Output<'a> {
    fn new(entry: &Entry, trace: &'a mut Trace, number: usize) -> Self {
        let modes = || entry.buffers[number].extents.iter().enumerate();
        let blocks = modes().map(|(_, extent)| match extent {
            Extent::Blocks(axis) => Some(trace.blocks[*axis as usize]),
            _ => None,
        });
        let blocks = blocks.collect();
        let extents = modes().map(|(mode, _)| trace.used.get(&(number, mode)).copied());
        let extents = extents.collect();
        let axes = several(entry, trace);
        Self {
            trace,
            extents,
            blocks,
            axes,
            iterations: Vec::new(),
            alone: Vec::new(),
        }
    }

    fn facts(&self, all: Vec<Rc<Formula>>) -> Facts {
        Facts {
            all,
            active: Mask::all(self.trace.threads),
        }
    }

    fn written_once(&mut self, stores: &[&GlobalAccess], boxes: &Boxes<'_>) -> Result<(), String> {
        let first = stores.first().map(|s| (&s.iterations[..], &s.coordinates));
        let Some((iterations, first)) = first.or_else(|| boxes.first()) else {
            return Err("nothing is stored".to_owned());
        };
        let walked = |iteration: &Sym| self.trace.walks.iter().any(|w| w.iteration == *iteration);
        if stores.iter().any(|s| s.iterations != iterations) || !iterations.iter().all(walked) {
            return Err(
                "it is stored in a loop that does not count its tiles from 0 to its extent"
                    .to_owned(),
            );
        }
        // Iterations differ in what they have, as blocks do.
        self.axes.extend(iterations);
        self.iterations = iterations.to_vec();
        let rank = first.len();
        let mut cuts = Vec::new();
        let mut cases = Vec::new();
        for mode in 0..rank {
            let least = |s: &&GlobalAccess| s.coordinates[mode].k.range().0;
            let at = &first[mode];
            let of_boxes = boxes.along(mode).map(|(at, _)| at.k.range().0);
            let least = stores.iter().map(least).chain(of_boxes).min().unwrap_or(0);
            let at = Lin {
                terms: at.terms,
                k: Num::same(least),
            };
            let end = Self::end_of(mode, stores).max(boxes.end(mode));
            let (cut, of) = self.cut((mode, end), &at, (stores, boxes))?;
            if of.is_empty() {
                return Err(format!(
                    "mode {mode} has no case in which something is stored"
                ));
            }
            cuts.push(cut);
            cases.push(of);
        }
        self.every_block_apart(&cuts, (stores, boxes))?;
        self.empty_without_blocks()?;
        // Each combination of cases, as the digits of a number.
        let mut at = vec![0; rank];
        let mut before: Option<(Vec<Vec<Num>>, Vec<Placed>)> = None;
        loop {
            let here: Vec<&Case> = (0..rank).map(|mode| &cases[mode][at[mode]]).collect();
            let locals = self.locals(stores, &here)?;
            // Cases differ in where a tile begins, hardly ever in what is where in it.
            let known = before.take().filter(|(known, _)| *known == locals);
            let groups = if let Some((_, groups)) = known {
                groups
            } else if stores.is_empty() {
                // What holds for the tile's first element holds for those behind it.
                vec![Placed {
                    stores: Group::new(),
                    place: vec![Num::ZERO; rank],
                    class: 0,
                }]
            } else {
                let (classes, groups) = grouped(stores, &locals);
                each_once(&cuts, &classes, &groups)?;
                groups
            };
            self.boxed_once(boxes, &cuts, &here)?;
            self.stored_once(&cuts, &here, (stores, boxes), &groups)?;
            before = Some((locals, groups));
            let Some(mode) = (0..rank).find(|&mode| at[mode] + 1 < cases[mode].len()) else {
                return Ok(());
            };
            at[mode] += 1;
            at[..mode].fill(0);
        }
    }

    /// What a block has along a mode, and the cases of where its stores begin: at the coordinate of the first of them.
    fn cut(
        &mut self,
        (mode, tile): (usize, i64),
        first: &Lin,
        (stores, boxes): (&[&GlobalAccess], &Boxes<'_>),
    ) -> Result<(Cut, Vec<Case>), String> {
        let only = |base: Lin| Case {
            chosen: Vec::new(),
            when: Vec::new(),
            base,
            moved: false,
        };
        if let Some(block) = self.blocks[mode] {
            return Ok((Cut::Block(block), vec![only(Lin::symbol(block))]));
        }
        let Some(extent) = self.extents[mode] else {
            return Err(format!("mode {mode} has no extent"));
        };
        if let (true, Some(n)) = (first.terms.is_empty(), extent.as_constant()) {
            return Ok((Cut::Whole(n), vec![only(Lin::constant(0))]));
        }
        // One tile that has all of the mode.
        if first.terms.is_empty() && self.trace.symbols.range(&extent).1 <= tile.into() {
            let origin = Lin::constant(0);
            return Ok((Cut::Tile(origin, tile, extent), vec![only(origin)]));
        }
        let walks = self.trace.walks.iter();
        let walks = walks.map(|w| (w.iteration, w.covers, w.tile));
        // A number of iterations is that of an extent which is a number, cut into what is in an iteration.
        let by_number = self.trace.walks.iter().filter_map(|w| {
            let (extent, iterations) = (extent.as_constant()?, w.covers.as_constant()?);
            let mut terms = first.terms.list().iter().copied().collect::<Vec<_>>();
            terms.retain(|(m, _)| *m == Mono::of(w.iteration));
            let each = terms.first()?.1.one().filter(|each| *each > 0)?;
            let cuts = extent > 0 && (extent - 1) / each + 1 == iterations && w.tile == 1;
            cuts.then(|| (w.iteration, Lin::constant(extent), each))
        });
        let walks = walks
            .chain(by_number)
            .flat_map(|(iteration, covers, of_iteration)| {
                // The blocks along an axis share the tile of an iteration.
                let shared = self.trace.whole_axes.iter();
                let shared = shared.filter(|(_, count)| of_iteration % count == 0);
                let shared = shared.map(|&(block, count)| {
                    let index = Lin::symbol(iteration).scale(count).add(&Lin::symbol(block));
                    let tile = of_iteration / count;
                    (index.scale(tile), covers, tile, true)
                });
                let own = (
                    Lin::symbol(iteration).scale(of_iteration),
                    covers,
                    of_iteration,
                    false,
                );
                shared.chain([own]).collect::<Vec<_>>()
            });
        let of_grid = self.trace.tilings.iter();
        // Blocks that make a cluster whole have tiles behind the last.
        let clusters = self.trace.ranks.is_some();
        let of_grid =
            of_grid.map(|&(index, covers, tile)| (index.scale(tile), covers, tile, clusters));
        let dealt = self
            .trace
            .deals
            .iter()
            .filter(|d| d.iterations == self.iterations && mode < 2);
        // Tiles are counted up to the largest sizes.
        let dealt = dealt.map(|d| {
            let counted = d.order.is_none();
            (d.origin[mode], d.covers[mode], d.tiles[mode], counted)
        });
        // Of what has s elements for each that the grid counts, there are as many tiles.
        let of_grid = of_grid.map(|(origin, covers, tile, behind)| {
            let s = times(&extent, &covers).unwrap_or(1);
            (
                origin.scale(s),
                covers.scale(s),
                tile.saturating_mul(s),
                behind,
            )
        });
        let mut tilings: Vec<_> = of_grid.chain(walks).chain(dealt).collect();
        let by_block = self.by_block(first, &extent);
        tilings.extend(by_block.map(|(origin, covers, tile)| (origin, covers, tile, true)));
        // Of one block and one iteration there is another tiling that begins where the tile does.
        tilings.sort_by_key(|t| t.0 != *first);
        for (origin, covers, tile, behind) in tilings.iter().filter(|t| t.1 == extent) {
            // The tile may be behind the end, as where what an iteration has ends before the block's share of it. It must not be stored then.
            let inside = covers.sub(origin).plus(-1);
            if *behind && !self.stored_where(&inside, stores, boxes, first == origin) {
                continue;
            }
            if let Some(cases) = self.bases(first, origin, covers, *tile) {
                return Ok((Cut::Tile(*origin, *tile, *covers), cases));
            }
        }
        Err(format!("mode {mode} is not cut into tiles by the grid"))
    }

    /// A value is at least 0 wherever something is stored. The copy itself cuts off a box that begins where its tile does.
    fn stored_where(
        &mut self,
        x: &Lin,
        stores: &[&GlobalAccess],
        boxes: &Boxes<'_>,
        at_origin: bool,
    ) -> bool {
        let boxed = boxes.when().filter(|_| !at_origin);
        let boxed = boxed.map(|when| self.facts(when));
        let facts = stores.iter().map(|s| &s.facts).chain(&boxed);
        let symbols = &mut self.trace.symbols;
        facts.into_iter().all(|f| symbols.at_least_zero(x, f))
    }

    /// Behind the last element of a tile that begins at 0.
    fn end_of(mode: usize, stores: &[&GlobalAccess]) -> i64 {
        let last = |s: &&GlobalAccess| {
            let at = &s.coordinates[mode];
            let more = if mode + 1 == s.coordinates.len() {
                s.width
            } else {
                1
            };
            at.k.range().1 + more
        };
        stores.iter().map(last).max().unwrap_or(0)
    }

    /// The cases of where the stores of a tile begin; none if in one of them they may miss an element of the tile that is inside.
    fn bases(&mut self, first: &Lin, origin: &Lin, covers: &Lin, tile: i64) -> Option<Vec<Case>> {
        let threads = self.trace.threads;
        // The block has a tile, and the launch keeps to what it does.
        let mut when = self.trace.promises.clone();
        when.push(Rc::new(Formula::ge(covers.sub(origin).plus(-1))));
        let mut open = vec![(*first, Vec::new(), when)];
        let mut cases = Vec::new();
        while let Some((at, chosen, when)) = open.pop() {
            if cases.len() + open.len() > CASES {
                return None;
            }
            let symbols = &mut self.trace.symbols;
            // What begins where the tile does needs no cases.
            let mut in_it = at.symbols().take_while(|_| at != *origin);
            let chosen_by = in_it.find_map(|s| match &symbols.info(s).definition {
                Definition::Ite(p, a, b) => Some((s, Rc::clone(p), *a, *b)),
                _ => None,
            });
            let Some((s, p, a, b)) = chosen_by else {
                let moved = at != *origin;
                let facts = self.facts(when.clone());
                let end = at.plus(tile).sub(covers);
                let symbols = &mut self.trace.symbols;
                let reaches = !moved
                    || symbols.at_least_zero(&origin.sub(&at), &facts)
                        && symbols.at_least_zero(&end, &facts);
                if !reaches {
                    return None;
                }
                cases.push(Case {
                    chosen,
                    when,
                    base: at,
                    moved,
                });
                continue;
            };
            // Of what threads decide apart, both sides may be at once.
            let mut apart = !p.is_uniform(&self.trace.symbols);
            for (p, value) in [(p.not(), b), (p, a)] {
                let facts = self.facts(when.clone()).with(&p);
                let symbols = &mut self.trace.symbols;
                if *p == Formula::False || symbols.contradicts(&facts) {
                    apart = false;
                    continue;
                }
                let at = symbols.replace(&at, s, &value, threads)?;
                let mut chosen = chosen.clone();
                chosen.push((s, value));
                open.push((at, chosen, facts.all));
            }
            if apart {
                return None;
            }
        }
        Some(cases)
    }

    /// A tiling's index is made of the block's index along an axis: itself, or what is left behind it. Blocks that make a cluster whole would have what is left, 0, too.
    fn counts_blocks(&self, index: &Lin, axis: Sym) -> bool {
        let clusters = self.trace.ranks.is_some_and(|ranks| ranks.block == axis);
        index.symbols().any(|s| {
            s == axis
                || match &self.trace.symbols.info(s).definition {
                    Definition::Max(a, _) => !clusters && a.mentions(axis),
                    _ => false,
                }
        })
    }

    /// Blocks that differ along an axis, and iterations of a loop, differ in what they have, along one mode: along two modes they would have tiles of a diagonal.
    fn every_block_apart(
        &mut self,
        cuts: &[Cut],
        (stores, boxes): (&[&GlobalAccess], &Boxes<'_>),
    ) -> Result<(), String> {
        if self.dealt_once(cuts)? {
            return Ok(());
        }
        for axis in self.axes.clone() {
            let differs = |cut: &&Cut| match cut {
                Cut::Whole(_) => false,
                Cut::Block(block) => *block == axis,
                Cut::Tile(origin, ..) => self.counts_blocks(origin, axis),
            };
            match cuts.iter().filter(differs).count() {
                0 if self.first_block_alone(axis, stores, boxes) => {}
                0 => {
                    return Err(
                        "blocks along another axis, or iterations of a loop, write the same"
                            .to_owned(),
                    );
                }
                1 => {}
                _ => {
                    return Err(
                        "one axis of the grid, or one loop, counts the tiles of two modes: those beside the diagonal are missed"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(())
    }

    /// A grid of at most one block along an axis has none where what it tiles is empty: then the output must be empty as well. Where an axis may have
    /// several blocks, a mode of the output is what it tiles.
    fn empty_without_blocks(&mut self) -> Result<(), String> {
        let symbols = &mut self.trace.symbols;
        let tilings = self.trace.tilings.iter();
        let tilings = tilings.filter(|(index, ..)| symbols.range(index).1 <= 0);
        let tiled: Vec<Lin> = tilings.map(|&(_, covers, _)| covers).collect();
        for tiled in tiled {
            if self.trace.symbols.range(&tiled).0 > 0 {
                continue;
            }
            let mut all = self.trace.promises.clone();
            all.push(Rc::new(Formula::ge(tiled.scale(-1))));
            let facts = self.facts(all);
            let extents = self.extents.iter().flatten();
            let symbols = &mut self.trace.symbols;
            if !extents
                .map(|extent| extent.scale(-1))
                .any(|none| symbols.at_least_zero(&none, &facts))
            {
                return Err(
                    "the grid has no block where the size that it tiles is 0, and the output has elements then: \
                     tile an extent of the output, or a constant"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Where in the tile each store stores, mode by mode.
    fn locals(
        &mut self,
        stores: &[&GlobalAccess],
        here: &[&Case],
    ) -> Result<Vec<Vec<Num>>, String> {
        let mut all = Vec::new();
        for s in stores {
            let mut local = Vec::new();
            for (mode, (coordinate, case)) in s.coordinates.iter().zip(here).enumerate() {
                local.push(self.local(coordinate, case, mode)?);
            }
            all.push(local);
        }
        Ok(all)
    }

    /// Where in the tile a coordinate is.
    fn local(&mut self, coordinate: &Lin, case: &Case, mode: usize) -> Result<Num, String> {
        let threads = self.trace.threads;
        let mut at = Some(*coordinate);
        for (s, value) in &case.chosen {
            at = at.and_then(|x| self.trace.symbols.replace(&x, *s, value, threads));
        }
        let number = at.and_then(|at| at.sub(&case.base).as_number());
        number.ok_or_else(|| format!("stores differ by more than numbers along mode {mode}"))
    }

    /// Of the stores to an element that is inside, the conditions of exactly one hold; what a moved tile has in common with another block's is
    /// left out.
    fn stored_once(
        &mut self,
        cuts: &[Cut],
        here: &[&Case],
        (stores, boxes): (&[&GlobalAccess], &Boxes<'_>),
        groups: &[Placed],
    ) -> Result<(), String> {
        let mut when: Vec<Rc<Formula>> = Vec::new();
        let mut origins = Vec::new();
        let mut chosen = self.alone.clone();
        for (cut, case) in cuts.iter().zip(here) {
            when.extend(case.when.iter().cloned());
            chosen.extend(case.chosen.iter().copied());
            if let (Cut::Tile(origin, ..), true) = (cut, case.moved) {
                origins.push(*origin);
            }
        }
        // Values that are multiples of a power of two in this case.
        let symbols = &mut self.trace.symbols;
        let aligned: Vec<_> = when
            .iter()
            .filter_map(|f| symbols.low_bits_zero(f))
            .collect();
        let aligned = aligned
            .into_iter()
            .map(|(s, bits)| (s, symbols.multiple(s, bits)));
        chosen.extend(aligned);
        let threads = self.trace.threads;
        let mut in_units = |x: &Lin| {
            let mut x = *x;
            for (s, by) in &chosen {
                x = self.trace.symbols.replace(&x, *s, by, threads).unwrap_or(x);
            }
            x
        };
        let ends: Vec<_> = cuts
            .iter()
            .zip(here)
            .map(|(cut, case)| match cut {
                Cut::Tile(origin, _, covers) => {
                    let base = in_units(&case.base);
                    Some((
                        in_units(covers).sub(&base).plus(-1),
                        base.sub(&in_units(origin)),
                        case.moved,
                    ))
                }
                _ => None,
            })
            .collect();
        if !self.trace.assumptions.is_empty() {
            when.extend(self.trace.promises.iter().cloned());
        }
        let facts = self.facts(when);
        let sizes = elements_of(cuts);
        let farthest = ends.iter().zip(sizes).filter_map(|(ends, tile)| {
            let (above, below, _) = ends.as_ref()?;
            Some([*above, below.plus(tile - 1), above.add(below)])
        });
        let farthest = farthest.flatten().collect();
        let mut conditions = Conditions::new(self.trace, chosen, origins, facts, farthest);
        let boxed = boxes.when();
        let mut known: Vec<QuickMap<Num, Rc<Room>>> = vec![QuickMap::default(); ends.len()];
        for Placed {
            stores: group,
            place,
            ..
        } in groups
        {
            // Elements share rows and columns.
            let mut rooms: Vec<Rc<Room>> = Vec::new();
            for ((ends, local), known) in ends.iter().zip(place).zip(&mut known) {
                let Some((above, below, moved)) = ends else {
                    continue;
                };
                let room = known.entry(*local).or_insert_with(|| {
                    let local = Lin::number(*local);
                    let distance = below.add(&local);
                    let (above, below) = (above.sub(&local).tightened(), distance.tightened());
                    let all = above.add(&below);
                    Rc::new(Room::new([above, below, all], distance, *moved))
                });
                rooms.push(Rc::clone(room));
            }
            let stores: Vec<&GlobalAccess> = group.iter().map(|&(i, _)| stores[i]).collect();
            conditions.exactly_one(&stores, boxed.as_deref(), &rooms)?;
        }
        Ok(())
    }
}

/// The stores of each element that threads have, and where that is: those with the same place for every thread. Threads are apart of which some have stores
/// that others do not have: roles, or the two sides of a branch on the thread's index. These classes of threads come with them.
fn grouped(stores: &[&GlobalAccess], locals: &[Vec<Num>]) -> (Vec<Vec<usize>>, Vec<Placed>) {
    let mut masks: Vec<Mask> = Vec::new();
    for s in stores {
        if !masks.contains(&s.facts.active) {
            masks.push(s.facts.active);
        }
    }
    let lists: Vec<_> = masks.iter().map(|m| m.list()).collect();
    // Of each class the masks that its threads are in, and the threads.
    let mut classes: BTreeMap<Vec<bool>, Vec<usize>> = BTreeMap::new();
    for thread in 0..lists.first().map_or(0, |list| list.len()) {
        let within = lists.iter().map(|list| list[thread]).collect();
        classes.entry(within).or_default().push(thread);
    }
    let mut numbers: QuickMap<(Vec<Num>, usize), usize> = QuickMap::default();
    let mut all: Vec<Placed> = Vec::new();
    for (i, (s, local)) in stores.iter().zip(locals).enumerate() {
        let mask = masks.iter().position(|m| *m == s.facts.active);
        let own = |(_, within): &(usize, &Vec<bool>)| mask.is_some_and(|mask| within[mask]);
        for v in 0..s.width {
            let mut place = local.clone();
            if let Some(last) = place.last_mut() {
                *last = last.plus(v);
            }
            for (class, _) in classes.keys().enumerate().filter(own) {
                let n = *numbers.entry((place.clone(), class)).or_insert(all.len());
                if n == all.len() {
                    all.push(Placed {
                        stores: Vec::new(),
                        place: place.clone(),
                        class,
                    });
                }
                all[n].stores.push((i, v));
            }
        }
    }
    (classes.into_values().collect(), all)
}

/// How many elements a block has along each mode.
fn elements_of(cuts: &[Cut]) -> Vec<i64> {
    let along = cuts.iter().map(|cut| match cut {
        Cut::Whole(n) | Cut::Tile(_, n, _) => *n,
        Cut::Block(_) => 1,
    });
    along.collect()
}

/// Together, threads have each element of the tile once: by the stores of one group, of which the conditions of exactly one are to hold. A thread that has an element
/// by another map of threads to elements has it twice.
fn each_once(cuts: &[Cut], classes: &[Vec<usize>], groups: &[Placed]) -> Result<(), String> {
    let sizes = elements_of(cuts);
    let size = sizes.iter().fold(1, |all: i64, &n| all.saturating_mul(n));
    // Of more elements than are stored, one of the first is not: no list of all of a large matrix is made.
    let stored: usize = groups.iter().map(|g| classes[g.class].len()).sum();
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut owners: Vec<u32> = vec![u32::MAX; size.min(stored + 1)];
    for group in groups {
        let place: Vec<Each> = group.place.iter().map(|k| k.values()).collect();
        for &thread in &classes[group.class] {
            let mut at = 0;
            for (mode, (&n, k)) in sizes.iter().zip(&place).enumerate() {
                let k = k.at(thread);
                if k < 0 || k >= n {
                    return Err(format!(
                        "thread {thread} stores coordinate {k} of a tile of {n} along mode {mode}"
                    ));
                }
                at = at * i128::from(n) + i128::from(k);
            }
            let Some(owner) = usize::try_from(at).ok().and_then(|at| owners.get_mut(at)) else {
                continue;
            };
            let owner = std::mem::replace(owner, thread as u32);
            if owner == thread as u32 {
                return Err(format!(
                    "thread {thread} stores element {at} of the tile twice, by two maps of threads to elements"
                ));
            }
            if owner != u32::MAX {
                return Err(format!(
                    "threads {owner} and {thread} both store element {at} of the tile"
                ));
            }
        }
    }
    match owners.iter().position(|&owner| owner == u32::MAX) {
        Some(at) => Err(format!("no thread stores element {at} of the tile")),
        None => Ok(()),
    }
}
