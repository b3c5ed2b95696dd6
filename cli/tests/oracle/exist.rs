//! Whether an answer exists at all, decided by search over factorizations.
//!
//! A function on `0..n` is a layout of one (perhaps nested) leaf if `n` factors into digits such that the function is
//! linear in them. Only chains of prime factors matter, because a finer radix expresses a coarser one.

/// Whether some layout of `size` coordinates has these values at `0..values.len()` (the rest is free) and 0 at 0.
pub(crate) fn fits(values: &[i64], size: i64) -> bool {
    if size == 1 || values.len() <= 1 {
        return values.first().is_none_or(|first| *first == 0);
    }
    if values[0] != 0 {
        return false;
    }
    let step = values[1];
    let mut n = 1;
    // The first digit has n values: linear below n, and the rest repeats it at every multiple of n.
    while n <= size {
        if size % n == 0 && n > 1 {
            let split = values.iter().enumerate().all(|(i, value)| {
                let low = i as i64 % n;
                *value == step * low + values[i - low as usize]
            });
            if split {
                let rest: Vec<i64> = values.iter().step_by(n as usize).copied().collect();
                if fits(&rest, size / n) {
                    return true;
                }
            }
        }
        let linear = values
            .get(n as usize)
            .is_none_or(|value| *value == step * n);
        if !linear {
            // One more digit value would not be linear.
            break;
        }
        n += 1;
    }
    // The break leaves before n itself was tried.
    false
}

/// Whether a layout with these leaf extents (each may be split) has these values, where `None` is free.
///
/// The values that are given must be closed downwards in every leaf.
pub(crate) fn fits_leaves(extents: &[i64], values: &[Option<i64>]) -> bool {
    let Some(Some(0)) = values.first() else {
        return false;
    };
    let mut place = 1;
    let mut parts = Vec::new();
    for extent in extents {
        let line: Vec<i64> = (0..*extent)
            .map_while(|x| values[(x * place) as usize])
            .collect();
        if !fits(&line, *extent) {
            return false;
        }
        parts.push((place, *extent, line));
        place *= extent;
    }
    // All leaves together add up.
    values.iter().enumerate().all(|(i, value)| {
        value.is_none_or(|value| {
            let sum: Option<i64> = parts
                .iter()
                .map(|(place, extent, line)| {
                    line.get((i as i64 / place % extent) as usize).copied()
                })
                .sum();
            sum == Some(value)
        })
    })
}

/// As `fits_leaves`, with every value given; a constant offset is taken off.
pub(crate) fn fits_exactly(extents: &[i64], values: &[i64]) -> bool {
    let first = values.first().copied().unwrap_or(0);
    let values: Vec<Option<i64>> = values.iter().map(|value| Some(value - first)).collect();
    fits_leaves(extents, &values)
}

/// Whether `rows · x = right` has a solution in integers: columns are reduced by Euclid's steps, then solved from the top.
pub(crate) fn solvable(mut rows: Vec<Vec<i64>>, mut right: Vec<i64>) -> bool {
    let columns = rows.first().map_or(0, Vec::len);
    let mut done = 0;
    for r in 0..rows.len() {
        // Euclid among the columns from `done` on, in row r.
        while let Some(pivot) = (done..columns)
            .filter(|c| rows[r][*c] != 0)
            .min_by_key(|c| rows[r][*c].abs())
        {
            let mut more = false;
            for c in done..columns {
                if c != pivot && rows[r][c] != 0 {
                    let q = rows[r][c] / rows[r][pivot];
                    for row in &mut rows[r..] {
                        row[c] -= q * row[pivot];
                    }
                    more |= rows[r][c] != 0;
                }
            }
            if !more {
                for row in &mut rows[r..] {
                    row.swap(done, pivot);
                }
                break;
            }
        }
        if done < columns && rows[r][done] != 0 {
            if right[r] % rows[r][done] != 0 {
                return false;
            }
            let x = right[r] / rows[r][done];
            for k in r..rows.len() {
                right[k] -= x * rows[k][done];
            }
            done += 1;
        } else if right[r] != 0 {
            return false;
        }
    }
    true
}

