//! Constant expressions (PTX ISA, sections 4.5.4 to 4.5.6).
//!
//! Integers are 64 bits, signed or not, as in C; floats are double precision. The parser is the usual one by precedence: each
//! binary operator has a level, and [`Parser::level`] reads operands that bind tighter than the one it was called for. Example:
//! `1 + 2 * 3 << 1` is `(1 + (2 * 3)) << 1`, 14. One level of recursion goes with each parenthesis or operator level, so nesting is
//! limited to [`MAX_DEPTH`].

use super::{Parser, Result};
use crate::ast::OperandKind;
use crate::error::ParseErrorKind as Kind;
use crate::lexer::Tok;

/// Nested parentheses and unary operators of one expression.
const MAX_DEPTH: u32 = 64;

/// The value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    /// A single-precision literal that stands alone.
    Single(u32),
}

impl Value {
    fn float(self) -> Option<f64> {
        match self {
            Value::Float(x) => Some(x),
            Value::Single(b) => Some(f64::from(f32::from_bits(b))),
            _ => None,
        }
    }

    fn bits(self) -> Option<u64> {
        match self {
            Value::Signed(v) => Some(v as u64),
            Value::Unsigned(v) => Some(v),
            _ => None,
        }
    }
}

/// Binary operators with their characters and precedence; a higher level binds tighter.
const OPERATORS: [(&str, u8); 18] = [
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("==", 6),
    ("!=", 6),
    ("&&", 2),
    ("||", 1),
    ("*", 10),
    ("/", 10),
    ("%", 10),
    ("+", 9),
    ("-", 9),
    ("<", 7),
    (">", 7),
    ("&", 5),
    ("^", 4),
    ("|", 3),
];

impl<'a> Parser<'a> {
    /// A constant expression as an operand: [`OperandKind::Int`], [`OperandKind::F32`] or [`OperandKind::F64`].
    pub(super) fn constant(&mut self) -> Result<OperandKind<'a>> {
        Ok(match self.ternary(0)? {
            Value::Signed(v) => OperandKind::Int(v),
            Value::Unsigned(v) => OperandKind::Int(v as i64),
            Value::Float(x) => OperandKind::F64(x),
            Value::Single(b) => OperandKind::F32(b),
        })
    }

    /// A constant integer expression.
    pub(super) fn constant_int(&mut self) -> Result<i64> {
        let span = self.span();
        match self.ternary(0)?.bits() {
            Some(v) => Ok(v as i64),
            None => Err(span.error(Kind::Unexpected {
                expected: "an integer".to_owned(),
                found: "a float".to_owned(),
            })),
        }
    }

    /// Integer factors: what may stand after the `+` of an address.
    pub(super) fn product(&mut self) -> Result<i64> {
        let span = self.span();
        match self.level(10, 0)?.bits() {
            Some(v) => Ok(v as i64),
            None => Err(span.error(Kind::Unexpected {
                expected: "an integer offset".to_owned(),
                found: "a float".to_owned(),
            })),
        }
    }

    fn ternary(&mut self, depth: u32) -> Result<Value> {
        let condition = self.level(1, depth)?;
        if !self.eat('?') {
            return Ok(condition);
        }
        let yes = self.ternary(self.deeper(depth)?)?;
        self.expect(':')?;
        let no = self.ternary(self.deeper(depth)?)?;
        match condition.bits() {
            Some(0) => Ok(no),
            Some(_) => Ok(yes),
            None => self.unexpected("an integer condition"),
        }
    }

    fn deeper(&self, depth: u32) -> Result<u32> {
        if depth >= MAX_DEPTH {
            return self.unexpected("an expression with less nesting");
        }
        Ok(depth + 1)
    }

    /// The binary operator here, with its precedence and length in tokens.
    fn operator(&self) -> Option<(&'static str, u8)> {
        let punct = |k: usize| match self.tokens.get(self.pos + k).map(|t| t.tok) {
            Some(Tok::Punct(c)) => Some(c),
            _ => None,
        };
        OPERATORS
            .iter()
            .copied()
            .find(|(text, _)| text.chars().enumerate().all(|(k, c)| punct(k) == Some(c)))
    }

    /// Operands joined by operators of precedence `least` and above.
    fn level(&mut self, least: u8, depth: u32) -> Result<Value> {
        let mut left = self.unary(depth)?;
        while let Some((text, level)) = self.operator() {
            if level < least {
                break;
            }
            let span = self.span();
            self.pos += text.len();
            let right = self.level(level + 1, self.deeper(depth)?)?;
            left = binary(text, left, right).map_err(|what| {
                span.error(Kind::OutOfRange(format!(
                    "`{text}` in a constant expression: {what}"
                )))
            })?;
        }
        Ok(left)
    }

    fn unary(&mut self, depth: u32) -> Result<Value> {
        let span = self.span();
        let not_an_integer = |what: &str| {
            span.error(Kind::Unexpected {
                expected: format!("an integer after `{what}`"),
                found: "a float".to_owned(),
            })
        };
        match self.peek() {
            Tok::Punct('+') => {
                self.pos += 1;
                self.unary(self.deeper(depth)?)
            }
            Tok::Punct('-') => {
                self.pos += 1;
                Ok(match self.unary(self.deeper(depth)?)? {
                    Value::Signed(v) => Value::Signed(v.wrapping_neg()),
                    Value::Unsigned(v) => Value::Unsigned(v.wrapping_neg()),
                    Value::Float(x) => Value::Float(-x),
                    Value::Single(b) => Value::Single(b ^ 0x8000_0000),
                })
            }
            Tok::Punct('~') => {
                self.pos += 1;
                let v = self.unary(self.deeper(depth)?)?.bits();
                Ok(Value::Unsigned(!v.ok_or_else(|| not_an_integer("~"))?))
            }
            Tok::Punct('!') => {
                self.pos += 1;
                let v = self.unary(self.deeper(depth)?)?.bits();
                let v = v.ok_or_else(|| not_an_integer("!"))?;
                Ok(Value::Signed(i64::from(v == 0)))
            }
            Tok::Punct('(') => {
                self.pos += 1;
                if let Tok::Dot(cast @ ("s64" | "u64")) = self.peek() {
                    self.pos += 1;
                    self.expect(')')?;
                    let v = self.unary(self.deeper(depth)?)?.bits();
                    let v = v.ok_or_else(|| not_an_integer("(.s64)"))?;
                    return Ok(if cast == "s64" {
                        Value::Signed(v as i64)
                    } else {
                        Value::Unsigned(v)
                    });
                }
                let v = self.ternary(self.deeper(depth)?)?;
                self.expect(')')?;
                Ok(v)
            }
            Tok::Int(v) => {
                self.pos += 1;
                // A literal is signed if it fits.
                Ok(i64::try_from(v).map_or(Value::Unsigned(v), Value::Signed))
            }
            Tok::F32(b) => {
                self.pos += 1;
                Ok(Value::Single(b))
            }
            Tok::F64(x) => {
                self.pos += 1;
                Ok(Value::Float(x))
            }
            Tok::Word("WARP_SZ") => {
                self.pos += 1;
                Ok(Value::Signed(32))
            }
            _ => self.unexpected("a number"),
        }
    }
}

