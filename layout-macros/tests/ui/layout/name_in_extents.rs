use tilewright::{Affine, layout};

const BAD: Affine = layout!((m,64):(64,1));

fn main() {
    let _ = BAD;
}
