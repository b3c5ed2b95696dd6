use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,4,16):(64,1));

fn main() {
    let _ = BAD;
}
