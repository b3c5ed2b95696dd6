//! Fragments in other types: every type to every other one, against arithmetic of its own.
#![allow(clippy::float_cmp)] // the right values are exact

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

use super::natural::{assembles, fours, numbers, ran};
use super::{ARCH, Result, layout};
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::value::F32;
use tilewright::codegen::view::{Packed, View};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{
    Arg, BufferElement, Launches, On, Outcome, Param, RunError, Runnable, Scalars, run,
};

const ELEMENTS: [Element; 7] = [
    Element::F32,
    Element::F16,
    Element::Bf16,
    Element::S8,
    Element::S32,
    Element::E4m3,
    Element::E5m2,
];

/// The number that e4m3 bits stand for.
pub(super) fn of_e4m3(bits: u8) -> f64 {
    let (sign, exponent, fraction) = (bits >> 7, i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size = match exponent {
        0 => fraction / 8.0 * f64::powi(2.0, -6),
        15 if fraction > 6.5 => f64::NAN,
        _ => (1.0 + fraction / 8.0) * f64::powi(2.0, exponent - 7),
    };
    if sign == 1 { -size } else { size }
}

/// The number that e5m2 bits stand for: those of an f16 without its low byte.
fn of_e5m2(bits: u8) -> f64 {
    f16::from_bits(u16::from(bits) << 8).into()
}

/// The 8-bit float nearest to a number, of two the one with even bits; of its finite ones, which have bits up to `most` below the sign.
fn nearest(x: f64, decode: fn(u8) -> f64, most: u8) -> f64 {
    if x.is_nan() {
        return x;
    }
    let sign = u8::from(x.is_sign_negative()) << 7;
    let x = x.clamp(decode(0x80 | most), decode(most));
    let all = (0..=most).map(|bits| decode(sign | bits));
    let apart = all.enumerate().map(|(i, y)| ((y - x).abs(), i % 2, y));
    let (_, _, y) = apart
        .min_by(|a, b| a.partial_cmp(b).expect("numbers"))
        .expect("a float");
    y
}

/// A number in a type: rounded to nearest, ties to even; saturated except to 16 and 32-bit floats.
fn rounded(x: f64, to: Element) -> f64 {
    match to {
        Element::F32 => f64::from(x as f32),
        Element::F16 => f16::from_f64(x).into(),
        Element::Bf16 => bf16::from_f64(x).into(),
        Element::S8 => f64::from(x.round_ties_even() as i8),
        Element::S32 => f64::from(x.round_ties_even() as i32),
        Element::E4m3 => nearest(x, of_e4m3, 0x7e),
        Element::E5m2 => nearest(x, of_e5m2, 0x7b),
        Element::F64 => x,
    }
}

/// Numbers as an argument of a type.
fn input(x: &[f64], of: Element) -> Arg<'static> {
    let byte = |x: f64, decode: fn(u8) -> f64| {
        let all = (0..=255_u8).find(|&bits| {
            let y = decode(bits);
            y.is_nan() && x.is_nan() || y == x && y.is_sign_negative() == x.is_sign_negative()
        });
        all.expect("a number of the type")
    };
    let all = x.iter().copied();
    match of {
        Element::F32 => Arg::input(&all.map(|x| x as f32).collect::<Vec<_>>()),
        Element::F16 => Arg::input(&all.map(f16::from_f64).collect::<Vec<_>>()),
        Element::Bf16 => Arg::input(&all.map(bf16::from_f64).collect::<Vec<_>>()),
        Element::F64 => Arg::input(&all.collect::<Vec<_>>()),
        Element::S8 => Arg::input(&all.map(|x| x as i8).collect::<Vec<_>>()),
        Element::S32 => Arg::input(&all.map(|x| x as i32).collect::<Vec<_>>()),
        Element::E4m3 => {
            let of = |x| F8E4M3::from_bits(byte(x, of_e4m3));
            Arg::input(&all.map(of).collect::<Vec<_>>())
        }
        Element::E5m2 => {
            let of = |x| F8E5M2::from_bits(byte(x, of_e5m2));
            Arg::input(&all.map(of).collect::<Vec<_>>())
        }
    }
}

/// An output of a type.
fn output(n: usize, of: Element) -> Arg<'static> {
    match of {
        Element::F32 => Arg::output::<f32>(n),
        Element::F16 => Arg::output::<f16>(n),
        Element::Bf16 => Arg::output::<bf16>(n),
        Element::F64 => Arg::output::<f64>(n),
        Element::S8 => Arg::output::<i8>(n),
        Element::S32 => Arg::output::<i32>(n),
        Element::E4m3 => Arg::output::<F8E4M3>(n),
        Element::E5m2 => Arg::output::<F8E5M2>(n),
    }
}

