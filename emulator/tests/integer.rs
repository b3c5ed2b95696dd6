//! Integer, logic and comparison instructions against plain Rust, on random and corner values.

#![allow(clippy::float_cmp)] // comparisons are what is tested

mod common;

use common::{Random, evaluate};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

fn cases(n: usize, seed: u64) -> Vec<[u64; 3]> {
    let mut random = Random(seed);
    (0..n)
        .map(|_| [random.nasty(), random.nasty(), random.nasty()])
        .collect()
}

type Rule32 = (&'static str, fn(u32, u32, u32) -> u32);
type Rule64 = (&'static str, fn(u64, u64, u64) -> u64);

fn s(x: u32) -> i32 {
    x as i32
}

/// Bits [pos, pos + len) of a, bit by bit.
fn field(a: u32, pos: u32, len: u32) -> u32 {
    let (pos, len) = (pos & 255, len & 255);
    (0..len.min(32))
        .filter(|i| pos + i < 32 && a >> (pos + i) & 1 == 1)
        .fold(0, |v, i| v | 1 << i)
}

#[test]
fn operations_on_32_bits() {
    let rules: &[Rule32] = &[
        ("add.u32 %d, %a, %b;", |a, b, _| a.wrapping_add(b)),
        ("add.s32 %d, %a, -4;", |a, _, _| a.wrapping_sub(4)),
        ("add.sat.s32 %d, %a, %b;", |a, b, _| {
            s(a).saturating_add(s(b)) as u32
        }),
        ("sub.u32 %d, %a, %b;", |a, b, _| a.wrapping_sub(b)),
        ("sub.sat.s32 %d, %a, %b;", |a, b, _| {
            s(a).saturating_sub(s(b)) as u32
        }),
        ("mul.lo.u32 %d, %a, %b;", |a, b, _| a.wrapping_mul(b)),
        ("mul.hi.u32 %d, %a, %b;", |a, b, _| {
            ((u64::from(a) * u64::from(b)) >> 32) as u32
        }),
        ("mul.hi.s32 %d, %a, %b;", |a, b, _| {
            ((i64::from(s(a)) * i64::from(s(b))) >> 32) as u32
        }),
        ("mad.lo.s32 %d, %a, %b, %c;", |a, b, c| {
            a.wrapping_mul(b).wrapping_add(c)
        }),
        ("mad.hi.u32 %d, %a, %b, %c;", |a, b, c| {
            (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)
        }),
        ("mul24.lo.u32 %d, %a, %b;", |a, b, _| {
            (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)
        }),
        ("mad24.lo.s32 %d, %a, %b, %c;", |a, b, c| {
            ((s(a << 8) >> 8).wrapping_mul(s(b << 8) >> 8) as u32).wrapping_add(c)
        }),
        ("or.b32 %e, %b, 1; div.u32 %d, %a, %e;", |a, b, _| {
            a / (b | 1)
        }),
        ("or.b32 %e, %b, 1; div.s32 %d, %a, %e;", |a, b, _| {
            s(a).wrapping_div(s(b | 1)) as u32
        }),
        ("or.b32 %e, %b, 1; rem.u32 %d, %a, %e;", |a, b, _| {
            a % (b | 1)
        }),
        ("or.b32 %e, %b, 1; rem.s32 %d, %a, %e;", |a, b, _| {
            s(a).wrapping_rem(s(b | 1)) as u32
        }),
        ("neg.s32 %d, %a;", |a, _, _| 0u32.wrapping_sub(a)),
        ("abs.s32 %d, %a;", |a, _, _| {
            if a >> 31 == 1 {
                0u32.wrapping_sub(a)
            } else {
                a
            }
        }),
        ("min.u32 %d, %a, %b;", |a, b, _| if a < b { a } else { b }),
        (
            "min.s32 %d, %a, %b;",
            |a, b, _| if s(a) < s(b) { a } else { b },
        ),
        ("max.u32 %d, %a, %b;", |a, b, _| if a < b { b } else { a }),
        (
            "max.s32 %d, %a, %b;",
            |a, b, _| if s(a) < s(b) { b } else { a },
        ),
        ("sad.u32 %d, %a, %b, %c;", |a, b, c| {
            c.wrapping_add(b.abs_diff(a))
        }),
        ("sad.s32 %d, %a, %b, %c;", |a, b, c| {
            c.wrapping_add((i64::from(s(a)) - i64::from(s(b))).unsigned_abs() as u32)
        }),
        ("and.b32 %d, %a, %b;", |a, b, _| a & b),
        ("or.b32 %d, %a, %b;", |a, b, _| a | b),
        ("xor.b32 %d, %a, %b;", |a, b, _| a ^ b),
        ("not.b32 %d, %a;", |a, _, _| !a),
        ("cnot.b32 %d, %a;", |a, _, _| u32::from(a == 0)),
        ("shl.b32 %d, %a, %b;", |a, b, _| {
            (u64::from(a) << b.min(32)) as u32
        }),
        ("shr.u32 %d, %a, %b;", |a, b, _| {
            (u64::from(a) >> b.min(32)) as u32
        }),
        ("shr.b32 %d, %a, 5;", |a, _, _| a >> 5),
        ("shr.s32 %d, %a, %b;", |a, b, _| {
            (i64::from(s(a)) >> b.min(32)) as u32
        }),
        ("bfe.u32 %d, %a, %b, %c;", field),
        ("bfe.s32 %d, %a, %b, %c;", |a, b, c| {
            let (pos, len) = (b & 255, c & 255);
            if len == 0 {
                return 0;
            }
            let sign = if pos + len - 1 < 32 {
                a >> (pos + len - 1) & 1
            } else {
                a >> 31
            };
            let low = field(a, b, c);
            let filled = (32 - pos.min(32)).min(len);
            if filled >= 32 || sign == 0 {
                low
            } else {
                low | u32::MAX << filled
            }
        }),
        ("bfi.b32 %d, %a, %b, 5, 9;", |a, b, _| {
            (b & !(0x1ff << 5)) | (a & 0x1ff) << 5
        }),
        ("bfi.b32 %d, %a, %b, 28, 9;", |a, b, _| {
            (b & 0x0fff_ffff) | a << 28
        }),
        ("brev.b32 %d, %a;", |a, _, _| {
            (0..32).fold(0, |v, i| v | (a >> i & 1) << (31 - i))
        }),
        ("popc.b32 %d, %a;", |a, _, _| {
            (0..32).map(|i| a >> i & 1).sum()
        }),
        ("clz.b32 %d, %a;", |a, _, _| {
            (0..32).rev().take_while(|i| a >> i & 1 == 0).count() as u32
        }),
        ("bfind.u32 %d, %a;", |a, _, _| {
            (0..32).rev().find(|i| a >> i & 1 == 1).unwrap_or(u32::MAX)
        }),
        ("bfind.s32 %d, %a;", |a, _, _| {
            let x = if a >> 31 == 1 { !a } else { a };
            (0..32).rev().find(|i| x >> i & 1 == 1).unwrap_or(u32::MAX)
        }),
        ("bfind.shiftamt.u32 %d, %a;", |a, _, _| {
            (0..32)
                .rev()
                .find(|i| a >> i & 1 == 1)
                .map_or(u32::MAX, |i| 31 - i)
        }),
        ("prmt.b32 %d, %a, %b, 0x7531;", |a, b, _| {
            let bytes = [a.to_le_bytes(), b.to_le_bytes()].concat();
            u32::from_le_bytes([bytes[1], bytes[3], bytes[5], bytes[7]])
        }),
        ("prmt.b32 %d, %a, %b, 0x90c4;", |a, b, _| {
            let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
            let sign = |x: u8| if x >= 128 { 255 } else { 0 };
            u32::from_le_bytes([b[0], sign(b[0]), a[0], sign(a[1])])
        }),
        ("prmt.b32.f4e %d, %a, %b, 1;", |a, b, _| {
            (u64::from(b) << 32 | u64::from(a)).wrapping_shr(8) as u32
        }),
        ("lop3.b32 %d, %a, %b, %c, 0x96;", |a, b, c| a ^ b ^ c),
        ("lop3.b32 %d, %a, %b, %c, 0xe8;", |a, b, c| {
            (a & b) | (b & c) | (a & c)
        }),
        ("lop3.b32 %d, %a, %b, %c, 0xca;", |a, b, c| {
            (a & b) | (!a & c)
        }),
        ("lop3.b32 %d, %a, %b, %c, 0x10;", |a, b, c| a & !b & !c),
        ("shf.l.wrap.b32 %d, %a, %b, %c;", |a, b, c| {
            ((u64::from(b) << 32 | u64::from(a)) << (c & 31) >> 32) as u32
        }),
        ("shf.l.clamp.b32 %d, %a, %b, %c;", |a, b, c| {
            if c >= 32 {
                a
            } else {
                ((u64::from(b) << 32 | u64::from(a)) << c >> 32) as u32
            }
        }),
        ("shf.r.wrap.b32 %d, %a, %b, %c;", |a, b, c| {
            ((u64::from(b) << 32 | u64::from(a)) >> (c & 31)) as u32
        }),
        ("shf.r.clamp.b32 %d, %a, %b, %c;", |a, b, c| {
            if c >= 32 {
                b
            } else {
                ((u64::from(b) << 32 | u64::from(a)) >> c) as u32
            }
        }),
        ("dp4a.u32.u32 %d, %a, %b, %c;", |a, b, c| {
            (0..4).fold(c, |v, i| {
                v.wrapping_add((a >> (8 * i) & 255) * (b >> (8 * i) & 255))
            })
        }),
        ("dp4a.s32.s32 %d, %a, %b, %c;", |a, b, c| {
            (0..4).fold(c, |v, i| {
                v.wrapping_add(
                    (i32::from((a >> (8 * i)) as i8) * i32::from((b >> (8 * i)) as i8)) as u32,
                )
            })
        }),
        ("dp2a.hi.s32.u32 %d, %a, %b, %c;", |a, b, c| {
            (0..2).fold(c, |v, i| {
                v.wrapping_add(
                    (i32::from((a >> (16 * i)) as i16) * (b >> (16 + 8 * i) & 255) as i32) as u32,
                )
            })
        }),
        ("bmsk.clamp.b32 %d, 4, 8;", |_, _, _| 0xff0),
        ("szext.wrap.s32 %d, %a, 8;", |a, _, _| {
            a as u8 as i8 as i32 as u32
        }),
        ("set.lt.u32.s32 %d, %a, %b;", |a, b, _| {
            if s(a) < s(b) { u32::MAX } else { 0 }
        }),
        ("set.ge.f32.u32 %d, %a, %b;", |a, b, _| {
            if a >= b { 0x3f80_0000 } else { 0 }
        }),
        ("slct.u32.s32 %d, %a, %b, %c;", |a, b, c| {
            if s(c) >= 0 { a } else { b }
        }),
        (
            "setp.lt.s32 %p0, %c, 0; selp.b32 %d, %a, %b, %p0;",
            |a, b, c| if s(c) < 0 { a } else { b },
        ),
        ("add.cc.u32 %e, %a, %b; addc.u32 %d, %c, %c;", |a, b, c| {
            c.wrapping_add(c)
                .wrapping_add(u32::from(a.checked_add(b).is_none()))
        }),
        ("sub.cc.u32 %e, %a, %b; subc.u32 %d, %c, 7;", |a, b, c| {
            c.wrapping_sub(7).wrapping_sub(u32::from(a < b))
        }),
        // The flag of a subtraction is the carry of the hardware's adder: the opposite of the borrow.
        ("sub.cc.u32 %e, %a, %b; addc.u32 %d, %c, 0;", |a, b, c| {
            c.wrapping_add(u32::from(a >= b))
        }),
        ("add.cc.u32 %e, %a, %b; subc.u32 %d, %c, 0;", |a, b, c| {
            c.wrapping_sub(u32::from(a.checked_add(b).is_some()))
        }),
        (
            "sub.cc.u32 %e, %a, %b; madc.lo.u32 %d, %c, 3, 0;",
            |a, b, c| c.wrapping_mul(3).wrapping_add(u32::from(a >= b)),
        ),
        (
            "sub.cc.u32 %e, %a, %b; subc.cc.u32 %e, %b, %c; subc.u32 %d, 0, 0;",
            |a, b, c| {
                let borrow = u64::from(b) < u64::from(c) + u64::from(a < b);
                0u32.wrapping_sub(u32::from(borrow))
            },
        ),
        (
            "mad.lo.cc.u32 %e, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;",
            |a, b, c| ((u64::from(a) * u64::from(b) + u64::from(c)) >> 32) as u32,
        ),
        (
            "mov.b32 {%ha, %hb}, %a; mov.b32 %d, {%hb, %ha};",
            |a, _, _| a.rotate_left(16),
        ),
        ("cvt.u8.u32 %d, %a;", |a, _, _| a & 255),
        ("cvt.s32.s8 %d, %a;", |a, _, _| a as u8 as i8 as i32 as u32),
        ("cvt.sat.s8.s32 %d, %a;", |a, _, _| {
            s(a).clamp(-128, 127) as u32
        }),
        ("cvt.sat.u16.s32 %d, %a;", |a, _, _| {
            s(a).clamp(0, 65535) as u32
        }),
        ("@!%p mov.u32 %d, 7; @%p mov.u32 %d, 8;", |_, _, _| 7),
    ];
    let cases = cases(512, 11);
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let [a, b, c] = case.map(|x| x as u32);
            assert_eq!(got.0, rule(a, b, c), "{body} of {a:#x} {b:#x} {c:#x}");
        }
    }
}