/// Whether some layout takes `points[k].0` to `points[k].1`: a search over chains of prime radices, the last mode unbounded.
pub(crate) fn interpolates(points: &[(i64, i64)]) -> bool {
    let max = points.iter().map(|point| point.0).max().unwrap_or(0);
    if points.iter().any(|point| point.0 < 0) {
        return false;
    }
    search(points, max, &mut Vec::new(), 1)
}

fn search(points: &[(i64, i64)], max: i64, radices: &mut Vec<i64>, product: i64) -> bool {
    let rows = points
        .iter()
        .map(|(x, _)| {
            let mut rest = *x;
            let mut row: Vec<i64> = radices
                .iter()
                .map(|n| {
                    let digit = rest % n;
                    rest /= n;
                    digit
                })
                .collect();
            row.push(rest);
            row
        })
        .collect();
    if solvable(rows, points.iter().map(|point| point.1).collect()) {
        return true;
    }
    for p in 2..=max / product {
        if (2..p).all(|q| p % q != 0) {
            radices.push(p);
            if search(points, max, radices, product * p) {
                return true;
            }
            radices.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_existence() {
        // (4,6):(1,10) o 4:3 has no layout, (4,6):(1,10) o 8:1 has.
        assert!(!fits(&[0, 3, 12, 21], 4));
        assert!(fits(&[0, 1, 2, 3, 10, 11, 12, 13], 8));
        assert!(fits(&[0, 1, 2, 2, 3, 4], 6));
        // 10 in tiles of 4: the last tile is cut off.
        assert!(fits(&[0, 4, 8], 3));
        assert!(fits(&[0, 1, 2, 3, 4], 6));
        assert!(!fits(&[0, 1, 2, 4, 5, 7], 6));
        assert!(fits_leaves(&[2, 2], &[Some(0), Some(1), Some(5), None]));
        assert!(!fits_leaves(&[2, 2], &[Some(0), Some(1), Some(5), Some(7)]));
    }

    /// All factorizations of `size`, with the strides read off where a digit is 1.
    fn fits_by_enumeration(values: &[i64], size: i64, factors: &mut Vec<i64>) -> bool {
        if size == 1 {
            let mut place = 1;
            let mut leaves = Vec::new();
            for n in factors.iter() {
                // Beyond what is given, a stride is free: no given value has that digit.
                leaves.push((*n, values.get(place as usize).copied().unwrap_or(0)));
                place *= n;
            }
            leaves.push((1, 0));
            return (0..values.len()).all(|i| crate::model::at(&leaves, i as i64) == values[i]);
        }
        (2..=size).filter(|n| size % n == 0).any(|n| {
            factors.push(n);
            let found = fits_by_enumeration(values, size / n, factors);
            factors.pop();
            found
        })
    }

    #[test]
    fn the_search_finds_what_enumeration_finds() {
        let mut random = crate::random::Random::new(1);
        let (mut yes, mut no) = (0, 0);
        for _ in 0..20_000 {
            let size = *random.pick(&[2, 3, 4, 5, 6, 8, 9, 10, 12, 16]);
            let given = random.range(1, size);
            let rank = random.range(1, 3);
            let extents = random.extents(rank, size);
            let leaves: Vec<(i64, i64)> = extents
                .into_iter()
                .map(|n| (n, random.range(0, 5)))
                .collect();
            let values: Vec<i64> = (0..given).map(|i| crate::model::at(&leaves, i)).collect();
            let slow = fits_by_enumeration(&values, size, &mut Vec::new());
            assert_eq!(fits(&values, size), slow, "{values:?} of {size}");
            yes += i32::from(slow);
            no += i32::from(!slow);
        }
        assert!(yes > 2000 && no > 2000, "{yes} {no}");
    }

    #[test]
    fn known_interpolation() {
        let inverse = |layout: &crate::model::Layout| {
            let points: Vec<(i64, i64)> = layout
                .values()
                .into_iter()
                .enumerate()
                .map(|(i, x)| (x, i as i64))
                .collect();
            interpolates(&points)
        };
        assert!(inverse(&crate::model::Layout::of(&[(4, 2), (4, 9)])));
        assert!(inverse(&crate::model::Layout::of(&[(5, 3), (3, 13)])));
        assert!(inverse(&crate::model::Layout::of(&[(4, 1), (2, 5)])));
        assert!(!solvable(vec![vec![2], vec![3]], vec![2, 4]));
        assert!(solvable(vec![vec![2, 3]], vec![1]));
    }
}
