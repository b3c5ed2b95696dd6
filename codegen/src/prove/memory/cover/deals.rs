//! Tiles that a loop deals out to blocks by one number.
//!
//! Where sizes are bounded, the order of tiles may be any: a layout, say. The prover knows nothing of it, computes the tile of each iteration of each block, and counts. Every tile
//! that can be in the matrix must be there once. An iteration whose tile is outside stores nothing.
//!
//! ```text
//! for iteration in 0..T                           T a number, or one for each block; the launch has B blocks
//!   i = B·iteration + block                       or any other number made of the two
//!   tile (row(i), column(i))
//! ```
//!
//! For all sizes the order is one of those below, over R × C tiles. What is computed must be what they say, value by value:
//!
//! ```text
//! for iteration in 0..⌊(R·C − block + B − 1) / B⌋     p = B·iteration + block: each number below R·C once, since p = B·⌊p / B⌋ + p mod B
//! i = p, or list[p]                          a list of R·C distinct numbers below R·C has each of them
//! rows         (⌊i / C⌋, i mod C)            each pair below (R, C) once; columns the other way round
//! groups       q = ⌊i / (g·C)⌋, j = i mod (g·C), h = min(g, R − g·q)
//!              (g·q + j mod h, ⌊j / h⌋)      the h rows of group q have h·C numbers: all j below g·C, and of the last group those below (R − g·q)·C
//! ```
//!
//! There is an iteration only where R and C are at least 1, so that a divisor may be `max(C, 1)`, and `h` may be at least 1. In an iteration a row is below R and a column below C, so that the
//! smaller of one of them and a number that is at least R − 1, or C − 1, is the row or the column itself. The layer bounds values so, because ranges alone do not.
//!
//! A list is a permutation because an author states that its elements are distinct and below their number. The launches of this library check both.

use super::{Cut, Output};
use crate::ir::Raster;
use crate::prove::algebra::formula::Formula;
use crate::prove::algebra::symbols::Definition;
use crate::prove::algebra::value::{Lin, Sym};
use crate::prove::walk::execute::Dealt;
use crate::prove::walk::memory::GlobalAccess;

/// Iterations of all blocks, at most.
const MOST: i64 = 1 << 22;

