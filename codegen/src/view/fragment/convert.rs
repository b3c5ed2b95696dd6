//! Fragments in other types.

use super::Fragment;
use crate::ir::{Element, Kernel, Rounding, Type};
use crate::value::{Bf16x2, F16x2, F32, S32};
use crate::view::ViewError;

impl Kernel {
    /// A fragment in another type, in new registers: rounded to nearest even, or exact; to s8 with saturation, NaN
    /// as 0.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// let rounded = k.convert_fragment(&sums, Element::F16)?;
    /// assert_eq!((rounded.element(), rounded.values()), (Element::F16, 4));
    /// assert!(k.convert_fragment(&sums, Element::F64).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Conversion`] unless it is from f32 to f16, bf16 or s8, from f16, bf16 or s32 to f32, or to the same type.
    #[track_caller]
    pub fn convert_fragment(
        &mut self,
        fragment: &Fragment,
        to: Element,
    ) -> Result<Fragment, ViewError> {
        self.at_line();
        fragment.own(self)?;
        let from = fragment.element;
        let (registers, each) = match (from, to) {
            _ if from == to => (fragment.registers.clone(), fragment.each),
            (Element::F32, Element::F16 | Element::Bf16)
                if fragment.registers.len().is_multiple_of(2) =>
            {
                let ty = if to == Element::F16 {
                    Type::F16x2
                } else {
                    Type::Bf16x2
                };
                let pairs = fragment.registers.chunks(2);
                let words = pairs.map(|pair| self.convert_pair(ty, pair[0], pair[1]));
                (words.collect(), 2)
            }
            (Element::F16 | Element::Bf16, Element::F32) => {
                let mut wide = Vec::new();
                for &word in &fragment.registers {
                    let halves = if from == Element::F16 {
                        F16x2::held(self, word).to_f32(self)
                    } else {
                        Bf16x2::held(self, word).to_f32(self)
                    };
                    wide.extend(halves.map(|half| half.register(self)));
                }
                (wide, 1)
            }
            (Element::S32, Element::F32) => {
                let values = fragment.registers.iter();
                let wide = values.map(|&r| S32::held(self, r).to_f32(self).register(self));
                (wide.collect(), 1)
            }
            (Element::F32, Element::S8) if fragment.registers.len().is_multiple_of(4) => {
                let mut words = Vec::new();
                for four in fragment.registers.chunks(4) {
                    let mut byte = |i: usize| {
                        let value = F32::held(self, four[i]);
                        value.to_s8(self, Rounding::Nearest).register(self)
                    };
                    let bytes = [byte(0), byte(1), byte(2), byte(3)];
                    // The lowest byte of each, then two pairs.
                    let low = self.permute(bytes[0], bytes[1], 0x0040);
                    let high = self.permute(bytes[2], bytes[3], 0x0040);
                    words.push(self.permute(low, high, 0x5410));
                }
                (words, 4)
            }
            _ => return Err(ViewError::Conversion { from, to }),
        };
        Ok(Fragment {
            element: to,
            origin: if to == from {
                fragment.origin
            } else {
                self.here()
            },
            registers,
            each,
            ..fragment.clone()
        })
    }
}

impl Fragment {
    /// This fragment in another type, in new registers: [`Kernel::convert_fragment`].
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::ir::Element;
    /// use layout_core::{Layout, TiledMma, atoms};
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    /// let lane = k.lane();
    /// let sums = k.accumulators(&mma, [16, 8], lane)?;
    /// assert_eq!(sums.convert(&mut k, Element::Bf16)?.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Kernel::convert_fragment`].
    #[track_caller]
    pub fn convert(&self, k: &mut Kernel, to: Element) -> Result<Self, ViewError> {
        k.at_line();
        k.convert_fragment(self, to)
    }
}
