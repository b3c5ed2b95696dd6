use tilewright::Layout;
use tilewright::space::{Element, Lane, Map};

fn main() {
    let _: Map<Lane, Element<f32>> = Map::plain(Layout::UNIT);
}
