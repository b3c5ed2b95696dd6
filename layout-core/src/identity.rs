//! Layouts whose offsets are coordinates: for predicates and TMA boxes.
//!
//! `identity((4,8))` maps the coordinate `(i,j)` to itself. Its strides are basis vectors, written as CuTe does:
//! `(4,8):(1@0,1@1)`, where `1@k` counts along axis `k`. Tiling a tensor and its identity layout the same way tells each
//! thread which coordinates it holds:
//!
//! ```
//! use layout_core::{CoordLayout, IntTuple, Layout};
//! let identity = CoordLayout::identity(&IntTuple::parse("(4,8)").unwrap()).unwrap();
//! let threads = Layout::parse("(2,16):(16,1)").unwrap();
//! let owned = identity.composition(&threads).unwrap();
//! assert_eq!(owned.to_string(), "(2,(4,4)):(4@1,(1@0,1@1))");
//! assert_eq!(owned.checked_index(3).unwrap().to_string(), "(1,4)");
//! ```
//!
//! A stride may have parts along several axes (`1@0+1@1`). Axes are numbered through the leaves of the shape that the
//! coordinates belong to, at most [`MAX_AXES`].

use core::fmt;

use crate::error::{LayoutError, attempt};
use crate::int_tuple::{IntTuple, write_tuple};
use crate::layout::Layout;
use crate::modes::{Composite, Modes};
use crate::profile::{MAX_MODES, Profile};

/// Axes that the coordinates can have.
pub const MAX_AXES: usize = 8;

/// A layout with coordinates instead of offsets.
#[derive(Clone, Copy)]
pub struct CoordLayout {
    profile: Profile,
    modes: Modes<MAX_AXES>,
    /// Parentheses of the coordinates.
    codomain: Profile,
}

impl CoordLayout {
    /// The layout that maps each coordinate of `shape` to itself.
    ///
    /// # Errors
    ///
    /// More than [`MAX_AXES`] leaves; the errors of [`Layout::new`] for the shape.
    pub const fn identity(shape: &IntTuple) -> Result<Self, LayoutError> {
        // For its checks of the extents.
        let _ = attempt!(Layout::compact(*shape));
        if shape.leaves() > MAX_AXES {
            let (left, right) = (MAX_AXES, shape.leaves());
            return Err(LayoutError::RankMismatch {
                operation: "identity layout",
                left,
                right,
            });
        }
        let mut modes = Modes::EMPTY;
        let mut i = 0;
        while i < shape.leaves() {
            let mut stride = [0; MAX_AXES];
            stride[i] = 1;
            modes.push(shape.values[i], stride);
            i += 1;
        }
        Ok(Self {
            profile: shape.profile,
            modes,
            codomain: shape.profile,
        })
    }

    /// The extents.
    pub const fn shape(&self) -> IntTuple {
        let mut values = [0; MAX_MODES];
        let mut i = 0;
        while i < self.modes.len {
            values[i] = self.modes.extent[i];
            i += 1;
        }
        IntTuple {
            profile: self.profile,
            values,
        }
    }

    /// Number of coordinates in the domain.
    pub const fn size(&self) -> i64 {
        let mut size = 1;
        let mut i = 0;
        while i < self.modes.len {
            size *= self.modes.extent[i];
            i += 1;
        }
        size
    }

    /// The layout along one axis: the same shape, and the strides' parts along that axis.
    ///
    /// # Errors
    ///
    /// An axis beyond those of the coordinates; offsets that do not fit.
    pub const fn axis(&self, axis: usize) -> Result<Layout, LayoutError> {
        if axis >= self.codomain.leaves() {
            return Err(LayoutError::ModeOutOfRange {
                mode: axis,
                rank: self.codomain.leaves(),
            });
        }
        let mut stride = [0; MAX_MODES];
        let mut i = 0;
        while i < self.modes.len {
            stride[i] = self.modes.stride[i][axis];
            i += 1;
        }
        Layout {
            profile: self.profile,
            shape: self.shape().values,
            stride,
        }
        .checked()
    }

