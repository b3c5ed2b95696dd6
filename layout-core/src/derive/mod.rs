//! Derivation: the shared-memory layout with the fewest total wavefronts over all accesses to a tile, with a certificate.
//!
//! **What.** Given a tile of elements and the warp accesses made to it ([`Pattern`]: which element each lane touches first), find the
//! layout (row, column) -> element offset that minimises the total wavefronts of one access of each kind. The counts are of whole warp
//! accesses, pair rule included, and the same for every translation of the pattern that does not carry into its bits (every
//! translation at all, where [`Certificate::every_translation`] says so).
//!
//! **How.** Six families in order of preference: a swizzle of the row-major (or column-major) tile, bit-permuted strides under a
//! swizzle, padded rows, a general F2 matrix, rotated rows, and (on request) what TMA can write. The first that is conflict-free wins. Small
//! families are enumerated; the F2 search is exhaustive with symmetry broken and hopeless branches cut, so that the end of the search is a
//! proof.
//!
//! **What a bound holds for.** [`Status::Impossible`] and [`Derivation::lower_bound`] speak of the families that were examined, which
//! [`Certificate::examined`] lists: another kind of layout may do better. [`Derivation::least`] is a bound for *every* layout. It counts
//! elements at the same place of their vectors, and rises by one if a clique (elements of which any two are read in one phase of some
//! access), larger than the number of banks, rules conflict-free layouts out. Where the two bounds are equal, the layout is the best of all.
//!
//! **Worked example.** bf16, rows of 128 bytes, written by rows of 16 bytes a lane and read by `ldmatrix`:
//!
//! ```
//! use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
//! let tile = Tile { rows: 64, cols: 64, elem_bytes: 2 };
//! let write = Pattern::from_layout("cp.async.16".parse().unwrap(), &Layout::parse("(8,4):(8,64)").unwrap()).unwrap();
//! let read = Pattern::from_layout("ldmatrix.x4".parse().unwrap(), &Layout::parse("(16,2):(64,8)").unwrap()).unwrap();
//! let best = derive(tile, &[write, read], Family::Any).unwrap();
//! assert_eq!(best.layout.unwrap().to_string(), "Sw<3,3,3> o (64,64):(64,1)");
//! assert!(best.accesses().iter().all(|a| a.wavefronts == a.ideal));
//! ```

mod certificate;
mod clique;
mod error;
mod families;
mod problem;
mod realize;
mod rotated;
mod search;

use crate::banks::{self, Access, BankError, LANES, NVIDIA, Wavefronts};
use crate::f2::LinearMap;
use crate::layout::Layout;
use crate::proof::{ProofError, bijective, injective};
use crate::swizzled::Swizzled;

pub use certificate::{Certificate, Conflict, Examined, Witness};
pub use error::DeriveError;
pub use rotated::Rotation;

use families::{Plan, Translated, best_padded, best_swizzle, best_tma};
use problem::{Merge, Problem, pose};
use rotated::best_rotated;
use search::{Images, search};

/// The most patterns of one derivation.
///
/// ```
/// assert_eq!(layout_core::derive::MAX_PATTERNS, 16);
/// ```
pub const MAX_PATTERNS: usize = 16;

/// The largest extent of a tile.
///
/// ```
/// assert_eq!(layout_core::derive::MAX_EXTENT, 4096);
/// ```
pub const MAX_EXTENT: i64 = 4096;

/// Work that one search does at most: candidates times phases, about 5 ns each.
const WORK_LIMIT: u64 = 4_000_000;

/// A tile of shared memory: `rows` x `cols` elements, indexed row-major (`row * cols + col`).
///
/// ```
/// use layout_core::derive::Tile;
/// let tile = Tile { rows: 64, cols: 32, elem_bytes: 2 };
/// assert_eq!(tile.cols * tile.elem_bytes, 64); // bytes of a row
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Tile {
    /// Rows.
    pub rows: i64,
    /// Columns: the contiguous direction of the index.
    pub cols: i64,
    /// Bytes of an element, 1 to 16.
    pub elem_bytes: i64,
}

impl Tile {
    /// A tile of `rows` x `cols` elements of `elem_bytes` bytes.
    ///
    /// ```
    /// use layout_core::derive::Tile;
    /// const TILE: Tile = Tile::new(64, 32, 2);
    /// assert_eq!(TILE.rows * TILE.cols * TILE.elem_bytes, 4096);
    /// ```
    pub const fn new(rows: i64, cols: i64, elem_bytes: i64) -> Self {
        Self {
            rows,
            cols,
            elem_bytes,
        }
    }
}

