//! Tensor cores to the bit: tiles that an H100 has multiplied, with random fragments of one magnitude, of a wide range, of zeros and subnormal numbers, and
//! with infinities and NaN.
//!
//! `fixtures/h100/*.bin` hold, for eight tiles each, the registers of A, B and C of a warp and the registers of D that the GPU gave: two tiles of each family of
//! `examples/hardware`, which writes the whole comparison.

mod common;

use common::kernel;
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

/// Registers of A, B, C and D, and their bytes.
fn tiles(form: &str, counts: [usize; 4], bytes: usize, fixture: &[u8]) {
    let [a, b, c, d] = counts;
    let (inputs, row) = (a + b + c, 32 * bytes);
    let list = |first: usize, n: usize| {
        let all: Vec<String> = (first..first + n).map(|i| format!("%v{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    let bits = 8 * bytes;
    let loads: Vec<String> = (0..inputs)
        .map(|i| format!("ld.global.b{bits} %v{i}, [%in+{}];", i * row))
        .collect();
    let stores: Vec<String> = (0..d)
        .map(|i| format!("st.global.b{bits} [%out+{}], %v{};", i * row, inputs + i))
        .collect();
    let body = format!(
        ".reg .b{bits} %v<{}>; .reg .b32 %t; .reg .b64 %in, %out;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %in, %t, {bytes}, %in;
    mad.wide.u32 %out, %t, {bytes}, %out;
    {}
    mma.sync.aligned.{form} {}, {}, {}, {};
    {}",
        inputs + d,
        loads.join("\n"),
        list(inputs, d),
        list(0, a),
        list(a, b),
        list(a + b, c),
        stores.join("\n")
    );
    let text = kernel(".param .u64 in, .param .u64 out", &body);
    let module = Module::parse(&text).expect("valid PTX");
    let (from, to) = (inputs * row, d * row);
    assert_eq!(fixture.len(), 8 * (from + to));
    for (number, tile) in fixture.chunks_exact(from + to).enumerate() {
        let (input, expected) = tile.split_at(from);
        let mut memory = GlobalMemory::new();
        let source = memory.alloc(from as u64, 256).expect("memory");
        let result = memory.alloc(to as u64, 256).expect("memory");
        memory.write(source, input).expect("a write");
        let launch = Launch {
            args: vec![Arg::Ptr(source), Arg::Ptr(result)],
            ..Launch::default()
        };
        let options = Options::default();
        let report = run(&module, "k", &launch, &mut memory, &options).expect("a launch");
        assert!(report.is_clean());
        let got = memory.read(result, to).expect("a read");
        assert!(got == expected, "{form}, tile {number}");
    }
}

#[test]
fn products_are_those_of_an_h100() {
    tiles(
        "m16n8k32.row.col.f32.e4m3.e5m2.f32",
        [4, 2, 4, 4],
        4,
        include_bytes!("fixtures/h100/mma.m16n8k32.f32.e4m3.e5m2.f32.bin"),
    );
    tiles(
        "m16n8k16.row.col.f32.f16.f16.f32",
        [4, 2, 4, 4],
        4,
        include_bytes!("fixtures/h100/mma.m16n8k16.f32.f16.f16.f32.bin"),
    );
    tiles(
        "m16n8k16.row.col.f32.bf16.bf16.f32",
        [4, 2, 4, 4],
        4,
        include_bytes!("fixtures/h100/mma.m16n8k16.f32.bf16.bf16.f32.bin"),
    );
    tiles(
        "m16n8k16.row.col.f16.f16.f16.f16",
        [4, 2, 2, 2],
        4,
        include_bytes!("fixtures/h100/mma.m16n8k16.f16.f16.f16.f16.bin"),
    );
    tiles(
        "m16n8k16.row.col.f64.f64.f64.f64",
        [8, 4, 4, 4],
        8,
        include_bytes!("fixtures/h100/mma.m16n8k16.f64.f64.f64.f64.bin"),
    );
}
