//! From the element that each lane means to the byte that it addresses.
//!
//! An access is described as a map from the lane to the row-major number of an element of a tile (`row * columns + column`), as `derive` takes
//! it; a tile's layout maps (row, column) to an offset in elements; a bank model counts bytes. This is the way from the first to the last, which
//! is three conversions by hand: the number to a coordinate, the coordinate to an offset, the offset to bytes.
//!
//! ```
//! use layout_core::banks::{Access, NVIDIA, lanes_to_bytes, wavefronts};
//! use layout_core::{Layout, Swizzled};
//!
//! let column = Layout::parse("32:32").unwrap(); // lane -> element (lane, 0) of a 32x32 tile
//! let row_major = Swizzled::parse("(32,32):(32,1)").unwrap();
//! let swizzled = Swizzled::parse("Sw<5,0,5> o (32,32):(32,1)").unwrap();
//! let cost = |tile| wavefronts(&NVIDIA, Access::Ld32, &lanes_to_bytes(tile, &column, 4).unwrap());
//! assert_eq!(cost(&row_major).unwrap().wavefronts, 32);
//! assert_eq!(cost(&swizzled).unwrap().wavefronts, 1);
//! ```

use super::LANES;
use crate::error::LayoutError;
use crate::layout::Layout;
use crate::swizzled::Swizzled;

/// The byte at which the access of each lane begins, -1 for the lanes beyond those of `access`.
///
/// `tile` maps (row, column) to an offset in elements; rows are its first mode, columns all others, the second fastest. `access` maps the
/// lane to the row-major number of the first element that it touches, `row * columns + column`. An element has `element` bytes.
///
/// ```
/// use layout_core::banks::lanes_to_bytes;
/// use layout_core::{Layout, Swizzled};
///
/// let tile = Swizzled::parse("(16,8):(1,16)").unwrap(); // column-major
/// let access = Layout::parse("4:8").unwrap(); // the first elements of four rows
/// let bytes = lanes_to_bytes(&tile, &access, 2).unwrap();
/// assert_eq!(bytes[..5], [0, 2, 4, 6, -1]);
/// ```
///
/// # Errors
///
/// [`LayoutError::NumberOutOfRange`] for more lanes than a warp has or an element outside the tile; [`LayoutError::Overflow`] for a byte beyond
/// 64 bits.
pub const fn lanes_to_bytes(
    tile: &Swizzled,
    access: &Layout,
    element: i64,
) -> Result<[i64; LANES], LayoutError> {
    const OPERATION: &str = "the bytes of an access";
    let lanes = access.size();
    if lanes > LANES as i64 {
        return Err(LayoutError::NumberOutOfRange {
            operation: OPERATION,
            argument: "the number of lanes",
            value: lanes,
            least: 1,
            most: LANES as i64,
        });
    }
    let rows = match tile.shape().get(0) {
        Ok(mode) => match mode.size() {
            Ok(rows) => rows,
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    };
    let columns = tile.size() / rows;
    let mut bytes = [-1; LANES];
    let mut lane = 0;
    while lane < lanes {
        let number = match access.checked_index(lane) {
            Ok(number) => number,
            Err(error) => return Err(error),
        };
        if number < 0 || number >= tile.size() {
            return Err(LayoutError::NumberOutOfRange {
                operation: OPERATION,
                argument: "the element of a lane",
                value: number,
                least: 0,
                most: tile.size() - 1,
            });
        }
        let (row, column) = (number / columns, number % columns);
        // The linear coordinate counts rows first.
        let offset = match tile.checked_index(row + column * rows) {
            Ok(offset) => offset,
            Err(error) => return Err(error),
        };
        bytes[lane as usize] = match offset.checked_mul(element) {
            Some(byte) => byte,
            None => {
                return Err(LayoutError::Overflow {
                    operation: OPERATION,
                });
            }
        };
        lane += 1;
    }
    Ok(bytes)
}
