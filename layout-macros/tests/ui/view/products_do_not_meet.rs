use tilewright::TiledMma;
use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::types::{Extents, Registers, TypedView};
use tilewright::space::{F16, F32};
use tilewright::typed::C;

type Held<E, M, N> = TypedView<E, Registers, Extents<(M, N)>>;

fn multiply(
    k: &mut Kernel,
    mma: &TiledMma,
    a: &Held<F16, C<64>, C<32>>,
    b: &Held<F16, C<64>, C<16>>,
    sums: &Held<F32, C<64>, C<64>>,
) {
    let _ = sums.add_product(k, mma, a, b);
}

fn main() {}