/// One kind of warp access to the tile.
///
/// ```
/// use layout_core::{banks::Access, derive::Pattern};
/// // Each lane loads one element of a column of 64-element rows.
/// let column = Pattern { access: Access::Ld16, elements: core::array::from_fn(|lane| 64 * lane as i64) };
/// assert_eq!(column.elements[3], 192);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Pattern {
    /// The access.
    pub access: Access,
    /// For each lane the row-major index of the first element it touches (the others follow in the row), -1 if it is inactive.
    pub elements: [i64; LANES],
}

impl Pattern {
    /// The pattern of these elements: for each lane the row-major index of the first element it touches, -1 if it is
    /// inactive.
    ///
    /// ```
    /// use layout_core::banks::{Access, LANES};
    /// use layout_core::derive::Pattern;
    /// const BROADCAST: Pattern = Pattern::from_elements(Access::Ld32, [0; LANES]);
    /// assert_eq!(BROADCAST.elements[31], 0);
    /// ```
    pub const fn from_elements(access: Access, elements: [i64; LANES]) -> Self {
        Self { access, elements }
    }

    /// The pattern of a layout lane -> element index. A layout of fewer than 32 lanes leaves the others inactive.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::Pattern};
    /// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("16:64").unwrap()).unwrap();
    /// assert_eq!((column.elements[15], column.elements[16]), (960, -1));
    /// ```
    ///
    /// # Errors
    /// [`DeriveError::WrongLaneCount`] for more than 32 lanes, or fewer than `ldmatrix` and `stmatrix` need.
    pub const fn from_layout(access: Access, layout: &Layout) -> Result<Self, DeriveError> {
        Self::new(access, &Swizzled::plain(*layout))
    }

    /// The same for a swizzled layout or one with an offset.
    ///
    /// ```
    /// use layout_core::{Swizzled, banks::Access, derive::Pattern};
    /// let row = Pattern::new(Access::Ld32, &Swizzled::parse("64 o 32:1").unwrap()).unwrap();
    /// assert_eq!(row.elements[31], 95);
    /// ```
    ///
    /// # Errors
    /// As [`Pattern::from_layout`]; [`DeriveError::OutsideTile`] for negative indices.
    pub const fn new(access: Access, layout: &Swizzled) -> Result<Self, DeriveError> {
        let size = layout.size();
        if size > LANES as i64 || (access.matrices().is_some() && size < access.lanes() as i64) {
            return Err(DeriveError::WrongLaneCount {
                pattern: 0,
                access,
                given: size,
                expected: access.lanes(),
            });
        }
        let mut elements = [-1; LANES];
        let mut lane = 0;
        while lane < size as usize {
            let index = layout.index(lane as i64);
            if index < 0 {
                return Err(DeriveError::OutsideTile {
                    pattern: 0,
                    lane,
                    index,
                    size: 0,
                });
            }
            elements[lane] = index;
            lane += 1;
        }
        Ok(Self { access, elements })
    }
}

/// A family of layouts.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let padded = derive(tile, &[column], Family::Padded).unwrap();
/// assert_eq!(padded.layout.unwrap().to_string(), "(32,32):(33,1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Row-major, or column-major if no access is wider than an element: no swizzle, no padding.
    Plain,
    /// `Swizzle<B,M,S>` on the row-major tile, or on the column-major one if no access is wider than an element.
    Swizzle,
    /// Strides that permute the index bits, under a swizzle.
    Permuted,
    /// Row-major with a longer pitch.
    Padded,
    /// A general matrix over F2.
    F2,
    /// Row-major or padded, each row rotated by a multiple of a chunk that depends on the row: [`Rotation`].
    Rotated,
    /// What TMA writes: no swizzle, or 32, 64, 128 bytes (`Swizzle<B,4,3>` on byte addresses), in panels of that width.
    Tma,
    /// The first of swizzle, permuted, padded, f2 and rotated that is conflict-free; else the best of them.
    Any,
}

