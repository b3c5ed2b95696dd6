//! Grouped products.

use layout_codegen::Arch;
use layout_codegen::ir::Element;
use tilewright_kernels::block_scaled::{BLOCK, Scales};
use tilewright_kernels::grouped::{ARCH, Grouped, Kind, grouped};
use tilewright_kernels::{KernelError, Proven};

use super::block_scaled::Sums;
use super::{Expected, Problem, Sequence, Tensor, extent};
use crate::host::{Matrix, Role, Scalar};

/// c\[r\] = a\[r\]·b\[g\]ᵀ for the rows r of each group g.
///
/// The inputs are `offsets` or `counts`, a, b, `scale_a` and `scale_b` if there are scales, and what c held: rows that no group has are left as they are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupedProduct {
    /// The kernel.
    pub kernel: Grouped,
    /// Matrices of b.
    pub groups: u64,
    /// Rows of a and c: of all groups ([`Kind::Offsets`]), or of each ([`Kind::Masked`]).
    pub m: u64,
    /// Columns of c.
    pub n: u64,
    /// Columns of a and b.
    pub k: u64,
}

impl GroupedProduct {
    /// The problem for a, b and c of these sizes.
    pub fn new(kernel: Grouped, groups: u64, [m, n, k]: [u64; 3]) -> Self {
        Self {
            kernel,
            groups,
            m,
            n,
            k,
        }
    }

    /// Rows of a and c.
    fn all_rows(&self) -> u64 {
        match self.kernel.kind {
            Kind::Offsets => self.m,
            Kind::Masked => self.groups.saturating_mul(self.m),
        }
    }

    /// Extents of the scales of a and of b, if they are those of blocks. Rows of those of a are padded to 16 bytes, as TMA reads them.
    fn scales_of_blocks(&self) -> Option<[Vec<u64>; 2]> {
        let blocks = |extent: u64| extent.div_ceil(BLOCK as u64);
        let rows = self.all_rows().next_multiple_of(4);
        let of_k = blocks(self.k);
        let is = self.kernel.scales == Some(Scales::Blocks);
        is.then(|| [vec![of_k, rows], vec![self.groups, blocks(self.n), of_k]])
    }

    /// The group that has a row, if one has.
    fn group_of(&self, of_groups: &Matrix, row: usize) -> Option<usize> {
        let (m, given) = (self.m as f64, |g: usize| of_groups.at(0, g));
        if self.kernel.kind == Kind::Masked {
            let group = row / self.m as usize;
            let within = (row % self.m as usize) as f64;
            return (within < given(group).clamp(0.0, m)).then_some(group);
        }
        // The first group that ends behind the row, if each ends at least where those before it do.
        (0..self.groups as usize).find(|&g| given(g).clamp(0.0, m) > row as f64)
    }

    /// Ends or counts: uneven by the seed, some groups empty.
    fn spread(&self, seed: u64) -> Matrix {
        spread(self.kernel.kind, self.groups, self.m, seed)
    }
}

/// The ends of so many groups, of which the last is m, or counts up to m: uneven by the seed, some groups empty.
pub(super) fn spread(kind: Kind, groups: u64, m: u64, seed: u64) -> Matrix {
    let mut state = seed;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let mut matrix = Matrix::random(Element::S32, 1, groups, groups, seed);
    let groups = groups as usize;
    let mut all: Vec<u64> = (0..groups).map(|_| next() % (m + 1)).collect();
    let empty: Vec<bool> = (0..groups).map(|_| next() % 4 == 0).collect();
    if kind == Kind::Offsets {
        all.sort_unstable();
        if let Some(last) = all.last_mut() {
            *last = m;
        }
    }
    let mut before = 0;
    for (g, (value, empty)) in all.into_iter().zip(empty).enumerate() {
        let value = match kind {
            Kind::Offsets if empty && g + 1 < groups => before,
            Kind::Masked if empty => 0,
            _ => value,
        };
        matrix.set(0, g, value as f64);
        before = value;
    }
    matrix
}

