//! From a problem to a variant, and from a problem to launches.
//!
//! ```text
//! before   pack A, pack B        operands with narrow rows, copied to rows of whole lines (workspace)
//!          the product           C, or partial sums                                      (workspace)
//! after    reduce                partial sums to C
//! ```

use layout_codegen::ir::Element;
use layout_codegen::tensor_map::MapArgument;
use layout_core::TensorBox;

use super::product::widest_store;
use super::{Depth, MmaPlan, PLANS, Product, Variant, WARPGROUP_PLANS, kernel, raster};
use crate::gemm::epilogue::given;
use crate::gemm::pack::LINE;
use crate::gemm::raster::{GRID_YZ, MOST_DEALT, TURNS_BLOCKS, best_turns};
use crate::gemm::workspace::Workspace;
use crate::gemm::{
    Activation, ArgumentValue, DataType, Epilogue, Form, Gemm, GivenInput, LIMIT, Launch, Limit,
    MapSource, Mode, Plan, PlanError, ProblemError, Schedule, Trans, Turns,
};

/// Bytes that are fetched of a line of the caches.
const SECTOR: u64 = 32;

/// Sums of a thread beside which there are registers for the addresses of narrow copies.
const MOST_FOR_NARROW: i64 = 32;

/// How the sums are split.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    /// How many parts.
    pub(super) parts: u64,
    /// Products of one part, a multiple of the tile's depth.
    pub(super) chunk: u64,
}

impl MmaPlan {
    /// The parts of `k` products if at most `parts` are wanted.
    pub(super) fn split(&self, k: u64, parts: u32) -> Split {
        let tiles = k.div_ceil(self.depth as u64).max(1);
        let each = tiles.div_ceil(u64::from(parts.max(1)));
        Split {
            parts: tiles.div_ceil(each),
            chunk: each * self.depth as u64,
        }
    }

    /// Sums of a thread, of all products.
    pub(super) fn sums_of_a_thread(&self) -> i64 {
        self.variant.products * self.tile.0 * self.tile.1 / self.thread_count()
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
            self.is_widened() && self.depth > 32 && (least == 1 || (least == 2 && most < 8));
        self.sums_of_a_thread() <= MOST_FOR_NARROW && !crowded
    }

    /// The listed plans for these products that have registers for such copies.
    fn with_registers_for(&self, copies: [i64; 2]) -> Vec<String> {
        let rivals = PLANS.iter().filter(|plan| {
            plan.data_type == self.data_type
                && plan.arch <= self.arch
                && (plan.arch < 80) == (self.arch < 80)
                && plan.has_registers_for(copies)
        });
        rivals.map(Plan::name).collect()
    }

    /// The plan of this type whose warps multiply by themselves, and which takes narrow rows.
    fn plan_of_warps(&self) -> String {
        let narrow = |plan: &&MmaPlan| {
            plan.data_type == self.data_type && plan.arch >= 80 && plan.has_registers_for([4; 2])
        };
        PLANS
            .iter()
            .find(narrow)
            .map_or_else(String::new, Plan::name)
    }

    /// The plan of the same tile, with any number of stages, whose blocks have one tile each, by themselves; the first such plan of the type where that one is not listed.
    pub(super) fn plain(&self) -> Self {
        let same = Self {
            turns: Turns::One,
            form: match self.form {
                Form::Swapped => Form::Swapped,
                Form::Plain | Form::Promoted | Form::PingPong => Form::Plain,
            },
            cluster: (1, 1),
            ..*self
        };
        let is_plain = |plan: &&Self| {
            plan.data_type == self.data_type && plan.turns == Turns::One && plan.cluster == (1, 1)
        };
        let mut listed = WARPGROUP_PLANS.iter().chain(PLANS).filter(is_plain);
        let first = listed.clone().next();
        let found = listed.find(|plan| same.is_but_for_stages(plan)).or(first);
        found.map_or(same, |plan| *plan)
    }

    /// What an exchanged product is not made for.
    pub(super) fn no_dual_swapped(&self) -> PlanError {
        let other = Self {
            form: Form::Plain,
            ..*self
        };
        self.unsupported(
            "a dual product with A and B swapped".to_owned(),
            &format!("take {}", other.plain().name()),
        )
    }