/// The numbers of an output of a type.
fn found(outcome: &Outcome, of: Element) -> Result<Vec<f64>> {
    fn all<T: BufferElement + Into<f64>>(outcome: &Outcome) -> Result<Vec<f64>> {
        let y: Vec<T> = outcome.get("y")?;
        Ok(y.into_iter().map(Into::into).collect())
    }
    match of {
        Element::F32 => all::<f32>(outcome),
        Element::F16 => all::<f16>(outcome),
        Element::Bf16 => all::<bf16>(outcome),
        Element::F64 => all::<f64>(outcome),
        Element::S8 => all::<i8>(outcome),
        Element::S32 => all::<i32>(outcome),
        Element::E4m3 => {
            let y: Vec<F8E4M3> = outcome.get("y")?;
            Ok(y.into_iter().map(|y| of_e4m3(y.to_bits())).collect())
        }
        Element::E5m2 => {
            let y: Vec<F8E5M2> = outcome.get("y")?;
            Ok(y.into_iter().map(|y| of_e5m2(y.to_bits())).collect())
        }
    }
}

/// y of type `to` = x of type `from`, four elements a thread.
fn converted(from: Element, to: Element) -> Result<Kernel> {
    let mut k = Kernel::new("converted", 32);
    let n = k.size("n", 1 << 20);
    let (x, y) = (k.input("x", from, &[n]), k.output("y", to, &[n]));
    let block = k.tiles(Axis::X, n, 128)?;
    let of = |k: &mut Kernel, v: &View| fours(k, v, &[128], &[block], "(32,4):(4,1)");
    let (x, y) = (of(&mut k, &x)?, of(&mut k, &y)?);
    let x = k.load_fragment(&x)?.convert(&mut k, to)?;
    k.store_fragment(&y, &x)?;
    Ok(k)
}

#[test]
fn fragments_become_every_type() -> Result {
    let mut all: Vec<f64> = numbers(200).iter().map(|&x| f64::from(x) / 7.0).collect();
    // Ties and limits: of e4m3, of e5m2, of f16, of s8, of the integers.
    all.extend([0.0, 447.0, 448.0, 456.0, 464.0, 465.0, 479.9, 480.0]);
    all.extend([57344.0, 61440.0, 61441.0, 65504.0, 65519.0, 65520.0]);
    all.extend([127.0, 127.5, 128.0, 128.5, 129.0, 0.5, 1.5, 2.5, 1e9, 3e9]);
    all.extend([f64::INFINITY, f64::NAN, f64::from(f32::MAX), 1e-45]);
    for i in 0..44 {
        // Exact, ties of two and three bits of fraction, and next to them.
        let fractions = [1.0, 1.0625, 1.125, 1.1875, 1.375, 1.0626, 1.124];
        all.extend(fractions.map(|x| x * f64::powi(0.5, i - 17)));
    }
    let with_signs = all.iter().flat_map(|x| [*x, -x]);
    let all: Vec<f64> = with_signs.map(|x| f64::from(x as f32)).collect();
    let bits = 0..=255_u8;
    for from in ELEMENTS {
        let mut x: Vec<f64> = all.iter().map(|&x| rounded(x, from)).collect();
        // Every value of an 8-bit float.
        match from {
            Element::E4m3 => x.extend(bits.clone().map(of_e4m3)),
            Element::E5m2 => x.extend(bits.clone().map(of_e5m2)),
            Element::S8 => x.extend(bits.clone().map(|b| f64::from(b as i8))),
            _ => {}
        }
        for to in ELEMENTS {
            let kernel = converted(from, to)?.build(Arch(89))?;
            assembles(&kernel, Arch(89));
            let args = vec![
                ("n", Arg::from(x.len() as u32)),
                ("x", input(&x, from)),
                ("y", output(x.len(), to)),
            ];
            let y = found(&ran(&kernel, args)?, to)?;
            for (&x, y) in x.iter().zip(y) {
                // Integers beyond 24 bits are rounded to f32 first.
                let right = match to {
                    _ if from == to => x,
                    _ => rounded(f64::from(x as f32), to),
                };
                let signs = y.is_sign_negative() == right.is_sign_negative();
                let same = y == right && signs || y.is_nan() && right.is_nan();
                assert!(same, "{x} of {from} is {y} of {to}, not {right}");
            }
        }
    }
    Ok(())
}

