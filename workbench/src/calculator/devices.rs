//! What the calculator knows about matrices over several devices: distributions, their shards, what moves between two of them.
//!
//! ```text
//! distribution((2,(4,6)):(4@0,(1@0,1@1)),(8,6))     summed(distribution(…))
//! 0: rows 0..4, columns 0..6; 1: rows 4..8, columns 0..6
//! all-gather: 1 -> 0 rows 4..8, columns 0..6; 0 -> 1 rows 0..4, columns 0..6; busiest link 24 elements, …
//! ```

use std::fmt;

use serde_json::{Value as Json, json};
use tilewright::devices::{Distribution, DistributionError, Piece, Redistribution, Runs, Shard};

use super::value::Value;

/// Pieces written on a line; of more, the first four.
const MOST_PIECES: usize = 8;

/// Runs of a shard that JSON lists.
const MOST_RUNS: usize = 1024;

/// A statement about devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Devices {
    /// Which device holds which element.
    Distribution(Distribution),
    /// What each device holds.
    Shards(Distribution),
    /// What moves.
    Redistribution {
        /// The movement.
        moved: Box<Redistribution>,
        /// The bytes of an element, if they are known.
        bytes: Option<u64>,
    },
}

/// The distribution that a value is, or that its layout is of a matrix of these extents or, without, of all that it covers. Nothing for
/// values of other kinds.
pub(crate) fn distribution(
    value: &Value,
    extents: Option<[u64; 2]>,
) -> Option<Result<Distribution, DistributionError>> {
    if let Some(devices) = value.devices() {
        let Devices::Distribution(of) = devices else {
            return None;
        };
        let from = of.extents();
        return Some(match extents {
            Some(to) if to != from => Err(DistributionError::DifferentExtents { from, to }),
            _ => Ok(*of),
        });
    }
    let layout = match value.as_any()? {
        Ok(value) => value.plain_coords()?,
        Err(error) => return Some(Err(error.into())),
    };
    let extents = extents.map_or_else(
        || {
            let covered = layout.coshape()?;
            let axis = |k: usize| {
                if k < covered.leaves() {
                    covered.leaf(k)
                } else {
                    1
                }
            };
            Ok([axis(0) as u64, axis(1) as u64])
        },
        Ok,
    );
    Some(extents.and_then(|extents| Distribution::new(extents, layout)))
}

impl Devices {
    /// What kind of value this is, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Distribution(_) => "a distribution",
            Self::Shards(_) => "a list of shards",
            Self::Redistribution { .. } => "a redistribution",
        }
    }

    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Distribution(of) => distribution_json(of),
            Self::Shards(of) => {
                let shards = (0..of.devices()).map(|device| {
                    let mut value = shard_json(&of.shard(device));
                    value["device"] = json!(device);
                    value
                });
                json!({
                    "kind": "shards",
                    "extents": of.extents(),
                    "sum": of.is_sum(),
                    "shards": shards.collect::<Vec<_>>(),
                })
            }
            Self::Redistribution { moved, bytes } => redistribution_json(moved, *bytes),
        }
    }
}

fn distribution_json(of: &Distribution) -> Json {
    json!({
        "kind": "distribution",
        "text": Devices::Distribution(*of).to_string(),
        "layout": of.layout().to_string(),
        "extents": of.extents(),
        "devices": of.devices(),
        "copies": of.copies(),
        "sum": of.is_sum(),
    })
}

fn redistribution_json(moved: &Redistribution, bytes: Option<u64>) -> Json {
    let devices = moved.from().devices();
    let piece = |piece: &Piece| {
        let mut value = shard_json(&piece.shard);
        value["from"] = json!(piece.from);
        value["to"] = json!(piece.to);
        value["adds"] = json!(piece.adds);
        value
    };
    let row = |from| -> Vec<u64> {
        (0..devices)
            .map(|to| moved.link_elements(from, to))
            .collect()
    };
    let in_bytes = |elements: u64| bytes.and_then(|bytes| elements.checked_mul(bytes));
    json!({
        "kind": "redistribution",
        "movement": moved.movement().name(),
        "from": distribution_json(moved.from()),
        "to": distribution_json(moved.to()),
        "pieces": moved.pieces().iter().map(piece).collect::<Vec<_>>(),
        "kept": moved.kept().iter().map(shard_json).collect::<Vec<_>>(),
        "links": (0..devices).map(row).collect::<Vec<_>>(),
        "busiest_link": moved.busiest_link(),
        "busiest_link_bytes": in_bytes(moved.busiest_link()),
        "total": moved.total(),
        "total_bytes": in_bytes(moved.total()),
        "owners": moved.certificate().owners(),
        "certificate": moved.certificate().lines(),
    })
}

/// Runs as pairs; of very many, the first ones, and how many there are.
fn shard_json(shard: &Shard) -> Json {
    let runs = |runs: &Runs| -> Vec<[u64; 2]> {
        let pairs = runs.iter().map(|run| [run.start, run.end]);
        pairs.take(MOST_RUNS).collect()
    };
    json!({
        "rows": runs(&shard.rows),
        "row_runs": shard.rows.len(),
        "columns": runs(&shard.columns),
        "column_runs": shard.columns.len(),
        "elements": shard.elements(),
    })
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Distribution(of) => {
                let (open, close) = if of.is_sum() {
                    ("summed(", ")")
                } else {
                    ("", "")
                };
                let [rows, columns] = of.extents();
                let layout = of.layout();
                write!(f, "{open}distribution({layout},({rows},{columns})){close}")
            }
            Self::Shards(of) => {
                for device in 0..of.devices() {
                    let between = if device == 0 { "" } else { "; " };
                    write!(f, "{between}{device}: {}", of.shard(device))?;
                }
                Ok(())
            }
            Self::Redistribution { moved, bytes } => write_movement(f, moved, *bytes),
        }
    }
}

fn write_movement(
    f: &mut fmt::Formatter<'_>,
    moved: &Redistribution,
    bytes: Option<u64>,
) -> fmt::Result {
    write!(f, "{}: ", moved.movement())?;
    let pieces = moved.pieces();
    let shown = if pieces.len() > MOST_PIECES {
        4
    } else {
        pieces.len()
    };
    for piece in &pieces[..shown] {
        let adds = if piece.adds { " adds" } else { "" };
        write!(f, "{} -> {}{adds} {}; ", piece.from, piece.to, piece.shard)?;
    }
    if shown < pieces.len() {
        write!(f, "… ({} more pieces); ", pieces.len() - shown)?;
    }
    if !pieces.is_empty() {
        let amount = |elements: u64| match bytes.and_then(|bytes| elements.checked_mul(bytes)) {
            Some(bytes) => format!("{elements} elements ({bytes} bytes)"),
            None => format!("{elements} elements"),
        };
        let (busiest, total) = (amount(moved.busiest_link()), amount(moved.total()));
        write!(f, "busiest link {busiest}, {total} in all; ")?;
    }
    let lines = moved.certificate().lines();
    f.write_str(lines.last().map_or("", String::as_str))
}
