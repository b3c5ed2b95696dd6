//! The conditions of stores to one element: where the element is inside the output, exactly one of them holds.
//!
//! What says only that the element is inside is true there. What is left are the branches between the ways to store it: each of them taken or not,
//! one store must be left, and nothing that it asks for besides.

use std::cell::RefCell;
use std::rc::Rc;

use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::numbers::{Mask, Num, Terms};
use crate::prove::algebra::solve::Facts;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::Trace;
use crate::prove::walk::memory::GlobalAccess;
use crate::quick::QuickMap;

/// A symbol that is a multiple of two to the power of a number.
type Multiple = (Sym, u32);

/// An element's distances to the ends of what its block has along a mode, for each thread: both at least 0 where the element is inside.
pub(super) struct Room {
    /// `extent − 1 − coordinate` and `coordinate − origin`, rounded down to what their symbols are multiples of, and the sum of the two.
    ends: [Lin; 3],
    /// What is less than 0 where those are not: `−1 − end`.
    beyond: [Lin; 3],
    /// `coordinate − origin`
    distance: Lin,
    /// The tile begins below its origin: the stores must leave that part out.
    moved: bool,
    /// The same where an extent is a multiple of a power of two, for those that were asked about.
    tightened: RefCell<Vec<(Multiple, Rc<Room>)>>,
}

impl Room {
    pub(super) fn new(ends: [Lin; 3], distance: Lin, moved: bool) -> Self {
        Self {
            ends,
            beyond: ends.each_ref().map(|end| end.scale(-1).plus(-1)),
            distance,
            moved,
            tightened: RefCell::default(),
        }
    }

    /// The same where an extent is a multiple of `2^bits`, as the rest of the distance to its end is.
    fn where_multiple(&self, multiple: Multiple) -> Rc<Self> {
        let mut known = self.tightened.borrow_mut();
        let found = known.iter().find(|(of, _)| *of == multiple);
        if let Some((_, room)) = found {
            return Rc::clone(room);
        }
        let [above, below, all] = self.ends;
        let above = above.tightened_with(multiple.0, multiple.1);
        let room = Rc::new(Self {
            ends: [above, below, all],
            tightened: RefCell::default(),
            ..*self
        });
        known.push((multiple, Rc::clone(&room)));
        room
    }
}

/// A statement with the values of one case substituted.
struct Here {
    /// The original, kept alive because its address is the key.
    _of: Rc<Formula>,
    is: Rc<Formula>,
    conjuncts: Vec<Rc<Formula>>,
    /// The symbols that it states to be multiples of a power of two.
    multiples: Vec<Multiple>,
}

/// The conditions of stores in one case.
pub(super) struct Conditions<'a> {
    trace: &'a mut Trace,
    /// What chosen values are in this case.
    chosen: Vec<(Sym, Lin)>,
    /// The first elements of tiles that are moved back.
    origins: Vec<Lin>,
    facts: Facts,
    /// Upper bounds of the distances from an element of the tile to the ends, along each mode.
    farthest: Vec<Lin>,
    /// Statements, by their addresses.
    known: QuickMap<*const Formula, Rc<Here>>,
    /// Statements that hold, or do not, by the ranges of their symbols alone, for the threads that are asked about.
    bounded: QuickMap<(Lin, Mask), Option<bool>>,
    always: Rc<Formula>,
    never: Rc<Formula>,
    /// What values are in this case, by their terms.
    values: QuickMap<Terms, Lin>,
    /// What low bits are in this case.
    low: QuickMap<Sym, Option<Lin>>,
}

impl<'a> Conditions<'a> {
    pub(super) fn new(
        trace: &'a mut Trace,
        chosen: Vec<(Sym, Lin)>,
        origins: Vec<Lin>,
        facts: Facts,
        farthest: Vec<Lin>,
    ) -> Self {
        Self {
            trace,
            chosen,
            origins,
            facts,
            farthest,
            known: QuickMap::default(),
            bounded: QuickMap::default(),
            always: Rc::new(Formula::True),
            never: Rc::new(Formula::False),
            values: QuickMap::default(),
            low: QuickMap::default(),
        }
    }

