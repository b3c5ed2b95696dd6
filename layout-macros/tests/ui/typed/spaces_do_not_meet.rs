use tilewright::Layout;
use tilewright::space::{Bank, Byte, Coord, Lane, Map};

fn main() {
    let rows: Map<Lane, Coord> = Map::plain(Layout::UNIT);
    let banks: Map<Byte, Bank> = Map::plain(Layout::UNIT);
    let _ = banks.compose(&rows);
}