/// y of rows of 16 words of eight values of 4 bits, in a type; four words a thread.
fn unpacked(from: Packed, to: Element) -> Result<Kernel> {
    let mut k = Kernel::new("unpacked", 32);
    let (rows, words, cols) = (k.size("rows", 1 << 20), k.constant(16), k.constant(128));
    let (x, y) = (
        k.input("x", Element::S32, &[rows, words]),
        k.output("y", to, &[rows, cols]),
    );
    let (i, zero) = (k.tiles(Axis::X, rows, 8)?, k.constant(0));
    let x = fours(&mut k, &x, &[8, 16], &[i, zero], "((4,8),4):((32,1),8)")?;
    let tv = "((4,8),(8,4)):((256,1),(8,64))";
    let y = fours(&mut k, &y, &[8, 128], &[i, zero], tv)?;
    let values = k.load_fragment(&x)?.unpack(&mut k, from, to)?;
    k.store_fragment(&y, &values)?;
    Ok(k)
}

#[test]
fn words_of_four_bits_are_unpacked() -> Result {
    let x: Vec<i32> = (0..10 * 16_u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) as i32)
        .collect();
    let floats = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    for from in [Packed::S4, Packed::U4, Packed::E2m1] {
        let number = |bits: u8| match from {
            Packed::S4 => f64::from(bits as i8) - if bits > 7 { 16.0 } else { 0.0 },
            Packed::U4 => bits.into(),
            Packed::E2m1 if bits > 7 => -floats[usize::from(bits - 8)],
            Packed::E2m1 => floats[usize::from(bits)],
        };
        for to in ELEMENTS {
            let kernel = unpacked(from, to)?.build(Arch(89))?;
            assembles(&kernel, Arch(89));
            let args = vec![
                ("rows", Arg::from(10_u32)),
                ("x", Arg::input(&x)),
                ("y", output(1280, to)),
            ];
            let y = found(&ran(&kernel, args)?, to)?;
            for (i, y) in y.into_iter().enumerate() {
                let bits = (x[i / 8] as u32 >> (4 * (i % 8)) & 15) as u8;
                assert_eq!(y, rounded(number(bits), to), "{bits} of {from} in {to}");
            }
        }
    }
    // Without conversions between floats, the parts of a word go straight to their places.
    let text = unpacked(Packed::S4, Element::Bf16)?.build(ARCH)?.ptx;
    assert!(text.contains("prmt.b32") && text.contains("xor.b32") && !text.contains("cvt.rn"));
    let mut k = unpacked(Packed::S4, Element::F32)?;
    let n = k.size("n", 100);
    let (z, zero, lane) = (k.input("z", Element::F32, &[n]), k.constant(0), k.lane());
    let z = z.tile(&mut k, &[32], &[zero])?;
    let z = z.partition(&mut k, &layout("(32,1):(1,0)"), lane)?;
    let z = k.load_fragment(&z)?;
    let error = z.unpack(&mut k, Packed::S4, Element::F16).unwrap_err();
    assert!(error.to_string().contains("words of s32"), "{error}");
    Ok(())
}

/// Each of x and its negative as two 8-bit floats: their bits, and the two as f32 again.
fn pairs(e4m3: bool) -> Result<Kernel> {
    let mut k = Kernel::new("pairs", 32);
    let n = k.size("n", 1 << 20);
    let x = k.input("x", Element::F32, &[n]);
    let [low, high, y] = ["low", "high", "y"].map(|name| k.output(name, Element::F32, &[n]));
    let (block, lane, one) = (k.tiles(Axis::X, n, 32)?, k.lane(), layout("(32,1):(1,0)"));
    let of = |k: &mut Kernel, v: &View| v.tile(k, &[32], &[block])?.partition(k, &one, lane);
    let x = of(&mut k, &x)?;
    let x: F32 = k.load_fragment(&x)?.thread_values(&mut k)?[0];
    let minus = x.mul(&mut k, -1.0);
    let bytes = if e4m3 {
        x.pair_e4m3(&mut k, minus)
    } else {
        x.pair_e5m2(&mut k, minus)
    };
    let again = if e4m3 {
        bytes.e4m3_to_f32(&mut k)
    } else {
        bytes.e5m2_to_f32(&mut k)
    };
    let bits = bytes.as_f32(&mut k);
    for (to, value) in [(&low, again[0]), (&high, again[1]), (&y, bits)] {
        let to = of(&mut k, to)?;
        let value = k.fragment_of(&to, value)?;
        k.store_fragment(&to, &value)?;
    }
    Ok(k)
}

