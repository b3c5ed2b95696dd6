//! Layouts as types agree with layouts as values: the same `LAYOUT`, and index functions equal to the value's on every
//! coordinate, inside the domain and outside.

use layout_core::space::{
    At, B128, Byte, Coord, Element, F16, F32, Lane, Map, Static, StaticMap, SwizzleOf, Then,
    UnitSwizzle,
};
use layout_core::typed::{
    BlockedProduct, C, Coalesce, Complement, Compose, ComposeByMode, Divide, Downcast, Filter,
    FlatDivide, FlatProduct, Keep, Layout, LeftInverse, LogicalDivide, LogicalProduct, Mode, Modes,
    Offset, Open, Product, RakedProduct, Recast, RightInverse, Slice, StaticLayout, StaticTuple,
    Swizzle, TiledDivide, TiledProduct, Upcast, ZippedDivide, ZippedProduct, check,
};
use layout_core::{self as core, Swizzled, Tiler};

type Nested = Layout<(C<4>, (C<2>, C<3>)), (C<2>, (C<1>, C<8>))>;
type Rows = Layout<(C<8>, C<64>), (C<64>, C<1>)>;
type Tile = Compose<Swizzle<3, 3, 3>, Rows>;
type Odd = Layout<(C<3>, C<5>, C<7>), (C<-2>, C<40>, C<6>)>;
type Trailing = Layout<(C<4>, C<1>), (C<1>, C<100>)>;
type Deep = Layout<
    (
        C<2>,
        (C<2>, (C<3>, C<2>)),
        C<2>,
        C<2>,
        (C<2>, C<2>, C<2>, C<2>),
    ),
    (
        C<1>,
        (C<5>, (C<9>, C<30>)),
        C<70>,
        C<150>,
        (C<400>, C<1000>, C<2500>, C<6000>),
    ),
>;
type Moved = Offset<16, Compose<Swizzle<2, 0, -3>, Layout<(C<8>, C<4>), (C<1>, C<8>)>>>;

/// Compares the unrolled functions of one type with the value's.
fn agree<L: StaticLayout>(text: &str) {
    assert_eq!(L::LAYOUT.to_string(), text);
    let size = L::LAYOUT.size();
    for i in (-3 * size)..(3 * size) {
        assert_eq!(L::index(i), L::LAYOUT.index(i), "{text} at {i}");
    }
    assert_eq!(L::SIZE, size);
    assert_eq!(L::COSIZE, L::LAYOUT.cosize());
    assert_eq!(L::RANK, L::LAYOUT.rank());
}

#[test]
fn unrolled_index_is_the_index_of_the_value() {
    agree::<Nested>("(4,(2,3)):(2,(1,8))");
    agree::<Tile>("Sw<3,3,3> o (8,64):(64,1)");
    agree::<Odd>("(3,5,7):(-2,40,6)");
    agree::<Trailing>("(4,1):(1,100)");
    agree::<Deep>("(2,(2,(3,2)),2,2,(2,2,2,2)):(1,(5,(9,30)),70,150,(400,1000,2500,6000))");
    agree::<Moved>("Sw<2,0,-3> o 16 o (8,4):(1,8)");
    agree::<Layout<C<8>, C<3>>>("8:3");
    agree::<Layout<(C<8>,), (C<3>,)>>("(8):(3)");
    agree::<Modes<(Nested, Layout<C<5>, C<100>>)>>("((4,(2,3)),5):((2,(1,8)),100)");
}

#[test]
fn unrolled_at_is_the_at_of_the_value() {
    for i in -9..20 {
        for j in -70..140 {
            assert_eq!(Tile::at([i, j]), Tile::LAYOUT.at(&[i, j]));
            assert_eq!(Nested::at([i, j]), Nested::LAYOUT.at(&[i, j]));
            assert_eq!(Trailing::at([i, j]), Trailing::LAYOUT.at(&[i, j]));
            assert_eq!(Odd::at([i, j, i]), Odd::LAYOUT.at(&[i, j, i]));
            let deep = [i, j, 1, -1, i + j];
            assert_eq!(Deep::at(deep), Deep::LAYOUT.at(&deep));
        }
    }
}

