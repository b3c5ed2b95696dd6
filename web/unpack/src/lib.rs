//! Unpacks the modules of the page in the browser.
//!
//! A browser unpacks gzip, which leaves a module a third larger than this crate's format: the code [sorted by kind](streams), then LZMA. The crate,
//! compiled to a small module of its own, unpacks the modules of layouts and kernels. `cargo xtask page` packs; both sides agree on
//! [`LITERAL_BITS`].
//!
//! ```text
//! packed   = length of the result, 4 bytes little endian, then an LZMA stream (lc = LITERAL_BITS, lp = pb = 0, no header, no end marker)
//! known    = bytes that both sides have: the stream may copy from them, as if they had been written before the result
//! ```
//!
//! The second module of the page has much in common with the first, which is therefore what is known when it is unpacked.
//!
//! ```
//! use tilewright_unpack::{Damaged, unpack};
//! assert_eq!(unpack(&[2, 0, 0, 0, 0, 0, 0, 0, 0], b""), Ok(vec![0, 0]));
//! assert_eq!(unpack(&[2, 0], b""), Err(Damaged));
//! ```

pub mod exports;
mod lengths;
mod range;
pub mod streams;

use lengths::Lengths;
use range::{EVEN, Range};

/// How many high bits of the byte before a literal choose its probabilities: "lc" of LZMA.
pub const LITERAL_BITS: u32 = 4;

/// The most bytes that a result may have: a length beyond is no length but damage.
const MOST: usize = 1 << 26;
/// States of the coder: what the last symbols were, literals, matches or repetitions.
const STATES: usize = 12;
/// Distances below this have a tree of their own for their low bits; the others end in four bits of one tree.
const NEAR_SLOTS: usize = 14;

/// The packed bytes are not what the packer wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the packed bytes are damaged: build the page anew")
    }
}

impl std::error::Error for Damaged {}

/// The bytes that were packed where `known` was known.
///
/// # Errors
///
/// [`Damaged`] if the length is missing or absurd, or a copy begins before what is known.
pub fn unpack(packed: &[u8], known: &[u8]) -> Result<Vec<u8>, Damaged> {
    let (length, stream) = packed.split_first_chunk().ok_or(Damaged)?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST {
        return Err(Damaged);
    }
    let mut bytes = Vec::with_capacity(known.len() + length);
    bytes.extend(known);
    Decoder::new(stream).decode(&mut bytes, known.len() + length)?;
    bytes.drain(..known.len());
    Ok(bytes)
}

/// What the decoder has learned so far.
struct Decoder<'a> {
    range: Range<'a>,
    literals: Vec<u16>,
    is_match: [u16; STATES],
    is_repetition: [u16; STATES],
    is_not_last: [u16; STATES],
    is_longer_than_one: [u16; STATES],
    is_not_second: [u16; STATES],
    is_not_third: [u16; STATES],
    match_lengths: Lengths,
    repetition_lengths: Lengths,
    slots: [[u16; 64]; 4],
    near: [[u16; 32]; NEAR_SLOTS],
    far: [u16; 16],
}

impl<'a> Decoder<'a> {
    fn new(stream: &'a [u8]) -> Self {
        Self {
            range: Range::new(stream),
            literals: vec![EVEN; 0x300 << LITERAL_BITS],
            is_match: [EVEN; STATES],
            is_repetition: [EVEN; STATES],
            is_not_last: [EVEN; STATES],
            is_longer_than_one: [EVEN; STATES],
            is_not_second: [EVEN; STATES],
            is_not_third: [EVEN; STATES],
            match_lengths: Lengths::new(),
            repetition_lengths: Lengths::new(),
            slots: [[EVEN; 64]; 4],
            near: [[EVEN; 32]; NEAR_SLOTS],
            far: [EVEN; 16],
        }
    }

