//! Procedural macros of Tilewright: they read the notation, have `layout-core` compute and check, and write constants.
//!
//! Every call takes the same way: tokens → [`ast`](self) (what is written, with spans) → model (what it means, checked by
//! the algebra) → expansion. All errors of a call are reported together, each at the token at fault. The macros
//! contain no algebra.
//!
//! Expansions name `::tilewright`, the facade; depend on it rather than on this crate.

mod ast;
mod conflict;
mod errors;
mod expand;
mod index_fn;
mod index_signature;
#[cfg(feature = "kernel")]
mod kernel;
mod layout_text;
mod model;
mod ptx_index;

use proc_macro::TokenStream;

use errors::Errors;
use syn::parse_macro_input;

/// A layout in CuTe's notation, checked by the compiler.
///
/// ```
/// use tilewright::{Affine, Layout, Swizzled, layout};
///
/// const TILE: Layout = layout!((4,(2,2)):(2,(1,8)));
/// assert_eq!(TILE.size(), 16);
///
/// // Swizzles and offsets give a composed layout. Units are those that the layout counts.
/// const SWIZZLED: Swizzled = layout!(Sw<3,4,3> o 16 o (8,64):(64,1));
/// assert_eq!(SWIZZLED.swizzle().b(), 3);
///
/// // `o` composes, exactly; what does not compose does not compile.
/// const ROWS: Layout = layout!((8,8):(8,1) o (4,2):(16,1));
/// assert_eq!(ROWS.to_string(), "(4,2):(2,8)");
///
/// // Constants of your own take part by name or as `{ expression }`; the result is then a `Swizzled`.
/// const PART: Swizzled = layout!(SWIZZLED o (2,4):(1,16));
/// assert_eq!(PART.index(1), SWIZZLED.index(1));
///
/// // Strides known only at run time have names.
/// const GLOBAL: Affine = layout!((8,64):(ld,1));
/// assert_eq!(GLOBAL.bind(&[100]).unwrap().at(&[2, 3]), 203);
/// ```
#[proc_macro]
pub fn layout(input: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let ast = ast::composition(input.into(), &mut errors);
    let model = if errors.is_empty() {
        model::composition(&ast, &mut errors)
    } else {
        // What could be read is checked all the same, for its errors.
        let _ = model::composition(&ast, &mut errors);
        None
    };
    finish(errors, model.map(|model| expand::layout(&model)))
}

/// A nested tuple of extents, checked by the compiler.
///
/// ```
/// use tilewright::{IntTuple, shape};
/// const SHAPE: IntTuple = shape!((4,(2,2)));
/// assert_eq!((SHAPE.rank(), SHAPE.depth()), (2, 2));
/// ```
#[proc_macro]
pub fn shape(input: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let shape = ast::shape(input.into(), &mut errors).and_then(|tree| {
        model::extents(&tree, &mut errors);
        model::int_tuple(&tree, &mut errors)
    });
    finish(errors, shape.map(|shape| expand::shape(&shape)))
}

/// The shared-memory layout of a tile with the fewest total wavefronts of its accesses, derived while compiling.
///
/// Goes on a unit struct. The search runs in the macro. A constant counts the wavefronts of the result again, from the addresses, and the
/// struct implements `typed::StaticLayout`. The documentation of that implementation shows the layout, the wavefronts and
/// the certificate. If nothing is conflict-free, that is a compile error at the access that suffers, unless
/// `allow(wavefronts = n)` says how many wavefronts the worst access may take.
///
/// | option | meaning |
/// |---|---|
/// | `tile = (rows, columns)` | extents of the tile, in elements; rows are contiguous |
/// | `element = bf16` | element type, or its bytes: 1 to 16 |
/// | `write = FORM`, `read = FORM` | an access by name, any number of times |
/// | `access = "OP @ LAYOUT"` | any access: LAYOUT maps the lane to the row-major index (`row * columns + column`) of its first element |
/// | `family = swizzle` | plain, swizzle, permuted, padded, tma, or any (the default) |
/// | `allow(wavefronts = n)` | accept up to n wavefronts an access |
///
/// Forms: `cp_async_16(threads = 128)`, `cp_async_8`, `cp_async_4`, `st_128` … `st_32`, `ld_128` … `ld_32` (threads in row-major order,
/// one vector each), `ldmatrix_x1`, `_x2`, `_x4`, also `_trans`, and `stmatrix_…` (rows of 16 bytes; x4 is a block of 16 rows and 32
/// bytes).
///
/// ```
/// use tilewright::{ConflictFree, typed::StaticLayout};
///
/// #[derive(ConflictFree)]
/// #[conflict_free(tile = (64, 64), element = bf16)]
/// #[conflict_free(write = cp_async_16(threads = 128), read = ldmatrix_x4)]
/// struct A;
///
/// assert_eq!(A::LAYOUT.to_string(), "Sw<3,3,3> o (64,64):(64,1)");
/// assert_eq!(A::WAVEFRONTS, &[("cp.async.16", 4), ("ldmatrix.x4", 4)]);
/// ```
#[proc_macro_derive(ConflictFree, attributes(conflict_free))]
pub fn derive_conflict_free(input: TokenStream) -> TokenStream {
    match syn::parse::<syn::DeriveInput>(input) {
        Ok(input) => conflict::derive(&input).into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// [`macro@ConflictFree`] as an expression: the derived layout, a `Swizzled`.
///
/// ```
/// use tilewright::{Swizzled, conflict_free};
/// const A: Swizzled = conflict_free!(
///     tile = (64, 64), element = f16, write = cp_async_16(threads = 128), read = ldmatrix_x4
/// );
/// assert_eq!(A.to_string(), "Sw<3,3,3> o (64,64):(64,1)");
/// ```
#[proc_macro]
pub fn conflict_free(input: TokenStream) -> TokenStream {
    conflict::expression(input.into()).into()
}

/// The expansion, or all errors, each a `compile_error!` in an expression of no type in particular.
fn finish(errors: Errors, tokens: Option<proc_macro2::TokenStream>) -> TokenStream {
    match errors.finish(tokens) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            let errors = error.into_compile_error();
            quote::quote!({ #errors ::core::unreachable!() }).into()
        }
    }
}

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
/// `kernel!(plan = "sgemm-maxas-128", trans = nn, arch = sm_90)` is a `tilewright::kernels::gemm::CompiledKernel`. The plan's proofs were
/// discharged when the program was compiled: a plan that does not prove does not compile. The program depends on the crate
/// `tilewright`, whose page on index code has an example.
#[cfg(feature = "kernel")]
#[proc_macro]
pub fn kernel(input: TokenStream) -> TokenStream {
    let spec = parse_macro_input!(input as kernel::KernelSpec);
    kernel::expand(&spec).into()
}
