use tilewright::{Swizzled, layout};

const BAD: Swizzled = layout!(Sw<1,0,2> o Sw<1,0,1> o 8:1);

fn main() {
    let _ = BAD;
}
