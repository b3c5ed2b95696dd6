//! What the notation refuses.

use layout_core::{
    Affine, CoordLayout, Function, IntTuple, Layout, Parameter, Slicer, Swizzle, Swizzled,
};

use crate::table::{Table, cases, nested, ones};

pub(crate) fn refusals(table: &mut Table) {
    tuples(table);
    swizzles(table);
    named(table);
    coordinates(table);
    compositions(table);
}

fn tuples(table: &mut Table) {
    cases! { table;
        IntTuple::parse("") =>
            "syntax", "bytes 0..0: expected an integer or a tuple such as (4,(2,2))";
        IntTuple::parse("x") =>
            "syntax", "bytes 0..1: expected an integer or a tuple such as (4,(2,2))";
        IntTuple::parse("()") =>
            "empty_tuple", "bytes 1..2: an empty tuple; a tuple needs at least one element";
        IntTuple::parse("(1,())") =>
            "empty_tuple", "bytes 4..5: an empty tuple; a tuple needs at least one element";
        IntTuple::parse("(1 2)") =>
            "syntax", "bytes 3..4: expected ',' or ')'";
        IntTuple::parse("(1,2") =>
            "syntax", "bytes 4..4: expected ',' or ')'";
        IntTuple::parse("1)") =>
            "trailing_text", "bytes 1..2: the text goes on after the end of the value";
        IntTuple::parse("9223372036854775808") =>
            "integer_too_large", "bytes 0..19: the integer does not fit in 64 bits";
        IntTuple::parse(&ones(33)) =>
            "too_many_modes", "bytes 0..66: more than 32 modes; coalesce the layout or split it into several";
        IntTuple::parse(&nested(33)) =>
            "too_deep", "bytes 0..33: more than 32 nested parentheses; flatten the tuple";
        Slicer::parse("(_,x)") =>
            "syntax", "bytes 3..4: expected an integer or a tuple such as (4,(2,2))";
        Layout::parse("4") =>
            "syntax", "bytes 1..1: expected ':'";
        Layout::parse("4:x") =>
            "syntax", "bytes 2..3: expected an integer or a tuple such as (4,(2,2))";
        Layout::parse("(4,8):(1,(2,3))") =>
            "not_congruent", "bytes 0..15: the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        Layout::parse("(4,0):(1,4)") =>
            "invalid_extent", "bytes 0..11: mode 1 has the extent 0; extents are at least 1";
        Layout::parse("(4294967296,4294967296):(1,1)") =>
            "overflow", "bytes 0..29: the size of a layout: the result does not fit in 64 bits; use smaller numbers";
        Layout::parse("(4,4):(4611686018427387904,1)") =>
            "overflow", "bytes 0..29: the offsets of a layout: the result does not fit in 64 bits; use smaller numbers";
    }
}

fn swizzles(table: &mut Table) {
    cases! { table;
        Swizzled::parse("Six<1,2,3> o 4:1") =>
            "syntax", "bytes 0..1: expected a swizzle such as Sw<3,4,3>";
        Swizzled::parse("Sw(1,2,3) o 4:1") =>
            "syntax", "bytes 2..3: expected '<'";
        Swizzled::parse("Sw<1,2> o 4:1") =>
            "syntax", "bytes 6..7: expected ','";
        Swizzled::parse("Sw<1,2,3 o 4:1") =>
            "syntax", "bytes 9..10: expected '>'";
        Swizzled::parse("Sw<x,2,3> o 4:1") =>
            "syntax", "bytes 3..4: expected an integer";
        Swizzled::parse("Sw<-1,2,3> o 4:1") =>
            "invalid_parameter", "bytes 0..10: Sw<B,M,S>: B is -1; use 0 to 62";
        Swizzled::parse("Sw<1,2,-63> o 4:1") =>
            "invalid_parameter", "bytes 0..11: Sw<B,M,S>: S is -63; use -62 to 62";
        Swizzle::new(2, 0, 0) =>
            "invalid_swizzle", "Sw<2,0,0> is not injective: S must not be 0";
        Swizzle::new(30, 30, 3) =>
            "invalid_swizzle", "Sw<30,30,3> uses bits beyond 62: B + M + |S| must be at most 62";
        Swizzled::parse("Sw<1,0,1> o") =>
            "syntax", "bytes 11..11: expected an integer or a tuple such as (4,(2,2))";
        Swizzled::parse("9223372036854775807 o 2:1") =>
            "overflow", "bytes 0..25: the offsets of a swizzled layout: the result does not fit in 64 bits; use smaller numbers";
    }
}