    /// Exactly one of the stores, and the box that has the element if these statements hold, is made where the element is inside, and none where it is another block's.
    pub(super) fn exactly_one(
        &mut self,
        stores: &[&GlobalAccess],
        boxed: Option<&[Rc<Formula>]>,
        rooms: &[Rc<Room>],
    ) -> Result<(), String> {
        let mut leaves = Vec::new();
        let threads = Mask::all(self.trace.threads);
        let active = stores.first().map_or(threads, |s| s.facts.active);
        if let Some(when) = boxed {
            let all: Vec<Rc<Here>> = when.iter().map(|f| self.in_this_case(f)).collect();
            leaves.extend(self.left(&all, rooms, active));
        }
        for s in stores {
            let all = s.path.iter().chain(&s.stays).chain([&s.guard]);
            let all: Vec<Rc<Here>> = all.map(|f| self.in_this_case(f)).collect();
            for room in rooms.iter().filter(|room| room.moved) {
                let mut each = all.iter().flat_map(|here| &here.conjuncts);
                if !each.any(
                    |f| matches!(&**f, Formula::Ge(x) if above(&room.distance, x, s.facts.active)),
                ) {
                    return Err(
                        "a tile that is moved back stores what another block has".to_owned()
                    );
                }
            }
            // Where the statements say that an extent has whole vectors, an element that is inside has its whole vector inside.
            let mut rooms = rooms.to_vec();
            for multiple in all.iter().flat_map(|here| &here.multiples) {
                for room in &mut rooms {
                    *room = room.where_multiple(*multiple);
                }
            }
            leaves.extend(self.left(&all, &rooms, s.facts.active));
        }
        one_of(&leaves)
    }

    /// What statements ask for beside that the element is inside; none if they do not hold there.
    fn left(
        &mut self,
        all: &[Rc<Here>],
        rooms: &[Rc<Room>],
        active: Mask,
    ) -> Option<Vec<Rc<Formula>>> {
        let mut left = Vec::new();
        for here in all {
            let f = self.where_inside(&here.is, rooms, active);
            match *f {
                Formula::True => {}
                Formula::False => return None,
                _ => left.push(f),
            }
        }
        Some(left)
    }

    /// The symbols that a statement says to be multiples of a power of two: their low bits are 0.
    fn multiples(&self, conjuncts: &[Rc<Formula>]) -> Vec<Multiple> {
        let single = |x: &Lin| {
            let s = x.symbols().next()?;
            (*x == Lin::symbol(s)).then_some(s)
        };
        let of = |f: &Rc<Formula>| {
            let Formula::Ge(x) = &**f else {
                return None;
            };
            let low = single(&x.scale(-1))?;
            match &self.trace.symbols.info(low).definition {
                Definition::Low(of, bits) => Some((single(of)?, *bits)),
                _ => None,
            }
        };
        conjuncts.iter().filter_map(of).collect()
    }

    /// A statement in this case.
    fn in_this_case(&mut self, f: &Rc<Formula>) -> Rc<Here> {
        if let Some(known) = self.known.get(&Rc::as_ptr(f)) {
            return Rc::clone(known);
        }
        let g = self.replaced(f);
        let conjuncts = g.conjuncts();
        let here = Rc::new(Here {
            multiples: self.multiples(&conjuncts),
            conjuncts,
            _of: Rc::clone(f),
            is: g,
        });
        self.known.insert(Rc::as_ptr(f), Rc::clone(&here));
        here
    }

    /// A statement with its values replaced by those of this case.
    fn replaced(&mut self, f: &Rc<Formula>) -> Rc<Formula> {
        match &**f {
            Formula::Ge(x) => {
                let by = self.value(x);
                if by == *x {
                    Rc::clone(f)
                } else {
                    Rc::new(Formula::ge(by))
                }
            }
            Formula::And(a, b) => Formula::and(&self.replaced(a), &self.replaced(b)),
            Formula::Or(a, b) => Formula::or(&self.replaced(a), &self.replaced(b)),
            _ => Rc::clone(f),
        }
    }

    /// A value in this case.
    fn value(&mut self, x: &Lin) -> Lin {
        // Elements share terms and differ in the constant.
        let number = Lin::number(x.k);
        if let Some(known) = self.values.get(&x.terms) {
            return known.add(&number);
        }
        let threads = self.trace.threads;
        let mut value = Lin {
            terms: x.terms,
            k: Num::ZERO,
        };
        for (s, by) in &self.chosen {
            let symbols = &mut self.trace.symbols;
            value = symbols.replace(&value, *s, by, threads).unwrap_or(value);
        }
        for (s, of, bits) in self.low_bits(&value) {
            let known = self.low.get(&s).copied();
            let low = known.unwrap_or_else(|| self.above_origin(&of, bits));
            self.low.insert(s, low);
            if let Some(low) = low {
                let symbols = &mut self.trace.symbols;
                value = symbols.replace(&value, s, &low, threads).unwrap_or(value);
            }
        }
        self.values.insert(x.terms, value);
        value.add(&number)
    }

    /// The symbols in a value that are low bits of another.
    fn low_bits(&self, x: &Lin) -> Vec<(Sym, Lin, u32)> {
        let symbols = x.symbols();
        let low = symbols.filter_map(|s| match &self.trace.symbols.info(s).definition {
            Definition::Low(of, bits) => Some((s, *of, *bits)),
            _ => None,
        });
        low.collect()
    }

