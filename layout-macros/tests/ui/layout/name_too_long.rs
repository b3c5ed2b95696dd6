use tilewright::{Affine, layout};

const BAD: Affine = layout!((8,64):(leading_dimension,1));

fn main() {
    let _ = BAD;
}
