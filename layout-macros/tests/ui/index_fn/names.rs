tilewright::index_fn!(fn f(a: u32, a: u32) -> u32 = (4,4):(1,4););

fn main() {}
