//! Distributed shared memory: tiles of other blocks of the cluster are read and written, and what a stranger gets wrong.

use tilewright::codegen::Proven;
use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Cmp, Element, Kernel};
use tilewright::codegen::prove::ProofError;
use tilewright::codegen::value::{F32, Predicate, Variable};
use tilewright::codegen::view::{Combine, View, ViewError};
use tilewright::host::{Arg, On, run};
use tilewright::{IntTuple, Operand, TiledCopy, TiledMma, atoms};

use super::hopper::HOPPER;
use super::{Done, Result, layout, swizzled};

/// Rows that a block has sums of.
const ROWS: i64 = 32;

/// y[row] = the sum of a row of x, whose columns the blocks of a cluster share: thread t of each sums its columns of row t of the cluster's.
struct RowSums {
    blocks: i64,
    y: View,
    block: Expr,
    rank: Expr,
    thread: Expr,
    /// This block's part of the sum of row t of the cluster.
    part: Variable<f32>,
    /// The sum of row t of the block.
    sum: Variable<f32>,
}

impl RowSums {
    fn new(k: &mut Kernel, blocks: i64) -> Result<Self> {
        if blocks > 1 {
            k.clusters([blocks as u32, 1, 1]);
        }
        let (rows, cols) = (k.size("rows", 1 << 15), k.size("cols", 1 << 15));
        let x = k.input("x", Element::F32, &[rows, cols]);
        let y = k.output("y", Element::F32, &[rows]);
        let block = k.tiles(Axis::X, rows, ROWS)?;
        let (rank, thread) = (k.cluster_rank(Axis::X)?, k.thread());
        let row = k.linear(&[(ROWS, block), (-ROWS, rank), (1, thread)], 0);
        let part = k.variable(F32::from(0.0));
        let sum = k.variable(F32::from(0.0));
        let steps = k.tiles_in(cols, blocks)?;
        k.for_loop("columns", 0, 1, steps, |k, i| {
            let column = k.linear(&[(blocks, i), (1, rank)], 0);
            let x: F32 = x.load(k, &[row, column])?;
            let next = part.get(k).add(k, x);
            part.set(k, next);
            Done::Ok(())
        })?;
        Ok(Self {
            blocks,
            y,
            block,
            rank,
            thread,
            part,
            sum,
        })
    }

    fn kernel(blocks: i64) -> Kernel {
        Kernel::new("row_sums", (ROWS * blocks) as u32)
    }

    /// Each thread's part in a tile of the block's own.
    fn parts(&self, k: &mut Kernel) -> Result<View> {
        let shape = format!("{}:1", ROWS * self.blocks);
        Ok(k.shared("parts", Element::F32, &swizzled(&shape))?)
    }

    fn put(&self, k: &mut Kernel, parts: &View) -> Done {
        let part = self.part.get(k);
        parts.store(k, &[self.thread], part)
    }

    /// Does something with the first threads.
    fn first(&self, k: &mut Kernel, body: impl FnOnce(&mut Kernel) -> Done) -> Done {
        let rows = k.constant(ROWS);
        let some = Predicate::of(k, self.thread, Cmp::Lt, rows);
        k.when(some, body)
    }

    fn more(&self, k: &mut Kernel, other: F32) {
        let next = self.sum.get(k).add(k, other);
        self.sum.set(k, next);
    }

    /// The sums of the block's rows: the parts that the blocks of ranks 0 to `blocks` have of them.
    fn take(&self, k: &mut Kernel, parts: &View, blocks: i64) -> Done {
        let at = k.linear(&[(ROWS, self.rank), (1, self.thread)], 0);
        self.first(k, |k| {
            (0..blocks).try_for_each(|rank| {
                let rank = k.constant(rank);
                let other = parts.in_block(k, rank)?.load(k, &[at])?;
                self.more(k, other);
                Ok(())
            })
        })
    }

    fn store(&self, k: &mut Kernel) -> Done {
        let row = k.linear(&[(ROWS, self.block), (1, self.thread)], 0);
        self.first(k, |k| {
            let sum = self.sum.get(k);
            self.y.store(k, &[row], sum)
        })
    }
}

