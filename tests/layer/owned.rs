//! Rows that a tile owns because data say so: `Partition::where_equal`.

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::pipeline::{Staged, Stages, TileOrder, TileScheduler, WarpRole};
use tilewright::codegen::view::{View, ViewError};
use tilewright::host::Arg;
use tilewright::{Layout, TiledMma, atoms};

use super::natural::{numbers, ran};
use super::{ARCH, Result, layout};
use tilewright::codegen::Arch;

/// What is wrong with a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Wrong {
    Nothing,
    /// Rows are stored whoever owns them.
    Unowned,
    /// The owner is that of the row behind.
    OtherRow,
    /// All blocks ask for one tile.
    OneTile,
    /// Blocks in pairs ask for one tile.
    HalfTile,
    /// Each thread asks for a tile of its own.
    OfThread,
    /// Owners are in a tensor that the kernel writes.
    Written,
    /// Some stores ask another tensor.
    TwoOwners,
    /// A second store asks nobody.
    Again,
}

/// y[r] = x[r] for the rows r that tile t owns, of the 16 from first[t] on.
fn rows(wrong: Wrong) -> Result<Kernel> {
    let mut k = Kernel::new("rows", 128);
    let [m, tiles] = ["m", "tiles"].map(|name| k.size(name, 1 << 20));
    let (cols, zero) = (k.constant(32), k.constant(0));
    let first = k.input("first", Element::S32, &[tiles]);
    let owner = match wrong {
        Wrong::Written => k.partial_output("owner", Element::S32, &[m]),
        _ => k.input("owner", Element::S32, &[m]),
    };
    let x = k.input("x", Element::F32, &[m, cols]);
    let y = k.partial_output("y", Element::F32, &[m, cols]);
    let (t, thread) = (k.tiles(Axis::X, tiles, 1)?, k.thread());
    let shares = layout("((8,16),4):((64,1),16)");
    let row = first.load::<u32>(&mut k, &[t])?.to_index(&mut k);
    let [x, y] = [&x, &y].map(|v| {
        let v = v
            .at(&mut k, &[row, zero])?
            .tile(&mut k, &[16, 32], &[zero, zero])?;
        v.partition(&mut k, &shares, thread)
    });
    let (x, y) = (x?, y?.vectors(&k, 1)?);
    let of_row = match wrong {
        Wrong::OtherRow => k.linear(&[(1, row)], 1),
        _ => row,
    };
    let owners = |k: &mut Kernel, owner: &View| owner.at(k, &[of_row])?.tile(k, &[16], &[zero]);
    let number = match wrong {
        Wrong::OneTile => zero,
        Wrong::HalfTile => k.div(t, 2),
        Wrong::OfThread => k.add(t, thread),
        _ => t,
    };
    let owned = owners(&mut k, &owner)?;
    let owned = match wrong {
        Wrong::Unowned => y.clone(),
        _ => y.where_equal(&mut k, 0, &owned, number)?,
    };
    let values = k.load_fragment(&x)?;
    k.store_fragment(&owned, &values)?;
    match wrong {
        Wrong::Written => owner.store(&mut k, &[t], tilewright::codegen::value::S32::from(0))?,
        Wrong::TwoOwners => {
            let other = k.input("other", Element::S32, &[m]);
            let others = owners(&mut k, &other)?;
            let owned = y.where_equal(&mut k, 0, &others, number)?;
            k.store_fragment(&owned, &values)?;
        }
        Wrong::Again => k.store_fragment(&y, &values)?,
        _ => {}
    }
    Ok(k)
}

#[test]
fn rows_have_one_owner() -> Result {
    let kernel = rows(Wrong::Nothing)?.build(ARCH)?;
    // Tiles of 3, 16 and 1 rows, and one whose rows another one owns; rows 20 and 21 are nobody's.
    let first = [0, 3, 19, 5, 40];
    let owner: Vec<i32> = (0..22)
        .map(|r| match r {
            0..=2 => 0,
            3..=18 => 1,
            19 => 2,
            20 => -1,
            _ => 4,
        })
        .collect();
    let x = numbers(22 * 32);
    let before = vec![-1.0_f32; 22 * 32];
    let outcome = ran(
        &kernel,
        vec![
            ("m", Arg::from(22_u32)),
            ("tiles", Arg::from(5_u32)),
            ("first", Arg::input(&first)),
            ("owner", Arg::input(&owner)),
            ("x", Arg::input(&x)),
            ("y", Arg::in_out(&before)),
        ],
    )?;
    let y: Vec<f32> = outcome.get("y")?;
    assert_eq!(y[..20 * 32], x[..20 * 32]);
    assert_eq!(y[20 * 32..], before[20 * 32..]);
    Ok(())
}

#[test]
fn rows_without_an_owner_are_refused() -> Result {
    for wrong in [
        Wrong::Unowned,
        Wrong::OtherRow,
        Wrong::OneTile,
        Wrong::HalfTile,
        Wrong::OfThread,
        Wrong::Written,
        Wrong::TwoOwners,
        Wrong::Again,
    ] {
        let error = rows(wrong)?.build(ARCH).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "shared_element", "{wrong:?}: {error}");
    }
    Ok(())
}

