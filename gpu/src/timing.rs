//! Streams, events and honest times.
//!
//! A time is taken between two events on the GPU's stream, not on the host, so that neither the launch nor the wait is in
//! it. [`Gpu::time`] gives the host a head start: the GPU overwrites some memory while the first calls are enqueued, so that
//! it is never idle between repeats, its clock stays up, and what is timed is the GPU's work even where a call takes the
//! host longer than the GPU. With [`TimeOptions::flush_l2`] a memory twice the size of the level 2 cache is overwritten before each repeat, so
//! that no operand is found there; without it, rotate the operands if they are smaller than the cache. Report the median:
//! the mean is the noise of the machine, the minimum its luck.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent, CUresult, CUstream};

use crate::buffer::Buffer;
use crate::device::{Context, Gpu};
use crate::driver::{check, elapsed_ms};
use crate::error::GpuError;

/// An ordered queue of work.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
}

// SAFETY: a stream handle may be used from any thread in which its context is current.
unsafe impl Send for Stream {}
// SAFETY: as above; the handle never changes.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn create(context: &Arc<Context>) -> Result<Self, GpuError> {
        context.bind()?;
        let mut raw = std::ptr::null_mut();
        // Flags 0: in order with the default stream, on which the plain copies happen.
        // SAFETY: a context is current; the handle goes to a local variable.
        check("cuStreamCreate", unsafe {
            sys::cuStreamCreate(&raw mut raw, 0)
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// Waits until the work on this stream is done.
    ///
    /// # Errors
    ///
    /// A failure of the driver, or of a kernel that has run.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.context.bind()?;
        // SAFETY: the stream lives as long as `self`.
        check("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.raw)
        })
    }

    /// An event that happens when the work so far on this stream is done.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn record(&self) -> Result<Event, GpuError> {
        let event = Event::create(&self.context)?;
        event.record(self)?;
        Ok(event)
    }

    /// What is enqueued from here on waits for an event, of any GPU of the process.
    ///
    /// # Errors
    ///
    /// A failure of the driver.
    pub fn wait(&self, event: &Event) -> Result<(), GpuError> {
        self.context.bind()?;
        // SAFETY: both handles live, and the event has been recorded: there is no other way to get one.
        check("cuStreamWaitEvent", unsafe {
            sys::cuStreamWaitEvent(self.raw, event.raw, 0)
        })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Makes the stream's context current.
    pub(crate) fn bind(&self) -> Result<(), GpuError> {
        self.context.bind()
    }

    pub(crate) fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once; work still on it completes. An error has nobody left to tell.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A point in a stream's work, with its time.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: an event handle may be used from any thread in which its context is current.
unsafe impl Send for Event {}
// SAFETY: as above; the handle never changes.
unsafe impl Sync for Event {}

impl Event {
    fn create(context: &Arc<Context>) -> Result<Self, GpuError> {
        context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current; the handle goes to a local variable.
        check("cuEventCreate", unsafe {
            sys::cuEventCreate(&raw mut raw, 0)
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    fn record(&self, stream: &Stream) -> Result<(), GpuError> {
        self.context.bind()?;
        // SAFETY: both handles live, and both are of this process's one context of the device.
        check("cuEventRecord", unsafe {
            sys::cuEventRecord(self.raw, stream.raw)
        })
    }

    /// Whether it has happened.
    ///
    /// # Errors
    ///
    /// A failure of the driver, or of a kernel that has run.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.context.bind()?;
        // SAFETY: the event lives and has been recorded.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("cuEventQuery", result).map(|()| true),
        }
    }

    /// Milliseconds from `self` to the later event `end`; waits until both have happened.
    ///
    /// # Errors
    ///
    /// A failure of the driver, or of a kernel that has run.
    pub fn milliseconds_to(&self, end: &Self) -> Result<f64, GpuError> {
        self.context.bind()?;
        for event in [self, end] {
            // SAFETY: the event lives and has been recorded.
            check("cuEventSynchronize", unsafe {
                sys::cuEventSynchronize(event.raw)
            })?;
        }
        elapsed_ms(self.raw, end.raw).map(f64::from)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: created once. An error has nobody left to tell.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// How [`Gpu::time`] takes times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOptions {
    /// Calls before the first that is timed.
    pub warmup: usize,
    /// Times that are taken; at least 1.
    pub repeats: usize,
    /// Calls in one time, which is divided by this; more than 1 for work of a few microseconds. At least 1.
    pub batch: usize,
    /// How long calls go on before any time is taken, after `warmup` of them: an idle GPU lowers its clocks, and takes some
    /// milliseconds of work to raise them again.
    pub warm_for: Duration,
    /// Whether the level 2 cache is overwritten before each time. It is not between the calls of a batch.
    pub flush_l2: bool,
    /// How long each slice lasts of several works that alternate; zero for one time a slice. Nothing is timed in the first half. The second half is five times of back-to-back calls;
    /// a slice has at most 160 calls of less than 20 µs. At its power limit a GPU adapts its clock to the work within some 50 ms: works that alternate call by call
    /// run at a clock that none of them has by itself.
    pub slice: Duration,
}

/// Repeats that are enqueued behind one head start; with their events far fewer than a stream holds before an enqueue blocks.
const CHUNK: usize = 64;

/// What the GPU overwrites, and how often, while the host enqueues a chunk: a millisecond or two on a GPU of 3 TB/s.
const HEAD_START: (usize, usize) = (256 << 20, 16);

/// Calls that say how long a work takes, before its slices are made as long as they are to be.
const PROBES: usize = 4;

/// Times in a slice that has a length.
const TIMES_OF_A_TURN: usize = 5;

/// Milliseconds of a call that is enqueued no faster than it runs, and how many of them half of a slice has at most: what one head start is long enough for.
const SHORT: f64 = 0.02;
const MOST_SHORT: f64 = 80.0;

/// What a work does in its timing slice: calls that are not timed, and times of so many calls each.
#[derive(Clone, Copy)]
struct Slice {
    before: usize,
    times: usize,
    batch: usize,
}

impl Slice {
    /// The slice of a work with calls of `one` milliseconds.
    fn of(one: f64, options: TimeOptions) -> Self {
        let half = options.slice.as_secs_f64() * 500.0;
        let most = if one < SHORT {
            MOST_SHORT
        } else {
            f64::INFINITY
        };
        let half = (half / one).min(most).max(1.0) as usize;
        Self {
            before: half,
            times: TIMES_OF_A_TURN,
            batch: half.div_ceil(TIMES_OF_A_TURN).max(options.batch),
        }
    }
}

impl Default for TimeOptions {
    fn default() -> Self {
        Self {
            warmup: 3,
            repeats: 20,
            batch: 1,
            warm_for: Duration::ZERO,
            flush_l2: false,
            slice: Duration::ZERO,
        }
    }
}

/// The times of one call in milliseconds, in the order in which they were taken.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Timing {
    samples: Vec<f64>,
}

impl Timing {
    /// Every time in milliseconds.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// These times and, after them, those of `other`.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.samples.extend_from_slice(&other.samples);
        self
    }

    /// The median in milliseconds; of an even number of times, the mean of the two in the middle.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// The first and the third quartile in milliseconds: half of the times lie between them. Each is the nearest time of its rank.
    pub fn quartiles(&self) -> [f64; 2] {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else {
            return [f64::NAN; 2];
        };
        [1, 3].map(|quarters| sorted[(quarters * last + 2) / 4])
    }

    /// The shortest in milliseconds.
    pub fn min(&self) -> f64 {
        self.samples.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The longest in milliseconds.
    pub fn max(&self) -> f64 {
        self.samples.iter().copied().fold(f64::NAN, f64::max)
    }
}

impl Gpu {
    /// Times `work`, which enqueues something on [`Gpu::stream`] and is given the number of the call, warm-up included
    /// (to rotate operands).
    ///
    /// # Errors
    ///
    /// What `work` returns, a failure of the driver, or of a kernel that has run.
    pub fn time<E: From<GpuError>>(
        &self,
        options: TimeOptions,
        mut work: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Timing, E> {
        let mut all = self.time_interleaved(options, 1, |_, call| work(call))?;
        Ok(all.pop().unwrap_or_default())
    }

    /// Times several works against each other. In every round each has a timing slice, in the opposite order of the round before, so that clock
    /// drift affects all equally; each time follows an untimed call of the same work. `work` is given the number of the work and that of its call, warm-up included; the times are in the order of
    /// the works, `repeats` of each, or the next multiple of five where slices have a length ([`TimeOptions::slice`]).
    ///
    /// ```no_run
    /// use tilewright_gpu::{Gpu, GpuError, TimeOptions};
    ///
    /// # fn main() -> Result<(), GpuError> {
    /// let gpu = Gpu::open(0)?;
    /// let copies = [gpu.alloc(1 << 20)?, gpu.alloc(1 << 24)?];
    /// let times = gpu.time_interleaved(TimeOptions::default(), 2, |which, _| copies[which].poison())?;
    /// assert!(times[0].median() < times[1].median());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// What `work` returns, a failure of the driver, or of a kernel that has run.
    pub fn time_interleaved<E: From<GpuError>>(
        &self,
        options: TimeOptions,
        works: usize,
        mut work: impl FnMut(usize, usize) -> Result<(), E>,
    ) -> Result<Vec<Timing>, E> {
        let mut calls = vec![0; works];
        let mut next = |which: usize| {
            calls[which] += 1;
            work(which, calls[which] - 1)
        };
        let scratch = self.alloc(HEAD_START.0.max(2 * self.info().l2_bytes as usize))?;
        for which in (0..options.warmup).flat_map(|_| 0..works) {
            next(which)?;
        }
        let since = Instant::now();
        let mut slices = (0..works).cycle();
        while since.elapsed() < options.warm_for {
            // A few at a time: what is enqueued must not run far ahead of the clock.
            for which in slices.by_ref().take(8) {
                next(which)?;
            }
            self.stream().synchronize()?;
        }
        let mut slice_of = vec![
            Slice {
                before: usize::from(works > 1),
                times: 1,
                batch: options.batch.max(1),
            };
            works
        ];
        let mut rounds = options.repeats.max(1);
        if works > 1 && !options.slice.is_zero() {
            rounds = rounds.div_ceil(TIMES_OF_A_TURN);
            for (which, slice) in slice_of.iter_mut().enumerate() {
                *slice = self.slice_of(options, || next(which))?;
            }
        }
        let mut pairs: Vec<Vec<_>> = (0..works).map(|_| Vec::new()).collect();
        let slices = (0..rounds).flat_map(|round| {
            (0..works).map(move |i| if round % 2 == 0 { i } else { works - 1 - i })
        });
        // Calls since the last head start.
        let mut calls = CHUNK;
        for which in slices {
            let slice = slice_of[which];
            if calls >= CHUNK {
                for _ in 0..HEAD_START.1 {
                    self.overwrite(&scratch)?;
                }
                calls = 0;
            }
            // What another work leaves behind, such as how its multiprocessors divide their memory between cache and shared memory, is not part of a time.
            for _ in 0..slice.before {
                next(which)?;
            }
            for _ in 0..slice.times {
                if options.flush_l2 {
                    self.overwrite(&scratch)?;
                }
                let start = self.stream().record()?;
                for _ in 0..slice.batch {
                    next(which)?;
                }
                pairs[which].push((start, self.stream().record()?));
            }
            calls += slice.before + slice.times * slice.batch;
        }
        self.stream().synchronize()?;
        let of_work = |(pairs, slice): (&Vec<(Event, Event)>, &Slice)| {
            let times = pairs
                .iter()
                .map(|(start, end)| Ok(start.milliseconds_to(end)? / slice.batch as f64));
            Ok(Timing {
                samples: times.collect::<Result<_, GpuError>>()?,
            })
        };
        pairs.iter().zip(&slice_of).map(of_work).collect()
    }

    /// The slice of a work that lasts as long as the options say.
    fn slice_of<E: From<GpuError>>(
        &self,
        options: TimeOptions,
        mut next: impl FnMut() -> Result<(), E>,
    ) -> Result<Slice, E> {
        let start = self.stream().record()?;
        for _ in 0..PROBES {
            next()?;
        }
        let one = start.milliseconds_to(&self.stream().record()?)? / PROBES as f64;
        Ok(Slice::of(one, options))
    }

    /// Enqueues that a buffer is overwritten.
    fn overwrite(&self, buffer: &Buffer) -> Result<(), GpuError> {
        // SAFETY: exactly the bytes of a living buffer, on a living stream of the same context.
        check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(buffer.address(), 0, buffer.len_bytes(), self.stream().raw())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_as_long_as_they_are_to_be() {
        let of = |one: f64, slice: u64, batch: usize| {
            let slice = Duration::from_millis(slice);
            let options = TimeOptions {
                batch,
                slice,
                ..TimeOptions::default()
            };
            Slice::of(one, options)
        };
        for (one, slice, batch, expected) in [
            (0.625, 100, 1, (80, 5, 16)),
            (13.0, 100, 1, (3, 5, 1)),
            (500.0, 100, 1, (1, 5, 1)),
            (0.625, 100, 20, (80, 5, 20)),
            // Short calls are no more than one head start covers, however short.
            (0.005, 100, 1, (80, 5, 16)),
            (0.0, 100, 1, (80, 5, 16)),
            (0.05, 0, 1, (1, 5, 1)),
        ] {
            let slice = of(one, slice, batch);
            assert_eq!((slice.before, slice.times, slice.batch), expected, "{one}");
        }
    }

    #[test]
    fn the_median_splits_the_samples() {
        let of = |samples: &[f64]| Timing {
            samples: samples.to_vec(),
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]).median().to_bits(), 2.0_f64.to_bits());
        assert_eq!(
            of(&[4.0, 1.0, 2.0, 8.0]).median().to_bits(),
            3.0_f64.to_bits()
        );
        assert_eq!(of(&[4.0, 1.0, 2.0]).min().to_bits(), 1.0_f64.to_bits());
        assert_eq!(of(&[1.0, 4.0, 2.0]).max().to_bits(), 4.0_f64.to_bits());
        assert!(of(&[]).median().is_nan());
        let five = of(&[5.0, 1.0, 4.0, 2.0, 3.0]).quartiles();
        assert_eq!(five.map(f64::to_bits), [2.0_f64, 4.0].map(f64::to_bits));
        assert!(of(&[]).quartiles()[0].is_nan());
        let both = of(&[3.0, 1.0]).and(&of(&[9.0]));
        assert_eq!(both.samples(), [3.0, 1.0, 9.0]);
    }
}