fn named(table: &mut Table) {
    let strides = vec!["ld"; 33].join(",");
    cases! { table;
        Affine::parse("4:*ld") =>
            "syntax", "bytes 2..3: expected an integer or a stride name such as ld or 2*ld";
        Affine::parse("4:2*") =>
            "syntax", "bytes 4..4: expected an integer or a stride name such as ld or 2*ld";
        Affine::parse("(4,4):(ld m)") =>
            "syntax", "bytes 10..11: expected ',' or ')'";
        Affine::parse("(4,4):(ld,(m,n))") =>
            "not_congruent", "bytes 0..16: the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        Affine::parse("4:9223372036854775807*ld+ld") =>
            "overflow", "bytes 2..27: a stride: the result does not fit in 64 bits; use smaller numbers";
        Affine::parse("0:ld") =>
            "invalid_extent", "bytes 0..1: mode 0 has the extent 0; extents are at least 1";
        Affine::parse("4:4611686018427387904*ld") =>
            "overflow", "bytes 0..24: the offsets of a layout: the result does not fit in 64 bits; use smaller numbers";
        Affine::parse("4:a_name_of_over_15_letters") =>
            "invalid_parameter", "bytes 2..27: a stride name has 1 to 15 letters, digits or _ and does not begin with a digit; this one has 25 characters";
        Affine::parse("(2,2,2,2,2):(a,b,c,d,e)") =>
            "invalid_parameter", "bytes 21..22: more than 4 stride names in one layout; use the same names again";
        Affine::parse(&format!("4:({strides})")) =>
            "too_many_modes", "bytes 2..101: more than 32 modes; coalesce the layout or split it into several";
        Affine::parse(&format!("4:{}", nested(33))) =>
            "too_deep", "bytes 2..35: more than 32 nested parentheses; flatten the tuple";
        Parameter::new("") =>
            "invalid_parameter", "a stride name has 1 to 15 letters, digits or _ and does not begin with a digit; this one is empty";
        Parameter::new("2d") =>
            "invalid_parameter", "a stride name has 1 to 15 letters, digits or _ and does not begin with a digit";
        Parameter::new("a-b") =>
            "invalid_parameter", "a stride name has 1 to 15 letters, digits or _ and does not begin with a digit";
    }
}

fn coordinates(table: &mut Table) {
    let terms = format!("4:{}", vec!["1@0"; 65].join("+"));
    cases! { table;
        CoordLayout::parse("(4,4):(1@0 1@1)") =>
            "syntax", "bytes 11..12: expected ',' or ')'";
        CoordLayout::parse("(4,4):(1@0,(1@1,1@1))") =>
            "not_congruent", "bytes 0..21: the parentheses differ from element 1 on (2 elements in the first tuple and 3 in the second); write both with the same nesting";
        CoordLayout::parse("4") =>
            "syntax", "bytes 1..1: expected ':'";
        CoordLayout::parse("4:E<0") =>
            "syntax", "bytes 5..5: expected '>'";
        CoordLayout::parse("4:x") =>
            "syntax", "bytes 2..3: expected an integer";
        CoordLayout::parse("(4,4):(1@0,5)") =>
            "invalid_axis", "bytes 11..12: a stride without an axis among basis strides; name its axis, as in 2@1 or E<1>";
        CoordLayout::parse("4:1@8") =>
            "invalid_axis", "bytes 4..5: there is no axis 8; use 0 to 7, as in 2@1 or E<1>";
        CoordLayout::parse("4:E<-1>") =>
            "invalid_axis", "bytes 4..6: there is no axis -1; use 0 to 7, as in 2@1 or E<1>";
        CoordLayout::parse("4:1@0@0@0@0@0") =>
            "invalid_axis", "bytes 12..13: an axis more than 4 levels deep; use fewer @ in one basis stride";
        CoordLayout::parse("(4,4):(1@0,1@1@0)") =>
            "invalid_axis", "bytes 0..17: a basis stride names a whole tuple of axes; name one axis in it, as 1@0@1 does";
        CoordLayout::parse("(2,2):(1@7@0,1@7)") =>
            "too_many_axes", "bytes 0..17: 9 axes; coordinates have at most 8";
        CoordLayout::parse(&terms) =>
            "too_many_terms", "bytes 258..261: more than 64 basis strides in one layout; write fewer modes or fewer axes in each";
        CoordLayout::parse("2:9223372036854775807@0+1@0") =>
            "overflow", "bytes 0..27: a stride: the result does not fit in 64 bits; use smaller numbers";
        CoordLayout::parse(&format!("4:{}", nested(33))) =>
            "too_deep", "bytes 0..35: more than 32 nested parentheses; flatten the tuple";
    }
}

fn compositions(table: &mut Table) {
    let many = vec!["1"; 17].join(" o ");
    let steps = ["Sw<1,0,1> o 1"; 5].join(" o ");
    cases! { table;
        Function::parse(&many) =>
            "too_many_operands", "bytes 64..65: more than 16 operands in one composition; compose some of them first";
        Function::parse(&steps) =>
            "too_many_steps", "bytes 12..77: a composition of more than 8 steps that no single layout replaces; use fewer steps";
        Function::parse("Sw<1,0,1>^2") =>
            "syntax", "bytes 10..11: expected -1: Sw<B,M,S>^-1, the inverse, is the only power";
        Function::parse("Sw<1,0,1>^") =>
            "syntax", "bytes 10..10: expected -1: Sw<B,M,S>^-1, the inverse, is the only power";
        Function::parse("4:1 o") =>
            "syntax", "bytes 5..5: expected an integer or a tuple such as (4,(2,2))";
        Function::parse("4:1 4:1") =>
            "trailing_text", "bytes 4..7: the text goes on after the end of the value";
    }
}