/// Each block reads the others' parts of its rows.
fn pulled(blocks: i64) -> Result<Proven> {
    let mut k = RowSums::kernel(blocks);
    let sums = RowSums::new(&mut k, blocks)?;
    let parts = sums.parts(&mut k)?;
    sums.put(&mut k, &parts)?;
    k.cluster_barrier();
    sums.take(&mut k, &parts, blocks)?;
    k.cluster_barrier();
    sums.store(&mut k)?;
    Ok(k.build(HOPPER)?)
}

/// Each block sends its parts to the blocks whose rows they are of: part r of a block comes from the block of rank r.
fn pushed(blocks: i64) -> Result<Proven> {
    let mut k = RowSums::kernel(blocks);
    let sums = RowSums::new(&mut k, blocks)?;
    let shape = format!("({blocks},{ROWS}):({ROWS},1)");
    let parts = k.shared("parts", Element::F32, &swizzled(&shape))?;
    k.cluster_barrier();
    send(&mut k, &sums, &parts)?;
    k.cluster_barrier();
    received(&mut k, &sums, &parts)?;
    sums.store(&mut k)?;
    Ok(k.build(HOPPER)?)
}

fn send(k: &mut Kernel, sums: &RowSums, parts: &View) -> Done {
    // Warp w has the rows of the block of rank w.
    let (of, row) = (k.warp(), k.lane());
    let part = sums.part.get(k);
    parts.in_block(k, of)?.store(k, &[sums.rank, row], part)
}

fn received(k: &mut Kernel, sums: &RowSums, parts: &View) -> Done {
    sums.first(k, |k| {
        (0..sums.blocks).try_for_each(|rank| {
            let rank = k.constant(rank);
            let other = parts.load(k, &[rank, sums.thread])?;
            sums.more(k, other);
            Ok(())
        })
    })
}

fn right(kernel: &Proven) -> Result {
    for (rows, cols) in [(64, 64), (70, 33), (1, 500), (300, 5), (31, 0)] {
        let x: Vec<f32> = (0..rows * cols)
            .map(|i| ((i * 7 + i / 13) % 9) as f32 - 4.0)
            .collect();
        let args = [
            ("rows", Arg::from(rows as u32)),
            ("cols", Arg::from(cols as u32)),
            ("x", Arg::input(&x)),
            ("y", Arg::output::<f32>(rows)),
        ];
        let outcome = run(kernel, On::Emulator, args)?;
        outcome.assert_clean();
        let y: Vec<f32> = outcome.get("y")?;
        for (row, y) in y.iter().enumerate() {
            let sum = x[row * cols..][..cols].iter().fold(0.0, |sum, x| sum + x);
            assert_eq!(y.to_bits(), f32::to_bits(sum), "{rows} x {cols}, row {row}");
        }
    }
    Ok(())
}

#[test]
fn rows_are_summed_by_clusters() -> Result {
    for blocks in [2, 4, 8] {
        for kernel in [pulled(blocks)?, pushed(blocks)?] {
            assert_eq!(kernel.proof.covered, ["y"]);
            super::natural::assembles(&kernel, HOPPER);
            right(&kernel)?;
        }
    }
    Ok(())
}

/// A loop over the ranks, in fragments.
#[test]
fn ranks_may_be_counted_by_a_loop() -> Result {
    let mut k = RowSums::kernel(4);
    let sums = RowSums::new(&mut k, 4)?;
    let parts = sums.parts(&mut k)?;
    sums.put(&mut k, &parts)?;
    k.cluster_barrier();
    let (blocks, at) = (
        k.constant(4),
        k.linear(&[(ROWS, sums.rank), (1, sums.thread)], 0),
    );
    sums.first(&mut k, |k| {
        k.for_loop("ranks", 0, 1, blocks, |k, rank| {
            let other = parts.in_block(k, rank)?.load(k, &[at])?;
            sums.more(k, other);
            Done::Ok(())
        })
    })?;
    k.cluster_barrier();
    sums.store(&mut k)?;
    right(&k.build(HOPPER)?)
}

