//! Float instructions: exact rounding against the host's, against the `half` crate, and against brute force over all values.

#![allow(clippy::float_cmp)] // results are exact

mod common;

use common::{Random, evaluate};
use half::{bf16, f16};

type RuleF32 = (&'static str, fn(f32, f32, f32) -> f32);
type RuleF64 = (&'static str, fn(f64, f64, f64) -> f64);
type Function = (&'static str, fn(f64) -> f64);
type ToInteger = (&'static str, fn(f32) -> u32);

fn cases(n: usize, seed: u64) -> Vec<[u64; 3]> {
    let mut random = Random(seed);
    // Floats of nearby exponents, so that cancellation and ties happen, among the corners.
    let float = |r: &mut Random| match r.below(3) {
        0 => r.nasty(),
        1 => u64::from(
            ((r.below(1 << 12) as f32 - 2048.0) * 0.5f32.powi(r.below(30) as i32)).to_bits(),
        ),
        _ => 0x3f00_0000 + (r.below(1 << 25)),
    };
    (0..n)
        .map(|_| [float(&mut random), float(&mut random), float(&mut random)])
        .collect()
}

fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

#[test]
fn f32_arithmetic_is_correctly_rounded() {
    let rules: &[RuleF32] = &[
        ("add.f32 %d, %a, %b;", |a, b, _| a + b),
        ("add.rn.f32 %d, %a, %b;", |a, b, _| a + b),
        ("sub.f32 %d, %a, %b;", |a, b, _| a - b),
        ("mul.f32 %d, %a, %b;", |a, b, _| a * b),
        ("fma.rn.f32 %d, %a, %b, %c;", f32::mul_add),
        ("mad.rn.f32 %d, %a, %b, %c;", f32::mul_add),
        ("div.rn.f32 %d, %a, %b;", |a, b, _| a / b),
        ("rcp.rn.f32 %d, %a;", |a, _, _| 1.0 / a),
        ("sqrt.rn.f32 %d, %a;", |a, _, _| a.sqrt()),
        ("add.f32 %d, %a, 0f3F800000;", |a, _, _| a + 1.0),
        ("mul.f32 %d, %a, -2.5;", |a, _, _| a * -2.5),
        ("add.sat.f32 %d, %a, %b;", |a, b, _| {
            if a + b > 0.0 { (a + b).min(1.0) } else { 0.0 }
        }),
        ("fma.rn.sat.f32 %d, %a, %b, %c;", |a, b, c| {
            if a.mul_add(b, c) > 0.0 {
                a.mul_add(b, c).min(1.0)
            } else {
                0.0
            }
        }),
    ];
    let cases = cases(3000, 21);
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let [a, b, c] = case.map(|x| f32::from_bits(x as u32));
            assert_eq!(
                got.0,
                canonical(rule(a, b, c)),
                "{body} of {a:e} {b:e} {c:e}"
            );
        }
    }
}

/// The directed roundings, by their definition: the neighbours of the exact value.
#[test]
fn directed_rounding_brackets_the_exact_value() {
    let cases: Vec<[u64; 3]> = cases(3000, 22)
        .into_iter()
        .filter(|c| {
            c.iter().all(|x| {
                f32::from_bits(*x as u32).abs() < 1e18 && f32::from_bits(*x as u32).abs() > 1e-10
            })
        })
        .collect();
    assert!(cases.len() > 500);
    for op in ["add", "mul", "fma"] {
        let args = if op == "fma" { "%a, %b, %c" } else { "%a, %b" };
        let run = |mode: &str| evaluate(&format!("{op}.{mode}.f32 %d, {args};"), &cases);
        let (near, down, up, zero) = (run("rn"), run("rm"), run("rp"), run("rz"));
        for i in 0..cases.len() {
            let [a, b, c] = cases[i].map(|x| f64::from(f32::from_bits(x as u32)));
            // Exact as a pair: high + low.
            let (x, y) = match op {
                "add" => (a, b),
                "mul" => (a * b, 0.0),
                _ => (a * b, c),
            };
            let high = x + y;
            let t = high - x;
            let low = (x - (high - t)) + (y - t);
            let [n, d, u, z] =
                [&near, &down, &up, &zero].map(|v| f64::from(f32::from_bits(v[i].0)));
            let above = |v: f64| (v - high) - low;
            assert!(
                above(d) <= 0.0 && above(u) >= 0.0,
                "{op} {:x?}: {d:e} {u:e}",
                cases[i]
            );
            assert_eq!(z, if high > 0.0 { d } else { u }, "{op} {:x?}", cases[i]);
            assert!(n == d || n == u);
            assert!(
                d == u
                    || f32::from_bits(down[i].0).next_up() == f32::from_bits(up[i].0)
                    || (d == 0.0 || u == 0.0)
            );
        }
    }
}

/// The NaN that an H100 gives: the first NaN of B, C and A made quiet, else the one of an invalid operation.
fn nan64(body: &str, [a, b, c]: [u64; 3]) -> u64 {
    if body.starts_with("cvt.f64.f32") {
        return (a >> 31 & 1) << 63 | 0x7ff8 << 48 | (a & 0x7f_ffff) << 29;
    }
    let operands = [("%B", b), ("%C", c), ("%A", a)];
    let mut operands = operands.iter().filter(|(name, _)| body.contains(name));
    let nan = operands.find(|(_, x)| f64::from_bits(*x).is_nan());
    nan.map_or(0xfff8 << 48, |(_, x)| x | 1 << 51)
}

#[test]
fn f64_arithmetic() {
    let rules: &[RuleF64] = &[
        ("add.f64 %D, %A, %B;", |a, b, _| a + b),
        ("sub.rn.f64 %D, %A, %B;", |a, b, _| a - b),
        ("mul.f64 %D, %A, %B;", |a, b, _| a * b),
        ("fma.rn.f64 %D, %A, %B, %C;", f64::mul_add),
        ("div.rn.f64 %D, %A, %B;", |a, b, _| a / b),
        ("sqrt.rn.f64 %D, %A;", |a, _, _| a.sqrt()),
        ("rcp.rn.f64 %D, %A;", |a, _, _| 1.0 / a),
        ("cvt.f64.f32 %D, %a;", |a, _, _| {
            f64::from(f32::from_bits(a.to_bits() as u32))
        }),
    ];
    let mut random = Random(23);
    let cases: Vec<[u64; 3]> = (0..2000).map(|_| [0; 3].map(|_| random.nasty())).collect();
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let [a, b, c] = case.map(f64::from_bits);
            let expected = rule(a, b, c);
            let expected = if expected.is_nan() {
                nan64(body, *case)
            } else {
                expected.to_bits()
            };
            assert_eq!(got.1, expected, "{body} of {a:e} {b:e} {c:e}");
        }
    }
    // Directed: 1 + tiny.
    let one = 1.0f64.to_bits();
    let tiny = 1e-300f64.to_bits();
    let got = |mode: &str| evaluate(&format!("add.{mode}.f64 %D, %A, %B;"), &[[one, tiny, 0]])[0].1;
    assert_eq!(
        [got("rn"), got("rz"), got("rm"), got("rp")],
        [one, one, one, one + 1]
    );
}

