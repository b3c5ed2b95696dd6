//! What an index function is to compute: a layout, the coordinates it takes, and the ranges they come from.
//!
//! A function takes either one linear coordinate or one coordinate for each top-level mode. Ranges decide everything that follows:
//! the machine types, whether a division is a multiplication, which bits can meet. A coordinate's range is taken from its extent:
//! `0..extent` of the mode, or `0..size` for a linear coordinate, *the last mode included*, although the algebra itself lets the last mode
//! run on; [`Bound`] widens (or narrows) it. Strides that have names are parameters of the function, in `0..=u32::MAX` unless said
//! otherwise.
//!
//! ```
//! use layout_codegen::index::{function, IndexSpec, Target};
//! let spec = IndexSpec::parse("offset", "Sw<3,3,3> o (8,64):(64,1)").unwrap().named(&["row", "col"]);
//! let code = function(&spec, Target::Cuda).unwrap();
//! assert!(code.contains("unsigned offset(unsigned row, unsigned col)"), "{code}");
//! ```

use std::fmt;

use layout_core::{
    Affine, Function, Layout, LayoutError, ParseError, ParseErrorKind, Step, Swizzled,
    SwizzledAffine,
};

use super::code::{Ty, cost, type_of};
use super::expr::{Expr, Pool, children};
use super::layout::{Forms, index, strided, swizzle, unswizzle};

/// `[steps o] [swizzle o] [offset o] layout`, where strides and the offset may have names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexLayout {
    /// The swizzled layout.
    pub layout: SwizzledAffine,
    /// What comes after it, the last step first; usually nothing.
    pub steps: Vec<Step>,
}

impl IndexLayout {
    /// Reads `Sw<3,4,3> o 16 o (8,64):(ld,1)`, or any composition: swizzle and offset may be missing, strides may be sums with
    /// names.
    ///
    /// ```
    /// use layout_codegen::index::IndexLayout;
    /// assert_eq!(IndexLayout::parse("(8,64):(ld,1) o (4,2):(2,16)").unwrap().to_string(), "(4,2):(2*ld,2)");
    /// ```
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text; a composition that has no integer offsets.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let function = Function::parse(text)?;
        Self::from_function(&function).map_err(|error| ParseError {
            span: (0, text.len()),
            kind: ParseErrorKind::Layout(error),
        })
    }

    /// The layout that a composition is.
    ///
    /// # Errors
    ///
    /// Coordinates as offsets, matrices, functions without a shape.
    pub fn from_function(function: &Function) -> Result<Self, LayoutError> {
        const OPERATION: &str = "index code";
        match function {
            Function::Layout(layout) => Ok((*layout).into()),
            Function::Affine(layout) => Ok(Self {
                layout: *layout,
                steps: Vec::new(),
            }),
            Function::Chain(chain) => match chain.inner() {
                Some(inner) => Ok(Self {
                    steps: chain.steps().to_vec(),
                    ..inner.into()
                }),
                None => Err(LayoutError::NoShape {
                    operation: OPERATION,
                }),
            },
            Function::Coords(_) => Err(LayoutError::CoordinateStrides {
                operation: OPERATION,
            }),
            Function::Matrix(_) => Err(LayoutError::MatrixOperand {
                operation: OPERATION,
            }),
            _ => Err(LayoutError::NoShape {
                operation: OPERATION,
            }),
        }
    }

    /// The layout, if no stride has a name and no steps come after it.
    pub fn as_static(&self) -> Option<Swizzled> {
        if self.steps.is_empty() {
            self.layout.as_static()
        } else {
            None
        }
    }
}

impl fmt::Display for IndexLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step} o ")?;
        }
        write!(f, "{}", self.layout)
    }
}

impl From<Layout> for IndexLayout {
    fn from(layout: Layout) -> Self {
        Swizzled::from(layout).into()
    }
}

impl From<Swizzled> for IndexLayout {
    fn from(layout: Swizzled) -> Self {
        Self {
            layout: layout.into(),
            steps: Vec::new(),
        }
    }
}

impl From<Affine> for IndexLayout {
    fn from(affine: Affine) -> Self {
        Self {
            layout: Swizzled::plain(affine),
            steps: Vec::new(),
        }
    }
}

/// Which values a coordinate takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// `0..extent`.
    Extent,
    /// `0..=n`: more than the extent lets the last leaf run on, less gives tighter code.
    UpTo(i64),
    /// Every value of its type from 0 up (of `u32` unless the type is given).
    Unbounded,
}

