//! The best shared-memory layout for all accesses to a tile, from the texts of a question.
//!
//! ```text
//! tile 64x64, elements bf16, accesses 'cp.async.16 @ (8,4):(8,64)' and 'ldmatrix.x4 @ (16,2):(64,8)'
//! ```
//!
//! Each LAYOUT maps the lane to the row-major index (`row * columns + column`) of the first element that the lane touches.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::{Value, json};
use tilewright::derive::{Derivation, DeriveError, Family, Pattern, Tile, derive};

use crate::Refusal;
use crate::calculator::instructions::access as access_named;
use crate::notation::layout_at;

/// A tile and the accesses to it, as text.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Rows and columns in elements, `64x32`.
    pub tile: &'a str,
    /// Element type, or its bytes: 1 to 16.
    pub elem: &'a str,
    /// `OP @ LAYOUT` each.
    pub accesses: Vec<&'a str>,
    /// swizzle, permuted, padded, f2, tma or any.
    pub family: &'a str,
}

/// What was derived for a [`Question`].
#[derive(Clone, Debug)]
pub struct Answer {
    tile: Tile,
    found: Derivation,
}

impl Question<'_> {
    /// Derives the layout.
    ///
    /// # Errors
    ///
    /// A text that can't be read, accesses outside the tile, or a tile that the family does not take. That no layout is conflict-free is an
    /// answer and not an error.
    ///
    /// ```
    /// use tilewright_workbench::derivation::Question;
    ///
    /// let question = Question {
    ///     tile: "64x64",
    ///     elem: "f16",
    ///     accesses: vec!["ldmatrix.x4 @ (16,2):(64,8)"],
    ///     family: "any",
    /// };
    /// let answer = question.answer()?;
    /// assert_eq!(answer.to_json()["layout"], "Sw<3,3,3> o (64,64):(64,1)");
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn answer(&self) -> Result<Answer, Refusal> {
        let (rows, cols) = parse_tile(self.tile)?;
        let tile = Tile {
            rows,
            cols,
            elem_bytes: element_bytes(self.elem)?,
        };
        let Some(family) = Family::named(self.family) else {
            let names: Vec<&str> = Family::ALL.iter().map(|f| f.name()).collect();
            return Err(Refusal::usage(
                "unknown_family",
                format!(
                    "no family is called {}; there are {}",
                    self.family,
                    names.join(", ")
                ),
            ));
        };
        let patterns = self
            .accesses
            .iter()
            .map(|text| parse_access(text))
            .collect::<Result<Vec<_>, _>>()?;
        let found =
            derive(tile, &patterns, family).map_err(|error| refuse(&error, &self.accesses))?;
        Ok(Answer { tile, found })
    }
}

impl Answer {
    /// The answer for programs, as `derive --json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        to_json(&self.found)
    }

    /// The answer for people, several lines.
    #[must_use]
    pub fn text(&self) -> String {
        text(self.tile, &self.found)
    }
}

/// How `--tile` is written.
const WRITTEN: &str = "a tile is written ROWSxCOLUMNS, as in 64x32";

fn parse_tile(text: &str) -> Result<(i64, i64), Refusal> {
    let refuse = |message: String| Refusal::usage("tile", message).at((0, text.len()), text);
    let extent = |part: &str| {
        part.trim()
            .parse()
            .map_err(|error: ParseIntError| match error.kind() {
                IntErrorKind::PosOverflow => refuse(format!("{} is too large", part.trim())),
                _ => refuse(WRITTEN.to_owned()),
            })
    };
    match text.split_once(['x', 'X']) {
        Some((rows, cols)) => Ok((extent(rows)?, extent(cols)?)),
        None => Err(refuse(WRITTEN.to_owned())),
    }
}

fn element_bytes(text: &str) -> Result<i64, Refusal> {
    let bytes = match text.to_ascii_lowercase().as_str() {
        "u8" | "s8" | "i8" | "b8" | "e4m3" | "e5m2" | "fp8" | "f8" => 1,
        "f16" | "bf16" | "u16" | "s16" | "i16" | "b16" => 2,
        "f32" | "tf32" | "u32" | "s32" | "i32" | "b32" => 4,
        "f64" | "u64" | "s64" | "i64" | "b64" => 8,
        "b96" => 12,
        "b128" | "f64x2" | "f32x4" => 16,
        other => other.trim_end_matches('b').parse().unwrap_or(0),
    };
    if (1..=16).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(Refusal::usage(
            "element",
            "an element type such as f16, bf16, f32, e4m3, s8, b128, or 1 to 16 bytes is expected",
        )
        .at((0, text.len()), text))
    }
}

fn parse_access(text: &str) -> Result<Pattern, Refusal> {
    let Some((op, _)) = text.split_once('@') else {
        return Err(Refusal::usage(
            "access",
            "an access is written 'OP @ LAYOUT', as in 'ldmatrix.x4 @ (16,2):(64,8)'",
        )
        .at((0, text.len()), text));
    };
    let start = op.len() - op.trim_start().len();
    let access = access_named(op).map_err(|message| {
        Refusal::usage("unknown_access", message).at((start, start + op.trim().len().max(1)), text)
    })?;
    let offset = op.len() + 1;
    let layout = layout_at(text, (offset, text.len()))?;
    Pattern::new(access, &layout).map_err(|error| {
        Refusal::new(error.code(), without_number(&error)).at((offset, text.len()), text)
    })
}

