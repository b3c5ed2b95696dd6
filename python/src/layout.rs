//! The class `Layout`: a value of the calculator and its methods, each of which is a function of the calculator.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use serde_json::Value;
use tilewright::Swizzled;
use tilewright_workbench::{Evaluated, Refusal};

use crate::picture::{self, Picture};
use crate::{answer, operand, refusal};

/// A layout: a map from coordinates to offsets, written shape:stride as CuTe does.
///
/// `Layout("(6,2):(8,2)")` reads the notation or any expression of the calculator; `Layout(shape, stride)` takes ints and tuples, and is compact,
/// the first mode fastest, without a stride. A swizzled layout is `Sw<3,3,3> o (64,64):(64,1)`; strides may have names, `(8,64):(ld,1)`;
/// compositions of several steps, swizzles alone and bit matrices are layouts too, of another `kind`.
///
/// `layout(i)` and `layout((1, 2))` are offsets, `layout(1, None)` is a slice, `a @ b` is the composition a after b, `len(layout)` the number of
/// modes and `layout[i]` one of them. Two layouts are `==` if they are written the same; `a.equals(b)` compares them as functions.
///
/// >>> tile = Layout("Sw<3,3,3> o (64,64):(64,1)")
/// >>> tile((1, 0)), tile.is_bijective()
/// (72, True)
#[pyclass(frozen, module = "tilewright")]
pub(crate) struct Layout {
    text: String,
    answer: Value,
    /// For offsets without a detour over text.
    plain: Option<Swizzled>,
}

impl Layout {
    pub(crate) fn new(value: Evaluated, answer: Value) -> Self {
        let text = value.to_string();
        let plain = Swizzled::parse(&text).ok();
        Self {
            text,
            answer,
            plain,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The value of `name(self, operands)`.
    fn call<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        operands: impl IntoIterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let operands = operand::texts(operands)?;
        let comma = if operands.is_empty() { "" } else { ", " };
        operand::value(py, &format!("{name}({}{comma}{operands})", self.text))
    }

    fn one<'py>(&self, name: &str, operand: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.call(operand.py(), name, [operand.clone()])
    }

