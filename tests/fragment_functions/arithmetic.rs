//! Values: each operation against the host, NaN and infinities too.

use tilewright::Layout;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel, Rounding};
use tilewright::codegen::value::{F32, Predicate, S32};
use tilewright::codegen::view::ViewError;
use tilewright::codegen::{Arch, Proven};

use super::{Result, computed};

/// Numbers of all kinds.
const NUMBERS: [f32; 32] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    100.25,
    -100.75,
    127.5,
    128.0,
    -128.5,
    -129.0,
    1000.0,
    3e9,
    -3e9,
    1e-30,
    -1e-30,
    1e-40,
    65504.0,
    65520.0,
    1e6,
    3e38,
    -3e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    0.1,
    7.75,
    -0.3,
];

/// y = f(x, x of the neighbour).
fn unary(f: impl Fn(&mut Kernel, F32) -> F32) -> Result<Vec<f32>> {
    let built = built(Arch(90), f)?;
    computed(&built, 32, &NUMBERS, 32)
}

fn built(arch: Arch, f: impl Fn(&mut Kernel, F32) -> F32) -> Result<Proven> {
    let mut k = Kernel::new("f", 32);
    let m = k.size("m", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[m]),
        k.output("y", Element::F32, &[m]),
    );
    let (i, thread, one) = (
        k.tiles(Axis::X, m, 32)?,
        k.thread(),
        Layout::parse("(32,1):(1,0)")?,
    );
    let x = x
        .tile(&mut k, &[32], &[i])?
        .partition(&mut k, &one, thread)?;
    let y = y
        .tile(&mut k, &[32], &[i])?
        .partition(&mut k, &one, thread)?;
    let made = k.load_fragment(&x)?.map(&mut k, |k, x| f(k, x))?;
    k.store_fragment(&y, &made)?;
    Ok(k.build(arch)?)
}

/// Every result is that of the host, up to a relative error.
#[track_caller]
fn assert_like(f: impl Fn(&mut Kernel, F32) -> F32, host: impl Fn(f32) -> f32, relative: f32) {
    let y = unary(f).expect("built and run");
    for (&x, &y) in NUMBERS.iter().zip(&y) {
        let wanted = host(x);
        let near = (y - wanted).abs() <= relative * wanted.abs();
        assert!(
            near || y == wanted || (y.is_nan() && wanted.is_nan()),
            "of {x}: {y}, not {wanted}"
        );
    }
}

#[test]
fn sums_and_products() {
    assert_like(
        |k, x| x.add(k, 1.25).sub(k, x).mul(k, 3.0),
        |x| (x + 1.25 - x) * 3.0,
        0.0,
    );
    assert_like(|k, x| x.fma(k, 3.0, 1.0), |x| x.mul_add(3.0, 1.0), 0.0);
    assert_like(|k, x| x.neg(k).abs(k), f32::abs, 0.0);
    assert_like(|k, x| F32::from(2.0).sub(k, x), |x| 2.0 - x, 0.0);
}

#[test]
fn minima_and_maxima_treat_nan_as_they_say() {
    assert_like(|k, x| x.max(k, 0.25), |x| x.max(0.25), 0.0);
    assert_like(|k, x| x.min(k, 0.25), |x| x.min(0.25), 0.0);
    let propagated = |x: f32, y: f32| if x.is_nan() { x } else { y };
    assert_like(
        |k, x| x.max_nan(k, 0.25),
        |x| propagated(x, x.max(0.25)),
        0.0,
    );
    assert_like(
        |k, x| x.min_nan(k, 0.25),
        |x| propagated(x, x.min(0.25)),
        0.0,
    );
}

#[test]
fn functions() {
    let flushed = |x: f32| {
        if x.is_subnormal() {
            0.0f32.copysign(x)
        } else {
            x
        }
    };
    assert_like(|k, x| x.exp2(k), |x| flushed(flushed(x).exp2()), 2e-6);
    assert_like(|k, x| x.reciprocal(k), |x| flushed(1.0 / flushed(x)), 2e-7);
    assert_like(|k, x| x.rsqrt(k), |x| flushed(x).sqrt().recip(), 4e-7);
    assert_like(|k, x| x.sqrt(k), f32::sqrt, 0.0);
    assert_like(|k, x| x.log2(k), |x| flushed(x).log2(), 1e-6);
    assert_like(|k, x| x.tanh(k), f32::tanh, 5e-4);
}

