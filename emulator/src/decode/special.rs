//! Names of the special registers (PTX ISA, chapter 10).

use crate::ir::Special;

/// The special register `name` (with component `dim`) and its width in bits, or `None`.
pub(crate) fn special_register(name: &str, dim: Option<&str>) -> Option<(Special, u32)> {
    let axis = match dim {
        Some("x") => Some(0),
        Some("y") => Some(1),
        Some("z") => Some(2),
        Some(_) => return None,
        None => None,
    };
    if let Some(axis) = axis {
        let make = match name {
            "%tid" => Special::Tid,
            "%ntid" => Special::Ntid,
            "%ctaid" => Special::Ctaid,
            "%nctaid" => Special::Nctaid,
            "%clusterid" => Special::ClusterId,
            "%nclusterid" => Special::NclusterId,
            "%cluster_ctaid" => Special::ClusterCtaid,
            "%cluster_nctaid" => Special::ClusterNctaid,
            _ => return None,
        };
        return Some((make(axis), 32));
    }
    let is_zero = name
        .strip_prefix("%envreg")
        .is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n < 32 && n != 1 && n != 2))
        || name
            .strip_prefix("%pm")
            .is_some_and(|n| n.len() == 1 && n.parse::<u32>().is_ok_and(|n| n < 8))
        || name.starts_with("%reserved_smem_offset_");
    if is_zero {
        return Some((Special::Zero, 32));
    }
    Some(match name {
        "%envreg1" => (Special::Workspace { high: true }, 32),
        "%envreg2" => (Special::Workspace { high: false }, 32),
        "%current_graph_exec" => (Special::Zero, 64),
        "%laneid" => (Special::LaneId, 32),
        "%warpid" => (Special::WarpId, 32),
        "%nwarpid" => (Special::NwarpId, 32),
        "%smid" => (Special::SmId, 32),
        "%nsmid" => (Special::NsmId, 32),
        "%gridid" => (Special::GridId, 64),
        "%cluster_ctarank" => (Special::ClusterCtarank, 32),
        "%cluster_nctarank" => (Special::ClusterNctarank, 32),
        "%is_explicit_cluster" => (Special::IsExplicitCluster, 32),
        "%lanemask_eq" => (Special::LanemaskEq, 32),
        "%lanemask_le" => (Special::LanemaskLe, 32),
        "%lanemask_lt" => (Special::LanemaskLt, 32),
        "%lanemask_ge" => (Special::LanemaskGe, 32),
        "%lanemask_gt" => (Special::LanemaskGt, 32),
        "%total_smem_size" | "%aggr_smem_size" => (Special::TotalSmem, 32),
        "%dynamic_smem_size" => (Special::DynamicSmem, 32),
        _ => return None,
    })
}

/// The width and the lowest bit of the counter `name`, if it is one: a register that changes as the kernel runs.
pub(crate) fn is_clock(name: &str) -> Option<(u32, u8)> {
    match name {
        "%clock" | "%globaltimer_lo" => Some((32, 0)),
        "%clock_hi" | "%globaltimer_hi" => Some((32, 32)),
        "%clock64" | "%globaltimer" => Some((64, 0)),
        _ => None,
    }
}
