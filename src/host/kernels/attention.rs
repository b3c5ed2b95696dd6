//! Attention, forward.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::attention::{Attention, Tile, attention, hopper};
use tilewright_kernels::{KernelError, Proven};

use super::{Expected, Problem, Tensor, extent, roundoff};
use crate::host::{Matrix, Role, Scalar};

/// Which kernel of attention is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Design {
    /// That of the architecture: on `sm_90` the one for Hopper, elsewhere the portable one, with their default tiles.
    #[default]
    Auto,
    /// The portable kernel ([`attention`]).
    Portable(Tile),
    /// The kernel for Hopper ([`hopper::attention`]).
    Hopper(hopper::Tile),
}

/// Attention of `batch × heads` heads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heads {
    /// What is computed.
    pub what: Attention,
    /// Which kernel, and the tile of a block.
    pub design: Design,
    /// Sequences.
    pub batch: u64,
    /// Heads of queries in a sequence.
    pub heads: u64,
    /// Heads of keys and values, a divisor of the heads.
    pub kv_heads: u64,
    /// Queries of a head.
    pub queries: u64,
    /// Keys of a head.
    pub keys: u64,
}

impl Heads {
    /// Heads that share their keys.
    fn group(&self) -> u64 {
        self.heads.checked_div(self.kv_heads).unwrap_or(1)
    }

    /// Sets of heads that share their keys.
    fn sets(&self) -> u64 {
        self.batch.saturating_mul(self.kv_heads)
    }
}

impl Problem for Heads {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        if self.group().saturating_mul(self.kv_heads) != self.heads {
            return Err(KernelError::Number {
                what: "kv-heads",
                given: self.kv_heads as i64,
                accepted: "a divisor of the heads",
            });
        }
        let hopper = |tile| hopper::attention(self.what, tile, arch);
        match self.design {
            Design::Auto if arch == hopper::ARCH => hopper(hopper::Tile::of(self.what)),
            Design::Auto => attention(self.what, Tile::default(), arch),
            Design::Portable(tile) => attention(self.what, tile, arch),
            Design::Hopper(tile) => hopper(tile),
        }
    }

    fn least_arch(&self) -> Arch {
        match self.design {
            Design::Hopper(_) => hopper::ARCH,
            _ => Arch(80),
        }
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        vec![
            ("sets", extent(self.sets())),
            ("group", extent(self.group())),
            ("queries", extent(self.queries)),
            ("keys", extent(self.keys)),
        ]
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Attention {
            element, head_dim, ..
        } = self.what;
        let d = head_dim as u64;
        let of_queries = [self.batch, self.heads, self.queries, d];
        let of_keys = [self.batch, self.kv_heads, self.keys, d];
        let mut tensors = vec![Tensor::new("q", Role::Input, element, &of_queries)];
        tensors.extend(["k", "v"].map(|n| Tensor::new(n, Role::Input, element, &of_keys)));
        tensors.push(Tensor::new("o", Role::Output, element, &of_queries));
        let lse = Tensor::new("lse", Role::Output, Element::F32, &of_queries[..3]);
        tensors.push(lse);
        tensors
    }

    fn rows(&self) -> usize {
        let heads = self.batch.saturating_mul(self.heads);
        heads.saturating_mul(self.queries) as usize
    }

    fn row_cost(&self) -> usize {
        2 * self.keys as usize * self.what.head_dim as usize
    }

    /// With u the unit of the 16-bit type, weights are rounded (u of Σ w·|v|), then the result (u of it); scores are summed in f32, and their error goes into the
    /// exponent (2⁻¹³ of the same sum covers heads of 128 elements below 1). Weights of f16 below 2⁻¹⁴ have an absolute error of 2⁻²⁵.
    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let [q, k, v] = inputs else { return Vec::new() };
        let (d, keys) = (self.what.head_dim as usize, self.keys as usize);
        let (head, query) = (row / self.queries as usize, row % self.queries as usize);
        let first = head / self.group() as usize * keys;
        let seen = if self.what.causal {
            keys.min(query + 1)
        } else {
            keys
        };
        let score = |key: usize| {
            let terms = (0..d).map(|c| q.at(row, c) * k.at(first + key, c));
            terms.sum::<f64>() / (d as f64).sqrt()
        };
        let scores: Vec<f64> = (0..seen).map(score).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let total: f64 = weights.iter().sum();
        let (mut o, mut size) = (vec![0.0; d], vec![0.0; d]);
        for (key, weight) in weights.iter().enumerate() {
            for c in 0..d {
                let x = v.at(first + key, c) * weight / total;
                o[c] += x;
                size[c] += x.abs();
            }
        }
        let tiny = match self.what.element {
            Element::F16 => f64::powi(0.5, 25) * (1.0 + self.keys as f64),
            _ => 0.0,
        };
        let unit = roundoff(self.what.element);
        let o = o.into_iter().zip(size).map(|(value, size)| Expected {
            value,
            allowed: unit * (size + value.abs()) + f64::powi(0.5, 13) * size + tiny,
        });
        let logarithm = most + total.ln();
        let lse = Expected {
            value: logarithm,
            allowed: 1e-4 * (1.0 + logarithm.abs()),
        };
        vec![o.collect(), vec![lse]]
    }
}
