//! Reading the command line's texts: layouts, accesses, element types, windows. Every error underlines what it is about.

use tilewright::Swizzled;
use tilewright::banks::Access;

use super::scene::Span;
use crate::Refusal;
use crate::calculator::instructions::access as access_named;
use crate::notation::layout_at;

/// Element types by name and their bytes.
const ELEMENTS: [(&str, i64); 21] = [
    ("f16", 2),
    ("bf16", 2),
    ("f32", 4),
    ("tf32", 4),
    ("f64", 8),
    ("s8", 1),
    ("u8", 1),
    ("e4m3", 1),
    ("e5m2", 1),
    ("s16", 2),
    ("u16", 2),
    ("s32", 4),
    ("u32", 4),
    ("s64", 8),
    ("u64", 8),
    ("b8", 1),
    ("b16", 2),
    ("b32", 4),
    ("b64", 8),
    ("b128", 16),
    ("i32", 4),
];

/// Bytes of an element: a type's name, or a number of bytes from 1 to 16.
pub(crate) fn element_bytes(text: &str) -> Result<i64, Refusal> {
    let name = text.trim();
    let named = ELEMENTS.iter().find(|(known, _)| *known == name);
    let bytes = named.map(|&(_, bytes)| bytes);
    let bytes = bytes.or_else(|| name.parse().ok().filter(|n| (1..=16).contains(n)));
    bytes.ok_or_else(|| {
        let known: Vec<&str> = ELEMENTS.iter().map(|&(name, _)| name).collect();
        Refusal::usage(
            "bad_element",
            format!(
                "there is no element type `{name}`; known are {}, or give the bytes, 1 to 16",
                known.join(", ")
            ),
        )
        .at((0, text.len()), text)
    })
}

/// The layout that an expression of the calculator is.
pub(crate) fn layout(text: &str) -> Result<Swizzled, Refusal> {
    layout_at(text, (0, text.len()))
}

/// `OP @ LAYOUT`, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct AccessText {
    /// The kind of access.
    pub(crate) access: Access,
    /// Lane -> row-major index of the first element it touches.
    pub(crate) lanes: Swizzled,
    /// What was written, and where in it the layout is.
    pub(crate) text: String,
    /// The bytes of the layout in `text`.
    pub(crate) span: (usize, usize),
}

impl AccessText {
    /// An error about the layout of lanes.
    pub(crate) fn refuse(&self, code: &str, message: impl Into<String>) -> Refusal {
        Refusal::new(code, message).at(self.span, self.text.as_str())
    }
}

/// Reads `OP @ LAYOUT`.
pub(crate) fn access(text: &str) -> Result<AccessText, Refusal> {
    let Some(at) = text.find('@') else {
        return Err(Refusal::usage(
            "syntax",
            "expected '@' between the operation and its layout, as in 'ldmatrix.x4 @ (16,2):(64,8)'",
        )
        .at((text.len(), text.len()), text));
    };
    let trimmed = |start: usize, end: usize| {
        let part = &text[start..end];
        let first = start + part.len() - part.trim_start().len();
        (first, first + part.trim().len())
    };
    let op = trimmed(0, at);
    let access = access_named(&text[op.0..op.1])
        .map_err(|message| Refusal::usage("unknown_access", message).at(op, text))?;
    let span = trimmed(at + 1, text.len());
    let lanes = layout_at(text, span)?;
    Ok(AccessText {
        access,
        lanes,
        text: text.to_owned(),
        span,
    })
}

/// The part of an axis of `all` indices to show: what `--rows` or `--cols` says, else at most `limit` from 0.
pub(crate) fn window(
    asked: Option<&str>,
    all: i64,
    limit: usize,
    most: usize,
) -> Result<Span, Refusal> {
    let Some(text) = asked else {
        let count = usize::try_from(all).map_or(limit, |all| all.min(limit));
        return Ok(Span {
            first: 0,
            count,
            all,
        });
    };
    let refuse = |message: String| Refusal::usage("bad_window", message).at((0, text.len()), text);
    let ends = text
        .split_once("..")
        .and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    let Some((first, end)) = ends else {
        return Err(refuse(
            "expected a range such as 0..64 (the end not included)".to_owned(),
        ));
    };
    let (first, end): (i64, i64) = (first, end);
    if first < 0 || end <= first || end > all {
        return Err(refuse(format!(
            "expected a range within 0..{all} with at least one index"
        )));
    }
    if end - first > most as i64 {
        return Err(refuse(format!(
            "{} indices: a picture has at most {most}",
            end - first
        )));
    }
    Ok(Span {
        first,
        count: (end - first) as usize,
        all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_types_or_bytes() {
        assert_eq!(element_bytes("bf16").expect("a type"), 2);
        assert_eq!(element_bytes("12").expect("bytes"), 12);
        for text in ["", "0", "17", "-1", "f17", "99999999999999999999"] {
            assert_eq!(element_bytes(text).expect_err(text).code(), "bad_element");
        }
    }

    #[test]
    fn spans_of_an_access_are_of_the_whole_text() {
        let good = access(" ldmatrix.x4 @ (16,2):(64,8) ").expect("an access");
        assert_eq!(&good.text[good.span.0..good.span.1], "(16,2):(64,8)");
        let bad = access("ldmatrix.x4 @ (16,x):(64,8)").expect_err("x is no extent");
        assert_eq!(bad.to_json()["error"]["span"], serde_json::json!([18, 19]));
        let bad = access("ldmatrix.x9 @ 32:1").expect_err("no such access");
        assert_eq!(bad.to_json()["error"]["span"], serde_json::json!([0, 11]));
        assert_eq!(access("é").expect_err("no @").code(), "syntax");
    }

    #[test]
    fn windows_stay_within_the_axis() {
        let shown = window(Some("8..16"), 64, 128, 256).expect("a window");
        assert_eq!((shown.first, shown.count, shown.is_clipped()), (8, 8, true));
        assert_eq!(
            window(None, i64::MAX, 128, 256).expect("clipped").count,
            128
        );
        for text in [
            "",
            "..",
            "5",
            "5..5",
            "-1..4",
            "0..65",
            "a..b",
            "0..99999999999999999999",
        ] {
            assert_eq!(
                window(Some(text), 64, 128, 256).expect_err(text).code(),
                "bad_window"
            );
        }
        assert!(window(Some("0..300"), 1000, 128, 256).is_err());
    }
}
