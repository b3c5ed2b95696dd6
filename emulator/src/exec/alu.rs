//! Integer and bit operations on rows (PTX ISA, sections 9.7.1, 9.7.2, 9.7.8).
//!
//! Each operation is one expression on a lane's values, applied to all 32 lanes by the same loop, which the compiler turns into
//! vector code where the operation allows. Results of inactive lanes are computed and thrown away; no operation here can fail.

use super::registers::Rows;
use super::warp::Warp;
use crate::ir::{IntOp, NONE, Row};

/// A row of a 32-bit register.
pub(crate) type Row32 = [u32; 32];
/// A row of a 64-bit register.
pub(crate) type Row64 = [u64; 32];

macro_rules! lanes {
    ($a:ident $b:ident $c:ident, $e:expr) => {{
        let mut out = [0; 32];
        for i in 0..32 {
            #[allow(unused_variables)]
            let ($a, $b, $c) = ($a[i], $b[i], $c[i]);
            out[i] = $e;
        }
        out
    }};
}

/// What a register of 32 or of 64 bits holds of a lane.
pub(crate) trait Word: Copy {
    /// `self` where `mask` is -1, `other` where it is 0.
    fn or(self, other: Self, mask: i8) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn or(self, other: Self, mask: i8) -> Self {
        other ^ ((self ^ other) & mask as u32)
    }
}

impl Word for u64 {
    #[inline(always)]
    fn or(self, other: Self, mask: i8) -> Self {
        other ^ ((self ^ other) & mask as u64)
    }
}

