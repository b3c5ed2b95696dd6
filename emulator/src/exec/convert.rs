//! The frequent conversions as loops over rows: between integers, between integers and f32 or f64, and of f32 to whole numbers.
//!
//! Each gives the bits of [`super::cvt::one`]; what has no loop goes there lane by lane. Example: `cvt.u64.u32` copies the words and
//! `cvt.rni.s32.f32` rounds in f64, where every f32 is exact, and clamps by the host's cast, which takes NaN to 0 as PTX does.

use super::alu::{Row32, Row64, put};
use super::code::COMPACT;
use super::cvt::by_lane;
use super::rounding::{bfloat, each, half, whole, whole64};
use super::warp::Warp;
use super::wide::{set_wide, wide};
use crate::float::{NAN32, half_to_f32, odd32, round32};
use crate::ir::{Convert, Format, Packed, Reg, Rounding};
use crate::types::File;

/// Runs `c` on the active lanes.
#[inline(always)]
pub(super) fn convert(w: &mut Warp, c: &Convert, active: u32) {
    if !COMPACT && c.packed == Packed::Join && join(w, c, active) {
        return;
    }
    if COMPACT || c.packed != Packed::No || c.sat || c.relu {
        return by_lane(w, c, active);
    }
    let nearest = c.rounding == Rounding::Nearest;
    match (c.from, c.to) {
        (Format::U(_) | Format::S(_), Format::U(_) | Format::S(_)) => {
            let mut x = wide(w, c.a);
            extend(&mut x, c.from);
            extend(&mut x, c.to);
            set_wide(w, c.d, &x, active);
        }
        (Format::U(_) | Format::S(_), Format::F32) if nearest => {
            let mut x = wide(w, c.a);
            extend(&mut x, c.from);
            let mut out = [0; 32];
            match c.from {
                Format::S(64) => each(&mut out, |i| (x[i] as i64 as f32).to_bits()),
                Format::U(64) => each(&mut out, |i| (x[i] as f32).to_bits()),
                Format::U(32) => each(&mut out, |i| (x[i] as u32 as f32).to_bits()),
                // Up to 31 bits and a sign.
                _ => each(&mut out, |i| (x[i] as i32 as f32).to_bits()),
            }
            store32(w, c.d, &out, active);
        }
        (Format::U(bits) | Format::S(bits), Format::F64) if nearest && bits <= 32 => {
            let mut x = wide(w, c.a);
            extend(&mut x, c.from);
            let mut out = [0; 32];
            each(&mut out, |i| (x[i] as i64 as f64).to_bits());
            set_wide(w, c.d, &out, active);
        }
        (Format::U(64) | Format::S(64), Format::F64) if nearest => {
            let x = wide(w, c.a);
            let mut out = [0; 32];
            match c.from {
                Format::S(_) => each(&mut out, |i| (x[i] as i64 as f64).to_bits()),
                _ => each(&mut out, |i| (x[i] as f64).to_bits()),
            }
            set_wide(w, c.d, &out, active);
        }
        (Format::U(bits) | Format::S(bits), Format::F16 | Format::Bf16)
            if nearest && bits <= 32 && !c.satfinite =>
        {
            let mut x = wide(w, c.a);
            extend(&mut x, c.from);
            let mut out = [0; 32];
            let number = |x: u64| odd32(x as i64 as f64).to_bits();
            match c.to {
                Format::F16 => each(&mut out, |i| half(number(x[i]))),
                _ => each(&mut out, |i| bfloat(number(x[i]))),
            }
            store32(w, c.d, &out, active);
        }
        (Format::F32, Format::S(32)) => {
            let x = whole(&source32(w, c.a), c);
            let mut out = [0; 32];
            each(&mut out, |i| i64::from(x[i] as i32) as u64);
            set_wide(w, c.d, &out, active);
        }
        (Format::F32, Format::U(32)) => {
            let x = whole(&source32(w, c.a), c);
            let mut out = [0; 32];
            each(&mut out, |i| x[i] as u32);
            store32(w, c.d, &out, active);
        }
        (Format::F32 | Format::F64, Format::S(64) | Format::U(64))
        | (Format::F64, Format::S(32) | Format::U(32)) => {
            let x = if c.from == Format::F64 {
                whole64(&wide(w, c.a), c)
            } else {
                whole(&source32(w, c.a), c)
            };
            let mut out = [0; 32];
            match c.to {
                Format::S(32) => each(&mut out, |i| i64::from(x[i] as i32) as u64),
                Format::U(32) => each(&mut out, |i| u64::from(x[i] as u32)),
                Format::S(_) => each(&mut out, |i| x[i] as i64 as u64),
                _ => each(&mut out, |i| x[i] as u64),
            }
            // Where f64 or 64 bits are involved NaN becomes the number with the highest bit alone.
            let nan = 1
                << if matches!(c.to, Format::S(32) | Format::U(32)) {
                    31
                } else {
                    63
                };
            for i in 0..32 {
                out[i] = if x[i].is_nan() { nan } else { out[i] };
            }
            set_wide(w, c.d, &out, active);
        }
        (Format::F64, Format::F64) if c.integral => {
            let from = wide(w, c.a);
            let x = whole64(&from, c);
            let mut out = [0; 32];
            each(&mut out, |i| {
                if x[i].is_nan() {
                    from[i] | 1 << 51
                } else {
                    x[i].to_bits()
                }
            });
            set_wide(w, c.d, &out, active);
        }
        (Format::F32, Format::F64) if !c.ftz && !c.integral => {
            let x = source32(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| {
                let (sign, payload) = (u64::from(x[i] >> 31) << 63, u64::from(x[i] & 0x7f_ffff));
                let nan = sign | 0x7ff8 << 48 | payload << 29;
                let value = f32::from_bits(x[i]);
                if value.is_nan() {
                    nan
                } else {
                    f64::from(value).to_bits()
                }
            });
            set_wide(w, c.d, &out, active);
        }
        (Format::F64, Format::F32)
            if !c.ftz && !c.integral && c.rounding != Rounding::NearestAway =>
        {
            let x = wide(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| {
                let nan = (x[i] >> 63 << 31) as u32 | 0x7fc0_0000 | (x[i] >> 29) as u32 & 0x3f_ffff;
                let value = f64::from_bits(x[i]);
                if value.is_nan() {
                    nan
                } else {
                    round32(value, c.rounding).to_bits()
                }
            });
            store32(w, c.d, &out, active);
        }
        (Format::F32, Format::F32) if c.integral => {
            let x = whole(&source32(w, c.a), c);
            let mut out = [0; 32];
            // Whole numbers below 2^24 and all above are numbers of f32.
            each(&mut out, |i| number(x[i] as f32));
            store32(w, c.d, &out, active);
        }
        (Format::F16, Format::F32) if !c.ftz && !c.integral => {
            let x = source32(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| number(half_to_f32(x[i] & 0xffff)));
            store32(w, c.d, &out, active);
        }
        (Format::F32, Format::F16) if nearest && !c.satfinite && !c.integral => {
            let x = source32(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| half(x[i]));
            store32(w, c.d, &out, active);
        }
        (Format::Bf16, Format::F32) if !c.ftz && !c.integral => {
            let x = source32(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| x[i] << 16);
            store32(w, c.d, &out, active);
        }
        (Format::F32, Format::Bf16) if nearest && !c.satfinite && !c.integral && !c.ftz => {
            let x = source32(w, c.a);
            let mut out = [0; 32];
            each(&mut out, |i| bfloat(x[i]));
            store32(w, c.d, &out, active);
        }
        _ => by_lane(w, c, active),
    }
}

