//! `mma.sp.sync` of every shape and type, and `mma.sync.m8n8k4` of f16: random matrices against sums over the definition, and what has no meaning.

#![allow(clippy::format_push_string)] // PTX is put together piece by piece

mod common;

use common::sparse::{encode, random_pattern, value, width};
use common::{Assembly, Random, kernel};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// Registers `%x0, …`.
fn list(x: &str, n: usize) -> String {
    let all: Vec<String> = (0..n).map(|i| format!("%{x}{i}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// A kernel that loads `counts` registers a, b, c and e, runs `instruction` and stores the registers d.
fn text(instruction: &str, counts: [usize; 3], outputs: usize, types: [&str; 2]) -> String {
    let [a, b, c] = counts;
    let mut body = format!(
        ".reg .b32 %a<8>, %b<8>, %e, %t; .reg .{} %c<8>; .reg .{} %d<8>; .reg .b64 %in, %out;
    ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
    mad.wide.u32 %in, %t, 4, %in; mad.wide.u32 %out, %t, 4, %out;\n",
        types[0], types[1]
    );
    let names = (0..a).map(|i| format!("%a{i}"));
    let names = names.chain((0..b).map(|i| format!("%b{i}")));
    let names = names.chain((0..c).map(|i| format!("%c{i}")));
    for (i, name) in names.chain(["%e".to_owned()]).enumerate() {
        body += &format!("    ld.global.b32 {name}, [%in+{}];\n", 128 * i);
    }
    body += &format!("    {instruction}\n");
    for i in 0..outputs {
        body += &format!("    st.global.b32 [%out+{}], %d{i};\n", 128 * i);
    }
    kernel(".param .u64 in, .param .u64 out", &body)
}

fn launch(text: &str, input: &[u32], outputs: usize) -> (Vec<u32>, Report) {
    let module = Module::parse_strict(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
    let a = memory.alloc(bytes.len() as u64, 256).expect("memory");
    memory.write(a, &bytes).expect("a write");
    let d = memory.alloc(128 * outputs as u64, 256).expect("memory");
    let launch = Launch {
        args: vec![Arg::Ptr(a), Arg::Ptr(d)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    let data = memory.read(d, 128 * outputs).expect("a read");
    let words = data.as_chunks::<4>().0.iter();
    (words.map(|b| u32::from_le_bytes(*b)).collect(), report)
}

/// Sets element `i` of `lane` in registers of elements of `bits` bits from register `base` on.
fn put(words: &mut [u32], base: usize, lane: usize, i: usize, bits: u32, x: u32) {
    let per = (32 / bits) as usize;
    words[32 * (base + i / per) + lane] |= x << (bits as usize * (i % per));
}

struct Case {
    types: [&'static str; 3],
    k: u32,
    selector: u32,
    ordered: bool,
    satfinite: bool,
}

impl Case {
    fn instruction(&self) -> (String, [usize; 3], usize) {
        let [d, a, b] = self.types;
        let (k, bits) = (self.k as usize, width(a) as usize);
        let counts = [
            16 * k / 2 * bits / 1024,
            8 * k * bits / 1024,
            if d == "f16" { 2 } else { 4 },
        ];
        let sp = if self.ordered {
            "sp::ordered_metadata"
        } else {
            "sp"
        };
        let sat = if self.satfinite { ".satfinite" } else { "" };
        let line = format!(
            "mma.{sp}.sync.aligned.m16n8k{k}.row.col{sat}.{d}.{a}.{b}.{d} {}, {}, {}, {}, %e, {};",
            list("d", counts[2]),
            list("a", counts[0]),
            list("b", counts[1]),
            list("c", counts[2]),
            self.selector
        );
        (line, counts, counts[2])
    }

    fn check(&self, random: &mut Random, assembly: &mut Assembly) {
        let [d, a_ty, b_ty] = self.types;
        let (line, counts, outputs) = self.instruction();
        let k = self.k as usize;
        let pattern = random_pattern(a_ty, self.k, self.selector, self.ordered, random);
        let mut words = vec![0u32; 32 * (counts.iter().sum::<usize>() + 1)];
        let mut dense = vec![0i64; 16 * k];
        let mut b = vec![0i64; k * 8];
        // Elements that a lane holds of a row of a fragment: runs of one register, four lanes to a run.
        let per = (32 / width(a_ty)) as usize;
        for row in 0..16 {
            for (l, column) in pattern.columns[row].iter().enumerate() {
                let (v, bits) = value(a_ty, random);
                dense[row * k + column] += v;
                let (lane, register) = (4 * (row % 8) + l / per % 4, row / 8 + 2 * (l / (4 * per)));
                put(
                    &mut words,
                    0,
                    lane,
                    register * per + l % per,
                    width(a_ty),
                    bits,
                );
            }
        }
        for l in 0..k {
            for column in 0..8 {
                let (v, bits) = value(b_ty, random);
                b[8 * l + column] = v;
                let (lane, register) = (4 * column + l / per % 4, l / (4 * per));
                put(
                    &mut words,
                    counts[0],
                    lane,
                    register * per + l % per,
                    width(b_ty),
                    bits,
                );
            }
        }
        let base = counts[0] + counts[1];
        let mut want = vec![0u32; 32 * outputs];
        for row in 0..16 {
            for column in 0..8 {
                let big = self.satfinite && row % 2 == 0;
                let c = if big {
                    i64::from(i32::MAX) - 3
                } else {
                    random.below(9) as i64 - 4
                };
                let (lane, i) = (4 * (row % 8) + column / 2, 2 * (row / 8) + column % 2);
                put(&mut words, base, lane, i, width_of_sum(d), encode(d, c));
                let product: i64 = (0..k).map(|l| dense[row * k + l] * b[8 * l + column]).sum();
                let mut sum = c + product;
                if self.satfinite {
                    sum = sum.clamp(i32::MIN.into(), i32::MAX.into());
                }
                put(&mut want, 0, lane, i, width_of_sum(d), encode(d, sum));
            }
        }
        let at = 32 * (base + counts[2]);
        words[at..].copy_from_slice(&pattern.metadata);
        let sum_ty = register(d);
        let text = text(&line, counts, outputs, [sum_ty, sum_ty]);
        let name = format!("sparse-{a_ty}-{b_ty}-{d}-{k}-{}", self.selector);
        assembly.add(name, &text);
        let (got, report) = launch(&text, &words, outputs);
        assert!(report.is_clean(), "{line}: {}", report.findings[0]);
        assert_eq!(got, want, "{line}");
    }
}

fn width_of_sum(d: &str) -> u32 {
    if d == "f16" { 16 } else { 32 }
}

fn register(d: &str) -> &str {
    if d == "f16" { "b32" } else { d }
}

#[test]
fn every_shape_and_type() {
    let mut assembly = Assembly::default();
    let mut random = Random(17);
    let floats = ["e4m3", "e5m2"];
    // Type of D, A, B; depth; the last selector.
    let mut all: Vec<([&'static str; 3], u32, u32)> = Vec::new();
    for (k, last) in [(16, 3), (32, 1)] {
        all.push((["f32", "f16", "f16"], k, last));
        all.push((["f16", "f16", "f16"], k, last));
        all.push((["f32", "bf16", "bf16"], k, last));
        all.push((["f32", "tf32", "tf32"], k / 2, last));
    }
    for a in 0..2 {
        for b in 0..2 {
            all.push((["f32", floats[a], floats[b]], 64, 0));
            for (k, last) in [(32, 1), (64, 0)] {
                all.push((["s32", ["s8", "u8"][a], ["s8", "u8"][b]], k, last));
                all.push((["s32", ["s4", "u4"][a], ["s4", "u4"][b]], 2 * k, last));
            }
        }
    }
    for (types, k, last) in all {
        for selector in 0..=last {
            for ordered in [false, true] {
                let case = Case {
                    types,
                    k,
                    selector,
                    ordered,
                    satfinite: ordered && types[0] == "s32",
                };
                case.check(&mut random, &mut assembly);
            }
        }
    }
}

/// Runs one instruction with metadata `e` in all lanes and A, B, C of zeros; returns the findings.
fn with_metadata(case: &Case, e: u32) -> Report {
    let (line, counts, outputs) = case.instruction();
    let mut words = vec![0u32; 32 * counts.iter().sum::<usize>()];
    words.extend([e; 32]);
    let sum_ty = register(case.types[0]);
    launch(&text(&line, counts, outputs, [sum_ty; 2]), &words, outputs).1
}

#[test]
fn metadata_without_a_meaning_is_found() {
    let case = |types, k, selector, ordered| Case {
        types,
        k,
        selector,
        ordered,
        satfinite: false,
    };
    let half = ["f32", "f16", "f16"];
    let says = |report: &Report, what: &str| {
        let found = report
            .findings
            .iter()
            .find(|f| f.kind == FindingKind::BadOperand);
        let found = found.unwrap_or_else(|| panic!("{what}: {:#?}", report.findings));
        assert!(found.message.contains(what), "{found}");
    };
    // Good ones first: 01 00, and 11 10 for tf32.
    assert!(with_metadata(&case(half, 32, 1, true), 0x4444_4444).is_clean());
    assert!(with_metadata(&case(["f32", "tf32", "tf32"], 8, 3, true), 0xeeee_4444).is_clean());
    // Two equal places.
    let report = with_metadata(&case(half, 32, 0, false), 0x4444_5444);
    says(
        &report,
        "0b0101 (bits 12 to 15 of lane 0) of row 0, columns 12 to 15",
    );
    let report = with_metadata(&case(half, 16, 2, false), 0x4444_4440);
    says(&report, "of lane 2) of row 0, columns 0 to 3");
    let report = with_metadata(&case(["s32", "s8", "u8"], 64, 0, false), 0xf444_4444);
    says(
        &report,
        "0b1111 (bits 28 to 31 of lane 0) of row 0, columns 28 to 31",
    );
    let report = with_metadata(&case(["s32", "u4", "u4"], 64, 1, false), 0x4444_44a4);
    says(
        &report,
        "0b1010 (bits 4 to 7 of lane 2) of row 0, columns 8 to 15",
    );
    // Descending places are for mma.sp, not for ordered metadata.
    assert!(with_metadata(&case(half, 32, 1, false), 0x1111_1111).is_clean());
    says(
        &with_metadata(&case(half, 32, 1, true), 0x1111_1111),
        "ascend",
    );
    // tf32.
    let report = with_metadata(&case(["f32", "tf32", "tf32"], 16, 0, false), 0x4444_4484);
    says(&report, "of tf32 only 0b0100 and 0b1110");
    // A selector that the assembler takes and the ISA does not define.
    let report = with_metadata(&case(half, 32, 2, false), 0x4444_4444);
    says(
        &report,
        "the sparsity selector of this shape and type is at most 1",
    );
}

#[test]
fn elements_of_b_that_are_skipped_do_not_count() {
    let case = Case {
        types: ["f32", "f16", "f16"],
        k: 16,
        selector: 0,
        ordered: true,
        satfinite: false,
    };
    let (line, counts, outputs) = case.instruction();
    let text = text(&line, counts, outputs, ["f32"; 2]);
    // A of ones at columns 0 and 1 of each chunk; B has NaN in columns 2 and 3 of each.
    let mut words = vec![0x3c00_3c00u32; 64];
    let b: Vec<u32> = (0..64)
        .map(|i| if i % 2 == 0 { 0x4000_4000 } else { 0x7e00_7e00 })
        .collect();
    words.extend(b);
    words.extend([0; 4 * 32]);
    words.extend([0x4444_4444; 32]);
    let (got, report) = launch(&text, &words, outputs);
    assert!(report.is_clean(), "{}", report.findings[0]);
    assert_eq!(got, [16f32.to_bits(); 128]);
}

#[test]
fn text_that_the_assembler_refuses_is_refused() {
    let good = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%c0, %c1, %c2, %c3}, %e, 0;";
    let parse = |line: &str| Module::parse_strict(&text(line, [4, 4, 4], 4, ["f32", "f32"]));
    assert!(parse(good).is_ok());
    for (from, to) in [
        ("%e, 0", "%e, 4"),
        ("%e, 0", "%e, -1"),
        ("%e, 0", "%e, %e"),
        ("%e, 0", "5, 0"),
        ("%e, 0", "%e"),
        (", %e, 0", ""),
        ("m16n8k32", "m16n8k16"),
        ("m16n8k32", "m16n8k64"),
        ("m16n8k32", "m8n8k32"),
        (".row.col", ".col.col"),
        (".row.col", ".row.col.satfinite"),
        (".f32.f16.f16.f32", ".f16.f16.f16.f32"),
        (".f32.f16.f16.f32", ".f32.f16.bf16.f32"),
        ("{%b0, %b1, %b2, %b3}", "{%b0, %b1}"),
        ("mma.sp", "mma"),
        ("mma.sp", "mma.sp.sp"),
        ("mma.sp.sync", "mma.sp"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(good, bad);
        assert!(parse(&bad).is_err(), "{bad}");
    }
    // All lanes give metadata: no other selector.
    let wide = "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%c0, %c1, %c2, %c3}, %e, 1;";
    let text = text(wide, [4, 4, 4], 4, ["b32", "b32"]);
    let error = Module::parse_strict(&text).expect_err("a refusal");
    assert!(
        error.to_string().contains("the sparsity selector 0"),
        "{error}"
    );
}

/// Four products of 8 x 8 x 4.
#[test]
fn quads_of_every_order_and_type() {
    let mut assembly = Assembly::default();
    let mut random = Random(18);
    for (d, c) in [("f16", "f16"), ("f32", "f16"), ("f32", "f32")] {
        for (a_order, b_order) in [
            ("row", "col"),
            ("row", "row"),
            ("col", "row"),
            ("col", "col"),
        ] {
            let count = |t: &str| if t == "f16" { 4 } else { 8 };
            let counts = [2, 2, count(c)];
            let line = format!(
                "mma.sync.aligned.m8n8k4.{a_order}.{b_order}.{d}.f16.f16.{c} {}, {}, {}, {};",
                list("d", count(d)),
                list("a", 2),
                list("b", 2),
                list("c", count(c))
            );
            let text = text(&line, counts, count(d), [register(c), register(d)]);
            assembly.add(format!("quads-{d}-{c}-{a_order}-{b_order}"), &text);
            let mut words = vec![0; 32 * (counts.iter().sum::<usize>() + 1)];
            let mut want = vec![0; 32 * count(d)];
            for quad in 0..4 {
                let lane = |low: usize, high: usize| 4 * quad + low + 16 * high;
                let [mut a, mut b] = [[0i64; 32]; 2];
                for i in 0..32 {
                    let (v, bits) = value("f16", &mut random);
                    a[i] = v;
                    let (row, column) = (i / 4, i % 4);
                    let (l, e) = if a_order == "row" {
                        (lane(row % 4, row / 4), column)
                    } else {
                        (lane(column, row / 4), row % 4)
                    };
                    put(&mut words, 0, l, e, 16, bits);
                    let (v, bits) = value("f16", &mut random);
                    b[i] = v;
                    let (row, column) = (i / 8, i % 8);
                    let (l, e) = if b_order == "row" {
                        (lane(row, column / 4), column % 4)
                    } else {
                        (lane(column % 4, column / 4), row)
                    };
                    put(&mut words, 2, l, e, 16, bits);
                }
                // The inverse of the ISA's formulas for C and D.
                let place = |t: &str, row: usize, column: usize| {
                    let (r, h) = (row % 4, row / 4);
                    if t == "f16" {
                        (lane(r, h), column)
                    } else {
                        let low = r % 2 + (column & 2);
                        (lane(low, h), (r & 2) + (column & 4) + column % 2)
                    }
                };
                for row in 0..8 {
                    for column in 0..8 {
                        let (v, _) = value("s8", &mut random);
                        let (l, e) = place(c, row, column);
                        put(&mut words, 4, l, e, width_of_sum(c), encode(c, v));
                        let product: i64 = (0..4).map(|l| a[4 * row + l] * b[8 * l + column]).sum();
                        let (l, e) = place(d, row, column);
                        put(&mut want, 0, l, e, width_of_sum(d), encode(d, v + product));
                    }
                }
            }
            let (got, report) = launch(&text, &words, count(d));
            assert!(report.is_clean(), "{line}: {}", report.findings[0]);
            assert_eq!(got, want, "{line}");
        }
    }
}
