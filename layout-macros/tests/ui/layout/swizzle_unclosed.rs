use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(Sw<3,4,3 o (8,64):(64,1));

fn main() {
    let _ = BAD;
}
