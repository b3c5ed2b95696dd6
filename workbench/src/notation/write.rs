//! Values in the notations of other libraries.
//!
//! | name | of | example |
//! |---|---|---|
//! | `tilewright` | ours, which is CuTe's | `Sw<3,3,3> o (8,64):(64,1)` |
//! | `pycute` | pycute's source text | `ComposedLayout(Swizzle(3,3,3), 0, Layout((8, 64), (64, 1)))` |
//! | `cute` | what CuTe C++ prints of a static layout | `Sw<3,3,3> o _0 o (_8,_64):(_64,_1)` |
//! | `cute-cpp` | CuTe C++ source text | `composition(Swizzle<3,3,3>{}, Int<0>{}, make_layout(…))` |
//! | `cute-dsl` | CuTe DSL source text | `cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout(…))` |
//! | `triton` | `#ttg.linear` of a layout of threads; `triton:16x8` for a tensor of two dimensions | |
//! | `triton-shared` | an encoding of shared memory | `#ttg.swizzled_shared<{vec = 8, …}>` |
//!
//! What is written reads back as the same function, which property tests check. A name of a stride is a variable of the program.

use tilewright::{IntTuple, Swizzle, Swizzled, SwizzledAffine};

use crate::Refusal;
use crate::calculator::{Value, triton};

/// How a value is to be written.
///
/// ```
/// use tilewright_workbench::{Notation, evaluate};
///
/// let layout = evaluate("(4,8):(8,1)")?;
/// assert_eq!(layout.written(&Notation::named("pycute")?)?, "Layout((4, 8), (8, 1))");
/// # Ok::<(), tilewright_workbench::Refusal>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notation(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Tilewright,
    Pycute,
    Cute,
    CuteCpp,
    CuteDsl,
    Triton(Option<Vec<i64>>),
    TritonShared,
}

/// The names of all notations.
pub const NOTATIONS: [&str; 7] = [
    "tilewright",
    "pycute",
    "cute",
    "cute-cpp",
    "cute-dsl",
    "triton",
    "triton-shared",
];

impl Notation {
    /// The notation of this name; `triton:16x8` says the tensor's extents.
    ///
    /// # Errors
    ///
    /// Code `unknown_notation`, with the names that there are.
    ///
    /// ```
    /// use tilewright_workbench::Notation;
    /// assert!(Notation::named("cute-dsl").is_ok());
    /// assert_eq!(Notation::named("cue").unwrap_err().code(), "unknown_notation");
    /// ```
    pub fn named(name: &str) -> Result<Self, Refusal> {
        let refuse = || {
            let message = format!(
                "there is no notation `{name}`; known are {} and triton:ROWSxCOLUMNS",
                NOTATIONS.join(", ")
            );
            Refusal::usage("unknown_notation", message).at((0, name.len()), name)
        };
        Ok(Self(match name {
            "tilewright" => Kind::Tilewright,
            "pycute" => Kind::Pycute,
            "cute" => Kind::Cute,
            "cute-cpp" => Kind::CuteCpp,
            "cute-dsl" => Kind::CuteDsl,
            "triton" => Kind::Triton(None),
            "triton-shared" => Kind::TritonShared,
            other => {
                let shape = other.strip_prefix("triton:").ok_or_else(refuse)?;
                let extents: Result<Vec<i64>, _> = shape.split('x').map(str::parse).collect();
                let extents = extents.map_err(|_| refuse())?;
                if extents
                    .iter()
                    .any(|&n| n < 1 || !(n as u64).is_power_of_two())
                {
                    return Err(refuse());
                }
                Kind::Triton(Some(extents))
            }
        }))
    }

    /// The value in this notation.
    pub(crate) fn write(&self, value: &Value) -> Result<String, Refusal> {
        let none = || {
            let message = format!("{} has no text in that notation", value.kind());
            Refusal::new("not_in_notation", message)
        };
        let bases = |text: Result<String, String>| {
            text.map_err(|reason| Refusal::new("not_in_notation", reason))
        };
        match (&self.0, value) {
            (Kind::Tilewright, _) => Ok(value.to_string()),
            (Kind::Triton(dims), _) => match value.as_layout() {
                Some(Ok(layout)) => bases(triton::distributed(&layout, dims.as_deref())),
                _ => Err(none()),
            },
            (Kind::TritonShared, _) => match value.as_layout() {
                Some(Ok(layout)) => bases(triton::shared(&layout)),
                _ => Err(none()),
            },
            (Kind::Pycute | Kind::CuteDsl, Value::Bool(value)) => {
                Ok(if *value { "True" } else { "False" }.to_owned())
            }
            (_, Value::Bool(value)) => Ok(value.to_string()),
            (_, Value::Layout(layout)) => Ok(self.layout(layout)),
            (_, Value::Affine(layout)) => self.affine(layout).ok_or_else(none),
            (_, Value::Swizzle(swizzle)) => Ok(self.swizzle(*swizzle)),
            (_, other) => other
                .as_tuple()
                .map(|tuple| self.tuple(&tuple, "make_tuple"))
                .ok_or_else(none),
        }
    }

