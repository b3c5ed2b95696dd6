//! Tensor memory: the places of accumulators, and the copies of `tcgen05.ld` and `tcgen05.st`.

use crate::error::{LayoutError, attempt};
use crate::layout::Layout;

/// Lanes of tensor memory.
///
/// ```
/// assert_eq!(layout_core::atoms::tcgen05::TMEM_LANES, 128);
/// ```
pub const TMEM_LANES: i64 = 128;
/// Columns of 32 bits of tensor memory.
///
/// ```
/// assert_eq!(layout_core::atoms::tcgen05::TMEM_COLUMNS, 512);
/// ```
pub const TMEM_COLUMNS: i64 = 512;
/// Number of the first place of the second block of a pair.
const BLOCK: i64 = TMEM_LANES * TMEM_COLUMNS;

/// A place in tensor memory.
///
/// ```
/// use layout_core::atoms::tcgen05::{TmemPlace, tmem_place};
/// assert_eq!(tmem_place(65536 + 128 * 5 + 3), TmemPlace { cta: 1, lane: 3, column: 5 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct TmemPlace {
    /// The block of the pair: 0 or 1.
    pub cta: i64,
    /// The lane, 0 to 127.
    pub lane: i64,
    /// The column of 32 bits, 0 to 511.
    pub column: i64,
}

/// The place numbered `lane + 128·column + 65536·cta`.
///
/// ```
/// use layout_core::atoms::tcgen05::tmem_place;
/// let place = tmem_place(128 * 7 + 40);
/// assert_eq!((place.cta, place.lane, place.column), (0, 40, 7));
/// ```
pub const fn tmem_place(number: i64) -> TmemPlace {
    TmemPlace {
        cta: number.div_euclid(BLOCK),
        lane: number.rem_euclid(TMEM_LANES),
        column: number.rem_euclid(BLOCK) / TMEM_LANES,
    }
}

/// The number of blocks that compute one product.
///
/// ```
/// use layout_core::atoms::tcgen05::{CtaGroup, accumulator};
/// let letter = |group, m| accumulator(group, m, 128).unwrap().letter;
/// assert_eq!([letter(CtaGroup::One, 128), letter(CtaGroup::Two, 128)], ['D', 'B']);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CtaGroup {
    /// `cta_group::1`.
    One,
    /// `cta_group::1` with `.ws` (weight stationary).
    OneWs,
    /// `cta_group::2`: a pair of blocks, A dense.
    Two,
    /// `cta_group::2`, A sparse.
    TwoSparse,
}

/// The place of an instruction's accumulator in tensor memory.
///
/// ```
/// use layout_core::atoms::tcgen05::{CtaGroup, accumulator};
/// // N is split in two halves of 64 lanes each.
/// let d = accumulator(CtaGroup::OneWs, 64, 128).unwrap();
/// assert_eq!((d.letter, d.columns), ('E', 64));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct Accumulator {
    /// `(m, n) -> lane + 128·column + 65536·cta`, from the lane and column that the instruction is given.
    pub layout: Layout,
    /// The manual's letter for the layout: `A` to `G`.
    pub letter: char,
    /// Rows of D.
    pub m: i64,
    /// Columns of D.
    pub n: i64,
    /// Columns of tensor memory that it takes in each block. A 16-bit accumulator takes as many columns as a 32-bit one: each value
    /// is in the lower half of its word.
    pub columns: i64,
}

