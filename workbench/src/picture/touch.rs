//! What the lanes of one access touch, in which phase, and who is to blame where it takes longer than it must.
//!
//! Lanes are known by addresses, not by coordinates: lane `l` reads or writes `bytes` bytes from the address of its first element,
//! so an element belongs to it if it lies there. In a row-major tile those are its neighbours in the row; in a column-major
//! one, those below it.
//!
//! Addresses may be negative (strides downwards). Banks repeat every `banks * width` bytes, so a multiple of that is added first;
//! neither counts nor banks change.

use std::collections::BTreeMap;

use tilewright::banks::{self, BankModel, LANES, effective_phase_lanes};
use tilewright::derive::{DeriveError, Pattern};

use super::input::AccessText;
use super::scene::{Cost, PhaseCost, Word, ranges};
use super::tile::Tile;
use crate::Refusal;

/// The lanes' elements in the tile, checked.
pub(crate) struct Lanes {
    /// The access and its text.
    pub(crate) pattern: Pattern,
}

/// The lanes of `text` as elements of a tile: lane counts, the tile's bounds and races are checked as `derive` does.
pub(crate) fn lanes(text: &AccessText, tile: &Tile) -> Result<Lanes, Refusal> {
    let refuse = |error: DeriveError| {
        let message = error.to_string();
        // One access needs no number.
        let message = message.strip_prefix("access 0: ").unwrap_or(&message);
        text.refuse(error.code(), message)
    };
    let access = text.access;
    if matches!(access, banks::Access::Ffma) {
        return Err(refuse(DeriveError::UnsupportedAccess {
            pattern: 0,
            access,
        }));
    }
    let pattern = Pattern::new(access, &text.lanes).map_err(|error| match error {
        DeriveError::OutsideTile {
            pattern,
            lane,
            index,
            ..
        } => refuse(DeriveError::OutsideTile {
            pattern,
            lane,
            index,
            size: tile.size(),
        }),
        other => refuse(other),
    })?;
    let active = &pattern.elements[..access.lanes() as usize];
    for (lane, &index) in active.iter().enumerate() {
        if index >= tile.size() {
            return Err(refuse(DeriveError::OutsideTile {
                pattern: 0,
                lane,
                index,
                size: tile.size(),
            }));
        }
        if index >= 0
            && !access.is_load()
            && let Some(first) = active[..lane].iter().position(|&other| other == index)
        {
            return Err(refuse(DeriveError::DuplicateLanes {
                pattern: 0,
                access,
                first,
                second: lane,
                index,
            }));
        }
    }
    Ok(Lanes { pattern })
}

/// An access carried out in one layout.
pub(crate) struct Touched {
    /// What it costs.
    pub(crate) cost: Cost,
    /// Byte ranges: first byte, with the lanes that start there and their phase. All are `bytes` long and none overlap partly.
    starts: BTreeMap<i128, (Vec<u32>, u32)>,
    /// Bytes that a lane touches.
    bytes: i128,
    /// The lanes that ask the busiest bank of a phase that conflicts.
    offenders: u32,
    /// Lanes of a phase, if the pair rule merged phases.
    pub(crate) merged: Option<u32>,
}

impl Touched {
    /// The first byte, the lanes and the phase of whatever touches one of the bytes `from..from + len`. Where several narrow lanes
    /// share an element, all lanes and the phase of the first.
    pub(crate) fn at(&self, from: i128, len: i128) -> Option<(i128, Vec<u32>, u32)> {
        let mut found = self.starts.range(from - self.bytes + 1..from + len);
        let (&start, (lanes, phase)) = found.next()?;
        let mut lanes = lanes.clone();
        lanes.extend(found.flat_map(|(_, (more, _))| more));
        Some((start, lanes, *phase))
    }

    /// Whether one of these lanes offends.
    pub(crate) fn offends(&self, lanes: &[u32]) -> bool {
        lanes.iter().any(|&lane| self.offenders >> lane & 1 == 1)
    }
}

