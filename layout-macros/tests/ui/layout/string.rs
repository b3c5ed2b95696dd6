use tilewright::{Layout, layout};

const BAD: Layout = layout!(("8",64):(64,1));

fn main() {
    let _ = BAD;
}
