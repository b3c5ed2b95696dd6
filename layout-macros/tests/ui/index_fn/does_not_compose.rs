tilewright::index_fn!(fn f(i: u32) -> u32 = (4,6):(1,10) o 4:3;);

fn main() {
    // The function is there all the same: one mistake, one error.
    f(0);
}
