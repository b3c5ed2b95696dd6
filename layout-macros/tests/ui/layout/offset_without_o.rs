use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(16 (8,64):(64,1));

fn main() {
    let _ = BAD;
}