/// -1 for each bit that is set in a byte and 0 for the others.
static SPREAD: [[i8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = -((byte >> bit & 1) as i8);
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Writes `out` to the active lanes of `d`.
///
/// The masks come from a table. If they are computed here, the compiler sees a choice between new and old and makes it a masked store, which takes AMD's
/// processors ten times as long as a load, a blend and a store.
#[inline(always)]
pub(crate) fn put<T: Word>(d: &mut [T; 32], out: &[T; 32], active: u32) {
    if active == u32::MAX {
        *d = *out;
    } else {
        for group in 0..4 {
            let masks = &SPREAD[usize::from((active >> (8 * group)) as u8)];
            for i in 0..8 {
                let lane = 8 * group + i;
                d[lane] = out[lane].or(d[lane], masks[i]);
            }
        }
    }
}

/// Lanes up to which one after the other is faster than a whole row.
pub(crate) const FEW: u32 = 10;

fn sext24(x: u32) -> i32 {
    ((x << 8) as i32) >> 8
}

/// The frequent operations on rows of 32 bits: what `$then` does with the result of one, `$else` for the others.
macro_rules! frequent32 {
    ($f:expr, $a:ident $b:ident $c:ident, $out:ident => $then:expr, $else:expr) => {
        frequent32! {@ $f, $a $b $c, $out, $then, $else;
            Add $a.wrapping_add($b),
            Sub $a.wrapping_sub($b),
            MulLo $a.wrapping_mul($b),
            MadLo $a.wrapping_mul($b).wrapping_add($c),
            And $a & $b,
            Or $a | $b,
            Xor $a ^ $b,
            Not !$a,
            Shl if $b < 32 { $a << ($b & 31) } else { 0 },
            ShrU if $b < 32 { $a >> ($b & 31) } else { 0 },
            ShrS (($a as i32) >> $b.min(31)) as u32,
            MinU $a.min($b),
            MinS ($a as i32).min($b as i32) as u32,
            MaxU $a.max($b),
            MaxS ($a as i32).max($b as i32) as u32,
        }
    };
    (@ $f:expr, $a:ident $b:ident $c:ident, $out:ident, $then:expr, $else:expr; $($op:ident $e:expr,)*) => {
        match $f {
            $(IntOp::$op => {
                let $out = lanes!($a $b $c, $e);
                $then
            })*
            _ => $else,
        }
    };
}

/// `f` on rows `a`, `b` and `c` of 32 bits, written to the active lanes of row `d`.
///
/// Each operation writes its result itself. If one place wrote all of them, they would come there through memory, and an instruction that uses the result
/// would wait twice as long for it.
#[inline(always)]
pub(crate) fn int32(f: IntOp, rows: &mut Rows<u32>, [d, a, b, c]: [Row; 4], active: u32) {
    let d = d as usize;
    let [a, b, c] = [a, b, c].map(|row| &rows[row as usize]);
    frequent32!(f, a b c, out => put(&mut rows[d], &out, active), {
        let out = int32_rare(f, a, b, c);
        put(&mut rows[d], &out, active);
    });
}

/// `f` on rows of 32 bits.
#[inline(never)]
pub(crate) fn int32_rare(f: IntOp, a: &Row32, b: &Row32, c: &Row32) -> Row32 {
    let s = |x: u32| x as i32;
    match f {
        IntOp::AddSat => lanes!(a b c, s(a).saturating_add(s(b)) as u32),
        IntOp::SubSat => lanes!(a b c, s(a).saturating_sub(s(b)) as u32),
        IntOp::MulHiU => lanes!(a b c, ((u64::from(a) * u64::from(b)) >> 32) as u32),
        IntOp::MulHiS => lanes!(a b c, ((i64::from(s(a)) * i64::from(s(b))) >> 32) as u32),
        IntOp::MadHiU => {
            lanes!(a b c, (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c))
        }
        IntOp::MadHiS => {
            lanes!(a b c, (((i64::from(s(a)) * i64::from(s(b))) >> 32) as u32).wrapping_add(c))
        }
        IntOp::MadHiSat => {
            lanes!(a b c, (((i64::from(s(a)) * i64::from(s(b))) >> 32) as i32).saturating_add(s(c)) as u32)
        }
        IntOp::Mul24LoU => lanes!(a b c, (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
        IntOp::Mul24LoS => lanes!(a b c, sext24(a).wrapping_mul(sext24(b)) as u32),
        IntOp::Mul24HiU => {
            lanes!(a b c, ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32)
        }
        IntOp::Mul24HiS => {
            lanes!(a b c, ((i64::from(sext24(a)) * i64::from(sext24(b))) >> 16) as u32)
        }
        IntOp::Mad24LoU => {
            lanes!(a b c, (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c))
        }
        IntOp::Mad24LoS => {
            lanes!(a b c, (sext24(a).wrapping_mul(sext24(b)) as u32).wrapping_add(c))
        }
        IntOp::Mad24HiU => {
            lanes!(a b c, (((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32).wrapping_add(c))
        }
        IntOp::Mad24HiS => {
            lanes!(a b c, (((i64::from(sext24(a)) * i64::from(sext24(b))) >> 16) as u32).wrapping_add(c))
        }
        IntOp::Mad24HiSat => {
            lanes!(a b c, {
                let sum = ((i64::from(sext24(a)) * i64::from(sext24(b))) >> 16) + i64::from(s(c));
                sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32
            })
        }
        // Division by zero gives all ones on the hardware, the remainder the dividend; neither is specified.
        IntOp::DivU => lanes!(a b c, a.checked_div(b).unwrap_or(u32::MAX)),
        IntOp::DivS => {
            lanes!(a b c, if b == 0 { u32::MAX } else { s(a).wrapping_div(s(b)) as u32 })
        }
        IntOp::RemU => lanes!(a b c, a.checked_rem(b).unwrap_or(a)),
        IntOp::RemS => lanes!(a b c, if b == 0 { a } else { s(a).wrapping_rem(s(b)) as u32 }),
        IntOp::Neg => lanes!(a b c, a.wrapping_neg()),
        IntOp::Abs => lanes!(a b c, s(a).wrapping_abs() as u32),
        IntOp::MinRelu => lanes!(a b c, s(a).min(s(b)).max(0) as u32),
        IntOp::MaxRelu => lanes!(a b c, s(a).max(s(b)).max(0) as u32),
        IntOp::SadU => lanes!(a b c, c.wrapping_add(a.abs_diff(b))),
        IntOp::SadS => lanes!(a b c, c.wrapping_add(s(a).abs_diff(s(b)))),
        IntOp::Cnot => lanes!(a b c, u32::from(a == 0)),
        IntOp::BfeU => lanes!(a b c, bfe(u64::from(a), b, c, 32, false) as u32),
        IntOp::BfeS => lanes!(a b c, bfe(u64::from(a), b, c, 32, true) as u32),
        IntOp::Brev => lanes!(a b c, a.reverse_bits()),
        IntOp::Popc => lanes!(a b c, a.count_ones()),
        IntOp::Clz => lanes!(a b c, a.leading_zeros()),
        IntOp::BfindU | IntOp::BfindS | IntOp::BfindShiftU | IntOp::BfindShiftS => {
            lanes!(a b c, bfind(f, u64::from(a), 32))
        }
        IntOp::Fns => lanes!(a b c, fns(a, b, c as i32)),
        IntOp::BmskClamp => lanes!(a b c, bmsk(a, b, true)),
        IntOp::BmskWrap => lanes!(a b c, bmsk(a & 31, b & 31, false)),
        IntOp::SzextClampU => lanes!(a b c, if b >= 32 { a } else { a & ((1 << b) - 1) }),
        IntOp::SzextWrapU => lanes!(a b c, a & ((1 << (b & 31)) - 1)),
        IntOp::SzextClampS => lanes!(a b c, szext(a, b.min(32))),
        IntOp::SzextWrapS => lanes!(a b c, szext(a, b & 31)),
        IntOp::Prmt => lanes!(a b c, prmt(a, b, c)),
        IntOp::PrmtF4e => {
            lanes!(a b c, prmt(a, b, [0x3210, 0x4321, 0x5432, 0x6543][c as usize & 3]))
        }
        IntOp::PrmtB4e => {
            lanes!(a b c, prmt(a, b, [0x5670, 0x6701, 0x7012, 0x0123][c as usize & 3]))
        }
        IntOp::PrmtRc8 => {
            lanes!(a b c, prmt(a, b, [0x0000, 0x1111, 0x2222, 0x3333][c as usize & 3]))
        }
        IntOp::PrmtEcl => {
            lanes!(a b c, prmt(a, b, [0x3210, 0x3211, 0x3222, 0x3333][c as usize & 3]))
        }
        IntOp::PrmtEcr => {
            lanes!(a b c, prmt(a, b, [0x0000, 0x1110, 0x2210, 0x3210][c as usize & 3]))
        }
        IntOp::PrmtRc16 => {
            lanes!(a b c, prmt(a, b, [0x1010, 0x3232, 0x1010, 0x3232][c as usize & 3]))
        }
        IntOp::ShfLWrap => lanes!(a b c, shf_l(a, b, c & 31)),
        IntOp::ShfLClamp => lanes!(a b c, shf_l(a, b, c.min(32))),
        IntOp::ShfRWrap => lanes!(a b c, shf_r(a, b, c & 31)),
        IntOp::ShfRClamp => lanes!(a b c, shf_r(a, b, c.min(32))),
        IntOp::Dp4aUU => lanes!(a b c, dot(a, b, c, 4, false, false, 0)),
        IntOp::Dp4aUS => lanes!(a b c, dot(a, b, c, 4, false, true, 0)),
        IntOp::Dp4aSU => lanes!(a b c, dot(a, b, c, 4, true, false, 0)),
        IntOp::Dp4aSS => lanes!(a b c, dot(a, b, c, 4, true, true, 0)),
        IntOp::Dp2aLoUU => lanes!(a b c, dot(a, b, c, 2, false, false, 0)),
        IntOp::Dp2aLoUS => lanes!(a b c, dot(a, b, c, 2, false, true, 0)),
        IntOp::Dp2aLoSU => lanes!(a b c, dot(a, b, c, 2, true, false, 0)),
        IntOp::Dp2aLoSS => lanes!(a b c, dot(a, b, c, 2, true, true, 0)),
        IntOp::Dp2aHiUU => lanes!(a b c, dot(a, b, c, 2, false, false, 16)),
        IntOp::Dp2aHiUS => lanes!(a b c, dot(a, b, c, 2, false, true, 16)),
        IntOp::Dp2aHiSU => lanes!(a b c, dot(a, b, c, 2, true, false, 16)),
        IntOp::Dp2aHiSS => lanes!(a b c, dot(a, b, c, 2, true, true, 16)),
        _ => frequent32!(f, a b c, out => out, *a),
    }
}

/// `bfe`: `len` bits of `a` from `pos`, both taken modulo 256; signed fields extend their top bit, which is the sign bit of `a` if
/// the field reaches beyond it.
fn bfe(a: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let msb = bits - 1;
    let sign = if !signed || len == 0 {
        0
    } else {
        a >> (pos + len - 1).min(msb) & 1
    };
    (0..bits).fold(0, |d, i| {
        let bit = if i < len && pos + i <= msb {
            a >> (pos + i) & 1
        } else {
            sign
        };
        d | bit << i
    })
}

fn bfind(f: IntOp, a: u64, bits: u32) -> u32 {
    let signed = matches!(f, IntOp::BfindS | IntOp::BfindShiftS);
    let mask = if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    let a = if signed && a >> (bits - 1) & 1 == 1 {
        !a & mask
    } else {
        a
    };
    if a == 0 {
        return u32::MAX;
    }
    let at = a.ilog2();
    if matches!(f, IntOp::BfindShiftU | IntOp::BfindShiftS) {
        bits - 1 - at
    } else {
        at
    }
}

/// `fns`: the position of the n-th set bit of `mask` from `base`, upwards for n > 0, downwards for n < 0.
fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    let set = |i: u32| mask >> i & 1 == 1;
    match offset {
        0 => {
            if set(base) {
                base
            } else {
                u32::MAX
            }
        }
        1.. => (base..32)
            .filter(|&i| set(i))
            .nth(offset as usize - 1)
            .unwrap_or(u32::MAX),
        _ => (0..=base)
            .rev()
            .filter(|&i| set(i))
            .nth(offset.unsigned_abs() as usize - 1)
            .unwrap_or(u32::MAX),
    }
}

fn bmsk(pos: u32, len: u32, clamp: bool) -> u32 {
    if clamp && pos >= 32 {
        return 0;
    }
    let ones = if len >= 32 { u32::MAX } else { (1 << len) - 1 };
    ones << (pos & 31)
}

fn szext(a: u32, bits: u32) -> u32 {
    match bits {
        0 => 0,
        32.. => a,
        n => (((a << (32 - n)) as i32) >> (32 - n)) as u32,
    }
}

fn prmt(a: u32, b: u32, selectors: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |d, i| {
        let sel = selectors >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (sel & 7)) & 0xff) as u32;
        let byte = if sel & 8 == 0 {
            byte
        } else if byte & 0x80 == 0 {
            0
        } else {
            0xff
        };
        d | byte << (8 * i)
    })
}

/// `shf.l`: the high word of (b:a) << n, n ≤ 32.
fn shf_l(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) << n >> 32) as u32
}

