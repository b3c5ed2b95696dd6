//! A layout written as tokens: its text for the parser, and the way back from a byte of the text to the user's token.
//!
//! `Sw<3,4,3> o (8,64):(ld,1)` is a sequence of Rust tokens. They are joined to the text that the algebra's own parser reads, and
//! each token's bytes are remembered, so that an error of the parser is shown at the token it is about. A string literal is
//! taken as the text itself.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::parse::ParseStream;
use syn::{Error, LitStr, Result, Token};

/// A layout's text with the tokens it comes from.
pub(crate) struct LayoutText {
    pub(crate) text: String,
    tokens: TokenStream,
    pieces: Vec<(std::ops::Range<usize>, Span)>,
}

impl LayoutText {
    /// Everything up to `;`, or to the end.
    pub(crate) fn parse(input: ParseStream) -> Result<Self> {
        let start = input.span();
        let mut tokens = Vec::new();
        while !input.is_empty() && !input.peek(Token![;]) {
            tokens.push(input.parse::<TokenTree>()?);
        }
        let mut text = Self {
            text: String::new(),
            tokens: tokens.iter().cloned().collect(),
            pieces: Vec::new(),
        };
        if tokens.is_empty() {
            return Err(Error::new(start, "expected a layout such as (8,64):(64,1)"));
        }
        if let [TokenTree::Literal(one)] = &tokens[..]
            && let Ok(literal) = syn::parse2::<LitStr>(TokenTree::from(one.clone()).into())
        {
            text.text = literal.value();
            text.pieces.push((0..text.text.len(), literal.span()));
            return Ok(text);
        }
        text.extend(tokens);
        Ok(text)
    }

    fn extend(&mut self, tokens: impl IntoIterator<Item = TokenTree>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(open, group.span_open());
                    self.extend(group.stream());
                    self.push(close, group.span_close());
                }
                other => self.push(&other.to_string(), other.span()),
            }
        }
    }

    fn push(&mut self, piece: &str, span: Span) {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if self.text.ends_with(word) && piece.starts_with(word) {
            self.text.push(' ');
        }
        let start = self.text.len();
        self.text.push_str(piece);
        self.pieces.push((start..self.text.len(), span));
    }

    /// An error about the bytes `start..end` of the text: at the tokens they belong to.
    pub(crate) fn error_at(&self, (start, end): (usize, usize), message: &str) -> Error {
        let end = end.max(start + 1);
        let mut met = self
            .pieces
            .iter()
            .filter(|(bytes, _)| bytes.start < end && start < bytes.end)
            .map(|&(_, span)| span);
        match (met.next(), met.next_back()) {
            (Some(first), Some(last)) => Error::new(first.join(last).unwrap_or(first), message),
            (Some(one), None) => Error::new(one, message),
            // Behind the end: at the last token.
            (None, _) => match self.pieces.last() {
                Some(&(_, span)) => Error::new(span, message),
                None => self.error(message),
            },
        }
    }

    /// An error about the word `word`, at the token that it is; about the whole layout if there is none.
    pub(crate) fn error_about(&self, word: &str, message: &str) -> Error {
        let found = self
            .pieces
            .iter()
            .find(|(bytes, _)| self.text.get(bytes.clone()) == Some(word));
        match found {
            Some(&(_, span)) => Error::new(span, message),
            None => self.error(message),
        }
    }

    /// An error about the whole layout.
    pub(crate) fn error(&self, message: &str) -> Error {
        Error::new_spanned(&self.tokens, message)
    }
}
