use tilewright::typed::{C, Layout, check};

const _: () = check::<Layout<(C<4>, C<6>), C<1>>>();

fn main() {}
