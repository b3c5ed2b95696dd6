//! From a problem to a variant: how wide copies are, what is packed first, which tiles a block computes.

use layout_codegen::Arch;
use layout_codegen::ir::Element;

use super::widest_store;
use crate::gemm::pack::LINE;
use crate::gemm::scheduler::{
    MOST_LINEAR_TILES, Order, PERSISTENT_BLOCKS, Scheduler, TileSchedule, best_rectangle,
};
use crate::gemm::variant::Variant;
use crate::gemm::{
    Activation, Config, DataType, Gemm, LIMIT, Mainloop, PlanError, ProblemError, Schedule,
    Specialized,
};

/// Bytes that are fetched of a line of the caches.
const SECTOR: u64 = 32;

/// Sums of a thread beside which there are registers for the addresses of narrow copies.
const MOST_FOR_NARROW: i64 = 32;

/// The tiles of a type whose warps multiply by themselves.
fn tiles_of_warps(data_type: DataType) -> impl Iterator<Item = Config> {
    Config::table().filter(move |config| {
        let of_warps = matches!(
            config.mainloop,
            Mainloop::Simt { .. } | Mainloop::MmaSync { .. }
        );
        of_warps && config.data_type == data_type
    })
}

/// How the sums are split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// How many parts.
    pub(super) parts: u64,
    /// Products of one part, a multiple of the tile's depth.
    pub(super) chunk: u64,
}

impl Specialized {
    /// The parts of `k` products if at most `parts` are wanted.
    pub(super) fn split(&self, k: u64, parts: u32) -> Split {
        let tiles = k.div_ceil(self.depth() as u64).max(1);
        let each = tiles.div_ceil(u64::from(parts.max(1)));
        Split {
            parts: tiles.div_ceil(each),
            chunk: each * self.depth() as u64,
        }
    }

    /// Sums of a thread, of all products.
    pub(super) fn sums_of_a_thread(&self) -> i64 {
        self.variant.products * self.tile_of_c().0 * self.tile_of_c().1 / self.thread_count()
    }

    /// Factors are widened to f16 on `sm_90` and `sm_100`, which have no products of 8-bit floats by `mma.sync`.
    pub(super) fn is_widened(&self) -> bool {
        matches!(self.data_type, DataType::E4m3 | DataType::E5m2)
    }

    /// Whether registers suffice for copies of A and B of these widths in bytes. Narrow copies need extra address registers; without this
    /// reserve ptxas spills.
    fn has_registers_for(&self, [a, b]: [i64; 2]) -> bool {
        if a.min(b) >= 16 {
            return true;
        }
        // Of factors that are widened, two k steps a stage leave no room for single bytes, nor for pieces of 2 bytes beside 2 or 4.
        let (least, most) = (a.min(b), a.max(b));
        let crowded =
            self.is_widened() && self.depth() > 32 && (least == 1 || (least == 2 && most < 8));
        self.sums_of_a_thread() <= MOST_FOR_NARROW && !crowded
    }

    /// The tiles of the table for these products that have registers for such copies.
    fn with_registers_for(&self, copies: [i64; 2]) -> Vec<String> {
        let old = |config: &Config| config.min_arch() < Arch(80);
        let rivals = tiles_of_warps(self.data_type).filter(|rival| {
            rival.min_arch() <= self.min_arch()
                && old(rival) == old(self)
                && rival.kernel().has_registers_for(copies)
        });
        rivals.map(|rival| rival.to_string()).collect()
    }

    /// The configuration of this type whose warps multiply by themselves, and which takes narrow rows.
    fn config_of_warps(&self) -> String {
        let narrow = |config: &Config| {
            config.min_arch() >= Arch(80) && config.kernel().has_registers_for([4; 2])
        };
        tiles_of_warps(self.data_type)
            .find(narrow)
            .map_or_else(String::new, |config| config.to_string())
    }

