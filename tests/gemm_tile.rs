//! The matrix product of `examples/gemm_tile.rs`: clean, right and counted as proven over ragged sizes.

#[path = "../examples/gemm_tile.rs"]
#[allow(dead_code)]
mod example;

use std::error::Error;

use example::{error, gemm, numbers, product};
use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::Element;
use tilewright::codegen::ir::{Axis, Kernel};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::view::{Use, ViewError};
use tilewright::{Layout, Operand, TiledCopy, TiledMma, atoms};

#[test]
fn ragged_sizes_are_right_clean_and_counted_as_proven() {
    let kernel = gemm(Arch(80)).expect("proven");
    assert_eq!(kernel.proof.covered, ["c"]);
    for sizes in [
        [1, 1, 1],
        [128, 128, 32],
        [128, 128, 64],
        [129, 127, 33],
        [64, 200, 96],
        [130, 136, 40],
        [136, 130, 41],
        [257, 8, 7],
        [8, 257, 200],
        [5, 9, 0],
    ] {
        let [m, n, k] = sizes;
        let (a, b) = (numbers(1, m * k), numbers(2, k * n));
        let (outcome, c) = product(&kernel, sizes, &a, &b).expect("runs");
        outcome.assert_clean();
        if k > 0 {
            // Without a term, no stage is touched.
            outcome.assert_counted_as_proven();
        }
        let worst = error(sizes, &a, &b, &c);
        assert!(worst <= 1.0, "{sizes:?}: {worst} of what rounding allows");
    }
}

#[test]
fn the_derived_tiles_are_ideal() {
    let kernel = gemm(Arch(80)).expect("proven");
    let costs = kernel.accesses();
    assert_eq!(costs.len(), 4); // the tile of each operand, the same in every stage, is written and read
    for a in costs {
        assert_eq!(a.wavefronts, a.ideal, "{a:?}");
    }
}

/// One stage, with one of the three steps that order its copies and reads left out.
fn one_stage(left_out: Option<usize>) -> Result<Result<Proven, ProofError>, Box<dyn Error>> {
    let mut k = Kernel::new("one_stage", 32);
    let (m, depth) = (k.size("m", 1 << 20), k.size("k", 1 << 20));
    let n = k.constant(8);
    let a = k.input("a", Element::F16, &[m, depth]);
    let b = k.input("b", Element::F16, &[n, depth]);
    let c = k.output("c", Element::F32, &[m, n]);
    let (i, lane, zero) = (k.tiles(Axis::X, m, 16)?, k.lane(), k.constant(0));
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let read = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let (threads, eight) = (
        Layout::parse("(16,2):(2,1)")?,
        Layout::parse("(1,8):(0,1)")?,
    );
    let write = TiledCopy::new(atoms::CP_ASYNC_16.recast(16)?, &threads, &eight)?;
    let uses = [Use::target(&write), Use::source(&read)];
    let tile = k.shared_for("tile", Element::F16, [16, 16], &uses)?;
    let sums = k.accumulators(&mma, [16, 8], lane)?;
    k.for_loop("k0", 0, 16, depth, |k, k0| {
        let t = k.div(k0, 16);
        let from = a
            .tile(k, &[16, 16], &[i, t])?
            .partition_s(k, &write, lane)?;
        let to = tile.partition_d(k, &write, lane)?;
        k.copy(&from, &to)?;
        let y = b
            .tile(k, &[8, 16], &[zero, t])?
            .partition_b(k, &mma, lane)?;
        let y = k.load_fragment(&y)?;
        for step in (0..2).filter(|&step| left_out != Some(step)) {
            match step {
                0 => k.wait_all(),
                _ => k.barrier(),
            }
        }
        let x = tile.partition_s(k, &read, lane)?;
        let x = k.load_fragment(&x)?;
        k.gemm(&mma, &x, &y, &sums)?;
        if left_out != Some(2) {
            k.barrier();
        }
        Ok::<(), ViewError>(())
    })?;
    let c = c
        .tile(&mut k, &[16, 8], &[i, zero])?
        .partition_c(&mut k, &mma, lane)?;
    k.store_fragment(&c, &sums)?;
    Ok(k.build(Arch(80)))
}

#[test]
fn a_stage_without_its_order_is_refused() {
    assert!(one_stage(None).expect("built").is_ok());
    for (step, missing) in [
        (0, "the asynchronous copy that writes it was not waited for"),
        (1, "no barrier orders them"),
        (2, "no barrier orders them"),
    ] {
        let refused = one_stage(Some(step)).expect("built");
        let error = refused.expect_err("refused").to_string();
        assert!(error.contains("tile") && error.contains(missing), "{error}");
    }
}
