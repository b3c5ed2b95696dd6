//! Colours of the pictures: eight hues that colour-blind readers tell apart, four shades of each, and the contrast of text
//! on them.
//!
//! The hues are Paul Tol's "light" qualitative scheme (SRON/EPS/TN/09-002), made for filling labelled cells. A hue stands for
//! a bank group (the 16 bytes that one lane of `ldmatrix` reads), a shade for the bank within the group; in pictures of atoms
//! they are the quad of lanes and the lane within it. Colour never carries anything alone: every picture also writes it.
//!
//! All fills are light and all text on them is [`INK`], so that the contrast is at least 7 to 1 (WCAG AAA), which the tests
//! check. Phases are told apart by a bar of a dark colour at the left edge of a lane's elements.

/// A colour, red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// Text and thick borders.
pub(crate) const INK: Rgb = [0x11, 0x11, 0x11];

/// Text of lesser weight: axes, offsets of elements that no lane touches.
pub(crate) const FAINT: Rgb = [0x4f, 0x4f, 0x4f];

/// Fill of cells without a colour.
pub(crate) const PAPER: Rgb = [0xff, 0xff, 0xff];

/// Fill of cells that no lane touches, where lanes are shown.
pub(crate) const IDLE: Rgb = [0xf3, 0xf3, 0xf3];

/// Lines between cells.
pub(crate) const LINE: Rgb = [0xc4, 0xc4, 0xc4];

const HUES: [Rgb; 8] = [
    [0x77, 0xaa, 0xdd],
    [0xee, 0x88, 0x66],
    [0xee, 0xdd, 0x88],
    [0xff, 0xaa, 0xbb],
    [0x44, 0xbb, 0x99],
    [0x99, 0xdd, 0xff],
    [0xaa, 0xaa, 0x00],
    [0xcf, 0xcf, 0xcf],
];

/// Bars of phases 0 to 7 (Tol's "bright" scheme, with black).
const PHASES: [Rgb; 8] = [
    [0x22, 0x66, 0xaa],
    [0xcc, 0x33, 0x11],
    [0x11, 0x77, 0x33],
    [0x99, 0x66, 0x00],
    [0xaa, 0x33, 0x77],
    [0x00, 0x88, 0xaa],
    [0x66, 0x66, 0x66],
    [0x00, 0x00, 0x00],
];

/// One of 8 hues in one of 4 shades.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub(crate) struct Tint {
    hue: u8,
    shade: u8,
}

impl Tint {
    /// Hue and shade, each taken modulo how many there are.
    pub(crate) fn new(hue: u32, shade: u32) -> Self {
        Self {
            hue: (hue % 8) as u8,
            shade: (shade % 4) as u8,
        }
    }

    /// The same hue, paler than every shade: what no lane touches.
    pub(crate) fn pale(self) -> Self {
        Self { shade: 4, ..self }
    }

    /// The colour: the hue, mixed with white by 0, 20, 40 or 60 per cent, 80 if pale.
    pub(crate) fn rgb(self) -> Rgb {
        let white = 20 * u32::from(self.shade);
        HUES[usize::from(self.hue)]
            .map(|part| ((u32::from(part) * (100 - white) + 255 * white) / 100) as u8)
    }
}

/// The colour of a phase's bar.
pub(crate) fn phase_rgb(phase: u32) -> Rgb {
    PHASES[phase as usize % PHASES.len()]
}

/// `#rrggbb`.
pub(crate) fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.1.
    fn luminance(colour: Rgb) -> f64 {
        let [r, g, b] = colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_readable_on_every_fill() {
        for hue in 0..8 {
            for shade in 0..4 {
                let fill = Tint::new(hue, shade).rgb();
                assert!(contrast(INK, fill) >= 7.0, "{hue} {shade}");
            }
            assert!(contrast(FAINT, Tint::new(hue, 0).pale().rgb()) >= 4.5);
        }
        for fill in [PAPER, IDLE] {
            assert!(contrast(FAINT, fill) >= 7.0);
        }
        for phase in 0..8 {
            assert!(contrast(phase_rgb(phase), PAPER) >= 3.0, "{phase}");
        }
    }

    #[test]
    fn no_two_tints_are_the_same_colour() {
        let mut all: Vec<Rgb> = (0..8)
            .flat_map(|hue| (0..4).map(move |shade| Tint::new(hue, shade).rgb()))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 32);
    }
}
