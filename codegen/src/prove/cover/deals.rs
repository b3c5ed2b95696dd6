//! Tiles that a loop deals out to blocks by one number, in whatever order.
//!
//! ```text
//! for turn in 0..T                           T a number; the launch has B blocks
//!   i = B·turn + block                       or any other number made of the two
//!   tile (row(i), column(i))                 an order of tiles: a layout, say
//! ```
//!
//! The prover knows nothing of the order: it computes the tile of each turn of each block, and counts. Every tile that can be in the matrix must be there once. A turn whose
//! tile is outside stores nothing.

use super::{Cut, Output};
use crate::prove::execute::Dealt;

/// Turns of all blocks, at most.
const MOST: i64 = 1 << 22;

impl Output<'_> {
    /// How the loop deals out the tiles that a mode is cut into, if it does.
    fn deals(&self, mode: usize, cut: &Cut) -> Option<&Dealt> {
        let Cut::Tile(origin, ..) = cut else {
            return None;
        };
        let mut deals = self
            .trace
            .deals
            .iter()
            .filter(|d| d.turns == self.turns && mode < 2);
        deals.find(|d| *origin == d.origin[mode])
    }

    /// Whether the loop deals out tiles of the output: then the turns and the blocks of a launch have every tile that can be in it once.
    pub(super) fn dealt_once(&mut self, cuts: &[Cut]) -> Result<bool, String> {
        let dealt: Vec<_> = (0..)
            .zip(cuts)
            .map(|(mode, cut)| self.deals(mode, cut))
            .collect();
        let dealt = match dealt[..] {
            [Some(rows), Some(columns)] if rows.origin == columns.origin => rows.clone(),
            _ if dealt.iter().all(Option::is_none) => return Ok(false),
            _ => return Err("tiles are dealt out of one mode and not of the other".to_owned()),
        };
        self.counted(&dealt).map(|()| true)
    }

    fn counted(&mut self, dealt: &Dealt) -> Result<(), String> {
        let not = |why: &str| Err(format!("tiles are dealt out {why}"));
        let &[turn] = &self.turns[..] else {
            return not("in more than one loop");
        };
        let mut counts = self
            .trace
            .walks
            .iter()
            .filter(|w| w.turn == turn && w.tile == 1);
        let Some(turns) = counts.find_map(|w| w.covers.as_constant()) else {
            return not("in turns whose number is not known");
        };
        // Every axis with several blocks is one that the launch has whole.
        let mut blocks = Vec::new();
        for &axis in self.axes.iter().filter(|&&axis| axis != turn) {
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
        let launched: i64 = blocks.iter().map(|(_, count)| count).product();
        let few = |n: usize| i64::try_from(n).is_ok_and(|n| n <= MOST);
        if turns.saturating_mul(launched) > MOST || !few(rows.saturating_mul(columns)) {
            return not("in more turns than are counted");
        }
        let mut owners = vec![0_u8; rows * columns];
        for number in 0..turns * launched {
            let mut rest = number / turns;
            let mut at = vec![(turn, number % turns)];
            for &(block, count) in &blocks {
                at.push((block, rest % count));
                rest /= count;
            }
            let begins = |mode: usize| {
                let first = self.trace.symbols.value(&dealt.origin[mode], &at)?;
                let tile = dealt.tiles[mode];
                (first % tile == 0).then(|| first / tile)
            };
            let place = [begins(0), begins(1)];
            let [Some(row), Some(column)] = place else {
                return not("by more than the turn and the block");
            };
            let inside = |x: i64, n: usize| usize::try_from(x).ok().filter(|&x| x < n);
            if let (Some(row), Some(column)) = (inside(row, rows), inside(column, columns)) {
                let owner = &mut owners[row * columns + column];
                if *owner > 0 {
                    return Err(format!("tile ({row}, {column}) is dealt out twice"));
                }
                *owner = 1;
            }
        }
        match owners.iter().position(|&n| n == 0) {
            Some(at) => Err(format!(
                "tile ({}, {}) is not dealt out",
                at / columns,
                at % columns
            )),
            None => Ok(()),
        }
    }
}
