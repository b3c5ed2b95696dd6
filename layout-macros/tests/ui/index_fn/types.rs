tilewright::index_fn! {
    fn too_narrow(row: u32, col: u32) -> u32 = (8,64):(4294967296,1);
    fn negative(i: u32) -> u32 = 4:-1;
    fn no_integer(i: f32) -> u32 = 4:1;
    fn no_type(i) -> u32 = 4:1;
    fn no_result(i: u32) = 4:1;
    fn small(i: i32 in 0..5000000000) -> i64 = 4:1;
}

fn main() {}
