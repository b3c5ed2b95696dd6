//! Which keys a query sees: a window around its own position, aligned at the first or at the last keys.
//!
//! ```text
//! position of query i     i  (top left)      i + keys − queries  (bottom right)
//! it sees key j           position − left ≤ j ≤ position + right
//! ```
//!
//! A block does not load tiles of keys that none of its queries sees. Tiles that all of its queries see need no mask.

use layout_codegen::index::Expr;
use layout_codegen::ir::{Cmp, Kernel};
use layout_codegen::value::Predicate;
use layout_codegen::view::{Fragment, ViewError};

use super::MOST;
use crate::KernelError;

/// The position of a query among the keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Align {
    /// Query i is at key i, as with `is_causal` of `PyTorch`.
    #[default]
    TopLeft,
    /// The last query is at the last key: query i is at key i + keys − queries, as with `FlashAttention` from 2.1 on.
    BottomRight,
}

/// The keys that a query sees, by their distance from its position.
///
/// ```
/// use tilewright_kernels::attention::{Align, Mask};
///
/// let last_hundred = Mask { left: Some(99), align: Align::BottomRight, ..Mask::CAUSAL };
/// assert_eq!(last_hundred.keys_of(0, [1, 500]), 400..500);
/// assert_eq!(last_hundred.keys_of(2, [10, 5]), 0..0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mask {
    /// How many keys before its position a query sees; `None` for all.
    pub left: Option<i64>,
    /// How many keys after its position a query sees; `None` for all.
    pub right: Option<i64>,
    /// The position of a query.
    pub align: Align,
}

impl Mask {
    /// Every query sees all keys.
    pub const ALL: Self = Self {
        left: None,
        right: None,
        align: Align::TopLeft,
    };

    /// Query i sees keys 0 to i.
    pub const CAUSAL: Self = Self {
        right: Some(0),
        ..Self::ALL
    };

    /// The keys that query `i` sees of `[queries, keys]`.
    pub fn keys_of(self, i: u64, [queries, keys]: [u64; 2]) -> std::ops::Range<u64> {
        let [i, queries, keys] = [i, queries, keys].map(i128::from);
        let at = match self.align {
            Align::TopLeft => i,
            Align::BottomRight => i + keys - queries,
        };
        let first = self.left.map_or(0, |left| at - i128::from(left));
        let end = self.right.map_or(keys, |right| at + i128::from(right) + 1);
        let end = end.clamp(0, keys);
        let first = first.clamp(0, keys);
        if first < end {
            first as u64..end as u64
        } else {
            0..0
        }
    }

    /// Checks the numbers.
    pub(super) fn validate(self) -> Result<(), KernelError> {
        let sides = [
            ("keys of the window before a query", self.left),
            ("keys of the window after a query", self.right),
        ];
        for (what, given) in sides {
            if let Some(given) = given.filter(|keys| !(0..=MOST).contains(keys)) {
                return Err(KernelError::Number {
                    what,
                    given: given.to_string(),
                    accepted: "0 to 16777216",
                });
            }
        }
        Ok(())
    }
}

/// A mask, and the sizes of what it masks.
#[derive(Clone, Copy)]
pub(super) struct Masked {
    pub(super) mask: Mask,
    pub(super) queries: Expr,
    pub(super) keys: Expr,
}

impl Masked {
    /// The position of query `row`, plus `more`.
    fn position(&self, k: &mut Kernel, row: Expr, more: i64) -> Expr {
        let terms = [(1, row), (1, self.keys), (-1, self.queries)];
        match self.mask.align {
            Align::TopLeft => k.linear(&terms[..1], more),
            Align::BottomRight => k.linear(&terms, more),
        }
    }

    /// The first key that query `row + more` sees.
    fn first(&self, k: &mut Kernel, row: Expr, more: i64) -> Expr {
        let Some(left) = self.mask.left else {
            return k.constant(0);
        };
        let at = self.position(k, row, more - left);
        k.clamp(at, 0, i64::MAX)
    }

    /// The end of the keys that query `row + more` sees.
    fn end(&self, k: &mut Kernel, row: Expr, more: i64) -> Expr {
        let Some(right) = self.mask.right else {
            return self.keys;
        };
        let at = self.position(k, row, more + right + 1);
        let at = k.clamp(at, 0, i64::MAX);
        k.smaller(self.keys, at)
    }

    /// The first tile of `n` keys that some of the `rows` queries from `row` on see, and the number of such tiles.
    pub(super) fn tiles(
        &self,
        k: &mut Kernel,
        (row, rows): (Expr, i64),
        n: i64,
    ) -> Result<[Expr; 2], ViewError> {
        let (first, end) = (self.first(k, row, 0), self.end(k, row, rows - 1));
        let first = k.div(first, n);
        let seen = k.linear(&[(1, end), (-n, first)], 0);
        let seen = k.clamp(seen, 0, MOST);
        Ok([first, k.tiles_in(seen, n)?])
    }

    /// Whether the last of `m` queries from `row` on sees keys from `key` on, and whether there is any of them.
    pub(super) fn sees(&self, k: &mut Kernel, [row, key]: [Expr; 2], m: i64) -> Predicate {
        let end = self.end(k, row, m - 1);
        let there = Predicate::of(k, row, Cmp::Lt, self.queries);
        let before_end = Predicate::of(k, key, Cmp::Lt, end);
        there.and(k, before_end)
    }

    /// Sets the scores of keys that a query does not see to −∞. `scores` has `[m, n]` queries and keys from `[row, key]` on. Most tiles need no mask.
    pub(super) fn apply(
        &self,
        k: &mut Kernel,
        scores: &Fragment,
        [row, key]: [Expr; 2],
        [m, n]: [i64; 2],
    ) -> Result<(), ViewError> {
        let (first, end) = (self.first(k, row, m - 1), self.end(k, row, 0));
        let after = k.linear(&[(1, key)], n);
        let mut partly = Predicate::of(k, after, Cmp::Gt, end);
        if self.mask.left.is_some() {
            let before = Predicate::of(k, key, Cmp::Lt, first);
            partly = partly.or(k, before);
        }
        k.when(partly, |k| {
            let masked = scores.map_at(k, |k, x, [down, across]| {
                let (row, key) = (k.add(row, down), k.add(key, across));
                let mut sees = Predicate::of(k, key, Cmp::Lt, self.keys);
                if let Some(right) = self.mask.right {
                    let last = self.position(k, row, right);
                    let within = Predicate::of(k, key, Cmp::Le, last);
                    sees = sees.and(k, within);
                }
                if let Some(left) = self.mask.left {
                    let first = self.position(k, row, -left);
                    let within = Predicate::of(k, key, Cmp::Ge, first);
                    sees = sees.and(k, within);
                }
                sees.select(k, x, f32::NEG_INFINITY)
            })?;
            scores.assign(k, &masked)
        })
    }
}
