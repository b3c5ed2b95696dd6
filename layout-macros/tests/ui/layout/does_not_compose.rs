use tilewright::{Layout, layout};

const BAD: Layout = layout!((4,6):(1,10) o (2,4):(2,3));

fn main() {
    let _ = BAD;
}
