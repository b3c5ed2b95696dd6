//! Kernel arguments on the command line.
//!
//! ```text
//! u32:5  s32:-1  u64:0x10  s64:…  f32:1.5  f64:1e-3     a number passed by value
//! bytes:0011aabb                                        the bytes of a structure, in hexadecimal
//! buf:ELEMENT:COUNT[:FILL][=OUT]                        a pointer to COUNT elements in global memory
//! buf:ELEMENT:FILE[=OUT]                                a pointer to the raw content of a file
//!
//! ELEMENT  u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64
//! FILL     none (the default: never written, so that reading it shows), zero, iota (0, 1, 2, …), random, random(SEED),
//!          or a number for every element
//! OUT      a file that takes the raw content after the run
//! ```
//!
//! A file named like a number is written `./1024`. Random floating-point elements are uniform in [-1, 1), random integers
//! uniform over their type; the same seed gives the same content everywhere.

use std::path::PathBuf;

use super::element::Element;
use crate::error::CliError;
use crate::output;

/// Bytes that one buffer may have.
const MAX_BYTES: u64 = 1 << 33;

/// An argument as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    /// A number or a structure: the bytes of the parameter and how to name its type.
    Value(Value),
    /// A buffer in global memory, passed by its address.
    Buffer(Buffer),
}

/// An argument passed by value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Unsigned, 32 bits.
    U32(u32),
    /// Signed, 32 bits.
    S32(i32),
    /// Unsigned, 64 bits.
    U64(u64),
    /// Signed, 64 bits.
    S64(i64),
    /// Single precision.
    F32(f32),
    /// Double precision.
    F64(f64),
    /// A structure.
    Bytes(Vec<u8>),
}

/// A buffer in global memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Buffer {
    /// The type of its elements.
    pub(crate) element: Element,
    /// What it holds at first.
    pub(crate) content: Content,
    /// The file that takes its content after the run.
    pub(crate) out: Option<PathBuf>,
}

/// What a buffer holds at first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// So many elements, filled.
    Filled(u64, Fill),
    /// The raw content of a file.
    File(PathBuf),
}

/// How elements are filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fill {
    /// Not at all.
    None,
    /// Every element the same.
    Number(f64),
    /// 0, 1, 2, …
    Iota,
    /// Random, from this seed.
    Random(u64),
}

impl Argument {
    /// Reads one argument.
    pub(crate) fn parse(text: &str) -> Result<Self, CliError> {
        let Some((kind, rest)) = text.split_once(':') else {
            let message = "an argument is TYPE:VALUE, such as u32:5 or buf:f32:1024:zero";
            return Err(refuse(message, text, (0, text.len())));
        };
        let value = (kind.len() + 1, text.len());
        let not = |what: &str| refuse(&format!("`{rest}` is not {what}"), text, value);
        Ok(Self::Value(match kind {
            "u32" => Value::U32(
                unsigned(rest)
                    .and_then(|v| v.try_into().ok())
                    .ok_or_else(|| not("a u32"))?,
            ),
            "s32" | "i32" => Value::S32(
                signed(rest)
                    .and_then(|v| v.try_into().ok())
                    .ok_or_else(|| not("an s32"))?,
            ),
            "u64" => Value::U64(unsigned(rest).ok_or_else(|| not("a u64"))?),
            "s64" | "i64" => Value::S64(signed(rest).ok_or_else(|| not("an s64"))?),
            "f32" => Value::F32(rest.parse().map_err(|_| not("an f32"))?),
            "f64" => Value::F64(rest.parse().map_err(|_| not("an f64"))?),
            "bytes" => {
                Value::Bytes(hexadecimal(rest).ok_or_else(|| not("pairs of hexadecimal digits"))?)
            }
            "buf" => return buffer(text, value.0).map(Self::Buffer),
            _ => {
                let message = format!(
                    "there is no argument type `{kind}`; known are u32 s32 u64 s64 f32 f64 bytes buf"
                );
                return Err(refuse(&message, text, (0, kind.len())));
            }
        }))
    }
}

