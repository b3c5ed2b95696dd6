//! What is filled when, and how many groups of copies may still be under way at each wait.
//!
//! A tile of a pipeline is as many phases as there are rings: in phase p the tile of ring p is consumed. Each phase begins alike:
//!
//! ```text
//! wait      the tile of this phase has arrived, for the thread's own copies
//! barrier   ... and for those of all threads; and everyone has left the phase before
//! refill    the stage that the phase before has left gets its next tile: one group of copies
//! ```
//!
//! Two rings of two stages, K and V: a row is a phase, and what stands behind the bar is under way while the phase is computed.
//!
//! ```text
//! phase     waits for   refills                   | under way
//! K(t)      K(t)        V(t + 1), left by V(t-1)  | V(t), K(t+1), V(t+1)
//! V(t)      V(t)        K(t + 2), left by K(t)    | K(t+1), V(t+1), K(t+2)
//! ```
//!
//! Copies arrive in the order of their groups, so a wait counts the groups that were closed after the one it needs. A tile that ring p gets
//! `S` tiles ahead was refilled in the phase behind (t − S, p); up to its wait every phase but that one and the waiting one itself has closed a
//! group: `P·S − 2` for `P` rings. Before the loop the same phases are passed with tiles counted from below zero, so that the counts hold from
//! the first wait on; a tile that does not exist closes an empty group.

use crate::gcd::gcd;

/// The phases of a tile: the stages of each ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    stages: Vec<i64>,
}

/// A ring, and a tile of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fill {
    pub(super) ring: usize,
    /// How many tiles ahead of the phase, or the tile's number before the loop.
    pub(super) tile: i64,
}

impl Schedule {
    /// The schedule of rings with so many stages each; none where a stage would have to be filled and consumed at once.
    pub(super) fn new(stages: &[i64]) -> Option<Self> {
        let phases = stages.len() as i64;
        let enough = |&s: &i64| s >= 1 && phases * s >= 2;
        (phases > 0 && stages.iter().all(enough)).then(|| Self {
            stages: stages.to_vec(),
        })
    }

    /// Tiles after which every ring is at its first stage again.
    pub(super) fn period(&self) -> i64 {
        self.stages.iter().fold(1, |all, &s| all / gcd(all, s) * s)
    }

    /// What is filled in a phase: the stage that the phase before has left.
    pub(super) fn refill(&self, phase: usize) -> Fill {
        let ring = (phase + self.stages.len() - 1) % self.stages.len();
        // The phase before the first is the last of the tile before.
        let left = i64::from(phase == 0);
        Fill {
            ring,
            tile: self.stages[ring] - left,
        }
    }

    /// Groups that may be under way where a phase waits for its tile.
    pub(super) fn pending(&self, phase: usize) -> u32 {
        (self.stages.len() as i64 * self.stages[phase] - 2) as u32
    }

    /// The groups before the loop, in their order; none for an empty one.
    pub(super) fn prologue(&self) -> Vec<Option<Fill>> {
        let most = self.stages.iter().max().copied().unwrap_or(0);
        let phases = (-most..0).flat_map(|tile| (0..self.stages.len()).map(move |p| (tile, p)));
        let fills = phases.map(|(tile, phase)| {
            let ahead = self.refill(phase);
            let tile = tile + ahead.tile;
            (tile >= 0).then_some(Fill { tile, ..ahead })
        });
        fills.skip_while(Option::is_none).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every wait finds its tile, with as many groups under way as can be, and no stage is filled before it was left.
    #[test]
    fn waits_are_exact() {
        for stages in [
            &[2][..],
            &[3],
            &[4],
            &[1, 1],
            &[2, 2],
            &[1, 2],
            &[3, 1],
            &[2, 3],
            &[1, 1, 1],
            &[2, 1, 4],
        ] {
            let schedule = Schedule::new(stages).expect("a schedule");
            let mut groups = schedule.prologue();
            for tile in 0..20 {
                for phase in 0..stages.len() {
                    let wanted = Some(Fill { ring: phase, tile });
                    let at = groups.iter().position(|g| *g == wanted);
                    let behind = groups.len() - 1 - at.expect("the tile was filled");
                    assert_eq!(
                        behind as u32,
                        schedule.pending(phase),
                        "{stages:?} {wanted:?}"
                    );
                    let Fill { ring, tile: ahead } = schedule.refill(phase);
                    let new = Fill {
                        ring,
                        tile: tile + ahead,
                    };
                    // The tile that had the stage before was consumed in the phase before.
                    let old = (new.tile - stages[ring], ring);
                    let before = if phase == 0 {
                        (tile - 1, stages.len() - 1)
                    } else {
                        (tile, phase - 1)
                    };
                    assert_eq!(old, before, "{stages:?}");
                    assert!(
                        !groups.contains(&Some(new)),
                        "{stages:?} fills {new:?} twice"
                    );
                    groups.push(Some(new));
                }
            }
        }
    }

    #[test]
    fn a_single_stage_needs_another_ring() {
        assert_eq!(Schedule::new(&[1]), None);
        assert_eq!(Schedule::new(&[]), None);
        assert_eq!(Schedule::new(&[0, 2]), None);
        assert!(Schedule::new(&[1, 1]).is_some());
    }
}
