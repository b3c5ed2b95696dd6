//! Functions of values and fragments on the emulator: arithmetic, maps, broadcasts, reductions and changes of the register layout, each against
//! the same computed on the host.

#![allow(clippy::float_cmp)] // What is compared is exact.

mod arithmetic;
mod made;
mod reductions;
mod relayouts;

use std::error::Error;

use tilewright::Layout;
use tilewright::codegen::ir::{Axis, Element, Kernel};
use tilewright::codegen::view::{Fragment, ViewError};
use tilewright::codegen::{Arch, Proven};
use tilewright::host::{Arg, On, run};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// A kernel with one tile of `rows × cols` f32, shared out by `tv` in a block: y is what `f` makes of x; it has the extents of what `f` returns.
fn kernel(
    [rows, cols]: [i64; 2],
    threads: u32,
    tv: &Layout,
    grid: bool,
    f: impl FnOnce(&mut Kernel, Fragment) -> std::result::Result<Fragment, ViewError>,
) -> Result<Proven> {
    let mut k = Kernel::new("f", threads);
    // Tiles of rows along the grid; what is reduced over the rows is of one tile.
    let (size, n) = (k.size("m", 1 << 20), k.constant(cols));
    let m = if grid { size } else { k.constant(rows) };
    let x = k.input("x", Element::F32, &[m, n]);
    let (zero, thread) = (k.constant(0), k.thread());
    let i = if grid {
        k.tiles(Axis::X, m, rows)?
    } else {
        zero
    };
    let share = x
        .tile(&mut k, &[rows, cols], &[i, zero])?
        .partition(&mut k, tv, thread)?;
    let x = k.load_fragment(&share)?;
    let made = f(&mut k, x)?;
    if made.shape() == [rows, cols] {
        let y = k.output("y", Element::F32, &[m, n]);
        let y = y
            .tile(&mut k, &[rows, cols], &[i, zero])?
            .partition(&mut k, tv, thread)?;
        k.store_fragment(&y, &made)?;
    } else if made.shape() == [rows, 1] {
        let y = k.output("y", Element::F32, &[m]);
        let y = y.tile(&mut k, &[rows], &[i])?;
        let y = share.along(&mut k, 0, &y)?;
        k.store_fragment(&y, &made)?;
    } else {
        let y = k.output("y", Element::F32, &[n]);
        let y = y.tile(&mut k, &[cols], &[zero])?;
        let y = share.along(&mut k, 1, &y)?;
        k.store_fragment(&y, &made)?;
    }
    Ok(k.build(Arch(80))?)
}

/// y of a kernel for m rows, the emulator clean and the accesses counted as proven.
fn computed(kernel: &Proven, m: usize, x: &[f32], n: usize) -> Result<Vec<f32>> {
    let outcome = run(
        kernel,
        On::Emulator,
        [
            ("m", Arg::from(m as u32)),
            ("x", Arg::input(x)),
            ("y", Arg::output::<f32>(n)),
        ],
    )?;
    outcome.assert_clean();
    outcome.assert_counted_as_proven();
    Ok(outcome.get("y")?)
}

/// Small whole numbers, whose sums are exact.
fn numbers(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 7919 + 13) % 101) as f32 - 50.0)
        .collect()
}
