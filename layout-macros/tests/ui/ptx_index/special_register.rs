const A: &str = tilewright::ptx_index!(offset(tid) = 32:4);
const B: &str = tilewright::ptx_index!(laneid(i) = 32:4);
const C: &str = tilewright::ptx_index!(offset(i) = 32:);

fn main() {}
