//! What a kernel does, as a value: what is generated, mutated, built and shrunk.
//!
//! Names of fragments and variables are numbers. Nothing keeps a program from being senseless: the builder and the prover have to say so.

use tilewright::codegen::ir::{Cmp, Element, Shuffle};
use tilewright::codegen::view::Combine;

/// An index expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ix {
    Const(i64),
    Size(usize),
    Thread,
    Lane,
    Warp,
    /// The block's tile along a declared axis.
    Tile(usize),
    /// The counter of the n-th loop around it, from outside.
    Counter(usize),
    /// The step of the pipeline around it.
    Step,
    Add(Box<[Ix; 2]>),
    Sub(Box<[Ix; 2]>),
    Mul(Box<[Ix; 2]>),
    Xor(Box<[Ix; 2]>),
    Smaller(Box<[Ix; 2]>),
    Scale(Box<Ix>, i64),
    Div(Box<Ix>, i64),
    Rem(Box<Ix>, i64),
    TilesIn(Box<Ix>, i64),
    Bounded(Box<Ix>, i64),
    Choose(Box<[Ix; 4]>, Cmp),
}

/// What two integers give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum IntOp {
    Add,
    Sub,
    Mul,
    MulHi,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// An integer of 32 bits. Operations compute signed or not; the bits stay the same in between.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Int {
    Const(u32),
    Index(Ix),
    Argument(usize),
    Variable(usize),
    /// The bits of a fragment's value.
    Data(usize, usize),
    Float(Box<Float>, bool),
    Binary(IntOp, bool, Box<[Int; 2]>),
    Select(Box<Pred>, Box<[Int; 2]>),
    Shuffle(Shuffle, Box<[Int; 2]>),
}

/// What two floats give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FloatOp {
    Add,
    Mul,
    Min,
    Max,
    MaxNan,
}

/// A float of 32 bits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Float {
    Const(f32),
    /// What a map is given.
    It,
    Argument(usize),
    Variable(usize),
    Data(usize, usize),
    OfInt(Box<Int>, bool),
    OfBits(Box<Int>),
    Binary(FloatOp, Box<[Float; 2]>),
    Select(Box<Pred>, Box<[Float; 2]>),
    Shuffle(Shuffle, Box<Float>, Box<Int>),
}

/// A predicate.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Pred {
    Index(Ix, Cmp, Ix),
    Int(bool, Int, Cmp, Int),
    Float(Float, Cmp, Float),
    Not(Box<Pred>),
    And(Box<[Pred; 2]>),
    Or(Box<[Pred; 2]>),
}

/// Memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Memory {
    Global(usize),
    Shared(usize),
    /// The stage of the pipeline around it.
    Stage,
}

/// How a tile is shared out.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum By {
    /// A layout (thread, value) to element, and values moved at once.
    Layout(String, i64),
    /// `cp.async` of so many bytes by layouts of threads and values.
    Async(i64, String, String),
}

/// A thread's share of a tile.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Share {
    pub(crate) of: Memory,
    /// Moved by so many elements before the tile is taken; empty for not at all.
    pub(crate) moved: Vec<Ix>,
    pub(crate) shape: Vec<i64>,
    pub(crate) at: Vec<Ix>,
    pub(crate) transposed: bool,
    pub(crate) by: By,
    pub(crate) thread: Ix,
    pub(crate) fill: Option<f32>,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Stmt {
    Load(usize, Share),
    Store(Share, usize),
    Copy(Share, Share),
    /// A fragment like a share, of one value.
    Fill(usize, Share, Float),
    Map(usize, usize, Float),
    /// A sum of two fragments.
    Sum(usize, usize, usize),
    /// A product of two fragments and a third one added to it.
    MulAdd(usize, [usize; 3]),
    /// A fragment in another type.
    Convert(usize, usize, Element),
    /// The values of one fragment become those of another.
    Assign(usize, usize),
    Reduce(usize, usize, usize, Combine),
    Let(usize, Int),
    Set(usize, Int),
    LetFloat(usize, Float),
    SetFloat(usize, Float),
    Commit,
    Wait(u32),
    WaitAll,
    Barrier,
    WarpBarrier,
    When(Pred, Vec<Stmt>),
    WhenElse(Pred, Vec<Stmt>, Vec<Stmt>),
    Region(Vec<Stmt>),
    Loop {
        start: i64,
        step: i64,
        limit: Ix,
        body: Vec<Stmt>,
    },
    Break(Pred),
    Exit(Pred),
    /// A ring of stages of a tile, filled by a copy; the body has the stage and the step.
    Pipeline {
        stages: i64,
        element: Element,
        shape: [i64; 2],
        fill: Box<[Share; 2]>,
        steps: Ix,
        body: Vec<Stmt>,
    },
    /// Fragments a, b and c of one warp's product of 16x8x16, loaded, multiplied and stored.
    Product {
        a: Box<Share>,
        b: Box<Share>,
        c: Box<Share>,
    },
}

/// A size.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Size {
    pub(crate) most: i64,
    /// A loop counts to it, so that launches take small ones.
    pub(crate) counts: bool,
}

/// A scalar argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scalar {
    U32,
    S32,
    F32,
}

/// A buffer in global memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Global {
    pub(crate) element: Element,
    pub(crate) extents: Vec<Ix>,
    pub(crate) output: bool,
}

/// A tile in shared memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Shared {
    pub(crate) element: Element,
    pub(crate) layout: String,
}

/// A kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Program {
    /// What it was made from.
    pub(crate) family: &'static str,
    pub(crate) threads: u32,
    pub(crate) sizes: Vec<Size>,
    pub(crate) scalars: Vec<Scalar>,
    pub(crate) globals: Vec<Global>,
    pub(crate) shared: Vec<Shared>,
    /// Axes x, y, z of the grid: the extent and the tile.
    pub(crate) axes: Vec<(Ix, i64)>,
    pub(crate) body: Vec<Stmt>,
}