/// `shf.r`: the low word of (b:a) >> n, n ≤ 32.
fn shf_r(a: u32, b: u32, n: u32) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> n) as u32
}

/// `dp4a` (n = 4: bytes of a) and `dp2a` (n = 2: halves of a), bytes of b from bit `from`.
fn dot(a: u32, b: u32, c: u32, n: u32, a_signed: bool, b_signed: bool, from: u32) -> u32 {
    let width = 32 / n;
    let field = |x: u32, at: u32, bits: u32, signed: bool| {
        let v = x >> at & ((1 << bits) - 1);
        if signed { szext(v, bits) } else { v }
    };
    (0..n).fold(c, |sum, i| {
        let (x, y) = (
            field(a, i * width, width, a_signed),
            field(b, from + 8 * i, 8, b_signed),
        );
        sum.wrapping_add(x.wrapping_mul(y))
    })
}

/// `f` on rows of 16 bits: operands extended by `signed`; the caller cuts the result.
#[inline(never)]
pub(crate) fn int16(f: IntOp, signed: bool, wide: bool, a: &Row32, b: &Row32, c: &Row32) -> Row32 {
    let extend = |r: &Row32| {
        r.map(|x| {
            if signed {
                x as u16 as i16 as i32 as u32
            } else {
                x & 0xffff
            }
        })
    };
    // Shift amounts are 32 bits; the addend of a wide mad is too.
    let shift = matches!(f, IntOp::Shl | IntOp::ShrU | IntOp::ShrS);
    let a = &extend(a);
    let b = &if shift { *b } else { extend(b) };
    let c = &if wide { *c } else { extend(c) };
    let out = match f {
        IntOp::Clz => a.map(|x| (x as u16).leading_zeros()),
        IntOp::Cnot => a.map(|x| u32::from(x as u16 == 0)),
        IntOp::Brev => a.map(|x| u32::from((x as u16).reverse_bits())),
        // The upper half of the product of 16 bits; extended operands multiply exactly.
        IntOp::MulHiU | IntOp::MulHiS => lanes!(a b c, a.wrapping_mul(b) >> 16),
        IntOp::MadHiU | IntOp::MadHiS => {
            lanes!(a b c, (a.wrapping_mul(b) >> 16).wrapping_add(c))
        }
        _ => int32_rare(f, a, b, c),
    };
    if wide { out } else { out.map(|x| x & 0xffff) }
}