/// What is wrong with a grouped product.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mistake {
    None,
    /// Rows behind the end of a group are stored.
    Unowned,
    /// Rows from data are not limited to those that a coordinate of a copy can have.
    Unlimited,
    /// Roles have tiles in another order.
    OtherOrder,
    /// Roles have another number of tiles.
    OtherCount,
    /// Tiles of the schedule are narrower than those that are stored.
    Narrow,
    /// The tile that a row is to be owned by is not that of the schedule.
    OtherTile,
    /// Two roles store all columns of a tile.
    Twice,
}

/// c = a·bᵀ for the rows of tiles that begin where data say.
fn product(mistake: Mistake) -> Result<Kernel> {
    let mut k = Kernel::new("product", 256);
    let [m, n, depth] = ["m", "n", "k"].map(|name| k.size(name, 1 << 16));
    let tables = k.linear(&[(1, m)], 1);
    let [first, owner] = ["first", "owner"].map(|name| k.input(name, Element::S32, &[tables]));
    let (a, b) = (
        k.input("a", Element::Bf16, &[m, depth]),
        k.input("b", Element::Bf16, &[n, depth]),
    );
    let c = k.partial_output("c", Element::Bf16, &[m, n]);
    let atom = atoms::wgmma(64, atoms::Scalar::Bf16, atoms::Scalar::F32)?;
    let mma = TiledMma::new(atom, &Layout::parse("(1,1,1):(0,0,0)")?)?;
    let staged = ["tile_a", "tile_b"].map(|name| Staged::new(name, Element::Bf16, [64, 64], &[]));
    let ring = k.tma_ring(Stages::new(3), staged)?;
    let (zero, steps) = (k.constant(0), k.tiles_in(depth, 64)?);
    let count = |k: &mut Kernel, at: Expr| -> std::result::Result<Expr, ViewError> {
        let count = first.load::<i32>(k, &[at])?.to_index(k);
        Ok(k.clamp(count, 0, 1 << 16))
    };
    let counted = count(&mut k, m)?;
    let other = count(&mut k, zero)?;
    let scheduler = |count: Expr, order| {
        let across = if mistake == Mistake::Narrow { 48 } else { 64 };
        TileScheduler::linear([count, n], [1, across], 5, order)
    };
    let tiles = scheduler(counted, TileOrder::Groups(4));
    let of_producer = match mistake {
        Mistake::OtherOrder => scheduler(counted, TileOrder::Rows),
        Mistake::OtherCount => scheduler(other, TileOrder::Groups(4)),
        _ => tiles.clone(),
    };
    let row_of = |k: &mut Kernel, tile: Expr| -> std::result::Result<Expr, ViewError> {
        if mistake == Mistake::Unlimited {
            return Ok(first.load::<u32>(k, &[tile])?.to_index(k));
        }
        let row = first.load::<i32>(k, &[tile])?.to_index(k);
        Ok(k.clamp(row, 0, 1 << 16))
    };
    k.role(WarpRole::new("consumers", 4), |k, thread| {
        k.persistent(&tiles, |k, tile| {
            let [t, j] = tile.at();
            let before = k.mul(tile.number(), steps);
            let row = row_of(k, t)?;
            let sums = k.accumulators(&mma, [64, 64], thread)?;
            k.consume(&ring, before, steps, |k, [x, y], _| {
                k.gemm(&mma, &x, &y, &sums)
            })?;
            let sums = k.convert_fragment(&sums, Element::Bf16)?;
            let c = c.at(k, &[row, zero])?.tile(k, &[64, 64], &[zero, j])?;
            let c = c.partition_c(k, &mma, thread)?.vectors(k, 2)?;
            let owners = owner.at(k, &[row])?.tile(k, &[64], &[zero])?;
            let wanted = match mistake {
                Mistake::OtherTile => j,
                _ => t,
            };
            let owned = match mistake {
                Mistake::Unowned => c.clone(),
                _ => c.where_equal(k, 0, &owners, wanted)?,
            };
            k.store_fragment(&owned, &sums)?;
            match mistake {
                Mistake::Twice => k.store_fragment(&owned, &sums),
                _ => Ok(()),
            }
        })
    })?;
    k.producer(WarpRole::new("producer", 4), |k| {
        k.persistent(&of_producer, |k, tile| {
            let [t, j] = tile.at();
            let before = k.mul(tile.number(), steps);
            let row = row_of(k, t)?;
            let a = a.at(k, &[row, zero])?;
            k.produce(&ring, before, steps, |k, [to_a, to_b], step| {
                let from_a = a.tile(k, &[64, 64], &[zero, step])?;
                let from_b = b.tile(k, &[64, 64], &[j, step])?;
                k.tma_load(&from_a, &to_a)?;
                k.tma_load(&from_b, &to_b)
            })
        })
    })?;
    Ok(k)
}

#[test]
fn grouped_products_are_refused_by_their_mistakes() -> Result {
    product(Mistake::None)?.build(Arch(90))?;
    for (mistake, code) in [
        (Mistake::Unowned, "shared_element"),
        (Mistake::Unlimited, "address"),
        (Mistake::OtherOrder, "malformed"),
        (Mistake::OtherCount, "malformed"),
        (Mistake::Narrow, "shared_element"),
        (Mistake::OtherTile, "shared_element"),
        (Mistake::Twice, "shared_element"),
    ] {
        let built = product(mistake)?.build(Arch(90));
        let found = built.map_or_else(|e| (e.code(), e.to_string()), |_| ("proven", String::new()));
        assert_eq!(found.0, code, "{mistake:?}: {}", found.1);
    }
    Ok(())
}
