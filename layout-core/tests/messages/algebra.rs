//! What the operations on tuples, layouts and compositions refuse.

use layout_core::{
    Function, IntTuple, Layout, Step, Swizzle, Swizzled, ceil_div, colexicographic, crd2idx,
    domain_distribute, elem_scale, elementwise_less, inner_product, lexicographic,
    make_ordered_layout, product_each, product_like, round_up, shape_div, sum,
};

use crate::table::{Table, a, at, c, cases, chain, f, l, ones, s, t};

/// The greatest integer.
const MAX: &str = "9223372036854775807";

pub(crate) fn refusals(table: &mut Table) {
    tuples(table);
    structure(table);
    evaluation(table);
    composition(table);
    functions(table);
    inverses(table);
    units(table);
}

fn tuples(table: &mut Table) {
    let max = |rest: &str| t(&format!("({MAX},{rest})"));
    cases! { table;
        IntTuple::flat(&[]) =>
            "empty_tuple", "an empty tuple; a tuple needs at least one element";
        IntTuple::flat(&[1; 33]) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        t("(4,8)").get(2) =>
            "out_of_range", "there is no element 2: use 0 to 1";
        t("4").get(1) =>
            "out_of_range", "there is no element 1: there is one, number 0";
        max("2").size() =>
            "overflow", "size: the result does not fit in 64 bits; use smaller numbers";
        sum(&max("1")) =>
            "overflow", "sum: the result does not fit in 64 bits; use smaller numbers";
        inner_product(&t("(2,3)"), &t("(2,(3,4))")) =>
            "not_congruent", "the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        inner_product(&max("1"), &t("(2,1)")) =>
            "overflow", "inner_product: the result does not fit in 64 bits; use smaller numbers";
        inner_product(&max("1"), &t("(1,1)")) =>
            "overflow", "inner_product: the result does not fit in 64 bits; use smaller numbers";
        elem_scale(&t("4"), &max("2")) =>
            "overflow", "elem_scale: the result does not fit in 64 bits; use smaller numbers";
        elem_scale(&t("4"), &max("1")) =>
            "overflow", "elem_scale: the result does not fit in 64 bits; use smaller numbers";
        elem_scale(&t("(4,8)"), &t("2")) =>
            "rank_mismatch", "elem_scale: an integer stands where the other operand has a tuple of 2 elements; give both the same parentheses";
        elem_scale(&t("(4,8)"), &t("(2,2,2)")) =>
            "rank_mismatch", "elem_scale: the first operand has rank 2 and the second has rank 3; give both the same rank";
        product_like(&t("(4,8)"), &t("(1,1,1)")) =>
            "rank_mismatch", "product_like: the first operand has rank 3 and the second has rank 2; give both the same rank";
        product_each(&t(&format!("(({MAX},2),1)"))) =>
            "overflow", "size: the result does not fit in 64 bits; use smaller numbers";
        round_up(&t("0"), &t("4")) =>
            "invalid_parameter", "round_up: a is 0; use at least 1";
        round_up(&t("4"), &t("0")) =>
            "invalid_parameter", "round_up: b is 0; use at least 1";
        round_up(&t(MAX), &t("2")) =>
            "overflow", "round_up: the result does not fit in 64 bits; use smaller numbers";
        round_up(&t("(4,8)"), &t("((2,2),4)")) =>
            "rank_mismatch", "round_up: a tuple of 2 elements stands where element 0 of the first operand is an integer; give an integer there";
        round_up(&t("(4,8)"), &t("(2,2,2)")) =>
            "rank_mismatch", "round_up: 3 elements for 2 modes; give at most 2";
        shape_div(&t("(12,32)"), &t("32")) =>
            "not_divisible", "shape_div: element 0 of the shape is 12 and the divisor 32; one of the two must divide the other";
        shape_div(&t("(4,6,8)"), &t("16")) =>
            "not_divisible", "shape_div: element 1 of the shape is 6 and the elements before it leave 4 of the divisor 16; one of the two must divide the other";
        shape_div(&t("0"), &t("4")) =>
            "invalid_parameter", "shape_div: a is 0; use at least 1";
        shape_div(&t("(4,8)"), &t("(2,0)")) =>
            "invalid_parameter", "shape_div: a number of b is 0; use at least 1";
        ceil_div(&t("(4,8)"), &t("(2,2,2)")) =>
            "rank_mismatch", "ceil_div: 3 elements for 2 modes; give at most 2";
        ceil_div(&t("4"), &max("2")) =>
            "overflow", "the size of a divisor: the result does not fit in 64 bits; use smaller numbers";
        lexicographic(&t("(1,2)"), &t("(1,2,3)")) =>
            "not_congruent", "the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        colexicographic(&t("(1,2)"), &t("3")) =>
            "not_congruent", "the parentheses differ from element 0 on (2 elements in the first tuple and 1 in the second); write both with the same nesting";
        elementwise_less(&t("(1,2)"), &t("((1,2),3)")) =>
            "not_congruent", "the parentheses differ from element 0 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        crd2idx(&t("(1,(2,3))"), &t("(4,4)"), &t("(1,4)")) =>
            "coordinate_mismatch", "the coordinate has 2 elements where the shape has an integer, mode 1; give an integer there";
        t("(1,2)").slice(&at("(1,2)")) =>
            "nothing_left", "slice: nothing is left, and there is no empty tuple; leave an element open with _";
        t("(1,2)").dice(&at("(_,_)")) =>
            "nothing_left", "dice: nothing is left, and there is no empty tuple; fix an element with a number";
        t("(1,2)").dice(&at("_")) =>
            "nothing_left", "dice: nothing is left, and there is no empty tuple; fix an element with a number";
        t("(1,2)").slice(&at("(_,(_,1))")) =>
            "coordinate_mismatch", "the coordinate has 2 elements where the shape has an integer, mode 1; give an integer there";
        t("(1,2)").slice(&at("(_,_,_)")) =>
            "coordinate_mismatch", "the coordinate has 3 elements where the shape has 2, from mode 0 on; give as many elements, or one integer for all of them";
        make_ordered_layout(&t("(4,8)"), &t("(0,(1,2))")) =>
            "invalid_order", "element 1 of the order does not fit the shape; give one number for each mode";
        make_ordered_layout(&t("(4,(2,2))"), &t("(0,(1,2,3))")) =>
            "invalid_order", "element 1 of the order does not fit the shape; give one number for each mode";
        make_ordered_layout(&t("(4,0)"), &t("(1,0)")) =>
            "invalid_extent", "mode 1 has the extent 0; extents are at least 1";
        make_ordered_layout(&max("2"), &t("(0,1)")) =>
            "overflow", "the size of a layout: the result does not fit in 64 bits; use smaller numbers";
    }
}

