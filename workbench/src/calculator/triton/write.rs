//! Layouts as encodings of Triton: bases of `#ttg.linear` for maps from threads, a swizzled encoding for shared memory.

use tilewright::Swizzled;
use tilewright::f2::LinearMap;

use super::linear::Linear;

/// Lanes of a warp.
const LANES: i64 = 32;

/// `#ttg.linear<{…}>` of a layout of threads and registers.
///
/// The modes are `(register, lane, warp, block)` as the encodings are read, or two: `(thread, value)` as CuTe writes a thread-value layout,
/// where the threads beyond 32 are warps. Offsets are row-major numbers in a tensor of `dims`; without them the tensor has one dimension.
///
/// # Errors
///
/// A sentence: what about the layout is no such map.
pub(crate) fn distributed(layout: &Swizzled, dims: Option<&[i64]>) -> Result<String, String> {
    let map = layout.matrix().map_err(|error| error.to_string())?;
    let shape = layout.shape();
    let modes: Vec<u32> = (0..shape.rank())
        .map(|i| {
            let size = shape.get(i).and_then(|mode| mode.size());
            size.map_or(0, i64::trailing_zeros)
        })
        .collect();
    // Bits of the map in the order in which Triton lists its inputs.
    let bits = |from: u32, count: u32| (from..from + count).collect::<Vec<u32>>();
    let inputs = match modes[..] {
        [threads, values] => {
            let lanes = threads.min(LANES.trailing_zeros());
            vec![
                bits(threads, values),
                bits(0, lanes),
                bits(lanes, threads - lanes),
                Vec::new(),
            ]
        }
        [register, lane, warp, block] => vec![
            bits(0, register),
            bits(register, lane),
            bits(register + lane, warp),
            bits(register + lane + warp, block),
        ],
        _ => {
            return Err(format!(
                "the layout has {} mode{}; give it those of (thread, value) or of (register, lane, warp, block)",
                modes.len(),
                if modes.len() == 1 { "" } else { "s" }
            ));
        }
    };
    let reach = 1_i64 << map.out_bits().min(62);
    let dims = dims.map_or(vec![reach], <[i64]>::to_vec);
    let size = dims.iter().try_fold(1_i64, |size, n| size.checked_mul(*n));
    if size.is_none_or(|size| size < reach) {
        return Err(format!(
            "the layout reaches offset {}, outside a tensor of {dims:?}",
            layout.cosize() - 1
        ));
    }
    let mut fields = Vec::new();
    for (name, bits) in ["register", "lane", "warp", "block"].iter().zip(&inputs) {
        let images: Vec<String> = bits
            .iter()
            .map(|&bit| basis(map.column(bit) as i64, &dims))
            .collect();
        fields.push(format!("{name} = [{}]", images.join(", ")));
    }
    Ok(format!("#ttg.linear<{{{}}}>", fields.join(", ")))
}

/// The encoding of a layout `(row, column) -> offset` of shared memory: `#ttg.swizzled_shared` if its numbers describe it, else
/// `#ttg.shared_linear`.
///
/// # Errors
///
/// A sentence: not bijective, not linear over F2, one mode only.
pub(crate) fn shared(layout: &Swizzled) -> Result<String, String> {
    let shape = layout.shape();
    let dims: Vec<i64> = (0..shape.rank())
        .filter_map(|i| shape.get(i).ok()?.size().ok())
        .collect();
    if dims.len() < 2 || shape.is_int() {
        return Err("a layout of rows and columns is expected: two modes or more".to_owned());
    }
    let inverse = layout
        .matrix()
        .and_then(|map| map.inverse())
        .map_err(|error| error.to_string())?;
    let map = coordinates(&inverse, &dims);
    if let [_, _] = dims[..]
        && let Some(text) = swizzled(&map)
    {
        return Ok(text);
    }
    let images: Vec<String> = map.ins[0].1.iter().map(|image| list(image)).collect();
    Ok(format!(
        "#ttg.shared_linear<{{offset = [{}]}}, alignment = 16>",
        images.join(", ")
    ))
}

/// The images of the bits of an offset as coordinates.
fn coordinates(inverse: &LinearMap, dims: &[i64]) -> Linear {
    let image = |&bits: &u64| {
        let mut rest = bits as i64;
        let coordinate = |&n: &i64| {
            let x = rest % n;
            rest /= n;
            x
        };
        dims.iter().map(coordinate).collect()
    };
    Linear {
        ins: vec![(
            "offset".to_owned(),
            inverse.columns().iter().map(image).collect(),
        )],
        dims: dims.to_vec(),
    }
}

/// The first `vec`, `perPhase`, `maxPhase` and `order` that give this map.
fn swizzled(map: &Linear) -> Option<String> {
    for order in [[1, 0], [0, 1]] {
        let (columns, rows) = (map.dims[order[0]], map.dims[order[1]]);
        let bases = &map.ins[0].1;
        let across = columns.trailing_zeros() as usize;
        let powers = |most: i64| (0..=most.trailing_zeros()).map(|bit| 1_i64 << bit);
        // Without a swizzle the numbers are 1, 1, 1.
        for max_phase in powers(rows.min(columns)) {
            for per_phase in powers(rows / max_phase) {
                for vec in powers(columns / max_phase) {
                    let fits = bases.iter().enumerate().all(|(bit, image)| {
                        let (row, column) = match bit.checked_sub(across) {
                            None => (0, 1_i64 << bit),
                            Some(bit) => {
                                let row = 1_i64 << bit;
                                (row, vec * ((row / per_phase) % max_phase) % columns)
                            }
                        };
                        image[order[1]] == row && image[order[0]] == column
                    });
                    if fits {
                        return Some(format!(
                            "#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, order = [{}, {}]}}>",
                            order[0], order[1]
                        ));
                    }
                }
            }
        }
    }
    None
}

/// A row-major number as a coordinate in brackets.
fn basis(number: i64, dims: &[i64]) -> String {
    let mut rest = number;
    let mut coordinate: Vec<i64> = dims
        .iter()
        .rev()
        .map(|&n| {
            let x = rest % n;
            rest /= n;
            x
        })
        .collect();
    coordinate.reverse();
    list(&coordinate)
}

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}