    /// The coordinate at linear coordinate `i`; the last leaf never wraps.
    ///
    /// # Errors
    ///
    /// Overflow far outside the domain.
    pub const fn checked_index(&self, i: i64) -> Result<IntTuple, LayoutError> {
        let Some(vector) = self.modes.at(i) else {
            return Err(LayoutError::Overflow {
                operation: "evaluation of a layout",
            });
        };
        Ok(self.coordinate(&vector))
    }

    /// The coordinate at a coordinate of the domain, natural, linear or between.
    ///
    /// # Errors
    ///
    /// As [`Layout::at_coord`].
    pub const fn at_coord(&self, coordinate: &IntTuple) -> Result<IntTuple, LayoutError> {
        let mut vector = [0; MAX_AXES];
        let mut k = 0;
        while k < self.codomain.leaves() {
            vector[k] = attempt!(attempt!(self.axis(k)).at_coord(coordinate));
            k += 1;
        }
        Ok(self.coordinate(&vector))
    }

    const fn coordinate(&self, vector: &[i64; MAX_AXES]) -> IntTuple {
        let mut values = [0; MAX_MODES];
        let mut k = 0;
        while k < self.codomain.leaves() {
            values[k] = vector[k];
            k += 1;
        }
        IntTuple {
            profile: self.codomain,
            values,
        }
    }

    /// The number of different values along each axis, from the least to the greatest: the shape of the smallest box that
    /// holds all coordinates (CuTe's `coshape`).
    ///
    /// # Errors
    ///
    /// Offsets that do not fit.
    pub const fn coshape(&self) -> Result<IntTuple, LayoutError> {
        let mut values = [0; MAX_MODES];
        let mut k = 0;
        while k < self.codomain.leaves() {
            values[k] = attempt!(self.axis(k)).cosize();
            k += 1;
        }
        Ok(IntTuple {
            profile: self.codomain,
            values,
        })
    }

    /// `self ∘ b`.
    ///
    /// # Errors
    ///
    /// As [`composition`](crate::composition).
    pub const fn composition(&self, b: &Layout) -> Result<Self, LayoutError> {
        let Composite { profile, modes } = attempt!(self.modes.coalesced_unbounded().compose(b));
        let result = Self {
            profile,
            modes,
            codomain: self.codomain,
        };
        // The coordinates must fit, as they did in `self`.
        let mut k = 0;
        while k < self.codomain.leaves() {
            attempt!(result.axis(k));
            k += 1;
        }
        Ok(result)
    }
}

/// [`CoordLayout::identity`] under CuTe's name.
///
/// # Errors
///
/// As [`CoordLayout::identity`].
pub const fn make_identity_layout(shape: &IntTuple) -> Result<CoordLayout, LayoutError> {
    CoordLayout::identity(shape)
}

/// The size of the box of offsets of a layout with integer strides: its cosize (CuTe's `coshape`).
pub const fn coshape(layout: &Layout) -> IntTuple {
    IntTuple::int(layout.cosize())
}

impl PartialEq for CoordLayout {
    fn eq(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.codomain == other.codomain
            && self.shape() == other.shape()
            && self.modes.stride[..self.modes.len] == other.modes.stride[..other.modes.len]
    }
}

impl Eq for CoordLayout {}

impl core::hash::Hash for CoordLayout {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.shape().hash(state);
        self.modes.stride[..self.modes.len].hash(state);
        self.codomain.hash(state);
    }
}

impl fmt::Display for CoordLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.profile, |f, i| {
            write!(f, "{}", self.modes.extent[i])
        })?;
        f.write_str(":")?;
        write_tuple(f, &self.profile, |f, i| {
            let mut first = true;
            for (axis, &part) in self.modes.stride[i].iter().enumerate() {
                if part != 0 {
                    let plus = if first || part < 0 { "" } else { "+" };
                    write!(f, "{plus}{part}@{axis}")?;
                    first = false;
                }
            }
            if first { f.write_str("0") } else { Ok(()) }
        })
    }
}

impl fmt::Debug for CoordLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
