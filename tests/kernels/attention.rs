//! Attention, the portable kernel; that for Hopper is in [`hopper`], the options of both in [`options`].

mod hopper;
mod options;
mod varlen;

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{Design, Heads, Problem};
use tilewright::host::{Contract, Matrix, Outcome};
use tilewright::kernels::attention::{
    Attention, ELEMENTS, Mask, Tile, attention, hopper as on_hopper,
};

use super::{ran, right};

/// One head of f16 with 64 elements.
fn head(queries: u64, keys: u64) -> Heads {
    Heads {
        what: Attention {
            lse: true,
            ..Attention::new(Element::F16, 64)
        },
        design: Design::Portable(Tile::default()),
        batch: 1,
        kv_heads: 1,
        queries,
        keys,
    }
}

/// The same of another type and size.
fn of_size(what: Attention, element: Element, head_dim: i64) -> Attention {
    Attention {
        element,
        head_dim,
        value_dim: head_dim,
        ..what
    }
}

/// Both with a mask and without.
fn causal_or_not(problem: Heads) -> [Heads; 2] {
    [Mask::ALL, Mask::CAUSAL].map(|mask| Heads {
        what: Attention {
            mask,
            ..problem.what
        },
        ..problem
    })
}

#[test]
fn ragged_sizes_are_right_clean_and_counted_as_proven() {
    let sizes = [
        (1, 1),
        (1, 200),
        (129, 1),
        (127, 131),
        (128, 128),
        (150, 257),
        (257, 67),
    ];
    for (seed, (queries, keys)) in (1..).zip(sizes) {
        for element in ELEMENTS {
            for head_dim in [64, 128] {
                for mut problem in causal_or_not(head(queries, keys)) {
                    problem.what = of_size(problem.what, element, head_dim);
                    let what = format!("{problem:?}");
                    let outcome = right(&problem, &problem.random(seed), &what);
                    assert_eq!(outcome.accesses.len(), 6, "{what}");
                    for access in &outcome.accesses {
                        assert_eq!(access.proof.wavefronts, access.proof.ideal, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn heads_share_their_keys() {
    for ([batch, group, kv_heads, queries, keys], mask) in [
        ([2, 3, 2, 67, 41], Mask::ALL),
        ([3, 4, 1, 20, 90], Mask::CAUSAL),
        ([2, 1, 2, 130, 130], Mask::CAUSAL),
    ] {
        let mut problem = Heads {
            batch,
            kv_heads,
            ..head(queries, keys)
        };
        problem.what.mask = mask;
        problem.what.group = group as i64;
        right(&problem, &problem.random(3), &format!("{problem:?}"));
    }
}

#[test]
fn every_tile_is_right() {
    for (head_dim, queries, keys, warps, stages) in [
        (64, 128, 64, 8, 2),
        (64, 64, 32, 4, 3),
        (64, 128, 128, 4, 2),
        (128, 128, 64, 8, 2),
        (128, 64, 64, 4, 1),
        (128, 128, 32, 4, 4),
    ] {
        for mut problem in causal_or_not(head(140, 300)) {
            problem.what = of_size(problem.what, Element::F16, head_dim);
            problem.design = Design::Portable(Tile {
                queries,
                keys,
                warps,
                stages,
            });
            right(&problem, &problem.random(5), &format!("{problem:?}"));
        }
    }
}

#[test]
fn configurations_out_of_range_are_refused() {
    let (what, tile) = (head(1, 1).what, Tile::default());
    let with = |change: fn(&mut Attention, &mut Tile)| {
        let (mut what, mut tile) = (what, tile);
        change(&mut what, &mut tile);
        let error = attention(what, tile, Arch(80)).expect_err("refused");
        error.to_string()
    };
    for (message, part) in [
        (with(|w, _| w.element = Element::F32), "take f16 or bf16"),
        (with(|w, _| w.head_dim = 96), "96 is not 64 or 128"),
        (with(|w, _| w.head_dim = i64::MIN), "is not 64 or 128"),
        (with(|w, _| w.value_dim = 65), "values of a head: 65 is not"),
        (with(|w, _| w.group = 0), "0 is not 1 to 32767"),
        (with(|w, _| w.group = i64::MAX), "is not 1 to 32767"),
        (with(|w, _| w.softcap = Some(0.0)), "soft cap: 0 is not"),
        (with(|w, _| w.softcap = Some(f32::NAN)), "soft cap"),
        (
            with(|w, _| w.mask.left = Some(-1)),
            "before a query: -1 is not 0 to",
        ),
        (
            with(|w, _| w.mask.right = Some(i64::MAX)),
            "window after a query",
        ),
        (
            with(|_, t| t.queries = 100),
            "a multiple of 16 for each warp",
        ),
        (
            with(|_, t| t.queries = -64),
            "a multiple of 16 for each warp",
        ),
        (with(|_, t| t.keys = 0), "keys of a step: 0 is not"),
        (
            with(|_, t| t.warps = 0),
            "warps of a block: 0 is not 1 to 16",
        ),
        (with(|_, t| t.stages = i64::MAX), "is not 1 to 8"),
    ] {
        assert!(message.contains(part), "{message}");
    }
    // What the fields allow, and shared memory, registers or the copies do not, is an error too.
    for queries in (16..=256).step_by(16) {
        for (keys, warps) in [(16, 1), (48, 3), (256, 2), (32, 16)] {
            let tile = Tile {
                queries,
                keys,
                warps,
                stages: 8,
            };
            if let Err(error) = attention(what, tile, Arch(80)) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn candidates_have_the_default_tiles() {
    for head_dim in [64, 96, 128, 192, 256] {
        for value_dim in [64, 128, head_dim] {
            let what = Attention {
                value_dim,
                ..Attention::new(Element::F16, head_dim)
            };
            assert!(on_hopper::Tile::candidates().any(|t| t == on_hopper::Tile::of(what)));
            assert!(Tile::candidates().any(|tile| tile == Tile::of(what)));
        }
    }
    let problem = head(300, 300);
    let tiles = problem.tiles(Arch(80)).into_iter();
    assert!(tiles.filter(|tile| tile.kernel(Arch(80)).is_ok()).count() >= 10);
}

#[test]
fn every_output_is_covered() {
    for element in ELEMENTS {
        for head_dim in [64, 128] {
            for mask in [Mask::ALL, Mask::CAUSAL] {
                let what = Attention {
                    mask,
                    lse: true,
                    ..Attention::new(element, head_dim)
                };
                let kernel = attention(what, Tile::default(), Arch(80)).expect("proven");
                assert_eq!(kernel.proof.covered, ["o", "lse"]);
            }
        }
    }
}

#[test]
fn without_keys_the_result_is_0_and_its_logarithm_is_minus_infinity() {
    for problem in causal_or_not(head(130, 0)) {
        let outcome = right(&problem, &problem.random(1), "no keys");
        let o: Vec<half::f16> = outcome.get("o").expect("o");
        let lse: Vec<f32> = outcome.get("lse").expect("lse");
        assert!(o.iter().all(|x| x.to_f32() == 0.0));
        assert!(lse.iter().all(|&x| x == f32::NEG_INFINITY));
    }
    for problem in [
        head(0, 10),
        Heads {
            batch: 0,
            ..head(5, 10)
        },
    ] {
        let outcome = right(&problem, &problem.random(1), "nothing");
        assert_eq!(outcome.launches, 0);
    }
}

/// The outcome for one head with these numbers in q, k and v, and the rows of o of which all elements are so.
fn of(problem: Heads, [q, k, v]: [&dyn Fn(usize, usize) -> f64; 3]) -> Outcome {
    let mut inputs = problem.random(1);
    for (matrix, number) in inputs.iter_mut().zip([q, k, v]) {
        for r in 0..matrix.rows {
            for c in 0..matrix.cols {
                matrix.set(r, c, number(r, c));
            }
        }
    }
    right_but_for_weights_of_0(&problem, &inputs)
}

/// As [`right`], but what is behind the mask may show: a weight of 0 times NaN.
fn right_but_for_weights_of_0(problem: &Heads, inputs: &[Matrix]) -> Outcome {
    ran(problem, inputs, "special numbers").0
}

/// The rows of o whose elements are all so.
fn rows(outcome: &Outcome, is: fn(f32) -> bool) -> Vec<usize> {
    let o: Vec<half::f16> = outcome.get("o").expect("o");
    let rows = o.chunks(64).enumerate();
    let rows = rows.filter(|(_, row)| row.iter().all(|x| is(x.to_f32())));
    rows.map(|(r, _)| r).collect()
}

#[test]
#[allow(clippy::float_cmp, reason = "what is compared is exact")]
fn nan_and_infinities_are_as_stated() {
    let (queries, keys) = (70, 50);
    let small = Heads {
        design: Design::Portable(Tile {
            queries: 64,
            keys: 32,
            warps: 4,
            stages: 1,
        }),
        ..head(queries, keys)
    };
    let [all, causal] = causal_or_not(small);
    let (zero, one) = (|_, _| 0.0, |_, _| 1.0);
    let some = |from: usize, to: usize| (from..to).collect::<Vec<_>>();
    let lse = |outcome: &Outcome| -> Vec<f32> { outcome.get("lse").expect("lse") };

    // A NaN in a query: its row. One in a key or a value: the rows that see it.
    let nan_at = |row, column| {
        move |r, c| {
            if (r, c) == (row, column) {
                f64::NAN
            } else {
                0.0
            }
        }
    };
    let outcome = of(all, [&nan_at(5, 3), &zero, &one]);
    assert_eq!(rows(&outcome, f32::is_nan), [5]);
    assert_eq!(rows(&outcome, |x| x == 1.0).len(), queries as usize - 1);
    assert!(lse(&outcome)[5].is_nan() && lse(&outcome)[6].is_finite());
    let outcome = of(causal, [&zero, &nan_at(33, 9), &one]);
    assert_eq!(rows(&outcome, f32::is_nan), some(33, queries as usize));
    assert_eq!(rows(&outcome, |x| x == 1.0), some(0, 33));

    // A score of infinity: NaN. Scores that are all −∞: 0, as without keys; some of them: those keys do not count.
    let infinite = |r, c| match (r, c) {
        (1, 0) => f64::INFINITY,
        (2, 0) => f64::NEG_INFINITY,
        _ => 0.0,
    };
    let outcome = of(all, [&infinite, &one, &one]);
    assert_eq!(rows(&outcome, f32::is_nan), [1]);
    assert_eq!(rows(&outcome, |x| x == 0.0), [2]);
    assert_eq!(lse(&outcome)[2], f32::NEG_INFINITY);
    let few = |r, _| if r < 20 { 1.0 } else { f64::NEG_INFINITY };
    let outcome = of(
        all,
        [&|_, _| 0.5, &few, &|r, _| if r < 20 { 3.0 } else { 1.0 }],
    );
    assert_eq!(rows(&outcome, |x| x == 3.0).len(), queries as usize);
}

#[test]
fn large_scores_do_not_overflow() {
    let mut problem = head(100, 100);
    problem.what = Attention {
        element: Element::Bf16,
        mask: Mask::CAUSAL,
        ..problem.what
    };
    // Scores of up to ±1000 · 8, of which the exponentials of all but a few are 0.
    let mut inputs = problem.random(1);
    for matrix in &mut inputs[..2] {
        for (r, c) in (0..100).flat_map(|r| (0..64).map(move |c| (r, c))) {
            matrix.set(r, c, 30.0 * matrix.at(r, c));
        }
    }
    let (_, compared) = ran(&problem, &inputs, "large scores");
    assert!(compared.of_allowed <= 4.0, "{compared:?}"); // the error of scores of 8000 in f32 is 2⁻¹⁰
}

#[test]
fn the_launch_contract_is_complete() {
    let contract = |batch, group, kv_heads| {
        let mut problem = Heads {
            batch,
            kv_heads,
            ..head(1000, 500)
        };
        problem.what.group = group;
        let kernel = problem.kernel(Arch(80)).expect("proven");
        Contract::new(&kernel, problem.scalars())
    };
    let launch = &contract(2, 4, 2).expect("a launch").launches[0];
    assert_eq!(launch.step.grid, [8, 8, 2]);
    assert_eq!(launch.names[..4], ["batch", "kv_heads", "queries", "keys"]);
    let error = contract(65_536, 1, 1).expect_err("too many");
    assert_eq!(error.code(), "too_large", "{error}");
}
