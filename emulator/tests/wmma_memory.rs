//! `wmma.load` and `wmma.store`: whatever the layouts and the alignment, an element keeps its row and column; and memory is accessed in pieces as large as the alignment permits.

mod common;

use common::{assembles, kinds};
use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// A fragment: operand, shape, type, bytes of an element, registers, rows and columns.
type Fragment = (
    &'static str,
    &'static str,
    &'static str,
    usize,
    usize,
    [u32; 2],
);

const FRAGMENTS: [Fragment; 8] = [
    ("a", "m16n16k16", "f16", 2, 8, [16, 16]),
    ("a", "m32n8k16", "f16", 2, 8, [32, 16]),
    ("b", "m8n32k16", "s8", 1, 4, [16, 32]),
    ("b", "m32n8k16", "u8", 1, 1, [16, 8]),
    ("c", "m16n16k16", "f32", 4, 8, [16, 16]),
    ("c", "m8n32k16", "f16", 2, 4, [8, 32]),
    ("b", "m16n16k8", "tf32", 4, 4, [8, 16]),
    ("c", "m8n8k4", "f64", 8, 2, [8, 8]),
];

/// Bytes of the input and of the output.
const BYTES: usize = 8192;

/// One warp loads a fragment at byte `from` of the input, by rows or by columns with `stride` elements from one to the next, and stores it at byte `to` of the output.
/// Fragments of factors, which have no store, go out register by register.
fn copy(
    which: usize,
    [load, store]: [&str; 2],
    [from, to]: [usize; 2],
    stride: u32,
) -> (Vec<u8>, Vec<u8>, Report) {
    let (kind, shape, ty, _, registers, _) = FRAGMENTS[which];
    let register = if ty == "f64" { "%d" } else { "%r" };
    let list: Vec<String> = (0..registers).map(|k| format!("{register}{k}")).collect();
    let list = list.join(", ");
    let out = if kind == "c" {
        format!("wmma.store.d.sync.aligned.{store}.{shape}.global.{ty} [%out], {{{list}}}, %s;")
    } else {
        let wide = if ty == "f64" { 8 } else { 4 };
        let stores = (0..registers).map(|k| {
            let ty = if wide == 8 { "b64" } else { "b32" };
            format!("st.global.{ty} [%lane+{}], {register}{k};\n", 32 * k * wide)
        });
        format!(
            "mov.u32 %t, %tid.x;\nmad.wide.u32 %lane, %t, {wide}, %out;\n{}",
            stores.collect::<String>()
        )
    };
    let text = format!(
        ".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in, .param .u32 stride)
{{
    .reg .b32 %r<8>, %s, %t;
    .reg .b64 %d<2>, %out, %in, %lane;
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    ld.param.u32 %s, [stride];
    wmma.load.{kind}.sync.aligned.{load}.{shape}.global.{ty} {{{list}}}, [%in], %s;
    {out}
    ret;
}}
"
    );
    assembles("copy", &text);
    let module = Module::parse_strict(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let [out, input] = [0; 2].map(|_| memory.alloc(BYTES as u64, 256).expect("memory"));
    let data: Vec<u8> = (0..BYTES as u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
        .collect();
    memory.write(input, &data).expect("a write");
    memory.write(out, &[0; BYTES]).expect("a write");
    let launch = Launch {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        args: vec![
            Arg::Ptr(out + to as u64),
            Arg::Ptr(input + from as u64),
            Arg::U32(stride),
        ],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, &Options::default()).expect("a launch");
    (data, memory.read(out, BYTES).expect("a read"), report)
}

/// The place of element (row, column) in elements.
fn place(layout: &str, [row, column]: [u32; 2], stride: u32) -> usize {
    let (outer, inner) = if layout == "row" {
        (row, column)
    } else {
        (column, row)
    };
    (outer * stride + inner) as usize
}

#[test]
fn elements_keep_their_rows_and_columns() {
    for (which, (kind, shape, ty, bytes, _, [rows, columns])) in FRAGMENTS.into_iter().enumerate() {
        if kind != "c" {
            continue;
        }
        // The longest side, and one element more: then no row but the first is aligned to more than an element.
        for stride in [rows.max(columns), rows.max(columns) + 1] {
            for layouts in [
                ["row", "row"],
                ["row", "col"],
                ["col", "row"],
                ["col", "col"],
            ] {
                for at in [[0, 0], [bytes, 0], [0, 3 * bytes]] {
                    let (data, out, report) = copy(which, layouts, at, stride);
                    let context = format!("{shape} {ty} {layouts:?} {stride} {at:?}");
                    assert!(report.is_clean(), "{context}: {:#?}", report.findings);
                    let mut expected = vec![0; BYTES];
                    for row in 0..rows {
                        for column in 0..columns {
                            let [from, to] = [0, 1]
                                .map(|k| at[k] + bytes * place(layouts[k], [row, column], stride));
                            expected[to..to + bytes].copy_from_slice(&data[from..from + bytes]);
                        }
                    }
                    assert!(out == expected, "{context}");
                }
            }
        }
    }
}

/// A factor's registers do not depend on where its elements came from.
#[test]
fn factors_are_the_same_from_every_layout() {
    for (which, (kind, shape, ty, bytes, _, [rows, columns])) in FRAGMENTS.into_iter().enumerate() {
        if kind == "c" {
            continue;
        }
        for stride in [32, 33] {
            let (data, aligned, report) = copy(which, ["row", ""], [0, 0], 32);
            assert!(report.is_clean(), "{shape} {ty}: {:#?}", report.findings);
            let (_, other, report) = copy(which, ["col", ""], [0, 0], stride);
            assert!(report.is_clean(), "{shape} {ty}: {:#?}", report.findings);
            // Where each element of the registers may have come from, by its value.
            let order = |layout: &str, stride: u32, registers: &[u8]| -> Vec<Vec<[u32; 2]>> {
                let elements = |value: &[u8]| {
                    let all = (0..rows).flat_map(|r| (0..columns).map(move |c| [r, c]));
                    let same = all.filter(|at| {
                        let at = bytes * place(layout, *at, stride);
                        data[at..at + bytes] == *value
                    });
                    same.collect()
                };
                let used = (rows * columns) as usize * bytes;
                registers[..used]
                    .chunks_exact(bytes)
                    .map(elements)
                    .collect()
            };
            let by_rows = order("row", 32, &aligned);
            let by_columns = order("col", stride, &other);
            for (x, y) in by_rows.iter().zip(&by_columns) {
                assert!(!x.is_empty(), "{shape} {ty}");
                assert!(x.iter().any(|at| y.contains(at)), "{shape} {ty} {stride}");
            }
        }
    }
}

#[test]
fn lanes_access_16_bytes_at_once_where_rows_are_aligned() {
    // 16 × 16 elements of f16 are 512 bytes: 16 to a lane, and 128 to a wavefront.
    let text = |layout: &str, at: u32| {
        format!(
            ".version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<4>, %at;
    .shared .align 128 .b8 tile[1280];
    mov.u32 %at, tile;
    add.u32 %at, %at, {at};
    wmma.store.d.sync.aligned.{layout}.m16n16k16.shared.f16 [%at], {{%r0, %r1, %r2, %r3}};
    ret;
}}
"
        )
    };
    let go = |layout: &str, at: u32| {
        let module = Module::parse_strict(&text(layout, at)).expect("PTX");
        let launch = Launch {
            block: [32, 1, 1],
            ..Launch::default()
        };
        let options = Options {
            sanitize: false,
            ..Options::default()
        };
        let report = run(&module, "k", &launch, &mut GlobalMemory::new(), &options);
        report.expect("a launch").counters.wavefronts
    };
    for layout in ["row", "col"] {
        assert_eq!(go(layout, 0), 4, "{layout}");
        assert!(go(layout, 8) > 4, "{layout}");
        assert!(go(layout, 2) > go(layout, 8), "{layout}");
    }
}

#[test]
fn what_lies_outside_is_found() {
    let (_, _, report) = copy(4, ["row", "row"], [BYTES - 1024 + 64, 0], 16);
    assert_eq!(kinds(&report), [FindingKind::OutOfBounds]);
    let (_, _, report) = copy(4, ["col", "row"], [0, BYTES - 1024 + 4], 16);
    assert_eq!(kinds(&report), [FindingKind::OutOfBounds]);
}
