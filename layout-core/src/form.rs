//! Integers that are not known yet: `2*ld+1`.

use core::fmt;

use crate::basis::{Basis, Names};
use crate::error::{LayoutError, attempt};
use crate::parameter::{MAX_PARAMETERS, Parameter};
use crate::strided::{Strided, add_scaled};

/// Components of a stride with names: the constant, and one for each name.
pub(crate) const TERMS: usize = MAX_PARAMETERS + 1;

/// A constant plus integer multiples of names: what a layout with named strides gives at a coordinate.
///
/// ```
/// use layout_core::Affine;
/// let tile = Affine::parse("(8,64):(2*ld,1)").unwrap();
/// let offset = tile.checked_index(8 * 4 + 3).unwrap();
/// assert_eq!(offset.to_string(), "6*ld+4");
/// assert_eq!(offset.bind(&[100]).unwrap(), 604);
/// ```
#[derive(Clone, Copy)]
pub struct LinearForm {
    pub(crate) names: Names,
    pub(crate) value: [i64; TERMS],
}

impl LinearForm {
    /// The constant.
    ///
    /// ```
    /// use layout_core::LinearForm;
    /// assert_eq!(LinearForm::constant(3).as_int(), Some(3));
    /// ```
    pub const fn constant(value: i64) -> Self {
        let mut form = Self {
            names: Names::NONE,
            value: [0; TERMS],
        };
        form.value[0] = value;
        form
    }

    /// The part without a name.
    ///
    /// ```
    /// use layout_core::Affine;
    /// assert_eq!(Affine::parse("4:2*ld+1").unwrap().checked_index(3).unwrap().constant_term(), 3);
    /// ```
    pub const fn constant_term(&self) -> i64 {
        self.value[0]
    }

    /// The integer that `name` is multiplied by.
    ///
    /// ```
    /// use layout_core::{Affine, Parameter};
    /// let offset = Affine::parse("4:2*ld+1").unwrap().checked_index(3).unwrap();
    /// assert_eq!(offset.factor(&Parameter::new("ld").unwrap()), 6);
    /// ```
    pub const fn factor(&self, name: &Parameter) -> i64 {
        match self.names.find(name) {
            Some(p) => self.value[p + 1],
            None => 0,
        }
    }

    /// The integer, if no name is left.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let tile = Affine::parse("(8,64):(ld,1)").unwrap();
    /// assert_eq!(tile.checked_index(16).unwrap().as_int(), Some(2));
    /// assert_eq!(tile.checked_index(1).unwrap().as_int(), None);
    /// ```
    pub const fn as_int(&self) -> Option<i64> {
        let mut p = 1;
        while p < TERMS {
            if self.value[p] != 0 {
                return None;
            }
            p += 1;
        }
        Some(self.value[0])
    }

    /// The value for given values of the names, in order of first use in the layout that this comes from.
    ///
    /// ```
    /// use layout_core::Affine;
    /// let tile = Affine::parse("(8,64):(ld,1)").unwrap();
    /// assert_eq!(tile.checked_index(9).unwrap().bind(&[100]), Ok(101));
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnboundName`] for a missing value; overflow.
    pub const fn bind(&self, values: &[i64]) -> Result<i64, LayoutError> {
        bound(&self.names, &self.value, values, "an offset")
    }
}

/// The value of a form.
pub(crate) const fn bound(
    names: &Names,
    form: &[i64; TERMS],
    values: &[i64],
    operation: &'static str,
) -> Result<i64, LayoutError> {
    if values.len() < names.len {
        return Err(LayoutError::UnboundName {
            name: names.name[values.len()],
        });
    }
    let mut sum = [form[0]];
    let mut p = 0;
    while p < names.len {
        sum = attempt!(add_scaled(&sum, form[p + 1], &[values[p]], operation));
        p += 1;
    }
    Ok(sum[0])
}

impl Strided<TERMS> {
    pub(crate) const fn form(&self, value: [i64; TERMS]) -> LinearForm {
        LinearForm {
            names: self.basis.names(),
            value,
        }
    }
}

impl PartialEq for LinearForm {
    fn eq(&self, other: &Self) -> bool {
        // By names, not by the order in which they were met.
        let factors = |a: &Self, b: &Self| {
            (0..a.names.len).all(|p| a.value[p + 1] == b.factor(&a.names.name[p]))
        };
        self.value[0] == other.value[0] && factors(self, other) && factors(other, self)
    }
}

impl Eq for LinearForm {}

impl fmt::Display for LinearForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Basis::Names(self.names).write_vector(f, &self.value)
    }
}

impl fmt::Debug for LinearForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
