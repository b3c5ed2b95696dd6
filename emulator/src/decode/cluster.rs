//! Decoding of mbarriers, clusters and fences between proxies (PTX ISA, sections 9.7.13.3, 9.7.13.4, 9.7.13.15 and 9.7.9.23).

use super::memory::space_of;
use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandKind, Space};
use crate::error::ParseErrorKind as Kind;
use crate::ir::{Fence, Mbarrier, MbarrierKind, NONE, Op, Reg, Scope};
use crate::types::{File, ScalarType};

const ABSENT: Reg = Reg {
    file: File::R32,
    row: NONE,
};

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn cluster(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let op = match i.name {
            "mbarrier" => self.mbarrier(i, m)?,
            "mapa" | "getctarank" => self.mapa(i, m)?,
            "membar" | "fence" => self.fence(i, m)?,
            "setmaxnreg" => Self::setmaxnreg(i, m)?,
            "wgmma" => self.wgmma(i, m)?,
            "tensormap" => self.tensormap(i, m)?,
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    fn mbarrier(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        self.program.uses_async = true;
        if m.take("pending_count") {
            m.ty()?;
            Self::count(i, 2..=2)?;
            let a = self.src(&i.operands[1], ScalarType::B64)?;
            let d = self.dst_some(&i.operands[0], ScalarType::U32)?;
            return Ok(Op::PendingCount { d, a });
        }
        let what = m.find(|s| {
            let known = matches!(
                s,
                "init"
                    | "inval"
                    | "expect_tx"
                    | "complete_tx"
                    | "arrive"
                    | "arrive_drop"
                    | "test_wait"
                    | "try_wait"
            );
            known.then_some(s)
        });
        let Some(what) = what else {
            return m.invalid("one of .init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx, .test_wait, .try_wait, .pending_count is needed");
        };
        let waits = matches!(what, "test_wait" | "try_wait");
        let arrives = matches!(what, "arrive" | "arrive_drop");
        let kind = match what {
            "init" => MbarrierKind::Init,
            "inval" => MbarrierKind::Inval,
            "expect_tx" => MbarrierKind::ExpectTx,
            "complete_tx" => MbarrierKind::CompleteTx,
            "arrive" | "arrive_drop" => MbarrierKind::Arrive {
                drop: what == "arrive_drop",
                expect_tx: m.take("expect_tx"),
                no_complete: m.take("noComplete"),
            },
            _ => MbarrierKind::Wait {
                parity: m.take("parity"),
            },
        };
        let mut relaxed = None;
        if !matches!(kind, MbarrierKind::Init | MbarrierKind::Inval) {
            let order = if waits { "acquire" } else { "release" };
            let is_relaxed = m.take("relaxed");
            let _ = arrives && m.take(order) || waits && m.take(order);
            let scope = m.find(|s| match s {
                "cta" => Some(Scope::Block),
                "cluster" => Some(Scope::Cluster),
                _ => None,
            });
            relaxed = is_relaxed.then_some(scope.unwrap_or(Scope::Block));
            self.program.relaxes |= is_relaxed;
        }
        let space = Self::mbarrier_space(m, waits || !arrives && !relaxed_counts(what))?;
        if m.ty()? != ScalarType::B64 {
            return m.invalid("the type is .b64");
        }
        let (least, most) = match what {
            "inval" => (1, 1),
            "init" | "expect_tx" | "complete_tx" => (2, 2),
            "try_wait" => (3, 4),
            "test_wait" => (3, 3),
            _ => match kind {
                MbarrierKind::Arrive {
                    expect_tx: false,
                    no_complete: false,
                    ..
                } => (2, 3),
                _ => (3, 3),
            },
        };
        Self::count(i, least..=most)?;
        let at = usize::from(arrives || waits);
        let address = self.address(&i.operands[at])?;
        let mut a = ABSENT;
        if let Some(o) = i.operands.get(at + 1) {
            let is_state = kind == MbarrierKind::Wait { parity: false };
            let ty = if is_state {
                ScalarType::B64
            } else {
                ScalarType::U32
            };
            a = self.src_reg(o, ty, false)?;
        }
        if let Some(hint) = i.operands.get(at + 2) {
            self.src(hint, ScalarType::U32)?;
        }
        let mut d = ABSENT;
        if waits {
            d = self.dst_reg(&i.operands[0], ScalarType::Pred, false)?;
        } else if arrives {
            d = self.dst_reg(&i.operands[0], ScalarType::B64, false)?;
            if space == Space::Cluster && d.row != NONE {
                return Self::type_error(
                    &i.operands[0],
                    "`_`: an mbarrier of .shared::cluster gives no state",
                );
            }
        }
        Ok(Op::Mbarrier(Box::new(Mbarrier {
            kind,
            space,
            address,
            d,
            a,
            relaxed,
        })))
    }

    /// The state space of an mbarrier; `own` if it must be the block's own.
    pub(super) fn mbarrier_space(m: &mut Mods<'a>, own: bool) -> Result<Space> {
        let space = m.find(space_of).unwrap_or(Space::Generic);
        match space {
            Space::Generic | Space::Shared => {}
            Space::Cluster if !own => {}
            _ => return m.invalid("an mbarrier lies in .shared::cta here"),
        }
        Ok(space)
    }

    /// `cp.async.mbarrier.arrive`, after `cp.async`.
    pub(super) fn copy_arrive(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        self.program.uses_async = true;
        if !m.take("arrive") {
            return m.invalid("only .mbarrier.arrive");
        }
        let kind = MbarrierKind::CopyArrive {
            no_increment: m.take("noinc"),
        };
        let space = Self::mbarrier_space(m, true)?;
        if m.ty()? != ScalarType::B64 {
            return m.invalid("the type is .b64");
        }
        Self::count(i, 1..=1)?;
        let address = self.address(&i.operands[0])?;
        Ok(Op::Mbarrier(Box::new(Mbarrier {
            kind,
            space,
            address,
            d: ABSENT,
            a: ABSENT,
            relaxed: None,
        })))
    }

    fn mapa(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let space = m.find(space_of);
        if space.is_some_and(|s| s != Space::Cluster) {
            return m.invalid("the space is .shared::cluster, or none for generic addresses");
        }
        let ty = m.ty()?;
        if !matches!(ty, ScalarType::U32 | ScalarType::U64) {
            return m.invalid("the type is .u32 or .u64");
        }
        let generic = space.is_none();
        if i.name == "getctarank" {
            Self::count(i, 2..=2)?;
            let a = self.src_reg(&i.operands[1], ty, false)?;
            let d = self.dst_some(&i.operands[0], ScalarType::U32)?;
            return Ok(Op::CtaRank { generic, d, a });
        }
        Self::count(i, 3..=3)?;
        let a = self.src_reg(&i.operands[1], ty, false)?;
        let rank = self.src(&i.operands[2], ScalarType::U32)?;
        let d = self.dst_reg(&i.operands[0], ty, false)?;
        if d.row == NONE {
            return Self::type_error(&i.operands[0], "a destination register");
        }
        Ok(Op::Mapa {
            generic,
            d,
            a,
            rank,
        })
    }

    /// `barrier.cluster`, after those words.
    pub(super) fn cluster_barrier(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        Self::count(i, 0..=0)?;
        let arrive = m.take("arrive");
        if !arrive && !m.take("wait") {
            return m.invalid("one of .arrive, .wait is needed");
        }
        let relaxed = arrive && m.take("relaxed");
        let _ = m.take(if arrive { "release" } else { "acquire" });
        self.program.relaxes |= relaxed;
        let aligned = m.take("aligned");
        Ok(if arrive {
            Op::ClusterArrive { aligned, relaxed }
        } else {
            Op::ClusterWait { aligned }
        })
    }

    /// Fences. Those between threads change no value: the memory of a cluster is sequentially consistent.
    fn fence(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        self.orders = true;
        if m.list.is_empty() {
            return m.invalid("a scope or a kind of fence is needed");
        }
        let scope = |m: &mut Mods<'a>| {
            m.find(|s| matches!(s, "cta" | "cluster" | "gpu" | "sys").then_some(s))
        };
        if m.take("proxy") {
            if m.take("alias") {
                Self::count(i, 0..=0)?;
                return Ok(Op::Nop);
            }
            if m.take("tensormap::generic") {
                let acquires = m.take("acquire");
                if !acquires && !m.take("release") || scope(m).is_none() {
                    return m.invalid("one of .acquire, .release and a scope are needed");
                }
                Self::count(i, if acquires { 2..=2 } else { 0..=0 })?;
                if acquires {
                    let map = self.address(&i.operands[0])?;
                    if !matches!(i.operands[1].kind, OperandKind::Int(128)) {
                        return Self::type_error(&i.operands[1], "128, the size of a tensor map");
                    }
                    return Ok(Op::MapAcquire(map));
                }
                return Ok(Op::MapRelease);
            }
            Self::count(i, 0..=0)?;
            if i.name == "membar" {
                return m.invalid("`membar.proxy.alias` is the only form with a proxy");
            }
            self.program.uses_async = true;
            if m.take("async::generic") {
                let restrict = if m.take("acquire") {
                    "sync_restrict::shared::cluster"
                } else if m.take("release") {
                    "sync_restrict::shared::cta"
                } else {
                    return m.invalid("one of .acquire, .release is needed");
                };
                if !m.take(restrict) || !m.take("cluster") {
                    return m.invalid("`.acquire.sync_restrict::shared::cluster.cluster` or `.release.sync_restrict::shared::cta.cluster` is needed");
                }
                return Ok(Op::FenceProxy);
            }
            if !m.take("async") {
                return m.invalid("this kind of proxy");
            }
            let space =
                m.find(|s| matches!(s, "global" | "shared::cta" | "shared::cluster").then_some(s));
            return Ok(if space == Some("global") {
                Op::Nop
            } else {
                Op::FenceProxy
            });
        }
        Self::count(i, 0..=0)?;
        if m.take("mbarrier_init") {
            if !m.take("release") || !m.take("cluster") {
                return m.invalid("`.mbarrier_init.release.cluster` is the only form");
            }
            return Ok(Op::FenceMbarrierInit);
        }
        if i.name == "membar" {
            let scope = m.find(|s| match s {
                "cta" => Some(Scope::Block),
                "gl" | "sys" => Some(Scope::Cluster),
                _ => None,
            });
            let Some(scope) = scope else {
                return m.invalid("one of .cta, .gl, .sys is needed");
            };
            return Ok(Op::Fence(Fence {
                scope,
                acquires: true,
                releases: true,
            }));
        }
        let order = m.find(|s| matches!(s, "sc" | "acq_rel" | "acquire" | "release").then_some(s));
        let restrict = match order {
            Some("acquire") => m.take("sync_restrict::shared::cluster"),
            Some("release") => m.take("sync_restrict::shared::cta"),
            _ => false,
        };
        // A clock counts the accesses of all shared memory: those of the block or of the cluster alone have none of their own.
        let scope = match scope(m) {
            Some("cta") if !restrict => Scope::Block,
            Some("cluster") => Scope::Cluster,
            Some(_) if !restrict => Scope::Cluster,
            _ => return m.invalid("a scope is needed: .cta, .cluster, .gpu or .sys"),
        };
        Ok(Op::Fence(Fence {
            scope,
            acquires: order != Some("release"),
            releases: order != Some("acquire"),
        }))
    }

    fn setmaxnreg(i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let changes = m.take("inc") || m.take("dec");
        if !changes || !m.take("sync") || !m.take("aligned") {
            return m.invalid("`.inc.sync.aligned` or `.dec.sync.aligned` is needed");
        }
        if m.ty()? != ScalarType::U32 {
            return m.invalid("the type is .u32");
        }
        Self::count(i, 1..=1)?;
        match i.operands[0].kind {
            OperandKind::Int(n @ 24..=256) if n % 8 == 0 => Ok(Op::WholeWarp),
            _ => Err(i.operands[0].span.error(Kind::OutOfRange(
                "the number of registers is 24 to 256, a multiple of 8".to_owned(),
            ))),
        }
    }
}

/// Instructions that count bytes on an mbarrier of any block of the cluster.
fn relaxed_counts(what: &str) -> bool {
    matches!(what, "expect_tx" | "complete_tx")
}
