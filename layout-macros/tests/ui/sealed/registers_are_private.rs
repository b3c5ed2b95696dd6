use tilewright::codegen::ir::Kernel;
use tilewright::codegen::value::{F32, S32};

fn main() {
    let mut k = Kernel::new("k", 32);
    let (x, i): (F32, S32) = (k.argument("x"), k.argument("i"));
    x.register(&mut k);
    k.push(loop {});
    k.reg(loop {});
    k.pool.var("tid.x", 0, 1, 0);
    x.add(&mut k, i);
}
