//! Cases and verdicts: what is asked, of what class it is, and how an answer is judged.

use crate::answer::{Answer, Names};
use crate::exist::fits_exactly;
use crate::model::{Function, Tree};

/// What the judge says of one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// Refused, and rightly: no answer exists.
    Refused,
    /// Wrong, with what was expected.
    Wrong(String),
}

pub(crate) type Judge = Box<dyn Fn(&Answer) -> Verdict + Send + Sync>;

/// One expression.
pub(crate) struct Case {
    pub(crate) operation: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
    pub(crate) judge: Judge,
}

impl Case {
    pub(crate) fn new(
        operation: &'static str,
        kind: &'static str,
        text: String,
        judge: impl Fn(&Answer) -> Verdict + Send + Sync + 'static,
    ) -> Case {
        Case {
            operation,
            kind,
            text,
            judge: Box::new(judge),
        }
    }
}

/// A verdict from a check of a value; a refusal is wrong unless `may_refuse`.
pub(crate) fn judged(
    answer: &Answer,
    may_refuse: bool,
    expected: &str,
    check: impl FnOnce() -> Result<(), String>,
) -> Verdict {
    match answer {
        Answer::Error(..) if may_refuse => Verdict::Refused,
        Answer::Error(..) => Verdict::Wrong(format!("an answer: {expected}")),
        Answer::Dead(_) => Verdict::Wrong("any answer at all".to_owned()),
        Answer::Value(_) => match check() {
            Ok(()) => Verdict::Right,
            Err(reason) => Verdict::Wrong(if expected.is_empty() {
                reason
            } else {
                format!("{expected}; {reason}")
            }),
        },
    }
}

/// A function with exactly these values, whose shape refines `profile`.
pub(crate) fn check_values(
    function: &Function,
    values: &[i64],
    profile: &Tree,
) -> Result<(), String> {
    let Some(domain) = function.domain() else {
        return Err("a layout innermost".into());
    };
    if !profile.compatible(&domain.shape) {
        return Err(format!("a shape that refines {profile}"));
    }
    let found = function.values();
    if let Some(i) = (0..values.len()).find(|i| found.get(*i) != Some(&values[*i])) {
        return Err(format!(
            "value {} at {i}, not {:?}",
            values[i],
            found.get(i)
        ));
    }
    Ok(())
}

/// The answer must be a layout with these values; it may be refused only where no layout of this profile has them.
pub(crate) fn exactly(
    answer: &Answer,
    values: &[i64],
    profile: &Tree,
    names: Names<'_>,
) -> Verdict {
    let exists = matches!(answer, Answer::Error(..)) && fits_exactly(&profile.leaves(), values);
    judged(
        answer,
        !exists && matches!(answer, Answer::Error(..)),
        &format!("{profile} with values {}", brief(values)),
        || check_values(&answer.function(names)?, values, profile),
    )
}

/// The answer must be this layout, with this shape, and exist.
pub(crate) fn must_be(answer: &Answer, values: &[i64], shape: &Tree, names: Names<'_>) -> Verdict {
    judged(
        answer,
        false,
        &format!("{shape} with values {}", brief(values)),
        || {
            let function = answer.function(names)?;
            check_values(&function, values, shape)?;
            let found = &function.domain().ok_or("a layout")?.shape;
            if found == shape {
                Ok(())
            } else {
                Err(format!("the shape {shape}"))
            }
        },
    )
}

pub(crate) fn brief(values: &[i64]) -> String {
    let shown: Vec<String> = values.iter().take(12).map(i64::to_string).collect();
    let more = if values.len() > 12 { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}

pub(crate) fn is_int(answer: &Answer, expected: i64) -> Verdict {
    judged(answer, false, &expected.to_string(), || {
        let found = answer.int()?;
        (found == expected)
            .then_some(())
            .ok_or(format!("not {found}"))
    })
}

pub(crate) fn is_bool(answer: &Answer, expected: bool) -> Verdict {
    judged(answer, false, &expected.to_string(), || {
        let found = answer.bool()?;
        (found == expected)
            .then_some(())
            .ok_or(format!("not {found}"))
    })
}

pub(crate) fn is_tree(answer: &Answer, expected: &Tree) -> Verdict {
    judged(answer, false, &expected.to_string(), || {
        let found = answer.tree()?;
        (found == *expected)
            .then_some(())
            .ok_or(format!("not {found}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Layout;

    fn layout(text: &str) -> Answer {
        Answer::of_line(&format!(r#"{{"kind":"layout","text":"{text}"}}"#))
    }

    #[test]
    fn wrong_answers_and_wrong_refusals_fail() {
        let b = Layout::of(&[(8, 1)]);
        let values = [0, 1, 2, 3, 10, 11, 12, 13];
        let verdict = |answer: &Answer| exactly(answer, &values, &b.shape, &[]);
        assert_eq!(verdict(&layout("(4,2):(1,10)")), Verdict::Right);
        assert!(matches!(verdict(&layout("(4,2):(1,9)")), Verdict::Wrong(_)));
        assert!(matches!(
            verdict(&layout("(4,3):(1,10)")),
            Verdict::Wrong(_)
        ));
        let refusal = Answer::of_line(r#"{"error":{"code":"x","message":"y"}}"#);
        assert!(matches!(verdict(&refusal), Verdict::Wrong(_)));
        // The carry of (4,6):(1,10) o 4:3 has no layout.
        let carry = |answer: &Answer| exactly(answer, &[0, 3, 12, 21], &Tree::Int(4), &[]);
        assert_eq!(carry(&refusal), Verdict::Refused);
        assert!(matches!(carry(&layout("(2,2):(3,12)")), Verdict::Wrong(_)));
        let dead = Answer::Dead("signal".into());
        assert!(matches!(carry(&dead), Verdict::Wrong(_)));
    }
}