/// What is said of row sums with two blocks, where `between` stands for what is between the sums and their store.
fn refused(between: impl FnOnce(&mut Kernel, &RowSums, &View) -> Done, said: &str) {
    let built = || -> Result<std::result::Result<Proven, ProofError>> {
        let mut k = RowSums::kernel(2);
        let sums = RowSums::new(&mut k, 2)?;
        let parts = sums.parts(&mut k)?;
        between(&mut k, &sums, &parts)?;
        sums.store(&mut k)?;
        Ok(k.build(HOPPER))
    };
    let error = built().expect("it is built").expect_err(said);
    let error = super::without_lines(&error);
    assert!(error.contains(said), "{error}\n{said}");
}

#[test]
fn misuse_is_refused() {
    // No barrier before others read.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            k.barrier();
            sums.take(k, parts, 2)?;
            k.cluster_barrier();
            Ok(())
        },
        "read parts in another block, which may not have begun, or written it",
    );
    refused(
        |k, sums, parts| {
            k.cluster_barrier();
            sums.put(k, parts)?;
            k.barrier();
            sums.take(k, parts, 2)?;
            k.cluster_barrier();
            Ok(())
        },
        "read parts in another block and write parts, with no barrier of the cluster",
    );
    // None before the end.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            k.cluster_barrier();
            sums.take(k, parts, 2)
        },
        "which may have ended",
    );
    // A block of three.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            k.cluster_barrier();
            sums.take(k, parts, 3)?;
            k.cluster_barrier();
            Ok(())
        },
        "whose rank is not known to be one of the 2 of a cluster",
    );
    // Written again while others may read.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            k.cluster_barrier();
            sums.take(k, parts, 2)?;
            k.barrier();
            sums.put(k, parts)?;
            k.cluster_barrier();
            Ok(())
        },
        "with no barrier of the cluster",
    );
    // Nobody has written it.
    refused(
        |k, sums, parts| {
            k.cluster_barrier();
            sums.take(k, parts, 2)?;
            k.cluster_barrier();
            Ok(())
        },
        "nothing has written it",
    );
    // One block alone has written it.
    refused(
        |k, sums, parts| {
            let zero = k.constant(0);
            let first = Predicate::of(k, sums.rank, Cmp::Eq, zero);
            k.when(first, |k| sums.put(k, parts))?;
            k.cluster_barrier();
            sums.take(k, parts, 2)?;
            k.cluster_barrier();
            Ok(())
        },
        "in a branch or a loop, which blocks may take differently",
    );
    // A copy that arrives in one block before the barrier, in another behind it.
    refused(
        |k, sums, parts| {
            let n = k.size("n", 1 << 15);
            let z = k
                .input("z", Element::F32, &[n])
                .tile(k, &[64], &[sums.block])?;
            let (four, all) = (atoms::CP_ASYNC_4.recast(32)?, layout("(64,1):(1,0)"));
            let copy = TiledCopy::from_tv(four, all, IntTuple::int(64))?;
            let from = z.partition_s(k, &copy, sums.thread)?;
            let to = parts.partition_d(k, &copy, sums.thread)?;
            k.copy(&from, &to)?;
            k.commit_group();
            k.cluster_barrier();
            k.wait_group(0);
            k.barrier();
            sums.take(k, parts, 2)?;
            k.cluster_barrier();
            Ok(())
        },
        "by an asynchronous copy",
    );
    // A barrier that one block leaves out.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            let zero = k.constant(0);
            let first = Predicate::of(k, sums.rank, Cmp::Eq, zero);
            k.when(first, |k| {
                k.cluster_barrier();
                Done::Ok(())
            })?;
            k.cluster_barrier();
            Ok(())
        },
        "a barrier of the cluster",
    );
}

