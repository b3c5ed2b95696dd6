//! Branches: what only some paths or some threads do is not taken as done.

use layout_core::{Layout, Swizzled};

use super::prove;
use crate::ir::{Axis, Cmp, Element, Kernel};
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