/// `f` on rows `a`, `b` and `c` of 64 bits, written to the active lanes of row `d`, see [`int32`].
#[inline(always)]
pub(crate) fn int64(f: IntOp, rows: &mut Rows<u64>, [d, a, b, c]: [Row; 4], active: u32) {
    let d = d as usize;
    let [a, b, c] = [a, b, c].map(|row| &rows[row as usize]);
    macro_rules! set {
        ($e:expr) => {{
            let out = $e;
            put(&mut rows[d], &out, active);
        }};
    }
    match f {
        IntOp::Add => set!(lanes!(a b c, a.wrapping_add(b))),
        IntOp::Sub => set!(lanes!(a b c, a.wrapping_sub(b))),
        IntOp::And => set!(lanes!(a b c, a & b)),
        IntOp::Or => set!(lanes!(a b c, a | b)),
        IntOp::Xor => set!(lanes!(a b c, a ^ b)),
        _ => set!(int64_rare(f, a, b, c)),
    }
}

/// `mul.wide` of rows `a` and `b` of 32 bits, and `mad.wide` with row `c` of 64, see [`int32`].
#[inline(always)]
pub(crate) fn wide(w: &mut Warp, signed: bool, [d, a, b, c]: [Row; 4], active: u32) {
    let [a, b] = [a, b].map(|row| &w.r32[row as usize]);
    let d = d as usize;
    macro_rules! set {
        ($i:ident => $product:expr) => {{
            let mut out = [0; 32];
            if c == NONE {
                for $i in 0..32 {
                    out[$i] = $product;
                }
                put(&mut w.r64[d], &out, active);
            } else {
                let c = &w.r64[c as usize];
                for $i in 0..32 {
                    out[$i] = $product.wrapping_add(c[$i]);
                }
                put(&mut w.r64[d], &out, active);
            }
        }};
    }
    if signed {
        set!(i => (i64::from(a[i] as i32) * i64::from(b[i] as i32)) as u64);
    } else {
        set!(i => u64::from(a[i]) * u64::from(b[i]));
    }
}

