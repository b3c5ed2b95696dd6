tilewright::index_fn!(fn f(row: u32, col: u32) -> u32 = (8,x):(64,1););
tilewright::index_fn!(fn g(i: u32) -> u32 = "(8,):(64,1)";);
tilewright::index_fn!(fn h(i: u32) -> u32 = ;);

fn main() {}
