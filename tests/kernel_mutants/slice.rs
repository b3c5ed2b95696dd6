//! The mutant's values beside the kernel's, up to where something else than arithmetic uses them.
//!
//! A changed statement often gives another value where the value makes no difference: of a distance to an edge only the sign matters, and behind `min` and `max` not
//! even that. So the statements that compute from it, up to the end of the straight line of code, are executed twice: with the kernel's values and, in registers of
//! their own, with the mutant's. Where a load, a store, a copy, a product or a branch uses such a register, and at the end of the line if it is used elsewhere, a lane
//! in which the two differ traps. If none does in any problem, memory and control saw the same values, and so the mutant is the kernel.
//!
//! ```text
//! sub.s32 %r3, %r1, %r2;            add.s32 %w_r3, %r1, %r2;      the mutant's
//!                                   sub.s32 %r3, %r1, %r2;
//! setp.gt.s32 %p1, %r3, 0;     ──▶  setp.gt.s32 %w_p1, %w_r3, 0;
//!                                   setp.gt.s32 %p1, %r3, 0;
//! @%p1 st.global.f32 [%rd1], %f1;   … @%w_q trap;                 if %p1 and %w_p1 differ
//!                                   @%p1 st.global.f32 [%rd1], %f1;
//! ```
//!
//! A mutant may also store in more lanes than the kernel, where nothing reads it ([`Stores::More`]): then such lanes store something else, and nothing may change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::mutate::{Mutation, Statement, prefix, registers, statement};

/// What computes from registers and constants, with one result.
const COMPUTES: [&str; 27] = [
    "add.", "sub.", "mul.", "mad.", "shl.", "shr.", "and.", "or.", "xor.", "not.", "neg.", "min.",
    "max.", "setp.", "selp.", "mov.", "cvt.", "fma.", "abs.", "lop3.", "prmt.", "bfe.", "bfi.",
    "shf.", "ex2.", "rcp.", "rsqrt.",
];

/// What writes no register.
const WRITES_NONE: [&str; 12] = [
    "st.",
    "bar",
    "bra",
    "red.",
    "cp.",
    "fence",
    "ret",
    "exit",
    "prefetch",
    "trap",
    "griddep",
    "mbarrier.arrive",
];

/// Whether the statement computes its one result from registers and constants alone.
pub(crate) fn computes(s: &Statement<'_>) -> bool {
    let carries = s.opcode.contains(".cc") || s.operands().contains('|');
    !carries && COMPUTES.iter().any(|n| s.opcode.starts_with(n)) && result(s).is_some()
}

/// The one register that a statement writes, and its other operands.
pub(crate) fn result<'a>(s: &'a Statement<'_>) -> Option<(&'a str, &'a str)> {
    let writes = !WRITES_NONE.iter().any(|n| s.opcode.starts_with(n));
    let (register, rest) = s.operands().trim_start().split_once(',')?;
    let single = register.starts_with('%')
        && registers(register).len() == 1
        && !register.contains(['|', '.']);
    (writes && single).then_some((register, rest))
}

/// The declared type of a register.
pub(crate) fn type_of<'a>(lines: &[&'a str], register: &str) -> Option<&'a str> {
    lines.iter().find_map(|l| {
        let (ty, names) = l.trim().strip_prefix(".reg .")?.split_once(' ')?;
        let mut names = names.trim_end_matches(';').split(',').map(str::trim);
        let declares = |n: &str| match n.split_once('<') {
            Some((stem, _)) => stem == prefix(register),
            None => n == register,
        };
        names.any(declares).then_some(ty)
    })
}

/// Width in bits of a type other than `.pred`.
pub(crate) fn bits(ty: &str) -> Option<u32> {
    ty.trim_start_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()
        .filter(|b| matches!(b, 16 | 32 | 64))
}

/// A store under another guard, of the complement of its values.
pub(crate) fn complement_stored(lines: &[&str], s: &Statement<'_>, guard: &str) -> Option<String> {
    let (place, values) = s.operands().rsplit_once("], ")?;
    let mut text = "{\n".to_owned();
    let mut values = values.to_owned();
    for (i, (_, register)) in registers(&values.clone()).into_iter().enumerate() {
        let ty = type_of(lines, register)?;
        let b = bits(ty)?;
        let _ = writeln!(
            text,
            ".reg .{ty} %w_s{i}; .reg .b{b} %w_x{i}; mov.b{b} %w_x{i}, {register}; not.b{b} %w_x{i}, %w_x{i}; mov.b{b} %w_s{i}, %w_x{i};"
        );
        values = values.replacen(register, &format!("%w_s{i}"), 1);
    }
    Some(format!("{text}{guard} {}{place}], {values}\n}}", s.opcode))
}

