//! A matrix product of one's own on the tensor cores: c ← a·b for row-major f16 matrices of any size, sums in f32.
//!
//! ```text
//! a: m × k, tile (i, t) ──cp.async──▶ shared 128 × 32 ──ldmatrix──▶ fragments of 4 x 2 warps ──┐
//! b: k × n, tile (t, j) ──cp.async──▶ shared 32 × 128 ──ldmatrix.trans──▶ fragments ──────────┴▶ mma.sync ──▶ c: m × n, tile (i, j)
//! ```
//!
//! Three stages: while one is multiplied, the others are filled; the pipeline counts the waits and places the barriers. The layouts of the
//! shared tiles are derived from the two instructions that touch them. Every guard comes from the extents of the views: tiles beyond a or b are filled with zeros, and nothing outside of c is stored.
//!
//! `cargo run --release --example gemm_tile -- 1000 700 300`

use std::error::Error;

use half::f16;
use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::Element;
use tilewright::codegen::ir::{Axis, Kernel};
use tilewright::codegen::pipeline::Staged;
use tilewright::codegen::view::Use;
use tilewright::host::{Arg, On, Outcome, run};
use tilewright::{Layout, Operand, TiledCopy, TiledMma, atoms};

/// The largest extent of a matrix: addresses are proven not to overflow up to here.
const MOST: i64 = 1 << 30;

/// The kernel.
pub(crate) fn gemm(arch: Arch) -> Result<Proven, Box<dyn Error>> {
    let (tm, tn, tk) = (128, 128, 32);
    let mut k = Kernel::new("gemm_tile", 256);
    let (m, n, depth) = (k.size("m", MOST), k.size("n", MOST), k.size("k", MOST));
    let a = k.input("a", Element::F16, &[m, depth]);
    let b = k.input("b", Element::F16, &[depth, n]);
    let c = k.output("c", Element::F16, &[m, n]);
    let (i, j) = (k.tiles(Axis::X, m, tm)?, k.tiles(Axis::Y, n, tn)?);
    let thread = k.thread();

    // 4 x 2 warps, each with 32 x 64 of c; two atoms of B side by side, which is one ldmatrix.
    let tile = [
        Layout::mode(64, 1)?,
        Layout::mode(32, 1)?,
        Layout::mode(16, 1)?,
    ];
    let mma = TiledMma::with_tile(
        atoms::MMA_M16N8K16_F16,
        &Layout::parse("(4,2,1):(1,4,0)")?,
        &tile,
    )?;
    let read_a = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let read_b = TiledCopy::for_operand(atoms::LDMATRIX_X4_TRANS, &mma, Operand::B)?;
    // Eight halves of a row a thread: 64 rows of 32, and 16 rows of 128.
    let (eight, vector) = (
        atoms::CP_ASYNC_16.recast(16)?,
        Layout::parse("(1,8):(0,1)")?,
    );
    let write_a = TiledCopy::new(eight, &Layout::parse("(64,4):(4,1)")?, &vector)?;
    let write_b = TiledCopy::new(eight, &Layout::parse("(16,16):(16,1)")?, &vector)?;

    let uses_a = [Use::target(&write_a), Use::source(&read_a)];
    let uses_b = [Use::target(&write_b), Use::source(&read_b).transposed()];
    let tiles = [
        Staged::new("tile_a", Element::F16, [tm, tk], &uses_a),
        Staged::new("tile_b", Element::F16, [tk, tn], &uses_b),
    ];
    let ring = k.ring(3, tiles, |k, [to_a, to_b], t| {
        let from = a
            .tile(k, &[tm, tk], &[i, t])?
            .partition_s(k, &write_a, thread)?;
        let to = to_a.partition_d(k, &write_a, thread)?;
        k.copy(&from, &to)?;
        let from = b
            .tile(k, &[tk, tn], &[t, j])?
            .partition_s(k, &write_b, thread)?;
        let to = to_b.partition_d(k, &write_b, thread)?;
        k.copy(&from, &to)
    })?;

    let sums = k.accumulators(&mma, [tm, tn], thread)?;
    let steps = k.tiles_in(depth, tk)?;
    k.pipeline(&[&ring], steps, |k, step| {
        let [x, y] = step.arrived(k, &ring)?;
        let x = x.partition_s(k, &read_a, thread)?;
        let y = y.transposed().partition_s(k, &read_b, thread)?;
        let (x, y) = (k.load_fragment(&x)?, k.load_fragment(&y)?);
        k.gemm(&mma, &x, &y, &sums)
    })?;

    let sums = k.convert_fragment(&sums, Element::F16)?;
    let c = c
        .tile(&mut k, &[tm, tn], &[i, j])?
        .partition_c(&mut k, &mma, thread)?;
    k.store_fragment(&c.vectors(&k, 2)?, &sums)?;
    Ok(k.build(arch)?)
}

/// c of the kernel, on the emulator, and what it found.
pub(crate) fn product(
    kernel: &Proven,
    [m, n, k]: [usize; 3],
    a: &[f16],
    b: &[f16],
) -> Result<(Outcome, Vec<f16>), Box<dyn Error>> {
    let outcome = run(
        kernel,
        On::Emulator,
        [
            ("m", Arg::from(m as u32)),
            ("n", Arg::from(n as u32)),
            ("k", Arg::from(k as u32)),
            ("a", Arg::input(a)),
            ("b", Arg::input(b)),
            ("c", Arg::output::<f16>(m * n)),
        ],
    )?;
    let c = outcome.get("c")?;
    Ok((outcome, c))
}

/// The largest error of c, in units of what rounding allows: half a unit in the last place of the result, and of each sum in f32.
pub(crate) fn error([m, n, k]: [usize; 3], a: &[f16], b: &[f16], c: &[f16]) -> f64 {
    let mut worst = 0.0f64;
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|t| a[i * k + t].to_f64() * b[t * n + j].to_f64());
            let (sum, size) = terms.fold((0.0, 0.0), |(s, z), x| (s + x, z + x.abs()));
            let allowed = f64::powi(0.5, 11) * sum.abs()
                + f64::powi(0.5, 25)
                + f64::powi(0.5, 22) * k as f64 * size;
            worst = worst.max((c[i * n + j].to_f64() - sum).abs() / allowed);
        }
    }
    worst
}

/// Numbers between -1 and 1 of a seed.
pub(crate) fn numbers(seed: u64, n: usize) -> Vec<f16> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f16::from_f64((state >> 40) as f64 / f64::from(1 << 23) - 1.0)
    };
    (0..n).map(|_| next()).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut sizes = [200, 150, 100];
    for (size, argument) in sizes.iter_mut().zip(std::env::args().skip(1)) {
        *size = argument
            .parse()
            .map_err(|e| format!("`{argument}` is no size: {e}"))?;
    }
    let [m, n, k] = sizes;
    let kernel = gemm(Arch(80))?;
    for a in kernel.accesses() {
        println!(
            "{} ({}): {} wavefronts, {} ideal",
            a.access, a.op, a.wavefronts, a.ideal
        );
    }
    let (a, b) = (numbers(1, m * k), numbers(2, k * n));
    let (outcome, c) = product(&kernel, sizes, &a, &b)?;
    outcome.assert_clean();
    let error = error(sizes, &a, &b, &c);
    println!("{m} x {n} x {k}: error {error:.2} of what rounding allows");
    if error > 1.0 {
        return Err("wrong".into());
    }
    Ok(())
}
