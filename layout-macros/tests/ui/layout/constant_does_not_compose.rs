use tilewright::{Swizzled, layout};

const ROWS: tilewright::Layout = layout!((4,6):(1,10));
const BAD: Swizzled = layout!(ROWS o 4:3);

fn main() {
    let _ = BAD;
}
