//! `#[derive(ConflictFree)]` and `conflict_free!`: options → patterns and search → a verified constant.

mod ast;
mod expand;
mod model;

use proc_macro2::{Span, TokenStream};
use quote::quote;

use crate::errors::Errors;

/// The expansion of the derive macro.
pub(crate) fn derive(input: &syn::DeriveInput) -> TokenStream {
    let mut errors = Errors::new();
    let name = &input.ident;
    let unit =
        matches!(&input.data, syn::Data::Struct(data) if matches!(data.fields, syn::Fields::Unit));
    if !unit {
        errors.at(
            name.span(),
            "ConflictFree is derived for a unit struct: `struct Name;`",
        );
    }
    if !input.generics.params.is_empty() {
        errors.at(
            name.span(),
            "ConflictFree is derived for a struct without generic parameters: the layout is one constant",
        );
    }
    let mut options = ast::Options::default();
    for attribute in &input.attrs {
        if attribute.path().is_ident("conflict_free") {
            ast::read_attribute(attribute, &mut options, &mut errors);
        }
    }
    let found = model::derive(&options, name.span(), &mut errors);
    match errors.finish(found) {
        Ok(found) => expand::implementation(input, &found),
        Err(error) => {
            let errors = error.into_compile_error();
            // The struct stays usable, so that one error does not become many.
            let fallback = expand::fallback(input, &options);
            quote!(#errors #fallback)
        }
    }
}

/// The expansion of the expression form.
pub(crate) fn expression(input: TokenStream) -> TokenStream {
    let mut errors = Errors::new();
    let mut options = ast::Options::default();
    ast::read(input, &mut options, &mut errors);
    let found = model::derive(&options, Span::call_site(), &mut errors);
    match errors.finish(found) {
        Ok(found) => expand::expression(&found),
        Err(error) => {
            let errors = error.into_compile_error();
            quote!({ #errors ::core::unreachable!() })
        }
    }
}
