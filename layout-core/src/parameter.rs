//! Names of strides that are known at run time only.

use core::fmt;

use crate::error::LayoutError;

/// Stride names that a layout can have.
pub const MAX_PARAMETERS: usize = 4;

/// Bytes of a stride name.
const NAME_LIMIT: usize = 15;

/// A stride name: 1 to 15 letters, digits or `_`, not starting with a digit.
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
    /// # Errors
    ///
    /// [`LayoutError::InvalidParameter`] for anything else than 1 to 15 letters, digits or `_`, or a digit in front.
    pub const fn new(name: &str) -> Result<Self, LayoutError> {
        Self::from_bytes(name.as_bytes())
    }

    pub(crate) const fn from_bytes(name: &[u8]) -> Result<Self, LayoutError> {
        const ERROR: LayoutError = LayoutError::InvalidParameter {
            limit: MAX_PARAMETERS,
        };
        if name.is_empty() || name.len() > NAME_LIMIT || name[0].is_ascii_digit() {
            return Err(ERROR);
        }
        let mut bytes = [0; NAME_LIMIT];
        let mut i = 0;
        while i < name.len() {
            if !(name[i].is_ascii_alphanumeric() || name[i] == b'_') {
                return Err(ERROR);
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
