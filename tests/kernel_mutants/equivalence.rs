//! Whether a mutant that nothing catches does what the kernel does: by what its statements are, or shown by runs of other texts over all problems.
//!
//! - *A hint*: the statement only tells the memory what comes, whoever executes it.
//! - *Disjoint stores exchanged*: both go to the same base at offsets that do not overlap, and neither writes a register.
//! - *Copies on their way together*: bulk copies are not ordered by their instructions; nor is one with the arrival that expects its bytes, without which the
//!   phase of the mbarrier does not complete.
//! - *Nothing to wait for*: a wait, a barrier or a commit that is left out or weaker; `flow.rs` says when it had nothing to do.
//! - *Same values*: see `slice.rs`; a lane in which the mutant's values and the kernel's differ where they are used traps, and none does.
//! - *Guard always true*: for a guard that was dropped, a lane in which it is false traps. *No influence where the guard is false*: such lanes get other results.
//! - *Both ways are right*: a predicate that chooses between a fast way and a general one. The mutant takes the general way where the kernel does not and never the other
//!   way round, which a trap shows, and the general way taken always gives the same.
//! - *More is stored that nothing reads*: a store in lanes in which the kernel does not store. There the complement of the values is stored, and nothing changes.
//! - *No influence*: the statement is executed, and its result is replaced by its complement and by another constant. If neither changes anything, no result depends
//!   on it: the address of an access that is masked out, an operand of an empty product. *Of finite
//!   values*: two constants that are finite in every type, where the complement is NaN: a factor of 0.
//!
//! The sanitizer shows nothing here: that it is silent without a barrier is no reason to do without it.

use crate::flow::idle;
use crate::mutate::{Mutation, Statement, apply, registers, statement, width};
use crate::slice::{Stores, beside, bits, complement_stored, result, type_of};

/// Why the mutant does in every step what the kernel does; `holds` says whether a text is clean and has the kernel's results in all problems.
pub(crate) fn same(
    lines: &[&str],
    m: &Mutation,
    holds: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let s = statement(lines[m.line])?;
    if s.opcode.starts_with("prefetch") {
        return Some("a hint");
    }
    if m.kind == "exchanged with the next" && disjoint(&s, &statement(lines[m.line + 1])?) {
        return Some("disjoint stores exchanged");
    }
    if m.kind == "exchanged with the next" && unordered(&s, &statement(lines[m.line + 1])?) {
        return Some("copies on their way together");
    }
    let waits = [
        "wait dropped",
        "wait count off by one",
        "barrier dropped",
        "commit dropped",
    ];
    if waits.contains(&m.kind) {
        return idle(lines, m.line).then_some("nothing to wait for");
    }
    if m.kind == "guard dropped" {
        let text = format!("{} trap;\n{}", opposite(&s), lines[m.line]);
        return holds(&witness(lines, m, text)).then_some("guard always true");
    }
    holds(&beside(lines, m, Stores::Same)?).then_some("same values")
}

/// The text with another statement in place of the mutant's.
fn witness(lines: &[&str], m: &Mutation, text: String) -> String {
    let (kind, line) = ("witness", m.line);
    apply(lines, &Mutation { kind, line, text })
}

/// Why a mutant that nothing catches gives the same results although it does something else.
pub(crate) fn no_influence(
    lines: &[&str],
    m: &Mutation,
    holds: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let s = statement(lines[m.line])?;
    if stray(lines, m, &s).is_some_and(|text| holds(&text)) {
        return Some("more is stored that nothing reads");
    }
    let holds = |text: Option<String>| text.is_some_and(|t| holds(&witness(lines, m, t)));
    if m.kind == "guard dropped" {
        let all = ["21", "1065353217"]
            .iter()
            .all(|n| holds(masked(lines, &s, n)));
        return all.then_some("no influence where the guard is false");
    }
    if other_way(lines, m, &s, &holds).is_some() {
        return Some("both ways are right");
    }
    let poisoned = |p| holds(poisoned(lines, m.line, p));
    if !poisoned(Poison::Constant(21)) {
        return None;
    }
    if poisoned(Poison::Complement) {
        return Some("no influence");
    }
    poisoned(Poison::Constant(0x3f80_0001)).then_some("no influence of finite values")
}

