//! Names of `wgmma` plans. A name says everything about a plan, so that any plan can be named, whether it is in the table or not:
//!
//! ```text
//! wgmma-bf16-152x128x64-swapped-persistent-cluster2x1-3stages
//!       type tile m×n×k   what differs from one tile a block, A·B, no cluster, as many stages as fit
//! ```
//!
//! [`MmaPlan::parse`] reads what [`Plan::name`] prints, and refuses combinations that no kernel has, each with what would work.

use super::plans::{STAGES, dealt, of_warpgroups, persistent, ping_pong, promoted};
use super::{MmaPlan, PLANS, WARPGROUP_PLANS};
use crate::gemm::{DataType, Form, Plan, PlanError, Turns};

/// The most columns of `wgmma`.
const MOST_COLUMNS: i64 = 256;

/// The most warpgroups that multiply: registers of a thread suffice for no more.
const WARPGROUPS: i64 = 3;

/// Bytes of shared memory for stages where a plan does not say how many it has: the rest is for the epilogue and mbarriers.
const STAGES_BYTES: i64 = 192 << 10;

/// The most stages where a plan does not say how many it has.
const ENOUGH_STAGES: i64 = 10;

/// The words of a name after the type and the tile.
struct Words<'n>(std::iter::Peekable<std::str::Split<'n, char>>);

impl<'n> Words<'n> {
    /// Takes the next word if it is this one.
    fn take(&mut self, word: &str) -> bool {
        self.0.next_if_eq(&word).is_some()
    }

    /// Takes the next word if it begins or ends so, and gives what remains of it.
    fn part(&mut self, cut: impl Fn(&'n str) -> Option<&'n str>) -> Option<&'n str> {
        self.0.next_if(|word| cut(word).is_some()).and_then(cut)
    }
}

