//! What an address means: which buffer, and which element of it. The prover holds the printed address against it.

use layout_core::Swizzled;

use super::address::Space;
use super::assumption::{Elements, Stated};
use super::inst::Axis;
use super::value::Reg;
use crate::index::Expr;
use crate::ir::Element;

/// How many elements a buffer has along a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// So many.
    Fixed(i64),
    /// A value of the kernel, such as a parameter.
    Value(Expr),
    /// As many as the grid has blocks along an axis.
    Blocks(Axis),
    /// Rows that are longer than what they hold: an access stays within the whole, and of an output the used elements are written.
    Padded {
        /// Elements that are used.
        used: Expr,
        /// Elements that there are.
        whole: Expr,
    },
}

/// From one element to the next along a mode, in elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// A constant.
    Fixed(i64),
    /// A value of the kernel, such as a leading dimension.
    Value(Expr),
}

/// What a kernel does with a buffer of global memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It only reads it.
    Input,
    /// It writes every element exactly once, and may read an element before that.
    Output,
    /// It writes some of it: in global memory each element at most once, or by atomic operations alone.
    Partial,
}

/// A buffer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Buffer {
    /// Its name: that of its parameter in global memory.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) space: Space,
    /// Bytes of an element.
    pub(crate) bytes: i64,
    /// The type of an element; none where a family moves bits.
    pub(crate) element: Option<Element>,
    /// Its extents, mode by mode.
    pub(crate) extents: Vec<Extent>,
    /// How coordinates become addresses.
    pub(crate) arrangement: Arrangement,
    /// What the kernel does with it.
    pub(crate) role: Role,
    /// What the author states of its elements.
    pub(crate) stated: Vec<Stated>,
}

impl Buffer {
    /// Its extents, mode by mode; `None` for those that are not numbers.
    pub(crate) fn fixed_extents(&self) -> Vec<Option<i64>> {
        let fixed = |extent: &Extent| match extent {
            Extent::Fixed(n) => Some(*n),
            _ => None,
        };
        self.extents.iter().map(fixed).collect()
    }

    /// Whether no two elements are equal, as the author states.
    pub(crate) fn is_distinct(&self) -> bool {
        self.stated.iter().any(|s| s.elements == Elements::Distinct)
    }

    /// The ranges that the elements are in, as the author states.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (Expr, Expr)> {
        self.stated.iter().filter_map(|s| match s.elements {
            Elements::Within(low, high) => Some((low, high)),
            Elements::Distinct => None,
        })
    }
}

/// How coordinates become addresses.
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a kernel has few buffers, and most of shared memory"
)]
pub(crate) enum Arrangement {
    /// Global memory: a stride for each mode, from the address in a variable.
    Global {
        /// The address of the first element.
        base: Expr,
        /// The strides.
        strides: Vec<Stride>,
    },
    /// Shared memory: the first modes by a layout to bytes, each further mode by a stride in bytes.
    Shared {
        /// (coordinates of the first modes) → byte.
        layout: Swizzled,
        /// Bytes from one coordinate of each further mode to the next.
        outer: Vec<i64>,
        /// The buffer's first byte in the kernel's shared memory.
        offset: i64,
    },
}

/// What one address means.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Place {
    /// An element of a buffer.
    Element {
        /// The buffer, by its number in the kernel.
        buffer: usize,
        /// Its coordinates.
        coordinates: Vec<Expr>,
    },
    /// One place where a predicate holds, and another where it does not.
    Either {
        /// The predicate.
        when: Reg,
        /// The place where it holds, by its number in the kernel.
        then: u32,
        /// The place where it does not.
        otherwise: u32,
    },
}
