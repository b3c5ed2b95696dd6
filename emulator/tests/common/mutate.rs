//! Mutations of PTX text: one small change of one line, of the kinds that authors make.
//!
//! A mutation is a kind, a line and what takes its place. All kinds work on the text of one statement, so that they fit any kernel, whoever wrote it.

/// One change.
#[derive(Debug, Clone)]
pub(crate) struct Mutation {
    pub(crate) kind: &'static str,
    /// The line, counted from 0.
    pub(crate) line: usize,
    /// The new line.
    pub(crate) text: String,
}

/// The statement of a line: its guard, its opcode and its operands.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    line: &'a str,
    guard: Option<(usize, usize)>,
    pub(crate) opcode: &'a str,
    /// Where the opcode starts and ends.
    at: (usize, usize),
}

pub(crate) fn statement(line: &str) -> Option<Statement<'_>> {
    let code = line.split("//").next().unwrap_or("");
    if !code.trim_end().ends_with(';') {
        return None;
    }
    let start = code.len() - code.trim_start().len();
    let mut at = start;
    let mut guard = None;
    if code[at..].starts_with('@') {
        let end = at + code[at..].find(' ')?;
        guard = Some((at, end + 1));
        at = end + 1;
    }
    let rest = &code[at..];
    let end = at + rest.find([' ', ';'])?;
    let opcode = &code[at..end];
    if !opcode.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    Some(Statement {
        line: code,
        guard,
        opcode,
        at: (at, end),
    })
}

impl Statement<'_> {
    pub(crate) fn operands(&self) -> &str {
        &self.line[self.at.1..]
    }

    /// The line without its comment.
    pub(crate) fn line(&self) -> &str {
        self.line
    }

    /// The guard with the space behind it, or nothing.
    pub(crate) fn guard(&self) -> &str {
        self.guard.map_or("", |(a, b)| &self.line[a..b])
    }

    /// The line with its operands changed.
    fn with_operands(&self, operands: &str) -> String {
        format!("{}{operands}", &self.line[..self.at.1])
    }

    /// The line with its opcode changed.
    fn with_opcode(&self, opcode: &str) -> String {
        format!("{}{opcode}{}", &self.line[..self.at.0], self.operands())
    }
}

/// Bytes of the type at the end of an opcode and its vector.
pub(crate) fn width(opcode: &str) -> u64 {
    let each = match opcode.rsplit('.').next().unwrap_or("") {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" => 2,
        "b64" | "u64" | "s64" | "f64" => 8,
        _ => 4,
    };
    let vector = if opcode.contains(".v4") {
        4
    } else if opcode.contains(".v2") {
        2
    } else {
        1
    };
    each * vector
}

/// The last whole number in `text`: where it is and its value.
fn last_number(text: &str) -> Option<(usize, usize, i64)> {
    let bytes = text.as_bytes();
    let end = bytes.iter().rposition(u8::is_ascii_digit)? + 1;
    let start = bytes[..end]
        .iter()
        .rposition(|b| !b.is_ascii_digit())
        .map_or(0, |p| p + 1);
    let before = text[..start].chars().last().unwrap_or(' ');
    // Not a register's number, nor a hexadecimal one.
    if before.is_ascii_alphanumeric() || matches!(before, '%' | '_' | '.' | '$') {
        return None;
    }
    Some((start, end, text[start..end].parse().ok()?))
}

/// All mutations of lines `from` to `to` of `lines`.
pub(crate) fn all(lines: &[&str], from: usize, to: usize) -> Vec<Mutation> {
    let mut out = Vec::new();
    for line in from..to {
        let Some(s) = statement(lines[line]) else {
            continue;
        };
        let next = lines.get(line + 1).filter(|_| line + 1 < to);
        // What does not depend on each other may stand in any order.
        let depends = |n: &&&str| {
            let first = registers(s.operands()).first().map(|(_, r)| *r);
            statement(n).is_some_and(|n| {
                let used = registers(n.line);
                first.is_some_and(|r| used.iter().any(|(_, u)| *u == r))
            })
        };
        if let Some(next) = next.filter(depends) {
            out.push(Mutation {
                kind: "exchanged with the next",
                line,
                text: format!("{next}\n{}", s.line),
            });
        }
        let mut push = |kind: &'static str, text: String| {
            if text != s.line {
                out.push(Mutation { kind, line, text });
            }
        };
        of_statement(&s, &mut push);
    }
    out
}

