//! Text to tokens, each with its bytes.

use super::error::{EvalError, Span};
use super::triton;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `12`, or CuTe's static `_12`. Signs are operators.
    Int(i64),
    /// `9223372036854775808`, which only its negative makes fit.
    MinMagnitude,
    /// A name, `o` included.
    Name(&'a str),
    /// `_` alone.
    Hole,
    /// A pointer that CuTe prints in front of a layout, `smem_ptr[16b](unset)`: the bits of its element.
    Pointer(i64),
    /// An attribute or type as Triton prints it, from its `#`, `!` or `tensor` to its last `>`.
    Triton(&'a str),
    /// An operator or parenthesis.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// Two-byte symbols before the one-byte symbols that they start with.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "(", ")", ",", ":", ";", "=", "<", ">", "+", "-", "*", "/", "%", "∘",
    "@", "^", "[", "]", "{", "}",
];

/// Namespaces and modules that other libraries' names are written with; they say nothing that the name does not.
const NAMESPACES: [&str; 6] = [
    "cute::",
    "cutlass::",
    "cutlass.cute.",
    "cute.",
    "pycute.",
    "ct.",
];

/// All tokens of a text; the last is [`Token::End`].
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token<'_>, Span)>, EvalError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len().min(64));
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        let token = if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if let Some(space) = NAMESPACES.iter().find(|s| text[at..].starts_with(**s)) {
            at += space.len();
            continue;
        } else if let Some(length) = triton::extent(&text[at..]) {
            at += length;
            Token::Triton(&text[start..at])
        } else if let Some((length, bits)) = pointer(&text[at..]) {
            at += length;
            Token::Pointer(bits)
        } else if byte.is_ascii_digit() {
            at = run(bytes, at, u8::is_ascii_digit);
            int(&text[start..at], (start, at))?
        } else if byte == b'_' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            at = run(bytes, at + 1, u8::is_ascii_digit);
            int(&text[start + 1..at], (start, at))?
        } else if text[at..].starts_with("_-") && bytes.get(at + 2).is_some_and(u8::is_ascii_digit)
        {
            // CuTe's static `_-3`: what is left is a sign and an integer.
            at += 2;
            Token::Symbol("-")
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            // Dots belong to names of instructions: ldmatrix.x4.
            at = run(bytes, at, |b| {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')
            });
            if at == start + 1 && byte == b'_' {
                Token::Hole
            } else {
                Token::Name(&text[start..at])
            }
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| text[at..].starts_with(**s)) {
            at += symbol.len();
            Token::Symbol(symbol)
        } else {
            let c = text[at..].chars().next().unwrap_or('?');
            let span = (at, at + c.len_utf8());
            if c == '?' {
                return Err(EvalError::syntax(
                    "'?' is a value known at run time only: write the integer, or a name in place of a stride",
                    span,
                ));
            }
            return Err(EvalError::syntax(
                // What is seen is shown as it is; what is not, by its number.
                if c.is_control() {
                    format!("unexpected character '{}'", c.escape_default())
                } else {
                    format!("unexpected character '{c}'")
                },
                span,
            ));
        };
        tokens.push((token, (start, at)));
    }
    tokens.push((Token::End, (text.len(), text.len())));
    Ok(tokens)
}

/// `smem_ptr[16b](unset)` at the start of `text`: its bytes and the bits of the element.
fn pointer(text: &str) -> Option<(usize, i64)> {
    let name = text.strip_prefix('_').unwrap_or(text);
    let rest = ["smem_ptr[", "gmem_ptr[", "rmem_ptr[", "tmem_ptr[", "ptr["]
        .iter()
        .find_map(|start| name.strip_prefix(start))?;
    let (bits, rest) = rest.split_once("b]")?;
    let bits = bits.parse().ok().filter(|bits| (1..=128).contains(bits))?;
    let (_, rest) = rest.strip_prefix('(')?.split_once(')')?;
    Some((text.len() - rest.len(), bits))
}

/// The end of the run of bytes that satisfy `accept`.
fn run(bytes: &[u8], from: usize, accept: impl Fn(&u8) -> bool) -> usize {
    bytes[from..]
        .iter()
        .position(|b| !accept(b))
        .map_or(bytes.len(), |n| from + n)
}

fn int(digits: &str, span: Span) -> Result<Token<'static>, EvalError> {
    match digits.parse::<u64>() {
        Ok(value) if i64::try_from(value).is_ok() => Ok(Token::Int(value as i64)),
        Ok(value) if value == i64::MIN.unsigned_abs() => Ok(Token::MinMagnitude),
        _ => Err(EvalError::new(
            "integer_too_large",
            "the integer does not fit in 64 bits",
            span,
        )),
    }
}