#[test]
fn conversions() {
    let bound = |x: f32, low: f32, high: f32| if x.is_nan() { 0.0 } else { x.clamp(low, high) };
    assert_like(
        |k, x| x.to_s8(k, Rounding::Nearest).to_f32(k),
        |x| bound(x.round_ties_even(), -128.0, 127.0),
        0.0,
    );
    for (rounding, host) in [
        (Rounding::Nearest, f32::round_ties_even as fn(f32) -> f32),
        (Rounding::Zero, f32::trunc),
        (Rounding::Down, f32::floor),
        (Rounding::Up, f32::ceil),
    ] {
        assert_like(
            |k, x| x.to_s32(k, rounding).to_f32(k),
            |x| bound(host(x), -2_147_483_648.0, 2_147_483_648.0),
            0.0,
        );
        assert_like(
            |k, x| x.to_u32(k, rounding).to_f32(k),
            |x| bound(host(x), 0.0, 4_294_967_296.0),
            0.0,
        );
    }
    assert_like(
        |k, x| x.pair_f16(k, 1.0).to_f32(k)[0],
        |x| half::f16::from_f32(x).to_f32(),
        0.0,
    );
    assert_like(
        |k, x| F32::from(1.0).pair_f16(k, x).to_f32(k)[1],
        |x| half::f16::from_f32(x).to_f32(),
        0.0,
    );
    assert_like(
        |k, x| x.pair_bf16(k, 1.0).to_f32(k)[0],
        |x| half::bf16::from_f32(x).to_f32(),
        0.0,
    );
    assert_like(
        |k, x| F32::from(1.0).pair_bf16(k, x).to_f32(k)[1],
        |x| half::bf16::from_f32(x).to_f32(),
        0.0,
    );
    assert_like(
        |k, x| {
            let wide = x.to_f64(k);
            wide.mul(k, 0.5).to_f32(k)
        },
        |x| (f64::from(x) * 0.5) as f32,
        0.0,
    );
}

#[test]
fn pairs() {
    let half = |x: f32| half::f16::from_f32(x);
    assert_like(
        |k, x| {
            let (one, pair) = (F32::from(1.0).pair_f16(k, 1.0), x.pair_f16(k, x));
            let sum = pair
                .add(k, one)
                .sub(k, one)
                .max(k, one)
                .mul(k, one)
                .fma(k, one, one);
            sum.neg(k).abs(k).to_f32(k)[1]
        },
        |x| {
            let one = half(1.0);
            let sum = half((half(x) + one).to_f32()) - one;
            let most = half(sum.to_f32().max(1.0));
            (most + one).to_f32()
        },
        0.0,
    );
    let half = |x: f32| half::bf16::from_f32(x);
    assert_like(
        |k, x| {
            let (one, pair) = (F32::from(1.0).pair_bf16(k, 1.0), x.pair_bf16(k, x));
            let sum = pair.add(k, one).sub(k, one).max(k, one).mul(k, one);
            sum.neg(k).abs(k).to_f32(k)[0]
        },
        |x| {
            let one = half(1.0);
            let sum = half((half(x) + one).to_f32()) - one;
            sum.to_f32().max(1.0)
        },
        0.0,
    );
    assert_like(
        |k, x| x.pair_f16(k, 0.0).exp2(k).to_f32(k)[0],
        |x| half::f16::from_f32(half::f16::from_f32(x).to_f32().exp2()).to_f32(),
        2e-3,
    );
}

#[test]
fn comparisons_and_choices() {
    let one = F32::from(1.0);
    assert_like(
        |k, x| x.lt(k, 0.5).select(k, one, 0.0),
        |x| f32::from(u8::from(x < 0.5)),
        0.0,
    );
    assert_like(
        |k, x| x.le(k, 0.5).select(k, one, 0.0),
        |x| f32::from(u8::from(x <= 0.5)),
        0.0,
    );
    assert_like(
        |k, x| x.gt(k, 0.5).select(k, one, 0.0),
        |x| f32::from(u8::from(x > 0.5)),
        0.0,
    );
    assert_like(
        |k, x| x.ge(k, 0.5).not().select(k, one, 0.0),
        |x| f32::from(u8::from(x < 0.5 || x.is_nan())),
        0.0,
    );
    assert_like(
        |k, x| x.eq(k, 0.5).select(k, one, 0.0),
        |x| f32::from(u8::from(x == 0.5)),
        0.0,
    );
    assert_like(
        |k, x| x.ne(k, x).select(k, one, 0.0),
        |x| f32::from(u8::from(x.is_nan())),
        0.0,
    );
    assert_like(
        |k, x| {
            let (p, q) = (x.gt(k, 0.0), x.lt(k, 2.0).not());
            let both = p.and(k, q);
            let either = p.or(k, q.not());
            let a = both.select(k, one, 0.0);
            let b = either.not().select(k, F32::from(2.0), 0.0);
            a.add(k, b)
        },
        |x| {
            let (p, q) = (x > 0.0, x >= 2.0 || x.is_nan());
            f32::from(u8::from(p && q)) + 2.0 * f32::from(u8::from(!p && q))
        },
        0.0,
    );
}

