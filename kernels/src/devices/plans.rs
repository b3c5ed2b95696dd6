//! A plan for each product of a program. Alone, a product takes the plan that [`select`](crate::select) chooses; where two of a device overlap, blocks of the second
//! take the place of those of the first that are done, which changes what is fastest.

use layout_codegen::Arch;

use super::program::{Action, Program};
use crate::gemm::{Config, DataType, Gemm, Scheduler, Specialized};
use crate::select::{Findings, Machine, SelectError, Wanted};

/// The tile of the persistent plan for products that overlap, and how many tiles fill a GPU.
const WIDE: [u32; 2] = [128, 256];
const FILLED: u64 = 100;

/// From this k on, multiprocessors left idle cost more than the time between tiles that persistent blocks save.
const LONG: u64 = 6144;

/// What the plans of a program's products are chosen by.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::devices::{Placement, Plans, Program};
/// use tilewright_kernels::gemm::{DataType, Gemm, Operands};
/// use tilewright_kernels::select::{Machine, Wanted};
///
/// let problem = Gemm::packed(8192, 7168, 8192, Operands::ALL[0]);
/// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
/// let program = Program::derive(&problem, &placement)?;
/// let plans = Plans {
///     wanted: Wanted::default(),
///     data_type: DataType::Bf16,
///     arch: Arch(90),
///     machine: Machine::for_arch(Arch(90)),
///     findings: None,
/// };
/// // Each device multiplies its own half of A first, and then the other's.
/// assert!(program.overlaps());
/// let half = Gemm::packed(4096, 3584, 8192, Operands::ALL[0]);
/// assert!(plans.plan(&half, program.overlaps())?.name().contains("128x256"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plans<'f> {
    /// What is already decided: plan, split, pack.
    pub wanted: Wanted,
    /// The element type.
    pub data_type: DataType,
    /// The architecture that kernels are emitted for.
    pub arch: Arch,
    /// The machine that they run on.
    pub machine: Machine,
    /// What was measured.
    pub findings: Option<&'f Findings>,
}

impl Plans<'_> {
    /// The plan for a product of a device, adapted to it. With `overlaps`, it runs beside another product of the same device.
    ///
    /// # Errors
    ///
    /// As [`Wanted::choose`].
    pub fn plan(&self, local: &Gemm, overlaps: bool) -> Result<Specialized, SelectError> {
        let plan = self.adapted(self.wanted, local)?;
        if self.wanted.config.is_some() || !overlaps || !plan.scheduler.is_persistent() {
            return Ok(plan);
        }
        let named = |config| {
            let wanted = Wanted {
                config: Some(config),
                ..self.wanted
            };
            self.adapted(wanted, local).ok()
        };
        // What the model chose serves; another plan may not.
        let plan = wide(self.data_type, local).and_then(named).unwrap_or(plan);
        if local.k < LONG || !leaves_room(&plan, local, self.machine.multiprocessors.into()) {
            return Ok(plan);
        }
        let one_tile_a_block = Config {
            scheduler: Scheduler::Grid,
            ..plan.config()
        };
        Ok(named(one_tile_a_block).unwrap_or(plan))
    }

    fn adapted(&self, wanted: Wanted, local: &Gemm) -> Result<Specialized, SelectError> {
        let choice = wanted.choose(
            self.data_type,
            local,
            self.arch,
            &self.machine,
            self.findings,
        )?;
        let plan = choice.config.specialize(local, choice.schedule);
        plan.map_err(SelectError::Plan)
    }
}

impl Program {
    /// Whether a device has several products, which run beside each other where one has idle multiprocessors.
    pub fn overlaps(&self) -> bool {
        let mut products = vec![0_usize; self.devices];
        for op in &self.ops {
            if let (Action::Product(_), Some(count)) = (&op.action, products.get_mut(op.device)) {
                *count += 1;
            }
        }
        products.into_iter().any(|count| count > 1)
    }
}

/// Whether the blocks of a persistent plan leave multiprocessors of `all` idle, throughout or in the last wave. Alone, another plan would leave as many idle in its
/// last wave; of two products that overlap, blocks of the second one take their place, unless persistent ones still sit there.
fn leaves_room(plan: &Specialized, local: &Gemm, all: u64) -> bool {
    let Ok(Some(launch)) = plan.launch(local) else {
        return false;
    };
    let tiles = tiles(plan.tile(), local);
    let blocks: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let waves = tiles.div_ceil(blocks.max(1));
    // A twentieth is not worth the slower main loop.
    tiles.saturating_mul(20) < waves.saturating_mul(19 * all.max(blocks))
}

fn tiles([m, n, _]: [u32; 3], local: &Gemm) -> u64 {
    let (down, across) = (local.m.div_ceil(m.into()), local.n.div_ceil(n.into()));
    down.saturating_mul(across)
}

/// The persistent plan of the [`WIDE`] tile, if the type has one and the product fills the GPU with it: what the model chooses for a product alone, such as
/// 192×160, is up to 8 % slower beside another one (8192×7168×8192 in bf16 on two H200: 0.680 instead of 0.633 ms).
fn wide(data_type: DataType, local: &Gemm) -> Option<Config> {
    Config::table().find(|config| {
        let [m, n, _] = config.tile;
        config.data_type == data_type
            && [m, n] == WIDE
            && tiles(config.tile, local) >= FILLED
            && config.scheduler.is_persistent()
            && config.cluster_blocks() == 1
    })
}
