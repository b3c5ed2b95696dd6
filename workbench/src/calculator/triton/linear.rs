//! A map over F2 with named inputs and several outputs, as Triton's `LinearLayout` is: each bit of each input has an image, and an index
//! goes to the xor of the images of its bits.
//!
//! ```text
//! register: (0,1)            lane: (0,2) (0,4) (1,0) (2,0) (4,0)        dims 8 x 8
//! ```
//!
//! Outputs are numbered `dim0, dim1, …`; as one number they are row-major, the last dimension fastest.

use tilewright::f2::LinearMap;
use tilewright::{IntTuple, Layout};

use super::super::Value;

/// Inputs in order, each with the images of its bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Linear {
    pub(super) ins: Vec<(String, Vec<Vec<i64>>)>,
    /// Extents of the outputs, powers of two.
    pub(super) dims: Vec<i64>,
}

impl Linear {
    /// No bits, all outputs of extent 1.
    pub(super) fn new(ins: &[&str], rank: usize) -> Self {
        Self {
            ins: ins
                .iter()
                .map(|name| ((*name).to_owned(), Vec::new()))
                .collect(),
            dims: vec![1; rank],
        }
    }

    /// The product with the identity of `extent` from input `input` to output `dim`.
    pub(super) fn times(&mut self, input: usize, extent: i64, dim: usize) {
        let mut step = 1;
        while step < extent {
            let mut image = vec![0; self.dims.len()];
            image[dim] = product(self.dims[dim], step);
            self.ins[input].1.push(image);
            step *= 2;
        }
        self.dims[dim] = product(self.dims[dim], extent);
    }

    /// The map for a tensor of other extents: a dimension that is too short goes on in the first input, one that is too long is folded: its
    /// highest bits go to 0. `order` lists the dimensions, the fastest first.
    pub(super) fn fitted(mut self, shape: &[i64], order: &[usize]) -> Self {
        for &dim in order {
            if shape[dim] > self.dims[dim] {
                self.times(0, shape[dim] / self.dims[dim], dim);
            }
        }
        for (dim, &extent) in shape.iter().enumerate() {
            for (_, bases) in &mut self.ins {
                for image in bases {
                    if image[dim] >= extent {
                        image[dim] = 0;
                    }
                }
            }
            self.dims[dim] = extent;
        }
        self
    }

    /// The images of all bits, first input lowest, as row-major numbers.
    fn numbers(&self) -> Vec<u64> {
        let number = |image: &Vec<i64>| {
            let place = |sum: i64, (x, extent): (&i64, &i64)| sum * extent + x;
            image.iter().zip(&self.dims).fold(0, place) as u64
        };
        let bits = self.ins.iter().flat_map(|(_, bases)| bases);
        bits.map(number).collect()
    }

    /// Inputs to the row-major number, one mode an input.
    pub(super) fn forward(&self) -> Result<Value, String> {
        let extents: Vec<i64> = self.ins.iter().map(|(_, b)| 1_i64 << b.len()).collect();
        value(&self.numbers(), &extents, self.size())
    }

    /// Coordinates to the one input, where the map is invertible.
    pub(super) fn inverse(&self) -> Result<Value, String> {
        // Bits of (row, column, …), rows lowest, as a layout counts them.
        let mut shifts = vec![0; self.dims.len()];
        for dim in 1..self.dims.len() {
            shifts[dim] = shifts[dim - 1] + self.dims[dim - 1].trailing_zeros();
        }
        let index = |image: &Vec<i64>| {
            let parts = image.iter().zip(&shifts);
            parts.fold(0_u64, |bits, (x, shift)| bits | (*x as u64) << shift)
        };
        let bits = self.ins.iter().flat_map(|(_, bases)| bases);
        let columns: Vec<u64> = bits.map(index).collect();
        let rows = self.size().trailing_zeros();
        let inverse = LinearMap::from_columns(&columns, rows)
            .and_then(|map| map.inverse())
            .map_err(|error| format!("not every element has one offset: {error}"))?;
        value(inverse.columns(), &self.dims, self.size())
    }

    /// Elements of the tensor.
    pub(super) fn size(&self) -> i64 {
        self.dims.iter().product()
    }
}

/// The product of powers of two, or a power of two that is too large for any tensor.
fn product(a: i64, b: i64) -> i64 {
    const MOST: i64 = 1 << 60;
    a.checked_mul(b).map_or(MOST, |product| product.min(MOST))
}

/// The layout with these images of the index bits and this shape, or the matrix if there is none.
fn value(columns: &[u64], shape: &[i64], size: i64) -> Result<Value, String> {
    let rows = size.trailing_zeros();
    let map = LinearMap::from_columns(columns, rows).map_err(|error| error.to_string())?;
    let Ok(flat) = map.to_layout() else {
        return Ok(Value::Matrix(Box::new(map)));
    };
    let extents: Vec<IntTuple> = shape.iter().map(|&n| IntTuple::int(n)).collect();
    let shaped = IntTuple::tuple(&extents)
        .and_then(Layout::compact)
        .and_then(|shape| flat.compose(&shape));
    Ok(shaped.map_or_else(|_| Value::Matrix(Box::new(map)), Value::swizzled))
}
