use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(16 o 3 o 8:1);

fn main() {
    let _ = BAD;
}
