use tilewright::typed::{C, Layout, check};

fn main() {
    const { check::<Layout<(C<8>, i64), (C<1>, C<8>)>>() }
}
