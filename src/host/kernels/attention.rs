//! Attention, forward.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::attention::{Attention, Order, Tile, attention, hopper};
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

/// Attention of `batch × kv_heads × group` heads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heads {
    /// What is computed.
    pub what: Attention,
    /// Which kernel, and the tile of a block.
    pub design: Design,
    /// Sequences.
    pub batch: u64,
    /// Heads of keys and values in a sequence; of queries there are [`Attention::group`] for each.
    pub kv_heads: u64,
    /// Queries of a head.
    pub queries: u64,
    /// Keys of a head.
    pub keys: u64,
}

impl Heads {
    /// The same problem by each tile of its kernel on an architecture; some have no kernel for heads of this size.
    pub fn tiles(&self, arch: Arch) -> Vec<Self> {
        let on_hopper = match self.design {
            Design::Auto => arch == hopper::ARCH,
            Design::Portable(_) => false,
            Design::Hopper(_) => true,
        };
        let designs: Vec<_> = if on_hopper {
            hopper::Tile::candidates().map(Design::Hopper).collect()
        } else {
            Tile::candidates().map(Design::Portable).collect()
        };
        designs
            .into_iter()
            .map(|design| Self { design, ..*self })
            .collect()
    }

    /// Heads of queries in a sequence.
    fn heads(&self) -> u64 {
        self.kv_heads.saturating_mul(self.group())
    }

    /// Heads that share their keys.
    fn group(&self) -> u64 {
        self.what.group.max(1) as u64
    }

    /// The shape of a tensor.
    fn shape(&self, heads: u64, rows: u64, width: i64) -> [u64; 4] {
        match self.what.order {
            Order::BatchHeadSequence => [self.batch, heads, rows, width as u64],
            Order::BatchSequenceHead => [self.batch, rows, heads, width as u64],
        }
    }

    /// The batch, head and query of row `row` of a tensor in an order.
    fn place(&self, order: Order, row: u64) -> [u64; 3] {
        let (heads, queries) = (self.heads(), self.queries);
        match order {
            Order::BatchHeadSequence => {
                [row / queries / heads, row / queries % heads, row % queries]
            }
            Order::BatchSequenceHead => [row / heads / queries, row % heads, row / heads % queries],
        }
    }

    /// The row of a tensor, which has `rows` for each of `heads` heads.
    fn row(&self, [batch, head, row]: [u64; 3], heads: u64, rows: u64) -> usize {
        let row = match self.what.order {
            Order::BatchHeadSequence => (batch * heads + head) * rows + row,
            Order::BatchSequenceHead => (batch * rows + row) * heads + head,
        };
        row as usize
    }

    /// The row of o at a place, and its logarithm.
    fn attended(&self, inputs: &[Matrix], at: [u64; 3]) -> (Vec<Expected>, Expected) {
        let (what, [batch, head, query]) = (&self.what, at);
        let seen = what.mask.keys_of(query, [self.queries, self.keys]);
        let kv_head = head / self.group();
        let rows = seen.map(|key| self.row([batch, kv_head, key], self.kv_heads, self.keys));
        let rows: Vec<usize> = rows.collect();
        let sink = what.sinks.then(|| inputs[3].at(0, head as usize));
        let of_query = self.row(at, self.heads(), self.queries);
        attended(what, &inputs[..3], (of_query, &rows), sink)
    }
}