#[inline(never)]
fn int64_rare(f: IntOp, a: &Row64, b: &Row64, c: &Row64) -> Row64 {
    let s = |x: u64| x as i64;
    let hi_u = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let hi_s = |a: u64, b: u64| ((i128::from(s(a)) * i128::from(s(b))) >> 64) as u64;
    match f {
        IntOp::MulLo => lanes!(a b c, a.wrapping_mul(b)),
        IntOp::MadLo => lanes!(a b c, a.wrapping_mul(b).wrapping_add(c)),
        IntOp::MulHiU => lanes!(a b c, hi_u(a, b)),
        IntOp::MulHiS => lanes!(a b c, hi_s(a, b)),
        IntOp::MadHiU => lanes!(a b c, hi_u(a, b).wrapping_add(c)),
        IntOp::MadHiS => lanes!(a b c, hi_s(a, b).wrapping_add(c)),
        IntOp::DivU => lanes!(a b c, a.checked_div(b).unwrap_or(u64::MAX)),
        IntOp::DivS => {
            lanes!(a b c, if b == 0 { u64::MAX } else { s(a).wrapping_div(s(b)) as u64 })
        }
        IntOp::RemU => lanes!(a b c, a.checked_rem(b).unwrap_or(a)),
        IntOp::RemS => lanes!(a b c, if b == 0 { a } else { s(a).wrapping_rem(s(b)) as u64 }),
        IntOp::Neg => lanes!(a b c, a.wrapping_neg()),
        IntOp::Abs => lanes!(a b c, s(a).wrapping_abs() as u64),
        IntOp::MinU => lanes!(a b c, a.min(b)),
        IntOp::MinS => lanes!(a b c, s(a).min(s(b)) as u64),
        IntOp::MaxU => lanes!(a b c, a.max(b)),
        IntOp::MaxS => lanes!(a b c, s(a).max(s(b)) as u64),
        IntOp::SadU => lanes!(a b c, c.wrapping_add(a.abs_diff(b))),
        IntOp::SadS => lanes!(a b c, c.wrapping_add(s(a).abs_diff(s(b)))),
        IntOp::Not => lanes!(a b c, !a),
        IntOp::Cnot => lanes!(a b c, u64::from(a == 0)),
        IntOp::Brev => lanes!(a b c, a.reverse_bits()),
        _ => *a,
    }
}

