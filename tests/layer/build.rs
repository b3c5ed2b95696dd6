//! What is refused while a kernel is built.

use super::{Result, layout, swizzled, vectors};
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::view::ViewError;

#[test]
fn the_range_of_the_thread_is_that_of_the_block() {
    let mut k = Kernel::new("k", 96);
    let thread = k.thread();
    assert_eq!(k.range(thread), (0, 95));
}

#[test]
fn more_shared_memory_than_a_block_has_is_refused() -> Result {
    let mut k = Kernel::new("k", 128);
    k.shared("a", Element::F32, &swizzled("32768:1"))?;
    let error = k
        .shared("b", Element::F64, &swizzled("16384:1"))
        .expect_err("256 KiB");
    let limit = 232_448;
    assert_eq!(
        error,
        ViewError::SharedMemory {
            bytes: 262_144,
            limit
        }
    );
    Ok(())
}

#[test]
fn selections_and_bounds_of_other_operands_are_other_values() {
    let mut k = Kernel::new("k", 32);
    let (a, b, c) = (k.size("a", 100), k.size("b", 100), k.size("c", 100));
    let all = [
        k.choose(a, Cmp::Lt, b, a, b),
        k.choose(a, Cmp::Lt, b, a, c),
        k.choose(a, Cmp::Lt, b, b, a),
        k.choose(b, Cmp::Lt, c, a, b),
        k.choose(a, Cmp::Le, b, a, b),
        k.bounded(a, 10),
        k.bounded(a, 20),
        k.bounded(b, 10),
    ];
    for (i, x) in all.iter().enumerate() {
        assert!(!all[..i].contains(x), "value {i} is one of those before it");
    }
    let again = (k.choose(a, Cmp::Lt, b, a, b), k.bounded(b, 10));
    assert_eq!(again, (all[0], all[7]));
}

#[test]
fn layouts_that_do_not_share_out_the_tile_are_refused() -> Result {
    let (mut k, x, _) = vectors(Element::F32, Element::F32)?;
    let thread = k.thread();
    for (text, reason) in [
        ("(128,1):(0,0)", "coordinates 0 and 1 both give 0"),
        ("(128,1):(2,0)", "coordinate 64 gives 128"),
        ("(64,1):(1,0)", "it has 64 coordinates"),
        ("(128,2):(1,128)", "it has 256 coordinates"),
        ("(64,2):(1,64)", "it is for 64 threads and is given 128"),
        ("(256,1):(1,0)", "it has 256 coordinates"),
        ("128:1", "it needs two modes, (thread, value)"),
    ] {
        let error = x.partition(&mut k, &layout(text), thread).expect_err(text);
        let expected =
            format!("{text} does not partition the 128 elements of the tile of `x`: {reason}");
        assert_eq!(error.to_string(), expected);
    }
    Ok(())
}

#[test]
fn a_layout_for_more_threads_than_the_block_has_is_refused() -> Result {
    let (mut k, x, _) = vectors(Element::F32, Element::F32)?;
    let (zero, one) = (k.constant(0), layout("(128,1):(1,0)"));
    let error = x.partition(&mut k, &one, zero);
    let error = error.expect_err("thread 0 alone has a share").to_string();
    assert!(
        error.contains("it is for 128 threads and is given 1"),
        "{error}"
    );

    let mut k = Kernel::new("few", 64);
    let n = k.size("n", 1 << 20);
    let (x, block) = (k.input("x", Element::F32, &[n]), k.tiles(Axis::X, n, 128)?);
    let thread = k.thread();
    let error = x
        .tile(&mut k, &[128], &[block])?
        .partition(&mut k, &one, thread);
    let error = error
        .expect_err("64 threads do not touch 128 shares")
        .to_string();
    assert!(
        error.contains("it is for 128 threads and is given 64"),
        "{error}"
    );
    Ok(())
}

#[test]
fn copies_whose_sides_do_not_meet_are_refused() -> Result {
    let (mut k, x, y) = vectors(Element::F32, Element::F16)?;
    let (thread, one) = (k.thread(), layout("(128,1):(1,0)"));
    let whole = x.partition(&mut k, &one, thread);
    let (x, y) = (whole?, y.partition(&mut k, &one, thread)?);
    assert_eq!(
        k.copy(&x, &y).expect_err("f32 to f16").to_string(),
        "a copy from `x` (a tile of 128, 1 a thread) of f32 to `y` (a tile of 128, 1 a thread) of f16 would convert: \
         load, convert the values and store them instead"
    );
    let tile = k.shared("tile", Element::F32, &swizzled("256:1"))?;
    let tile = tile.partition(&mut k, &layout("(128,2):(1,128)"), thread)?;
    assert!(matches!(k.copy(&x, &tile), Err(ViewError::Shapes { .. })));
    let values = k.load_tile(&x)?;
    assert!(matches!(
        k.store_tile(&tile, &values),
        Err(ViewError::Shapes { .. })
    ));
    assert!(matches!(
        k.store_tile(&y, &values),
        Err(ViewError::Elements { .. })
    ));
    Ok(())
}

#[test]
fn views_without_a_tile_and_of_another_rank_are_refused() {
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 1 << 20);
    let x = k.input("x", Element::F32, &[n, n]);
    let thread = k.thread();
    let error = x
        .partition(&mut k, &layout("(32,1):(1,0)"), thread)
        .expect_err("no tile");
    assert_eq!(
        error.to_string(),
        "`x` is not cut into tiles: take a tile of it (`View::tile`), then share the tile out"
    );
    let error = x
        .tile(&mut k, &[32], &[thread])
        .expect_err("one mode of two");
    assert_eq!(
        error.to_string(),
        "`x` has 2 modes and 1 coordinates were given: give one for each mode"
    );
}

#[test]
fn extents_that_no_tile_has_are_refused() -> Result {
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 1 << 20);
    let x = k.input("x", Element::F32, &[n]);
    let zero = k.constant(0);
    for extent in [0, -1, i64::MIN, i64::MAX, 1 << 40] {
        assert!(
            x.tile(&mut k, &[extent], &[zero]).is_err(),
            "a tile of {extent}"
        );
        assert!(k.tiles(Axis::X, n, extent).is_err(), "tiles of {extent}");
    }
    let many = x.tile(&mut k, &[1 << 20], &[zero])?;
    let thread = k.thread();
    assert!(
        many.partition(&mut k, &layout("(32,1):(1,0)"), thread)
            .is_err()
    );
    Ok(())
}

#[test]
fn vectors_that_are_not_in_one_piece_are_refused() -> Result {
    let (mut k, x, _) = vectors(Element::F32, Element::F32)?;
    let thread = k.thread();
    let tile = x.partition(&mut k, &layout("(128,1):(1,0)"), thread)?;
    for n in [0, -2, 3, 8, i64::MIN, i64::MAX] {
        assert!(tile.vectors(&k, n).is_err(), "vectors of {n}");
    }
    assert!(tile.vectors(&k, 2).is_err(), "a thread has one value");
    assert!(tile.vectors(&k, 1).is_ok());
    Ok(())
}