    /// The low bits of a value in a tile: how far it is above the tile's first element, which is a multiple of the tile.
    fn above_origin(&mut self, of: &Lin, bits: u32) -> Option<Lin> {
        for origin in self.origins.clone() {
            if origin.symbol_alignment() < bits || !origin.k.is_zero() {
                continue;
            }
            let above = of.sub(&origin);
            let end = above.scale(-1).plus((1 << bits) - 1);
            let symbols = &mut self.trace.symbols;
            if symbols.at_least_zero(&above, &self.facts)
                && symbols.at_least_zero(&end, &self.facts)
            {
                return Some(above);
            }
        }
        None
    }

    /// Whether a value is at least 0, by the ranges of its symbols and the distances of the tile's elements to the ends.
    fn bounded(&mut self, x: &Lin, active: Mask) -> Option<bool> {
        if let Some(known) = self.bounded.get(&(*x, active)) {
            return *known;
        }
        let symbols = &mut self.trace.symbols;
        let answer = if symbols.never_negative(x, active) {
            Some(true)
        } else {
            let opposite = x.scale(-1).plus(-1);
            symbols.never_negative(&opposite, active).then_some(false)
        };
        // What the author states may decide it, too.
        let answer = answer.or_else(|| {
            let stated = !self.trace.assumptions.is_empty();
            let opposite = x.scale(-1).plus(-1);
            let symbols = &mut self.trace.symbols;
            if stated && symbols.at_least_zero(x, &self.facts) {
                return Some(true);
            }
            (stated && symbols.at_least_zero(&opposite, &self.facts)).then_some(false)
        });
        let answer = answer.or_else(|| self.beyond_an_end(x, active).then_some(true));
        self.bounded.insert((*x, active), answer);
        answer
    }

    /// Whether a value is at least the distance of any element to some end: a cluster's blocks stay in the loop while its first block has a tile.
    fn beyond_an_end(&mut self, x: &Lin, active: Mask) -> bool {
        let symbols = &mut self.trace.symbols;
        let mut farthest = self.farthest.iter();
        farthest.any(|y| y.terms != x.terms && symbols.never_negative(&x.sub(y), active))
    }

    /// A statement where the element is inside: what follows from that is true.
    fn where_inside(&mut self, f: &Rc<Formula>, rooms: &[Rc<Room>], active: Mask) -> Rc<Formula> {
        match &**f {
            Formula::Ge(x) => {
                let inside = |room: &Rc<Room>| room.ends.iter().any(|y| above(x, y, active));
                let outside = |room: &Rc<Room>| room.beyond.iter().any(|y| above(y, x, active));
                let known = if rooms.iter().any(inside) {
                    Some(true)
                } else {
                    match self.bounded(x, active) {
                        None if rooms.iter().any(outside) => Some(false),
                        known => known,
                    }
                };
                match known {
                    Some(true) => Rc::clone(&self.always),
                    Some(false) => Rc::clone(&self.never),
                    None => Rc::clone(f),
                }
            }
            Formula::And(a, b) => {
                let a = self.where_inside(a, rooms, active);
                Formula::and(&a, &self.where_inside(b, rooms, active))
            }
            Formula::Or(a, b) => {
                let a = self.where_inside(a, rooms, active);
                Formula::or(&a, &self.where_inside(b, rooms, active))
            }
            _ => Rc::clone(f),
        }
    }
}

/// `x` is at least `y` because they differ by numbers alone, for the threads of a mask.
fn above(x: &Lin, y: &Lin, active: Mask) -> bool {
    x.terms == y.terms && x.k.is_at_least(y.k, active)
}

/// Exactly one of the lists holds, whatever its statements are: each statement is taken to hold, and not to.
fn one_of(leaves: &[Vec<Rc<Formula>>]) -> Result<(), String> {
    let first = match leaves {
        [] => return Err("on some path nothing is stored".to_owned()),
        [only] if only.is_empty() => return Ok(()),
        _ => leaves.iter().find_map(|leaf| leaf.first()),
    };
    let Some(first) = first else {
        return Err("on some path an element is stored twice".to_owned());
    };
    let not = first.not();
    let side = |holds: &Rc<Formula>, fails: &Rc<Formula>| -> Vec<Vec<Rc<Formula>>> {
        let possible = leaves.iter().filter(|leaf| !leaf.contains(fails));
        let rest = |leaf: &Vec<Rc<Formula>>| leaf.iter().filter(|f| *f != holds).cloned().collect();
        possible.map(rest).collect()
    };
    let bare = |e: String| match leaves {
        [_] => "a store is guarded by more than the output's bounds".to_owned(),
        _ => e,
    };
    one_of(&side(first, &not)).map_err(bare)?;
    one_of(&side(&not, first)).map_err(bare)
}
