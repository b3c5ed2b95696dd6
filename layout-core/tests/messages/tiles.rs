//! What divides, products and partitions refuse.

use layout_core::{Layout, TiledCopy, TiledMma, Tiler, atoms};

use crate::table::{Table, cases, l, ones, s, t};

pub(crate) fn refusals(table: &mut Table) {
    divides(table);
    products(table);
    partitions(table);
}

fn divides(table: &mut Table) {
    let pair = t("(2,2)");
    let huge = l("(4194304,1099511627776):(1,4194304)");
    cases! { table;
        l("10:1").logical_divide(&Tiler::Int(4)).unwrap().exact() =>
            "overhang", "the tiles cover 12 elements of 10; choose a tile that divides, or round up and predicate";
        l("10:1").logical_divide(&Tiler::Int(0)) =>
            "invalid_parameter", "a tiler: the size of a tile is 0; use at least 1";
        l("(4,8):(1,4)").logical_divide(&Tiler::Tuple(&t("(2,-1)"))) =>
            "invalid_parameter", "a tiler: the size of a tile is -1; use at least 1";
        l("4:1").logical_divide(&Tiler::Tuple(&pair)) =>
            "rank_mismatch", "divide by mode: 2 elements for 1 mode; give at most 1";
        l("(4,8):(1,4)").logical_divide(&Tiler::Modes(&[])) =>
            "empty_tuple", "an empty tuple; a tuple needs at least one element";
        l("(4,8):(1,4)").zipped_divide(&Tiler::Modes(&[Tiler::Keep; 3])) =>
            "rank_mismatch", "divide by mode: 3 elements for 2 modes; give at most 2";
        l("(4,6):(1,10)").logical_divide(&Tiler::Int(3)) =>
            "not_composable", "divide: the tiles of 3 after the first do not repeat evenly in a mode of 24 elements; choose a tile that divides the parts of the mode";
        l("8:1").logical_divide(&Tiler::Layout(&l("2:-1"))) =>
            "negative_stride", "divide: mode 0 has the negative stride -1; reverse that mode first";
        huge.logical_divide(&Tiler::Modes(&[Tiler::Int(3_000_000), Tiler::Int(800_000_000_000)])) =>
            "overflow", "divide: the result does not fit in 64 bits; use smaller numbers";
        l("(4,8):(1,4)").compose_by_mode(&Tiler::Tuple(&t("(2,2,2)"))) =>
            "rank_mismatch", "composition by mode: 3 elements for 2 modes; give at most 2";
        l(&format!("{0}:{0}", ones(32))).logical_divide(&Tiler::Tuple(&t("(1,1)"))) =>
            "too_many_modes", "more than 32 modes; coalesce the layout or split it into several";
        Layout::tuple(&[l(&nest(32))]) =>
            "too_deep", "more than 32 nested parentheses; flatten the tuple";
    }
}

/// A layout under so many parentheses.
fn nest(n: usize) -> String {
    let (open, close) = ("(".repeat(n), ")".repeat(n));
    format!("{open}4{close}:{open}1{close}")
}

fn products(table: &mut Table) {
    let product = |a: &str, b: &str| l(a).logical_product(&Tiler::Layout(&l(b)));
    cases! { table;
        product("4:1", "4611686018427387904:1") =>
            "overflow", "product: the result does not fit in 64 bits; use smaller numbers";
        product("4:-1", "2:1") =>
            "negative_stride", "product: mode 0 has the negative stride -1; reverse that mode first";
        product("(3,2):(2,3)", "2:1") =>
            "not_chained", "product: the stride 3 of mode 1 is less than the 6 that the smaller strides cover, so that the modes overlap; use a multiple of 6";
        l("(2,2):(1,2)").tile_to_shape(&t("8"), None) =>
            "rank_mismatch", "tile_to_shape: 2 elements for 1 mode; give at most 1";
        l("(2,2):(1,2)").tile_to_shape(&t("(4,0)"), None) =>
            "invalid_extent", "mode 1 has the extent 0; extents are at least 1";
        l("(2,2):(1,2)").tile_to_shape(&t("(4,5)"), None) =>
            "not_divisible", "tile_to_shape: 2 does not divide 5, the extent of mode 1; use a multiple of 2";
        l("(2,2):(1,2)").tile_to_shape(&t("(4,4)"), Some(&t("(0,(1,2))"))) =>
            "invalid_order", "element 1 of the order does not fit the shape; give one number for each mode";
    }
}

