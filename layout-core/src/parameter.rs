//! Names of strides that are known at run time only.

use core::fmt;

use crate::error::LayoutError;

/// Stride names that a layout can have.
///
/// ```
/// use layout_core::{Affine, MAX_PARAMETERS};
/// assert_eq!(MAX_PARAMETERS, 4);
/// assert_eq!(Affine::parse("(2,2,2,2,2):(a,b,c,d,e)").unwrap_err().code(), "invalid_parameter");
/// ```
pub const MAX_PARAMETERS: usize = 4;

/// Bytes of a stride name.
const NAME_LIMIT: usize = 15;

/// A stride name: 1 to 15 letters, digits or `_`, not starting with a digit.
///
/// ```
/// use layout_core::Parameter;
/// const LD: Parameter = layout_core::expect(Parameter::new("ld"));
/// assert_eq!(LD.to_string(), "ld");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameter {
    bytes: [u8; NAME_LIMIT],
    len: u8,
}

impl Parameter {
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; NAME_LIMIT],
        len: 0,
    };

    /// The name `name`.
    ///
    /// ```
    /// use layout_core::Parameter;
    /// assert_eq!(Parameter::new("ld_a").unwrap().as_str(), "ld_a");
    /// assert_eq!(Parameter::new("2d").unwrap_err().code(), "invalid_parameter");
    /// ```
    ///
    /// # Errors
    ///
    /// [`LayoutError::InvalidName`] unless the name is 1 to 15 letters, digits or `_` and starts with no digit.
    pub const fn new(name: &str) -> Result<Self, LayoutError> {
        Self::from_bytes(name.as_bytes())
    }

    pub(crate) const fn from_bytes(name: &[u8]) -> Result<Self, LayoutError> {
        let error = LayoutError::InvalidName { length: name.len() };
        if name.is_empty() || name.len() > NAME_LIMIT || name[0].is_ascii_digit() {
            return Err(error);
        }
        let mut bytes = [0; NAME_LIMIT];
        let mut i = 0;
        while i < name.len() {
            if !(name[i].is_ascii_alphanumeric() || name[i] == b'_') {
                return Err(error);
            }
            bytes[i] = name[i];
            i += 1;
        }
        Ok(Self {
            bytes,
            len: name.len() as u8,
        })
    }

    /// The name.
    ///
    /// ```
    /// use layout_core::Parameter;
    /// assert_eq!(Parameter::new("ld").unwrap().as_str(), "ld");
    /// ```
    pub const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len as usize).0) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    pub(crate) const fn equals(&self, other: &Self) -> bool {
        let mut i = 0;
        while i < NAME_LIMIT {
            if self.bytes[i] != other.bytes[i] {
                return false;
            }
            i += 1;
        }
        true
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
