//! A tile shared out among threads by a thread-value layout.
//!
//! A share is what one thread has of a tile: for each of its values the coordinate, and the instruction that moves it. A plain thread-value
//! layout takes each element once and moves it by loads and stores ([`View::partition`], [`Partition::vectors`]); a tiled copy brings its
//! instruction along ([`View::partition_s`], [`View::partition_d`]); an operand of a tiled mma may be held by several threads
//! ([`View::partition_a`]).

use layout_core::{Layout, Operand};

use super::buffer::MAX_TILE;
use super::fragment::along;
use super::{View, ViewError};
use crate::index::Expr;
use crate::index::layout::index;
use crate::ir::{Cmp, Element, Kernel, Origin, Reg};

/// What one thread has of a tile.
///
/// ```
/// use layout_codegen::ir::Kernel;
/// use layout_codegen::ir::Element;
/// use layout_core::{Layout, Swizzled};
///
/// let mut k = Kernel::new("k", 32);
/// let tile = k.shared("tile", Element::F32, &Swizzled::parse("(4,32):(32,1)")?)?;
/// let lane = k.lane();
/// let column = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, lane)?;
/// assert_eq!(column.values(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Partition {
    pub(super) view: View,
    /// (thread, value) → element of the tile, its first mode fastest.
    pub(super) tv: Layout,
    /// For each mode of the tile, (thread, value) → coordinate.
    pub(super) modes: Vec<Layout>,
    pub(super) thread: Expr,
    /// Values of a thread.
    pub(super) values: i64,
    /// Values that are loaded or stored at once.
    pub(super) vector: i64,
    /// What moves them.
    pub(super) by: Instruction,
    /// The operand of an mma that the values are.
    pub(super) operand: Option<Operand>,
    /// The extents of its fragment, where they are not those of the tile: 1 along the modes that the tile does not have.
    pub(super) shape: Option<Vec<i64>>,
    /// Where several threads have an element: who writes it.
    pub(super) owner: Option<Reg>,
    /// For each value, where it is stored; empty where all are ([`Partition::where_equal`]).
    pub(super) only: Vec<Reg>,
    /// Where that was computed.
    pub(super) origin: Origin,
    /// The bits of the element that is read outside of the buffer.
    pub(super) fill: u32,
}

/// The instruction that moves a thread's values.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Instruction {
    /// Loads and stores.
    Plain,
    /// `cp.async`, so many bytes at once.
    Async { bytes: u32, cached: bool },
    /// `ldmatrix` of four matrices.
    Matrices {
        /// For each mode of the tile, (thread, instruction) → coordinate of the row that the thread points at.
        points: Vec<Layout>,
        /// Values of a thread by one instruction.
        values: i64,
        trans: bool,
    },
}

/// For each mode of a tile of `shape`, where a layout of its elements points.
pub(super) fn by_mode(shape: &[i64], layout: &Layout) -> Result<Vec<Layout>, ViewError> {
    (0..shape.len())
        .map(|i| {
            let mut unit = vec![0; shape.len()];
            unit[i] = 1;
            Ok(Layout::flat(shape, &unit)?.compose(layout)?)
        })
        .collect()
}

