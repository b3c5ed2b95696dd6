//! The element types of buffers on the command line: how to fill, read and show them.

use half::{bf16, f16};
use serde_json::Value;

use super::argument::Fill;

/// The type of a buffer's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// The names of all types, in the order of the declaration.
    pub(crate) const NAMES: [&'static str; 12] = [
        "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64",
    ];

    const ALL: [Self; 12] = [
        Self::U8,
        Self::S8,
        Self::U16,
        Self::S16,
        Self::U32,
        Self::S32,
        Self::U64,
        Self::S64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The type of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .map(|i| Self::ALL[i])
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Bytes of one element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// `count` elements filled; `None` for a fill that writes nothing.
    pub(crate) fn fill(self, count: usize, fill: Fill) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count * self.bytes());
        match fill {
            Fill::None => return None,
            Fill::Number(value) => {
                let one = self.encode(value);
                (0..count).for_each(|_| bytes.extend_from_slice(&one));
            }
            Fill::Iota => (0..count).for_each(|i| bytes.extend_from_slice(&self.encode(i as f64))),
            Fill::Random(seed) => {
                let mut state = seed;
                for _ in 0..count {
                    let bits = next(&mut state);
                    if self.is_float() {
                        // 53 random bits over [-1, 1).
                        let uniform = (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
                        bytes.extend_from_slice(&self.encode(uniform));
                    } else {
                        bytes.extend_from_slice(&bits.to_le_bytes()[8 - self.bytes()..]);
                    }
                }
            }
        }
        Some(bytes)
    }

    /// Whether an element can be `value`, rounded if it is a float: an integer type has no fraction, no NaN, and a range.
    pub(crate) fn holds(self, value: f64) -> bool {
        if self.is_float() {
            return true;
        }
        let bits = 8 * self.bytes() as i32;
        let (low, high) = match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => (0.0, f64::powi(2.0, bits)),
            _ => (-f64::powi(2.0, bits - 1), f64::powi(2.0, bits - 1)),
        };
        value.fract() == 0.0 && (low..high).contains(&value)
    }

    /// The bytes of the element nearest to `value`.
    fn encode(self, value: f64) -> Vec<u8> {
        match self {
            Self::U8 => (value as u8).to_le_bytes().to_vec(),
            Self::S8 => (value as i8).to_le_bytes().to_vec(),
            Self::U16 => (value as u16).to_le_bytes().to_vec(),
            Self::S16 => (value as i16).to_le_bytes().to_vec(),
            Self::U32 => (value as u32).to_le_bytes().to_vec(),
            Self::S32 => (value as i32).to_le_bytes().to_vec(),
            Self::U64 => (value as u64).to_le_bytes().to_vec(),
            Self::S64 => (value as i64).to_le_bytes().to_vec(),
            Self::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F64 => value.to_le_bytes().to_vec(),
        }
    }

    /// The elements in `bytes` as JSON numbers, with the fewest digits that only this element has; `"nan"`, `"inf"` or `"-inf"` for what
    /// JSON has no number for. Bytes at the end that do not fill an element are left out.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<Value> {
        bytes
            .chunks_exact(self.bytes())
            .map(|chunk| self.decode_one(chunk))
            .collect()
    }

    fn decode_one(self, chunk: &[u8]) -> Value {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_le_bytes(word);
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => bits.into(),
            Self::S8 => (bits as i8).into(),
            Self::S16 => (bits as i16).into(),
            Self::S32 => (bits as i32).into(),
            Self::S64 => (bits as i64).into(),
            Self::F16 => self.shortest(f16::from_bits(bits as u16).to_f64()),
            Self::Bf16 => self.shortest(bf16::from_bits(bits as u16).to_f64()),
            Self::F32 => self.shortest(f32::from_bits(bits as u32).into()),
            Self::F64 => self.shortest(f64::from_bits(bits)),
        }
    }

    /// The number with the fewest digits that rounds to the element `value`.
    fn shortest(self, value: f64) -> Value {
        if value.is_nan() {
            return "nan".into();
        }
        if value.is_infinite() {
            return if value > 0.0 { "inf" } else { "-inf" }.into();
        }
        let element = self.encode(value);
        let decimals = (0..17).filter_map(|digits| format!("{value:.digits$e}").parse().ok());
        decimals
            .into_iter()
            .find(|&decimal: &f64| self.encode(decimal) == element)
            .unwrap_or(value)
            .into()
    }
}

