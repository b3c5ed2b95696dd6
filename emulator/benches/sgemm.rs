//! Lane-instructions a second on one core, with and without the sanitizer: a 256³ single-precision matrix product; and the time of a
//! 512³ product of halves by `mma.sync`; and kernels that a compiler made (`corpus/`), with grids large enough to measure.
//!
//! Divan counts items; an item is one lane executing one instruction, and for `mma.sync` one multiply-add.

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