fn value(text: &str) -> core::Layout {
    core::Layout::parse(text).unwrap()
}

fn same<L: StaticLayout>(expected: core::Layout) {
    assert_eq!(L::LAYOUT, Swizzled::plain(expected));
}

#[test]
fn operations_on_types_are_those_on_values() {
    type T = (C<2>, Keep, Layout<C<2>, C<4>>);
    type A = Layout<(C<4>, C<6>, C<8>), (C<1>, C<4>, C<24>)>;
    type B = Layout<C<8>, C<2>>;
    type Block = Layout<(C<2>, C<5>), (C<5>, C<1>)>;
    type Grid = Layout<(C<3>, C<4>), (C<1>, C<3>)>;
    let (a, b) = (value("(4,6,8):(1,4,24)"), value("8:2"));
    let (block, grid) = (value("(2,5):(5,1)"), value("(3,4):(1,3)"));
    same::<Compose<A, B>>(a.compose(&b).unwrap());
    same::<Coalesce<A>>(a.coalesce());
    same::<Filter<Layout<(C<4>, C<2>), (C<1>, C<0>)>>>(value("(4,2):(1,0)").filter());
    same::<Mode<A, 1>>(value("6:4"));
    same::<Complement<B, 48>>(b.complement(48).unwrap());
    same::<RightInverse<Block>>(block.right_inverse().unwrap());
    same::<LeftInverse<Block>>(block.left_inverse().unwrap());
    let half = value("2:4");
    let modes = [Tiler::Int(2), Tiler::Keep, Tiler::Layout(&half)];
    let tiler = Tiler::Modes(&modes);
    same::<ComposeByMode<A, T>>(a.compose_by_mode(&tiler).unwrap());
    same::<LogicalDivide<A, T>>(a.logical_divide(&tiler).unwrap().exact().unwrap());
    same::<Divide<A, B>>(
        a.logical_divide(&Tiler::Layout(&b))
            .unwrap()
            .exact()
            .unwrap(),
    );
    same::<ZippedDivide<A, T>>(a.zipped_divide(&tiler).unwrap().exact().unwrap());
    same::<TiledDivide<A, T>>(a.tiled_divide(&tiler).unwrap().exact().unwrap());
    same::<FlatDivide<A, T>>(a.flat_divide(&tiler).unwrap().exact().unwrap());
    let by = Tiler::Layout(&grid);
    same::<LogicalProduct<Block, Grid>>(block.logical_product(&by).unwrap());
    same::<Product<Block, Grid>>(block.logical_product(&by).unwrap());
    same::<ZippedProduct<Block, Grid>>(block.zipped_product(&by).unwrap());
    same::<TiledProduct<Block, Grid>>(block.tiled_product(&by).unwrap());
    same::<FlatProduct<Block, Grid>>(block.flat_product(&by).unwrap());
    same::<BlockedProduct<Block, Grid>>(block.blocked_product(&grid).unwrap());
    same::<RakedProduct<Block, Grid>>(block.raked_product(&grid).unwrap());
    same::<Upcast<A, 4>>(a.upcast(4).unwrap());
    same::<Downcast<A, 2>>(a.downcast(2).unwrap());
    same::<Recast<A, 16, 32>>(a.recast(16, 32).unwrap());
}

#[test]
fn swizzled_types_divide_slice_and_recast() {
    type Tiles = ZippedDivide<Tile, (C<8>, C<16>)>;
    let tile = Tile::LAYOUT;
    assert_eq!(
        <Slice<Tile, (C<3>, Open)> as StaticLayout>::LAYOUT.to_string(),
        "Sw<3,3,3> o 192 o (64):(1)"
    );
    for j in 0..64 {
        assert_eq!(Slice::<Tile, (C<3>, Open)>::index(j), tile.at(&[3, j]));
    }
    assert_eq!(
        <Upcast<Tile, 8> as StaticLayout>::LAYOUT.to_string(),
        "Sw<3,0,3> o (8,8):(8,1)"
    );
    for (i, j) in (0..128).flat_map(|i| (0..4).map(move |j| (i, j))) {
        assert_eq!(Tiles::at([i, j]), tile.at(&[i % 8, i / 8 + 16 * j]));
    }
}