impl Family {
    /// Every family, by preference.
    ///
    /// ```
    /// use layout_core::derive::Family;
    /// assert!(Family::ALL.iter().all(|family| Family::named(family.name()) == Some(*family)));
    /// ```
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Swizzle,
        Self::Permuted,
        Self::Padded,
        Self::F2,
        Self::Rotated,
        Self::Tma,
        Self::Any,
    ];

    /// The name on the command line.
    ///
    /// ```
    /// use layout_core::derive::Family;
    /// assert_eq!(Family::Padded.name(), "padded");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Swizzle => "swizzle",
            Self::Permuted => "permuted",
            Self::Padded => "padded",
            Self::F2 => "f2",
            Self::Rotated => "rotated",
            Self::Tma => "tma",
            Self::Any => "any",
        }
    }

    /// The family of that name.
    ///
    /// ```
    /// use layout_core::derive::Family;
    /// assert_eq!((Family::named("f2"), Family::named("other")), (Some(Family::F2), None));
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// Whether the layout is optimal.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Status, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let status = |family| derive(tile, &[column], family).unwrap().status;
/// assert_eq!((status(Family::Swizzle), status(Family::Tma)), (Status::Optimal, Status::Impossible));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Status {
    /// Every access is conflict-free.
    Optimal,
    /// No layout of the families examined is conflict-free: proven by exhaustion, or for every layout by a bound.
    Impossible,
    /// No conflict-free layout was found before the search hit its limit; none is ruled out.
    Unproven,
}

impl Status {
    /// The name in reports.
    ///
    /// ```
    /// use layout_core::derive::Status;
    /// assert_eq!(Status::Unproven.name(), "unproven");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Impossible => "impossible",
            Self::Unproven => "unproven",
        }
    }
}

/// The cost of one access in the derived layout.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let count = derive(tile, &[column], Family::Tma).unwrap().accesses()[0];
/// assert_eq!((count.wavefronts, count.ideal), (4, 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct AccessCount {
    /// The access.
    pub access: Access,
    /// Wavefronts of the whole access.
    pub wavefronts: u32,
    /// Wavefronts without bank conflicts.
    pub ideal: u32,
}

/// The best layout, with its certificate.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Status, Tile, derive}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let padded = derive(tile, &[column], Family::Padded).unwrap();
/// assert_eq!((padded.status, padded.bijective, padded.cosize), (Status::Optimal, false, 1055));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Derivation {
    /// Whether the layout is conflict-free, and if not, whether another one can be.
    pub status: Status,
    /// The family of the layout: [`Family::Plain`] for the row-major and the column-major tile, whichever family found it; of what TMA writes
    /// always [`Family::Tma`].
    pub family: Family,
    /// (row, column) -> element offset, where the family writes layouts.
    pub layout: Option<Swizzled>,
    /// Row-major element index bits -> element offset bits, for [`Family::F2`].
    pub matrix: Option<LinearMap>,
    /// (row, column) -> element offset, for [`Family::Rotated`].
    pub rotation: Option<Rotation>,
    /// Elements of memory that the layout needs (more than the tile, if padded).
    pub cosize: i64,
    /// Whether the layout is a bijection onto `0..rows * cols` (padded ones are not).
    pub bijective: bool,
    /// A lower bound on the total wavefronts of the layouts of the families examined.
    pub lower_bound: u32,
    /// A lower bound on the total wavefronts of every layout in which each aligned vector of the widest access stays together.
    pub least: u32,
    /// The argument.
    pub certificate: Certificate,
    accesses: [AccessCount; MAX_PATTERNS],
    count: usize,
}

impl Derivation {
    /// The cost of each access, in the order given.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let read = |text| Pattern::from_layout(Access::Ld32, &Layout::parse(text).unwrap()).unwrap();
    /// let derived = derive(tile, &[read("32:1"), read("32:32")], Family::Any).unwrap();
    /// assert!(derived.accesses().iter().map(|a| a.wavefronts).eq([1, 1]));
    /// ```
    pub fn accesses(&self) -> &[AccessCount] {
        &self.accesses[..self.count]
    }

    /// Total wavefronts of one access of each kind.
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let read = |text| Pattern::from_layout(Access::Ld32, &Layout::parse(text).unwrap()).unwrap();
    /// let derived = derive(tile, &[read("32:1"), read("32:32")], Family::Any).unwrap();
    /// assert_eq!(derived.wavefronts(), 2);
    /// ```
    pub fn wavefronts(&self) -> u32 {
        self.accesses().iter().map(|a| a.wavefronts).sum()
    }

    /// The element offset of (row, column).
    ///
    /// ```
    /// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
    /// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
    /// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
    /// let padded = derive(tile, &[column], Family::Padded).unwrap();
    /// assert_eq!(padded.at(tile, 2, 5), 2 * 33 + 5);
    /// ```
    pub const fn at(&self, tile: Tile, row: i64, col: i64) -> i64 {
        match (&self.layout, &self.matrix) {
            (Some(layout), _) => layout.at(&[row, col]),
            (None, Some(matrix)) => matrix.apply((row * tile.cols + col) as u64) as i64,
            (None, None) => match &self.rotation {
                Some(rotation) => rotation.at(row, col),
                None => row * tile.cols + col,
            },
        }
    }
}

