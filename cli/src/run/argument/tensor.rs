//! Tensor maps on the command line: `tensor:f16:512x256:box=64x64:swizzle=128:of=x`.
//!
//! Lists are innermost first, with `x` between their numbers. Strides are bytes from the second dimension on; without them the array is packed. What
//! rules a map obeys is checked when its buffer has an address, by the emulator or the driver.

use tilewright::emulator::{Im2col, TensorElement, TensorInterleave, TensorMap, TensorSwizzle};

use super::{Reference, reference, refuse};
use crate::error::CliError;

/// A tensor map and the buffer that it describes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    /// The map, its address still 0.
    pub(crate) map: TensorMap,
    /// Where the array begins.
    pub(crate) of: Reference,
}

/// Numbers with `x` between them.
fn list<T: std::str::FromStr>(value: &str) -> Option<Vec<T>> {
    value.split('x').map(|n| n.parse().ok()).collect()
}

/// The corners and counts of an im2col box, as far as they are given.
#[derive(Default)]
struct Gathered {
    lower: Option<Vec<i16>>,
    upper: Option<Vec<i16>>,
    channels: Option<u32>,
    pixels: Option<u32>,
}

impl Tensor {
    /// Reads what stands between two bytes of `text`, behind `tensor:`.
    pub(super) fn parse(text: &str, (start, end): (usize, usize)) -> Result<Self, CliError> {
        let mut parts = text[start..end].split(':');
        let name = parts.next().unwrap_or("");
        let mut at = start + name.len() + 1;
        let known = TensorElement::ALL.iter().find(|(_, n)| *n == name);
        let Some((element, _)) = known else {
            let names: Vec<_> = TensorElement::ALL.iter().map(|(_, n)| *n).collect();
            let message = format!(
                "there is no tensor element `{name}`; known are {}",
                names.join(" ")
            );
            return Err(refuse(&message, text, (start, start + name.len())));
        };
        let mut map = TensorMap::new(*element, 0);
        let sizes = parts.next().unwrap_or("");
        let span = (at.min(end), (at + sizes.len()).min(end));
        map.sizes = list(sizes).ok_or_else(|| {
            let message = "a tensor map needs sizes, innermost first, such as tensor:f16:512x256:box=64x64:of=x";
            refuse(message, text, span)
        })?;
        at = span.1 + 1;
        let (mut of, mut c) = (None, Gathered::default());
        for part in parts {
            let span = (at, at + part.len());
            at = span.1 + 1;
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let inside = (span.0 + key.len() + 1, span.1);
            let not = |what: &str| {
                let message = format!("`{value}` is not {what}");
                refuse(&message, text, (inside.0.min(end), inside.1))
            };
            let numbers = "numbers with x between them";
            match key {
                "box" => map.box_sizes = list(value).ok_or_else(|| not(numbers))?,
                "strides" => map.strides = list(value).ok_or_else(|| not(numbers))?,
                "steps" => map.element_strides = list(value).ok_or_else(|| not(numbers))?,
                "swizzle" => {
                    map.swizzle = match value {
                        "0" => TensorSwizzle::None,
                        "32" => TensorSwizzle::Bytes32,
                        "64" => TensorSwizzle::Bytes64,
                        "128" => TensorSwizzle::Bytes128,
                        _ => return Err(not("a swizzle; there are 0, 32, 64 and 128 bytes")),
                    }
                }
                "interleave" => {
                    map.interleave = match value {
                        "0" => TensorInterleave::None,
                        "16" => TensorInterleave::Bytes16,
                        "32" => TensorInterleave::Bytes32,
                        _ => return Err(not("an interleave; there are 0, 16 and 32 bytes")),
                    }
                }
                "fill" => {
                    map.nan_outside = match value {
                        "zero" => false,
                        "nan" => true,
                        _ => return Err(not("a fill; there are zero and nan")),
                    }
                }
                "lower" => c.lower = Some(list(value).ok_or_else(|| not(numbers))?),
                "upper" => c.upper = Some(list(value).ok_or_else(|| not(numbers))?),
                "channels" => c.channels = Some(value.parse().map_err(|_| not("a number"))?),
                "pixels" => c.pixels = Some(value.parse().map_err(|_| not("a number"))?),
                "of" => of = Some(reference(text, inside)?),
                _ => {
                    let message = format!(
                        "a tensor map has no `{key}`; it has box strides steps swizzle interleave fill lower upper channels pixels of"
                    );
                    return Err(refuse(&message, text, span));
                }
            }
        }
        let Some(of) = of else {
            let message = "a tensor map needs the buffer that it describes: of=NAME, a parameter's or that of --buffer NAME=buf:…";
            return Err(refuse(message, text, (start, end)));
        };
        if map.strides.is_empty() {
            let mut bytes = element.bytes();
            for size in &map.sizes[..map.sizes.len() - 1] {
                bytes = bytes.saturating_mul(*size);
                map.strides.push(bytes);
            }
        }
        map.im2col = match c {
            Gathered {
                lower: Some(lower),
                upper: Some(upper),
                channels: Some(channels),
                pixels: Some(pixels),
            } => Some(Im2col {
                lower,
                upper,
                channels,
                pixels,
            }),
            Gathered {
                lower: None,
                upper: None,
                channels: None,
                pixels: None,
            } => None,
            _ => {
                let message = "im2col needs all of lower, upper, channels and pixels";
                return Err(refuse(message, text, (start, end)));
            }
        };
        if map.box_sizes.is_empty() == map.im2col.is_none() {
            let message = "a tensor map needs a box, such as box=64x64, or the pixels of im2col, and not both";
            return Err(refuse(message, text, (start, end)));
        }
        Ok(Self { map, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Tensor, CliError> {
        Tensor::parse(text, ("tensor:".len(), text.len()))
    }

    #[test]
    fn maps_are_read() {
        let tensor = read("tensor:f16:512x256:box=64x32:swizzle=128:fill=nan:of=x+32");
        let tensor = tensor.expect("a tensor map");
        assert_eq!((&*tensor.of.name, tensor.of.offset), ("x", 32));
        let expected = TensorMap {
            sizes: vec![512, 256],
            strides: vec![1024],
            box_sizes: vec![64, 32],
            swizzle: TensorSwizzle::Bytes128,
            nan_outside: true,
            ..TensorMap::new(TensorElement::F16, 0)
        };
        assert_eq!(tensor.map, expected);
        let text =
            "tensor:u8:64x9x14x2:lower=-1x-1:upper=-1x0:channels=16:pixels=8:steps=1x2x2x1:of=x";
        let map = read(text).expect("a tensor map").map;
        let im2col = map.im2col.expect("im2col");
        assert_eq!((im2col.lower, im2col.upper), (vec![-1, -1], vec![-1, 0]));
        assert_eq!(map.strides, [64, 576, 8064]);
        assert_eq!(map.element_strides, [1, 2, 2, 1]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            (
                "tensor:f8:4:box=4:of=x",
                "there is no tensor element `f8`; known are u8 u16",
            ),
            ("tensor:f16", "a tensor map needs sizes"),
            ("tensor:f16:axb:box=4:of=x", "a tensor map needs sizes"),
            ("tensor:f16:64:box=64", "needs the buffer that it describes"),
            ("tensor:f16:64:of=x", "needs a box"),
            (
                "tensor:f16:64:box=4:swizzle=16:of=x",
                "`16` is not a swizzle",
            ),
            ("tensor:f16:64:box=4:fill=1:of=x", "`1` is not a fill"),
            (
                "tensor:f16:64:box=4:interleave=8:of=x",
                "`8` is not an interleave",
            ),
            ("tensor:f16:64:box=4,4:of=x", "`4,4` is not numbers"),
            ("tensor:f16:64:boxes=4:of=x", "a tensor map has no `boxes`"),
            (
                "tensor:f16:64x4x4:pixels=4:of=x",
                "needs all of lower, upper",
            ),
            ("tensor:f16:64:box=4:of=", "no buffer is named"),
        ] {
            let error = read(text).expect_err(message);
            assert!(error.message().contains(message), "{}", error.message());
        }
    }
}
