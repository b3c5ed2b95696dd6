//! The panels of an instruction: what each operand is a layout of, and where an index lies in its picture.

use tilewright::Layout;
use tilewright::atoms::tcgen05::{Accumulator, TMEM_COLUMNS, TMEM_LANES, TmemCopy};
use tilewright::atoms::{CopyAtom, MmaAtom, Scalar, SparseMmaAtom};

use super::scene::Axis;

/// Who holds an element, and what that is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A thread, in the value with this letter: `T5 a3`.
    Value(char),
    /// A thread that points at a whole row: `thread 5`.
    Row,
    /// A field of a thread's metadata register: `T4 bits 8-11`.
    Field,
    /// A place in tensor memory holds element `(m, n)`: `m5 n3`.
    Element,
}

/// What a thread-value layout is of.
pub(super) struct Operand<'a> {
    /// `A`, `src`, …
    pub(super) role: &'a str,
    /// What it is, for people.
    pub(super) title: String,
    /// (thread, value) -> index.
    pub(super) layout: Layout,
    /// Rows and columns of the picture, and where an index lies in it.
    pub(super) rows: i64,
    pub(super) cols: i64,
    pub(super) place: fn(i64, [i64; 2]) -> (i64, i64),
    /// What `place` gets besides the index.
    pub(super) extent: [i64; 2],
    pub(super) axes: [Axis; 2],
    /// Threads whose values count.
    pub(super) threads: i64,
    /// The thread of the layout's number, where they differ: providers of metadata.
    pub(super) lanes: Option<Vec<u32>>,
    pub(super) holder: Holder,
    /// Values that one 32-bit register holds.
    pub(super) packed: i64,
    pub(super) at: (usize, usize),
}

fn by_column(index: i64, [rows, _]: [i64; 2]) -> (i64, i64) {
    (index % rows, index / rows)
}

fn by_row(index: i64, [cols, _]: [i64; 2]) -> (i64, i64) {
    (index / cols, index % cols)
}

/// Matrices of that many rows and columns side by side.
fn by_matrix(index: i64, [rows, cols]: [i64; 2]) -> (i64, i64) {
    let (matrix, within) = (index / (rows * cols), index % (rows * cols));
    (within / cols, matrix * cols + within % cols)
}

/// Lanes of tensor memory down, columns across; the second block's lanes below.
fn by_lane(index: i64, _: [i64; 2]) -> (i64, i64) {
    let (block, within) = (
        index / (TMEM_LANES * TMEM_COLUMNS),
        index % (TMEM_LANES * TMEM_COLUMNS),
    );
    (
        block * TMEM_LANES + within % TMEM_LANES,
        within / TMEM_LANES,
    )
}

fn ruled(name: &str, rule: i64) -> Axis {
    Axis {
        rule: usize::try_from(rule).unwrap_or(0),
        ..Axis::plain(name)
    }
}

pub(super) fn plural(n: i64, text: &str) -> String {
    format!("{n} {text}{}", if n == 1 { "" } else { "s" })
}

pub(super) fn mma_operands(atom: &MmaAtom) -> Vec<Operand<'static>> {
    let shared = atom.b_is_shared();
    let [a, b, c] = atom.values();
    let [ra, rb, rc] = atom.registers();
    let blocks = atom.blocks;
    let title = |name: &str, shape: String, kind: Scalar, values: i64, registers: i64| {
        let each = if blocks > 1 {
            format!("{blocks} blocks of {shape}")
        } else {
            shape
        };
        format!(
            "{name}: {each}, {}; {} in {} a thread",
            kind.name(),
            plural(values, "value"),
            plural(registers, "register")
        )
    };
    let packed = |slot: i64| (atom.register_bits(slot) / slot).max(1);
    let warps = if shared { 16 } else { 0 };
    // A rule between blocks.
    let axis = |name: &str, extent: i64, how: &str| match blocks {
        1 => ruled(name, 0),
        _ => ruled(&format!("{name}, blocks {how}"), extent),
    };
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
        cols: atom.k * blocks,
        place: by_column,
        extent: [atom.m, 0],
        axes: [ruled("m", warps), axis("k", atom.k, "side by side")],
        threads: atom.threads,
        lanes: None,
        holder: Holder::Value('a'),
        packed: packed(atom.slot_bits[0]),
        at: (usize::from(!shared), 0),
    }];
    if !shared {
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
            rows: atom.k * blocks,
            cols: atom.n,
            place: by_row,
            extent: [atom.n, 0],
            axes: [axis("k", atom.k, "one below the other"), ruled("n", 0)],
            threads: atom.threads,
            lanes: None,
            holder: Holder::Value('b'),
            packed: packed(atom.slot_bits[1]),
            at: (0, 1),
        });
    }
    let accumulator =
        |role: &'static str, name: &str, layout: Layout, kind: Scalar, slot: i64, row: usize| {
            let values = c;
            let registers = if role == "D" && atom.d != atom.c {
                values * slot / 32
            } else {
                rc
            };
            Operand {
                role,
                title: title(
                    name,
                    format!("{} \u{d7} {} (m \u{d7} n)", atom.m, atom.n),
                    kind,
                    values,
                    registers,
                ),
                layout,
                rows: atom.m,
                cols: atom.n * blocks,
                place: by_column,
                extent: [atom.m, 0],
                axes: [ruled("m", warps), axis("n", atom.n, "side by side")],
                threads: atom.threads,
                lanes: None,
                holder: Holder::Value(if role == "C" { 'c' } else { 'd' }),
                packed: packed(slot),
                at: (row, 1),
            }
        };
    let row = usize::from(!shared);
    if atom.d == atom.c && atom.d_type == atom.c_type {
        operands.push(accumulator(
            "D",
            "C, D",
            atom.d,
            atom.d_type,
            atom.slot_bits[3],
            row,
        ));
    } else {
        operands.push(accumulator(
            "D",
            "D",
            atom.d,
            atom.d_type,
            atom.slot_bits[3],
            row,
        ));
        operands.push(accumulator(
            "C",
            "C",
            atom.c,
            atom.c_type,
            atom.slot_bits[2],
            row + 1,
        ));
    }
    operands
}

