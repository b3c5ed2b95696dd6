//! Index expressions of the kernel's author: exact integers of at most 64 bits.
//!
//! An [`Expr`] is a coordinate, a size or a number of tiles: it takes part in addresses, guards and trip counts, which the prover follows. Its range is known, and
//! a result that may need more than 64 bits is a mistake that [`Kernel::build`] reports.

use layout_core::{Layout, LayoutError};

use super::Kernel;
use crate::index::layout::index;
use crate::index::{Expr, Facts};
use crate::ir::param::ParamKind;

impl Kernel {
    /// The least and the greatest value that an expression can have, as far as is known.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 96);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let sum = k.add(thread, n);
    /// assert_eq!((k.range(thread), k.range(sum)), ((0, 95), (0, 195)));
    /// ```
    pub fn range(&self, e: Expr) -> (i64, i64) {
        let Facts { lo, hi, .. } = self.pool.facts(e);
        let clamped = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (clamped(lo), clamped(hi))
    }

    /// The number `c`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let seven = k.constant(7);
    /// assert_eq!(k.range(seven), (7, 7));
    /// ```
    #[track_caller]
    pub fn constant(&mut self, c: i64) -> Expr {
        self.at_line();
        self.pool.constant(c)
    }

    /// The index of `layout` at one linear coordinate for each of its modes, or one for the whole layout.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let lane = k.lane();
    /// let row = k.index(&Layout::parse("(4,8):(0,1)")?, &[lane])?;
    /// assert_eq!(k.range(row), (0, 7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Neither one coordinate nor one for each mode.
    #[track_caller]
    pub fn index(&mut self, layout: &Layout, coordinates: &[Expr]) -> Result<Expr, LayoutError> {
        self.at_line();
        index(&mut self.pool, layout, coordinates)
    }

    /// The number that an expression always is, if it is one.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (seven, lane) = (k.constant(7), k.lane());
    /// assert_eq!((k.as_const(seven), k.as_const(lane)), (Some(7), None));
    /// ```
    pub fn as_const(&self, e: Expr) -> Option<i64> {
        self.pool.as_const(e)
    }

    /// The same value, computed once and kept in a register: expressions around it are not simplified together with it.
    #[track_caller]
    pub fn pin(&mut self, e: Expr) -> Expr {
        self.at_line();
        self.pool.pin(e)
    }

    /// Records a mistake if an extent is not known from the sizes of a launch, or may be negative.
    pub(crate) fn of_sizes(&mut self, of: &str, extent: Expr) {
        if self.pool.facts(extent).lo < 0 {
            self.mistake(format!(
                "an extent of {of} is not a size: it may be negative"
            ));
        }
        self.sized(extent, || format!("an extent of {of}"));
    }

    /// Records a mistake if a value is not known from the sizes of a launch.
    pub(crate) fn sized(&mut self, value: Expr, what: impl FnOnce() -> String) {
        let params = &self.params;
        let is_size = |name: &String| {
            let mut all = params.iter();
            all.any(|p| p.kind == ParamKind::U32 && p.name == *name)
        };
        if !self.pool.variables(value).iter().all(is_size) {
            let what = what();
            self.mistake(format!(
                "{what} is not a size: it is to be made of sizes (`Kernel::size`) and numbers by sums, products and quotients, so that a launch knows it"
            ));
        }
    }

    /// Records a mistake if an expression is of a loop or branch that has ended.
    pub(crate) fn still_there(&mut self, e: Expr) {
        let names = self.pool.variables(e);
        if names.iter().any(|name| self.ended.contains(name)) {
            self.mistake(
                "an assumption is of a loop's counter, or of a choice in a branch, that has ended",
            );
        }
    }

    /// Whether a result within these bounds has 64 bits; a mistake if not.
    fn fits(&mut self, ends: impl IntoIterator<Item = Option<i128>>) -> bool {
        let fits = ends
            .into_iter()
            .all(|end| end.is_some_and(|x| i64::try_from(x).is_ok()));
        if !fits {
            self.mistake(
                "an index expression may need more than 64 bits: declare smaller sizes (`Kernel::size`), or compute with values (`U32::index`)",
            );
        }
        fits
    }

