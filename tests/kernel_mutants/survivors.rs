//! The reasons of `survivors.txt`, and how it names a mutant.

use crate::mutate::Mutation;

/// Kernel, kind, what was there and what takes its place, without the numbers of registers and labels.
pub(crate) fn name(kernel: &str, lines: &[&str], m: &Mutation) -> String {
    let plain = |text: &str| {
        let code = text.lines().map(|l| l.split("//").next().unwrap_or(""));
        let code: Vec<_> = code.flat_map(str::split_whitespace).collect();
        let mut out = String::new();
        let mut in_name = false;
        for c in code.join(" ").chars() {
            in_name = c == '%' || (in_name && c.is_ascii_alphanumeric());
            if !(in_name && c.is_ascii_digit()) {
                out.push(c);
            }
        }
        out
    };
    let (was, now) = (plain(lines[m.line]), plain(&m.text));
    format!("{kernel}: {}: {was} => {now}", m.kind)
}

/// The lines of the file without their reasons.
pub(crate) fn listed() -> Vec<&'static str> {
    let lines = include_str!("survivors.txt").lines();
    lines
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| l.split(" // ").next().unwrap_or(l))
        .collect()
}

/// Whether a line names the mutant: its kernel, a star for any text in it, and how the change begins.
pub(crate) fn explained(listed: &[&str], name: &str) -> bool {
    let Some((kernel, change)) = name.split_once(": ") else {
        return false;
    };
    listed.iter().any(|line| {
        let (pattern, begin) = line.split_once(": ").unwrap_or((line, ""));
        let of_kernel = match pattern.split_once('*') {
            Some((head, tail)) => kernel.starts_with(head) && kernel.ends_with(tail),
            None => kernel == pattern,
        };
        of_kernel && change.starts_with(begin)
    })
}
