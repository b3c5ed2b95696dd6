//! Any text is an expression with a value, or an error with a span inside it: `cargo +nightly fuzz run expression`.
#![no_main]

#[path = "../../workbench/src/calculator/mod.rs"]
#[allow(dead_code, unused_imports)]
mod calculator;

use calculator::{evaluate, to_json};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match evaluate(text) {
        Ok(value) => {
            let _ = to_json(&value).to_string();
            let _ = value.to_string();
        }
        Err(error) => {
            let (start, end) = error.span;
            assert!(start <= end && end <= text.len());
            assert!(text.is_char_boundary(start) && text.is_char_boundary(end));
        }
    }
});