    /// What the problem asks for is something that plans of this type have.
    pub(super) fn possible(&self, problem: &Gemm) -> Result<(), PlanError> {
        problem.validate(LIMIT)?;
        self.counted(problem)?;
        problem.placed(self.data_type)?;
        if self.scalar() == Element::S32 {
            problem.integral()?;
        }
        let single = self.scalar() == Element::F32;
        for (name, value) in [("alpha", problem.alpha), ("beta", problem.beta)] {
            if single && !(value as f32).is_finite() {
                return Err(ProblemError::NotFinite(name).into());
            }
        }
        let output = problem.result(self.data_type);
        let own = self.finish().output();
        let has = own
            .as_ref()
            .map_or(self.data_type.results(), std::slice::from_ref);
        if !has.contains(&output) {
            let names: Vec<_> = has.iter().map(ToString::to_string).collect();
            return Err(self.unsupported(
                format!("C in {output}"),
                &format!(
                    "products in {} have C in {}",
                    self.data_type,
                    names.join(", ")
                ),
            ));
        }
        if output == Element::Bf16 && !self.is_asynchronous() {
            return Err(self.unsupported("C in bf16", "take C in f16 or f32, or a plan for sm_80"));
        }
        if problem.epilogue.activation == Activation::Gelu && !single {
            return Err(self.unsupported(
                format!("gelu in {}", self.scalar()),
                "gelu is computed in f32; take relu or none",
            ));
        }
        Ok(())
    }

    /// Persistent blocks count uses of stages through all tiles: their sizes and leading dimensions are smaller than those of others.
    fn counted(&self, problem: &Gemm) -> Result<(), PlanError> {
        let sizes = [
            ("m", problem.m),
            ("n", problem.n),
            ("k", problem.k),
            ("lda", problem.lda),
            ("ldb", problem.ldb),
            ("ldc", problem.ldc),
        ];
        let most = self.limit();
        let Some((name, value)) = sizes.into_iter().find(|(_, value)| *value > most) else {
            return Ok(());
        };
        Err(self.unsupported(
            format!("{name} = {value}"),
            &format!(
                "a persistent block counts uses of stages through all of its tiles, so sizes and leading dimensions are at most 2^{}; take {}",
                most.ilog2(),
                self.plain()
            ),
        ))
    }

    /// The variant for a problem.
    pub(in crate::gemm) fn variant_for(
        &self,
        problem: &Gemm,
        schedule: Schedule,
    ) -> Result<Variant, PlanError> {
        self.possible(problem)?;
        self.possible_schedule(problem, schedule)?;
        let widths = problem.widths(self.data_type).map(i64::from);
        let mut variant = Variant {
            products: self.variant.products,
            copies: [widths[0], widths[1]],
            cached: [false; 2],
            store: widths[2].min(widest_store(problem.result(self.data_type))),
            output: problem.result(self.data_type),
            epilogue: problem.epilogue,
            tiles: self.tiles_for(problem, schedule)?,
            pack: [None; 2],
        };
        self.takes_operands(problem, [widths[0], widths[1]])?;
        let rows = [problem.lda, problem.ldb].map(|ld| ld * u64::from(self.data_type.bytes()));
        let transposed = self.transposed(problem.operands);
        if schedule.pack || self.is_wgmma() {
            for (i, &width) in widths[..2].iter().enumerate() {
                // Boxes of TMA are slower where rows do not begin lines; what is transposed first begins them anyway.
                let lines = !self.is_wgmma() || transposed[i] || rows[i].is_multiple_of(LINE);
                if width < 16 || (schedule.pack && !lines) {
                    (variant.pack[i], variant.copies[i]) = (Some(width), 16);
                }
            }
        }
        // Only what lies in memory as the caller put it: packed rows begin lines.
        for (i, bytes) in rows.into_iter().enumerate() {
            let whole = variant.copies[i] == 16 && variant.pack[i].is_none();
            let by_cp_async = self.is_asynchronous() && !self.is_wgmma();
            variant.cached[i] = by_cp_async && whole && bytes % SECTOR != 0;
        }
        if !self.has_registers_for(variant.copies) {
            let [a, b] = variant.copies;
            let narrow = a.min(b);
            let pack = if problem.batch.count != 1 || self.variant.products == 2 {
                ""
            } else {
                "pack the operands first (`Schedule::pack`, `--pack`), or "
            };
            let plans = self.with_registers_for(variant.copies).join(" or ");
            return Err(self.unsupported(
                format!("copies of {narrow} bytes, which this alignment asks for"),
                &format!("{pack}take {plans}"),
            ));
        }
        // A tile that these copies do not divide is refused here.
        self.with_variant(variant).maps(problem.operands)?;
        Ok(variant)
    }

