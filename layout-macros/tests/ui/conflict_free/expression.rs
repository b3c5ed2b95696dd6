use tilewright::{Swizzled, conflict_free};

const A: Swizzled = conflict_free!(tile = (64, 64), element = f16, read = ldmatrix_x9);

fn main() {
    let _ = A;
}
