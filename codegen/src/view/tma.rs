//! TMA copies of whole tiles from global memory to the stages of a ring.
//!
//! ```text
//! tile of an array (rows, columns) ──boxes of 128 bytes by rows──▶ panels of a stage        Sw<3,3,3> o (rows,(64,panels)):(64,(1,64·rows)), of 2 bytes
//! ```
//!
//! A row of a box is one swizzle period, so a box is as wide as a panel. It has up to 256 rows of the tile. The host encodes the tensor map with the extents of the array;
//! elements outside of it read as zeros.

use layout_core::{Layout, Swizzle, Swizzled, TensorBox};

use super::buffer::MAX_TILE;
use super::{View, ViewError, in_bytes};
use crate::index::Expr;
use crate::ir::{Arrangement, Axis, Extent, Kernel, MapHandle, RingHandle, Space, Stride};

/// Alignment of a stage in bytes: every TMA swizzle repeats after it.
pub(crate) const PERIOD: i64 = 1024;

/// The widest row of a box with a swizzle, in bytes.
const WIDEST: i64 = 128;

/// The most elements of a row of a box.
const MOST_COLUMNS: i64 = 256;

/// (row, column) → element of a tile that boxes of TMA fill and matrix descriptors describe: panels of rows of 128 bytes, or fewer where the tile has fewer, their
/// 16-byte pieces permuted by the row. A single row lies as it is: a vector, which threads read and no descriptor describes.
///
/// # Errors
///
/// [`ViewError`] for a tile that has no such rows.
pub fn panels(shape: [i64; 2], bytes: i64) -> Result<Swizzled, ViewError> {
    let [rows, columns] = shape;
    if rows == 1 && (1..=MOST_COLUMNS).contains(&columns) && columns * bytes % ROW == 0 {
        return Ok(Swizzled::plain(Layout::flat(&[1, columns], &[columns, 1])?));
    }
    let width = [WIDEST, 64, 32]
        .into_iter()
        .find(|width| columns % (width / bytes) == 0);
    let whole = rows % 8 == 0 && rows > 0 && columns > 0;
    // More than shared memory holds; products of smaller extents do not overflow.
    let fits = rows.checked_mul(columns).is_some_and(|n| n <= MAX_TILE);
    let Some(width) = width.filter(|_| whole && fits) else {
        return Err(ViewError::Pipeline {
            given: format!("a stage of {rows} x {columns} elements of {bytes} bytes"),
            accepted: format!(
                "its rows are by eights, of multiples of 32 bytes, and it has at most {MAX_TILE} elements; or it is one row of at most {MOST_COLUMNS} elements, a multiple of 16 bytes"
            ),
        });
    };
    let wide = width / bytes;
    let across = Layout::flat(&[wide, columns / wide], &[1, rows * wide])?;
    let plain = Layout::tuple(&[Layout::mode(rows, wide)?, across])?;
    let element = bytes.trailing_zeros();
    let swizzle = Swizzle::new((width / 16).trailing_zeros(), 4 - element, 3)?;
    Ok(Swizzled::new(swizzle, 0, plain)?)
}

/// Alignment of the rows of a tensor map's array in bytes (CUDA driver API, `cuTensorMapEncodeTiled`).
const ROW: i64 = 16;

impl Kernel {
    /// Copies the tile `from` of global memory to the tile `to` of a stage by TMA. The box and the swizzle follow from the layout of the stage. Elements outside of the array read as
    /// zeros. The rows of the array must be multiples of 16 bytes; the launch checks it.
    ///
    /// The example of [`Kernel::tma_ring`] has two.
    ///
    /// # Errors
    ///
    /// [`ViewError::Space`] and [`ViewError::Pipeline`] for a source that is not a tile of global memory, and a target that is not the whole tile of a stage; [`ViewError::Shapes`], [`ViewError::Elements`].
    #[track_caller]
    pub fn tma_load(&mut self, from: &View, to: &View) -> Result<(), ViewError> {
        self.at_line();
        self.load_boxes(from, to, None)
    }