fn structure(table: &mut Table) {
    let wide = l(&format!("{0}:{0}", ones(32)));
    cases! { table;
        Layout::new(t("(4,8)"), t("(1,(2,4))")) =>
            "not_congruent", "the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        Layout::tuple(&[]) =>
            "empty_tuple", "an empty tuple; a tuple needs at least one element";
        Layout::tuple(&[wide, l("4:1")]) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        layout_core::CoordLayout::tuple(&[c("(2,2):(1@0@0,1@1)"), c("(2,2):(1@0@0,1@1@0)")]) =>
            "different_axes", "coordinates of 2 and of 2 axes, nested differently; use layouts over the same coordinates";
        Layout::compact(t("(4,0)")) =>
            "invalid_extent", "mode 1 has the extent 0; extents are at least 1";
        Layout::col_major(&[1 << 40, 1 << 40]) =>
            "overflow", "the size of a layout: the result does not fit in 64 bits; use smaller numbers";
        l("(4,8):(1,4)").get(2) =>
            "mode_out_of_range", "there is no mode 2: the rank is 2; use 0 to 1";
        l("4:1").get(1) =>
            "mode_out_of_range", "there is no mode 1: the rank is 1; use 0";
        l("(4,8):(1,4)").group(1, 1) =>
            "invalid_range", "modes 1..1: the range is empty; the end must be greater than the beginning";
        l("(4,8):(1,4)").take(0, 3) =>
            "invalid_range", "modes 0..3 end beyond the rank; use an end of at most 2";
        l("(4,8):(1,4)").select(&[]) =>
            "empty_tuple", "an empty tuple; a tuple needs at least one element";
        l("(4,8):(1,4)").select(&[0, 2]) =>
            "mode_out_of_range", "there is no mode 2: the rank is 2; use 0 to 1";
        l("(4,8):(1,4)").select(&[0; 33]) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        l("(4,8):(1,4)").replace(2, &l("4:1")) =>
            "mode_out_of_range", "there is no mode 2: the rank is 2; use 0 to 1";
        wide.append(&l("4:1")) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        l("(4,8):(1,4)").zip(&l("4:1")) =>
            "rank_mismatch", "zip: an integer stands where the other operand has a tuple of 2 elements; give both the same parentheses";
        l("(4,8):(1,4)").zip(&l("(4,4,4):(1,4,16)")) =>
            "rank_mismatch", "zip: the first operand has rank 2 and the second has rank 3; give both the same rank";
        l("(4,8):(1,4)").unflatten(&t("((1,1),1)")) =>
            "rank_mismatch", "unflatten: the profile has 3 elements and the layout has 2 modes; give one element for each mode";
        l("(4,8):(1,4)").coalesce_by_profile(&t("(1,1,1)")) =>
            "rank_mismatch", "coalesce by profile: 3 elements for 2 modes; give at most 2";
        l("(4,8):(1,4)").coalesce_by_profile(&t("(1,(1,1))")) =>
            "rank_mismatch", "coalesce by profile: a tuple of 2 elements stands where element 1 of the first operand is an integer; give an integer there";
        a("4:ld").parameter(1) =>
            "out_of_range", "there is no stride name 1: there is one, number 0";
        a("4:1").parameter(0) =>
            "out_of_range", "there is no stride name 0: there are none";
        layout_core::CoordLayout::identity(&t("(1,1,1,1,1,1,1,1,1)")) =>
            "too_many_axes", "9 axes; coordinates have at most 8";
        c("(4,8):(1@0,1@1)").axis(2) =>
            "out_of_range", "there is no axis 2: use 0 to 1";
        Swizzled::plain(c("(4,8):(1@0,1@1)")).moved_to(&t("((1,2),3)")) =>
            "not_congruent", "the parentheses differ from element 0 on (3 elements in the first tuple and 2 in the second); write both with the same nesting";
        l("4:1").slice(&at("(1,_)")) =>
            "coordinate_mismatch", "the coordinate has 2 elements where the shape has an integer, mode 0; give an integer there";
        l("(4,8):(1,4)").slice(&at("(_,_,1)")) =>
            "coordinate_mismatch", "the coordinate has 3 elements where the shape has 2, from mode 0 on; give as many elements, or one integer for all of them";
    }
}

