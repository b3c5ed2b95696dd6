//! Procedural macros of Tilewright.

mod index_fn;
mod index_signature;
mod kernel;
mod layout_text;
mod ptx_index;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Rust functions from layouts.
///
/// Each function is `[pub] fn NAME(PARAMETER, …) -> TYPE = LAYOUT;`, with attributes and comments as on any function. Parameters named
/// like a stride of the layout are that stride; the others are the coordinates in order: one for each top-level mode, or a
/// single linear one. Types are `u32`, `i32`, `u64`, `i64` and `usize`. The result is a `const fn` that needs no library, contains no
/// division, and has the layout in its documentation.
///
/// A coordinate lies below its extent unless a range says otherwise: `col: u32 in 0..4096` lets the last leaf run on. A stride is any
/// `u32` unless a range says otherwise; if the result's type is narrower than that needs, the stride is limited to what fits, and the
/// documentation says to what. Ranges are checked where debug assertions are on.
///
/// ```
/// use layout_macros::index_fn;
///
/// index_fn! {
///     /// Element of the swizzled tile.
///     pub fn tile(row: u32, col: u32) -> u32 = Sw<3,3,3> o (8,64):(64,1);
///     fn matrix(row: usize, col: usize, ld: usize in 1..65536) -> usize = (128,128):(ld,1);
/// }
///
/// const FIRST: u32 = tile(1, 0);
/// assert_eq!(FIRST, 72);
/// assert_eq!(matrix(2, 5, 1000), 2005);
/// ```
#[proc_macro]
pub fn index_fn(input: TokenStream) -> TokenStream {
    let functions = parse_macro_input!(input as index_fn::IndexFns);
    index_fn::expand(&functions).into()
}

/// A PTX snippet from a layout, as a `&'static str`.
///
/// `RESULT(COORDINATE, …) = LAYOUT`, where types and ranges may follow the names as in [`index_fn!`]. The snippet reads the registers
/// `%COORDINATE`, writes `%RESULT`, and declares what it needs in between in a block of its own. 32-bit values are in `.b32` registers,
/// 64-bit ones in `.b64`; the comment in the snippet says which.
///
/// ```
/// use layout_macros::ptx_index;
///
/// const OFFSET: &str = ptx_index!(offset(row, col) = (32,32):(33,1));
/// assert!(OFFSET.contains("mad.lo.s32 %offset, %row, 33, %col;"));
/// ```
#[proc_macro]
pub fn ptx_index(input: TokenStream) -> TokenStream {
    let signature = parse_macro_input!(input as index_signature::Signature);
    ptx_index::expand(&signature).into()
}

/// A complete GEMM kernel as a constant: PTX text, entry, block, parameter layout, and the grid as a `const fn` of m and n.
///
/// `kernel!(plan = "sgemm-maxas-128", trans = nn, arch = sm_90)` is a `tilewright::codegen::plan::CompiledKernel`. The plan's proofs were
/// discharged when the program was compiled: a plan that does not prove does not compile. The program depends on the crate
/// `tilewright`, whose page on index code has an example.
#[proc_macro]
pub fn kernel(input: TokenStream) -> TokenStream {
    let spec = parse_macro_input!(input as kernel::KernelSpec);
    kernel::expand(&spec).into()
}
