//! Layouts with strides known by name until run time: `(8,64):(ld,1)`.
//!
//! An [`Affine`] layout is an integer combination of static layouts of one shape, `Σ value(p)·L_p`, where the first term has
//! the constant value 1 and the others are named: `(8,64):(2*ld,1)` is `1·((8,64):(0,1)) + ld·((8,64):(2,0))`. A stride is
//! written as a sum of terms, `2*ld+1`.
//!
//! Composition with a static layout on the right distributes over the terms. It uses the digit rule with strides in `Z^K`
//! (see `modes.rs`), so that what it returns is right for *every* value of the names; a composition that exists only for
//! some values is refused.
//!
//! ```
//! use layout_core::{Affine, Layout};
//! let tile = Affine::parse("(8,64):(ld,1)").unwrap();
//! let part = tile.composition(&Layout::parse("(4,2):(2,16)").unwrap()).unwrap();
//! assert_eq!(part.to_string(), "(4,2):(2*ld,2)");
//! assert_eq!(part.bind(&[100]).unwrap().to_string(), "(4,2):(200,2)");
//! ```

use core::fmt;
use core::str::FromStr;

use crate::dynamic::IndexInt;
use crate::error::{LayoutError, attempt, fits};
use crate::int_tuple::{IntTuple, write_tuple};
use crate::layout::Layout;
use crate::modes::{Composite, Modes};
use crate::parameter::{MAX_PARAMETERS, Parameter};
use crate::parse::{ParseError, ParseErrorKind, Scanner};
use crate::profile::{MAX_MODES, Profile, ProfileBuilder};

const TERMS: usize = MAX_PARAMETERS + 1;

/// A layout whose strides are integer combinations of 1 and up to [`MAX_PARAMETERS`] named values.
#[derive(Clone, Copy)]
pub struct Affine {
    profile: Profile,
    modes: Modes<TERMS>,
    names: [Parameter; MAX_PARAMETERS],
    parameters: usize,
}

impl Affine {
    /// The static layout.
    pub const fn constant(layout: &Layout) -> Self {
        let mut modes = Modes::EMPTY;
        let mut i = 0;
        while i < layout.leaves() {
            let mut stride = [0; TERMS];
            stride[0] = layout.stride[i];
            modes.push(layout.shape[i], stride);
            i += 1;
        }
        Self {
            profile: layout.profile,
            modes,
            names: [Parameter::EMPTY; MAX_PARAMETERS],
            parameters: 0,
        }
    }

