//! Reading CuTe's notation, in one pass over bytes and in `const fn`.
//!
//! ```text
//! tuple    = int | "(" tuple { "," tuple } ")"          4   (4,(2,2))   _4 is CuTe's static 4
//! layout   = tuple ":" tuple                            (4,(2,2)):(2,(1,8))
//! swizzled = { swizzle "o" } [ int "o" ] layout         Sw<3,4,3> o 16 o (8,64):(64,1)
//! swizzle  = ("Sw" | "S" | "Swizzle") "<" int "," int "," int ">"
//! ```
//!
//! Spaces may stand between any two tokens. The capacity ([`MAX_MODES`](crate::MAX_MODES) leaves,
//! [`MAX_DEPTH`](crate::MAX_DEPTH) parentheses) bounds the work on hostile input: reading stops at the first element
//! that does not fit, and otherwise costs one look at each byte.

use core::fmt;

use crate::error::LayoutError;
use crate::int_tuple::{IntTuple, TupleBuilder};
use crate::message::Message;

/// The kind of a parse error.
///
/// ```
/// use layout_core::{Layout, ParseErrorKind};
/// assert_eq!(Layout::parse("4:").unwrap_err().kind, ParseErrorKind::ExpectedTuple);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// An integer or `(` was expected.
    ExpectedTuple,
    /// An integer was expected.
    ExpectedInteger,
    /// An integer that does not fit in 64 bits.
    IntegerTooLarge,
    /// This character was expected.
    Expected(char),
    /// `,` or `)` was expected.
    ExpectedCommaOrClose,
    /// A swizzle was expected.
    ExpectedSwizzle,
    /// An integer or a stride name was expected.
    ExpectedStride,
    /// `-1` was expected, the only power of a swizzle.
    ExpectedInverse,
    /// More operands in one composition than there is room for.
    TooManyOperands {
        /// How many there are at most.
        limit: usize,
    },
    /// The text goes on after the end of the value.
    TrailingText,
    /// The syntax is correct but the value is not valid.
    Layout(LayoutError),
}

/// A text that does not parse, with the span of the offending bytes.
///
/// ```
/// use layout_core::Layout;
/// let error = Layout::parse("(4,x):(1,4)").unwrap_err();
/// assert_eq!((error.span, error.code()), ((3, 4), "syntax"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParseError {
    /// First byte of the offending text and one past its last.
    pub span: (usize, usize),
    /// The kind of error.
    pub kind: ParseErrorKind,
}

impl ParseError {
    /// The error about the bytes `span.0..span.1`.
    ///
    /// ```
    /// use layout_core::{ParseError, ParseErrorKind};
    /// const ERROR: ParseError = ParseError::new((1, 4), ParseErrorKind::TrailingText);
    /// assert_eq!(ERROR.to_string(), "bytes 1..4: the text goes on after the end of the value");
    /// ```
    pub const fn new(span: (usize, usize), kind: ParseErrorKind) -> Self {
        Self { span, kind }
    }