fn evaluation(table: &mut Table) {
    let shifted = s("1 o 2:1");
    let long = chain("Sw<1,0,1> o 1 o Sw<1,0,1> o 4194304:1");
    cases! { table;
        l("(4,8):(1,4)").coord(-1) =>
            "negative_index", "the linear coordinate -1 is negative; coordinates count from 0";
        l("(4,8):(1,4)").at_coord(&t("(1,2,3)")) =>
            "coordinate_mismatch", "the coordinate has 3 elements where the shape has 2, from mode 0 on; give as many elements, or one integer for all of them";
        l("(4,8):(1,4)").at_coord(&t("(1,(2,3))")) =>
            "coordinate_mismatch", "the coordinate has 2 elements where the shape has an integer, mode 1; give an integer there";
        l("(4,8):(1,4)").at_coord(&t("(1,(2))")) =>
            "coordinate_mismatch", "the coordinate has 1 element where the shape has an integer, mode 1; give an integer there";
        l("(4,8):(1,4)").at_coord(&t("(1,9223372036854775807)")) =>
            "overflow", "evaluation of a layout: the result does not fit in 64 bits; use smaller numbers";
        l("(4,8):(1,4)").at_with(&[1i64, 2, 3]) =>
            "coordinate_mismatch", "the coordinate has 3 elements where the shape has 2, from mode 0 on; give as many elements, or one integer for all of them";
        l("4:4").checked_index(i64::MAX) =>
            "overflow", "evaluation of a layout: the result does not fit in 64 bits; use smaller numbers";
        shifted.checked_index(i64::MAX) =>
            "overflow", "evaluation of a swizzled layout: the result does not fit in 64 bits; use smaller numbers";
        shifted.at_coord(&t("(1,1)")) =>
            "coordinate_mismatch", "the coordinate has 2 elements where the shape has an integer, mode 0; give an integer there";
        a("4:ld").bind(&[]) =>
            "unbound_parameter", "no value for the stride name ld; give one value for each name";
        a("4:ld").bind(&[i64::MAX]) =>
            "overflow", "the offsets of a layout: the result does not fit in 64 bits; use smaller numbers";
        a("4:ld").index_with(&1i64, &[]) =>
            "unbound_parameter", "no value for the stride name ld; give one value for each name";
        Step::Offset(1).checked_apply(i64::MAX) =>
            "overflow", "evaluation of a composition: the result does not fit in 64 bits; use smaller numbers";
        chain("Sw<1,0,1> o 1").size() =>
            "no_shape", "size: a composition that begins with a function on all integers has no shape; compose it with a layout";
        chain("Sw<1,0,1> o 1").at_coord(&t("(1,2)")) =>
            "no_shape", "evaluation at a tuple: a composition that begins with a function on all integers has no shape; compose it with a layout";
        long.offset_range() =>
            "too_large", "the offsets of a composition would look at 4194304 elements, more than the limit of 1048576; use a smaller layout";
        f("4").index(i64::MAX) =>
            "overflow", "index: the result does not fit in 64 bits; use smaller numbers";
        f("4:ld").index(1) =>
            "named_strides", "index: the answer depends on the named strides; bind them first";
        f("4:1@0+1@1").index(1) =>
            "coordinate_strides", "index: the offsets are coordinates; take one axis, or compose a layout with the coordinates";
        s("Sw<1,0,1> o (2097152,2):(1,1)").is_surjective_onto(2_097_153) =>
            "too_large", "is_surjective_onto would look at 2097153 elements, more than the limit of 1048576; use a smaller layout";
        s("Sw<1,21,1> o 4194304:1").equal_as_functions(&s("Sw<1,20,1> o 4194304:1")) =>
            "too_large", "equal_as_functions would look at 4194304 elements, more than the limit of 1048576; use a smaller layout";
        s("Sw<1,1,1> o 2:1").with_layout(l("2:9223372036854775806")) =>
            "overflow", "the offsets of a swizzled layout: the result does not fit in 64 bits; use smaller numbers";
        Swizzled::new(Swizzle::IDENTITY, i64::MAX, l("2:1")) =>
            "overflow", "the offsets of a swizzled layout: the result does not fit in 64 bits; use smaller numbers";
    }
}

