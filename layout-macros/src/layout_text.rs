//! The layout of an index function: written as `layout!` has it, or as a string, strides with names under a swizzle included.
//!
//! The tokens are joined to a text for the index compiler's own reader, which knows `Sw<3,3,3> o (8,64):(ld,1)`. What that does not read
//! is a composition, or wrong: then `layout!`'s reader takes over, so that both macros accept the same and refuse in the same words, at
//! the token at fault.

use layout_codegen::index::IndexLayout;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::parse::ParseStream;
use syn::{Error, LitStr, Result, Token};

use crate::ast;
use crate::errors::Errors;
use crate::model::{self, Model, Part};

/// A layout's text with the tokens it comes from.
pub(crate) struct LayoutText {
    text: String,
    tokens: TokenStream,
    /// The words of the text, for errors about one of them.
    words: Vec<(String, Span)>,
    literal: bool,
}

impl LayoutText {
    /// Everything up to `;`, or to the end.
    pub(crate) fn parse(input: ParseStream) -> Result<Self> {
        let mut tokens = Vec::new();
        while !input.is_empty() && !input.peek(Token![;]) {
            tokens.push(input.parse::<TokenTree>()?);
        }
        if tokens.is_empty() {
            return Err(input.error("expected a layout such as (8,64):(64,1)"));
        }
        let mut text = Self {
            text: String::new(),
            tokens: tokens.iter().cloned().collect(),
            words: Vec::new(),
            literal: false,
        };
        if let [TokenTree::Literal(one)] = &tokens[..]
            && let Ok(literal) = syn::parse2::<LitStr>(TokenTree::from(one.clone()).into())
        {
            text.text = literal.value();
            text.literal = true;
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
                    self.text.push_str(open);
                    self.extend(group.stream());
                    self.text.push_str(close);
                }
                other => {
                    let piece = other.to_string();
                    let word = |c: char| c.is_alphanumeric() || c == '_';
                    if self.text.ends_with(word) && piece.starts_with(word) {
                        self.text.push(' ');
                    }
                    self.text.push_str(&piece);
                    self.words.push((piece, other.span()));
                }
            }
        }
    }

    /// What the text means.
    pub(crate) fn layout(&self) -> Result<IndexLayout> {
        let error = match IndexLayout::parse(&self.text) {
            Ok(layout) => return Ok(layout),
            Err(error) => error,
        };
        if self.literal {
            return Err(self.error(&error.to_string()));
        }
        let mut errors = Errors::new();
        let written = ast::composition(self.tokens.clone(), &mut errors);
        let model = model::composition(&written, &mut errors);
        let model = if errors.is_empty() { model } else { None };
        match errors.finish(model)? {
            Model::Plain(layout) => self.reparse(&layout.to_string()),
            Model::Swizzled(layout) => self.reparse(&layout.to_string()),
            Model::Affine(text) | Model::SwizzledAffine(text) => self.reparse(&text),
            Model::Deferred(parts) => {
                let message = "the value of a constant is not known to a macro. Write the layout out here; or keep the constant in a type, \
                               `impl typed::StaticLayout for Tile { const LAYOUT: Swizzled = layout!(…); }`, and call `Tile::at([row, col])`, \
                               which compiles to the same code without loops";
                let constant = parts.iter().find_map(|part| match part {
                    Part::Constant(_, span) => Some(Error::new(*span, message)),
                    _ => None,
                });
                Err(constant.unwrap_or_else(|| self.error(message)))
            }
        }
    }

    fn reparse(&self, text: &str) -> Result<IndexLayout> {
        IndexLayout::parse(text).map_err(|e| self.error(&e.to_string()))
    }

    /// An error about the word `word`, at the token that it is; about the whole layout if there is none.
    pub(crate) fn error_about(&self, word: &str, message: &str) -> Error {
        match self.words.iter().find(|(w, _)| w == word) {
            Some((_, span)) => Error::new(*span, message),
            None => self.error(message),
        }
    }

    /// An error about the whole layout.
    pub(crate) fn error(&self, message: &str) -> Error {
        Error::new_spanned(&self.tokens, message)
    }
}