    /// Copies a tile that all blocks of a [cluster](Kernel::clusters) read, as [`Kernel::tma_load`] does. Each block copies a part of it to all of them (multicast). The blocks lie along
    /// `axis` of the grid.
    ///
    /// # Errors
    ///
    /// As [`Kernel::tma_load`]; [`ViewError::Pipeline`] for a tile that the blocks do not divide, and without a cluster along the axis alone.
    #[track_caller]
    pub fn tma_multicast(&mut self, from: &View, to: &View, axis: Axis) -> Result<(), ViewError> {
        self.at_line();
        let blocks = self.cluster[axis as usize];
        let all: u32 = self.cluster.iter().product();
        if blocks < 2 || blocks != all {
            return Err(ViewError::Pipeline {
                given: format!(
                    "a copy to all blocks of a cluster of {} along {}",
                    self.cluster.map(|n| n.to_string()).join(" x "),
                    ['x', 'y', 'z'][axis as usize]
                ),
                accepted: "the blocks of the cluster lie along that axis (`Kernel::clusters`)"
                    .to_owned(),
            });
        }
        self.load_boxes(from, to, Some((axis, i64::from(blocks))))
    }

    fn load_boxes(
        &mut self,
        from: &View,
        to: &View,
        shared: Option<(Axis, i64)>,
    ) -> Result<(), ViewError> {
        for (view, writes, wanted) in [(from, false, Space::Global), (to, true, Space::Shared)] {
            view.own(self)?;
            let space = view.space(self);
            if space != wanted {
                return Err(ViewError::Space {
                    instruction: "a copy by TMA",
                    writes,
                    wanted: Some(wanted),
                    buffer: view.name(self).to_owned(),
                    space,
                });
            }
        }
        let [source, target] = [from, to].map(|view| view.tile_shape(self).map(<[i64]>::to_vec));
        let (source, target) = (source?, target?);
        let describe = |view: &View, shape: &[i64]| {
            let shape: Vec<_> = shape.iter().map(ToString::to_string).collect();
            let element = view.element.map_or(String::new(), |e| format!(" of {e}"));
            format!(
                "a tile {}{element} of `{}`",
                shape.join("x"),
                view.name(self)
            )
        };
        if from.element != to.element {
            return Err(ViewError::Elements {
                from: describe(from, &source),
                to: describe(to, &target),
            });
        }
        if source != target || from.reversed != to.reversed {
            return Err(ViewError::Shapes {
                from: describe(from, &source),
                to: describe(to, &target),
            });
        }
        let refuse = |accepted: &str| ViewError::Pipeline {
            given: format!("a copy by TMA to `{}`", to.name(self)),
            accepted: accepted.to_owned(),
        };
        let used = self.use_of(to);
        let (ring, index) =
            used.ok_or_else(|| refuse("it is to a tile that `Kernel::produce` fills"))?;
        let buffer = self.buffer(to.buffer);
        let whole = buffer.extents.iter().zip(&target);
        if !whole
            .clone()
            .all(|(extent, n)| *extent == Extent::Fixed(*n))
            || to.reversed
        {
            return Err(refuse("it is to the whole tile of a stage"));
        }
        let boxes = self.boxes_of(to)?;
        let zero = self.pool.constant(0);
        let (rank, blocks) = match shared {
            Some((axis, blocks)) => (self.cluster_rank(axis)?, blocks),
            None => (zero, 1),
        };
        // Each block copies some of the boxes, or some rows of each.
        let whole = boxes.copies % blocks == 0;
        let rows = if whole {
            boxes.rows
        } else {
            boxes.rows / blocks
        };
        let by_eights = rows % 8 == 0 || boxes.swizzle_bytes == 0;
        if rows * blocks != boxes.rows * if whole { blocks } else { 1 } || !by_eights {
            return Err(ViewError::Pipeline {
                given: format!(
                    "a tile of {} boxes of {} rows for {blocks} blocks",
                    boxes.copies, boxes.rows
                ),
                accepted: "the blocks divide its boxes, or their rows by eights".to_owned(),
            });
        }
        let count = if whole {
            boxes.copies / blocks
        } else {
            boxes.copies
        };
        let map = self.map_of(from, [rows, boxes.columns], boxes.swizzle_bytes)?;
        let to_all = shared.map(|(_, blocks)| (1u16 << blocks) - 1);
        for number in 0..count {
            let of_rank = self.pool.scale(rank, if whole { count } else { 0 });
            let number = self.pool.constant(number);
            let number = self.pool.add(of_rank, number);
            let (panel, below) = (
                self.pool.div(number, boxes.down),
                self.pool.rem(number, boxes.down),
            );
            let below = self.pool.scale(below, boxes.rows);
            let within = self.pool.scale(rank, if whole { 0 } else { rows });
            let down = self.pool.add(below, within);
            let across = self.pool.scale(panel, boxes.columns);
            let at = from.coordinates(self, &[down, across]);
            let mut by = vec![down, across];
            by.extend(&to.back);
            let element = to.element(self, &by)?;
            self.copy_box(map, &at, (element, to_all), &ring, index)?;
        }
        Ok(())
    }