/// A decision that both ways take right: the mutant turns to one way only where the kernel takes the other, and to take it always changes nothing.
fn other_way(
    lines: &[&str],
    m: &Mutation,
    s: &Statement<'_>,
    holds: &dyn Fn(Option<String>) -> bool,
) -> Option<()> {
    let now = statement(&m.text).filter(|_| !m.text.contains('\n'))?;
    let ((p, was), (q, now_rest)) = (result(s)?, result(&now)?);
    if p != q || type_of(lines, p)? != "pred" || !s.guard().is_empty() || !now.guard().is_empty() {
        return None;
    }
    let line = s.line();
    ["eq", "ne"].into_iter().find_map(|always| {
        // Where the mutant's predicate is what it is to be always, and the kernel's is not, all is well.
        let allowed = if always == "eq" {
            "not.pred %w_b, %w_b;\nand.pred %w_b, %w_b, %w_a;"
        } else {
            "not.pred %w_a, %w_a;\nand.pred %w_b, %w_b, %w_a;"
        };
        let text = format!(
            "{{\n.reg .pred %w_a, %w_b;\n{} %w_a, {was}\n{} %w_b, {now_rest}\n{allowed}\n@%w_b trap;\n}}\n{line}\nsetp.{always}.u32 {p}, 0, 0;",
            s.opcode, now.opcode
        );
        holds(Some(text)).then_some(())
    })
}

/// Where a statement stores: its guard and base, and its first byte and the one behind its last.
fn stored<'a>(s: &'a Statement<'_>) -> Option<(&'a str, &'a str, std::ops::Range<u64>)> {
    let bytes = match s.opcode {
        op if op.starts_with("mbarrier.init") => 8,
        op if op.starts_with("st.") => width(op),
        _ => return None,
    };
    let inside = s.operands().trim_start().strip_prefix('[')?;
    let (address, _) = inside.split_once(']')?;
    let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
    let offset: u64 = offset.parse().ok()?;
    Some((s.guard(), base, offset..offset + bytes))
}

/// Whether two stores touch different bytes, so that their order makes no difference.
fn disjoint(s: &Statement<'_>, next: &Statement<'_>) -> bool {
    let (Some((guard, base, own)), Some((other, beside, its))) = (stored(s), stored(next)) else {
        return false;
    };
    guard == other && base == beside && (own.end <= its.start || its.end <= own.start)
}

/// Whether the order of two statements means nothing: both are bulk copies, or the first expects the bytes of the second at the same mbarrier.
fn unordered(s: &Statement<'_>, next: &Statement<'_>) -> bool {
    let copies = |s: &Statement<'_>| {
        s.opcode.starts_with("cp.async.bulk.tensor") && s.opcode.contains("mbarrier::complete_tx")
    };
    if s.guard() != next.guard() || !copies(next) {
        return false;
    }
    // The mbarrier is the only bare address of an arrival, and the last address of a copy.
    let expects = s.opcode.starts_with("mbarrier.arrive.expect_tx");
    let last = |s: &Statement<'_>| {
        s.operands()
            .rsplit_once('[')
            .map(|(_, at)| at.split(']').next().unwrap_or("").to_owned())
    };
    copies(s) || expects && last(s).is_some() && last(s) == last(next)
}

/// The guard of the lanes that do not execute the statement.
fn opposite(s: &Statement<'_>) -> String {
    let guard = s.guard().trim();
    match guard.strip_prefix("@!") {
        Some(p) => format!("@{p}"),
        None => guard.replacen('@', "@!", 1),
    }
}

/// The text of a mutant that stores in more lanes: there, the complement of what it would store. Such stores go where nothing is read, as between the end of a row
/// and the next.
fn stray(lines: &[&str], m: &Mutation, s: &Statement<'_>) -> Option<String> {
    if m.kind == "guard dropped" && s.opcode.starts_with("st.") {
        let more = complement_stored(lines, s, &opposite(s))?;
        return Some(witness(lines, m, format!("{}\n{more}", lines[m.line])));
    }
    beside(lines, m, Stores::More)
}

/// The statement, and a constant as its result where the guard is false.
fn masked(lines: &[&str], s: &Statement<'_>, number: &str) -> Option<String> {
    let (register, _) = result(s)?;
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
    Constant(u32),
}

/// The statement with another result; of a store, with another value stored.
fn poisoned(lines: &[&str], at: usize, poison: Poison) -> Option<String> {
    let line = lines[at];
    let s = statement(line)?;
    let guard = s.guard();
    let change = |register: &str, from: &str, ty: &str| {
        Some(match (poison, ty) {
            (Poison::Complement, "pred") => format!("not.pred {register}, {from};"),
            (Poison::Constant(_), "pred") => format!("setp.eq.u32 {register}, 0, 0;"),
            (Poison::Complement, _) => {
                let b = bits(ty)?;
                format!(
                    "{{ .reg .b{b} %w_x; mov.b{b} %w_x, {from}; not.b{b} %w_x, %w_x; mov.b{b} {register}, %w_x; }}"
                )
            }
            (Poison::Constant(n), _) => {
                let b = bits(ty)?;
                format!("{{ .reg .b{b} %w_x; mov.b{b} %w_x, {n}; mov.b{b} {register}, %w_x; }}")
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
    let (register, _) = result(&s)?;
    let ty = type_of(lines, register)?;
    let change = change(register, register, ty)?;
    // Where a guard is false the register keeps what it had, which may be nothing.
    guard.is_empty().then(|| format!("{line}\n{change}"))
}