/// What stores have to be.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Stores {
    /// The same in the mutant and in the kernel.
    Same,
    /// The kernel's, and in further lanes the complement of the values: where it goes, nothing must read it.
    More,
}

/// Registers that have a value of the mutant's, with the type of each.
struct Doubles<'a> {
    stores: Stores,
    lines: &'a [&'a str],
    types: BTreeMap<&'a str, &'a str>,
    now: BTreeMap<&'a str, String>,
    text: String,
}

impl<'a> Doubles<'a> {
    /// The register's double, which the next statement writes.
    fn double(&mut self, register: &'a str) -> Option<String> {
        let ty = type_of(self.lines, register)?;
        self.types.insert(register, ty);
        let name = format!("%w_{}", &register[1..]);
        self.now.insert(register, name.clone());
        Some(name)
    }

    /// The double holds what the register does.
    fn copied(&mut self, register: &'a str) -> Option<()> {
        if self.now.contains_key(register) {
            return Some(());
        }
        let double = self.double(register)?;
        let ty = self.types[register];
        let _ = writeln!(self.text, "mov.{ty} {double}, {register};");
        Some(())
    }

    /// A text with the doubles in place of registers.
    fn renamed(&self, text: &str) -> String {
        let mut out = String::new();
        let mut at = 0;
        for (start, register) in registers(text) {
            out += &text[at..start];
            out += self.now.get(register).map_or(register, String::as_str);
            at = start + register.len();
        }
        out + &text[at..]
    }

    /// The statement on the doubles.
    fn computed(&mut self, s: &Statement<'a>, line: &'a str) -> Option<()> {
        let guard = s.guard();
        let start = line.len() - line.trim_start().len() + guard.len() + s.opcode.len();
        let operands = line.get(start..)?.split("//").next()?;
        let (register, rest) = operands.trim_start().split_once(',')?;
        if !guard.is_empty() {
            self.copied(register)?;
        }
        let (guard, rest) = (self.renamed(guard), self.renamed(rest));
        let double = self.double(register)?;
        let _ = writeln!(
            self.text,
            "{guard}{} {double}, {}",
            s.opcode,
            rest.trim_start()
        );
        Some(())
    }

    /// A trap where a register and its double differ, in the lanes in which `guard` holds.
    fn checked(&mut self, register: &str, guard: &str) -> Option<()> {
        let Some(double) = self.now.get(register) else {
            return Some(());
        };
        let ty = self.types[register];
        if ty == "pred" {
            let _ = writeln!(self.text, "xor.pred %w_q, {register}, {double};");
        } else {
            let b = bits(ty)?;
            let _ = writeln!(
                self.text,
                "{{ .reg .b{b} %w_c, %w_d; mov.b{b} %w_c, {register}; mov.b{b} %w_d, {double}; setp.ne.b{b} %w_q, %w_c, %w_d; }}"
            );
        }
        match guard.trim() {
            "" => {}
            guard => {
                let _ = match guard.strip_prefix("@!") {
                    Some(p) => {
                        writeln!(self.text, "not.pred %w_n, {p};\nand.pred %w_q, %w_q, %w_n;")
                    }
                    None => writeln!(self.text, "and.pred %w_q, %w_q, {};", &guard[1..]),
                };
            }
        }
        self.text += "@%w_q trap;\n";
        Some(())
    }
}

/// The lines of the entry in which a line is.
pub(crate) fn entry(lines: &[&str], at: usize) -> std::ops::Range<usize> {
    let begins = |l: &&str| l.contains(".entry");
    let start = lines[..=at].iter().rposition(begins).unwrap_or(0);
    let end = lines[at..].iter().position(begins);
    start..end.map_or(lines.len(), |end| at + end)
}

