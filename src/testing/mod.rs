//! Properties of layouts for your own tests (feature `testing`).
//!
//! Two assertions that prove rather than sample, and proptest strategies that make layouts, so that a kernel's own layouts
//! can be held to laws:
//!
//! ```
//! use tilewright::testing::{assert_bijective, assert_conflict_free};
//! use tilewright::{Swizzled, layout};
//!
//! // Halves, 8 rows of 64: bytes, so that lanes give addresses.
//! const TILE: Swizzled = layout!(Sw<3,3,3> o (8,64):(64,1));
//! assert_bijective!(TILE);
//! // The tile, bytes of an element, and for each lane the row-major index of its first element.
//! assert_conflict_free!("ldmatrix.x1", (TILE, 2, layout!(8:64)));
//! // The same with the lanes' byte addresses: the row that each points at, down a column of 16-byte chunks.
//! assert_conflict_free!("ldmatrix.x1", layout!(Sw<3,4,3> o 8:128));
//! ```
//!
//! ```should_panic
//! # use tilewright::{testing::assert_conflict_free, layout};
//! // Without the swizzle all eight rows lie in the same banks.
//! assert_conflict_free!("ldmatrix.x1", layout!(8:128));
//! ```
//!
//! The strategies live in [`strategies`]; use them with `proptest!` as any other:
//!
//! ```
//! use proptest::prelude::*;
//! use tilewright::testing::strategies;
//!
//! proptest!(|(layout in strategies::layouts())| {
//!     prop_assert!(layout.coalesce().equal_as_functions(&layout));
//! });
//! ```

pub mod strategies;

use crate::Swizzled;
use crate::banks::{self, Access, LANES, NVIDIA};
use crate::derive::{Pattern, Tile, recount};
use crate::proof::{bijective, prove_access};

#[doc(inline)]
pub use crate::{assert_bijective, assert_conflict_free, assert_injective};

/// A layout that [`assert_bijective!`], [`assert_injective!`] and [`assert_conflict_free!`] take: `Layout` or `Swizzled`, by value or reference.
pub trait AsSwizzled {
    /// The layout as a composed one.
    fn as_layout(&self) -> Swizzled;
}

impl AsSwizzled for Swizzled {
    fn as_layout(&self) -> Swizzled {
        *self
    }
}

impl AsSwizzled for crate::Layout {
    fn as_layout(&self) -> Swizzled {
        Swizzled::plain(*self)
    }
}

impl<L: AsSwizzled> AsSwizzled for &L {
    fn as_layout(&self) -> Swizzled {
        (*self).as_layout()
    }
}

/// Where the lanes of a warp are, as [`assert_conflict_free!`] takes it:
///
/// - a layout (lane, rest) -> *byte* offset;
/// - (tile, bytes of an element, lanes): the tile maps (row, column) to the element offset, and `lanes` maps the lane to the row-major
///   index (`row * columns + column`) of the first element that it touches, as `tilewright derive --access` has it. A layout that
///   counts the first mode fastest, as compositions and partitions do, becomes one by composition: `row_major.compose(&lanes)`.
pub trait AsLanes {
    /// Why the access is not free of bank conflicts; `Ok` if it is.
    ///
    /// # Errors
    ///
    /// A conflict, or what makes the access impossible, as text.
    fn check(&self, access: Access) -> Result<(), String>;
}

impl<L: AsSwizzled> AsLanes for L {
    fn check(&self, access: Access) -> Result<(), String> {
        check_bytes(access, self.as_layout())
    }
}

impl<T: AsSwizzled, L: AsSwizzled> AsLanes for (T, i64, L) {
    fn check(&self, access: Access) -> Result<(), String> {
        check_tile(access, self.0.as_layout(), self.1, self.2.as_layout())
    }
}

/// An access that [`assert_conflict_free!`] takes: an [`Access`], or its name.
pub trait AsAccess {
    /// The access, if the name is one.
    fn as_access(&self) -> Option<Access>;
}

impl AsAccess for Access {
    fn as_access(&self) -> Option<Access> {
        Some(*self)
    }
}

impl AsAccess for &str {
    fn as_access(&self) -> Option<Access> {
        self.parse().ok()
    }
}

/// Why a layout is not a bijection onto `0..size`, with the coordinates that show it; `Ok` if it is one.
///
/// # Errors
///
/// The proof's refusal, as text.
pub fn check_bijective(layout: &impl AsSwizzled) -> Result<(), String> {
    let layout = layout.as_layout();
    bijective(&layout).map_err(|error| {
        let witness = match same_offset(&layout) {
            Some((a, b)) => format!(
                "; the coordinates {} and {} both have the offset {}",
                coordinate(&layout, a),
                coordinate(&layout, b),
                layout.index(a)
            ),
            None => outside(&layout).map_or(String::new(), |at| {
                format!(
                    "; the coordinate {} has the offset {}",
                    coordinate(&layout, at),
                    layout.index(at)
                )
            }),
        };
        format!(
            "{layout} is not bijective onto 0..{}: {error}{witness}",
            layout.size()
        )
    })
}