#[test]
fn coordinates_are_values_and_masks() -> Result {
    let y = unary(|k, _| {
        let thread = k.thread();
        let number = S32::index(k, thread).mul(k, 3).sub(k, 40).to_f32(k);
        let (three, six) = (k.constant(3), k.constant(6));
        let later = k.add(thread, three);
        let p = Predicate::of(k, later, Cmp::Ge, six);
        p.select(k, number, f32::NEG_INFINITY)
    })?;
    for (t, y) in (0u8..).zip(y) {
        let wanted = if t >= 3 {
            f32::from(t) * 3.0 - 40.0
        } else {
            f32::NEG_INFINITY
        };
        assert_eq!(y, wanted);
    }
    Ok(())
}

#[test]
fn a_variable_keeps_what_was_read() -> Result {
    let y = unary(|k, x| {
        let sum = k.variable(F32::from(0.0));
        let n = k.constant(10);
        k.for_loop("i", 0, 1, n, |k, _| {
            let old = sum.get(k);
            let new = old.add(k, 1.0);
            sum.set(k, new);
            // The old value is still the old one.
            let more = sum.get(k).sub(k, old).sub(k, 1.0);
            let new = sum.get(k).add(k, more);
            sum.set(k, new);
            Ok::<(), ViewError>(())
        })
        .expect("a loop");
        let all = sum.get(k);
        x.mul(k, 0.0).ne(k, 0.0).select(k, all, all)
    })?;
    assert!(y.iter().all(|&y| y == 10.0), "{y:?}");
    Ok(())
}

#[test]
fn an_architecture_without_an_instruction_is_refused() {
    let error = built(Arch(75), |k, x| x.max_nan(k, 0.0)).expect_err("sm_75 has no max.NaN");
    assert!(error.to_string().contains("sm_80 is the first"), "{error}");
    let error = built(Arch(80), |k, x| x.pair_bf16(k, x).exp2(k).to_f32(k)[0])
        .expect_err("sm_80 has no ex2.bf16x2");
    assert!(error.to_string().contains("sm_90 is the first"), "{error}");
}

/// Every operation that an architecture has, one after the other.
fn everything(k: &mut Kernel, arch: Arch, x: F32) -> F32 {
    let mut y = x
        .add(k, 1.0)
        .sub(k, x)
        .mul(k, x)
        .fma(k, 2.0, x)
        .neg(k)
        .abs(k);
    y = y
        .min(k, 3.0)
        .max(k, -3.0)
        .exp2(k)
        .reciprocal(k)
        .rsqrt(k)
        .sqrt(k)
        .log2(k)
        .tanh(k);
    let whole = [
        Rounding::Nearest,
        Rounding::Zero,
        Rounding::Down,
        Rounding::Up,
    ];
    for rounding in whole {
        let (a, b) = (y.to_s32(k, rounding), y.to_s8(k, rounding));
        let unsigned = y.to_u32(k, rounding).add(k, 1).to_f32(k);
        y = a
            .add(k, b)
            .mul(k, 3)
            .sub(k, a)
            .min(k, 9)
            .max(k, b)
            .to_f32(k)
            .add(k, unsigned);
    }
    let wide = y.to_f64(k);
    y = wide
        .add(k, wide)
        .mul(k, 0.5)
        .fma(k, wide, 1.0)
        .neg(k)
        .abs(k)
        .sqrt(k)
        .max(k, 1.0)
        .to_f32(k);
    let (p, q) = (y.lt(k, x), y.ne(k, y).not());
    y = p.and(k, q.not()).or(k, q).select(k, x, y);
    if arch >= Arch(80) {
        y = y.min_nan(k, 2.0).max_nan(k, 1.0);
        let pair = y.pair_f16(k, x);
        let pair = pair
            .add(k, pair)
            .sub(k, pair)
            .mul(k, pair)
            .fma(k, pair, pair)
            .neg(k)
            .abs(k);
        let pair = pair
            .min(k, pair)
            .max(k, pair)
            .min_nan(k, pair)
            .max_nan(k, pair)
            .exp2(k)
            .tanh(k);
        let [low, high] = pair.to_f32(k);
        y = low.add(k, high);
        let pair = y.pair_bf16(k, x);
        let pair = pair
            .add(k, pair)
            .sub(k, pair)
            .mul(k, pair)
            .fma(k, pair, pair)
            .neg(k)
            .abs(k);
        let mut pair = pair
            .min(k, pair)
            .max(k, pair)
            .min_nan(k, pair)
            .max_nan(k, pair);
        if arch >= Arch(90) {
            pair = pair.exp2(k).tanh(k);
        }
        let [low, high] = pair.to_f32(k);
        y = low.add(k, high);
    }
    y
}

#[test]
fn the_assembler_takes_all_of_it() {
    let ptxas = tilewright::gpu::ptxas::for_tests();
    let Some(ptxas) = ptxas.expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1") else {
        return;
    };
    for arch in Arch::ALL {
        let kernel = built(arch, |k, x| everything(k, arch, x)).expect("proven");
        let assembly = ptxas.assemble(&kernel.ptx, &arch.to_string());
        assembly.unwrap_or_else(|e| panic!("{arch}: {e}"));
    }
}
