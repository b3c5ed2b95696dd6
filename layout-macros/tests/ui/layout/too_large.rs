use tilewright::{Layout, layout};

const BAD: Layout = layout!((8,99999999999999999999):(1,8));

fn main() {
    let _ = BAD;
}
