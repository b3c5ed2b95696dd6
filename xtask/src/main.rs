//! Development tasks: `cargo xtask test` runs everything that CI runs.
fn main() {}