    /// Reads `(8,64):(2*ld,1)`. Each stride is an integer, a name, or a sum of `integer*name`, names and integers.
    ///
    /// # Errors
    ///
    /// Anything else, with the byte span of the offending text.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text.as_bytes());
        let layout = match scanner.affine() {
            Ok(layout) => layout,
            Err(error) => return Err(error),
        };
        match scanner.end() {
            Ok(()) => Ok(layout),
            Err(error) => Err(error),
        }
    }

    /// How many names there are.
    pub const fn parameters(&self) -> usize {
        self.parameters
    }

    /// Name `p`, in order of first use.
    ///
    /// # Errors
    ///
    /// `p` at or beyond [`parameters`](Self::parameters).
    pub const fn parameter(&self, p: usize) -> Result<Parameter, LayoutError> {
        if p < self.parameters {
            Ok(self.names[p])
        } else {
            Err(LayoutError::ModeOutOfRange {
                mode: p,
                rank: self.parameters,
            })
        }
    }

    /// The extents.
    pub const fn shape(&self) -> IntTuple {
        let mut values = [0; MAX_MODES];
        let mut i = 0;
        while i < self.modes.len {
            values[i] = self.modes.extent[i];
            i += 1;
        }
        IntTuple {
            profile: self.profile,
            values,
        }
    }

    /// Number of coordinates.
    pub const fn size(&self) -> i64 {
        let mut size = 1;
        let mut i = 0;
        while i < self.modes.len {
            size *= self.modes.extent[i];
            i += 1;
        }
        size
    }

    /// Number of top-level modes.
    pub const fn rank(&self) -> usize {
        self.profile.rank(self.profile.root())
    }

    /// The layout that the constant is multiplied with: the strides without the named terms.
    ///
    /// # Errors
    ///
    /// Offsets that do not fit.
    pub const fn constant_term(&self) -> Result<Layout, LayoutError> {
        self.term(0)
    }

    /// The layout that the value of name `p` is multiplied with.
    ///
    /// # Errors
    ///
    /// `p` at or beyond [`parameters`](Self::parameters); offsets that do not fit.
    pub const fn named_term(&self, p: usize) -> Result<Layout, LayoutError> {
        if p < self.parameters {
            self.term(p + 1)
        } else {
            Err(LayoutError::ModeOutOfRange {
                mode: p,
                rank: self.parameters,
            })
        }
    }

    const fn term(&self, k: usize) -> Result<Layout, LayoutError> {
        let mut stride = [0; MAX_MODES];
        let mut i = 0;
        while i < self.modes.len {
            stride[i] = self.modes.stride[i][k];
            i += 1;
        }
        Layout {
            profile: self.profile,
            shape: self.shape().values,
            stride,
        }
        .checked()
    }

    /// The static layout for given values of the names, in order of first use. Values beyond the names are not looked at.
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnboundParameter`] for a missing value; strides or offsets that do not fit.
    pub const fn bind(&self, values: &[i64]) -> Result<Layout, LayoutError> {
        if values.len() < self.parameters {
            return Err(LayoutError::UnboundParameter {
                parameter: values.len(),
            });
        }
        let mut stride = [0; MAX_MODES];
        let mut i = 0;
        while i < self.modes.len {
            let mut sum = self.modes.stride[i][0];
            let mut p = 0;
            while p < self.parameters {
                let term = self.modes.stride[i][p + 1].checked_mul(values[p]);
                sum = attempt!(fits(
                    sum.checked_add(attempt!(fits(term, "a stride"))),
                    "a stride"
                ));
                p += 1;
            }
            stride[i] = sum;
            i += 1;
        }
        Layout {
            profile: self.profile,
            shape: self.shape().values,
            stride,
        }
        .checked()
    }

    /// The layout, if no stride has a name in it.
    pub const fn as_static(&self) -> Option<Layout> {
        let mut i = 0;
        while i < self.modes.len {
            let mut k = 1;
            while k < TERMS {
                if self.modes.stride[i][k] != 0 {
                    return None;
                }
                k += 1;
            }
            i += 1;
        }
        match self.term(0) {
            Ok(layout) => Some(layout),
            Err(_) => None,
        }
    }

    /// The offset at linear coordinate `i` for given values of the names.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind), and overflow far outside the domain.
    pub const fn checked_index(&self, i: i64, values: &[i64]) -> Result<i64, LayoutError> {
        attempt!(self.bind(values)).checked_index(i)
    }

    /// The offset at linear coordinate `i`, in any arithmetic (see [`IndexInt`]): `values` are the names' values in order of
    /// first use.
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnboundParameter`] for a missing value.
    pub fn index_with<T: IndexInt>(&self, i: &T, values: &[T]) -> Result<T, LayoutError> {
        if values.len() < self.parameters {
            return Err(LayoutError::UnboundParameter {
                parameter: values.len(),
            });
        }
        let mut sum = crate::dynamic::Sum::new();
        let mut rest = i.clone();
        for k in 0..self.modes.len {
            let (digit, next) =
                crate::dynamic::digit(rest, self.modes.extent[k], k + 1 == self.modes.len);
            rest = next;
            for (term, &factor) in self.modes.stride[k]
                .iter()
                .enumerate()
                .take(self.parameters + 1)
            {
                if factor == 0 {
                    continue;
                }
                let scaled = digit.clone().scale(factor);
                sum.add(if term == 0 {
                    scaled
                } else {
                    scaled * values[term - 1].clone()
                });
            }
        }
        Ok(sum.finish())
    }

    /// `self ∘ b`, right for every value of the names.
    ///
    /// # Errors
    ///
    /// As [`composition`](crate::composition), where no layout is the composition for all values at once.
    pub const fn composition(&self, b: &Layout) -> Result<Self, LayoutError> {
        let Composite { profile, modes } = attempt!(self.modes.coalesced_unbounded().compose(b));
        let result = Self {
            profile,
            modes,
            names: self.names,
            parameters: self.parameters,
        };
        // The offsets of every term must fit, as they did in `self`.
        let mut k = 0;
        while k <= self.parameters {
            attempt!(result.term(k));
            k += 1;
        }
        Ok(result)
    }

    /// The same function with as few modes as possible.
    #[must_use]
    pub const fn coalesce(&self) -> Self {
        let mut modes = Modes::EMPTY;
        let mut i = 0;
        while i < self.modes.len {
            modes.push_coalesced(self.modes.extent[i], self.modes.stride[i]);
            i += 1;
        }
        if modes.len == 0 {
            modes.push(1, [0; TERMS]);
        }
        let profile = if modes.len == 1 {
            Profile::LEAF
        } else {
            Profile::flat(modes.len)
        };
        Self {
            profile,
            modes,
            names: self.names,
            parameters: self.parameters,
        }
    }

    /// Top-level mode `i`.
    ///
    /// # Errors
    ///
    /// `i` at or beyond the rank.
    pub const fn get(&self, i: usize) -> Result<Self, LayoutError> {
        let shape = self.shape();
        let Some(node) = self.profile.child(self.profile.root(), i) else {
            return Err(LayoutError::ModeOutOfRange {
                mode: i,
                rank: self.rank(),
            });
        };
        let profile = attempt!(shape.extract(node)).profile;
        let mut modes = Modes::EMPTY;
        let mut k = node.start;
        while k < node.end {
            modes.push(self.modes.extent[k], self.modes.stride[k]);
            k += 1;
        }
        Ok(Self {
            profile,
            modes,
            names: self.names,
            parameters: self.parameters,
        })
    }

    /// The number of name `name`, made known if it is new.
    const fn intern(&mut self, name: Parameter) -> Result<usize, LayoutError> {
        let mut p = 0;
        while p < self.parameters {
            if self.names[p].equals(&name) {
                return Ok(p);
            }
            p += 1;
        }
        if p == MAX_PARAMETERS {
            return Err(LayoutError::InvalidParameter {
                limit: MAX_PARAMETERS,
            });
        }
        self.names[p] = name;
        self.parameters += 1;
        Ok(p)
    }

    fn write_stride(&self, f: &mut fmt::Formatter<'_>, i: usize) -> fmt::Result {
        let stride = &self.modes.stride[i];
        let mut first = true;
        for p in 0..self.parameters {
            let factor = stride[p + 1];
            if factor == 0 {
                continue;
            }
            match factor {
                1 if first => {}
                1 => f.write_str("+")?,
                -1 => f.write_str("-")?,
                _ if first || factor < 0 => write!(f, "{factor}*")?,
                _ => write!(f, "+{factor}*")?,
            }
            f.write_str(self.names[p].as_str())?;
            first = false;
        }
        match stride[0] {
            0 if !first => Ok(()),
            constant if first || constant < 0 => write!(f, "{constant}"),
            constant => write!(f, "+{constant}"),
        }
    }
}

