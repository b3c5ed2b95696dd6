tilewright::index_fn! {
    fn empty(i: u32 in 4..4) -> u32 = 4:1;
    fn below(i: u32 in -1..4) -> u32 = 4:1;
    fn stride(i: u32, ld: u32 in 9..3) -> u32 = 4:ld;
}

fn main() {}
