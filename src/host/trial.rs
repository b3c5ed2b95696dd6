//! Several ways to compute one problem, timed against each other on one GPU.
//!
//! ```text
//! operands ──▶ sets of them, several times the level 2 cache, which every call rotates
//! each way ──▶ once on the first set, a sample of C checked ──▶ rounds in which every right one has a timing slice
//! ```
//!
//! Drawing random operands needs no GPU: a [`Trial`] is made by any thread while the GPU runs another.

use tilewright_gpu::{Buffer, Gpu, GpuError, TimeOptions, Timing};
use tilewright_kernels::gemm::{DataType, Emitted, Gemm, Specialized};

use super::reference::Sample;
use super::run::arg;
use super::run::bind::bind;
use super::run::on_gpu::Loaded;
use super::{Check, GemmKernel, Inputs, Matrix, RunError, Runnable};

/// Bytes of operands that rotate: several times the level 2 cache of any GPU there is.
const ROTATING_BYTES: usize = 512 << 20;

/// Sets of operands at most: of products so small that even these do not fill the cache, the time is that of a launch.
const MAX_SETS: usize = 256;

/// Rows and columns of the elements of C that are checked.
const SAMPLE: (usize, usize) = (16, 64);

/// Times scatter if half of them lie in a range of more than this share of the median: the host fell behind, and the GPU waited for launches.
const SCATTERED: f64 = 0.15;

/// How often times are taken if more than one way in ten scatters.
const ATTEMPTS: usize = 4;

/// Bytes of NaN before each buffer, and what buffers begin at multiples of.
const GAP: usize = 256;

/// A problem with random operands, and the elements of C that its results are checked by.
#[derive(Debug)]
pub struct Trial {
    problem: Gemm,
    data_type: DataType,
    inputs: Inputs,
    sample: Sample,
}

/// What a trial found of one way.
#[derive(Clone, PartialEq, Debug)]
pub struct Tried {
    /// The times of one product in milliseconds, all its launches together; none of a wrong one.
    pub timing: Timing,
    /// Of the sampled elements of C; gaps are not compared.
    pub check: Check,
}

/// A way that was launched once.
struct Ready {
    loaded: Loaded,
    tried: Tried,
}

impl Trial {
    /// Draws the operands of a problem, the same for the same seed.
    ///
    /// # Errors
    ///
    /// [`RunError::Operand`] for a problem whose matrices do not fit it, [`RunError::Refused`] for an empty batch.
    pub fn new(problem: &Gemm, data_type: DataType, seed: u64) -> Result<Self, RunError> {
        if problem.batch.count == 0 {
            let reason =
                "it is a batch of no products, which has no time; give at least one".to_owned();
            return Err(RunError::Refused { reason });
        }
        let inputs = Inputs::random(problem, data_type, seed);
        let sample = Sample::new(problem, data_type, &inputs, SAMPLE)?;
        Ok(Self {
            problem: *problem,
            data_type,
            inputs,
            sample,
        })
    }