/// A coordinate of an index function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coordinate {
    /// Its name in the generated code.
    pub name: String,
    /// Its values.
    pub bound: Bound,
    /// Its type; none for the narrower of `u32` and `u64` that holds its values.
    pub ty: Option<Ty>,
}

/// What is known of a named stride.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stride {
    /// Its name in the layout.
    pub name: String,
    /// Least value.
    pub lo: i64,
    /// Greatest value.
    pub hi: i64,
    /// Its type; none for the narrowest that holds its values.
    pub ty: Option<Ty>,
}

/// An index function to be generated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub layout: IndexLayout,
    /// One linear coordinate, or one for each top-level mode.
    pub coordinates: Vec<Coordinate>,
    /// Ranges and types of named strides, where they are not the default.
    pub strides: Vec<Stride>,
    /// The type of the result; none for the narrowest that holds every index.
    ///
    /// With named strides whose range is the default, a type given here limits the strides to what fits it, and the generated
    /// comment says so.
    pub result: Option<Ty>,
}

/// Why there is no index function.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IndexError {
    /// The layout's text is wrong.
    Parse(ParseError),
    /// An operation of the algebra refused.
    Layout(LayoutError),
    /// Neither one coordinate nor one for each mode.
    Coordinates {
        /// Top-level modes.
        rank: usize,
        /// Coordinates given.
        given: usize,
    },
    /// A name that the target cannot use.
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// Something was said of a name that is neither a coordinate nor a stride.
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A range without values, or with negative coordinates.
    Range {
        /// Whose.
        name: String,
        /// Its least value.
        lo: i64,
        /// Its greatest value.
        hi: i64,
    },
    /// Values that the asked type does not hold.
    DoesNotFit {
        /// Whose.
        name: String,
        /// The type.
        ty: Ty,
        /// Least value.
        lo: i128,
        /// Greatest value.
        hi: i128,
    },
    /// Some value on the way to the index needs more than 64 bits.
    TooLarge {
        /// Its least value.
        lo: i128,
        /// Its greatest value.
        hi: i128,
    },
    /// A divisor outside `1..2³¹`.
    Divisor(u32),
    /// A dividend of a fast division that may lie outside `0..2³¹`.
    Dividend {
        /// Its least value.
        lo: i128,
        /// Its greatest value.
        hi: i128,
    },
}

impl IndexError {
    /// A stable name for programs, in `snake_case`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Parse(e) => e.code(),
            Self::Layout(e) => e.code(),
            Self::Coordinates { .. } => "coordinate_mismatch",
            Self::Name { .. } => "invalid_name",
            Self::Unknown { .. } => "unknown_name",
            Self::Range { .. } => "invalid_range",
            Self::DoesNotFit { .. } => "does_not_fit",
            Self::TooLarge { .. } => "too_large",
            Self::Divisor(_) => "divisor_out_of_range",
            Self::Dividend { .. } => "dividend_out_of_range",
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse(e) => write!(f, "{}", e.message()),
            Self::Layout(e) => e.fmt(f),
            Self::Coordinates { rank: 1, given } => {
                write!(f, "{given} coordinates for a layout of rank 1: give one")
            }
            Self::Coordinates { rank, given } => write!(
                f,
                "{given} coordinates for a layout of rank {rank}: give {rank}, or one linear coordinate"
            ),
            Self::Name { name, reason } => write!(f, "`{name}` {reason}; choose another name"),
            Self::Unknown { name, known } => write!(
                f,
                "`{name}` is neither a coordinate nor a stride; there are {}",
                known.join(", ")
            ),
            Self::Range { name, lo, hi } => write!(
                f,
                "{lo}..={hi} is no range for `{name}`: coordinates start at 0, and no range is empty"
            ),
            Self::DoesNotFit { name, ty, lo, hi } => write!(
                f,
                "`{name}` takes values from {lo} to {hi}, which {ty} does not hold; choose a wider type or state a narrower range"
            ),
            Self::TooLarge { lo, hi } => write!(
                f,
                "a value on the way to the index lies in {lo}..={hi}, beyond 64 bits; state narrower ranges"
            ),
            Self::Divisor(d) => {
                write!(f, "{d} is no divisor for fast division: give 1 to 2^31 - 1")
            }
            Self::Dividend { lo, hi } => write!(
                f,
                "a value in {lo}..={hi} can't be divided fast: it must lie in 0..2^31"
            ),
        }
    }
}

impl std::error::Error for IndexError {}

impl From<ParseError> for IndexError {
    fn from(e: ParseError) -> Self {
        Self::Parse(e)
    }
}