/// The text in which the mutant's values stand beside the kernel's; none if the change is not of statements that compute or load.
pub(crate) fn beside<'a>(lines: &'a [&'a str], m: &'a Mutation, stores: Stores) -> Option<String> {
    let own = if m.kind == "exchanged with the next" {
        2
    } else {
        1
    };
    let was: Vec<&str> = lines[m.line..].iter().take(own).copied().collect();
    let now: Vec<&str> = m.text.lines().filter(|l| !l.trim().is_empty()).collect();
    let mut d = Doubles {
        stores,
        lines,
        types: BTreeMap::new(),
        now: BTreeMap::new(),
        text: String::new(),
    };
    // The mutant's statements first: the kernel's may overwrite what they read.
    for &line in &now {
        let s = statement(line)?;
        let loads = s.opcode.starts_with("ld.") && result(&s).is_some();
        if !(computes(&s) || loads) {
            return None;
        }
        d.computed(&s, line)?;
    }
    for &line in &was {
        let s = statement(line)?;
        if !computes(&s) && !s.opcode.starts_with("ld.") {
            return None;
        }
        let register = result(&s)?.0.len();
        let (_, register) = *registers(line)
            .iter()
            .skip(usize::from(!s.guard().is_empty()))
            .find(|(_, r)| r.len() == register)?;
        d.copied(register)?;
    }
    for line in &was {
        let _ = writeln!(d.text, "{line}");
    }
    let mut end = m.line + own;
    while let Some(&line) = lines.get(end) {
        let code = line.split("//").next().unwrap_or("").trim();
        if code.is_empty() {
            end += 1;
            continue;
        }
        let Some(s) = statement(line) else { break };
        if code.contains(".reg") || ["ret", "exit"].iter().any(|n| s.opcode.starts_with(n)) {
            break;
        }
        follow(&mut d, &s, line)?;
        if s.opcode.starts_with("bra") {
            break;
        }
        let _ = writeln!(d.text, "{line}");
        end += 1;
    }
    // What is used elsewhere is the same.
    let rest = entry(lines, m.line).filter(|i| !(m.line..end).contains(i));
    let code = rest.map(|i| lines[i].split("//").next().unwrap_or(""));
    let used = code
        .filter(|code| !code.contains(".reg"))
        .flat_map(registers);
    let used: BTreeSet<&str> = used
        .map(|(_, r)| r)
        .filter(|r| d.now.contains_key(r))
        .collect();
    let left: Vec<&str> = d.now.keys().copied().filter(|r| used.contains(r)).collect();
    for register in left {
        d.checked(register, "")?;
    }
    let mut text = lines[..m.line].join("\n") + "\n{\n.reg .pred %w_q, %w_n;\n";
    for (register, ty) in &d.types {
        let _ = writeln!(text, ".reg .{ty} %w_{};", &register[1..]);
    }
    let rest = lines[end..].join("\n");
    Some(format!("{text}{}}}\n{rest}\n", d.text))
}

/// One more statement of the line: it computes on doubles too, or it uses what has to be the same.
fn follow<'a>(d: &mut Doubles<'a>, s: &Statement<'a>, line: &'a str) -> Option<()> {
    let code = line.split("//").next().unwrap_or("");
    let doubled = |text: &str| registers(text).iter().any(|(_, r)| d.now.contains_key(r));
    if computes(s) {
        let (register, rest) = result(s)?;
        if doubled(rest)
            || doubled(s.guard())
            || (!s.guard().is_empty() && d.now.contains_key(register))
        {
            return d.computed(s, line);
        }
        d.now.remove(register);
        return Some(());
    }
    let guard = s.guard().trim();
    if d.stores == Stores::More
        && s.opcode.starts_with("st.")
        && !doubled(s.operands())
        && let Some(p) = guard.strip_prefix('@')
        && let Some(double) = d.now.get(p)
    {
        let more = complement_stored(d.lines, s, "@%w_q")?;
        let _ = writeln!(
            d.text,
            "not.pred %w_q, {double};\nand.pred %w_q, %w_q, {p};\n@%w_q trap;\nnot.pred %w_q, {p};\nand.pred %w_q, %w_q, {double};\n{more}"
        );
        return Some(());
    }
    for (_, p) in registers(guard) {
        d.checked(p, "")?;
    }
    let used = registers(code);
    // Behind the first comma, or behind a brace, is what a load reads; of all else every register counts as read.
    let loads = s.opcode.starts_with("ld") && s.guard().is_empty();
    let reads = if loads {
        code.find('[').unwrap_or(0)
    } else {
        0
    };
    let guard = s.guard().to_owned();
    for (at, register) in &used {
        if *at >= reads && !s.guard().contains(register) {
            d.checked(register, &guard)?;
        }
    }
    if !WRITES_NONE.iter().any(|n| s.opcode.starts_with(n)) && guard.is_empty() {
        let end = code.find(['[', '}']).unwrap_or(code.len());
        let written: Vec<_> = used.iter().filter(|(at, _)| *at < end).collect();
        for (_, register) in written {
            d.now.remove(register);
        }
    }
    Some(())
}
