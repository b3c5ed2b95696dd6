//! Kernel arguments on the command line.
//!
//! ```text
//! [NAME=]VALUE                                          for the parameter NAME, else for the next one without a name
//!
//! u32:5  s32:-1  u64:0x10  s64:…  f32:1.5  f64:nan      a number passed by value
//! bytes:0011aabb                                        the bytes of a structure, in hexadecimal
//! zero:128                                              so many bytes of zeros
//! struct:u32:5,ref:x,tensor:…                           the members of a structure, each aligned to its size, a tensor map to 64 bytes
//! buf:ELEMENT:COUNT[:FILL][=OUT]                        a pointer to COUNT elements in global memory
//! buf:ELEMENT:FILE[=OUT]                                a pointer to the raw content of a file
//! ref:NAME[+BYTES]                                      a pointer into the buffer of another argument, or of `--buffer NAME=buf:…`
//! tensor:ELEMENT:SIZES:box=SIZES[:KEY=VALUE…]:of=NAME   a tensor map of that buffer, see [`tensor`]
//! texture:TEXEL:SIZES[:KEY=VALUE…]:of=NAME              the handle of a texture or surface of that buffer, see [`texture`]
//!
//! ELEMENT  u8 s8 u16 s16 u32 s32 u64 s64 f16 bf16 f32 f64
//! FILL     none (the default: never written, so that reading it shows), zero, iota (0, 1, 2, …), random, random(SEED),
//!          or a number for every element, nan and inf among them
//! OUT      a file that takes the raw content after the run
//! ```
//!
//! A file named like a number is written `./1024`. Random floating-point elements are uniform in [-1, 1), random integers
//! uniform over their type; the same seed gives the same content everywhere. `random` takes the place of the buffer on the command line as its
//! seed, from 1, so that two buffers differ.
//!
//! [`bind()`] assigns the arguments to the parameters of a kernel. `--variable NAME=VALUE` sets a variable of the module to any of them; a `buf:` is the variable
//! itself, which keeps the module's initial bytes with the fill `none`.

mod bind;
mod tensor;
mod texture;

use std::path::PathBuf;

pub(crate) use self::bind::{Bound, ModuleVariable, Parameter, Passed, Piece, SetVariable, bind};
pub(crate) use self::tensor::Tensor;
pub(crate) use self::texture::TextureOf;
use super::element::Element;
use crate::error::CliError;
use crate::output;

/// Bytes that `zero:` may give.
const MOST_ZEROS: u64 = 1 << 16;
/// Bytes that one buffer may have.
pub(crate) const MAX_BYTES: u64 = 1 << 33;

/// An argument as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Argument {
    /// The parameter that it is for; by its place if there is no name.
    pub(crate) name: Option<String>,
    /// What is passed.
    pub(crate) given: Given,
}

/// What is passed to a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Given {
    /// A number, or the bytes of a structure.
    Value(Value),
    /// A buffer in global memory, passed by its address.
    Buffer(Buffer),
    /// The address of a byte in the buffer of another argument.
    Reference(Reference),
    /// The members of a structure: values, references and tensor maps.
    Structure(Vec<Given>),
    /// A tensor map.
    Tensor(Box<Tensor>),
    /// The handle of a texture.
    Texture(Box<TextureOf>),
}

/// A place in a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The parameter whose argument is the buffer, or the name of a `--buffer`.
    pub(crate) name: String,
    /// Bytes from its start.
    pub(crate) offset: u64,
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

