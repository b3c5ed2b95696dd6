//! Words of eight values of 4 bits become fragments of 16-bit floats.
//!
//! ```text
//! word            n7 n6 n5 n4 n3 n2 n1 n0          n0 in the lowest 4 bits
//! prmt            .. n3 .. n2                      byte 1 of the word, and of the word moved down by 4 bits
//! (… & m) ^ b     1024 + 8 + n3, 1024 + 8 + n2     as f16: one lop3 in the machine's code
//! sub             n3, n2
//! ```

use layout_core::Layout;

use super::Fragment;
use super::holders::Holders;
use super::split::layout_of;
use crate::ir::{Element, Kernel, Reg};
use crate::value::U32;
use crate::view::ViewError;

/// A type of 4 bits, of which a word of 32 bits holds eight, the first in the lowest bits.
///
/// ```
/// use layout_codegen::view::Packed;
///
/// assert_eq!(Packed::E2m1.to_string(), "e2m1");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Packed {
    /// Integers from −8 to 7, in two's complement.
    S4,
    /// Integers from 0 to 15.
    U4,
    /// Floats with 2 bits of exponent and 1 of fraction: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    E2m1,
}

impl std::fmt::Display for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::S4 => "s4",
            Self::U4 => "u4",
            Self::E2m1 => "e2m1",
        })
    }
}

impl Fragment {
    /// The values of 4 bits in a fragment of s32 words, in another type. The tile's last mode is packed: a tile of M × K words is one of M × 8·K values, of which
    /// value i of word k is column 8·k + i. A thread has the values of its words; the layout follows from that of the words.
    ///
    /// A pair of f16 or bf16 takes three instructions (prmt, lop3 and a subtraction), and five of e2m1. The values are exact. Other types are converted from f16.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::view::Packed;
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let (rows, words) = (k.size("rows", 1 << 20), k.constant(16));
    /// let w = k.input("w", Element::S32, &[rows, words]);
    /// let (i, zero, lane) = (k.tiles(Axis::X, rows, 8)?, k.constant(0), k.lane());
    /// let w = w.tile(&mut k, &[8, 16], &[i, zero])?.partition(&mut k, &Layout::parse("((4,8),4):((32,1),8)")?, lane)?;
    /// let weights = k.load_fragment(&w)?.unpack(&mut k, Packed::S4, Element::Bf16)?;
    /// assert_eq!((weights.shape(), weights.values()), (&[8, 128][..], 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Fragment`] for other elements than s32; [`ViewError::Conversion`] to f64.
    #[track_caller]
    pub fn unpack(&self, k: &mut Kernel, from: Packed, to: Element) -> Result<Self, ViewError> {
        k.at_line();
        if self.element != Element::S32 {
            let reason = "it takes words of s32: let the buffer have that element".to_owned();
            return Err(self.refuse("an unpacking", reason));
        }
        let words = self.typed::<u32>(k, "an unpacking")?;
        let (shape, tv) = self.unpacked()?;
        let of = |k: &mut Kernel, word: U32| match to {
            Element::Bf16 => word.unpacked_bf16(k, from).map(|pair| pair.register(k)),
            _ => word.unpacked_f16(k, from).map(|pair| pair.register(k)),
        };
        let registers: Vec<Reg> = words.into_iter().flat_map(|word| of(k, word)).collect();
        let unpacked = Self {
            element: match to {
                Element::Bf16 => to,
                _ => Element::F16,
            },
            registers,
            each: 2,
            shape,
            tv,
            thread: self.thread,
            origin: k.here(),
        };
        unpacked.convert(k, to)
    }

    /// The shape of the values in its words, and the layout from (thread, value) to them.
    fn unpacked(&self) -> Result<(Vec<i64>, Layout), ViewError> {
        let mut shape = self.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last *= 8;
        }
        let modes = Holders::by_mode(&self.shape, &self.tv)?;
        let strides = shape.iter().scan(1, |next, &extent| {
            let stride = *next;
            *next *= extent;
            Some(stride)
        });
        let mut steps: Vec<i64> = strides.collect();
        // From a word to the next one along the last mode, there are eight values.
        let next = steps.last().copied().unwrap_or(1);
        if let Some(last) = steps.last_mut() {
            *last *= 8;
        }
        let number = |of: &dyn Fn(&Holders) -> i64| -> i64 {
            let each = modes.iter().zip(&steps);
            each.map(|(mode, step)| of(mode) * step).sum()
        };
        let [of_threads, of_values] = [self.tv.get(0)?.size(), self.tv.get(1)?.size()];
        let threads: Vec<i64> = (0..of_threads as usize)
            .map(|t| number(&|mode| mode.threads[t]))
            .collect();
        let firsts = (0..of_values as usize).map(|v| number(&|mode| mode.values[v]));
        let values: Vec<i64> = firsts
            .flat_map(|first| (0..8).map(move |i| first + i * next))
            .collect();
        let layouts = layout_of(&threads).zip(layout_of(&values));
        let Some((threads, values)) = layouts else {
            let reason = "the values in its words are no layout of their own".to_owned();
            return Err(self.refuse("an unpacking", reason));
        };
        Ok((shape, Layout::tuple(&[threads, values])?))
    }
}
