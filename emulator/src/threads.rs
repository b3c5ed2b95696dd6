//! Threads for the blocks of a grid, where the target has threads; WebAssembly in a browser has none, and its module no scheduler.

#[cfg(not(target_family = "wasm"))]
pub(crate) use cores::{available, on_each};
#[cfg(target_family = "wasm")]
pub(crate) use one::{available, on_each};

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

    /// Calls `work` on so many threads, 0 for one a core, but not more than `most`.
    pub(crate) fn on_each<T: Send>(
        threads: usize,
        most: u64,
        work: impl Fn() -> T + Sync,
    ) -> Result<Vec<T>, String> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let all = |n: usize| {
            let calls = (0..n.min(most)).into_par_iter().with_max_len(1);
            calls.map(|_| work()).collect()
        };
        if threads == 0 {
            return Ok(all(rayon::current_num_threads()));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map(|pool| pool.install(|| all(threads)))
            .map_err(|e| e.to_string())
    }
}

#[cfg(target_family = "wasm")]
mod one {
    pub(crate) fn available() -> bool {
        false
    }

    /// Calls `work` once, however many threads are asked for.
    #[allow(clippy::unnecessary_wraps)] // a target with threads may fail to start them
    pub(crate) fn on_each<T>(
        _threads: usize,
        _most: u64,
        work: impl Fn() -> T,
    ) -> Result<Vec<T>, String> {
        Ok(vec![work()])
    }
}