impl From<LayoutError> for IndexError {
    fn from(e: LayoutError) -> Self {
        Self::Layout(e)
    }
}

/// A parameter of the generated function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// Its least value.
    pub lo: i64,
    /// Its greatest value.
    pub hi: i64,
}

/// An index function as an expression.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The expressions.
    pub pool: Pool,
    /// The index.
    pub index: Expr,
    /// Coordinates, then strides.
    pub parameters: Vec<Parameter>,
    /// The type of the result.
    pub ty: Ty,
    /// Least and greatest index.
    pub range: (i128, i128),
}

/// Whether `ty` holds everything from `lo` to `hi`.
pub(super) fn holds(ty: Ty, lo: i128, hi: i128) -> bool {
    let (least, most) = ty.range();
    least <= lo && hi <= most
}

impl IndexSpec {
    /// The function `name` of `layout`, with one coordinate for each mode, named `i0`, `i1`, … (`i` for rank 1).
    pub fn new(name: &str, layout: impl Into<IndexLayout>) -> Self {
        let layout: IndexLayout = layout.into();
        let rank = layout.layout.rank();
        let spec = Self {
            name: name.to_owned(),
            layout,
            coordinates: Vec::new(),
            strides: Vec::new(),
            result: None,
        };
        match rank {
            1 => spec.linear(),
            rank => {
                let names: Vec<_> = (0..rank).map(|i| format!("i{i}")).collect();
                spec.named(&names)
            }
        }
    }

    /// As [`IndexSpec::new`], of a text such as `Sw<3,4,3> o (8,64):(ld,1)`.
    ///
    /// # Errors
    ///
    /// [`IndexError::Parse`] with the byte span of the offending text.
    pub fn parse(name: &str, text: &str) -> Result<Self, IndexError> {
        Ok(Self::new(name, IndexLayout::parse(text)?))
    }

    /// Takes one linear coordinate, `i`.
    #[must_use]
    pub fn linear(self) -> Self {
        self.named(&["i"])
    }

    /// Takes these coordinates: one linear coordinate, or one for each top-level mode.
    #[must_use]
    pub fn named<S: AsRef<str>>(mut self, names: &[S]) -> Self {
        self.coordinates = names
            .iter()
            .map(|name| Coordinate {
                name: name.as_ref().to_owned(),
                bound: Bound::Extent,
                ty: None,
            })
            .collect();
        self
    }

    /// Says which values the coordinate at place `i` takes. A place beyond the coordinates is one too many, which
    /// [`lower`](IndexSpec::lower) refuses.
    #[must_use]
    pub fn bounded(mut self, i: usize, bound: Bound) -> Self {
        let modes = self.layout.layout.layout().rank();
        if i >= self.coordinates.len() {
            // More than there are modes, so that they are not taken for one a mode.
            for place in self.coordinates.len()..=modes {
                self.coordinates.push(Coordinate {
                    name: format!("c{place}"),
                    bound: Bound::Extent,
                    ty: None,
                });
            }
        }
        if let Some(c) = self.coordinates.get_mut(i) {
            c.bound = bound;
        }
        self
    }

    /// Says that the named stride lies in `lo..=hi`.
    #[must_use]
    pub fn stride(mut self, name: &str, lo: i64, hi: i64) -> Self {
        self.strides.push(Stride {
            name: name.to_owned(),
            lo,
            hi,
            ty: None,
        });
        self
    }

    /// The type of the result.
    #[must_use]
    pub fn result(mut self, ty: Ty) -> Self {
        self.result = Some(ty);
        self
    }

    /// The function as an expression, with its parameters and types.
    ///
    /// # Errors
    ///
    /// A wrong number of coordinates, names that clash, ranges without values, types that do not hold their values, and layouts
    /// whose offsets do not fit 64 bits under the stated ranges.
    pub fn lower(&self) -> Result<Lowered, IndexError> {
        let coordinates = self.coordinate_parameters()?;
        match self.lower_with(&coordinates, i64::from(u32::MAX)) {
            // The strides nobody has limited are limited by the result's type: the greatest common bound that fits.
            Err(IndexError::DoesNotFit { .. } | IndexError::TooLarge { .. })
                if self.has_free_strides() =>
            {
                let fits = |bound: i64| self.lower_with(&coordinates, bound);
                let (mut good, mut bad) = (1, i64::from(u32::MAX));
                let mut best = fits(good)?;
                while bad - good > 1 {
                    let middle = good + (bad - good) / 2;
                    match fits(middle) {
                        Ok(lowered) => (good, best) = (middle, lowered),
                        Err(_) => bad = middle,
                    }
                }
                Ok(best)
            }
            other => other,
        }
    }

