//! Weights from the orders of checkpoints to the packed one ([`order::packed`]): a function for the CPU and a kernel, from the same layouts.
//!
//! An [`Order`] is a layout (row, k) → nibble, as the packed one is. Repacking is the composition of the one with the inverse of the other.

use std::fmt;

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Element, Kernel};
use layout_codegen::value::U32;
use layout_codegen::view::{View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, LayoutError};

use super::order::{self, LANE_WORDS, NIBBLES, PIECE_K, PIECE_ROWS, PIECE_WORDS};
use super::scales::packed_scales;
use super::{MOST, MOST_K};
use crate::KernelError;

/// How a checkpoint has the weights: words of 32 bits with eight of 4 bits each, the first in the lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// n × k/8 words: eight weights along k, rows one behind the other. mxfp4 and nvfp4 checkpoints have this order.
    RowMajor,
    /// GPTQ: k/8 × n words, eight weights along k.
    Gptq,
    /// AWQ: k × n/8 words, eight weights along n in the order 0, 2, 4, 6, 1, 3, 5, 7.
    Awq,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RowMajor, Self::Gptq, Self::Awq];

    /// (row, k) → nibble for n rows of k weights.
    ///
    /// ```
    /// use tilewright_kernels::weight_only::repack::Order;
    ///
    /// let layouts = Order::ALL.map(|order| order.layout(16, 32).map(|layout| layout.to_string()));
    /// let layouts = layouts.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(layouts, ["(16,32):(32,1)", "(16,(8,4)):(8,(1,128))", "(((2,4),2),32):(((4,1),8),16)"]);
    /// # Ok::<(), tilewright_kernels::KernelError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`KernelError::Number`] for an extent of which words do not have whole eights; [`KernelError::View`] for a layout that overflows.
    pub fn layout(self, n: i64, k: i64) -> Result<Layout, KernelError> {
        let (extent, what) = match self {
            Self::Awq => (n, "rows of weights"),
            _ => (k, "weights of a row"),
        };
        if extent < 1 || extent % NIBBLES != 0 {
            return Err(KernelError::Number {
                what,
                given: extent.to_string(),
                accepted: "a multiple of 8, as a word has eight of them",
            });
        }
        let eights = |within: Layout, count: i64, stride: i64| -> Result<Layout, LayoutError> {
            Layout::tuple(&[within, Layout::mode(count, stride)?])
        };
        Ok(match self {
            Self::RowMajor => Layout::flat(&[n, k], &[k, 1])?,
            Self::Gptq => {
                let along_k = eights(self.within()?, k / NIBBLES, NIBBLES * n)?;
                Layout::tuple(&[Layout::mode(n, NIBBLES)?, along_k])?
            }
            Self::Awq => {
                let along_n = eights(self.within()?, n / NIBBLES, NIBBLES)?;
                Layout::tuple(&[along_n, Layout::mode(k, n)?])?
            }
        })
    }

    /// One of eight neighbours → its nibble in their word.
    fn within(self) -> Result<Layout, LayoutError> {
        match self {
            Self::Awq => Layout::flat(&[2, 4], &[4, 1]),
            _ => Layout::mode(NIBBLES, 1),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RowMajor => "row-major",
            Self::Gptq => "gptq",
            Self::Awq => "awq",
        })
    }
}

/// The words of n rows of k weights in the packed order, from those of a checkpoint. Weights behind the last row and column are 0.
///
/// ```
/// use tilewright_kernels::weight_only::repack::{Order, repack};
///
/// // Row 0 is 0, 1, 2, …; a lane has weights 0, 1, 8 and 9 of rows 0 and 1 in a word.
/// let words = [0x7654_3210, 0xfedc_ba98, 0, 0];
/// assert_eq!(repack(Order::RowMajor, &words, [2, 16])?[0], 0x0901_0800);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Number`] for another number of words than n·k/8, and for extents that words do not divide.
pub fn repack(order: Order, words: &[u32], [n, k]: [usize; 2]) -> Result<Vec<u32>, KernelError> {
    let [rows, depth] = sizes([n, k])?;
    let (from, to) = (order.layout(rows, depth)?, order::packed(rows, depth)?);
    if words.len() as i64 * NIBBLES != rows * depth {
        return Err(KernelError::Number {
            what: "words of the weights",
            given: words.len().to_string(),
            accepted: "n·k/8",
        });
    }
    let mut packed = vec![0; (to.size() / NIBBLES) as usize];
    for row in 0..rows {
        for k in 0..depth {
            let (from, to) = (from.at(&[row, k]), to.at(&[row, k]));
            let value = words[(from / NIBBLES) as usize] >> (4 * (from % NIBBLES)) & 15;
            packed[(to / NIBBLES) as usize] |= value << (4 * (to % NIBBLES));
        }
    }
    Ok(packed)
}

