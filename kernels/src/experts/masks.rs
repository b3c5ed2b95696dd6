//! Which tokens have an expert: a word of bits for each 32 tokens, and how many there are in each block of 256.

use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{Predicate, U32};
use layout_codegen::view::{Combine, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzled};

use super::{MOST_EXPERTS, MOST_TOKENS, TOKENS, WORD, ones};
use crate::KernelError;

/// The kernel `route_masks_<top>(tokens, experts, expert, mask, counts_of_block)`: `mask` is ⌈tokens / 256⌉ × 8 × experts, `counts_of_block` ⌈tokens / 256⌉ × experts. A token has an expert once, so that a sum
/// of its bits sets them.
pub(super) fn masks(top: i64, arch: Arch) -> Result<Proven, KernelError> {
    let words = TOKENS / WORD;
    let mut k = Kernel::new(&format!("route_masks_{top}"), TOKENS as u32);
    let [tokens, experts] = sizes(&mut k);
    let choices = k.constant(top);
    let [block, blocks] = k.counted_tiles(Axis::X, tokens, TOKENS)?;
    let chosen = k.input("expert", Element::S32, &[tokens, choices]);
    let of_block = k.constant(words);
    let mask = k.output("mask", Element::S32, &[blocks, of_block, experts]);
    let counts = k.output("counts_of_block", Element::S32, &[blocks, experts]);
    let own = Layout::flat(&[words, MOST_EXPERTS], &[MOST_EXPERTS, 1])?;
    let own = k.shared("own", Element::S32, &Swizzled::plain(own))?;
    let (thread, warp, lane) = (k.thread(), k.warp(), k.lane());

    let columns = |k: &mut Kernel| {
        let columns = (0..MOST_EXPERTS / TOKENS).map(|c| k.linear(&[(1, thread)], c * TOKENS));
        columns.collect::<Vec<_>>()
    };
    let columns = columns(&mut k);
    for &expert in &columns {
        for word in 0..words {
            let word = k.constant(word);
            own.store(&mut k, &[word, expert], U32::from(0))?;
        }
    }
    k.barrier();
    let token = k.linear(&[(TOKENS, block), (1, thread)], 0);
    let is_token = Predicate::of(&mut k, token, Cmp::Lt, tokens);
    k.when(is_token, |k| {
        let lane = U32::index(k, lane);
        let bit = U32::from(1).shl(k, lane);
        for choice in 0..top {
            let choice = k.constant(choice);
            let expert = chosen.load::<u32>(k, &[token, choice])?.to_index(k);
            let expert = k.clamp(expert, 0, MOST_EXPERTS - 1);
            own.atomic(k, &[warp, expert], Combine::Add, bit)?;
        }
        Ok::<(), ViewError>(())
    })?;
    k.barrier();
    for expert in columns {
        let mut count = U32::from(0);
        for word in 0..words {
            let at = k.constant(word);
            let bits = own.load::<u32>(&mut k, &[at, expert])?;
            mask.store(&mut k, &[block, at, expert], bits)?;
            let more = ones(&mut k, bits);
            count = count.add(&mut k, more);
        }
        counts.store(&mut k, &[block, expert], count)?;
    }
    Ok(k.build(arch)?)
}

/// The parameters `tokens` and `experts`.
pub(super) fn sizes(k: &mut Kernel) -> [layout_codegen::index::Expr; 2] {
    [("tokens", MOST_TOKENS), ("experts", MOST_EXPERTS)].map(|(name, most)| k.size(name, most))
}
