use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::types::{Registers, Shared, TypedPartition};
use tilewright::space::F32;
use tilewright::typed::C;

fn copy(k: &mut Kernel, x: &TypedPartition<F32, Registers, C<64>>, y: &TypedPartition<F32, Shared, C<64>>) {
    let _ = x.copy_to(k, y);
}

fn main() {}
