//! `printf`: a format and a lane's arguments become text.
//!
//! A format is read at each call, since memory may have changed, and parsed where its text is not what it was. Each conversion is written straight to the
//! end of what has been printed and filled up there to its width. Example: `%05d` of -7 appends `-7` and inserts three zeros behind the sign.

use std::io::Write;
use std::ops::Range;

use super::decimal;
use super::view::{Nowhere, View};

/// Largest width and precision.
const MAX_WIDTH: usize = 4096;

/// Formats that are kept.
const MAX_FORMATS: usize = 64;

/// A parsed format.
#[derive(Debug)]
pub(super) struct Format {
    address: u64,
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A part of the text as it is, and the conversion behind it.
#[derive(Debug)]
struct Piece {
    literal: Range<usize>,
    spec: Option<Spec>,
}

/// The formats that have been used, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Formats {
    known: Vec<Format>,
    /// What was read last.
    text: Vec<u8>,
}

impl Formats {
    /// The format at `address`.
    pub(super) fn get(&mut self, view: &mut View<'_>, address: u64) -> Result<&Format, Nowhere> {
        self.text.clear();
        view.string(address, &mut self.text)?;
        let known = self.known.iter().position(|f| f.address == address);
        let at = known.unwrap_or_else(|| {
            if self.known.len() >= MAX_FORMATS {
                self.known.clear();
            }
            self.known.push(Format {
                address,
                text: Vec::new(),
                pieces: Vec::new(),
            });
            self.known.len() - 1
        });
        let format = &mut self.known[at];
        if format.text != self.text {
            format.text.clone_from(&self.text);
            format.pieces = pieces(&format.text);
        }
        Ok(format)
    }
}

/// The pieces of a format.
fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let percent = text[start..].iter().position(|c| *c == b'%');
        let end = percent.map_or(text.len(), |n| start + n);
        let (spec, rest) = match text.get(end + 1..) {
            Some(behind) => {
                let (spec, rest) = Spec::parse(behind);
                (Some(spec), rest.len())
            }
            None => (None, 0),
        };
        let literal = start..end;
        pieces.push(Piece { literal, spec });
        start = text.len() - rest;
    }
    pieces
}

/// Appends what `format` prints. Arguments lie one after the other from `args` on, each aligned to its size of 4 or 8 bytes.
pub(super) fn print(
    format: &Format,
    (strings, numbers): (&mut View<'_>, &mut View<'_>),
    args: u64,
    out: &mut Vec<u8>,
) -> Result<(), Nowhere> {
    let mut at = args;
    let mut next = |bytes: u64| -> Result<u64, Nowhere> {
        let from = at.checked_next_multiple_of(bytes).ok_or(Nowhere)?;
        at = from.wrapping_add(bytes);
        numbers.number(from, bytes)
    };
    for piece in &format.pieces {
        out.extend_from_slice(&format.text[piece.literal.clone()]);
        let Some(spec) = &piece.spec else {
            continue;
        };
        let width = match spec.width {
            Some(Number::Given(n)) => n as i32,
            Some(Number::Argument) => next(4)? as u32 as i32,
            None => 0,
        };
        let precision = match spec.precision {
            Some(Number::Given(n)) => Some(n),
            Some(Number::Argument) => usize::try_from(next(4)? as u32 as i32).ok(),
            None => None,
        };
        let size = if spec.long { 8 } else { 4 };
        let start = out.len();
        match spec.conversion {
            b'%' => out.push(b'%'),
            b'd' | b'i' => {
                let v = next(size)?;
                let v = if spec.long {
                    v as i64
                } else {
                    i64::from(v as u32 as i32)
                };
                integer(out, v.unsigned_abs(), v < 0, precision, spec);
            }
            b'u' | b'x' | b'X' | b'o' => integer(out, next(size)?, false, precision, spec),
            b'p' => {
                out.extend_from_slice(b"0x");
                decimal::integer::<16>(out, next(8)?);
            }
            b'c' => out.push(next(4)? as u8),
            b's' => {
                strings.string(next(8)?, out)?;
                out.truncate(start.saturating_add(precision.unwrap_or(usize::MAX)));
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                float(out, f64::from_bits(next(8)?), precision, spec);
            }
            other => out.extend_from_slice(&[b'%', other]),
        }
        pad(out, start, width, spec);
    }
    Ok(())
}

/// A width or precision.
#[derive(Debug, Clone, Copy)]
enum Number {
    Given(usize),
    Argument,
}

/// `%-08.3lld` and the like.
#[allow(clippy::struct_excessive_bools)] // the flags of printf
#[derive(Debug, Clone, Copy)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: Option<Number>,
    precision: Option<Number>,
    long: bool,
    conversion: u8,
}

