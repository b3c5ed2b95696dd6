use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,64):(9223372036854775807,1));

fn main() {
    let _ = BAD;
}
