//! A program over devices: buffers, and operations on streams.

use std::collections::BTreeMap;
use std::ops::Range;

use layout_core::devices::Block;

use super::block;
use crate::gemm::Gemm;

/// Which matrix of a product a buffer holds a part of.
///
/// ```
/// use tilewright_kernels::devices::Operand;
/// assert_eq!(Operand::A.to_string(), "A");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operand {
    /// The left factor, m×k.
    A,
    /// The right factor, k×n.
    B,
    /// The result, m×n; in scratch buffers a term of its sums.
    C,
}

impl std::fmt::Display for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// What is in a buffer before the program begins.
///
/// ```
/// use tilewright_kernels::devices::Content;
/// assert_ne!(Content::Nothing, Content::Everything);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Nothing: arriving blocks, partial sums.
    Nothing,
    /// The block of the matrix that the device owns.
    Given(Block),
    /// The whole block.
    Everything,
}

/// Memory of one device that holds a block of a matrix.
///
/// Rows and columns are those of the matrix as the product sees it, not as it is stored: a transposed operand lies column by column.
///
/// ```
/// use tilewright_kernels::devices::{Placement, Program};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
/// let program = Program::derive(&problem, &Placement::parse("rows,columns,columns", &problem, 2)?)?;
/// let a = &program.buffers[program.find(1, "A").unwrap()];
/// assert_eq!((a.block.rows.clone(), a.block.columns.clone()), (0..8, 0..8));
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The device.
    pub device: usize,
    /// Its name, such as `A` or `partial 0`; one of a kind on its device.
    pub name: String,
    /// The matrix.
    pub operand: Operand,
    /// The rows and columns of the matrix that it has room for.
    pub block: Block,
    /// What it holds at first.
    pub content: Content,
}

/// A block of a matrix in a buffer.
///
/// ```
/// use tilewright_kernels::devices::Region;
/// use layout_core::devices::Block;
/// let region = Region { buffer: 0, block: Block { rows: 0..4, columns: 8..16 } };
/// assert_eq!(region.elements(), 32);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// The buffer's number in the program.
    pub buffer: usize,
    /// Rows and columns of the matrix.
    pub block: Block,
}

impl Region {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        block::elements(&self.block)
    }

    /// Whether it has an element in common with `other`.
    pub fn meets(&self, other: &Self) -> bool {
        self.buffer == other.buffer && block::overlap(&self.block, &other.block)
    }
}

/// What a product is added to.
///
/// ```
/// use tilewright_kernels::devices::Addend;
/// assert_eq!(Addend::Partial.beta(0.25), 1.0);
/// assert_eq!(Addend::Old.beta(0.25), 0.25);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Addend {
    /// Nothing: what is there is overwritten.
    Nothing,
    /// The old C, with the problem's β.
    Old,
    /// A partial sum, which stays as it is.
    Partial,
}

impl Addend {
    /// The factor of what is there, for a problem with this β.
    pub fn beta(self, beta: f64) -> f64 {
        match self {
            Self::Nothing => 0.0,
            Self::Old => beta,
            Self::Partial => 1.0,
        }
    }
}

/// C's region ← α·A's region·B's region + the addend; then bias and activation, if it is the last of its sum.
///
/// ```
/// use tilewright_kernels::devices::{Action, Placement, Program};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
/// let program = Program::derive(&problem, &Placement::parse("columns,rows,rows", &problem, 2)?)?;
/// let last = program.ops.iter().rev().find_map(|op| match &op.action {
///     Action::Product(product) => Some(product),
///     _ => None,
/// });
/// // The last product of a device adds the partial sum of the other.
/// assert!(last.unwrap().finishes);
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// Rows of C, and columns as a part of the sums.
    pub a: Region,
    /// The same part of the sums, and columns of C.
    pub b: Region,
    /// Where the result goes: into the device's own memory or, if it is added to nothing, into that of another one.
    pub c: Region,
    /// What it is added to.
    pub addend: Addend,
    /// Bias and activation are applied: nothing is added later.
    pub finishes: bool,
}

impl Product {
    /// Which indices of the sums it adds.
    pub fn depth(&self) -> &Range<u64> {
        &self.a.block.columns
    }
}