#[test]
fn pairs_of_eight_bit_floats() -> Result {
    let x = [
        0.0_f32,
        1.0,
        -1.0625,
        448.0,
        464.0,
        1e9,
        f32::INFINITY,
        f32::NEG_INFINITY,
        61440.0,
        0.001,
        1e-9,
        -300.0,
    ];
    for (e4m3, decode, most) in [
        (true, of_e4m3 as fn(u8) -> f64, 0x7e),
        (false, of_e5m2, 0x7b),
    ] {
        let error = pairs(e4m3)?.build(ARCH).map(drop).unwrap_err().to_string();
        let says = ["8-bit floats (e4m3, e5m2)", "sm_89 is the first to have"];
        assert!(says.iter().all(|part| error.contains(part)), "{error}");
        let kernel = pairs(e4m3)?.build(Arch(89))?;
        assembles(&kernel, Arch(89));
        let args = vec![
            ("n", Arg::from(x.len() as u32)),
            ("x", Arg::input(&x)),
            ("low", Arg::output::<f32>(x.len())),
            ("high", Arg::output::<f32>(x.len())),
            ("y", Arg::output::<f32>(x.len())),
        ];
        let outcome = ran(&kernel, args)?;
        let (low, high): (Vec<f32>, Vec<f32>) = (outcome.get("low")?, outcome.get("high")?);
        let y: Vec<f32> = outcome.get("y")?;
        for (i, &x) in x.iter().enumerate() {
            let right = nearest(x.into(), decode, most);
            assert_eq!([low[i], high[i]].map(f64::from), [right, -right]);
            // This one in the lowest byte, the other in the next.
            let [first, second, third, fourth] = y[i].to_bits().to_le_bytes();
            assert_eq!([first, second].map(decode), [right, -right]);
            assert_eq!([third, fourth], [0, 0]);
        }
    }
    Ok(())
}

#[test]
fn what_is_not_converted_says_what_is() -> Result {
    let mut k = Kernel::new("k", 32);
    let n = k.size("n", 1 << 20);
    let (block, lane) = (k.tiles(Axis::X, n, 64)?, k.lane());
    for (element, to, message) in [
        (Element::F64, Element::E4m3, "f64 stays f64"),
        (Element::S8, Element::F64, "f64 stays f64"),
        (
            Element::F32,
            Element::E4m3,
            "a word has 4 elements of e4m3, and a thread has 2",
        ),
        (
            Element::F32,
            Element::S8,
            "a word has 4 elements of s8, and a thread has 2",
        ),
    ] {
        let x = k.input(&format!("{element}_{to}"), element, &[n]);
        let each = if element == Element::S8 { 4 } else { 2 };
        let tv = format!("(32,{each}):({each},1)");
        let x = x.tile(&mut k, &[32 * each], &[block])?;
        let x = x.partition(&mut k, &layout(&tv), lane)?;
        let error = k.load_fragment(&x)?.convert(&mut k, to).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    Ok(())
}

/// Values that a map hands through are those of the fragment from then on, whatever they come from is set to later.
fn handed_through() -> Result<Kernel> {
    let mut k = Kernel::new("handed_through", 32);
    let n = k.size("n", 1 << 20);
    let add: F32 = k.argument("add");
    let [x, y, z] = ["x", "y", "z"].map(|name| match name {
        "x" => k.input(name, Element::F32, &[n]),
        _ => k.output(name, Element::F32, &[n]),
    });
    let block = k.tiles(Axis::X, n, 128)?;
    let of = |k: &mut Kernel, v: &View| fours(k, v, &[128], &[block], "(32,4):(4,1)");
    let (x, y, z) = (of(&mut k, &x)?, of(&mut k, &y)?, of(&mut k, &z)?);
    let (x, more) = (k.load_fragment(&x)?, k.fragment_of(&y, add)?);
    // The same value for each element, then a different one.
    let same = x.map(&mut k, |_, _| add)?;
    same.update_with_both(&mut k, [&x, &more], |k, _, x, add| x.add(k, add))?;
    k.store_fragment(&y, &same)?;
    let second = same.zip3(&mut k, [&more, &x], |_, _, _, x| x)?;
    x.update(&mut k, |k, x| x.mul(k, 2.0))?;
    k.store_fragment(&z, &second)?;
    Ok(k)
}

#[test]
fn values_that_are_handed_through_are_set_apart() -> Result {
    let kernel = handed_through()?.build(ARCH)?;
    let x = numbers(200);
    let args = vec![
        ("n", Arg::from(200_u32)),
        ("add", Arg::from(3.0_f32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(200)),
        ("z", Arg::output::<f32>(200)),
    ];
    let outcome = ran(&kernel, args)?;
    let (y, z): (Vec<f32>, Vec<f32>) = (outcome.get("y")?, outcome.get("z")?);
    let sums: Vec<f32> = x.iter().map(|x| x + 3.0).collect();
    assert_eq!((y, z), (sums, x));
    Ok(())
}

/// A kernel with another text.
struct Edited<'k> {
    kernel: &'k Proven,
    text: String,
}

impl Runnable for Edited<'_> {
    fn ptx(&self) -> &str {
        &self.text
    }

    fn entry(&self) -> &str {
        Runnable::entry(self.kernel)
    }

    fn params(&self) -> Vec<Param> {
        Runnable::params(self.kernel)
    }

    fn launches(&self, scalars: &Scalars<'_>) -> std::result::Result<Launches, RunError> {
        self.kernel.launches(scalars)
    }
}

