//! Runs in several orders of blocks and warps: `--schedules N`.
//!
//! A GPU promises no order, so a correct kernel gives no finding in any. The first order that gives a finding is what the report shows, with
//! the seed that runs it again; results that differ between orders are a note, since a sum of floats may.

use serde_json::{Value, json};
use tilewright::emulator::Report;

use super::argument::Bound;

/// What the orders gave.
pub(super) struct Schedules {
    /// The seed of the first.
    first: u64,
    /// How many ran.
    count: u64,
    /// The seed with a finding that is shown.
    finding: Option<u64>,
    /// A seed, the buffer and the element that differ from the first order's.
    different: Option<(u64, String, usize)>,
}

impl Schedules {
    /// After the first order.
    pub(super) fn new(first: u64) -> Self {
        Self {
            first,
            count: 1,
            finding: None,
            different: None,
        }
    }

    /// Adds the order `seed`; true if it is to be shown and the last.
    pub(super) fn compare(
        &mut self,
        seed: u64,
        [first, other]: [&Report; 2],
        bound: &Bound,
        [before, after]: [&[Vec<u8>]; 2],
    ) -> bool {
        self.count += 1;
        for (((name, buffer), a), b) in bound.buffers.iter().zip(before).zip(after) {
            if let Some(byte) = a.iter().zip(b).position(|(x, y)| x != y)
                && self.different.is_none()
            {
                let element = byte / buffer.element.bytes();
                self.different = Some((seed, name.clone(), element));
            }
        }
        let finds = first.is_clean() && !other.is_clean();
        if finds {
            self.finding = Some(seed);
        }
        finds
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "first": self.first,
            "run": self.count,
            "finding": self.finding,
            "different": self.different.as_ref().map(|(seed, buffer, element)| json!({
                "schedule": seed,
                "buffer": buffer,
                "element": element,
            })),
        })
    }

    pub(super) fn text(&self) -> Vec<String> {
        let mut lines = vec![match (self.finding, self.count) {
            (Some(seed), _) => {
                format!("schedules: the findings are of --schedule {seed}, which runs it again")
            }
            (None, 1) => format!("schedule: {}", self.first),
            (None, count) => format!(
                "schedules: {count} orders of blocks and warps run, without a further finding"
            ),
        }];
        if let Some((seed, buffer, element)) = &self.different {
            lines.push(format!(
                "  note: element {element} of {buffer} differs between --schedule {} and --schedule {seed}",
                self.first
            ));
        }
        lines
    }
}
