//! `ptx_index!`: PTX snippets from layouts.

use layout_codegen::index::Target;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Result};

use crate::index_signature::Signature;

pub(crate) fn expand(signature: &Signature) -> TokenStream {
    match text(signature) {
        Ok(text) => quote!(#text),
        // A string all the same, so that what takes it is no error too.
        Err(error) => {
            let error = error.to_compile_error();
            quote!({ #error "" })
        }
    }
}

fn text(signature: &Signature) -> Result<String> {
    let program = signature.program()?;
    program
        .text(Target::Ptx)
        .map_err(|e| -> Error { signature.refusal(&e) })
}
