use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(Sw<30,20,30> o (8,64):(64,1));

fn main() {
    let _ = BAD;
}
