//! Typed views whose elements, spaces and shapes meet.

use tilewright::codegen::ir::Kernel;
use tilewright::codegen::view::ViewError;
use tilewright::codegen::view::types::{Extents, Global, Registers, Shared, TypedPartition, TypedView};
use tilewright::space::{F16, F32};
use tilewright::typed::{C, Compose, Layout, Swizzle};
use tilewright::{TiledCopy, TiledMma};

type Tile = (C<64>, C<32>);
type Rows = Compose<Swizzle<2, 3, 3>, Layout<Tile, (C<32>, C<1>)>>;

fn through_shared(
    k: &mut Kernel,
    x: &TypedPartition<F16, Global, Tile>,
    tile: &TypedPartition<F16, Shared, Tile>,
    y: &TypedPartition<F16, Global, Tile>,
) -> Result<(), ViewError> {
    x.copy_async_to(k, tile)?;
    tile.copy_to(k, y)
}

fn multiply(
    k: &mut Kernel,
    (mma, copy): (&TiledMma, &TiledCopy),
    (a, b): (&TypedView<F16, Shared, Rows>, &TypedView<F16, Shared, Rows>),
    sums: &TypedView<F32, Registers, Extents<(C<64>, C<64>)>>,
) -> Result<(), ViewError> {
    let thread = k.thread();
    let a = a.load_matrices(k, copy, thread)?;
    let b = b.partition_b(k, mma, thread)?.load(k)?;
    sums.add_product(k, mma, &a, &b)
}

fn main() {
    let _ = (through_shared, multiply);
}
