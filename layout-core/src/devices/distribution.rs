//! Which device holds which element of a matrix.

use alloc::vec::Vec;
use core::fmt;

use super::axis::Axis;
use super::error::DistributionError;
use super::{Runs, Shard};
use crate::basis::Basis;
use crate::coords::{CoordLayout, MAX_AXES};
use crate::profile::Profile;
use crate::strided::LayoutBuilder;

/// The most devices of a distribution.
///
/// ```
/// use layout_core::devices::{Distribution, MAX_DEVICES};
/// assert!(Distribution::rows([128, 8], MAX_DEVICES).is_ok());
/// assert_eq!(Distribution::rows([128, 8], MAX_DEVICES + 1).unwrap_err().code(), "devices");
/// ```
pub const MAX_DEVICES: usize = 64;

/// The most rows, and the most columns.
///
/// ```
/// use layout_core::devices::{Distribution, MAX_EXTENT};
/// assert!(Distribution::rows([MAX_EXTENT, 1], 2).is_ok());
/// assert_eq!(Distribution::rows([MAX_EXTENT + 1, 1], 2).unwrap_err().code(), "extents");
/// ```
pub const MAX_EXTENT: u64 = 1 << 40;

/// The most elements of a matrix: counts of moved elements then fit in 64 bits for any number of devices.
///
/// ```
/// use layout_core::devices::{Distribution, MAX_ELEMENTS};
/// assert!(Distribution::rows([1 << 25, MAX_ELEMENTS >> 25], 2).is_ok());
/// assert_eq!(Distribution::rows([1 << 26, MAX_ELEMENTS >> 25], 2).unwrap_err().code(), "extents");
/// ```
pub const MAX_ELEMENTS: u64 = 1 << 50;

/// The most runs of all devices together along one axis.
///
/// ```
/// use layout_core::{CoordLayout, devices::{Distribution, MAX_RUNS}};
/// // Rows dealt out one by one to 2 devices: 65,536 of them, and twice as many.
/// let cyclic = CoordLayout::parse("(2,32768):(1@0,2@0)").unwrap();
/// assert_eq!(Distribution::new([65_536, 1], cyclic).unwrap().shard(0).rows.len(), MAX_RUNS / 2);
/// let cyclic = CoordLayout::parse("(2,65536):(1@0,2@0)").unwrap();
/// assert_eq!(Distribution::new([131_072, 1], cyclic).unwrap_err().code(), "too_many_runs");
/// // In blocks of 2.
/// let blocks = CoordLayout::parse("(2,(2,32768)):(2@0,(1@0,4@0))").unwrap();
/// assert!(Distribution::new([131_072, 1], blocks).is_ok());
/// ```
pub const MAX_RUNS: usize = 65_536;

/// Which device holds which element of a matrix: a layout (device, local coordinates) → (row, column).
///
/// Each leaf moves along one axis, so that a device holds a product of rows and columns. The leaves of an axis cover it
/// exactly once; a leaf of the device mode with stride 0 makes replicas, which are copies or, after [`summed`](Self::summed), terms of a sum.
/// Extents that the layout does not divide are allowed: places outside the matrix are absent.
///
/// ```
/// use layout_core::{CoordLayout, devices::Distribution};
/// // Blocks of 2 rows dealt out to 2 devices in turn; the local mode counts rows in a block, blocks, columns.
/// let layout = CoordLayout::parse("(2,(2,2,6)):(2@0,(1@0,4@0,1@1))").unwrap();
/// let dealt = Distribution::new([8, 6], layout).unwrap();
/// assert_eq!(dealt.shard(1).rows.to_string(), "2..4, 6..8");
/// assert_eq!(dealt.holders(5, 0), [0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Distribution {
    extents: [u64; 2],
    layout: CoordLayout,
    /// Leaves of the device mode, which come first.
    device_leaves: usize,
    devices: usize,
    /// Devices that hold each element.
    copies: usize,
    sum: bool,
}

