use tilewright::Layout;
use tilewright::space::{Byte, Coord, Element, F16, Map, UnitSwizzle};

fn main() {
    let tile: Map<Coord, Element<F16>> = Map::plain(Layout::UNIT);
    let swizzle = UnitSwizzle::<Byte>::new(3, 4, 3).unwrap();
    let _ = tile.swizzle(swizzle);
}
