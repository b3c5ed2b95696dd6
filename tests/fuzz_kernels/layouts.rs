//! Random layouts: of threads and values to the elements of a tile, and of tiles in shared memory.

use crate::random::Random;

/// A layout of digits, each with its stride.
fn written(digits: &[(i64, i64)]) -> String {
    match digits {
        [] => "1:0".to_owned(),
        [(n, d)] => format!("{n}:{d}"),
        _ => {
            let all = |f: &dyn Fn(&(i64, i64)) -> i64| {
                let texts: Vec<String> = digits.iter().map(|d| f(d).to_string()).collect();
                texts.join(",")
            };
            format!("({}):({})", all(&|d| d.0), all(&|d| d.1))
        }
    }
}

/// (thread, value) from the digits of each.
fn thread_value(threads: &[(i64, i64)], values: &[(i64, i64)]) -> String {
    let [(ts, td), (vs, vd)] = [written(threads), written(values)].map(|text| {
        let (shape, stride) = text.split_once(':').expect("a shape and a stride");
        (shape.to_owned(), stride.to_owned())
    });
    format!("({ts},{vs}):({td},{vd})")
}

/// The prime factors of a number, smallest first.
fn factors(mut n: i64) -> Vec<i64> {
    let mut all = Vec::new();
    let mut p = 2;
    while n > 1 {
        while n % p == 0 {
            all.push(p);
            n /= p;
        }
        p += 1;
    }
    all
}

/// Joins digits that are next to each other in both.
fn coalesced(digits: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (n, d) in digits {
        match all.last_mut() {
            Some(last) if last.0 * last.1 == d => last.0 *= n,
            _ => all.push((n, d)),
        }
    }
    all
}

/// A layout that shares out `threads`·`values` elements, each once. With `runs`, that many of a thread's values lie one behind the other along the last mode
/// of a row-major tile of `cols` columns (1 row: `cols` is all of them).
pub(crate) fn share(r: &mut Random, threads: i64, values: i64, cols: i64, runs: i64) -> String {
    let [threads, values] = digits(r, threads, values, cols, runs).map(coalesced);
    thread_value(&threads, &values)
}

/// Such a layout of words, and that of the eight values in each of them.
pub(crate) fn words(r: &mut Random, threads: i64, values: i64, cols: i64) -> [String; 2] {
    let rows = threads * values / cols;
    let of_words = digits(r, threads, values, cols, 1);
    let mut of_values = of_words.clone().map(|digits| {
        let wider = |(n, d): (i64, i64)| (n, if rows == 1 || d >= rows { 8 * d } else { d });
        digits.into_iter().map(wider).collect::<Vec<_>>()
    });
    of_values[1].insert(0, (8, rows));
    [of_words, of_values].map(|both| {
        let [threads, values] = both.map(coalesced);
        thread_value(&threads, &values)
    })
}

/// The digits of threads and of values.
fn digits(r: &mut Random, threads: i64, values: i64, cols: i64, runs: i64) -> [Vec<(i64, i64)>; 2] {
    let rows = threads * values / cols;
    // The digits in the order of their row-major strides, values first where they have to be runs.
    let mut first: Vec<(bool, i64)> = factors(runs).into_iter().map(|f| (false, f)).collect();
    let mut rest: Vec<(bool, i64)> = factors(threads).into_iter().map(|f| (true, f)).collect();
    rest.extend(factors(values / runs).into_iter().map(|f| (false, f)));
    match r.below(4) {
        0 => {}
        1 => rest.sort_by_key(|d| d.0),
        2 => {
            rest.sort_by_key(|d| !d.0);
        }
        _ => r.shuffle(&mut rest),
    }
    first.extend(rest);
    let (mut place, mut digits) = (1, [Vec::new(), Vec::new()]);
    for (thread, f) in first {
        // A tile counts its first mode fastest; rows of one are the elements themselves.
        let stride = if rows == 1 {
            place
        } else if place < cols {
            place * rows
        } else {
            place / cols
        };
        digits[usize::from(!thread)].push((f, stride));
        place *= f;
    }
    digits
}

/// A layout of a row of `n` elements in shared memory.
pub(crate) fn row(r: &mut Random, n: i64) -> String {
    match r.below(8) {
        0 if n >= 32 && n % 32 == 0 => {
            format!("Sw<{},0,{}> o {n}:1", 1 + r.below(2), 2 + r.below(2))
        }
        1 => format!("{n}:{}", r.pick(&[2, 3, 4])),
        _ => format!("{n}:1"),
    }
}

/// A layout of a tile in shared memory.
pub(crate) fn tile(r: &mut Random, rows: i64, cols: i64) -> String {
    let powers = rows.count_ones() == 1 && cols.count_ones() == 1 && rows >= 4 && cols >= 8;
    match r.below(6) {
        0 if powers => {
            let (bits, shift) = (1 + r.below(2), cols.trailing_zeros());
            format!("Sw<{bits},0,{shift}> o ({rows},{cols}):({cols},1)")
        }
        1 if powers => format!(
            "Sw<1,2,{}> o ({rows},{cols}):({cols},1)",
            cols.trailing_zeros() - 2 + 1
        ),
        2 => format!("({rows},{cols}):(1,{rows})"),
        3 => format!("({rows},{cols}):({},1)", cols + r.pick(&[1, 4])),
        _ => format!("({rows},{cols}):({cols},1)"),
    }
}
