//! Integers that are not known yet, `2*ld + 1`, and basis strides, `1@0 + 2@1`.
//!
//! Both are sums of integer multiples of symbols. A symbol is a name, or an axis: `@` with its path from the inside out,
//! `@0@1` for element 0 of element 1.

use std::fmt;

/// A constant plus integer multiples of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// The part without a name.
    pub(crate) constant: i64,
    /// Names with factors that are not 0, in order of first use.
    pub(crate) terms: Vec<(String, i64)>,
}

impl Form {
    /// The constant.
    pub(crate) fn constant(constant: i64) -> Self {
        Self {
            constant,
            terms: Vec::new(),
        }
    }

    /// The name, once.
    pub(crate) fn name(name: &str) -> Self {
        Self {
            constant: 0,
            terms: vec![(name.to_owned(), 1)],
        }
    }

    /// The basis vector of an axis, whose path is given from the inside out.
    pub(crate) fn axis(path: &[i64]) -> Self {
        let mut name = String::new();
        for index in path {
            name.push('@');
            name.push_str(&index.to_string());
        }
        Self::name(&name)
    }

    /// Whether an axis is among the symbols.
    pub(crate) fn has_axes(&self) -> bool {
        self.terms.iter().any(|(name, _)| name.starts_with('@'))
    }

    /// The sum with `factor` times another form, if it fits.
    pub(crate) fn add(&self, factor: i64, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = self
            .constant
            .checked_add(other.constant.checked_mul(factor)?)?;
        for (name, n) in &other.terms {
            let n = n.checked_mul(factor)?;
            match sum.terms.iter_mut().find(|term| term.0 == *name) {
                Some(term) => term.1 = term.1.checked_add(n)?,
                None => sum.terms.push((name.clone(), n)),
            }
        }
        sum.terms.retain(|term| term.1 != 0);
        Some(sum)
    }

    /// The integer, if no name is left.
    pub(crate) fn as_int(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, factor)) in self.terms.iter().enumerate() {
            let plus = if i > 0 && *factor > 0 { "+" } else { "" };
            match factor {
                _ if name.starts_with('@') => write!(f, "{plus}{factor}{name}")?,
                1 => write!(f, "{plus}{name}")?,
                -1 => write!(f, "-{name}")?,
                _ => write!(f, "{plus}{factor}*{name}")?,
            }
        }
        match self.constant {
            0 if !self.terms.is_empty() => Ok(()),
            constant if self.terms.is_empty() || constant < 0 => write!(f, "{constant}"),
            constant => write!(f, "+{constant}"),
        }
    }
}