/// `a op b` by the conversions of C: unsigned if one is.
fn binary(op: &str, a: Value, b: Value) -> std::result::Result<Value, &'static str> {
    if let (Some(x), Some(y)) = (a.float(), b.float()) {
        let truth = |t: bool| Ok(Value::Signed(i64::from(t)));
        return match op {
            "+" => Ok(Value::Float(x + y)),
            "-" => Ok(Value::Float(x - y)),
            "*" => Ok(Value::Float(x * y)),
            "/" => Ok(Value::Float(x / y)),
            "<" => truth(x < y),
            ">" => truth(x > y),
            "<=" => truth(x <= y),
            ">=" => truth(x >= y),
            "==" => truth(x.total_cmp(&y).is_eq() || (x == 0.0 && y == 0.0)),
            "!=" => truth(!(x.total_cmp(&y).is_eq() || (x == 0.0 && y == 0.0))),
            _ => Err("it takes integers"),
        };
    }
    let (Some(x), Some(y)) = (a.bits(), b.bits()) else {
        return Err("integers and floats do not mix");
    };
    let (sx, sy) = (x as i64, y as i64);
    let signed = matches!((a, b), (Value::Signed(_), Value::Signed(_)));
    let truth = |t: bool| Ok(Value::Signed(i64::from(t)));
    let number = |v: u64| {
        Ok(if signed {
            Value::Signed(v as i64)
        } else {
            Value::Unsigned(v)
        })
    };
    match op {
        "+" => number(x.wrapping_add(y)),
        "-" => number(x.wrapping_sub(y)),
        "*" => number(x.wrapping_mul(y)),
        "/" | "%" if y == 0 => Err("division by zero"),
        "/" if signed => number(sx.wrapping_div(sy) as u64),
        "/" => number(x / y),
        "%" => Ok(Value::Signed((x % y) as i64)),
        "<<" | ">>" => {
            let n = y.min(64) as u32;
            let shifted = match (op, a) {
                ("<<", _) => x.checked_shl(n).unwrap_or(0),
                (_, Value::Signed(v)) => (v >> n.min(63)) as u64,
                _ => x.checked_shr(n).unwrap_or(0),
            };
            Ok(if matches!(a, Value::Signed(_)) {
                Value::Signed(shifted as i64)
            } else {
                Value::Unsigned(shifted)
            })
        }
        "<" if signed => truth(sx < sy),
        ">" if signed => truth(sx > sy),
        "<=" if signed => truth(sx <= sy),
        ">=" if signed => truth(sx >= sy),
        "<" => truth(x < y),
        ">" => truth(x > y),
        "<=" => truth(x <= y),
        ">=" => truth(x >= y),
        "==" => truth(x == y),
        "!=" => truth(x != y),
        "&" => Ok(Value::Unsigned(x & y)),
        "|" => Ok(Value::Unsigned(x | y)),
        "^" => Ok(Value::Unsigned(x ^ y)),
        "&&" => truth(x != 0 && y != 0),
        _ => truth(x != 0 || y != 0),
    }
}
