use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(Sw<3,4,3>);

fn main() {
    let _ = BAD;
}
