//! Products of few rows with a large matrix: y = x·wᵀ, yₜⱼ = Σₖ xₜₖ·wⱼₖ for up to 16 rows t of x, such as the tokens that a language model decodes at once. f16, bf16 or
//! e4m3; summed in f32.
//!
//! ```text
//! w: n × k, 16 or 32 rows a block, 128 bytes of a row a warp and step ──16-byte loads──▶ B fragments ─┐
//! x: m × k ──pairs or fours──▶ A fragments, 16 rows with zeros below m ──────────────────────────┴▶ mma.sync ──▶ sums of a warp
//! sums of the warps ──▶ shared memory ──▶ added in the order of the warps ──▶ epilogue ──▶ y: m × n
//! ```
//!
//! The epilogue is that of the products of matrices ([`Epilogue`]): y ← activation(α·x·wᵀ + β·y + bias), computed in f32. With β = 0 y is not read, and with α = 0 neither are x and w.
//!
//! The time is that of reading w, and each element of w is read once, without a detour through shared memory. The fragment of an `mma.sync` takes pairs of elements that lie 8 apart. A
//! permutation of k makes them neighbours: for f16 the layout `(2,4,2,2):(1,8,2,4)` gives each lane 8 neighbouring elements, which two instructions take. A sum does not depend on the
//! order of its terms, if x has the same order.
//!
//! # Numerics
//!
//! Each warp adds the products of every [`WARPS`]-th tile of k in f32, in the order of `mma.sync`; then the sums of the warps are added in order. The result is rounded once. A row of y does not
//! depend on the other rows of x. For e4m3 the tensor cores keep 13 bits of a sum.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
use layout_codegen::value::{F32, Predicate};
use layout_codegen::view::{Fragment, Partition, View, ViewError};
use layout_codegen::{Arch, Proven};
use layout_core::{Layout, Swizzled, TiledMma, atoms};

use crate::KernelError;
use crate::gemm::epilogue::gelu_exponent;
use crate::gemm::{Activation, Bias, Epilogue};

/// The most rows of x.
pub const MOST_ROWS: i64 = 16;

/// Warps of a block, which share the tiles of k.
pub const WARPS: i64 = 8;

/// The types of x and w.
pub const ELEMENTS: [Element; 3] = [Element::F16, Element::Bf16, Element::E4m3];

/// The types of y, and of the bias.
pub const RESULTS: [Element; 3] = [Element::F16, Element::Bf16, Element::F32];

/// The largest n and k.
const MOST: i64 = 1 << 30;

/// A product of few rows.
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use tilewright_kernels::gemv::{Gemv, gemv};
///
/// let kernel = gemv(Gemv::new(Element::Bf16, 4096), Arch(80))?;
/// assert_eq!(kernel.name(), "gemv_bf16_16");
/// assert_eq!(kernel.proof.covered, ["y"]);
/// assert!(kernel.ptx.contains("ld.global.nc.v4"));
///
/// let error = Gemv { rows: 12, ..Gemv::new(Element::Bf16, 4096) };
/// let error = gemv(error, Arch(80)).unwrap_err();
/// assert_eq!(error.to_string(), "rows of w a block: 12 is not 16 or 32");
/// # Ok::<(), tilewright_kernels::KernelError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gemv {
    /// The type of x and w: f16, bf16 or e4m3 (from `sm_89`).
    pub element: Element,
    /// The type of y: f32, f16 or bf16.
    pub result: Element,
    /// Rows of w that a block has: 16 or 32. Fewer rows give more blocks.
    pub rows: i64,
    /// Bias and activation. The bias of a row has m elements, that of a column n.
    pub epilogue: Epilogue,
    /// α and β are parameters, and y is read. Without, they are 1 and 0.
    pub scaled: bool,
}

/// Blocks that keep the multiprocessors of a large GPU busy.
const ENOUGH_BLOCKS: u64 = 256;

impl Gemv {
    /// The product for w of `n` rows: the most rows a block that leave enough blocks.
    pub fn new(element: Element, n: u64) -> Self {
        let fits = n.div_ceil(32) >= ENOUGH_BLOCKS;
        let result = match element {
            Element::E4m3 => Element::Bf16,
            other => other,
        };
        Self {
            element,
            result,
            rows: if fits { 32 } else { 16 },
            epilogue: Epilogue::default(),
            scaled: false,
        }
    }

