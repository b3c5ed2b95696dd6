//! From an instruction to a picture: which thread holds, gives or points at which element.
//!
//! Matrix instructions are drawn as they multiply: A to the left of D, B above it (B as K rows of N columns). `ldmatrix` and
//! `stmatrix` are two panels, memory and registers, with their 8x8 matrices side by side.

use tilewright::Layout;
use tilewright::atoms::{CopyAtom, MmaAtom, Scalar};

use super::input;
use super::names::{Atom, atom_named, copy_name, mma_name};
use super::palette::Tint;
use super::scene::{Axis, Block, Cell, Kind, LegendItem, Mark, Panel, Scene};
use crate::error::CliError;

/// Columns beyond which cells are too small for a label each.
pub(crate) const SPARSE: usize = 64;

/// What a thread-value layout is of.
struct Operand<'a> {
    /// `A`, `src`, …
    role: &'a str,
    /// What it is, for people.
    title: String,
    /// (thread, value) -> index.
    layout: Layout,
    /// Rows and columns of the picture, and where an index lies in it.
    rows: i64,
    cols: i64,
    place: fn(i64, i64) -> (i64, i64),
    /// What `place` gets besides the index.
    extent: i64,
    axes: [Axis; 2],
    /// Threads whose values count.
    threads: i64,
    /// What is written before a value's number; nothing where the thread points at a whole row.
    letter: Option<char>,
    /// Values that one 32-bit register holds.
    packed: i64,
    at: (usize, usize),
}

fn by_column(index: i64, rows: i64) -> (i64, i64) {
    (index % rows, index / rows)
}

fn by_row(index: i64, cols: i64) -> (i64, i64) {
    (index / cols, index % cols)
}

fn by_matrix(index: i64, _: i64) -> (i64, i64) {
    (index % 64 / 8, index / 64 * 8 + index % 8)
}

fn ruled(name: &str, rule: usize) -> Axis {
    Axis {
        rule,
        ..Axis::plain(name)
    }
}

fn mma_operands(atom: &MmaAtom) -> Vec<Operand<'static>> {
    let group = atom.threads == 128;
    let [a, b, c] = atom.values();
    let [ra, rb, rc] = atom.registers();
    let title = |name: &str, shape: String, kind: Scalar, values: i64, registers: i64| {
        let plural = |n: i64, text: &str| format!("{n} {text}{}", if n == 1 { "" } else { "s" });
        format!(
            "{name}: {shape}, {}; {} in {} a thread",
            kind.name(),
            plural(values, "value"),
            plural(registers, "register")
        )
    };
    let packed = |scalar: Scalar| (32 / scalar.bits()).max(1);
    let warps = if group { 16 } else { 0 };
    let mut operands = vec![Operand {
        role: "A",
        title: title(
            "A",
            format!("{} \u{d7} {} (m \u{d7} k)", atom.m, atom.k),
            atom.a_type,
            a,
            ra,
        ),
        layout: atom.a,
        rows: atom.m,
        cols: atom.k,
        place: by_column,
        extent: atom.m,
        axes: [ruled("m", warps), ruled("k", 0)],
        threads: atom.threads,
        letter: Some('a'),
        packed: packed(atom.a_type),
        at: (usize::from(!group), 0),
    }];
    if !group {
        operands.push(Operand {
            role: "B",
            title: title(
                "B",
                format!("{} \u{d7} {} (k \u{d7} n)", atom.k, atom.n),
                atom.b_type,
                b,
                rb,
            ),
            layout: atom.b,
            rows: atom.k,
            cols: atom.n,
            place: by_row,
            extent: atom.n,
            axes: [ruled("k", 0), ruled("n", 0)],
            threads: atom.threads,
            letter: Some('b'),
            packed: packed(atom.b_type),
            at: (0, 1),
        });
    }
    operands.push(Operand {
        role: "D",
        title: title(
            "C, D",
            format!("{} \u{d7} {} (m \u{d7} n)", atom.m, atom.n),
            atom.c_type,
            c,
            rc,
        ),
        layout: atom.c,
        rows: atom.m,
        cols: atom.n,
        place: by_column,
        extent: atom.m,
        axes: [ruled("m", warps), ruled("n", 0)],
        threads: atom.threads,
        letter: Some('d'),
        packed: packed(atom.c_type),
        at: (usize::from(!group), 1),
    });
    operands
}

