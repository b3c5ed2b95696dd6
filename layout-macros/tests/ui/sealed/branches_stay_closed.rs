use tilewright::codegen::ir::{Cmp, Kernel};
use tilewright::codegen::value::Predicate;

fn main() {
    let mut k = Kernel::new("k", 32);
    let (n, zero) = (k.size("n", 100), k.constant(0));
    let p = Predicate::of(&mut k, n, Cmp::Gt, zero);
    k.begin_if(p, true);
    k.end_if();
    let i = k.open_loop("i", 0, 1, 100);
    k.close_loop(&i, n);
}
