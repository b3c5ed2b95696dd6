use tilewright::typed::{Compose, Swizzle, check};

fn main() {
    const { check::<Compose<Swizzle<3, 3, 3>, Swizzle<2, 3, 3>>>() }
}
