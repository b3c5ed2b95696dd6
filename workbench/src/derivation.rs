//! The best shared-memory layout for all accesses to a tile, from the texts of a question.
//!
//! ```text
//! tile 64x64, elements bf16, accesses 'cp.async.16 @ (8,4):(8,64)' and 'ldmatrix.x4 @ (16,2):(64,8)'
//! ```
//!
//! Each LAYOUT maps the lane to the row-major index (`row * columns + column`) of the first element that the lane touches. Layouts
//! themselves count their first mode fastest, and with them `compose` and `partition`; `row_major((ROWS,COLUMNS)) o LAYOUT` converts.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::{Value, json};
use tilewright::codegen::index::targets::program;
use tilewright::codegen::index::{IndexLayout, IndexSpec, Target};
use tilewright::derive::{
    Derivation, DeriveError, Family, Pattern, Rotation, Status, Tile, derive, recount,
};
use tilewright::{DescriptorError, Layout, MatrixDescriptor, Swizzle, Swizzled, TensorBox};

use crate::calculator::Value as Expression;
use crate::calculator::instructions::access as access_named;
use crate::notation::layout_at;
use crate::{Notation, Refusal};

/// A tile and the accesses to it, as text.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Rows and columns in elements, `64x32`.
    pub tile: &'a str,
    /// Element type, or its bytes: 1 to 16.
    pub elem: &'a str,
    /// `OP @ LAYOUT` each.
    pub accesses: Vec<&'a str>,
    /// plain, swizzle, permuted, padded, f2, rotated, tma or any.
    pub family: &'a str,
}

/// What was derived for a [`Question`].
#[derive(Clone, Debug)]
pub struct Answer {
    tile: Tile,
    patterns: Vec<Pattern>,
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
                    "there is no family `{}`; known are {}",
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
        Ok(Answer {
            tile,
            patterns,
            found,
        })
    }
}

/// How `--tile` is written.
const WRITTEN: &str = "a tile is written ROWSxCOLUMNS, as in 64x32";

pub(crate) fn parse_tile(text: &str) -> Result<(i64, i64), Refusal> {
    let refuse = |message: String| Refusal::usage("tile", message).at((0, text.len()), text);
    let extent = |part: &str| {
        part.trim()
            .parse()
            .map_err(|error: ParseIntError| match error.kind() {
                IntErrorKind::PosOverflow => {
                    // Nobody reads 300 digits.
                    let digits = part.trim();
                    let shown: String = digits.chars().take(40).collect();
                    let more = if shown.len() < digits.len() {
                        "…"
                    } else {
                        ""
                    };
                    refuse(format!("{shown}{more} is too large"))
                }
                _ => refuse(WRITTEN.to_owned()),
            })
    };
    match text.split_once(['x', 'X']) {
        Some((rows, cols)) => Ok((extent(rows)?, extent(cols)?)),
        None => Err(refuse(WRITTEN.to_owned())),
    }
}

