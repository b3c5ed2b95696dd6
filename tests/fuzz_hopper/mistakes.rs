//! What an author of roles and rings does wrong.

use crate::random::Random;

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mistake {
    /// The consumers take so many steps more than are filled.
    Steps(i64),
    /// The consumers begin with another use of a stage.
    Before(i64),
    /// The producer begins so.
    BeforeFill(i64),
    /// The consumers count their steps by another size.
    OtherSize,
    /// One tile of a stage is not loaded.
    NoLoad,
    /// One is loaded twice.
    LoadTwice,
    /// The tile of another step is loaded.
    OtherBox,
    /// A tile that only one block of a cluster needs is loaded by all of them together.
    OtherMulticast,
    /// What the stage holds is called something else by the consumers.
    OtherTile,
    /// Products of so many groups more are in flight when a stage is released.
    InFlight(u32),
    /// Products are not waited for at all.
    NoWait,
    /// A stage is not released.
    Keep,
    /// It is released before its products are issued.
    GiveEarly,
    /// It is released twice.
    GiveTwice,
    /// The stage of another iteration is released.
    GiveOther(i64),
    /// One ring is released twice, the other not.
    GiveOtherRing,
    /// Sums are read while products are in flight.
    ReadSums,
    /// Products read a stage behind its release.
    Stale,
    /// A factor is read in the other order.
    Untransposed,
    /// The tile of the result is stored twice.
    StoreTwice,
    /// The tile of another block is stored.
    StoreElsewhere,
    /// A cluster does not wait for its last stages.
    NoDrain,
    /// Another role has the turn.
    Turn,
    /// A role has the rows of another.
    OtherRole,
    /// A role has a warp less, which idles.
    HalfRole,
    /// The block has a warp more, which has no role.
    NoRole,
    /// A barrier of the block in a role.
    Barrier,
    /// The producer is all threads of its role.
    AllProduce,
    /// A stage that is held across a loop is released in it.
    HeldInLoop,
    /// It is released before the loop.
    HeldBefore,
    /// It is never released.
    HeldKept,
    /// It is waited for again in the loop.
    HeldAgain,
    /// The stage of another role is read.
    HeldOther,
    /// It is read behind its release.
    HeldStale,
    /// It is filled behind the stages of the loop.
    HeldLate,
    /// Another use of its ring is waited for.
    HeldUse(i64),
    /// A role takes the turns of another.
    OrderOther,
    /// A role takes no turns.
    OrderNone,
    /// A role takes each turn twice.
    OrderTwice,
    /// A role waits for a stage in its turn.
    OrderStage,
    /// A role takes turns outside of the loop.
    OrderOnce,
    /// The order barrier is of one role more than take turns.
    OrderMore,
    /// No barrier lies between what threads of a role write and others of them read.
    NoMeet,
    /// None lies between that and the next write.
    NoMeetAgain,
    /// The barrier is one of a warp.
    MeetWarp,
    /// Half of the role meets.
    MeetHalf,
    /// Roles exchange data through the same shared memory.
    MeetShared,
    /// A stage of keys is released before the products that read it are waited for.
    KeysEarly,
    /// The same of values, with a product in flight.
    ValuesEarly,
    /// A factor in registers is overwritten while the product that reads it is in flight.
    FactorEarly,
}

impl Mistake {
    /// Whether the result is the same if this is no mistake: nothing else is loaded, multiplied or stored.
    pub(crate) fn keeps_result(self) -> bool {
        !matches!(
            self,
            Self::Steps(_)
                | Self::OtherSize
                | Self::NoLoad
                | Self::OtherBox
                | Self::ReadSums
                | Self::Stale
                | Self::Untransposed
                | Self::StoreElsewhere
                | Self::OtherRole
                | Self::HeldOther
                | Self::HeldStale
        )
    }

    /// Its name, without its numbers.
    pub(crate) fn kind(self) -> String {
        let name = format!("{self:?}");
        name.split('(').next().unwrap_or_default().to_owned()
    }

    /// One of them.
    pub(crate) fn draw(r: &mut Random) -> Self {
        let by = r.pick(&[-1, 1, 2]);
        let in_flight = 1 + r.below(3) as u32;
        r.pick(&[
            Self::Steps(by),
            Self::Before(by),
            Self::BeforeFill(by),
            Self::OtherSize,
            Self::NoLoad,
            Self::LoadTwice,
            Self::OtherBox,
            Self::OtherMulticast,
            Self::OtherTile,
            Self::InFlight(in_flight),
            Self::NoWait,
            Self::Keep,
            Self::GiveEarly,
            Self::GiveTwice,
            Self::GiveOther(by),
            Self::GiveOtherRing,
            Self::ReadSums,
            Self::Stale,
            Self::Untransposed,
            Self::StoreTwice,
            Self::StoreElsewhere,
            Self::NoDrain,
            Self::Turn,
            Self::OtherRole,
            Self::HalfRole,
            Self::NoRole,
            Self::Barrier,
            Self::AllProduce,
        ])
    }

    /// One with held stages, order barriers, barriers of a role, or products in flight.
    fn of_attention(r: &mut Random) -> Self {
        let by = r.pick(&[-1, 1, 2]);
        r.pick(&[
            Self::HeldInLoop,
            Self::HeldBefore,
            Self::HeldKept,
            Self::HeldAgain,
            Self::HeldOther,
            Self::HeldStale,
            Self::HeldLate,
            Self::HeldUse(by),
            Self::OrderOther,
            Self::OrderNone,
            Self::OrderTwice,
            Self::OrderStage,
            Self::OrderOnce,
            Self::OrderMore,
            Self::NoMeet,
            Self::NoMeetAgain,
            Self::MeetWarp,
            Self::MeetHalf,
            Self::MeetShared,
            Self::KeysEarly,
            Self::ValuesEarly,
            Self::FactorEarly,
        ])
    }

    /// None in 45 of a hundred programs, one or two in the others; of attention in `share` of a hundred.
    pub(crate) fn some(r: &mut Random, share: usize) -> Vec<Self> {
        let count = if r.chance(55) { r.pick(&[1, 1, 2]) } else { 0 };
        let mut one = |_| {
            if share > 0 && r.chance(share) {
                Self::of_attention(r)
            } else {
                Self::draw(r)
            }
        };
        (0..count).map(&mut one).collect()
    }
}