fn composition(table: &mut Table) {
    let padded = l("(4,6):(1,10)");
    cases! { table;
        padded.compose(&l("(2,(2,5)):(1,(2,3))")) =>
            "not_composable", "mode 2 of the right-hand layout, 5:3, does not compose: after 2 steps it carries over mode 0 (extent 4) of the coalesced left-hand layout, and 2 does not divide what is left of its extent; end the tile there, or choose one that divides the mode";
        padded.compose(&l("4:3")) =>
            "not_composable", "mode 0 of the right-hand layout, 4:3, does not compose: its steps together carry over mode 0 (extent 4) of the coalesced left-hand layout; choose a tile that divides that mode";
        padded.compose(&l("(3,2):(1,3)")) =>
            "not_composable", "mode 1 of the right-hand layout, 2:3, does not compose: its steps and those of the modes before it together carry over mode 0 (extent 4) of the coalesced left-hand layout; choose a tile that divides that mode";
        padded.compose(&l("4:-1")) =>
            "not_composable", "mode 0 of the right-hand layout, 4:-1, reaches coordinates below 0, where the left-hand layout is not linear; give it an offset that keeps it above";
        padded.compose(&l("2:9223372036854775806")) =>
            "overflow", "composition: the result does not fit in 64 bits; use smaller numbers";
        padded.compose(&l(&format!("{0}8{1}:{0}1{1}", "(".repeat(32), ")".repeat(32)))) =>
            "too_deep", "more than 32 nested parentheses; flatten the tuple";
        padded.compose(&l(&format!("({0},8):({0},1)", vec!["1"; 31].join(",")))) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        padded.compose_strict(&l("25:1")) =>
            "out_of_domain", "the right-hand layout reaches from 0 to 24, outside the domain 0..24 of the left-hand layout; use compose to go beyond it";
        padded.compose_strict(&l("4:-1")) =>
            "out_of_domain", "the right-hand layout reaches from -3 to 0, outside the domain 0..24 of the left-hand layout; use compose to go beyond it";
        c("(4,8):(1@0,1@1)").compose(&l("5:3")) =>
            "not_composable", "mode 0 of the right-hand layout, 5:3, does not compose: after 2 steps it carries over mode 0 (extent 4) of the coalesced left-hand layout, and 2 does not divide what is left of its extent; end the tile there, or choose one that divides the mode";
        Function::Layout(Swizzled::plain(padded)).compose(&f("3 o 3:1")) =>
            "not_composable", "the offset 3 of the right-hand layout and its strides carry over a mode of the left-hand layout; no layout is the composition";
    }
}

