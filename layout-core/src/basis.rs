//! What the components of a stride mean.
//!
//! A stride is a vector of `K` integers. Of a plain layout it is one integer. Of a layout with named strides it is a linear
//! form: component 0 counts 1, component `p + 1` counts name `p`. Of a coordinate layout component `k` counts along axis `k`.
//! Two layouts that meet in one operation must agree on that meaning; [`Basis::merge`] finds it.
//!
//! ```text
//! (4,8):(8,1)           Integers            K = 1
//! (4,8):(2*ld+1,1)      Names [ld]          2*ld+1 = (1,2,0,0,0)
//! (4,8):(1@0,1@1)       Axes (·,·)          1@1    = (0,1,0,0,0,0,0,0)
//! ```

use crate::error::{LayoutError, attempt};
use crate::parameter::{MAX_PARAMETERS, Parameter};
use crate::profile::{Profile, ProfileBuilder};

/// The meaning of a stride's components.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Basis {
    /// One integer.
    Integers,
    /// A constant, then one component per name.
    Names(Names),
    /// One component per axis; the parentheses of the coordinates.
    Axes(Profile),
}

/// Up to [`MAX_PARAMETERS`] names, in order of first use.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Names {
    pub(crate) name: [Parameter; MAX_PARAMETERS],
    pub(crate) len: usize,
}

impl Names {
    pub(crate) const NONE: Self = Self {
        name: [Parameter::EMPTY; MAX_PARAMETERS],
        len: 0,
    };

    /// The number of `name`, if it is among the names.
    pub(crate) const fn find(&self, name: &Parameter) -> Option<usize> {
        let mut p = 0;
        while p < self.len {
            if self.name[p].equals(name) {
                return Some(p);
            }
            p += 1;
        }
        None
    }

    /// The number of `name`, which is added if it is new.
    pub(crate) const fn intern(&mut self, name: Parameter) -> Result<usize, LayoutError> {
        if let Some(p) = self.find(&name) {
            return Ok(p);
        }
        if self.len == MAX_PARAMETERS {
            return Err(LayoutError::TooManyNames {
                limit: MAX_PARAMETERS,
            });
        }
        self.name[self.len] = name;
        self.len += 1;
        Ok(self.len - 1)
    }
}

/// A common basis of two layouts, and where the second one's components stand in it.
#[derive(Clone, Copy)]
pub(crate) struct Merged<const K: usize> {
    pub(crate) basis: Basis,
    pub(crate) place: [usize; K],
}

impl<const K: usize> Merged<K> {
    /// A vector of the second layout in the common basis.
    pub(crate) const fn adapt(&self, vector: &[i64; K]) -> [i64; K] {
        let mut result = [0; K];
        let mut k = 0;
        while k < K {
            if vector[k] != 0 {
                result[self.place[k]] = vector[k];
            }
            k += 1;
        }
        result
    }
}

impl Basis {
    /// The names; none of a basis without names.
    pub(crate) const fn names(&self) -> Names {
        match self {
            Self::Names(names) => *names,
            _ => Names::NONE,
        }
    }

    /// The parentheses of the coordinates that offsets are: of an integer, if they are integers.
    pub(crate) const fn codomain(&self) -> Profile {
        match self {
            Self::Axes(profile) => *profile,
            _ => Profile::LEAF,
        }
    }

    /// Components that are in use.
    pub(crate) const fn components(&self) -> usize {
        match self {
            Self::Integers => 1,
            Self::Names(names) => names.len + 1,
            Self::Axes(profile) => profile.leaves(),
        }
    }

    /// The basis that two layouts share in one operation.
    pub(crate) const fn merge<const K: usize>(
        &self,
        other: &Self,
    ) -> Result<Merged<K>, LayoutError> {
        let mut place = [0; K];
        let mut k = 0;
        while k < K {
            place[k] = k;
            k += 1;
        }
        let basis = match (self, other) {
            (Self::Names(left), Self::Names(right)) => {
                let mut names = *left;
                let mut p = 0;
                while p < right.len {
                    place[p + 1] = attempt!(names.intern(right.name[p])) + 1;
                    p += 1;
                }
                Self::Names(names)
            }
            (Self::Axes(left), Self::Axes(right)) => Self::Axes(attempt!(wider(left, right))),
            _ => *self,
        };
        Ok(Merged { basis, place })
    }
}

