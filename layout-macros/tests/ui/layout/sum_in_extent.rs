use tilewright::{Layout, layout};

const BAD: Layout = layout!((4+4,6):(8,1));

fn main() {
    let _ = BAD;
}
