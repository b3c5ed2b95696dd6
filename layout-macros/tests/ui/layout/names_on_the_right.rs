use tilewright::{Affine, layout};

const BAD: Affine = layout!((8,64):(64,1) o (8,4):(ld,1));

fn main() {
    let _ = BAD;
}
