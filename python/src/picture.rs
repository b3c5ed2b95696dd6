//! Pictures of layouts and instructions, for notebooks and files.

use pyo3::prelude::*;
use tilewright_workbench::Refusal;
use tilewright_workbench::picture::{self, AtomQuestion, Before, Colour, Question, Scene};

use crate::{answer, operand, refusal};

/// A picture of a layout, of the accesses to it or of an instruction. A notebook shows it; `svg` and `html` are whole files.
#[pyclass(frozen, module = "tilewright")]
pub(crate) struct Picture {
    scene: Scene,
}

impl Picture {
    pub(crate) fn scene(&self) -> &Scene {
        &self.scene
    }
}

#[pymethods]
impl Picture {
    /// One SVG document.
    #[getter]
    fn svg(&self) -> String {
        self.scene.svg()
    }

    /// One HTML page, with a script that shows coordinates, phases, and before and after.
    #[getter]
    fn html(&self) -> String {
        self.scene.page()
    }

    /// The cells and costs.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answer::json(py, &self.scene.to_json())
    }

    fn _repr_svg_(&self) -> String {
        self.scene.svg()
    }

    /// The page in a frame of its own, so that its style and its script stay there.
    fn _repr_html_(&self) -> String {
        frame(&self.scene)
    }

    /// The table that a terminal shows.
    fn __str__(&self) -> String {
        self.scene.table(Colour::None, 160).trim_end().to_owned()
    }
}

/// The height of the frame beyond the picture, in pixels: what the page says above and below it.
const AROUND: f64 = 220.0;
/// The height of the frame at most; what is higher scrolls.
const MOST: f64 = 640.0;

pub(crate) fn frame(scene: &Scene) -> String {
    let (svg, page) = (scene.svg(), scene.page());
    let height = svg.split_once("height=\"").and_then(|(_, rest)| {
        let number = rest
            .split(|c: char| !(c.is_ascii_digit() || c == '.'))
            .next();
        number?.parse::<f64>().ok()
    });
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<iframe title=\"picture of a layout\" style=\"width:100%;height:{:.0}px;border:0\" srcdoc=\"{escaped}\"></iframe>",
        height.map_or(MOST, |height| MOST.min(height + AROUND))
    )
}

/// The picture of a layout; rows are its first mode, columns all others.
pub(crate) fn of_layout(
    py: Python<'_>,
    layout: &str,
    banks: bool,
    access: Option<&str>,
    elem: Option<&str>,
) -> PyResult<Picture> {
    let question = Question {
        banks,
        access,
        elem,
        before: Before::Auto,
        ..Question::of(layout)
    };
    let refuse = |error: Refusal| refusal::of_layout(py, &error);
    Ok(Picture {
        scene: question.scene().map_err(refuse)?,
    })
}

/// The picture of an instruction's fragments, such as "mma.m16n8k16.f16": who holds which element.
#[pyfunction]
#[pyo3(signature = (name, operand=None))]
pub(crate) fn instruction(py: Python<'_>, name: &str, operand: Option<&str>) -> PyResult<Picture> {
    let question = AtomQuestion {
        operand,
        ..AtomQuestion::of(name)
    };
    let refuse = |error: Refusal| refusal::of_layout(py, &error);
    Ok(Picture {
        scene: question.scene().map_err(refuse)?,
    })
}

/// The names of the instructions that have a picture.
#[pyfunction]
pub(crate) fn instructions() -> Vec<String> {
    picture::atoms()
}

/// The picture of a layout given as any operand.
pub(crate) fn of_operand(
    value: &Bound<'_, PyAny>,
    banks: bool,
    access: Option<&str>,
    elem: Option<&str>,
) -> PyResult<Picture> {
    of_layout(value.py(), &operand::text(value)?, banks, access, elem)
}
