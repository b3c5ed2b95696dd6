//! The options as written: `tile = (64, 64), element = bf16, write = cp_async_16(threads = 128), allow(wavefronts = 8)`.

use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Ident, LitInt, LitStr, Token, parenthesized};

use crate::errors::Errors;

/// Everything that was given, each with its place.
#[derive(Default)]
pub(super) struct Options {
    pub(super) tile: Option<(i64, i64, Span)>,
    pub(super) element: Option<(i64, Span)>,
    pub(super) accesses: Vec<AccessOption>,
    pub(super) family: Option<(String, Span)>,
    pub(super) allow: Option<(u32, Span)>,
}

/// Which way an access moves data, as far as the user said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Write,
    Read,
    Either,
}

/// One access.
pub(super) struct AccessOption {
    pub(super) direction: Direction,
    pub(super) form: Form,
    pub(super) span: Span,
}

/// How the access is described.
pub(super) enum Form {
    /// `cp_async_16(threads = 128)`.
    Named { name: String, threads: Option<i64> },
    /// `"ldmatrix.x4 @ (16,2):(64,8)"`.
    General(String),
}

/// One option.
enum Choice {
    Tile(i64, i64),
    Element(i64),
    Access(AccessOption),
    Family(String),
    Allow(u32),
}

const KEYS: &str = "tile, element, write, read, access, family, allow";

impl Parse for Choice {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        let name = key.to_string();
        match name.as_str() {
            "tile" => {
                input.parse::<Token![=]>()?;
                let inner;
                parenthesized!(inner in input);
                let rows = inner.parse::<LitInt>()?.base10_parse()?;
                inner.parse::<Token![,]>()?;
                let cols = inner.parse::<LitInt>()?.base10_parse()?;
                if inner.is_empty() {
                    Ok(Self::Tile(rows, cols))
                } else {
                    Err(inner.error("a tile has two extents: `tile = (rows, columns)`"))
                }
            }
            "element" => {
                input.parse::<Token![=]>()?;
                if input.peek(LitInt) {
                    let bytes: LitInt = input.parse()?;
                    return Ok(Self::Element(bytes.base10_parse()?));
                }
                let scalar: Ident = input.parse()?;
                match element_bytes(&scalar.to_string()) {
                    Some(bytes) => Ok(Self::Element(bytes)),
                    None => Err(syn::Error::new(
                        scalar.span(),
                        format!(
                            "`{scalar}` is not an element type; write f16, bf16, f32, tf32, f64, s8, u8, e4m3, e5m2, s32, b8 … b128, or its bytes"
                        ),
                    )),
                }
            }
            "write" => access(input, Direction::Write),
            "read" => access(input, Direction::Read),
            "access" => access(input, Direction::Either),
            "family" => {
                input.parse::<Token![=]>()?;
                Ok(Self::Family(input.parse::<Ident>()?.to_string()))
            }
            "allow" => {
                let inner;
                parenthesized!(inner in input);
                let what: Ident = inner.parse()?;
                if what != "wavefronts" {
                    return Err(syn::Error::new(
                        what.span(),
                        "only wavefronts can be allowed: `allow(wavefronts = 8)`",
                    ));
                }
                inner.parse::<Token![=]>()?;
                Ok(Self::Allow(inner.parse::<LitInt>()?.base10_parse()?))
            }
            _ => Err(syn::Error::new(
                key.span(),
                format!("there is no option `{name}`; there are {KEYS}"),
            )),
        }
    }
}

fn access(input: ParseStream, direction: Direction) -> syn::Result<Choice> {
    input.parse::<Token![=]>()?;
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        return Ok(Choice::Access(AccessOption {
            direction,
            form: Form::General(text.value()),
            span: text.span(),
        }));
    }
    let name: Ident = input.parse()?;
    let span = name.span();
    let mut threads = None;
    if input.peek(syn::token::Paren) {
        let inner;
        parenthesized!(inner in input);
        let argument: Ident = inner.parse()?;
        if argument != "threads" {
            return Err(syn::Error::new(
                argument.span(),
                format!("`{name}` takes one argument, `threads = N`"),
            ));
        }
        inner.parse::<Token![=]>()?;
        threads = Some(inner.parse::<LitInt>()?.base10_parse()?);
    }
    Ok(Choice::Access(AccessOption {
        direction,
        form: Form::Named {
            name: name.to_string(),
            threads,
        },
        span,
    }))
}

fn element_bytes(name: &str) -> Option<i64> {
    Some(match name {
        "s8" | "u8" | "e4m3" | "e5m2" | "b8" => 1,
        "f16" | "bf16" | "b16" => 2,
        "f32" | "tf32" | "s32" | "u32" | "b32" => 4,
        "f64" | "b64" => 8,
        "b128" => 16,
        _ => return None,
    })
}

/// Reads one `#[conflict_free(…)]`.
pub(super) fn read_attribute(
    attribute: &syn::Attribute,
    options: &mut Options,
    errors: &mut Errors,
) {
    match &attribute.meta {
        syn::Meta::List(list) => read(list.tokens.clone(), options, errors),
        other => errors.add(syn::Error::new_spanned(
            other,
            "write the options in parentheses: `#[conflict_free(tile = (64, 64), element = f16, …)]`",
        )),
    }
}

/// Reads options separated by commas; an option that cannot be read is reported and left out.
pub(super) fn read(tokens: TokenStream, options: &mut Options, errors: &mut Errors) {
    let tokens: Vec<proc_macro2::TokenTree> = tokens.into_iter().collect();
    for part in tokens.split(
        |token| matches!(token, proc_macro2::TokenTree::Punct(punct) if punct.as_char() == ','),
    ) {
        if part.is_empty() {
            continue;
        }
        let span = part[0].span();
        let stream: TokenStream = part.iter().cloned().collect();
        match Choice::parse.parse2(stream) {
            Ok(choice) => put(choice, span, options, errors),
            Err(error) => errors.add(error),
        }
    }
}

fn put(choice: Choice, span: Span, options: &mut Options, errors: &mut Errors) {
    let twice = match choice {
        Choice::Access(access) => {
            options.accesses.push(access);
            false
        }
        Choice::Tile(rows, cols) => options.tile.replace((rows, cols, span)).is_some(),
        Choice::Element(bytes) => options.element.replace((bytes, span)).is_some(),
        Choice::Family(name) => options.family.replace((name, span)).is_some(),
        Choice::Allow(n) => options.allow.replace((n, span)).is_some(),
    };
    if twice {
        errors.at(span, "this option is given twice");
    }
}
