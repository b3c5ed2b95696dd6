//! Kernels whose blocks reach each other's shared memory.

use layout_core::{Layout, Swizzle, Swizzled};

use super::{Given, none_is_refuted, numbers, subject};
use crate::ir::{Axis, Cmp, Element, Kernel};
use crate::prove::mutants::Subject;
use crate::value::{F32, Predicate};
use crate::view::ViewError;

/// y = the sums of x over the four blocks of a cluster, 32 elements a block: an element a thread, of which warp r takes part r of each block's tile of 128. Parts are read of the other
/// blocks, or sent to them.
fn sums(sends: bool) -> Result<Kernel, ViewError> {
    let (blocks, threads) = (4, 128);
    let mut k = Kernel::new("cluster_sums", threads as u32);
    k.clusters([blocks as u32, 1, 1]);
    let n = k.size("n", 1 << 20);
    let (x, y) = (
        k.input("x", Element::F32, &[n]),
        k.output("y", Element::F32, &[n]),
    );
    let block = k.tiles(Axis::X, n, 32)?;
    let (rank, thread) = (k.cluster_rank(Axis::X)?, k.thread());
    let tile = Swizzled::new(Swizzle::IDENTITY, 0, Layout::flat(&[4, 32], &[32, 1])?)?;
    let parts = k.shared("parts", Element::F32, &tile)?;
    let (warp, lane) = (k.warp(), k.lane());
    // Thread t has element t mod 32 of the block of rank t div 32, times the own rank.
    let at = k.linear(&[(32, block), (-32, rank), (1, thread)], 0);
    let own: F32 = x.load(&mut k, &[at])?;
    let factor = crate::value::U32::index(&mut k, rank).to_f32(&mut k);
    let own = own.mul(&mut k, factor);
    let sum = k.variable(F32::from(0.0));
    let more = |k: &mut Kernel, other: F32| {
        let next = sum.get(k).add(k, other);
        sum.set(k, next);
    };
    let row = k.constant(32);
    let some = Predicate::of(&mut k, thread, Cmp::Lt, row);
    if sends {
        k.cluster_barrier();
        parts
            .in_block(&mut k, warp)?
            .store(&mut k, &[rank, lane], own)?;
        k.cluster_barrier();
    } else {
        parts.store(&mut k, &[warp, lane], own)?;
        k.cluster_barrier();
    }
    k.when(some, |k| {
        (0..blocks).try_for_each(|other| {
            let other = k.constant(other);
            let part = if sends {
                parts.load(k, &[other, thread])?
            } else {
                parts.in_block(k, other)?.load(k, &[rank, thread])?
            };
            more(k, part);
            Ok::<_, ViewError>(())
        })
    })?;
    if !sends {
        k.cluster_barrier();
    }
    let at = k.linear(&[(32, block), (1, thread)], 0);
    k.when(some, |k| {
        let sum = sum.get(k);
        y.store(k, &[at], sum)
    })?;
    Ok(k)
}

fn summed(sends: bool) -> Subject {
    let launches = [256, 100].map(|n| {
        let x = numbers(n, 1);
        // 0 + 1 + 2 + 3 times each element.
        let y = x.iter().map(|x| 6 * x).collect();
        let given = Given {
            sizes: vec![("n", n)],
            inputs: vec![("x", x)],
        };
        (given, y, Element::F32)
    });
    let name = if sends { "sent" } else { "read" };
    subject(
        &format!("parts of a cluster, {name}"),
        sums(sends),
        launches.into(),
    )
}

#[test]
fn mutants_of_distributed_shared_memory() {
    none_is_refuted(vec![summed(false), summed(true)], 40, 100);
}
