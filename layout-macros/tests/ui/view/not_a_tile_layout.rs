use tilewright::codegen::ir::Kernel;
use tilewright::space::F32;
use tilewright::typed::{C, Coalesce, Layout};

fn main() {
    let mut k = Kernel::new("k", 32);
    let _ = k.typed_shared::<F32, Coalesce<Layout<C<64>, C<1>>>>("tile");
}
