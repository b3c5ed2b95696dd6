//! Operands, and the integer arithmetic of index expressions.
//!
//! Integer registers are unsigned, since the representation's arithmetic wraps: where an operation takes its operands as signed, they are
//! cast.

use std::collections::BTreeMap;

use crate::index::code::{Op, Operand, Ty};
use crate::ir::{Class, Reg, Src, Type, class_of};

use super::names::Names;
use super::pointers::Pointers;

/// Registers as they are written.
pub(super) struct Operands<'a> {
    pub(super) names: &'a Names,
    pub(super) pointers: &'a Pointers,
    /// Registers that are written as their value, where they are used once.
    inlined: BTreeMap<Reg, String>,
}

impl<'a> Operands<'a> {
    pub(super) fn new(names: &'a Names, pointers: &'a Pointers) -> Self {
        Self {
            names,
            pointers,
            inlined: BTreeMap::new(),
        }
    }

    /// From here on the register is written as its value.
    pub(super) fn inline(&mut self, reg: Reg, value: &str) {
        let value = if is_atom(value) {
            value.to_owned()
        } else {
            format!("({value})")
        };
        self.inlined.insert(reg, value);
    }

    pub(super) fn register(&self, reg: Reg) -> String {
        let inlined = self.inlined.get(&reg);
        inlined.cloned().unwrap_or_else(|| self.names.register(reg))
    }

    pub(super) fn is_pointer(&self, reg: Reg) -> bool {
        self.pointers.contains(reg)
    }

    pub(super) fn writable(&self, reg: Reg) -> bool {
        self.pointers.writable(reg)
    }