#[test]
fn operations_on_64_bits() {
    let t = |x: u64| x as i64;
    assert_eq!(t(u64::MAX), -1);
    let rules: &[Rule64] = &[
        ("add.s64 %D, %A, %B;", |a, b, _| a.wrapping_add(b)),
        ("sub.u64 %D, %A, %B;", |a, b, _| a.wrapping_sub(b)),
        ("mul.lo.u64 %D, %A, %B;", |a, b, _| a.wrapping_mul(b)),
        ("mul.hi.u64 %D, %A, %B;", |a, b, _| {
            ((u128::from(a) * u128::from(b)) >> 64) as u64
        }),
        ("mul.hi.s64 %D, %A, %B;", |a, b, _| {
            ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
        }),
        ("mad.lo.u64 %D, %A, %B, %C;", |a, b, c| {
            a.wrapping_mul(b).wrapping_add(c)
        }),
        ("or.b64 %E, %B, 1; div.s64 %D, %A, %E;", |a, b, _| {
            (a as i64).wrapping_div((b | 1) as i64) as u64
        }),
        ("or.b64 %E, %B, 1; rem.u64 %D, %A, %E;", |a, b, _| {
            a % (b | 1)
        }),
        ("min.s64 %D, %A, %B;", |a, b, _| {
            (a as i64).min(b as i64) as u64
        }),
        ("max.u64 %D, %A, %B;", |a, b, _| a.max(b)),
        ("neg.s64 %D, %A;", |a, _, _| a.wrapping_neg()),
        ("and.b64 %D, %A, %B;", |a, b, _| a & b),
        ("xor.b64 %D, %A, 255;", |a, _, _| a ^ 255),
        ("not.b64 %D, %A;", |a, _, _| !a),
        ("shl.b64 %D, %A, %b;", |a, b, _| {
            if b as u32 > 63 { 0 } else { a << (b as u32) }
        }),
        ("shr.u64 %D, %A, %b;", |a, b, _| {
            if b as u32 > 63 { 0 } else { a >> (b as u32) }
        }),
        ("shr.s64 %D, %A, %b;", |a, b, _| {
            ((a as i64) >> (b as u32).min(63)) as u64
        }),
        ("bfe.u64 %D, %A, 20, 30;", |a, _, _| a >> 20 & 0x3fff_ffff),
        ("bfi.b64 %D, %A, %B, 40, 16;", |a, b, _| {
            (b & !(0xffff << 40)) | (a & 0xffff) << 40
        }),
        ("brev.b64 %D, %A;", |a, _, _| a.reverse_bits()),
        ("popc.b64 %e, %A; cvt.u64.u32 %D, %e;", |a, _, _| {
            u64::from(a.count_ones())
        }),
        ("clz.b64 %e, %A; cvt.u64.u32 %D, %e;", |a, _, _| {
            u64::from(a.leading_zeros())
        }),
        ("mul.wide.u32 %D, %a, %b;", |a, b, _| {
            (a & 0xffff_ffff) * (b & 0xffff_ffff)
        }),
        ("mul.wide.s32 %D, %a, %b;", |a, b, _| {
            (i64::from(a as i32) * i64::from(b as i32)) as u64
        }),
        ("mad.wide.s32 %D, %a, %b, %C;", |a, b, c| {
            (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64
        }),
        ("mad.wide.u32 %D, %a, 24, %C;", |a, _, c| {
            ((a & 0xffff_ffff) * 24).wrapping_add(c)
        }),
        ("mov.b64 %D, {%a, %b};", |a, b, _| {
            (a & 0xffff_ffff) | b << 32
        }),
        ("mov.b64 {%e, %f}, %A; mov.b64 %D, {%f, %e};", |a, _, _| {
            a.rotate_left(32)
        }),
        ("mov.b64 {_, %f}, %A; cvt.u64.u32 %D, %f;", |a, _, _| {
            a >> 32
        }),
        ("cvt.s64.s32 %D, %a;", |a, _, _| i64::from(a as i32) as u64),
        ("cvt.u64.u32 %D, %a;", |a, _, _| a & 0xffff_ffff),
        (
            "setp.lt.s64 %p0, %A, %B; selp.b64 %D, %A, %B, %p0;",
            |a, b, _| (a as i64).min(b as i64) as u64,
        ),
        (
            "setp.hi.u64 %p0, %A, %B; selp.b64 %D, 1, 0, %p0;",
            |a, b, _| u64::from(a > b),
        ),
    ];
    let cases = cases(512, 12);
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let [a, b, c] = *case;
            assert_eq!(got.1, rule(a, b, c), "{body} of {a:#x} {b:#x} {c:#x}");
        }
    }
}