/// Shifts and field extraction of 64 bits with 32-bit amounts.
#[inline(always)]
pub(crate) fn shift64(f: IntOp, a: &Row64, b: &Row32, c: &Row32) -> Row64 {
    match f {
        IntOp::Shl => lanes!(a b c, if b < 64 { a << (b & 63) } else { 0 }),
        IntOp::ShrU => lanes!(a b c, if b < 64 { a >> (b & 63) } else { 0 }),
        IntOp::ShrS => lanes!(a b c, ((a as i64) >> b.min(63)) as u64),
        _ => lanes!(a b c, bfe(a, b, c, 64, f == IntOp::BfeS)),
    }
}

/// `popc`, `clz` and `bfind` of 64 bits.
pub(crate) fn count64(f: IntOp, a: &Row64) -> Row32 {
    a.map(|x| match f {
        IntOp::Popc => x.count_ones(),
        IntOp::Clz => x.leading_zeros(),
        _ => bfind(f, x, 64),
    })
}

/// `bfi`: `len` bits of `a` put into `b` at `pos`, of `bits` bits.
pub(crate) fn bfi(a: u64, b: u64, pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    (0..len).take_while(|i| pos + i < bits).fold(b, |d, i| {
        let at = pos + i;
        (d & !(1 << at)) | (a >> i & 1) << at
    })
}

/// `lop3` by its truth table: bit (a·4 + b·2 + c) of `lut`.
#[inline(always)]
pub(crate) fn lop3(lut: u8, a: &Row32, b: &Row32, c: &Row32) -> Row32 {
    let on = |k: u32| if lut >> k & 1 == 1 { u32::MAX } else { 0 };
    let t = [on(0), on(1), on(2), on(3), on(4), on(5), on(6), on(7)];
    lanes!(a b c, {
        let pick = |x: u32, one: u32, zero: u32| (x & one) | (!x & zero);
        let low = pick(b, pick(c, t[3], t[2]), pick(c, t[1], t[0]));
        let high = pick(b, pick(c, t[7], t[6]), pick(c, t[5], t[4]));
        pick(a, high, low)
    })
}
