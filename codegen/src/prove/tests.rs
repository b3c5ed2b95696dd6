//! Branches: what only some paths or some threads do is not taken as done.

use layout_core::{Layout, Swizzled};

use crate::ir::{Axis, Cmp, Element, Kernel};
use crate::prove::prove;
use crate::view::{Partition, ViewError};

/// A copy of 256 elements a block, 2 a thread: the kernel, and the shares of source, target and a tile in shared memory.
fn shares() -> Result<(Kernel, [Partition; 3]), ViewError> {
    let mut k = Kernel::new("copy", 128);
    let n = k.size("n", 1 << 30);
    let x = k.input("x", Element::F32, &[n]);
    let y = k.output("y", Element::F32, &[n]);
    let tile = k.shared("tile", Element::F32, &Swizzled::from(Layout::mode(256, 1)?))?;
    let (block, thread) = (k.tiles(Axis::X, n, 256)?, k.thread());
    let layout = Layout::flat(&[128, 2], &[1, 128])?;
    let x = x.tile(&mut k, &[256], &[block])?;
    let y = y.tile(&mut k, &[256], &[block])?;
    let x = x.partition(&mut k, &layout, thread)?;
    let y = y.partition(&mut k, &layout, thread)?;
    let tile = tile.partition(&mut k, &layout, thread)?;
    Ok((k, [x, y, tile]))
}

#[test]
fn an_output_that_some_path_leaves_out_is_refused() {
    for both in [false, true] {
        let (mut k, [x, y, _]) = shares().expect("views");
        let n = k.size("m", 1 << 20);
        let zero = k.pool.constant(0);
        let some = k.compare(Cmp::Gt, n, zero);
        k.begin_if(some, true);
        k.copy(&x, &y).expect("a copy");
        if both {
            k.otherwise();
            k.copy(&x, &y).expect("a copy");
        }
        k.end_if();
        let proof = prove(&k.finish());
        match proof {
            Ok(proof) => assert!(both, "{proof:?}"),
            Err(e) => assert!(!both && e.code() == "coverage", "{e}"),
        }
    }
}

/// One side of a branch leaves threads out, which the other side does not make up for.
#[test]
fn each_thread_stores_on_every_path() {
    for all in [false, true] {
        let (mut k, [x, y, _]) = shares().expect("views");
        let (m, thread) = (k.size("m", 1 << 20), k.thread());
        let (zero, half) = (k.pool.constant(0), k.pool.constant(64));
        let some = k.compare(Cmp::Gt, m, zero);
        let first = k.compare(Cmp::Lt, thread, half);
        k.begin_if(some, true);
        k.begin_if(first, false);
        k.copy(&x, &y).expect("a copy");
        if all {
            k.otherwise();
            k.copy(&x, &y).expect("a copy");
        }
        k.end_if();
        k.otherwise();
        k.copy(&x, &y).expect("a copy");
        k.end_if();
        match prove(&k.finish()) {
            Ok(proof) => assert!(all, "{proof:?}"),
            Err(e) => assert!(!all && e.code() == "coverage", "{e}"),
        }
    }
}

#[test]
fn what_some_threads_may_not_write_is_not_read() {
    for every in [false, true] {
        let (mut k, [x, y, tile]) = shares().expect("views");
        let (m, thread) = (k.size("m", 1 << 20), k.thread());
        let some = k.compare(Cmp::Gt, m, thread);
        if !every {
            k.begin_if(some, false);
        }
        k.copy(&x, &tile).expect("a copy");
        if !every {
            k.end_if();
        }
        k.barrier();
        k.copy(&tile, &y).expect("a copy");
        match prove(&k.finish()) {
            Ok(proof) => assert!(every, "{proof:?}"),
            Err(e) => assert!(!every && e.code() == "undefined", "{e}"),
        }
    }
}

#[test]
fn threads_that_leave_leave_their_elements_out() {
    let (mut k, [x, y, _]) = shares().expect("views");
    let (m, thread) = (k.size("m", 1 << 20), k.thread());
    let some = k.compare(Cmp::Gt, m, thread);
    k.exit(some, false);
    k.copy(&x, &y).expect("a copy");
    let error = prove(&k.finish()).expect_err("it is refused");
    assert_eq!(error.code(), "coverage", "{error}");
}

#[test]
fn what_is_assumed_is_a_fact() {
    // An output that is written, and a tile that is filled, only if m is not 0.
    for (assumed, by_shared) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut k, [x, y, tile]) = shares().expect("views");
        let (m, zero) = (k.size("m", 1 << 20), k.pool.constant(0));
        if assumed {
            k.assume(m, Cmp::Gt, zero, "callers ask for something")
                .expect("a reason");
        }
        let some = k.compare(Cmp::Gt, m, zero);
        k.begin_if(some, true);
        k.copy(&x, if by_shared { &tile } else { &y })
            .expect("a copy");
        k.end_if();
        if by_shared {
            k.barrier();
            k.copy(&tile, &y).expect("a copy");
        }
        match prove(&k.finish()) {
            Ok(proof) => {
                assert!(assumed, "{proof:?}");
                assert_eq!(proof.assumptions.len(), 1);
                assert_eq!(proof.assumptions[0].condition, "m > 0");
            }
            Err(e) => {
                let code = if by_shared { "undefined" } else { "coverage" };
                assert!(!assumed && e.code() == code, "{e}");
            }
        }
    }
}

#[test]
fn what_is_assumed_in_a_branch_holds_there_alone() {
    let (mut k, [x, y, _]) = shares().expect("views");
    let (m, zero) = (k.size("m", 1 << 20), k.pool.constant(0));
    let (other, one) = (k.size("other", 1 << 20), k.pool.constant(1));
    let odd = k.compare(Cmp::Gt, other, one);
    k.begin_if(odd, true);
    k.assume(m, Cmp::Gt, zero, "only here").expect("a reason");
    k.end_if();
    let some = k.compare(Cmp::Gt, m, zero);
    k.begin_if(some, true);
    k.copy(&x, &y).expect("a copy");
    k.end_if();
    let error = prove(&k.finish()).expect_err("it is refused");
    assert_eq!(error.code(), "coverage", "{error}");
}

#[test]
fn assumptions_that_contradict_or_differ_between_threads_are_refused() {
    for by_thread in [false, true] {
        let mut k = Kernel::new("k", 64);
        let (m, most, thread) = (k.size("m", 100), k.pool.constant(101), k.thread());
        let a = if by_thread { thread } else { m };
        k.assume(a, Cmp::Ge, most, "never").expect("a reason");
        let error = prove(&k.finish()).expect_err("it is refused");
        assert_eq!(error.code(), "assumption", "{error}");
        let said = if by_thread { "differ" } else { "contradicts" };
        // A comparison of the thread's index alone is known to be false.
        assert!(error.to_string().contains(said) || by_thread, "{error}");
    }
}