    /// A stable name for programs, in `snake_case`.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("4:1 8").unwrap_err().code(), "trailing_text");
    /// ```
    pub const fn code(&self) -> &'static str {
        match &self.kind {
            ParseErrorKind::ExpectedTuple
            | ParseErrorKind::ExpectedInteger
            | ParseErrorKind::Expected(_)
            | ParseErrorKind::ExpectedCommaOrClose
            | ParseErrorKind::ExpectedSwizzle
            | ParseErrorKind::ExpectedStride
            | ParseErrorKind::ExpectedInverse => "syntax",
            ParseErrorKind::TooManyOperands { .. } => "too_many_operands",
            ParseErrorKind::IntegerTooLarge => "integer_too_large",
            ParseErrorKind::TrailingText => "trailing_text",
            ParseErrorKind::Layout(error) => error.code(),
        }
    }

    /// The message for people, without the span.
    ///
    /// ```
    /// use layout_core::Layout;
    /// assert_eq!(Layout::parse("(4").unwrap_err().message().as_str(), "expected ',' or ')'");
    /// ```
    pub const fn message(&self) -> Message {
        let m = Message::new();
        match &self.kind {
            ParseErrorKind::ExpectedTuple => {
                m.text("expected an integer or a tuple such as (4,(2,2))")
            }
            ParseErrorKind::ExpectedInteger => m.text("expected an integer"),
            ParseErrorKind::IntegerTooLarge => m.text("the integer does not fit in 64 bits"),
            ParseErrorKind::Expected(c) => {
                let mut bytes = [0; 4];
                m.text("expected '")
                    .text(c.encode_utf8(&mut bytes))
                    .text("'")
            }
            ParseErrorKind::ExpectedCommaOrClose => m.text("expected ',' or ')'"),
            ParseErrorKind::ExpectedSwizzle => m.text("expected a swizzle such as Sw<3,4,3>"),
            ParseErrorKind::ExpectedStride => {
                m.text("expected an integer or a stride name such as ld or 2*ld")
            }
            ParseErrorKind::ExpectedInverse => {
                m.text("expected -1: Sw<B,M,S>^-1, the inverse, is the only power")
            }
            ParseErrorKind::TooManyOperands { limit } => m
                .text("more than ")
                .index(*limit)
                .text(" operands in one composition; compose some of them first"),
            ParseErrorKind::TrailingText => m.text("the text goes on after the end of the value"),
            ParseErrorKind::Layout(error) => error.message(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bytes {}..{}: {}",
            self.span.0,
            self.span.1,
            self.message()
        )
    }
}

impl core::error::Error for ParseError {}

/// The value of a parse result, or a panic with the message: for constants.
///
/// ```
/// use layout_core::{Layout, expect_parse};
/// const TILE: Layout = expect_parse(Layout::parse("(8,64):(64,1)"));
/// assert_eq!(TILE.size(), 512);
/// ```
///
/// # Panics
///
/// When the result is an error.
#[track_caller]
pub const fn expect_parse<T: Copy>(result: Result<T, ParseError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!(
            "{}",
            Message::new()
                .text("at byte ")
                .index(error.span.0)
                .text(": ")
                .text(error.message().as_str())
                .as_str()
        ),
    }
}

