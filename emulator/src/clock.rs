//! How long a launch takes, where there is a clock.
//!
//! WebAssembly without a host's help has none, and `Instant::now` traps there. The time is a courtesy of the report and no result depends on
//! it, so that it is 0 where it can't be had.

use std::time::Duration;
#[cfg(not(target_family = "wasm"))]
use std::time::Instant;

/// A time that began.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch {
    #[cfg(not(target_family = "wasm"))]
    start: Instant,
}

impl Stopwatch {
    /// Begins.
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(not(target_family = "wasm"))]
            start: Instant::now(),
        }
    }

    /// What has passed since it began; 0 without a clock.
    pub(crate) fn elapsed(self) -> Duration {
        #[cfg(not(target_family = "wasm"))]
        return self.start.elapsed();
        #[cfg(target_family = "wasm")]
        Duration::ZERO
    }
}
