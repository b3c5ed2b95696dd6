use tilewright::{Layout, layout};

const BAD: Layout = layout!((0,x,3.5):(1,(2,3),4));

fn main() {
    let _ = BAD;
}