/// The next number of `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_are_in_the_same_order() {
        for name in Element::NAMES {
            assert_eq!(Element::from_name(name).map(Element::name), Some(name));
        }
    }

    #[test]
    fn small_integers_survive_in_every_type() {
        for element in Element::ALL {
            let bytes = element.fill(100, Fill::Iota).expect("filled");
            assert_eq!(bytes.len(), 100 * element.bytes());
            let values: Vec<f64> = element
                .decode(&bytes)
                .iter()
                .filter_map(Value::as_f64)
                .collect();
            let expected: Vec<f64> = (0..100).map(f64::from).collect();
            assert_eq!(values, expected, "{element:?}");
        }
    }

    #[test]
    fn random_floats_are_within_minus_one_and_one_and_repeatable() {
        for element in Element::ALL
            .into_iter()
            .filter(|element| element.is_float())
        {
            let bytes = element.fill(1000, Fill::Random(7)).expect("filled");
            assert_eq!(Some(bytes.clone()), element.fill(1000, Fill::Random(7)));
            assert_ne!(Some(bytes.clone()), element.fill(1000, Fill::Random(8)));
            let values: Vec<f64> = element
                .decode(&bytes)
                .iter()
                .filter_map(Value::as_f64)
                .collect();
            assert!(values.iter().all(|x| (-1.0..=1.0).contains(x)));
            assert!(values.iter().any(|x| *x < -0.5) && values.iter().any(|x| *x > 0.5));
        }
    }

    #[test]
    fn numbers_without_json_are_names() {
        assert_eq!(Element::F32.decode(&f32::NAN.to_le_bytes()), ["nan"]);
        assert_eq!(Element::F16.decode(&[0xff, 0xff]), ["nan"]);
        assert_eq!(
            Element::Bf16.decode(&bf16::NEG_INFINITY.to_le_bytes()),
            ["-inf"]
        );
        assert_eq!(Element::F64.decode(&f64::INFINITY.to_le_bytes()), ["inf"]);
    }

    #[test]
    fn decimals_are_as_short_as_the_type_allows_and_exact() {
        for (element, value, text) in [
            (Element::F16, 0.1, "0.1"),
            (Element::Bf16, 0.1, "0.1"),
            (Element::F32, 0.1, "0.1"),
            (Element::F32, -0.0, "-0.0"),
            (Element::F32, 16_777_216.0, "16777216.0"),
            (Element::F64, 0.1, "0.1"),
            (Element::F64, 1.0 / 3.0, "0.3333333333333333"),
        ] {
            assert_eq!(element.decode(&element.encode(value))[0].to_string(), text);
        }
        for element in [Element::F16, Element::Bf16, Element::F32, Element::F64] {
            let bytes = element.fill(1000, Fill::Random(3)).expect("filled");
            for (value, chunk) in element
                .decode(&bytes)
                .iter()
                .zip(bytes.chunks(element.bytes()))
            {
                assert_eq!(element.encode(value.as_f64().expect("a number")), chunk);
            }
        }
    }

    #[test]
    fn integers_hold_only_what_they_can_be() {
        assert!(Element::S8.holds(-128.0) && !Element::S8.holds(128.0));
        assert!(Element::U64.holds(1e19) && !Element::U64.holds(1e20));
        assert!(!Element::U8.holds(-1.0) && !Element::S32.holds(0.5));
        assert!(!Element::S64.holds(f64::NAN) && Element::F16.holds(f64::NAN));
    }
}
