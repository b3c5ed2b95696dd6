use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!((6,8):(9,1) o Sw<3,4,3> o (8,64):(64,1));

fn main() {
    let _ = BAD;
}
