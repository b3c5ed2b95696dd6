//! A small reader of PTX text that knows nothing of what wrote it: entries, instructions, labels, and which register is written where.
//!
//! One instruction a line, as the emitters write it: `@%p1 ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5+16]; // tag`. The guard is left
//! out: it decides whether an instruction runs, not what it computes.

use std::collections::{BTreeMap, BTreeSet};

/// One instruction.
#[derive(Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) opcode: &'a str,
    /// Operands as they are written; of a vector in braces all elements.
    pub(crate) operands: Vec<Vec<&'a str>>,
    /// The comment behind it.
    pub(crate) tag: &'a str,
}

/// Instructions whose first operand is no destination.
const WITHOUT_RESULT: [&str; 13] = [
    "st.",
    "bra",
    "bar.",
    "ret",
    "cp.",
    "red.",
    "prefetch",
    "stmatrix",
    "fence.",
    "mbarrier.init",
    "setmaxnreg",
    "wgmma.wait",
    "wgmma.commit",
];

/// Instructions that touch memory, by what their opcodes begin with, and how many addresses each has.
const MEMORY: [(&str, usize); 18] = [
    // The tensor map with its coordinates, and where from.
    ("cp.async.bulk.tensor.2d.global", 2),
    ("cp.async.bulk.tensor.3d.global", 2),
    // Where to, the tensor map with its coordinates, and the mbarrier.
    ("cp.async.bulk.tensor.", 3),
    ("mbarrier.", 1),
    ("cp.async.bulk.commit_group", 0),
    ("cp.async.bulk.wait_group", 0),
    ("cp.async.commit_group", 0),
    ("cp.async.wait_group", 0),
    ("cp.async.wait_all", 0),
    ("cp.async.c", 2),
    ("cp.", 2),
    ("ld.", 1),
    ("ldmatrix.", 1),
    ("st.", 1),
    ("stmatrix.", 1),
    ("atom.", 1),
    ("red.", 1),
    ("prefetch", 1),
];

impl<'a> Instruction<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (code, tag) = line.split_once("//").unwrap_or((line, ""));
        let code = code.trim().strip_suffix(';')?;
        if code.starts_with('.') {
            return None;
        }
        let code = match code.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ')?.1,
            None => code,
        };
        let (opcode, rest) = code.split_once(' ').unwrap_or((code, ""));
        let (mut operands, mut rest) = (Vec::new(), rest.trim());
        while !rest.is_empty() {
            // A tensor map stands in brackets with its coordinates.
            if let Some((operand, after)) = rest.split_once(']').filter(|_| rest.starts_with('[')) {
                operands.push(vec![&rest[..=operand.len()]]);
                rest = after.trim_start_matches([',', ' ']);
                continue;
            }
            let (operand, after) = match rest.strip_prefix('{') {
                Some(vector) => vector.split_once('}').expect("a closed vector"),
                None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
            };
            operands.push(operand.split(',').map(str::trim).collect());
            rest = after.trim_start_matches([',', ' ']);
        }
        Some(Self {
            opcode,
            operands,
            tag: tag.trim(),
        })
    }

    /// The registers that it writes.
    pub(crate) fn written(&self) -> &[&'a str] {
        let none = WITHOUT_RESULT.iter().any(|p| self.opcode.starts_with(p));
        self.operands
            .first()
            .filter(|_| !none)
            .map_or(&[], Vec::as_slice)
    }

    /// The operands that it reads, addresses among them.
    pub(crate) fn read(&self) -> impl Iterator<Item = &'a str> + '_ {
        let from = usize::from(!self.written().is_empty());
        self.operands[from..].iter().flatten().copied()
    }

    /// Its memory operands: base and offset.
    pub(crate) fn addresses(&self) -> Vec<(&'a str, i64)> {
        let all = self.operands.iter().flatten();
        all.filter_map(|operand| {
            let inside = operand.strip_prefix('[')?.strip_suffix(']')?;
            let inside = inside.split_once(',').map_or(inside, |(base, _)| base);
            let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
            Some((base, offset.parse().expect("an offset is a number")))
        })
        .collect()
    }

    /// How many memory operands an instruction of its kind has.
    pub(crate) fn expected_addresses(&self) -> usize {
        let kind = MEMORY.iter().find(|(p, _)| self.opcode.starts_with(p));
        kind.map_or(0, |&(_, addresses)| addresses)
    }
}