    /// Appends to `bytes` until there are `end` of them.
    fn decode(&mut self, bytes: &mut Vec<u8>, end: usize) -> Result<(), Damaged> {
        let mut state = 0;
        // The four distances that were used last, the latest first; 0 is the byte before.
        let mut last = [0; 4];
        while bytes.len() < end {
            if !self.range.bit(&mut self.is_match[state]) {
                let literal = self.literal(bytes, (state >= 7).then_some(last[0]))?;
                bytes.push(literal);
                state = match state {
                    0..4 => 0,
                    4..10 => state - 3,
                    _ => state - 6,
                };
                continue;
            }
            let after_literal = state < 7;
            let length = if !self.range.bit(&mut self.is_repetition[state]) {
                let length = self.match_lengths.read(&mut self.range);
                last.rotate_right(1);
                last[0] = self.distance(length);
                state = if after_literal { 7 } else { 10 };
                length
            } else if self.range.bit(&mut self.is_not_last[state]) {
                let which = self.earlier(state);
                last[..=which].rotate_right(1);
                state = if after_literal { 8 } else { 11 };
                self.repetition_lengths.read(&mut self.range)
            } else if self.range.bit(&mut self.is_longer_than_one[state]) {
                state = if after_literal { 8 } else { 11 };
                self.repetition_lengths.read(&mut self.range)
            } else {
                state = if after_literal { 9 } else { 11 };
                1
            };
            copy(bytes, last[0], length.min(end - bytes.len()))?;
        }
        Ok(())
    }

    /// A literal byte. After a copy it differs from the byte at `distance`, whose bits choose the probabilities up to the first bit that differs.
    fn literal(&mut self, bytes: &[u8], distance: Option<usize>) -> Result<u8, Damaged> {
        let before = bytes.last().map_or(0, |byte| byte >> (8 - LITERAL_BITS));
        let table = &mut self.literals[0x300 * usize::from(before)..][..0x300];
        let mut symbol = 1;
        if let Some(distance) = distance {
            let mut expected = usize::from(*bytes.iter().nth_back(distance).ok_or(Damaged)?);
            while symbol < 0x100 {
                let guess = expected >> 7 & 1;
                expected <<= 1;
                let bit = usize::from(self.range.bit(&mut table[(1 + guess) * 0x100 + symbol]));
                symbol = symbol << 1 | bit;
                if guess != bit {
                    break;
                }
            }
        }
        while symbol < 0x100 {
            symbol = symbol << 1 | usize::from(self.range.bit(&mut table[symbol]));
        }
        Ok(symbol as u8)
    }

    /// Which of the three distances before the last one a repetition takes.
    fn earlier(&mut self, state: usize) -> usize {
        if !self.range.bit(&mut self.is_not_second[state]) {
            1
        } else if !self.range.bit(&mut self.is_not_third[state]) {
            2
        } else {
            3
        }
    }

    /// The distance of a match of `length` bytes: its two highest bits and its number of bits in one symbol, then the bits below.
    fn distance(&mut self, length: usize) -> usize {
        let slot = self
            .range
            .tree(&mut self.slots[(length - Lengths::LEAST).min(3)]);
        if slot < 4 {
            return slot;
        }
        let below = (slot >> 1) as u32 - 1;
        let high = (2 | slot & 1) << below;
        if let Some(tree) = self.near.get_mut(slot) {
            return high + self.range.reverse_tree(tree, below);
        }
        let middle = self.range.direct(below - 4) << 4;
        high + middle + self.range.reverse_tree(&mut self.far, 4)
    }
}

/// Appends `length` bytes that lie `distance` before the last one; they may overlap with what is appended.
fn copy(bytes: &mut Vec<u8>, distance: usize, length: usize) -> Result<(), Damaged> {
    let from = bytes.len().checked_sub(distance + 1).ok_or(Damaged)?;
    if length <= distance {
        bytes.extend_from_within(from..from + length);
    } else {
        for i in from..from + length {
            bytes.push(bytes[i]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of zeros is one of literals zero: every bit is the likelier one.
    #[test]
    fn zeros_are_literals() {
        let packed = [5, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(unpack(&packed, b"").as_deref(), Ok(&[0; 5][..]));
    }

    #[test]
    fn damage_is_found_or_gives_other_bytes_but_never_stops_the_program() {
        assert_eq!(unpack(&[], b""), Err(Damaged));
        assert_eq!(unpack(&[0xff; 9], b""), Err(Damaged));
        // A copy of what is not there.
        let copies = [3, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(unpack(&copies, b""), Err(Damaged));
        // A stream that ends early is read on as zeros.
        assert_eq!(unpack(&[9, 0, 0, 0, 0], b"").map(|b| b.len()), Ok(9));
    }

    #[test]
    fn copies_overlap_with_what_they_append() {
        let mut bytes = b"abc".to_vec();
        copy(&mut bytes, 1, 5).expect("there are two bytes");
        assert_eq!(bytes, b"abcbcbcb");
        assert_eq!(copy(&mut bytes, 8, 1), Err(Damaged));
    }
}