fn partitions(table: &mut Table) {
    let atom = atoms::vector_copy(1, atoms::Scalar::F32, false).unwrap();
    let copy = TiledCopy::new(atom, &l("(4,8):(8,1)"), &l("(2,1):(1,2)"));
    let copy = copy.unwrap();
    let mma = atoms::MMA_M16N8K16_F16;
    let tiled = TiledMma::new(mma, &l("(2,2,1):(1,2,4)")).unwrap();
    let two = [
        Layout::mode(16, 1).unwrap(),
        Layout::mode(12, 1).unwrap(),
        Layout::mode(16, 1).unwrap(),
    ];
    let tensor = s("(8,6):(1,8)");
    let threads = l("(4,2):(1,8)");
    let big = s("(2097153,2):(1,2097153)");
    cases! { table;
        TiledCopy::new(atom, &l("(4,8):(9,1)"), &l("2:1")) =>
            "not_bijective", "the threads of a tiled copy: 32 coordinates reach over 35 offsets; each of 0..32 must occur exactly once";
        TiledCopy::new(atom, &l("(4,8):(8,1)"), &l("2:2")) =>
            "not_bijective", "the values of a tiled copy: 2 coordinates reach over 3 offsets; each of 0..2 must occur exactly once";
        TiledMma::new(mma, &l("(2,2):(1,2)")) =>
            "rank_mismatch", "the layout of a tiled mma's atoms (M, N, K) has rank 2; give it 3 modes";
        TiledMma::with_tile(mma, &l("(2,2):(1,2)"), &two) =>
            "rank_mismatch", "the layout of a tiled mma's atoms (M, N, K) has rank 2; give it 3 modes";
        TiledMma::with_tile(mma, &l("(1,1,1):(0,0,0)"), &two) =>
            "not_divisible", "the tile of a tiled mma: the size in N is 12; use a multiple of 8";
        TiledMma::new(mma, &l("(1152921504606846976,1,1):(1,0,0)")) =>
            "overflow", "the tile of a tiled mma: the result does not fit in 64 bits; use smaller numbers";
        TiledMma::new(mma, &l("(2,2,1):(1,4,0)")).unwrap().layout_tv(layout_core::Operand::A) =>
            "not_bijective", "the threads of a tiled mma: 128 coordinates reach over 192 offsets; each of 0..128 must occur exactly once";
        tiled.get_slice(128) =>
            "coordinate_out_of_range", "thread 128 does not exist; use 0 to 127";
        copy.get_slice(-1) =>
            "coordinate_out_of_range", "thread -1 does not exist; use 0 to 31";
        tensor.local_partition(&threads, 5) =>
            "coordinate_out_of_range", "thread 5 has no coordinate in the layout of threads; use a thread that occurs in it";
        s("(7,6):(1,8)").local_tile(&Tiler::Tuple(&t("(4,2)")), &layout_core::Slicer::parse("(1,0)").unwrap()).unwrap().exact() =>
            "overhang", "the tiles cover 8 elements of 6; choose a tile that divides, or round up and predicate";
        big.local_tile(&Tiler::Tuple(&t("(2097152,2)")), &layout_core::Slicer::parse("(0,0)").unwrap()).unwrap().exact() =>
            "too_large", "whether a tile hangs over would look at 4194304 elements, more than the limit of 1048576; use a smaller layout";
        tensor.thread_partition(&t("(4,2)"), &l("(4,2):(2,1)"), 4) =>
            "coordinate_out_of_range", "thread 4 does not exist; use 0 to 3";
    }
}
