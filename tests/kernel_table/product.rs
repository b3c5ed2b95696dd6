//! The variants of every plan, by their product.
//!
//! A variant is what [`Config::specialize`] makes of a problem and a schedule, so the product runs over what a problem can say. It falls in two
//! parts, because a kernel does:
//!
//! ```text
//! source   copies of A x copies of B x {one product, batch, split sums} x packing     the main loop
//! end      type of C x store of C x bias x activation                                 the end of the kernel
//! ```
//!
//! Every source has a row and every end has rows, but not every pair of them: with 99 ends to about 60 sources and 164 pairs of a plan and
//! its transposes there are 400,000 pairs. The rows of a plan go through its sources, and take the ends in turn, each transpose from
//! another one on; a source's main loop does not depend on the end, which a share of all pairs checks in every run.
//!
//! Three things turn with the rows instead of multiplying them, since the main kernel's text but for its name depends on none of them, or
//! only in the cache operator of a copy (`ca` or `cg`), which takes no register: whether copies of 16 bytes are cached, the width of a
//! packing kernel's loads, and the number of parts of split sums. `the_sources_that_turn_change_nothing_else` holds them to that.

use tilewright::codegen::ir::Element;
use tilewright::kernels::gemm::{
    Activation, Batch, Bias, DataType, Epilogue, Gemm, Operands, PlanError, ProblemError, Schedule,
    Specialized, Trans,
};

/// How an operand comes to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copies {
    /// As it lies, by copies of so many bytes; whether every row begins a sector of the cache.
    Direct { bytes: u32, sectors: bool },
    /// From rows that another kernel copied, by loads of so many bytes.
    Packed { bytes: u32 },
}

/// What the third axis of the grid counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layers {
    One,
    Batch,
    Split(u32),
}

/// What the main loop depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) copies: [Copies; 2],
    pub(crate) layers: Layers,
}

/// What the end of the kernel depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) output: Element,
    pub(crate) store: u32,
    pub(crate) epilogue: Epilogue,
}

/// Rows and columns of the problems that ask for a variant: a multiple of all that copies and stores divide.
const SIZE: u64 = 1024;

/// The widths of copies and stores of elements of so many bytes, widest first.
fn widths(element: u32) -> impl Iterator<Item = u32> + Clone {
    let narrower = move |&w: &u32| (w > element).then_some(w / 2);
    std::iter::successors(Some(16), narrower)
}

/// The names that text can give a value of a type, from the refusal of another.
fn named<T: std::str::FromStr<Err = ProblemError>>() -> Vec<T> {
    let Err(ProblemError::UnknownName { known, .. }) = "?".parse::<T>() else {
        panic!("`?` is a name");
    };
    let values = known.iter().map(|name| name.parse().ok());
    values.map(|v| v.expect("a name of its own list")).collect()
}

/// All sources, the plainest first. `turn` decides what turns with the rows.
pub(crate) fn sources(data_type: DataType, turn: usize) -> Vec<Source> {
    let element = data_type.bytes();
    let narrow: Vec<_> = widths(element).filter(|&w| w < 16).collect();
    let states: Vec<Option<u32>> = widths(element).map(Some).chain([None]).collect();
    let splits = [2, 3, 64, 1024];
    let mut all = Vec::new();
    let mut at = turn;
    for layers in [Layers::One, Layers::Batch, Layers::Split(0)] {
        for &a in &states {
            for &b in &states {
                let packed = a.is_none() || b.is_none();
                // Packing packs whatever is narrow.
                if packed && [a, b].into_iter().flatten().any(|w| w < 16) {
                    continue;
                }
                let copies = |width: Option<u32>, by: usize| match width {
                    Some(bytes) => Copies::Direct {
                        bytes,
                        sectors: bytes == 16 && !(at + by).is_multiple_of(3),
                    },
                    None => Copies::Packed {
                        bytes: narrow[(at + by) % narrow.len()],
                    },
                };
                // The first is the listed plan itself.
                let first = all.is_empty();
                let sides = if first {
                    [Copies::Direct {
                        bytes: 16,
                        sectors: true,
                    }; 2]
                } else {
                    [copies(a, 0), copies(b, 1)]
                };
                all.push(Source {
                    copies: sides,
                    layers: match layers {
                        Layers::Split(_) => Layers::Split(splits[at % splits.len()]),
                        other => other,
                    },
                });
                at += 1;
            }
        }
    }
    all
}