type Test<T> = (&'static str, fn(T, T) -> bool);
type Rule16 = (&'static str, fn(u16, u16, u16) -> u16);

#[test]
fn operations_on_16_bits() {
    let rules: &[Rule16] = &[
        ("add.u16 %hd, %ha, %hb;", |a, b, _| a.wrapping_add(b)),
        ("sub.s16 %hd, %ha, %hb;", |a, b, _| a.wrapping_sub(b)),
        ("mul.lo.u16 %hd, %ha, %hb;", |a, b, _| a.wrapping_mul(b)),
        ("mad.lo.s16 %hd, %ha, %hb, %hc;", |a, b, c| {
            a.wrapping_mul(b).wrapping_add(c)
        }),
        ("min.s16 %hd, %ha, %hb;", |a, b, _| {
            (a as i16).min(b as i16) as u16
        }),
        ("max.u16 %hd, %ha, %hb;", |a, b, _| a.max(b)),
        ("neg.s16 %hd, %ha;", |a, _, _| a.wrapping_neg()),
        ("abs.s16 %hd, %ha;", |a, _, _| {
            (a as i16).wrapping_abs() as u16
        }),
        ("not.b16 %hd, %ha;", |a, _, _| !a),
        ("shl.b16 %hd, %ha, 3;", |a, _, _| a << 3),
        ("shr.s16 %hd, %ha, 5;", |a, _, _| ((a as i16) >> 5) as u16),
        ("shr.u16 %hd, %ha, 17;", |_, _, _| 0),
        ("or.b16 %he, %hb, 1; div.s16 %hd, %ha, %he;", |a, b, _| {
            (a as i16).wrapping_div((b | 1) as i16) as u16
        }),
        ("or.b16 %he, %hb, 1; rem.u16 %hd, %ha, %he;", |a, b, _| {
            a % (b | 1)
        }),
        (
            "setp.lt.s16 %p0, %ha, %hb; selp.b16 %hd, 1, 2, %p0;",
            |a, b, _| if (a as i16) < b as i16 { 1 } else { 2 },
        ),
        ("mov.u16 %hd, %ha;", |a, _, _| a),
    ];
    let cases = cases(512, 13);
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let [a, b, c] = case.map(|x| x as u16);
            assert_eq!(got.2, rule(a, b, c), "{body} of {a:#x} {b:#x} {c:#x}");
        }
    }
    for (case, got) in cases.iter().zip(evaluate(
        "mul.wide.s16 %d, %ha, %hb; mad.wide.u16 %e, %ha, %hb, %d; mov.u32 %d, %e;",
        &cases,
    )) {
        let [a, b, _] = case.map(|x| x as u16);
        let signed = (i32::from(a as i16) * i32::from(b as i16)) as u32;
        assert_eq!(got.0, (u32::from(a) * u32::from(b)).wrapping_add(signed));
    }
}