    /// Which use of which ring's stage a view is, if it is one of a ring over TMA.
    pub(super) fn use_of(&self, view: &View) -> Option<(RingHandle, Expr)> {
        let used = view.used?;
        let ring = self.parting.rings.get(used.ring)?;
        Some((ring.clone(), used.index))
    }

    /// The boxes that fill the tile of a stage.
    fn boxes_of(&self, stage: &View) -> Result<TensorBox, ViewError> {
        let bytes = self.buffer(stage.buffer).bytes;
        let layout = self.panels_of(stage)?;
        TensorBox::of(&layout, bytes).map_err(|e| ViewError::Pipeline {
            given: format!("a copy by TMA to `{}`", stage.name(self)),
            accepted: e.to_string(),
        })
    }

    /// The layout of a stage's tile, (row, column) → element, by which boxes fill it.
    pub(super) fn panels_of(&self, stage: &View) -> Result<Swizzled, ViewError> {
        let buffer = self.buffer(stage.buffer);
        if let (
            [Extent::Fixed(rows), Extent::Fixed(columns), ..],
            Arrangement::Shared { layout, .. },
        ) = (&buffer.extents[..], &buffer.arrangement)
        {
            let panels = panels([*rows, *columns], buffer.bytes)?;
            if in_bytes(&panels, buffer.bytes)? == *layout {
                return Ok(panels);
            }
        }
        Err(ViewError::Pipeline {
            given: format!("`{}` as a stage of a ring over TMA", buffer.name),
            accepted: "it is a tile of one (`Kernel::tma_ring`)".to_owned(),
        })
    }

    /// A name that no parameter or buffer uses yet.
    pub(super) fn unique_buffer(&self, name: &str) -> String {
        let taken = |name: &str| {
            let mut params = self.params().iter();
            params.any(|p| p.name == name) || self.buffers().iter().any(|b| b.name == name)
        };
        let mut all = (2..).map(|number| format!("{name}{number}"));
        if taken(name) {
            all.find(|name| !taken(name)).unwrap_or_default()
        } else {
            name.to_owned()
        }
    }

    /// The tensor map of a view's array for boxes of `extents` rows and columns.
    pub(super) fn map_of(
        &mut self,
        view: &View,
        extents: [i64; 2],
        swizzle: i64,
    ) -> Result<MapHandle, ViewError> {
        let buffer = self.buffer(view.buffer).clone();
        let refuse = |accepted: &str| ViewError::Pipeline {
            given: format!("a tensor map of `{}`", buffer.name),
            accepted: accepted.to_owned(),
        };
        if !(2..=3).contains(&buffer.extents.len()) || view.ends.iter().any(Option::is_some) {
            return Err(refuse(
                "it is of a whole array of two or three modes, the last contiguous",
            ));
        }
        let known = self.parting.maps.iter().find(|map| {
            self.tensor_map_of(**map).is_some_and(|map| {
                map.buffer == view.buffer && map.extents == extents && map.swizzle == swizzle
            })
        });
        if let Some(map) = known {
            return Ok(*map);
        }
        let elements = ROW / buffer.bytes;
        if let Arrangement::Global { strides, .. } = &buffer.arrangement {
            for stride in &strides[..strides.len() - 1] {
                let whole = match stride {
                    Stride::Fixed(n) => n % elements == 0,
                    Stride::Value(e) => self.is_multiple(*e, elements),
                };
                if !whole {
                    return Err(refuse(
                        "its rows are multiples of 16 bytes: let the last extent be a size or such a number, or declare a pitch (`Kernel::pitched_input`)",
                    ));
                }
            }
        }
        self.rows_aligned(view, ROW);
        let name = self.unique_buffer(&format!("{}_map", buffer.name));
        self.checked_new_name("a tensor map", &name);
        let map = self.tensor_map(&name, view, extents, swizzle);
        self.parting.maps.push(map);
        Ok(map)
    }
}
