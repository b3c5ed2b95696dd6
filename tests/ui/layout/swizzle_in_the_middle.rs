use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!((64,8):(1,64) o Sw<3,4,3> o (8,64):(64,1));

fn main() {
    let _ = BAD;
}