/// A position in a text.
#[derive(Clone, Copy)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Skips spaces and returns the next byte without taking it; 0 at the end.
    pub(crate) const fn peek(&mut self) -> u8 {
        while self.at < self.bytes.len() && self.bytes[self.at].is_ascii_whitespace() {
            self.at += 1;
        }
        self.here(0)
    }

    /// The byte `ahead` bytes from here; 0 at the end.
    const fn here(&self, ahead: usize) -> u8 {
        if self.at + ahead < self.bytes.len() {
            self.bytes[self.at + ahead]
        } else {
            0
        }
    }

    /// Takes `byte` if it is next.
    pub(crate) const fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte && self.at < self.bytes.len();
        if found {
            self.at += 1;
        }
        found
    }

    /// Takes `word` if it is next and no letter follows.
    pub(crate) const fn word(&mut self, word: &[u8]) -> bool {
        self.peek();
        let mut i = 0;
        while i < word.len() {
            if self.here(i) != word[i] {
                return false;
            }
            i += 1;
        }
        if self.here(i).is_ascii_alphanumeric() {
            return false;
        }
        self.at += i;
        true
    }

    /// Takes letters, digits and `_`.
    pub(crate) const fn identifier(&mut self) -> &[u8] {
        self.peek();
        let start = self.at;
        while self.here(0).is_ascii_alphanumeric() || self.here(0) == b'_' {
            self.at += 1;
        }
        self.bytes.split_at(self.at).0.split_at(start).1
    }

    /// Takes `byte` or fails.
    pub(crate) const fn require(&mut self, byte: u8) -> Result<(), ParseError> {
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.error(ParseErrorKind::Expected(byte as char)))
        }
    }

    /// Fails unless only spaces are left.
    pub(crate) const fn end(&mut self) -> Result<(), ParseError> {
        self.peek();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(ParseError {
                span: (self.at, self.bytes.len()),
                kind: ParseErrorKind::TrailingText,
            })
        }
    }

    /// An error about the byte here.
    pub(crate) const fn error(&self, kind: ParseErrorKind) -> ParseError {
        let end = if self.at < self.bytes.len() {
            self.at + 1
        } else {
            self.at
        };
        ParseError {
            span: (self.at, end),
            kind,
        }
    }

    /// An error about the text since `start`, without the spaces at its end.
    pub(crate) const fn error_since(&self, start: usize, error: LayoutError) -> ParseError {
        let mut end = self.at;
        while end > start && self.bytes[end - 1].is_ascii_whitespace() {
            end -= 1;
        }
        ParseError {
            span: (start, end),
            kind: ParseErrorKind::Layout(error),
        }
    }

    /// Whether an integer starts here.
    pub(crate) const fn at_integer(&mut self) -> bool {
        let byte = self.peek();
        byte.is_ascii_digit()
            || (matches!(byte, b'-' | b'+' | b'_') && self.here(1).is_ascii_digit())
    }

    /// `-12`, `12`, or CuTe's `_12`.
    pub(crate) const fn integer(&mut self) -> Result<i64, ParseError> {
        if !self.at_integer() {
            return Err(self.error(ParseErrorKind::ExpectedInteger));
        }
        let start = self.at;
        let negative = self.here(0) == b'-';
        if !self.here(0).is_ascii_digit() {
            self.at += 1;
        }
        let mut value = 0i64;
        let mut fits = true;
        while self.here(0).is_ascii_digit() {
            let digit = (self.here(0) - b'0') as i64;
            self.at += 1;
            if fits {
                let next = match value.checked_mul(10) {
                    Some(tens) if negative => tens.checked_sub(digit),
                    Some(tens) => tens.checked_add(digit),
                    None => None,
                };
                match next {
                    Some(next) => value = next,
                    None => fits = false,
                }
            }
        }
        if fits {
            Ok(value)
        } else {
            Err(ParseError {
                span: (start, self.at),
                kind: ParseErrorKind::IntegerTooLarge,
            })
        }
    }

    /// A nested tuple of integers.
    pub(crate) const fn tuple(&mut self) -> Result<IntTuple, ParseError> {
        match self.tree(false) {
            Ok((tuple, _)) => Ok(tuple),
            Err(error) => Err(error),
        }
    }

    /// A nested tuple of integers and `_`; bit `i` says that leaf `i` is `_`.
    pub(crate) const fn tuple_with_holes(&mut self) -> Result<(IntTuple, u32), ParseError> {
        self.tree(true)
    }

    const fn tree(&mut self, holes: bool) -> Result<(IntTuple, u32), ParseError> {
        let mut open = 0u32;
        let mut leaves = 0;
        let mut builder = TupleBuilder::new();
        let mut depth = 0usize;
        self.peek();
        let start = self.at;
        loop {
            while self.take(b'(') {
                depth += 1;
                builder.open();
                if let Some(error) = builder.error() {
                    return Err(self.error_since(start, error));
                }
            }
            if self.at_integer() {
                match self.integer() {
                    Ok(value) => builder.leaf(value),
                    Err(error) => return Err(error),
                }
            } else if holes && self.take(b'_') {
                builder.leaf(0);
                open |= if leaves < u32::BITS { 1 << leaves } else { 0 };
            } else {
                let empty = self.peek() == b')' && depth > 0 && self.bytes[self.at - 1] == b'(';
                return Err(self.error(if empty {
                    ParseErrorKind::Layout(LayoutError::EmptyTuple)
                } else {
                    ParseErrorKind::ExpectedTuple
                }));
            }
            leaves += 1;
            if let Some(error) = builder.error() {
                return Err(self.error_since(start, error));
            }
            while depth > 0 && self.take(b')') {
                depth -= 1;
                builder.close();
            }
            if depth == 0 {
                break;
            }
            if !self.take(b',') {
                return Err(self.error(ParseErrorKind::ExpectedCommaOrClose));
            }
        }
        match builder.finish() {
            Ok(tuple) => Ok((tuple, open)),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}
