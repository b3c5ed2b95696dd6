//! Tokens for a derived layout: the layout itself, and constants that count its wavefronts again.

use layout_core::banks::{Access, Matrices};
use layout_core::derive::Pattern;
use proc_macro2::TokenStream;
use quote::quote;

use super::ast::Options;
use super::model::Found;
use crate::expand::swizzled;

/// The access as a path.
fn access(access: Access) -> TokenStream {
    let matrices = |m: Matrices, trans: bool| {
        let m = match m {
            Matrices::X1 => quote!(X1),
            Matrices::X2 => quote!(X2),
            Matrices::X4 => quote!(X4),
        };
        quote!({ matrices: ::tilewright::banks::Matrices::#m, trans: #trans })
    };
    let variant = match access {
        Access::Ld8 => quote!(Ld8),
        Access::Ld16 => quote!(Ld16),
        Access::Ld32 => quote!(Ld32),
        Access::Ld64 => quote!(Ld64),
        Access::Ld128 => quote!(Ld128),
        Access::St8 => quote!(St8),
        Access::St16 => quote!(St16),
        Access::St32 => quote!(St32),
        Access::St64 => quote!(St64),
        Access::St128 => quote!(St128),
        Access::CpAsync4 => quote!(CpAsync4),
        Access::CpAsync8 => quote!(CpAsync8),
        Access::CpAsync16 => quote!(CpAsync16),
        Access::LdMatrix { matrices: m, trans } => {
            let fields = matrices(m, trans);
            quote!(LdMatrix #fields)
        }
        Access::StMatrix { matrices: m, trans } => {
            let fields = matrices(m, trans);
            quote!(StMatrix #fields)
        }
        Access::Ffma => quote!(Ffma),
    };
    quote!(::tilewright::banks::Access::#variant)
}

fn pattern(pattern: &Pattern) -> TokenStream {
    let access = access(pattern.access);
    let elements = pattern.elements;
    quote!(::tilewright::derive::Pattern { access: #access, elements: [#(#elements),*] })
}

/// Statements that verify `layout`, an expression for a reference.
fn verification(found: &Found, layout: &TokenStream) -> TokenStream {
    let (rows, cols, bytes) = (found.tile.rows, found.tile.cols, found.tile.elem_bytes);
    let accesses = found
        .patterns
        .iter()
        .zip(&found.counts)
        .map(|(p, (_, wavefronts, _))| {
            let p = pattern(p);
            quote!(::tilewright::__private::verify_access(TILE, &#p, #layout, #wavefronts);)
        });
    quote! {
        const TILE: ::tilewright::derive::Tile = ::tilewright::derive::Tile {
            rows: #rows,
            cols: #cols,
            elem_bytes: #bytes,
        };
        ::tilewright::__private::verify_injective(#layout);
        #(#accesses)*
    }
}

/// The text that documentation shows.
fn documentation(found: &Found) -> String {
    let rows: Vec<String> = found
        .counts
        .iter()
        .map(|(access, wavefronts, ideal)| format!("| `{access}` | {wavefronts} | {ideal} |"))
        .collect();
    let rows = rows.join("\n");
    format!(
        "Derived: `{}`, (row, column) to the element offset, for a tile of {}x{} elements of {} bytes ({}).\n\n\
         | access | wavefronts | without conflicts |\n|---|---|---|\n{rows}\n\n\
         Certificate: {}.",
        found.layout,
        found.tile.rows,
        found.tile.cols,
        found.tile.elem_bytes,
        found.family,
        found.certificate
    )
}

/// The implementation of `StaticLayout` and the constants that go with it.
pub(super) fn implementation(input: &syn::DeriveInput, found: &Found) -> TokenStream {
    let (name, vis) = (&input.ident, &input.vis);
    let layout = swizzled(&found.layout);
    let verification = verification(found, &quote!(LAYOUT));
    let documentation = documentation(found);
    let certificate = &found.certificate;
    let bytes = found.tile.elem_bytes;
    let counts = found.counts.iter().map(|(access, wavefronts, _)| {
        let access = access.name();
        quote!((#access, #wavefronts))
    });
    quote! {
        #[doc = #documentation]
        #[automatically_derived]
        impl ::tilewright::typed::StaticLayout for #name {
            const LAYOUT: ::tilewright::Swizzled = #layout;
        }

        #[automatically_derived]
        impl #name {
            /// Wavefronts of each access, in the order given.
            #vis const WAVEFRONTS: &'static [(&'static str, u32)] = &[#(#counts),*];
            /// Why the layout is the best.
            #vis const CERTIFICATE: &'static str = #certificate;
            /// Bytes of an element.
            #vis const ELEMENT_BYTES: i64 = #bytes;
        }

        const _: () = {
            const LAYOUT: &::tilewright::Swizzled =
                &<#name as ::tilewright::typed::StaticLayout>::LAYOUT;
            #verification
        };
    }
}

/// What stands in for a derivation that failed: a row-major tile, so that uses of the type still compile.
pub(super) fn fallback(input: &syn::DeriveInput, options: &Options) -> TokenStream {
    let (name, vis) = (&input.ident, &input.vis);
    if !input.generics.params.is_empty() {
        return TokenStream::new();
    }
    let (rows, cols) = match options.tile {
        Some((rows, cols, _)) if (1..=4096).contains(&rows) && (1..=4096).contains(&cols) => {
            (rows, cols)
        }
        _ => (1, 1),
    };
    quote! {
        impl ::tilewright::typed::StaticLayout for #name {
            const LAYOUT: ::tilewright::Swizzled = ::tilewright::Swizzled::plain(
                ::tilewright::expect(::tilewright::Layout::row_major(&[#rows, #cols]))
            );
        }
        impl #name {
            #vis const WAVEFRONTS: &'static [(&'static str, u32)] = &[];
            #vis const CERTIFICATE: &'static str = "";
            #vis const ELEMENT_BYTES: i64 = 1;
        }
    }
}

/// The derived layout as a constant expression.
pub(super) fn expression(found: &Found) -> TokenStream {
    let layout = swizzled(&found.layout);
    let verification = verification(found, &quote!(&LAYOUT));
    quote! {{
        const LAYOUT: ::tilewright::Swizzled = #layout;
        const _: () = {
            #verification
        };
        LAYOUT
    }}
}
