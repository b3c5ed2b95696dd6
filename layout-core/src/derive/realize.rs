//! From images of bits to layouts and matrices.
//!
//! A search only fixes the *bank* part of each bit's image. Making a bijection of it: each bank direction takes one bit directly (its
//! offset bit is that bank bit), every other bit gets an offset bit of its own above the banks, and keeps its bank part as what is
//! xored in. A direction that no bit uses takes a bit that does not matter, which can only separate more.
//!
//! Example: rows of 64 elements of 2 bytes with the row bits imaged onto the three chunk directions: the chunk bits stay where they are,
//! the row bits go above, and the xor is `Sw<3,3,3>`.

use crate::f2::LinearMap;
use crate::layout::Layout;
use crate::swizzle::Swizzle;
use crate::swizzled::Swizzled;
use crate::{IntTuple, LayoutError, MAX_MODES};

use super::families::Plan;
use super::problem::Problem;
use super::search::{MAX_WORD_BITS, granule_word_bits};

/// Block bits of the largest tile.
const BITS: usize = 24;

/// The bank part of each block bit in directions above the granule (`direction d` is bit `d`), and the bit that each direction takes.
struct Directions {
    /// Element bits that keep their place.
    low: usize,
    /// Bank directions above them.
    count: usize,
    parts: [u8; BITS],
    direct: [usize; 5],
}

fn directions(problem: &Problem, image: &[u8; MAX_WORD_BITS]) -> Directions {
    let granule = granule_word_bits(problem) as usize;
    let log_elem = problem.log_elem as usize;
    let bits = problem.block_bits() as usize;
    let low = granule + 2 - log_elem;
    let count = 5 - granule;
    let mut parts = [0_u8; BITS];
    for (j, part) in parts.iter_mut().enumerate().take(bits).skip(low) {
        *part = image[j + log_elem - 2] >> granule;
    }
    // A direction's own bit is the lowest whose part is exactly it.
    let mut direct = [usize::MAX; 5];
    for (d, slot) in direct.iter_mut().enumerate().take(count) {
        *slot = (low..bits)
            .find(|&j| parts[j] == 1 << d)
            .unwrap_or(usize::MAX);
    }
    for d in 0..count {
        if direct[d] != usize::MAX {
            continue;
        }
        // Bits that do not matter first, then whatever is left: the new direction separates at least as much.
        let free = |j: &usize| !direct.contains(j);
        let j = (low..bits)
            .filter(|&j| parts[j] == 0)
            .find(free)
            .or_else(|| (low..bits).find(free));
        if let Some(j) = j {
            direct[d] = j;
            parts[j] = 1 << d;
        }
    }
    Directions {
        low,
        count,
        parts,
        direct,
    }
}

/// Unit images as bit positions and a swizzle.
pub(super) fn permuted(problem: &Problem, image: &[u8; MAX_WORD_BITS]) -> Plan {
    let Directions {
        low,
        count,
        parts,
        direct,
    } = directions(problem, image);
    let bits = problem.block_bits() as usize;
    let mut positions = [0_u8; BITS];
    for (j, position) in positions.iter_mut().enumerate().take(low) {
        *position = j as u8;
    }
    // Directions with a second bit first, so that sources and targets are both contiguous.
    let second = |d: usize| (low..bits).find(|&j| j != direct[d] && parts[j] == 1 << d);
    let mut next_low = low;
    let mut next_high = low + count;
    let mut b = 0;
    for d in 0..count {
        if let Some(j) = second(d) {
            positions[direct[d]] = next_low as u8;
            positions[j] = next_high as u8;
            next_low += 1;
            next_high += 1;
            b += 1;
        }
    }
    for d in 0..count {
        if second(d).is_none() {
            positions[direct[d]] = next_low as u8;
            next_low += 1;
        }
    }
    for j in low..bits {
        if parts[j] == 0 {
            positions[j] = next_high as u8;
            next_high += 1;
        }
    }
    let (m, s) = if b == 0 {
        (0, 0)
    } else {
        (low as u32, count as u32)
    };
    Plan::Permuted { positions, b, m, s }
}

