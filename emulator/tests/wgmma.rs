//! `wgmma` of every type: products of matrices laid out by hand, compared with sums over the definition.
//!
//! The reference knows a matrix in shared memory as the picture in the ISA: 8 rows of 16-byte chunks that the swizzle permutes. Values are small integers,
//! so that every sum is exact.

// PTX is put together piece by piece; indices are those of the formulas.
#![allow(clippy::format_push_string, clippy::needless_range_loop)]

mod common;

use common::sparse::random_pattern;
use common::{Assembly, Random, kernel};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// An element type: its name, bits, and the bits of a small integer.
#[derive(Clone, Copy, PartialEq)]
struct Type {
    name: &'static str,
    bits: u32,
}

const fn ty(name: &'static str, bits: u32) -> Type {
    Type { name, bits }
}

impl Type {
    /// A random small value and its bits.
    fn value(self, random: &mut Random) -> (i64, u32) {
        let v = match self.name {
            "u8" => random.below(9) as i64,
            "b1" => random.below(2) as i64,
            _ => random.below(9) as i64 - 4,
        };
        let x = v as f32;
        let half = |x: f32| u32::from(half::f16::from_f32(x).to_bits());
        // e5m2 is the upper half of f16; e4m3 of -4 to 4: sign, exponent with bias 7, three bits.
        let bits = match self.name {
            "f16" => half(x),
            "bf16" => x.to_bits() >> 16,
            "tf32" => x.to_bits(),
            "e5m2" => half(x) >> 8,
            "e4m3" => {
                let magnitude = match v.abs() {
                    0 => 0,
                    1 => 7 << 3,
                    2 => 8 << 3,
                    3 => 8 << 3 | 4,
                    _ => 9 << 3,
                };
                magnitude | if v < 0 { 0x80 } else { 0 }
            }
            _ => v as u32 & (u32::MAX >> (32 - self.bits)),
        };
        (v, bits)
    }
}

/// How a matrix lies in shared memory.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes of the swizzle: 0, 32, 64 or 128.
    swizzle: u32,
    /// The outer dimension is contiguous.
    transposed: bool,
    start: u32,
}

impl Place {
    fn width(self) -> u32 {
        (self.swizzle / 16).max(1)
    }

    /// Leading and stride offsets for a matrix of `outer` rows: atoms one behind the other.
    fn offsets(self, outer: u32) -> (u32, u32) {
        let atom = 128 * self.width();
        match (self.transposed, self.swizzle) {
            // K-major: 8 rows to an atom; the second column of chunks behind all atoms.
            (false, _) if self.swizzle > 0 => (16, atom),
            // MN-major: atoms of 8 deep, at most four of them; the next along the outer dimension behind those.
            (_, 0) => (128 * (outer / 8), 128),
            _ => (4 * atom, atom),
        }
    }

    fn descriptor(self, outer: u32) -> u64 {
        let (leading, stride) = self.offsets(outer);
        let mode = match self.swizzle {
            128 => 1u64,
            64 => 2,
            32 => 3,
            _ => 0,
        };
        u64::from(leading / 16) << 16 | u64::from(stride / 16) << 32 | mode << 62
    }

    /// Bit of shared memory where element (outer `i`, depth `k`) is.
    fn bit(self, i: u32, k: u32, bits: u32, outer: u32) -> u32 {
        let per = 128 / bits;
        let (leading, stride) = self.offsets(outer);
        let (chunk, line, within) = if self.transposed {
            (i / per, k, i % per)
        } else {
            (k / per, i, k % per)
        };
        let w = self.width();
        let byte = if self.swizzle == 0 {
            let (along, down) = if self.transposed {
                (stride, leading)
            } else {
                (leading, stride)
            };
            line % 8 * 16 + line / 8 * down + chunk * along
        } else {
            let atoms = if self.transposed {
                chunk / w * leading
            } else {
                0
            };
            // Rows of 128 bytes hold 128 / swizzle rows of the atom; chunks are exchanged by the number of the row of 128 bytes.
            let linear = line % 8 * 16 * w + line / 8 * stride + atoms + chunk % w * 16;
            let at = self.start + linear;
            let exchanged = (at / 16 % 8) ^ (at / 128 % w);
            at / 128 * 128 + exchanged * 16 - self.start
        };
        (self.start + byte) * 8 + within * bits
    }
}