fn functions(table: &mut Table) {
    let matrix = Function::Matrix(l("(2,2):(2,1)").matrix().unwrap());
    let wide = Function::Matrix(l("16:1").matrix().unwrap());
    cases! { table;
        f("(4,6):(1,10)").compose(&f("2:ld")) =>
            "named_strides", "composition with named strides on the right: the answer depends on the named strides; bind them first";
        f("4:ld").compose(&f("2:ld")) =>
            "named_strides", "composition with named strides on the right: the answer depends on the named strides; bind them first";
        f("4:1").compose(&f("4:1@0+1@1")) =>
            "not_congruent", "the parentheses differ from element 0 on (1 element in the first tuple and 2 in the second); write both with the same nesting";
        f("(4,8):(1,4)").compose(&f("(4,8,2):(1@0,1@1,1@2)")) =>
            "not_congruent", "the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        f("4:ld").compose(&f("Sw<1,0,1> o 4:1")) =>
            "named_strides", "composition after a swizzle: the answer depends on the named strides; bind them first";
        f("(4,4):(1@0,1@1)").compose(&f("Sw<1,0,1> o 4:1")) =>
            "coordinate_strides", "composition after a swizzle: the offsets are coordinates; take one axis, or compose a layout with the coordinates";
        f("4:ld").compose(&f("Sw<1,0,1>")) =>
            "named_strides", "composition after a swizzle: the answer depends on the named strides; bind them first";
        f("(4,4):(1@0,1@1)").compose(&f("Sw<1,0,1>")) =>
            "coordinate_strides", "composition after a swizzle: the offsets are coordinates; take one axis, or compose a layout with the coordinates";
        matrix.compose(&f("Sw<1,0,1>")) =>
            "matrix_operand", "composition after a swizzle: a matrix over F2 composes with matrices and linear layouts only";
        matrix.compose(&f("3:1")) =>
            "not_linear", "composition of a matrix with a layout: the extent 3 of mode 0 is not a power of two, so its index has no bits to map";
        matrix.compose(&f("1 o 2:1")) =>
            "not_linear", "composition of a matrix with a layout: index 0 goes to 1, but a linear map sends 0 to 0; leave out the offset";
        matrix.compose(&f("16:1")) =>
            "matrix_mismatch", "a matrix of 2 columns does not compose with one of 4 rows; give as many columns as rows";
        matrix.compose(&wide) =>
            "matrix_mismatch", "a matrix of 2 columns does not compose with one of 4 rows; give as many columns as rows";
        f("(4,4):(1,3)").compose(&wide) =>
            "not_linear", "composition with a matrix on the right: index 5 goes to 4, which is not the xor of its bits' images: the modes carry into each other";
        f("1").compose(&wide) =>
            "not_linear", "composition with a matrix on the right: index 0 goes to 1, but a linear map sends 0 to 0; leave out the offset";
        matrix.index(4) =>
            "outside_matrix", "index 4 is outside the matrix, which has 2 index bits; use 0 to 3";
        matrix.index(-1) =>
            "outside_matrix", "index -1 is outside the matrix, which has 2 index bits; use 0 to 3";
    }
}

