use tilewright::codegen::ir::Kernel;
use tilewright::typed::{C, Layout};

fn main() {
    let mut k = Kernel::new("k", 32);
    let _ = k.typed_shared::<f32, Layout<C<64>, C<1>>>("tile");
}