/// A linear coordinate as the coordinate of the layout's shape, as CuTe writes it.
fn coordinate(layout: &Swizzled, linear: i64) -> String {
    crate::idx2crd(linear, &layout.layout().shape()).map_or(linear.to_string(), |at| at.to_string())
}

/// The first linear coordinate whose offset is not in `0..size`.
fn outside(layout: &Swizzled) -> Option<i64> {
    let size = layout.size();
    (0..size.min(WITNESS)).find(|&at| !(0..size).contains(&layout.index(at)))
}

/// Why a layout is not injective, with what stands in the way; `Ok` if no two coordinates have one offset.
///
/// # Errors
///
/// The refusal, as text.
pub fn check_injective(layout: &impl AsSwizzled) -> Result<(), String> {
    let layout = layout.as_layout();
    match layout.is_injective() {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!(
            "{layout} is not injective: {}",
            same_offset(&layout).map_or(
                "two coordinates have the same offset".to_owned(),
                |(a, b)| format!(
                    "the coordinates {} and {} both have the offset {}",
                    coordinate(&layout, a),
                    coordinate(&layout, b),
                    layout.index(a)
                )
            )
        )),
        Err(error) => Err(format!(
            "whether {layout} is injective can't be said: {error}"
        )),
    }
}

/// How many coordinates are looked at for a pair that shows a collision.
const WITNESS: i64 = 1 << 20;

/// Two linear coordinates with one offset, if there are two among the first.
fn same_offset(layout: &Swizzled) -> Option<(i64, i64)> {
    let mut seen = std::collections::HashMap::new();
    (0..layout.size().min(WITNESS)).find_map(|coordinate| {
        seen.insert(layout.index(coordinate), coordinate)
            .map(|first| (first, coordinate))
    })
}

/// A layout of at most a warp's lanes as one mode: then all of it is the lanes.
fn of_lanes(map: Swizzled) -> Swizzled {
    if map.size() > LANES as i64 {
        return map;
    }
    crate::Layout::tuple(&[map.layout()])
        .and_then(|lanes| map.with_layout(lanes))
        .unwrap_or(map)
}

/// Why an access is not free of bank conflicts, with the lanes and the bank; `Ok` if it is. Of a layout of bytes that holds for every
/// value of the modes after the first, of a tile where the lanes are given: [`AsLanes`].
///
/// # Errors
///
/// A conflict, or the proof's refusal, as text.
pub fn check_conflict_free(access: &impl AsAccess, lanes: &impl AsLanes) -> Result<(), String> {
    match access.as_access() {
        Some(access) => lanes.check(access),
        None => Err(
            "there is no such access; names are ld.128, st.32, ldmatrix.x4, cp.async.16, …"
                .to_owned(),
        ),
    }
}

/// The same for (lane, rest) -> byte offset.
fn check_bytes(access: Access, map: Swizzled) -> Result<(), String> {
    let map = of_lanes(map);
    let proof = prove_access(access, &map)
        .map_err(|error| format!("no count can be proven for {access} with {map}: {error}"))?;
    if proof.is_conflict_free() {
        return Ok(());
    }
    // The addresses where the proof met the worst count.
    let lanes = map.layout().get(0).map_or(0, |mode| mode.size());
    let mut addresses = [-1; LANES];
    for (address, lane) in addresses.iter_mut().zip(0..lanes) {
        *address = map.index(lane + lanes * proof.worst_at);
    }
    let worst = banks::wavefronts(&NVIDIA, access, &addresses)
        .ok()
        .and_then(|count| count.worst());
    let place = worst.map_or(String::new(), |(phase, worst)| {
        let lanes: Vec<String> = (0..32)
            .filter(|lane| worst.offenders >> lane & 1 == 1)
            .map(|lane| lane.to_string())
            .collect();
        format!(
            ": in phase {phase}, lanes {} ask bank {} for different words",
            lanes.join(", "),
            worst.bank
        )
    });
    Err(format!(
        "{access} with {map} takes {} wavefronts, {} without conflicts{place}",
        proof.wavefronts, proof.ideal
    ))
}