    /// The type that a register is declared with.
    pub(super) fn declared(&self, reg: Reg) -> &'static str {
        match reg.class {
            Class::B16 => "ushort ",
            Class::B32 => "uint ",
            Class::B64 if !self.is_pointer(reg) => "ulong ",
            Class::B64 if self.writable(reg) => "__global uchar *",
            Class::B64 => "const __global uchar *",
            Class::F32 => "float ",
            Class::F64 => "double ",
            Class::Pred => "bool ",
        }
    }

    /// A register as a number without sign.
    fn number(&self, reg: Reg) -> String {
        if self.is_pointer(reg) {
            format!("(ulong){}", self.register(reg))
        } else {
            self.register(reg)
        }
    }

    /// An operand as a value of `ty`.
    fn typed(&self, v: Operand, ty: Ty) -> String {
        match v {
            Operand::Imm(k) => match ty {
                Ty::U32 | Ty::U64 => constant(k, ty.wide()),
                Ty::S32 => signed(k, false),
                Ty::S64 => signed(k, true),
            },
            Operand::Reg(id, from) => {
                let reg = Reg {
                    class: class_of(from),
                    id,
                };
                let name = self.number(reg);
                match (ty, from.wide()) {
                    (Ty::U32, false) | (Ty::U64, true) => name,
                    _ => format!("({}){name}", type_name(ty)),
                }
            }
        }
    }

    /// The pointer among operands, and where it stands.
    fn pointer(&self, args: &[Operand]) -> Option<(usize, String)> {
        args.iter().enumerate().find_map(|(i, a)| match a {
            Operand::Reg(id, ty) if ty.wide() => {
                let reg = Reg {
                    class: Class::B64,
                    id: *id,
                };
                self.is_pointer(reg).then(|| (i, self.register(reg)))
            }
            _ => None,
        })
    }

    /// The value of an instruction of an index expression; `to_pointer` if the result is one.
    pub(super) fn index(
        &self,
        op: Op,
        ty: Ty,
        from: Ty,
        args: &[Operand],
        to_pointer: bool,
    ) -> String {
        let arg = |i: usize, ty: Ty| args.get(i).map_or_else(String::new, |&a| self.typed(a, ty));
        let unsigned = if ty.wide() { Ty::U64 } else { Ty::U32 };
        let wide = if ty.signed() { Ty::S64 } else { Ty::U64 };
        if let (true, Some((at, pointer))) = (to_pointer, self.pointer(args)) {
            return self.moved(op, ty, args, (at, &pointer));
        }
        let back = |text: String| {
            if ty.signed() {
                format!("({})({text})", type_name(unsigned))
            } else {
                text
            }
        };
        match op {
            Op::Add => match args.get(1) {
                Some(Operand::Imm(k)) if *k < 0 => format!(
                    "{} - {}",
                    arg(0, unsigned),
                    constant(k.wrapping_neg(), ty.wide())
                ),
                _ => format!("{} + {}", arg(0, unsigned), arg(1, unsigned)),
            },
            Op::Sub => format!("{} - {}", arg(0, unsigned), arg(1, unsigned)),
            Op::Mul => format!("{} * {}", arg(0, unsigned), arg(1, unsigned)),
            // Less so many, not plus nearly 2³².
            Op::Mad if matches!(args.get(1), Some(Operand::Imm(k)) if *k < 0) => {
                let factor = match args.get(1) {
                    Some(Operand::Imm(k)) => constant(k.wrapping_neg(), ty.wide()),
                    _ => String::new(),
                };
                format!("{} - {} * {factor}", arg(2, unsigned), arg(0, unsigned))
            }
            Op::Mad => format!(
                "{} * {} + {}",
                arg(0, unsigned),
                arg(1, unsigned),
                arg(2, unsigned)
            ),
            Op::MulWide => {
                let product = self.product(args, ty, wide);
                if ty.signed() {
                    format!("(ulong)({product})")
                } else {
                    product
                }
            }
            Op::MadWide => {
                let product = self.product(args, ty, wide);
                let product = if ty.signed() {
                    format!("(ulong)({product})")
                } else {
                    product
                };
                format!("{product} + {}", arg(2, Ty::U64))
            }
            Op::MulHi => back(format!("mul_hi({}, {})", arg(0, ty), arg(1, ty))),
            Op::Shl => format!("{} << {}", arg(0, unsigned), shift(&arg(1, Ty::U32))),
            Op::Shr => back(format!("{} >> {}", arg(0, ty), shift(&arg(1, Ty::U32)))),
            Op::And => format!("{} & {}", arg(0, unsigned), arg(1, unsigned)),
            Op::Xor => format!("{} ^ {}", arg(0, unsigned), arg(1, unsigned)),
            Op::Div => back(format!("{} / {}", arg(0, ty), arg(1, ty))),
            Op::Widen if from.signed() => format!("(ulong)(long){}", arg(0, Ty::S32)),
            Op::Widen => format!("(ulong){}", arg(0, Ty::U32)),
            Op::Narrow => format!("(uint){}", arg(0, Ty::U64)),
        }
    }

    /// A product of two 32-bit operands with 64 bits.
    fn product(&self, args: &[Operand], ty: Ty, wide: Ty) -> String {
        let factor = |i: usize| match args.get(i) {
            Some(a @ Operand::Imm(_)) => self.typed(*a, wide),
            Some(a) => format!("({}){}", type_name(wide), self.typed(*a, ty)),
            None => String::new(),
        };
        format!("{} * {}", factor(0), factor(1))
    }

    /// A pointer plus a distance in bytes.
    fn moved(&self, op: Op, ty: Ty, args: &[Operand], (at, pointer): (usize, &str)) -> String {
        match (op, args) {
            (Op::MadWide, _) => {
                let wide = if ty.signed() { Ty::S64 } else { Ty::U64 };
                format!("{pointer} + {}", self.product(args, ty, wide))
            }
            (Op::Mad, [a, b, _]) => format!(
                "{pointer} + {} * {}",
                self.typed(*a, Ty::U64),
                self.typed(*b, Ty::U64)
            ),
            (Op::Sub, [_, Operand::Imm(k)]) => format!("{pointer} - {k}"),
            (Op::Sub, [_, b]) => format!("{pointer} - {}", self.typed(*b, Ty::U64)),
            (_, [a, b]) => match if at == 0 { b } else { a } {
                Operand::Imm(k) if *k < 0 => format!("{pointer} - {}", k.unsigned_abs()),
                Operand::Imm(k) => format!("{pointer} + {k}"),
                other @ Operand::Reg(..) => {
                    format!("{pointer} + {}", self.typed(*other, Ty::U64))
                }
            },
            _ => pointer.to_owned(),
        }
    }

    /// A source as a value of `ty`.
    pub(super) fn source(&self, src: Src, ty: Type) -> String {
        match src {
            Src::Reg(r) => {
                let name = self.number(r);
                match signed_name(ty) {
                    Some(cast) => format!("({cast}){name}"),
                    None => name,
                }
            }
            Src::Int(k) => match ty {
                Type::S32 => signed(k, false),
                Type::S64 => signed(k, true),
                Type::F32 | Type::F64 => format!("{k}.0"),
                _ => constant(k, ty.bytes() == 8),
            },
            Src::F32(bits) => float(f32::from_bits(bits).into(), bits.into(), false),
            Src::F64(bits) => float(f64::from_bits(bits), bits, true),
        }
    }
}