/// The words of the scales of mxfp4 or nvfp4 weights in the order of [`packed_scales`], from n × k/group bytes, row-major.
///
/// ```
/// use tilewright_kernels::weight_only::repack::repack_scales;
///
/// assert_eq!(repack_scales(&[1, 2, 3, 4], [2, 64], 32)?[0], 0x0402_0301);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Number`] for another number of bytes, and for other groups than 16 and 32.
pub fn repack_scales(
    bytes: &[u8],
    [n, k]: [usize; 2],
    group: usize,
) -> Result<Vec<u32>, KernelError> {
    let [rows, depth] = sizes([n, k])?;
    let refuse = |what, given: usize, accepted| KernelError::Number {
        what,
        given: given.to_string(),
        accepted,
    };
    if group != 16 && group != 32 {
        return Err(refuse("weights of a group", group, "16 or 32"));
    }
    let groups = k.div_ceil(group);
    if bytes.len() != n * groups {
        return Err(refuse("bytes of the scales", bytes.len(), "n·⌈k/group⌉"));
    }
    let to = packed_scales(rows, depth, group as i64)?;
    let mut packed = vec![0; (to.size() / 4) as usize];
    for (row, of_row) in bytes.chunks(groups.max(1)).enumerate() {
        for (group, &byte) in of_row.iter().enumerate() {
            let to = to.at(&[row as i64, group as i64]);
            packed[(to / 4) as usize] |= u32::from(byte) << (8 * (to % 4));
        }
    }
    Ok(packed)
}

/// Extents that the kernels take.
fn sizes([n, k]: [usize; 2]) -> Result<[i64; 2], KernelError> {
    let of = |what, given: usize, most: i64, accepted| match i64::try_from(given) {
        Ok(extent) if extent <= most => Ok(extent),
        _ => Err(KernelError::Number {
            what,
            given: given.to_string(),
            accepted,
        }),
    };
    Ok([
        of("rows of weights", n, MOST, "at most 2^24")?,
        of("weights of a row", k, MOST_K, "at most 2^20")?,
    ])
}

/// Threads of a block: four warps, with a piece along k each.
const THREADS: i64 = 128;

