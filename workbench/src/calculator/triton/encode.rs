//! What each encoding means: its map from registers, lanes and warps, or from an offset in shared memory, to the tensor.
//!
//! The definitions are those of Triton's `LinearLayoutConversions`: a product of identities, stretched or folded to the tensor's shape.

use super::super::{EvalError, Span, Value};

use super::linear::Linear;
use super::syntax::{Encoding, Item, Source};

/// Bits of a tensor that is looked at.
const MOST_BITS: u32 = 40;

/// The inputs of a map from threads.
const THREADS: [&str; 4] = ["register", "lane", "warp", "block"];

const KINDS: &str = "blocked, linear, nvidia_mma, swizzled_shared, nvmma_shared and shared_linear";

pub(super) fn value(source: &Source) -> Result<Value, EvalError> {
    match source {
        Source::Printed(ins, outs) => {
            let map = Linear {
                ins: ins.clone(),
                dims: outs.clone(),
            };
            let whole = (0, 1);
            checked(&map, whole)?;
            map.forward()
                .map_err(|message| EvalError::new("not_linear", message, whole))
        }
        Source::Encoding(encoding, shape) => {
            let shape = match shape {
                Some((extents, span)) => {
                    powers(extents, *span)?;
                    Some(&extents[..])
                }
                None => None,
            };
            let (map, in_memory) = encoding.map(shape)?;
            checked(&map, encoding.span)?;
            let value = if in_memory {
                map.inverse()
            } else {
                map.forward()
            };
            value.map_err(|message| EvalError::new("not_linear", message, encoding.span))
        }
    }
}

fn powers(extents: &[i64], span: Span) -> Result<(), EvalError> {
    match extents
        .iter()
        .find(|&&n| !(1..=1 << 60).contains(&n) || !(n as u64).is_power_of_two())
    {
        Some(n) => Err(EvalError::new(
            "not_power_of_two",
            format!("{n} is no power of two below 2^60, as all extents of Triton's layouts are"),
            span,
        )),
        None => Ok(()),
    }
}

/// Sizes within limits, images within the output dimensions.
fn checked(map: &Linear, span: Span) -> Result<(), EvalError> {
    powers(&map.dims, span)?;
    let bits: u32 = map.dims.iter().map(|n| n.trailing_zeros()).sum();
    let inputs: usize = map.ins.iter().map(|(_, bases)| bases.len()).sum();
    if bits > MOST_BITS || inputs > MOST_BITS as usize {
        let message = format!("more than {MOST_BITS} bits of elements, registers and threads");
        return Err(EvalError::new("too_large", message, span));
    }
    for (name, bases) in &map.ins {
        for image in bases {
            let fits = image.len() == map.dims.len()
                && image
                    .iter()
                    .zip(&map.dims)
                    .all(|(x, n)| (0..*n).contains(x));
            if !fits {
                let message = format!(
                    "{name} has a basis {image:?}, which is no element of a tensor of {:?}",
                    map.dims
                );
                return Err(EvalError::new("outside_tile", message, span));
            }
        }
    }
    Ok(())
}

impl Encoding {
    /// The map for a tensor of this shape, or for the smallest that it covers, and whether it is of shared memory.
    fn map(&self, shape: Option<&[i64]>) -> Result<(Linear, bool), EvalError> {
        self.one_block()?;
        let threads = |map: Linear| (map, false);
        match self.kind.as_str() {
            "blocked" => self.blocked(shape).map(threads),
            "nvidia_mma" => self.nvidia_mma(shape).map(threads),
            "linear" => self.bases(&THREADS, shape).map(threads),
            "shared_linear" => Ok((self.bases(&["offset", "block"], shape)?, true)),
            "swizzled_shared" | "shared" => Ok((self.swizzled_shared(shape)?, true)),
            "nvmma_shared" => Ok((self.nvmma_shared(shape)?, true)),
            other => Err(EvalError::new(
                "unknown_encoding",
                format!("'{other}' is not read; the encodings are {KINDS}"),
                self.span,
            )),
        }
    }