/// Whether an expression needs no parentheses as an operand: a name, a number, what is in parentheses, or one of these after a cast.
pub(super) fn is_atom(text: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
    if text.bytes().all(word) {
        return !text.is_empty();
    }
    // The first pair of parentheses: the whole, or the type of a cast.
    let Some(end) = text.starts_with('(').then(|| closing(text)).flatten() else {
        return false;
    };
    let (first, rest) = text.split_at(end + 1);
    let casts = ["(uint)", "(ulong)", "(int)", "(long)"].contains(&first);
    rest.is_empty() || (casts && is_atom(rest))
}

/// Where the parenthesis closes that a text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0i32;
    text.bytes().position(|b| {
        open += i32::from(b == b'(') - i32::from(b == b')');
        open == 0
    })
}

/// An expression without parentheses around the whole of it.
pub(super) fn bare(text: &str) -> &str {
    match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(inner) if closing(text) == Some(text.len() - 1) => inner,
        _ => text,
    }
}

/// A constant of 32 or 64 bits without sign.
pub(super) fn constant(k: i64, wide: bool) -> String {
    if wide {
        format!("{}ul", k as u64)
    } else {
        format!("{}u", k as u32)
    }
}

/// A literal that is exactly the float of those bits.
fn float(value: f64, bits: u64, double: bool) -> String {
    match (value.is_finite(), double) {
        (false, true) => format!("as_double({bits:#018x}ul)"),
        (false, false) => format!("as_float({bits:#010x}u)"),
        // The shortest decimal that is read as the same number.
        (true, true) => format!("{value:?}"),
        (true, false) => format!("{:?}f", value as f32),
    }
}

fn signed(k: i64, wide: bool) -> String {
    match (k, wide) {
        (k, false) if k as i32 == i32::MIN => "(-2147483647 - 1)".to_owned(),
        (k, false) => (k as i32).to_string(),
        (i64::MIN, true) => "(-9223372036854775807l - 1)".to_owned(),
        (k, true) => format!("{k}l"),
    }
}

/// A shift distance without its suffix.
fn shift(text: &str) -> &str {
    match text.strip_suffix('u') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits,
        _ => text,
    }
}

fn signed_name(ty: Type) -> Option<&'static str> {
    match ty {
        Type::S32 => Some("int"),
        Type::S64 => Some("long"),
        _ => None,
    }
}

fn type_name(ty: Ty) -> &'static str {
    match ty {
        Ty::U32 => "uint",
        Ty::S32 => "int",
        Ty::U64 => "ulong",
        Ty::S64 => "long",
    }
}
