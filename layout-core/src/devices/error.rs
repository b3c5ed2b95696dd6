//! What stands in the way of a distribution, and what refutes a redistribution.

use core::fmt;

use super::MAX_EXTENT;
use crate::error::LayoutError;

/// A place of a distribution: coordinate `(device, local)` of its layout, both linear.
///
/// ```
/// use layout_core::{CoordLayout, devices::{Distribution, DistributionError, Place}};
/// let twice = CoordLayout::parse("(2,(4,6)):(3@0,(1@0,1@1))").unwrap();
/// let error = Distribution::new([7, 6], twice).unwrap_err();
/// let DistributionError::HeldTwice { index: 3, first, second, .. } = error else { panic!() };
/// assert_eq!((first, second), (Place { device: 1, local: 0 }, Place { device: 0, local: 3 }));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The device.
    pub device: u64,
    /// The local coordinate.
    pub local: u64,
}

impl Place {
    pub(super) fn add(&mut self, device: bool, amount: u64) {
        if device {
            self.device += amount;
        } else {
            self.local += amount;
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local {} of device {}", self.local, self.device)
    }
}

/// What else works on a shard that an order names twice.
///
/// ```
/// use layout_core::devices::{Busy, DistributionError, Rotation};
/// let error = Rotation::prove(2, |device, _| device).unwrap_err();
/// assert_eq!(error, DistributionError::Order { device: 0, step: 1, shard: 0, other: Some(Busy::Step(0)) });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Busy {
    /// The same device in an earlier step.
    Step(usize),
    /// Another device in the same step.
    Device(usize),
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "in step {step}"),
            Self::Device(device) => write!(f, "device {device} does so"),
        }
    }
}

/// Why a layout distributes no matrix, or nothing leads from one distribution to another.
///
/// ```
/// use layout_core::{CoordLayout, devices::Distribution};
/// let diagonal = CoordLayout::parse("(2,4):(4@0,1@0+1@1)").unwrap();
/// let error = Distribution::new([8, 4], diagonal).unwrap_err();
/// assert_eq!(error.code(), "diagonal");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DistributionError {
    /// An extent of 0, or a matrix that is too large.
    MatrixSize {
        /// Rows and columns.
        extents: [u64; 2],
    },
    /// No device, or too many.
    Devices {
        /// How many.
        devices: u64,
        /// How many there may be.
        limit: usize,
    },
    /// A layout that is not of the form (device, local).
    Rank {
        /// Its rank.
        rank: usize,
    },
    /// Coordinates that are not (row, column).
    Axes {
        /// How many axes they have.
        axes: usize,
    },
    /// A leaf that moves along rows and columns at once.
    Diagonal {
        /// Its extent.
        extent: i64,
        /// Its stride along rows and along columns.
        stride: [i64; 2],
    },
    /// A leaf with a negative stride.
    Backwards {
        /// Its extent.
        extent: i64,
        /// Its stride along rows and along columns.
        stride: [i64; 2],
    },
    /// A leaf of the local mode with stride 0.
    LocalCopies {
        /// Its extent.
        extent: i64,
    },
    /// A row or column that no device holds.
    Unheld {
        /// 0 for rows, 1 for columns.
        axis: usize,
        /// The row or column.
        index: u64,
        /// How many rows or columns there are.
        extent: u64,
    },
    /// A row or column with two places.
    HeldTwice {
        /// 0 for rows, 1 for columns.
        axis: usize,
        /// The row or column.
        index: u64,
        /// One place.
        first: Place,
        /// The other.
        second: Place,
    },
    /// Too many separate runs of rows or columns.
    TooManyRuns {
        /// 0 for rows, 1 for columns.
        axis: usize,
        /// How many all devices together may have.
        limit: usize,
    },
    /// Two distributions of matrices of different extents.
    DifferentExtents {
        /// Those before.
        from: [u64; 2],
        /// Those after.
        to: [u64; 2],
    },
    /// Two distributions over different numbers of devices.
    DifferentDevices {
        /// How many before.
        from: usize,
        /// How many after.
        to: usize,
    },
    /// Terms of a sum are wanted of copies, or other terms of terms.
    NewTerms {
        /// Whether the elements are terms before.
        from_sum: bool,
    },
    /// An order in which a device does not work through every shard once, or two devices work on the same one in a step.
    Order {
        /// The device.
        device: usize,
        /// The step.
        step: usize,
        /// The shard.
        shard: usize,
        /// What else works on it, if anything does.
        other: Option<Busy>,
    },
    /// The device modes of two factors can't be split into the same leaves.
    Grids {
        /// The extent of a leaf.
        whole: u64,
        /// The extent of the other's, which does not divide it.
        part: u64,
    },
    /// What the layout algebra refuses.
    Layout(LayoutError),
    /// Pieces that are no redistribution.
    Refused(Refusal),
}

