//! Every rule by itself against its operation's definition, on every expression of a family and every value of the variables.

use super::bits::{Diagonal, FIELD_RULES, XOR_RULES};
use super::products::RULES as MUL_RULES;
use super::quotients::{DIV_RULES, REM_RULES};
use super::sums::{RULES as SUM_RULES, Terms};
use crate::index::{Expr, Node, Pool};

/// `x` in 0..8, `y` in 0..6, `z` a multiple of 4 in 0..=12.
const POINTS: [(i64, i64, i64); 8 * 6 * 4] = {
    let mut all = [(0, 0, 0); 8 * 6 * 4];
    let mut i = 0;
    while i < all.len() {
        all[i] = (i as i64 % 8, i as i64 / 8 % 6, i as i64 / 48 * 4);
        i += 1;
    }
    all
};

fn value(pool: &Pool, e: Expr, (x, y, z): (i64, i64, i64)) -> i128 {
    pool.evaluate(e, &|name| match name {
        "x" => x,
        "y" => y,
        _ => z,
    })
}

/// Sums, fields, exclusive ors, quotients and opaque values of three small variables: every form that the rules look for.
fn family(pool: &mut Pool) -> Vec<Expr> {
    let (x, y) = (pool.var("x", 0, 7, 0), pool.var("y", 0, 5, 0));
    let z = pool.var_aligned("z", 12, 2, 0);
    let mut atoms = vec![x, y, z];
    for (shift, mask) in [(0, 3), (0, 5), (-1, 3), (2, 0b1_1000), (1, 0b1110)] {
        atoms.push(pool.field(x, shift, mask));
    }
    let xor = pool.field(x, 1, 14);
    atoms.push(pool.xor(y, xor));
    let sum = pool.scale(x, 3);
    let sum = pool.add(sum, y);
    atoms.push(pool.div(sum, 5));
    atoms.push(pool.rem(sum, 7));
    atoms.push(pool.pin(sum));
    atoms.push(pool.mul(x, y));
    let mut all = atoms.clone();
    for k in [0, 1, 6, 37] {
        all.push(pool.constant(k));
    }
    for &a in &atoms {
        for &b in &atoms {
            for (c, d, k) in [
                (1, 1, 0),
                (8, 1, 0),
                (6, 1, 3),
                (4, 12, 9),
                (5, 10, 0),
                (2, 6, 1),
            ] {
                let (a, b) = (pool.scale(a, c), pool.scale(b, d));
                let k = pool.constant(k);
                let e = pool.add(a, b);
                all.push(pool.add(e, k));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Fails for a rule that applied to nothing.
fn applied(name: &str, identity: &str, times: usize) {
    assert!(times > 0, "`{name}` never applied: {identity}");
}

#[test]
fn each_division_rule_is_the_quotient() {
    let mut pool = Pool::new();
    let all = family(&mut pool);
    for rule in DIV_RULES {
        let mut times = 0;
        for &e in &all {
            for d in 1..=16 {
                let Some(result) = (rule.apply)(&mut pool, &(e, d)) else {
                    continue;
                };
                times += 1;
                for at in POINTS {
                    let expected = value(&pool, e, at) / i128::from(d);
                    assert_eq!(
                        value(&pool, result, at),
                        expected,
                        "{}: {:?} / {d}",
                        rule.name,
                        pool.node(e)
                    );
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
}

#[test]
fn each_remainder_rule_is_the_remainder() {
    let mut pool = Pool::new();
    let all = family(&mut pool);
    for rule in REM_RULES {
        let mut times = 0;
        for &e in &all {
            for d in 1..=16 {
                let Some(result) = (rule.apply)(&mut pool, &(e, d)) else {
                    continue;
                };
                times += 1;
                for at in POINTS {
                    let expected = value(&pool, e, at) % i128::from(d);
                    assert_eq!(
                        value(&pool, result, at),
                        expected,
                        "{}: {:?} % {d}",
                        rule.name,
                        pool.node(e)
                    );
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
}

#[test]
fn each_field_rule_is_the_field() {
    let mut pool = Pool::new();
    let mut all = family(&mut pool);
    // What may be negative has fields too.
    for i in 0..40 {
        let e = all[i * all.len() / 40];
        let less = pool.constant(20);
        all.push(pool.sub(e, less));
    }
    for rule in FIELD_RULES {
        let mut times = 0;
        for &e in &all {
            for shift in -4..=4 {
                for mask in [
                    0,
                    1,
                    2,
                    3,
                    6,
                    7,
                    12,
                    21,
                    24,
                    63,
                    64,
                    127,
                    255,
                    1023,
                    u64::MAX >> 1,
                ] {
                    let mask = if shift < 0 {
                        mask & (u64::MAX >> -shift)
                    } else {
                        mask
                    };
                    let Some(result) = (rule.apply)(&mut pool, &(e, shift, mask)) else {
                        continue;
                    };
                    times += 1;
                    for at in POINTS {
                        let v = value(&pool, e, at);
                        let v = if shift >= 0 { v << shift } else { v >> -shift };
                        let expected = v & i128::from(mask);
                        assert_eq!(
                            value(&pool, result, at),
                            expected,
                            "{}: ({:?} << {shift}) & {mask}",
                            rule.name,
                            pool.node(e)
                        );
                    }
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
}

#[test]
fn each_product_rule_is_the_product() {
    let mut pool = Pool::new();
    let all = family(&mut pool);
    for rule in MUL_RULES {
        let mut times = 0;
        for &a in &all {
            for &b in all.iter().step_by(7) {
                let Some(result) = (rule.apply)(&mut pool, &(a, b)) else {
                    continue;
                };
                times += 1;
                for at in POINTS.into_iter().step_by(5) {
                    let expected = value(&pool, a, at) * value(&pool, b, at);
                    assert_eq!(
                        value(&pool, result, at),
                        expected,
                        "{}: {:?} · {:?}",
                        rule.name,
                        pool.node(a),
                        pool.node(b)
                    );
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
}

#[test]
fn each_sum_rule_keeps_the_sum() {
    let mut pool = Pool::new();
    // Atoms only: a term of a sum is never itself a sum.
    let atoms: Vec<Expr> = family(&mut pool)
        .into_iter()
        .filter(|&e| !matches!(pool.node(e), Node::Sum(..)))
        .collect();
    let evaluate = |pool: &Pool, sum: &Terms, at| {
        let terms = sum
            .terms
            .iter()
            .map(|&(c, x)| i128::from(c) * value(pool, x, at));
        terms.sum::<i128>() + i128::from(sum.constant)
    };
    for rule in SUM_RULES {
        let mut times = 0;
        for &a in &atoms {
            for &b in &atoms {
                for (c, d) in [(1, 1), (2, 4), (4, 2), (8, -8), (3, -1), (-2, 5), (1, 16)] {
                    for &e in atoms.iter().step_by(3) {
                        let sum = Terms {
                            terms: vec![(c, a), (d, b), (2, e)],
                            constant: 5,
                        };
                        let Some(result) = (rule.apply)(&mut pool, &sum) else {
                            continue;
                        };
                        times += 1;
                        for at in POINTS.into_iter().step_by(3) {
                            let (got, expected) =
                                (evaluate(&pool, &result, at), evaluate(&pool, &sum, at));
                            assert_eq!(got, expected, "{}: {sum:?}", rule.name);
                        }
                    }
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
}

#[test]
fn each_xor_rule_keeps_the_exclusive_or() {
    let mut pool = Pool::new();
    let (x, y) = (pool.var("x", 0, 7, 0), pool.var("y", 0, 5, 0));
    let field = |f: &Diagonal, pool: &Pool, at| {
        let v = value(pool, f.x, at);
        let v = if f.shift >= 0 {
            v << f.shift
        } else {
            v >> -f.shift
        };
        v & i128::from(f.mask)
    };
    let evaluate = |pool: &Pool, parts: &[Diagonal], at| {
        parts.iter().fold(0, |acc, f| acc ^ field(f, pool, at))
    };
    let mut diagonals = Vec::new();
    for x in [x, y] {
        for shift in -2..=2 {
            for mask in 0..32 {
                diagonals.push(Diagonal { x, shift, mask });
            }
        }
    }
    for rule in XOR_RULES {
        let mut times = 0;
        for &a in &diagonals {
            for &b in &diagonals {
                let parts = vec![a, b, diagonals[(a.mask + 3) as usize]];
                let Some(result) = (rule.apply)(&mut pool, &parts) else {
                    continue;
                };
                times += 1;
                for at in POINTS.into_iter().take(48) {
                    let (got, expected) =
                        (evaluate(&pool, &result, at), evaluate(&pool, &parts, at));
                    assert_eq!(got, expected, "{}: {parts:?}", rule.name);
                }
            }
        }
        applied(rule.name, rule.identity, times);
    }
    // And all of it together, constants and groups included.
    for (i, &a) in diagonals.iter().enumerate() {
        for &b in diagonals.iter().skip(i % 7).step_by(7) {
            let k = a.mask ^ (b.mask << 1);
            let e = pool.xor_of(vec![a, b], k);
            for at in POINTS.into_iter().take(48) {
                let expected = evaluate(&pool, &[a, b], at) ^ i128::from(k);
                assert_eq!(value(&pool, e, at), expected, "{a:?} ^ {b:?} ^ {k}");
            }
        }
    }
}
