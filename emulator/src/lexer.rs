//! Text to tokens (PTX ISA, sections 4.1 to 4.5).
//!
//! PTX has few token kinds. The one liberty taken here: a dot and the word after it are one token ([`Tok::Dot`]), `::` joined
//! words included, so that `ld.shared::cta.v4.f32` is a word and three dotted words, and `.reg` is a dotted word as well. `%tid.x`
//! is a word and the dotted word `x`. Decimal numbers with a point are floats; `0f3f800000` and `0d…` are floats by their bits.

use crate::error::{ParseError, ParseErrorKind};

/// A place in the text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Span {
    /// The error `kind` at this place.
    pub(crate) fn error(self, kind: ParseErrorKind) -> ParseError {
        ParseError {
            line: self.line,
            column: self.column,
            kind,
        }
    }
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tok<'a> {
    /// `abc`, `%r1`, `$L__1`, `_`.
    Word(&'a str),
    /// `.abc`, `.L2::128B`; the text is without the first dot.
    Dot(&'a str),
    /// An integer literal as 64 bits.
    Int(u64),
    /// A single-precision literal by its bits (`0f…`).
    F32(u32),
    /// A double-precision literal (`0d…` or decimal).
    F64(f64),
    /// A string, without its quotes.
    Str(&'a str),
    /// Any other character of the grammar.
    Punct(char),
    /// The end of the text.
    End,
}

impl Tok<'_> {
    /// The token as an error message shows it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Tok::Word(w) => format!("`{w}`"),
            Tok::Dot(w) => format!("`.{w}`"),
            Tok::Int(v) => format!("`{v}`"),
            Tok::F32(b) => format!("`0f{b:08x}`"),
            Tok::F64(v) => format!("`{v}`"),
            Tok::Str(s) => format!("\"{s}\""),
            Tok::Punct(c) => format!("`{c}`"),
            Tok::End => "the end of the text".to_owned(),
        }
    }
}

/// A token and where it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) tok: Tok<'a>,
    pub(crate) span: Span,
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$'
}

/// All tokens of `text`, closed by one [`Tok::End`].
pub(crate) fn lex(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let b = text.as_bytes();
    let mut out = Vec::with_capacity(text.len() / 3);
    let (mut i, mut line, mut line_start) = (0usize, 1u32, 0usize);
    // Columns count characters; `counted` is the last place counted up to, so that a long line costs no more than its length.
    let (mut counted, mut counted_columns) = (0usize, 0u32);
    let at = |k: usize| b.get(k).copied().unwrap_or(0);
    while i < b.len() {
        let c = b[i];
        if c == b'\n' {
            line += 1;
            i += 1;
            line_start = i;
            continue;
        }
        if c.is_ascii_whitespace() || c == 0x0b {
            i += 1;
            continue;
        }
        if counted < line_start {
            (counted, counted_columns) = (line_start, 0);
        }
        counted_columns += b[counted..i].iter().filter(|&&c| c & 0xc0 != 0x80).count() as u32;
        counted = i;
        let column = counted_columns + 1;
        let span = Span { line, column };
        let tok = match c {
            b'/' if at(i + 1) == b'/' => {
                while i < b.len() && b[i] != b'\n' {
                    i += 1;
                }
                continue;
            }
            b'/' if at(i + 1) == b'*' => {
                i += 2;
                loop {
                    if i >= b.len() {
                        return Err(span.error(ParseErrorKind::Unterminated("the comment")));
                    }
                    if b[i] == b'*' && at(i + 1) == b'/' {
                        i += 2;
                        break;
                    }
                    if b[i] == b'\n' {
                        line += 1;
                        line_start = i + 1;
                    }
                    i += 1;
                }
                continue;
            }
            b'"' => {
                let start = i + 1;
                i = start;
                while i < b.len() && b[i] != b'"' && b[i] != b'\n' {
                    i += 1;
                }
                if at(i) != b'"' {
                    return Err(span.error(ParseErrorKind::Unterminated("the string")));
                }
                i += 1;
                Tok::Str(&text[start..i - 1])
            }
            b'.' if is_word(at(i + 1)) => {
                let start = i + 1;
                i = start;
                while is_word(at(i)) || (at(i) == b':' && at(i + 1) == b':' && is_word(at(i + 2))) {
                    i += if at(i) == b':' { 2 } else { 1 };
                }
                Tok::Dot(&text[start..i])
            }
            b'0'..=b'9' => {
                let start = i;
                while is_word(at(i)) {
                    i += 1;
                }
                let mut float = false;
                if at(i) == b'.'
                    && at(i + 1).is_ascii_digit()
                    && text[start..i].bytes().all(|c| c.is_ascii_digit())
                {
                    float = true;
                    i += 1;
                    while is_word(at(i)) {
                        i += 1;
                    }
                }
                let hexadecimal = matches!(
                    text.get(start..start + 2),
                    Some("0x" | "0X" | "0f" | "0F" | "0d" | "0D")
                );
                let mantissa_ends = matches!(at(i - 1), b'e' | b'E');
                if !hexadecimal && mantissa_ends && matches!(at(i), b'+' | b'-') {
                    float = true;
                    i += 1;
                    while is_word(at(i)) {
                        i += 1;
                    }
                }
                let word = &text[start..i];
                number(word, float || (!hexadecimal && word.contains(['e', 'E'])))
                    .ok_or_else(|| span.error(ParseErrorKind::BadLiteral(word.to_owned())))?
            }
            _ if is_word(c) || (c == b'%' && is_word(at(i + 1))) => {
                let start = i;
                i += 1;
                while is_word(at(i)) {
                    i += 1;
                }
                Tok::Word(&text[start..i])
            }
            b',' | b';' | b':' | b'[' | b']' | b'{' | b'}' | b'(' | b')' | b'<' | b'>' | b'+'
            | b'-' | b'@' | b'!' | b'|' | b'=' | b'*' | b'/' | b'~' | b'&' | b'^' | b'%' | b'?'
            | b'.' | b'#' => {
                i += 1;
                Tok::Punct(char::from(c))
            }
            _ => {
                let c = text
                    .get(i..)
                    .and_then(|s| s.chars().next())
                    .unwrap_or('\u{fffd}');
                return Err(span.error(ParseErrorKind::BadCharacter(c)));
            }
        };
        out.push(Token { tok, span });
    }
    let column = b[line_start..]
        .iter()
        .filter(|&&c| c & 0xc0 != 0x80)
        .count() as u32
        + 1;
    let span = Span { line, column };
    out.push(Token {
        tok: Tok::End,
        span,
    });
    Ok(out)
}

/// A literal: decimal, `0x`, `0b`, octal, each with an optional `U`; `0f`, `0d`; decimal floats.
fn number(word: &str, float: bool) -> Option<Tok<'static>> {
    let lower = word.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0f") {
        return (hex.len() == 8)
            .then(|| u32::from_str_radix(hex, 16).ok())
            .flatten()
            .map(Tok::F32);
    }
    if let Some(hex) = lower.strip_prefix("0d") {
        let bits = (hex.len() == 16)
            .then(|| u64::from_str_radix(hex, 16).ok())
            .flatten();
        return bits.map(|v| Tok::F64(f64::from_bits(v)));
    }
    if float {
        return lower.parse::<f64>().ok().map(Tok::F64);
    }
    let digits = lower.strip_suffix('u').unwrap_or(&lower);
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(bin) = digits.strip_prefix("0b") {
        u64::from_str_radix(bin, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    // `from_str_radix` takes a sign; a literal has none.
    if digits.contains(['+', '-']) {
        None
    } else {
        value.ok().map(Tok::Int)
    }
}
