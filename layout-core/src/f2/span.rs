//! Subspaces of F2^64, kept as a basis in echelon form: what "rank" and "independent" are computed with.
//!
//! Each basis vector has a leading (highest) bit that no other has, so that reducing a vector is one pass from the top.
//! For example the span of `0b11` and `0b10` is all of two bits, and inserting `0b01` adds nothing.

/// A subspace of F2^64.
///
/// ```
/// use layout_core::f2::Span;
/// let mut span = Span::new();
/// span.insert(0b11);
/// span.insert(0b10);
/// assert!(span.contains(0b01));
/// assert_eq!(span.dimension(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Span {
    /// `leads[i]` is the basis vector whose highest bit is `i`, or 0.
    leads: [u64; 64],
    dimension: u32,
}

impl Span {
    /// The subspace that holds only 0.
    ///
    /// ```
    /// use layout_core::f2::Span;
    /// assert_eq!(Span::new().dimension(), 0);
    /// ```
    pub const fn new() -> Self {
        Self {
            leads: [0; 64],
            dimension: 0,
        }
    }

    /// Number of basis vectors.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert_eq!(LinearMap::identity(3).unwrap().image().dimension(), 3);
    /// ```
    pub const fn dimension(&self) -> u32 {
        self.dimension
    }

    /// `vector` reduced by the basis: 0 exactly if the subspace contains it.
    ///
    /// ```
    /// use layout_core::f2::Span;
    /// let mut span = Span::new();
    /// span.insert(0b110);
    /// assert_eq!((span.reduce(0b110), span.reduce(0b101)), (0, 0b011));
    /// ```
    pub const fn reduce(&self, vector: u64) -> u64 {
        let mut rest = vector;
        let mut i = 64;
        while i > 0 && rest != 0 {
            i -= 1;
            if rest >> i & 1 == 1 && self.leads[i] != 0 {
                rest ^= self.leads[i];
            }
        }
        rest
    }

    /// Whether the subspace contains `vector`.
    ///
    /// ```
    /// use layout_core::f2::Span;
    /// let mut span = Span::new();
    /// span.insert(0b110);
    /// assert!(span.contains(0b110) && !span.contains(0b100));
    /// ```
    pub const fn contains(&self, vector: u64) -> bool {
        self.reduce(vector) == 0
    }

    /// Adds `vector`; true if it was independent of the basis.
    ///
    /// ```
    /// use layout_core::f2::Span;
    /// let mut span = Span::new();
    /// assert_eq!([0b11, 0b10, 0b01].map(|v| span.insert(v)), [true, true, false]);
    /// ```
    pub const fn insert(&mut self, vector: u64) -> bool {
        let rest = self.reduce(vector);
        if rest == 0 {
            return false;
        }
        let lead = 63 - rest.leading_zeros() as usize;
        self.leads[lead] = rest;
        self.dimension += 1;
        true
    }

    /// The `i`-th basis vector, by ascending leading bit.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// let span = LinearMap::identity(2).unwrap().image();
    /// assert_eq!([0, 1, 2].map(|i| span.basis(i)), [Some(1), Some(2), None]);
    /// ```
    pub const fn basis(&self, i: u32) -> Option<u64> {
        let mut seen = 0;
        let mut lead = 0;
        while lead < 64 {
            if self.leads[lead] != 0 {
                if seen == i {
                    return Some(self.leads[lead]);
                }
                seen += 1;
            }
            lead += 1;
        }
        None
    }

    /// The basis vectors, by ascending leading bit.
    ///
    /// ```
    /// use layout_core::f2::LinearMap;
    /// assert!(LinearMap::identity(3).unwrap().image().iter().eq([1, 2, 4]));
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.leads.iter().copied().filter(|&v| v != 0)
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::new()
    }
}