impl Distribution {
    /// The distribution of a matrix of `extents` (rows, columns) by `layout`: mode 0 is the device, mode 1 the local coordinate, strides such
    /// as `8@0` and `1@1` count rows and columns.
    ///
    /// ```
    /// use layout_core::{CoordLayout, devices::Distribution};
    /// let rows = CoordLayout::parse("(2,(4,6)):(4@0,(1@0,1@1))").unwrap();
    /// assert_eq!(Distribution::new([8, 6], rows), Distribution::rows([8, 6], 2));
    /// let gap = CoordLayout::parse("(2,(4,6)):(5@0,(1@0,1@1))").unwrap();
    /// assert_eq!(
    ///     Distribution::new([8, 6], gap).unwrap_err().to_string(),
    ///     "no device holds row 4 of 0..8: sorted, each stride along rows must be the product of the extents before it",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributionError`]: extents of 0 or too large, a layout of another rank than 2 or with other axes than rows and columns, a leaf that moves
    /// along both axes, backwards or (in the local mode) along none, a row or column that nobody or more than one place holds, too many devices or
    /// runs.
    pub fn new(extents: [u64; 2], layout: CoordLayout) -> Result<Self, DistributionError> {
        extents_fit(extents)?;
        let rank = layout.rank();
        let device = match layout.profile.child(layout.root(), 0) {
            Some(node) if rank == 2 && !layout.profile.is_leaf(layout.root()) => node,
            _ => return Err(DistributionError::Rank { rank }),
        };
        let codomain = layout.basis.codomain();
        if codomain.leaves() > 2 || codomain.depth() > 1 {
            return Err(DistributionError::Axes {
                axes: codomain.leaves(),
            });
        }
        // Sizes of layouts fit in 63 bits.
        let devices = layout.node_size(device) as u64;
        devices_fit(devices)?;
        let mut copies = 1;
        for i in 0..layout.leaves() {
            let extent = layout.shape[i];
            let stride = [layout.stride[i][0], layout.stride[i][1]];
            if extent == 1 {
                continue;
            }
            if stride[0] < 0 || stride[1] < 0 {
                return Err(DistributionError::Backwards { extent, stride });
            }
            if stride[0] != 0 && stride[1] != 0 {
                return Err(DistributionError::Diagonal { extent, stride });
            }
            if stride == [0, 0] {
                if i >= device.end {
                    return Err(DistributionError::LocalCopies { extent });
                }
                copies *= extent as usize;
            }
        }
        let made = Self {
            extents,
            layout,
            device_leaves: device.end,
            devices: devices as usize,
            copies,
            sum: false,
        };
        made.axis(0).prove(made.devices)?;
        made.axis(1).prove(made.devices)?;
        Ok(made)
    }

    /// Blocks of ⌈m/p⌉ rows: device `d` holds the `d`-th. The last devices have fewer rows, or none.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let rows = Distribution::rows([7, 6], 3).unwrap();
    /// assert_eq!(rows.layout().to_string(), "(3,(3,6)):(3@0,(1@0,1@1))");
    /// assert_eq!(rows.shard(2).rows.to_string(), "6");
    /// ```
    ///
    /// # Errors
    ///
    /// Extents of 0 or too large; no device or more than [`MAX_DEVICES`].
    pub fn rows(extents: [u64; 2], devices: usize) -> Result<Self, DistributionError> {
        Self::blocks(extents, [devices, 1], Device::Along(0))
    }

    /// Blocks of ⌈n/p⌉ columns: device `d` holds the `d`-th. The last devices have fewer columns, or none.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let columns = Distribution::columns([8, 6], 2).unwrap();
    /// assert_eq!(columns.layout().to_string(), "(2,(8,3)):(3@1,(1@0,1@1))");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows).
    pub fn columns(extents: [u64; 2], devices: usize) -> Result<Self, DistributionError> {
        Self::blocks(extents, [1, devices], Device::Along(1))
    }