    /// a + b
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, one) = (k.thread(), k.constant(1));
    /// let next = k.add(thread, one);
    /// assert_eq!(k.range(next), (1, 32));
    /// ```
    #[track_caller]
    pub fn add(&mut self, a: Expr, b: Expr) -> Expr {
        self.at_line();
        let (x, y) = (self.pool.facts(a), self.pool.facts(b));
        if self.fits([x.lo.checked_add(y.lo), x.hi.checked_add(y.hi)]) {
            self.pool.add(a, b)
        } else {
            self.constant(0)
        }
    }

    /// a − b, which may be negative.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, one) = (k.thread(), k.constant(1));
    /// let before = k.sub(thread, one);
    /// assert_eq!(k.range(before), (-1, 30));
    /// ```
    #[track_caller]
    pub fn sub(&mut self, a: Expr, b: Expr) -> Expr {
        self.at_line();
        let minus = self.scale(b, -1);
        self.add(a, minus)
    }

    /// c·e
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let lane = k.lane();
    /// let first = k.scale(lane, 4);
    /// assert_eq!(k.range(first), (0, 124));
    /// ```
    #[track_caller]
    pub fn scale(&mut self, e: Expr, c: i64) -> Expr {
        self.at_line();
        let facts = self.pool.facts(e);
        let ends = [facts.lo, facts.hi].map(|x| x.checked_mul(c.into()));
        match ends {
            _ if !self.fits(ends) => self.constant(0),
            [Some(lo), Some(hi)] if lo == hi => self.constant(lo as i64),
            _ => self.pool.scale(e, c),
        }
    }

    /// a·b
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (rows, cols) = (k.size("rows", 1000), k.size("cols", 1000));
    /// let elements = k.mul(rows, cols);
    /// assert_eq!(k.range(elements), (0, 1_000_000));
    /// ```
    #[track_caller]
    pub fn mul(&mut self, a: Expr, b: Expr) -> Expr {
        self.at_line();
        let (x, y) = (self.pool.facts(a), self.pool.facts(b));
        let corners = [x.lo, x.hi].map(|x| [y.lo, y.hi].map(|y| x.checked_mul(y)));
        if self.fits(corners.into_iter().flatten()) {
            self.pool.mul(a, b)
        } else {
            self.constant(0)
        }
    }

    /// Σ cᵢ·eᵢ + k, such as the first row of a tile plus a row in it.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (block, lane) = (k.block_index(Axis::X, 10), k.lane());
    /// let row = k.linear(&[(32, block), (1, lane)], 0);
    /// assert_eq!(k.range(row), (0, 319));
    /// ```
    #[track_caller]
    pub fn linear(&mut self, terms: &[(i64, Expr)], k: i64) -> Expr {
        self.at_line();
        let first = self.constant(k);
        terms.iter().fold(first, |sum, &(c, e)| {
            let part = self.scale(e, c);
            self.add(sum, part)
        })
    }

    /// Whether `e` may be divided by `d`; a mistake if not.
    fn divides(&mut self, e: Expr, d: i64) -> bool {
        let lo = self.pool.facts(e).lo;
        let fits = d > 0 && lo >= 0;
        if !fits {
            self.mistake(format!(
                "an index expression of at least {lo} divided by {d}: it is 0 or more, and the divisor is 1 or more"
            ));
        }
        fits
    }

    /// ⌊e / d⌋ of what is never negative.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 96);
    /// let thread = k.thread();
    /// let group = k.div(thread, 12);
    /// assert_eq!(k.range(group), (0, 7));
    /// ```
    #[track_caller]
    pub fn div(&mut self, e: Expr, d: i64) -> Expr {
        self.at_line();
        if self.divides(e, d) {
            self.pool.div(e, d)
        } else {
            self.constant(0)
        }
    }

    /// e mod d of what is never negative.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 96);
    /// let thread = k.thread();
    /// let member = k.rem(thread, 12);
    /// assert_eq!(k.range(member), (0, 11));
    /// ```
    #[track_caller]
    pub fn rem(&mut self, e: Expr, d: i64) -> Expr {
        self.at_line();
        if self.divides(e, d) {
            self.pool.rem(e, d)
        } else {
            self.constant(0)
        }
    }

    /// The bits that `a` and `b` do not share, of what is never negative: how swizzles are computed.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 96);
    /// let (lane, warp) = (k.lane(), k.warp());
    /// let swizzled = k.xor(lane, warp);
    /// assert_eq!(k.range(swizzled), (0, 31));
    /// ```
    #[track_caller]
    pub fn xor(&mut self, a: Expr, b: Expr) -> Expr {
        self.at_line();
        if self.divides(a, 1) && self.divides(b, 1) {
            self.pool.xor(a, b)
        } else {
            self.constant(0)
        }
    }
}