/// What a collective operation does with the blocks of all devices.
///
/// ```
/// use tilewright_kernels::devices::CollectiveKind;
/// assert_eq!(CollectiveKind::AllGather.to_string(), "all-gather");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CollectiveKind {
    /// Each device gives a block, and gets those of all, one behind the other.
    AllGather,
    /// Each device gives a term of all blocks, and gets the sum of one block.
    ReduceScatter,
}

impl std::fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
        })
    }
}

/// A device's part in a collective operation, as NCCL has them. All devices of the program take part; a part begins
/// when its stream has come to it, and ends when all streams have, the device has what it gets, and nobody reads what it gives any more.
///
/// The blocks that devices give ([`CollectiveKind::AllGather`]) or get ([`CollectiveKind::ReduceScatter`]) are the whole, cut along one axis in equal
/// parts, in the order of the devices.
///
/// ```
/// use tilewright_kernels::devices::{Action, CollectiveKind, Placement, Program};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
/// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
/// let program = Program::collective(&problem, &placement)?.unwrap();
/// let Action::Collective(part) = &program.ops[1].action else { panic!() };
/// assert_eq!(part.kind, CollectiveKind::AllGather);
/// // Device 1 gives rows 4 to 7 of A, and gets all.
/// assert_eq!((part.from.block.rows.clone(), part.to.block.rows.clone()), (4..8, 0..8));
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collective {
    /// The operation: the parts of all devices have the same number.
    pub number: usize,
    /// What it does.
    pub kind: CollectiveKind,
    /// What the device gives.
    pub from: Region,
    /// What the device gets.
    pub to: Region,
}

/// What an operation does.
///
/// ```
/// use tilewright_kernels::devices::Action;
/// assert_eq!(Action::Wait(3).to_string(), "wait for flag 3");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Copies a block; the buffers may be those of different devices, and the block has the same place in the matrix.
    Copy {
        /// Where it comes from.
        from: Region,
        /// Where it goes.
        to: Region,
    },
    /// Multiplies.
    Product(Box<Product>),
    /// A device's part in a collective operation.
    Collective(Box<Collective>),
    /// Sets a flag when everything before it on its stream is done.
    Set(usize),
    /// Holds its stream until a flag is set.
    Wait(usize),
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |block: &Block| {
            let Block { rows, columns } = block;
            format!(
                "[{}..{}, {}..{}]",
                rows.start, rows.end, columns.start, columns.end
            )
        };
        match self {
            Self::Copy { from, .. } => write!(f, "copy {}", at(&from.block)),
            Self::Product(product) => {
                let depth = product.depth();
                write!(
                    f,
                    "multiply C{} over k {}..{}",
                    at(&product.c.block),
                    depth.start,
                    depth.end
                )
            }
            Self::Collective(part) => write!(f, "{} {}", part.kind, at(&part.to.block)),
            Self::Set(flag) => write!(f, "set flag {flag}"),
            Self::Wait(flag) => write!(f, "wait for flag {flag}"),
        }
    }
}

/// One operation on a stream of a device.
///
/// ```
/// use tilewright_kernels::devices::{Action, Op};
/// let op = Op { device: 1, stream: 2, action: Action::Set(0) };
/// assert_eq!(op.to_string(), "device 1, stream 2: set flag 0");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Op {
    /// The device whose stream it is.
    pub device: usize,
    /// The stream's number on the device.
    pub stream: usize,
    /// What it does.
    pub action: Action,
}

impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            device,
            stream,
            action,
        } = self;
        write!(f, "device {device}, stream {stream}: {action}")
    }
}

/// The streams of every device: two for products, of which the second begins while the first one's last blocks still run, and one for copies.
pub(super) const COPIES: usize = 2;

/// Streams of every device.
pub(super) const STREAMS: usize = 3;

/// What the devices do, in an order in which it can be enqueued. [`Program::derive`] makes one.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// The product as a whole; its leading dimensions are those of whole matrices and count for nothing here.
    pub problem: Gemm,
    /// How many devices.
    pub devices: usize,
    /// Streams of each device.
    pub streams: usize,
    /// Flags, each set once and waited for any number of times.
    pub flags: usize,
    /// All memory.
    pub buffers: Vec<Buffer>,
    /// The operations; those of one stream happen in this order.
    pub ops: Vec<Op>,
    /// What every device has of C at the end.
    pub results: Vec<Region>,
}