#[test]
fn misuse_of_stores_is_refused() {
    // Two blocks write one element of a third.
    refused(
        |k, sums, parts| {
            let zero = k.constant(0);
            k.cluster_barrier();
            let part = sums.part.get(k);
            parts.in_block(k, zero)?.store(k, &[sums.thread], part)?;
            k.cluster_barrier();
            Ok(())
        },
        "thread 0 of rank 0 and thread 0 of rank 1 both write byte 0 of the block of rank 0",
    );
    // Two threads of one block.
    refused(
        |k, sums, parts| {
            let (zero, warp) = (k.constant(0), k.warp());
            k.cluster_barrier();
            let part = sums.part.get(k);
            let at = k.linear(&[(2, sums.rank), (1, warp)], 0);
            parts.in_block(k, zero)?.store(k, &[at], part)?;
            k.cluster_barrier();
            Ok(())
        },
        "thread 0 of rank 0 and thread 1 of rank 0 both write",
    );
    // What only the block of rank 0 was sent, all read.
    refused(
        |k, sums, parts| {
            let zero = k.constant(0);
            k.cluster_barrier();
            let part = sums.part.get(k);
            let at = k.linear(&[(ROWS, sums.rank), (1, sums.thread)], 0);
            sums.first(k, |k| parts.in_block(k, zero)?.store(k, &[at], part))?;
            k.cluster_barrier();
            let own: F32 = parts.load(k, &[sums.thread])?;
            sums.more(k, own);
            Ok(())
        },
        "nothing has written it",
    );
    // Read by its own block in the same phase.
    refused(
        |k, sums, parts| {
            sums.put(k, parts)?;
            k.cluster_barrier();
            let own: F32 = parts.load(k, &[sums.thread])?;
            let one = k.constant(1);
            let other = k.linear(&[(-1, sums.rank), (1, one)], 0);
            parts.in_block(k, other)?.store(k, &[sums.thread], own)?;
            k.cluster_barrier();
            Ok(())
        },
        "write parts in another block and read parts",
    );
    // Sent before the other block is known to have begun.
    refused(
        |k, sums, parts| {
            let part = sums.part.get(k);
            parts
                .in_block(k, sums.rank)?
                .store(k, &[sums.thread], part)?;
            k.cluster_barrier();
            Ok(())
        },
        "which may not have begun",
    );
    // Sent under a condition of the block's.
    refused(
        |k, sums, parts| {
            k.cluster_barrier();
            let zero = k.constant(0);
            let first = Predicate::of(k, sums.rank, Cmp::Eq, zero);
            let part = sums.part.get(k);
            k.when(first, |k| {
                parts.in_block(k, sums.rank)?.store(k, &[sums.thread], part)
            })?;
            k.cluster_barrier();
            Ok(())
        },
        "in a branch or a loop, which blocks may take differently",
    );
}

#[test]
fn views_that_other_blocks_do_not_have_are_told() -> Result {
    let mut k = Kernel::new("k", 32);
    let tile = k.shared("tile", Element::F32, &swizzled("32:1"))?;
    let zero = k.constant(0);
    let error = tile.in_block(&mut k, zero).expect_err("no clusters");
    assert_eq!(
        error.to_string(),
        "`tile` is not seen in another block: the kernel has no clusters (`Kernel::clusters`)"
    );
    let mut k = Kernel::new("k", 32);
    k.clusters([2, 1, 1]);
    k.cluster_rank(Axis::X)?;
    let error = k.build(HOPPER).expect_err("an axis that counts nothing");
    let error = error.to_string();
    assert!(error.contains("the rank of a block along x"), "{error}");
    let mut k = Kernel::new("k", 32);
    k.clusters([2, 1, 1]);
    let n = k.size("n", 1 << 10);
    let x = k.input("x", Element::F32, &[n]);
    let zero = k.constant(0);
    let error = x.in_block(&mut k, zero).expect_err("global");
    assert!(error.to_string().contains("it is in global memory"));
    let tile = k.shared("tile", Element::F16, &swizzled("(16,16):(16,1)"))?;
    let counts = k.shared("counts", Element::F32, &swizzled("32:1"))?;
    let (lane, there) = (k.lane(), tile.in_block(&mut k, zero)?);
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &layout("(1,1,1):(0,0,0)"))?;
    let read = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
    let error = there
        .partition_s(&mut k, &read, lane)
        .expect_err("ldmatrix");
    assert!(matches!(error, ViewError::OutOfReach { .. }), "{error}");
    let there = counts.in_block(&mut k, zero)?;
    let error = there.atomic(&mut k, &[lane], Combine::Add, F32::from(1.0));
    let error = error.expect_err("atomic").to_string();
    assert!(
        error.starts_with("an atomic operation reaches the block's own"),
        "{error}"
    );
    Ok(())
}
