//! One axis of a distribution: its leaves sorted by stride, the proof that they cover the axis, and the runs of a device.
//!
//! The leaves of an axis, of the device mode and of the local mode together, send digits `0..nᵢ` to `Σ dᵢ·sᵢ`. They cover `0..extent` exactly
//! once if and only if, sorted by stride, each stride below the extent is the product of the extents before it, and the whole product reaches the
//! extent:
//!
//! ```text
//! rows of 8:   4:1 (local), 2:4 (device)      1, then 4·1 = 4, reaches 8
//!              4:1 (local), 2:3 (device)      3 < 4: row 3 is held twice, as 3·1 and as 1·3
//!              4:1 (local), 2:5 (device)      5 > 4: nobody holds row 4
//! ```
//!
//! It is sufficient since digits of a mixed radix are unique. It is necessary by induction: the leaves before reach exactly `0..c`. If the next
//! stride `s` is less than `c`, row `s` is reached by it and by the leaves before; if it is greater, nothing reaches row `c`, as each later leaf
//! adds at least `s`. Strides from the extent on lead outside the matrix: only their digit 0 counts.

use alloc::vec;
use alloc::vec::Vec;

use super::error::{DistributionError, Place};
use super::{MAX_RUNS, Runs};
use crate::coords::CoordLayout;

/// A leaf that moves along the axis, with at least two digits.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    extent: u64,
    stride: u64,
    /// Whether it belongs to the device mode.
    device: bool,
    /// What one step of its digit adds to the linear device or local coordinate.
    weight: u64,
}

/// One axis of a distribution.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// 0 for rows, 1 for columns.
    number: usize,
    extent: u64,
    /// By increasing stride.
    leaves: Vec<Leaf>,
}

impl Axis {
    /// The leaves of `layout`, whose strides are not negative and whose mode 0 has `device_leaves` leaves, along axis `number`.
    pub(super) fn of(
        layout: &CoordLayout,
        device_leaves: usize,
        number: usize,
        extent: u64,
    ) -> Self {
        let mut leaves = Vec::new();
        let mut weight = 1;
        for i in 0..layout.leaves() {
            if i == device_leaves {
                weight = 1;
            }
            let size = layout.shape[i] as u64;
            let stride = layout.stride[i][number] as u64;
            if size > 1 && stride > 0 {
                leaves.push(Leaf {
                    extent: size,
                    stride,
                    device: i < device_leaves,
                    weight,
                });
            }
            weight *= size;
        }
        leaves.sort_by_key(|leaf| leaf.stride);
        Self {
            number,
            extent,
            leaves,
        }
    }

    /// The leaves that matter inside the matrix.
    fn inside(&self) -> &[Leaf] {
        let end = self.leaves.partition_point(|l| l.stride < self.extent);
        &self.leaves[..end]
    }

    /// Proves that every row or column has exactly one place, and that the runs of all `devices` are not too many.
    pub(super) fn prove(&self, devices: usize) -> Result<(), DistributionError> {
        let leaves = self.inside();
        let axis = self.number;
        let mut covered = 1_u64;
        for (i, leaf) in leaves.iter().enumerate() {
            if leaf.stride < covered {
                let mut first = Place::default();
                first.add(leaf.device, leaf.weight);
                let mut second = Place::default();
                for below in &leaves[..i] {
                    let digit = leaf.stride / below.stride % below.extent;
                    second.add(below.device, digit * below.weight);
                }
                return Err(DistributionError::HeldTwice {
                    axis,
                    index: leaf.stride,
                    first,
                    second,
                });
            }
            if leaf.stride > covered {
                break;
            }
            covered = covered.saturating_mul(leaf.extent);
        }
        if covered < self.extent {
            return Err(DistributionError::Unheld {
                axis,
                index: covered,
                extent: self.extent,
            });
        }
        let mut offsets: Vec<u64> = (0..devices).map(|device| self.offset(device)).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let mut runs = 0;
        for offset in offsets {
            runs += self
                .runs_from(offset)
                .map_or(MAX_RUNS + 1, |runs| runs.len());
            if runs > MAX_RUNS {
                return Err(DistributionError::TooManyRuns {
                    axis,
                    limit: MAX_RUNS,
                });
            }
        }
        Ok(())
    }

    /// The first row or column of the device, which may be outside the matrix.
    pub(super) fn offset(&self, device: usize) -> u64 {
        let devices = self.leaves.iter().filter(|leaf| leaf.device);
        devices
            .map(|leaf| device as u64 / leaf.weight % leaf.extent * leaf.stride)
            .sum()
    }

    /// The rows or columns of all devices with this offset.
    pub(super) fn runs(&self, offset: u64) -> Runs {
        // `prove` has counted them.
        self.runs_from(offset).unwrap_or_default()
    }

    /// The runs from `offset` on, if they are at most [`MAX_RUNS`].
    fn runs_from(&self, offset: u64) -> Option<Runs> {
        if offset >= self.extent {
            return Some(Runs::default());
        }
        // The local leaves at the bottom that follow each other make one run; the others say where runs start.
        let mut length = 1_u64;
        let mut rest = Vec::new();
        for leaf in self.inside().iter().filter(|leaf| !leaf.device) {
            if rest.is_empty() && leaf.stride == length {
                length = length.saturating_mul(leaf.extent);
            } else {
                rest.push(*leaf);
            }
        }
        let mut starts = vec![offset];
        for leaf in rest.iter().rev() {
            let mut next = Vec::new();
            for start in starts {
                let room = (self.extent - 1 - start) / leaf.stride;
                for digit in 0..=room.min(leaf.extent - 1) {
                    if next.len() == MAX_RUNS {
                        return None;
                    }
                    next.push(start + digit * leaf.stride);
                }
            }
            starts = next;
        }
        let run = |start: u64| start..start.saturating_add(length).min(self.extent);
        Some(Runs::sorted(starts.into_iter().map(run).collect()))
    }

    /// The digits that devices must have to hold row or column `index`: (weight, extent, digit) of each leaf of the device mode.
    pub(super) fn device_digits(&self, index: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let devices = self.leaves.iter().filter(|leaf| leaf.device);
        devices.map(move |leaf| {
            let digit = if leaf.stride < self.extent {
                index / leaf.stride % leaf.extent
            } else {
                0
            };
            (leaf.weight, leaf.extent, digit)
        })
    }
}
