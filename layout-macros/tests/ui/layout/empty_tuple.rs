use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,()):(1,()));

fn main() {
    let _ = BAD;
}
