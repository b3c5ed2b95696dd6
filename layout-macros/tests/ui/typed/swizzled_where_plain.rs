use tilewright::typed::{C, Compose, Layout, RightInverse, Swizzle, check};

type Tile = Compose<Swizzle<3, 3, 3>, Layout<(C<8>, C<64>), (C<64>, C<1>)>>;

const _: () = check::<RightInverse<Tile>>();

fn main() {}
