//! Which coordinates a thread holds: what a (thread, value) layout says, mode by mode.
//!
//! A layout adds what its modes give, so a coordinate is that of the thread plus that of the value. Every function of fragments looks at these two
//! lists and at nothing else.

use layout_core::Layout;

use crate::view::ViewError;
use crate::view::partition::by_mode;

/// The coordinates along one mode of a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holders {
    /// What each thread adds.
    pub(super) threads: Vec<i64>,
    /// What each value adds.
    pub(super) values: Vec<i64>,
}

impl Holders {
    /// Those of a layout (thread, value) → coordinate.
    pub(super) fn of(map: &Layout) -> Result<Self, ViewError> {
        let list = |mode: Layout| (0..mode.size()).map(|i| mode.index(i)).collect();
        Ok(Self {
            threads: list(map.get(0)?),
            values: list(map.get(1)?),
        })
    }

    /// Those of each mode of a tile.
    pub(super) fn by_mode(shape: &[i64], tv: &Layout) -> Result<Vec<Self>, ViewError> {
        by_mode(shape, tv)?.iter().map(Self::of).collect()
    }

    /// The coordinate of a value of a thread.
    pub(super) fn at(&self, thread: usize, value: usize) -> i64 {
        self.threads[thread] + self.values[value]
    }
}

/// From (thread, value) → coordinate along a mode: the same without the values that repeat a coordinate.
pub(in crate::view) fn along(map: &Layout) -> Result<Layout, ViewError> {
    let values = map.get(1)?.flatten();
    let (mut shape, mut strides) = (Vec::new(), Vec::new());
    for i in 0..values.leaves() {
        let (extent, stride) = values.leaf(i);
        if stride != 0 && extent != 1 {
            shape.push(extent);
            strides.push(stride);
        }
    }
    let values = match shape.len() {
        0 => Layout::mode(1, 0)?,
        _ => Layout::flat(&shape, &strides)?.coalesce(),
    };
    Ok(Layout::tuple(&[map.get(0)?.coalesce(), values])?)
}
