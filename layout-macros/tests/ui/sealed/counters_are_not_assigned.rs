use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Kernel};
use tilewright::codegen::value::U32;
use tilewright::codegen::view::ViewError;

fn main() {
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 100);
    let body = |k: &mut Kernel, i: Expr| {
        i.set(k, 0);
        U32::index(k, i).set(k, 0);
        k.set(i, 0);
        Ok::<(), ViewError>(())
    };
    k.for_loop("i", 0, 1, n, body).unwrap();
    k.thread().set(&mut k, 0);
    k.block_index(Axis::X, 10).set(&mut k, 0);
    n.set(&mut k, 0);
}