impl Program {
    pub(super) fn new(problem: &Gemm, devices: usize) -> Self {
        Self {
            problem: *problem,
            devices,
            streams: STREAMS,
            flags: 0,
            buffers: Vec::new(),
            ops: Vec::new(),
            results: Vec::new(),
        }
    }

    /// The number of a device's buffer of this name.
    ///
    /// ```
    /// # use tilewright_kernels::devices::{Placement, Program};
    /// # use tilewright_kernels::gemm::{Gemm, Operands};
    /// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    /// let program = Program::derive(&problem, &Placement::parse("rows,columns,columns", &problem, 2)?)?;
    /// assert_eq!(program.find(0, "D"), None);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn find(&self, device: usize, name: &str) -> Option<usize> {
        let same = |buffer: &Buffer| buffer.device == device && buffer.name == name;
        self.buffers.iter().position(same)
    }

    pub(super) fn buffer(
        &mut self,
        device: usize,
        name: impl Into<String>,
        operand: Operand,
        block: Block,
        content: Content,
    ) -> usize {
        let name = name.into();
        self.buffers.push(Buffer {
            device,
            name,
            operand,
            block,
            content,
        });
        self.buffers.len() - 1
    }

    pub(super) fn push(&mut self, device: usize, stream: usize, action: Action) {
        self.ops.push(Op {
            device,
            stream,
            action,
        });
    }

    /// The operations that are parts of each collective, by its number.
    ///
    /// ```
    /// # use tilewright_kernels::devices::{Placement, Program};
    /// # use tilewright_kernels::gemm::{Gemm, Operands};
    /// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    /// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
    /// let program = Program::collective(&problem, &placement)?.unwrap();
    /// assert_eq!(program.parts()[&0], [0, 1]);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn parts(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, op) in self.ops.iter().enumerate() {
            if let Action::Collective(part) = &op.action {
                parts.entry(part.number).or_default().push(index);
            }
        }
        parts
    }

    /// What an operation carries from device to device: from which, into which buffer, and how many elements.
    ///
    /// ```
    /// # use tilewright_kernels::devices::{Placement, Program};
    /// # use tilewright_kernels::gemm::{Gemm, Operands};
    /// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    /// let placement = Placement::parse("columns,rows,rows", &problem, 2)?;
    /// let program = Program::direct(&problem, &placement)?.unwrap();
    /// // Device 0 stores a term of two rows into device 1's C.
    /// let store = program.reaching().unwrap();
    /// assert_eq!(program.carried(store), [(0, program.find(1, "C").unwrap(), 16)]);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn carried(&self, op: &Op) -> Vec<(usize, usize, u64)> {
        let device_of = |buffer: usize| self.buffers[buffer].device;
        let mut all = match &op.action {
            Action::Copy { from, to } => {
                vec![(device_of(from.buffer), to.buffer, from.elements())]
            }
            Action::Product(product) => {
                vec![(op.device, product.c.buffer, product.c.elements())]
            }
            Action::Collective(part) => {
                let received = self.received(op.device, part).into_iter();
                received
                    .map(|(from, elements)| (from, part.to.buffer, elements))
                    .collect()
            }
            Action::Set(_) | Action::Wait(_) => Vec::new(),
        };
        all.retain(|&(from, buffer, _)| from != device_of(buffer));
        all
    }

    /// The first product that writes into another device's memory, if there is one.
    ///
    /// ```
    /// # use tilewright_kernels::devices::{Placement, Program};
    /// # use tilewright_kernels::gemm::{Gemm, Operands};
    /// let problem = Gemm::packed(8, 8, 8, Operands::ALL[0]);
    /// let placement = Placement::parse("columns,rows,rows", &problem, 2)?;
    /// assert!(Program::derive(&problem, &placement)?.reaching().is_none());
    /// assert!(Program::direct(&problem, &placement)?.unwrap().reaching().is_some());
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn reaching(&self) -> Option<&Op> {
        self.ops.iter().find(|op| match &op.action {
            Action::Product(product) => self.buffers[product.c.buffer].device != op.device,
            _ => false,
        })
    }

    /// A flag that the stream sets here.
    pub(super) fn set(&mut self, device: usize, stream: usize) -> usize {
        let flag = self.flags;
        self.flags += 1;
        self.push(device, stream, Action::Set(flag));
        flag
    }
}