    fn unsupported(&self, what: String, instead: &str) -> PlanError {
        PlanError::Unsupported {
            plan: self.name(),
            what,
            instead: instead.to_owned(),
        }
    }
}

impl Product<'_> {
    /// What the problem asks for is something that plans of this type have.
    fn possible(&self, problem: &Gemm) -> Result<(), PlanError> {
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
        let own = self.finish.output();
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
        if output == Element::Bf16 && self.arch < 80 {
            return Err(self.unsupported(
                "C in bf16".to_owned(),
                "take C in f16 or f32, or a plan for sm_80",
            ));
        }
        if problem.epilogue.activation == Activation::Gelu && !single {
            return Err(self.unsupported(
                format!("gelu in {}", self.scalar()),
                "gelu is computed in f32; take relu or none",
            ));
        }
        Ok(())
    }

    /// Blocks that take tile after tile count uses of stages through all tiles: their sizes and leading dimensions are smaller than those of others.
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
                "its blocks count uses of stages through all of their tiles, so sizes and leading dimensions are at most 2^{}; take {}",
                most.ilog2(),
                self.plain().name()
            ),
        ))
    }

    /// The variant for a problem.
    pub(super) fn adapted(&self, problem: &Gemm, schedule: Schedule) -> Result<MmaPlan, PlanError> {
        self.clusters()?;
        self.takes_turns()?;
        self.possible(problem)?;
        let widths = problem.widths(self.data_type).map(i64::from);
        let many = problem.batch.count != 1;
        if self.variant.products == 2 && (many || schedule != Schedule::default()) {
            return Err(self.unsupported(
                "a batch, split sums or packed operands in a dual product".to_owned(),
                "launch the products of a batch one by one, and leave out the split and the packing",
            ));
        }
        if schedule.split == 0 {
            return Err(self.unsupported(
                "no split of k".to_owned(),
                "give 1 part to leave them whole",
            ));
        }
        if many && schedule.pack {
            return Err(self.unsupported(
                "packed operands in a batch".to_owned(),
                "leave the packing out: a 64x64 tile copies narrow rows as they lie",
            ));
        }
        if self.turns.are_several() && (many || schedule.split != 1) {
            return Err(self.unsupported(
                "a batch or split-K by a persistent kernel".to_owned(),
                &format!("take {}", self.plain().name()),
            ));
        }
        if self.form.is_promoted() && self.variant.products == 2 {
            return Err(self.unsupported(
                "a dual product with two-level accumulation, which would take twice the registers"
                    .to_owned(),
                &format!("take {}", self.plain().name()),
            ));
        }
        if self.form.is_swapped() && self.variant.products == 2 {
            return Err(self.no_dual_swapped());
        }
        let split = self.split(problem.k, schedule.split);
        let depth = match (many, split.parts) {
            (true, 2..) => {
                return Err(self.unsupported(
                    "split-K in a batch".to_owned(),
                    "leave the split out: a batch has blocks enough",
                ));
            }
            (true, _) => Depth::Batch,
            (false, 2..) => Depth::Split(schedule.split),
            (false, _) if self.turns.are_several() => {
                let tiles = [(problem.m, self.tile.0), (problem.n, self.tile.1)];
                let [down, across] = tiles.map(|(extent, tile)| extent.div_ceil(tile as u64));
                let cluster = self.anatomy().cluster;
                let tile = (self.tile.0 as u64, self.tile.1 as u64);
                if self.turns == Turns::Dealt {
                    if down.saturating_mul(across) > MOST_DEALT {
                        return Err(self.unsupported(
                            format!("{down}x{across} tiles"),
                            &format!(
                                "it deals out at most {MOST_DEALT}; take {}",
                                self.plain().name()
                            ),
                        ));
                    }
                    let most = |n: u64| n.clamp(1, self.limit()) as u32;
                    Depth::Dealt(TURNS_BLOCKS, [down, across].map(most))
                } else {
                    let ([rows, columns], _) = best_turns((down, across), tile, cluster);
                    Depth::Turns(rows, columns)
                }
            }
            (false, _) => Depth::Groups,
        };
        let mut variant = Variant {
            products: self.variant.products,
            copies: [widths[0], widths[1]],
            cached: [false; 2],
            store: widths[2].min(widest_store(problem.result(self.data_type))),
            output: problem.result(self.data_type),
            epilogue: problem.epilogue,
            depth,
            pack: [None; 2],
        };
        // Tensor maps are of rows that begin at multiples of 16 bytes.
        let alone = many || self.variant.products == 2;
        let mma = self.plan_of_warps();
        if self.warpgroups && alone && widths[..2].iter().any(|&w| w < 16) {
            return Err(self.unsupported(
                "a batch or a dual product of operands that are not aligned to 16 bytes".to_owned(),
                &format!("take a plan that copies narrow rows, such as {mma}"),
            ));
        }
        if alone && self.transposed(problem.operands).contains(&true) {
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
        if self.warpgroups && many && problem.batch.strides[..2].contains(&0) {
            return Err(self.unsupported(
                "a batch of which all products have the same operand".to_owned(),
                &format!("take another plan, such as {mma}"),
            ));
        }
        let rows = [problem.lda, problem.ldb].map(|ld| ld * u64::from(self.data_type.bytes()));
        let transposed = self.transposed(problem.operands);
        if schedule.pack || self.warpgroups {
            for (i, &width) in widths[..2].iter().enumerate() {
                // Boxes of TMA are slower where rows do not begin lines; what is transposed first begins them anyway.
                let lines = !self.warpgroups || transposed[i] || rows[i].is_multiple_of(LINE);
                if width < 16 || (schedule.pack && !lines) {
                    (variant.pack[i], variant.copies[i]) = (Some(width), 16);
                }
            }
        }
        // Only what lies in memory as the caller put it: packed rows begin lines.
        for (i, bytes) in rows.into_iter().enumerate() {
            let whole = variant.copies[i] == 16 && variant.pack[i].is_none();
            variant.cached[i] = self.arch >= 80 && !self.warpgroups && whole && bytes % SECTOR != 0;
        }
        if !self.has_registers_for(variant.copies) {
            let [a, b] = variant.copies;
            let narrow = a.min(b);
            let pack = if many || self.variant.products == 2 {
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
        let plan = MmaPlan {
            variant,
            ..self.plan
        };
        // A tile that these copies do not divide is refused here.
        plan.maps(problem.operands)?;
        Ok(plan)
    }

    /// This variant's kernel computes the problem.
    fn serves(&self, problem: &Gemm) -> Result<(), PlanError> {
        self.possible(problem)?;
        let own = &self.variant;
        let adapt = "adapt the plan to the problem first (`Plan::adapt`)";
        if problem.result(self.data_type) != own.output {
            let what = format!("C in {}", problem.result(self.data_type));
            return Err(self.unsupported(what, adapt));
        }
        if problem.epilogue != own.epilogue {
            let what = format!(
                "bias {} and activation {}",
                problem.epilogue.bias, problem.epilogue.activation
            );
            return Err(self.unsupported(what, adapt));
        }
        if problem.batch.count != 1 && own.depth != Depth::Batch {
            return Err(self.unsupported("a batch".to_owned(), adapt));
        }
        let widths = problem.widths(self.data_type);
        let needs = |i: usize| own.pack[i].unwrap_or(own.copies[i]) as u32;
        for (matrix, bytes, copies) in [("A", widths[0], needs(0)), ("B", widths[1], needs(1))] {
            if bytes < copies {
                return Err(ProblemError::Unaligned {
                    matrix,
                    bytes,
                    copies,
                }
                .into());
            }
        }
        // Whether stores of 16 bytes serve is found at run time; others are taken for granted.
        let (bytes, copies) = (widths[2], own.store as u32);
        if (copies < 16 || self.partial()) && bytes < copies {
            return Err(ProblemError::Unaligned {
                matrix: "C",
                bytes,
                copies,
            }
            .into());
        }
        Ok(())
    }

    /// Blocks along x, y and z, as far as grids have room, that of the kernel which adds partial sums too.
    fn grid(&self, problem: &Gemm, parts: u64) -> Result<[u64; 3], ProblemError> {
        let layers = match self.variant.depth {
            Depth::Batch => ("batch", problem.batch.count),
            Depth::Groups | Depth::Split(_) | Depth::Turns(..) | Depth::Dealt(..) => {
                ("split", parts)
            }
        };
        let tile = (self.tile.0 as u64, self.tile.1 as u64);
        let mut grid = raster(self.variant.depth).grid((problem.m, problem.n), tile, layers)?;
        // Blocks that fill up a cluster have tiles outside of C.
        for (blocks, cluster) in grid.iter_mut().zip(self.cluster_of_grid()) {
            *blocks = blocks.next_multiple_of(cluster.into());
        }
        Limit::Grid.at_most("n", grid[1] * tile.1, GRID_YZ * tile.1)?;
        if self.partial() {
            self.partial_sums(problem.operands).fits(problem.n)?;
        }
        Ok(grid)
    }

    /// B2 of a dual product, which lies as B does: all of it, as one row.
    fn second_operand(&self, problem: &Gemm) -> GivenInput {
        let (rows, columns) = problem.stored_b();
        let columns = if rows == 0 || columns == 0 {
            0
        } else {
            (rows - 1) * problem.ldb + columns
        };
        GivenInput {
            name: "B2".to_owned(),
            element: self.data_type.operand(),
            rows: 1,
            columns,
            leading_dimension: None,
            alignment: self.variant.copies[1] as u32,
        }
    }

    /// The tensor map of A (0) or B (1) as it lies in memory.
    fn map_of(&self, problem: &Gemm, i: usize) -> Result<MapArgument, PlanError> {
        let bytes = u64::from(self.data_type.bytes());
        let operands = problem.operands;
        // Rows and columns as the caller stores them; what is transposed first lies the other way round.
        let (modes, trans) = [
            ([Mode::M, Mode::K], operands.a),
            ([Mode::K, Mode::N], operands.b),
        ][i];
        let [rows, columns] = if (trans == Trans::T) == self.transposed(operands)[i] {
            modes
        } else {
            [modes[1], modes[0]]
        };
        let sizes = [problem.m, problem.n, problem.k];
        let ld = [problem.lda, problem.ldb][i];
        let maps = self.maps(problem.operands)?;
        let o = [&maps.a, &maps.b][i];
        let of = TensorBox::of(&o.derived, o.bytes)?;
        let portion = self.portion(o, i == 0)?;
        let batch = &problem.batch;
        let layers = (self.variant.depth == Depth::Batch)
            .then(|| (batch.count.max(1), batch.strides[i] * bytes));
        Ok(MapArgument {
            element: self.data_type.operand(),
            rounded: self.data_type == DataType::Tf32,
            dimensions: [columns.name(), rows.name()],
            // Of an array without elements nothing is copied.
            rows: rows.of(sizes).max(1),
            columns: columns.of(sizes).max(1),
            pitch_bytes: ld.max(1) * bytes,
            layers,
            box_rows: portion.rows as u32,
            box_columns: of.columns as u32,
            swizzle_bytes: of.swizzle_bytes as u32,
        })
    }

    /// How the problem is launched.
    pub(super) fn launched(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.serves(problem)?;
        if problem.m == 0 || problem.n == 0 || problem.batch.count == 0 {
            return Ok(None);
        }
        if self.variant.depth == Depth::Batch {
            let names = ["the stride of A", "the stride of B", "the stride of C"];
            for (name, stride) in names.into_iter().zip(problem.batch.strides) {
                Limit::Counter.at_most(name, stride, u32::MAX.into())?;
            }
        }
        let split = match self.variant.depth {
            Depth::Split(parts) => self.split(problem.k, parts),
            _ => self.split(problem.k, 1),
        };
        let grid = self.grid(problem, split.parts)?;
        let mut workspace = Workspace::default();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        // Without products nothing is read, and there is nothing to pack.
        let packed = self
            .packing(problem.operands)
            .launches(problem, &mut workspace)?;
        let partial = if self.partial() {
            let pitch = self.partial_sums(problem.operands).pitch(problem.n);
            let sums = [split.parts, problem.m, pitch];
            let at = workspace.place(sums, self.data_type.scalar().bytes())?;
            Some((pitch, at))
        } else {
            None
        };
        let entry = self.entry_name(problem.operands);
        let mapped = if self.warpgroups {
            [self.map_of(problem, 0)?, self.map_of(problem, 1)?].map(Some)
        } else {
            [None; 2]
        };
        let map = |name: &str| -> Option<ArgumentValue> {
            let i = usize::from(name != "A");
            let map = mapped[i]?;
            let (of, pitch_bytes) = match &packed[i] {
                Some(packed) => (
                    MapSource::Workspace(packed.at),
                    packed.pitch * u64::from(self.data_type.bytes()),
                ),
                None if name == "A" => (MapSource::A, map.pitch_bytes),
                None if name == "B" => (MapSource::B, map.pitch_bytes),
                None if name == "B2" => (MapSource::Given, map.pitch_bytes),
                None => return None,
            };
            Some(ArgumentValue::TensorMap(
                of,
                MapArgument { pitch_bytes, ..map },
            ))
        };
        let special = |name: &str| {
            if self.warpgroups && matches!(name, "A" | "B" | "B2") {
                return map(name);
            }
            Some(match (name, partial) {
                ("A", _) => packed[0].as_ref()?.pointer(),
                ("B", _) => packed[1].as_ref()?.pointer(),
                ("lda", _) => packed[0].as_ref()?.pitch(),
                ("ldb", _) => packed[1].as_ref()?.pitch(),
                ("partial", Some((_, at))) => ArgumentValue::Workspace(at),
                ("pitch", Some((pitch, _))) => ArgumentValue::Int(pitch),
                ("chunk", _) => ArgumentValue::Int(split.chunk),
                ("parts", _) => ArgumentValue::Int(split.parts),
                ("B2", _) => ArgumentValue::Given,
                _ => return None,
            })
        };
        // The bias of the variant is one of the product's own.
        let mut inputs = if self.variant.epilogue == Epilogue::default() {
            given(self.finish, problem)
        } else {
            Vec::new()
        };
        if self.variant.products == 2 {
            inputs.push(self.second_operand(problem));
        }
        let arguments = |parameters| Launch::arguments(problem, &inputs, parameters, special);
        if partial.is_some() {
            let sums = self.partial_sums(problem.operands);
            after.push(sums.launch(problem, arguments(sums.parameters())));
        }
        let maps = self.maps(problem.operands)?;
        let mut launch = Launch::single(
            entry,
            grid.map(|v| v as u32),
            self.threads(),
            self.shared_bytes_of(&maps) as u32,
            arguments(kernel::parameters(self)),
        );
        if problem.alpha != 0.0 && problem.k != 0 {
            before.extend(packed.into_iter().flatten().map(|p| p.launch));
        }
        launch.cluster = self.cluster_of_grid();
        (launch.before, launch.after) = (before, after);
        launch.workspace_bytes = workspace.0;
        launch.inputs = inputs;
        Ok(Some(launch))
    }
}

#[cfg(test)]
mod tests {
    use super::{PLANS, WARPGROUP_PLANS};
    use crate::gemm::{Plan, Turns};

    /// What is named instead of a plan whose blocks take tile after tile is there.
    #[test]
    fn plain_plans_are_listed() {
        let names: Vec<_> = WARPGROUP_PLANS
            .iter()
            .chain(PLANS)
            .map(Plan::name)
            .collect();
        for plan in WARPGROUP_PLANS
            .iter()
            .filter(|plan| plan.turns.are_several())
        {
            let plain = plan.plain();
            assert!(plain.turns == Turns::One && plain.data_type == plan.data_type);
            assert!(names.contains(&plain.name()), "{}", plan.name());
        }
        let of = |name: &str| WARPGROUP_PLANS.iter().find(|plan| plan.name() == name);
        let plain = |name| of(name).map(|plan| plan.plain().name());
        let wide = Some("wgmma-f16-128x256x64".to_owned());
        assert_eq!(plain("wgmma-f16-128x256x64-persistent-cluster2x1"), wide);
        assert_eq!(plain("wgmma-f16-192x160x64-persistent"), wide);
        let exchanged = Some("wgmma-tf32-256x128x32-swapped".to_owned());
        let close = "wgmma-tf32-256x128x32-swapped-persistent-3stages";
        assert_eq!(plain(close), exchanged);
    }
}
