use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(f(3) o 4:3);

fn main() {
    let _ = BAD;
}