/// The parentheses that hold the coordinates of both: equal ones, or two flat tuples, of which the longer one counts.
const fn wider(left: &Profile, right: &Profile) -> Result<Profile, LayoutError> {
    if left.difference(right).is_none() {
        return Ok(*left);
    }
    let (a, b) = (left.leaves(), right.leaves());
    if left.depth() <= 1 && right.depth() <= 1 {
        return Ok(Profile::flat(if a > b { a } else { b }));
    }
    Err(LayoutError::DifferentAxes { left: a, right: b })
}

/// The tree in which every path of `paths` is a node: element `i` of a node exists if a path goes through it or beyond it.
/// `paths[p]` lists `len[p]` indices from the outermost in.
pub(crate) struct Paths {
    pub(crate) path: [[u8; MAX_PATH]; crate::MAX_MODES * 2],
    pub(crate) depth: [u8; crate::MAX_MODES * 2],
    pub(crate) len: usize,
}

/// Indices in one path of a basis stride such as `1@0@1`.
pub(crate) const MAX_PATH: usize = 4;

impl Paths {
    pub(crate) const fn new() -> Self {
        Self {
            path: [[0; MAX_PATH]; crate::MAX_MODES * 2],
            depth: [0; crate::MAX_MODES * 2],
            len: 0,
        }
    }

    /// Whether path `p` begins with the first `depth` indices of `prefix`.
    const fn follows(&self, p: usize, prefix: [u8; MAX_PATH], depth: usize) -> bool {
        if (self.depth[p] as usize) < depth {
            return false;
        }
        let mut i = 0;
        while i < depth {
            if self.path[p][i] != prefix[i] {
                return false;
            }
            i += 1;
        }
        true
    }

    /// Elements of the node at `prefix`; 0 for a leaf.
    const fn rank(&self, prefix: [u8; MAX_PATH], depth: usize) -> usize {
        let mut rank = 0;
        let mut p = 0;
        while p < self.len {
            if self.follows(p, prefix, depth) && self.depth[p] as usize > depth {
                let index = self.path[p][depth] as usize + 1;
                if index > rank {
                    rank = index;
                }
            }
            p += 1;
        }
        rank
    }

    /// The profile, and the leaf that each path names.
    pub(crate) const fn profile(
        &self,
        limit: usize,
    ) -> Result<(Profile, [usize; crate::MAX_MODES * 2]), LayoutError> {
        let mut builder = ProfileBuilder::new();
        let mut leaf = [usize::MAX; crate::MAX_MODES * 2];
        attempt!(self.node(&mut builder, &mut leaf, [0; MAX_PATH], 0, limit));
        let mut p = 0;
        while p < self.len {
            if leaf[p] == usize::MAX {
                return Err(LayoutError::TupleAxis);
            }
            p += 1;
        }
        Ok((attempt!(builder.finish()), leaf))
    }

    const fn node(
        &self,
        builder: &mut ProfileBuilder,
        leaf: &mut [usize; crate::MAX_MODES * 2],
        prefix: [u8; MAX_PATH],
        depth: usize,
        limit: usize,
    ) -> Result<(), LayoutError> {
        let rank = if depth < MAX_PATH {
            self.rank(prefix, depth)
        } else {
            0
        };
        if rank == 0 {
            let axes = builder.leaves() + 1;
            let at = match builder.leaf() {
                Some(at) if axes <= limit => at,
                _ => return Err(LayoutError::TooManyAxes { axes, limit }),
            };
            let mut p = 0;
            while p < self.len {
                if self.depth[p] as usize == depth && self.follows(p, prefix, depth) {
                    leaf[p] = at;
                }
                p += 1;
            }
            return Ok(());
        }
        builder.open();
        let mut i = 0;
        while i < rank {
            let mut inner = prefix;
            inner[depth] = i as u8;
            attempt!(self.node(builder, leaf, inner, depth + 1, limit));
            i += 1;
        }
        builder.close();
        Ok(())
    }
}
