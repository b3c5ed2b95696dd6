//! Properties: yes or no, size and cosize, equality of functions. Each is decided by listing all offsets.

use super::{coalesced, kind, times, wrapped};
use crate::model::{Function, Layout, cosize, distinct};
use crate::random::Random;
use crate::verdict::{Case, is_bool, is_int};

pub(crate) fn cases(random: &mut Random, cases: &mut Vec<Case>) {
    for name in [
        "is_injective",
        "is_bijective",
        "is_compact",
        "is_surjective_onto",
    ] {
        times(350, random, cases, |random| property(random, name));
    }
    times(300, random, cases, equal);
    times(250, random, cases, |random| number(random, "cosize"));
    times(100, random, cases, |random| number(random, "size"));
    times(300, random, cases, apply);
}

fn operand(random: &mut Random) -> (Function, &'static str) {
    if random.one_in(3) {
        (random.composed(36), "swizzled")
    } else {
        let layout = if random.one_in(2) {
            random.chain_layout(36)
        } else {
            random.layout(36)
        };
        let class = kind(&layout);
        (layout.into(), class)
    }
}

fn property(random: &mut Random, name: &'static str) -> Case {
    let (f, class) = operand(random);
    let values = f.values();
    let mut sorted = values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let onto =
        |n: i64| sorted.len() as i64 == n && sorted.iter().enumerate().all(|(i, x)| i as i64 == *x);
    let once = distinct(&values);
    let (text, expected) = match name {
        "is_injective" => (format!("{name}({f})"), once),
        "is_bijective" => (format!("{name}({f})"), once && onto(f.size())),
        "is_compact" => {
            let gap = sorted[sorted.len() - 1] - sorted[0] + 1 != sorted.len() as i64;
            (format!("{name}({f})"), once && !gap)
        }
        _ => {
            let n = if random.one_in(2) {
                sorted.len() as i64
            } else {
                random.range(1, 36)
            };
            (format!("{name}({f}, {n})"), onto(n))
        }
    };
    Case::new(name, class, text, move |answer| is_bool(answer, expected))
}

fn equal(random: &mut Random) -> Case {
    let (f, _) = operand(random);
    let g: Function = if f.0.len() == 1 && random.one_in(2) {
        Layout::of(&coalesced(&f.domain().expect("a layout").leaves())).into()
    } else if random.one_in(2) {
        f.clone()
    } else {
        let mut g = f.clone();
        let last = g.0.len() - 1;
        g.0[last] = crate::model::Step::Layout(random.chain_layout(36));
        g
    };
    let expected = f.values() == g.values();
    let text = if random.one_in(2) {
        format!("equal({f}, {g})")
    } else {
        format!("{} == {}", wrapped(&f), wrapped(&g))
    };
    let class = if f.0.len() > 1 { "swizzled" } else { "plain" };
    Case::new("equal", class, text, move |answer| {
        is_bool(answer, expected)
    })
}

fn number(random: &mut Random, name: &'static str) -> Case {
    let (f, class) = operand(random);
    let expected = if name == "size" {
        f.size()
    } else {
        cosize(&f.values())
    };
    Case::new(name, class, format!("{name}({f})"), move |answer| {
        is_int(answer, expected)
    })
}

/// `L(i)`, also beyond the end of a layout, where the last mode goes on.
fn apply(random: &mut Random) -> Case {
    let (f, class) = operand(random);
    let i = random.range(0, f.size() + 3);
    let expected = f.at(i);
    Case::new(
        "apply",
        class,
        format!("{}({i})", wrapped(&f)),
        move |answer| is_int(answer, expected),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Step, Swizzle};

    #[test]
    fn known_values() {
        // docs/algebra.md: Sw<2,0,2> o 9:1 needs 11.
        let swizzle = Step::Swizzle(Swizzle { b: 2, m: 0, s: 2 });
        let f = Function(vec![swizzle.clone(), Step::Layout(Layout::of(&[(9, 1)]))]);
        assert_eq!(cosize(&f.values()), 11);
        let f = Function(vec![swizzle, Step::Layout(Layout::of(&[(4, 4), (4, 1)]))]);
        assert_eq!(f.at(7), 14);
        assert!(distinct(&f.values()));
        assert_eq!(cosize(&Layout::of(&[(4, -2)]).values()), 7);
    }
}
