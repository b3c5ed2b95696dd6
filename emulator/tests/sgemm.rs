//! Whole kernels: single-precision matrix products, naive and tiled, checked against f32 sums in the same order, and a product of
//! halves by `cp.async`, `ldmatrix` and `mma.sync`.

use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, Report, run};

/// A small deterministic generator (xorshift64*), enough to fill matrices.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32) / (1u32 << 23) as f32 - 1.0
    }

    fn matrix(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

fn upload(memory: &mut GlobalMemory, data: &[f32]) -> u64 {
    let address = memory
        .alloc(4 * data.len() as u64, 256)
        .expect("an allocation");
    let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
    memory
        .write(address, &bytes)
        .expect("a write inside the allocation");
    address
}

fn download(memory: &GlobalMemory, address: u64, n: usize) -> Vec<f32> {
    let bytes = memory
        .read(address, 4 * n)
        .expect("a read inside the allocation");
    bytes
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

fn sgemm(
    text: &str,
    kernel: &str,
    [m, n, k]: [usize; 3],
    a: &[f32],
    b: &[f32],
    grid: [u32; 3],
    block: [u32; 3],
) -> (Vec<f32>, Report) {
    let module = Module::parse(text).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let (pa, pb) = (upload(&mut memory, a), upload(&mut memory, b));
    let pc = memory
        .alloc(4 * (m * n) as u64, 256)
        .expect("an allocation");
    let args = vec![
        Arg::Ptr(pa),
        Arg::Ptr(pb),
        Arg::Ptr(pc),
        Arg::U32(m as u32),
        Arg::U32(n as u32),
        Arg::U32(k as u32),
    ];
    let launch = Launch {
        grid,
        block,
        args,
        ..Launch::default()
    };
    let options = Options {
        global_races: true,
        undefined_global: true,
        ..Options::default()
    };
    let report = run(&module, kernel, &launch, &mut memory, &options).expect("a possible launch");
    (download(&memory, pc, m * n), report)
}

#[test]
fn naive_with_ragged_edges() {
    let [m, n, k] = [19usize, 37, 23];
    let mut random = Random(1);
    let (a, b) = (random.matrix(m * k), random.matrix(k * n));
    let grid = [(n as u32).div_ceil(16), (m as u32).div_ceil(8), 1];
    let (c, report) = sgemm(
        include_str!("fixtures/sgemm_naive.ptx"),
        "sgemm_naive",
        [m, n, k],
        &a,
        &b,
        grid,
        [16, 8, 1],
    );
    assert!(report.is_clean(), "{:?}", report.findings);
    for i in 0..m {
        for j in 0..n {
            let expected = (0..k).fold(0.0f32, |s, l| a[i * k + l].mul_add(b[l * n + j], s));
            assert_eq!(
                c[i * n + j].to_bits(),
                expected.to_bits(),
                "element ({i}, {j})"
            );
        }
    }
}

#[test]
fn tiled_with_shared_memory() {
    let [m, n, k] = [128usize, 192, 40];
    let mut random = Random(2);
    let (a, b) = (random.matrix(k * m), random.matrix(k * n));
    let grid = [n as u32 / 64, m as u32 / 64, 1];
    let (c, report) = sgemm(
        include_str!("fixtures/sgemm_tiled.ptx"),
        "sgemm_tiled",
        [m, n, k],
        &a,
        &b,
        grid,
        [64, 1, 1],
    );
    assert!(report.is_clean(), "{:?}", report.findings);
    for i in 0..m {
        for j in 0..n {
            let expected = (0..k).fold(0.0f32, |s, l| a[l * m + i].mul_add(b[l * n + j], s));
            assert_eq!(
                c[i * n + j].to_bits(),
                expected.to_bits(),
                "element ({i}, {j})"
            );
        }
    }
    // Loops of fma: 64 · 8 for each step and thread.
    let fma: u64 = report
        .counters
        .instructions
        .iter()
        .filter(|i| i.opcode.starts_with("fma"))
        .map(|i| i.lanes)
        .sum();
    assert_eq!(fma, (m * n * k) as u64);
    // 4-byte words stored once each without conflict.
    for counter in report.counters.shared() {
        assert_eq!(counter.wavefronts % counter.warps, 0, "{counter:?}");
    }
}

/// Each change of the tiled kernel must be found, by the sanitizer or by the numbers.
#[test]
fn mutants_of_the_tiled_kernel_are_caught() {
    let text = include_str!("fixtures/sgemm_tiled.ptx");
    let mut mutants = Vec::new();
    // Every barrier dropped, one at a time.
    for (at, _) in text.match_indices("bar.sync        0;") {
        let mut mutant = text.to_owned();
        mutant.replace_range(at..at + "bar.sync        0;".len(), "");
        mutants.push(mutant);
    }
    let changes = [
        (
            "and.b32         %r7, %r4, 15;",
            "and.b32         %r7, %r4, 7;",
        ),
        (
            "shr.u32         %r16, %r4, 3;",
            "shr.u32         %r16, %r4, 4;",
        ),
        ("[%r14+1024]", "[%r14+1040]"),
        ("[%r14+3072]", "[%r14+3076]"),
        ("[%r14+3072]", "[%r14+4096]"),
        ("[%r18+256]", "[%r18+512]"),
        ("[%r19+2048]", "[%r19+1920]"),
        (
            "add.u32         %r20, %r20, 8;",
            "add.u32         %r20, %r20, 4;",
        ),
        (
            "setp.lt.u32     %p1, %r20, %r3;",
            "setp.le.u32     %p1, %r20, %r3;",
        ),
        (
            "mul.wide.u32    %rd12, %r2, 128;",
            "mul.wide.u32    %rd12, %r2, 124;",
        ),
        ("mov.f32         %c5, 0f00000000;", ""),
        (
            "fma.rn.f32      %c9, %a1, %b1, %c9;",
            "fma.rn.f32      %c9, %a1, %b2, %c9;",
        ),
        (".b8 tile[4096]", ".b8 tile[4092]"),
        (
            "mov.u32         %r4, %tid.x;",
            "mov.u32         %r4, %laneid;",
        ),
    ];
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        mutants.push(text.replacen(from, to, 1));
    }
    assert_eq!(mutants.len(), 16);
    let [m, n, k] = [64usize, 128, 24];
    let mut random = Random(3);
    let (a, b) = (random.matrix(k * m), random.matrix(k * n));
    let run = |text: &str| {
        sgemm(
            text,
            "sgemm_tiled",
            [m, n, k],
            &a,
            &b,
            [2, 1, 1],
            [64, 1, 1],
        )
    };
    let (good, report) = run(text);
    assert!(report.is_clean());
    for (i, mutant) in mutants.iter().enumerate() {
        let (c, report) = run(mutant);
        assert!(!report.is_clean() || c != good, "mutant {i} survived");
        if i < 2 {
            assert!(
                !report.is_clean(),
                "a dropped barrier is for the sanitizer to find, whatever the numbers"
            );
        }
    }
}

#[test]
fn halves_by_tensor_instructions() {
    let [m, n, k] = [64usize, 128, 96];
    let mut random = Random(4);
    // Eighths: every sum is exact, so the order does not matter.
    let mut eighths = |len: usize| -> Vec<f32> {
        (0..len)
            .map(|_| (random.next() * 16.0).round() / 8.0)
            .collect()
    };
    let (a, b) = (eighths(m * k), eighths(k * n));
    let module = Module::parse(include_str!("fixtures/hgemm_mma.ptx")).expect("valid PTX");
    let mut memory = GlobalMemory::new();
    let mut halves = |data: &[f32]| {
        let address = memory
            .alloc(2 * data.len() as u64, 256)
            .expect("an allocation");
        let bytes: Vec<u8> = data
            .iter()
            .flat_map(|x| half::f16::from_f32(*x).to_le_bytes())
            .collect();
        memory.write(address, &bytes).expect("a write");
        address
    };
    let (pa, pb) = (halves(&a), halves(&b));
    let pc = memory
        .alloc(4 * (m * n) as u64, 256)
        .expect("an allocation");
    let args = vec![
        Arg::Ptr(pa),
        Arg::Ptr(pb),
        Arg::Ptr(pc),
        Arg::U32(m as u32),
        Arg::U32(n as u32),
        Arg::U32(k as u32),
    ];
    let launch = Launch {
        grid: [n as u32 / 64, m as u32 / 64, 1],
        block: [128, 1, 1],
        args,
        ..Launch::default()
    };
    let report = run(&module, "hgemm", &launch, &mut memory, &Options::default())
        .expect("a possible launch");
    assert!(report.is_clean(), "{}", report.findings[0]);
    let c = download(&memory, pc, m * n);
    for i in 0..m {
        for j in 0..n {
            let expected: f32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            assert_eq!(
                c[i * n + j].to_bits(),
                expected.to_bits(),
                "element ({i}, {j})"
            );
        }
    }
    // No bank conflicts in any fragment load.
    for counter in report
        .counters
        .shared()
        .filter(|c| c.opcode.starts_with("ldmatrix"))
    {
        assert_eq!(
            (counter.min_wavefronts, counter.max_wavefronts),
            (4, 4),
            "{counter:?}"
        );
    }
}
