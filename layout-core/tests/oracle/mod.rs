//! Brute force, from the definitions: shares no code with the implementation and knows nothing of digits, chains or
//! coalescing. Layouts are lists of (extent, stride); everything is enumerated.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part"
)]

/// A flat layout: (extent, stride), first fastest.
pub type Modes = Vec<(i64, i64)>;

/// `L(x)` by peeling coordinates off; the last mode takes all that is left.
pub fn value(modes: &[(i64, i64)], x: i64) -> i64 {
    let (last, rest) = modes.split_last().expect("a layout has a mode");
    let mut x = x;
    let mut sum = 0;
    for &(extent, stride) in rest {
        sum += x.rem_euclid(extent) * stride;
        x = x.div_euclid(extent);
    }
    sum + x * last.1
}

/// Number of coordinates.
pub fn size(modes: &[(i64, i64)]) -> i64 {
    modes.iter().map(|m| m.0).product()
}

/// All offsets in order of the linear coordinate.
pub fn table(modes: &[(i64, i64)]) -> Vec<i64> {
    (0..size(modes)).map(|i| value(modes, i)).collect()
}

/// Every way to write `n` as an ordered product of factors of at least 2 (one empty way for 1).
pub fn factorizations(n: i64) -> Vec<Vec<i64>> {
    if n == 1 {
        return vec![vec![]];
    }
    let mut all = vec![];
    for first in 2..=n {
        if n % first == 0 {
            for mut rest in factorizations(n / first) {
                rest.insert(0, first);
                all.push(rest);
            }
        }
    }
    all
}

/// Whether some layout, of any number of modes, has this table of offsets (which must start with 0).
pub fn is_layout(table: &[i64]) -> bool {
    factorizations(table.len() as i64)
        .into_iter()
        .any(|factors| {
            let mut modes = vec![(1, 0)];
            let mut at = 1;
            for n in factors {
                modes.push((n, table[at as usize]));
                at *= n;
            }
            self::table(&modes) == table
        })
}

/// Whether some layout with the modes `b`, each replaced by any number of factors, is `a ∘ b`.
pub fn composable(a: &[(i64, i64)], b: &[(i64, i64)]) -> bool {
    let expected: Vec<i64> = table(b).into_iter().map(|x| value(a, x)).collect();
    let mut candidates: Vec<Modes> = vec![vec![(1, 0)]];
    for &(extent, stride) in b {
        let mut longer = vec![];
        for candidate in &candidates {
            for factors in factorizations(extent) {
                let mut modes = candidate.clone();
                let mut e = stride;
                for n in factors {
                    modes.push((n, value(a, e)));
                    e *= n;
                }
                longer.push(modes);
            }
        }
        candidates = longer;
    }
    candidates.iter().any(|modes| table(modes) == expected)
}

/// The offsets `c0 = 0 < c1 < …` whose translates of the set `tile` fill `0..m` exactly once, for the least `m >= n` that
/// can be filled so. Greedy, since whatever covers the least free offset must start there.
pub fn fill(tile: &[i64], n: i64) -> Option<Vec<i64>> {
    let reach = *tile.iter().max()?;
    let mut covered = vec![false; ((n + reach + 2) * (reach + 2) * 2) as usize];
    let mut starts = vec![];
    let mut free = 0usize;
    let mut end = 0usize;
    loop {
        if starts.len() as i64 > n + reach * reach + 2 {
            return None;
        }
        for &t in tile {
            let at = free + t as usize;
            if covered[at] {
                return None;
            }
            covered[at] = true;
            end = end.max(at + 1);
        }
        starts.push(free as i64);
        while covered[free] {
            free += 1;
        }
        if free == end && free as i64 >= n {
            return Some(starts);
        }
    }
}

/// The offsets `c0 = 0 < c1 < …` whose translates of the set `tile` cover `0..n` and do not meet anywhere. Greedy, since
/// whatever covers the least free offset must start there.
pub fn cover(tile: &[i64], n: i64) -> Option<Vec<i64>> {
    let mut covered = std::collections::HashSet::new();
    let mut starts = vec![];
    for free in 0..n {
        if covered.contains(&free) {
            continue;
        }
        for t in tile {
            if !covered.insert(free + t) {
                return None;
            }
        }
        starts.push(free);
    }
    Some(starts)
}

/// The distinct values in `table`, or nothing if one occurs twice.
pub fn distinct(table: &[i64]) -> Option<Vec<i64>> {
    let mut sorted = table.to_vec();
    sorted.sort_unstable();
    let before = sorted.len();
    sorted.dedup();
    (sorted.len() == before).then_some(sorted)
}
