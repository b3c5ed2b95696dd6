use tilewright::typed::{C, Layout, LogicalDivide, check};

fn main() {
    const { check::<LogicalDivide<Layout<C<8>, C<1>>, usize>>() }
}
