//! Threads for the blocks of a grid, where the target has threads; WebAssembly in a browser has none, and its module no scheduler.

#[cfg(not(target_family = "wasm"))]
pub(crate) use cores::{available, for_each};
#[cfg(target_family = "wasm")]
pub(crate) use one::{available, for_each};

#[cfg(not(target_family = "wasm"))]
mod cores {
    use std::error::Error;
    use std::sync::OnceLock;

    use rayon::prelude::*;

    /// Whether the host gives threads: under a tight limit on memory it may not, and the blocks run one after another.
    pub(crate) fn available() -> bool {
        static STARTED: OnceLock<bool> = OnceLock::new();
        *STARTED.get_or_init(|| {
            // Only a thread that cannot be made has a cause; another pool that is there already has none.
            let pool = rayon::ThreadPoolBuilder::new().build_global();
            pool.err().is_none_or(|e| e.source().is_none())
        })
    }

    /// Calls `work` with each number below `n`, on so many threads, 0 for one a core, as long as `go_on` says so.
    pub(crate) fn for_each(
        n: u64,
        threads: usize,
        go_on: impl Fn() -> bool + Sync,
        work: impl Fn(u64) + Sync,
    ) -> Result<(), String> {
        let all = || {
            (0..n)
                .into_par_iter()
                .take_any_while(|_| go_on())
                .for_each(&work);
        };
        if threads == 0 {
            all();
            return Ok(());
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map(|pool| pool.install(all))
            .map_err(|e| e.to_string())
    }
}

#[cfg(target_family = "wasm")]
mod one {
    pub(crate) fn available() -> bool {
        false
    }

    /// Calls `work` with each number below `n` as long as `go_on` says so, however many threads are asked for.
    #[allow(clippy::unnecessary_wraps)] // a target with threads may fail to start them
    pub(crate) fn for_each(
        n: u64,
        _threads: usize,
        go_on: impl Fn() -> bool,
        work: impl Fn(u64),
    ) -> Result<(), String> {
        (0..n).take_while(|_| go_on()).for_each(work);
        Ok(())
    }
}
