use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!((8,64):(64,1) o Sw<3,4,3>);

fn main() {
    let _ = BAD;
}
