//! Whether a mutant that nothing catches does what the kernel does: shown by runs of other texts.
//!
//! - *Same result*: the statement and its mutant are executed one after the other into registers of their own, and a lane in which they differ traps. If none does,
//!   the mutant has the same result wherever the problems execute it: a bound that is met nowhere, a factor of 1, operands that commute.
//! - *Guard always true*: for a guard that was dropped, a lane in which it is false traps. *No influence where the guard is false*: such lanes get other results.
//! - *No influence*: the statement is executed, and its result is replaced by its complement and by another constant. If neither changes anything, no result depends
//!   on it: the address of an access that is masked out, an operand of an empty product.
//!
//! Example: of `setp.lt.u32 %p1, %r2, %r3` and its mutant `setp.le.u32` the first way asks whether `%r2` ever equals `%r3`.

use crate::mutate::{Mutation, Statement, apply, prefix, registers, statement};

/// Why the mutant is equivalent; `holds` says whether a text is clean and has the kernel's results.
pub(crate) fn shown(
    lines: &[&str],
    m: &Mutation,
    holds: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let with = |text: String| {
        let (kind, line) = ("witness", m.line);
        apply(lines, &Mutation { kind, line, text })
    };
    let s = statement(lines[m.line])?;
    if m.kind == "guard dropped" {
        let text = format!("{} trap;\n{}", opposite(&s), lines[m.line]);
        if holds(&with(text)) {
            return Some("guard always true");
        }
        let masked = ["21", "1065353217"].map(|n| masked(lines, &s, n));
        let all = masked
            .into_iter()
            .all(|text| text.is_some_and(|t| holds(&with(t))));
        return all.then_some("no influence where the guard is false");
    }
    if let Some(text) = both(lines, &s, m)
        && holds(&with(text))
    {
        return Some("same result");
    }
    let poisoned = [Poison::Complement, Poison::Constant].map(|p| poisoned(lines, m.line, p));
    let all = poisoned
        .into_iter()
        .all(|text| text.is_some_and(|t| holds(&with(t))));
    all.then_some("no influence")
}

/// The guard of the lanes that do not execute the statement.
fn opposite(s: &Statement<'_>) -> String {
    let guard = s.guard().trim();
    match guard.strip_prefix("@!") {
        Some(p) => format!("@{p}"),
        None => guard.replacen('@', "@!", 1),
    }
}

/// The register that a statement writes, if it is one, and what stands behind it.
fn destination<'a>(s: &'a Statement<'_>) -> Option<(&'a str, &'a str)> {
    let writes = ![
        "st.", "bar", "bra", "red", "cp.", "mbarrier", "fence", "ret", "exit",
    ]
    .iter()
    .any(|n| s.opcode.starts_with(n));
    let operands = s.operands().trim_start();
    let (register, rest) = operands.split_once(',')?;
    let single = register.starts_with('%') && registers(register).len() == 1;
    (writes && single).then_some((register, rest))
}

/// The declared type of a register.
fn type_of<'a>(lines: &[&'a str], register: &str) -> Option<&'a str> {
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

/// Bits of a type that is no predicate.
fn bits(ty: &str) -> Option<u32> {
    ty.trim_start_matches(|c: char| c.is_ascii_alphabetic())
        .parse()
        .ok()
        .filter(|b| matches!(b, 16 | 32 | 64))
}

/// The statement and its mutant into registers of their own; a lane in which they differ traps.
fn both(lines: &[&str], s: &Statement<'_>, m: &Mutation) -> Option<String> {
    if m.text.contains('\n') {
        return None;
    }
    let (register, rest) = destination(s)?;
    let ty = type_of(lines, register)?;
    let guard = s.guard();
    let second = match statement(&m.text) {
        // It is left out: the register keeps what it had.
        None if m.text.trim().is_empty() => {
            format!(
                "mov.{} %w_b, {register};",
                if ty == "pred" { "pred" } else { ty }
            )
        }
        None => return None,
        Some(n) => {
            let (same, rest) = destination(&n)?;
            if same != register || n.guard() != guard {
                return None;
            }
            format!("{} %w_b, {rest}", n.opcode)
        }
    };
    let compare = if ty == "pred" {
        format!("{guard}xor.pred %w_p, %w_a, %w_b;")
    } else {
        let b = bits(ty)?;
        format!(
            "{guard}mov.b{b} %w_c, %w_a;\n{guard}mov.b{b} %w_d, %w_b;\n{guard}setp.ne.b{b} %w_p, %w_c, %w_d;"
        )
    };
    let plain = bits(ty).map_or(String::new(), |b| format!(".reg .b{b} %w_c, %w_d;"));
    Some(format!(
        "{{\n.reg .{ty} %w_a, %w_b; .reg .pred %w_p; {plain}\nsetp.ne.u32 %w_p, 0, 0;
{guard}{} %w_a, {rest}\n{guard}{second}\n{compare}\n@%w_p trap;\n}}\n{}",
        s.opcode, lines[m.line]
    ))
}

/// The statement, and a constant as its result where the guard is false.
fn masked(lines: &[&str], s: &Statement<'_>, number: &str) -> Option<String> {
    let (register, _) = destination(s)?;
    let b = bits(type_of(lines, register)?)?;
    let (guard, line) = (opposite(s), s.line());
    Some(format!(
        "{line}\n{{ .reg .b{b} %w_x; mov.b{b} %w_x, {number}; {guard} mov.b{b} {register}, %w_x; }}"
    ))
}

/// Another value in place of a result.
#[derive(Clone, Copy)]
enum Poison {
    Complement,
    Constant,
}

/// The statement with another result; of a store, with another value stored.
fn poisoned(lines: &[&str], at: usize, poison: Poison) -> Option<String> {
    let line = lines[at];
    let s = statement(line)?;
    let guard = s.guard();
    let change = |register: &str, from: &str, ty: &str| {
        Some(match (poison, ty) {
            (Poison::Complement, "pred") => format!("not.pred {register}, {from};"),
            (Poison::Constant, "pred") => format!("setp.eq.u32 {register}, 0, 0;"),
            (Poison::Complement, _) => {
                let b = bits(ty)?;
                format!(
                    "{{ .reg .b{b} %w_x; mov.b{b} %w_x, {from}; not.b{b} %w_x, %w_x; mov.b{b} {register}, %w_x; }}"
                )
            }
            (Poison::Constant, _) => {
                let b = bits(ty)?;
                format!("{{ .reg .b{b} %w_x; mov.b{b} %w_x, 21; mov.b{b} {register}, %w_x; }}")
            }
        })
    };
    if s.opcode.starts_with("st.") {
        let (place, value) = s.operands().rsplit_once("], ")?;
        let value = value.trim().trim_end_matches(';');
        let single = value.starts_with('%') && registers(value).len() == 1;
        let ty = type_of(lines, value).filter(|_| single)?;
        let change = change("%w_s", value, ty)?;
        return Some(format!(
            "{{\n.reg .{ty} %w_s;\n{change}\n{guard}{}{place}], %w_s;\n}}",
            s.opcode
        ));
    }
    let (register, _) = destination(&s)?;
    let ty = type_of(lines, register)?;
    let change = change(register, register, ty)?;
    // Where a guard is false the register keeps what it had, which may be nothing.
    guard.is_empty().then(|| format!("{line}\n{change}"))
}
