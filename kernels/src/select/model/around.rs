//! What the product moves from and to memory, and the kernels before and after it: operands that are packed or transposed, and partial sums that are added.

use super::{LINE, Model, Operand};
use crate::gemm::Mainloop;

/// The share of a launch that such a kernel adds; beside products of warpgroups it begins before the kernel before it ends.
const AFTER: f64 = 0.578;
const BESIDE: f64 = 0.195;

/// The share of the bandwidth of memory at which rows are packed whose elements are read one by one.
const ONE_BY_ONE: f64 = 0.874;

/// The same of operands that are transposed, and of partial sums that are added.
const TRANSPOSED: f64 = 0.949;
const SUMS: f64 = 0.806;

/// The share of the rate of the cache that partial sums reach at most: they were written just before and lie there, so that memory which is faster than an
/// H100's does not add them sooner (512×512×65536 in bf16 on an H200: 8 parts in 0.057 ms, 16 in 0.066).
const SUMS_IN_CACHE: f64 = 0.2365;

/// Threads of a block that packs or transposes, and bytes of a row that it copies.
const PACKING: u64 = 256;
const PACKED_BYTES: u64 = 4096;

/// Rows and bytes of a row that a block copies in vectors.
const VECTORS: [u64; 2] = [16, 1024];

/// Threads of a block that adds partial sums, and vectors of them that it reads before it waits.
const ADDING: u64 = 128;
const TOGETHER: f64 = 5.02;

impl Model<'_> {
    /// Bytes that the product's kernel moves from and to memory, and those of them that it has read before.
    pub(super) fn memory_bytes(&self, waves: f64, slots: u64) -> (f64, f64) {
        let p = self.problem;
        let t = self.config.data_type;
        let [m, n, _] = self.config.tile;
        let (rows, cols) = self.tiles();
        let bytes = f64::from(t.bytes());
        let (k, batch) = (p.k as f64, p.batch.count as f64);
        let both = (p.m as f64 + p.n as f64) * k * bytes;
        let once = both * batch;
        let (_, split) = self.split();
        let fits = both <= self.machine.l2_bytes as f64 / 2.0;
        let read = if fits || rows.saturating_mul(cols) <= slots {
            once
        } else {
            let (down, across) = if let Some(([rows, columns], _)) = self.persistent_grid() {
                (rows.into(), columns.into())
            } else if let Some(group) = self.config.rows_together() {
                let grouped = split == 1 && p.batch.count == 1;
                let down = if grouped {
                    group.min(rows)
                } else {
                    rows.min(slots)
                };
                (down, slots.div_ceil(down).min(cols))
            } else {
                let across = slots.min(cols);
                (slots.div_ceil(across).min(rows), across)
            };
            let of_a_wave = down as f64 * f64::from(m) + across as f64 * f64::from(n);
            once.max(waves * of_a_wave * k * bytes / split as f64)
        };
        let c = p.m as f64 * p.n as f64 * batch;
        let all = read + c * split as f64 * self.written_bytes();
        (all, read - once)
    }

    /// Seconds of the launches before and after the product's own.
    pub(super) fn around(&self) -> f64 {
        let (p, m) = (self.problem, self.machine);
        let (_, split) = self.split();
        let launch = m.launch
            * match self.config.mainloop {
                Mainloop::Wgmma(_) => BESIDE,
                _ => AFTER,
            };
        let mut seconds = 0.0;
        if split > 1 {
            let c = p.m as f64 * p.n as f64;
            let bytes = c * (split as f64 * self.sum_bytes() + self.result_bytes());
            let of_a_block = ADDING * 16 / self.sum_bytes() as u64;
            let blocks = p.m.saturating_mul(p.n.div_ceil(of_a_block));
            let waits = self.waves(blocks, ADDING) * (1.0 + split as f64 / TOGETHER);
            let of_cache = SUMS_IN_CACHE * m.l2_bytes_per_clock * m.clock;
            let rate = of_cache.min(SUMS * m.memory_bandwidth);
            seconds += launch + (bytes / rate).max(waits * m.latency);
        }
        for o in self.operands().iter().filter(|o| self.is_copied_first(o)) {
            seconds += launch + self.packing(o);
        }
        seconds
    }

    /// Waves of so many blocks of a kernel that needs nothing but threads.
    fn waves(&self, blocks: u64, threads: u64) -> f64 {
        let m = self.machine;
        let resident = (u64::from(m.threads_per_sm) / threads).min(m.blocks_per_sm.into());
        let slots = resident.max(1) * u64::from(m.multiprocessors);
        blocks.div_ceil(slots) as f64
    }

    /// Seconds to copy an operand: its bytes, read and written, or the latency of each wave of blocks. Narrow rows take a block each, however short.
    fn packing(&self, o: &Operand) -> f64 {
        let (p, m) = (self.problem, self.machine);
        let bytes = u64::from(self.config.data_type.bytes());
        let [a, b, _] = p.widths(self.config.data_type);
        let ((rows, cols), width) = if o.is_a {
            (p.stored_a(), a)
        } else {
            (p.stored_b(), b)
        };
        let [of_a, of_b] = self.config.transposed(p.operands);
        let transposed = if o.is_a { of_a } else { of_b };
        let blocks = if transposed {
            let side = (LINE / bytes).max(64);
            rows.div_ceil(side).saturating_mul(cols.div_ceil(side))
        } else if width >= 16 {
            let across = cols.saturating_mul(bytes).div_ceil(VECTORS[1]);
            rows.div_ceil(VECTORS[0]).saturating_mul(across)
        } else {
            rows.saturating_mul(cols.saturating_mul(bytes).div_ceil(PACKED_BYTES))
        };
        let moved = 2.0 * rows as f64 * cols as f64 * bytes as f64;
        let part = if width < 4 { ONE_BY_ONE } else { 1.0 };
        let part = part * if transposed { TRANSPOSED } else { 1.0 };
        (moved / (part * m.memory_bandwidth)).max(self.waves(blocks, PACKING) * m.latency)
    }
}
