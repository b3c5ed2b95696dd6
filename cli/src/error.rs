//! The one error type of the command.
//!
//! Libraries return their own enums; a subcommand turns them into a [`CliError`], which knows the three things that the
//! command promises about every failure: a stable `code` for programs, a sentence for people, and the exit code (1: what
//! was asked for does not hold or can't be done; 2: bad usage). Where the error lies within a text of the user's, `span`
//! holds the byte range and the message is shown with that range underlined:
//!
//! ```text
//! error: expected an extent, found `x`
//!   |
//!   | (4,x):(1,4)
//!   |    ^
//! ```
//!
//! Under `--json` the same error is `{"error":{"code":"syntax","message":"…","span":[3,4]}}` on standard output and
//! nothing is written to standard error.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::output;

/// What a subcommand returns: the exit code, or the error to report.
pub(crate) type Outcome = Result<ExitCode, CliError>;

/// A failure of the command, ready to be shown to people or programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CliError {
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

impl CliError {
    /// What was asked for does not hold or can't be done: exit code 1. `code` is stable and in `snake_case`.
    pub(crate) fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            place: None,
            usage: false,
        }
    }

    /// The command line itself is wrong: exit code 2.
    pub(crate) fn usage(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            usage: true,
            ..Self::new(code, message)
        }
    }

    /// A file that can't be read or written: code `io`, exit code 1.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::new("io", format!("{}: {error}", path.display()))
    }

    /// Says where in `text` the error lies: bytes `span.0..span.1`.
    pub(crate) fn at(mut self, span: (usize, usize), text: impl Into<String>) -> Self {
        self.place = Some(Place {
            span,
            text: text.into(),
        });
        self
    }

    /// The stable code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The sentence for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// `{"error":{"code":…,"message":…,"span":[start,end] or null}}`
    pub(crate) fn to_json(&self) -> Value {
        let span = self
            .place
            .as_ref()
            .map(|place| [place.span.0, place.span.1]);
        json!({"error": {"code": self.code, "message": self.message, "span": span}})
    }

    /// Writes the error to standard output (`json`) or to standard error, and says how the command exits.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if json {
            output::print_json(&self.to_json());
        } else {
            eprint!("{}", self.text());
        }
        ExitCode::from(if self.usage { 2 } else { 1 })
    }

    /// The message for people, with the span underlined, ending in a line break.
    fn text(&self) -> String {
        let mut text = format!("error: {}\n", self.message);
        if let Some(place) = &self.place {
            let (line, before, width) = place.on_its_line();
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

/// The exit code of `outcome`, its error reported.
pub(crate) fn finish(outcome: Outcome, json: bool) -> ExitCode {
    outcome.unwrap_or_else(|error| error.report(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_is_underlined_on_its_own_line() {
        let error = CliError::usage("syntax", "expected an extent").at((7, 9), "(4,\n(é,x):(1,4)");
        // Bytes 7 and 8, `,x`, lie behind the two bytes of `é`, which is one character wide.
        assert_eq!(
            error.text(),
            "error: expected an extent\n  |\n  | (é,x):(1,4)\n  |   ^^\n"
        );
    }

    #[test]
    fn every_span_is_shown_without_a_panic() {
        let text = "aé\n→b";
        for start in 0..10 {
            for end in 0..10 {
                assert!(
                    CliError::new("c", "m")
                        .at((start, end), text)
                        .text()
                        .contains('^')
                );
            }
        }
    }

    #[test]
    fn json_has_code_message_and_span() {
        let error = CliError::new("not_composable", "no").at((1, 2), "abc");
        assert_eq!(
            error.to_json().to_string(),
            r#"{"error":{"code":"not_composable","message":"no","span":[1,2]}}"#
        );
        let plain = CliError::new("io", "no").to_json();
        assert!(plain["error"]["span"].is_null());
    }
}
