const TILE: tilewright::Layout = tilewright::layout!((8,8):(8,1));
tilewright::index_fn!(fn f(i: u32) -> u32 = TILE o 4:2;);

fn main() {
    let _ = (TILE, f(0));
}