/// Reads `ELEMENT:…` of a buffer, which begins at byte `start` of `text`.
fn buffer(text: &str, start: usize) -> Result<Buffer, CliError> {
    let (name, rest) = text[start..]
        .split_once(':')
        .unwrap_or((&text[start..], ""));
    let Some(element) = Element::from_name(name) else {
        let message = format!(
            "there is no element type `{name}`; known are {}",
            Element::NAMES.join(" ")
        );
        return Err(refuse(&message, text, (start, start + name.len())));
    };
    let content_at = (start + name.len() + 1).min(text.len());
    let (content, out) = match rest.rsplit_once('=') {
        Some((_, "")) => {
            return Err(refuse(
                "no file is named behind `=`",
                text,
                (text.len() - 1, text.len()),
            ));
        }
        Some((content, out)) => {
            let out = PathBuf::from(out);
            output::named(&out)?;
            (content, Some(out))
        }
        None => (rest, None),
    };
    if content.is_empty() {
        return Err(refuse(
            "a buffer needs a number of elements or a file",
            text,
            (content_at, text.len()),
        ));
    }
    let (count, fill) = content.split_once(':').unwrap_or((content, "none"));
    if !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Buffer {
            element,
            content: Content::File(PathBuf::from(content)),
            out,
        });
    }
    let count_span = (content_at, content_at + count.len());
    let number: Option<u64> = count.parse().ok();
    let fits = number.filter(|n| {
        n.checked_mul(element.bytes() as u64)
            .is_some_and(|bytes| bytes <= MAX_BYTES)
    });
    let Some(number) = fits else {
        return Err(refuse(
            &format!("a buffer has at most {} GiB", MAX_BYTES >> 30),
            text,
            count_span,
        ));
    };
    let Some(fill) = Fill::parse(fill) else {
        let message = format!(
            "`{fill}` is no way to fill a buffer; it is none, zero, iota, random, random(SEED) or a number (a file's content is buf:{name}:FILE, without a count)"
        );
        return Err(refuse(
            &message,
            text,
            (count_span.1 + 1, count_span.1 + 1 + fill.len()),
        ));
    };
    Ok(Buffer {
        element,
        content: Content::Filled(number, fill),
        out,
    })
}

impl Fill {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "zero" => Self::Number(0.0),
            "iota" => Self::Iota,
            "random" => Self::Random(1),
            _ => match text
                .strip_prefix("random(")
                .and_then(|rest| rest.strip_suffix(')'))
            {
                Some(seed) => Self::Random(unsigned(seed)?),
                None => Self::Number(text.parse().ok()?),
            },
        })
    }
}

fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn signed(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.is_empty()
        || !text.len().is_multiple_of(2)
        || !text.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok())
        .collect()
}

fn refuse(message: &str, text: &str, span: (usize, usize)) -> CliError {
    CliError::usage("bad_argument", message).at(span, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let cases = [
            ("u32:5", Value::U32(5)),
            ("u32:0xffffffff", Value::U32(u32::MAX)),
            ("s32:-1", Value::S32(-1)),
            ("u64:18446744073709551615", Value::U64(u64::MAX)),
            ("s64:-9", Value::S64(-9)),
            ("f32:1.5", Value::F32(1.5)),
            ("f64:1e-3", Value::F64(1e-3)),
            ("bytes:00ff10", Value::Bytes(vec![0, 255, 16])),
        ];
        for (text, value) in cases {
            assert_eq!(Argument::parse(text), Ok(Argument::Value(value)), "{text}");
        }
    }

    #[test]
    fn buffers_are_read() {
        let filled = |element, count, fill, out: Option<&str>| Buffer {
            element,
            content: Content::Filled(count, fill),
            out: out.map(PathBuf::from),
        };
        let cases = [
            ("buf:f32:1024", filled(Element::F32, 1024, Fill::None, None)),
            (
                "buf:f16:8:random",
                filled(Element::F16, 8, Fill::Random(1), None),
            ),
            (
                "buf:s8:8:random(0x10)=a:b",
                filled(Element::S8, 8, Fill::Random(16), Some("a:b")),
            ),
            (
                "buf:f64:0:zero",
                filled(Element::F64, 0, Fill::Number(0.0), None),
            ),
            (
                "buf:u32:7:-2.5=out.bin",
                filled(Element::U32, 7, Fill::Number(-2.5), Some("out.bin")),
            ),
            ("buf:u8:9:iota", filled(Element::U8, 9, Fill::Iota, None)),
        ];
        for (text, buffer) in cases {
            assert_eq!(
                Argument::parse(text),
                Ok(Argument::Buffer(buffer)),
                "{text}"
            );
        }
        let file = Buffer {
            element: Element::Bf16,
            content: Content::File(PathBuf::from("./dir:1/in.bin")),
            out: Some(PathBuf::from("out")),
        };
        assert_eq!(
            Argument::parse("buf:bf16:./dir:1/in.bin=out"),
            Ok(Argument::Buffer(file))
        );
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_place() {
        let cases = [
            ("5", (0, 1)),
            ("u33:5", (0, 3)),
            ("u32:-5", (4, 6)),
            ("u32:4294967296", (4, 14)),
            ("f32:", (4, 4)),
            ("bytes:0", (6, 7)),
            ("bytes:é1", (6, 9)),
            ("buf:", (4, 4)),
            ("buf:f33:8", (4, 7)),
            ("buf:f32", (7, 7)),
            ("buf:f32:8=", (9, 10)),
            ("buf:f32:99999999999999999999", (8, 28)),
            ("buf:f32:8:ones", (10, 14)),
            ("buf:f32:8:random(x)", (10, 19)),
        ];
        for (text, (start, end)) in cases {
            let error = Argument::parse(text).expect_err(text);
            assert_eq!(
                error.to_json()["error"]["span"],
                serde_json::json!([start, end]),
                "{text}"
            );
        }
    }
}
