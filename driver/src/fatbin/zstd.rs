//! Zstandard frames (RFC 8878), without dictionaries.
//!
//! A frame is a list of blocks; a block is literals, and sequences that say how many of them come next and what earlier output to repeat after them. Literals are packed with a
//! Huffman code, sequences with three finite-state codes. Both are read backwards from the end of their part. Names follow the RFC.

/// What a frame begins with.
const MAGIC: u32 = 0xfd2f_b528;

/// Position of the highest bit of a number that is not 0.
fn top(n: u32) -> u32 {
    n.ilog2()
}

/// Bits from the end of a part towards its start. Beyond the start there are zeros.
struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that are left; below 0 once it is over.
    left: i64,
}

impl<'a> Backward<'a> {
    /// After the highest bit of the last byte, which marks the end.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let last = u32::from(*bytes.last()?);
        (last != 0).then(|| Self {
            bytes,
            left: 8 * (bytes.len() as i64 - 1) + i64::from(top(last)),
        })
    }

    fn read(&mut self, count: u32) -> u32 {
        let mut value = 0;
        for _ in 0..count {
            self.left -= 1;
            let bit = usize::try_from(self.left).map_or(0, |at| {
                u32::from(self.bytes.get(at / 8).map_or(0, |b| b >> (at % 8) & 1))
            });
            value = value << 1 | bit;
        }
        value
    }
}

/// A table of a finite-state code: by state, the symbol, the bits to read, and what to add to them for the next state.
#[derive(Clone)]
struct Table {
    log: u32,
    states: Vec<(u8, u32, u32)>,
}

