//! What is refused when a kernel is proven.

use super::{
    ARCH, Result, barrier_when, layout, refusal, swizzled, through_shared, vectors, without_lines,
};
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::Predicate;

#[test]
fn beyond_a_shared_buffer_nothing_is_touched() -> Result {
    // A copy of the tile that is moved by one element reaches one element beyond it.
    let (mut k, x, _) = vectors(Element::F32, Element::F32)?;
    let tile = k.shared("tile", Element::F32, &swizzled("128:1"))?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let x = x.partition(&mut k, &one, thread)?;
    let by = k.constant(1);
    let moved = tile.at(&mut k, &[by])?.partition(&mut k, &one, thread)?;
    k.copy(&x, &moved)?;
    let error = refusal(k);
    assert!(
        matches!(
            &error,
            ProofError::Bounds {
                thread: 127,
                mode: 0,
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(
        without_lines(&error),
        "write tile: thread 127 may be outside the buffer along mode 0: its guard does not keep it inside"
    );
    Ok(())
}

#[test]
fn a_bound_that_nothing_keeps_proves_nothing() -> Result {
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 1000);
    let x = k.input("x", Element::F32, &[n]);
    let y = k.output("y", Element::F32, &[n]);
    let tile = k.shared("tile", Element::F32, &swizzled("(4,32):(32,1)"))?;
    // n is up to 1000, and tile n is inside only up to 3.
    let (said, zero) = (k.bounded(n, 3), k.constant(0));
    let (thread, one) = (k.thread(), layout("(32,1):(1,0)"));
    let row = tile
        .tile(&mut k, &[1, 32], &[said, zero])?
        .partition(&mut k, &one, thread)?;
    let block = k.tiles(Axis::X, n, 32)?;
    let [x, y] = [x, y].map(|v| {
        v.tile(&mut k, &[32], &[block])?
            .partition(&mut k, &one, thread)
    });
    let (x, y) = (x?, y?);
    k.copy(&x, &row)?;
    k.copy(&x, &y)?;
    let error = refusal(k);
    let refused = matches!(
        error,
        ProofError::Bounds { .. } | ProofError::Undecided { .. }
    );
    assert!(refused, "{error:?}");
    Ok(())
}

#[test]
fn a_missing_barrier_is_refused_and_named() -> Result {
    assert!(through_shared(Kernel::barrier)?.build(ARCH).is_ok());
    let error = refusal(through_shared(|_| ())?);
    assert!(
        matches!(
            error,
            ProofError::Undefined { .. } | ProofError::Race { .. }
        ),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("tile") && text.contains("thread") && text.contains("barrier"),
        "{text}"
    );
    // Of a warp alone is not enough.
    let error = refusal(through_shared(Kernel::warp_barrier)?);
    assert!(
        matches!(
            error,
            ProofError::Undefined { .. } | ProofError::Race { .. }
        ),
        "{error:?}"
    );
    Ok(())
}

#[test]
fn a_barrier_that_not_all_threads_meet_is_refused() -> Result {
    let error = refusal(through_shared(|k| {
        let (thread, half) = (k.thread(), k.constant(64));
        let p = Predicate::of(k, thread, Cmp::Lt, half);
        barrier_when(k, p);
    })?);
    assert!(matches!(error, ProofError::Divergent { .. }), "{error:?}");
    Ok(())
}

#[test]
fn an_output_that_is_not_written_once_is_refused() -> Result {
    let (k, _, _) = vectors(Element::F32, Element::F32)?;
    let error = refusal(k);
    assert_eq!(
        without_lines(&error),
        "output `y` is not written exactly once: nothing is stored"
    );

    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let x = x.partition(&mut k, &one, thread)?;
    let y = y.partition(&mut k, &one, thread)?;
    k.copy(&x, &y)?;
    k.copy(&x, &y)?;
    let error = refusal(k);
    assert!(matches!(error, ProofError::Coverage { .. }), "{error:?}");

    // Threads of a half only.
    let (mut k, x, y) = vectors(Element::F32, Element::F32)?;
    let thread = k.thread();
    let x = x.partition(&mut k, &one, thread)?;
    let y = y.partition(&mut k, &one, thread)?;
    let half = k.constant(64);
    let p = Predicate::of(&mut k, thread, Cmp::Lt, half);
    k.when(p, |k| k.copy(&x, &y))?;
    let error = refusal(k);
    assert!(matches!(error, ProofError::Coverage { .. }), "{error:?}");
    Ok(())
}

#[test]
fn tiles_beside_the_diagonal_are_missed() -> Result {
    // Blocks along one axis have one tile of the rows and the same of the columns.
    let mut k = Kernel::new("diagonal", 32);
    let n = k.size("n", 1 << 12);
    let y = k.output("y", Element::F32, &[n, n]);
    let block = k.tiles(Axis::X, n, 32)?;
    let (thread, share) = (k.thread(), layout("(32,32):(32,1)"));
    let tile = y.tile(&mut k, &[32, 32], &[block, block])?;
    let tile = tile.partition(&mut k, &share, thread)?;
    let values = k.load_tile(&tile)?;
    k.store_tile(&tile, &values)?;
    let error = refusal(k);
    assert!(matches!(error, ProofError::Coverage { .. }), "{error:?}");
    assert!(error.to_string().contains("beside the diagonal"), "{error}");
    Ok(())
}

/// y = the tile `ahead` blocks further, each of its elements read by another thread where `turned`, and `between` the read and the store.
fn in_place(ahead: i64, turned: bool, between: impl Fn(&mut Kernel)) -> Result<Kernel> {
    let mut k = Kernel::new("in_place", 128);
    let n = k.size("n", 1 << 20);
    let y = k.output("y", Element::F32, &[n]);
    let block = k.tiles(Axis::X, n, 128)?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let ahead = k.constant(ahead);
    let next = k.add(block, ahead);
    let share = if turned {
        layout("((64,2),1):((2,1),0)")
    } else {
        one
    };
    let from = y.tile(&mut k, &[128], &[next])?;
    let from = from.partition(&mut k, &share, thread)?;
    let to = y.tile(&mut k, &[128], &[block])?;
    let to = to.partition(&mut k, &one, thread)?;
    let values = k.load_tile(&from)?;
    between(&mut k);
    k.store_tile(&to, &values)?;
    Ok(k)
}

#[test]
fn an_output_is_read_by_who_stores_it() -> Result {
    assert!(in_place(0, false, |_| ())?.build(ARCH).is_ok());
    assert!(in_place(0, true, Kernel::barrier)?.build(ARCH).is_ok());
    let error = refusal(in_place(0, true, |_| ())?);
    assert_eq!(error.code(), "overwritten");
    assert_eq!(
        without_lines(&error),
        "read y: the element of output `y` may be overwritten already: thread 1 reads what another thread stores, and no barrier is between the two: put one there, or let each thread read what it stores"
    );
    // A barrier that is met in some launches alone.
    let error = refusal(in_place(0, true, |k| {
        let n = k.size("some", 100);
        let most = k.constant(50);
        let some = Predicate::of(k, n, Cmp::Lt, most);
        barrier_when(k, some);
    })?);
    assert_eq!(error.code(), "overwritten");
    for between in [|_: &mut Kernel| (), Kernel::barrier] {
        let error = refusal(in_place(1, false, between)?);
        assert_eq!(
            without_lines(&error),
            "read y: the element of output `y` may be overwritten already: another block or iteration has that element; read it from an input, or store to another output"
        );
    }
    Ok(())
}

#[test]
fn tiles_in_place_iteration_by_iteration() -> Result {
    // Each iteration reverses a tile: the barrier of an iteration is between its reads and its stores.
    let kernel = |barrier: bool| -> Result<Kernel> {
        let mut k = Kernel::new("iterations", 128);
        let n = k.size("n", 1 << 20);
        let y = k.output("y", Element::F32, &[n]);
        let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
        let turned = layout("((64,2),1):((2,1),0)");
        let tiles = k.tiles_in(n, 128)?;
        k.for_loop("tile", 0, 1, tiles, |k, tile| {
            let from = y.tile(k, &[128], &[tile])?;
            let from = from.partition(k, &turned, thread)?;
            let to = y.tile(k, &[128], &[tile])?;
            let to = to.partition(k, &one, thread)?;
            let values = k.load_tile(&from)?;
            if barrier {
                k.barrier();
            }
            k.store_tile(&to, &values)
        })?;
        Ok(k)
    };
    let proven = kernel(true)?.build(ARCH);
    assert!(proven.is_ok(), "{:?}", proven.err());
    assert_eq!(refusal(kernel(false)?).code(), "overwritten");
    Ok(())
}
