//! The index function of a layout, for other people's kernels and build scripts, from the texts of a question.
//!
//! ```text
//! LAYOUT      Sw<3,4,3> o 16 o (8,64):(ld,1)            any expression of `eval`; strides may be sums with names
//! coords      linear | modes | row,col                  one linear coordinate, one for each mode, or the same by name
//! ranges      row=0..128   ld=..4096   col=any          ends are exclusive; `any` is every value of the type
//! ```

use serde_json::{Value, json};
pub use tilewright::codegen::index::Target;
use tilewright::codegen::index::code::Ty;
use tilewright::codegen::index::targets::program;
use tilewright::codegen::index::{Bound, IndexError, IndexLayout, IndexSpec, Stride};

use crate::Refusal;
use crate::calculator::evaluate;
use crate::notation::is_expression;

/// A layout whose index function is asked for, as text.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The layout.
    pub layout: &'a str,
    /// The language.
    pub target: Target,
    /// The function's name (in PTX: of its result register).
    pub name: &'a str,
    /// `linear`, `modes`, or names separated by commas.
    pub coords: &'a str,
    /// The type of the result; the narrowest by default.
    pub ty: Option<&'a str>,
    /// `NAME=FROM..TO` or `NAME=any` each.
    pub ranges: Vec<&'a str>,
}

impl<'a> Question<'a> {
    /// The question of the layout alone: a function `offset` of one coordinate a mode.
    #[must_use]
    pub fn of(layout: &'a str, target: Target) -> Self {
        Self {
            layout,
            target,
            name: "offset",
            coords: "modes",
            ty: None,
            ranges: Vec::new(),
        }
    }

    /// The code.
    ///
    /// # Errors
    ///
    /// A text that can't be read, a name that is none of the language's, a range that does not hold, an index that fits no type.
    ///
    /// ```
    /// use tilewright_workbench::index_code::{Question, Target};
    ///
    /// let code = Question::of("Sw<3,4,3> o (8,64):(64,1)", Target::Cuda).code()?;
    /// assert!(code.contains("__host__ __device__"));
    /// # Ok::<(), tilewright_workbench::Refusal>(())
    /// ```
    pub fn code(&self) -> Result<String, Refusal> {
        let refused = |e: IndexError| refusal(&e, self);
        let program = program(&spec(self)?).map_err(refused)?;
        program.text(self.target).map_err(refused)
    }

    /// The code with its parameters and its result, as `index --json` prints them.
    ///
    /// # Errors
    ///
    /// Those of [`Question::code`].
    pub fn to_json(&self) -> Result<Value, Refusal> {
        let refused = |e: IndexError| refusal(&e, self);
        let spec = spec(self)?;
        let program = program(&spec).map_err(refused)?;
        let code = program.text(self.target).map_err(refused)?;
        let lowered = spec.lower().map_err(refused)?;
        let parameters: Vec<Value> = lowered
            .parameters
            .iter()
            .map(|p| json!({"name": p.name, "type": p.ty.name(), "min": p.lo, "max": p.hi}))
            .collect();
        let number = |v: i128| i64::try_from(v).ok();
        Ok(json!({
            "target": self.target.name(),
            "name": spec.name,
            "layout": spec.layout.to_string(),
            "parameters": parameters,
            "result": {
                "type": lowered.ty.name(),
                "min": number(lowered.range.0),
                "max": number(lowered.range.1),
            },
            "instructions": program.statements().len(),
            "code": code,
        }))
    }
}

/// Bad usage is what the question says wrongly; a layout whose index does not fit is asked for rightly and can't be had.
fn refusal(error: &IndexError, question: &Question) -> Refusal {
    let (code, message) = (error.code(), error.to_string());
    match error {
        IndexError::Parse(e) => Refusal::usage(code, message).at(e.span, question.layout),
        IndexError::Coordinates { .. }
        | IndexError::Name { .. }
        | IndexError::Unknown { .. }
        | IndexError::Range { .. } => Refusal::usage(code, message),
        _ => Refusal::new(code, message),
    }
}

fn spec(question: &Question) -> Result<IndexSpec, Refusal> {
    let layout = layout(question.layout)?;
    let mut spec = IndexSpec::new(question.name, layout);
    match question.coords {
        "modes" => {}
        "linear" => spec = spec.linear(),
        names => {
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            spec = spec.named(&names);
        }
    }
    if let Some(name) = question.ty {
        let ty = Ty::named(name).ok_or_else(|| {
            let message = format!("there is no type `{name}` here; known are u32, i32, u64, i64");
            Refusal::usage("unknown_type", message)
        })?;
        spec = spec.result(ty);
    }
    for range in &question.ranges {
        apply(&mut spec, range)?;
    }
    Ok(spec)
}

/// The layout that the text is: the notation, or any expression of the calculator.
fn layout(text: &str) -> Result<IndexLayout, Refusal> {
    let written = match IndexLayout::parse(text) {
        Ok(layout) => return Ok(layout),
        Err(error) => error,
    };
    let whole = (0, text.len());
    let value = match evaluate(text) {
        Ok(value) => value,
        Err(error) if is_expression(text) => {
            return Err(Refusal::usage(error.code, error.message).at(error.span, text));
        }
        Err(_) => {
            let message = written.message();
            return Err(Refusal::usage(written.code(), message.as_str()).at(written.span, text));
        }
    };
    // An integer is a function of its own, and none that anybody asks for.
    let function = match value {
        crate::calculator::Value::Int(_) => None,
        _ => value.with_function(IndexLayout::from_function),
    };
    let spec = function.ok_or_else(|| {
        let message = format!(
            "index code is written for a layout, not for {}",
            value.kind()
        );
        Refusal::usage("type_mismatch", message).at(whole, text)
    })?;
    spec.flatten()
        .map_err(|error| Refusal::usage(error.code(), error.to_string()).at(whole, text))
}

/// `name=from..to` or `name=any`, of a coordinate or a stride.
fn apply(spec: &mut IndexSpec, text: &str) -> Result<(), Refusal> {
    let wrong = || {
        let message = "expected NAME=FROM..TO, NAME=..TO or NAME=any, such as row=0..128";
        Refusal::usage("syntax", message).at((0, text.len()), text)
    };
    let (name, values) = text.split_once('=').ok_or_else(wrong)?;
    let range = if values == "any" {
        None
    } else {
        let (from, to) = values.split_once("..").ok_or_else(wrong)?;
        let number = |s: &str| s.parse::<i64>().map_err(|_| wrong());
        let from = if from.is_empty() { 0 } else { number(from)? };
        let to = match to.strip_prefix('=') {
            Some(last) => number(last)?,
            None => number(to)?.checked_sub(1).ok_or_else(wrong)?,
        };
        if from > to {
            let message = format!("`{values}` is no range for `{name}`: it is empty");
            return Err(Refusal::usage("invalid_range", message).at((0, text.len()), text));
        }
        Some((from, to))
    };
    let Some(c) = spec.coordinates.iter_mut().find(|c| c.name == name) else {
        let (lo, hi) = range.unwrap_or((0, u32::MAX.into()));
        spec.strides.push(Stride {
            name: name.to_owned(),
            lo,
            hi,
            ty: None,
        });
        return Ok(());
    };
    // A coordinate's range starts at 0: a later start tells the compiler nothing that it could use.
    c.bound = match range {
        None => Bound::Unbounded,
        Some((0.., hi)) => Bound::UpTo(hi),
        Some(_) => {
            let message = format!("`{values}` is no range for `{name}`: coordinates start at 0");
            return Err(Refusal::usage("invalid_range", message).at((0, text.len()), text));
        }
    };
    Ok(())
}
