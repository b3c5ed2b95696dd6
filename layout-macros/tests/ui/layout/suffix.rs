use tilewright::{Layout, layout};

const BAD: Layout = layout!((8u32,64):(64,1));

fn main() {
    let _ = BAD;
}