    /// The split, the packing and the batch go together, and with this configuration.
    fn possible_schedule(&self, problem: &Gemm, schedule: Schedule) -> Result<(), PlanError> {
        let many = problem.batch.count != 1;
        let dual = self.variant.products == 2;
        if dual && (many || schedule != Schedule::default()) {
            return Err(self.unsupported(
                "a batch, split sums or packed operands in a dual product",
                "launch the products of a batch one by one, and leave out the split and the packing",
            ));
        }
        if schedule.split == 0 {
            return Err(self.unsupported("no split of k", "give 1 part to leave them whole"));
        }
        if many && schedule.pack {
            return Err(self.unsupported(
                "packed operands in a batch",
                "leave the packing out: a 64x64 tile copies narrow rows as they lie",
            ));
        }
        let plain = || format!("take {}", self.plain());
        if self.scheduler.is_persistent() && (many || schedule.split != 1) {
            return Err(self.unsupported("a batch or split-K by a persistent kernel", &plain()));
        }
        if dual && self.is_promoted() {
            return Err(self.unsupported(
                "a dual product with two-level accumulation, which would take twice the registers",
                &plain(),
            ));
        }
        if dual && self.is_ping_pong() {
            return Err(self.unsupported("a dual product in a ping-pong schedule", &plain()));
        }
        if many && self.split(problem.k, schedule.split).parts > 1 {
            return Err(self.unsupported(
                "split-K in a batch",
                "leave the split out: a batch has blocks enough",
            ));
        }
        Ok(())
    }

    /// Which tiles a block computes of a problem.
    fn tiles_for(&self, problem: &Gemm, schedule: Schedule) -> Result<TileSchedule, PlanError> {
        let Scheduler::Persistent(order) = self.scheduler else {
            return Ok(if problem.batch.count != 1 {
                TileSchedule::Batch
            } else if self.split(problem.k, schedule.split).parts > 1 {
                TileSchedule::SplitK(schedule.split)
            } else {
                TileSchedule::Groups
            });
        };
        let [tm, tn, _] = self.tile().map(u64::from);
        let [down, across] = [problem.m.div_ceil(tm), problem.n.div_ceil(tn)];
        if order == Order::Rectangle {
            let (blocks, _) = best_rectangle([down, across], [tm, tn], self.cluster);
            return Ok(TileSchedule::Rectangle(blocks));
        }
        if down.saturating_mul(across) > MOST_LINEAR_TILES {
            return Err(self.unsupported(
                format!("{down}x{across} tiles"),
                &format!(
                    "a linear scheduler has at most {MOST_LINEAR_TILES}; take {}",
                    self.plain()
                ),
            ));
        }
        let most = |n: u64| n.clamp(1, self.limit()) as u32;
        Ok(TileSchedule::Linear {
            blocks: PERSISTENT_BLOCKS,
            tiles: [down, across].map(most),
        })
    }

    /// What lies in memory as a batch or a dual product has it can be copied by this configuration.
    fn takes_operands(&self, problem: &Gemm, widths: [i64; 2]) -> Result<(), PlanError> {
        let many = problem.batch.count != 1;
        if !self.is_wgmma() || !many && self.variant.products == 1 {
            return Ok(());
        }
        let mma = self.config_of_warps();
        // Tensor maps are of rows that begin at multiples of 16 bytes.
        if widths.iter().any(|&w| w < 16) {
            return Err(self.unsupported(
                "a batch or a dual product of operands that are not aligned to 16 bytes",
                &format!("take a plan that copies narrow rows, such as {mma}"),
            ));
        }
        if self.transposed(problem.operands).contains(&true) {
            let lie = if self.is_through_registers() {
                "k contiguous in A and n in B (nn)"
            } else {
                "k contiguous in A and B (nt)"
            };
            return Err(self.unsupported(
                format!("a batch or a dual product with {}", problem.operands),
                &format!(
                    "wgmma multiplies {} with {lie} alone; take another plan, such as {mma}",
                    self.data_type
                ),
            ));
        }
        if many && problem.batch.strides[..2].contains(&0) {
            return Err(self.unsupported(
                "a batch of which all products have the same operand",
                &format!("take another plan, such as {mma}"),
            ));
        }
        Ok(())
    }
}