impl View {
    /// What `thread` has of the tile: `layout` maps (thread, value) to the element `c₀ + n₀·(c₁ + n₁·…)` of the tile, its first mode fastest
    /// (as everywhere in the algebra).
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let tile = x.tile(&mut k, &[128], &[block])?;
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, thread)?;
    /// assert_eq!(share.values(), 4);
    /// let error = tile.partition(&mut k, &Layout::parse("(32,4):(1,1)")?, thread).unwrap_err();
    /// assert!(error.to_string().ends_with("coordinates 1 and 32 both give 1"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::NoTile`], or [`ViewError::NotAPartition`] if the layout does not take each element of the tile exactly once.
    #[track_caller]
    pub fn partition(
        &self,
        k: &mut Kernel,
        layout: &Layout,
        thread: Expr,
    ) -> Result<Partition, ViewError> {
        k.at_line();
        self.share(k, layout, thread, Owners::One)
    }

    /// The tile's shape.
    pub(super) fn tile_shape(&self, k: &Kernel) -> Result<&[i64], ViewError> {
        self.own(k)?;
        self.tile.as_deref().ok_or_else(|| ViewError::NoTile {
            buffer: self.name(k).to_owned(),
        })
    }

    /// The share of `thread` by a layout (thread, value) → element, checked.
    pub(super) fn share(
        &self,
        k: &Kernel,
        layout: &Layout,
        thread: Expr,
        owners: Owners,
    ) -> Result<Partition, ViewError> {
        let shape = self.tile_shape(k)?;
        // Each extent is at most `MAX_TILE`, so that a few do not overflow.
        let elements = shape.iter().fold(1i64, |n, &e| n.saturating_mul(e));
        let refuse = |reason: String| ViewError::NotAPartition {
            buffer: self.name(k).to_owned(),
            layout: layout.to_string(),
            elements,
            reason,
        };
        if layout.rank() != 2 {
            return Err(refuse("it needs two modes, (thread, value)".to_owned()));
        }
        let once = owners == Owners::One;
        if once && layout.size() != elements {
            return Err(refuse(format!("it has {} coordinates", layout.size())));
        }
        if elements.max(layout.size()) > MAX_TILE {
            return Err(refuse(format!("a tile has at most {MAX_TILE}")));
        }
        let mut owner = vec![None; elements as usize];
        for i in 0..layout.size() {
            let x = layout.index(i);
            let slot = usize::try_from(x).ok().and_then(|x| owner.get_mut(x));
            match slot {
                None => return Err(refuse(format!("coordinate {i} gives {x}"))),
                Some(Some(other)) if once => {
                    return Err(refuse(format!("coordinates {other} and {i} both give {x}")));
                }
                Some(slot) => *slot = Some(i),
            }
        }
        if let Some(x) = owner.iter().position(Option::is_none) {
            return Err(refuse(format!("no coordinate gives {x}")));
        }
        let threads = layout.get(0)?.size();
        let given = k.pool.facts(thread).hi + 1;
        if given != threads.into() {
            return Err(refuse(format!(
                "it is for {threads} threads and is given {given}"
            )));
        }
        Ok(Partition {
            view: self.clone(),
            tv: *layout,
            modes: by_mode(shape, layout)?,
            thread,
            values: layout.get(1)?.size(),
            vector: 1,
            by: Instruction::Plain,
            operand: None,
            shape: None,
            owner: None,
            only: Vec::new(),
            origin: k.here(),
            fill: 0,
        })
    }
}

impl View {
    /// Whether `modes`, from (thread, value) to coordinates of the tile, give each thread aligned runs of `run` neighbours along the
    /// buffer's contiguous mode.
    pub(super) fn has_runs(
        &self,
        modes: &[Layout],
        values: i64,
        run: i64,
    ) -> Result<bool, ViewError> {
        // The contiguous mode is the buffer's last, which is the first of a view that is transposed.
        let contiguous = if self.reversed { 0 } else { modes.len() - 1 };
        has_runs(contiguous, modes, values, run)
    }
}

