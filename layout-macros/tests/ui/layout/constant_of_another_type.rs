use tilewright::{Swizzled, layout};

const ROWS: i64 = 4;
const BAD: Swizzled = layout!(ROWS o 4:3);

fn main() {
    let _ = BAD;
}
