//! From an instruction to a picture: which thread holds, gives or points at which element.
//!
//! Matrix instructions are drawn as they multiply: A to the left of D, B above it (B as K rows of N columns), with the blocks of
//! one that multiplies several pairs side by side. Sparse ones have their metadata below. `ldmatrix` and `stmatrix` are two
//! panels, memory and registers, with their matrices side by side. Tensor memory is drawn as it is, lanes by columns.

use tilewright::atoms::tcgen05::{CtaGroup, TMEM_LANES};

use super::input;
use super::names::{Atom, atom_named};
use super::operands::{
    Holder, Operand, accumulator_operands, copy_operands, mma_operands, plural, sparse_operands,
    tmem_copy_operands,
};
use super::palette::Tint;
use super::scene::{Block, Cell, Kind, LegendItem, Mark, Panel, Scene};
use crate::Refusal;

/// Columns beyond which cells are too small for a label each.
pub(crate) const SPARSE: usize = 64;

/// Columns of tensor memory beyond which elements of a row share a label, as they do where two blocks are drawn.
const WIDE: usize = 24;

/// What to draw.
pub(crate) struct Request<'a> {
    /// The instruction's name.
    pub(crate) name: &'a str,
    /// Which operand; all without.
    pub(crate) operand: Option<&'a str>,
    /// `--rows`.
    pub(crate) rows: Option<&'a str>,
    /// `--cols`.
    pub(crate) cols: Option<&'a str>,
    /// Rows and columns shown at most, unless asked for.
    pub(crate) limit: usize,
    /// Rows and columns shown at most.
    pub(crate) most: usize,
}

/// The picture of an instruction.
///
/// # Errors
/// An unknown name, an operand that it has not, a window outside it.
pub(crate) fn scene(request: &Request) -> Result<Scene, Refusal> {
    let named = atom_named(request.name)?;
    let mut notes = Vec::new();
    let (operands, facts, threads) = match &named.atom {
        Atom::Copy(copy) => (
            copy_operands(copy),
            facts(copy.name, copy.threads, &copy.target),
            copy.threads,
        ),
        Atom::Mma(mma) => (
            mma_operands(mma),
            facts(mma.name, mma.threads, &mma.target),
            mma.threads,
        ),
        Atom::Sparse(sparse) => {
            let mma = &sparse.mma;
            (
                sparse_operands(sparse),
                facts(mma.name, mma.threads, &mma.target),
                mma.threads,
            )
        }
        Atom::TmemCopy(copy) => {
            let name = format!(
                "tcgen05.ld and tcgen05.st, .{}.x{}",
                copy.shape.name(),
                copy.repeat
            );
            (
                tmem_copy_operands(copy),
                facts(&name, 32, &"sm_100a and its family"),
                32,
            )
        }
        Atom::Accumulator(atom, group) => {
            let issued = match group {
                CtaGroup::Two | CtaGroup::TwoSparse => "issued by one thread of a pair of blocks",
                _ => "issued by one thread of a block",
            };
            let facts = vec![
                format!("tcgen05.mma, layout {}", atom.letter),
                format!("{issued}, sm_100a and its family"),
            ];
            (accumulator_operands(atom), facts, 0)
        }
    };
    notes.extend(notes_of(&named.atom));
    let group = threads == 128;
    if group && request.operand.is_none() {
        notes.push(
            "B is read from shared memory through a descriptor: no thread holds it. A is shown as it lies in registers; it may come from shared memory too."
                .to_owned(),
        );
    }
    let operands = chosen(operands, request.operand, group)?;
    let alone = operands.len() == 1;
    if !alone && (request.rows.is_some() || request.cols.is_some()) {
        return Err(Refusal::usage(
            "bad_window",
            "--rows and --cols need --operand here, since the operands' shapes differ",
        ));
    }
    let mut panels = Vec::new();
    for operand in &operands {
        let mut drawn = panel(request, operand)?;
        if alone {
            drawn.place = (0, 0);
        }
        if drawn.cols.is_clipped() || drawn.rows.is_clipped() {
            notes.push(format!(
                "{} is clipped to rows {}..{} and columns {}..{} of {} \u{d7} {}. --operand {} with --rows A..B and --cols A..B shows others.",
                drawn.role,
                drawn.rows.first,
                drawn.rows.first + drawn.rows.count as i64,
                drawn.cols.first,
                drawn.cols.first + drawn.cols.count as i64,
                drawn.rows.all,
                drawn.cols.all,
                drawn.role
            ));
        }
        panels.push(drawn);
    }
    Ok(Scene {
        kind: Kind::Atom,
        heading: named.name,
        facts,
        legend: legend(
            threads,
            operands
                .iter()
                .find(|operand| operand.holder != Holder::Row),
        ),
        panels,
        notes,
        elem_bytes: 0,
        coloured: true,
    })
}

