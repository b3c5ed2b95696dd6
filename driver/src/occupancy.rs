//! Occupancy: how many blocks run at once, by the emulator's device and the registers that it assumes.

use std::ffi::{c_int, c_uint};

use crate::c::{Handle, In, Out, api};
use crate::launch::Config;
use crate::module::{max_threads, registers};
use crate::state::{Driver, with};
use crate::status::{INVALID_VALUE, Status};

/// Bytes of dynamic shared memory of a block of so many threads.
type Dynamic = extern "C" fn(c_int) -> usize;

impl Driver {
    /// Blocks of a function on a multiprocessor.
    fn blocks(&mut self, function: Handle, threads: u32, dynamic: usize) -> Result<u64, Status> {
        let device = self.current_device()?;
        let device = self.device(device)?.emulated();
        let (_, _, kernel) = self.code(function)?;
        if threads == 0 || threads > 1024 {
            return Err(INVALID_VALUE);
        }
        let shared = kernel.static_shared().saturating_add(dynamic as u32);
        let all = device.blocks_at_once(threads, shared, registers(threads));
        Ok(all / u64::from(device.multiprocessors()))
    }
}

fn potential(
    least: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    dynamic: Option<Dynamic>,
    bytes: usize,
    limit: c_int,
) -> Result<(), Status> {
    with(|d| {
        let (_, _, kernel) = d.code(function)?;
        let most = max_threads(kernel);
        let most = if limit > 0 {
            most.min(limit as u32)
        } else {
            most
        };
        let mut best = (0, 0, 0);
        for threads in (32..=most.max(32)).step_by(32).map(|n| n.min(most)) {
            let bytes = dynamic.map_or(bytes, |f| f(threads as c_int));
            let blocks = d.blocks(function, threads, bytes)?;
            best = best.max((blocks * u64::from(threads), threads, blocks));
        }
        let device = d.current_device()?;
        let multiprocessors = u64::from(d.device(device)?.emulated().multiprocessors());
        least.set((best.2 * multiprocessors) as c_int)?;
        block.set(best.1 as c_int)
    })
}

fn active(count: Out<c_int>, function: Handle, threads: c_int, bytes: usize) -> Result<(), Status> {
    with(|d| count.set(d.blocks(function, threads as u32, bytes)? as c_int))
}

api! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: Out<c_int>, function: Handle, threads: c_int, bytes: usize) {
        active(count, function, threads, bytes)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count: Out<c_int>, function: Handle, threads: c_int, bytes: usize, _flags: c_uint) {
        active(count, function, threads, bytes)
    }

    fn cuOccupancyMaxPotentialBlockSize(least: Out<c_int>, block: Out<c_int>, function: Handle, dynamic: Option<Dynamic>, bytes: usize, limit: c_int) {
        potential(least, block, function, dynamic, bytes, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(least: Out<c_int>, block: Out<c_int>, function: Handle, dynamic: Option<Dynamic>, bytes: usize, limit: c_int, _flags: c_uint) {
        potential(least, block, function, dynamic, bytes, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(bytes: Out<usize>, function: Handle, blocks: c_int, _threads: c_int) {
        with(|d| {
            let device = d.current_device()?;
            let most = d.device(device)?.shared_of_a_block();
            let (_, _, kernel) = d.code(function)?;
            let all = (most + 1024) / blocks.max(1) - 1024;
            let free = all.min(most) - kernel.static_shared() as c_int;
            bytes.set(free.max(0) as usize)
        })
    }

    fn cuOccupancyMaxPotentialClusterSize(size: Out<c_int>, function: Handle, _config: In<Config>) {
        with(|d| {
            let (known, _, _) = d.code(function)?;
            let large = known.is_set(crate::module::NON_PORTABLE_CLUSTER);
            size.set(if large { 16 } else { 8 })
        })
    }

    fn cuOccupancyMaxActiveClusters(count: Out<c_int>, function: Handle, config: In<Config>) {
        with(|d| {
            let shape = config.get()?.shape()?;
            let threads = shape.block.iter().product();
            let device = d.current_device()?;
            let multiprocessors = u64::from(d.device(device)?.emulated().multiprocessors());
            let blocks = d.blocks(function, threads, shape.shared as usize)? * multiprocessors;
            let size: u32 = shape.cluster.unwrap_or([1; 3]).iter().product();
            count.set((blocks / u64::from(size.max(1))) as c_int)
        })
    }
}