impl Table {
    fn new(log: u32, counts: &[i32]) -> Option<Self> {
        let size = 1usize << log;
        let (mut symbols, mut next, mut high) = (vec![0u8; size], vec![0u32; counts.len()], size);
        for (symbol, count) in counts.iter().enumerate() {
            if *count == -1 {
                high = high.checked_sub(1)?;
                (symbols[high], next[symbol]) = (symbol as u8, 1);
            }
        }
        let (step, mut at) = ((size >> 1) + (size >> 3) + 3, 0);
        for (symbol, count) in counts.iter().enumerate().filter(|(_, c)| **c > 0) {
            next[symbol] = *count as u32;
            for _ in 0..*count {
                symbols[at] = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        let state = |symbol: &u8| {
            let number = &mut next[usize::from(*symbol)];
            let n = *number;
            *number += 1;
            let bits = log.checked_sub(top(n.max(1)))?;
            Some((*symbol, bits, (n << bits).checked_sub(size as u32)?))
        };
        let states = symbols.iter().map(state).collect::<Option<_>>()?;
        Some(Self { log, states })
    }

    /// One symbol alone.
    fn single(symbol: u8) -> Self {
        Self {
            log: 0,
            states: vec![(symbol, 0, 0)],
        }
    }

    /// The table that a part begins with, and the bytes of its description.
    fn read(bytes: &[u8], most: u32) -> Option<(Self, usize)> {
        let mut at = 0u32;
        let take = |at: &mut u32, count: u32| {
            let value = (0..count).try_fold(0, |value, i| {
                let place = *at + i;
                let byte = u32::from(*bytes.get(place as usize / 8)?);
                Some(value | (byte >> (place % 8) & 1) << i)
            })?;
            *at += count;
            Some(value)
        };
        let log = take(&mut at, 4)? + 5;
        if log > most {
            return None;
        }
        let (mut left, mut counts) = (1i32 << log, Vec::new());
        while left > 0 {
            let bits = top(left as u32 + 1) + 1;
            let mut value = take(&mut at, bits)? as i32;
            let (mask, least) = ((1 << (bits - 1)) - 1, (1 << bits) - 2 - left);
            if value & mask < least {
                at -= 1;
                value &= mask;
            } else if value > mask {
                value -= least;
            }
            let count = value - 1;
            left -= count.abs();
            counts.push(count);
            let mut more = count == 0;
            while more {
                let zeros = take(&mut at, 2)?;
                counts.extend((0..zeros).map(|_| 0));
                more = zeros == 3;
            }
            if counts.len() > 256 {
                return None;
            }
        }
        let table = (left == 0).then(|| Self::new(log, &counts))??;
        Some((table, at.div_ceil(8) as usize))
    }

    fn symbol(&self, state: u32) -> Option<u8> {
        self.states.get(state as usize).map(|s| s.0)
    }

    fn next(&self, state: &mut u32, bits: &mut Backward<'_>) -> Option<()> {
        let (_, count, base) = *self.states.get(*state as usize)?;
        *state = base + bits.read(count);
        Some(())
    }
}

/// A Huffman code: by the next `bits` bits, the symbol and how many of them it takes.
#[derive(Clone)]
struct Huffman {
    bits: u32,
    symbols: Vec<(u8, u32)>,
}

impl Huffman {
    /// The code that a part begins with, and the bytes of its description.
    fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let first = usize::from(*bytes.first()?);
        let (mut weights, used) = if first >= 128 {
            let count = first - 127;
            let packed = bytes.get(1..=count.div_ceil(2))?;
            let both = packed.iter().flat_map(|b| [b >> 4, b & 15]);
            (both.take(count).collect(), 1 + count.div_ceil(2))
        } else {
            (Self::weights(bytes.get(1..=first)?)?, 1 + first)
        };
        let sum: u32 = weights
            .iter()
            .filter(|w| **w > 0)
            .map(|w| 1 << (w - 1).min(15))
            .sum();
        let bits = top(sum.max(1)) + 1;
        let rest = (1u32 << bits)
            .checked_sub(sum)
            .filter(|r| r.is_power_of_two() && bits <= 11)?;
        weights.push(top(rest) as u8 + 1);
        let mut symbols = Vec::new();
        // The longest codes come first.
        for weight in 1..=bits as u8 {
            for (symbol, _) in weights.iter().enumerate().filter(|(_, w)| **w == weight) {
                let entry = (symbol as u8, bits + 1 - u32::from(weight));
                symbols.extend((0..1u32 << (weight - 1)).map(|_| entry));
            }
        }
        (symbols.len() == 1 << bits).then_some((Self { bits, symbols }, used))
    }

    fn weights(bytes: &[u8]) -> Option<Vec<u8>> {
        let (table, used) = Table::read(bytes, 6)?;
        let mut input = Backward::new(bytes.get(used..)?)?;
        let mut states = [input.read(table.log), input.read(table.log)];
        let mut weights = Vec::new();
        for turn in 0.. {
            let [one, other] = [turn % 2, 1 - turn % 2];
            weights.push(table.symbol(states[one])?);
            table.next(&mut states[one], &mut input)?;
            if input.left < 0 {
                weights.push(table.symbol(states[other])?);
                break;
            }
            if weights.len() > 255 {
                return None;
            }
        }
        Some(weights)
    }

    fn unpack(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut input = Backward::new(bytes)?;
        let mask = (1 << self.bits) - 1;
        let mut state = input.read(self.bits);
        while input.left > -i64::from(self.bits) {
            let (symbol, count) = *self.symbols.get(state as usize)?;
            out.push(symbol);
            state = (state << count | input.read(count)) & mask;
        }
        (input.left == -i64::from(self.bits)).then_some(())
    }
}

/// The base and the extra bits of a code.
fn long(code: u8, plain: u8, first: u32, rest: &[(u32, u32)]) -> Option<(u32, u32)> {
    match code.checked_sub(plain) {
        None => Some((u32::from(code) + first, 0)),
        Some(i) => rest.get(usize::from(i)).copied(),
    }
}

const LITERAL_LENGTHS: [(u32, u32); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1024, 10),
    (2048, 11),
    (4096, 12),
    (8192, 13),
    (16_384, 14),
    (32_768, 15),
    (65_536, 16),
];
const MATCH_LENGTHS: [(u32, u32); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1027, 10),
    (2051, 11),
    (4099, 12),
    (8195, 13),
    (16_387, 14),
    (32_771, 15),
    (65_539, 16),
];
const LITERAL_COUNTS: [i32; 36] = [
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
    -1, -1, -1, -1,
];
const OFFSET_COUNTS: [i32; 29] = [
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
];
const MATCH_COUNTS: [i32; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];

