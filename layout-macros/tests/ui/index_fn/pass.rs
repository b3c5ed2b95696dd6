#![deny(warnings)]

use tilewright::{index_fn, ptx_index};

index_fn! {
    /// A swizzled tile.
    pub fn tile(row: u32, col: u32) -> u32 = Sw<3,3,3> o (8,64):(64,1);
    // Parameters in the caller's order, strides by name, `usize` as the caller likes it.
    fn matrix(ld: usize in 1..65536, row: usize, col: usize) -> usize = (128,128):(ld,1);
    const fn swizzled(row: u32, col: u32, ld: u32) -> u64 = Sw<3,3,3> o 16 o (8,64):(2*ld+8,1);
    // What composes with `layout!` composes here.
    pub(crate) fn part(i: u32) -> u32 = (8,8):(8,1) o (4,2):(16,1);
    fn downward(i: i64) -> i64 = "(5,3):(-1,-7)";
    fn runs_on(row: u32, col: u64 in 0..1000) -> u64 = (4,8):(1,4);
    fn nothing(i: u32) -> u32 = 8:0
}

const FIRST: u32 = tile(1, 0);
const SNIPPET: &str = ptx_index!(offset(row, col: u64) = (32,32):(33,1));

fn main() {
    assert_eq!(FIRST, 64 + 8);
    assert_eq!(matrix(1000, 2, 5), 2005);
    let y: u64 = 16 + 3 * (2 * 100 + 8) + 9;
    assert_eq!(swizzled(3, 9, 100), y ^ ((y >> 3) & 0b11_1000));
    assert_eq!(part(5), 2 + 8);
    assert_eq!(downward(6), -8);
    assert_eq!(runs_on(1, 999), 3997);
    assert_eq!(nothing(3), 0);
    assert!(SNIPPET.contains("%offset"));
}