impl Value {
    /// The bytes of the parameter, in memory order.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::U32(value) => value.to_le_bytes().into(),
            Self::S32(value) => value.to_le_bytes().into(),
            Self::U64(value) => value.to_le_bytes().into(),
            Self::S64(value) => value.to_le_bytes().into(),
            Self::F32(value) => value.to_le_bytes().into(),
            Self::F64(value) => value.to_le_bytes().into(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

impl Argument {
    /// Reads one argument, the `place`-th of the command line from 1.
    pub(crate) fn parse(text: &str, place: usize) -> Result<Self, CliError> {
        // A value begins with its type and a colon: what stands before an equals sign without a colon is a name.
        let (name, start) = match text.find(['=', ':']) {
            Some(at) if text[at..].starts_with('=') => (Some(text[..at].to_owned()), at + 1),
            _ => (None, 0),
        };
        if name.as_deref() == Some("") {
            return Err(refuse("no parameter is named before `=`", text, (0, 1)));
        }
        let given = Given::parse(text, (start, text.len()), place)?;
        Ok(Self { name, given })
    }

    /// Reads `NAME=buf:…`, a buffer that no parameter points to directly.
    pub(crate) fn parse_buffer(text: &str, place: usize) -> Result<(String, Buffer), CliError> {
        match Self::parse(text, place)? {
            Self {
                name: Some(name),
                given: Given::Buffer(buffer),
            } => Ok((name, buffer)),
            _ => Err(refuse(
                "a buffer without a parameter is NAME=buf:ELEMENT:…, such as rows=buf:u64:8:iota",
                text,
                (0, text.len()),
            )),
        }
    }
}

impl Argument {
    /// Reads `NAME=VALUE`, a variable of the module.
    pub(crate) fn parse_variable(text: &str, place: usize) -> Result<(String, Given), CliError> {
        match Self::parse(text, place)? {
            Self {
                name: Some(name),
                given,
            } => Ok((name, given)),
            Self { name: None, .. } => Err(refuse(
                "a variable is NAME=VALUE, such as count=u32:5 or table=buf:f32:64:iota",
                text,
                (0, text.len()),
            )),
        }
    }
}

impl Given {
    /// Reads the part of `text` between two bytes.
    fn parse(text: &str, (start, end): (usize, usize), place: usize) -> Result<Self, CliError> {
        let part = &text[start..end];
        let Some((kind, rest)) = part.split_once(':') else {
            let message = "an argument is TYPE:VALUE, such as u32:5 or buf:f32:1024:zero, with or without NAME= before it";
            return Err(refuse(message, text, (start, end)));
        };
        let at = start + kind.len() + 1;
        let not = |what: &str| refuse(&format!("`{rest}` is not {what}"), text, (at, end));
        Ok(Self::Value(match kind {
            "u32" => Value::U32(
                unsigned(rest)
                    .and_then(|v| v.try_into().ok())
                    .ok_or_else(|| not("a u32, a whole number from 0 to 4294967295"))?,
            ),
            "s32" | "i32" => Value::S32(
                signed(rest)
                    .and_then(|v| v.try_into().ok())
                    .ok_or_else(|| not("an s32, a whole number from -2147483648 to 2147483647"))?,
            ),
            "u64" => Value::U64(
                unsigned(rest).ok_or_else(|| not("a u64, a whole number from 0 to 2^64 - 1"))?,
            ),
            "s64" | "i64" => Value::S64(
                signed(rest).ok_or_else(|| not("an s64, a whole number from -2^63 to 2^63 - 1"))?,
            ),
            "f32" => Value::F32(
                rest.parse()
                    .map_err(|_| not("an f32, a number, nan or inf"))?,
            ),
            "f64" => Value::F64(
                rest.parse()
                    .map_err(|_| not("an f64, a number, nan or inf"))?,
            ),
            "bytes" => {
                Value::Bytes(hexadecimal(rest).ok_or_else(|| not("pairs of hexadecimal digits"))?)
            }
            "zero" => Value::Bytes(
                unsigned(rest)
                    .filter(|n| (1..=MOST_ZEROS).contains(n))
                    .map(|n| vec![0; n as usize])
                    .ok_or_else(|| not("a number of bytes from 1 to 65536"))?,
            ),
            "buf" => return buffer(text, (at, end), place).map(Self::Buffer),
            "ref" => return reference(text, (at, end)).map(Self::Reference),
            "struct" => return structure(text, (at, end), place),
            "tensor" => {
                return Tensor::parse(text, (at, end)).map(|t| Self::Tensor(Box::new(t)));
            }
            "texture" => {
                return TextureOf::parse(text, (at, end)).map(|t| Self::Texture(Box::new(t)));
            }
            _ => {
                let message = format!(
                    "there is no argument type `{kind}`; known are u32 s32 u64 s64 f32 f64 bytes zero buf ref struct tensor texture"
                );
                return Err(refuse(&message, text, (start, start + kind.len())));
            }
        }))
    }
}

/// Reads `NAME[+BYTES]`.
fn reference(text: &str, (start, end): (usize, usize)) -> Result<Reference, CliError> {
    let (name, offset) = match text[start..end].split_once('+') {
        None => (&text[start..end], 0),
        Some((name, bytes)) => {
            let offset = unsigned(bytes).ok_or_else(|| {
                let message = format!("`{bytes}` is not a number of bytes");
                refuse(&message, text, (start + name.len() + 1, end))
            })?;
            (name, offset)
        }
    };
    if name.is_empty() {
        let message = "no buffer is named behind `ref:`";
        return Err(refuse(message, text, (start, end)));
    }
    let name = name.to_owned();
    Ok(Reference { name, offset })
}

/// Reads the members of a structure, with commas between them.
fn structure(text: &str, (start, end): (usize, usize), place: usize) -> Result<Given, CliError> {
    let mut members = Vec::new();
    let mut from = start;
    for member in text[start..end].split(',') {
        let span = (from, from + member.len());
        from = span.1 + 1;
        let given = Given::parse(text, span, place)?;
        if matches!(given, Given::Buffer(_) | Given::Structure(_)) {
            let message = "a member of a structure is a number, bytes, zero, tensor, texture or ref:NAME (declare the buffer with --buffer NAME=buf:…)";
            return Err(refuse(message, text, span));
        }
        members.push(given);
    }
    Ok(Given::Structure(members))
}

/// Reads `ELEMENT:…` of a buffer, which lies between two bytes of `text`.
fn buffer(text: &str, (start, end): (usize, usize), place: usize) -> Result<Buffer, CliError> {
    let (name, rest) = text[start..end]
        .split_once(':')
        .unwrap_or((&text[start..end], ""));
    let Some(element) = Element::from_name(name) else {
        let message = format!(
            "there is no element type `{name}`; known are {}",
            Element::NAMES.join(" ")
        );
        return Err(refuse(&message, text, (start, start + name.len())));
    };
    let content_at = (start + name.len() + 1).min(end);
    let (content, out) = match rest.rsplit_once('=') {
        Some((_, "")) => {
            return Err(refuse("no file is named behind `=`", text, (end - 1, end)));
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
            (content_at, end),
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
    let fill_span = (count_span.1 + 1, count_span.1 + 1 + fill.len());
    let Some(fill) = Fill::parse(fill, place as u64) else {
        let message = format!(
            "`{fill}` is no way to fill a buffer; it is none, zero, iota, random, random(SEED) or a number (a file's content is buf:{name}:FILE, without a count)"
        );
        return Err(refuse(&message, text, fill_span));
    };
    if let Fill::Number(value) = fill
        && !element.holds(value)
    {
        let message = format!(
            "an element of type {name} cannot hold {}",
            text[fill_span.0..fill_span.1].trim()
        );
        return Err(refuse(&message, text, fill_span));
    }
    Ok(Buffer {
        element,
        content: Content::Filled(number, fill),
        out,
    })
}

impl Fill {
    fn parse(text: &str, seed: u64) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "zero" => Self::Number(0.0),
            "iota" => Self::Iota,
            "random" => Self::Random(seed),
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

    fn given(text: &str) -> Result<Given, CliError> {
        let argument = Argument::parse(text, 3)?;
        assert_eq!(argument.name, None);
        Ok(argument.given)
    }

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
            assert_eq!(given(text), Ok(Given::Value(value)), "{text}");
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
                filled(Element::F16, 8, Fill::Random(3), None),
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
                "buf:s32:7:-2=out.bin",
                filled(Element::S32, 7, Fill::Number(-2.0), Some("out.bin")),
            ),
            ("buf:u8:9:iota", filled(Element::U8, 9, Fill::Iota, None)),
        ];
        for (text, buffer) in cases {
            assert_eq!(given(text), Ok(Given::Buffer(buffer)), "{text}");
        }
        let file = Buffer {
            element: Element::Bf16,
            content: Content::File(PathBuf::from("./dir:1/in.bin")),
            out: Some(PathBuf::from("out")),
        };
        assert_eq!(
            given("buf:bf16:./dir:1/in.bin=out"),
            Ok(Given::Buffer(file))
        );
    }

    #[test]
    fn names_references_and_structures_are_read() {
        let argument = Argument::parse("x=buf:f32:8:iota=out.bin", 1).expect("read");
        assert_eq!(argument.name.as_deref(), Some("x"));
        let Given::Buffer(buffer) = argument.given else {
            panic!("a buffer")
        };
        assert_eq!(buffer.out, Some(PathBuf::from("out.bin")));

        let reference = |offset| {
            let name = "x".to_owned();
            Given::Reference(Reference { name, offset })
        };
        assert_eq!(given("ref:x"), Ok(reference(0)));
        assert_eq!(given("ref:x+0x10"), Ok(reference(16)));
        let members = vec![Given::Value(Value::U32(5)), reference(4)];
        assert_eq!(given("struct:u32:5,ref:x+4"), Ok(Given::Structure(members)));

        let (name, _) = Argument::parse_buffer("rows=buf:u64:8:iota", 1).expect("read");
        assert_eq!(name, "rows");
        for bad in ["buf:u64:8", "rows=u64:8", "rows"] {
            assert!(Argument::parse_buffer(bad, 1).is_err(), "{bad}");
        }
        let Ok(Given::Value(Value::F32(nan))) = given("f32:nan") else {
            panic!("a number")
        };
        assert!(nan.is_nan());
        assert_eq!(
            given("f64:-inf"),
            Ok(Given::Value(Value::F64(f64::NEG_INFINITY)))
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
            ("buf:u32:8:-2.5", (10, 14)),
            ("buf:s8:8:nan", (9, 12)),
            ("=u32:5", (0, 1)),
            ("n=5", (2, 3)),
            ("n=u32:x", (6, 7)),
            ("ref:", (4, 4)),
            ("ref:x+y", (6, 7)),
            ("struct:u32:5,buf:f32:8", (13, 22)),
            ("n=struct:u32:5,f33:1", (15, 18)),
        ];
        for (text, (start, end)) in cases {
            let error = Argument::parse(text, 1).expect_err(text);
            assert_eq!(
                error.to_json()["error"]["span"],
                serde_json::json!([start, end]),
                "{text}"
            );
        }
    }
}
