//! All errors of one macro call, reported together.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};

/// What an error points at: from the first token to the last.
#[derive(Clone, Copy)]
pub(crate) struct Place(pub(crate) Span, Span);

impl Place {
    /// From the first of `tokens` to the last.
    pub(crate) fn of(tokens: &[TokenTree]) -> Self {
        let first = tokens.first().map_or_else(Span::call_site, TokenTree::span);
        let last = tokens.last().map_or(first, TokenTree::span);
        Self(first, last)
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self(span, span)
    }
}

/// Errors so far. It must be asked for them: dropping it unasked is a bug of the macro, and panics.
pub(crate) struct Errors {
    first: Option<syn::Error>,
    asked: bool,
}

impl Errors {
    pub(crate) fn new() -> Self {
        Self {
            first: None,
            asked: false,
        }
    }

    /// Adds an error at `place`.
    pub(crate) fn at(&mut self, place: impl Into<Place>, message: impl std::fmt::Display) {
        let Place(first, last) = place.into();
        // Tokens that carry the two spans: stable Rust joins them in the error only.
        let ends = [Ident::new("a", first), Ident::new("z", last)];
        let ends: TokenStream = ends.into_iter().map(TokenTree::Ident).collect();
        self.add(syn::Error::new_spanned(ends, message));
    }

    /// Adds an error.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.first {
            Some(first) => first.combine(error),
            None => self.first = Some(error),
        }
    }

    /// Whether there is none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// `value`, or everything that went wrong.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> syn::Result<T> {
        self.asked = true;
        match (self.first.take(), value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            (None, None) => Err(syn::Error::new(
                Span::call_site(),
                "the macro gave up without saying why; please report this",
            )),
        }
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.asked || std::thread::panicking(),
            "errors of a macro were not asked for"
        );
    }
}