/// Any images as a matrix.
pub(super) fn matrix(problem: &Problem, image: &[u8; MAX_WORD_BITS]) -> Plan {
    let Directions {
        low,
        count,
        parts,
        direct,
    } = directions(problem, image);
    let mut columns = [0_u32; BITS];
    let mut next_high = low + count;
    for (j, column) in columns
        .iter_mut()
        .enumerate()
        .take(problem.block_bits() as usize)
    {
        *column = if j < low {
            1 << j
        } else {
            u32::from(parts[j]) << low
        };
        if j >= low && !direct[..count].contains(&j) {
            *column |= 1 << next_high;
            next_high += 1;
        }
    }
    Plan::Matrix { columns }
}

/// The plan as a layout (row, column) -> element offset, or as a matrix on the bits of the row-major index.
pub(super) fn realize(problem: &Problem, plan: &Plan) -> (Option<Swizzled>, Option<LinearMap>) {
    if let Plan::Matrix { columns } = plan {
        return (None, index_matrix(problem, columns));
    }
    (layout(problem, plan).ok(), None)
}

fn index_matrix(problem: &Problem, columns: &[u32; BITS]) -> Option<LinearMap> {
    // Columns are a power of two, so the index is the block coordinate with further row bits above, which stay in place.
    let total = 32 - (problem.rows * problem.cols - 1).leading_zeros();
    let mut images = [0_u64; 32];
    for (j, image) in images.iter_mut().enumerate().take(total as usize) {
        *image = if j < problem.block_bits() as usize {
            u64::from(columns[j])
        } else {
            1 << j
        };
    }
    LinearMap::from_columns(&images[..total as usize], total).ok()
}

fn layout(problem: &Problem, plan: &Plan) -> Result<Swizzled, LayoutError> {
    let (rows, cols) = (i64::from(problem.rows), i64::from(problem.cols));
    match *plan {
        Plan::Swizzle { b, m, s, col_major } => {
            let strides = if col_major { [1, rows] } else { [cols, 1] };
            Swizzled::new(swizzle(b, m, s)?, 0, Layout::flat(&[rows, cols], &strides)?)
        }
        Plan::Padded { pitch } => Ok(Swizzled::plain(Layout::flat(
            &[rows, cols],
            &[i64::from(pitch), 1],
        )?)),
        Plan::Tma { b, m, panel } => {
            let panel = i64::from(panel);
            let columns = if panel == cols {
                Layout::mode(cols, 1)?
            } else {
                Layout::flat(&[panel, cols / panel], &[1, panel * rows])?
            };
            let modes = Layout::tuple(&[Layout::mode(rows, panel)?, columns])?;
            Swizzled::new(swizzle(b, m, 3)?, 0, modes)
        }
        Plan::Permuted { positions, b, m, s } => {
            let block = 1_i64 << problem.block_bits();
            let col_bits = problem.col_bits as usize;
            let col_blocks = cols >> problem.col_bits;
            let rows = mode(
                &positions[col_bits..problem.block_bits() as usize],
                rows >> problem.row_bits,
                block * col_blocks,
            )?;
            let cols = mode(&positions[..col_bits], col_blocks, block)?;
            Swizzled::new(swizzle(b, m, s)?, 0, Layout::tuple(&[rows, cols])?)
        }
        Plan::Matrix { .. } | Plan::Rotated(_) => {
            Err(LayoutError::InvalidSwizzle { b: 0, m: 0, s: 0 })
        }
    }
}

fn swizzle(b: u32, m: u32, s: u32) -> Result<Swizzle, LayoutError> {
    if b == 0 {
        Ok(Swizzle::IDENTITY)
    } else {
        Swizzle::new(b, m, s as i32)
    }
}

/// One mode of bits at these offset positions, with whole blocks after them; runs of rising positions are one mode.
fn mode(positions: &[u8], blocks: i64, block_stride: i64) -> Result<Layout, LayoutError> {
    let mut shape = [1_i64; MAX_MODES];
    let mut stride = [0_i64; MAX_MODES];
    let mut modes = 0;
    let steps = positions
        .iter()
        .map(|&p| (2, 1_i64 << p))
        .chain(core::iter::once((blocks, block_stride)));
    for (extent, step) in steps {
        if extent == 1 {
            continue;
        }
        if modes > 0 && step == stride[modes - 1] * shape[modes - 1] {
            shape[modes - 1] *= extent;
        } else {
            shape[modes] = extent;
            stride[modes] = step;
            modes += 1;
        }
    }
    if modes <= 1 {
        Layout::mode(shape[0], stride[0])
    } else {
        Layout::new(
            IntTuple::flat(&shape[..modes])?,
            IntTuple::flat(&stride[..modes])?,
        )
    }
}