impl DistributionError {
    /// A name that programs can match.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert_eq!(Distribution::rows([0, 6], 2).unwrap_err().code(), "extents");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MatrixSize { .. } => "extents",
            Self::Devices { .. } => "devices",
            Self::Rank { .. } => "rank",
            Self::Axes { .. } => "axes",
            Self::Diagonal { .. } => "diagonal",
            Self::Backwards { .. } => "backwards",
            Self::LocalCopies { .. } => "local_copies",
            Self::Unheld { .. } => "unheld",
            Self::HeldTwice { .. } => "held_twice",
            Self::TooManyRuns { .. } => "too_many_runs",
            Self::DifferentExtents { .. } => "different_extents",
            Self::DifferentDevices { .. } => "different_devices",
            Self::NewTerms { .. } => "new_terms",
            Self::Order { .. } => "order",
            Self::Grids { .. } => "grids",
            Self::Layout(error) => error.code(),
            Self::Refused(refusal) => refusal.code(),
        }
    }
}

const fn name(axis: usize) -> &'static str {
    if axis == 0 { "row" } else { "column" }
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::MatrixSize { extents: [m, n] } => write!(
                f,
                "a matrix of {m}x{n}: each extent must be from 1 to 2^{}, and there may be 2^50 elements",
                MAX_EXTENT.trailing_zeros()
            ),
            Self::Devices { devices, limit } => {
                write!(f, "{devices} devices: there must be from 1 to {limit}")
            }
            Self::Rank { rank } => write!(
                f,
                "a distribution has two modes, device and local, such as (2,(4,6)):(4@0,(1@0,1@1)); this layout has rank {rank}"
            ),
            Self::Axes { axes } => write!(
                f,
                "a distribution leads to (row, column): strides count along @0 and @1; these coordinates have {axes} axes, or nested ones"
            ),
            Self::Diagonal {
                extent,
                stride: [row, column],
            } => write!(
                f,
                "the leaf {extent}:{row}@0+{column}@1 moves along rows and columns at once; a distribution needs a leaf for each axis, such as ({extent},{extent}):({row}@0,{column}@1)"
            ),
            Self::Backwards {
                extent,
                stride: [row, column],
            } => {
                let (step, axis) = if row < 0 { (row, 0) } else { (column, 1) };
                write!(
                    f,
                    "the leaf {extent}:{step}@{axis} counts backwards; a distribution needs positive strides, such as {extent}:{}@{axis}",
                    step.unsigned_abs()
                )
            }
            Self::LocalCopies { extent } => write!(
                f,
                "the leaf {extent}:0 of the local mode holds each element {extent} times on the same device; only the device mode may have stride 0, for replicas"
            ),
            Self::Unheld {
                axis,
                index,
                extent,
            } => {
                let name = name(axis);
                write!(
                    f,
                    "no device holds {name} {index} of 0..{extent}: sorted, each stride along {name}s must be the product of the extents before it"
                )
            }
            Self::HeldTwice {
                axis,
                index,
                first,
                second,
            } => {
                let name = name(axis);
                write!(
                    f,
                    "{name} {index} has two places, {first} and {second}: sorted, each stride along {name}s must be the product of the extents before it"
                )
            }
            Self::TooManyRuns { axis, limit } => {
                let name = name(axis);
                write!(
                    f,
                    "the devices hold more than {limit} separate runs of {name}s; deal out larger blocks, with a local leaf of stride 1@{axis} below the device's"
                )
            }
            Self::DifferentExtents {
                from: [m, n],
                to: [p, q],
            } => write!(
                f,
                "a matrix of {m}x{n} is not redistributed to one of {p}x{q}: both distributions must have the same extents"
            ),
            Self::DifferentDevices { from, to } => write!(
                f,
                "{from} devices before and {to} after: give both distributions the same number; a device stride from the extent on leaves a device without elements"
            ),
            Self::NewTerms { from_sum: false } => f.write_str(
                "the elements are whole and terms of a sum are wanted of them: terms come from a product over parts of k; redistribute to copies instead",
            ),
            Self::NewTerms { from_sum: true } => f.write_str(
                "terms of a sum are wanted in other places than the terms that there are: redistribute to a distribution that is no sum, which adds them up",
            ),
            Self::Order {
                device,
                step,
                shard,
                other: Some(other),
            } => write!(
                f,
                "device {device} works on shard {shard} in step {step}, and {other} too: each device must work through every shard once, and in a step each on another one"
            ),
            Self::Order {
                device,
                step,
                shard,
                other: None,
            } => write!(
                f,
                "device {device} works on shard {shard} in step {step}: there is no such shard, or it is not the device's own, with which it must begin"
            ),
            Self::Grids { whole, part } => write!(
                f,
                "the device modes of the two factors have no common refinement: a leaf of {whole} devices is not split by one of {part}; write both with the same leaves"
            ),
            Self::Layout(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl core::error::Error for DistributionError {}

impl From<LayoutError> for DistributionError {
    fn from(error: LayoutError) -> Self {
        Self::Layout(error)
    }
}

/// What refutes that pieces lead from one distribution to another. `piece` counts in the list that was checked.
///
/// ```
/// use layout_core::devices::{Distribution, Redistribution, Refusal};
/// let rows = Distribution::rows([8, 6], 2).unwrap();
/// let all = Distribution::replicas([8, 6], 2).unwrap();
/// let moved = Redistribution::derive(&rows, &all).unwrap();
/// let refusal = Redistribution::check(&rows, &all, &moved.pieces()[1..]).unwrap_err();
/// assert_eq!(refusal, Refusal::Missing { to: 0, arrived: 24, needed: 48 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Distributions of matrices of different extents, over different numbers of devices, or terms wanted of copies.
    Incomparable,
    /// A device that does not exist.
    NoDevice {
        /// The piece.
        piece: usize,
        /// The device.
        device: usize,
    },
    /// A piece from a device to itself, or without elements.
    Idle {
        /// The piece.
        piece: usize,
    },
    /// A piece from a device that does not hold all of it.
    NotHeld {
        /// The piece.
        piece: usize,
        /// The device.
        from: usize,
    },
    /// A piece to a device that has no place for all of it.
    NotWanted {
        /// The piece.
        piece: usize,
        /// The device.
        to: usize,
    },
    /// A copy that is added, or a term that is not.
    WrongKind {
        /// The piece.
        piece: usize,
    },
    /// A piece with elements, or terms of the same device, that arrive with an earlier piece, or that the device has.
    Twice {
        /// The piece.
        piece: usize,
        /// The earlier one; `None` if the device has them already.
        earlier: Option<usize>,
    },
    /// A device that does not get everything.
    Missing {
        /// The device.
        to: usize,
        /// Elements, or terms of elements, that it has or gets.
        arrived: u64,
        /// How many it needs.
        needed: u64,
    },
}