    fn field(&self, name: &str) -> Option<(&Item, Span)> {
        let found = self.fields.iter().find(|field| field.0 == name)?;
        Some((&found.1, found.2))
    }

    fn missing(&self, name: &str, example: &str) -> EvalError {
        EvalError::new(
            "missing_field",
            format!("#ttg.{} needs {name} = {example}", self.kind),
            self.span,
        )
    }

    /// An integer.
    fn int(&self, name: &str, example: &str) -> Result<i64, EvalError> {
        match self.field(name) {
            Some((Item::Int(value), span)) => {
                powers(&[*value], span)?;
                Ok(*value)
            }
            Some((_, span)) => Err(wrong(name, "an integer", span)),
            None => Err(self.missing(name, example)),
        }
    }

    fn list(&self, name: &str, example: &str) -> Result<(Vec<i64>, Span), EvalError> {
        let Some((item, span)) = self.field(name) else {
            return Err(self.missing(name, example));
        };
        match integers(item) {
            Some(list) => Ok((list, span)),
            None => Err(wrong(name, "a list of integers", span)),
        }
    }

    /// A list of `rank` powers of two.
    fn extents(&self, name: &str, rank: usize) -> Result<Vec<i64>, EvalError> {
        let (list, span) = self.list(name, "[1, 4]")?;
        powers(&list, span)?;
        if list.len() != rank {
            let message = format!("{name} has {} entries, {rank} are expected", list.len());
            return Err(EvalError::new("rank_mismatch", message, span));
        }
        Ok(list)
    }

