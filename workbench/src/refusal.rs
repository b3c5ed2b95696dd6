//! A question that can't be answered.
//!
//! Libraries return their own enums; what reads a question turns them into a [`Refusal`], which has the three things that the command and the
//! page promise about every failure: a stable `code` for programs, a sentence for people, and whether the question itself is wrong (exit
//! code 2 of the command) or its answer is negative (exit code 1). Where the error lies within a text of the user's, `span` holds the byte
//! range and the message is shown with that range underlined:
//!
//! ```text
//! error: expected an extent, found `x`
//!   |
//!   | (4,x):(1,4)
//!   |    ^
//! ```
//!
//! For programs the same error is `{"error":{"code":"syntax","message":"…","span":[3,4]}}`.

use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// Why a question has no answer.
///
/// ```
/// use tilewright_workbench::Refusal;
///
/// let refusal = Refusal::usage("syntax", "expected an extent").at((3, 4), "(4,x):(1,4)");
/// assert!(refusal.is_usage());
/// assert_eq!((refusal.span(), refusal.about()), (Some((3, 4)), Some("(4,x):(1,4)")));
/// assert!(refusal.text().ends_with("  | (4,x):(1,4)\n  |    ^\n"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: String,
    message: String,
    place: Option<Place>,
    usage: bool,
}

/// The byte range `span` of `text`, in which an error lies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    span: (usize, usize),
    text: String,
}

impl Refusal {
    /// What was asked for does not hold or can't be done: exit code 1. `code` is stable and in `snake_case`.
    #[must_use]
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: shortened(message.into()),
            place: None,
            usage: false,
        }
    }

    /// The command line itself is wrong: exit code 2.
    #[must_use]
    pub fn usage(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            usage: true,
            ..Self::new(code, message)
        }
    }

    /// A file that can't be read or written, for callers that have files: code `io`.
    #[must_use]
    pub fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::new("io", format!("{}: {error}", path.display()))
    }

    /// Says where in `text` the error lies: bytes `span.0..span.1`.
    #[must_use]
    pub fn at(mut self, span: (usize, usize), text: impl Into<String>) -> Self {
        self.place = Some(Place {
            span,
            text: text.into(),
        });
        self
    }

    /// Whether the question itself is wrong, and not only its answer negative.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.usage
    }

    /// The bytes of the text that the refusal is about, if it is about a text.
    #[must_use]
    pub fn span(&self) -> Option<(usize, usize)> {
        self.place.as_ref().map(|place| place.span)
    }

    /// The text that the span is of.
    #[must_use]
    pub fn about(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.text.as_str())
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// `{"error":{"code":…,"message":…,"span":[start,end] or null}}`
    #[must_use]
    pub fn to_json(&self) -> Value {
        let span = self
            .place
            .as_ref()
            .map(|place| [place.span.0, place.span.1]);
        json!({"error": {"code": self.code, "message": self.message, "span": span}})
    }

    /// The message for people, with the span underlined, ending in a line break.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        if let Some(place) = &self.place {
            let (line, before, width) = place.on_its_line();
            let (line, before, width) = window(line, before, width);
            // Writing to a String never fails.
            let _ = writeln!(
                text,
                "  |\n  | {line}\n  | {}{}",
                " ".repeat(before),
                "^".repeat(width)
            );
        }
        text
    }
}

/// Letters of the longest word that a message repeats, and of the two ends of a longer one.
const LONGEST_WORD: usize = 160;
const ENDS: usize = 24;

/// A message with `…` in the middle of words that nobody reads, such as 300 digits.
fn shortened(message: String) -> String {
    if message.split(' ').all(|word| word.len() <= LONGEST_WORD) {
        return message;
    }
    let short = |word: &str| {
        let letters: Vec<char> = word.chars().collect();
        if letters.len() <= LONGEST_WORD {
            return word.to_owned();
        }
        let (start, end) = (&letters[..ENDS], &letters[letters.len() - ENDS..]);
        start.iter().chain(&['…']).chain(end).collect()
    };
    let words: Vec<String> = message.split(' ').map(short).collect();
    words.join(" ")
}

