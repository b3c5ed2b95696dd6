use tilewright::typed::{C, Layout, LogicalDivide, check};

const _: () = check::<LogicalDivide<Layout<C<10>, C<1>>, C<4>>>();

fn main() {}