#[test]
fn minimum_maximum_and_sign() {
    let nan = 0x7fc0_1234u64;
    let (pz, nz, one, two) = (0u64, 0x8000_0000u64, 0x3f80_0000u64, 0xc000_0000u64);
    let cases = [
        [nan, one, 0],
        [one, nan, 0],
        [nan, nan, 0],
        [pz, nz, 0],
        [nz, pz, 0],
        [one, two, 0],
    ];
    let run = |body: &str| {
        evaluate(body, &cases)
            .iter()
            .map(|r| u64::from(r.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        run("min.f32 %d, %a, %b;"),
        [one, one, 0x7fff_ffff, nz, nz, two]
    );
    assert_eq!(
        run("max.f32 %d, %a, %b;"),
        [one, one, 0x7fff_ffff, pz, pz, one]
    );
    assert_eq!(
        run("max.NaN.f32 %d, %a, %b;"),
        [0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff, pz, pz, one]
    );
    assert_eq!(run("min.xorsign.abs.f32 %d, %a, %b;")[5], 0xbf80_0000);
    assert_eq!(run("abs.f32 %d, %b;")[5], 0x4000_0000);
    assert_eq!(run("neg.f32 %d, %b;")[5], 0x4000_0000);
    assert_eq!(run("copysign.f32 %d, %b, %a;")[5], 0xbf80_0000);
}

#[test]
fn flush_to_zero() {
    let tiny = u64::from(f32::from_bits(3).to_bits());
    let cases = [
        [tiny, u64::from(1.0f32.to_bits()), 0],
        [0x8000_0003, u64::from(1.0f32.to_bits()), 0],
    ];
    let got = |body: &str| {
        evaluate(body, &cases)
            .iter()
            .map(|r| r.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(got("mul.f32 %d, %a, %b;"), [3, 0x8000_0003]);
    assert_eq!(got("mul.ftz.f32 %d, %a, %b;"), [0, 0x8000_0000]);
    assert_eq!(
        got("setp.eq.ftz.f32 %p, %a, 0f00000000; selp.u32 %d, 1, 0, %p;"),
        [1, 1]
    );
    // A subnormal result of normal operands.
    let small = [[0x0080_0000u64, u64::from(0.5f32.to_bits()), 0]];
    assert_eq!(evaluate("mul.ftz.f32 %d, %a, %b;", &small)[0].0, 0);
    assert_eq!(evaluate("mul.f32 %d, %a, %b;", &small)[0].0, 0x0040_0000);
}

/// Approximate functions stay within the ISA's bounds (at worst 2^-20 relative here, against f64).
#[test]
fn approximate_functions() {
    let mut random = Random(24);
    let cases: Vec<[u64; 3]> = (0..500)
        .map(|_| {
            [
                u64::from((random.below(8000) as f32 / 1000.0 + 0.01).to_bits()),
                0,
                0,
            ]
        })
        .collect();
    let rules: &[Function] = &[
        ("ex2.approx.f32 %d, %a;", f64::exp2),
        ("ex2.approx.ftz.f32 %d, %a;", f64::exp2),
        ("lg2.approx.f32 %d, %a;", f64::log2),
        ("sin.approx.f32 %d, %a;", f64::sin),
        ("cos.approx.f32 %d, %a;", f64::cos),
        ("tanh.approx.f32 %d, %a;", f64::tanh),
        ("rsqrt.approx.f32 %d, %a;", |x| 1.0 / x.sqrt()),
        ("rcp.approx.ftz.f32 %d, %a;", |x| 1.0 / x),
        ("sqrt.approx.f32 %d, %a;", f64::sqrt),
        ("div.approx.f32 %d, 0f3f800000, %a;", |x| 1.0 / x),
        ("div.full.f32 %d, 0f3f800000, %a;", |x| 1.0 / x),
    ];
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            let expected = rule(f64::from(f32::from_bits(case[0] as u32)));
            let error = (f64::from(f32::from_bits(got.0)) - expected).abs();
            assert!(error <= expected.abs() * 1e-6 + 1e-7, "{body}: {case:x?}");
        }
    }
}

#[test]
fn every_half_to_f32_and_back() {
    let cases: Vec<[u64; 3]> = (0..=0xffffu64).map(|h| [h, 0, 0]).collect();
    let wide = evaluate("cvt.f32.f16 %d, %ha;", &cases);
    let wide_b = evaluate("cvt.f32.bf16 %d, %ha;", &cases);
    for (h, (x, y)) in wide.iter().zip(&wide_b).enumerate() {
        let (f, b) = (f16::from_bits(h as u16), bf16::from_bits(h as u16));
        assert_eq!(x.0, canonical(f.to_f32()), "f16 {h:04x}");
        // A NaN of bf16 keeps its bits.
        let expected = if b.is_nan() {
            (h as u32) << 16
        } else {
            b.to_f32().to_bits()
        };
        assert_eq!(y.0, expected, "bf16 {h:04x}");
    }
    let back: Vec<[u64; 3]> = wide.iter().map(|x| [u64::from(x.0), 0, 0]).collect();
    for (h, got) in evaluate("cvt.rn.f16.f32 %hd, %a;", &back)
        .iter()
        .enumerate()
    {
        let expected = if f16::from_bits(h as u16).is_nan() {
            0x7fff
        } else {
            h as u16
        };
        assert_eq!(got.2, expected, "{h:04x}");
    }
}

#[test]
fn f32_to_half_is_correctly_rounded() {
    let mut random = Random(25);
    let mut cases = cases(3000, 26);
    // Ties and near ties of f16 and bf16.
    for _ in 0..6000 {
        let h = u64::from(f16::from_bits(random.bits() as u16).to_f32().to_bits());
        cases.push([
            h.wrapping_add(random.below(5)).wrapping_sub(2) ^ 0x1000,
            0,
            0,
        ]);
        let b = random.bits() & 0xffff_0000;
        cases.push([b + 0x8000 + random.below(3) - 1, 0, 0]);
    }
    let to = |body: &str| evaluate(body, &cases);
    let (h, b) = (
        to("cvt.rn.f16.f32 %hd, %a;"),
        to("cvt.rn.bf16.f32 %hd, %a;"),
    );
    let (hz, packed) = (
        to("cvt.rz.f16.f32 %hd, %a;"),
        to("cvt.rn.f16x2.f32 %d, %b, %a;"),
    );
    for (i, case) in cases.iter().enumerate() {
        let x = f32::from_bits(case[0] as u32);
        if x.is_nan() {
            assert_eq!([h[i].2, b[i].2, hz[i].2], [0x7fff; 3]);
            continue;
        }
        assert_eq!(h[i].2, f16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(b[i].2, bf16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(packed[i].0 as u16, h[i].2);
        // Toward zero: the largest magnitude not above |x|.
        let z = f16::from_bits(hz[i].2);
        let next = f16::from_bits(hz[i].2 + 1);
        assert!(
            z.to_f32().abs() <= x.abs() && (next.to_f32().abs() > x.abs() || next.is_nan()),
            "{x:e} {z}"
        );
    }
}

/// e4m3 and e5m2 by search over all finite values: nearest, ties to even, saturating.
#[test]
fn eight_bit_floats() {
    let decode = |name: &str| -> Vec<f32> {
        let cases: Vec<[u64; 3]> = (0..256u64).map(|x| [x | (x ^ 1) << 8, 0, 0]).collect();
        let got = evaluate(&format!("cvt.rn.f16x2.{name} %d, %ha;"), &cases);
        for (x, g) in got.iter().enumerate() {
            // The upper half converts the upper byte.
            let other = got[x ^ 1].0 & 0xffff;
            assert_eq!(g.0 >> 16, other);
        }
        got.iter()
            .map(|g| f16::from_bits(g.0 as u16).to_f32())
            .collect()
    };
    let formula = |x: u32, fraction: i32, bias: i32| {
        let (e, m) = (
            ((x & 0x7f) >> fraction) as i32,
            (x & ((1 << fraction) - 1)) as f32 / 2f32.powi(fraction),
        );
        let v = if e == 0 {
            m * 2f32.powi(1 - bias)
        } else {
            (1.0 + m) * 2f32.powi(e - bias)
        };
        if x & 0x80 != 0 { -v } else { v }
    };
    for (name, fraction, bias, largest) in [("e4m3x2", 3, 7, 0x7e_u32), ("e5m2x2", 2, 15, 0x7b)] {
        let values = decode(name);
        for x in 0..256u32 {
            if x & 0x7f <= largest {
                assert_eq!(
                    values[x as usize],
                    formula(x, fraction, bias),
                    "{name} {x:02x}"
                );
            }
        }
        let mut random = Random(27);
        let mut inputs: Vec<f32> = (0..4000)
            .map(|_| (random.below(2001) as f32 - 1000.0) * 2f32.powi(random.below(24) as i32 - 18))
            .collect();
        for x in 0..largest {
            // Exact ties and their neighbours.
            let tie = f32::midpoint(formula(x, fraction, bias), formula(x + 1, fraction, bias));
            inputs.extend([tie, tie.next_up(), -tie.next_down()]);
        }
        inputs.extend([f32::INFINITY, -f32::INFINITY, 0.0, -0.0]);
        let cases: Vec<[u64; 3]> = inputs
            .iter()
            .map(|x| [u64::from(x.to_bits()), u64::from(1.0f32.to_bits()), 0])
            .collect();
        let got = evaluate(&format!("cvt.rn.satfinite.{name}.f32 %hd, %b, %a;"), &cases);
        let one = evaluate(
            &format!("cvt.rn.satfinite.{name}.f32 %hd, %b, %b;"),
            &cases[..1],
        )[0]
        .2 >> 8;
        for (x, g) in inputs.iter().zip(got) {
            assert_eq!(g.2 >> 8, one);
            let code = u32::from(g.2 & 0xff);
            assert_eq!(code & 0x80 != 0, x.is_sign_negative());
            let best = (0..=largest)
                .min_by(|&p, &q| {
                    let d =
                        |c: u32| (f64::from(formula(c, fraction, bias)) - f64::from(x.abs())).abs();
                    d(p).total_cmp(&d(q)).then((p & 1).cmp(&(q & 1)))
                })
                .expect("a value");
            let expected = if x.is_infinite() { largest } else { best };
            assert_eq!(code & 0x7f, expected, "{name} of {x:e}");
        }
        let nan = evaluate(
            &format!("cvt.rn.satfinite.{name}.f32 %hd, %a, %a;"),
            &[[0x7fc0_0000, 0, 0]],
        )[0]
        .2;
        assert_eq!(nan, 0x7f7f);
    }
}

#[test]
fn tf32_rounds_to_ten_bits_of_fraction() {
    let mut random = Random(28);
    let cases: Vec<[u64; 3]> = (0..3000)
        .map(|_| [0x3000_0000 + random.below(1 << 29), 0, 0])
        .collect();
    let away = evaluate("cvt.rna.tf32.f32 %d, %a;", &cases);
    let even = evaluate("cvt.rn.tf32.f32 %d, %a;", &cases);
    for (i, case) in cases.iter().enumerate() {
        let x = case[0] as u32;
        assert_eq!(away[i].0, (x + 0x1000) & !0x1fff);
        assert_eq!(even[i].0, (x + 0xfff + (x >> 13 & 1)) & !0x1fff);
    }
}

#[test]
fn conversions_between_floats_and_integers() {
    let cases = cases(2000, 29);
    let f = |case: &[u64; 3]| f32::from_bits(case[0] as u32);
    let rules: &[ToInteger] = &[
        ("cvt.rni.s32.f32 %d, %a;", |x| {
            x.round_ties_even() as i32 as u32
        }),
        ("cvt.rzi.s32.f32 %d, %a;", |x| x as i32 as u32),
        ("cvt.rmi.s32.f32 %d, %a;", |x| x.floor() as i32 as u32),
        ("cvt.rpi.s32.f32 %d, %a;", |x| x.ceil() as i32 as u32),
        ("cvt.rzi.u32.f32 %d, %a;", |x| x as u32),
        ("cvt.rzi.s8.f32 %d, %a;", |x| x as i8 as i32 as u32),
        ("cvt.rni.f32.f32 %d, %a;", |x| {
            canonical(x.round_ties_even())
        }),
        ("cvt.sat.f32.f32 %d, %a;", |x| {
            if x > 0.0 { x.min(1.0).to_bits() } else { 0 }
        }),
    ];
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            assert_eq!(got.0, rule(f(case)), "{body} {:e}", f(case));
        }
    }
    // A register may be wider than a signed integer, whose sign goes on.
    for (case, got) in cases
        .iter()
        .zip(evaluate("cvt.rzi.s32.f32 %D, %a;", &cases))
    {
        assert_eq!(got.1, i64::from(f(case) as i32) as u64, "{:e}", f(case));
    }
    let mut random = Random(30);
    let ints: Vec<[u64; 3]> = (0..2000).map(|_| [random.nasty(), 0, 0]).collect();
    for (case, got) in ints.iter().zip(evaluate(
        "cvt.rn.f32.s32 %d, %a; cvt.rn.f64.u64 %D, %A;",
        &ints,
    )) {
        assert_eq!(got.0, (case[0] as i32 as f32).to_bits());
        assert_eq!(got.1, (case[0] as f64).to_bits());
    }
    for (case, got) in ints.iter().zip(evaluate(
        "cvt.rn.f32.u64 %d, %A; cvt.rzi.s64.f64 %D, %A;",
        &ints,
    )) {
        assert_eq!(got.0, (case[0] as f32).to_bits(), "{:x}", case[0]);
        let x = f64::from_bits(case[0]);
        assert_eq!(got.1, if x.is_nan() { 1 << 63 } else { x as i64 as u64 });
    }
    for (case, got) in ints.iter().zip(evaluate(
        "cvt.rn.f32.f64 %d, %A; cvt.rn.f16.s16 %hd, %ha;",
        &ints,
    )) {
        let x = f64::from_bits(case[0]);
        let payload = (case[0] >> 63) << 31 | 0x7fc0_0000 | (case[0] >> 29 & 0x3f_ffff);
        let expected = if x.is_nan() {
            payload as u32
        } else {
            (x as f32).to_bits()
        };
        assert_eq!(got.0, expected);
        assert_eq!(got.2, f16::from_f32(f32::from(case[0] as i16)).to_bits());
    }
}

#[test]
fn half_arithmetic_is_correctly_rounded() {
    let mut random = Random(31);
    let cases: Vec<[u64; 3]> = (0..4000)
        .map(|_| {
            [0; 3].map(|_| {
                if random.below(2) == 0 {
                    random.bits() & 0xffff
                } else {
                    0x3000 + random.below(0x2000)
                }
            })
        })
        .collect();
    let exact = |f: fn(f64, f64, f64) -> f64, case: &[u64; 3]| {
        let [a, b, c] = case.map(|x| f16::from_bits(x as u16).to_f64());
        let r = f(a, b, c);
        // f64 holds sums and products of f16 exactly; `half` rounds once.
        if r.is_nan() {
            0x7fff
        } else {
            f16::from_f64(r).to_bits()
        }
    };
    let rules: &[RuleF64] = &[
        ("add.f16 %hd, %ha, %hb;", |a, b, _| a + b),
        ("sub.rn.f16 %hd, %ha, %hb;", |a, b, _| a - b),
        ("mul.f16 %hd, %ha, %hb;", |a, b, _| a * b),
    ];
    for (body, rule) in rules {
        for (case, got) in cases.iter().zip(evaluate(body, &cases)) {
            assert_eq!(got.2, exact(*rule, case), "{body} {case:x?}");
        }
    }
    // Packed halves work on both sides.
    for (case, got) in cases.iter().zip(evaluate(
        "mov.b32 %e, {%ha, %hb}; mov.b32 %f, {%hb, %hc}; fma.rn.f16x2 %d, %e, %f, %e;",
        &cases,
    )) {
        let [a, b, c] = case.map(|x| f16::from_bits(x as u16).to_f64());
        for (half, x, y) in [(got.0 as u16, a, b), ((got.0 >> 16) as u16, b, c)] {
            let r = x.mul_add(y, x);
            if r.is_nan() {
                assert_eq!(half, 0x7fff);
            } else if r.abs() > 1e-3 {
                // Above that, f64 holds the sum exactly.
                assert_eq!(half, f16::from_f64(r).to_bits(), "{case:x?}");
            }
        }
    }
    for (case, got) in cases.iter().zip(evaluate(
        "fma.rn.bf16 %hd, %ha, %hb, %ha; max.f16 %he, %ha, %hb; cvt.u32.u16 %d, %he;",
        &cases,
    )) {
        let [a, b, _] = case.map(|x| bf16::from_bits(x as u16));
        let r = a.to_f64().mul_add(b.to_f64(), a.to_f64());
        if r.is_nan() {
            assert_eq!(got.2, 0x7fff);
        }
        let [x, y, _] = case.map(|x| f16::from_bits(x as u16));
        if x > y {
            assert_eq!(got.0, x.to_bits().into());
        }
    }
}