/// The same for lanes that touch elements of a tile.
fn check_tile(
    access: Access,
    tile: Swizzled,
    elem_bytes: i64,
    lanes: Swizzled,
) -> Result<(), String> {
    let shape = tile.layout().shape();
    let extent = |mode| shape.get(mode).and_then(|m| m.size());
    let (2, Ok(rows), Ok(cols)) = (tile.rank(), extent(0), extent(1)) else {
        return Err(format!(
            "{tile} has {} modes; a tile has two, rows and columns, as in (64,64):(64,1)",
            tile.rank()
        ));
    };
    let pattern = Pattern::new(access, &lanes).map_err(|error| error.to_string())?;
    let outside = |&(_, &element): &(usize, &i64)| element >= rows * cols;
    if let Some((lane, element)) = pattern.elements.iter().enumerate().find(outside) {
        return Err(format!(
            "lane {lane} of {lanes} touches element {element}, outside the tile's {rows}x{cols}; lanes are given by row-major index, row * {cols} + column"
        ));
    }
    let count = recount(Tile::new(rows, cols, elem_bytes), &pattern, &tile)
        .map_err(|error| format!("{access} by {lanes} of {tile}: {error}"))?;
    if count.wavefronts == count.ideal {
        return Ok(());
    }
    let place = count.worst().map_or(String::new(), |(phase, worst)| {
        let touched: Vec<String> = (0..LANES)
            .filter(|lane| worst.offenders >> lane & 1 == 1)
            .map(|lane| {
                let element = pattern.elements[lane];
                format!("{lane} at ({},{})", element / cols, element % cols)
            })
            .collect();
        format!(
            ": in phase {phase}, lanes {} ask bank {} for different words",
            touched.join(", "),
            worst.bank
        )
    });
    Err(format!(
        "{access} by {lanes} of {tile}, elements of {elem_bytes} bytes, takes {} wavefronts, {} without conflicts{place}",
        count.wavefronts, count.ideal
    ))
}

/// Asserts that a layout takes every coordinate to its own offset and covers `0..size`, by proof. Further arguments are a
/// message, as for `assert!`.
#[macro_export]
macro_rules! assert_bijective {
    ($layout:expr $(,)?) => {
        if let ::core::result::Result::Err(why) = $crate::testing::check_bijective(&$layout) {
            ::core::panic!("assertion failed: {why}");
        }
    };
    ($layout:expr, $($message:tt)+) => {
        if let ::core::result::Result::Err(why) = $crate::testing::check_bijective(&$layout) {
            ::core::panic!("assertion failed: {why}: {}", ::core::format_args!($($message)+));
        }
    };
}

/// Asserts that no two coordinates of a layout have the same offset; it need not cover a range, as a padded tile does not. Further
/// arguments are a message, as for `assert!`.
///
/// ```
/// use tilewright::layout;
/// use tilewright::testing::assert_injective;
///
/// assert_injective!(layout!((32,32):(33,1)));
/// ```
#[macro_export]
macro_rules! assert_injective {
    ($layout:expr $(,)?) => {
        if let ::core::result::Result::Err(why) = $crate::testing::check_injective(&$layout) {
            ::core::panic!("assertion failed: {why}");
        }
    };
    ($layout:expr, $($message:tt)+) => {
        if let ::core::result::Result::Err(why) = $crate::testing::check_injective(&$layout) {
            ::core::panic!("assertion failed: {why}: {}", ::core::format_args!($($message)+));
        }
    };
}

/// Asserts that a warp access to NVIDIA shared memory has no bank conflict, by proof for every value of everything that is not
/// the lane. The access is an [`Access`](crate::banks::Access) or its name (`"ldmatrix.x4"`); the layout takes (lane, rest) to a
/// *byte* offset, its first mode being the lanes (a layout of at most 32 coordinates is all lanes). Further arguments are a message, as for `assert!`.
///
/// In place of the layout of bytes stands `(tile, element bytes, lanes)`: the tile as (row, column) -> element offset, and for each lane
/// the row-major index of the first element that it touches.
///
/// ```
/// use tilewright::layout;
/// use tilewright::testing::assert_conflict_free;
///
/// // A column of 32 floats: 32 wavefronts in rows of 32, 1 in padded rows.
/// assert_conflict_free!("ld.32", (layout!((32,32):(33,1)), 4, layout!(32:32)));
/// ```
#[macro_export]
macro_rules! assert_conflict_free {
    ($access:expr, $layout:expr $(,)?) => {
        if let ::core::result::Result::Err(why) =
            $crate::testing::check_conflict_free(&$access, &$layout)
        {
            ::core::panic!("assertion failed: {why}");
        }
    };
    ($access:expr, $layout:expr, $($message:tt)+) => {
        if let ::core::result::Result::Err(why) =
            $crate::testing::check_conflict_free(&$access, &$layout)
        {
            ::core::panic!("assertion failed: {why}: {}", ::core::format_args!($($message)+));
        }
    };
}