/// The manual's name, who executes it, and which processors have it.
fn facts(name: &str, threads: i64, target: &dyn std::fmt::Display) -> Vec<String> {
    vec![
        name.to_owned(),
        format!("{}, {target}", plural(threads, "thread")),
    ]
}

/// What the picture does not show by itself.
fn notes_of(atom: &Atom) -> Vec<String> {
    match atom {
        Atom::Mma(mma) if mma.a.size() > mma.m * mma.k * mma.blocks && !mma.b_is_shared() => {
            let mut notes = vec![format!(
                "Each group of 16 threads holds all of A and B: threads 16 to {} hold what threads 0 to 15 hold. Cells name the lowest.",
                mma.threads - 1
            )];
            if mma.slot_bits[2] > mma.c_type.bits() {
                notes.push(
                    "A value of C or D takes half of a register: the lower one, or with the bit of OPSEL the upper one.".to_owned(),
                );
            }
            notes
        }
        Atom::Sparse(sparse) if sparse.selectors() == 4 => {
            vec![
                "With selector s, thread s of each quad provides the metadata instead of thread 0."
                    .to_owned(),
            ]
        }
        Atom::Sparse(sparse) if sparse.selectors() == 2 => {
            vec!["With selector 1, threads 2 and 3 of each quad provide the metadata instead of threads 0 and 1.".to_owned()]
        }
        Atom::Copy(copy) if copy.memory_bits < copy.element_bits => vec![format!(
            "In memory the 16 elements of a row have {} bits each and lie in the first {} of its 16 bytes.",
            copy.memory_bits,
            2 * copy.memory_bits
        )],
        Atom::TmemCopy(_) => {
            vec!["Lanes count from the address of the instruction; warp w of a warpgroup reaches lanes 32w to 32w + 31.".to_owned()]
        }
        _ => Vec::new(),
    }
}

fn chosen<'a>(
    operands: Vec<Operand<'a>>,
    asked: Option<&str>,
    group: bool,
) -> Result<Vec<Operand<'a>>, Refusal> {
    let Some(asked) = asked else {
        return Ok(operands);
    };
    if group && asked.eq_ignore_ascii_case("b") {
        return Err(Refusal::new(
            "no_fragment",
            "the B of wgmma is read from shared memory through a descriptor: no thread holds it",
        ));
    }
    // C is drawn apart from D only where it has a map of its own.
    let apart = operands.iter().any(|operand| operand.role == "C");
    let wanted = if asked.eq_ignore_ascii_case("c") && !apart {
        "D"
    } else {
        asked
    };
    let roles: Vec<&str> = operands.iter().map(|operand| operand.role).collect();
    let message = format!(
        "there is no operand `{asked}` here; known are {}",
        roles.join(", ")
    );
    let found: Vec<Operand> = operands
        .into_iter()
        .filter(|operand| operand.role.eq_ignore_ascii_case(wanted))
        .collect();
    if found.is_empty() {
        return Err(Refusal::usage("unknown_operand", message).at((0, asked.len()), asked));
    }
    Ok(found)
}

fn panel(request: &Request, operand: &Operand) -> Result<Panel, Refusal> {
    let rows = input::window(request.rows, operand.rows, request.limit, request.most)?;
    let cols = input::window(request.cols, operand.cols, request.limit, request.most)?;
    // Who holds each element: thread, value.
    let size = (operand.rows * operand.cols) as usize;
    let mut held: Vec<Vec<(u32, u32)>> = vec![Vec::new(); size];
    let mut index_at: Vec<i64> = vec![0; size];
    let values = operand.layout.size() / operand.layout.get(0).map_or(1, |mode| mode.size());
    for thread in 0..operand.threads {
        for value in 0..values {
            let index = operand.layout.at(&[thread, value]);
            let (row, col) = (operand.place)(index, operand.extent);
            let at = (row * operand.cols + col) as usize;
            let lane = match &operand.lanes {
                Some(lanes) => lanes[thread as usize],
                None => thread as u32,
            };
            held[at].push((lane, value as u32));
            index_at[at] = index;
        }
    }
    let sparse = cols.count > SPARSE;
    let mut cells = Vec::with_capacity(rows.count * cols.count);
    let mut blocks: Vec<Block> = Vec::new();
    for row in rows.indices() {
        let mut left = None;
        for col in cols.indices() {
            let at = (row * operand.cols + col) as usize;
            let Some(&(thread, value)) = held[at].first() else {
                cells.push(None);
                left = None;
                continue;
            };
            let whole = match operand.holder {
                Holder::Row => true,
                Holder::Element => cols.count > WIDE || rows.count > TMEM_LANES as usize,
                Holder::Value(_) | Holder::Field => sparse,
            };
            if !(whole && left == Some(thread)) {
                let mut drawn = block(operand, thread, value);
                if whole && operand.holder == Holder::Element {
                    drawn.labels = vec![
                        vec![format!("m{thread}, n{value} and on")],
                        vec![format!("m{thread}")],
                    ];
                    drawn.detail = format!("elements ({thread}, {value}) and on of D");
                }
                drawn.lanes = held[at].iter().map(|(lane, _)| *lane).collect();
                blocks.push(drawn);
            }
            left = Some(thread);
            cells.push(Some(Cell {
                offset: index_at[at],
                bank: None,
                tint: Some(Tint::new(thread / 4, thread % 4)),
                block: Some(blocks.len() - 1),
            }));
        }
    }
    Ok(Panel {
        role: operand.role.to_owned(),
        title: operand.title.clone(),
        layout: operand.layout.to_string(),
        verdict: Vec::new(),
        rows,
        cols,
        axes: operand.axes.clone(),
        cells,
        blocks,
        offsets: false,
        cost: None,
        place: operand.at,
    })
}

