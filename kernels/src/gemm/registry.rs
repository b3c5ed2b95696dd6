//! The list of plans: every kernel family that there is, by name.
//!
//! Nothing else names the families: the command, the macros and [`select`](crate::select) take plans from here and ask each for what it is. A new
//! family joins the list here.
//!
//! ```
//! use tilewright_kernels::gemm::registry::{plan_named, plans};
//!
//! assert!(plans().iter().any(|plan| plan.name() == "sgemm-maxas-128"));
//! assert_eq!(plan_named("sgemm-maxas-128")?.tile(), (128, 128, 8));
//! assert_eq!(plan_named("sgemm-maxas-129").err().map(|e| e.code()), Some("unknown_plan"));
//! # Ok::<(), tilewright_kernels::gemm::PlanError>(())
//! ```

use crate::gemm::mma_sync::{MmaPlan, PLANS, WARPGROUP_PLANS};
use crate::gemm::{Plan, PlanError};
use crate::sources::maxas::SgemmPlan;
use crate::sources::outer::OuterPlan;

/// All plans.
pub fn plans() -> Vec<Box<dyn Plan>> {
    let sgemm = SgemmPlan::ALL.iter().map(|p| Box::new(*p) as Box<dyn Plan>);
    let outer = OuterPlan::ALL.iter().map(|p| Box::new(*p) as Box<dyn Plan>);
    // Of two plans that are as fast, the one that asks less of the schedulers.
    let all = WARPGROUP_PLANS.iter().chain(PLANS);
    let mma = all.map(|p| Box::new(*p) as Box<dyn Plan>);
    sgemm.chain(outer).chain(mma).collect()
}

/// The plan of a name: one that is listed, any other `wgmma` plan, or a plan of warps with another number of stages, 2 to 32.
///
/// ```
/// use tilewright_kernels::gemm::registry::plan_named;
///
/// let shallow = plan_named("wgmma-f16-128x128x64-5stages")?;
/// assert_eq!((shallow.anatomy().stages, shallow.name()), (5, "wgmma-f16-128x128x64-5stages".to_owned()));
/// // 152 rows, twice which are a batch of 300.
/// assert_eq!(plan_named("wgmma-bf16-152x128x64-swapped-persistent")?.tile(), (152, 128, 64));
/// # Ok::<(), tilewright_kernels::gemm::PlanError>(())
/// ```
///
/// # Errors
///
/// [`PlanError::UnknownPlan`] with the names there are; [`PlanError::Unsupported`] for a plan that no kernel has, with what would work.
pub fn plan_named(name: &str) -> Result<Box<dyn Plan>, PlanError> {
    let mut all = plans();
    if let Some(i) = all.iter().position(|p| p.name() == name) {
        return Ok(all.swap_remove(i));
    }
    match MmaPlan::parse(name)? {
        Some(plan) => Ok(Box::new(plan)),
        None => Err(PlanError::UnknownPlan {
            asked: name.to_owned(),
            known: all.iter().map(|p| p.name()).collect(),
        }),
    }
}
