use tilewright::{Layout, layout};

const BAD: Layout = layout!((4,2):(1,10) o (4,4):(1,1));

fn main() {
    let _ = BAD;
}
