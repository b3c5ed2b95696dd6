use tilewright::space::{At, Byte, Element, F16, Lane, Static, StaticMap, SwizzleOf, Then};
use tilewright::typed::{C, Layout};

type Rows = Static<Lane, Element<F16>, Layout<C<32>, C<64>>>;
type Address = Then<Rows, SwizzleOf<Byte, 3, 4, 3>>;

fn main() {
    let _ = Address::apply(At::new(3));
}
