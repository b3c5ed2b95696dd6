use tilewright::{IntTuple, shape};

const BAD: IntTuple = shape!();

fn main() {
    let _ = BAD;
}