/// Counts one pattern in a layout (row, column) -> element offset, without translation: a `const` check of a derived layout. A layout of one
/// mode takes the column-major index of the coordinate.
///
/// ```
/// use layout_core::{Layout, Swizzled, banks::Access, derive::{Pattern, Tile, recount}};
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let count = |text| recount(tile, &column, &Swizzled::parse(text).unwrap()).unwrap().wavefronts;
/// assert_eq!((count("(32,32):(32,1)"), count("(32,32):(33,1)")), (32, 1));
/// ```
///
/// # Errors
/// Misaligned or negative addresses.
pub const fn recount(
    tile: Tile,
    pattern: &Pattern,
    layout: &Swizzled,
) -> Result<Wavefronts, BankError> {
    let mut addresses = [-1; LANES];
    let mut lane = 0;
    while lane < LANES {
        let element = pattern.elements[lane];
        if element >= 0 {
            let (row, col) = (element / tile.cols, element % tile.cols);
            let offset = if layout.rank() < 2 {
                layout.index(row.saturating_add(tile.rows.saturating_mul(col)))
            } else {
                layout.at(&[row, col])
            };
            addresses[lane] = tile.elem_bytes * offset;
        }
        lane += 1;
    }
    banks::wavefronts(&NVIDIA, pattern.access, &addresses)
}

/// The best layout of the family for all patterns.
///
/// ```
/// use layout_core::{Layout, banks::Access, derive::{Family, Pattern, Tile, derive}};
/// // A transpose of f32: rows written, columns read.
/// let tile = Tile { rows: 32, cols: 32, elem_bytes: 4 };
/// let row = Pattern::from_layout(Access::St32, &Layout::parse("32:1").unwrap()).unwrap();
/// let column = Pattern::from_layout(Access::Ld32, &Layout::parse("32:32").unwrap()).unwrap();
/// let derived = derive(tile, &[row, column], Family::Any).unwrap();
/// assert_eq!(derived.layout.unwrap().to_string(), "Sw<5,0,5> o (32,32):(32,1)");
/// ```
///
/// # Errors
/// An invalid tile, element or pattern, with the access, lane and value; a family that has no member for the
/// tile.
pub fn derive(tile: Tile, patterns: &[Pattern], family: Family) -> Result<Derivation, DeriveError> {
    let problem = pose(tile, patterns, Merge::Translations)?;
    let least = problem.least();
    let mut certificate = Certificate::new(tile, problem.ideal);
    let mut best: Option<(u32, Plan, Family)> = None;
    let mut finished = true;
    for candidate in Family::ALL {
        let wanted = if family == Family::Any {
            !matches!(candidate, Family::Plain | Family::Tma | Family::Any)
        } else {
            candidate == family
        };
        if !wanted {
            continue;
        }
        let bound = best.map(|b| b.0);
        let outcome = if candidate == Family::Rotated {
            let alone = pose(tile, patterns, Merge::Nothing)?;
            examine_rotations(&alone, bound, least)
        } else {
            examine(&problem, candidate, bound, least)
        };
        let Some(outcome) = outcome else {
            continue;
        };
        finished &= outcome.examined.finished;
        certificate.record(outcome.examined);
        if let Some((cost, plan)) = outcome.best
            && bound.is_none_or(|b| cost < b)
        {
            best = Some((cost, plan, candidate));
            if cost <= least {
                break;
            }
        }
    }
    let Some((total, plan, found_in)) = best else {
        return Err(DeriveError::FamilyDoesNotApply {
            family: family.name(),
            needs: needs(family),
        });
    };
    conclude(
        &problem,
        patterns,
        (total, plan, found_in),
        finished,
        certificate,
    )
}

