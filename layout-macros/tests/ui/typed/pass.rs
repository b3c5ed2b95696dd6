use tilewright::space::{At, Byte, Coord, Element, F16, Lane, Map, Static, StaticMap, Then};
use tilewright::typed::{C, Compose, Layout, LogicalDivide, StaticLayout, Swizzle, check};

type Tile = Compose<Swizzle<3, 3, 3>, Layout<(C<8>, C<64>), (C<64>, C<1>)>>;
type Lanes = Static<Lane, Coord, Layout<C<8>, C<1>>>;
type Bytes = Then<Lanes, Static<Coord, Byte, Tile>>;

const _: () = check::<LogicalDivide<Tile, (C<4>, C<8>)>>();

fn main() {
    assert_eq!(Bytes::apply(At::new(3)).get(), Tile::at([3, 0]));
    let elements: Map<Coord, Element<F16>> = Map::new(Tile::LAYOUT);
    let bytes = elements.to_bytes().unwrap();
    assert_eq!(bytes.layout().swizzle().m(), 4);
}
