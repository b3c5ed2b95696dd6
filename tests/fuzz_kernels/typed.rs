//! Views whose elements, spaces and layouts are types: ways through them, with types that a program chooses from.

use tilewright::codegen::index::Expr;
use tilewright::codegen::ir::{Element, Kernel};
use tilewright::codegen::view::types::{E4m3, S8, TileLayout, ViewElement};
use tilewright::codegen::view::{View, ViewError};
use tilewright::space::{Bf16, F16, F32};
use tilewright::typed::{C, Compose, Layout, StaticLayout, Swizzle};
use tilewright::{Layout as Plain, Operand, TiledCopy, TiledMma, atoms};

use crate::generate::Maker;
use crate::program::{Ix, Stmt};

/// What is done with a tile of 16x16.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Typed {
    pub(crate) way: Way,
    /// The elements of the first tensor and of the last, among [`OF_TYPES`].
    pub(crate) elements: [usize; 2],
    /// How threads share the tile where it is read and where it is written.
    pub(crate) shares: [usize; 2],
    /// The layout in shared memory.
    pub(crate) layout: usize,
    pub(crate) vector: i64,
    pub(crate) barrier: bool,
    pub(crate) transposed: bool,
}

/// A way from one tensor to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Way {
    Copy,
    Convert,
    Shared,
    Async,
    /// A product, its first operand by loads from global memory.
    Product,
    /// A product, its first operand by `ldmatrix`.
    Matrices,
}

const WAYS: [Way; 6] = [
    Way::Copy,
    Way::Convert,
    Way::Shared,
    Way::Async,
    Way::Product,
    Way::Matrices,
];

/// The elements that have types here.
const OF_TYPES: [Element; 5] = [
    Element::F32,
    Element::F16,
    Element::Bf16,
    Element::S8,
    Element::E4m3,
];

type Tile = (C<16>, C<16>);

/// Shares of 32 threads, of 32 by columns, and of 64.
type Rows = Layout<(C<32>, C<8>), (C<8>, C<1>)>;
type Columns = Layout<(C<32>, C<8>), (C<1>, C<32>)>;
type Many = Layout<(C<64>, C<4>), (C<4>, C<1>)>;

type Packed = Layout<Tile, (C<16>, C<1>)>;
type Padded = Layout<Tile, (C<20>, C<1>)>;
type Swizzled = Compose<Swizzle<1, 3, 3>, Packed>;

macro_rules! with_share {
    ($n:expr, $ty:ident => $body:expr) => {
        match $n {
            0 => {
                type $ty = Rows;
                $body
            }
            1 => {
                type $ty = Columns;
                $body
            }
            _ => {
                type $ty = Many;
                $body
            }
        }
    };
}

macro_rules! with_element {
    ($n:expr, $ty:ident => $body:expr) => {
        match $n {
            0 => {
                type $ty = F32;
                $body
            }
            1 => {
                type $ty = F16;
                $body
            }
            2 => {
                type $ty = Bf16;
                $body
            }
            3 => {
                type $ty = S8;
                $body
            }
            _ => {
                type $ty = E4m3;
                $body
            }
        }
    };
}

type Done = Result<(), ViewError>;

/// A place among tiles, and the thread.
type At = ([Expr; 2], Expr);

/// Builds it between tensors: the first, the last, and the second operand of a product.
pub(crate) fn build(k: &mut Kernel, t: &Typed, of: &[View], at: At, name: &str) -> Done {
    match (t.way, of) {
        (Way::Product | Way::Matrices, [a, c, b]) => product(k, t, [a, b, c], at, name),
        (_, [x, y, ..]) => {
            with_element!(t.elements[0], E => with_share!(t.shares[0], P => match t.way {
                Way::Copy => copied::<E, P>(k, t, [x, y], at),
                Way::Convert => with_element!(t.elements[1], F => converted::<E, F, P>(k, t, [x, y], at)),
                _ => with_share!(t.shares[1], Q => match t.layout {
                    0 => exchanged::<E, Packed, P, Q>(k, t, [x, y], at, name),
                    1 => exchanged::<E, Padded, P, Q>(k, t, [x, y], at, name),
                    _ => exchanged::<E, Swizzled, P, Q>(k, t, [x, y], at, name),
                }),
            }))
        }
        _ => Ok(()),
    }
}

fn copied<E: ViewElement, P: StaticLayout>(
    k: &mut Kernel,
    t: &Typed,
    [x, y]: [&View; 2],
    (at, thread): At,
) -> Done {
    let from = x.typed_tile::<E, Tile>(k, &at)?.partition::<P>(k, thread)?;
    let to = y.typed_tile::<E, Tile>(k, &at)?.partition::<P>(k, thread)?;
    let to = to.vectors(k, t.vector)?;
    from.vectors(k, t.vector)?.copy_to(k, &to)
}

fn converted<E: ViewElement, F: ViewElement, P: StaticLayout>(
    k: &mut Kernel,
    t: &Typed,
    [x, y]: [&View; 2],
    (at, thread): At,
) -> Done {
    let from = x.typed_tile::<E, Tile>(k, &at)?.partition::<P>(k, thread)?;
    let to = y.typed_tile::<F, Tile>(k, &at)?.partition::<P>(k, thread)?;
    let held = from.vectors(k, t.vector)?.load(k)?;
    held.convert::<F>(k)?.store_to(k, &to)
}