/// The best layout of the algebra for all patterns: what [`Family::Any`] finds, or the best swizzle, permuted strides or padding if that is a
/// matrix or a rotation. A code generator takes this, since an address is computed from a layout.
///
/// ```
/// use layout_core::{Layout, derive::{Family, Pattern, Tile, derive, derive_layout}};
/// // A rotation is conflict-free here, no layout is.
/// let tile = Tile { rows: 24, cols: 112, elem_bytes: 4 };
/// let lanes = Layout::parse("(8,4):(224,4)").unwrap();
/// let store = Pattern::from_layout("st.128".parse().unwrap(), &lanes).unwrap();
/// assert!(derive(tile, &[store], Family::Any).unwrap().layout.is_none());
/// let best = derive_layout(tile, &[store]).unwrap();
/// assert_eq!((best.layout.is_some(), best.wavefronts()), (true, 8));
/// ```
///
/// # Errors
/// As [`derive()`].
pub fn derive_layout(tile: Tile, patterns: &[Pattern]) -> Result<Derivation, DeriveError> {
    let any = derive(tile, patterns, Family::Any)?;
    if any.layout.is_some() {
        return Ok(any);
    }
    let families = [Family::Swizzle, Family::Permuted, Family::Padded];
    let found = families.map(|family| derive(tile, patterns, family));
    let layouts = found
        .into_iter()
        .flatten()
        .filter(|found| found.layout.is_some());
    Ok(layouts.min_by_key(Derivation::wavefronts).unwrap_or(any))
}

const fn needs(family: Family) -> &'static str {
    match family {
        Family::Plain | Family::Swizzle | Family::Padded | Family::Any => {
            "accesses of at least a 4-byte word, or rows of a power of two of elements"
        }
        Family::Permuted => {
            "power-of-two factors in rows and columns of at least 128 bytes together"
        }
        Family::F2 => {
            "a power of two of columns, and power-of-two factors of at least 128 bytes together"
        }
        Family::Rotated => {
            "several rows, and columns of several whole chunks: of the widest access, and of at least 4 bytes"
        }
        Family::Tma => {
            "elements of 1, 2, 4, 8 or 16 bytes, rows of a multiple of 16 bytes, and a number of rows that boxes of equally many rows cover, at most 256 each and multiples of 8 under a swizzle"
        }
    }
}

/// What examining one family gave.
struct Outcome {
    best: Option<(u32, Plan)>,
    examined: Examined,
}

fn examine(problem: &Problem, family: Family, bound: Option<u32>, least: u32) -> Option<Outcome> {
    let enumerated = |(best, count): (Option<(u32, Plan)>, u64)| {
        best?;
        let examined = Examined {
            family,
            count,
            best: best.map(|b| b.0),
            finished: true,
            nodes: false,
        };
        Some(Outcome { best, examined })
    };
    match family {
        Family::Plain => enumerated(best_swizzle(problem, true)),
        Family::Swizzle => enumerated(best_swizzle(problem, false)),
        Family::Padded => enumerated(best_padded(problem)),
        Family::Tma => enumerated(best_tma(problem)),
        Family::Permuted | Family::F2 | Family::Rotated | Family::Any => {
            let all = family == Family::F2;
            if !problem.block_is_bank_aligned()
                || problem.block_bits() + problem.log_elem < 7
                || (all && !problem.cols.is_power_of_two())
            {
                return None;
            }
            // Both families contain every swizzle of the row-major tile, so the best of those bounds the search.
            let bound = bound.unwrap_or_else(|| {
                let row_major = problem.cols.is_power_of_two();
                best_swizzle(problem, false)
                    .0
                    .filter(|_| row_major)
                    .map_or(u32::MAX, |b| {
                        if problem.log_granule == 0 {
                            u32::MAX
                        } else {
                            b.0 + 1
                        }
                    })
            });
            let images = if all { Images::All } else { Images::Units };
            let found = search(problem, images, bound, least, WORK_LIMIT);
            let best = found.best.map(|(cost, image)| {
                let plan = if all {
                    realize::matrix(problem, &image)
                } else {
                    realize::permuted(problem, &image)
                };
                (cost, plan)
            });
            let examined = Examined {
                family,
                count: found.nodes,
                best: best.map(|b| b.0),
                finished: found.finished,
                nodes: true,
            };
            Some(Outcome { best, examined })
        }
    }
}

/// Whether a layout is the row-major or the column-major tile.
fn is_plain(tile: Tile, layout: &Swizzled) -> bool {
    let same = |strides: [i64; 2]| {
        Layout::flat(&[tile.rows, tile.cols], &strides)
            .is_ok_and(|plain| layout.layout().equal_as_functions(&plain))
    };
    layout.swizzle().is_identity() && (same([tile.cols, 1]) || same([1, tile.rows]))
}