/// Whether `modes`, from (thread, value) to coordinates, give each thread aligned runs of `run` neighbours along the mode `contiguous`.
pub(super) fn has_runs(
    contiguous: usize,
    modes: &[Layout],
    values: i64,
    run: i64,
) -> Result<bool, ViewError> {
    for (mode, map) in modes.iter().enumerate() {
        for thread in 0..map.get(0)?.size() {
            for value in 0..values {
                let first = value / run * run;
                let step = map.at(&[thread, value]) - map.at(&[thread, first]);
                let wanted = if mode == contiguous { value - first } else { 0 };
                let aligned = mode != contiguous || map.at(&[thread, first]) % run == 0;
                if step != wanted || !aligned {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// How many threads hold an element of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owners {
    /// Exactly one.
    One,
    /// At least one.
    Some,
}

impl Partition {
    /// The same share, touched `elements` values at a time where the buffer's rows are aligned to that: values of a vector must be neighbours
    /// along the buffer's contiguous mode.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let tile = x.tile(&mut k, &[128], &[block])?;
    /// let near = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, thread)?;
    /// assert!(near.vectors(&k, 4).is_ok());
    /// let far = tile.partition(&mut k, &Layout::parse("(32,4):(1,32)")?, thread)?;
    /// assert!(far.vectors(&k, 4).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Vector`] if they are not, or if a vector has not 1, 2, 4, 8 or 16 elements in at most 16 bytes.
    pub fn vectors(&self, k: &Kernel, elements: i64) -> Result<Self, ViewError> {
        self.view.own(k)?;
        let buffer = k.buffer(self.view.buffer);
        let refuse = |reason| ViewError::Vector {
            buffer: buffer.name.clone(),
            elements,
            reason,
        };
        let fits = (1..=16).contains(&elements) && elements * buffer.bytes <= 16;
        if !fits || !(elements as u64).is_power_of_two() {
            return Err(refuse("a vector is a power of two and at most 16 bytes"));
        }
        if self.by != Instruction::Plain {
            return Err(refuse(
                "the copy's instruction says how many it moves at once",
            ));
        }
        if self.values % elements != 0 {
            return Err(refuse("they do not divide a thread's values"));
        }
        if !self.view.has_runs(&self.modes, self.values, elements)? {
            return Err(refuse(
                "a thread's values are no neighbours along the contiguous mode",
            ));
        }
        Ok(Self {
            vector: elements,
            ..self.clone()
        })
    }

    /// The same share, but what is outside of the buffer is read as `value`, and not as 0: −∞ for a maximum.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F16, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 256)?, k.thread());
    /// let share = x.tile(&mut k, &[256], &[block])?.partition(&mut k, &Layout::parse("(32,8):(8,1)")?, thread)?;
    /// let x = k.load_fragment(&share.filled(&k, f32::NEG_INFINITY)?)?;
    /// assert!(share.filled(&k, 0.1).is_err()); // 0.1 is no f16
    /// # let _ = x;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Vector`] for a number that the element type does not have exactly, for integers, and for shares that are not moved by loads.
    pub fn filled(&self, k: &Kernel, value: f32) -> Result<Self, ViewError> {
        self.view.own(k)?;
        let bits = self.view.element.and_then(|e| bits_of(e, value));
        let Some(fill) = bits.filter(|_| self.by == Instruction::Plain) else {
            return Err(ViewError::Vector {
                buffer: self.view.name(k).to_owned(),
                elements: self.vector,
                reason: "loads of f32, f16 and bf16 are filled, with a number that the type has exactly",
            });
        };
        Ok(Self {
            fill,
            ..self.clone()
        })
    }

    /// What the thread has of a vector along a mode of this tile: the elements of `vector` at the coordinates of its values along `mode`. So the
    /// fragment of a row of weights is broadcast over the rows of a tile, and the fragment of its row sums is stored. Threads that have the same
    /// elements all read them, and the first of them writes.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_codegen::view::Combine;
    /// use layout_core::Layout;
    ///
    /// // y = the sums of rows of 64 elements; a warp has 2 rows at a time.
    /// let mut k = Kernel::new("sums", 32);
    /// let (rows, cols) = (k.size("rows", 1 << 20), k.constant(64));
    /// let (x, y) = (k.input("x", Element::F32, &[rows, cols]), k.output("y", Element::F32, &[rows]));
    /// let (i, zero, thread) = (k.tiles(Axis::X, rows, 2)?, k.constant(0), k.thread());
    /// let shares = Layout::parse("((16,2),4):((8,1),2)")?;
    /// let x = x.tile(&mut k, &[2, 64], &[i, zero])?.partition(&mut k, &shares, thread)?.vectors(&k, 4)?;
    /// let y = y.tile(&mut k, &[2], &[i])?;
    /// let y = x.along(&mut k, 0, &y)?;
    /// let sums = k.load_fragment(&x)?.reduce(&mut k, 1, Combine::Add)?;
    /// k.store_fragment(&y, &sums)?;
    /// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Shapes`] unless `vector` is a tile of one mode, of the extent that this tile has along `mode`; [`ViewError::NoTile`].
    #[track_caller]
    pub fn along(&self, k: &mut Kernel, mode: usize, vector: &View) -> Result<Self, ViewError> {
        k.at_line();
        let mut shape = self.view.tile_shape(k)?.to_vec();
        let given = vector.tile_shape(k)?.to_vec();
        if shape.get(mode) != given.first() || given.len() != 1 {
            return Err(ViewError::Shapes {
                from: self.describe(k),
                to: format!("a tile of {given:?} elements of `{}`", vector.name(k)),
            });
        }
        for (i, extent) in shape.iter_mut().enumerate() {
            *extent = if i == mode { *extent } else { 1 };
        }
        let tv = along(&self.modes[mode])?;
        let mut share = vector.share(k, &tv, self.thread, Owners::Some)?;
        share.owner = first_holder(k, &tv, self.thread)?;
        share.shape = Some(shape);
        Ok(share)
    }

    /// The same share, of which a store writes only the values at whose coordinate along `mode` the element of `of` is `number`. `of` is a tile of an input of s32 with one mode, a number for each
    /// coordinate: which tile of the output owns a row. So tiles may begin and end anywhere, even where data say, and the prover still knows that no element is stored twice: all threads find the
    /// same owner of a row.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // Block t copies the rows that it owns of the 16 from first[t] on.
    /// let mut k = Kernel::new("rows", 128);
    /// let (m, tiles, cols, zero) = (k.size("m", 1 << 20), k.size("tiles", 1 << 20), k.constant(32), k.constant(0));
    /// let [first, owner] = [("first", tiles), ("owner", m)].map(|(name, n)| k.input(name, Element::S32, &[n]));
    /// let x = k.input("x", Element::F32, &[m, cols]);
    /// let y = k.partial_output("y", Element::F32, &[m, cols]);
    /// let (t, thread, shares) = (k.tiles(Axis::X, tiles, 1)?, k.thread(), Layout::parse("((8,16),4):((64,1),16)")?);
    /// let row = first.load::<u32>(&mut k, &[t])?.to_index(&mut k);
    /// let [x, y] = [x, y].map(|v| v.at(&mut k, &[row, zero])?.tile(&mut k, &[16, 32], &[zero, zero])?.partition(&mut k, &shares, thread));
    /// let owners = owner.at(&mut k, &[row])?.tile(&mut k, &[16], &[zero])?;
    /// let y = y?.where_equal(&mut k, 0, &owners, t)?;
    /// let rows = k.load_fragment(&x?)?;
    /// k.store_fragment(&y, &rows)?;
    /// assert!(k.build(Arch(80)).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Shapes`] unless `of` is a tile of one mode, of the extent that this tile has along `mode`; [`ViewError::Single`] for elements that are not s32; [`ViewError::NoTile`].
    #[track_caller]
    pub fn where_equal(
        &self,
        k: &mut Kernel,
        mode: usize,
        of: &View,
        number: Expr,
    ) -> Result<Self, ViewError> {
        k.at_line();
        let given = of.tile_shape(k)?.to_vec();
        if given.len() != 1 || self.view.tile_shape(k)?.get(mode) != given.first() {
            return Err(ViewError::Shapes {
                from: self.describe(k),
                to: format!("a tile of {given:?} elements of `{}`", of.name(k)),
            });
        }
        // The values of a row share the predicate.
        let mut known: Vec<((Expr, Option<Reg>), Reg)> = Vec::new();
        let mut only = Vec::new();
        for value in 0..self.values {
            let at = self.coordinates(k, value)?[mode];
            let before = self.only.get(value as usize).copied().or(self.owner);
            let same = known.iter().find(|(known, _)| *known == (at, before));
            let reg = if let Some(&(_, reg)) = same {
                reg
            } else {
                let element = of.load::<i32>(k, &[at])?.to_index(k);
                let distance = k.sub(element, number);
                let reg = k.compare_here(Cmp::Eq, distance, 0, before);
                known.push(((at, before), reg));
                reg
            };
            only.push(reg);
        }
        Ok(Self {
            origin: only.first().map_or(self.origin, |&reg| k.origin(reg)),
            only,
            ..self.clone()
        })
    }

    /// Values of a thread.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let tile = x.tile(&mut k, &[128], &[block])?;
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(4,1)")?, thread)?;
    /// assert_eq!(share.values(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values(&self) -> i64 {
        self.values
    }

    /// Coordinates in the tile of this thread's value `value`, in the tile's order of modes.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// let n = k.size("n", 1 << 20);
    /// let x = k.input("x", Element::F32, &[n]);
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let tile = x.tile(&mut k, &[128], &[block])?;
    /// let share = tile.partition(&mut k, &Layout::parse("(32,4):(1,32)")?, thread)?;
    /// let by = k.constant(64);
    /// assert_eq!(share.coordinates(&mut k, 2)?, [k.add(thread, by)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for values below [`Partition::values`].
    #[track_caller]
    pub fn coordinates(&self, k: &mut Kernel, value: i64) -> Result<Vec<Expr>, ViewError> {
        k.at_line();
        let value = k.pool.constant(value);
        let modes = self.modes.iter();
        Ok(modes
            .map(|map| index(&mut k.pool, map, &[self.thread, value]))
            .collect::<Result<Vec<_>, _>>()?)
    }

    /// How this share is called in an error.
    pub(super) fn describe(&self, k: &Kernel) -> String {
        let shape: Vec<_> = self
            .view
            .tile
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect();
        format!(
            "`{}` (a tile of {}, {} a thread)",
            self.view.name(k),
            shape.join("x"),
            self.values
        )
    }
}

/// The predicate of the first of the threads that have the same elements; none if no two do.
pub(super) fn first_holder(
    k: &mut Kernel,
    tv: &Layout,
    thread: Expr,
) -> Result<Option<Reg>, ViewError> {
    let threads = tv.get(0)?.flatten();
    let (mut shape, mut strides, mut repeats) = (Vec::new(), Vec::new(), 1);
    for i in 0..threads.leaves() {
        let (extent, stride) = threads.leaf(i);
        shape.push(extent);
        strides.push(if stride == 0 { repeats } else { 0 });
        if stride == 0 {
            repeats *= extent;
        }
    }
    if repeats == 1 {
        return Ok(None);
    }
    let repeat = index(&mut k.pool, &Layout::flat(&shape, &strides)?, &[thread])?;
    let one = k.pool.constant(1);
    Ok(Some(k.compare(Cmp::Lt, repeat, one)))
}

/// The bits of a number in an element type that has it exactly.
fn bits_of(element: Element, value: f32) -> Option<u32> {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
    match element {
        Element::F32 => Some(bits),
        Element::Bf16 => (bits.trailing_zeros() >= 16).then_some(bits >> 16),
        Element::F16 => {
            let sign = bits >> 16 & 0x8000;
            match (exponent, fraction) {
                (0, 0) => Some(sign),
                (0xff, 0) => Some(sign | 0x7c00),
                (113..=142, f) if f.trailing_zeros() >= 13 => {
                    Some(sign | (exponent - 112) << 10 | f >> 13)
                }
                _ => None,
            }
        }
        _ => None,
    }
}