fn exchanged<E, L, P, Q>(
    k: &mut Kernel,
    t: &Typed,
    [x, y]: [&View; 2],
    (at, thread): At,
    name: &str,
) -> Done
where
    E: ViewElement,
    L: TileLayout<Shape = Tile> + StaticLayout,
    P: StaticLayout,
    Q: StaticLayout,
{
    let from = x.typed_tile::<E, Tile>(k, &at)?.partition::<P>(k, thread)?;
    let from = from.vectors(k, t.vector)?;
    let s = k.typed_shared::<E, L>(name)?;
    let put = s.partition::<P>(k, thread)?.vectors(k, t.vector)?;
    if t.way == Way::Async {
        from.copy_async_to(k, &put)?;
        k.wait_all();
    } else {
        from.copy_to(k, &put)?;
    }
    if t.barrier {
        k.barrier();
    }
    let [i, j] = at;
    if t.transposed {
        let to = y.typed_tile::<E, Tile>(k, &[j, i])?;
        let to = to.partition::<Q>(k, thread)?;
        s.transposed().partition::<Q>(k, thread)?.copy_to(k, &to)
    } else {
        let to = y.typed_tile::<E, Tile>(k, &at)?.partition::<Q>(k, thread)?;
        s.partition::<Q>(k, thread)?.copy_to(k, &to)
    }
}

/// c = a bᵀ of 16x8x16.
fn product(
    k: &mut Kernel,
    t: &Typed,
    [a, b, c]: [&View; 3],
    ([i, j], thread): At,
    name: &str,
) -> Done {
    let one = Plain::parse("(1,1,1):(0,0,0)").expect("a layout");
    let mma = TiledMma::new(atoms::MMA_M16N8K16_F16, &one)?;
    let zero = k.constant(0);
    let tile = a.typed_tile::<F16, Tile>(k, &[i, zero])?;
    let held = if t.way == Way::Matrices {
        let s = k.typed_shared::<F16, Swizzled>(name)?;
        let put = s.partition::<Rows>(k, thread)?.vectors(k, t.vector)?;
        let from = tile.partition::<Rows>(k, thread)?.vectors(k, t.vector)?;
        from.copy_to(k, &put)?;
        if t.barrier {
            k.barrier();
        }
        let copy = TiledCopy::for_operand(atoms::LDMATRIX_X4, &mma, Operand::A)?;
        s.load_matrices(k, &copy, thread)?
    } else {
        tile.partition_a(k, &mma, thread)?.load(k)?
    };
    let b = b.typed_tile::<F16, (C<8>, C<16>)>(k, &[j, zero])?;
    let b = b.partition_b(k, &mma, thread)?.load(k)?;
    let sums = k.typed_accumulators::<F32, C<16>, C<8>>(&mma, thread)?;
    sums.add_product(k, &mma, &held, &b)?;
    let to = c.typed_tile::<F32, (C<16>, C<8>)>(k, &[i, j])?;
    let to = to.partition_c(k, &mma, thread)?;
    // What a share has of C are the sums.
    debug_assert_eq!(to.untyped().values() as usize, sums.untyped().values());
    sums.store_to(k, &to)
}

impl Maker {
    /// A tile through views that have types.
    pub(crate) fn typed(&mut self) {
        let way = self.r.pick(&WAYS);
        let is_product = matches!(way, Way::Product | Way::Matrices);
        let mut shares = [self.r.below(3), self.r.below(3)];
        let elements = [self.r.below(5), self.r.below(5)];
        // Threads of both shares, mostly.
        let threads: u32 = if shares[0] == 2 && !is_product {
            64
        } else {
            32
        };
        if self.r.chance(80) {
            shares[1] = if threads == 64 { 2 } else { self.r.below(2) };
        }
        self.power(&[threads, threads, threads, threads, 32, 64]);
        let t = Typed {
            way,
            elements,
            shares,
            layout: self.r.below(3),
            vector: self.r.pick(&[1, 1, 2, 4, 8]),
            barrier: self.r.chance(85),
            transposed: self.r.chance(40),
        };
        let (rows, cols) = (self.extent(), self.extent());
        let k = Ix::Const(16);
        let of = match way {
            Way::Product | Way::Matrices => {
                let a = self.global(Element::F16, &[rows.clone(), k.clone()], false);
                let c = self.global(Element::F32, &[rows.clone(), cols.clone()], true);
                let b = self.global(Element::F16, &[cols.clone(), k], false);
                vec![a, c, b]
            }
            _ => {
                let [first, second] = elements.map(|e| OF_TYPES[e]);
                let x = self.global(first, &[rows.clone(), cols.clone()], false);
                let exchanged = matches!(way, Way::Shared | Way::Async);
                let last = if way == Way::Convert { second } else { first };
                let extents = if exchanged && t.transposed {
                    [cols.clone(), rows.clone()]
                } else {
                    [rows.clone(), cols.clone()]
                };
                vec![x, self.global(last, &extents, true)]
            }
        };
        let width = if is_product { 8 } else { 16 };
        let at = [self.axis(&rows, 16), self.axis(&cols, width)];
        let thread = if self.r.chance(95) {
            Ix::Thread
        } else {
            Ix::Lane
        };
        self.p.body.push(Stmt::Typed(t, of, at, thread));
    }
}

/// The same with one thing changed.
pub(crate) fn changed(r: &mut crate::random::Random, mut t: Typed) -> Typed {
    match r.below(6) {
        0 => t.barrier = !t.barrier,
        1 => t.transposed = !t.transposed,
        2 => t.vector = r.pick(&[1, 2, 3, 4, 8]),
        3 => t.shares[r.below(2)] = r.below(3),
        4 => t.elements[r.below(2)] = r.below(5),
        _ => t.layout = r.below(3),
    }
    t
}
