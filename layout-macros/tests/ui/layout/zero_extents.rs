use tilewright::{Layout, layout};

const BAD: Layout = layout!((0,(4,-2)):(1,(2,3)));

fn main() {
    let _ = BAD;
}