fn block(operand: &Operand, thread: u32, value: u32) -> Block {
    let letter = match operand.holder {
        Holder::Value(letter) => letter,
        Holder::Row => {
            return Block {
                labels: vec![vec![format!("thread {thread}")], vec![format!("T{thread}")]],
                ..Block::default()
            };
        }
        Holder::Field => {
            let bits = format!("{}\u{2013}{}", 4 * value, 4 * value + 3);
            return Block {
                labels: vec![
                    vec![format!("T{thread}"), format!("bits {bits}")],
                    vec![format!("T{thread}"), bits.clone()],
                    vec![format!("T{thread}")],
                ],
                value: Some((value, 0)),
                detail: format!("bits {bits} of its metadata register"),
                ..Block::default()
            };
        }
        Holder::Element => {
            return Block {
                labels: vec![
                    vec![format!("m{thread} n{value}")],
                    vec![format!("m{thread}"), format!("n{value}")],
                    vec![format!("{thread},{value}")],
                ],
                detail: format!("element ({thread}, {value}) of D"),
                ..Block::default()
            };
        }
    };
    let register = value / operand.packed as u32;
    let name = format!("{letter}{value}");
    let mut labels = Vec::new();
    if operand.packed > 1 {
        labels.push(vec![format!("T{thread}"), format!("{name} r{register}")]);
    }
    labels.push(vec![format!("T{thread} {name}")]);
    labels.push(vec![format!("T{thread}"), name]);
    labels.push(vec![format!("T{thread}")]);
    let bits = 32 / operand.packed;
    let detail = if operand.packed > 1 {
        let low = i64::from(value) % operand.packed * bits;
        format!("register {register}, bits {low} to {}", low + bits - 1)
    } else {
        format!("register {register}")
    };
    Block {
        labels,
        value: Some((value, register)),
        detail,
        ..Block::default()
    }
}

fn legend(threads: i64, example: Option<&Operand>) -> Vec<LegendItem> {
    if let Some(Holder::Element) = example.map(|one| one.holder) {
        return vec![LegendItem {
            mark: Mark::None,
            text: "m5: row 5 of D; n3: column 3; colours are rows of D and repeat every 32"
                .to_owned(),
        }];
    }
    if threads < 32 {
        return Vec::new();
    }
    let mut items: Vec<LegendItem> = (0..8)
        .map(|quad| LegendItem {
            mark: Mark::Fill((0..4).map(|lane| Tint::new(quad, lane)).collect()),
            text: format!("T{}\u{2013}{}", 4 * quad, 4 * quad + 3),
        })
        .collect();
    let mut text = String::new();
    if let Some((letter, packed, values)) = example.and_then(|one| match one.holder {
        Holder::Value(letter) => Some((
            letter,
            one.packed,
            one.layout.get(1).map_or(1, |mode| mode.size()),
        )),
        _ => None,
    }) {
        let value = 3.min(values - 1);
        text = format!("T5 {letter}{value}: value {value} of thread 5");
        if packed > 1 {
            text = format!(
                "T5 {letter}{value} r{0}: value {value} of thread 5, in its register {0}",
                value / packed
            );
        }
    }
    if threads == 64 {
        text.push_str("; colours repeat after 32 threads");
    }
    if threads == 128 {
        text.push_str("; colours repeat with the four warps, one below the other");
    }
    if !text.is_empty() {
        items.push(LegendItem {
            mark: Mark::None,
            text,
        });
    }
    items
}
