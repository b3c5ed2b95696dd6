use tilewright::{Affine, layout};

const BAD: Affine = layout!((4,6):(ld,1) o (2,4):(2,3));

fn main() {
    let _ = BAD;
}
