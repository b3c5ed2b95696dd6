//! Subspaces of F2^64, kept as a basis in echelon form: what "rank" and "independent" are computed with.
//!
//! Each basis vector has a leading (highest) bit that no other has, so that reducing a vector is one pass from the top.
//! For example the span of `0b11` and `0b10` is all of two bits, and inserting `0b01` adds nothing.

/// A subspace of F2^64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Span {
    /// `leads[i]` is the basis vector whose highest bit is `i`, or 0.
    leads: [u64; 64],
    dimension: u32,
}

impl Span {
    /// The subspace that holds only 0.
    pub const fn new() -> Self {
        Self {
            leads: [0; 64],
            dimension: 0,
        }
    }

    /// Number of basis vectors.
    pub const fn dimension(&self) -> u32 {
        self.dimension
    }

    /// `vector` minus what the subspace explains: 0 exactly when the subspace holds it.
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

    /// Whether the subspace holds `vector`.
    pub const fn contains(&self, vector: u64) -> bool {
        self.reduce(vector) == 0
    }

    /// Adds `vector`; true if that made the subspace larger.
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
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.leads.iter().copied().filter(|&v| v != 0)
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::new()
    }
}
