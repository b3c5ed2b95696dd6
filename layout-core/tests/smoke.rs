//! First light: notation, evaluation and the operations everybody builds on.

use layout_core::{IntTuple, Layout, Swizzle, Swizzled, Tiler, expect, expect_parse};

const TILE: Layout = expect_parse(Layout::parse("(4,(2,3)):(2,(1,8))"));
const HALF: Layout = expect(TILE.compose(&expect(Layout::mode(4, 2))));

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

#[test]
fn everything_evaluates_in_const() {
    assert_eq!(TILE.size(), 24);
    assert_eq!(HALF.to_string(), "(2,2):(4,1)");
}

#[test]
fn notation_round_trips() {
    for text in [
        "4:1",
        "(4):(1)",
        "(4,(2,2)):(2,(1,8))",
        "((1,2),3):((-5,0),7)",
    ] {
        assert_eq!(layout(text).to_string(), text);
    }
    for text in [
        "Sw<3,4,3> o (8,64):(64,1)",
        "Sw<2,0,-3> o 16 o 4:1",
        "-3 o 8:1",
    ] {
        assert_eq!(Swizzled::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(
        IntTuple::parse(" ( 4 , (2,_2) ) ").unwrap().to_string(),
        "(4,(2,2))"
    );
}

#[test]
fn errors_carry_spans() {
    let error = Layout::parse("(4,(2,x)):(1,2)").unwrap_err();
    assert_eq!(error.span, (6, 7));
    let error = Layout::parse("(4,2):(1)").unwrap_err();
    assert_eq!((error.span, error.code()), ((0, 9), "not_congruent"));
}

#[test]
fn evaluation_agrees_between_coordinates() {
    let l = layout("(4,(2,3)):(2,(1,8))");
    for i in 0..30 {
        assert_eq!(l.at_coord(&l.coord(i).unwrap()).unwrap(), l.index(i));
        assert_eq!(l.at(&[i % 4, i / 4]), l.index(i));
    }
}

#[test]
fn the_references_examples() {
    let a = layout("(4,6):(1,10)");
    assert_eq!(
        a.compose(&layout("4:3")).unwrap_err().code(),
        "not_composable"
    );
    assert_eq!(
        layout("(4,2):(1,10)")
            .compose(&layout("(4,4):(1,1)"))
            .unwrap_err()
            .code(),
        "not_composable"
    );
    assert_eq!(
        layout("(4,2):(1,6)").complement(24).unwrap_err().code(),
        "not_chained"
    );
    assert_eq!(layout("(1,1):(3,4)").coalesce().to_string(), "1:0");
    assert_eq!(Swizzled::parse("Sw<2,0,2> o 9:1").unwrap().cosize(), 11);
    assert!(Swizzle::new(2, 0, 0).is_err());
    let ragged = layout("10:1").logical_divide(&Tiler::Int(4)).unwrap();
    assert_eq!(ragged.rounded_up().to_string(), "(4,3):(1,4)");
    assert_eq!(ragged.overhang(), 2);
    let shape = IntTuple::parse("(12,32)").unwrap();
    let tiles = Layout::compact(shape)
        .unwrap()
        .zipped_divide(&Tiler::Layout(&layout("32:1")));
    assert_eq!(tiles.unwrap().exact().unwrap().get(1).unwrap().size(), 12);
}
