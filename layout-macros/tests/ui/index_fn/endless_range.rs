tilewright::index_fn!(fn f(i: u32 in 0..) -> u32 = 4:1;);

fn main() {}
