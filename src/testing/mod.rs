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
//! // Lane -> byte address of the row that it points at: ldmatrix.x1 down a column of 16-byte chunks.
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
        format!(
            "{layout} is not bijective onto 0..{}: {error}",
            layout.size()
        )
    })
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
                    "the coordinates {a} and {b} both have the offset {}",
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

/// Why an access is not free of bank conflicts, with the lanes and the bank; `Ok` if it is, for every value of the modes after
/// the first.
///
/// # Errors
///
/// A conflict, or the proof's refusal, as text.
pub fn check_conflict_free(access: &impl AsAccess, map: &impl AsSwizzled) -> Result<(), String> {
    let map = of_lanes(map.as_layout());
    let Some(access) = access.as_access() else {
        return Err(
            "there is no such access; names are ld.128, st.32, ldmatrix.x4, cp.async.16, …"
                .to_owned(),
        );
    };
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
