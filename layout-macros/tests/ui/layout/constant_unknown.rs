use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(ROWS o 4:3);

fn main() {
    let _ = BAD;
}
