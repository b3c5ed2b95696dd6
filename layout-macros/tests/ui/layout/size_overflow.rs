use tilewright::{Layout, layout};

const BAD: Layout = layout!((4611686018427387904,4):(1,1));

fn main() {
    let _ = BAD;
}