impl Output<'_> {
    /// How the loop deals out the tiles that a mode is cut into, if it does.
    fn deals(&self, mode: usize, cut: &Cut) -> Option<&Dealt> {
        let (origin, covers) = match cut {
            Cut::Tile(origin, _, covers) => (*origin, *covers),
            // One tile has all of the mode.
            Cut::Whole(n) => (Lin::constant(0), Lin::constant(*n)),
            Cut::Block(_) => return None,
        };
        let mut deals = self
            .trace
            .deals
            .iter()
            .filter(|d| d.iterations == self.iterations && mode < 2);
        deals.find(|d| (origin, covers) == (d.origin[mode], d.covers[mode]))
    }

    /// Whether the loop deals out tiles of the output: then the iterations and the blocks of a launch have every tile that can be in it once.
    pub(super) fn dealt_once(&mut self, cuts: &[Cut]) -> Result<bool, String> {
        let dealt: Vec<_> = (0..)
            .zip(cuts)
            .map(|(mode, cut)| self.deals(mode, cut))
            .collect();
        let dealt = match dealt[..] {
            [Some(rows), Some(columns)]
                if (rows.origin, rows.covers) == (columns.origin, columns.covers) =>
            {
                rows.clone()
            }
            _ if dealt.iter().all(Option::is_none) => return Ok(false),
            _ => {
                return Err("tiles are scheduled along one mode and not along the other".to_owned());
            }
        };
        match dealt.order {
            None => self.counted(&dealt)?,
            Some(_) => self
                .in_order(&dealt)
                .map_err(|reason| format!("tiles are scheduled {reason}"))?,
        }
        Ok(true)
    }

    /// The schedules of the loop that stores are in, by which each iteration of each block has another tile.
    pub(super) fn known_deals(mut self, stores: &[&GlobalAccess]) -> Vec<Dealt> {
        let Some(first) = stores.first() else {
            return Vec::new();
        };
        self.axes.extend(&first.iterations);
        self.iterations.clone_from(&first.iterations);
        let deals = self.trace.deals.iter();
        let own = deals.filter(|d| d.iterations == self.iterations && d.order.is_some());
        let mut own: Vec<Dealt> = own.cloned().collect();
        own.retain(|d| self.in_order(d).is_ok());
        own
    }

    /// The tiles are those of an order for all sizes.
    fn in_order(&mut self, dealt: &Dealt) -> Result<(), String> {
        let not = |why: &str| Err(why.to_owned());
        let (Some(order), &[iteration]) = (dealt.order, &self.iterations[..]) else {
            return not("in more than one loop");
        };
        let block = self.trace.blocks[0];
        let mut whole = self.trace.whole_axes.iter().filter(|(b, _)| *b == block);
        let own = |axis: &Sym| [iteration, block].contains(axis);
        let (Some(&(_, blocks)), true) = (whole.next(), self.axes.iter().all(own)) else {
            return not("to blocks that are not counted along x alone");
        };
        // A grid of one block has the number 0.
        let numbers = [Lin::symbol(block), Lin::constant(0)];
        let numbers = &numbers[..if blocks == 1 { 2 } else { 1 }];
        let at = |number: &Lin| Lin::symbol(iteration).scale(blocks).add(number);
        if !numbers.iter().any(|number| at(number) == order.position) {
            return not("by another number than that of the iteration and the block");
        }
        let symbols = &mut self.trace.symbols;
        if dealt.covers.iter().any(|n| symbols.range(n).0 < 0) {
            return not("over an output whose size may be negative");
        }
        let [rows, columns] = [0, 1].map(|mode: usize| {
            let tile = dealt.tiles[mode];
            symbols.div(&dealt.covers[mode].plus(tile - 1), tile)
        });
        let Some(total) = rows.mul(&columns) else {
            return not("over an output whose size has too many factors");
        };
        let iterations = numbers.iter().map(|number| {
            let rest = total.sub(number).plus(blocks - 1);
            let iterations = symbols.quotient(&rest, &Lin::constant(blocks));
            symbols.settled(&iterations)
        });
        let iterations: Vec<Lin> = iterations.collect();
        let mut walks = self.trace.walks.iter();
        if !walks.any(|w| {
            w.iteration == iteration
                && w.tile == 1
                && iterations.contains(&symbols.settled(&w.covers))
        }) {
            return not("in another number of iterations than there are tiles");
        }
        let index = match order.list {
            None => order.position,
            Some((_, element)) => {
                self.permuted(dealt, &total)?;
                element
            }
        };
        if self.rastered(dealt, (order.raster, index), [rows, columns]) {
            return Ok(());
        }
        not("by another row or column than that of the tile's number")
    }

    /// The list has each number below `total` once, and its element at the position is taken.
    fn permuted(&self, dealt: &Dealt, total: &Lin) -> Result<(), String> {
        let (Some(order), Some(list)) = (dealt.order, &dealt.list) else {
            return Err("by no list".to_owned());
        };
        let extents = [0, 1].map(|mode| self.trace.used.get(&(list.buffer, mode)));
        if extents != [Some(total), None] {
            return Err(
                "by a list of another number of elements than there are tiles: give it one mode with an element for each tile".to_owned(),
            );
        }
        if !list.distinct {
            return Err("by a list whose elements may be equal: state that they are distinct (`Kernel::assume_distinct`)".to_owned());
        }
        let within = |(low, high): &(Lin, Lin)| low.as_constant() == Some(0) && high == total;
        if !list.ranges.iter().any(within) {
            return Err("by a list whose elements may be numbers of no tile: state that they are from 0 to the number of tiles (`Kernel::assume_range`)".to_owned());
        }
        let element = order
            .list
            .and_then(|(_, element)| self.defined_as(&element));
        // What is loaded where the position is inside of the list: in each iteration.
        let element = match element {
            Some(Definition::Ite(p, element, _))
                if *p == Formula::ge(total.sub(&order.position).plus(-1)) =>
            {
                self.defined_as(&element)
            }
            element => element,
        };
        let right = matches!(element, Some(Definition::Element(of, at)) if of == list.buffer && at[..] == [order.position]);
        if !right {
            return Err(
                "by another element of a list than that at the number of the iteration and the block"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Row and column are those of a tile's number.
    fn rastered(
        &mut self,
        dealt: &Dealt,
        (raster, index): (Raster<Lin>, Lin),
        counts: [Lin; 2],
    ) -> bool {
        let of_tile = |mode: usize| dealt.origin[mode].divided_by(dealt.tiles[mode]);
        let (Some(row), Some(column)) = (of_tile(0), of_tile(1)) else {
            return false;
        };
        let at = [row, column];
        let most = counts.map(|n| self.trace.symbols.range(&n).1 - 1);
        // Whether the coordinates along two modes are the quotient and the rest.
        let digits = |output: &mut Self, slow: usize, fast: usize| {
            output.at_least_one(&counts[fast]).iter().any(|d| {
                let symbols = &mut output.trace.symbols;
                let (quotient, rest) = (symbols.quotient(&index, d), symbols.remainder(&index, d));
                output.is_within(&at[slow], &quotient, (0, most[slow]))
                    && output.is_within(&at[fast], &rest, (0, most[fast]))
            })
        };
        let (of, group, height) = match raster {
            Raster::Rows => return digits(self, 0, 1),
            Raster::Columns => return digits(self, 1, 0),
            Raster::Groups { of, group, height } if of > 0 => (of, group, height),
            Raster::Groups { .. } => return false,
        };
        let before = group.scale(of);
        let rows_left = self.at_least_one(&counts[0]).map(|n| n.sub(&before));
        // The smaller of what is left and a group's rows.
        let is_height = rows_left.iter().any(|left| {
            let (least, most) = self.trace.symbols.range(left);
            let all = Lin::constant(of);
            match self.defined_as(&height) {
                Some(Definition::Min(a, b)) if b == all => self.is_within(&a, left, (1, i128::MAX)),
                _ if most <= of.into() => self.is_within(&height, left, (1, of.into())),
                // At least one row is left.
                _ => height == all && (of == 1 || least >= of.into()),
            }
        });
        is_height
            && self.at_least_one(&counts[1]).iter().any(|d| {
                let (of_group, symbols) = (d.scale(of), &mut self.trace.symbols);
                let number = symbols.quotient(&index, &of_group);
                let within = symbols.remainder(&index, &of_group);
                let across = symbols.quotient(&within, &height);
                let down = symbols.remainder(&within, &height);
                self.is_within(&group, &number, (0, most[0].div_euclid(of.into())))
                    && self.is_within(&at[1], &across, (0, most[1]))
                    && at[0] == before.add(&down)
            })
    }

    /// Forms of a number of tiles where there is a tile.
    fn at_least_one(&mut self, count: &Lin) -> [Lin; 2] {
        let larger = self.trace.symbols.max(count, &Lin::constant(1));
        [*count, larger]
    }

    fn defined_as(&self, x: &Lin) -> Option<Definition> {
        let symbol = x.single()?;
        Some(self.trace.symbols.info(symbol).definition.clone())
    }

    /// `x` is a value of this range: the value itself, or the nearer of two ends that are not inside of the range.
    fn is_within(&self, x: &Lin, value: &Lin, (least, most): (i128, i128)) -> bool {
        let mut x = *x;
        if least == most && x.as_constant().map(i128::from) == Some(least) {
            return true;
        }
        while x != *value {
            let end = |b: &Lin| b.as_constant().map(i128::from);
            x = match self.defined_as(&x) {
                Some(Definition::Max(a, b)) if end(&b).is_some_and(|b| b <= least) => a,
                Some(Definition::Min(a, b)) if end(&b).is_some_and(|b| b >= most) => a,
                _ => return false,
            };
        }
        true
    }

    fn counted(&mut self, dealt: &Dealt) -> Result<(), String> {
        let not = |why: &str| Err(format!("tiles are scheduled {why}"));
        let &[iteration] = &self.iterations[..] else {
            return not("in more than one loop");
        };
        let mut counts = self
            .trace
            .walks
            .iter()
            .filter(|w| w.iteration == iteration && w.tile == 1);
        let Some(iterations) = counts.next().map(|w| w.covers) else {
            return not("in iterations whose number is not known");
        };
        // Every axis with several blocks is one that the launch has whole.
        let mut blocks = Vec::new();
        for &axis in self.axes.iter().filter(|&&axis| axis != iteration) {
            let whole = self
                .trace
                .whole_axes
                .iter()
                .find(|(block, _)| *block == axis);
            let Some(&whole) = whole else {
                return not("to blocks whose number is not known");
            };
            blocks.push(whole);
        }
        let mut most = |mode: usize| {
            let extent = self.trace.symbols.range(&dealt.covers[mode]).1;
            let tile = i128::from(dealt.tiles[mode]);
            usize::try_from((extent + tile - 1) / tile).ok()
        };
        let (Some(rows), Some(columns)) = (most(0), most(1)) else {
            return not("over an output whose size is not bounded");
        };
        // Along other axes there is one block.
        for &block in &self.trace.blocks {
            if self.trace.symbols.info(block).hi == 0 && !self.axes.contains(&block) {
                blocks.push((block, 1));
            }
        }
        let launched: i64 = blocks.iter().map(|(_, count)| count).product();
        let few = |n: usize| i64::try_from(n).is_ok_and(|n| n <= MOST);
        if launched > MOST || !few(rows.saturating_mul(columns)) {
            return not("in more iterations than are counted");
        }
        let mut owners = vec![0_u8; rows * columns];
        let mut all = 0_i64;
        for number in 0..launched {
            let mut rest = number;
            let mut at = vec![(iteration, 0)];
            for &(block, count) in &blocks {
                at.push((block, rest % count));
                rest /= count;
            }
            let Some(iterations) = self.trace.symbols.value(&iterations, &at[1..]) else {
                return not("in iterations whose number is not known");
            };
            all = all.saturating_add(iterations);
            if all > MOST {
                return not("in more iterations than are counted");
            }
            for now in 0..iterations {
                at[0] = (iteration, now);
                let begins = |mode: usize| {
                    let first = self.trace.symbols.value(&dealt.origin[mode], &at)?;
                    let tile = dealt.tiles[mode];
                    (first % tile == 0).then(|| first / tile)
                };
                let place = [begins(0), begins(1)];
                let [Some(row), Some(column)] = place else {
                    return not("by more than the iteration and the block");
                };
                let inside = |x: i64, n: usize| usize::try_from(x).ok().filter(|&x| x < n);
                if let (Some(row), Some(column)) = (inside(row, rows), inside(column, columns)) {
                    let owner = &mut owners[row * columns + column];
                    if *owner > 0 {
                        return Err(format!("tile ({row}, {column}) is assigned twice"));
                    }
                    *owner = 1;
                }
            }
        }
        match owners.iter().position(|&n| n == 0) {
            Some(at) => Err(format!(
                "tile ({}, {}) is assigned to no block",
                at / columns,
                at % columns
            )),
            None => Ok(()),
        }
    }
}