pub(crate) fn element_bytes(text: &str) -> Result<i64, Refusal> {
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

pub(crate) fn parse_access(text: &str) -> Result<Pattern, Refusal> {
    let Some((op, _)) = text.split_once('@') else {
        return Err(Refusal::usage(
            "access",
            "an access is written 'OP @ LAYOUT', as in 'ldmatrix.x4 @ (16,2):(64,8)'; the layout maps a lane to the row-major index of the element at which its access begins",
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

/// The row-major tile.
pub(crate) fn row_major(tile: Tile) -> Option<Swizzled> {
    let layout = Layout::flat(&[tile.rows, tile.cols], &[tile.cols, 1]).ok()?;
    Some(Swizzled::plain(layout))
}

/// What the accesses cost in a layout, one by one; none if one of them can't be made there.
fn costs(tile: Tile, patterns: &[Pattern], layout: &Swizzled) -> Option<Vec<u32>> {
    let cost = |pattern| recount(tile, pattern, layout).ok().map(|c| c.wavefronts);
    patterns.iter().map(cost).collect()
}

/// The swizzle in bytes, as the hardware and the driver count it; none if an element is no power of two of bytes.
fn in_bytes(tile: Tile, layout: &Swizzled) -> Option<Swizzle> {
    let bytes = u64::try_from(tile.elem_bytes).ok()?;
    let swizzle = layout.swizzle();
    let shift = bytes.is_power_of_two().then(|| bytes.trailing_zeros())?;
    (!swizzle.is_identity())
        .then(|| Swizzle::new(swizzle.b(), swizzle.m() + shift, swizzle.s()).ok())
        .flatten()
}

/// What a descriptor of `wgmma` says of a tile, with k along the columns (K-major) or along the rows.
fn descriptors(tile: Tile, layout: &Swizzled) -> [(&'static str, Described); 2] {
    let of = |k_major| MatrixDescriptor::of(layout, tile.elem_bytes, k_major);
    [("K-major", of(true)), ("MN-major", of(false))]
}

/// A descriptor, or what it cannot express.
type Described = Result<MatrixDescriptor, DescriptorError>;

/// The lines about boxes and descriptors.
fn hopper(tile: Tile, layout: &Swizzled) -> Vec<String> {
    let mut lines = vec![match TensorBox::of(layout, tile.elem_bytes) {
        Ok(c) if c.copies == 1 => format!(
            "  in a tensor map: {}, a box of {} columns by {} rows",
            c.driver_name(),
            c.columns,
            c.rows
        ),
        Ok(c) => format!(
            "  in a tensor map: {}, {} boxes of {} columns by {} rows, {} bytes apart{}",
            c.driver_name(),
            c.copies,
            c.columns,
            c.rows,
            c.apart_bytes,
            match (c.down, c.copies / c.down) {
                (1, _) => String::new(),
                (_, 1) => ", one below the other".to_owned(),
                (down, panels) => format!(": {panels} panels of {down}, one below the other"),
            }
        ),
        Err(e) => format!("  in a tensor map: none; {e}"),
    }];
    for (name, described) in descriptors(tile, layout) {
        lines.push(match described {
            Ok(d) => format!(
                "  wgmma descriptor, {name}: mode {}, leading {} bytes, stride {} bytes, {} step{} along k; {:#018x} at byte 0",
                d.mode(),
                d.leading_bytes,
                d.stride_bytes,
                d.steps,
                if d.steps == 1 { "" } else { "s" },
                d.bits(0)
            ),
            Err(e) => format!("  wgmma descriptor, {name}: none; {e}"),
        });
    }
    lines
}

/// One way to lay out the tile: what to call it, its text, the bytes it takes and the wavefronts of all accesses.
struct Choice {
    name: &'static str,
    layout: String,
    bytes: i64,
    wavefronts: u32,
}

impl Answer {
    /// The row-major tile, padding, a swizzle and a rotation beside each other; a family that does not apply is left out.
    fn choices(&self) -> Vec<Choice> {
        let bytes = |elements: i64| elements.saturating_mul(self.tile.elem_bytes);
        let mut choices = Vec::new();
        if let Some(layout) = row_major(self.tile)
            && let Some(costs) = costs(self.tile, &self.patterns, &layout)
        {
            choices.push(Choice {
                name: "row-major",
                layout: layout.to_string(),
                bytes: bytes(self.tile.rows.saturating_mul(self.tile.cols)),
                wavefronts: costs.iter().sum(),
            });
        }
        for family in [Family::Padded, Family::Swizzle, Family::Rotated] {
            if let Ok(found) = derive(self.tile, &self.patterns, family)
                && let Some(layout) = written_out(&found)
            {
                choices.push(Choice {
                    name: family.name(),
                    layout,
                    bytes: bytes(found.cosize),
                    wavefronts: found.wavefronts(),
                });
            }
        }
        choices
    }

    /// The families that were examined, which the status and the lower bound speak of.
    fn families(&self) -> Vec<&'static str> {
        let examined = self.found.certificate.examined();
        examined.map(|e| e.family.name()).collect()
    }

    /// What stands above all: whether there is a layout without conflicts, and of which families that is known.
    fn headline(&self) -> String {
        let found = &self.found;
        let ideal: u32 = found.accesses().iter().map(|a| a.ideal).sum();
        match found.status {
            Status::Optimal => "conflict-free".to_owned(),
            Status::Impossible if found.wavefronts() == found.least => {
                "no layout is conflict-free, and none takes less".to_owned()
            }
            Status::Impossible if found.least > ideal => format!(
                "no layout is conflict-free; the best of {}",
                self.families().join(", ")
            ),
            Status::Impossible => format!(
                "none is conflict-free of {}; the best of them",
                self.families().join(", ")
            ),
            _ => "not proven to be the best".to_owned(),
        }
    }

    /// The layout as another library writes it.
    ///
    /// # Errors
    ///
    /// Code `not_in_notation`: a bit matrix, or a layout that the notation does not have.
    ///
    /// ```
    /// use tilewright_workbench::Notation;
    /// use tilewright_workbench::derivation::Question;
    ///
    /// let question = Question {
    ///     tile: "64x64",
    ///     elem: "f16",
    ///     accesses: vec!["ldmatrix.x4 @ (16,2):(64,8)"],
    ///     family: "swizzle",
    /// };
    /// let text = question.answer()?.written(&Notation::named("cute")?)?;
    /// assert_eq!(text, "Sw<3,3,3> o _0 o (_64,_64):(_64,_1)");
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn written(&self, notation: &Notation) -> Result<String, Refusal> {
        match (&self.found.layout, &self.found.matrix) {
            (Some(layout), _) => notation.write(&Expression::swizzled(*layout)),
            (None, Some(matrix)) => notation.write(&Expression::Matrix(Box::new(*matrix))),
            (None, None) => Err(Refusal::new(
                "not_in_notation",
                "a rotation is a composition of two layouts and is not written as one; take the formula or the index code, or --family padded",
            )),
        }
    }

    /// The answer for programs, as `derive --json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let found = &self.found;
        let accesses: Vec<Value> = found
            .accesses()
            .iter()
            .map(|a| json!({"op": a.access.name(), "wavefronts": a.wavefronts, "ideal": a.ideal}))
            .collect();
        let before = row_major(self.tile).and_then(|l| costs(self.tile, &self.patterns, &l));
        let choices: Vec<Value> = self
            .choices()
            .into_iter()
            .map(|c| json!({"family": c.name, "layout": c.layout, "bytes": c.bytes, "wavefronts": c.wavefronts}))
            .collect();
        let layout = found.layout.as_ref();
        let mut value = json!({
            "status": found.status.name(),
            "family": found.family.name(),
            "layout": layout.map(ToString::to_string),
            "unit": "element",
            "accesses": accesses,
            "row_major": before,
            "choices": choices,
            "swizzle_in_bytes": layout.and_then(|l| in_bytes(self.tile, l)).map(|s| s.to_string()),
            "bijective": found.bijective,
            "lower_bound": found.lower_bound,
            "families": self.families(),
            "lower_bound_any_layout": found.least,
            "counts_hold": match &found.certificate {
                c if c.every_translation => "every translation",
                c if c.only_as_given => "as given",
                _ => "translations without carry",
            },
            "worst_translated": found.certificate.worst_translated,
            "certificate": found.certificate.to_string(),
        });
        if let Some(rotation) = &found.rotation {
            let layouts = rotation.layouts(self.tile.rows, self.tile.cols);
            value["rotation"] = json!({
                "formula": rotation.to_string(),
                "pitch": rotation.pitch,
                "width": rotation.width,
                "shift": rotation.shift,
                "every": rotation.every,
                "period": rotation.period,
                "composition": layouts.map(|(outer, inner)| [outer.to_string(), inner.to_string()]),
            });
            for target in [Target::Rust, Target::Ptx, Target::Cuda, Target::OpenCl] {
                value["rotation"]["code"][target.name()] = json!(self.code(rotation, target));
            }
        }
        if found.family == Family::Tma {
            let copies = layout.and_then(|l| TensorBox::of(l, self.tile.elem_bytes).ok());
            value["tensor_map_swizzle"] = json!(copies.map(|c| c.driver_name()));
            value["tensor_map"] = json!(copies.map(|c| json!({
                "box": [c.columns, c.rows],
                "swizzle_bytes": c.swizzle_bytes,
                "copies": c.copies,
                "copies_down": c.down,
                "apart_bytes": c.apart_bytes,
            })));
            let described = layout.map(|l| descriptors(self.tile, l));
            for (name, described) in described.into_iter().flatten() {
                value["descriptors"][name] = match described {
                    Ok(d) => json!({
                        "mode": d.mode(),
                        "leading_bytes": d.leading_bytes,
                        "stride_bytes": d.stride_bytes,
                        "steps": d.steps,
                        "bits_at_0": format!("{:#018x}", d.bits(0)),
                    }),
                    Err(e) => json!({"refused": e.to_string()}),
                };
            }
        }
        if let Some(matrix) = &found.matrix {
            value["matrix"] = json!(matrix.columns());
        }
        value
    }

    /// The answer for people, several lines.
    #[must_use]
    pub fn text(&self) -> String {
        let (tile, found) = (self.tile, &self.found);
        let layout = written_out(found).unwrap_or_default();
        let mut lines = vec![
            format!("{}: {layout}", self.headline()),
            format!(
                "  family {}, (row,column) -> element, {} of {} elements{}",
                found.family.name(),
                tile.rows * tile.cols,
                found.cosize,
                if found.bijective { ", bijective" } else { "" }
            ),
        ];
        if let Some(rotation) = &found.rotation {
            lines.push("  r the row, c the column; in CUDA C:".to_owned());
            let code = self.code(rotation, Target::Cuda).unwrap_or_default();
            lines.extend(code.lines().map(|line| format!("    {line}")));
        }
        if let Some(layout) = &found.layout {
            if let Some(swizzle) = in_bytes(tile, layout) {
                lines.push(format!("  the swizzle in bytes: {swizzle}"));
            }
            if found.family == Family::Tma {
                lines.extend(hopper(tile, layout));
            }
        }
        let before = row_major(tile).and_then(|l| costs(tile, &self.patterns, &l));
        for (i, access) in found.accesses().iter().enumerate() {
            let before = before.as_ref().and_then(|before| before.get(i));
            lines.push(format!(
                "  {:<18} {} wavefronts, ideal {}{}",
                access.access.name(),
                access.wavefronts,
                access.ideal,
                before.map_or(String::new(), |n| format!("; {n} in the row-major tile"))
            ));
        }
        lines.push(if found.lower_bound == found.least {
            format!("  lower bound {}, for every layout", found.least)
        } else {
            let families = self.families().join(", ");
            format!(
                "  lower bound {} for {families}; {} for every layout",
                found.lower_bound, found.least
            )
        });
        lines.push("  choices:".to_owned());
        for choice in self.choices() {
            lines.push(format!(
                "    {:<10} {:>7} bytes, {:>3} wavefronts  {}",
                choice.name, choice.bytes, choice.wavefronts, choice.layout
            ));
        }
        lines.push("  certificate:".to_owned());
        for part in found.certificate.to_string().split("; ") {
            lines.push(format!("    {part}"));
        }
        lines.join("\n")
    }
}

/// The layout, matrix or formula of a derivation.
fn written_out(found: &Derivation) -> Option<String> {
    match (&found.layout, &found.matrix, &found.rotation) {
        (Some(layout), _, _) => Some(layout.to_string()),
        (None, Some(matrix), _) => Some(format!("F2 matrix, images of the index bits: {matrix}")),
        (None, None, Some(rotation)) => Some(rotation.to_string()),
        (None, None, None) => None,
    }
}

impl Answer {
    /// The index function of a rotation.
    fn code(&self, rotation: &Rotation, target: Target) -> Option<String> {
        let function = rotation.function(self.tile.rows, self.tile.cols)?;
        let layout = IndexLayout::from_function(&function).ok()?;
        let spec = IndexSpec::new("offset", layout).named(&["row", "col"]);
        program(&spec).ok()?.text(target).ok()
    }
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

    fn answer(tile: &str, elem: &str, accesses: &[&str], family: &str) -> Answer {
        let question = Question {
            tile,
            elem,
            accesses: accesses.to_vec(),
            family,
        };
        question.answer().expect("a derivation")
    }

    #[test]
    fn the_json_has_the_contracts_keys() {
        let value = answer("64x64", "f16", &["ldmatrix.x4 @ (16,2):(64,8)"], "any").to_json();
        assert_eq!(value["status"], "optimal");
        assert_eq!(value["layout"], "Sw<3,3,3> o (64,64):(64,1)");
        assert_eq!(value["swizzle_in_bytes"], "Sw<3,4,3>");
        assert_eq!(value["row_major"], json!([32]));
        assert_eq!(
            value["accesses"][0],
            json!({"op": "ldmatrix.x4", "wavefronts": 4, "ideal": 4})
        );
        assert_eq!(value["lower_bound"], 4);
        for key in ["family", "unit", "bijective", "certificate"] {
            assert!(!value[key].is_null(), "{key}");
        }
        let value = answer("64x64", "f16", &["ldmatrix.x4 @ (16,2):(64,8)"], "f2").to_json();
        assert!(value["layout"].is_null());
        assert_eq!(value["matrix"].as_array().map(Vec::len), Some(12));
    }

    #[test]
    fn people_read_what_it_cost_before_and_what_padding_would_cost() {
        // A transpose of floats: 32 wavefronts for the column, 1 with either remedy, which padding pays for with bytes.
        let text = answer("32x32", "f32", &["st.32 @ 32:1", "ld.32 @ 32:32"], "any").text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "conflict-free: Sw<5,0,5> o (32,32):(32,1)");
        assert!(
            lines.contains(&"  the swizzle in bytes: Sw<5,2,5>"),
            "{text}"
        );
        assert!(
            lines.contains(&"  ld.32              1 wavefronts, ideal 1; 32 in the row-major tile"),
            "{text}"
        );
        let padded = "    padded        4220 bytes,   2 wavefronts  (32,32):(33,1)";
        assert!(lines.contains(&padded), "{text}");
        assert!(
            lines.contains(&"    row-major     4096 bytes,  33 wavefronts  (32,32):(32,1)"),
            "{text}"
        );
        assert!(
            lines
                .iter()
                .any(|l| l.starts_with("    conflict-free: 2 wavefronts")),
            "{text}"
        );
    }

    #[test]
    fn where_none_is_conflict_free_the_best_is_given() {
        let accesses = ["st.128 @ (8,4):(224,4)"];
        let text = answer("24x112", "f32", &accesses, "padded").text();
        assert!(
            text.starts_with("none is conflict-free of padded; the best of them: (24,112):("),
            "{text}"
        );
        assert!(!text.contains("impossible"), "{text}");
    }

    #[test]
    fn a_rotation_has_a_formula_and_index_code() {
        let accesses = ["ld.32 @ 32:40", "st.128 @ (10,3):(4,40)"];
        let answer = answer("48x40", "f32", &accesses, "any");
        let value = answer.to_json();
        assert_eq!(
            (&value["family"], &value["layout"]),
            (&json!("rotated"), &Value::Null)
        );
        assert_eq!(value["lower_bound_any_layout"], 8);
        assert_eq!(value["counts_hold"], "as given");
        assert!(value["worst_translated"].as_u64() > Some(8));
        assert_eq!(
            value["families"],
            json!(["swizzle", "permuted", "padded", "rotated"])
        );
        for target in ["rust", "ptx", "cuda", "opencl"] {
            assert!(value["rotation"]["code"][target].is_string(), "{target}");
        }
        // The composition of the two layouts, evaluated, is the formula.
        let [outer, inner] = [0, 1].map(|i| value["rotation"]["composition"][i].as_str().unwrap());
        for (row, col) in [(0, 0), (7, 39), (30, 3), (47, 39)] {
            let text = format!("({outer})(({inner})({row},{col}))");
            let offset = crate::calculator::evaluate(&text).unwrap().to_string();
            assert_eq!(offset, answer.found.at(answer.tile, row, col).to_string());
        }
        let text = answer.text();
        assert!(
            text.starts_with("no layout is conflict-free, and none takes less: r*40 + "),
            "{text}"
        );
        assert!(text.contains("__host__ __device__"), "{text}");
    }

    #[test]
    fn a_plain_layout_is_called_plain() {
        let value = answer("32x33", "f32", &["ld.32 @ 32:33"], "any").to_json();
        assert_eq!(value["family"], "plain");
        assert_eq!(value["layout"], "(32,33):(33,1)");
        let value = answer("32x32", "f32", &["ld.32 @ 32:32"], "plain").to_json();
        assert_eq!(value["family"], "plain");
    }

    #[test]
    fn bounds_say_of_which_layouts_they_hold() {
        let accesses = ["st.128 @ (8,4):(224,4)"];
        let text = answer("24x112", "f32", &accesses, "padded").text();
        assert!(text.contains(" for padded; "), "{text}");
        assert!(text.contains(" for every layout"), "{text}");
    }

    #[test]
    fn tall_tiles_take_several_boxes() {
        for (tile, rows, copies) in [("512x64", 256, 2), ("384x64", 192, 2), ("1000x64", 200, 5)] {
            let value = answer(tile, "bf16", &["ldmatrix.x4 @ (16,2):(64,8)"], "tma").to_json();
            assert_eq!(value["tensor_map"]["box"], json!([64, rows]), "{tile}");
            assert_eq!(value["tensor_map"]["copies"], copies, "{tile}");
            assert_eq!(value["tensor_map"]["apart_bytes"], rows * 128, "{tile}");
        }
    }

    #[test]
    fn a_tensor_map_has_the_drivers_name_of_its_swizzle() {
        let read = ["ldmatrix.x4 @ (16,2):(64,8)"];
        let value = answer("64x64", "bf16", &read, "tma").to_json();
        assert_eq!(value["tensor_map_swizzle"], "CU_TENSOR_MAP_SWIZZLE_128B");
        let text = answer("64x64", "bf16", &read, "tma").text();
        assert!(
            text.contains(
                "in a tensor map: CU_TENSOR_MAP_SWIZZLE_128B, a box of 64 columns by 64 rows"
            ),
            "{text}"
        );
    }

    #[test]
    fn descriptors_follow_from_the_layout_or_are_refused_by_name() {
        let read = ["ldmatrix.x4 @ (16,2):(128,8)"];
        let wide = answer("64x128", "bf16", &read, "tma").to_json();
        // Two panels of 64 columns. With k along the rows, panels are the leading offset.
        assert_eq!(
            wide["tensor_map"],
            json!({"box": [64, 64], "swizzle_bytes": 128, "copies": 2, "copies_down": 1, "apart_bytes": 8192})
        );
        assert_eq!(wide["descriptors"]["K-major"]["stride_bytes"], 1024);
        assert_eq!(wide["descriptors"]["MN-major"]["leading_bytes"], 8192);
        assert_eq!(wide["descriptors"]["MN-major"]["steps"], 4);
        let floats = answer("64x32", "f32", &["ld.32 @ 32:32"], "tma");
        let refused = floats.to_json()["descriptors"]["MN-major"]["refused"].to_string();
        assert!(refused.contains("transpose the tile"), "{refused}");
        assert!(
            floats.text().contains("wgmma descriptor, MN-major: none"),
            "{}",
            floats.text()
        );
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
