use tilewright::{Affine, layout};

const BAD: Affine = layout!((2,2,2,2,2):(a,b,c,d,e));

fn main() {
    let _ = BAD;
}
