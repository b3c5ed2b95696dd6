//! Matrix instructions: `ldmatrix` against the golden table, `stmatrix` as its inverse, `mma` of every shape against plain matrix
//! products, with the fragments gathered by formulas written here for each shape.

#![allow(clippy::format_push_string, clippy::float_cmp)] // kernels are text put together, and results are exact

mod common;

use common::{Random, assembles, kernel, with_out};
use half::{bf16, f16};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

/// Runs `k` of `text` on one warp with words in and words out.
fn warp(text: &str, input: &[u32], output_words: usize) -> Vec<u32> {
    let module = Module::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let a = memory.alloc(4 * input.len() as u64, 256).expect("memory");
    let d = memory.alloc(4 * output_words as u64, 256).expect("memory");
    memory
        .write(
            a,
            &input
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect::<Vec<_>>(),
        )
        .expect("a write");
    let launch = Launch {
        args: vec![Arg::Ptr(a), Arg::Ptr(d)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    assert!(report.is_clean(), "{}", report.findings[0]);
    let data = memory.read(d, 4 * output_words).expect("a read");
    data.chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// A 16×16 matrix of halves numbered 0 to 255 in shared memory, then `what`, with the row address of each lane in `%r3`.
fn golden_kernel(what: &str) -> String {
    with_out(&format!(
        ".shared .align 16 .b8 s[512]; mov.u32 %r1, s;
    mul.lo.u32 %r4, %tid, 8; mul.lo.u32 %r2, %tid, 16; add.u32 %r2, %r2, %r1; mov.u32 %r5, 0;
L:  add.u32 %r6, %r4, %r5; cvt.u16.u32 %h1, %r6; st.shared.u16 [%r2], %h1; add.u32 %r2, %r2, 2; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 8; @%p1 bra L;
    bar.warp.sync 0xffffffff;
    and.b32 %r2, %tid, 15; shr.u32 %r3, %tid, 4; shl.b32 %r3, %r3, 4; mad.lo.u32 %r3, %r2, 32, %r3; add.u32 %r3, %r3, %r1;
    mad.wide.u32 %rd1, %tid, 16, %out;
    {what}
    st.global.v4.b32 [%rd1], {{%r10, %r11, %r12, %r13}};"
    ))
}

#[test]
fn ldmatrix_gives_the_golden_table() {
    let text = include_str!("../../tests/golden/ldmatrix_x4_16x16_f16.csv");
    let mut rows = 0;
    for suffix in ["", ".trans"] {
        let what = format!(
            "ldmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r3];"
        );
        let (data, report) = common::launch_with(
            &golden_kernel(&what),
            [1; 3],
            [32, 1, 1],
            128,
            &Options::default(),
        );
        assert!(report.is_clean(), "{}", report.findings[0]);
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[0] != format!("ldmatrix.x4{suffix}") {
                continue;
            }
            let lane: usize = fields[1].parse().expect("a lane");
            for r in 0..4 {
                let half = |k: usize| fields[2 + 2 * r + k].parse::<u32>().expect("a number");
                assert_eq!(data[4 * lane + r], half(0) | half(1) << 16, "{line}");
            }
            rows += 1;
        }
    }
    assert_eq!(rows, 64);
}

#[test]
fn smaller_loads_take_the_first_matrices() {
    let all = "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%r10, %r11, %r12, %r13}, [%r3];";
    let two = "mov.u32 %r12, 0; mov.u32 %r13, 0; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r3];";
    let one = "mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0; cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2; ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd2];";
    let [all, two, one] = [all, two, one].map(|what| {
        common::launch_with(
            &golden_kernel(what),
            [1; 3],
            [32, 1, 1],
            128,
            &Options::default(),
        )
    });
    for lane in 0..32 {
        assert_eq!(two.0[4 * lane..][..2], all.0[4 * lane..][..2]);
        assert_eq!(one.0[4 * lane], all.0[4 * lane]);
    }
    assert!(one.1.is_clean() && two.1.is_clean());
}

#[test]
fn stores_undo_loads_and_transposition_is_its_own_inverse() {
    for trans in ["", ".trans"] {
        for n in [1usize, 2, 4] {
            let regs = ["%r20", "%r21", "%r22", "%r23"][..n].join(", ");
            // Load, store elsewhere with the same flag, load plainly: as loading plainly at once.
            let what = format!(
                ".shared .align 16 .b8 t[512]; mov.u32 %r7, t; mad.lo.u32 %r8, %tid, 16, %r7; mov.u32 %r9, 0;
    st.shared.v4.b32 [%r8], {{%r9, %r9, %r9, %r9}}; bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {{{regs}}}, [%r3];
    sub.u32 %r8, %r3, %r1; add.u32 %r8, %r8, %r7;
    stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [%r8], {{{regs}}};
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r3];
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r14, %r15, %r16, %r17}}, [%r8];
    sub.u32 %r10, %r10, %r14; sub.u32 %r11, %r11, %r15; sub.u32 %r12, %r12, %r16; sub.u32 %r13, %r13, %r17;"
            );
            let (data, report) = common::launch_with(
                &golden_kernel(&what),
                [1; 3],
                [32, 1, 1],
                128,
                &Options::default(),
            );
            assert!(report.is_clean(), "{}", report.findings[0]);
            for lane in 0..32 {
                assert_eq!(
                    data[4 * lane..][..n],
                    [0; 4][..n],
                    "x{n}{trans} lane {lane}"
                );
            }
        }
    }
    let what = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3]; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r11}, [%r3];
    movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r10; movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r12;";
    let (data, _) = common::launch_with(
        &golden_kernel(what),
        [1; 3],
        [32, 1, 1],
        128,
        &Options::default(),
    );
    for r in data.chunks_exact(4) {
        assert_eq!((r[1], r[0]), (r[2], r[3]));
    }
}