/// What an edit makes of the operands of an instruction, and of its name.
type Slip = fn(&str, &str) -> String;

/// The operands with the last two exchanged.
fn exchanged(name: &str, operands: &str) -> String {
    let mut all: Vec<&str> = operands.trim_end_matches(';').split(", ").collect();
    let n = all.len();
    all.swap(n - 2, n - 1);
    format!("{name} {};", all.join(", "))
}

/// The values of data are not a matter of the prover: a slip in a conversion is a clean kernel whose numbers show it.
#[test]
fn slips_of_conversions_change_numbers() -> Result {
    let x: Vec<f64> = numbers(200).iter().map(|&x| f64::from(x / 7.0)).collect();
    let words: Vec<i32> = (0..160_u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9) as i32)
        .collect();
    let float = |to| converted(Element::F32, to);
    let kernels = [
        float(Element::F16)?,
        float(Element::Bf16)?,
        float(Element::E4m3)?,
        float(Element::S8)?,
        unpacked(Packed::S4, Element::Bf16)?,
    ];
    let slips: [(usize, &str, &str, Slip); 7] = [
        (0, "another rounding", "cvt.rn.f16x2.f32", |_, o| {
            format!("cvt.rz.f16x2.f32 {o}")
        }),
        (0, "another type", "cvt.rn.f16x2.f32", |_, o| {
            format!("cvt.rn.bf16x2.f32 {o}")
        }),
        (1, "the order of a pair", "cvt.rn.bf16x2.f32", exchanged),
        (
            2,
            "another type of 8 bits",
            "cvt.rn.satfinite.e4m3x2.f32",
            |_, o| format!("cvt.rn.satfinite.e5m2x2.f32 {o}"),
        ),
        (
            2,
            "the order of a pair of bytes",
            "cvt.rn.satfinite.e4m3x2.f32",
            exchanged,
        ),
        (3, "an integer towards 0", "cvt.rni.sat.s8.f32", |_, o| {
            format!("cvt.rzi.sat.s8.f32 {o}")
        }),
        (4, "another byte of a word", "prmt.b32", |name, o| {
            let (operands, selector) = o.split_at(o.len() - 2);
            let other = if selector.starts_with('0') { '1' } else { '0' };
            format!("{name} {operands}{other};")
        }),
    ];
    let kernels: Vec<Proven> = kernels
        .into_iter()
        .map(|k| k.build(Arch(89)))
        .collect::<std::result::Result<_, _>>()?;
    for (which, what, name, slip) in slips {
        let kernel = &kernels[which];
        let to = [
            Element::F16,
            Element::Bf16,
            Element::E4m3,
            Element::S8,
            Element::Bf16,
        ][which];
        let bytes = |text: String| -> Result<Vec<u8>> {
            let args = if which == 4 {
                vec![
                    ("rows", Arg::from(10_u32)),
                    ("x", Arg::input(&words)),
                    ("y", output(1280, to)),
                ]
            } else {
                vec![
                    ("n", Arg::from(x.len() as u32)),
                    ("x", input(&x, Element::F32)),
                    ("y", output(x.len(), to)),
                ]
            };
            let outcome = run(&Edited { kernel, text }, On::Emulator, args)?;
            outcome.assert_clean();
            Ok(outcome.bytes("y")?.to_vec())
        };
        let right = kernel.ptx.clone();
        let line = right.lines().find(|line| line.contains(name)).ok_or(what)?;
        let (before, rest) = line.split_once(name).ok_or(what)?;
        let edited = format!("{before}{}", slip(name, rest.trim()));
        let text = right.replacen(line, &edited, 1);
        assert_ne!(bytes(right)?, bytes(text)?, "{what}");
    }
    Ok(())
}