pub(super) fn sparse_operands(atom: &SparseMmaAtom) -> Vec<Operand<'static>> {
    let mma = &atom.mma;
    let mut compressed = *mma;
    compressed.k = mma.k / 2;
    let stored = atom.stored();
    let mut operands = mma_operands(mma);
    operands[0] = mma_operands(&compressed).swap_remove(0);
    let whole = format!("A, {stored} of each {} along k stored: ", atom.chunk);
    operands[0].title =
        operands[0]
            .title
            .replacen("A: ", &whole, 1)
            .replacen("(m \u{d7} k)", "(m \u{d7} k/2)", 1);
    operands[0].axes = [ruled("m", 0), ruled("stored k", stored)];
    let chunks = mma.k / atom.chunk;
    let providers = atom.metadata.get(0).map_or(1, |mode| mode.size());
    operands.push(Operand {
        role: "E",
        title: format!(
            "Metadata of each {} columns of A: these bits of a thread's register{}",
            atom.chunk,
            if atom.selectors() > 1 {
                ", selector 0"
            } else {
                ""
            }
        ),
        layout: atom.metadata,
        rows: mma.m,
        cols: chunks,
        place: by_column,
        extent: [mma.m, 0],
        axes: [
            ruled("m", 0),
            Axis {
                scale: atom.chunk,
                ..Axis::plain("first k")
            },
        ],
        threads: providers,
        lanes: Some(
            (0..providers)
                .map(|provider| atom.providers.at(&[0, provider]) as u32)
                .collect(),
        ),
        holder: Holder::Field,
        packed: 8,
        at: (0, 0),
    });
    operands
}

pub(super) fn copy_operands(atom: &CopyAtom) -> Vec<Operand<'static>> {
    let [rows, cols] = atom.matrix;
    let matrices = atom.elements() / (rows * cols);
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
            rows,
            cols: cols * matrices,
            place: by_matrix,
            extent: [rows, cols],
            axes: if is_matrix {
                [
                    ruled("row", 0),
                    ruled("column, matrices side by side", cols),
                ]
            } else {
                [ruled("", 0), ruled("byte", 0)]
            },
            threads: if is_matrix && memory {
                rows * matrices
            } else {
                atom.threads
            },
            lanes: None,
            holder: if memory {
                Holder::Row
            } else {
                Holder::Value('v')
            },
            packed: 32 / atom.element_bits,
            at: (row, 0),
        }
    };
    vec![
        side("src", atom.src, !atom.stores || !is_matrix, 0),
        side("dst", atom.dst, atom.stores || !is_matrix, 1),
    ]
}

pub(super) fn tmem_copy_operands(copy: &TmemCopy) -> Vec<Operand<'static>> {
    let most = copy.layout.offset_range().1 / TMEM_LANES + 1;
    vec![Operand {
        role: "tmem",
        title: format!(
            "Tensor memory: {} lanes by {} of 32 bits; {} a thread",
            copy.shape.lanes(),
            plural(most, "column"),
            plural(copy.registers, "register")
        ),
        layout: copy.layout,
        rows: copy.shape.lanes(),
        cols: most,
        place: by_lane,
        extent: [0, 0],
        axes: [ruled("lane", 0), ruled("column", 0)],
        threads: 32,
        lanes: None,
        holder: Holder::Value('r'),
        packed: 1,
        at: (0, 0),
    }]
}

pub(super) fn accumulator_operands(atom: &Accumulator) -> Vec<Operand<'static>> {
    let blocks = if atom.layout.offset_range().1 >= TMEM_LANES * TMEM_COLUMNS {
        2
    } else {
        1
    };
    vec![Operand {
        role: "D",
        title: format!(
            "D: {} \u{d7} {} in {} lanes and {}{}; an offset counts lane + 128\u{b7}column{}",
            atom.m,
            atom.n,
            if matches!(atom.letter, 'C' | 'F') {
                "64 of 128"
            } else {
                "128"
            },
            plural(atom.columns, "column"),
            if blocks == 2 {
                ", in each of two blocks"
            } else {
                ""
            },
            if blocks == 2 {
                ", and 65536 more in the second block"
            } else {
                ""
            }
        ),
        layout: atom.layout,
        rows: TMEM_LANES * blocks,
        cols: atom.columns,
        place: by_lane,
        extent: [0, 0],
        axes: [
            ruled(
                if blocks == 2 {
                    "lane, then the second block's"
                } else {
                    "lane"
                },
                32,
            ),
            ruled("column", 0),
        ],
        threads: atom.m,
        lanes: None,
        holder: Holder::Element,
        packed: 1,
        at: (0, 0),
    }]
}