/// Two f32 to f16 or bf16 in one register, the first in its upper half; false, and nothing done, if `c` is another conversion.
#[inline(always)]
fn join(w: &mut Warp, c: &Convert, active: u32) -> bool {
    let plain = c.rounding == Rounding::Nearest && !c.sat && !c.satfinite && !c.integral;
    if c.from != Format::F32 || !plain {
        return false;
    }
    let mut x = [c.a, c.b].map(|r| source32(w, r));
    if c.relu {
        // A NaN stays.
        for x in x.as_flattened_mut() {
            *x = if f32::from_bits(*x) <= 0.0 { 0 } else { *x };
        }
    }
    let mut out = [0; 32];
    match c.to {
        Format::F16 => each(&mut out, |i| half(x[0][i]) << 16 | half(x[1][i])),
        Format::Bf16 if !c.ftz => each(&mut out, |i| bfloat(x[0][i]) << 16 | bfloat(x[1][i])),
        _ => return false,
    }
    store32(w, c.d, &out, active);
    true
}

/// The bits of `x`, with NaN made canonical.
#[inline(always)]
fn number(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

#[inline(always)]
fn source32(w: &Warp, r: Reg) -> Row32 {
    match r.file {
        File::R64 => {
            let mut out = [0; 32];
            each(&mut out, |i| w.r64[r.row as usize][i] as u32);
            out
        }
        _ => w.r32[r.row as usize],
    }
}

#[inline(always)]
fn store32(w: &mut Warp, d: Reg, out: &Row32, active: u32) {
    if d.file == File::R64 {
        let mut wide = [0; 32];
        each(&mut wide, |i| u64::from(out[i]));
        set_wide(w, d, &wide, active);
    } else {
        put(&mut w.r32[d.row as usize], out, active);
    }
}

/// The integers of format `f` that the low bits of `x` are, extended to 64 bits.
#[inline(always)]
fn extend(x: &mut Row64, f: Format) {
    match f {
        Format::U(bits @ ..=63) => {
            let mask = (1 << bits) - 1;
            for x in x {
                *x &= mask;
            }
        }
        Format::S(bits @ ..=63) => {
            let sign = 1 << (bits - 1);
            let mask = (1 << bits) - 1;
            for x in x {
                *x = ((*x & mask) ^ sign).wrapping_sub(sign);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::cvt::one;
    use super::*;

    /// Every conversion that has a loop, against its definition, on numbers of all kinds.
    #[test]
    fn loops_are_their_lanes() {
        use Format::{Bf16, F16, F32, F64, S, U};
        let integers = [U(8), S(8), U(16), S(16), U(32), S(32), U(64), S(64)];
        let formats = integers.iter().copied().chain([F16, Bf16, F32, F64]);
        let formats: Vec<Format> = formats.collect();
        let mut state = 3u64;
        let mut random = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        let roundings = [
            Rounding::Nearest,
            Rounding::Zero,
            Rounding::Down,
            Rounding::Up,
            Rounding::NearestAway,
        ];
        for round in 0..200 {
            let row: Row64 = std::array::from_fn(|i| {
                let r = random();
                match (i + round) % 4 {
                    0 => r,
                    // An f32 about as large as the numbers of each format.
                    1 => (r & 0x807f_ffff) | (((r >> 40) % 60 + 90) << 23),
                    2 => (r & 0x8000_1fff) + 0x3800_0000 + (((r >> 40) % 20) << 23) - 0x800,
                    _ => [0, 1 << 31, 0x7f80_0000, 0xff80_0001, 0x477f_f000, u64::MAX][i % 6],
                }
            });
            for (from, to) in formats
                .iter()
                .flat_map(|f| formats.iter().map(move |t| (*f, *t)))
            {
                for rounding in roundings {
                    for flags in 0..8 {
                        let to_or_from_f64 = from == F64 || from == U(64) || from == S(64);
                        let file = |wide: bool| if wide { File::R64 } else { File::R32 };
                        let a = Reg {
                            file: file(to_or_from_f64),
                            row: 0,
                        };
                        let d = Reg {
                            // Registers may be wider than integers.
                            file: file(match to {
                                F64 | U(64) | S(64) => true,
                                U(_) | S(_) => flags & 4 != 0,
                                _ => false,
                            }),
                            row: 1,
                        };
                        let c = Convert {
                            to,
                            from,
                            rounding,
                            integral: flags & 1 != 0,
                            ftz: flags & 2 != 0,
                            sat: false,
                            satfinite: false,
                            relu: false,
                            packed: Packed::No,
                            d,
                            a,
                            b: a,
                        };
                        let mut w = Warp::with_rows(0, u32::MAX, [2, 2, 0], 0);
                        w.r64[0] = row;
                        w.r32[0] = row.map(|x| x as u32);
                        convert(&mut w, &c, 0xffff_fff7);
                        for (l, x) in row.iter().enumerate() {
                            let x = if a.file == File::R64 {
                                *x
                            } else {
                                *x & 0xffff_ffff
                            };
                            let expected = if l == 3 { 0 } else { one(&c, x) };
                            let (found, expected) = match d.file {
                                File::R64 => (w.r64[1][l], expected),
                                _ => (u64::from(w.r32[1][l]), expected & 0xffff_ffff),
                            };
                            assert_eq!(found, expected, "{c:?} of {x:#x}");
                        }
                    }
                }
            }
        }
    }
    /// Two conversions into one register, against their definition.
    #[test]
    fn joined_halves_are_two_conversions() {
        let special = [
            0,
            1,
            0x7f80_0000,
            0x7f80_0001,
            0x477f_f000,
            0x7f7f_ffff,
            0x3300_0000,
            0x3300_0001,
            0x387f_f000,
            0x007f_8000,
        ];
        let mut state = 7u32;
        let mut number = |k: usize| {
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
            let r = state ^ state >> 15;
            match k % 3 {
                0 => special[r as usize % special.len()] | r & 0x8000_0000,
                1 => r,
                _ => (r & 0x8000_3fff) | (100 + (r >> 16) % 45) << 23 | (r >> 3) << 16 & 0x7f_0000,
            }
        };
        for round in 0..300 {
            let x: [Row32; 2] =
                std::array::from_fn(|j| std::array::from_fn(|i| number(round + i + j)));
            for to in [Format::F16, Format::Bf16] {
                for flags in 0..8 {
                    let reg = |row| Reg {
                        file: File::R32,
                        row,
                    };
                    let c = Convert {
                        to,
                        from: Format::F32,
                        rounding: [Rounding::Nearest, Rounding::Zero][flags >> 2],
                        integral: false,
                        ftz: flags & 1 != 0,
                        sat: false,
                        satfinite: false,
                        relu: flags & 2 != 0,
                        packed: Packed::Join,
                        d: reg(2),
                        a: reg(0),
                        b: reg(1),
                    };
                    let mut w = Warp::with_rows(0, u32::MAX, [3, 0, 0], 0);
                    (w.r32[0], w.r32[1]) = (x[0], x[1]);
                    convert(&mut w, &c, 0xffff_fff7);
                    for i in 0..32 {
                        let [a, b] = x.map(|row| row[i]);
                        let both = one(&c, a.into()) << 16 | one(&c, b.into());
                        let expected = if i == 3 { 0 } else { both as u32 };
                        assert_eq!(w.r32[2][i], expected, "{c:?} of {a:#x} and {b:#x}");
                    }
                }
            }
        }
    }
}
