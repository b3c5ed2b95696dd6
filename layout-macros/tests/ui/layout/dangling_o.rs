use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,64):(64,1) o);

fn main() {
    let _ = BAD;
}