struct Case {
    d: &'static str,
    a: Type,
    b: Type,
    k: u32,
    n: u32,
    a_place: Option<Place>,
    b_place: Place,
    negate: [bool; 2],
    satfinite: bool,
    scale: bool,
    /// The selector of a sparse A.
    sparse: Option<u32>,
}

impl Case {
    /// Columns of A as it is stored.
    fn a_depth(&self) -> u32 {
        self.k / if self.sparse.is_some() { 2 } else { 1 }
    }

    fn instruction(&self) -> String {
        let Self { d, a, b, k, n, .. } = self;
        let list = |name: &str, n: u32| {
            let all: Vec<_> = (0..n).map(|i| format!("%{name}{i}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let d_regs = n / if *d == "f16" { 4 } else { 2 };
        let op = if a.name == "b1" { ".and.popc" } else { "" };
        let sat = if self.satfinite { ".satfinite" } else { "" };
        let sp = if self.sparse.is_some() { ".sp" } else { "" };
        let meta = self.sparse.map_or(String::new(), |s| format!(", %e, {s}"));
        let left = match self.a_place {
            Some(_) => "%da".to_owned(),
            None => list("a", 4),
        };
        let mut text = format!(
            "wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}{sat}.{d}.{}.{}{op} {}, {left}, %db{meta}, %scale",
            a.name,
            b.name,
            list("d", d_regs)
        );
        if *d != "s32" {
            for x in self.negate {
                text += if x { ", -1" } else { ", 1" };
            }
        }
        if a.bits == 16 {
            if let Some(p) = self.a_place {
                text += &format!(", {}", u8::from(p.transposed));
            }
            text += &format!(", {}", u8::from(self.b_place.transposed));
        }
        text + ";"
    }

    /// The kernel: shared memory from `image`, fragments of A from `fragments`, accumulators from and to `d`.
    fn text(&self) -> String {
        let n = self.n / if self.d == "f16" { 4 } else { 2 };
        let (mut load, mut store) = (String::new(), String::new());
        for i in 0..n {
            load += &format!("    ld.global.b32 %d{i}, [%mine+{}];\n", 512 * i);
            store += &format!("    st.global.b32 [%mine+{}], %d{i};\n", 512 * i);
        }
        let a = self.a_place.map_or(0, |p| p.descriptor(64));
        let (at, bt) = (self.a_place.map_or(0, |p| p.start), self.b_place.start);
        let b = self.b_place.descriptor(self.n);
        let d_ty = match self.d {
            "f16" => "b32",
            other => other,
        };
        kernel(
            ".param .u64 image, .param .u64 fragments, .param .u64 d",
            &format!(
                ".reg .{d_ty} %d<{n}>; .reg .b32 %a<4>, %e, %r<8>, %t; .reg .b64 %da, %db, %rd<8>, %mine; .reg .pred %p<3>, %scale;
    .shared .align 1024 .b8 data[49152];
    ld.param.u64 %rd0, [image];
    ld.param.u64 %rd1, [fragments];
    ld.param.u64 %mine, [d];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %mine, %t, 4, %mine;
    mad.wide.u32 %rd2, %t, 4, %rd1;
    ld.global.b32 %e, [%rd2+2048];
    mad.wide.u32 %rd1, %t, 16, %rd1;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%rd1];
    mov.u32 %r0, data;
    shl.b32 %r1, %t, 4;
FILL:
    cvt.u64.u32 %rd2, %r1;
    add.u64 %rd2, %rd2, %rd0;
    ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%rd2];
    add.u32 %r6, %r0, %r1;
    st.shared.v4.b32 [%r6], {{%r2, %r3, %r4, %r5}};
    add.u32 %r1, %r1, 2048;
    setp.lt.u32 %p0, %r1, 49152;
    @%p0 bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    cvt.u64.u32 %rd3, %r0;
    add.u64 %rd4, %rd3, {at};
    and.b64 %rd4, %rd4, 0x3ffff;
    shr.u64 %rd4, %rd4, 4;
    or.b64 %da, %rd4, {a:#x};
    add.u64 %rd4, %rd3, {bt};
    and.b64 %rd4, %rd4, 0x3ffff;
    shr.u64 %rd4, %rd4, 4;
    or.b64 %db, %rd4, {b:#x};
    setp.eq.u32 %scale, {scale}, 1;
{load}
    wgmma.fence.sync.aligned;
    {mma}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{store}",
                scale = u8::from(self.scale),
                mma = self.instruction()
            ),
        )
    }

    /// Runs it on random values and compares all of D.
    fn check(&self, random: &mut Random, assembly: &mut Assembly) {
        let (n, k) = (self.n as usize, self.k as usize);
        let mut image = vec![0u8; 49152];
        let mut put = |at: u32, bits: u32, x: u32| {
            for b in 0..bits {
                let p = (at + b) as usize;
                image[p / 8] |= ((x >> b & 1) as u8) << (p % 8);
            }
        };
        let mut a = vec![0i64; 64 * k];
        // Fragments of A and the metadata.
        let mut fragments = vec![0u32; 640];
        let patterns = self
            .sparse
            .map(|s| [0; 4].map(|_| random_pattern(self.a.name, self.k, s, false, random)));
        for (warp, pattern) in patterns.iter().flatten().enumerate() {
            fragments[512 + 32 * warp..][..32].copy_from_slice(&pattern.metadata);
        }
        for i in 0..64u32 {
            for l in 0..self.a_depth() {
                let (v, bits) = self.a.value(random);
                let column = match &patterns {
                    Some(p) => p[i as usize / 16].columns[i as usize % 16][l as usize],
                    None => l as usize,
                };
                a[i as usize * k + column] = if self.negate[0] { -v } else { v };
                if let Some(p) = self.a_place {
                    put(p.bit(i, l, self.a.bits, 64), self.a.bits, bits);
                } else {
                    // Register r holds rows g + 8(r%2), a run of 32 bits at chunk r/2 of 128.
                    let per = 32 / self.a.bits;
                    let (word, r2) = (l / per % 4, l / (4 * per));
                    let (warp, row) = (i / 16, i % 16);
                    let thread = 32 * warp + 4 * (row % 8) + word;
                    let register = row / 8 + 2 * r2;
                    fragments[(4 * thread + register) as usize] |= bits << (l % per * self.a.bits);
                }
            }
        }
        let mut b = vec![0i64; k * n];
        for j in 0..self.n {
            for l in 0..self.k {
                let (v, bits) = self.b.value(random);
                b[l as usize * n + j as usize] = if self.negate[1] { -v } else { v };
                put(
                    self.b_place.bit(j, l, self.b.bits, self.n),
                    self.b.bits,
                    bits,
                );
            }
        }
        // D element (i, j): thread and register by the ISA's figure.
        let place = |i: usize, j: usize| {
            let thread = 32 * (i / 16) + 4 * (i % 8) + j % 8 / 2;
            let e = 4 * (j / 8) + 2 * (i % 16 / 8) + j % 2;
            (thread, e)
        };
        let words = n / if self.d == "f16" { 4 } else { 2 } * 128;
        let mut d = vec![0u32; words];
        let mut c = vec![0i64; 64 * n];
        let encode = |v: i64| match self.d {
            "f32" => (v as f32).to_bits(),
            "f16" => u32::from(half::f16::from_f32(v as f32).to_bits()),
            _ => v as u32,
        };
        let set = |d: &mut [u32], i, j, bits: u32| {
            let (thread, e) = place(i, j);
            if self.d == "f16" {
                let word = &mut d[e / 2 * 128 + thread];
                let shift = 16 * (e % 2);
                *word = *word & !(0xffff << shift) | bits << shift;
            } else {
                d[e * 128 + thread] = bits;
            }
        };
        for i in 0..64 {
            for j in 0..n {
                let big = self.satfinite && (i + j) % 2 == 0;
                c[i * n + j] = if big {
                    i64::from(i32::MAX) - 3
                } else {
                    random.below(64) as i64 - 32
                };
                set(&mut d, i, j, encode(c[i * n + j]));
            }
        }
        let mut memory = GlobalMemory::new();
        let bytes = |w: &[u32]| w.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let mut buffer = |data: &[u8]| {
            let at = memory.alloc(data.len() as u64, 256).expect("memory");
            memory.write(at, data).expect("a write");
            at
        };
        let args = [
            buffer(&image),
            buffer(&bytes(&fragments)),
            buffer(&bytes(&d)),
        ];
        let text = self.text();
        let name = format!(
            "wgmma-{}-{}-{}-{}-{:?}",
            self.d, self.a.name, self.k, self.n, self.sparse
        );
        assembly.add(name, &text);
        let report = launch(&text, &args, &mut memory);
        assert!(
            report.is_clean(),
            "{}\n{:#?}",
            self.instruction(),
            report.findings
        );
        let mut want = d.clone();
        for i in 0..64 {
            for j in 0..n {
                let product: i64 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
                let mut sum = product + if self.scale { c[i * n + j] } else { 0 };
                if self.satfinite {
                    sum = sum.clamp(i32::MIN.into(), i32::MAX.into());
                }
                set(&mut want, i, j, encode(sum));
            }
        }
        let got = memory.read(args[2], 4 * words).expect("a read");
        let got: Vec<u32> = got
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| u32::from_le_bytes(*b))
            .collect();
        let wrong = got.iter().zip(&want).position(|(g, w)| g != w);
        assert_eq!(
            wrong,
            None,
            "{} {:?} {:?}",
            self.instruction(),
            self.a_place,
            self.b_place
        );
    }
}

fn launch(text: &str, args: &[u64], memory: &mut GlobalMemory) -> Report {
    let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let launch = Launch {
        block: [128, 1, 1],
        args: args.iter().map(|a| Arg::Ptr(*a)).collect(),
        ..Launch::default()
    };
    run(&module, "k", &launch, memory, &Options::default()).expect("a launch")
}

fn case(d: &'static str, a: Type, b: Type, k: u32, n: u32) -> Case {
    let place = |start| Place {
        swizzle: 0,
        transposed: false,
        start,
    };
    Case {
        d,
        a,
        b,
        k,
        n,
        a_place: Some(place(0)),
        b_place: place(16384),
        negate: [false; 2],
        satfinite: false,
        scale: true,
        sparse: None,
    }
}

const TYPES: [(&str, Type, Type, u32); 15] = [
    ("f32", ty("f16", 16), ty("f16", 16), 16),
    ("f16", ty("f16", 16), ty("f16", 16), 16),
    ("f32", ty("bf16", 16), ty("bf16", 16), 16),
    ("f32", ty("tf32", 32), ty("tf32", 32), 8),
    ("f32", ty("e4m3", 8), ty("e4m3", 8), 32),
    ("f32", ty("e4m3", 8), ty("e5m2", 8), 32),
    ("f16", ty("e5m2", 8), ty("e4m3", 8), 32),
    ("f16", ty("e5m2", 8), ty("e5m2", 8), 32),
    ("f32", ty("e5m2", 8), ty("e5m2", 8), 32),
    ("f16", ty("e4m3", 8), ty("e4m3", 8), 32),
    ("s32", ty("s8", 8), ty("s8", 8), 32),
    ("s32", ty("s8", 8), ty("u8", 8), 32),
    ("s32", ty("u8", 8), ty("s8", 8), 32),
    ("s32", ty("u8", 8), ty("u8", 8), 32),
    ("s32", ty("b1", 1), ty("b1", 1), 256),
];

#[test]
fn every_type_with_every_swizzle_and_fragments() {
    let mut assembly = Assembly::default();
    let mut random = Random(5);
    for (d, a, b, k) in TYPES {
        for swizzle in [0, 32, 64, 128] {
            let mut c = case(d, a, b, k, [8, 64, 16, 128][swizzle as usize / 32 % 4]);
            c.a_place = c.a_place.map(|p| Place { swizzle, ..p });
            c.b_place.swizzle = swizzle;
            c.negate = [swizzle == 32 && d != "s32", swizzle == 64 && d != "s32"];
            c.scale = swizzle != 128;
            c.satfinite = swizzle == 64 && a.bits == 8 && d == "s32";
            c.check(&mut random, &mut assembly);
            c.a_place = None;
            c.check(&mut random, &mut assembly);
        }
    }
}

#[test]
fn sparse_of_every_type() {
    let mut assembly = Assembly::default();
    let mut random = Random(8);
    for (d, a, b, k) in &TYPES[..14] {
        for swizzle in [0, 64, 128] {
            for selector in 0..if a.bits == 8 { 1 } else { 2 } {
                let mut c = case(d, *a, *b, 2 * k, [8, 64, 128][swizzle as usize / 64]);
                c.sparse = Some(selector);
                // A row of the stored A has 32 bytes, as if dense, and one of B 64.
                c.a_place = c.a_place.map(|p| Place { swizzle, ..p });
                c.b_place.swizzle = swizzle;
                c.negate = [swizzle == 0 && *d != "s32", swizzle == 64 && *d != "s32"];
                c.scale = swizzle != 128;
                c.satfinite = swizzle == 64 && *d == "s32";
                if a.bits == 16 && swizzle == 128 {
                    c.a_place = c.a_place.map(|p| Place {
                        transposed: true,
                        ..p
                    });
                    c.b_place.transposed = true;
                }
                c.check(&mut random, &mut assembly);
                c.a_place = None;
                c.check(&mut random, &mut assembly);
            }
        }
    }
}

#[test]
fn sparse_operands_without_a_meaning() {
    let mut c = case("f32", ty("f16", 16), ty("f16", 16), 32, 16);
    c.sparse = Some(1);
    let text = c.text();
    for (from, to) in [
        ("%e, 1", "%e, 2"),
        ("%e, 1", "7, 1"),
        ("k32", "k16"),
        ("mma_async.sp", "mma_async"),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(text, bad);
        assert!(Module::parse_strict(&bad).is_err(), "{from} {to}");
    }
    let report = |text: &str, byte: u8| {
        let mut memory = GlobalMemory::new();
        let args = [49152, 2560, 8192].map(|n| {
            let at = memory.alloc(n, 256).expect("memory");
            memory.write(at, &vec![byte; n as usize]).expect("a write");
            at
        });
        launch(text, &args, &mut memory)
    };
    let found = report(&text, 0);
    let says = |found: &Report, what: &str| {
        let all = format!("{:#?}", found.findings);
        let mut bad = found
            .findings
            .iter()
            .filter(|f| f.kind == FindingKind::BadOperand);
        assert!(bad.any(|f| f.message.contains(what)), "{what}: {all}");
    };
    says(&found, "the places of two elements of a chunk must differ");
    // Rows of B have 64 bytes.
    let narrow = text.replacen(
        "or.b64 %db, %rd4, 0x",
        "or.b64 %rd4, %rd4, 0xc000000000000000;\n    or.b64 %db, %rd4, 0x",
        1,
    );
    assert_ne!(text, narrow);
    says(&report(&narrow, 0x44), "the swizzle of B is 32 bytes wide");
}

#[test]
fn transposed_halves() {
    let mut assembly = Assembly::default();
    let mut random = Random(6);
    for (d, a, b, k) in &TYPES[..3] {
        for (swizzle, at, bt) in [
            (0, true, true),
            (32, true, false),
            (64, false, true),
            (128, true, true),
        ] {
            let mut c = case(d, *a, *b, *k, 128);
            c.a_place = c.a_place.map(|p| Place {
                swizzle,
                transposed: at,
                ..p
            });
            c.b_place.swizzle = swizzle;
            c.b_place.transposed = bt;
            c.check(&mut random, &mut assembly);
            c.a_place = None;
            c.check(&mut random, &mut assembly);
        }
    }
}

#[test]
fn every_width() {
    let mut assembly = Assembly::default();
    let mut random = Random(7);
    for n in (8..=256).step_by(8) {
        case("f32", ty("f16", 16), ty("f16", 16), 16, n).check(&mut random, &mut assembly);
        if n == 24 || n == 8 || n % 16 == 0 {
            case("s32", ty("s8", 8), ty("s8", 8), 32, n).check(&mut random, &mut assembly);
        } else {
            let text = case("s32", ty("s8", 8), ty("s8", 8), 32, n).text();
            assert!(Module::parse(&text).is_err(), "{n}");
        }
    }
}

/// Changes one line of a good kernel; the finding must be of `kind` and say `says`.
fn broken(change: impl Fn(&str) -> String, kind: FindingKind, says: &str) {
    let text = case("f32", ty("f16", 16), ty("f16", 16), 16, 16).text();
    let bad = change(&text);
    assert_ne!(text, bad);
    let mut memory = GlobalMemory::new();
    let args = [49152, 2048, 8192].map(|n| {
        let at = memory.alloc(n, 256).expect("memory");
        memory.write(at, &vec![0; n as usize]).expect("a write");
        at
    });
    let report = launch(&bad, &args, &mut memory);
    let found = report.findings.iter().find(|f| f.kind == kind);
    let found = found.unwrap_or_else(|| panic!("{says}: {:#?}", report.findings));
    assert!(found.message.contains(says), "{found}");
}

#[test]
fn what_is_left_out_is_found() {
    use FindingKind as Kind;
    let without = |line: &'static str| move |text: &str| text.replacen(line, "", 1);
    broken(
        without("wgmma.fence.sync.aligned;"),
        Kind::MissingWgmmaFence,
        "no wgmma.fence before the first",
    );
    broken(
        without("wgmma.wait_group.sync.aligned 0;"),
        Kind::WgmmaInFlight,
        "register %d0 is used while the wgmma at line",
    );
    broken(
        |t| t.replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1"),
        Kind::WgmmaInFlight,
        "no wgmma.wait_group has waited",
    );
    broken(
        without("fence.proxy.async.shared::cta;"),
        Kind::MissingProxyFence,
        "no fence.proxy.async between",
    );
    broken(
        without("bar.sync 0;"),
        Kind::SharedRace,
        "the wgmma of warpgroup 0 at line",
    );
    broken(
        |t| {
            t.replace(
                "wgmma.commit_group.sync.aligned;",
                "mov.f32 %d3, 0f00000000; wgmma.commit_group.sync.aligned;",
            )
        },
        Kind::WgmmaInFlight,
        "register %d3",
    );
    broken(
        |t| {
            t.replace(
                "wgmma.fence.sync.aligned;",
                "wgmma.fence.sync.aligned; mov.f32 %d3, 0f00000000;",
            )
        },
        Kind::MissingWgmmaFence,
        "register %d3 was used since the last wgmma.fence",
    );
    broken(
        |t| {
            t.replace(
                "wgmma.commit_group.sync.aligned;",
                "wgmma.commit_group.sync.aligned; st.shared.u32 [data+32], 0;",
            )
        },
        Kind::SharedRace,
        "the wgmma of warpgroup 0",
    );
    broken(
        |t| {
            t.replace(
                "wgmma.fence.sync.aligned;",
                "setp.lt.u32 %p2, %t, 96; @!%p2 bra OUT; wgmma.fence.sync.aligned;",
            )
            .replace("    ret;", "OUT: ret;")
        },
        Kind::Deadlock,
        "wgmma.wait_group",
    );
    broken(
        |t| {
            t.replace(
                "wgmma.fence.sync.aligned;",
                "setp.lt.u32 %p2, %t, 64; @%p2 add.u64 %db, %db, 1; wgmma.fence.sync.aligned;",
            )
        },
        Kind::Divergent,
        "other descriptors",
    );
    broken(
        |t| {
            t.replace(&format!("or.b64 %db, %rd4, {:#x}", 0), "")
                .replace("ld.global.b32 %d0, [%mine+0];", "")
        },
        Kind::UndefinedRegister,
        "register %d0 is accumulated to",
    );
}

/// Numbers of all sizes, subnormal ones, zeros and some that are not finite: the version for every machine and the fast one give the same bits.
#[test]
fn both_versions_give_the_same_bits() {
    let mut random = Random(77);
    let cases = [
        ("f32", ty("f16", 16), 16),
        ("f16", ty("f16", 16), 16),
        ("f32", ty("bf16", 16), 16),
        ("f32", ty("tf32", 32), 8),
        ("f32", ty("e4m3", 8), 32),
        ("f16", ty("e5m2", 8), 32),
        ("s32", ty("s8", 8), 32),
        ("s32", ty("u8", 8), 32),
    ];
    for (d, t, k) in cases {
        for (round, n) in [8u32, 24, 64, 128].into_iter().enumerate() {
            let place = Place {
                swizzle: 0,
                transposed: false,
                start: 0,
            };
            let case = Case {
                d,
                a: t,
                b: t,
                k,
                n,
                a_place: Some(place),
                b_place: Place {
                    start: 16384,
                    ..place
                },
                negate: [false, round % 2 == 1 && d != "s32"],
                satfinite: false,
                scale: true,
                sparse: None,
            };
            let module = Module::parse(&case.text()).unwrap_or_else(|e| panic!("{e}"));
            // Bits of the factors: near 1 in the first rounds, then all there are.
            let mut word = || {
                let bits = random.bits() as u32;
                match (round, t.name) {
                    (0 | 1, "f16") => bits & 0x8fff_8fff | 0x3000_3000,
                    (0 | 1, "bf16") => bits & 0x81ff_81ff | 0x3e00_3e00,
                    (0 | 1, "tf32") => bits & 0x81ff_ffff | 0x3e00_0000,
                    _ if bits.is_multiple_of(7) => 0,
                    _ => bits,
                }
            };
            let image: Vec<u8> = (0..49152 / 4).flat_map(|_| word().to_le_bytes()).collect();
            let words = n as usize / if d == "f16" { 4 } else { 2 } * 128;
            let sums: Vec<u8> = (0..words)
                .flat_map(|i| match (round, d) {
                    (0 | 1, "f32") => ((i % 19) as f32 - 9.0).to_le_bytes(),
                    (0 | 1, "f16") => (0x3c00_bc00u32 + i as u32).to_le_bytes(),
                    _ => random.nasty().to_le_bytes()[..4]
                        .try_into()
                        .expect("four bytes"),
                })
                .collect();
            let [plain, fast] = [true, false].map(|portable| {
                let mut memory = GlobalMemory::new();
                let [from, fragments, to] =
                    [49152, 4096, 4 * words as u64].map(|n| memory.alloc(n, 256).expect("memory"));
                memory.write(from, &image).expect("a write");
                memory.write(fragments, &[0; 4096]).expect("a write");
                memory.write(to, &sums).expect("a write");
                let launch = Launch {
                    block: [128, 1, 1],
                    args: [from, fragments, to].map(Arg::Ptr).to_vec(),
                    ..Launch::default()
                };
                let options = Options {
                    portable,
                    ..Options::default()
                };
                let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
                assert!(report.is_clean(), "{:#?}", report.findings);
                memory.read(to, 4 * words).expect("a read")
            });
            assert!(plain == fast, "{d} {} n{n}", t.name);
            assert!(plain != sums, "something was added");
        }
    }
}