fn copy_operands(atom: &CopyAtom) -> Vec<Operand<'static>> {
    let matrices = atom.elements() / 64;
    let is_matrix = atom.threads == 32;
    let side = |role: &'static str, layout: Layout, memory: bool, row: usize| {
        let title = match (is_matrix, memory) {
            (true, true) => format!("{role}: the row of shared memory that each thread points at"),
            (true, false) => format!("{role}: the registers that hold each element"),
            (false, _) => format!("{role}: the bytes of one thread"),
        };
        Operand {
            role,
            title,
            layout,
            rows: if is_matrix { 8 } else { 1 },
            cols: if is_matrix {
                8 * matrices
            } else {
                atom.elements()
            },
            place: if is_matrix { by_matrix } else { by_row },
            extent: atom.elements(),
            axes: if is_matrix {
                [ruled("row", 0), ruled("column, matrices side by side", 8)]
            } else {
                [ruled("", 0), ruled("byte", 0)]
            },
            threads: if is_matrix && memory {
                8 * matrices
            } else {
                atom.threads
            },
            letter: (!memory).then_some('v'),
            packed: 2,
            at: (row, 0),
        }
    };
    vec![
        side("src", atom.src, !atom.stores || !is_matrix, 0),
        side("dst", atom.dst, atom.stores || !is_matrix, 1),
    ]
}

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
pub(crate) fn scene(request: &Request) -> Result<Scene, CliError> {
    let atom = atom_named(request.name)?;
    let mut notes = Vec::new();
    let (operands, ptx, target, threads) = match &atom {
        Atom::Copy(copy) => (copy_operands(copy), copy.name, copy.target, copy.threads),
        Atom::Mma(mma) => (mma_operands(mma), mma.name, mma.target, mma.threads),
    };
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
        return Err(CliError::usage(
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
    let plural = if threads == 1 { "" } else { "s" };
    Ok(Scene {
        kind: Kind::Atom,
        heading: match &atom {
            Atom::Copy(copy) => copy_name(copy),
            Atom::Mma(mma) if group => format!(
                "wgmma.m{}n{}k{}.{}.{}",
                mma.m,
                mma.n,
                mma.k,
                mma.a_type.name(),
                mma.c_type.name()
            ),
            Atom::Mma(mma) => mma_name(mma),
        },
        facts: vec![
            ptx.to_owned(),
            format!("{threads} thread{plural}, {target}"),
        ],
        legend: legend(
            threads,
            operands.iter().find(|operand| operand.letter.is_some()),
        ),
        panels,
        notes,
        elem_bytes: 0,
        coloured: true,
    })
}

fn chosen<'a>(
    operands: Vec<Operand<'a>>,
    asked: Option<&str>,
    group: bool,
) -> Result<Vec<Operand<'a>>, CliError> {
    let Some(asked) = asked else {
        return Ok(operands);
    };
    if group && asked.eq_ignore_ascii_case("b") {
        return Err(CliError::new(
            "no_fragment",
            "the B of wgmma is read from shared memory through a descriptor: no thread holds it",
        ));
    }
    let wanted = if asked.eq_ignore_ascii_case("c") {
        "D"
    } else {
        asked
    };
    let roles: Vec<&str> = operands.iter().map(|operand| operand.role).collect();
    let message = format!("no such operand; one of {}", roles.join(", "));
    let found: Vec<Operand> = operands
        .into_iter()
        .filter(|operand| operand.role.eq_ignore_ascii_case(wanted))
        .collect();
    if found.is_empty() {
        return Err(CliError::usage("unknown_operand", message).at((0, asked.len()), asked));
    }
    Ok(found)
}

fn panel(request: &Request, operand: &Operand) -> Result<Panel, CliError> {
    let rows = input::window(request.rows, operand.rows, request.limit, request.most)?;
    let cols = input::window(request.cols, operand.cols, request.limit, request.most)?;
    // Who holds each element: thread, value.
    let size = (operand.rows * operand.cols) as usize;
    let mut held: Vec<Option<(u32, u32)>> = vec![None; size];
    let mut index_at: Vec<i64> = vec![0; size];
    let values = operand.layout.size() / operand.layout.get(0).map_or(1, |mode| mode.size());
    for thread in 0..operand.threads {
        for value in 0..values {
            let index = operand.layout.at(&[thread, value]);
            let (row, col) = (operand.place)(index, operand.extent);
            let at = (row * operand.cols + col) as usize;
            held[at] = Some((thread as u32, value as u32));
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
            let Some((thread, value)) = held[at] else {
                cells.push(None);
                left = None;
                continue;
            };
            let whole = sparse || operand.letter.is_none();
            if !(whole && left == Some(thread)) {
                blocks.push(block(operand, thread, value));
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
    let Some(letter) = operand.letter else {
        return Block {
            labels: vec![vec![format!("thread {thread}")], vec![format!("T{thread}")]],
            lanes: vec![thread],
            ..Block::default()
        };
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
        lanes: vec![thread],
        value: Some((value, register)),
        detail,
        ..Block::default()
    }
}

fn legend(threads: i64, example: Option<&Operand>) -> Vec<LegendItem> {
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
    if let Some((letter, packed)) = example.and_then(|one| Some((one.letter?, one.packed))) {
        text = format!("T5 {letter}3: value 3 of thread 5");
        if packed > 1 {
            text = format!(
                "T5 {letter}3 r{}: value 3 of thread 5, in its register {0}",
                3 / packed
            );
        }
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