    /// The dimensions, fastest first.
    fn order(&self) -> Result<Vec<usize>, EvalError> {
        let (list, span) = self.list("order", "[1, 0]")?;
        let mut sorted = list.clone();
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(i, n)| *n != i as i64) || list.is_empty() {
            return Err(wrong("order", "the numbers of the dimensions", span));
        }
        Ok(list.iter().map(|n| *n as usize).collect())
    }

    /// Encodings of several blocks say how they share the tensor, which is not read.
    fn one_block(&self) -> Result<(), EvalError> {
        for name in ["CTAsPerCGA", "CTASplitNum"] {
            if let Some((item, span)) = self.field(name)
                && integers(item).is_none_or(|list| list.iter().any(|n| *n != 1))
            {
                return Err(wrong(name, "[1, 1]: one block", span));
            }
        }
        if let Some((Item::List(items), span)) = self.field("CGALayout")
            && !items.is_empty()
        {
            return Err(wrong("CGALayout", "[]: one block", span));
        }
        Ok(())
    }

    fn shape_of<'a>(
        &self,
        shape: Option<&'a [i64]>,
        rank: usize,
    ) -> Result<Option<&'a [i64]>, EvalError> {
        match shape {
            Some(shape) if shape.len() != rank => Err(EvalError::new(
                "rank_mismatch",
                format!(
                    "the tensor has {} dimensions, the encoding {rank}",
                    shape.len()
                ),
                self.span,
            )),
            other => Ok(other),
        }
    }

    fn blocked(&self, shape: Option<&[i64]>) -> Result<Linear, EvalError> {
        let order = self.order()?;
        let rank = order.len();
        let mut map = Linear::new(&THREADS, rank);
        let inputs = ["sizePerThread", "threadsPerWarp", "warpsPerCTA"];
        for (input, name) in inputs.iter().enumerate() {
            let extents = self.extents(name, rank)?;
            for &dim in &order {
                map.times(input, extents[dim], dim);
            }
        }
        Ok(match self.shape_of(shape, rank)? {
            Some(shape) => map.fitted(shape, &order),
            None => map,
        })
    }

    /// The accumulator of `mma.sync` (version 2) or `wgmma` (version 3): pairs of columns in registers, four lanes across, eight down.
    fn nvidia_mma(&self, shape: Option<&[i64]>) -> Result<Linear, EvalError> {
        let version = match self.field("versionMajor") {
            Some((Item::Int(version @ (2 | 3)), _)) => *version,
            Some((_, span)) => {
                return Err(wrong("versionMajor", "2 (mma.sync) or 3 (wgmma)", span));
            }
            None => return Err(self.missing("versionMajor", "2")),
        };
        let (instruction, span) = self.list("instrShape", "[16, 8]")?;
        let [rows, columns, ..] = instruction[..] else {
            return Err(wrong("instrShape", "[16, 8] or [16, N, K]", span));
        };
        // `wgmma` has any multiple of 8 columns, of which Triton's maps take the powers of two.
        powers(&[rows, columns], span)?;
        if rows % 8 != 0 || columns % 8 != 0 {
            return Err(wrong("instrShape", "multiples of 8 rows and columns", span));
        }
        let warps = self.extents("warpsPerCTA", 2)?;
        let mut map = Linear::new(&THREADS, 2);
        for (input, extent, dim) in [
            (0, 2, 1),
            (1, 4, 1),
            (1, 8, 0),
            (0, rows / 8, 0),
            (0, columns / 8, 1),
        ] {
            map.times(input, extent, dim);
        }
        let warp_order = if version == 3 { [0, 1] } else { [1, 0] };
        for dim in warp_order {
            map.times(2, warps[dim], dim);
        }
        Ok(match self.shape_of(shape, 2)? {
            Some(shape) => map.fitted(shape, &[1, 0]),
            None => map,
        })
    }

    /// The bases that `#ttg.linear` and `#ttg.shared_linear` list.
    fn bases(&self, inputs: &[&str], shape: Option<&[i64]>) -> Result<Linear, EvalError> {
        let mut ins = Vec::new();
        for &name in inputs {
            let bases = match self.field(name) {
                Some((Item::List(items), span)) => items
                    .iter()
                    .map(|(item, _)| integers(item))
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| wrong(name, "a list of bases such as [[0, 1], [8, 0]]", span))?,
                Some((_, span)) => {
                    return Err(wrong(
                        name,
                        "a list of bases such as [[0, 1], [8, 0]]",
                        span,
                    ));
                }
                // The printer leaves out a single block.
                None if name == "block" => Vec::new(),
                None => return Err(self.missing(name, "[[0, 1], [8, 0]]")),
            };
            ins.push((name.to_owned(), bases));
        }
        let all = || ins.iter().flat_map(|(_, bases)| bases);
        let Some(rank) = all().map(Vec::len).next().or(shape.map(<[i64]>::len)) else {
            return Err(EvalError::new(
                "missing_field",
                "no basis, so that the number of dimensions is unknown; write the tensor's type",
                self.span,
            ));
        };
        if let Some(image) = all().find(|image| image.len() != rank || image.iter().any(|n| *n < 0))
        {
            let message =
                format!("the basis {image:?}: {rank} numbers from 0 are expected in each");
            return Err(EvalError::new("rank_mismatch", message, self.span));
        }
        let dims = (0..rank)
            .map(|dim| {
                let most = all().map(|image| image[dim]).max().unwrap_or(0) as u64;
                1_i64 << (64 - most.leading_zeros()).min(62)
            })
            .collect();
        let mut map = Linear { ins, dims };
        // Registers beyond a smaller tensor are left out; a lane or a warp keeps its number.
        if let (Some(shape), "linear") = (self.shape_of(shape, rank)?, self.kind.as_str()) {
            map.ins[0]
                .1
                .retain(|image| image.iter().zip(shape).all(|(x, n)| x < n));
        }
        let order: Vec<usize> = (0..rank).rev().collect();
        Ok(match self.shape_of(shape, rank)? {
            Some(shape) => map.fitted(shape, &order),
            None => map,
        })
    }

    /// Rows move by `vec` times their phase, `(row / perPhase) % maxPhase`, xor.
    fn swizzled_shared(&self, shape: Option<&[i64]>) -> Result<Linear, EvalError> {
        let order = self.order()?;
        let vec = self.int("vec", "8")?;
        let per_phase = self.int("perPhase", "1")?;
        let max_phase = self.int("maxPhase", "8")?;
        let rank = order.len();
        let smallest: Vec<i64> = (0..rank)
            .map(|dim| match order.iter().position(|d| *d == dim) {
                Some(0) => vec.saturating_mul(max_phase),
                Some(1) => per_phase.saturating_mul(max_phase),
                _ => 1,
            })
            .collect();
        powers(&smallest, self.span)?;
        let shape = self.shape_of(shape, rank)?.unwrap_or(&smallest);
        let mut map = Linear::new(&["offset", "block"], rank);
        map.times(0, shape[order[0]], order[0]);
        for (i, &dim) in order.iter().enumerate().skip(1) {
            let first = map.ins[0].1.len();
            map.times(0, shape[dim], dim);
            if i == 1 {
                for (bit, image) in map.ins[0].1[first..].iter_mut().enumerate() {
                    let phase = ((1_i64 << bit) / per_phase) % max_phase;
                    image[order[0]] = vec.saturating_mul(phase) % shape[order[0]];
                }
            }
        }
        Ok(map)
    }

    /// The layout of `wgmma` and TMA: eight rows of the swizzle's width, repeated down and then across.
    fn nvmma_shared(&self, shape: Option<&[i64]>) -> Result<Linear, EvalError> {
        let width = match self.field("swizzlingByteWidth") {
            Some((Item::Int(width @ (0 | 32 | 64 | 128)), _)) => *width,
            Some((_, span)) => {
                return Err(wrong("swizzlingByteWidth", "0, 32, 64 or 128", span));
            }
            None => return Err(self.missing("swizzlingByteWidth", "128")),
        };
        let bits = self.int("elementBitWidth", "16")?;
        if !(4..=128).contains(&bits) {
            return Err(EvalError::new(
                "not_power_of_two",
                format!("elements of {bits} bits; 4 to 128 are expected"),
                self.span,
            ));
        }
        if matches!(self.field("fp4Padded"), Some((Item::Word(word), _)) if word == "true") {
            return Err(EvalError::new(
                "unknown_encoding",
                "fp4Padded = true keeps two copies of an element, which is no layout",
                self.span,
            ));
        }
        let transposed =
            matches!(self.field("transposed"), Some((Item::Word(word), _)) if word == "true");
        let (row, column) = if transposed { (1, 0) } else { (0, 1) };
        let columns = 8 * width.max(16) / bits;
        let vec = 128 / bits;
        let (per_phase, max_phase) = match width {
            128 => (1, 8),
            64 => (2, 4),
            32 => (4, 2),
            _ => (1, 1),
        };
        let mut map = Linear::new(&["offset", "block"], 2);
        map.times(0, columns, column);
        let first = map.ins[0].1.len();
        map.times(0, 8, row);
        for (bit, image) in map.ins[0].1[first..].iter_mut().enumerate() {
            image[column] = vec * (((1_i64 << bit) / per_phase) % max_phase);
        }
        let Some(shape) = self.shape_of(shape, 2)? else {
            return Ok(map);
        };
        if shape[row] < 8 || shape[column] < columns {
            let message = format!(
                "a tensor of {} x {} is smaller than the swizzle's 8 rows of {columns} elements",
                shape[row], shape[column]
            );
            return Err(EvalError::new("outside_tile", message, self.span));
        }
        Ok(map.fitted(shape, &[row, column]))
    }
}

fn wrong(name: &str, needed: &str, span: Span) -> EvalError {
    EvalError::new("bad_field", format!("{name} must be {needed}"), span)
}

fn integers(item: &Item) -> Option<Vec<i64>> {
    let Item::List(items) = item else {
        return None;
    };
    let integer = |(item, _): &(Item, Span)| match item {
        Item::Int(value) => Some(*value),
        _ => None,
    };
    items.iter().map(integer).collect()
}
