//! PTX text of the instructions of Hopper.

use super::ptx::{address, group, register, type_name, vector, width};
use crate::ir::{BulkStore, Factor, Hopper, Matrix};
use layout_core::atoms::Scalar;

/// The lines of an instruction, and a label that one of them jumps back to.
pub(super) fn lines(inst: &Hopper, label: &str) -> Vec<String> {
    let one = |text: String| vec![text];
    match inst {
        Hopper::ParamAddress { to, name } => {
            let to = register(*to);
            vec![
                format!("mov.b64 {to}, {name}"),
                format!("cvta.param.u64 {to}, {to}"),
            ]
        }
        Hopper::PrefetchMap { descriptor } => {
            one(format!("prefetch.tensormap [{}]", register(*descriptor)))
        }
        Hopper::BarrierInit { at, count } => one(format!(
            "mbarrier.init.shared::cta.b64 {}, {count}",
            address(*at)
        )),
        Hopper::BarrierInitFence => one("fence.mbarrier_init.release.cluster".to_owned()),
        Hopper::Arrive { at, .. } | Hopper::Pass { at, .. } => one(format!(
            "mbarrier.arrive.shared::cta.b64 _, {}",
            address(*at)
        )),
        Hopper::ArriveAt {
            at, block, remote, ..
        } => {
            // The same address in the other block; what an address adds to its register is the same in both.
            let there = register(*remote);
            let own = address(*at);
            vec![
                format!(
                    "mapa.shared::cluster.u32 {there}, {}, {}",
                    register(at.base()),
                    register(*block)
                ),
                format!(
                    "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, {}",
                    own.replacen(&register(at.base()), &there, 1)
                ),
            ]
        }
        Hopper::Remote(inst) => {
            // What the address adds to its register is the same in both blocks.
            let there = register(inst.there);
            let (base, block) = (register(inst.at.base()), register(inst.block));
            let at = address(inst.at).replacen(&base, &there, 1);
            let of = format!("{}.{}", width(&inst.values), type_name(inst.ty));
            let values = vector(&inst.values);
            vec![
                format!("mapa.shared::cluster.u32 {there}, {base}, {block}"),
                if inst.stores {
                    format!("st.shared::cluster{of} {at}, {values}")
                } else {
                    format!("ld.shared::cluster{of} {values}, {at}")
                },
            ]
        }
        Hopper::ClusterBarrier { orders } => vec![
            format!(
                "barrier.cluster.arrive.{}",
                if *orders { "release" } else { "relaxed" }
            ),
            "barrier.cluster.wait.acquire".to_owned(),
        ],
        Hopper::Expect { at, bytes, .. } => one(format!(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, {}, {bytes}",
            address(*at)
        )),
        Hopper::Wait {
            at, parity, done, ..
        } => vec![
            format!("{label}:"),
            format!(
                "mbarrier.try_wait.parity.shared::cta.b64 {}, {}, {}",
                register(*done),
                address(*at),
                register(*parity)
            ),
            format!("@!{} bra {label}", register(*done)),
        ],
        Hopper::TensorCopy {
            to,
            descriptor,
            coordinates,
            barrier,
            blocks,
            ..
        } => {
            let (way, mask) = match blocks {
                Some(mask) => (".multicast::cluster", format!(", {mask}")),
                None => ("", String::new()),
            };
            one(format!(
                "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{way} {}, [{}, {}], {}{mask}",
                coordinates.len(),
                address(*to),
                register(*descriptor),
                group(coordinates),
                address(*barrier)
            ))
        }
        Hopper::Bulk(inst) => one(bulk(inst)),
        Hopper::Fetch { at, to, .. } => {
            let (vector, to) = match &to[..] {
                [one] => (String::new(), register(*one)),
                all => (format!(".v{}", all.len()), group(all)),
            };
            one(format!("ld.shared{vector}.b32 {to}, {}", address(*at)))
        }
        Hopper::WgmmaFence => one("wgmma.fence.sync.aligned".to_owned()),
        Hopper::WgmmaCommit => one("wgmma.commit_group.sync.aligned".to_owned()),
        Hopper::WgmmaWait { pending } => one(format!("wgmma.wait_group.sync.aligned {pending}")),
        Hopper::Wgmma {
            atom, d, a, b, add, ..
        } => {
            let shape = format!("m{}n{}k{}", atom.m, atom.n, atom.k);
            let name = atom
                .name
                .replacen(".aligned", &format!(".aligned.{shape}"), 1);
            // Integers are neither negated nor transposed, and only 16-bit operands are transposed.
            let flags = match atom.a_type {
                Scalar::S8 | Scalar::U8 => String::new(),
                Scalar::F16 | Scalar::Bf16 => {
                    let across = |m: &Matrix| format!(", {}", u8::from(!m.k_major));
                    let all = a.matrix().into_iter().chain([b]).map(across);
                    format!(", 1, 1{}", all.collect::<String>())
                }
                _ => ", 1, 1".to_owned(),
            };
            let wide = |m: &Matrix| {
                format!(
                    "mov.b64 {}, {{{}, {}}}",
                    register(m.descriptor),
                    register(m.low),
                    m.high
                )
            };
            let first = match a {
                Factor::Shared(matrix) => register(matrix.descriptor),
                Factor::Fragment(all) => group(all),
            };
            let mut lines: Vec<_> = a.matrix().into_iter().chain([b]).map(wide).collect();
            lines.push(format!(
                "{name} {}, {first}, {}, {}{flags}",
                group(d),
                register(b.descriptor),
                register(*add)
            ));
            lines
        }
        Hopper::NamedBarrier { id, threads, waits } => {
            let how = if *waits { "sync" } else { "arrive" };
            one(format!("bar.{how} {id}, {threads}"))
        }
        Hopper::WaitForGrid => one("griddepcontrol.wait".to_owned()),
        Hopper::LaunchDependents => one("griddepcontrol.launch_dependents".to_owned()),
        Hopper::SetRegisters { count, more } => {
            let way = if *more { "inc" } else { "dec" };
            one(format!("setmaxnreg.{way}.sync.aligned.u32 {count}"))
        }
    }
}

/// A copy by TMA from shared to global memory, and what belongs to it.
fn bulk(inst: &BulkStore) -> String {
    match inst {
        BulkStore::Fence => "fence.proxy.async.shared::cta".to_owned(),
        BulkStore::Box {
            from,
            descriptor,
            coordinates,
            ..
        } => format!(
            "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group [{}, {}], {}",
            coordinates.len(),
            register(*descriptor),
            group(coordinates),
            address(*from)
        ),
        BulkStore::Commit => "cp.async.bulk.commit_group".to_owned(),
        BulkStore::Wait { pending } => format!("cp.async.bulk.wait_group.read {pending}"),
    }
}
