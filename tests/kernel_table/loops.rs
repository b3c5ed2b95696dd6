//! Instructions of a kernel's main loops, by kind.
//!
//! A main loop is a loop that multiplies and adds: from a label to the last branch back to it, with an `mma` or an `fma` between. Loops
//! are found by their branches, not by the names of their labels, and so are those of kernels that another emitter writes.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// Kinds of instructions, in the order of the table's columns.
pub(crate) const KINDS: [&str; 10] = [
    "mma",
    "fma",
    "ldmatrix",
    "ld.shared",
    "st.shared",
    "cp.async",
    "ld.global",
    "barrier",
    "integer",
    "other",
];

/// How many instructions of each kind a loop has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts([u32; KINDS.len()]);

impl Counts {
    /// The kinds of which there are more than in `golden`, with both numbers.
    pub(crate) fn more_than(&self, golden: &Self) -> Vec<(&'static str, u32, u32)> {
        let all = KINDS.iter().zip(self.0).zip(golden.0);
        let more = all.filter(|((_, now), then)| now > then);
        more.map(|((kind, now), then)| (*kind, now, then)).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(" "))
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u32>, _> = text.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|e| format!("`{text}`: {e}"))?;
        let counts = numbers.try_into();
        counts
            .map(Self)
            .map_err(|_| format!("`{text}`: one number for each of {KINDS:?}"))
    }
}

/// The kind of an opcode: its place in [`KINDS`].
fn kind(opcode: &str) -> usize {
    // Copies between registers and conversions of what is multiplied are no addresses.
    const BEGINNINGS: [(&str, usize); 35] = [
        ("mma.", 0),
        ("wgmma.", 0),
        ("fma.", 1),
        ("ldmatrix.", 2),
        ("ld.shared.", 3),
        ("st.shared.", 4),
        ("cp.async.c", 5),
        ("cp.async.bulk", 5),
        ("cp.async.wait", 7),
        ("ld.global.", 6),
        ("bar.", 7),
        ("barrier.", 7),
        ("mbarrier.", 7),
        ("add.s", 8),
        ("add.u", 8),
        ("sub.s", 8),
        ("sub.u", 8),
        ("mul.lo", 8),
        ("mul.hi", 8),
        ("mul.wide", 8),
        ("mad.", 8),
        ("shl.", 8),
        ("shr.", 8),
        ("and.b", 8),
        ("or.b", 8),
        ("xor.b", 8),
        ("not.b", 8),
        ("lop3.", 8),
        ("min.s", 8),
        ("max.s", 8),
        ("min.u", 8),
        ("max.u", 8),
        ("bfe.", 8),
        ("cvt.u64", 8),
        ("cvt.u32", 8),
    ];
    // A commit is part of a copy's barrier.
    if opcode.starts_with("cp.async.commit") {
        return 7;
    }
    let known = BEGINNINGS.iter().find(|(p, _)| opcode.starts_with(p));
    known.map_or(KINDS.len() - 1, |&(_, kind)| kind)
}

/// The instruction of a line, without its guard; none for labels, comments and directives.
fn instruction(line: &str) -> Option<&str> {
    let code = line.split_once("//").map_or(line, |(code, _)| code).trim();
    let code = match code.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ')?.1.trim(),
        None => code,
    };
    let code = code.strip_suffix(';')?;
    code.starts_with(|c: char| c.is_ascii_lowercase())
        .then_some(code)
}

/// The opcode of an instruction.
fn opcode(code: &str) -> &str {
    code.split_once(' ').map_or(code, |(opcode, _)| opcode)
}

/// The main loops of an entry's text, in order.
pub(crate) fn main_loops(entry: &str) -> Vec<Counts> {
    let lines: Vec<&str> = entry.lines().map(str::trim).collect();
    let code: Vec<Option<&str>> = lines.iter().map(|line| instruction(line)).collect();
    // The last branch to each label.
    let mut last = HashMap::new();
    for (at, code) in code.iter().enumerate() {
        if let Some((opcode, label)) = code.and_then(|code| code.rsplit_once(' '))
            && opcode.starts_with("bra")
        {
            last.insert(label, at);
        }
    }
    let mut all = Vec::new();
    let mut from = 0;
    while from < lines.len() {
        let label = lines[from].strip_suffix(':');
        let back = label.and_then(|label| last.get(label));
        if let Some(&back) = back.filter(|&&back| back >= from) {
            let mut counts = Counts::default();
            for code in code[from..=back].iter().flatten() {
                counts.0[kind(opcode(code))] += 1;
            }
            if counts.0[0] + counts.0[1] > 0 {
                all.push(counts);
                from = back;
            }
        }
        from += 1;
    }
    all
}

/// The text of one entry of a module.
pub(crate) fn entry<'a>(ptx: &'a str, name: &str) -> Option<&'a str> {
    let entries = ptx.split(".visible .entry ").skip(1);
    let mut named = entries.filter(|text| text.split('(').next() == Some(name));
    named.next()
}

#[test]
fn loops_are_found_by_their_branches() {
    let text = "\
.visible .entry one(
)
{
    mov.u32 %r0, 0;
first:
    @%p0 bra skip;
    ld.shared.b32 %r1, [%r2+4]; // readA
    fma.rn.f32 %f0, %f1, %f2, %f0;
skip:
    add.s32 %r0, %r0, 1;
    @%p1 bra.uni first;
    bar.sync 0;
copies:
    @!%p2 bra.uni copies;
second:
    mma.sync.aligned.m16n8k16 {%f0}, {%r0}, {%r1}, {%f0};
    cp.async.commit_group;
    bra.uni second;
}
";
    let found = main_loops(entry(text, "one").expect("it is there"));
    let text: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(text, ["0 1 0 1 0 0 0 0 1 2", "1 0 0 0 0 0 0 1 0 1"]);
    assert_eq!(text[0].parse(), Ok(found[0]));
    assert_eq!(
        found[1].more_than(&found[0]),
        [("mma", 1, 0), ("barrier", 1, 0)]
    );
}
