//! What a mixture of experts does around its grouped products: which experts a token goes to, rows in the order of the experts, and the weighted sums of what they give.
//!
//! ```text
//! route     logits: tokens × experts ──softmax, the K largest──▶ weight, expert: tokens × K
//!           expert ──a bit for each token of a word──▶ mask ──sums over blocks of tokens──▶ counts, offsets: the groups of a grouped product
//!           mask, sums ──▶ row_of_choice: tokens × K; token_of_row: tokens·K, its inverse
//! gather    x: tokens × k ──rows token_of_row──▶ y: rows × k, as it is or quantised
//! combine   z: rows × n ──rows row_of_choice, times weight──▶ y: tokens × n
//! ```
//!
//! Rows of an expert are in the order of their tokens. No position is found by an atomic operation: results are the same bits in each run.
//!
//! [`route()`] makes the tables that [`gather()`] and [`combine()`] take. The offsets are those of [`Kind::Offsets`](crate::grouped::Kind::Offsets) of a grouped product. Each kernel is proven for any content of its tables.

mod choose;
mod combine;
mod ends;
mod gather;
mod masks;
mod places;

use layout_codegen::ir::Element;
use layout_codegen::value::U32;
use layout_codegen::{Arch, Proven, ir::Kernel};

use crate::KernelError;

pub use combine::{Combine, combine};
pub use gather::{ELEMENTS as GATHERED, Gather, gather};

/// The types of logits, and of rows that are summed.
pub const LOGITS: [Element; 3] = [Element::F32, Element::F16, Element::Bf16];

/// The most tokens.
pub const MOST_TOKENS: i64 = 1 << 20;

/// The most experts.
pub const MOST_EXPERTS: i64 = 512;

/// The most experts of a token.
pub const MOST_CHOICES: i64 = 16;

/// Tokens of a block of the tables, and those of a word of the masks.
const TOKENS: i64 = 256;
const WORD: i64 = 32;

/// Routing: softmax over the experts of each token, and the largest of them.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::experts::{Route, route};
///
/// let kernels = route(Route::new(Element::Bf16, 256, 8), Arch(80))?;
/// let names: Vec<_> = kernels.iter().map(|kernel| kernel.name()).collect();
/// assert_eq!(names, ["route_bf16_256_8", "route_masks_8", "route_ends", "route_places_8"]);
/// assert_eq!(kernels[3].proof.covered, ["row_of_choice", "token_of_row"]);
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Route {
    /// The type of the logits: f32, f16 or bf16.
    pub element: Element,
    /// The number of experts that the kernel is made for, [`MOST_EXPERTS`] at most: it takes any number up to the next power of two. With fewer than `top`, what is beyond them has no row.
    pub experts: u64,
    /// Experts of a token: 1 to [`MOST_CHOICES`].
    pub top: i64,
    /// The weights of a token are divided by their sum.
    pub normalized: bool,
}

impl Route {
    /// Routing with weights that are divided by their sum.
    pub fn new(element: Element, experts: u64, top: i64) -> Self {
        Self {
            element,
            experts,
            top,
            normalized: true,
        }
    }

    fn validate(&self) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &LOGITS)?;
        choices(self.top)?;
        let few = (self.top as u64..=MOST_EXPERTS as u64).contains(&self.experts);
        KernelError::unless(
            few,
            "experts",
            self.experts,
            "at least as many as a token has, and 512 at most",
        )
    }
}

/// Refuses a number of experts of a token.
fn choices(top: i64) -> Result<(), KernelError> {
    let is = (1..=MOST_CHOICES).contains(&top);
    KernelError::unless(is, "experts of a token", top, "1 to 16")
}

/// The kernels of routing, in the order of their launches. The tables that pass between them, `expert`, `mask`, `counts_of_block` and `begins`, are a workspace.
///
/// * `route_<element>_<experts>_<top>(tokens, experts, logits, weight, expert)`, with `_softmax` behind it if the weights are left as they are,
/// * `route_masks_<top>(tokens, experts, expert, mask, counts_of_block)`,
/// * `route_ends(tokens, experts, counts_of_block, counts, offsets, begins)`,
/// * `route_places_<top>(tokens, experts, expert, mask, begins, row_of_choice, token_of_row)`.
///
/// The results are `weight` (tokens × top, f32), `counts` and `offsets` (experts, s32; the end of each expert's rows), `row_of_choice` (tokens × top, s32) and `token_of_row` (tokens·top, s32).
///
/// # Numerics
///
/// The experts of a token are those with the largest logits in falling order, of equal ones the lower index first; NaN is the least. A weight is exp(x − max) divided by the sum over all experts, in f32, and
/// then by the sum of the token's weights in their order. A token with NaN or +∞ among its logits, or with −∞ alone, has the weights NaN, as in PyTorch. No token depends on another but by where its rows are.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the fields do not allow.
pub fn route(what: Route, arch: Arch) -> Result<Vec<Proven>, KernelError> {
    what.validate()?;
    Ok(vec![
        choose::choose(&what, arch)?,
        masks::masks(what.top, arch)?,
        ends::ends(arch)?,
        places::places(what.top, arch)?,
    ])
}

/// The number of bits that are set.
fn ones(k: &mut Kernel, x: U32) -> U32 {
    let half = x.shr(k, 1).and(k, 0x5555_5555);
    let pairs = x.sub(k, half);
    let high = pairs.shr(k, 2).and(k, 0x3333_3333);
    let nibbles = pairs.and(k, 0x3333_3333).add(k, high);
    let high = nibbles.shr(k, 4);
    let bytes = nibbles.add(k, high).and(k, 0x0f0f_0f0f);
    bytes.mul(k, 0x0101_0101).shr(k, 24)
}
