//! From a problem to launches.
//!
//! ```text
//! before   pack A, pack B        operands with narrow rows, copied to rows of whole lines (workspace)
//!          the product           C, or partial sums                                      (workspace)
//! after    reduce                partial sums to C
//! ```

use layout_codegen::tensor_map::MapArgument;
use layout_core::TensorBox;

use super::kernel;
use crate::gemm::epilogue::given;
use crate::gemm::scheduler::{GRID_YZ, TileSchedule};
use crate::gemm::workspace::Workspace;
use crate::gemm::{
    ArgumentValue, DataType, Epilogue, Gemm, GivenInput, Launch, Limit, MapSource, Mode, PlanError,
    ProblemError, Specialized, Trans,
};

impl Specialized {
    /// This variant's kernel computes the problem.
    fn serves(&self, problem: &Gemm) -> Result<(), PlanError> {
        self.possible(problem)?;
        let own = &self.variant;
        let adapt = "specialize the configuration for the problem first (`Config::specialize`)";
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
        if problem.batch.count != 1 && own.tiles != TileSchedule::Batch {
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
        let layers = match self.variant.tiles {
            TileSchedule::Batch => problem.batch.count,
            _ => parts,
        };
        let [tm, tn, _] = self.tile().map(u64::from);
        let mut grid = self
            .variant
            .tiles
            .grid([problem.m, problem.n], [tm, tn], layers)?;
        // Blocks that fill up a cluster have tiles outside of C.
        for (blocks, cluster) in grid.iter_mut().zip(self.cluster_of_grid()) {
            *blocks = blocks.next_multiple_of(cluster.into());
        }
        Limit::Grid.at_most("n", grid[1] * tn, GRID_YZ * tn)?;
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
        let layers = (self.variant.tiles == TileSchedule::Batch)
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
    pub(in crate::gemm) fn launched(&self, problem: &Gemm) -> Result<Option<Launch>, PlanError> {
        self.serves(problem)?;
        if problem.m == 0 || problem.n == 0 || problem.batch.count == 0 {
            return Ok(None);
        }
        if self.variant.tiles == TileSchedule::Batch {
            let names = ["the stride of A", "the stride of B", "the stride of C"];
            for (name, stride) in names.into_iter().zip(problem.batch.strides) {
                Limit::Counter.at_most(name, stride, u32::MAX.into())?;
            }
        }
        let split = match self.variant.tiles {
            TileSchedule::SplitK(parts) => self.split(problem.k, parts),
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
        let mapped = if self.is_wgmma() {
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
            if self.is_wgmma() && matches!(name, "A" | "B" | "B2") {
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
            given(self.finish(), problem)
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
