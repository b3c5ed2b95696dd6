//! Fragments in other types.

use super::{Fragment, registers_of};
use crate::ir::{Class, Element, Kernel, Reg, Rounding, Type};
use crate::value::{Bf16x2, F16x2, F32, S32, U32, byte_floats};
use crate::view::ViewError;

impl Kernel {
    /// A fragment in another type, in new registers; the same fragment if it has that type.
    ///
    /// Values are converted by way of f32 (s8 to f16 at once), each step exact or rounded to nearest even. To s8, s32, e4m3 and e5m2 they saturate, infinities too. NaN becomes the
    /// integer 0 and stays NaN in floats. The 8-bit floats need `sm_89`.
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
    /// [`ViewError::Conversion`] from or to f64; [`ViewError::Fragment`] if a thread's values do not fill words of the new type.
    #[track_caller]
    pub fn convert_fragment(
        &mut self,
        fragment: &Fragment,
        to: Element,
    ) -> Result<Fragment, ViewError> {
        self.at_line();
        fragment.own(self)?;
        if fragment.element == to {
            return Ok(fragment.clone());
        }
        let from = fragment.element;
        if from == Element::F64 || to == Element::F64 {
            return Err(ViewError::Conversion { from, to });
        }
        let (_, each) = registers_of(to, false);
        let values = fragment.values();
        if !values.is_multiple_of(each) {
            let reason = format!(
                "a word has {each} elements of {to}, and a thread has {values}: let it have a multiple of {each}"
            );
            return Err(fragment.refuse("a conversion", reason));
        }
        let registers = if (from, to) == (Element::S8, Element::F16) {
            let words = fragment.registers.iter();
            let of = |&word| U32::held(self, word).bytes_f16(self);
            let pairs: Vec<F16x2> = words.flat_map(of).collect();
            pairs.into_iter().map(|pair| pair.register(self)).collect()
        } else {
            let wide = widened(self, fragment);
            narrowed(self, &wide, to)
        };
        Ok(Fragment {
            element: to,
            origin: self.here(),
            registers,
            each,
            ..fragment.clone()
        })
    }
}

/// The values of a fragment as f32: exact except for s32, which is rounded to nearest even.
fn widened(k: &mut Kernel, fragment: &Fragment) -> Vec<F32> {
    let of = |k: &mut Kernel, word: Reg| match fragment.element {
        Element::F16 => F16x2::held(k, word).to_f32(k).to_vec(),
        Element::Bf16 => Bf16x2::held(k, word).to_f32(k).to_vec(),
        Element::E4m3 | Element::E5m2 => {
            let ty = pair_of(fragment.element);
            let halves = k.unpack(word);
            halves.map(|half| byte_floats(k, ty, half)).concat()
        }
        Element::S8 => U32::held(k, word).bytes_f32(k).to_vec(),
        Element::S32 => vec![S32::held(k, word).to_f32(k)],
        // A factor's words have no meaning.
        Element::F32 if word.class == Class::B32 => vec![U32::held(k, word).as_f32(k)],
        Element::F32 | Element::F64 => vec![F32::held(k, word)],
    };
    let words = fragment.registers.iter();
    words.flat_map(|&word| of(k, word)).collect()
}

/// Words of values in another type than f64.
fn narrowed(k: &mut Kernel, values: &[F32], to: Element) -> Vec<Reg> {
    let word = |k: &mut Kernel, values: &[F32]| match *values {
        [low, high] if to == Element::F16 => low.pair_f16(k, high).register(k),
        [low, high] => low.pair_bf16(k, high).register(k),
        [a, b, c, d] if to == Element::S8 => {
            let bytes = [a, b, c, d].map(|x| x.to_s8(k, Rounding::Nearest).register(k));
            // The lowest byte of each, then two pairs.
            let low = k.permute(bytes[0], bytes[1], 0x0040);
            let high = k.permute(bytes[2], bytes[3], 0x0040);
            k.permute(low, high, 0x5410)
        }
        [a, b, c, d] => {
            let halves = [(a, b), (c, d)].map(|(low, high)| low.bytes(k, pair_of(to), high));
            let word = k.reg(Class::B32);
            k.pack(word, &halves);
            word
        }
        [x] if to == Element::S32 => x.to_s32(k, Rounding::Nearest).register(k),
        _ => values[0].register(k),
    };
    let (_, each) = registers_of(to, false);
    values.chunks(each).map(|values| word(k, values)).collect()
}

/// The type of two 8-bit floats.
fn pair_of(element: Element) -> Type {
    match element {
        Element::E4m3 => Type::E4m3x2,
        _ => Type::E5m2x2,
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
