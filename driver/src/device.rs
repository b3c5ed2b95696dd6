//! Devices: a table of real ones with what the API tells of them.
//!
//! `TILEWRIGHT_DEVICE` chooses, an H100 by default. Figures are those that `cuDeviceGetAttribute` gives on the real device, as far as the CUDA C++ Programming Guide,
//! section "Compute Capabilities", and the data sheets say them.

use std::ffi::{c_char, c_int, c_uint};

use ptx_emulator::Device as Emulated;

use crate::c::{Done, Out, api};
use crate::settings::settings;
use crate::state::{Driver, with};
use crate::status::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, Status};

/// The version of the API that the library stands for.
pub(crate) const VERSION: c_int = 13_000;

/// A device of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    /// As `TILEWRIGHT_DEVICE` and the emulator call it.
    pub(crate) short: &'static str,
    pub(crate) name: &'static str,
    /// Compute capability.
    pub(crate) capability: [c_int; 2],
    /// Bytes of memory.
    pub(crate) memory: u64,
    /// Clock rates in kHz, of the multiprocessors and of the memory, and the width of its bus in bits.
    clocks: [c_int; 3],
    /// Bytes of the L2 cache.
    l2: c_int,
    /// Bytes of shared memory of a multiprocessor.
    shared: c_int,
    /// Threads and blocks of a multiprocessor.
    resident: [c_int; 2],
    multiprocessors: c_int,
    /// How much faster single precision is than double.
    single_to_double: c_int,
}

/// The devices there are.
const TABLE: [Device; 5] = [
    Device {
        short: "h100",
        name: "NVIDIA H100 80GB HBM3",
        capability: [9, 0],
        memory: 85_017_493_504,
        clocks: [1_980_000, 2_619_000, 5120],
        l2: 50 << 20,
        shared: 228 << 10,
        resident: [2048, 32],
        multiprocessors: 132,
        single_to_double: 2,
    },
    Device {
        short: "a100",
        name: "NVIDIA A100-SXM4-80GB",
        capability: [8, 0],
        memory: 85_049_802_752,
        clocks: [1_410_000, 1_593_000, 5120],
        l2: 40 << 20,
        shared: 164 << 10,
        resident: [2048, 32],
        multiprocessors: 108,
        single_to_double: 2,
    },
    Device {
        short: "rtx4090",
        name: "NVIDIA GeForce RTX 4090",
        capability: [8, 9],
        memory: 25_250_627_584,
        clocks: [2_520_000, 10_501_000, 384],
        l2: 72 << 20,
        shared: 100 << 10,
        resident: [1536, 24],
        multiprocessors: 128,
        single_to_double: 64,
    },
    Device {
        short: "rtx5090",
        name: "NVIDIA GeForce RTX 5090",
        capability: [12, 0],
        memory: 33_660_731_392,
        clocks: [2_407_000, 14_001_000, 512],
        l2: 96 << 20,
        shared: 100 << 10,
        resident: [1536, 24],
        multiprocessors: 170,
        single_to_double: 64,
    },
    Device {
        short: "b200",
        name: "NVIDIA B200",
        capability: [10, 0],
        memory: 191_503_138_816,
        clocks: [1_965_000, 3_996_000, 7680],
        l2: 126 << 20,
        shared: 228 << 10,
        resident: [2048, 32],
        multiprocessors: 148,
        single_to_double: 2,
    },
];

/// Most bytes of shared memory of a block that need no permission.
pub(crate) const SHARED_BY_DEFAULT: c_int = 48 << 10;

impl Device {
    /// The emulator's device.
    pub(crate) fn emulated(&self) -> Emulated {
        Emulated::named(self.short).unwrap_or_default()
    }

    /// Most bytes of shared memory of a block; the system takes 1 KiB more.
    pub(crate) fn shared_of_a_block(&self) -> c_int {
        self.shared - 1024
    }

    /// `sm_90` as 90.
    pub(crate) fn architecture(&self) -> c_int {
        self.capability[0] * 10 + self.capability[1]
    }

    pub(crate) fn uuid(&self, ordinal: c_int) -> [u8; 16] {
        let mut bytes = *b"tilewright------";
        for (to, from) in bytes[10..].iter_mut().zip(self.short.bytes()) {
            *to = from;
        }
        bytes[15] = ordinal as u8;
        bytes
    }

