//! What a kernel does, as a value: what is generated, mutated, built and shrunk.
//!
//! Names of fragments and variables are numbers. Nothing keeps a program from being senseless: the builder and the prover have to say so.

use tilewright::Operand;
use tilewright::codegen::ir::{Cmp, Element, Rounding, Shuffle};
use tilewright::codegen::view::{Combine, Packed};

use crate::typed::Typed;

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
    /// A block's index along an axis of so many blocks.
    Block(usize, u64),
    /// A coordinate of the value that a map with coordinates is given.
    Coordinate(usize),
    /// A coordinate of a share's value.
    Held(Box<Share>, i64, usize),
    Linear(Vec<(i64, Self)>, i64),
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
    Clamp(Box<Ix>, i64, i64),
    /// An element of memory at coordinates, signed or not.
    Data(Memory, Vec<Ix>, bool),
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

/// What a float is rounded to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Integer {
    S32,
    U32,
    S8,
}

/// Two small floats of a word.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Pair {
    F16,
    Bf16,
    E4m3,
    E5m2,
}

/// What becomes of words of two 16-bit floats.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum PairOp {
    Arithmetic(FloatOp),
    Fma,
    Neg,
    Abs,
    Exp2,
    Tanh,
    Swap,
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
    /// An element of memory at coordinates.
    Element(Memory, Vec<Ix>),
    Float(Box<Float>, Integer, Rounding),
    /// Bytes of two integers, by a selector.
    Permute(Box<[Int; 2]>, u16),
    /// Two floats in a word.
    Pair(Pair, Box<[Float; 2]>),
    /// What an instruction makes of two words of bfloat16 (or of binary16).
    Pairs(bool, PairOp, Box<[Int; 2]>),
    Binary(IntOp, bool, Box<[Int; 2]>),
    Select(Box<Pred>, Box<[Int; 2]>),
    Shuffle(Shuffle, Box<[Int; 2]>),
}

/// What two floats give.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Min,
    Max,
    MinNan,
    MaxNan,
}

/// What one float gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum FloatUnary {
    Neg,
    Abs,
    Exp2,
    Reciprocal,
    Rsqrt,
    Sqrt,
    Log2,
    Tanh,
    /// By way of 64 bits.
    WideSqrt,
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
    /// An element of memory at coordinates.
    Element(Memory, Vec<Ix>),
    OfInt(Box<Int>, bool),
    OfBits(Box<Int>),
    Binary(FloatOp, Box<[Float; 2]>),
    Select(Box<Pred>, Box<[Float; 2]>),
    Shuffle(Shuffle, Box<Float>, Box<Int>),
    Unary(FloatUnary, Box<Float>),
    Fma(Box<[Float; 3]>),
    /// As a float of 64 bits, rounded.
    Wide(FloatOp, Box<[Float; 2]>),
    /// One float of a word.
    Half(Pair, Box<Int>, usize),
    /// All of a thread's values of a fragment.
    Combined(usize, Combine),
    /// One value a thread, over groups of threads.
    Reduced(Box<Float>, String, Combine),
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
    /// A tile of the stages of the pipeline around it.
    Stage(usize),
}

/// How a tile is shared out.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum By {
    /// A layout (thread, value) to element, and values moved at once.
    Layout(String, i64),
    /// `cp.async` of so many bytes by layouts of threads and values.
    Async(i64, String, String),
    /// Loads and stores of so many elements by layouts of threads and values.
    Tiled(i64, String, String),
    /// An operand of a product of 16x8x16 for rows and columns of warps.
    Operand(Operand, [i64; 2]),
    /// The same, by `ldmatrix`.
    Matrices(Operand, [i64; 2]),
    /// The tile is a vector along a mode of another share.
    Along(usize, Box<Share>),
}

/// A thread's share of a tile.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Share {
    pub(crate) of: Memory,
    /// The part that begins at coordinates and has extents, if it is one.
    pub(crate) part: Option<[Vec<Ix>; 2]>,
    /// Coordinates of the first modes, which the rest does not have; empty for not at all.
    pub(crate) slice: Vec<Ix>,
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
#[expect(
    clippy::large_enum_variant,
    reason = "a program has few statements, and most name shares"
)]
pub(crate) enum Stmt {
    Load(usize, Share),
    Store(Share, usize),
    Copy(Share, Share),
    /// One element, stored or combined at coordinates.
    PutInt(Memory, Vec<Ix>, Int),
    PutFloat(Memory, Vec<Ix>, Float),
    Atomic(Memory, Vec<Ix>, Combine, Int),
    /// A fragment like a share, of one value.
    Fill(usize, Share, Float),
    Map(usize, usize, Float),
    /// A sum of two fragments.
    Sum(usize, usize, usize),
    /// The loads of a share, as they are, and the stores of what was loaded.
    Take(usize, Share),
    Put(Share, usize),
    /// A map of value and coordinates.
    MapAt(usize, usize, Float),
    /// A map, zip or zip of three of the registers' words.
    Words(usize, Vec<usize>),
    /// A new value of a fragment by itself and none, one or two others.
    Update(usize, Vec<usize>),
    Unpack(usize, usize, Packed, Element),
    Fold(usize, usize, usize, Combine),
    /// One of so many parts along a mode.
    Split(usize, usize, usize, [usize; 2]),
    Relayout(usize, usize, String),
    /// A fragment as an operand of a product.
    Operand(usize, usize, Operand, [i64; 2]),
    /// Sums of a tile, for warps.
    Accumulators(usize, [i64; 2], [i64; 2], Ix),
    /// A product of the first two is added to the third.
    Gemm([usize; 3], [i64; 2]),
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
    /// Rings of stages of tiles; the body has the stages and the step.
    Pipeline {
        rings: Vec<Ring>,
        steps: Ix,
        body: Vec<Stmt>,
    },
    Comment(String),
    /// A tile of these tensors, at these tile coordinates, through views that have types.
    Typed(Typed, Vec<Memory>, [Ix; 2], Ix),
    /// A condition that a launch keeps.
    Assume(Ix, Cmp, Ix),
}

/// A ring of stages of one or two tiles of f32, each filled by a copy.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ring {
    pub(crate) stages: i64,
    pub(crate) shape: [i64; 2],
    pub(crate) fill: Vec<[Share; 2]>,
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
    /// Of an output, that some of it is written; of an input, that its elements are distinct.
    pub(crate) special: bool,
    /// The range that the elements of an input are stated to be in.
    pub(crate) range: Option<[Ix; 2]>,
}

/// A tile in shared memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Shared {
    pub(crate) element: Element,
    pub(crate) tile: Tile,
}

/// The layout of a tile.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tile {
    Given(String),
    /// The one that is derived from its uses: stores or loads by shares, which may see it transposed.
    For([i64; 2], Vec<(bool, Share)>),
}

/// What the blocks of an axis are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Blocks {
    /// One for each tile.
    Tiles,
    TilesFromLast,
    /// As many as the tile has elements, whatever the extent.
    Fixed,
}

/// An axis of the grid.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Count {
    pub(crate) blocks: Blocks,
    pub(crate) extent: Ix,
    pub(crate) tile: i64,
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
    /// Blocks that share a multiprocessor, if it matters.
    pub(crate) resident: Option<u32>,
    /// The text has the author's lines.
    pub(crate) lines: bool,
    /// Axes x, y, z of the grid.
    pub(crate) axes: Vec<Count>,
    pub(crate) body: Vec<Stmt>,
}
