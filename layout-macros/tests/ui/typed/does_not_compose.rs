use tilewright::typed::{C, Compose, Layout, check};

type A = Layout<(C<4>, C<6>), (C<1>, C<10>)>;

const _: () = check::<Compose<A, Layout<C<4>, C<3>>>>();

fn main() {}
