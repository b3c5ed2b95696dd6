//! What a warp's accesses of a stage cost on several memories, side by side.
//!
//! The prover counts the wavefronts of the printed kernel on NVIDIA's banks. The maps are about other memories too, whose models differ in numbers
//! only: the local data share of AMD's GCN, and for `sgemm-r700-64` that of the R700, where no access may conflict.

use layout_core::Layout;
use layout_core::banks::{AMD_GCN, AMD_R700, Access, BankModel, LANES, NVIDIA, wavefronts};

use super::OuterProduct;
use super::maps::{DEPTH, Maps, STAGES, Staging, TILE};
use super::side::Side;
use crate::gemm::{Obligation, Operands, PlanError, Refusal};

/// The most wavefronts of any warp, and the fewest possible for that access.
fn worst(
    model: &BankModel,
    access: Access,
    map: &Layout,
    further: &Layout,
) -> Result<(u32, u32), Refusal> {
    let mut most = (0, 0);
    for warp in 0..map.size() / LANES as i64 {
        for i in 0..further.size() {
            let lane = |l: usize| map.index(LANES as i64 * warp + l as i64) + further.index(i);
            let count =
                wavefronts(model, access, &std::array::from_fn(lane)).map_err(|e| Refusal {
                    obligation: format!("{} is an access of {}", access.name(), model.name),
                    reason: e.to_string(),
                })?;
            most = most.max((count.wavefronts, count.ideal));
        }
    }
    Ok(most)
}

/// An access of `elements` elements of `bytes` bytes.
fn access(is_load: bool, bytes: i64) -> Access {
    match (is_load, bytes) {
        (true, 16) => Access::Ld128,
        (true, 8) => Access::Ld64,
        (true, _) => Access::Ld32,
        (false, 16) => Access::St128,
        (false, 8) => Access::St64,
        (false, _) => Access::St32,
    }
}

/// The wavefronts of each store and read of a stage on each memory.
pub(super) fn claims(
    plan: OuterProduct,
    maps: &Maps,
    operands: Operands,
) -> Result<Vec<Obligation>, PlanError> {
    let is_r700 = plan.staging() == Staging::R700;
    let mut models = vec![&NVIDIA, &AMD_GCN];
    if is_r700 {
        models.push(&AMD_R700);
    }
    // What a warp's accesses of one kind differ by: they are the same access at another place.
    let [operand, stage] = maps.apart;
    let places = Layout::flat(&[2, STAGES], &[operand, stage])?;
    let in_a_tile = maps
        .stage
        .compose(&Layout::flat(&[2, DEPTH], &[TILE / 2, TILE])?)?;
    let mut all = Vec::new();
    for side in Side::ALL {
        let load = maps.load(side.is_along(operands));
        let values = load.store.get(1)?;
        let starts = Layout::mode(values.size() / load.stored, load.stored)?;
        all.push((
            side.store(),
            access(false, load.stored * maps.bytes),
            load.store.get(0)?,
            Layout::tuple(&[values.compose(&starts)?, places])?,
        ));
        all.push((
            side.read(),
            access(true, maps.vector * maps.bytes),
            maps.reads[side as usize],
            Layout::tuple(&[in_a_tile, places])?,
        ));
    }
    let mut claims = Vec::new();
    for (name, access, map, further) in all {
        let mut counts = Vec::new();
        for model in &models {
            let (count, ideal) = worst(model, access, &map, &further)?;
            if count != ideal && (is_r700 || model.name == NVIDIA.name) {
                return Err(Refusal {
                    obligation: format!("{name} has no bank conflict on {}", model.name),
                    reason: format!("{count} wavefronts, and {ideal} would do"),
                }
                .into());
            }
            counts.push(format!("{} {count} (ideal {ideal})", model.name));
        }
        claims.push(Obligation {
            name: format!("{name}: wavefronts of 32 lanes ({})", access.name()),
            evidence: counts.join(", "),
        });
    }
    Ok(claims)
}