/// A frame as it is unpacked: what blocks take over from those before them.
struct Frame {
    out: Vec<u8>,
    most: usize,
    huffman: Option<Huffman>,
    /// Of literal lengths, offsets and match lengths.
    tables: [Option<Table>; 3],
    offsets: [usize; 3],
}

fn little(bytes: &[u8], count: usize) -> Option<u64> {
    let part = bytes.get(..count)?;
    Some(part.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

impl Frame {
    /// The literals of a block, and the bytes that they take.
    fn literals(&mut self, block: &[u8]) -> Option<(Vec<u8>, usize)> {
        let first = *block.first()?;
        let (kind, format) = (first & 3, first >> 2 & 3);
        if kind < 2 {
            let (header, shift) = match format {
                0 | 2 => (1, 3),
                1 => (2, 4),
                _ => (3, 4),
            };
            let size = (little(block, header)? >> shift) as usize;
            let rest = block.get(header..)?;
            return if kind == 0 {
                Some((rest.get(..size)?.to_vec(), header + size))
            } else {
                Some((vec![*rest.first()?; size], header + 1))
            };
        }
        let (header, bits, streams) = match format {
            0 => (3, 10, 1),
            1 => (3, 10, 4),
            2 => (4, 14, 4),
            _ => (5, 18, 4),
        };
        let sizes = little(block, header)? >> 4;
        let size = (sizes & ((1 << bits) - 1)) as usize;
        let packed = (sizes >> bits & ((1 << bits) - 1)) as usize;
        let mut part = block.get(header..header + packed)?;
        if kind == 2 {
            let (huffman, used) = Huffman::read(part)?;
            self.huffman = Some(huffman);
            part = part.get(used..)?;
        }
        let huffman = self.huffman.as_ref()?;
        let mut out = Vec::new();
        if streams == 1 {
            huffman.unpack(part, &mut out)?;
        } else {
            let (jumps, mut rest) = part.split_at_checked(6)?;
            for i in 0..4 {
                let length = match jumps.get(2 * i..2 * i + 2) {
                    Some(length) => little(length, 2)? as usize,
                    None => rest.len(),
                };
                let (stream, after) = rest.split_at_checked(length)?;
                huffman.unpack(stream, &mut out)?;
                rest = after;
            }
        }
        (out.len() == size).then_some((out, header + packed))
    }

    /// The tables of the sequences, by the modes; the bytes that they take.
    fn read_tables(&mut self, modes: u8, bytes: &[u8]) -> Option<usize> {
        let defaults: [(u32, &[i32], u32); 3] = [
            (6, &LITERAL_COUNTS, 9),
            (5, &OFFSET_COUNTS, 8),
            (6, &MATCH_COUNTS, 9),
        ];
        let mut at = 0;
        for (i, (log, counts, most)) in defaults.into_iter().enumerate() {
            let rest = bytes.get(at..)?;
            match modes >> (6 - 2 * i) & 3 {
                0 => self.tables[i] = Some(Table::new(log, counts)?),
                1 => {
                    self.tables[i] = Some(Table::single(*rest.first()?));
                    at += 1;
                }
                2 => {
                    let (table, used) = Table::read(rest, most)?;
                    self.tables[i] = Some(table);
                    at += used;
                }
                _ => {}
            }
        }
        Some(at)
    }

    fn block(&mut self, block: &[u8]) -> Option<()> {
        let (literals, used) = self.literals(block)?;
        let rest = block.get(used..)?;
        let first = u64::from(*rest.first()?);
        let (count, header) = match first {
            0..128 => (first, 1),
            128..255 => ((first - 128) << 8 | little(rest.get(1..)?, 1)?, 2),
            _ => (little(rest.get(1..)?, 2)? + 0x7f00, 3),
        };
        let mut literals = &literals[..];
        if count > 0 {
            let used = self.read_tables(*rest.get(header)?, rest.get(header + 1..)?)?;
            let tables = self.tables.clone();
            let [Some(lengths), Some(offsets), Some(matches)] = &tables else {
                return None;
            };
            let mut input = Backward::new(rest.get(header + 1 + used..)?)?;
            let mut states = [lengths, offsets, matches].map(|table| input.read(table.log));
            for i in 0..count {
                let code = offsets.symbol(states[1])?;
                let far = (1u64 << code.min(31)) + u64::from(input.read(code.min(31).into()));
                let (base, bits) = long(matches.symbol(states[2])?, 32, 3, &MATCH_LENGTHS)?;
                let length = base + input.read(bits);
                let (base, bits) = long(lengths.symbol(states[0])?, 16, 0, &LITERAL_LENGTHS)?;
                let plain = base + input.read(bits);
                let (now, later) = literals.split_at_checked(plain as usize)?;
                self.out.extend_from_slice(now);
                literals = later;
                let offset = self.offset(far as usize, plain == 0)?;
                self.repeat(offset, length as usize)?;
                if i + 1 < count {
                    lengths.next(&mut states[0], &mut input)?;
                    matches.next(&mut states[2], &mut input)?;
                    offsets.next(&mut states[1], &mut input)?;
                }
            }
            if input.left != 0 {
                return None;
            }
        }
        self.out.extend_from_slice(literals);
        (self.out.len() <= self.most).then_some(())
    }

    /// How far back a match lies: new, or one of the last three.
    fn offset(&mut self, value: usize, no_literals: bool) -> Option<usize> {
        let [a, b, c] = self.offsets;
        let offset = if value > 3 {
            value - 3
        } else {
            match value - 1 + usize::from(no_literals) {
                0 => return Some(a),
                1 => {
                    self.offsets = [b, a, c];
                    return Some(b);
                }
                2 => c,
                _ => a.checked_sub(1)?,
            }
        };
        self.offsets = [offset, a, b];
        Some(offset)
    }

    fn repeat(&mut self, offset: usize, length: usize) -> Option<()> {
        let start = self.out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if self.out.len() + length > self.most {
            return None;
        }
        for i in 0..length {
            self.out.push(self.out[start + i]);
        }
        Some(())
    }
}

/// The content of a frame, of at most `most` bytes; nothing if it is broken.
pub(crate) fn unpack(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    (little(bytes, 4)? as u32 == MAGIC).then_some(())?;
    let descriptor = *bytes.get(4)?;
    let single = descriptor >> 5 & 1 == 1;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        n => 1 << n,
    };
    let mut at = 5 + usize::from(!single) + dictionary + content;
    let mut frame = Frame {
        out: Vec::new(),
        most,
        huffman: None,
        tables: [None, None, None],
        offsets: [1, 4, 8],
    };
    loop {
        let header = little(bytes.get(at..)?, 3)?;
        let (last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
        let rest = bytes.get(at + 3..)?;
        match kind {
            0 => frame.out.extend_from_slice(rest.get(..size)?),
            1 if frame.out.len() + size <= most => {
                frame.out.extend(std::iter::repeat_n(*rest.first()?, size));
            }
            2 => frame.block(rest.get(..size)?)?,
            _ => return None,
        }
        at += 3 + if kind == 1 { 1 } else { size };
        if last {
            return (frame.out.len() <= most).then_some(frame.out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{LITERAL_COUNTS, MATCH_COUNTS, OFFSET_COUNTS, Table, unpack};

    /// A raw block and a repeated byte.
    #[test]
    fn a_frame_without_codes() {
        let raw = |last: u8, kind: u8, size: u8| [last | kind << 1 | size << 3, 0, 0];
        let mut frame = 0xfd2f_b528_u32.to_le_bytes().to_vec();
        frame.extend([0x20, 8]);
        frame.extend(raw(0, 0, 3));
        frame.extend(b"abc");
        frame.extend(raw(1, 1, 5));
        frame.push(b'x');
        assert_eq!(unpack(&frame, 64).as_deref(), Some(&b"abcxxxxx"[..]));
        assert_eq!(unpack(&frame, 4), None);
        for end in 0..frame.len() {
            assert_eq!(unpack(&frame[..end], 64), None);
        }
    }

    /// A frame that zstd 1.5 made at level 19: a Huffman code, and sequences with codes of their own.
    #[test]
    fn a_frame_with_codes() {
        const FRAME: &str = "\
            28b52ffd60ef10bd1700e6654b15b0198603b80a55251901524a99524a42d6af98ae04500041004000ae16fdec046d38a71530941eb44d6806cf5029\
            c43bc56c3167e6a86bb392ec208b880dd5e294dc0779dda28ca5cff1b5040c32da3060a89102067b0b18360004613084824000bb3090703060508010\
            10c22a5a5108e7fff3d667e45b743fa454d9648d3239b32f46ec63ee2d5ed1bab5b45342251bfc389a34e549fd2385c89da37763e299052bd395cb35\
            24caec6962242142d1f722a6d1d512d6f7ce89a17a1b8b852c5dbc4fec77eb7c12e5efd21c96ec9c2a176bbabc951a9ae17a6746ddc6913c07e75211\
            f4d4e73f9f864b6cb6f1c585a96d452b0cd7ca51fba12bc2e5a7be8b237695209bb38d54636fa9345471776a6ed251352ea483bee9893ccd9d7f6634\
            d3e6f2b8731a46190f927453526f813ca821609893f60db1b94024cd4c1d6124a5942781c449701243eb01327f7fbc7cac5a22472e483957358da4d0\
            41db17494650693d2ed059271c4235a20ba95c95c6fc56022586efa323d8ba15c8bb15a8044863c73f4da98233843041726013a42759ddb8ac9faaaa\
            4abad996f78001e546e855a84ac673129b50de5172cf0cdff823f90c20900463900a397947275598a515362dd1d87e3ea734af24a3cac4d8154f0b9a\
            5420e470a98a6f628d8b93a4879b57fa1e49d91af90a15ff3a91af06e751e625aae04a080c0925b5a421dcbed215e102a21c007e59a5edda8ed6c124\
            67378c42d1dc6e44c8312f7b9799d7cf296d8f18840f755a820a84abaa6aa54ab9187665733b578498481a0a94336460e6914898317dfc35f99e2378\
            79d9f8a41b1eb5481872af4991bfaa403b219af09047a7aa826f420871b77e823f8109004890bb38975b5b980aa02026ada0d291e2d113d472cc9e60\
            b703ec040d08b4fc069d35114973c0dc4814563aa89328aa0f65729c237bc92463d6619ba41491400281511917aa9a20d0cdfbe912c4472a20cc351b\
            4d7ac194f7538dd82e6b7743a4051a2c088269079a90723b3302a2368c403bb4ce33e338ee1620def20cb5e601e440f606\
            ";
        let bytes: Option<Vec<u8>> = (0..FRAME.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(FRAME.get(i..i + 2)?, 16).ok())
            .collect();
        let frame = bytes.expect("hexadecimal digits");
        let mut text = String::new();
        for i in 0..120u32 {
            let [a, b, c, d] = [i * 7 % 61, i * i % 43, i * i * i % 1009, i / 3];
            let _ = writeln!(text, "    mad.lo.u32 %r{a}, %r{b}, {c}, %rd{d};");
        }
        assert_eq!(unpack(&frame, 1 << 16).as_deref(), Some(text.as_bytes()));
        // Broken ones are refused, or give something else; none of them panics.
        for i in 0..frame.len() {
            let mut broken = frame.clone();
            broken[i] ^= 1 << (i % 8);
            let _ = unpack(&broken, 1 << 16);
            assert_eq!(unpack(&frame[..i], 1 << 16), None);
        }
    }

    #[test]
    fn the_tables_of_the_rfc_are_complete() {
        for (log, counts) in [
            (6, &LITERAL_COUNTS[..]),
            (5, &OFFSET_COUNTS),
            (6, &MATCH_COUNTS),
        ] {
            let all: i32 = counts.iter().map(|c| c.abs()).sum();
            assert_eq!(all, 1 << log);
            assert!(Table::new(log, counts).is_some());
        }
    }
}
