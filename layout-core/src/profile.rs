//! The parentheses of a nested tuple, without the numbers.
//!
//! A tuple of at most [`MAX_MODES`] leaves is stored flat: for each leaf, how many parentheses open just before it and
//! how many close just after it. `(4,(2,2))` has opens `1 1 0` and closes `0 0 2`; the bare integer `4` has none, which is
//! how it differs from `(4)`. Everything is `Copy` and needs no allocation.
//!
//! A [`Node`] is a subtree: its leaves `start..end`, and how many of the parentheses before its first leaf belong to its
//! ancestors. Walking the tree is walking nodes:
//!
//! ```text
//! (4,(2,2))   root {0..3, outer 0}, children: 4 = {0..1, outer 1} and (2,2) = {1..3, outer 0}
//! ```

use crate::error::LayoutError;

/// Leaves that a tuple or a layout can have.
///
/// ```
/// use layout_core::{IntTuple, MAX_MODES};
/// assert!(IntTuple::flat(&[1; MAX_MODES]).is_ok());
/// assert_eq!(IntTuple::flat(&[1; MAX_MODES + 1]).unwrap_err().code(), "too_many_modes");
/// ```
pub const MAX_MODES: usize = 32;

/// How deep parentheses may nest.
///
/// ```
/// use layout_core::{IntTuple, MAX_DEPTH};
/// let mut tuple = IntTuple::int(4);
/// for _ in 0..MAX_DEPTH {
///     tuple = IntTuple::tuple(&[tuple]).unwrap();
/// }
/// assert_eq!(tuple.depth(), MAX_DEPTH);
/// assert_eq!(IntTuple::tuple(&[tuple]).unwrap_err().code(), "too_deep");
/// ```
pub const MAX_DEPTH: usize = 32;

/// The parentheses around each leaf.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Profile {
    len: u8,
    open: [u8; MAX_MODES],
    close: [u8; MAX_MODES],
}

/// A subtree of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    /// First leaf.
    pub(crate) start: usize,
    /// One past the last leaf.
    pub(crate) end: usize,
    /// Parentheses before the first leaf that belong to ancestors.
    outer: u8,
}

impl Profile {
    /// The profile of a bare integer.
    pub(crate) const LEAF: Self = Self {
        len: 1,
        open: [0; MAX_MODES],
        close: [0; MAX_MODES],
    };

    /// The profile `(·,·,…)` of `leaves` elements, which must be 1 to `MAX_MODES`.
    pub(crate) const fn flat(leaves: usize) -> Self {
        let mut profile = Self::LEAF;
        profile.len = leaves as u8;
        profile.open[0] = 1;
        profile.close[leaves - 1] = 1;
        profile
    }

    /// Number of leaves.
    pub(crate) const fn leaves(&self) -> usize {
        self.len as usize
    }

    /// Parentheses that open just before leaf `i`.
    pub(crate) const fn opens(&self, i: usize) -> u8 {
        self.open[i]
    }

    /// Parentheses that close just after leaf `i`.
    pub(crate) const fn closes(&self, i: usize) -> u8 {
        self.close[i]
    }

    /// The whole tree.
    pub(crate) const fn root(&self) -> Node {
        Node {
            start: 0,
            end: self.len as usize,
            outer: 0,
        }
    }

    /// Whether the subtree is an integer.
    pub(crate) const fn is_leaf(&self, node: Node) -> bool {
        self.open[node.start] == node.outer
    }

    /// The subtree that starts at leaf `start`, `outer` of whose opening parentheses belong to ancestors.
    const fn subtree(&self, start: usize, outer: u8) -> Node {
        let mut depth = (self.open[start] - outer) as i32;
        let mut end = start + 1;
        if depth > 0 {
            depth -= self.close[start] as i32;
            while depth > 0 {
                depth += self.open[end] as i32 - self.close[end] as i32;
                end += 1;
            }
        }
        Node { start, end, outer }
    }

    /// The first element of a tuple; an integer is its own first element.
    pub(crate) const fn first(&self, node: Node) -> Node {
        if self.is_leaf(node) {
            node
        } else {
            self.subtree(node.start, node.outer + 1)
        }
    }

    /// The element of `parent` that follows `child`.
    pub(crate) const fn next(&self, parent: Node, child: Node) -> Option<Node> {
        if child.end < parent.end {
            Some(self.subtree(child.end, 0))
        } else {
            None
        }
    }

    /// Number of elements; 1 for an integer.
    pub(crate) const fn rank(&self, node: Node) -> usize {
        let mut rank = 1;
        let mut child = self.first(node);
        while let Some(next) = self.next(node, child) {
            child = next;
            rank += 1;
        }
        rank
    }

    /// Element `i` of a subtree, if it has that many; element 0 of an integer is the integer.
    pub(crate) const fn child(&self, node: Node, i: usize) -> Option<Node> {
        let mut child = self.first(node);
        let mut at = 0;
        while at < i {
            match self.next(node, child) {
                Some(next) => child = next,
                None => return None,
            }
            at += 1;
        }
        Some(child)
    }

    /// Deepest nesting: 0 for an integer, 1 for `(4,8)`.
    pub(crate) const fn depth(&self) -> usize {
        let mut depth = 0usize;
        let mut deepest = 0;
        let mut i = 0;
        while i < self.len as usize {
            depth += self.open[i] as usize;
            if depth > deepest {
                deepest = depth;
            }
            depth -= self.close[i] as usize;
            i += 1;
        }
        deepest
    }

