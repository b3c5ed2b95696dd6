//! What the macros and the typed layer accept and, mostly, what they refuse: each refusal's message is pinned in `ui/`.
//!
//! `TRYBUILD=overwrite cargo test --test macros` writes the messages anew; read the difference.

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

/// Kernels of one's own have no registers: counters and indices are not assigned, instructions are not written by hand, branches do not stay open.
#[test]
fn kernels() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/sealed/*.rs");
}