/// The rotations, of a problem that has every phase by itself.
fn examine_rotations(problem: &Problem, bound: Option<u32>, least: u32) -> Option<Outcome> {
    let (best, count, finished) = best_rotated(problem, bound, least);
    (count > 0).then_some(Outcome {
        best,
        examined: Examined {
            family: Family::Rotated,
            count,
            best: best.map(|b| b.0),
            finished,
            nodes: false,
        },
    })
}

fn conclude(
    problem: &Problem,
    patterns: &[Pattern],
    (total, plan, found_in): (u32, Plan, Family),
    finished: bool,
    mut certificate: Certificate,
) -> Result<Derivation, DeriveError> {
    let tile = problem.tile;
    let (layout, matrix) = realize::realize(problem, &plan);
    let rotation = match plan {
        Plan::Rotated(rotation) => Some(rotation),
        _ => None,
    };
    let is_plain = layout.is_some_and(|l| is_plain(tile, &l));
    let found_in = if is_plain && found_in != Family::Tma {
        Family::Plain
    } else {
        found_in
    };
    let size = tile.rows * tile.cols;
    let cosize = match (&layout, &rotation) {
        (Some(layout), _) => layout.cosize(),
        (None, Some(rotation)) => rotation.cosize(tile.rows, tile.cols),
        (None, None) => size,
    };
    let is_bijective = match (&layout, &matrix) {
        // What is too large to enumerate is a swizzle within blocks of a compact layout.
        (Some(layout), _) => {
            cosize == size
                && match bijective(layout) {
                    Ok(()) => true,
                    Err(ProofError::TooManyCases { .. }) => injective(layout).is_ok(),
                    Err(_) => false,
                }
        }
        (None, Some(matrix)) => matrix.is_invertible(),
        // Each row is a permutation of its own places, so that a rotation is injective.
        (None, None) => rotation.is_some() && cosize == size,
    };
    let blank = AccessCount {
        access: Access::Ld32,
        wavefronts: 0,
        ideal: 0,
    };
    let mut derivation = Derivation {
        status: Status::Optimal,
        family: found_in,
        layout,
        matrix,
        rotation,
        cosize,
        bijective: is_bijective,
        lower_bound: problem.ideal,
        least: problem.least(),
        certificate,
        accesses: [blank; MAX_PATTERNS],
        count: patterns.len(),
    };
    // The count that is reported is made from the layout itself, on true addresses.
    for (i, pattern) in patterns.iter().enumerate() {
        let addresses = pattern.elements.map(|element| {
            if element < 0 {
                -1
            } else {
                tile.elem_bytes * derivation.at(tile, element / tile.cols, element % tile.cols)
            }
        });
        let count = match banks::wavefronts(&NVIDIA, pattern.access, &addresses) {
            Ok(count) => count,
            Err(BankError::Misaligned { lane, .. }) => {
                let index = pattern.elements[lane as usize];
                return Err(DeriveError::Misaligned {
                    pattern: i,
                    access: pattern.access,
                    lane: lane as usize,
                    index,
                    multiple: i64::from(pattern.access.bytes()),
                });
            }
            Err(_) => {
                return Err(DeriveError::UnsupportedAccess {
                    pattern: i,
                    access: pattern.access,
                });
            }
        };
        derivation.accesses[i] = AccessCount {
            access: pattern.access,
            wavefronts: count.wavefronts,
            ideal: count.ideal,
        };
        if certificate.conflict.is_none() {
            certificate.conflict = Conflict::of(tile, i, pattern, &addresses, &count);
        }
    }
    if rotation.is_some() {
        let alone = pose(tile, patterns, Merge::Nothing)?;
        let translated = families::survives(&alone, &plan);
        certificate.every_translation = translated == Translated::Every;
        if translated == Translated::Not {
            certificate.only_as_given = true;
            certificate.worst_translated = families::worst_translated(&alone, &plan);
        }
    } else {
        certificate.every_translation = families::is_additive(problem, &plan);
    }
    if total > problem.ideal {
        certificate.witness = clique::witness(problem);
        if certificate.witness.is_some() {
            derivation.least = derivation.least.max(problem.ideal + 1);
        }
        let (least, ideal) = (derivation.least, problem.ideal);
        derivation.status = if finished || least > ideal {
            Status::Impossible
        } else {
            Status::Unproven
        };
        derivation.lower_bound = if finished { total } else { least };
        let exhausted = |e: Examined| e.family == Family::F2 && e.finished;
        let linear_optimum = certificate.examined().any(exhausted);
        certificate.linear_optimum = linear_optimum;
    }
    certificate.least = derivation.least;
    derivation.certificate = certificate;
    Ok(derivation)
}
