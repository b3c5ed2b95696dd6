//! What `index_fn!` and `ptx_index!` have in common: a signature, a layout, and the index function that they ask for.
//!
//! ```text
//! NAME(PARAMETER, …) [-> TYPE] = LAYOUT
//! PARAMETER = NAME [: TYPE] [in FROM..TO]
//! ```
//!
//! Parameters named like a stride of the layout are that stride; the others are the coordinates, in order.

use layout_codegen::index::code::Ty;
use layout_codegen::index::targets::{Program, program};
use layout_codegen::index::{Bound, Coordinate, IndexError, IndexSpec, Stride};
use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::{
    Error, ExprRange, Ident, LitInt, RangeLimits, Result, Token, Type, parenthesized, token,
};

use crate::layout_text::LayoutText;

/// A parameter as the user wrote it.
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) ty: Option<Type>,
    range: Option<Range>,
}

/// `from..to`, ends included.
struct Range {
    lo: i64,
    hi: i64,
    tokens: TokenStream,
}

/// `name(parameters) -> result = layout`.
pub(crate) struct Signature {
    pub(crate) name: Ident,
    parentheses: token::Paren,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) result: Option<Type>,
    pub(crate) layout: LayoutText,
}

impl Parse for Parameter {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        let ty = if input.peek(Token![:]) {
            input.parse::<Token![:]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        let range = if input.peek(Token![in]) {
            input.parse::<Token![in]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        Ok(Self { name, ty, range })
    }
}

impl Parse for Range {
    fn parse(input: ParseStream) -> Result<Self> {
        let range: ExprRange = input.parse()?;
        let tokens = quote::quote!(#range);
        let integer = |e: &syn::Expr| -> Result<i64> {
            let wrong = || Error::new_spanned(e, "expected an integer of at most 64 bits");
            let (negative, e) = match e {
                syn::Expr::Unary(u) if matches!(u.op, syn::UnOp::Neg(_)) => (true, &*u.expr),
                _ => (false, e),
            };
            let literal: LitInt = syn::parse2(quote::quote!(#e)).map_err(|_| wrong())?;
            let value: i128 = literal.base10_parse()?;
            i64::try_from(if negative { -value } else { value }).map_err(|_| wrong())
        };
        let lo = range.start.as_deref().map_or(Ok(0), integer)?;
        let Some(end) = range.end.as_deref() else {
            return Err(Error::new_spanned(
                &tokens,
                "expected an end, such as 0..128",
            ));
        };
        let hi = integer(end)?;
        let hi = match range.limits {
            RangeLimits::Closed(_) => hi,
            RangeLimits::HalfOpen(_) => hi.saturating_sub(1),
        };
        Ok(Self { lo, hi, tokens })
    }
}

impl Parse for Signature {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        let inside;
        let parentheses = parenthesized!(inside in input);
        let parameters = inside.parse_terminated(Parameter::parse, Token![,])?;
        let result = if input.peek(Token![->]) {
            input.parse::<Token![->]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        input.parse::<Token![=]>()?;
        Ok(Self {
            name,
            parentheses,
            parameters: parameters.into_iter().collect(),
            result,
            layout: LayoutText::parse(input)?,
        })
    }
}

/// The machine type of a Rust type; `usize` is computed in 64 bits.
pub(crate) fn machine_type(ty: &Type) -> Result<Ty> {
    let name = quote::quote!(#ty).to_string();
    match name.as_str() {
        "usize" => Ok(Ty::U64),
        other => Ty::named(other).ok_or_else(|| {
            Error::new_spanned(ty, "index functions compute in u32, i32, u64, i64 or usize")
        }),
    }
}

impl Signature {
    /// The straight-line code that the signature asks for.
    pub(crate) fn program(&self) -> Result<Program> {
        let layout = self.layout.layout()?;
        let affine = layout.layout.layout();
        let strides: Vec<String> = (0..affine.parameters())
            .filter_map(|p| affine.parameter(p).ok())
            .map(|p| p.as_str().to_owned())
            .collect();
        for stride in &strides {
            if self.parameters.iter().all(|p| p.name != stride) {
                let message = format!(
                    "the stride `{stride}` is no parameter of `{}`; add it",
                    self.name
                );
                return Err(self.layout.error_about(stride, &message));
            }
        }
        let mut spec = IndexSpec::new(&self.name.to_string(), layout);
        spec.coordinates.clear();
        for p in &self.parameters {
            let name = p.name.to_string();
            let ty = p.ty.as_ref().map(machine_type).transpose()?;
            if strides.contains(&name) {
                if let Some(range) = &p.range {
                    spec.strides.push(Stride {
                        name,
                        lo: range.lo,
                        hi: range.hi,
                        ty,
                    });
                } else if let Some(ty) = ty.filter(|&ty| ty != Ty::U32) {
                    // What an unlimited stride of this type may be; 64-bit ones up to what 32 bits hold.
                    let (lo, hi) = ty.range();
                    let (lo, hi) = (lo.max(i32::MIN.into()), hi.min(u32::MAX.into()));
                    spec.strides.push(Stride {
                        name,
                        lo: if ty == Ty::S32 { 0 } else { lo.max(0) as i64 },
                        hi: hi as i64,
                        ty: Some(ty),
                    });
                }
                continue;
            }
            let bound = match &p.range {
                None => Bound::Extent,
                Some(range) if range.lo >= 0 && range.hi >= range.lo => Bound::UpTo(range.hi),
                Some(range) => {
                    return Err(Error::new_spanned(
                        &range.tokens,
                        "a coordinate's range starts at 0 or above and is not empty",
                    ));
                }
            };
            spec.coordinates.push(Coordinate { name, bound, ty });
        }
        spec.result = self.result.as_ref().map(machine_type).transpose()?;
        program(&spec).map_err(|e| self.refusal(&e))
    }

    /// `error` at the token that it is about.
    pub(crate) fn refusal(&self, error: &IndexError) -> Error {
        let message = error.to_string();
        let named = |name: &str| self.parameters.iter().find(|p| p.name == name);
        match error {
            IndexError::Coordinates { .. } => Error::new(self.parameters_span(), message),
            IndexError::DoesNotFit { name, .. } if self.name == name => match &self.result {
                Some(ty) => Error::new_spanned(ty, message),
                None => Error::new_spanned(&self.name, message),
            },
            IndexError::Range { name, .. }
            | IndexError::DoesNotFit { name, .. }
            | IndexError::Name { name, .. }
            | IndexError::Unknown { name, .. } => match named(name) {
                Some(Parameter {
                    range: Some(range), ..
                }) if !matches!(error, IndexError::Name { .. }) => {
                    Error::new_spanned(&range.tokens, message)
                }
                // A name used twice is wrong where it is used again.
                Some(_) => {
                    let last = self.parameters.iter().rfind(|p| p.name == name);
                    Error::new_spanned(last.map_or(&self.name, |p| &p.name), message)
                }
                None => Error::new_spanned(&self.name, message),
            },
            _ => self.layout.error(&message),
        }
    }

    fn parameters_span(&self) -> Span {
        self.parentheses.span.join()
    }
}
