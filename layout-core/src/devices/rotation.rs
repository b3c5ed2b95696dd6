//! The order in which devices work through shards.
//!
//! Device `d` works in step `s` on shard `(d + s) mod p`. It begins with its own shard, which is there at once, while the others are on their way; in
//! every step each shard is in use by one device, so that no two devices read from the same one:
//!
//! ```text
//!            step 0  1  2  3
//! device 0        0  1  2  3
//! device 1        1  2  3  0
//! device 2        2  3  0  1
//! device 3        3  0  1  2
//! ```
//!
//! Before the modulus this is the layout `(p,p):(1,1)` of (device, step).

use alloc::vec;

use super::MAX_DEVICES;
use super::error::{Busy, DistributionError};
use crate::int_tuple::IntTuple;
use crate::layout::Layout;

/// The order (device, step) → shard `(device + step) mod p`.
///
/// ```
/// use layout_core::devices::Rotation;
/// let order = Rotation::new(4).unwrap();
/// assert_eq!([0, 1, 2, 3].map(|step| order.shard(2, step)), [2, 3, 0, 1]);
/// assert_eq!(order.step(2, 1), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rotation {
    devices: usize,
    layout: Layout,
}

impl Rotation {
    /// The rotation of `devices` devices, proven by [`prove`](Self::prove).
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// assert!(Rotation::new(8).is_ok());
    /// assert_eq!(Rotation::new(0).unwrap_err().code(), "devices");
    /// ```
    ///
    /// # Errors
    ///
    /// No device, or more than [`MAX_DEVICES`].
    pub fn new(devices: usize) -> Result<Self, DistributionError> {
        if !(1..=MAX_DEVICES).contains(&devices) {
            return Err(DistributionError::Devices {
                devices: devices as u64,
                limit: MAX_DEVICES,
            });
        }
        let size = devices as i64;
        let layout = Layout::new(IntTuple::flat(&[size, size])?, IntTuple::flat(&[1, 1])?)?;
        let rotation = Self { devices, layout };
        Self::prove(devices, |device, step| rotation.shard(device, step))?;
        Ok(rotation)
    }

    /// Proves that `order`, a function of (device, step), is one in which every device begins with its own shard and works through every shard once,
    /// and in every step each works on another one: each row of the table is a permutation, and each column.
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// assert!(Rotation::prove(4, |device, step| (device + step) % 4).is_ok());
    /// // Off by one: nobody begins with its own shard.
    /// assert_eq!(Rotation::prove(4, |device, step| (device + step + 1) % 4).unwrap_err().code(), "order");
    /// // Everybody reads from the same device.
    /// assert!(Rotation::prove(4, |device, step| if step == 0 { device } else { step }).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`DistributionError::Order`] with the first device, step and shard that refute it; [`DistributionError::Devices`].
    pub fn prove(
        devices: usize,
        order: impl Fn(usize, usize) -> usize,
    ) -> Result<(), DistributionError> {
        if !(1..=MAX_DEVICES).contains(&devices) {
            return Err(DistributionError::Devices {
                devices: devices as u64,
                limit: MAX_DEVICES,
            });
        }
        // Which device works on each shard in a step, and in which step a device works on each.
        let mut in_step = vec![None; devices * devices];
        let mut of_device = vec![None; devices * devices];
        for device in 0..devices {
            for step in 0..devices {
                let shard = order(device, step);
                let refuted = |other| {
                    Err(DistributionError::Order {
                        device,
                        step,
                        shard,
                        other,
                    })
                };
                if shard >= devices || (step == 0 && shard != device) {
                    return refuted(None);
                }
                if let Some(earlier) = of_device[device * devices + shard].replace(step) {
                    return refuted(Some(Busy::Step(earlier)));
                }
                if let Some(other) = in_step[step * devices + shard].replace(device) {
                    return refuted(Some(Busy::Device(other)));
                }
            }
        }
        Ok(())
    }

    /// How many devices and steps there are.
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// assert_eq!(Rotation::new(4).unwrap().devices(), 4);
    /// ```
    pub const fn devices(&self) -> usize {
        self.devices
    }

    /// The order as a layout of (device, step), before the modulus.
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// let order = Rotation::new(4).unwrap();
    /// assert_eq!(order.layout().to_string(), "(4,4):(1,1)");
    /// assert_eq!(order.layout().at(&[3, 2]) % 4, order.shard(3, 2) as i64);
    /// ```
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The shard that `device` works on in `step`; both count modulo the number of devices.
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// assert_eq!(Rotation::new(3).unwrap().shard(2, 2), 1);
    /// ```
    pub const fn shard(&self, device: usize, step: usize) -> usize {
        let p = self.devices;
        (device % p + step % p) % p
    }

    /// The step in which `device` works on `shard`; both count modulo the number of devices.
    ///
    /// ```
    /// use layout_core::devices::Rotation;
    /// let order = Rotation::new(5).unwrap();
    /// assert_eq!(order.shard(3, order.step(3, 1)), 1);
    /// ```
    pub const fn step(&self, device: usize, shard: usize) -> usize {
        let p = self.devices;
        (shard % p + p - device % p) % p
    }
}