impl Spec {
    /// Reads what follows a `%`.
    fn parse(mut text: &[u8]) -> (Self, &[u8]) {
        let mut spec = Self {
            left: false,
            zero: false,
            plus: false,
            space: false,
            alternate: false,
            width: None,
            precision: None,
            long: false,
            conversion: b'%',
        };
        while let Some((&c, tail)) = text.split_first() {
            match c {
                b'-' => spec.left = true,
                b'0' => spec.zero = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                _ => break,
            }
            text = tail;
        }
        (spec.width, text) = number(text);
        if let Some((b'.', tail)) = text.split_first() {
            (spec.precision, text) = number(tail);
            spec.precision = spec.precision.or(Some(Number::Given(0)));
        }
        while let Some((&c, tail)) = text.split_first() {
            match c {
                b'l' | b'j' | b'z' | b't' => spec.long = true,
                b'h' | b'L' => {}
                _ => {
                    spec.conversion = c;
                    return (spec, tail);
                }
            }
            text = tail;
        }
        (spec, text)
    }
}

fn number(text: &[u8]) -> (Option<Number>, &[u8]) {
    if let Some((b'*', tail)) = text.split_first() {
        return (Some(Number::Argument), tail);
    }
    let digits = text.iter().take_while(|c| c.is_ascii_digit()).count();
    if digits == 0 {
        return (None, text);
    }
    let value = text[..digits]
        .iter()
        .fold(0usize, |n, c| (n * 10 + usize::from(c - b'0')).min(4096));
    (Some(Number::Given(value)), &text[digits..])
}

fn sign(negative: bool, spec: &Spec) -> &'static [u8] {
    match (negative, spec.plus, spec.space) {
        (true, ..) => b"-",
        (_, true, _) => b"+",
        (_, _, true) => b" ",
        _ => b"",
    }
}

/// Appends an integer of magnitude `value`.
fn integer(out: &mut Vec<u8>, value: u64, negative: bool, precision: Option<usize>, spec: &Spec) {
    if matches!(spec.conversion, b'd' | b'i') {
        out.extend_from_slice(sign(negative, spec));
    }
    match spec.conversion {
        b'x' if spec.alternate && value != 0 => out.extend_from_slice(b"0x"),
        b'X' if spec.alternate && value != 0 => out.extend_from_slice(b"0X"),
        b'o' if spec.alternate => out.push(b'0'),
        _ => {}
    }
    let least = precision.unwrap_or(1).min(MAX_WIDTH);
    let start = out.len();
    match spec.conversion {
        _ if least == 0 && value == 0 => {}
        b'x' => decimal::integer::<16>(out, value),
        b'X' => {
            decimal::integer::<16>(out, value);
            out[start..].make_ascii_uppercase();
        }
        b'o' => decimal::integer::<8>(out, value),
        _ => decimal::integer::<10>(out, value),
    }
    let digits = out.len() - start;
    decimal::insert(out, start, b'0', least.saturating_sub(digits));
}

/// Appends a float by `%f`, `%e`, `%g` or `%a`.
fn float(out: &mut Vec<u8>, x: f64, precision: Option<usize>, spec: &Spec) {
    out.extend_from_slice(sign(x.is_sign_negative() && !x.is_nan(), spec));
    let start = out.len();
    let magnitude = x.abs();
    let p = precision.unwrap_or(6).min(MAX_WIDTH);
    if x.is_nan() {
        out.extend_from_slice(b"nan");
    } else if x.is_infinite() {
        out.extend_from_slice(b"inf");
    } else {
        match spec.conversion.to_ascii_lowercase() {
            b'f' => decimal::fixed(out, magnitude, p),
            b'e' => decimal::exponent(out, magnitude, p),
            b'g' => decimal::general(out, magnitude, p.max(1), spec.alternate),
            _ => hexadecimal(out, magnitude),
        }
    }
    if spec.conversion.is_ascii_uppercase() {
        out[start..].make_ascii_uppercase();
    }
}

/// Appends `0x1.8p+1`.
fn hexadecimal(out: &mut Vec<u8>, x: f64) {
    let bits = x.to_bits();
    let (raw, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (lead, power) = match raw {
        0 if fraction == 0 => (0, 0),
        0 => (0, -1022),
        e => (1, e - 1023),
    };
    let _ = write!(out, "0x{lead}");
    if fraction != 0 {
        let _ = write!(out, ".{fraction:013x}");
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
    let _ = write!(out, "p{power:+}");
}

/// Fills what begins at `start` up to the width; to the right of it if the width is below zero.
fn pad(out: &mut Vec<u8>, start: usize, width: i32, spec: &Spec) {
    let body = &out[start..];
    let missing = (width.unsigned_abs() as usize).min(MAX_WIDTH);
    let missing = missing.saturating_sub(body.len());
    if missing == 0 {
        return;
    }
    let is_digit = |c: &u8| c.is_ascii_hexdigit() || *c == b'.';
    let numeric = !body.contains(&b'n') && body.last().is_some_and(is_digit);
    if spec.left || width < 0 {
        out.resize(out.len() + missing, b' ');
    } else if spec.zero && numeric && !matches!(spec.conversion, b's' | b'c' | b'%') {
        // Zeros go between sign and digits.
        let is_sign = |c: &&u8| matches!(c, b'-' | b'+' | b' ');
        let sign = body.iter().take_while(is_sign).count();
        decimal::insert(out, start + sign, b'0', missing);
    } else {
        decimal::insert(out, start, b' ', missing);
    }
}
