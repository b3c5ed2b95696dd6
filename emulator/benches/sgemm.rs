//! Lane-instructions a second on one core, with and without the sanitizer: a 256³ single-precision matrix product; and the time of a
//! 512³ product of halves by `mma.sync`; and `wgmma` and `mma.sync` of all types; and kernels that a compiler made (`corpus/`), with grids large enough to measure.
//!
//! Divan counts items; an item is one lane executing one instruction, and for `mma.sync` and `wgmma` one multiply-add.

use std::fmt::Write as _;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

fn main() {
    divan::main();
}

const N: u32 = 256;

struct Case {
    module: Module,
    memory: GlobalMemory,
    launch: Launch,
    kernel: &'static str,
}

fn case(text: &str, kernel: &'static str, grid: [u32; 3], block: [u32; 3]) -> Case {
    let module = Module::parse(text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let bytes = u64::from(N * N) * 4;
    let [a, b, c] = [0; 3].map(|_| memory.alloc(bytes, 256).expect("an allocation"));
    let data: Vec<u8> = (0..N * N)
        .flat_map(|i| ((i % 17) as f32 - 8.0).to_le_bytes())
        .collect();
    memory.write(a, &data).expect("a write");
    memory.write(b, &data).expect("a write");
    let args = vec![
        Arg::Ptr(a),
        Arg::Ptr(b),
        Arg::Ptr(c),
        Arg::U32(N),
        Arg::U32(N),
        Arg::U32(N),
    ];
    Case {
        module,
        memory,
        launch: Launch {
            grid,
            block,
            args,
            ..Launch::default()
        },
        kernel,
    }
}

fn bench(bencher: Bencher<'_, '_>, mut case: Case, sanitize: bool, workers: usize) {
    let options = Options {
        sanitize,
        workers,
        ..Options::default()
    };
    let mut go = || {
        run(
            &case.module,
            case.kernel,
            &case.launch,
            &mut case.memory,
            &options,
        )
        .expect("a possible launch")
    };
    let lanes = go().counters.lane_instructions;
    bencher
        .counter(ItemsCount::new(lanes))
        .bench_local(|| black_box(go()));
}

fn tiled() -> Case {
    case(
        include_str!("../tests/fixtures/sgemm_tiled.ptx"),
        "sgemm_tiled",
        [N / 64, N / 64, 1],
        [64, 1, 1],
    )
}

fn naive() -> Case {
    case(
        include_str!("../tests/fixtures/sgemm_naive.ptx"),
        "sgemm_naive",
        [N / 16, N / 16, 1],
        [16, 16, 1],
    )
}

#[divan::bench(args = [true, false])]
fn tiled_one_core(bencher: Bencher<'_, '_>, sanitize: bool) {
    bench(bencher, tiled(), sanitize, 1);
}

#[divan::bench]
fn tiled_all_cores(bencher: Bencher<'_, '_>) {
    bench(bencher, tiled(), true, 0);
}

#[divan::bench(args = [true, false])]
fn naive_one_core(bencher: Bencher<'_, '_>, sanitize: bool) {
    bench(bencher, naive(), sanitize, 1);
}

/// Compiled kernels on one core with the sanitizer on: the name in the corpus and the blocks.
#[divan::bench(args = [
    ("mandelbrot", 512),
    ("shared_histogram", 512),
    ("prefix_sum", 512),
    ("matrix_tile", 512),
    ("math_float", 64),
    ("fast_math", 256),
    ("quicksort", 64),
    ("wmma_half", 512),
])]
fn compiled_one_core(bencher: Bencher<'_, '_>, (name, blocks): (&str, u32)) {
    let path = format!("{}/corpus/{name}.sm_75.ptx", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the corpus");
    let block = if name == "wmma_half" { 32 } else { 64 };
    let module = Module::parse(&text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let words = blocks * 512;
    let [out, input] = [0; 2].map(|_| memory.alloc(4 * u64::from(words), 256).expect("memory"));
    let data: Vec<u8> = (0..words)
        .flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    memory.write(input, &data).expect("a write");
    let case = Case {
        module,
        memory,
        launch: Launch {
            grid: [blocks, 1, 1],
            block: [block, 1, 1],
            args: vec![Arg::Ptr(out), Arg::Ptr(input), Arg::U32(words)],
            ..Launch::default()
        },
        kernel: "run",
    };
    bench(bencher, case, true, 1);
}

/// With the sanitizer on: on one core, and on all.
#[divan::bench(args = [1, 0], sample_count = 5)]
fn halves_512_by_mma(bencher: Bencher<'_, '_>, workers: usize) {
    const M: u32 = 512;
    let module = Module::parse(include_str!("../tests/fixtures/hgemm_mma.ptx")).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let bytes = u64::from(M * M) * 2;
    let [a, b, c] = [bytes, bytes, 2 * bytes].map(|n| memory.alloc(n, 256).expect("an allocation"));
    let data: Vec<u8> = (0..M * M)
        .flat_map(|i| half::f16::from_f32((i % 17) as f32 - 8.0).to_le_bytes())
        .collect();
    memory.write(a, &data).expect("a write");
    memory.write(b, &data).expect("a write");
    let args = vec![
        Arg::Ptr(a),
        Arg::Ptr(b),
        Arg::Ptr(c),
        Arg::U32(M),
        Arg::U32(M),
        Arg::U32(M),
    ];
    let launch = Launch {
        grid: [M / 64, M / 64, 1],
        block: [128, 1, 1],
        args,
        ..Launch::default()
    };
    let options = Options {
        workers,
        ..Options::default()
    };
    let bencher = bencher.counter(ItemsCount::new(u64::from(M).pow(3)));
    bencher.bench_local(|| {
        let report =
            run(&module, "hgemm", &launch, &mut memory, &options).expect("a possible launch");
        assert!(report.is_clean(), "{}", report.findings[0]);
        report
    });
}

/// Products of tiles by `wgmma` or `mma.sync` in one block, on one core: the types of the sum and of the factors, and whether the sanitizer is on.
/// The factors have all their bits and exponents that differ, so that addends are cut.
#[divan::bench(args = [
    ("wgmma", "f32", "f16", true),
    ("wgmma", "f32", "f16", false),
    ("wgmma", "f32", "bf16", true),
    ("wgmma", "f16", "f16", true),
    ("wgmma", "f32", "tf32", true),
    ("wgmma", "f32", "e4m3", true),
    ("wgmma", "s32", "s8", true),
    ("mma", "f32", "f16", true),
    ("mma", "f32", "bf16", true),
    ("mma", "f32", "tf32", true),
    ("mma", "f32", "e4m3", true),
    ("mma", "s32", "s8", true),
], sample_count = 5)]
fn products_of_tiles(
    bencher: Bencher<'_, '_>,
    (instruction, sum, factor, sanitize): (&str, &str, &str, bool),
) {
    let (bits, least, varies) = match factor {
        "f16" => (16, 0x3400_3400_u32, 0x8fff_8fff_u32),
        "bf16" => (16, 0x3f00_3f00, 0x80ff_80ff),
        "tf32" => (32, 0x3f00_0000, 0x80ff_e000),
        "e4m3" => (8, 0x3030_3030, 0x8f8f_8f8f),
        _ => (8, 0, u32::MAX),
    };
    let (n, k) = (if instruction == "wgmma" { 256 } else { 8 }, 256 / bits);
    let registers = n / if sum == "f16" { 4 } else { 2 };
    let list = |name: &str, n: u32| {
        let all: Vec<_> = (0..n).map(|i| format!("%{name}{i}")).collect();
        format!("{{{}}}", all.join(", "))
    };
    let d = list("d", registers);
    let mut steps = String::new();
    for step in 0..4 {
        let last = match (sum, bits) {
            ("s32", _) => "",
            (_, 16) => ", 1, 1, 0, 0",
            _ => ", 1, 1",
        };
        if instruction == "wgmma" {
            let _ = writeln!(
                steps,
                "add.u64 %x, %da, {at}; add.u64 %y, %db, {at}; wgmma.mma_async.sync.aligned.m64n256k{k}.{sum}.{factor}.{factor} {d}, %x, %y, 1{last};",
                at = 2 * step
            );
        } else {
            let (a, b) = (list("a", 4), list("b", 2));
            let _ = writeln!(
                steps,
                "mma.sync.aligned.m16n8k{k}.row.col.{sum}.{factor}.{factor}.{sum} {d}, {a}, {b}, {d};"
            );
        }
    }
    if instruction == "wgmma" {
        steps = format!(
            "wgmma.fence.sync.aligned; {steps} wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
        );
    }
    let ty = if sum == "f16" { "b32" } else { sum };
    let text = format!(
        ".version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u32 count)
{{
    .reg .b32 %r<8>, %t, %a<4>, %b<2>; .reg .{ty} %d<128>; .reg .b64 %x, %y, %da, %db, %in; .reg .pred %p;
    .shared .align 1024 .b8 data[49152];
    ld.param.u64 %in, [in];
    ld.param.u32 %r7, [count];
    mov.u32 %t, %tid.x;
    shl.b32 %r1, %t, 4;
    mov.u32 %r0, data;
FILL:
    cvt.u64.u32 %x, %r1;
    add.u64 %x, %x, %in;
    ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%x];
    add.u32 %r2, %r0, %r1;
    st.shared.v4.b32 [%r2], {{%a0, %a1, %a2, %a3}};
    add.u32 %r1, %r1, 2048;
    setp.lt.u32 %p, %r1, 49152;
    @%p bra FILL;
    mov.b32 %b0, %a2;
    mov.b32 %b1, %a3;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    cvt.u64.u32 %x, %r0;
    and.b64 %x, %x, 0x3ffff;
    shr.u64 %x, %x, 4;
    or.b64 %da, %x, 0x4000004000010000;
    add.u64 %db, %da, 512;
    {zero}
LOOP:
    {steps}
    sub.u32 %r7, %r7, 1;
    setp.ne.u32 %p, %r7, 0;
    @%p bra LOOP;
    ret;
}}",
        zero = (0..registers).fold(String::new(), |mut all, i| {
            let _ = writeln!(all, "mov.b32 %d{i}, 0;");
            all
        }),
    );
    let module = Module::parse(&text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let input = memory.alloc(49152, 256).expect("memory");
    let data: Vec<u8> = (0..49152 / 4_u32)
        .flat_map(|i| {
            let random = i.wrapping_mul(0x9e37_79b9);
            let random = (random ^ random >> 15).wrapping_mul(0x85eb_ca6b);
            let number = least.wrapping_add((random ^ random >> 13) & varies & 0x7fff_ffff);
            (number ^ random & varies & 0x8080_8080).to_le_bytes()
        })
        .collect();
    memory.write(input, &data).expect("a write");
    let count = if instruction == "wgmma" { 32 } else { 512 };
    let launch = Launch {
        block: [128, 1, 1],
        args: vec![Arg::Ptr(input), Arg::U32(count)],
        ..Launch::default()
    };
    let options = Options {
        workers: 1,
        sanitize,
        ..Options::default()
    };
    // The tile of a warpgroup, or of its four warps.
    let products = u64::from(4 * count * 64 * n * k);
    let bencher = bencher.counter(ItemsCount::new(products));
    bencher.bench_local(|| {
        let report = run(&module, "k", &launch, &mut memory, &options).expect("a possible launch");
        assert!(report.is_clean(), "{}", report.findings[0]);
        report
    });
}
