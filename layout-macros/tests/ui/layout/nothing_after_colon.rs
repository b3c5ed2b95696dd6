use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,64):);

fn main() {
    let _ = BAD;
}