impl From<Layout> for Affine {
    fn from(layout: Layout) -> Self {
        Self::constant(&layout)
    }
}

impl PartialEq for Affine {
    fn eq(&self, other: &Self) -> bool {
        // By names, not by the order in which they were met.
        self.profile == other.profile
            && self.shape() == other.shape()
            && (0..self.modes.len).all(|i| self.modes.stride[i][0] == other.modes.stride[i][0])
            && self.named_strides_in(other)
            && other.named_strides_in(self)
    }
}

impl Eq for Affine {}

impl Affine {
    /// Whether every named term occurs in `other` with the same factors.
    fn named_strides_in(&self, other: &Self) -> bool {
        (0..self.parameters).all(|p| {
            let q = (0..other.parameters).find(|&q| other.names[q] == self.names[p]);
            (0..self.modes.len).all(|i| {
                self.modes.stride[i][p + 1] == q.map_or(0, |q| other.modes.stride[i][q + 1])
            })
        })
    }
}

impl core::hash::Hash for Affine {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        // Equal layouts may number their names differently, so only what does not depend on that counts.
        self.profile.hash(state);
        self.shape().hash(state);
        for i in 0..self.modes.len {
            self.modes.stride[i][0].hash(state);
        }
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tuple(f, &self.profile, |f, i| {
            write!(f, "{}", self.modes.extent[i])
        })?;
        f.write_str(":")?;
        write_tuple(f, &self.profile, |f, i| self.write_stride(f, i))
    }
}

