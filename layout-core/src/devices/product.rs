//! Distributions that a product implies: of a factor as C needs it, and of C's terms as the factors give them.
//!
//! C = A·B on devices. If C stays where it is, device `d` needs all of k for its rows of A and its columns of B: the distribution of C with one axis
//! replaced by all of k ([`Distribution::along`]). If A and B stay, and both are cut along k alike, device `d` has a term of its rows of A times its
//! columns of B ([`Distribution::product_terms`]).
//!
//! ```text
//! C  (2,(4,6)):(4@0,(1@0,1@1))   along rows, k = 9    A  (2,(4,9)):(4@0,(1@0,1@1))   its rows, all of k
//!                                along columns        B  (2,(9,6)):(0,(1@0,1@1))     all of it, on both
//! ```

use alloc::vec::Vec;

use super::{Distribution, DistributionError};
use crate::basis::Basis;
use crate::coords::{CoordLayout, MAX_AXES};
use crate::profile::Profile;
use crate::strided::LayoutBuilder;

/// A leaf: its extent, and its strides along rows and columns.
type Leaf = (i64, [i64; 2]);

impl Distribution {
    /// The same along `axis` (0 rows, 1 columns); along the other one every device has all `other` indices.
    ///
    /// ```
    /// use layout_core::devices::Distribution;
    /// let c = Distribution::grid([8, 6], [2, 3]).unwrap();
    /// // What the devices need of A, 8x9: the rows of their block of C.
    /// let a = c.along(0, 9).unwrap();
    /// assert_eq!(a.layout().to_string(), "((2,3),(4,9)):((4@0,0),(1@0,1@1))");
    /// assert_eq!(a.shard(3).to_string(), "rows 4..8, columns 0..9");
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributionError::MatrixSize`] if the matrix would be empty or too large, and [`DistributionError::Layout`] if the layout would have too
    /// many leaves.
    pub fn along(&self, axis: usize, other: u64) -> Result<Self, DistributionError> {
        let axis = axis.min(1);
        let kept = |(extent, stride): Leaf| {
            let mut only = [0; 2];
            only[axis] = stride[axis];
            (extent, only)
        };
        let devices: Vec<Leaf> = self.device_modes().into_iter().map(kept).collect();
        let mut local: Vec<Leaf> = self
            .local_modes()
            .into_iter()
            .filter(|(_, stride)| stride[axis] != 0)
            .collect();
        let mut unit = [0; 2];
        unit[1 - axis] = 1;
        local.push((i64::try_from(other).unwrap_or(i64::MAX), unit));
        if axis == 1 {
            // Rows before columns, as everywhere.
            local.rotate_right(1);
        }
        let mut extents = self.extents();
        extents[1 - axis] = other;
        super::distribution::extents_fit(extents)?;
        Self::new(extents, layout(&devices, &local)?)
    }

    /// The terms of C = A·B that devices have if each multiplies its shard of `a` by its shard of `b`. Device leaves that cut k leave a sum.
    ///
    /// ```
    /// use layout_core::devices::{Distribution, Redistribution};
    /// let (a, b) = (Distribution::columns([8, 9], 3).unwrap(), Distribution::rows([9, 6], 3).unwrap());
    /// let terms = Distribution::product_terms(&a, &b).unwrap();
    /// assert_eq!(terms, Distribution::terms([8, 6], 3).unwrap());
    /// let moved = Redistribution::derive(&terms, &Distribution::rows([8, 6], 3).unwrap()).unwrap();
    /// assert_eq!(moved.movement().to_string(), "reduce-scatter");
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributionError::DifferentDevices`]; [`DistributionError::Grids`] if the device modes have no common refinement; and those of
    /// [`Distribution::new`], such as [`DistributionError::Diagonal`] where one device leaf cuts rows of A and columns of B.
    pub fn product_terms(a: &Self, b: &Self) -> Result<Self, DistributionError> {
        if a.devices() != b.devices() {
            return Err(DistributionError::DifferentDevices {
                from: a.devices(),
                to: b.devices(),
            });
        }
        let (of_a, of_b) = refined(a.device_modes(), b.device_modes())?;
        let devices: Vec<Leaf> = of_a
            .into_iter()
            .zip(of_b)
            .map(|((extent, a), (_, b))| (extent, [a[0], b[1]]))
            .collect();
        let rows = a.local_modes().into_iter();
        let columns = b.local_modes().into_iter();
        let local: Vec<Leaf> = rows
            .filter(|(_, stride)| stride[0] != 0)
            .chain(columns.filter(|(_, stride)| stride[1] != 0))
            .collect();
        let extents = [a.extents()[0], b.extents()[1]];
        Ok(Self::new(extents, layout(&devices, &local)?)?.summed())
    }
}

/// Both device modes with the leaves of their common refinement.
fn refined(
    mut a: Vec<Leaf>,
    mut b: Vec<Leaf>,
) -> Result<(Vec<Leaf>, Vec<Leaf>), DistributionError> {
    let mut i = 0;
    while i < a.len().max(b.len()) {
        let (Some(&(of_a, _)), Some(&(of_b, _))) = (a.get(i), b.get(i)) else {
            break;
        };
        if of_a > of_b {
            split(&mut a, i, of_b)?;
        } else if of_b > of_a {
            split(&mut b, i, of_a)?;
        }
        i += 1;
    }
    Ok((a, b))
}

/// Splits leaf `at` into one of `extent` and the rest.
fn split(leaves: &mut Vec<Leaf>, at: usize, extent: i64) -> Result<(), DistributionError> {
    let (whole, stride) = leaves[at];
    if whole % extent != 0 {
        return Err(DistributionError::Grids {
            whole: whole as u64,
            part: extent as u64,
        });
    }
    leaves[at] = (extent, stride);
    leaves.insert(at + 1, (whole / extent, stride.map(|s| s * extent)));
    Ok(())
}

fn layout(devices: &[Leaf], local: &[Leaf]) -> Result<CoordLayout, DistributionError> {
    let mut builder = LayoutBuilder::with_basis(Basis::Axes(Profile::flat(2)));
    builder.open();
    for leaves in [devices, local] {
        let nested = leaves.len() != 1;
        if nested {
            builder.open();
        }
        if leaves.is_empty() {
            builder.mode(1, [0; MAX_AXES]);
        }
        for (extent, stride) in leaves {
            let mut strides = [0; MAX_AXES];
            strides[..2].copy_from_slice(stride);
            builder.mode(*extent, strides);
        }
        if nested {
            builder.close();
        }
    }
    builder.close();
    builder.finish().map_err(DistributionError::Layout)
}
