use tilewright::{Layout, layout};

const BAD: Layout = layout!();

fn main() {
    let _ = BAD;
}