    fn validate(&self) -> Result<(), KernelError> {
        KernelError::unless_among(self.element, &ELEMENTS)?;
        KernelError::unless_among(self.result, &RESULTS)?;
        if ![16, 32].contains(&self.rows) {
            return Err(KernelError::Number {
                what: "rows of w a block",
                given: self.rows.to_string(),
                accepted: "16 or 32",
            });
        }
        Ok(())
    }

    fn name(&self) -> String {
        let mut name = format!("gemv_{}_{}", self.element, self.rows);
        for (is, what) in [
            (self.scaled, "scaled".to_owned()),
            (
                self.epilogue.bias != Bias::None,
                format!("bias_{}", self.epilogue.bias),
            ),
            (
                self.epilogue.activation != Activation::Identity,
                self.epilogue.activation.to_string(),
            ),
        ] {
            if is {
                name = format!("{name}_{what}");
            }
        }
        name
    }

    /// Elements of 16 bytes.
    fn vector(&self) -> i64 {
        16 / i64::from(self.element.bytes())
    }

    /// The instruction of a warp over 16 rows of x and 8 rows of w, with k permuted so that a lane's elements of two instructions are neighbours.
    fn mma(&self) -> Result<TiledMma, KernelError> {
        let atom = match self.element {
            Element::F16 => atoms::MMA_M16N8K16_F16,
            Element::Bf16 => atoms::MMA_M16N8K16_BF16,
            _ => atoms::MMA_M16N8K32_E4M3,
        };
        // A lane has 4 bytes of each half of an instruction's k.
        let (vector, word) = (self.vector(), self.vector() / 4);
        let k = Layout::flat(&[word, 4, 2, 2], &[1, vector, word, 2 * word])?;
        let tile = [Layout::mode(16, 1)?, Layout::mode(8, 1)?, k];
        let one = Layout::flat(&[1, 1, 1], &[0, 0, 0])?;
        Ok(TiledMma::with_tile(atom, &one, &tile)?)
    }
}

/// What becomes of the sums.
struct End {
    epilogue: Epilogue,
    /// α and β, if they are parameters.
    scalars: Option<[F32; 2]>,
    bias: Option<View>,
}

impl End {
    /// activation(α·sum + β·y + bias) for what a thread has of y, in the tile (0, `column`) of 16 × 8.
    fn finish(
        &self,
        k: &mut Kernel,
        sums: &Fragment,
        y: &Partition,
        column: Expr,
    ) -> Result<(), ViewError> {
        if let Some([alpha, beta]) = self.scalars {
            sums.update(k, |k, sum| sum.mul(k, alpha))?;
            // NaN is not 0.
            let reads = beta.eq(k, 0.0).not();
            k.when(reads, |k| {
                let old = k.load_fragment(y)?.convert(k, Element::F32)?;
                sums.update_with(k, &old, |k, sum, old| old.fma(k, beta, sum))
            })?;
        }
        if let Some(bias) = &self.bias {
            let zero = k.constant(0);
            let (mode, extent, at) = match self.epilogue.bias {
                Bias::Row => (0, MOST_ROWS, zero),
                _ => (1, 8, column),
            };
            let bias = bias.tile(k, &[extent], &[at])?;
            let bias = y.along(k, mode, &bias)?;
            let bias = k.load_fragment(&bias)?.convert(k, Element::F32)?;
            sums.update_with(k, &bias, |k, sum, bias| sum.add(k, bias))?;
        }
        match self.epilogue.activation {
            Activation::Identity => Ok(()),
            // Not max: that would lose a NaN.
            Activation::Relu => sums.update(k, |k, x| {
                let negative = x.lt(k, 0.0);
                let zero = F32::from(0.0);
                negative.select(k, zero, x)
            }),
            Activation::Gelu => sums.update(k, gelu),
        }
    }
}

/// [`gelu_exponent`] says the formula.
fn gelu(k: &mut Kernel, x: F32) -> F32 {
    let [cubic, linear] = gelu_exponent();
    let inner = x.mul(k, x).fma(k, cubic, linear).mul(k, x);
    let below = inner.exp2(k).add(k, 1.0).reciprocal(k);
    x.mul(k, below)
}