    /// An integer or a tuple; `make` is the function of C++ that makes it.
    fn tuple(&self, tuple: &IntTuple, make: &str) -> String {
        let mut leaves = (0..tuple.leaves()).map(|i| tuple.leaf(i).to_string());
        self.nested(tuple, make, &mut || leaves.next().unwrap_or_default())
    }

    /// Leaves with the parentheses of `profile`.
    fn nested(&self, profile: &IntTuple, make: &str, leaf: &mut impl FnMut() -> String) -> String {
        if profile.is_int() {
            let leaf = leaf();
            let number = leaf.parse::<i64>().is_ok();
            return match self.0 {
                Kind::Cute if number => format!("_{leaf}"),
                Kind::CuteCpp if number => format!("Int<{leaf}>{{}}"),
                _ => leaf,
            };
        }
        let parts: Vec<String> = (0..profile.rank())
            .filter_map(|i| profile.get(i).ok())
            .map(|part| self.nested(&part, make, leaf))
            .collect();
        match self.0 {
            Kind::Cute => format!("({})", parts.join(",")),
            Kind::CuteCpp => format!("{make}({})", parts.join(", ")),
            // A tuple of one in Python.
            _ if parts.len() == 1 => format!("({},)", parts[0]),
            _ => format!("({})", parts.join(", ")),
        }
    }

    fn swizzle(&self, swizzle: Swizzle) -> String {
        let (b, m, s) = (swizzle.b(), swizzle.m(), swizzle.s());
        match self.0 {
            Kind::Pycute => format!("Swizzle({b},{m},{s})"),
            Kind::CuteDsl => format!("cute.make_swizzle({b}, {m}, {s})"),
            Kind::CuteCpp => format!("Swizzle<{b},{m},{s}>{{}}"),
            _ => format!("Sw<{b},{m},{s}>"),
        }
    }

    fn plain(&self, shape: &str, stride: &str) -> String {
        match self.0 {
            Kind::Pycute => format!("Layout({shape}, {stride})"),
            Kind::CuteDsl => format!("cute.make_layout({shape}, stride={stride})"),
            Kind::CuteCpp => format!("make_layout({shape}, {stride})"),
            _ => format!("{shape}:{stride}"),
        }
    }

    /// `swizzle o offset o layout` of three texts; a layout without both stays alone.
    fn composed(&self, swizzle: Swizzle, offset: Option<&str>, layout: String) -> String {
        if swizzle.is_identity() && offset.is_none() {
            return layout;
        }
        let offset = offset.unwrap_or("0");
        let swizzle = self.swizzle(swizzle);
        match self.0 {
            Kind::Pycute => format!("ComposedLayout({swizzle}, {offset}, {layout})"),
            Kind::CuteDsl => format!("cute.make_composed_layout({swizzle}, {offset}, {layout})"),
            Kind::CuteCpp => format!("composition({swizzle}, Int<{offset}>{{}}, {layout})"),
            _ => format!("{swizzle} o _{offset} o {layout}"),
        }
    }

    fn layout(&self, layout: &Swizzled) -> String {
        let plain = layout.layout();
        let text = self.plain(
            &self.tuple(&plain.shape(), "make_shape"),
            &self.tuple(&plain.stride(), "make_stride"),
        );
        let offset = (layout.offset() != 0).then(|| layout.offset().to_string());
        self.composed(layout.swizzle(), offset.as_deref(), text)
    }

    /// A layout whose strides have names, which are variables in a program; nothing if it moves by one.
    fn affine(&self, layout: &SwizzledAffine) -> Option<String> {
        let shape = layout.shape();
        let printed = layout.layout().to_string();
        let strides = printed.rsplit(':').next()?;
        let mut leaves = strides
            .split(',')
            .map(|leaf| leaf.trim_matches(['(', ')']).to_owned());
        let stride = self.nested(&shape, "make_stride", &mut || {
            leaves.next().unwrap_or_default()
        });
        let offset = layout.offset_form().as_int()?;
        let offset = (offset != 0).then(|| offset.to_string());
        let text = self.plain(&self.tuple(&shape, "make_shape"), &stride);
        Some(self.composed(layout.swizzle(), offset.as_deref(), text))
    }
}