/// The accumulator of a `tcgen05.mma` of M×N.
///
/// | letter | M | blocks | lane and column of `(m, n)` |
/// |---|---|---|---|
/// | A | 256 | 2 | lane m % 128, column n, block m / 128 |
/// | B | 128 | 2, dense | lane m % 64 + 64·(n / (N/2)), column n % (N/2), block m / 64 |
/// | C | 128 | 2, sparse | lane 32·((m % 64) / 16) + m % 16, column n, block m / 64 |
/// | D | 128 | 1 | lane m, column n |
/// | E | 64 | 1, `.ws` | lane m + 64·(n / (N/2)), column n % (N/2) |
/// | F | 64 | 1 | lane 32·(m / 16) + m % 16, column n |
/// | G | 32 | 1, `.ws` | lane m + 32·(n / (N/4)), column n % (N/4) |
///
/// C and F use the lower 16 lanes of each warp's 32, or with a lane of 16 in the address the upper 16.
///
/// ```
/// use layout_core::atoms::tcgen05::{CtaGroup, accumulator, tmem_place};
/// let d = accumulator(CtaGroup::One, 64, 32).unwrap();
/// assert_eq!((d.letter, d.layout.to_string().as_str()), ('F', "((16,4),32):((1,32),128)"));
/// let place = tmem_place(d.layout.at(&[17, 5]));
/// assert_eq!((place.lane, place.column), (33, 5));
/// ```
///
/// # Errors
///
/// An M that the group does not support; an N that is not a multiple of 8 (of 16 for two blocks) up to 256, or, with `.ws`, not 64, 128
/// or 256.
pub const fn accumulator(group: CtaGroup, m: i64, n: i64) -> Result<Accumulator, LayoutError> {
    const OPERATION: &str = "the accumulator of tcgen05.mma";
    let (step, accepted_n) = match group {
        CtaGroup::One => (8, "a multiple of 8 from 8 to 256"),
        CtaGroup::OneWs => (64, "64, 128 or 256"),
        CtaGroup::Two | CtaGroup::TwoSparse => (16, "a multiple of 16 from 16 to 256"),
    };
    if n < step || n > 256 || n % step != 0 || (matches!(group, CtaGroup::OneWs) && n == 192) {
        return Err(LayoutError::InvalidNumber {
            operation: OPERATION,
            argument: "N",
            value: n,
            accepted: accepted_n,
        });
    }
    let (letter, rows, row_strides, parts): (char, &[i64], &[i64], i64) = match (group, m) {
        (CtaGroup::Two | CtaGroup::TwoSparse, 256) => ('A', &[128, 2], &[1, BLOCK], 1),
        (CtaGroup::Two, 128) => ('B', &[64, 2], &[1, BLOCK], 2),
        (CtaGroup::TwoSparse, 128) => ('C', &[16, 4, 2], &[1, 32, BLOCK], 1),
        (CtaGroup::One | CtaGroup::OneWs, 128) => ('D', &[128], &[1], 1),
        (CtaGroup::OneWs, 64) => ('E', &[64], &[1], 2),
        (CtaGroup::One, 64) => ('F', &[16, 4], &[1, 32], 1),
        (CtaGroup::OneWs, 32) => ('G', &[32], &[1], 4),
        _ => {
            return Err(LayoutError::InvalidNumber {
                operation: OPERATION,
                argument: "M",
                value: m,
                accepted: match group {
                    CtaGroup::One => "64 or 128",
                    CtaGroup::OneWs => "32, 64 or 128",
                    CtaGroup::Two | CtaGroup::TwoSparse => "128 or 256",
                },
            });
        }
    };
    let columns = n / parts;
    let along_n = if parts == 1 {
        attempt!(Layout::mode(n, TMEM_LANES))
    } else {
        attempt!(Layout::flat(
            &[columns, parts],
            &[TMEM_LANES, TMEM_LANES / parts]
        ))
    };
    let along_m = if rows.len() == 1 {
        attempt!(Layout::mode(rows[0], row_strides[0]))
    } else {
        attempt!(Layout::flat(rows, row_strides))
    };
    Ok(Accumulator {
        layout: attempt!(Layout::tuple(&[along_m, along_n])),
        letter,
        m,
        n,
        columns,
    })
}

/// The shapes of `tcgen05.ld` and `tcgen05.st`: lanes × bits of each, which `.num` repeats along columns.
///
/// ```
/// use layout_core::atoms::{MMA_M16N8K16_F16, tcgen05::{TmemShape, tmem_copy, tmem_place}};
/// // The upper 8 rows of `.16x256b` are those of C of m16n8.
/// let copy = tmem_copy(TmemShape::L16x256b, 1, 0).unwrap();
/// let place = tmem_place(copy.layout.at(&[5, 1]));
/// assert_eq!(MMA_M16N8K16_F16.c.at(&[5, 1]), place.lane + 16 * place.column);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum TmemShape {
    /// `.32x32b`: thread t has lane t.
    L32x32b,
    /// `.16x64b`.
    L16x64b,
    /// `.16x128b`.
    L16x128b,
    /// `.16x256b`: the pattern of C of `mma` m16n8.
    L16x256b,
    /// `.16x32bx2`: threads 16 to 31 have the same lanes as threads 0 to 15, and columns further on.
    L16x32bx2,
}

impl TmemShape {
    /// All shapes.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::TmemShape;
    /// assert!(TmemShape::ALL.iter().all(|shape| shape.lanes() >= 16));
    /// ```
    pub const ALL: [Self; 5] = [
        Self::L32x32b,
        Self::L16x64b,
        Self::L16x128b,
        Self::L16x256b,
        Self::L16x32bx2,
    ];

    /// The qualifier without its dot.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::TmemShape;
    /// assert_eq!(TmemShape::L16x32bx2.name(), "16x32bx2");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::L32x32b => "32x32b",
            Self::L16x64b => "16x64b",
            Self::L16x128b => "16x128b",
            Self::L16x256b => "16x256b",
            Self::L16x32bx2 => "16x32bx2",
        }
    }

    /// Lanes that a warp reaches.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::TmemShape;
    /// assert_eq!((TmemShape::L32x32b.lanes(), TmemShape::L16x64b.lanes()), (32, 16));
    /// ```
    pub const fn lanes(self) -> i64 {
        match self {
            Self::L32x32b => 32,
            _ => 16,
        }
    }

    /// Registers of a thread for `.x1`.
    ///
    /// ```
    /// use layout_core::atoms::tcgen05::TmemShape;
    /// assert_eq!((TmemShape::L32x32b.registers(), TmemShape::L16x256b.registers()), (1, 4));
    /// ```
    pub const fn registers(self) -> i64 {
        match self {
            Self::L32x32b | Self::L16x64b | Self::L16x32bx2 => 1,
            Self::L16x128b => 2,
            Self::L16x256b => 4,
        }
    }
}