impl Refusal {
    /// A name that programs can match.
    ///
    /// ```
    /// use layout_core::devices::Refusal;
    /// assert_eq!(Refusal::Idle { piece: 0 }.code(), "idle");
    /// ```
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Incomparable => "incomparable",
            Self::NoDevice { .. } => "no_device",
            Self::Idle { .. } => "idle",
            Self::NotHeld { .. } => "not_held",
            Self::NotWanted { .. } => "not_wanted",
            Self::WrongKind { .. } => "wrong_kind",
            Self::Twice { .. } => "twice",
            Self::Missing { .. } => "missing",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Incomparable => f.write_str(
                "both distributions must have the same extents and devices, and copies do not become terms of a sum",
            ),
            Self::NoDevice { piece, device } => {
                write!(
                    f,
                    "piece {piece} names device {device}, which does not exist"
                )
            }
            Self::Idle { piece } => write!(
                f,
                "piece {piece} moves nothing: it is empty, or from a device to itself"
            ),
            Self::NotHeld { piece, from } => {
                write!(f, "piece {piece}: device {from} does not hold all of it")
            }
            Self::NotWanted { piece, to } => {
                write!(
                    f,
                    "piece {piece}: device {to} is not to hold all of it afterwards"
                )
            }
            Self::WrongKind { piece } => write!(
                f,
                "piece {piece}: terms of a sum must be added, and copies must not"
            ),
            Self::Twice {
                piece,
                earlier: Some(earlier),
            } => write!(
                f,
                "pieces {earlier} and {piece} bring the same elements to the same device"
            ),
            Self::Twice {
                piece,
                earlier: None,
            } => write!(
                f,
                "piece {piece} brings elements that the device has already"
            ),
            Self::Missing {
                to,
                arrived,
                needed,
            } => write!(
                f,
                "device {to} has or gets {arrived} elements or terms of the {needed} that it needs"
            ),
        }
    }
}

impl core::error::Error for Refusal {}