/// All ends, the plainest first.
pub(crate) fn ends(data_type: DataType) -> Vec<End> {
    let mut outputs = data_type.results().to_vec();
    outputs.sort_by_key(|&o| o != data_type.result());
    let mut all = Vec::new();
    for output in outputs {
        for store in widths(output.bytes()) {
            for bias in named::<Bias>() {
                for activation in named::<Activation>() {
                    all.push(End {
                        output,
                        store,
                        epilogue: Epilogue { bias, activation },
                    });
                }
            }
        }
    }
    all
}

/// A leading dimension whose rows begin sectors, or do not, or are aligned to `bytes` and no more.
fn leading(element: u32, bytes: u32, sectors: bool) -> u64 {
    let step = if sectors { 64 } else { bytes };
    SIZE + u64::from(step / element)
}

/// The problem and the schedule that ask for a variant.
pub(crate) fn problem(
    data_type: DataType,
    operands: Operands,
    source: Source,
    end: End,
) -> (Gemm, Schedule) {
    let element = data_type.bytes();
    let mut problem = Gemm::packed(SIZE, SIZE, SIZE * 1024, operands);
    // k is long enough for 1024 parts, and rows along k are as long as it.
    let ld = |copies: Copies, trans_along_k: bool| {
        let (bytes, sectors) = match copies {
            Copies::Direct { bytes, sectors } => (bytes, sectors),
            Copies::Packed { bytes } => (bytes, false),
        };
        let along = if trans_along_k { SIZE * 1023 } else { 0 };
        along + leading(element, bytes, sectors)
    };
    problem.lda = ld(source.copies[0], operands.a == Trans::N);
    problem.ldb = ld(source.copies[1], operands.b == Trans::T);
    problem.ldc = SIZE + u64::from(end.store / end.output.bytes());
    problem.output = Some(end.output);
    problem.epilogue = end.epilogue;
    if source.layers == Layers::Batch {
        let stored = [
            problem.stored_a().0 * problem.lda,
            problem.stored_b().0 * problem.ldb,
        ];
        problem.batch = Batch {
            count: 2,
            strides: [stored[0], stored[1], SIZE * problem.ldc],
        };
    }
    let schedule = Schedule {
        split: match source.layers {
            Layers::Split(parts) => parts,
            _ => 1,
        },
        pack: source
            .copies
            .iter()
            .any(|c| matches!(c, Copies::Packed { .. })),
    };
    (problem, schedule)
}

/// One kernel of the product.
pub(crate) struct Variant {
    /// The plan, adapted.
    pub(crate) plan: Specialized,
    pub(crate) operands: Operands,
}

/// The variant that a plan has for a source and an end; none if it refuses.
pub(crate) fn variant(
    plan: &Specialized,
    operands: Operands,
    source: Source,
    end: End,
) -> Option<Variant> {
    let (problem, schedule) = problem(plan.data_type, operands, source, end);
    match plan.specialize(&problem, schedule) {
        Ok(plan) => Some(Variant { plan, operands }),
        Err(PlanError::Unsupported { .. }) => None,
        Err(e) => panic!("{}, {operands}, {source:?}, {end:?}: {e}", plan.name()),
    }
}

/// A row that is not resolved yet: a source, and the place of the first end that it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) operands: Operands,
    pub(crate) source: Source,
    pub(crate) end: usize,
    /// Whether it is the listed plan itself.
    pub(crate) listed: bool,
}

/// Whether a source has a kernel of its own: plans of warpgroups pack whatever is narrow.
fn distinct(plan: &Specialized, source: &Source) -> bool {
    let narrow = |c: &Copies| matches!(c, Copies::Direct { bytes, .. } if *bytes < 16);
    !plan.is_wgmma() || !source.copies.iter().any(narrow)
}

/// The rows of a plan: every source with every choice of transposes, the ends in turn.
pub(crate) fn candidates(plan: &Specialized) -> Vec<Candidate> {
    let count = ends(plan.data_type).len();
    let mut all = Vec::new();
    for (turn, operands) in Operands::ALL.into_iter().enumerate() {
        let sources = sources(plan.data_type, turn).into_iter();
        let sources = sources.filter(|source| distinct(plan, source));
        for (i, source) in sources.enumerate() {
            all.push(Candidate {
                operands,
                source,
                end: if i == 0 { 0 } else { turn * count / 4 + i },
                listed: i == 0,
            });
        }
    }
    all
}

/// The variant of a row: with its end, or the next one that the plan has; none if the plan refuses the source.
pub(crate) fn resolve(plan: &Specialized, row: &Candidate) -> Option<Variant> {
    let ends = ends(plan.data_type);
    let from = row.end % ends.len();
    let mut turn = ends[from..].iter().chain(&ends[..from]);
    turn.find_map(|&end| variant(plan, row.operands, row.source, end))
}