fn of_statement(s: &Statement<'_>, push: &mut impl FnMut(&'static str, String)) {
    let op = s.opcode;
    let is = |names: &[&str]| names.iter().any(|n| op.starts_with(n));
    let operands = s.operands();
    if is(&["bar.", "barrier."]) {
        push("barrier dropped", String::new());
    }
    if is(&["fence", "membar", "wgmma.fence"]) {
        push("fence dropped", String::new());
    }
    let waits = op.contains("wait_group") || op.contains("wait_all");
    if waits {
        push("wait dropped", String::new());
    }
    if waits && let Some((a, b, n)) = last_number(operands) {
        push(
            "wait count off by one",
            s.with_operands(&format!("{}{}{}", &operands[..a], n + 1, &operands[b..])),
        );
    }
    if op.contains("commit") {
        push("commit dropped", String::new());
    }
    if op.contains(".parity")
        && let Some((a, b, n)) = last_number(operands)
    {
        push(
            "parity flipped",
            s.with_operands(&format!("{}{}{}", &operands[..a], n ^ 1, &operands[b..])),
        );
    }
    if op.contains("mbarrier.arrive") || op.contains("mbarrier.init") {
        push("arrival or init dropped", String::new());
    }
    if is(&["mbarrier.init"])
        && let Some((a, b, n)) = last_number(operands)
    {
        for n in [n + 1, n - 1] {
            push(
                "arrival count off by one",
                s.with_operands(&format!("{}{n}{}", &operands[..a], &operands[b..])),
            );
        }
    }
    if op.contains("expect_tx")
        && let Some((a, b, n)) = last_number(operands)
    {
        for n in [n + 16, n - 16] {
            push(
                "expected bytes off",
                s.with_operands(&format!("{}{n}{}", &operands[..a], &operands[b..])),
            );
        }
    }
    if let Some((a, b)) = s.guard {
        let guard = &s.line[a..b];
        let inverted = match guard.strip_prefix("@!") {
            Some(rest) => format!("@{rest}"),
            None => guard.replacen('@', "@!", 1),
        };
        push(
            "predicate inverted",
            format!("{}{inverted}{}", &s.line[..a], &s.line[b..]),
        );
        push("guard dropped", format!("{}{}", &s.line[..a], &s.line[b..]));
    }
    let memory = is(&[
        "ld.shared",
        "st.shared",
        "ld.global",
        "st.global",
        "atom.",
        "red.",
    ]);
    if memory {
        let step = width(op);
        if let Some(end) = operands.find(']') {
            push(
                "offset shifted",
                s.with_operands(&format!("{}+{step}{}", &operands[..end], &operands[end..])),
            );
        }
        if let Some(end) = operands.find(']') {
            push(
                "offset shifted back",
                s.with_operands(&format!("{}+-{step}{}", &operands[..end], &operands[end..])),
            );
        }
        for (wide, narrow) in [
            (".u32", ".u16"),
            (".b32", ".b16"),
            (".f32", ".b16"),
            (".b64", ".b32"),
            (".u64", ".u32"),
        ] {
            if op.ends_with(wide) && (is(&["st."]) || is(&["ld."])) {
                push(
                    "access narrowed",
                    s.with_opcode(&format!("{}{narrow}", op.trim_end_matches(wide))),
                );
            }
        }
    }
    for (a, b) in [
        ("[out]", "[in]"),
        ("[in]", "[out]"),
        ("%tid.x", "%ctaid.x"),
        ("%tid.x", "%ntid.x"),
    ] {
        if operands.contains(a) && is(&["ld.param", "mov."]) {
            push(
                "another parameter or special register",
                s.with_operands(&operands.replacen(a, b, 1)),
            );
        }
    }
    if let Some((at, register)) = registers(operands).last()
        && registers(operands).len() > 1
        && (arithmetic_name(op) || op.starts_with("st."))
        && !operands.trim_end().ends_with("};")
        && !operands[*at..].contains(']')
    {
        push(
            "register replaced by a constant",
            s.with_operands(&format!(
                "{}3{}",
                &operands[..*at],
                &operands[at + register.len()..]
            )),
        );
    }
    if is(&["st."]) {
        push("store dropped", String::new());
    }
    if is(&["cp."]) && !op.contains("commit") && !op.contains("wait") {
        push("copy dropped", String::new());
    }
    for (a, b) in [("0xffffffff", "0x0000ffff"), (", -1;", ", 65535;")] {
        if operands.contains(a) && is(&["shfl", "vote", "bar.warp", "match", "redux"]) {
            push(
                "mask narrowed",
                s.with_operands(&operands.replacen(a, b, 1)),
            );
        }
    }
    for (a, b) in [
        (".lt.", ".le."),
        (".ge.", ".gt."),
        (".eq.", ".ne."),
        (".ne.", ".eq."),
        (".gt.", ".ge."),
        (".le.", ".lt."),
    ] {
        if is(&["setp"]) && op.contains(a) {
            push("comparison changed", s.with_opcode(&op.replacen(a, b, 1)));
            break;
        }
    }
    let arithmetic = arithmetic_name(op);
    if arithmetic && let Some((a, b, n)) = last_number(operands) {
        push(
            "constant off by one",
            s.with_operands(&format!("{}{}{}", &operands[..a], n + 1, &operands[b..])),
        );
    }
    for (a, b) in [
        ("add.", "sub."),
        ("sub.", "add."),
        ("mad.lo", "mad.hi"),
        ("and.", "or."),
        ("xor.", "or."),
        ("shl.", "shr.u"),
        ("mul.lo", "mul.hi"),
        ("mul.wide.u32", "mul.wide.s32"),
        ("fma.rn.f32", "fma.rz.f32"),
    ] {
        if op.starts_with(a) {
            let changed = op.replacen(a, b, 1).replace("shr.ub", "shr.u");
            push("operation changed", s.with_opcode(&changed));
            break;
        }
    }
    if arithmetic || is(&["fma", "cvt", "ld.", "mma", "ldmatrix"]) {
        push("instruction dropped", String::new());
    }
    // The last two registers of the statement exchanged.
    let names: Vec<(usize, &str)> = registers(operands);
    if let [.., (i, a), (j, b)] = names.as_slice()
        && a != b
        && prefix(a) == prefix(b)
        && (arithmetic || is(&["st.", "fma"]))
    {
        let swapped = format!(
            "{}{b}{}{a}{}",
            &operands[..*i],
            &operands[i + a.len()..*j],
            &operands[j + b.len()..]
        );
        push("registers exchanged", s.with_operands(&swapped));
    }
}

/// Whether the statement computes something from registers and constants.
fn arithmetic_name(op: &str) -> bool {
    let names = [
        "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "setp", "selp", "mov",
    ];
    names.iter().any(|n| op.starts_with(n))
}

pub(crate) fn prefix(register: &str) -> &str {
    register.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Registers and where they stand.
pub(crate) fn registers(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(p) = text[at..].find('%') {
        let start = at + p;
        let rest = &text[start + 1..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        out.push((start, &text[start..start + 1 + end]));
        at = start + 1 + end;
    }
    out
}

/// `lines` with one of them changed.
pub(crate) fn apply(lines: &[&str], m: &Mutation) -> String {
    let mut text = String::new();
    let exchanged = m.kind == "exchanged with the next";
    for (i, line) in lines.iter().enumerate() {
        if exchanged && i == m.line + 1 {
            continue;
        }
        text += if i == m.line { &m.text } else { line };
        text.push('\n');
    }
    text
}
