//! Routing of tokens to experts, rows in their order, and weighted sums of rows.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::experts::{Combine, Gather, Route, combine, gather, route};
use tilewright_kernels::{KernelError, Proven};

use super::rows::ULP;
use super::{Expected, Problem, Sequence, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar};

/// The experts of each token, their weights, and the tables of rows in the order of the experts. The input is `logits`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routing {
    /// The kernels.
    pub kernel: Route,
    /// Rows of the logits.
    pub tokens: u64,
}

impl Routing {
    /// The problem for so many tokens.
    pub fn new(kernel: Route, tokens: u64) -> Self {
        Self { kernel, tokens }
    }

    /// The experts of a token, in falling order of their logits, and their weights.
    fn choices(&self, logits: &Matrix, token: usize) -> Vec<(usize, Expected)> {
        let x: Vec<f64> = (0..logits.cols).map(|j| logits.at(token, j)).collect();
        let least = |x: f64| if x.is_nan() { f64::NEG_INFINITY } else { x };
        let mut order: Vec<usize> = (0..x.len()).collect();
        // Equal ones stay in order.
        order.sort_by(|&a, &b| least(x[b]).total_cmp(&least(x[a])));
        order.truncate(self.kernel.top as usize);
        let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let power = |x: f64| (x - most).exp();
        let sum: f64 = x.iter().map(|&x| power(x)).sum();
        let chosen: f64 = order.iter().map(|&e| power(x[e]) / sum).sum();
        let by = if self.kernel.normalized { chosen } else { 1.0 };
        let weight = |&e: &usize| {
            let value = power(x[e]) / sum / by;
            // As those of softmax, and of a sum of 16 and its reciprocal.
            let exponent = (most - x[e]).min(128.0);
            let allowed = ULP * (64.0 + 6.0 * exponent) * value + f64::powi(0.5, 126);
            (e, Expected { value, allowed })
        };
        order.iter().map(weight).collect()
    }
}

/// A number that has no error.
fn exact(value: f64) -> Expected {
    Expected {
        value,
        allowed: 0.0,
    }
}

impl Problem for Routing {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        route(self.kernel, arch).map(|mut all| all.swap_remove(0))
    }

    fn sequence(&self, arch: Arch) -> Result<Sequence, KernelError> {
        Sequence::new(route(self.kernel, arch)?, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let all = [("tokens", self.tokens), ("experts", self.kernel.experts)];
        all.map(|(name, size)| (name, extent(size))).to_vec()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Route {
            element,
            experts,
            top,
            ..
        } = self.kernel;
        let (tokens, top) = (self.tokens, top as u64);
        let numbers = |name, shape: &[u64]| Tensor::new(name, Role::Output, Element::S32, shape);
        vec![
            Tensor::new("logits", Role::Input, element, &[tokens, experts]),
            Tensor::new("weight", Role::Output, Element::F32, &[tokens, top]),
            numbers("counts", &[experts]),
            numbers("offsets", &[experts]),
            numbers("row_of_choice", &[tokens, top]),
            numbers("token_of_row", &[tokens.saturating_mul(top)]),
        ]
    }

    /// All at once: where a token's rows are depends on the others.
    fn rows(&self) -> usize {
        1
    }

    fn row_cost(&self) -> usize {
        self.tokens as usize * self.kernel.experts as usize
    }

    fn expected(&self, inputs: &[Matrix], _row: usize) -> Vec<Vec<Expected>> {
        let (tokens, experts) = (self.tokens as usize, self.kernel.experts as usize);
        let choices = (0..tokens).map(|token| self.choices(&inputs[0], token));
        let choices: Vec<_> = choices.collect();
        let mut tokens_of = vec![Vec::new(); experts];
        for (token, choices) in choices.iter().enumerate() {
            for &(expert, _) in choices {
                tokens_of[expert].push(token);
            }
        }
        let (mut offsets, mut end) = (Vec::new(), 0);
        for tokens in &tokens_of {
            end += tokens.len();
            offsets.push(end);
        }
        let row = |token: usize, expert: usize| {
            let of = &tokens_of[expert];
            let begin = offsets[expert] - of.len();
            begin + of.partition_point(|&other| other < token)
        };
        let numbers = |all: Vec<usize>| all.into_iter().map(|n| exact(n as f64)).collect();
        let all = || choices.iter().enumerate();
        let rows = all().flat_map(|(token, of)| of.iter().map(move |&(e, _)| (token, e)));
        vec![
            choices
                .iter()
                .flatten()
                .map(|&(_, weight)| weight)
                .collect(),
            numbers(tokens_of.iter().map(Vec::len).collect()),
            numbers(offsets.clone()),
            numbers(rows.map(|(token, expert)| row(token, expert)).collect()),
            numbers(tokens_of.concat()),
        ]
    }
}

