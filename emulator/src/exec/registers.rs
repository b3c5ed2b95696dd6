//! The rows of one register file of a warp.
//!
//! A row begins at a multiple of 64 bytes: loads and stores of 32 bytes that cross from one line of the cache to the next take twice as long, and a load
//! does not get what such a store has just written.

use std::ops::{Index, IndexMut, Range};

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T>([T; 32]);

/// Rows of 32 lanes.
#[derive(Debug)]
pub(crate) struct Rows<T>(Vec<Line<T>>);

impl<T: Copy + Default> Rows<T> {
    /// So many rows of zeros.
    pub(super) fn new(count: usize) -> Self {
        Self(vec![Line([T::default(); 32]); count])
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// At least so many rows, the new ones of zeros.
    pub(super) fn grow(&mut self, count: usize) {
        if count > self.0.len() {
            self.0.resize(count, Line([T::default(); 32]));
        }
    }

    /// Row `row`, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, row: usize) -> Option<&[T; 32]> {
        self.0.get(row).map(|line| &line.0)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, row: usize) -> Option<&mut [T; 32]> {
        self.0.get_mut(row).map(|line| &mut line.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[T; 32]> {
        self.0.iter().map(|line| &line.0)
    }

    /// Sets all lanes of some rows to zero.
    #[inline(always)]
    pub(super) fn clear(&mut self, rows: Range<usize>) {
        for line in &mut self.0[rows] {
            line.0 = [T::default(); 32];
        }
    }

    /// Sets all lanes of some rows.
    #[inline(always)]
    pub(super) fn fill(&mut self, rows: Range<usize>, value: T) {
        for line in &mut self.0[rows] {
            line.0 = [value; 32];
        }
    }
}

impl<T> Index<usize> for Rows<T> {
    type Output = [T; 32];

    #[inline(always)]
    fn index(&self, row: usize) -> &[T; 32] {
        &self.0[row].0
    }
}

impl<T> IndexMut<usize> for Rows<T> {
    #[inline(always)]
    fn index_mut(&mut self, row: usize) -> &mut [T; 32] {
        &mut self.0[row].0
    }
}