/// The instructions of one entry.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    /// Name and type of each parameter.
    pub(crate) parameters: Vec<(&'a str, &'a str)>,
    pub(crate) code: Vec<Instruction<'a>>,
    /// Labels, each with the number of the instruction that follows.
    pub(crate) labels: BTreeMap<&'a str, usize>,
}

/// All entries of a module.
pub(crate) fn entries(ptx: &str) -> Vec<Entry<'_>> {
    let modules = ptx.split(".visible .entry ").skip(1);
    modules
        .map(|text| {
            let (name, text) = text.split_once('(').expect("parameters");
            let (parameters, text) = text.split_once(')').expect("the end of the parameters");
            let (body, _) = text
                .split_once("\n{\n")
                .and_then(|(_, body)| body.split_once("\n}"))
                .expect("a body");
            let mut entry = Entry {
                name,
                parameters: parameters.lines().filter_map(parameter).collect(),
                code: Vec::new(),
                labels: BTreeMap::new(),
            };
            for line in body.lines() {
                if let Some(label) = line.strip_suffix(':') {
                    entry.labels.insert(label.trim(), entry.code.len());
                } else if let Some(instruction) = Instruction::parse(line) {
                    entry.code.push(instruction);
                }
            }
            entry
        })
        .collect()
}

/// `.param .u64 A,`: name and type.
fn parameter(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().strip_prefix(".param .")?;
    let (ty, name) = line.split_once(' ')?;
    Some((name.trim_end_matches(','), ty))
}

impl<'a> Entry<'a> {
    /// The instructions of the loop whose label begins with `stem`, from the label to the branch back.
    pub(crate) fn loop_body(&self, stem: &str) -> &[Instruction<'a>] {
        let begins = |label: &&&str| label.starts_with(stem) && !label.ends_with("_end");
        let label = *self.labels.keys().find(begins).expect("the loop");
        let from = self.labels[label];
        let back = |i: &Instruction| i.opcode.starts_with("bra") && i.operands[0] == [label];
        let length = self.code[from..].iter().position(back);
        &self.code[from..=from + length.expect("a branch back")]
    }
}

/// For each register the instructions that write it.
pub(crate) fn definitions<'c, 'a>(
    code: &'c [Instruction<'a>],
) -> BTreeMap<&'a str, Vec<&'c Instruction<'a>>> {
    let mut all: BTreeMap<&str, Vec<&Instruction>> = BTreeMap::new();
    for instruction in code {
        for register in instruction.written() {
            all.entry(register).or_default().push(instruction);
        }
    }
    all
}

/// Everything of which `registers` are computed: the registers, themselves included, and the operands that are none. Predicates
/// choose between values and are no part of them.
pub(crate) fn origins<'a>(
    definitions: &BTreeMap<&'a str, Vec<&Instruction<'a>>>,
    registers: impl IntoIterator<Item = &'a str>,
) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
    let (mut seen, mut leaves) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<&str> = registers.into_iter().collect();
    while let Some(register) = open.pop() {
        if !seen.insert(register) {
            continue;
        }
        for operand in definitions
            .get(register)
            .into_iter()
            .flatten()
            .flat_map(|i| i.read())
        {
            match operand.strip_prefix('%') {
                Some(rest) if rest.starts_with('p') => {}
                Some(rest) if !rest.contains("id.") => open.push(operand),
                _ if operand.parse::<i64>().is_ok() => {}
                _ => {
                    leaves.insert(operand);
                }
            }
        }
    }
    (seen, leaves)
}
