//! Tokens for `layout!` and `shape!`: constants, which `cargo check` evaluates.

use layout_core::{IntTuple, Layout, Swizzle, Swizzled};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use crate::model::{Model, Part};

/// A block with a constant of type `kind` in it.
fn constant(kind: &str, value: &TokenStream) -> TokenStream {
    let kind = Ident::new(kind, Span::call_site());
    quote! {{
        const LAYOUT: ::tilewright::#kind = #value;
        const _: () = { let _ = LAYOUT; };
        LAYOUT
    }}
}

/// The expansion of `layout!`.
pub(crate) fn layout(model: &Model) -> TokenStream {
    match model {
        Model::Plain(layout) => constant("Layout", &plain(layout)),
        Model::Swizzled(layout) => constant("Swizzled", &swizzled(layout)),
        Model::Affine(text) => constant(
            "Affine",
            &quote!(::tilewright::expect_parse(::tilewright::Affine::parse(#text))),
        ),
        Model::SwizzledAffine(text) => constant(
            "SwizzledAffine",
            &quote!(::tilewright::__private::swizzled_affine(#text)),
        ),
        Model::Deferred(parts) => deferred(parts),
    }
}

/// The expansion of `shape!`.
pub(crate) fn shape(shape: &IntTuple) -> TokenStream {
    constant("IntTuple", &tuple(shape))
}

/// An expression for a tuple: building one costs the compiler less than reading the notation.
fn tuple(value: &IntTuple) -> TokenStream {
    if value.is_int() {
        let value = value.leaf(0);
        return quote!(::tilewright::IntTuple::int(#value));
    }
    if value.depth() == 1 {
        let values = (0..value.leaves()).map(|i| value.leaf(i));
        return quote!(::tilewright::expect(::tilewright::IntTuple::flat(&[#(#values),*])));
    }
    let elements = (0..value.rank())
        .filter_map(|i| value.get(i).ok())
        .map(|element| tuple(&element));
    quote!(::tilewright::expect(::tilewright::IntTuple::tuple(&[#(#elements),*])))
}

fn plain(layout: &Layout) -> TokenStream {
    let (shape, stride) = (tuple(&layout.shape()), tuple(&layout.stride()));
    quote!(::tilewright::expect(::tilewright::Layout::new(#shape, #stride)))
}

fn swizzle(swizzle: Swizzle) -> TokenStream {
    let (b, m, s) = (swizzle.b(), swizzle.m(), swizzle.s());
    quote!(::tilewright::expect(::tilewright::Swizzle::new(#b, #m, #s)))
}

/// An expression for a composed layout.
pub(crate) fn swizzled(layout: &Swizzled) -> TokenStream {
    let (offset, plain) = (layout.offset(), plain(&layout.layout()));
    let swizzle = swizzle(layout.swizzle());
    quote!(::tilewright::expect(::tilewright::Swizzled::new(#swizzle, #offset, #plain)))
}

fn deferred(parts: &[Part]) -> TokenStream {
    let Some((last, outer)) = parts.split_last() else {
        return TokenStream::new();
    };
    let mut value = match last {
        Part::Layout(layout) => {
            let layout = plain(layout);
            quote!(::tilewright::Swizzled::plain(#layout))
        }
        Part::Constant(tokens, span) => {
            quote_spanned!(*span=> ::tilewright::__private::LayoutOperand(#tokens).layout())
        }
        // Refused by the model: nothing to swizzle or move.
        Part::Swizzle(_) | Part::Offset(_) => return TokenStream::new(),
    };
    for part in outer.iter().rev() {
        let (operand, span) = match part {
            Part::Offset(offset) => {
                value = quote!(::tilewright::__private::offset(#offset, #value));
                continue;
            }
            Part::Layout(layout) => (plain(layout), Span::call_site()),
            Part::Swizzle(value) => (swizzle(*value), Span::call_site()),
            Part::Constant(tokens, span) => (tokens.clone(), *span),
        };
        value =
            quote_spanned!(span=> ::tilewright::__private::LayoutOperand(#operand).after(#value));
    }
    constant("Swizzled", &value)
}