/// Carries the access out: `offset` is the layout, row-major index -> element offset.
///
/// # Errors
/// What the bank model refuses, as code and message: misaligned addresses, accesses that the memory lacks; addresses of more than 63
/// bits.
pub(crate) fn touch(
    lanes: &Lanes,
    tile: &Tile,
    model: &BankModel,
    elem_bytes: i64,
    offset: &dyn Fn(i64, i64) -> i64,
) -> Result<Touched, (&'static str, String)> {
    let access = lanes.pattern.access;
    let count = access.lanes() as usize;
    let true_address = |lane: usize| {
        let (row, col) = tile.place(lanes.pattern.elements[lane]);
        i128::from(offset(row, col)) * i128::from(elem_bytes)
    };
    let active: Vec<usize> = (0..count)
        .filter(|&lane| lanes.pattern.elements[lane] >= 0)
        .collect();
    let period = i128::from(model.banks * model.word_bytes);
    let lowest = active.iter().map(|&lane| true_address(lane)).min();
    let shift = lowest.unwrap_or(0).min(0).div_euclid(period) * period;
    let mut addresses = [-1_i64; LANES];
    for &lane in &active {
        let address = true_address(lane);
        addresses[lane] = i64::try_from(address - shift).map_err(|_| {
            let message =
                format!("lane {lane} is at byte {address}, which does not fit in 63 bits");
            ("overflow", message)
        })?;
    }
    let count = banks::wavefronts(model, access, &addresses)
        .map_err(|error| (error.code(), error.to_string()))?;
    let bytes = i128::from(access.bytes());
    let mut starts: BTreeMap<i128, (Vec<u32>, u32)> = BTreeMap::new();
    let mut offenders = 0;
    let mut phases = Vec::new();
    for (number, phase) in count.phases().iter().enumerate() {
        if phase.lanes == 0 {
            continue;
        }
        let in_phase = members(phase.lanes);
        for &lane in &in_phase {
            // A lane of a later phase that starts at the same byte shares the block; the first phase names it.
            let start = starts
                .entry(true_address(lane as usize))
                .or_insert_with(|| (Vec::new(), number as u32));
            start.0.push(lane);
        }
        let conflict = phase.wavefronts > phase.ideal;
        if conflict {
            offenders |= phase.offenders;
        }
        let words = words_of(
            model,
            phase.bank,
            &members(phase.offenders),
            bytes,
            &|lane| true_address(lane as usize),
            &|lane| tile.place(lanes.pattern.elements[lane as usize]),
        );
        let mut cost = PhaseCost {
            number: number as u32,
            lanes: in_phase,
            wavefronts: phase.wavefronts,
            ideal: phase.ideal,
            bank: phase.bank,
            words,
            sentence: String::new(),
        };
        cost.sentence = sentence(&cost, model, access.bytes());
        phases.push(cost);
    }
    let lanes_of_phase = effective_phase_lanes(model, access, &addresses);
    let usual = model.phase_lanes[access.bytes().trailing_zeros() as usize];
    let merged = (access.matrices().is_none() && lanes_of_phase > usual).then_some(lanes_of_phase);
    Ok(Touched {
        cost: Cost {
            op: access.to_string(),
            wavefronts: count.wavefronts,
            ideal: count.ideal,
            phases,
        },
        starts,
        bytes,
        offenders,
        merged,
    })
}

/// The lanes of a mask, in order.
fn members(mask: u32) -> Vec<u32> {
    (0..32).filter(|lane| mask >> lane & 1 == 1).collect()
}

/// The different words that these lanes ask of `bank`.
fn words_of(
    model: &BankModel,
    bank: u32,
    lanes: &[u32],
    bytes: i128,
    address: &dyn Fn(u32) -> i128,
    place: &dyn Fn(u32) -> (i64, i64),
) -> Vec<Word> {
    let width = i128::from(model.word_bytes);
    let mut words: BTreeMap<i128, Word> = BTreeMap::new();
    for &lane in lanes {
        let first = address(lane).div_euclid(width);
        for word in first..first + (bytes / width).max(1) {
            if word.rem_euclid(i128::from(model.banks)) == i128::from(bank) {
                words
                    .entry(word)
                    .or_insert_with(|| Word {
                        number: i64::try_from(word).unwrap_or(i64::MAX),
                        lanes: Vec::new(),
                        at: place(lane),
                    })
                    .lanes
                    .push(lane);
            }
        }
    }
    words.into_values().collect()
}

/// `phase 0 (lanes 0-7): 8 wavefronts where 1 would do; 8 different words of bank group 0 (banks 0-3) are asked for, by lane 0 at
/// (0,0); …`
fn sentence(phase: &PhaseCost, model: &BankModel, bytes: u32) -> String {
    let who = format!("phase {} (lanes {})", phase.number, ranges(&phase.lanes));
    if phase.wavefronts <= phase.ideal {
        let plural = if phase.wavefronts == 1 { "" } else { "s" };
        return format!("{who}: {} wavefront{plural}, no conflict", phase.wavefronts);
    }
    let span = bytes / model.word_bytes;
    let bank = if span >= 4 && model.word_bytes == 4 {
        let first = phase.bank / span * span;
        format!(
            "bank group {} (banks {first}\u{2013}{})",
            first / 4,
            first + span - 1
        )
    } else {
        format!("bank {}", phase.bank)
    };
    let by: Vec<String> = phase
        .words
        .iter()
        .map(|word| {
            let plural = if word.lanes.len() == 1 { "" } else { "s" };
            format!(
                "lane{plural} {} at ({},{})",
                ranges(&word.lanes),
                word.at.0,
                word.at.1
            )
        })
        .collect();
    format!(
        "{who}: {} wavefronts where {} would do; {} different words of {bank} are asked for, by {}",
        phase.wavefronts,
        phase.ideal,
        phase.words.len(),
        by.join("; ")
    )
}
