//! The row of each choice of a token, and the token of each row. A thread has one of each.
//!
//! ```text
//! row      begins[block of the token, expert] + bits of the expert's masks in the block before the token's own
//! token    the last expert and block that begin at the row or before, by bisection; in it, as many bits further as rows
//! ```

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{Predicate, U32};
use layout_codegen::view::{View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzled};

use super::masks::sizes;
use super::{MOST_EXPERTS, MOST_TOKENS, TOKENS, WORD, ones};
use crate::KernelError;

const THREADS: i64 = 256;

/// Words of a block of tokens.
const WORDS: i64 = TOKENS / WORD;

/// What is known of the experts' tokens.
struct Tables {
    /// Blocks × 8 × experts.
    mask: View,
    /// Blocks × experts.
    begins: View,
    /// The first row of each expert, in shared memory.
    first: View,
    blocks: Expr,
}

/// The kernel `route_places_<top>(tokens, experts, expert, mask, begins, row_of_choice, token_of_row)`.
pub(super) fn places(top: i64, arch: Arch) -> Result<Proven, KernelError> {
    let mut k = Kernel::new(&format!("route_places_{top}"), THREADS as u32);
    let [tokens, experts] = sizes(&mut k);
    let choices = k.scale(tokens, top);
    let blocks = k.tiles_in(tokens, TOKENS)?;
    let words = k.constant(WORDS);
    let chosen = k.input("expert", Element::S32, &[choices]);
    let first = Swizzled::plain(Layout::mode(MOST_EXPERTS, 1)?);
    let tables = Tables {
        mask: k.input("mask", Element::S32, &[blocks, words, experts]),
        begins: k.input("begins", Element::S32, &[blocks, experts]),
        first: k.shared("first", Element::S32, &first)?,
        blocks,
    };
    let [row_of_choice, token_of_row] =
        ["row_of_choice", "token_of_row"].map(|name| k.output(name, Element::S32, &[choices]));
    let (block, thread) = (k.tiles(Axis::X, choices, THREADS)?, k.thread());
    tables.find_first(&mut k, thread, experts)?;
    let i = k.linear(&[(THREADS, block), (1, thread)], 0);

    let expert = chosen.load::<u32>(&mut k, &[i])?.to_index(&mut k);
    let expert = k.clamp(expert, 0, MOST_EXPERTS - 1);
    let token = k.div(i, top);
    let row = tables.row(&mut k, token, expert)?;
    row_of_choice.store(&mut k, &[i], row)?;
    let token = tables.token(&mut k, i)?;
    token_of_row.store(&mut k, &[i], token)?;
    Ok(k.build(arch)?)
}

impl Tables {
    /// Brings the first row of each expert to shared memory; experts that there are not begin behind all rows.
    fn find_first(&self, k: &mut Kernel, thread: Expr, experts: Expr) -> Result<(), ViewError> {
        let zero = k.constant(0);
        for part in 0..MOST_EXPERTS / THREADS {
            let expert = k.linear(&[(1, thread)], part * THREADS);
            let begin = self.begins.load::<u32>(k, &[zero, expert])?;
            let is_one = Predicate::of(k, expert, Cmp::Lt, experts);
            let begin = is_one.select(k, begin, U32::from(u32::MAX));
            self.first.store(k, &[expert], begin)?;
        }
        k.barrier();
        Ok(())
    }

    /// The row of a token in the rows of an expert.
    fn row(&self, k: &mut Kernel, token: Expr, expert: Expr) -> Result<U32, ViewError> {
        let block = k.div(token, TOKENS);
        let block = k.pin(block);
        let within = k.rem(token, TOKENS);
        let (own, bit) = (k.div(within, WORD), k.rem(within, WORD));
        let bit = U32::index(k, bit);
        let below = U32::from(1).shl(k, bit).sub(k, 1);
        let mut row = self.begins.load::<u32>(k, &[block, expert])?;
        for word in 0..WORDS {
            let word = k.constant(word);
            let bits = self.mask.load::<u32>(k, &[block, word, expert])?;
            let before = Predicate::of(k, word, Cmp::Lt, own);
            let is_own = Predicate::of(k, word, Cmp::Eq, own);
            let some = is_own.select(k, below, U32::from(0));
            let some = before.select(k, U32::from(u32::MAX), some);
            let bits = bits.and(k, some);
            let more = ones(k, bits);
            row = row.add(k, more);
        }
        Ok(row)
    }

    /// The token of a row.
    fn token(&self, k: &mut Kernel, row: Expr) -> Result<U32, ViewError> {
        let row = U32::index(k, row);
        let mut expert = k.constant(0);
        let mut step = MOST_EXPERTS / 2;
        while step > 0 {
            let further = k.linear(&[(1, expert)], step);
            let begin = self.first.load::<u32>(k, &[further])?;
            let is = begin.le(k, row);
            expert = further_if(k, is, (expert, step), MOST_EXPERTS);
            step /= 2;
        }
        let most = MOST_TOKENS / TOKENS;
        let mut block = k.constant(0);
        let mut step = most / 2;
        while step > 0 {
            let further = k.linear(&[(1, block)], step);
            let begin = self.begins.load::<u32>(k, &[further, expert])?;
            let is_one = Predicate::of(k, further, Cmp::Lt, self.blocks);
            let is_one = begin.le(k, row).and(k, is_one);
            block = further_if(k, is_one, (block, step), most);
            step /= 2;
        }
        // How many of the expert's tokens in the block are before that of the row.
        let begin = self.begins.load::<u32>(k, &[block, expert])?;
        let mut left = row.sub(k, begin);
        let [mut bits, mut before, mut first] = [U32::from(0); 3];
        for word in 0..WORDS {
            let at = k.constant(word);
            let of_word = self.mask.load::<u32>(k, &[block, at, expert])?;
            let count = ones(k, of_word);
            // Behind the word that has it, what is left is below 0, and large.
            let here = left.lt(k, count);
            bits = here.select(k, of_word, bits);
            before = here.select(k, left, before);
            first = here.select(k, U32::from((word * WORD) as u32), first);
            left = left.sub(k, count);
        }
        let bit = nth_one(k, bits, before);
        let block = U32::index(k, block);
        let token = block.mul(k, TOKENS as u32).add(k, first);
        Ok(token.add(k, bit))
    }
}

/// An index, moved if it is to be; below `most`.
fn further_if(k: &mut Kernel, is: Predicate, (at, step): (Expr, i64), most: i64) -> Expr {
    let own = U32::index(k, at);
    let further = own.add(k, step as u32);
    let at = is.select(k, further, own).to_index(k);
    k.clamp(at, 0, most - step)
}

/// The place of the set bit with `before` set bits below it.
fn nth_one(k: &mut Kernel, bits: U32, mut before: U32) -> U32 {
    let mut place = U32::from(0);
    for width in [16, 8, 4, 2, 1] {
        let low = bits.shr(k, place).and(k, (1 << width) - 1);
        let count = ones(k, low);
        let above = before.ge(k, count);
        let rest = before.sub(k, count);
        before = above.select(k, rest, before);
        let further = place.add(k, width);
        place = above.select(k, further, place);
    }
    place
}
