//! How elements lie in registers: one in each, or several narrow ones together in a word.

use crate::ir::{Binary, Class, Element, Kernel, Reg, Type};

/// The registers of an element, and its type in memory.
pub(crate) fn held(element: Element) -> (Class, Type) {
    match element {
        Element::F32 => (Class::F32, Type::F32),
        Element::F64 => (Class::F64, Type::F64),
        Element::S32 => (Class::B32, Type::B32),
        Element::F16 | Element::Bf16 => (Class::B16, Type::B16),
        Element::S8 | Element::E4m3 | Element::E5m2 => (Class::B16, Type::U8),
    }
}

/// The registers that an access of `n` elements takes: their class, their type and their number. Narrow elements lie together in words.
pub(super) fn words(element: Element, n: i64) -> (Class, Type, usize) {
    let (class, ty) = held(element);
    match n * i64::from(element.bytes()) {
        _ if n == 1 || element.bytes() >= 4 => (class, ty, n as usize),
        2 => (Class::B16, Type::B16, 1),
        bytes => (Class::B32, Type::B32, (bytes / 4) as usize),
    }
}

impl Kernel {
    /// Words taken apart to values.
    pub(super) fn take_apart(&mut self, element: Element, words: &[Reg], values: &[Reg]) {
        let each = values.len() / words.len();
        for (&word, values) in words.iter().zip(values.chunks(each)) {
            match (element.bytes(), word.class) {
                (2, _) => self.push(crate::ir::Inst::Unpack {
                    to: values.to_vec(),
                    from: word,
                }),
                (_, Class::B16) => self.split_bytes(word, values),
                _ => {
                    let halves = self.unpack(word);
                    self.split_bytes(halves[0], &values[..2]);
                    self.split_bytes(halves[1], &values[2..]);
                }
            }
        }
    }

    /// Two bytes of a 16-bit register, each in the low bits of one.
    fn split_bytes(&mut self, half: Reg, to: &[Reg]) {
        self.binary(Binary::And, Type::B16, to[0], half, 255);
        self.binary(Binary::Shr, Type::U16, to[1], half, 8);
    }

    /// Values put together to words.
    pub(super) fn put_together(&mut self, element: Element, values: &[Reg], words: &[Reg]) {
        let each = values.len() / words.len();
        for (&word, values) in words.iter().zip(values.chunks(each)) {
            match (element.bytes(), word.class) {
                (2, _) => self.pack(word, values),
                (_, Class::B16) => self.join_bytes(word, values),
                _ => {
                    let halves = [self.reg(Class::B16), self.reg(Class::B16)];
                    self.join_bytes(halves[0], &values[..2]);
                    self.join_bytes(halves[1], &values[2..]);
                    self.pack(word, &halves);
                }
            }
        }
    }

    /// Two bytes to a 16-bit register: `high·256 + low`.
    fn join_bytes(&mut self, to: Reg, from: &[Reg]) {
        let low = self.reg(Class::B16);
        self.binary(Binary::And, Type::B16, low, from[0], 255);
        self.binary(Binary::Shl, Type::B16, to, from[1], 8);
        self.binary(Binary::Or, Type::B16, to, to, low);
    }
}
