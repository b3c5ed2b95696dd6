//! Vectors in the stages of a ring over TMA, which threads read into registers.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Staged, Stages, WarpRole};
use tilewright::codegen::view::ViewError;
use tilewright::host::Arg;
use tilewright::{TiledMma, atoms};

use super::natural::{numbers, ran};
use super::{Result, layout};

/// What is wrong with a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wrong {
    Nothing,
    /// The ring is that of a cluster, in which other blocks are told that a stage is released.
    OfTheCluster,
    /// A stage is read behind its release.
    ReadBehind,
    /// A stage is read that nothing was waited for.
    NotWaited,
    /// A stage is not released.
    Kept,
    /// A box begins inside of 16 bytes of a row.
    Inside16Bytes,
}

/// y[j] = Σ over the rows i of x[i, j]: a block has 128 columns, and a stage 128 elements of a row.
fn sums(wrong: Wrong, cluster: u32) -> Result<Kernel> {
    let mut k = Kernel::new("sums", 256);
    if cluster > 1 {
        k.clusters([cluster, 1, 1]);
    }
    let [rows, columns] = ["rows", "columns"].map(|name| k.size(name, 1 << 20));
    let pitch = k.size("pitch", 1 << 20);
    let x = k.pitched_input("x", Element::F32, [rows, columns], pitch);
    let y = k.output("y", Element::F32, &[columns]);
    let stages = Stages::new(3);
    let stages = match wrong {
        Wrong::OfTheCluster => stages,
        _ => stages.per_block(),
    };
    let ring = k.tma_ring(stages, [Staged::new("row", Element::F32, [1, 128], &[])])?;
    let two = k.constant(2);
    let (j, zero, one) = (
        k.tiles(Axis::X, columns, 128)?,
        k.constant(0),
        layout("(128,1):(1,0)"),
    );
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        let y = y.tile(k, &[128], &[j])?.partition(k, &one, thread)?;
        let sums = k.fragment_of(&y, 0.0)?;
        k.for_loop("rows", 0, 1, rows, |k, i| {
            let at = match wrong {
                Wrong::NotWaited => zero,
                _ => i,
            };
            let [row] = k.arrived(&ring, at, at)?;
            if wrong == Wrong::ReadBehind {
                k.release(&ring, i)?;
            }
            let row = row.slice(k, &[zero])?.tile(k, &[128], &[zero])?;
            let row = row.partition(k, &one, thread)?;
            let row = k.load_fragment(&row)?;
            sums.update_with(k, &row, |k, sum, x| sum.add(k, x))?;
            if !matches!(wrong, Wrong::ReadBehind | Wrong::Kept) {
                k.release(&ring, i)?;
            }
            Ok::<(), ViewError>(())
        })?;
        k.store_fragment(&y, &sums)
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        k.produce(&ring, zero, rows, |k, [to], i| {
            let x = match wrong {
                Wrong::Inside16Bytes => x.at(k, &[zero, two])?,
                _ => x.clone(),
            };
            let from = x.tile(k, &[1, 128], &[i, j])?;
            k.tma_load(&from, &to)
        })?;
        if wrong == Wrong::OfTheCluster {
            k.drain(&ring, rows)?;
        }
        Ok::<(), ViewError>(())
    })?;
    Ok(k)
}

#[test]
fn rows_are_summed() -> Result {
    for cluster in [1, 2] {
        let kernel = sums(Wrong::Nothing, cluster)?.build(Arch(90))?;
        assert_eq!(kernel.proof.covered, ["y"]);
        for rows in [1, 2, 3, 4, 11] {
            let (columns, pitch) = (250, 252);
            let x = numbers(rows * pitch);
            let outcome = ran(
                &kernel,
                vec![
                    ("rows", Arg::from(rows as u32)),
                    ("columns", Arg::from(columns as u32)),
                    ("pitch", Arg::from(pitch as u32)),
                    ("x", Arg::input(&x)),
                    ("y", Arg::output::<f32>(columns)),
                ],
            )?;
            let expected: Vec<f32> = (0..columns)
                .map(|j| x.chunks(pitch).map(|row| row[j]).sum())
                .collect();
            let y: Vec<f32> = outcome.get("y")?;
            assert_eq!(y, expected, "{rows} rows, a cluster of {cluster}");
        }
    }
    Ok(())
}

