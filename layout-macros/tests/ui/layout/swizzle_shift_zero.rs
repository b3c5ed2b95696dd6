use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(Sw<2,3,0> o (8,64):(64,1));

fn main() {
    let _ = BAD;
}
