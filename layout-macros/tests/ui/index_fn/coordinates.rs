tilewright::index_fn!(fn f(a: u32, b: u32, c: u32) -> u32 = (8,64):(64,1););

fn main() {}