    fn attribute(&self, number: c_int, ordinal: c_int) -> Option<c_int> {
        Some(match number {
            // Threads of a block, in all and along each dimension.
            1..=3 | 111 => 1024,
            4 => 64,
            5 | 11 => c_int::MAX,
            6 | 7 => 65_535,
            8 => SHARED_BY_DEFAULT,
            9 | 12 | 23 | 82 => 65_536,
            10 | 51 => 32,
            13 => self.clocks[0],
            14 | 30 => 512,
            // What every device of the table can do.
            15 | 19 | 31 | 41 | 44 | 78..=80 | 83 | 89..=95 | 99 | 115 | 122 | 123 | 129 => 1,
            16 => self.multiprocessors,
            // Sizes of textures.
            21 | 22 | 27 | 28 | 42 | 45 | 46 | 55 => 32_768,
            24..=26 | 47..=49 => 16_384,
            29 | 43 => 2048,
            33 => 1 + ordinal,
            36 => self.clocks[1],
            37 => self.clocks[2],
            38 => self.l2,
            39 => self.resident[0],
            40 => 3,
            75 => self.capability[0],
            76 => self.capability[1],
            81 => self.shared,
            85 => ordinal,
            87 => self.single_to_double,
            97 => self.shared_of_a_block(),
            106 => self.resident[1],
            108 => self.l2 / 4 * 3,
            109 => 128 << 20,
            120 | 127 => c_int::from(self.capability >= [9, 0]),
            126 => 4,
            131 => -1,
            0 | 148.. => return None,
            _ => 0,
        })
    }
}

/// The devices of the process, in order.
pub(crate) fn devices() -> Result<Vec<Device>, Status> {
    let names = &settings().devices;
    if names.is_empty() {
        return Ok(vec![TABLE[0]]);
    }
    let mut found = Vec::new();
    for name in names {
        let Some(device) = TABLE.iter().find(|d| d.short == name.to_ascii_lowercase()) else {
            let all = TABLE.map(|d| d.short).join(", ");
            eprintln!(
                "tilewright: TILEWRIGHT_DEVICE={name}: there is no such device; there are: {all}"
            );
            return Err(NO_DEVICE);
        };
        found.push(*device);
    }
    Ok(found)
}

impl Driver {
    /// The device with this ordinal.
    pub(crate) fn device(&self, ordinal: c_int) -> Result<&Device, Status> {
        let index = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        self.devices.get(index).ok_or(INVALID_DEVICE)
    }
}

/// A name of C in a buffer of `room` bytes, cut to what fits.
pub(crate) fn put_name(to: Out<c_char>, room: c_int, name: &str) -> Done {
    let room = usize::try_from(room).map_err(|_| INVALID_VALUE)?;
    if to.is_null() || room == 0 {
        return Err(INVALID_VALUE);
    }
    let bytes = name.bytes().take(room - 1).chain([0]);
    to.set_all(bytes.map(|b| b as c_char));
    Ok(())
}

api! {
    fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(VERSION)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        with(|d| count.set(d.devices.len() as c_int))
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        with(|d| d.device(ordinal).and_then(|_| device.set(ordinal)))
    }

    fn cuDeviceGetName(name: Out<c_char>, room: c_int, device: c_int) {
        with(|d| put_name(name, room, d.device(device)?.name))
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) as cuDeviceGetUuid {
        with(|d| uuid.set(d.device(device)?.uuid(device)))
    }

    fn cuDeviceGetLuid(luid: Out<c_char>, mask: Out<c_uint>, device: c_int) {
        let _ = (luid, mask, device);
        Err(crate::status::NOT_SUPPORTED)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        with(|d| bytes.set(d.device(device)?.memory as usize))
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        with(|d| {
            let found = d.device(device)?.attribute(attribute, device);
            value.set(found.ok_or(INVALID_VALUE)?)
        })
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        with(|d| {
            let [x, y] = d.device(device)?.capability;
            major.set(x)?;
            minor.set(y)
        })
    }

    fn cuDeviceGetProperties(properties: Out<[c_int; 12]>, device: c_int) {
        with(|d| {
            let found = d.device(device)?;
            let of = |n| found.attribute(n, device).unwrap_or(0);
            properties.set([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].map(of))
        })
    }

    fn cuDeviceGetPCIBusId(name: Out<c_char>, room: c_int, device: c_int) {
        with(|d| {
            d.device(device)?;
            put_name(name, room, &format!("0000:{:02x}:00.0", 1 + device))
        })
    }

    fn cuDeviceGetByPCIBusId(device: Out<c_int>, name: crate::c::Text) {
        with(|d| {
            let name = name.get()?.to_ascii_lowercase();
            let count = d.devices.len() as c_int;
            let is = |n: &c_int| name.contains(&format!("{:02x}:00", 1 + n));
            device.set((0..count).find(is).ok_or(INVALID_DEVICE)?)
        })
    }

    fn cuDeviceCanAccessPeer(can: Out<c_int>, device: c_int, peer: c_int) {
        with(|d| {
            d.device(device)?;
            d.device(peer)?;
            can.set(c_int::from(device != peer))
        })
    }

    fn cuDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, device: c_int, peer: c_int) {
        with(|d| {
            d.device(device)?;
            d.device(peer)?;
            // Performance rank 0, access, native atomics, arrays.
            value.set(c_int::from(matches!(attribute, 2 | 3) && device != peer))
        })
    }

    fn cuDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, _format: c_int, _channels: c_uint, device: c_int) {
        with(|d| d.device(device).and_then(|_| width.set(1 << 28)))
    }

    fn cuDeviceGetExecAffinitySupport(supported: Out<c_int>, _kind: c_int, device: c_int) {
        with(|d| d.device(device).and_then(|_| supported.set(0)))
    }
}
