use tilewright::{IntTuple, shape};

const BAD: IntTuple = shape!((4,(0,-2)));

fn main() {
    let _ = BAD;
}