    fn stride_names(&self) -> Vec<String> {
        let affine = &self.layout.layout.layout();
        (0..affine.parameters())
            .filter_map(|p| affine.parameter(p).ok())
            .map(|p| p.as_str().to_owned())
            .collect()
    }

    fn has_free_strides(&self) -> bool {
        self.stride_names()
            .iter()
            .any(|name| self.strides.iter().all(|s| s.name != *name))
    }

    fn coordinate_parameters(&self) -> Result<Vec<Parameter>, IndexError> {
        let affine = &self.layout.layout.layout();
        let (rank, given) = (affine.rank(), self.coordinates.len());
        if given == 0 || (given != 1 && given != rank) {
            return Err(IndexError::Coordinates { rank, given });
        }
        let mut parameters = Vec::new();
        for (i, c) in self.coordinates.iter().enumerate() {
            let extent = if given == 1 {
                affine.size()
            } else {
                affine.get(i)?.size()
            };
            let hi = match c.bound {
                Bound::Extent => extent - 1,
                Bound::UpTo(hi) => hi,
                Bound::Unbounded => match c.ty.unwrap_or(Ty::U32) {
                    Ty::U32 => u32::MAX.into(),
                    Ty::S32 => i32::MAX.into(),
                    Ty::U64 | Ty::S64 => i64::MAX,
                },
            };
            parameters.push(parameter(&c.name, 0, hi, c.ty)?);
        }
        Ok(parameters)
    }

    /// The parameters, strides without a stated range limited by `bound`.
    fn lower_with(&self, coordinates: &[Parameter], bound: i64) -> Result<Lowered, IndexError> {
        let mut parameters = coordinates.to_vec();
        let names = self.stride_names();
        for name in &names {
            let stated = self.strides.iter().find(|s| s.name == *name);
            parameters.push(match stated {
                Some(s) => parameter(name, s.lo, s.hi, s.ty)?,
                None => parameter(name, 0, bound, Some(Ty::U32))?,
            });
        }
        self.check_names(&parameters, &names)?;

        let mut pool = Pool::new();
        let mut vars = Vec::new();
        for p in &parameters {
            vars.push(pool.var(&p.name, p.lo, p.hi, 0));
        }
        let (coords, strides) = vars.split_at(coordinates.len());
        // The digits of the swizzled form distribute; the shorter sum may yet be the better thing to swizzle whole.
        let forms: &[Forms] = if self.layout.layout.swizzle().is_identity() {
            &[Forms::All]
        } else {
            &[Forms::Digits, Forms::All]
        };
        let mut found: Option<(usize, Expr)> = None;
        for &forms in forms {
            let y = self.inner(&mut pool, coords, strides, forms)?;
            check_widths(&pool, y)?;
            let e = self.finish(&mut pool, y)?;
            let c = cost(&mut pool, &[e]);
            if found.is_none_or(|(least, _)| c < least) {
                found = Some((c, e));
            }
        }
        let Some((_, index)) = found else {
            return Err(LayoutError::EmptyTuple.into());
        };
        check_widths(&pool, index)?;
        let f = pool.facts(index);
        let mut range = (f.lo, f.hi);
        let within = self.coordinates.iter().all(|c| c.bound == Bound::Extent);
        if within && let Some(layout) = self.layout.as_static() {
            // Exact, where bits and intervals only bound it.
            let (lo, hi) = layout.offset_range();
            range = (range.0.max(lo.into()), range.1.min(hi.into()));
        }
        let ty = match self.result {
            Some(ty) if holds(ty, range.0, range.1) => ty,
            Some(ty) => {
                return Err(IndexError::DoesNotFit {
                    name: self.name.clone(),
                    ty,
                    lo: range.0,
                    hi: range.1,
                });
            }
            None => match type_of(&pool, index) {
                Ty::U64 | Ty::S64 | Ty::S32 if holds(Ty::U32, range.0, range.1) => Ty::U32,
                Ty::S64 if range.0 >= 0 => Ty::U64,
                ty => ty,
            },
        };
        Ok(Lowered {
            pool,
            index,
            parameters,
            ty,
            range,
        })
    }