/// The message without "access 0: ", for a pattern that is shown itself.
fn without_number(error: &DeriveError) -> String {
    let message = error.to_string();
    match message.split_once(": ") {
        Some((start, rest)) if error.pattern().is_some() && start.starts_with("access ") => {
            rest.to_owned()
        }
        _ => message,
    }
}

fn refuse(error: &DeriveError, accesses: &[&str]) -> Refusal {
    let refusal = Refusal::new(error.code(), without_number(error));
    match error.pattern().and_then(|pattern| accesses.get(pattern)) {
        Some(&text) => refusal.at((0, text.len()), text),
        None => refusal,
    }
}

fn to_json(found: &Derivation) -> Value {
    let accesses: Vec<Value> = found
        .accesses()
        .iter()
        .map(|a| json!({"op": a.access.name(), "wavefronts": a.wavefronts, "ideal": a.ideal}))
        .collect();
    let mut value = json!({
        "status": found.status.name(),
        "family": found.family.name(),
        "layout": found.layout.map(|layout| layout.to_string()),
        "unit": "element",
        "accesses": accesses,
        "bijective": found.bijective,
        "lower_bound": found.lower_bound,
        "certificate": found.certificate.to_string(),
    });
    if let Some(matrix) = &found.matrix {
        value["matrix"] = json!(matrix.columns());
    }
    value
}

fn text(tile: Tile, found: &Derivation) -> String {
    let layout = match (&found.layout, &found.matrix) {
        (Some(layout), _) => layout.to_string(),
        (None, Some(matrix)) => format!("F2 matrix, images of the index bits: {matrix}"),
        (None, None) => String::new(),
    };
    let mut lines = vec![
        format!("{}: {layout}", found.status.name()),
        format!(
            "  family {}, (row,column) -> element, {} of {} elements{}",
            found.family.name(),
            tile.rows * tile.cols,
            found.cosize,
            if found.bijective { ", bijective" } else { "" }
        ),
    ];
    for access in found.accesses() {
        lines.push(format!(
            "  {:<18} {} wavefronts, ideal {}",
            access.access.name(),
            access.wavefronts,
            access.ideal
        ));
    }
    lines.push(format!("  lower bound {}", found.lower_bound));
    lines.push(format!("  {}", found.certificate));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(tile: &str, elem: &str, access: &str) -> String {
        let question = Question {
            tile,
            elem,
            accesses: vec![access],
            family: "any",
        };
        match question.answer() {
            Ok(_) => "none".to_owned(),
            Err(error) => error.code().to_owned(),
        }
    }

    #[test]
    fn the_json_has_the_contracts_keys() {
        let tile = Tile {
            rows: 64,
            cols: 64,
            elem_bytes: 2,
        };
        let Ok(read) = parse_access("ldmatrix.x4 @ (16,2):(64,8)") else {
            panic!("a good access");
        };
        let Ok(found) = derive(tile, &[read], Family::Any) else {
            panic!("a derivation");
        };
        let value = to_json(&found);
        assert_eq!(value["status"], "optimal");
        assert_eq!(value["layout"], "Sw<3,3,3> o (64,64):(64,1)");
        assert_eq!(
            value["accesses"][0],
            json!({"op": "ldmatrix.x4", "wavefronts": 4, "ideal": 4})
        );
        assert_eq!(value["lower_bound"], 4);
        for key in ["family", "unit", "bijective", "certificate"] {
            assert!(!value[key].is_null(), "{key}");
        }
        let Ok(matrix) = derive(tile, &[read], Family::F2) else {
            panic!("a derivation");
        };
        let value = to_json(&matrix);
        assert!(value["layout"].is_null());
        assert_eq!(value["matrix"].as_array().map(Vec::len), Some(12));
    }

    #[test]
    fn bad_input_is_refused_with_its_code() {
        assert_eq!(code("64", "f16", "ld.32 @ 32:2"), "tile");
        assert_eq!(code("64x64", "f17", "ld.32 @ 32:2"), "element");
        assert_eq!(code("64x64", "f16", "ld.32"), "access");
        assert_eq!(code("64x64", "f16", "ld.33 @ 32:2"), "unknown_access");
        assert_eq!(code("64x64", "f16", "ld.32 @ 32:"), "syntax");
        assert_eq!(code("64x64", "f16", "ld.32 @ 64:2"), "wrong_lane_count");
        assert_eq!(code("64x64", "f16", "ld.32 @ 32:256"), "outside_tile");
        assert_eq!(
            code("64x64", "f16", "st.32 @ (16,2):(2,0)"),
            "duplicate_lanes"
        );
        assert_eq!(code("64x63", "f16", "ld.32 @ 32:2"), "tile_not_divisible");
    }

    #[test]
    fn spans_point_into_the_access() {
        let Err(error) = parse_access("ld.32 @ (4,x):(1,4)") else {
            panic!("must be refused");
        };
        assert_eq!(error.to_json()["error"]["span"], json!([11, 12]));
    }
}