/// What the row `of_query` of q gives with these rows of k and v, and its logarithm.
///
/// With u the unit of the 16-bit type, weights are rounded (u of Σ w·|v|), then the result (u of it); scores are summed in f32, and their error goes into the
/// exponent (2⁻¹³ of the same sum covers heads of 128 elements below 1). With a soft cap scores have a relative error of 2⁻¹¹. Weights of f16 below 2⁻¹⁴ have an
/// absolute error of 2⁻²⁵.
pub(super) fn attended(
    what: &Attention,
    qkv: &[Matrix],
    (of_query, rows): (usize, &[usize]),
    sink: Option<f64>,
) -> (Vec<Expected>, Expected) {
    let (q, k, v) = (&qkv[0], &qkv[1], &qkv[2]);
    let score = |&key: &usize| {
        let terms = (0..what.head_dim as usize).map(|c| q.at(of_query, c) * k.at(key, c));
        let score = terms.sum::<f64>() / (what.head_dim as f64).sqrt();
        what.softcap.map_or(score, |most| {
            let most = f64::from(most);
            most * (score / most).tanh()
        })
    };
    let scores: Vec<f64> = rows.iter().map(score).collect();
    let all = || scores.iter().copied().chain(sink);
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = all().map(|s| (s - most).exp()).sum();
    let width = what.value_dim as usize;
    let (mut o, mut size) = (vec![0.0; width], vec![0.0; width]);
    for (&key, score) in rows.iter().zip(&scores) {
        for c in 0..width {
            let x = v.at(key, c) * (score - most).exp() / total;
            o[c] += x;
            size[c] += x.abs();
        }
    }
    let largest = all().fold(0.0, |most: f64, s| most.max(s.abs()));
    let of_cap = what.softcap.map_or(0.0, |_| largest * f64::powi(0.5, 11));
    let tiny = match what.element {
        Element::F16 => f64::powi(0.5, 25) * (1.0 + rows.len() as f64),
        _ => 0.0,
    };
    let unit = roundoff(what.element);
    let o = o.into_iter().zip(size).map(|(value, size)| Expected {
        value,
        allowed: unit * (size + value.abs()) + (f64::powi(0.5, 13) + 2.0 * of_cap) * size + tiny,
    });
    let logarithm = most + total.ln();
    let lse = Expected {
        value: logarithm,
        allowed: 1e-4 * (1.0 + logarithm.abs()) + of_cap,
    };
    (o.collect(), lse)
}

impl Problem for Heads {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        let hopper = |tile| hopper::attention(self.what, tile, arch);
        match self.design {
            Design::Auto if arch == hopper::ARCH => hopper(hopper::Tile::of(self.what)),
            Design::Auto => attention(self.what, Tile::of(self.what), arch),
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
            ("batch", extent(self.batch)),
            ("kv_heads", extent(self.kv_heads)),
            ("queries", extent(self.queries)),
            ("keys", extent(self.keys)),
        ]
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (what, heads) = (&self.what, self.heads());
        let tensor = |name, role, shape: [u64; 4]| Tensor::new(name, role, what.element, &shape);
        let of_queries = |width| self.shape(heads, self.queries, width);
        let of_keys = |width| self.shape(self.kv_heads, self.keys, width);
        let mut tensors = vec![
            tensor("q", Role::Input, of_queries(what.head_dim)),
            tensor("k", Role::Input, of_keys(what.head_dim)),
            tensor("v", Role::Input, of_keys(what.value_dim)),
        ];
        if what.sinks {
            tensors.push(Tensor::new("sinks", Role::Input, Element::F32, &[heads]));
        }
        tensors.push(tensor("o", Role::Output, of_queries(what.value_dim)));
        if what.lse {
            let shape = [self.batch, heads, self.queries];
            tensors.push(Tensor::new("lse", Role::Output, Element::F32, &shape));
        }
        tensors
    }

    fn rows(&self) -> usize {
        let heads = self.batch.saturating_mul(self.heads());
        heads.saturating_mul(self.queries) as usize
    }

    fn row_cost(&self) -> usize {
        self.keys as usize * (self.what.head_dim + self.what.value_dim) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let at = self.place(self.what.order, row as u64);
        let (o, logarithm) = self.attended(inputs, at);
        if !self.what.lse {
            return vec![o];
        }
        // Of whatever order o is, the logarithms are of (batch, head, query).
        let at_lse = self.place(Order::BatchHeadSequence, row as u64);
        if at == at_lse {
            return vec![o, vec![logarithm]];
        }
        vec![o, vec![self.attended(inputs, at_lse).1]]
    }
}