    fn none<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, name, [])
    }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (shape, stride=None))]
    fn python_new<'py>(
        shape: &Bound<'py, PyAny>,
        stride: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let py = shape.py();
        let is_text = shape.is_instance_of::<PyString>();
        let text = match (stride, is_text) {
            (None, true) => shape.extract::<String>()?,
            (Some(stride), _) => {
                let (shape, stride) = (operand::text(shape)?, operand::text(stride)?);
                format!("make_layout({shape}, {stride})")
            }
            (None, false) => format!("make_layout({})", operand::text(shape)?),
        };
        let value = operand::evaluated(py, &text)?;
        let answer = value.to_json();
        let kind = answer["kind"].as_str().unwrap_or_default();
        if matches!(kind, "int" | "coord" | "list") {
            let text = format!("make_layout({text})");
            let value = operand::evaluated(py, &text)?;
            let answer = value.to_json();
            return Ok(Self::new(value, answer));
        }
        if matches!(
            kind,
            "bool" | "expr" | "distribution" | "shards" | "redistribution"
        ) {
            let message = format!("`{text}` is not a layout");
            let error = Refusal::usage("type_mismatch", message).at((0, text.len()), &*text);
            return Err(refusal::of_layout(py, &error));
        }
        Ok(Self::new(value, answer))
    }

    /// `layout` (also swizzled, also with named strides), `coord_layout`, `composed`, `inverse`, `swizzle` or `matrix`.
    #[getter]
    fn kind(&self) -> &str {
        self.answer["kind"].as_str().unwrap_or_default()
    }

    /// The extents, nested; None of what has no shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answer::nested(py, &self.answer["shape"])
    }

    /// The strides, nested as the shape; names are strings. None of what has no strides.
    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answer::nested(py, &self.answer["stride"])
    }

    /// (B, M, S) of `Sw<B,M,S>`, or None. S is relative: the source bits are M+S to M+S+B.
    #[getter]
    fn swizzle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = match self.kind() {
            "swizzle" => &self.answer["value"],
            _ => &self.answer["swizzle"],
        };
        answer::nested(py, value)
    }

    /// What is added to the offsets of the inner layout, before the swizzle.
    #[getter]
    fn offset<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answer::nested(py, &self.answer["offset"])
    }

    /// The value as `tilewright eval --json` prints it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answer::json(py, &self.answer)
    }

    /// The number of coordinates.
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "size")
    }

    /// The elements of memory that the layout reaches: one more than its largest offset.
    fn cosize<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "cosize")
    }

    /// The number of modes.
    fn rank<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "rank")
    }

    /// The deepest nesting of the shape: 0 of an int.
    fn depth<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "depth")
    }

    /// This layout after another: `a.compose(b)(i)` is `a(b(i))`. A tuple is a tiler, which composes mode by mode; None keeps a mode.
    ///
    /// >>> Layout("(6,2):(8,2)").compose("(4,3):(3,1)")
    /// Layout('((2,2),3):((24,2),8)')
    fn compose<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("composition", other)
    }

    /// The same function with the fewest modes; with a profile, mode by mode of it.
    #[pyo3(signature = (profile=None))]
    fn coalesce<'py>(
        &self,
        py: Python<'py>,
        profile: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "coalesce", profile)
    }

    /// Without modes of stride 0 or extent 1, coalesced.
    fn filter<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "filter")
    }

    /// Without inner parentheses.
    fn flatten<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "flatten")
    }

    /// The modes from the last to the first.
    fn reverse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "reverse")
    }

    /// What the layout leaves out of 0 to `n`, of its cosize without `n`. A `LayoutError` where no layout fills the gaps.
    #[pyo3(signature = (n=None))]
    fn complement<'py>(
        &self,
        py: Python<'py>,
        n: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, "complement", n)
    }

    /// The longest R with `self(R(i)) == i`.
    fn right_inverse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "right_inverse")
    }

    /// An X with `X(self(i)) == i`.
    fn left_inverse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "left_inverse")
    }

    /// Both inverses, of a bijection.
    fn inverse<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "inverse")
    }

    /// The coordinates along which the layout stands still.
    fn nullspace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "nullspace")
    }

    /// Tiles and what is left of each mode: ((tile0, rest0), (tile1, rest1), …).
    fn logical_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("logical_divide", tiler)
    }

    /// ((tile0, tile1, …), (rest0, rest1, …)).
    fn zipped_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("zipped_divide", tiler)
    }

    /// ((tile0, tile1, …), rest0, rest1, …).
    fn tiled_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("tiled_divide", tiler)
    }

    /// (tile0, tile1, …, rest0, rest1, …).
    fn flat_divide<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("flat_divide", tiler)
    }

    /// The layout, repeated as the tiler says.
    fn logical_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("logical_product", tiler)
    }

    /// ((block0, block1, …), (tiles0, tiles1, …)).
    fn zipped_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("zipped_product", tiler)
    }

    /// ((block0, block1, …), tiles0, tiles1, …).
    fn tiled_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("tiled_product", tiler)
    }

    /// (block0, block1, …, tiles0, tiles1, …).
    fn flat_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("flat_product", tiler)
    }

    /// Blocks side by side.
    fn blocked_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("blocked_product", tiler)
    }

    /// Blocks interleaved.
    fn raked_product<'py>(&self, tiler: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("raked_product", tiler)
    }

    /// The layout, repeated until it fills the shape, in the order of the numbers.
    #[pyo3(signature = (shape, order=None))]
    fn tile_to_shape<'py>(
        &self,
        shape: Bound<'py, PyAny>,
        order: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(
            shape.py(),
            "tile_to_shape",
            [shape].into_iter().chain(order),
        )
    }

    /// In units of n elements.
    fn upcast<'py>(&self, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("upcast", n)
    }

    /// In parts of 1/n element.
    fn downcast<'py>(&self, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("downcast", n)
    }

    /// In elements of another width, in bits.
    fn recast<'py>(
        &self,
        old_bits: Bound<'py, PyAny>,
        new_bits: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(old_bits.py(), "recast", [old_bits, new_bits])
    }

    /// Modes `begin` to `end` as one mode.
    fn group<'py>(
        &self,
        begin: Bound<'py, PyAny>,
        end: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(begin.py(), "group", [begin, end])
    }

    /// The modes with these numbers, in this order.
    #[pyo3(signature = (*modes))]
    fn select<'py>(&self, modes: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.call(modes.py(), "select", modes.iter())
    }

    /// The layout with another as its last mode.
    fn append<'py>(&self, mode: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("append", mode)
    }

    /// The layout with another as its first mode.
    fn prepend<'py>(&self, mode: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("prepend", mode)
    }

    /// The tile at a coordinate: what a block has.
    fn local_tile<'py>(
        &self,
        tiler: Bound<'py, PyAny>,
        coord: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(tiler.py(), "local_tile", [tiler, coord])
    }

    /// One element of each tile: what thread `i` has.
    fn local_partition<'py>(
        &self,
        threads: Bound<'py, PyAny>,
        i: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(threads.py(), "local_partition", [threads, i])
    }

    /// The natural coordinate of a linear one.
    fn coordinate<'py>(&self, i: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = format!("idx2crd({}, {})", operand::text(&i)?, self.text);
        operand::value(i.py(), &text)
    }

    /// The linear coordinates that have this offset.
    fn preimage<'py>(&self, offset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("preimage", offset)
    }

    /// Whether no offset occurs twice.
    fn is_injective<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "is_injective")
    }

    /// Whether the offsets are exactly 0 to size, each once.
    fn is_bijective<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "is_bijective")
    }

    /// Whether there is no gap between the offsets, each once.
    fn is_compact<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.none(py, "is_compact")
    }

    /// Whether both are the same function of the linear coordinate.
    fn equals<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.one("equal", other)
    }

    /// The layout as another library writes it: pycute, cute, cute-cpp, cute-dsl, triton, triton:16x8, triton-shared.
    fn written(slf: &Bound<'_, Self>, notation: &str) -> PyResult<String> {
        crate::questions::written(slf.as_any(), notation)
    }

    /// The picture: offsets, or with `banks` their banks, or with an access such as "ldmatrix.x4 @ (16,2):(64,8)" its lanes and wavefronts.
    #[pyo3(signature = (*, banks=false, access=None, elem=None))]
    fn picture(
        slf: &Bound<'_, Self>,
        banks: bool,
        access: Option<&str>,
        elem: Option<&str>,
    ) -> PyResult<Picture> {
        picture::of_operand(slf.as_any(), banks, access, elem)
    }

    /// The offset of a coordinate, an int or a tuple; with None in it, the slice that None leaves open.
    #[pyo3(signature = (*coordinate))]
    fn __call__<'py>(&self, coordinate: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = coordinate.py();
        if coordinate.is_empty() {
            let message = "a coordinate is expected: an int, a tuple, or the ints of one";
            return Err(PyTypeError::new_err(message));
        }
        if let (Some(layout), 1) = (&self.plain, coordinate.len())
            && let Ok(i) = coordinate.get_item(0)?.extract::<i64>()
            && let Ok(offset) = layout.checked_index(i)
        {
            return Ok(offset.into_pyobject(py)?.into_any());
        }
        let operands = operand::texts(coordinate.iter())?;
        operand::value(
            py,
            &format!("let layout = {}; layout({operands})", self.text),
        )
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.none(py, "rank")?.extract()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, mode: isize) -> PyResult<Bound<'py, PyAny>> {
        let rank = self.__len__(py)? as isize;
        let place = if mode < 0 { mode + rank } else { mode };
        if !(0..rank).contains(&place) {
            let message = format!("mode {mode} of a layout of {rank}");
            return Err(PyIndexError::new_err(message));
        }
        operand::value(py, &format!("get({}, {place})", self.text))
    }

    fn __matmul__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compose(other)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Self>()
            .is_ok_and(|other| other.get().text == self.text)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("Layout('{}')", self.text)
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    /// A copy by pickle reads the notation.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().text.clone(),))
    }

    /// A notebook's picture; None of what has none.
    fn _repr_svg_(&self, py: Python<'_>) -> Option<String> {
        let picture = picture::of_layout(py, &self.text, false, None, None).ok()?;
        Some(picture.scene().svg())
    }

    fn _repr_html_(&self, py: Python<'_>) -> Option<String> {
        let picture = picture::of_layout(py, &self.text, false, None, None).ok()?;
        Some(picture::frame(picture.scene()))
    }
}