impl fmt::Debug for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Affine {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Scanner<'_> {
    /// A layout whose strides may be sums with names.
    const fn affine(&mut self) -> Result<Affine, ParseError> {
        self.peek();
        let start = self.at;
        let shape = match self.tuple() {
            Ok(shape) => shape,
            Err(error) => return Err(error),
        };
        let mut layout = match Layout::compact(shape) {
            Ok(layout) => Affine::constant(&layout),
            Err(error) => return Err(self.error_since(start, error)),
        };
        if let Err(error) = self.require(b':') {
            return Err(error);
        }
        self.peek();
        let stride_start = self.at;
        let mut profile = ProfileBuilder::new();
        let mut depth = 0usize;
        loop {
            while self.take(b'(') {
                depth += 1;
                profile.open();
                if let Some(error) = profile.error() {
                    return Err(self.error_since(stride_start, error));
                }
            }
            let sum = match self.linear_form(&mut layout) {
                Ok(sum) => sum,
                Err(error) => return Err(error),
            };
            match profile.leaf() {
                Some(at) if at < layout.modes.len => layout.modes.stride[at] = sum,
                Some(_) => {}
                None => return Err(self.error_since(stride_start, LayoutError::TooManyModes)),
            }
            while depth > 0 && self.take(b')') {
                depth -= 1;
                profile.close();
            }
            if depth == 0 {
                break;
            }
            if !self.take(b',') {
                return Err(self.error(ParseErrorKind::Expected(')')));
            }
        }
        let profile = match profile.finish() {
            Ok(profile) => profile,
            Err(error) => return Err(self.error_since(stride_start, error)),
        };
        if let Some(leaf) = shape.profile.difference(&profile) {
            let (left, right) = (shape.leaves(), profile.leaves());
            return Err(self.error_since(start, LayoutError::NotCongruent { leaf, left, right }));
        }
        let mut k = 0;
        while k < TERMS {
            if let Err(error) = layout.term(k) {
                return Err(self.error_since(start, error));
            }
            k += 1;
        }
        Ok(layout)
    }

    /// `2*ld - n + 1`.
    const fn linear_form(&mut self, layout: &mut Affine) -> Result<[i64; TERMS], ParseError> {
        const OVERFLOW: LayoutError = LayoutError::Overflow {
            operation: "a stride",
        };
        self.peek();
        let start = self.at;
        let mut sum = [0i64; TERMS];
        let mut first = true;
        loop {
            let negative = if self.take(b'-') {
                true
            } else if self.take(b'+') || first {
                false
            } else {
                return Ok(sum);
            };
            first = false;
            let mut factor = 1;
            let mut term = 0;
            if self.at_integer() {
                factor = match self.integer() {
                    Ok(factor) => factor,
                    Err(error) => return Err(error),
                };
                if self.take(b'*') {
                    term = match self.parameter(layout) {
                        Ok(p) => p + 1,
                        Err(error) => return Err(error),
                    };
                }
            } else {
                term = match self.parameter(layout) {
                    Ok(p) => p + 1,
                    Err(error) => return Err(error),
                };
                if self.take(b'*') {
                    factor = match self.integer() {
                        Ok(factor) => factor,
                        Err(error) => return Err(error),
                    };
                }
            }
            let next = if negative {
                sum[term].checked_sub(factor)
            } else {
                sum[term].checked_add(factor)
            };
            sum[term] = match next {
                Some(next) => next,
                None => return Err(self.error_since(start, OVERFLOW)),
            };
        }
    }

    /// A stride name; its number.
    const fn parameter(&mut self, layout: &mut Affine) -> Result<usize, ParseError> {
        self.peek();
        let start = self.at;
        let name = self.identifier();
        if name.is_empty() {
            return Err(self.error(ParseErrorKind::ExpectedTuple));
        }
        let name = match Parameter::from_bytes(name) {
            Ok(name) => name,
            Err(error) => return Err(self.error_since(start, error)),
        };
        match layout.intern(name) {
            Ok(p) => Ok(p),
            Err(error) => Err(self.error_since(start, error)),
        }
    }
}
