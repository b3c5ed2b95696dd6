//! What an address means: which buffer, and which element of it. The prover holds the printed address against it.

use layout_core::Swizzled;

use super::address::Space;
use super::inst::Axis;
use super::value::Reg;
use crate::index::Expr;
use crate::ir::Element;

/// How many elements a buffer has along a mode.
///
/// ```
/// use layout_codegen::ir::{Extent, Kernel};
/// use layout_codegen::ir::Element;
///
/// let mut k = Kernel::new("k", 128);
/// let (rows, cols) = (k.size("rows", 1000), k.size("cols", 1000));
/// k.input("x", Element::F32, &[rows, cols]);
/// let x = &k.finish().buffers[0];
/// assert_eq!(x.extents, [Extent::Value(rows), Extent::Value(cols)]);
/// ```
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
///
/// ```
/// use layout_codegen::ir::{Arrangement, Kernel, Stride};
/// use layout_codegen::ir::Element;
///
/// let mut k = Kernel::new("k", 128);
/// let (rows, cols) = (k.size("rows", 1000), k.size("cols", 1000));
/// k.input("x", Element::F32, &[rows, cols]);
/// let x = &k.finish().buffers[0];
/// let Arrangement::Global { strides, .. } = &x.arrangement else { panic!("in global memory") };
/// assert_eq!(strides[..], [Stride::Value(cols), Stride::Fixed(1)]); // row-major
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// A constant.
    Fixed(i64),
    /// A value of the kernel, such as a leading dimension.
    Value(Expr),
}

/// What a kernel does with a buffer of global memory.
///
/// ```
/// use layout_codegen::ir::{Kernel, Role};
/// use layout_codegen::ir::Element;
///
/// let mut k = Kernel::new("k", 128);
/// let (rows, cols) = (k.size("rows", 1000), k.size("cols", 1000));
/// k.output("x", Element::F32, &[rows, cols]);
/// let x = &k.finish().buffers[0];
/// assert_eq!(x.role, Role::Output);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It only reads it.
    Input,
    /// It writes every element exactly once, and may read an element before that.
    Output,
    /// It writes some of it.
    Partial,
}

/// A buffer.
///
/// ```
/// use layout_codegen::ir::{Kernel, Space};
/// use layout_codegen::ir::Element;
///
/// let mut k = Kernel::new("k", 128);
/// let (rows, cols) = (k.size("rows", 1000), k.size("cols", 1000));
/// k.input("x", Element::F32, &[rows, cols]);
/// let x = &k.finish().buffers[0];
/// assert_eq!((x.name.as_str(), x.space, x.bytes, x.element), ("x", Space::Global, 4, Some(Element::F32)));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Its name: that of its parameter in global memory.
    pub name: String,
    /// Where it is.
    pub space: Space,
    /// Bytes of an element.
    pub bytes: i64,
    /// The type of an element; none where a family moves bits.
    pub element: Option<Element>,
    /// Its extents, mode by mode.
    pub extents: Vec<Extent>,
    /// How coordinates become addresses.
    pub arrangement: Arrangement,
    /// What the kernel does with it.
    pub role: Role,
}

/// How coordinates become addresses.
///
/// ```
/// use layout_codegen::ir::{Arrangement, Kernel};
/// use layout_codegen::ir::Element;
/// use layout_core::Swizzled;
///
/// let mut k = Kernel::new("k", 128);
/// k.shared("tile", Element::F16, &Swizzled::parse("Sw<3,3,3> o (64,64):(64,1)")?)?;
/// let tile = &k.finish().buffers[0];
/// let Arrangement::Shared { layout, offset: 0, .. } = &tile.arrangement else { panic!("in shared memory") };
/// assert_eq!(layout.to_string(), "Sw<3,4,3> o (64,64):(128,2)"); // in bytes
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a kernel has few buffers, and most of shared memory"
)]
pub enum Arrangement {
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
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel, Place};
/// use layout_codegen::ir::Element;
/// use layout_core::Layout;
///
/// // One element a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1000);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// k.copy(&x, &y)?;
/// let entry = k.finish();
/// // A load of x and a store of y.
/// let Place::Element { buffer, coordinates } = &entry.places[1] else { panic!("one place") };
/// assert_eq!((entry.buffers[*buffer].name.as_str(), coordinates.len()), ("y", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
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
