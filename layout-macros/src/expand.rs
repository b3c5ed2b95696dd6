//! Tokens for `layout!` and `shape!`: constants, which `cargo check` evaluates.

use layout_core::IntTuple;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::model::{Model, Part};

/// A `const` block with a constant of type `kind` in it.
fn constant(kind: &TokenStream, value: &TokenStream) -> TokenStream {
    quote! {{
        const LAYOUT: #kind = #value;
        const _: () = { let _ = LAYOUT; };
        LAYOUT
    }}
}

/// The expansion of `layout!`.
pub(crate) fn layout(model: &Model) -> TokenStream {
    match model {
        Model::Known { kind, text } => parsed(kind, text),
        Model::Deferred(parts) => deferred(parts),
    }
}

/// The expansion of `shape!`.
pub(crate) fn shape(shape: &IntTuple) -> TokenStream {
    parsed("IntTuple", &shape.to_string())
}

/// A value read from the notation, in a constant.
fn parsed(kind: &str, text: &str) -> TokenStream {
    let kind = Ident::new(kind, Span::call_site());
    constant(
        &quote!(::tilewright::#kind),
        &quote!(::tilewright::expect_parse(::tilewright::#kind::parse(#text))),
    )
}

fn deferred(parts: &[Part]) -> TokenStream {
    let Some((last, outer)) = parts.split_last() else {
        return TokenStream::new();
    };
    let mut value = match last {
        Part::Layout(text) => {
            quote!(::tilewright::expect_parse(::tilewright::Swizzled::parse(#text)))
        }
        Part::Constant(tokens, span) => {
            quote_spanned!(*span=> ::tilewright::__private::LayoutOperand(#tokens).layout())
        }
        // Refused by the model: nothing to swizzle or move.
        Part::Swizzle(_) | Part::Offset(_) => return TokenStream::new(),
    };
    for part in outer.iter().rev() {
        let function = match part {
            Part::Offset(offset) => {
                value = quote!(::tilewright::__private::offset(#offset, #value));
                continue;
            }
            Part::Layout(text) => {
                quote!(::tilewright::typed::Function::Layout(
                    ::tilewright::expect_parse(::tilewright::Swizzled::parse(#text))
                ))
            }
            Part::Swizzle(swizzle) => {
                let (b, m, s) = (swizzle.b(), swizzle.m(), swizzle.s());
                quote!(::tilewright::typed::Function::Swizzle(
                    ::tilewright::expect(::tilewright::Swizzle::new(#b, #m, #s))
                ))
            }
            Part::Constant(tokens, span) => {
                quote_spanned!(*span=> ::tilewright::__private::LayoutOperand(#tokens).function())
            }
        };
        value = quote!(::tilewright::__private::compose(#function, #value));
    }
    constant(&quote!(::tilewright::Swizzled), &value)
}
