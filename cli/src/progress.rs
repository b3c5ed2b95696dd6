//! Progress on the terminal.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The emulator calls it with the number of finished blocks and of all blocks.
pub(crate) type OfBlocks = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A progress bar of blocks, and the callback that moves it.
pub(crate) fn blocks() -> (ProgressBar, OfBlocks) {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} blocks, {eta} left") {
        bar.set_style(style);
    }
    let moving = bar.clone();
    let of_blocks = move |done, all| {
        moving.set_length(all);
        moving.set_position(done);
    };
    (bar, Arc::new(of_blocks))
}

/// A spinner with a message.
pub(crate) fn spinner(message: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