/// Letters of a line that is shown.
const MOST_LETTERS: usize = 160;

/// The part of a long line around what is underlined, with `…` where something is left out.
fn window(line: &str, before: usize, width: usize) -> (String, usize, usize) {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= MOST_LETTERS {
        return (line.to_owned(), before, width);
    }
    let width = width.min(MOST_LETTERS / 2);
    let first = before.saturating_sub((MOST_LETTERS - width) / 2);
    let end = (first + MOST_LETTERS).min(letters.len());
    let mut shown: String = letters[first..end].iter().collect();
    let mut before = before - first;
    if first > 0 {
        shown.insert(0, '…');
        before += 1;
    }
    if end < letters.len() {
        shown.push('…');
    }
    (shown, before, width)
}

impl Place {
    /// The line in which the span begins, the characters before the span and the characters to underline (at least 1).
    fn on_its_line(&self) -> (&str, usize, usize) {
        let text = self.text.as_str();
        let boundary = |at: usize| {
            (0..=at.min(text.len()))
                .rev()
                .find(|&i| text.is_char_boundary(i))
                .unwrap_or(0)
        };
        let (start, end) = (
            boundary(self.span.0),
            boundary(self.span.1.max(self.span.0)),
        );
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let width = text[start..end.min(line_end)].chars().count();
        (
            &text[line_start..line_end],
            text[line_start..start].chars().count(),
            width.max(1),
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_is_underlined_on_its_own_line() {
        let error = Refusal::usage("syntax", "expected an extent").at((7, 9), "(4,\n(é,x):(1,4)");
        // Bytes 7 and 8, `,x`, lie behind the two bytes of `é`, which is one character wide.
        assert_eq!(
            error.text(),
            "error: expected an extent\n  |\n  | (é,x):(1,4)\n  |   ^^\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_its_place() {
        let digits = "9".repeat(300);
        let error = Refusal::usage("integer_too_large", "too large").at((0, 300), digits.as_str());
        let shown = error.text();
        let longest = shown.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(MOST_LETTERS + 6), "{shown}");
        let text = format!("{} ? {}", "a".repeat(400), "b".repeat(400));
        let shown = Refusal::usage("syntax", "x")
            .at((401, 402), text.as_str())
            .text();
        let lines: Vec<&str> = shown.lines().collect();
        let under = lines[3].chars().position(|c| c == '^').expect("underlined");
        assert_eq!(lines[2].chars().nth(under), Some('?'), "{shown}");
        assert!(
            lines[2].contains("…aaa") && lines[2].ends_with("bbb…"),
            "{shown}"
        );
    }

    #[test]
    fn a_long_word_is_cut_in_a_message() {
        let message = format!("there is no plan `{}`; list them", "x".repeat(300));
        let refusal = Refusal::usage("unknown_plan", message);
        assert!(refusal.message().len() < 90, "{refusal}");
        assert!(refusal.message().starts_with("there is no plan `xxx"));
        assert!(refusal.message().ends_with("xxx`; list them") && refusal.message().contains('…'));
        let path = format!("{}: not there", "folder/".repeat(20));
        assert_eq!(Refusal::new("io", path.as_str()).message(), path);
    }

    #[test]
    fn every_span_is_shown_without_a_panic() {
        let text = "aé\n→b";
        for start in 0..10 {
            for end in 0..10 {
                assert!(
                    Refusal::new("c", "m")
                        .at((start, end), text)
                        .text()
                        .contains('^')
                );
            }
        }
    }

    #[test]
    fn json_has_code_message_and_span() {
        let error = Refusal::new("not_composable", "no").at((1, 2), "abc");
        assert_eq!(
            error.to_json().to_string(),
            r#"{"error":{"code":"not_composable","message":"no","span":[1,2]}}"#
        );
        let plain = Refusal::new("io", "no").to_json();
        assert!(plain["error"]["span"].is_null());
    }
}