impl Problem for GroupedProduct {
    fn kernel(&self, arch: Arch) -> Result<Proven, KernelError> {
        grouped(self.kernel, arch).map(|mut all| all.swap_remove(1))
    }

    fn sequence(&self, arch: Arch) -> Result<Sequence, KernelError> {
        Sequence::new(grouped(self.kernel, arch)?, arch)
    }

    fn least_arch(&self) -> Arch {
        ARCH
    }

    fn scalars(&self) -> Vec<(&'static str, Scalar)> {
        let mut all = vec![
            ("m", self.m),
            ("groups", self.groups),
            ("n", self.n),
            ("k", self.k),
        ];
        if let Some([of_a, of_b]) = self.scales_of_blocks() {
            all.extend([("ld_scale_a", of_a[1]), ("ld_scale_b", of_b[2])]);
        }
        let all = all.into_iter();
        all.map(|(name, size)| (name, extent(size))).collect()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Self {
            kernel,
            groups,
            n,
            k,
            ..
        } = *self;
        let rows = self.all_rows();
        let mut all = vec![
            Tensor::new(kernel.kind.tensor(), Role::Input, Element::S32, &[groups]),
            Tensor::new("a", Role::Input, kernel.element, &[rows, k]),
            Tensor::new("b", Role::Input, kernel.element, &[groups, n, k]),
        ];
        let scales = match (kernel.scales, self.scales_of_blocks()) {
            (None, _) => None,
            (_, Some(of_blocks)) => Some(of_blocks),
            _ => Some([vec![rows], vec![groups, n]]),
        };
        for (name, shape) in ["scale_a", "scale_b"].iter().zip(scales.iter().flatten()) {
            all.push(Tensor::new(name, Role::Input, Element::F32, shape));
        }
        all.push(Tensor::new("c", Role::InOut, kernel.result, &[rows, n]));
        all
    }

    fn random(&self, seed: u64) -> Vec<Matrix> {
        let tensors = self.tensors();
        let all = tensors.iter().zip(seed..).map(|(tensor, seed)| {
            if tensor.name == self.kernel.kind.tensor() {
                return self.spread(seed);
            }
            let (rows, cols) = tensor.rows();
            Matrix::random(tensor.element, rows, cols, cols, seed)
        });
        all.collect()
    }

    fn rows(&self) -> usize {
        self.all_rows() as usize
    }

    fn row_cost(&self) -> usize {
        (self.n * self.k) as usize
    }

    fn expected(&self, inputs: &[Matrix], row: usize) -> Vec<Vec<Expected>> {
        let (a, b, c) = (&inputs[1], &inputs[2], &inputs[inputs.len() - 1]);
        let n = self.n as usize;
        let Some(group) = self.group_of(&inputs[0], row) else {
            let kept = (0..n).map(|j| Expected {
                value: c.at(row, j),
                allowed: 0.0,
            });
            return vec![kept.collect()];
        };
        let sums = Sums::new(self.kernel.element, self.kernel.scales, self.k);
        let a: Vec<f64> = (0..a.cols).map(|k| a.at(row, k)).collect();
        let blocks = n.div_ceil(BLOCK as usize);
        let scale = |block: usize, j: usize| match (inputs, self.kernel.scales) {
            ([_, _, _, of_a, of_b, _], Some(Scales::Rows)) => of_a.at(0, row) * of_b.at(group, j),
            ([_, _, _, of_a, of_b, _], Some(_)) => {
                let of_b = of_b.at(group * blocks + j / BLOCK as usize, block);
                of_a.at(block, row) * of_b
            }
            _ => 1.0,
        };
        let columns = (0..n).map(|j| {
            sums.expected(
                (&a, |k| b.at(group * n + j, k)),
                |block| scale(block, j),
                self.kernel.result,
            )
        });
        vec![columns.collect()]
    }
}