/// The kernel `weight_only_repack_<order>(n, k, from, w)`: `from` are the words of a checkpoint, `w` the packed ones, as [`order::packed`] says.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::weight_only::repack::{Order, repack_kernel};
///
/// let kernel = repack_kernel(Order::Gptq, Arch(80))?;
/// assert_eq!((kernel.name(), &kernel.proof.covered[..]), ("weight_only_repack_gptq", &["w".to_owned()][..]));
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
///
/// # Errors
///
/// [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn repack_kernel(order: Order, arch: Arch) -> Result<Proven, KernelError> {
    let name = format!("weight_only_repack_{order}").replace('-', "_");
    let mut k = Kernel::new(&name, THREADS as u32);
    let (n, depth) = (k.size("n", MOST), k.size("k", MOST_K));
    let eights = |k: &mut Kernel, extent| k.div(extent, NIBBLES);
    let extents = match order {
        Order::RowMajor => [n, eights(&mut k, depth)],
        Order::Gptq => [eights(&mut k, depth), n],
        Order::Awq => [depth, eights(&mut k, n)],
    };
    let from = k.input("from", Element::S32, &extents);
    let [pieces, along] = [k.tiles_in(n, PIECE_ROWS)?, k.tiles_in(depth, PIECE_K)?];
    let words = k.constant(PIECE_WORDS);
    let w = k.output("w", Element::S32, &[pieces, along, words]);
    let of_block = THREADS / 32;
    let (i, j) = (
        k.tiles(Axis::X, pieces, 1)?,
        k.tiles(Axis::Y, along, of_block)?,
    );
    let (thread, lane, warp) = (k.thread(), k.lane(), k.warp());
    let piece = k.linear(&[(of_block, j), (1, warp)], 0);
    let source = Source {
        from,
        order,
        first: [i, piece],
        lane,
        loaded: Vec::new(),
    };
    let own = source.words(&mut k)?;
    // Warp after warp a piece each, lane after lane 16 bytes each.
    let threads = Layout::flat(&[32, of_block], &[LANE_WORDS * of_block, 1])?;
    let shares = Layout::tuple(&[threads, Layout::mode(LANE_WORDS, of_block)?])?;
    let (tile, zero) = ([of_block, PIECE_WORDS], k.constant(0));
    let to = w.slice(&mut k, &[i])?.tile(&mut k, &tile, &[j, zero])?;
    let to = to.partition(&mut k, &shares, thread)?;
    let own = k.fragment(tile, &shares, thread, &own)?;
    k.store_fragment(&to.vectors(&k, LANE_WORDS)?, &own)?;
    Ok(k.build(arch)?)
}

/// Where a lane finds the weights of its piece.
struct Source {
    from: View,
    order: Order,
    /// The piece along the rows and along k.
    first: [Expr; 2],
    lane: Expr,
    /// Words by their coordinates: each is loaded once.
    loaded: Vec<([Expr; 2], U32)>,
}

impl Source {
    /// The lane's words of the packed piece.
    fn words(mut self, k: &mut Kernel) -> Result<Vec<U32>, ViewError> {
        // nibble of the piece → row and k, as (lane, nibble of the lane).
        let own = Layout::flat(&[32, LANE_WORDS * NIBBLES], &[LANE_WORDS * NIBBLES, 1])?;
        let nibbles = order::piece()?.compose(&own)?;
        let mut modes = Vec::new();
        for unit in [[1, 0], [0, 1]] {
            modes.push(Layout::flat(&[PIECE_ROWS, PIECE_K], &unit)?.compose(&nibbles)?);
        }
        let mut words = Vec::new();
        for word in 0..LANE_WORDS {
            let mut all: Option<U32> = None;
            for nibble in 0..NIBBLES {
                let number = k.constant(word * NIBBLES + nibble);
                let mut at = self.first;
                for ((at, mode), extent) in at.iter_mut().zip(&modes).zip([PIECE_ROWS, PIECE_K]) {
                    let within = k.index(mode, &[self.lane, number])?;
                    *at = k.linear(&[(extent, *at), (1, within)], 0);
                }
                let value = self.weight(k, at)?;
                let value = if nibble == 0 {
                    value
                } else {
                    value.shl(k, 4 * nibble as u32)
                };
                all = Some(match all {
                    None => value,
                    Some(before) => before.or(k, value),
                });
            }
            words.extend(all);
        }
        Ok(words)
    }

    /// The weight at (row, k), 0 where there is none.
    fn weight(&mut self, k: &mut Kernel, [row, column]: [Expr; 2]) -> Result<U32, ViewError> {
        let packed = if self.order == Order::Awq {
            row
        } else {
            column
        };
        let (eight, within) = (k.div(packed, NIBBLES), k.rem(packed, NIBBLES));
        let at = match self.order {
            Order::RowMajor => [row, eight],
            Order::Gptq => [eight, row],
            Order::Awq => [column, eight],
        };
        let known = self.loaded.iter().find(|(known, _)| *known == at);
        let word = if let Some(&(_, word)) = known {
            word
        } else {
            let word = self.from.load::<u32>(k, &at)?;
            self.loaded.push((at, word));
            word
        };
        let nibble = k.index(&self.order.within()?, &[within])?;
        let bits = k.scale(nibble, 4);
        let bits = U32::index(k, bits);
        Ok(word.shr(k, bits).and(k, 15))
    }
}