fn inverses(table: &mut Table) {
    let shape = vec!["2"; 24].join(",");
    let close: Vec<String> = (0..24)
        .map(|i| ((1 << 24) + (1 << i)).to_string())
        .collect();
    let overlapping = l(&format!("({shape}):({})", close.join(",")));
    cases! { table;
        l("(2,2):(1,1)").left_inverse() =>
            "not_injective", "left_inverse: coordinates 1 and 2 both have the offset 1";
        l("(5,7,3):(11,17,300)").left_inverse() =>
            "no_left_inverse", "left_inverse: no layout sends each of the 105 offsets up to 746 back to its coordinate; use preimage for single offsets";
        l("(70,70):(71,72)").left_inverse() =>
            "too_large", "left_inverse would look at 4900 elements, more than the limit of 4096; use a smaller layout";
        l("2:4611686018427387905").left_inverse() =>
            "overflow", "left_inverse: the result does not fit in 64 bits; use smaller numbers";
        a("4:ld").left_inverse() =>
            "named_strides", "left_inverse: the answer depends on the named strides; bind them first";
        a("4:ld").is_injective() =>
            "named_strides", "is_injective: the answer depends on the named strides; bind them first";
        c("4:1@0+1@1").right_inverse() =>
            "diagonal_stride", "right_inverse: mode 0 moves along several axes at once; give each mode one axis";
        c("4:1@0+1@1").left_inverse() =>
            "diagonal_stride", "left_inverse: mode 0 moves along several axes at once; give each mode one axis";
        overlapping.is_injective() =>
            "search_limit", "is_injective: the search stopped before it had an answer; use a smaller layout";
        c("(2,2):(3037000500@0,4611686018427387903@1)").is_injective() =>
            "overflow", "is_injective: the result does not fit in 64 bits; use smaller numbers";
        l("(4,6):(1,10)").preimage(5) =>
            "not_in_image", "no coordinate of the layout has the offset 5";
        s("Sw<1,0,1> o 4:4").preimage(1) =>
            "not_in_image", "no coordinate of the layout has the offset 1";
        s("1 o 2:1").preimage(i64::MIN) =>
            "overflow", "preimage: the result does not fit in 64 bits; use smaller numbers";
        l("4:1").complement(0) =>
            "invalid_parameter", "complement: n is 0; use at least 1";
        l("4:-1").complement(8) =>
            "negative_stride", "complement: mode 0 has the negative stride -1; reverse that mode first";
        l("(4,2):(1,6)").complement(24) =>
            "not_chained", "complement: the stride 6 of mode 1 is not a multiple of the 4 covered by the smaller strides; pad it to a multiple, or take complement_partial, which leaves such gaps open";
        l("(3,2):(2,3)").complement_partial(24) =>
            "not_chained", "complement_partial: the stride 3 of mode 1 is less than the 6 that the smaller strides cover, so that the modes overlap; use a multiple of 6";
        l("4:1").complement_partial(0) =>
            "invalid_parameter", "complement_partial: n is 0; use at least 1";
        l("2:4611686018427387905").complement(24) =>
            "overflow", "complement: the result does not fit in 64 bits; use smaller numbers";
        a("4:ld").complement(8) =>
            "named_strides", "complement: the answer depends on the named strides; bind them first";
        c("4:1@0+1@1").complement(8) =>
            "diagonal_stride", "complement: mode 0 moves along several axes at once; give each mode one axis";
        c("(4,4):(3037000500@0,3037000500@1)").complement(8) =>
            "overflow", "complement: the result does not fit in 64 bits; use smaller numbers";
    }
}

