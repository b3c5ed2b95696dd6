//! What the macros and the typed layer accept and, mostly, what they refuse: each refusal's message is pinned in `ui/`.
//!
//! The tests are here and not with the facade, whose dependencies trybuild would compile once more.
//!
//! `TRYBUILD=overwrite cargo test --package layout-macros --all-features --test messages` writes the messages anew; read the difference.

/// The notation: `layout!` and `shape!`.
#[test]
fn layouts() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/layout/pass.rs");
    cases.compile_fail("tests/ui/layout/[!p]*.rs");
}

/// Spaces, units and operations as types.
#[test]
fn types() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/typed/pass.rs");
    cases.compile_fail("tests/ui/typed/[!p]*.rs");
}

/// Views whose element, space and layout are types.
#[test]
fn views() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/view/pass.rs");
    cases.compile_fail("tests/ui/view/[!p]*.rs");
    cases.compile_fail("tests/ui/view/products_do_not_meet.rs");
}

/// `#[derive(ConflictFree)]` and `conflict_free!`.
#[test]
fn derivations() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/conflict_free/pass.rs");
    cases.compile_fail("tests/ui/conflict_free/[!p]*.rs");
}

/// `index_fn!` and `ptx_index!`.
#[test]
fn functions() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/index_fn/pass.rs");
    cases.compile_fail("tests/ui/index_fn/[!p]*.rs");
    cases.compile_fail("tests/ui/ptx_index/*.rs");
}

/// `kernel!`.
#[test]
fn kernels() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/kernel/pass.rs");
    cases.compile_fail("tests/ui/kernel/[!p]*.rs");
}

/// Kernels of one's own have no registers: counters and indices are not assigned, instructions are not written by hand, branches do not stay open.
#[test]
fn sealed() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/sealed/*.rs");
}
