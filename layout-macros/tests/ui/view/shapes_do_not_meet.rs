use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::types::{Global, Shared, TypedPartition};
use tilewright::space::F32;
use tilewright::typed::C;

fn copy(
    k: &mut Kernel,
    x: &TypedPartition<F32, Global, (C<64>, C<32>)>,
    y: &TypedPartition<F32, Shared, (C<32>, C<64>)>,
) {
    let _ = x.copy_to(k, y);
}

fn main() {}