#[test]
fn comparisons_and_their_combinations() {
    let ints: &[Test<u32>] = &[
        ("eq.u32", |a, b| a == b),
        ("ne.s32", |a, b| a != b),
        ("lt.s32", |a, b| s(a) < s(b)),
        ("le.s32", |a, b| s(a) <= s(b)),
        ("gt.s32", |a, b| s(a) > s(b)),
        ("ge.s32", |a, b| s(a) >= s(b)),
        ("lo.u32", |a, b| a < b),
        ("ls.u32", |a, b| a <= b),
        ("hi.u32", |a, b| a > b),
        ("hs.u32", |a, b| a >= b),
        ("lt.u32", |a, b| a < b),
        ("eq.b32", |a, b| a == b),
    ];
    let f = f32::from_bits;
    let unordered = |a: u32, b: u32| f(a).is_nan() || f(b).is_nan();
    assert!(unordered(0x7fc0_0000, 0));
    let floats: &[Test<f32>] = &[
        ("eq.f32", |a, b| a == b),
        ("ne.f32", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("lt.f32", |a, b| a < b),
        ("le.f32", |a, b| a <= b),
        ("gt.f32", |a, b| a > b),
        ("ge.f32", |a, b| a >= b),
        ("equ.f32", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("neu.f32", |a, b| a != b),
        ("ltu.f32", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("leu.f32", |a, b| a <= b || a.is_nan() || b.is_nan()),
        ("gtu.f32", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("geu.f32", |a, b| a >= b || a.is_nan() || b.is_nan()),
        ("num.f32", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan.f32", |a, b| a.is_nan() || b.is_nan()),
    ];
    let mut cases = cases(512, 14);
    for (i, case) in cases.iter_mut().enumerate().step_by(3) {
        // Equal and negated pairs.
        case[1] = if i % 2 == 0 {
            case[0]
        } else {
            case[0] ^ 0x8000_0000
        };
    }
    for (name, rule) in ints {
        for (case, got) in cases
            .iter()
            .zip(evaluate(&format!("setp.{name} %p, %a, %b;"), &cases))
        {
            assert_eq!(
                got.3,
                rule(case[0] as u32, case[1] as u32),
                "{name} {case:x?}"
            );
        }
    }
    for (name, rule) in floats {
        for (case, got) in cases
            .iter()
            .zip(evaluate(&format!("setp.{name} %p, %a, %b;"), &cases))
        {
            assert_eq!(
                got.3,
                rule(f(case[0] as u32), f(case[1] as u32)),
                "{name} {case:x?}"
            );
        }
    }
    let body =
        "setp.gt.s32 %p0, %c, 0; setp.lt.and.s32 %p|%q, %a, %b, !%p0; selp.u32 %d, 1, 0, %q;";
    for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
        let [a, b, c] = case.map(|x| s(x as u32));
        assert_eq!(got.3, a < b && c <= 0);
        assert_eq!(got.0 == 1, a >= b && c <= 0);
    }
    let body = "setp.gt.s32 %p0, %a, 0; setp.gt.s32 %p1, %b, 0; xor.pred %p, %p0, %p1; not.pred %q, %p; or.pred %p, %q, %p0;";
    for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
        let [a, b, _] = case.map(|x| s(x as u32) > 0);
        assert_eq!(got.3, a == b || a);
    }
}

#[test]
fn lop3_with_a_predicate_and_saturating_mad24() {
    let body = "setp.lt.u32 %p1, %tid, 16; and.b32 %r1, %tid, 1; mov.u32 %r2, 0;
    lop3.and.b32 %r3|%p2, %r1, %r1, %r2, 0x3c, %p1; lop3.or.b32 _|%p3, %tid, %r1, %r2, 0xc0, %p1;
    selp.u32 %r4, 1, 0, %p2; selp.u32 %r5, 2, 0, %p3; add.u32 %r4, %r4, %r5;
    mad24.hi.sat.s32 %r6, 0x7fffff, 0x7fffff, 0x7ffffff0; shl.b32 %r7, %r3, 8; add.u32 %r4, %r4, %r7; xor.b32 %r6, %r6, 0x7fffffff; add.u32 %r4, %r4, %r6;
    st.global.u32 [%mine], %r4;";
    let (data, report) = common::block(body, 32, 32);
    assert!(report.is_clean(), "{:#?}", report.findings);
    for (t, x) in data.iter().enumerate() {
        // 0x3c is a xor b: here 0; 0xc0 is a and b.
        let both = t & t & 1 != 0;
        let or = both || t < 16;
        assert_eq!(*x, 2 * u32::from(or), "{t}");
    }
}

#[test]
fn atomics_of_vectors() {
    let body = ".reg .b16 %x<2>;
    red.global.v4.f32.add [%out], {0f3f800000, 0f40000000, 0f00000000, 0fbf800000};
    mov.b32 %r1, 0x3c003c00; atom.global.v2.f16x2.add.noftz {%r2, %r3}, [%out+16], {%r1, %r1};
    mov.b16 %x0, 0x4000; mov.b16 %x1, 0xc000; red.global.v2.f16.max.noftz [%out+24], {%x0, %x1};";
    let (data, report) = common::block(body, 32, 8);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let floats: Vec<f32> = data[..4].iter().map(|x| f32::from_bits(*x)).collect();
    assert_eq!(floats, [32.0, 64.0, 0.0, -32.0]);
    assert_eq!(data[4..], [0x5000_5000, 0x5000_5000, 0x0000_4000, 0]);
}

/// 128 bits are exchanged as a whole, and compared as a whole.
#[test]
fn atomics_of_128_bits() {
    let text = common::kernel(
        ".param .u64 out",
        ".reg .b64 %out, %a, %b; .reg .b128 %x, %y, %z;
    ld.param.u64 %out, [out];
    mov.b128 %x, {1, 2};
    mov.b128 %y, {3, 4};
    atom.global.exch.b128 %z, [%out], %x;
    atom.global.cas.b128 %z, [%out], %y, %x;
    mov.b128 {%a, %b}, %z;
    st.global.v2.b64 [%out+16], {%a, %b};
    atom.global.cas.b128 %z, [%out], %x, %y;
    mov.b128 {%a, %b}, %z;
    st.global.v2.b64 [%out+32], {%a, %b};",
    );
    let text = text.replace(".version 8.0", ".version 8.4");
    common::assembles("atom128", &text);
    let module = Module::parse_strict(&text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(48, 256).expect("memory");
    memory.write(out, &[7; 16]).expect("a write");
    let launch = Launch {
        block: [1, 1, 1],
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert!(report.is_clean());
    let bytes = memory.read(out, 48).expect("a read");
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|b| b.iter().rev().fold(0, |x, b| x << 8 | u64::from(*b)))
        .collect();
    // The first comparison fails and leaves {1, 2}, which the second replaces.
    assert_eq!(words, [3, 4, 1, 2, 1, 2]);
}
