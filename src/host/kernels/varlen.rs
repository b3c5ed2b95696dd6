//! Attention over sequences of any lengths, one after another.

use std::ops::Range;

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::attention::{Attention, hopper};
use tilewright_kernels::grouped::Kind;
use tilewright_kernels::{KernelError, Proven};

use super::attention::attended;
use super::grouped::spread;
use super::{Expected, Problem, Sequence, Tensor, extent};
use crate::host::{Matrix, Role, Scalar};

/// Attention within each of several sequences, whose queries and keys lie one after another.
///
/// The inputs are the ends of the sequences among the queries and among the keys, q, k and v of (token, head, d), the sinks if there are any, and what o and the logarithms held.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Varlen {
    /// What is computed. The order of the modes is (token, head, d).
    pub what: Attention,
    /// The tile of a block.
    pub tile: hopper::Tile,
    /// Sequences.
    pub sequences: u64,
    /// Heads of keys and values; of queries there are [`Attention::group`] for each.
    pub kv_heads: u64,
    /// Queries of all sequences.
    pub queries: u64,
    /// Keys of all sequences.
    pub keys: u64,
}

impl Varlen {
    /// Heads of queries.
    fn heads(&self) -> u64 {
        self.kv_heads.saturating_mul(self.group())
    }

    /// Heads that share their keys.
    fn group(&self) -> u64 {
        self.what.group.max(1) as u64
    }

    /// The rows of a sequence by ends that do not decrease.
    fn rows_of(ends: &Matrix, sequence: usize, all: u64) -> Range<u64> {
        let end = |s: usize| ends.at(0, s).clamp(0.0, all as f64) as u64;
        let first = if sequence == 0 { 0 } else { end(sequence - 1) };
        first..end(sequence).max(first)
    }

    /// The row of o and the logarithm of a token's query; none if no sequence has it.
    fn attended(
        &self,
        inputs: &[Matrix],
        [token, head]: [u64; 2],
    ) -> Option<(Vec<Expected>, Expected)> {
        let (of_queries, of_keys) = (&inputs[0], &inputs[1]);
        let mut all = 0..self.sequences as usize;
        let sequence =
            all.find(|&s| Self::rows_of(of_queries, s, self.queries).contains(&token))?;
        let queries = Self::rows_of(of_queries, sequence, self.queries);
        let keys = Self::rows_of(of_keys, sequence, self.keys);
        let sizes = [queries.end - queries.start, keys.end - keys.start];
        let seen = self.what.mask.keys_of(token - queries.start, sizes);
        let kv_head = head / self.group();
        let rows: Vec<usize> = seen
            .map(|key| ((keys.start + key) * self.kv_heads + kv_head) as usize)
            .collect();
        let sink = self.what.sinks.then(|| inputs[5].at(0, head as usize));
        let of_query = (token * self.heads() + head) as usize;
        Some(attended(&self.what, &inputs[2..5], (of_query, &rows), sink))
    }
}

impl Problem for Varlen {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        hopper::varlen(self.what, self.tile, arch).map(|mut all| all.swap_remove(1))
    }

    fn sequence(&self, arch: Arch) -> Result<Sequence, KernelError> {
        Sequence::new(hopper::varlen(self.what, self.tile, arch)?, arch)
    }

    fn least_arch(&self) -> Arch {
        hopper::ARCH
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        vec![
            ("queries", extent(self.queries)),
            ("sequences", extent(self.sequences)),
            ("kv_heads", extent(self.kv_heads)),
            ("keys", extent(self.keys)),
        ]
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (what, heads) = (&self.what, self.heads());
        let tensor = |name, role, shape: [u64; 3]| Tensor::new(name, role, what.element, &shape);
        let of_queries = |width| [self.queries, heads, width as u64];
        let of_keys = |width| [self.keys, self.kv_heads, width as u64];
        let ends = |name| Tensor::new(name, Role::Input, Element::S32, &[self.sequences]);
        let mut tensors = vec![
            ends("query_ends"),
            ends("key_ends"),
            tensor("q", Role::Input, of_queries(what.head_dim)),
            tensor("k", Role::Input, of_keys(what.head_dim)),
            tensor("v", Role::Input, of_keys(what.value_dim)),
        ];
        if what.sinks {
            tensors.push(Tensor::new("sinks", Role::Input, Element::F32, &[heads]));
        }
        tensors.push(tensor("o", Role::InOut, of_queries(what.value_dim)));
        if what.lse {
            let shape = [heads, self.queries];
            tensors.push(Tensor::new("lse", Role::InOut, Element::F32, &shape));
        }
        tensors
    }

    /// Random numbers, and ends that are uneven by the seed.
    fn random(&self, seed: u64) -> Vec<Matrix> {
        let tensors = self.tensors();
        let all = tensors.iter().zip(seed..).map(|(tensor, seed)| {
            let all = match tensor.name {
                "query_ends" => self.queries,
                "key_ends" => self.keys,
                _ => {
                    let (rows, cols) = tensor.rows();
                    return Matrix::random(tensor.element, rows, cols, cols, seed);
                }
            };
            spread(Kind::Offsets, self.sequences, all, seed)
        });
        all.collect()
    }

    fn rows(&self) -> usize {
        self.queries.saturating_mul(self.heads()) as usize
    }

    fn row_cost(&self) -> usize {
        let keys = self.keys / self.sequences.max(1);
        keys as usize * (self.what.head_dim + self.what.value_dim) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let of_o = usize::from(self.what.sinks) + 5;
        let kept = |matrix: &Matrix, row: usize| {
            let kept = (0..matrix.cols).map(|j| Expected {
                value: matrix.at(row, j),
                allowed: 0.0,
            });
            kept.collect::<Vec<_>>()
        };
        let (token, head) = (row as u64 / self.heads(), row as u64 % self.heads());
        let attended = self.attended(inputs, [token, head]);
        let o = attended.map_or_else(|| kept(&inputs[of_o], row), |(o, _)| o);
        if !self.what.lse {
            return vec![o];
        }
        // The logarithms are of (head, query).
        let (head, token) = (row as u64 / self.queries, row as u64 % self.queries);
        let lse = self.attended(inputs, [token, head]).map_or_else(
            || Expected {
                value: inputs[of_o + 1].at(head as usize, token as usize),
                allowed: 0.0,
            },
            |(_, lse)| lse,
        );
        vec![o, vec![lse]]
    }
}
