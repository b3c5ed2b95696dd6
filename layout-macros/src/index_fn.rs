//! `index_fn!`: Rust functions from layouts.

use layout_codegen::index::targets::wrapped_item;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, FnArg, ItemFn, Pat, Result, Token, Type, Visibility};

use crate::index_signature::Signature;

/// `pub fn name(…) -> … = layout;`
struct IndexFn {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
}

/// Any number of functions.
pub(crate) struct IndexFns(Vec<IndexFn>);

impl Parse for IndexFns {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut all = Vec::new();
        while !input.is_empty() {
            let attributes = input.call(Attribute::parse_outer)?;
            let visibility = input.parse()?;
            if input.peek(Token![const]) {
                input.parse::<Token![const]>()?;
            }
            input.parse::<Token![fn]>()?;
            let signature = input.parse()?;
            all.push(IndexFn {
                attributes,
                visibility,
                signature,
            });
            if !input.is_empty() {
                input.parse::<Token![;]>()?;
            }
        }
        Ok(Self(all))
    }
}

pub(crate) fn expand(functions: &IndexFns) -> TokenStream {
    functions
        .0
        .iter()
        .map(|f| match f.item() {
            Ok(item) => item.into_token_stream(),
            Err(error) => f.fallback(&error),
        })
        .collect()
}

impl IndexFn {
    fn types(&self) -> Result<(Vec<Type>, Type)> {
        let signature = &self.signature;
        let mut types = Vec::new();
        for p in &signature.parameters {
            let missing = || Error::new_spanned(&p.name, "say the type of this parameter");
            types.push(p.ty.clone().ok_or_else(missing)?);
        }
        let missing =
            || Error::new_spanned(&signature.name, "say the type of the result: `-> u32`");
        Ok((types, signature.result.clone().ok_or_else(missing)?))
    }

    fn item(&self) -> Result<ItemFn> {
        let signature = &self.signature;
        let (types, result) = self.types()?;
        let program = signature.program()?;
        // The program has its coordinates first; the user's order may be another.
        let position = |name: &str| signature.parameters.iter().position(|p| p.name == name);
        let own: Vec<Type> = program
            .parameters()
            .iter()
            .filter_map(|p| Some(types[position(&p.name)?].clone()))
            .collect();
        let mut item = wrapped_item(&program, &own, &result).map_err(|e| signature.refusal(&e))?;
        let mut inputs: Vec<FnArg> = item.sig.inputs.into_iter().collect();
        inputs.sort_by_key(|input| match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(p) => position(&p.ident.to_string()),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        });
        item.sig.inputs = inputs.into_iter().collect();
        item.sig.ident = signature.name.clone();
        item.vis = self.visibility.clone();
        item.attrs.splice(0..0, self.attributes.iter().cloned());
        Ok(item)
    }

    /// The error, and a function of the same type, so that its callers are not errors too.
    fn fallback(&self, error: &Error) -> TokenStream {
        let error = error.to_compile_error();
        let Ok((types, result)) = self.types() else {
            return error;
        };
        let names = self.signature.parameters.iter().map(|p| &p.name);
        let (visibility, name) = (&self.visibility, &self.signature.name);
        let names: Vec<_> = names.collect();
        let twice = (1..names.len()).any(|i| names[..i].contains(&names[i]));
        if twice {
            return error;
        }
        quote! {
            #error
            #[allow(unused_variables)]
            #visibility const fn #name(#(#names: #types),*) -> #result {
                panic!("this index function has an error")
            }
        }
    }
}
