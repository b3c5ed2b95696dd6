use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(16);

fn main() {
    let _ = BAD;
}
