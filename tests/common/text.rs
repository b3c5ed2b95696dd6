//! Edits to the text of a kernel, by what an instruction does and where it stands, not by register numbers, which change with every
//! improvement of the emitter.

use tilewright::kernels::gemm::Emitted;

/// The lines of a kernel, to be edited.
pub(crate) struct Text {
    pub(crate) lines: Vec<String>,
    /// Where searches begin.
    from: usize,
}

/// What stands before the operands of a line, the operands, and what stands behind them.
fn split(line: &str) -> (&str, Vec<&str>, &str) {
    let end = line.find(';').expect("an instruction");
    let (code, after) = line.split_at(end);
    let indent = code.len() - code.trim_start().len();
    // A guard is no operand.
    let opcode = if code[indent..].starts_with('@') {
        let guard = code[indent..].find(' ').expect("an opcode");
        indent + guard + 1
    } else {
        indent
    };
    let space = code[opcode..].find(' ').expect("operands");
    let (before, operands) = code.split_at(opcode + space + 1);
    (before, operands.split(", ").collect(), after)
}

/// An operand without the braces of its vector.
fn bare(operand: &str) -> &str {
    operand.trim_matches(['{', '}'])
}

impl Text {
    pub(crate) fn of(kernel: &Emitted) -> Self {
        let lines: Vec<String> = kernel.ptx.lines().map(str::to_owned).collect();
        // The description in front names tags, too.
        let from = lines.iter().position(|line| !line.starts_with("//"));
        Self {
            from: from.expect("a module"),
            lines,
        }
    }

    /// The kernel with the lines as they are now.
    pub(crate) fn instead_of(&self, kernel: &Emitted) -> Emitted {
        Emitted {
            ptx: self.lines.join("\n") + "\n",
            ..kernel.clone()
        }
    }

    /// Searches from the main loop on.
    pub(crate) fn in_loop(&mut self) -> &mut Self {
        let label = |line: &String| line.starts_with("k0_");
        self.from = self.lines.iter().position(label).expect("a main loop");
        self
    }

    /// Searches from the next line that contains `needle`.
    pub(crate) fn from(&mut self, needle: &str) -> &mut Self {
        self.from = self.find(&[needle], 0);
        self
    }

    /// The `nth` line (from 0, negative from the end) that contains all of `needles`.
    pub(crate) fn find(&self, needles: &[&str], nth: isize) -> usize {
        let holds = |line: &str| needles.iter().all(|needle| line.contains(needle));
        let at: Vec<usize> = (self.from..self.lines.len())
            .filter(|&i| holds(&self.lines[i]))
            .collect();
        let nth = if nth < 0 {
            at.len() as isize + nth
        } else {
            nth
        };
        let found = usize::try_from(nth).ok().and_then(|nth| at.get(nth));
        *found.unwrap_or_else(|| panic!("{needles:?} number {nth}: there are {}", at.len()))
    }

    pub(crate) fn line(&self, needles: &[&str], nth: isize) -> &str {
        &self.lines[self.find(needles, nth)]
    }

    pub(crate) fn drop(&mut self, needles: &[&str], nth: isize) {
        let at = self.find(needles, nth);
        self.lines.remove(at);
    }

    /// Leaves an instruction without its guard.
    pub(crate) fn unguard(&mut self, needles: &[&str], nth: isize) {
        let at = self.find(needles, nth);
        let guarded = self.lines[at].trim();
        assert!(guarded.starts_with('@'), "{guarded} has no guard");
        self.lines[at] = guarded.split_once(' ').expect("a guard").1.to_owned();
    }

    /// Replaces `from`, which the line must contain, by `to`.
    pub(crate) fn replace(&mut self, needles: &[&str], nth: isize, from: &str, to: &str) {
        let at = self.find(needles, nth);
        assert!(
            self.lines[at].contains(from),
            "{} has no {from}",
            self.lines[at]
        );
        self.lines[at] = self.lines[at].replacen(from, to, 1);
    }

    /// Adds `bytes` to the immediate offset of the line's first memory operand.
    pub(crate) fn shift(&mut self, needles: &[&str], nth: isize, bytes: i64) {
        let at = self.find(needles, nth);
        let (before, rest) = self.lines[at].split_once('[').expect("a memory operand");
        let (operand, after) = rest.split_once(']').expect("a memory operand");
        let (base, offset) = operand.split_once('+').unwrap_or((operand, "0"));
        let offset = offset.parse::<i64>().expect("an offset") + bytes;
        self.lines[at] = format!("{before}[{base}+{offset}]{after}");
    }

    /// Exchanges operands `i` and `j` (from 0; each element of a vector is one) of a line.
    pub(crate) fn swap_operands(&mut self, needles: &[&str], nth: isize, i: usize, j: usize) {
        let at = self.find(needles, nth);
        let (_, operands, _) = split(&self.lines[at]);
        let (first, second) = (bare(operands[i]).to_owned(), bare(operands[j]).to_owned());
        self.set_operand(needles, nth, i, &second);
        self.set_operand(needles, nth, j, &first);
    }

    /// Operand `i` of a line.
    pub(crate) fn operand(&self, needles: &[&str], nth: isize, i: usize) -> String {
        let (_, operands, _) = split(self.line(needles, nth));
        bare(operands.get(i).expect("an operand")).to_owned()
    }

    /// Puts `to` in the place of operand `i` of a line.
    pub(crate) fn set_operand(&mut self, needles: &[&str], nth: isize, i: usize, to: &str) {
        let at = self.find(needles, nth);
        let (before, operands, after) = split(&self.lines[at]);
        let mut operands: Vec<String> = operands.into_iter().map(str::to_owned).collect();
        operands[i] = operands[i].replacen(bare(&operands[i].clone()), to, 1);
        self.lines[at] = format!("{before}{}{after}", operands.join(", "));
    }
}