    /// The swizzle and the steps after `offset + L(coords)`.
    fn finish(&self, pool: &mut Pool, inner: Expr) -> Result<Expr, IndexError> {
        let mut e = swizzle(pool, self.layout.layout.swizzle(), inner);
        for step in self.layout.steps.iter().rev() {
            e = match step {
                Step::Swizzle(s) => swizzle(pool, *s, e),
                Step::InverseSwizzle(s) => unswizzle(pool, *s, e),
                Step::Offset(n) => {
                    let n = pool.constant(*n);
                    pool.add(e, n)
                }
                Step::Layout(layout) => index(pool, layout, &[e])?,
                _ => {
                    return Err(LayoutError::Unsupported {
                        operation: "index code",
                        given: "a step of this kind",
                        accepted: "swizzles, offsets and layouts",
                    }
                    .into());
                }
            };
            check_widths(pool, e)?;
        }
        Ok(e)
    }

    /// `offset + L(coords)`.
    fn inner(
        &self,
        pool: &mut Pool,
        coords: &[Expr],
        strides: &[Expr],
        forms: Forms,
    ) -> Result<Expr, IndexError> {
        let affine = &self.layout.layout.layout();
        let offset = self.layout.layout.offset_form();
        let mut sum = pool.constant(offset.constant_term());
        for (p, &value) in strides.iter().enumerate() {
            let factor = offset.factor(&affine.parameter(p)?);
            let term = pool.scale(value, factor);
            sum = pool.add(sum, term);
        }
        for (i, &coord) in coords.iter().enumerate() {
            let mode = if coords.len() == 1 {
                *affine
            } else {
                affine.get(i)?
            };
            let constant = mode.constant_term();
            let mut leaves = Vec::new();
            for leaf in 0..constant.leaves() {
                let (extent, stride) = constant.leaf(leaf);
                let mut stride = pool.constant(stride);
                for (p, &value) in strides.iter().enumerate() {
                    let factor = mode.named_term(p)?.leaf(leaf).1;
                    let term = pool.scale(value, factor);
                    stride = pool.add(stride, term);
                }
                leaves.push((extent, stride));
            }
            let part = strided(pool, &leaves, coord, forms);
            sum = pool.add(sum, part);
        }
        Ok(sum)
    }

    fn check_names(&self, parameters: &[Parameter], strides: &[String]) -> Result<(), IndexError> {
        check_identifier(&self.name)?;
        for (i, p) in parameters.iter().enumerate() {
            check_identifier(&p.name)?;
            if p.name == self.name || parameters[..i].iter().any(|q| q.name == p.name) {
                return Err(IndexError::Name {
                    name: p.name.clone(),
                    reason: "is used twice",
                });
            }
        }
        for s in &self.strides {
            if !strides.contains(&s.name) {
                return Err(IndexError::Unknown {
                    name: s.name.clone(),
                    known: parameters.iter().map(|p| p.name.clone()).collect(),
                });
            }
        }
        Ok(())
    }
}

fn parameter(name: &str, lo: i64, hi: i64, ty: Option<Ty>) -> Result<Parameter, IndexError> {
    let refused = || IndexError::Range {
        name: name.to_owned(),
        lo,
        hi,
    };
    if lo > hi {
        return Err(refused());
    }
    let narrowest = [Ty::U32, Ty::S32, Ty::U64, Ty::S64]
        .into_iter()
        .find(|&ty| holds(ty, lo.into(), hi.into()))
        .unwrap_or(Ty::S64);
    let ty = ty.unwrap_or(narrowest);
    if !holds(ty, lo.into(), hi.into()) {
        return Err(IndexError::DoesNotFit {
            name: name.to_owned(),
            ty,
            lo: lo.into(),
            hi: hi.into(),
        });
    }
    Ok(Parameter {
        name: name.to_owned(),
        ty,
        lo,
        hi,
    })
}

/// Names are identifiers in all targets.
pub(super) fn check_identifier(name: &str) -> Result<(), IndexError> {
    let refuse = |reason| {
        Err(IndexError::Name {
            name: name.to_owned(),
            reason,
        })
    };
    let mut chars = name.chars();
    let first = chars.next();
    if !first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        || !chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        || name.trim_matches('_').is_empty()
    {
        return refuse("is no identifier of ASCII letters, digits and _");
    }
    Ok(())
}

/// Every value on the way to `e` fits 64 bits.
fn check_widths(pool: &Pool, e: Expr) -> Result<(), IndexError> {
    let f = pool.facts(e);
    if f.lo < i64::MIN.into() || f.hi > i64::MAX.into() {
        return Err(IndexError::TooLarge { lo: f.lo, hi: f.hi });
    }
    for child in children(pool.node(e)) {
        check_widths(pool, child)?;
    }
    Ok(())
}