/// The kernel `gemv_<element>_<rows>(m, n, k, x, w, y)`: x is m × k, w is n × k, y is m × n, row-major. A bias comes behind y, of the type of y, then alpha and beta if they are parameters.
///
/// # Errors
///
/// [`KernelError::Element`] and [`KernelError::Number`] for what the configuration does not allow, [`KernelError::Proof`] for an architecture that lacks an instruction.
pub fn gemv(what: Gemv, arch: Arch) -> Result<Proven, KernelError> {
    what.validate()?;
    let (rows, vector) = (what.rows, what.vector());
    let threads = 32 * WARPS;
    let mut k = Kernel::new(&what.name(), threads as u32);
    let (m, n, depth) = (k.size("m", MOST_ROWS), k.size("n", MOST), k.size("k", MOST));
    let x = k.input("x", what.element, &[m, depth]);
    let w = k.input("w", what.element, &[n, depth]);
    let y = k.output("y", what.result, &[m, n]);
    let bias = match what.epilogue.bias {
        Bias::None => None,
        Bias::Row => Some(k.input("bias", what.result, &[m])),
        Bias::Column => Some(k.input("bias", what.result, &[n])),
    };
    let scalars = what
        .scaled
        .then(|| ["alpha", "beta"].map(|name| k.argument::<f32>(name)));
    let end = End {
        epilogue: what.epilogue,
        scalars,
        bias,
    };
    let (j, zero) = (k.tiles(Axis::X, n, rows)?, k.constant(0));
    let (thread, lane) = (k.thread(), k.lane());
    let warp = k.div(thread, 32);

    // 128 bytes of a row of w: two loads of 16 bytes a lane.
    let mma = what.mma()?;
    let width = 8 * vector;
    let groups = rows / 8;
    let sums = (0..groups).map(|_| k.accumulators(&mma, [MOST_ROWS, 8], lane));
    let sums = sums.collect::<Result<Vec<_>, _>>()?;
    let steps = k.tiles_in(depth, width * WARPS)?;
    let products = |k: &mut Kernel| {
        k.for_loop("step", 0, 1, steps, |k, step| {
            let t = k.linear(&[(WARPS, step), (1, warp)], 0);
            let loads = (0..groups).map(|group| {
                let group = k.linear(&[(groups, j)], group);
                let b = w.tile(k, &[8, width], &[group, t])?;
                let b = b.partition_b(k, &mma, lane)?.vectors(k, vector)?;
                k.load_fragment(&b)
            });
            let loads = loads.collect::<Result<Vec<_>, _>>()?;
            let a = x.tile(k, &[MOST_ROWS, width], &[zero, t])?;
            let a = a.partition_a(k, &mma, lane)?.vectors(k, vector / 4)?;
            let a = k.load_fragment(&a)?;
            let mut both = loads.iter().zip(&sums);
            both.try_for_each(|(b, sums)| k.gemm(&mma, &a, b, sums))
        })
    };
    match scalars {
        None => products(&mut k)?,
        Some([alpha, _]) => {
            let multiplies = alpha.eq(&mut k, 0.0).not();
            k.when(multiplies, |k| products(k))?;
        }
    }

    // The sums of each warp to shared memory, and one after the other back. A row ends with 8 unused elements, so that lanes of 8 rows meet other banks.
    let layout = Layout::flat(
        &[WARPS, MOST_ROWS, rows],
        &[MOST_ROWS * (rows + 8), rows + 8, 1],
    )?;
    let parts = k.shared("parts", Element::F32, &Swizzled::from(layout))?;
    let own = parts.slice(&mut k, &[warp])?;
    for (group, sums) in (0..).zip(&sums) {
        let at = [zero, k.constant(group)];
        let own = own.tile(&mut k, &[MOST_ROWS, 8], &at)?;
        let own = own.partition_c(&mut k, &mma, lane)?.vectors(&k, 2)?;
        k.store_fragment(&own, sums)?;
    }
    k.barrier();
    // The first warps have 8 columns of y each.
    let count = k.constant(groups);
    let stores = Predicate::of(&mut k, warp, Cmp::Lt, count);
    let group = k.rem(warp, groups);
    k.when(stores, |k| {
        let column = k.linear(&[(groups, j), (1, group)], 0);
        let y = y.tile(k, &[MOST_ROWS, 8], &[zero, column])?;
        let y = y.partition_c(k, &mma, lane)?.vectors(k, 2)?;
        let total = k.fragment_of(&y, 0.0)?;
        for warp in 0..WARPS {
            let warp = k.constant(warp);
            let part = parts.slice(k, &[warp])?;
            let part = part.tile(k, &[MOST_ROWS, 8], &[zero, group])?;
            let part = part.partition_c(k, &mma, lane)?.vectors(k, 2)?;
            let part = k.load_fragment(&part)?;
            total.update_with(k, &part, |k, sum, part| sum.add(k, part))?;
        }
        end.finish(k, &total, &y, column)?;
        let total = total.convert(k, what.result)?;
        k.store_fragment(&y, &total)
    })?;
    Ok(k.build(arch)?)
}