/// Where element i of lane (g, t) is, by the ISA's figures: (row, column) for A and C, (k, n) for B.
type Place = fn(usize, usize, usize) -> (usize, usize);

struct Shape {
    name: &'static str,
    m: usize,
    k: usize,
    types: [&'static str; 4],
    a: Place,
    b: Place,
}

fn c_place(m: usize) -> Place {
    if m == 16 {
        |g, t, i| (if i < 2 { g } else { g + 8 }, 2 * t + (i & 1))
    } else {
        |g, t, i| (g, 2 * t + i)
    }
}

fn shapes() -> Vec<Shape> {
    let a16k16: Place = |g, t, i| {
        (
            if matches!(i, 0 | 1 | 4 | 5) { g } else { g + 8 },
            2 * t + (i & 1) + if i >= 4 { 8 } else { 0 },
        )
    };
    let b16k16: Place = |g, t, i| (2 * t + (i & 1) + if i >= 2 { 8 } else { 0 }, g);
    let a16k8: Place = |g, t, i| (if i < 2 { g } else { g + 8 }, 2 * t + (i & 1));
    let b16k8: Place = |g, t, i| (2 * t + i, g);
    let a8k32: Place = |g, t, i| {
        (
            if i < 4 || (8..12).contains(&i) {
                g
            } else {
                g + 8
            },
            4 * t + (i & 3) + if i >= 8 { 16 } else { 0 },
        )
    };
    let b8k32: Place = |g, t, i| (4 * t + (i & 3) + if i >= 4 { 16 } else { 0 }, g);
    let a8k16: Place = |g, t, i| (if i < 4 { g } else { g + 8 }, 4 * t + (i & 3));
    let b8k16: Place = |g, t, i| (4 * t + i, g);
    let a32k8: Place = |g, t, i| {
        (
            if i % 2 == 0 { g } else { g + 8 },
            if i < 2 { t } else { t + 4 },
        )
    };
    let b32k8: Place = |g, t, i| (if i == 0 { t } else { t + 4 }, g);
    let a32k4: Place = |g, t, i| (if i == 0 { g } else { g + 8 }, t);
    let b32k4: Place = |g, t, _| (t, g);
    // f64 m16n8k16: even i: row g, column 2i + t; odd: row g + 8, column 2i - 2 + t.
    let a64k16: Place = |g, t, i| {
        if i % 2 == 0 {
            (g, 2 * i + t)
        } else {
            (g + 8, 2 * i - 2 + t)
        }
    };
    let b64k16: Place = |g, t, i| (t + 4 * i, g);
    let mut all = Vec::new();
    for (types, a, b) in [
        (["f32", "f16", "f16", "f32"], a16k16, b16k16),
        (["f16", "f16", "f16", "f16"], a16k16, b16k16),
    ] {
        all.push(Shape {
            name: "m16n8k16",
            m: 16,
            k: 16,
            types,
            a,
            b,
        });
    }
    let half_types = [
        ["f32", "f16", "f16", "f32"],
        ["f16", "f16", "f16", "f16"],
        ["f32", "bf16", "bf16", "f32"],
    ];
    for types in half_types {
        all.push(Shape {
            name: "m16n8k8",
            m: 16,
            k: 8,
            types,
            a: a16k8,
            b: b16k8,
        });
    }
    all.push(Shape {
        name: "m16n8k16",
        m: 16,
        k: 16,
        types: ["f32", "bf16", "bf16", "f32"],
        a: a16k16,
        b: b16k16,
    });
    all.push(Shape {
        name: "m16n8k8",
        m: 16,
        k: 8,
        types: ["f32", "tf32", "tf32", "f32"],
        a: a32k8,
        b: b32k8,
    });
    all.push(Shape {
        name: "m16n8k4",
        m: 16,
        k: 4,
        types: ["f32", "tf32", "tf32", "f32"],
        a: a32k4,
        b: b32k4,
    });
    for (x, y) in [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")] {
        all.push(Shape {
            name: "m16n8k32",
            m: 16,
            k: 32,
            types: ["s32", x, y, "s32"],
            a: a8k32,
            b: b8k32,
        });
        all.push(Shape {
            name: "m16n8k16",
            m: 16,
            k: 16,
            types: ["s32", x, y, "s32"],
            a: a8k16,
            b: b8k16,
        });
        all.push(Shape {
            name: "m8n8k16",
            m: 8,
            k: 16,
            types: ["s32", x, y, "s32"],
            a: |g, t, i| (g, 4 * t + i),
            b: b8k16,
        });
    }
    for (x, y) in [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2")] {
        all.push(Shape {
            name: "m16n8k32",
            m: 16,
            k: 32,
            types: ["f32", x, y, "f32"],
            a: a8k32,
            b: b8k32,
        });
        all.push(Shape {
            name: "m16n8k16",
            m: 16,
            k: 16,
            types: ["f16", x, y, "f16"],
            a: a8k16,
            b: b8k16,
        });
    }
    all.push(Shape {
        name: "m8n8k4",
        m: 8,
        k: 4,
        types: ["f64"; 4],
        a: |g, t, _| (g, t),
        b: b32k4,
    });
    all.push(Shape {
        name: "m16n8k4",
        m: 16,
        k: 4,
        types: ["f64"; 4],
        a: a32k4,
        b: b32k4,
    });
    all.push(Shape {
        name: "m16n8k8",
        m: 16,
        k: 8,
        types: ["f64"; 4],
        a: a32k8,
        b: b32k8,
    });
    all.push(Shape {
        name: "m16n8k16",
        m: 16,
        k: 16,
        types: ["f64"; 4],
        a: a64k16,
        b: b64k16,
    });
    all
}

fn bits(ty: &str) -> usize {
    match ty {
        "f64" => 64,
        "f16" | "bf16" => 16,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        _ => 32,
    }
}

/// A small integer or quarter in the encoding of `ty`. All sums of products of these are exact in every type used.
fn encode(ty: &str, v: f64) -> u64 {
    match ty {
        "f64" => v.to_bits(),
        "f32" | "tf32" => u64::from((v as f32).to_bits()),
        "f16" => u64::from(f16::from_f64(v).to_bits()),
        "bf16" => u64::from(bf16::from_f64(v).to_bits()),
        "e5m2" => u64::from(f16::from_f64(v).to_bits() >> 8),
        "e4m3" => {
            if v == 0.0 {
                return 0;
            }
            let e = v.abs().log2().floor();
            let fraction = (v.abs() / e.exp2() - 1.0) * 8.0;
            (u64::from(v < 0.0) << 7) | (((e + 7.0) as u64) << 3) | fraction as u64
        }
        _ => v as i64 as u64,
    }
}

fn decode(ty: &str, x: u64) -> f64 {
    match ty {
        "f64" => f64::from_bits(x),
        "f32" => f64::from(f32::from_bits(x as u32)),
        "f16" => f16::from_bits(x as u16).to_f64(),
        _ => f64::from(x as u32 as i32),
    }
}

/// Packs the elements of each lane into words: lane-major.
fn pack(ty: &str, per_lane: usize, value: impl Fn(usize, usize) -> f64) -> Vec<Vec<u32>> {
    (0..32)
        .map(|lane| {
            let b = bits(ty);
            let mut words = vec![0u32; per_lane * b / 32];
            for i in 0..per_lane {
                let x = encode(ty, value(lane, i));
                if b == 64 {
                    words[2 * i] = x as u32;
                    words[2 * i + 1] = (x >> 32) as u32;
                } else {
                    let mask = if b == 32 { u32::MAX } else { (1 << b) - 1 };
                    words[i * b / 32] |= (x as u32 & mask) << (i * b % 32);
                }
            }
            words
        })
        .collect()
}

/// A kernel that loads `na + nb + nc` registers a lane, multiplies, and stores `nd`.
fn mma_kernel(s: &Shape, [nd, na, nb, nc]: [usize; 4], modifier: &str) -> String {
    let wide = s.types[0] == "f64";
    let (ty, bytes) = if wide { ("b64", 8) } else { ("b32", 4) };
    let list = |p: &str, n: usize| {
        (0..n)
            .map(|i| format!("%{p}{i}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let total = na + nb + nc;
    let mut body = format!(
        ".reg .{ty} %a<8>, %b<8>, %c<8>, %d<8>; .reg .b64 %in, %out; .reg .b32 %t;
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
    mad.wide.u32 %in, %t, {}, %in; mad.wide.u32 %out, %t, {}, %out;\n",
        total * bytes,
        nd * bytes
    );
    let mut at = 0;
    for (p, n) in [("a", na), ("b", nb), ("c", nc)] {
        for i in 0..n {
            body += &format!("    ld.global.{ty} %{p}{i}, [%in+{}];\n", at * bytes);
            at += 1;
        }
    }
    let [d, a, b, c] = s.types;
    body += &format!(
        "    mma.sync.aligned.{}.row.col{modifier}.{d}.{a}.{b}.{c} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n",
        s.name,
        list("d", nd),
        list("a", na),
        list("b", nb),
        list("c", nc)
    );
    for i in 0..nd {
        body += &format!("    st.global.{ty} [%out+{}], %d{i};\n", i * bytes);
    }
    kernel(".param .u64 in, .param .u64 out", &body)
}

#[test]
fn every_shape_multiplies_matrices() {
    let mut random = Random(51);
    for s in shapes() {
        let unsigned = |ty: &str| ty.starts_with('u');
        let mut number = |ty: &str| {
            let v = random.below(15) as f64 - 7.0;
            if unsigned(ty) { v.abs() * 30.0 } else { v }
        };
        let a: Vec<f64> = (0..s.m * s.k).map(|_| number(s.types[1])).collect();
        let b: Vec<f64> = (0..s.k * 8).map(|_| number(s.types[2])).collect();
        let c: Vec<f64> = (0..s.m * 8).map(|_| number(s.types[3])).collect();
        let place = |p: Place, lane: usize, i: usize| p(lane / 4, lane % 4, i);
        let (ea, eb, ec) = (s.m * s.k / 32, s.k * 8 / 32, s.m * 8 / 32);
        let fa = pack(s.types[1], ea, |l, i| {
            let (r, col) = place(s.a, l, i);
            a[r * s.k + col]
        });
        let fb = pack(s.types[2], eb, |l, i| {
            let (k, n) = place(s.b, l, i);
            b[k * 8 + n]
        });
        let fc = pack(s.types[3], ec, |l, i| {
            let (r, col) = place(c_place(s.m), l, i);
            c[r * 8 + col]
        });
        let unit = if s.types[0] == "f64" { 2 } else { 1 };
        let counts = [
            ec * bits(s.types[0]) / 32 / unit,
            fa[0].len() / unit,
            fb[0].len() / unit,
            fc[0].len() / unit,
        ];
        let input: Vec<u32> = (0..32)
            .flat_map(|l| [&fa[l][..], &fb[l], &fc[l]].concat())
            .collect();
        let words = counts[0] * unit;
        let out = warp(&mma_kernel(&s, counts, ""), &input, 32 * words);
        for lane in 0..32 {
            for i in 0..ec {
                let (r, n) = place(c_place(s.m), lane, i);
                let expected =
                    (0..s.k).fold(c[r * 8 + n], |sum, k| sum + a[r * s.k + k] * b[k * 8 + n]);
                let w = &out[lane * words..];
                let x = match bits(s.types[0]) {
                    64 => u64::from(w[2 * i]) | u64::from(w[2 * i + 1]) << 32,
                    16 => u64::from(w[i / 2] >> (16 * (i % 2)) & 0xffff),
                    _ => u64::from(w[i]),
                };
                assert_eq!(
                    decode(s.types[0], x),
                    expected,
                    "{} {:?} ({r}, {n})",
                    s.name,
                    s.types
                );
            }
        }
    }
}

#[test]
fn integers_wrap_or_saturate() {
    let s = shapes()
        .into_iter()
        .find(|s| s.name == "m16n8k32" && s.types[1] == "s8")
        .expect("a shape");
    // 127 · 127 · 32 + i32::MAX
    let input: Vec<u32> = (0..32)
        .flat_map(|_| {
            [
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7f7f_7f7f,
                0x7fff_ffff,
                0x7fff_ffff,
                0,
                5,
            ]
        })
        .collect();
    let plain = warp(&mma_kernel(&s, [4, 4, 2, 4], ""), &input, 128);
    let clamped = warp(&mma_kernel(&s, [4, 4, 2, 4], ".satfinite"), &input, 128);
    let sum = 127 * 127 * 32;
    assert_eq!(
        plain[..4],
        [
            0x7fff_ffffu32.wrapping_add(sum),
            0x7fff_ffffu32.wrapping_add(sum),
            sum,
            sum + 5
        ]
    );
    assert_eq!(clamped[..4], [0x7fff_ffff, 0x7fff_ffff, sum, sum + 5]);
}

#[test]
fn tf32_ignores_the_low_bits_and_nan_is_canonical() {
    let s = shapes()
        .into_iter()
        .find(|s| s.types[1] == "tf32" && s.k == 8)
        .expect("a shape");
    let one = 1.0f32.to_bits() | 0x1fff;
    let input: Vec<u32> = (0..32u32)
        .flat_map(|l| {
            [
                one,
                one,
                one,
                one,
                one,
                if l == 0 { 0x7fc0_0055 } else { one },
                0,
                0,
                0,
                0,
            ]
        })
        .collect();
    let out = warp(&mma_kernel(&s, [4, 4, 2, 4], ""), &input, 128);
    // Lane 0 held B(4, 0): column 0 is NaN, the others 8 exactly.
    assert_eq!(out[0], 0x7fff_ffff);
    assert_eq!(out[1], 8.0f32.to_bits());
}

/// Factors of 4 bits and of one: the fragments of the ISA's formulas, against sums over the definition.
#[test]
fn narrow_integers_multiply() {
    let forms = [
        ("m8n8k32", 8, 32, ["s4", "u4"], ""),
        ("m16n8k32", 16, 32, ["u4", "s4"], ""),
        ("m16n8k64", 16, 64, ["s4", "s4"], ""),
        ("m8n8k128", 8, 128, ["b1", "b1"], ".and.popc"),
        ("m16n8k128", 16, 128, ["b1", "b1"], ".xor.popc"),
        ("m16n8k256", 16, 256, ["b1", "b1"], ".and.popc"),
    ];
    let mut random = Random(77);
    for (shape, m, k, [a, b], modifier) in forms {
        let width = if a == "b1" { 1 } else { 4 };
        let per = 32 / width;
        let (na, nb, nc) = (m * k / 32 / per, 8 * k / 32 / per, m / 4);
        let list = |first: usize, n: usize| {
            let all: Vec<String> = (first..first + n).map(|i| format!("%r{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let inputs = na + nb + nc;
        let mut body = String::from(
            ".reg .b32 %r<40>, %t; .reg .b64 %in, %out;\nld.param.u64 %in, [in]; ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %out, %t, 4, %out;\n",
        );
        for i in 0..inputs {
            body += &format!("ld.global.b32 %r{i}, [%in+{}];\n", 128 * i);
        }
        body += &format!(
            "mma.sync.aligned.{shape}.row.col.s32.{a}.{b}.s32{modifier} {}, {}, {}, {};\n",
            list(inputs, nc),
            list(0, na),
            list(na, nb),
            list(na + nb, nc)
        );
        for i in 0..nc {
            body += &format!("st.global.b32 [%out+{}], %r{};\n", 128 * i, inputs + i);
        }
        let text = kernel(".param .u64 in, .param .u64 out", &body);
        assembles("narrow", &text);
        let input: Vec<u32> = (0..32 * inputs).map(|_| random.bits() as u32).collect();
        let output = warp(&text, &input, 32 * nc);
        // Element i of the registers from `first` on, of a lane.
        let get = |ty: &str, first: usize, lane: usize, i: usize| {
            let word = input[32 * (first + i / per) + lane] >> (width * (i % per));
            match ty {
                "s4" => i64::from((word << 28) as i32 >> 28),
                "u4" => i64::from(word & 15),
                _ => i64::from(word & 1),
            }
        };
        for (row, column) in (0..m).flat_map(|r| (0..8).map(move |c| (r, c))) {
            let mut sum = 0;
            for l in 0..k {
                // Runs of `per` elements in a register, four lanes to a row.
                let (q, run, i) = (l / per % 4, l / (4 * per), l % per);
                let register = run * (m / 8) + row / 8;
                let x = get(a, 0, 4 * (row % 8) + q, register * per + i);
                let y = get(b, na, 4 * column + q, run * per + i);
                sum += if modifier == ".xor.popc" {
                    x ^ y
                } else {
                    x * y
                };
            }
            let (lane, i) = (4 * (row % 8) + column / 2, 2 * (row / 8) + column % 2);
            let c = input[32 * (na + nb + i) + lane];
            let expected = (sum as u32).wrapping_add(c);
            assert_eq!(
                output[32 * i + lane],
                expected,
                "{shape}.{a}.{b} {row} {column}"
            );
        }
    }
}
