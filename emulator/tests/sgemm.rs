//! Whole kernels: single-precision matrix products, naive and tiled, checked against f32 sums in the same order.

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
