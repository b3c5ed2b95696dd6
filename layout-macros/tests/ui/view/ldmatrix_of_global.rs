use tilewright::TiledCopy;
use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::types::{Extents, Global, TypedView};
use tilewright::space::F16;
use tilewright::typed::C;

fn load(k: &mut Kernel, copy: &TiledCopy, x: &TypedView<F16, Global, Extents<(C<16>, C<16>)>>) {
    let thread = k.thread();
    let _ = x.load_matrices(k, copy, thread);
}

fn main() {}
