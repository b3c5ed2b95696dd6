//! The Rust function as tokens, for macros: its text, parsed.
//!
//! ```
//! use layout_codegen::index::IndexSpec;
//! use layout_codegen::index::targets::{item, program};
//!
//! let spec = IndexSpec::parse("offset", "(32,32):(33,1)")?.named(&["row", "col"]);
//! assert_eq!(item(&program(&spec)?)?.sig.inputs.len(), 2);
//! # Ok::<(), layout_codegen::index::IndexError>(())
//! ```

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{FnArg, ItemFn, ReturnType, Type, parse_quote};

use super::program::Program;
use super::rust;
use crate::index::spec::IndexError;

/// The function as an item: `pub const fn name(…) -> …`.
///
/// # Errors
///
/// [`IndexError::Name`] for keywords and other words that are no names.
pub fn item(program: &Program) -> Result<ItemFn, IndexError> {
    // Names are all that the text has from outside.
    syn::parse_str(&rust::text(program)?).map_err(|_| IndexError::Name {
        name: program.name.clone(),
        reason: "is no name in Rust",
    })
}

/// The function as an item whose signature has types of the caller's choosing, `usize` for one: the parameters are cast to their types
/// in the program, and the result from its.
///
/// # Errors
///
/// As [`item`].
pub fn wrapped_item(
    program: &Program,
    parameters: &[Type],
    result: &Type,
) -> Result<ItemFn, IndexError> {
    let inner = item(program)?;
    let output: ReturnType = parse_quote!(-> #result);
    let (mut names, mut own) = (Vec::new(), Vec::new());
    for input in &inner.sig.inputs {
        if let FnArg::Typed(typed) = input {
            names.push(&typed.pat);
            own.push(&*typed.ty);
        }
    }
    // By their text: comparing syntax trees is a feature of syn that takes longer to compile than this crate.
    let text = |tokens: &dyn ToTokens| tokens.to_token_stream().to_string();
    let same = own
        .iter()
        .map(|ty| text(ty))
        .eq(parameters.iter().map(|ty| text(ty)));
    if same && text(&inner.sig.output) == text(&output) {
        return Ok(inner);
    }
    let (attrs, name) = (&inner.attrs, &inner.sig.ident);
    let (inputs, narrow, block) = (&inner.sig.inputs, &inner.sig.output, &inner.block);
    Ok(parse_quote! {
        #(#attrs)*
        pub const fn #name(#(#names: #parameters),*) #output {
            #[inline]
            const fn narrow(#inputs) #narrow #block
            narrow(#(#names as #own),*) as #result
        }
    })
}

impl Program {
    /// The Rust function as tokens: what macros expand to.
    ///
    /// # Errors
    ///
    /// As [`item`].
    pub fn rust_tokens(&self) -> Result<TokenStream, IndexError> {
        Ok(item(self)?.into_token_stream())
    }
}
