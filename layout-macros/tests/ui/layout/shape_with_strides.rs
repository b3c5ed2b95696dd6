use tilewright::{IntTuple, shape};

const BAD: IntTuple = shape!((4,8):(8,1));

fn main() {
    let _ = BAD;
}
