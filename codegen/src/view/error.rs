//! What is wrong with a view, or with a copy between two.

use std::fmt;

use layout_core::LayoutError;
use layout_core::derive::DeriveError;

use crate::ir::Element;
use crate::ir::Space;

/// What is wrong with a view, or with a copy between two.
///
/// ```
/// use layout_codegen::view::ViewError;
///
/// let error = ViewError::GridAxis { axis: 'x' };
/// assert_eq!(error.to_string(), "axis x of the grid already counts something else: take another axis");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ViewError {
    /// As many coordinates as a view has modes are needed.
    Rank {
        /// The buffer.
        buffer: String,
        /// Its modes.
        modes: usize,
        /// The coordinates that were given.
        given: usize,
    },
    /// A thread-value layout does not take each element of the tile exactly once.
    NotAPartition {
        /// The buffer.
        buffer: String,
        /// The layout.
        layout: String,
        /// Elements of the tile.
        elements: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// A view is shared out before it was cut into tiles.
    NoTile {
        /// The buffer.
        buffer: String,
    },
    /// Source and target of a copy have other elements.
    Elements {
        /// The source, with its element.
        from: String,
        /// The target, with its element.
        to: String,
    },
    /// A single element of a buffer, as a type that it does not have or that is not taken alone.
    Single {
        /// The buffer.
        buffer: String,
        /// Its element type; none where it holds bits.
        element: Option<Element>,
        /// The type that was asked for.
        wanted: Element,
    },
    /// Source and target of a copy have tiles or shares that do not meet.
    Shapes {
        /// The source, with its shape.
        from: String,
        /// The target, with its shape.
        to: String,
    },
    /// A vector that registers do not hold, or that does not lie in one piece.
    Vector {
        /// The buffer.
        buffer: String,
        /// Elements of the vector.
        elements: i64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A tile without elements, or with too many.
    Extent {
        /// What is cut into tiles.
        of: String,
        /// The extent that was given.
        extent: i64,
        /// The largest that works.
        most: i64,
    },
    /// An axis of the grid was given two meanings.
    GridAxis {
        /// The axis.
        axis: char,
    },
    /// Shared memory beyond what a block can have.
    SharedMemory {
        /// Bytes that are needed.
        bytes: u64,
        /// Bytes that there are.
        limit: u64,
    },
    /// An atom that the representation has no instruction for.
    Instruction {
        /// The atom.
        instruction: &'static str,
        /// What is emitted.
        accepted: &'static str,
    },
    /// Source and target of a copy are shared out for different instructions.
    Instructions {
        /// The source, with its instruction.
        from: String,
        /// The target, with its instruction.
        to: String,
    },
    /// An instruction does not reach the memory that a view is in.
    Space {
        /// The instruction.
        instruction: &'static str,
        /// Whether it would write the view, or read it.
        writes: bool,
        /// The memory that it takes; none for registers.
        wanted: Option<Space>,
        /// The buffer.
        buffer: String,
        /// Where it is.
        space: Space,
    },
    /// An atom counts elements of another width than the view's.
    AtomElement {
        /// The atom.
        instruction: &'static str,
        /// Bits of an element of the atom.
        bits: i64,
        /// The buffer.
        buffer: String,
        /// Bits of an element of the buffer.
        wanted: i64,
    },
    /// A fragment that is not an operand of the matrix instruction.
    Operand {
        /// The instruction.
        instruction: &'static str,
        /// The operand: A, B or C.
        operand: char,
        /// The fragment.
        given: String,
        /// What the instruction takes.
        wanted: String,
    },
    /// No instruction converts between two element types.
    Conversion {
        /// The type that there is.
        from: Element,
        /// The type that was asked for.
        to: Element,
    },
    /// A function of fragments that these fragments do not have.
    Fragment {
        /// What was asked for.
        operation: &'static str,
        /// The fragment.
        fragment: String,
        /// What stands in the way, and what would be accepted.
        reason: String,
    },
    /// No layout can be derived from the uses of a tile.
    Derive {
        /// The buffer.
        buffer: String,
        /// What stands in the way.
        error: DeriveError,
    },
    /// Rings of stages that do not make a pipeline, or that are waited for in another order.
    Pipeline {
        /// What was given.
        given: String,
        /// What would be accepted.
        accepted: String,
    },
    /// An operation of the algebra refused.
    Layout(LayoutError),
    /// A view, a share or a fragment of another kernel, or of a loop or branch that has ended.
    OutOfReach {
        /// What is wrong, and what to do instead.
        what: String,
    },
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank {
                buffer,
                modes,
                given,
            } => write!(
                f,
                "`{buffer}` has {modes} modes and {given} coordinates were given: give one for each mode"
            ),
            Self::NotAPartition {
                buffer,
                layout,
                elements,
                reason,
            } => write!(
                f,
                "{layout} does not partition the {elements} elements of the tile of `{buffer}`: {reason}"
            ),
            Self::NoTile { buffer } => write!(
                f,
                "`{buffer}` is not cut into tiles: take a tile of it (`View::tile`), then share the tile out"
            ),
            Self::Elements { from, to } => write!(
                f,
                "a copy from {from} to {to} would convert: load, convert the values and store them instead"
            ),
            Self::Single {
                buffer,
                element,
                wanted,
            } => {
                let of = element.map_or("bits".to_owned(), |e| format!("elements of {e}"));
                write!(
                    f,
                    "`{buffer}` has {of}, and a single {wanted} was asked for: f32, f64 and s32 are taken alone, as what they are; others in shares of tiles (`View::partition`)"
                )
            }
            Self::Shapes { from, to } => write!(
                f,
                "a copy from {from} to {to}: each thread needs as many values on both sides"
            ),
            Self::Vector {
                buffer,
                elements,
                reason,
            } => write!(f, "vectors of {elements} elements of `{buffer}`: {reason}"),
            Self::Extent { of, extent, most } => write!(
                f,
                "{of} cannot be cut into tiles of {extent} elements: a tile has 1 to {most} along a mode"
            ),
            Self::GridAxis { axis } => write!(
                f,
                "axis {axis} of the grid already counts something else: take another axis"
            ),
            Self::SharedMemory { bytes, limit } => write!(
                f,
                "the kernel's buffers take {bytes} bytes of shared memory and a block has {limit}: take smaller tiles or fewer stages"
            ),
            Self::Instruction {
                instruction,
                accepted,
            } => write!(
                f,
                "{instruction} is not emitted by the kernel layer: take {accepted}"
            ),
            Self::Instructions { from, to } => write!(
                f,
                "a copy from {from} to {to}: partition both sides by one tiled copy from memory to memory"
            ),
            Self::Space {
                instruction,
                writes,
                wanted,
                buffer,
                space,
            } => write!(
                f,
                "{instruction} {} {}, and `{buffer}` is in {}",
                if *writes { "writes" } else { "reads" },
                wanted.map_or("registers", memory),
                memory(*space)
            ),
            Self::AtomElement {
                instruction,
                bits,
                buffer,
                wanted,
            } => write!(
                f,
                "{instruction} counts elements of {bits} bits, and those of `{buffer}` have {wanted}: recast the atom (`CopyAtom::recast`)"
            ),
            Self::Operand {
                instruction,
                operand,
                given,
                wanted,
            } => write!(f, "{operand} of {instruction} is {wanted}, not {given}"),
            Self::Conversion { from, to } => write!(
                f,
                "fragments are not converted from {from} to {to}: f64 stays f64, and all other types become each other (f64 values become f32 by `F64::to_f32`)"
            ),
            Self::Fragment {
                operation,
                fragment,
                reason,
            } => write!(f, "{operation} of {fragment}: {reason}"),
            Self::Derive { buffer, error } => {
                write!(f, "no layout of `{buffer}` fits its uses: {error}")
            }
            Self::Pipeline { given, accepted } => {
                write!(f, "{given} is no pipeline: {accepted}")
            }
            Self::OutOfReach { what } => f.write_str(what),
            Self::Layout(e) => write!(f, "the view's layouts do not compose: {e}"),
        }
    }
}

/// The name of a memory.
fn memory(space: Space) -> &'static str {
    match space {
        Space::Global => "global memory",
        Space::Shared => "shared memory",
    }
}

impl std::error::Error for ViewError {}

impl From<LayoutError> for ViewError {
    fn from(e: LayoutError) -> Self {
        Self::Layout(e)
    }
}
