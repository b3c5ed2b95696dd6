//! The golden table, `tests/golden/kernels.csv`: what ptxas makes of each kernel, and what its main loops have.
//!
//! ```text
//! entry     the name of the kernel's entry, which says the plan, the transposes and the variant
//! text      a hash of the module's text below the lines `.version` and `.target`, for the first architecture
//! shared    bytes of shared memory of a block, static and dynamic
//! loops     for each main loop the instructions of each kind, loops set apart by `/`
//! sm_75 …   registers of a thread, then `+` and the most registers of the kernels that come before or after it; `@` and a hash
//!           where this architecture's text differs from the first's by more than its header
//! ```
//!
//! No kernel of the table spills, but for those that `measure` names. A cell is empty where the plan does not serve the architecture or was not
//! assembled for it (see `measure`).

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::str::FromStr;

use tilewright::codegen::Arch;

use crate::loops::{Counts, KINDS};

/// What one architecture makes of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    /// Registers of a thread of the kernel that multiplies.
    pub(crate) registers: u32,
    /// The most registers of the kernels that come before or after it.
    pub(crate) others: u32,
    /// The hash of the architecture's own text; none if it is the first's.
    pub(crate) text: Option<u64>,
}

/// One kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) text: u64,
    pub(crate) shared: u32,
    pub(crate) loops: Vec<Counts>,
    pub(crate) cells: BTreeMap<Arch, Cell>,
}

/// The rows by the names of their entries.
pub(crate) type Table = BTreeMap<String, Row>;

/// Where the table is.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/kernels.csv")
}

/// A hash of a module's text below its header, without its comments: FNV-1a with 64 bits.
pub(crate) fn hash(ptx: &str) -> u64 {
    let header = [".version ", ".target "];
    let lines = ptx
        .lines()
        .filter(|line| !header.iter().any(|h| line.starts_with(h)))
        .map(|line| line.split("//").next().unwrap_or(line).trim_end());
    let bytes = lines.flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, byte| {
        (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.registers)?;
        if self.others > 0 {
            write!(f, "+{}", self.others)?;
        }
        match self.text {
            Some(hash) => write!(f, "@{hash:016x}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(cell: &str) -> Result<Self, String> {
        let (numbers, text) = match cell.split_once('@') {
            Some((numbers, hash)) => (numbers, Some(hexadecimal(hash)?)),
            None => (cell, None),
        };
        let (registers, others) = numbers.split_once('+').unwrap_or((numbers, "0"));
        let number = |n: &str| n.parse::<u32>().map_err(|e| format!("`{cell}`: {e}"));
        Ok(Self {
            registers: number(registers)?,
            others: number(others)?,
            text,
        })
    }
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|e| format!("`{text}`: {e}"))
}

/// The table as text.
pub(crate) fn to_text(table: &Table) -> String {
    let mut out = format!(
        "# written by `cargo xtask kernels --write`, described in tests/kernel_table/table.rs; loops: {}\n",
        KINDS.join(" ")
    );
    let arches: Vec<_> = Arch::ALL.iter().map(ToString::to_string).collect();
    let _ = writeln!(out, "entry,text,shared,loops,{}", arches.join(","));
    for (entry, row) in table {
        let loops: Vec<_> = row.loops.iter().map(ToString::to_string).collect();
        let cells = Arch::ALL.map(|a| row.cells.get(&a).map_or(String::new(), Cell::to_string));
        let _ = writeln!(
            out,
            "{entry},{:016x},{},{},{}",
            row.text,
            row.shared,
            loops.join("/"),
            cells.join(",")
        );
    }
    out
}

/// The table of a text.
pub(crate) fn from_text(text: &str) -> Result<Table, String> {
    let mut table = Table::new();
    for line in text.lines().skip(2) {
        let wrong = |what: String| format!("{what}, in `{line}`");
        let fields: Vec<_> = line.split(',').collect();
        let [entry, text, shared, loops, cells @ ..] = &fields[..] else {
            return Err(wrong("too few fields".to_owned()));
        };
        if cells.len() != Arch::ALL.len() {
            return Err(wrong(format!("{} architectures", cells.len())));
        }
        let loops: Result<_, _> = loops.split('/').map(str::parse).collect();
        let mut row = Row {
            text: hexadecimal(text).map_err(wrong)?,
            shared: shared.parse().map_err(|e| wrong(format!("{e}")))?,
            loops: loops.map_err(wrong)?,
            cells: BTreeMap::new(),
        };
        for (arch, cell) in Arch::ALL.into_iter().zip(cells) {
            if !cell.is_empty() {
                row.cells.insert(arch, cell.parse().map_err(wrong)?);
            }
        }
        if table.insert((*entry).to_owned(), row).is_some() {
            return Err(wrong("a second row".to_owned()));
        }
    }
    Ok(table)
}

/// The table in the repository; empty if there is none.
pub(crate) fn load() -> Table {
    match std::fs::read_to_string(path()) {
        Ok(text) => from_text(&text).unwrap_or_else(|e| panic!("{}: {e}", path().display())),
        Err(_) => Table::new(),
    }
}

#[test]
fn a_table_is_read_as_it_was_written() {
    let text = "\
#
entry,text,shared,loops,sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120
one,00000000000000ff,1024,1 0 2 0 0 3 0 4 5 6/1 0 2 0 0 3 0 4 5 7,,40,,,44+23,44+24@0000000000000001,
";
    let table = from_text(text).expect("readable");
    let written = to_text(&table);
    assert_eq!(
        written.lines().skip(1).collect::<Vec<_>>(),
        text.lines().skip(1).collect::<Vec<_>>()
    );
    assert!(from_text(&text.replace(",1024,", ",")).is_err());
    assert_eq!(
        hash(".version 7.0\n.target sm_80\nx\n"),
        hash(".target sm_90\nx\n")
    );
    assert_ne!(hash("x\n"), hash("y\n"));
}