    /// The whole matrix on every device.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let replicas = Distribution::replicas([8, 6], 2).unwrap();
    /// assert_eq!(replicas.layout().to_string(), "(2,(8,6)):(0,(1@0,1@1))");
    /// assert_eq!(replicas.holders(3, 3), [0, 1]);
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows).
    pub fn replicas(extents: [u64; 2], devices: usize) -> Result<Self, DistributionError> {
        devices_fit(devices as u64)?;
        Self::blocks(extents, [1, 1], Device::Copies(devices))
    }

    /// Blocks of rows and columns on a grid of devices: device `r + p_rows·c` holds the `r`-th block of rows of the `c`-th block of columns.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let grid = Distribution::grid([8, 6], [2, 3]).unwrap();
    /// assert_eq!(grid.layout().to_string(), "((2,3),(4,2)):((4@0,2@1),(1@0,1@1))");
    /// assert_eq!(grid.shard(3).to_string(), "rows 4..8, columns 2..4");
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows), for the product of both numbers.
    pub fn grid(extents: [u64; 2], devices: [usize; 2]) -> Result<Self, DistributionError> {
        Self::blocks(extents, devices, Device::Grid)
    }

    /// A term of a sum of the whole matrix on every device: what each has after a product over a part of k.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let terms = Distribution::terms([8, 6], 2).unwrap();
    /// assert!(terms.is_sum());
    /// assert_eq!(terms.layout(), Distribution::replicas([8, 6], 2).unwrap().layout());
    /// ```
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows).
    pub fn terms(extents: [u64; 2], devices: usize) -> Result<Self, DistributionError> {
        Ok(Self::replicas(extents, devices)?.summed())
    }

    /// The same layout, whose replicas are terms of a sum instead of copies. Without replicas nothing changes: a sum of one term is that
    /// term.
    ///
    /// ```
    /// use layout_core::{CoordLayout, devices::Distribution};
    /// // Rows over 2 devices, and each block as two terms.
    /// let layout = CoordLayout::parse("((2,2),(4,6)):((4@0,0),(1@0,1@1))").unwrap();
    /// let terms = Distribution::new([8, 6], layout).unwrap().summed();
    /// assert_eq!((terms.holders(5, 0), terms.is_sum()), (vec![1, 3], true));
    /// assert!(!Distribution::rows([8, 6], 2).unwrap().summed().is_sum());
    /// ```
    #[must_use]
    pub const fn summed(mut self) -> Self {
        self.sum = self.copies > 1;
        self
    }

    /// Whether devices hold terms of a sum.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert!(!Distribution::replicas([8, 6], 2).unwrap().is_sum());
    /// ```
    pub const fn is_sum(&self) -> bool {
        self.sum
    }

    /// How many devices hold each element: copies, or terms of its sum.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert_eq!(Distribution::replicas([8, 6], 3).unwrap().copies(), 3);
    /// assert_eq!(Distribution::rows([8, 6], 3).unwrap().copies(), 1);
    /// ```
    pub const fn copies(&self) -> usize {
        self.copies
    }

    /// Rows and columns of the matrix.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert_eq!(Distribution::rows([8, 6], 3).unwrap().extents(), [8, 6]);
    /// ```
    pub const fn extents(&self) -> [u64; 2] {
        self.extents
    }

    /// How many devices there are, those without elements included.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// assert_eq!(Distribution::grid([8, 6], [2, 3]).unwrap().devices(), 6);
    /// ```
    pub const fn devices(&self) -> usize {
        self.devices
    }

    /// The layout (device, local coordinates) → (row, column).
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// // Local coordinate 5 of device 1: the second row of the second column.
    /// assert_eq!(rows.layout().checked_index(1 + 2 * 5).unwrap().to_string(), "(5,1)");
    /// ```
    pub const fn layout(&self) -> &CoordLayout {
        &self.layout
    }

    /// What device `device` holds, cut off at the extents; nothing for a device that does not exist.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let columns = Distribution::columns([8, 7], 2).unwrap();
    /// assert_eq!(columns.shard(1).to_string(), "rows 0..8, columns 4..7");
    /// assert!(columns.shard(2).is_empty());
    /// ```
    pub fn shard(&self, device: usize) -> Shard {
        if device >= self.devices {
            return Shard::default();
        }
        Shard::new(self.indices(device, 0), self.indices(device, 1))
    }

    /// The rows (`axis` 0) or columns (1) of device `device`, whether or not it holds anything along the other axis; none for a device that does not
    /// exist.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// // Device 2 has no row, and would have all columns.
    /// let rows = Distribution::rows([2, 6], 3).unwrap();
    /// assert!(rows.shard(2).is_empty());
    /// assert_eq!(rows.indices(2, 1).to_string(), "0..6");
    /// ```
    pub fn indices(&self, device: usize, axis: usize) -> Runs {
        if device >= self.devices {
            return Runs::default();
        }
        let axis = self.axis(axis.min(1));
        axis.runs(axis.offset(device))
    }

    /// The devices that hold an element, in increasing order; none for an element outside the matrix.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let rows = Distribution::rows([8, 6], 2).unwrap();
    /// assert_eq!(rows.holders(5, 0), [1]);
    /// assert_eq!(rows.holders(8, 0), []);
    /// ```
    pub fn holders(&self, row: u64, column: u64) -> Vec<usize> {
        if row >= self.extents[0] || column >= self.extents[1] {
            return Vec::new();
        }
        let axes = [self.axis(0), self.axis(1)];
        let mut needed = Vec::new();
        for (axis, index) in axes.iter().zip([row, column]) {
            needed.extend(axis.device_digits(index));
        }
        let holds = |device: &usize| {
            let digit = |weight, extent| *device as u64 / weight % extent;
            needed.iter().all(|&(w, e, d)| digit(w, e) == d)
        };
        (0..self.devices).filter(holds).collect()
    }

    /// Extents and strides of the leaves of the device mode, those of extent 1 left out; one leaf at least.
    pub(super) fn device_modes(&self) -> Vec<(i64, [i64; 2])> {
        let mut modes = self.modes(0, self.device_leaves);
        if modes.is_empty() {
            modes.push((1, [0; 2]));
        }
        modes
    }

    /// Extents and strides of the leaves of the local mode.
    pub(super) fn local_modes(&self) -> Vec<(i64, [i64; 2])> {
        self.modes(self.device_leaves, self.layout.leaves())
    }

    fn modes(&self, first: usize, end: usize) -> Vec<(i64, [i64; 2])> {
        let leaf = |i: usize| {
            let stride = self.layout.stride[i];
            (self.layout.shape[i], [stride[0], stride[1]])
        };
        (first..end)
            .map(leaf)
            .filter(|(extent, _)| *extent != 1)
            .collect()
    }

    pub(super) fn axis(&self, number: usize) -> Axis {
        Axis::of(
            &self.layout,
            self.device_leaves,
            number,
            self.extents[number],
        )
    }

    /// Blocks on a grid of `devices`; the device mode is as `form` says.
    fn blocks(
        extents: [u64; 2],
        devices: [usize; 2],
        form: Device,
    ) -> Result<Self, DistributionError> {
        extents_fit(extents)?;
        let [rows, columns] = devices;
        let all = (rows as u64).saturating_mul(columns as u64);
        devices_fit(all)?;
        // At most ⌈m/p⌉·p < m + p rows: sizes and offsets fit.
        let block = [
            extents[0].div_ceil(rows as u64) as i64,
            extents[1].div_ceil(columns as u64) as i64,
        ];
        let along = |axis: usize, step: i64| {
            let mut stride = [0; MAX_AXES];
            stride[axis] = step;
            stride
        };
        let mut builder = LayoutBuilder::with_basis(Basis::Axes(Profile::flat(2)));
        builder.open();
        match form {
            Device::Along(axis) => builder.mode(all as i64, along(axis, block[axis])),
            Device::Copies(copies) => builder.mode(copies as i64, [0; MAX_AXES]),
            Device::Grid => {
                builder.open();
                builder.mode(rows as i64, along(0, block[0]));
                builder.mode(columns as i64, along(1, block[1]));
                builder.close();
            }
        }
        builder.open();
        builder.mode(block[0], along(0, 1));
        builder.mode(block[1], along(1, 1));
        builder.close();
        builder.close();
        Self::new(
            extents,
            builder.finish().map_err(DistributionError::Layout)?,
        )
    }
}

