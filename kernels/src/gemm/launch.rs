//! The launch contract: what a host program needs besides the PTX file.

use layout_codegen::ir::{Element, ParamKind};
use layout_codegen::tensor_map::MapArgument;

use super::problem::Gemm;
use super::tensor_map::MapSource;

/// Grid, block and parameters of one launch, with the launches that must come before and after it.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The entry's name.
    pub kernel: String,
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads along x, y, z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The arguments, in the order of the parameters.
    pub arguments: Vec<Argument>,
    /// Launches of other kernels of the same module that come first, in order, such as copies of operands to aligned rows.
    pub before: Vec<Launch>,
    /// Launches that follow, in order, such as the sum of partial sums.
    pub after: Vec<Launch>,
    /// Bytes of device memory that the launches pass data through, aligned to 256; it needs no initial contents.
    pub workspace_bytes: u64,
    /// Buffers beside the product's own, what an epilogue reads and B2 of a dual product: what [`ArgumentValue::Given`] stands for, by name.
    pub inputs: Vec<GivenInput>,
}

/// A buffer that an epilogue reads, or B2 of a dual product, as one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenInput {
    /// Its parameter's name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its rows: m, or 1 for a vector by columns.
    pub rows: u64,
    /// Its columns: n, or 1 for a vector by rows.
    pub columns: u64,
    /// The parameter of its leading dimension, in elements; none for a vector.
    pub leading_dimension: Option<String>,
    /// What its address, and its rows, are multiples of, in bytes.
    pub alignment: u32,
}

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// Its type.
    pub kind: ParamKind,
    /// Its value.
    pub value: ArgumentValue,
}

/// The value of an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArgumentValue {
    /// The address of matrix A.
    A,
    /// The address of matrix B.
    B,
    /// The address of matrix C, read (unless β = 0) and written.
    C,
    /// The address of the bias: m elements (by row) or n (by column) of C's type.
    Bias,
    /// The address of the workspace plus this offset in bytes.
    Workspace(u64),
    /// What the caller gives for the parameter's name: a buffer of [`Launch::inputs`], its leading dimension, or a number of an epilogue.
    Given,
    /// An unsigned integer.
    Int(u64),
    /// A floating-point number.
    Float(f64),
    /// A tensor map, which the driver encodes.
    TensorMap(MapSource, MapArgument),
}

impl Launch {
    /// All launches in order: those before, this one, those after.
    pub fn sequence(&self) -> impl Iterator<Item = &Launch> {
        self.before.iter().chain([self]).chain(&self.after)
    }

    /// A launch of one kernel, without a cluster, that needs no other.
    pub(crate) fn single(
        kernel: String,
        grid: [u32; 3],
        threads: u32,
        shared_bytes: u32,
        arguments: Vec<Argument>,
    ) -> Self {
        Self {
            kernel,
            grid,
            block: [threads, 1, 1],
            cluster: [1, 1, 1],
            shared_bytes,
            arguments,
            before: Vec::new(),
            after: Vec::new(),
            workspace_bytes: 0,
            inputs: Vec::new(),
        }
    }

    /// The arguments of a product's kernel: what `special` gives, then the epilogue's buffers, then what the problem says. The rest is the epilogue's,
    /// and given by the caller.
    pub(crate) fn arguments(
        problem: &Gemm,
        inputs: &[GivenInput],
        parameters: Vec<(String, ParamKind)>,
        special: impl Fn(&str) -> Option<ArgumentValue>,
    ) -> Vec<Argument> {
        let value = |name: &str| {
            let given = inputs.iter().any(|input| input.name == name);
            special(name)
                .or_else(|| given.then_some(ArgumentValue::Given))
                .or_else(|| Self::gemm_argument(problem, name))
                .unwrap_or(ArgumentValue::Given)
        };
        let parameters = parameters.into_iter();
        parameters
            .map(|(name, kind)| Argument {
                value: value(&name),
                name,
                kind,
            })
            .collect()
    }

    /// The value of each parameter that GEMM kernels have, by name.
    fn gemm_argument(problem: &Gemm, name: &str) -> Option<ArgumentValue> {
        Some(match name {
            "A" => ArgumentValue::A,
            "B" => ArgumentValue::B,
            "C" => ArgumentValue::C,
            "bias" => ArgumentValue::Bias,
            "m" => ArgumentValue::Int(problem.m),
            "n" => ArgumentValue::Int(problem.n),
            "k" => ArgumentValue::Int(problem.k),
            "lda" => ArgumentValue::Int(problem.lda),
            "ldb" => ArgumentValue::Int(problem.ldb),
            "ldc" => ArgumentValue::Int(problem.ldc),
            "alpha" => ArgumentValue::Float(problem.alpha),
            "beta" => ArgumentValue::Float(problem.beta),
            "strideA" => ArgumentValue::Int(problem.batch.strides[0]),
            "strideB" => ArgumentValue::Int(problem.batch.strides[1]),
            "strideC" => ArgumentValue::Int(problem.batch.strides[2]),
            _ => return None,
        })
    }
}

/// What the text of a kernel says of its launch.
///
/// ```
/// use tilewright_kernels::gemm::Declared;
///
/// let text = ".visible .entry pair(\n)\n.reqnctapercluster 2, 1, 1\n{\n    griddepcontrol.wait;\n    ret;\n}\n";
/// let declared = Declared::of(text, "pair");
/// assert_eq!((declared.cluster, declared.waits), (Some([2, 1, 1]), true));
/// assert_eq!(Declared::of(text, "other"), Declared::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Declared {
    /// The blocks of a cluster (`.reqnctapercluster`): a launch gives the same or none.
    pub cluster: Option<[u32; 3]>,
    /// The kernel waits for the one before it on the stream before it touches memory (`griddepcontrol.wait`), so that it may be launched beside that one.
    pub waits: bool,
}

impl Declared {
    /// What the text says of an entry; nothing of one that it does not have.
    pub fn of(ptx: &str, entry: &str) -> Self {
        let mut texts = ptx.split(".entry ").skip(1);
        let own = texts.find(|text| {
            let name = text.split(|c: char| c == '(' || c.is_whitespace()).next();
            name == Some(entry)
        });
        let Some(own) = own else {
            return Self::default();
        };
        let (head, body) = own.split_once('{').unwrap_or((own, ""));
        let sizes = head.split_once(".reqnctapercluster");
        let cluster = sizes.map(|(_, sizes)| {
            let mut sizes = sizes.split(|c: char| c == ',' || c.is_whitespace());
            let mut next = || {
                sizes
                    .by_ref()
                    .find_map(|size| size.parse().ok())
                    .unwrap_or(1)
            };
            [next(), next(), next()]
        });
        Self {
            cluster,
            waits: body.contains("griddepcontrol.wait;"),
        }
    }
}
