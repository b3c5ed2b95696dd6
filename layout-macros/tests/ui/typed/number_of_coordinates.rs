use tilewright::typed::{C, Layout, StaticLayout};

type Tile = Layout<(C<8>, C<64>), (C<64>, C<1>)>;

fn main() {
    let _ = Tile::at([1, 2, 3]);
}