/// A number as names have it: digits that begin with no zero.
fn number(text: &str) -> Option<i64> {
    let plain = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

impl MmaPlan {
    /// The plan of a name; none for a name of another kind.
    pub(crate) fn parse(name: &str) -> Result<Option<Self>, PlanError> {
        let Some(plan) = Self::of_words(name).or_else(|| Self::of_warps(name)) else {
            return Ok(None);
        };
        if !STAGES.contains(&plan.stages) {
            let (plain, stages) = name.rsplit_once('-').unwrap_or((name, ""));
            return Err(PlanError::Unsupported {
                plan: plain.to_owned(),
                what: format!("{} stages", stages.trim_end_matches("stages")),
                instead: format!("take {} to {}", STAGES.start(), STAGES.end()),
            });
        }
        plan.validate()?;
        Ok(Some(plan))
    }

    /// A listed plan of single warps with another number of stages.
    fn of_warps(name: &str) -> Option<Self> {
        let (listed, stages) = name.strip_suffix("stages")?.rsplit_once('-')?;
        let stages = number_or_most(stages)?;
        let plan = PLANS.iter().find(|plan| plan.name() == listed)?;
        Some(Self { stages, ..*plan })
    }

    /// A `wgmma` plan by the words of its name, whether or not there is such a kernel.
    fn of_words(name: &str) -> Option<Self> {
        let mut words = Words(name.strip_prefix("wgmma-")?.split('-').peekable());
        let of_type = words.0.next()?;
        let data_type = DataType::ALL
            .into_iter()
            .find(|t| t.to_string() == of_type)?;
        let tile: Vec<i64> = words
            .0
            .next()?
            .split('x')
            .map(number)
            .collect::<Option<_>>()?;
        let &[m, n, depth] = &tile[..] else {
            return None;
        };
        // Sizes that no kernel has are refused in words below; these would overflow on the way there.
        if tile.iter().any(|&size| size > 1 << 16) {
            return None;
        }
        let swapped = words.take("swapped");
        let mut plan = if words.take("pingpong") {
            ping_pong(data_type, (m, n), depth, 0)
        } else if words.take("persistent") {
            persistent(data_type, (m, n), depth, 0)
        } else if words.take("promoted") {
            promoted(data_type, (m, n), depth, 0)
        } else {
            of_warpgroups(data_type, (m, n), depth, 0)
        };
        if swapped {
            if plan.form != Form::Plain {
                return None;
            }
            plan.form = Form::Swapped;
            plan.warps = (1, n / 16);
        }
        if words.take("dealt") {
            plan = dealt(plan);
        }
        if let Some(cluster) = words.part(|word| word.strip_prefix("cluster")) {
            let (rows, columns) = cluster.split_once('x')?;
            plan.cluster = (number(rows)?, number(columns)?);
        }
        plan.stages = plan.own_stages();
        if let Some(stages) = words.part(|word| word.strip_suffix("stages")) {
            plan.stages = number_or_most(stages)?;
        }
        words.0.next().is_none().then_some(plan)
    }

    /// Whether there is such a `wgmma` kernel; what the problem asks for, shared memory and clusters are looked at where kernels are made.
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        if !self.warpgroups {
            return Ok(());
        }
        let refuse = |what: String, instead: &str| {
            Err(PlanError::Unsupported {
                plan: self.name(),
                what,
                instead: instead.to_owned(),
            })
        };
        let (m, n) = self.tile;
        let bytes = self.depth * i64::from(self.data_type.bytes());
        let types = [
            DataType::F16,
            DataType::Bf16,
            DataType::Tf32,
            DataType::S8,
            DataType::E4m3,
            DataType::E5m2,
        ];
        if !types.contains(&self.data_type) {
            return refuse(
                format!("{} by wgmma", self.data_type),
                "take f16, bf16, tf32, s8, e4m3 or e5m2",
            );
        }
        if self.form.is_promoted() && !matches!(self.data_type, DataType::E4m3 | DataType::E5m2) {
            return refuse(
                format!("promoted sums of {}", self.data_type),
                "take e4m3 or e5m2",
            );
        }
        if ![128, 256].contains(&bytes) {
            return refuse(
                format!("a stage of {bytes} bytes along k"),
                "take a k of 128 or 256 bytes",
            );
        }
        let parts = i64::from(self.form.ordered_roles());
        // Rows of the instruction are m, or n where A and B are swapped; the other size is its columns.
        let (rows, columns) = if self.form.is_swapped() {
            (n, m)
        } else {
            (m, n)
        };
        let warpgroups = rows / 64;
        if rows % 64 != 0 || !(1..=WARPGROUPS.max(2 * parts)).contains(&warpgroups) {
            return refuse(
                format!("{rows} rows of its instructions"),
                "take 64, 128 or 192; of a ping-pong schedule 128 or 256",
            );
        }
        // The instruction takes multiples of 8, of s8 from 32 on of 16; the epilogue of A·B takes 16 columns at a time.
        let by_eights = self.form.is_swapped() && self.data_type != DataType::S8;
        let step = if by_eights { 8 } else { 16 };
        if columns % step != 0 || !(16..=MOST_COLUMNS).contains(&columns) {
            return refuse(
                format!("{columns} columns of its instructions"),
                "take a multiple of 16 from 16 to 256; of 8 where operands are swapped and not s8",
            );
        }
        let sums = rows * columns / parts / (128 * self.warpgroups_at_once());
        let most = match self.form {
            Form::PingPong => 144,
            _ if warpgroups > 2 => 96,
            _ => 128,
        };
        if sums > most {
            return refuse(
                format!("{sums} sums a thread"),
                "take a smaller tile: 128 sums a thread, 96 of three warpgroups, 144 of a ping-pong schedule",
            );
        }
        if self.is_clustered() && self.is_through_registers() {
            return refuse(
                "a cluster where an operand goes through registers".to_owned(),
                "take it without clusters, or without swapped operands",
            );
        }
        if self.turns == Turns::Dealt && !self.is_listed() && self.form != Form::PingPong {
            return refuse(
                "a linear tile scheduler".to_owned(),
                "take it with a ping-pong schedule",
            );
        }
        self.takes_turns()?;
        self.clusters()
    }

    /// Warpgroups that multiply a part of the tile at once.
    fn warpgroups_at_once(&self) -> i64 {
        let all = self.warps.0 * self.warps.1 / 4;
        (all / self.ordered_roles()).max(1)
    }

    /// Whether this is a plan of the table, with another number of stages or for another problem.
    fn is_listed(&self) -> bool {
        self.listed().is_some()
    }

    fn listed(&self) -> Option<&'static Self> {
        let mut all = WARPGROUP_PLANS.iter().chain(PLANS);
        all.find(|listed| self.is_but_for_stages(listed))
    }

    /// The stages that a plan has if its name does not say so: those of the table, or as many as fit.
    fn own_stages(&self) -> i64 {
        if let Some(listed) = self.listed() {
            return listed.stages;
        }
        let rows = self.rows_of_stage() + self.tile.1;
        let stage = rows * self.depth * i64::from(self.data_type.bytes());
        (STAGES_BYTES / stage.max(1)).clamp(*STAGES.start(), ENOUGH_STAGES)
    }

    /// Whether this is a listed plan, with another number of stages or for another problem.
    pub(super) fn is_but_for_stages(&self, listed: &Self) -> bool {
        let as_listed = Self {
            stages: listed.stages,
            variant: listed.variant,
            ..*self
        };
        as_listed == *listed
    }

    /// What its name says of its stages: nothing of those that it has anyway, or that a dual product or an unlisted plan of warps has.
    pub(super) fn stages_in_name(&self) -> String {
        let named = self.is_listed() || self.warpgroups && self.variant.products == 1;
        if !named || self.stages == self.own_stages() {
            String::new()
        } else {
            format!("-{}stages", self.stages)
        }
    }
}

/// A number of stages; one that has no 64 bits is too large as well.
fn number_or_most(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(i64::MAX))
}
