use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::types::{Global, Shared, TypedPartition};
use tilewright::space::{F16, F32};
use tilewright::typed::C;

type Tile = (C<64>, C<32>);

fn copy(k: &mut Kernel, x: &TypedPartition<F32, Global, Tile>, y: &TypedPartition<F16, Shared, Tile>) {
    let _ = x.copy_to(k, y);
}

fn main() {}