/// Row `token_of_row[r]` of x for each row r; of zeros if x does not have it. The inputs are x and `token_of_row`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatheredRows {
    /// The kernel.
    pub kernel: Gather,
    /// Rows of x.
    pub tokens: u64,
    /// Rows of the result.
    pub rows: u64,
    /// Columns.
    pub k: u64,
}

/// Random numbers of rows of `from`, in rows of `cols`.
pub(super) fn random_rows([rows, cols]: [u64; 2], from: u64, seed: u64) -> Matrix {
    let mut all = Matrix::random(Element::S32, rows, cols, cols, seed);
    let mut state = seed;
    for row in 0..rows as usize {
        for column in 0..cols as usize {
            // Knuth's MMIX.
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 33).checked_rem(from).unwrap_or(0);
            all.set(row, column, number as f64);
        }
    }
    all
}

/// The row of a matrix with a number, if there is one.
pub(super) fn row_of(matrix: &Matrix, number: f64) -> Option<usize> {
    (number >= 0.0 && number < matrix.rows as f64).then_some(number as usize)
}

impl Problem for GatheredRows {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        gather(self.kernel, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let all = [("tokens", self.tokens), ("rows", self.rows), ("k", self.k)];
        all.map(|(name, size)| (name, extent(size))).to_vec()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let element = self.kernel.element;
        vec![
            Tensor::new("x", Role::Input, element, &[self.tokens, self.k]),
            Tensor::new("token_of_row", Role::Input, Element::S32, &[self.rows]),
            Tensor::new("y", Role::Output, element, &[self.rows, self.k]),
        ]
    }

    fn random(&self, seed: u64) -> Vec<Matrix> {
        vec![
            Matrix::random(self.kernel.element, self.tokens, self.k, self.k, seed),
            random_rows([1, self.rows], self.tokens, seed),
        ]
    }

    fn rows(&self) -> usize {
        self.rows as usize
    }

    fn row_cost(&self) -> usize {
        self.k as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let (x, token_of_row) = (&inputs[0], &inputs[1]);
        let from = row_of(x, token_of_row.at(0, row));
        let value = |j: usize| exact(from.map_or(0.0, |from| x.at(from, j)));
        vec![(0..self.k as usize).map(value).collect()]
    }
}

/// Weighted sums of rows `row_of_choice[t, j]` of z. The inputs are z, `row_of_choice` and `weight`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CombinedRows {
    /// The kernel.
    pub kernel: Combine,
    /// Rows of the sums.
    pub tokens: u64,
    /// Rows of z.
    pub rows: u64,
    /// Columns.
    pub n: u64,
}

impl Problem for CombinedRows {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        combine(self.kernel, arch)
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let all = [("tokens", self.tokens), ("rows", self.rows), ("n", self.n)];
        all.map(|(name, size)| (name, extent(size))).to_vec()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (element, choices) = (self.kernel.element, [self.tokens, self.kernel.top as u64]);
        vec![
            Tensor::new("z", Role::Input, element, &[self.rows, self.n]),
            Tensor::new("row_of_choice", Role::Input, Element::S32, &choices),
            Tensor::new("weight", Role::Input, Element::F32, &choices),
            Tensor::new("y", Role::Output, element, &[self.tokens, self.n]),
        ]
    }

    fn random(&self, seed: u64) -> Vec<Matrix> {
        let choices = [self.tokens, self.kernel.top as u64];
        let [tokens, top] = choices;
        vec![
            Matrix::random(self.kernel.element, self.rows, self.n, self.n, seed),
            random_rows(choices, self.rows, seed),
            Matrix::random(Element::F32, tokens, top, top, seed.wrapping_add(1)),
        ]
    }

    fn rows(&self) -> usize {
        self.tokens as usize
    }

    fn row_cost(&self) -> usize {
        self.n as usize * self.kernel.top as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let [z, row_of_choice, weight] = inputs else {
            return Vec::new();
        };
        let top = self.kernel.top as usize;
        let unit = roundoff(self.kernel.element);
        let tiny = if unit > 1e-6 {
            f64::powi(0.5, 25)
        } else {
            f64::powi(0.5, 149)
        };
        let value = |j: usize| {
            let (mut value, mut size) = (0.0, 0.0);
            for choice in 0..top {
                let from = row_of(z, row_of_choice.at(row, choice));
                let term = weight.at(row, choice) * from.map_or(0.0, |from| z.at(from, j));
                value += term;
                size += term.abs();
            }
            Expected {
                value,
                allowed: unit * value.abs() + 2.0 * ULP * top as f64 * size + tiny,
            }
        };
        vec![(0..self.n as usize).map(value).collect()]
    }
}
