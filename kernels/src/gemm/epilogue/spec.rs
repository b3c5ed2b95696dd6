//! The epilogue that a problem names: D = activation(α·AB + β·C + bias).

use std::fmt;
use std::str::FromStr;

use crate::gemm::ProblemError;

/// A vector that is added to C, in C's element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Bias {
    /// Nothing is added.
    #[default]
    None,
    /// m elements: element i is added to row i of C.
    Row,
    /// n elements: element j is added to column j of C, as in a linear layer with row-major activations.
    Column,
}

/// A function that each element of C goes through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Activation {
    /// x
    #[default]
    Identity,
    /// max(x, 0); NaN stays NaN.
    Relu,
    /// x·σ(2√(2/π)·(x + 0.044715·x³)), the tanh form of x·Φ(x) (Hendrycks and Gimpel 2016), which cublasLt computes too.
    Gelu,
}

/// The epilogue of a product.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Epilogue {
    /// What is added.
    pub bias: Bias,
    /// What is applied last.
    pub activation: Activation,
}

/// 2·√(2/π), and the factor of x³ in [`Activation::Gelu`].
pub const GELU: [f64; 2] = [1.595_769_121_605_730_7, 0.044_715];

/// `[c, l]` of gelu(x) = x / (1 + 2^(x·(c·x² + l))).
pub(crate) fn gelu_exponent() -> [f32; 2] {
    let [g, c] = GELU;
    let up = -std::f64::consts::LOG2_E;
    [(g * c * up) as f32, (g * up) as f32]
}

impl Activation {
    /// The function in double precision.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Activation::Relu if x < 0.0 => 0.0,
            Activation::Identity | Activation::Relu => x,
            Activation::Gelu => {
                let u = GELU[0] * (x + GELU[1] * x * x * x);
                x / (1.0 + (-u).exp())
            }
        }
    }
}

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bias::None => "none",
            Bias::Row => "row",
            Bias::Column => "column",
        })
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Activation::Identity => "none",
            Activation::Relu => "relu",
            Activation::Gelu => "gelu",
        })
    }
}

fn named<T: fmt::Display + Copy>(
    all: &[T],
    what: &'static str,
    text: &str,
) -> Result<T, ProblemError> {
    all.iter()
        .copied()
        .find(|v| v.to_string() == text)
        .ok_or_else(|| ProblemError::UnknownName {
            what,
            asked: text.to_owned(),
            known: all.iter().map(ToString::to_string).collect(),
        })
}

impl FromStr for Bias {
    type Err = ProblemError;

    fn from_str(s: &str) -> Result<Self, ProblemError> {
        named(&[Bias::None, Bias::Row, Bias::Column], "bias", s)
    }
}

impl FromStr for Activation {
    type Err = ProblemError;

    fn from_str(s: &str) -> Result<Self, ProblemError> {
        let all = [Activation::Identity, Activation::Relu, Activation::Gelu];
        named(&all, "activation", s)
    }
}
