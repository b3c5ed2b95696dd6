//! Between elements in memory and numbers in registers.
//!
//! An epilogue computes in f32, f64 or s32. What lies in memory in other types is widened when it is read, and rounded once when it is stored:
//! floats to nearest even, to 8-bit integers with saturation.

use layout_codegen::ir::instructions::{
    Address, Binary, Cache, Class, Instructions, Pred, Reg, Src, Type,
};
use layout_codegen::ir::{Element, Kernel};

/// Registers of a scalar, their type where they are moved, and zero.
pub(crate) fn scalar_type(scalar: Element) -> (Class, Type, Src) {
    match scalar {
        Element::F64 => (Class::F64, Type::F64, 0.0f64.into()),
        Element::S32 => (Class::B32, Type::B32, 0.into()),
        _ => (Class::F32, Type::F32, 0.0f32.into()),
    }
}

/// The type of a scalar's arithmetic, from the one that it is moved in.
pub(crate) fn arithmetic(ty: Type) -> Type {
    if ty == Type::B32 { Type::S32 } else { ty }
}

/// Elements of these types are read as, and stored from, numbers of a type that an epilogue computes in.
pub(crate) fn converts(scalar: Element) -> &'static [Element] {
    match scalar {
        Element::F32 => &[
            Element::F32,
            Element::F16,
            Element::Bf16,
            Element::S32,
            Element::S8,
        ],
        Element::S32 => &[Element::S32, Element::S8],
        Element::F64 => &[Element::F64],
        _ => &[],
    }
}

/// A 16-bit float.
fn is_half(element: Element) -> bool {
    matches!(element, Element::F16 | Element::Bf16)
}

/// The type of a 16-bit element, alone and in pairs.
fn halves(element: Element) -> (Type, Type) {
    if element == Element::F16 {
        (Type::F16, Type::F16x2)
    } else {
        (Type::Bf16, Type::Bf16x2)
    }
}

/// A 16-bit float as f32.
fn widen(k: &mut Kernel, from: Element, h: Reg) -> Reg {
    let wide = k.reg(Class::F32);
    if from == Element::F16 {
        k.convert(Type::F32, wide, Type::F16, h);
    } else {
        let low = k.reg(Class::B16);
        k.set(Type::B16, low, 0);
        k.pack(wide, &[low, h]);
    }
    wide
}

/// The two 16-bit floats of a register as f32.
pub(crate) fn widen_pair(k: &mut Kernel, from: Element, packed: Reg) -> [Reg; 2] {
    k.unpack(packed).map(|h| widen(k, from, h))
}

/// A 32-bit integer in the type that is computed in.
pub(crate) fn from_integer(k: &mut Kernel, scalar: Element, value: Reg) -> Reg {
    if scalar == Element::S32 {
        return value;
    }
    let real = k.reg(Class::F32);
    k.convert(Type::F32, real, Type::S32, value);
    real
}

/// One element as a number of type `scalar`, 0 where `guard` does not hold.
pub(crate) fn load_one(
    k: &mut Kernel,
    (element, scalar): (Element, Element),
    guard: Option<Pred>,
    at: Address,
) -> Reg {
    let load = |k: &mut Kernel, class: Class, set: Type, ty: Type, zero: Src| {
        let r = k.reg(class);
        if guard.is_some() {
            k.set(set, r, zero);
        }
        k.load(guard, Cache::Coherent, ty, &[r], at);
        r
    };
    match element {
        Element::F16 | Element::Bf16 => {
            let h = load(k, Class::B16, Type::B16, Type::B16, 0.into());
            widen(k, element, h)
        }
        Element::S8 => {
            let byte = load(k, Class::B32, Type::B32, Type::U8, 0.into());
            k.binary(Binary::Shl, Type::B32, byte, byte, 24);
            k.binary(Binary::Shr, Type::S32, byte, byte, 24);
            from_integer(k, scalar, byte)
        }
        Element::S32 => {
            let value = load(k, Class::B32, Type::B32, Type::B32, 0.into());
            from_integer(k, scalar, value)
        }
        _ => {
            let (class, ty, zero) = scalar_type(element);
            load(k, class, ty, ty, zero)
        }
    }
}

/// `at.len()` neighbouring elements, read `chunk` at once, which is a power of two of at most 16 bytes.
pub(crate) fn load_all(
    k: &mut Kernel,
    (element, scalar): (Element, Element),
    chunk: usize,
    at: &[Address],
) -> Vec<Reg> {
    let mut all = Vec::new();
    for at in at.chunks(chunk.max(1)) {
        let (count, at) = (at.len(), at[0]);
        if count == 1 {
            all.push(load_one(k, (element, scalar), None, at));
        } else {
            let words = load_words(k, element, None, count, at);
            all.extend(widen_words(k, (element, scalar), &words));
        }
    }
    all
}

