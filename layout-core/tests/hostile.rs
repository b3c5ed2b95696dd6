//! Hostile input: an error or a right answer, never a crash, an overflow or a slow path.

use layout_core::{Affine, IntTuple, Layout, Slicer, Swizzled, Tiler, ceil_div, shape_div};

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

#[test]
fn ten_thousand_parentheses_are_too_deep() {
    let open = "(".repeat(10_000);
    let deep = format!("{open}1{}", ")".repeat(10_000));
    assert_eq!(IntTuple::parse(&deep).unwrap_err().code(), "too_deep");
    assert_eq!(
        Layout::parse(&format!("{deep}:{deep}")).unwrap_err().code(),
        "too_deep"
    );
    assert_eq!(
        Affine::parse(&format!("8:{deep}")).unwrap_err().code(),
        "too_deep"
    );
    assert_eq!(Slicer::parse(&open).unwrap_err().code(), "too_deep");
}

#[test]
fn ten_megabytes_are_read_once() {
    let modes = format!("({}1)", "1,".repeat(5_000_000));
    assert_eq!(
        IntTuple::parse(&modes).unwrap_err().code(),
        "too_many_modes"
    );
    let digits = "9".repeat(10_000_000);
    assert_eq!(
        IntTuple::parse(&digits).unwrap_err().code(),
        "integer_too_large"
    );
    let spaces = " ".repeat(10_000_000);
    assert_eq!(
        Layout::parse(&format!("4{spaces}:{spaces}1")),
        Ok(layout("4:1"))
    );
    assert_eq!(Swizzled::parse(&spaces).unwrap_err().code(), "syntax");
    let names = format!("8:{}", "a".repeat(10_000_000));
    assert_eq!(
        Affine::parse(&names).unwrap_err().code(),
        "invalid_parameter"
    );
}

#[test]
fn thirty_two_modes_and_levels_fit() {
    let shape = format!("({}2)", "1,".repeat(31));
    let stride = format!("({}1)", "0,".repeat(31));
    assert_eq!(layout(&format!("{shape}:{stride}")).leaves(), 32);
    let deep = format!("{}7{}", "(".repeat(32), ")".repeat(32));
    let l = layout(&format!("{deep}:{deep}"));
    assert_eq!(
        (
            l.depth(),
            l.rank(),
            l.at_coord(&IntTuple::parse(&deep).unwrap())
        ),
        (32, 1, Ok(49))
    );
    let full = layout(&format!("{shape}:{stride}"));
    assert_eq!(
        Layout::tuple(&[full, full]).unwrap_err().code(),
        "too_many_modes"
    );
    assert_eq!(Layout::tuple(&[l]).unwrap_err().code(), "too_deep");
}

#[test]
fn sizes_and_offsets_that_do_not_fit_are_refused() {
    for text in [
        "(9223372036854775807,2):(1,1)",
        "(3,3):(9223372036854775807,1)",
        "(4294967296,4294967296):(1,1)",
        "(2,2,2):(4611686018427387904,4611686018427387904,1)",
        "(2,2):(9223372036854775807,-9223372036854775807)",
        "2:-9223372036854775808",
    ] {
        let error = Layout::parse(text).unwrap_err();
        assert_eq!(
            (error.code(), error.span),
            ("overflow", (0, text.len())),
            "{text}"
        );
    }
    for text in ["0:1", "-1:1", "(2,0):(1,1)"] {
        assert_eq!(Layout::parse(text).unwrap_err().code(), "invalid_extent");
    }
}