/// The copy by one warp's `tcgen05.ld` or `tcgen05.st`.
///
/// ```
/// use layout_core::atoms::tcgen05::{TmemShape, tmem_copy};
/// let copy = tmem_copy(TmemShape::L16x256b, 4, 0).unwrap();
/// assert_eq!((copy.registers, copy.columns), (16, 32));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[must_use]
#[non_exhaustive]
pub struct TmemCopy {
    /// `(thread, register) -> lane + 128·column`, from the address that the instruction is given. A warp w of its warpgroup reaches
    /// lanes 32w to 32w + 31 only.
    pub layout: Layout,
    /// The shape.
    pub shape: TmemShape,
    /// `.num`: how often the shape is repeated along columns.
    pub repeat: i64,
    /// Registers of a thread.
    pub registers: i64,
    /// Columns that it reaches; with `.16x32bx2`, of each half.
    pub columns: i64,
}

/// The layout of `tcgen05.ld` and `tcgen05.st` of a shape, `.x{repeat}`. With t = thread % 4 and g = thread / 4, register r has:
///
/// | shape | lane | column |
/// |---|---|---|
/// | `.32x32b` | thread | r |
/// | `.16x64b` | 8·(t & 1) + g | (t >> 1) + 2r |
/// | `.16x128b` | g + 8·(r & 1) | t + 4·(r >> 1) |
/// | `.16x256b` | g + 8·((r >> 1) & 1) | 2t + (r & 1) + 8·(r >> 2) |
/// | `.16x32bx2` | thread % 16 | r + `half_split`·(thread / 16) |
///
/// `half_split` is the immediate of `.16x32bx2`, in columns, and 0 for the other shapes.
///
/// ```
/// use layout_core::atoms::tcgen05::{TmemShape, tmem_copy, tmem_place};
/// let copy = tmem_copy(TmemShape::L16x64b, 2, 0).unwrap();
/// // Thread 7: t = 3, g = 1. Register 1 is lane 8·1 + 1, column 1 + 2·1.
/// let place = tmem_place(copy.layout.at(&[7, 1]));
/// assert_eq!((place.lane, place.column), (9, 3));
/// assert!(tmem_copy(TmemShape::L16x64b, 3, 0).is_err());
/// ```
///
/// # Errors
///
/// A repeat that is not a power of 2, or takes more than 128 registers; a half split of another shape than `.16x32bx2`, one
/// outside tensor memory, or one with overlapping halves.
pub const fn tmem_copy(
    shape: TmemShape,
    repeat: i64,
    half_split: i64,
) -> Result<TmemCopy, LayoutError> {
    const OPERATION: &str = "tcgen05.ld or tcgen05.st";
    const COLUMN: i64 = TMEM_LANES;
    let registers = shape.registers();
    let most = 128 / registers;
    if repeat < 1 || repeat > most || repeat & (repeat - 1) != 0 {
        return Err(LayoutError::InvalidNumber {
            operation: OPERATION,
            argument: "the repeat",
            value: repeat,
            accepted: match registers {
                1 => "a power of 2 from 1 to 128",
                2 => "a power of 2 from 1 to 64",
                _ => "a power of 2 from 1 to 32",
            },
        });
    }
    let split = matches!(shape, TmemShape::L16x32bx2);
    if split && (half_split < repeat || half_split > TMEM_COLUMNS - repeat) {
        return Err(LayoutError::NumberOutOfRange {
            operation: OPERATION,
            argument: "the half split in columns",
            value: half_split,
            least: repeat,
            most: TMEM_COLUMNS - repeat,
        });
    }
    if !split && half_split != 0 {
        return Err(LayoutError::InvalidNumber {
            operation: OPERATION,
            argument: "the half split in columns",
            value: half_split,
            accepted: "0: only .16x32bx2 has halves",
        });
    }
    let (threads, thread_strides, values, value_strides): (&[i64], &[i64], &[i64], &[i64]) =
        match shape {
            TmemShape::L32x32b => (&[32], &[1], &[repeat], &[COLUMN]),
            TmemShape::L16x64b => (&[2, 2, 8], &[8, COLUMN, 1], &[repeat], &[2 * COLUMN]),
            TmemShape::L16x128b => (&[4, 8], &[COLUMN, 1], &[2, repeat], &[8, 4 * COLUMN]),
            TmemShape::L16x256b => (
                &[4, 8],
                &[2 * COLUMN, 1],
                &[2, 2, repeat],
                &[COLUMN, 8, 8 * COLUMN],
            ),
            TmemShape::L16x32bx2 => (&[16, 2], &[1, half_split * COLUMN], &[repeat], &[COLUMN]),
        };
    Ok(TmemCopy {
        layout: attempt!(Layout::tuple(&[
            attempt!(Layout::flat(threads, thread_strides)),
            attempt!(Layout::flat(values, value_strides)),
        ])),
        shape,
        repeat,
        registers: registers * repeat,
        columns: registers * repeat * 32 / shape.lanes() / if split { 2 } else { 1 },
    })
}
