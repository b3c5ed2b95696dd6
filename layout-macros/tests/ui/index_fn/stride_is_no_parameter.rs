tilewright::index_fn!(fn f(row: u32, col: u32) -> u32 = (8,64):(ld,1););

fn main() {}