fn units(table: &mut Table) {
    let swizzle = |b, m, s| Swizzle::new(b, m, s).unwrap();
    cases! { table;
        l("4:1").upcast(0) =>
            "invalid_parameter", "upcast: n is 0; use at least 1";
        l("(6,4):(1,6)").upcast(4) =>
            "not_divisible", "upcast: mode 0, 6:1, does not fill whole units of 4 elements; use an extent that is a multiple of 4";
        l("4:3").upcast(4) =>
            "not_divisible", "upcast: mode 0, 4:3, does not fill whole units of 4 elements; use a stride that divides 4 or is a multiple of it";
        l("4:-1").upcast(4) =>
            "negative_stride", "upcast: mode 0 has the negative stride -1; reverse that mode first";
        l("(2,2):(1,1)").upcast(2) =>
            "not_divisible", "upcast: mode 1 overlaps the modes before it within one unit of 2 elements; use modes with different offsets inside a unit";
        l("4:1").downcast(0) =>
            "invalid_parameter", "downcast: n is 0; use at least 1";
        l("4:-1").downcast(2) =>
            "negative_stride", "downcast: mode 0 has the negative stride -1; reverse that mode first";
        l("(2,2):(1,1)").downcast(2) =>
            "two_unit_modes", "downcast: modes 0 and 1 both have stride 1; only one mode can run through the parts of a unit";
        l("4:1").downcast(i64::MAX) =>
            "overflow", "downcast: the result does not fit in 64 bits; use smaller numbers";
        l("4:2").downcast(i64::MAX) =>
            "overflow", "downcast: the result does not fit in 64 bits; use smaller numbers";
        l("4:1").recast(0, 8) =>
            "invalid_parameter", "recast: old_bits is 0; use at least 1";
        l("4:1").recast(8, 0) =>
            "invalid_parameter", "recast: new_bits is 0; use at least 1";
        swizzle(1, 0, 1).upcast(0) =>
            "invalid_parameter", "upcast: n is 0; use at least 1";
        swizzle(1, 0, 1).upcast(3) =>
            "swizzle_unit", "upcast by 3: Sw<1,0,1> has no exact form in that unit; use a power of two that leaves the swizzle's bits whole";
        swizzle(1, 0, -1).upcast(2) =>
            "swizzle_unit", "upcast by 2: Sw<1,0,-1> has no exact form in that unit; use a power of two that leaves the swizzle's bits whole";
        swizzle(1, 0, 1).downcast(0) =>
            "invalid_parameter", "downcast: n is 0; use at least 1";
        swizzle(1, 0, 1).downcast(3) =>
            "swizzle_unit", "downcast by 3: Sw<1,0,1> has no exact form in that unit; use a power of two that leaves the swizzle's bits whole";
        swizzle(1, 60, 1).downcast(2) =>
            "invalid_swizzle", "Sw<1,61,1> uses bits beyond 62: B + M + |S| must be at most 62";
        s("1 o 4:2").upcast(2) =>
            "not_divisible", "upcast: 2 does not divide the offset 1; use a multiple of 2";
        s("4611686018427387900 o 2:1").downcast(4) =>
            "overflow", "downcast: the result does not fit in 64 bits; use smaller numbers";
        domain_distribute(&t("(15,14)"), 4) =>
            "not_divisible", "domain_distribute: 4 does not split over the modes of a domain of 210 elements; use a product of divisors of the extents, or domain_distribute_partial, which takes fewer coordinates";
        domain_distribute(&t("(15,14)"), 0) =>
            "invalid_parameter", "domain_distribute: n is 0; use at least 1";
    }
}