    /// Runs each way once and checks 16 × 64 elements of C (of a batch, those of its first product); then times the right ones, which alternate in slices, again
    /// if the times of many scatter.
    /// A way is an adapted plan and its kernel; the results are in the order of the ways.
    ///
    /// # Errors
    ///
    /// What concerns all ways: memory for the operands, or a failure of the driver. What concerns one is its own result: the plan's refusal of the
    /// problem or the driver's of the kernel.
    pub fn run(
        &self,
        gpu: &Gpu,
        ways: &[(&Specialized, &Emitted)],
        options: TimeOptions,
    ) -> Result<Vec<Result<Tried, RunError>>, RunError> {
        let mut sets = None;
        let mut all = Vec::new();
        for &(plan, kernel) in ways {
            all.push(self.launch_once(gpu, plan, kernel, &mut sets)?);
        }
        let Some(sets) = sets else {
            return Ok(all.into_iter().map(|way| way.map(|w| w.tried)).collect());
        };
        let mut right: Vec<_> = all
            .iter_mut()
            .filter_map(|way| way.as_mut().ok())
            .filter(|way| way.tried.check.passed)
            .collect();
        // As many as are timed; what warms up goes through them again.
        let calls = options.warmup + options.repeats.max(1) * options.batch.max(1);
        let works = right.len();
        let count = rotated(sets.count, works);
        let bound = right
            .iter()
            .enumerate()
            .map(|(which, way)| {
                let set = |call: usize| sets.addresses((call * works + which) % count);
                (0..calls)
                    .map(|call| way.loaded.bind(gpu, set(call)))
                    .collect::<Result<Vec<_>, _>>()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut launch =
            |which: usize, call: usize| right[which].loaded.run(&bound[which][call % calls]);
        let mut times = gpu.time_interleaved(options, works, &mut launch)?;
        for _ in 1..ATTEMPTS {
            if scattered(&times) <= works / 10 {
                break;
            }
            let again = gpu.time_interleaved(options, works, &mut launch)?;
            if scattered(&again) < scattered(&times) {
                times = again;
            }
        }
        for (way, timing) in right.iter_mut().zip(times) {
            way.tried.timing = timing;
        }
        Ok(all.into_iter().map(|way| way.map(|w| w.tried)).collect())
    }

    /// Loads a kernel, launches it on the first set and checks what it left there; the sets are made for the first way that can be launched.
    fn launch_once(
        &self,
        gpu: &Gpu,
        plan: &Specialized,
        kernel: &Emitted,
        sets: &mut Option<Sets>,
    ) -> Result<Result<Ready, RunError>, RunError> {
        let prepared = || {
            let kernel = GemmKernel::emitted(plan, kernel, &self.problem)?;
            let operands = bind(&kernel, kernel.args(&self.inputs)?)?;
            if operands.steps.is_empty() {
                let what = "an empty product has no time".to_owned();
                return Err(RunError::from(GpuError::Invalid { what }));
            }
            let loaded = Loaded::new(gpu, kernel.ptx(), kernel.entry(), &operands)?;
            Ok((loaded, operands.buffers))
        };
        let (loaded, buffers) = match prepared() {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        let sets = match sets {
            Some(sets) => sets,
            None => sets.insert(Sets::new(gpu, buffers.iter().map(|(_, buffer)| buffer))?),
        };
        sets.restore(&self.inputs.c, &self.sample.rows)?;
        loaded.run(&loaded.bind(gpu, sets.addresses(0))?)?;
        gpu.synchronize()?;
        let rows = sets.rows(&self.inputs.c, &self.sample.rows)?;
        let check = self.sample.check(&rows);
        let timing = Timing::default();
        let tried = Tried { timing, check };
        Ok(Ok(Ready { loaded, tried }))
    }

    /// The type of its elements.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The problem.
    pub fn problem(&self) -> &Gemm {
        &self.problem
    }
}

/// How many of `count` sets to use, so that a call of one of `works` does not take the set of its call before, or one next to it: what was used last is
/// still in the cache.
fn rotated(count: usize, works: usize) -> usize {
    let apart = |count: &usize| (2..count.saturating_sub(1)).contains(&(works % count));
    ((count / 2).max(1)..=count)
        .rev()
        .find(apart)
        .unwrap_or(count)
}

/// Of how many ways the times scatter.
fn scattered(times: &[Timing]) -> usize {
    let wide = |timing: &&Timing| {
        let [low, high] = timing.quartiles();
        high - low > SCATTERED * timing.median()
    };
    times.iter().filter(wide).count()
}

/// Equal sets of buffers in one allocation.
struct Sets {
    memory: Buffer,
    /// Bytes from the start of a set to each of its buffers.
    offsets: Vec<usize>,
    /// Bytes from the start of the allocation to the first set, and from set to set.
    base: usize,
    stride: usize,
    count: usize,
}

impl Sets {
    /// As many sets as several caches hold. Addresses are as [`Placed`](super::run::on_gpu::Placed) has them: below 16 bytes, odd multiples of what is
    /// promised.
    fn new<'b>(
        gpu: &Gpu,
        buffers: impl Iterator<Item = &'b arg::Buffer<'b>>,
    ) -> Result<Self, GpuError> {
        let buffers: Vec<_> = buffers.collect();
        let boundary = buffers
            .iter()
            .map(|b| b.alignment as usize)
            .fold(GAP, usize::max);
        let (mut offsets, mut end) = (Vec::new(), 0_usize);
        for buffer in &buffers {
            let odd = if buffer.alignment < 16 {
                buffer.alignment as usize
            } else {
                0
            };
            let offset = (end + GAP).next_multiple_of(boundary) + odd;
            offsets.push(offset);
            end = offset + buffer.len;
        }
        let stride = (end + GAP).next_multiple_of(boundary);
        let bytes: usize = buffers.iter().map(|b| b.len).sum();
        // A set that is larger than several caches is cold by itself.
        let count = (ROTATING_BYTES / bytes.max(1)).clamp(1, MAX_SETS);
        let memory = gpu.alloc(count * stride + boundary)?;
        memory.poison()?;
        let first = memory.address() as usize;
        let base = first.next_multiple_of(boundary) - first;
        let sets = Self {
            memory,
            offsets,
            base,
            stride,
            count,
        };
        for (which, buffer) in buffers.iter().enumerate() {
            if let Some(content) = &buffer.content {
                sets.memory.write(sets.at(0, which), content)?;
            }
        }
        // Twice as many each time.
        let mut filled = 1;
        while filled < count {
            let more = filled.min(count - filled);
            sets.memory
                .copy_within(base, base + filled * stride, more * stride)?;
            filled += more;
        }
        Ok(sets)
    }

    /// Bytes from the start of the allocation to a buffer of a set.
    fn at(&self, set: usize, which: usize) -> usize {
        self.base + set * self.stride + self.offsets[which]
    }

    fn addresses(&self, set: usize) -> Vec<u64> {
        let start = self.memory.address();
        (0..self.offsets.len())
            .map(|which| start + self.at(set, which) as u64)
            .collect()
    }

    /// Puts back rows of C in the first set, so that a kernel that writes nothing is seen.
    fn restore(&self, c: &Matrix, rows: &[usize]) -> Result<(), GpuError> {
        let size = c.element.bytes() as usize;
        for row in rows {
            let start = row * c.ld * size;
            let at = self.at(0, GemmKernel::C) + start;
            self.memory.write(at, &c.bytes[start..][..c.cols * size])?;
        }
        Ok(())
    }

    /// Rows of C in the first set, one below the other.
    fn rows(&self, c: &Matrix, rows: &[usize]) -> Result<Matrix, GpuError> {
        let size = c.element.bytes() as usize;
        let mut bytes = Vec::new();
        for row in rows {
            let at = self.at(0, GemmKernel::C) + row * c.ld * size;
            bytes.extend(self.memory.read::<u8>(at, c.cols * size)?);
        }
        Ok(Matrix {
            rows: rows.len(),
            ld: c.cols,
            count: 1,
            stride: 0,
            bytes,
            ..*c
        })
    }
}

#[cfg(test)]
mod tests {
    use super::rotated;

    #[test]
    fn calls_do_not_take_the_set_of_the_call_before() {
        for works in 1..200 {
            for count in 1..=256 {
                let used = rotated(count, works);
                assert!((1..=count).contains(&used), "{count} sets, {works} works");
                let apart = (2..used.saturating_sub(1)).contains(&(works % used));
                assert!(
                    apart || used == count,
                    "{count} sets, {works} works: {used}"
                );
            }
        }
    }
}