/// `count` neighbouring elements as they lie in memory, in registers that hold two 16-bit floats or one wider element, or a single one of 16 bits; 0 where
/// `guard` does not hold. [`widen_words`] makes numbers of them.
pub(crate) fn load_words(
    k: &mut Kernel,
    element: Element,
    guard: Option<Pred>,
    count: usize,
    at: Address,
) -> Vec<Reg> {
    let (words, ty, zero) = match (is_half(element), count) {
        (true, 1) => (k.regs(Class::B16, 1), Type::B16, 0.into()),
        (true, _) => (k.regs(Class::B32, count / 2), Type::B32, 0.into()),
        (false, _) => {
            let (class, ty, zero) = scalar_type(element);
            (k.regs(class, count), ty, zero)
        }
    };
    if guard.is_some() {
        for &word in &words {
            k.set(ty, word, zero);
        }
    }
    k.load(guard, Cache::Coherent, ty, &words, at);
    words
}

/// The numbers of type `scalar` in what [`load_words`] read.
pub(crate) fn widen_words(
    k: &mut Kernel,
    (element, scalar): (Element, Element),
    words: &[Reg],
) -> Vec<Reg> {
    let number = |&word: &Reg| match element {
        Element::F16 | Element::Bf16 if word.class() == Class::B16 => vec![widen(k, element, word)],
        Element::F16 | Element::Bf16 => widen_pair(k, element, word).to_vec(),
        Element::S32 => vec![from_integer(k, scalar, word)],
        _ => vec![word],
    };
    words.iter().flat_map(number).collect()
}

/// The most elements that [`load_all`] reads at once from rows aligned to `aligned` bytes.
pub(crate) fn chunk(element: Element, aligned: u32) -> usize {
    if element == Element::S8 {
        return 1;
    }
    (aligned.min(16) / element.bytes()).max(1) as usize
}

/// A number rounded to an 8-bit integer, in the low bits of a register. NaN becomes 0, as in conversions to 32 bits.
fn to_byte(k: &mut Kernel, scalar: Element, value: Reg) -> Reg {
    let whole = to_integers(k, scalar, &[value])[0];
    let byte = k.reg(Class::B32);
    k.binary(Binary::Max, Type::S32, byte, whole, -128);
    k.binary(Binary::Min, Type::S32, byte, byte, 127);
    byte
}

/// Numbers as 32-bit integers.
fn to_integers(k: &mut Kernel, scalar: Element, values: &[Reg]) -> Vec<Reg> {
    if scalar == Element::S32 {
        return values.to_vec();
    }
    let to = k.regs(Class::B32, values.len());
    for (to, value) in to.iter().zip(values) {
        k.convert(Type::S32, *to, Type::F32, *value);
    }
    to
}

/// Numbers rounded to 16 bits, two in a register. `packs`: there is an instruction that rounds two at once (from `sm_80`).
fn pairs(k: &mut Kernel, element: Element, packs: bool, values: &[Reg]) -> Vec<Reg> {
    let (single, two) = halves(element);
    let mut pair = |pair: &[Reg]| {
        if packs {
            return k.convert_pair(two, pair[0], pair[1]);
        }
        let packed = k.reg(Class::B32);
        let parts = [k.reg(Class::B16), k.reg(Class::B16)];
        for (h, s) in parts.iter().zip(pair) {
            k.convert(single, *h, Type::F32, *s);
        }
        k.pack(packed, &parts);
        packed
    };
    values.chunks(2).map(&mut pair).collect()
}

/// Stores neighbouring elements at once, where `guard` holds. `packs`: there is an instruction that rounds two numbers at once (from `sm_80`).
pub(crate) fn store_all(
    k: &mut Kernel,
    (element, scalar): (Element, Element),
    packs: bool,
    guard: Option<Pred>,
    values: &[Reg],
    at: Address,
) {
    if values.len() == 1 {
        return store_one(k, (element, scalar), guard, values[0], at);
    }
    match element {
        Element::F16 | Element::Bf16 => {
            let packed = pairs(k, element, packs, values);
            k.store(guard, Type::B32, &packed, at);
        }
        Element::S8 => {
            let bytes: Vec<Reg> = values.iter().map(|v| to_byte(k, scalar, *v)).collect();
            if bytes.len() == 2 {
                let both = k.permute(bytes[0], bytes[1], 0x0040);
                return k.store(guard, Type::U16, &[both], at);
            }
            let words: Vec<Reg> = bytes
                .chunks(4)
                .map(|b| {
                    let low = k.permute(b[0], b[1], 0x0040);
                    let high = k.permute(b[2], b[3], 0x0040);
                    k.permute(low, high, 0x5410)
                })
                .collect();
            k.store(guard, Type::B32, &words, at);
        }
        Element::S32 => {
            let values = to_integers(k, scalar, values);
            k.store(guard, Type::B32, &values, at);
        }
        _ => k.store(guard, scalar_type(element).1, values, at),
    }
}

/// Stores one element, where `guard` holds.
pub(crate) fn store_one(
    k: &mut Kernel,
    (element, scalar): (Element, Element),
    guard: Option<Pred>,
    value: Reg,
    at: Address,
) {
    match element {
        Element::F16 | Element::Bf16 => {
            let out = k.reg(Class::B16);
            k.convert(halves(element).0, out, Type::F32, value);
            k.store(guard, Type::B16, &[out], at);
        }
        Element::S8 => {
            let byte = to_byte(k, scalar, value);
            k.store(guard, Type::U8, &[byte], at);
        }
        Element::S32 => {
            let values = to_integers(k, scalar, &[value]);
            k.store(guard, Type::B32, &values, at);
        }
        _ => k.store(guard, scalar_type(element).1, &[value], at),
    }
}
