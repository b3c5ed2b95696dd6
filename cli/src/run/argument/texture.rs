//! Textures on the command line: `texture:f32:64x32:filter=linear:of=x`.
//!
//! Sizes are innermost first, with `x` between their numbers. Rows lie one behind the other unless `pitch` says otherwise.

use tilewright::emulator::{AddressMode, Texel, Texture};

use super::{Reference, reference, refuse};
use crate::error::CliError;

/// A texture and the buffer that it reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextureOf {
    /// The texture, its address still 0.
    pub(crate) texture: Texture,
    /// Where the first texel is.
    pub(crate) of: Reference,
}

impl TextureOf {
    /// Reads what stands between two bytes of `text`, behind `texture:`.
    pub(super) fn parse(text: &str, (start, end): (usize, usize)) -> Result<Self, CliError> {
        let mut parts = text[start..end].split(':');
        let name = parts.next().unwrap_or("");
        let known = Texel::ALL.iter().find(|(_, n)| *n == name);
        let Some((texel, _)) = known else {
            let names: Vec<_> = Texel::ALL.iter().map(|(_, n)| *n).collect();
            let names = names.join(" ");
            let message = format!("there is no texel `{name}`; known are {names}");
            return Err(refuse(&message, text, (start, start + name.len())));
        };
        let mut at = start + name.len() + 1;
        let sizes = parts.next().unwrap_or("");
        let span = (at.min(end), (at + sizes.len()).min(end));
        at = span.1 + 1;
        let numbers: Option<Vec<u32>> = sizes.split('x').map(|n| n.parse().ok()).collect();
        let numbers = numbers.filter(|n| !n.contains(&0) && n.len() <= 3);
        let Some(size) = numbers else {
            let message = "a texture needs one to three sizes, innermost first, such as texture:f32:64x32:of=x";
            return Err(refuse(message, text, span));
        };
        let mut texture = Texture::new(*texel, 1, &size, 0);
        let (mut of, mut pitch) = (None, None);
        for part in parts {
            let span = (at, at + part.len());
            at = span.1 + 1;
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let inside = ((span.0 + key.len() + 1).min(end), span.1);
            let not = |what: &str| refuse(&format!("`{value}` is not {what}"), text, inside);
            match key {
                "channels" => {
                    let channels = value.parse().ok().filter(|n| matches!(n, 1 | 2 | 4));
                    texture.channels = channels.ok_or_else(|| not("1, 2 or 4"))?;
                }
                "layers" => texture.layers = value.parse().map_err(|_| not("a number"))?,
                "pitch" => pitch = Some(value.parse().map_err(|_| not("a number of bytes"))?),
                "filter" => {
                    texture.linear = match value {
                        "point" => false,
                        "linear" => true,
                        _ => return Err(not("a filter; there are point and linear")),
                    }
                }
                "coords" => {
                    texture.normalized = match value {
                        "texels" => false,
                        "unit" => true,
                        _ => return Err(not("a unit of coordinates; there are texels and unit, from 0 to 1")),
                    }
                }
                "read" => {
                    texture.unit = match value {
                        "element" => false,
                        "unit" => true,
                        _ => return Err(not("a way to read; there are element and unit, integers as numbers up to 1")),
                    }
                }
                "address" => texture.modes = modes(value).ok_or_else(|| {
                    not("address modes, for all dimensions or one for each with x between them: clamp, border, wrap, mirror")
                })?,
                "border" => {
                    let all: Option<Vec<f32>> = value.split('x').map(|n| n.parse().ok()).collect();
                    let all = all.filter(|all| all.len() <= 4);
                    let all = all.ok_or_else(|| not("up to four numbers with x between them"))?;
                    texture.border[..all.len()].copy_from_slice(&all);
                }
                "of" => of = Some(reference(text, inside)?),
                _ => {
                    let message = format!(
                        "a texture has no `{key}`; it has channels layers pitch filter coords read address border of"
                    );
                    return Err(refuse(&message, text, span));
                }
            }
        }
        let Some(of) = of else {
            let message = "a texture needs the buffer that it reads: of=NAME, a parameter's or that of --buffer NAME=buf:…";
            return Err(refuse(message, text, (start, end)));
        };
        let row = u64::from(size[0]) * u64::from(texture.channels * texel.bytes());
        texture.pitch = pitch.unwrap_or(row);
        Ok(Self { texture, of })
    }
}

/// One mode for all dimensions, or one for each.
fn modes(text: &str) -> Option<[AddressMode; 3]> {
    let mode = |name: &str| {
        Some(match name {
            "clamp" => AddressMode::Clamp,
            "border" => AddressMode::Border,
            "wrap" => AddressMode::Wrap,
            "mirror" => AddressMode::Mirror,
            _ => return None,
        })
    };
    let all = text.split('x').map(mode).collect::<Option<Vec<_>>>()?;
    match all[..] {
        [one] => Some([one; 3]),
        [x, y] => Some([x, y, AddressMode::Clamp]),
        [x, y, z] => Some([x, y, z]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TextureOf, CliError> {
        TextureOf::parse(text, ("texture:".len(), text.len()))
    }

    #[test]
    fn textures_are_read() {
        let text = "texture:u8:64x32:channels=4:filter=linear:coords=unit:read=unit:address=wrapxborder:border=1x0.5:of=x+256";
        let read = read(text).expect("a texture");
        assert_eq!((&*read.of.name, read.of.offset), ("x", 256));
        let expected = Texture {
            normalized: true,
            linear: true,
            unit: true,
            modes: [AddressMode::Wrap, AddressMode::Border, AddressMode::Clamp],
            border: [1.0, 0.5, 0.0, 0.0],
            ..Texture::new(Texel::U8, 4, &[64, 32], 0)
        };
        assert_eq!(read.texture, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("texture:f64:4:of=x", "there is no texel `f64`"),
            ("texture:f32", "one to three sizes"),
            ("texture:f32:4x0:of=x", "one to three sizes"),
            ("texture:f32:4", "needs the buffer that it reads"),
            ("texture:f32:4:channels=3:of=x", "`3` is not 1, 2 or 4"),
            ("texture:f32:4:filter=cubic:of=x", "`cubic` is not a filter"),
            (
                "texture:f32:4:address=repeat:of=x",
                "`repeat` is not address modes",
            ),
            ("texture:f32:4:size=4:of=x", "a texture has no `size`"),
        ] {
            let error = read(text).expect_err(message);
            assert!(error.message().contains(message), "{}", error.message());
        }
    }
}
