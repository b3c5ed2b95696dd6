use tilewright::{Affine, layout};

const BAD: Affine = layout!(Sw<3,4,3> o (8,64):(ld,1));

fn main() {
    let _ = BAD;
}