#[test]
fn tuples_nest_up_to_arity_eight() {
    type T = (
        C<1>,
        (C<2>,),
        C<3>,
        (C<4>, C<5>),
        C<6>,
        C<7>,
        C<8>,
        (C<9>, (C<10>, C<11>)),
    );
    assert_eq!(T::TUPLE.to_string(), "(1,(2),3,(4,5),6,7,8,(9,(10,11)))");
}

#[test]
fn check_evaluates() {
    const _: () = check::<Tile>();
    check::<Nested>();
}

#[test]
fn maps_compose_and_convert_units() {
    let rows: Map<Lane, Coord> = Map::plain(value("(16,2):(1,128)"));
    let tile: Map<Coord, Element<F16>> =
        Map::new(Swizzled::parse("Sw<3,3,3> o (16,64):(64,1)").unwrap());
    let elements = tile.compose(&rows).unwrap();
    let bytes = elements.to_bytes().unwrap();
    assert_eq!(bytes.layout().to_string(), "Sw<3,4,3> o (16,2):(128,16)");
    for lane in 0..32 {
        let element = elements.apply(At::new(lane)).get();
        assert_eq!(bytes.apply(At::new(lane)).get(), 2 * element);
    }
    assert_eq!(bytes.to_elements::<F16>().unwrap(), elements);
    // 16-byte chunks: the swizzle is of whole chunks.
    let chunks = bytes.to_elements::<B128>().unwrap();
    assert_eq!(chunks.layout().to_string(), "Sw<3,0,3> o (16,2):(8,1)");
    // A swizzle of halves within a float has no form in floats.
    let within: Map<Lane, Byte> = Map::new(Swizzled::parse("Sw<2,1,3> o 32:4").unwrap());
    assert_eq!(
        within.to_elements::<F32>().unwrap_err().code(),
        "swizzle_unit"
    );
    let odd: Map<Lane, Byte> = Map::plain(value("32:6"));
    assert_eq!(
        odd.to_elements::<F32>().unwrap_err().code(),
        "not_divisible"
    );
    // After a swizzled map a layout is one swizzled layout again only if its strides shift the bits.
    let swizzled: Map<Lane, Coord> = Map::new(Swizzled::parse("Sw<1,0,1> o 4:1").unwrap());
    assert_eq!(tile.compose(&swizzled).unwrap_err().code(), "several_steps");
}

#[test]
fn swizzles_change_units_exactly() {
    let bytes = UnitSwizzle::<Byte>::new(3, 4, 3).unwrap();
    let halves = bytes.to_elements::<F16>().unwrap();
    assert_eq!(halves.swizzle(), core::Swizzle::new(3, 3, 3).unwrap());
    assert_eq!(halves.to_bytes().unwrap().swizzle(), bytes.swizzle());
    for offset in 0..4096 {
        assert_eq!(
            bytes.swizzle().apply(2 * offset),
            2 * halves.swizzle().apply(offset)
        );
    }
    assert!(
        UnitSwizzle::<Byte>::new(3, 1, 3)
            .unwrap()
            .to_elements::<F32>()
            .is_err()
    );
}

#[test]
fn static_maps_are_maps() {
    type Lanes = Static<Lane, Byte, Layout<(C<16>, C<2>), (C<128>, C<16>)>>;
    type Address = Then<Lanes, SwizzleOf<Byte, 3, 4, 3>>;
    let map: Map<Lane, Byte> = Address::map();
    assert_eq!(map.layout().to_string(), "Sw<3,4,3> o (16,2):(128,16)");
    for lane in 0..32 {
        assert_eq!(Address::apply(At::new(lane)), map.apply(At::new(lane)));
    }
    assert_eq!(
        format!("{map:?}"),
        "lane -> byte: Sw<3,4,3> o (16,2):(128,16)"
    );
    assert_eq!(format!("{:?}", Address::apply(At::new(1))), "byte 144");
}