/// Every operation on extents and strides near the limits: no panic; where it answers, the answer holds at the ends.
#[test]
fn operations_near_the_limits_answer_or_refuse() {
    let huge = i64::MAX;
    let samples = [
        layout(&format!("{huge}:1")),
        layout(&format!("{huge}:0")),
        layout(&format!("1:{huge}")),
        layout(&format!("1:{}", i64::MIN)),
        layout(&format!("2:{}", huge - 1)),
        layout(&format!("2:{}", -huge + 1)),
        layout("(3037000499,3037000499):(3037000499,1)"),
        layout("(2,4611686018427387903):(4611686018427387903,1)"),
        layout("(2147483647,(2147483647,2)):(2,(4294967294,1))"),
        layout("(1,1,1):(5,-5,9223372036854775807)"),
    ];
    for a in &samples {
        let at_end = a.index(a.size() - 1);
        assert!(a.offset_range().0 <= at_end && at_end <= a.offset_range().1);
        assert_eq!(a.coalesce().index(a.size() - 1), at_end);
        let _ = (
            a.nullspace(),
            a.compact_like(),
            a.max_alignment(),
            a.is_injective(),
        );
        let _ = (
            a.is_bijective(),
            a.preimage(at_end).unwrap(),
            a.checked_index(huge),
        );
        let _ = (
            a.upcast(huge),
            a.downcast(huge),
            a.recast(huge, 3),
            a.coord(huge),
        );
        for n in [1, 2, huge] {
            let _ = a.complement(n);
            let _ = a
                .logical_divide(&Tiler::Int(n))
                .map(|d| d.contains(a.size()));
        }
        if let Ok(r) = a.right_inverse() {
            assert_eq!(a.index(r.index(r.size() - 1)), r.size() - 1, "{a}");
        }
        if let Ok(x) = a.left_inverse() {
            let _ = x.checked_index(at_end);
        }
        for b in &samples {
            if let Ok(r) = a.compose(b) {
                let last = b.size() - 1;
                assert_eq!(
                    Ok(r.index(last)),
                    a.checked_index(b.index(last)),
                    "{a} o {b}"
                );
            }
            let _ = (a.max_common_layout(b), a.blocked_product(b));
            let _ = (
                a.logical_product(&Tiler::Layout(b)),
                a.logical_divide(&Tiler::Layout(b)),
            );
            let _ = (
                ceil_div(&a.shape(), &b.shape()),
                shape_div(&a.shape(), &b.shape()),
            );
        }
    }
}

#[test]
fn the_cosize_of_a_huge_swizzled_layout_is_found_quickly() {
    for (text, cosize) in [
        ("Sw<1,0,1> o 1099511627776:1", 1 << 40),
        ("Sw<3,4,3> o (8,1099511627776):(1099511627776,1)", 1 << 43),
        ("Sw<20,0,30> o 1125899906842624:1", 1 << 50),
        ("Sw<2,0,2> o (3,1099511627776):(3,9)", 0),
    ] {
        let s = Swizzled::parse(text).unwrap();
        let inner = s.layout().cosize();
        let found = s.cosize();
        // A swizzle of w bits moves offsets inside blocks of 2^w.
        assert!(
            found >= inner - (1 << 50) && found < inner + (1 << 50),
            "{text}"
        );
        if cosize > 0 {
            assert_eq!(found, cosize, "{text}");
        }
    }
}

#[test]
fn a_search_over_many_overlapping_modes_gives_up_with_an_error() {
    // 24 modes with strides that are all different and overlap: 3^24 differences.
    let shape: Vec<i64> = vec![2; 24];
    let stride: Vec<i64> = (0..24).map(|i| (1 << 24) + (1 << i)).collect();
    let l = Layout::flat(&shape, &stride).unwrap();
    match l.is_injective() {
        Ok(answer) => assert!(answer),
        Err(error) => assert_eq!(error.code(), "search_limit"),
    }
}

#[test]
fn messages_name_the_mode_and_the_numbers() {
    let a = layout("(4,6):(1,10)");
    let error = a.compose(&layout("(2,(2,5)):(1,(2,3))")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mode 2 of the right-hand layout, 5:3, does not compose: after 2 steps it carries over mode 0 \
         (extent 4) of the coalesced left-hand layout, and 2 does not divide what is left of its extent; end the \
         tile there, or choose one that divides the mode"
    );
    let error = a.compose(&layout("4:3")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "mode 0 of the right-hand layout, 4:3, does not compose: its steps together carry over mode 0 \
         (extent 4) of the coalesced left-hand layout; choose a tile that divides that mode"
    );
    let error = layout("(4,2):(1,6)").complement(24).unwrap_err();
    assert_eq!(
        error.to_string(),
        "complement: the stride 6 of mode 1 is not a multiple of the 4 covered by the smaller strides; \
         pad it to a multiple, or take complement_partial, which leaves such gaps open"
    );
}