#[test]
fn stages_that_may_be_filled_while_they_are_read_are_refused() -> Result {
    for (wrong, cluster, reason) in [
        (
            Wrong::OfTheCluster,
            2,
            "arrivals are relaxed and order no reads",
        ),
        (
            Wrong::ReadBehind,
            1,
            "a stage is read that is not known to be full",
        ),
        (
            Wrong::ReadBehind,
            2,
            "a stage is read that is not known to be full",
        ),
        (Wrong::NotWaited, 1, "row_ring"),
        (Wrong::Kept, 1, "row_ring"),
        (
            Wrong::Inside16Bytes,
            1,
            "let its innermost coordinate be a multiple of 16 bytes",
        ),
    ] {
        let error = sums(wrong, cluster)?.build(Arch(90)).map(|_| ());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(reason), "{wrong:?}: {error}");
    }
    Ok(())
}

/// A box has rows of whole 16 bytes and at most 256 elements.
#[test]
fn vectors_that_no_box_has_are_refused() {
    for width in [0, 2, 130, 260, 1 << 40] {
        let mut k = Kernel::new("k", 256);
        let tile = Staged::new("row", Element::F32, [1, width], &[]);
        let error = k.tma_ring(Stages::new(2), [tile]).map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("one row of at most 256 elements"), "{said}");
    }
}

/// c = a·bᵀ by clusters of two blocks, whose ring belongs to each block, and to which b comes from both.
#[test]
fn a_ring_per_block_gets_no_copies_of_others() -> Result {
    for shared in [false, true] {
        let mut k = Kernel::new("product", 256);
        k.clusters([2, 1, 1]);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, 1 << 20));
        let [a, b] =
            [("a", m), ("b", n)].map(|(name, rows)| k.input(name, Element::F16, &[rows, depth]));
        let c = k.output("c", Element::F32, &[m, n]);
        let (i, j, zero) = (
            k.tiles(Axis::X, m, 64)?,
            k.tiles(Axis::Y, n, 64)?,
            k.constant(0),
        );
        let atom = atoms::wgmma(64, atoms::Scalar::F16, atoms::Scalar::F32)?;
        let mma = TiledMma::new(atom, &layout("(1,1,1):(0,0,0)"))?;
        let tiles = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::F16, [64, 64], &[]));
        let ring = k.tma_ring(Stages::new(3).lag(1).per_block(), tiles)?;
        let steps = k.tiles_in(depth, 64)?;
        k.role(WarpRole::new("consumers", 4), |k, thread| {
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            k.consume(&ring, zero, steps, |k, [a, b], _| {
                k.gemm(&mma, &a, &b, &sums)
            })?;
            let c = c
                .tile(k, &[64, 64], &[i, j])?
                .partition_c(k, &mma, thread)?;
            k.store_fragment(&c, &sums)
        })?;
        k.producer(WarpRole::new("producer", 4), |k| {
            k.produce(&ring, zero, steps, |k, [to_a, to_b], step| {
                let from_a = a.tile(k, &[64, 64], &[i, step])?;
                let from_b = b.tile(k, &[64, 64], &[j, step])?;
                k.tma_load(&from_a, &to_a)?;
                if shared {
                    k.tma_multicast(&from_b, &to_b, Axis::X)
                } else {
                    k.tma_load(&from_b, &to_b)
                }
            })?;
            k.drain(&ring, steps)
        })?;
        match (shared, k.build(Arch(90))) {
            (false, built) => assert_eq!(built?.proof.covered, ["c"]),
            (true, built) => {
                let said = built.map(|_| ()).unwrap_err().to_string();
                let reason =
                    "a block copies to stages of another, which give none of them back to it";
                assert!(said.contains(reason), "{said}");
            }
        }
    }
    Ok(())
}