/// The device mode of blocks.
#[derive(Clone, Copy)]
enum Device {
    /// One leaf along an axis.
    Along(usize),
    /// One leaf of copies.
    Copies(usize),
    /// A leaf along rows and one along columns.
    Grid,
}

pub(super) fn extents_fit(extents: [u64; 2]) -> Result<(), DistributionError> {
    let [rows, columns] = extents;
    let each = |extent| (1..=MAX_EXTENT).contains(&extent);
    let elements = rows.checked_mul(columns);
    if each(rows) && each(columns) && elements.is_some_and(|e| e <= MAX_ELEMENTS) {
        return Ok(());
    }
    Err(DistributionError::MatrixSize { extents })
}

fn devices_fit(devices: u64) -> Result<(), DistributionError> {
    if (1..=MAX_DEVICES as u64).contains(&devices) {
        return Ok(());
    }
    Err(DistributionError::Devices {
        devices,
        limit: MAX_DEVICES,
    })
}

impl fmt::Display for Distribution {
    /// `8x6 (2,(4,6)):(4@0,(1@0,1@1))`, with `sum of` before it for terms.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = if self.sum { "sum of " } else { "" };
        let [rows, columns] = self.extents;
        write!(f, "{sum}{rows}x{columns} {}", self.layout)
    }
}
