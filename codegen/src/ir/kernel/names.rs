//! Names and comments: what reaches the text as it was written.
//!
//! A name is an identifier of PTX, of C and of OpenCL C at once: a letter, then letters, digits and underscores. A comment is lines of visible text, each of
//! which the printers begin with `// `; nothing in it ends the comment early, nor makes it go on.

use super::Kernel;

/// The longest name: PTX promises that so many characters tell identifiers apart.
const LONGEST: usize = 1024;

/// Names that PTX defines, or that the printers use for what has no name of its own.
const TAKEN: [&str; 2] = ["smem", "WARP_SZ"];

/// Why a text is not a valid name; `None` for a valid one.
fn not_a_name(name: &str) -> Option<String> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if !first || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Some("a name is a letter and then letters, digits and underscores".to_owned());
    }
    if name.len() > LONGEST {
        return Some(format!("a name has at most {LONGEST} characters"));
    }
    TAKEN
        .contains(&name)
        .then(|| "PTX or the printer has that name already: take another".to_owned())
}

/// A line of a comment that every printer can write; `None` if it has characters that a comment can't have.
fn harmless(line: &str) -> Option<String> {
    let hidden = |c: char| c.is_control() && c != '\t' || ('\u{2028}'..='\u{202e}').contains(&c);
    // C goes on with the next line behind a backslash, or behind `??/` where it knows trigraphs.
    let goes_on = |line: &str| line.ends_with('\\') || line.ends_with("??/");
    // Some compilers go on behind a backslash and spaces, too.
    (!line.contains(hidden) && !goes_on(line.trim_end())).then(|| line.to_owned())
}

/// Whether a text is one line that a comment can have.
pub(crate) fn is_comment(line: &str) -> bool {
    harmless(line).is_some()
}

impl Kernel {
    /// The name if it is one; else a stand-in, and a mistake on record.
    pub(crate) fn checked_name(&mut self, of: &str, name: &str) -> String {
        let Some(why) = not_a_name(name) else {
            return name.to_owned();
        };
        self.mistake(format!(
            "the name `{}` of {of}: {why}",
            name.escape_default()
        ));
        "unnamed".to_owned()
    }

    /// The name of a parameter or buffer, which nothing else of the kernel has.
    pub(crate) fn checked_new_name(&mut self, of: &str, name: &str) {
        self.checked_name(of, name);
        let taken = self.name == name
            || self.params.iter().any(|p| p.name == name)
            || self.buffers.iter().any(|b| b.name == name);
        if taken {
            self.mistake(format!(
                "a second use of the name `{}`, for {of}: the kernel, its parameters and its buffers have a name each",
                name.escape_default()
            ));
        }
    }

    /// The lines of a comment; those that no comment can have are a mistake.
    pub(super) fn comment_lines(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let all = if text.is_empty() {
            vec![""]
        } else {
            text.lines().collect()
        };
        for line in all {
            match harmless(line) {
                Some(line) => lines.push(line),
                None => self.mistake(format!(
                    "the comment `{}`: a comment is lines of visible text, none of which ends with a backslash or `??/`",
                    line.escape_default()
                )),
            }
        }
        lines
    }

    /// What follows is written by another author, who may compute but not declare.
    pub(crate) fn begin_function(&mut self, name: &str) {
        self.within = Some(name.to_owned());
    }

    /// The function ends.
    pub(crate) fn end_function(&mut self) {
        self.within = None;
    }

    /// Whether something may be declared now; a mistake if not.
    pub(super) fn declares(&mut self, what: &str) {
        if let Some(function) = &self.within {
            let what = format!(
                "the function `{}` declares {what}: the kernel around it is declared already. Declare inputs of the function instead",
                function.escape_default()
            );
            self.mistake(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for name in ["x", "n0", "lda", "a_b", "X9_"] {
            assert_eq!(not_a_name(name), None, "{name}");
        }
        let long = "x".repeat(1025);
        for name in [
            "", "9x", "_x", "a b", "a\n", "a;", "a*/", "tid.x", "%r0", "$x", "é", "smem",
            "WARP_SZ", &long,
        ] {
            assert!(not_a_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn comments_stay_comments() {
        assert_eq!(harmless("y = x  */ \t"), Some("y = x  */ \t".to_owned()));
        for line in [
            "a\rb",
            "a\u{b}",
            "a\u{85}",
            "a\u{2028}b",
            "a\u{202e}b",
            "a\\",
            "a\\ ",
            "why??/",
            "\0",
        ] {
            assert_eq!(harmless(line), None, "{line:?}");
        }
    }
}
