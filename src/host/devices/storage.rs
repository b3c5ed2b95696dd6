//! How a buffer of a program lies in memory.
//!
//! A block lies row by row as its operand is stored: a transposed one by the columns of the product. Rows begin at multiples of 16 bytes, whatever
//! the width, so that every kernel takes its fast path.

use layout_codegen::ir::Element;
use layout_core::devices::Block;
use tilewright_kernels::devices::{Operand, Program};
use tilewright_kernels::gemm::{DataType, Gemm, Trans};

use crate::host::Matrix;

/// Bytes that rows begin at multiples of.
const ROW: u64 = 16;

/// The memory of one buffer.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    pub(super) element: Element,
    transposed: bool,
    /// The block as it is stored.
    rows: std::ops::Range<u64>,
    columns: std::ops::Range<u64>,
    /// Elements from one row to the next.
    pub(super) ld: u64,
}

/// A block in a buffer: rows of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Bytes from the start of the buffer.
    pub(super) offset: usize,
    /// Rows, as they are stored.
    pub(super) rows: usize,
    /// Bytes of a row.
    pub(super) width: usize,
    /// Bytes from one row to the next.
    pub(super) pitch: usize,
}

impl Span {
    /// Bytes from the first to the last.
    pub(super) fn len(self) -> usize {
        match (self.rows, self.width) {
            (0, _) | (_, 0) => 0,
            (rows, width) => (rows - 1) * self.pitch + width,
        }
    }

    /// Whether it is one run of bytes.
    #[cfg(feature = "gpu")]
    pub(super) fn is_run(self) -> bool {
        self.rows <= 1 || self.pitch == self.width
    }

    /// Where each row begins.
    pub(super) fn starts(self) -> impl Iterator<Item = usize> {
        let rows = if self.width == 0 { 0 } else { self.rows };
        (0..rows).map(move |row| self.offset + row * self.pitch)
    }

    /// What the address of the block is a multiple of, in an aligned buffer: at most 16.
    pub(super) fn alignment(self) -> u32 {
        1 << self.offset.trailing_zeros().min(4)
    }
}

impl Storage {
    pub(super) fn of(program: &Program, buffer: usize, data_type: DataType) -> Self {
        let buffer = &program.buffers[buffer];
        let Gemm { operands, .. } = program.problem;
        let (element, transposed) = match buffer.operand {
            Operand::A => (data_type.operand(), operands.a == Trans::T),
            Operand::B => (data_type.operand(), operands.b == Trans::T),
            Operand::C => (program.problem.result(data_type), false),
        };
        let (rows, columns) = stored(&buffer.block, transposed);
        let step = (ROW / u64::from(element.bytes())).max(1);
        let ld = (columns.end - columns.start).max(1).next_multiple_of(step);
        Self {
            element,
            transposed,
            rows,
            columns,
            ld,
        }
    }

    /// Bytes of the whole buffer, every row in full.
    pub(super) fn bytes(&self) -> usize {
        let elements = (self.rows.end - self.rows.start) * self.ld;
        (elements * u64::from(self.element.bytes())) as usize
    }

    /// Whether the rows of a block, as they are stored, are those of the buffer.
    pub(super) fn has_whole_rows(&self, block: &Block) -> bool {
        stored(block, self.transposed).1 == self.columns
    }

    /// A block as one run of bytes, the padding of its rows included: where it begins, and its bytes. None if other blocks lie between its rows.
    pub(super) fn run(&self, block: &Block) -> Option<(usize, usize)> {
        let span = self.span(block);
        self.has_whole_rows(block)
            .then(|| (span.offset, span.rows * span.pitch))
    }

    /// Where a block of the matrix lies.
    pub(super) fn span(&self, block: &Block) -> Span {
        let (rows, columns) = stored(block, self.transposed);
        let size = u64::from(self.element.bytes());
        let empty = rows.start >= rows.end || columns.start >= columns.end;
        let first = if empty {
            0
        } else {
            (rows.start - self.rows.start) * self.ld + (columns.start - self.columns.start)
        };
        Span {
            offset: (first * size) as usize,
            rows: rows.end.saturating_sub(rows.start) as usize,
            width: (columns.end.saturating_sub(columns.start) * size) as usize,
            pitch: (self.ld * size) as usize,
        }
    }

    /// The same rows in the whole matrix.
    pub(super) fn in_whole(&self, block: &Block, whole: &Matrix) -> Span {
        let (rows, columns) = stored(block, self.transposed);
        let size = self.element.bytes() as usize;
        Span {
            offset: (rows.start as usize * whole.ld + columns.start as usize) * size,
            rows: rows.end.saturating_sub(rows.start) as usize,
            width: columns.end.saturating_sub(columns.start) as usize * size,
            pitch: whole.ld * size,
        }
    }

    /// Copies a block of the whole matrix to its place in the buffer.
    pub(super) fn fill(&self, bytes: &mut [u8], block: &Block, whole: &Matrix) {
        let (to, from) = (self.span(block), self.in_whole(block, whole));
        for (start, row) in to.starts().zip(from.starts()) {
            bytes[start..][..to.width].copy_from_slice(&whole.bytes[row..][..to.width]);
        }
    }

    /// Copies a block of the buffer to its place in the whole matrix.
    pub(super) fn take(&self, bytes: &[u8], block: &Block, whole: &mut Matrix) {
        let (from, to) = (self.span(block), self.in_whole(block, whole));
        for (to, start) in to.starts().zip(from.starts()) {
            whole.bytes[to..][..from.width].copy_from_slice(&bytes[start..][..from.width]);
        }
    }
}

fn stored(block: &Block, transposed: bool) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
    let Block { rows, columns } = block.clone();
    if transposed {
        (columns, rows)
    } else {
        (rows, columns)
    }
}

/// A block of a whole matrix as a matrix of its own, packed; rows and columns are those of the product.
#[cfg(feature = "gpu")]
pub(super) fn cut(whole: &Matrix, block: &Block, transposed: bool) -> Matrix {
    let (rows, columns) = stored(block, transposed);
    let size = whole.element.bytes() as usize;
    let [height, width] =
        [&rows, &columns].map(|range| range.end.saturating_sub(range.start) as usize);
    let mut bytes = Vec::with_capacity(height * width * size);
    if width > 0 {
        for row in rows {
            let start = (row as usize * whole.ld + columns.start as usize) * size;
            bytes.extend_from_slice(&whole.bytes[start..][..width * size]);
        }
    }
    Matrix {
        element: whole.element,
        rows: height,
        cols: width,
        ld: width.max(1),
        count: 1,
        stride: 0,
        bytes,
    }
}