    /// The indices that lead to leaf `leaf` from the outermost in, written to `path`; how many there are.
    pub(crate) const fn path(&self, leaf: usize, path: &mut [usize; MAX_DEPTH]) -> usize {
        let mut node = self.root();
        let mut depth = 0;
        while !self.is_leaf(node) {
            let mut child = self.first(node);
            let mut index = 0;
            while child.end <= leaf {
                match self.next(node, child) {
                    Some(next) => child = next,
                    None => return depth,
                }
                index += 1;
            }
            path[depth] = index;
            depth += 1;
            node = child;
        }
        depth
    }

    /// First leaf at which two profiles differ, if any.
    pub(crate) const fn difference(&self, other: &Self) -> Option<usize> {
        let mut i = 0;
        while i < self.len as usize && i < other.len as usize {
            if self.open[i] != other.open[i] || self.close[i] != other.close[i] {
                return Some(i);
            }
            i += 1;
        }
        if self.len == other.len { None } else { Some(i) }
    }
}

/// Writes a profile from left to right. Errors are kept and reported at the end, so that callers read as grammar.
#[derive(Clone, Copy)]
pub(crate) struct ProfileBuilder {
    profile: Profile,
    depth: usize,
    pending: u8,
    error: Option<LayoutError>,
}

impl ProfileBuilder {
    pub(crate) const fn new() -> Self {
        let mut profile = Profile::LEAF;
        profile.len = 0;
        Self {
            profile,
            depth: 0,
            pending: 0,
            error: None,
        }
    }

    /// The error met so far.
    pub(crate) const fn error(&self) -> Option<LayoutError> {
        self.error
    }

    pub(crate) const fn fail(&mut self, error: LayoutError) {
        if self.error.is_none() {
            self.error = Some(error);
        }
    }

    pub(crate) const fn open(&mut self) {
        if self.depth >= MAX_DEPTH {
            self.fail(LayoutError::TooDeep);
        } else {
            self.depth += 1;
            self.pending += 1;
        }
    }

    /// Adds a leaf and says where, unless there is no room.
    pub(crate) const fn leaf(&mut self) -> Option<usize> {
        let at = self.profile.len as usize;
        if self.error.is_some() {
            return None;
        }
        if at >= MAX_MODES {
            self.fail(LayoutError::TooManyModes);
            return None;
        }
        self.profile.open[at] = self.pending;
        self.profile.close[at] = 0;
        self.pending = 0;
        self.profile.len += 1;
        Some(at)
    }

    pub(crate) const fn close(&mut self) {
        if self.error.is_some() {
            return;
        }
        debug_assert!(self.depth > 0);
        if self.pending > 0 || self.profile.len == 0 {
            self.fail(LayoutError::EmptyTuple);
            return;
        }
        self.depth -= 1;
        self.profile.close[self.profile.len as usize - 1] += 1;
    }

    /// Appends a subtree of another profile, with its own parentheses.
    pub(crate) const fn append(&mut self, other: &Profile, node: Node) {
        self.append_inside(other, node, node.outer);
    }

    /// Appends the elements of a subtree, without its outermost parentheses.
    pub(crate) const fn append_elements(&mut self, other: &Profile, node: Node) {
        let outer = if other.is_leaf(node) {
            node.outer
        } else {
            node.outer + 1
        };
        self.append_inside(other, node, outer);
    }

    /// Appends the leaves of a subtree, leaving out `outer` of the parentheses before it and those that close them.
    const fn append_inside(&mut self, other: &Profile, node: Node, outer: u8) {
        let mut at = self.profile.len as usize;
        if self.error.is_some() {
            return;
        }
        if at + (node.end - node.start) > MAX_MODES {
            self.fail(LayoutError::TooManyModes);
            return;
        }
        let mut inside = 0;
        let mut i = node.start;
        while i < node.end {
            let opens = if i == node.start {
                other.open[i] - outer
            } else {
                other.open[i]
            };
            inside += opens;
            if self.depth + inside as usize > MAX_DEPTH {
                self.fail(LayoutError::TooDeep);
                return;
            }
            // The last leaf also closes what was left out.
            let closes = if other.close[i] < inside {
                other.close[i]
            } else {
                inside
            };
            inside -= closes;
            self.profile.open[at] = self.pending + opens;
            self.profile.close[at] = closes;
            self.pending = 0;
            at += 1;
            i += 1;
        }
        self.profile.len = at as u8;
    }

    /// Appends leaf `leaf` of another profile, parentheses included, as a tuple of `n` leaves if `n` is more than 1.
    pub(crate) const fn expand(&mut self, other: &Profile, leaf: usize, n: usize) {
        if self.error.is_some() {
            return;
        }
        let start = self.profile.len as usize;
        if start + n > MAX_MODES {
            self.fail(LayoutError::TooManyModes);
            return;
        }
        let extra = if n > 1 { 1 } else { 0 };
        self.depth += (other.open[leaf] + extra) as usize;
        if self.depth > MAX_DEPTH {
            self.fail(LayoutError::TooDeep);
            return;
        }
        self.depth -= (other.close[leaf] + extra) as usize;
        self.profile.open[start] = other.open[leaf] + extra;
        self.profile.close[start + n - 1] = other.close[leaf] + extra;
        self.profile.len += n as u8;
    }

    /// Leaves written so far.
    pub(crate) const fn leaves(&self) -> usize {
        self.profile.len as usize
    }

    /// The finished profile: one tree.
    pub(crate) const fn finish(&self) -> Result<Profile, LayoutError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.profile.len == 0 {
            return Err(LayoutError::EmptyTuple);
        }
        debug_assert!(self.depth == 0);
        debug_assert!(self.profile.subtree(0, 0).end == self.profile.len as usize);
        Ok(self.profile)
    }
}
