//! Options of attention, of both kernels: masks, soft caps, sinks, sizes of heads, orders of modes.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::gpu::ptxas;
use tilewright::host::kernels::{Design, Heads, Problem};
use tilewright::kernels::attention::{Align, Attention, Mask, Order, Tile, hopper};

use super::{head, rows};
use crate::{ran, right};

/// Small tiles of both kernels.
const DESIGNS: [Design; 2] = [
    Design::Portable(Tile {
        queries: 64,
        keys: 32,
        warps: 4,
        stages: 1,
    }),
    Design::Hopper(hopper::Tile {
        warpgroups: 2,
        keys: 32,
        stages: 2,
        ping_pong: true,
    }),
];

/// Both kernels for an option.
fn both([queries, keys]: [u64; 2], change: impl Fn(&mut Attention)) -> [Heads; 2] {
    DESIGNS.map(|design| {
        let mut problem = Heads {
            design,
            ..head(queries, keys)
        };
        change(&mut problem.what);
        problem
    })
}

fn window(left: i64, right: i64, align: Align) -> Mask {
    let side = |keys: i64| (keys >= 0).then_some(keys);
    Mask {
        left: side(left),
        right: side(right),
        align,
    }
}

#[test]
fn windows_are_right() {
    let sizes = [[1, 1], [70, 200], [200, 70]];
    for (seed, size) in (1..).zip(sizes) {
        for align in [Align::TopLeft, Align::BottomRight] {
            for (left, behind) in [(-1, 0), (40, 0), (0, 0), (-1, 33), (5, -1), (64, 17)] {
                let mask = window(left, behind, align);
                for problem in both(size, |what| what.mask = mask) {
                    right(&problem, &problem.random(seed), &format!("{problem:?}"));
                }
            }
        }
    }
}

/// Tiles of keys that no query of a block sees are not read: NaN in them does not show.
#[test]
fn what_no_query_sees_is_not_read() {
    for problem in both([64, 600], |what| {
        what.mask = window(10, 20, Align::TopLeft);
    }) {
        let mut inputs = problem.random(1);
        for matrix in &mut inputs[1..] {
            for (r, c) in (160..600).flat_map(|r| (0..64).map(move |c| (r, c))) {
                matrix.set(r, c, f64::NAN);
            }
        }
        right(&problem, &inputs, "keys behind");
        // Of the last queries, the keys ahead of the window.
        let problem = Heads {
            queries: 64,
            what: Attention {
                mask: window(10, 20, Align::BottomRight),
                ..problem.what
            },
            ..problem
        };
        let mut inputs = problem.random(1);
        for matrix in &mut inputs[1..] {
            for (r, c) in (0..440).flat_map(|r| (0..64).map(move |c| (r, c))) {
                matrix.set(r, c, f64::NAN);
            }
        }
        right(&problem, &inputs, "keys ahead");
    }
}

/// Of a block whose queries see no key nothing is read, also of keys and values that are NaN.
#[test]
fn rows_that_see_nothing_are_0() {
    for (mask, size) in [
        (window(-1, 0, Align::BottomRight), [260, 4]),
        (window(3, -1, Align::TopLeft), [260, 4]),
    ] {
        for problem in both(size, |what| what.mask = mask) {
            let what = format!("{problem:?}");
            let outcome = right(&problem, &problem.random(1), &what);
            let lse: Vec<f32> = outcome.get("lse").expect("lse");
            let sees = |i: &usize| !mask.keys_of(*i as u64, size).is_empty();
            let seeing = (0..260).filter(sees).count();
            assert!((1..10).contains(&seeing), "{seeing}");
            assert_eq!(lse.iter().filter(|l| l.is_finite()).count(), seeing);
            assert_eq!(rows(&outcome, |x| x == 0.0).len(), 260 - seeing);

            let mut inputs = problem.random(1);
            for matrix in &mut inputs[1..] {
                for (r, c) in (0..4).flat_map(|r| (0..64).map(move |c| (r, c))) {
                    matrix.set(r, c, f64::NAN);
                }
            }
            // One block at least has queries of which none sees a key.
            let (outcome, _) = ran(&problem, &inputs, &what);
            assert!(rows(&outcome, |x| x == 0.0).len() >= 64, "{what}");
        }
    }
}

#[test]
fn soft_caps_and_sinks_are_right() {
    let mask = window(30, 5, Align::BottomRight);
    for (softcap, sinks, lse) in [
        (Some(3.0), false, true),
        (None, true, true),
        (Some(20.0), true, false),
    ] {
        for size in [[70, 100], [5, 0], [90, 33]] {
            for mut problem in both(size, |what| {
                *what = Attention {
                    softcap,
                    sinks,
                    lse,
                    mask,
                    group: 3,
                    ..*what
                };
            }) {
                problem.batch = 2;
                let inputs = problem.random(2);
                let outcome = right(&problem, &inputs, &format!("{problem:?}"));
                assert_eq!(outcome.get::<f32>("lse").is_ok(), lse);
                // Without keys the sum is the weight of the sink.
                if lse && sinks && size[1] == 0 {
                    let lse: Vec<f32> = outcome.get("lse").expect("lse");
                    let sink = |i: usize| inputs[3].at(0, i / 5 % 3) as f32;
                    let close = |(i, l): (usize, &f32)| (l - sink(i)).abs() <= 1e-5;
                    assert!(lse.iter().enumerate().all(close), "{lse:?}");
                }
            }
        }
    }
}

#[test]
fn a_sink_of_minus_infinity_is_none_and_one_of_nan_is_nan() {
    for problem in both([40, 50], |what| what.sinks = true) {
        let mut inputs = problem.random(1);
        inputs[3].set(0, 0, f64::NEG_INFINITY);
        right(&problem, &inputs, "no sink");
        inputs[3].set(0, 0, f64::NAN);
        let (outcome, _) = ran(&problem, &inputs, "a sink that is NaN");
        assert_eq!(rows(&outcome, f32::is_nan).len(), 40);
    }
}

#[test]
fn a_nan_shows_with_a_soft_cap() {
    for problem in both([40, 50], |what| what.softcap = Some(10.0)) {
        let mut inputs = problem.random(1);
        inputs[0].set(7, 3, f64::NAN);
        let (outcome, _) = ran(&problem, &inputs, "a query that is NaN");
        assert_eq!(rows(&outcome, f32::is_nan), [7]);
    }
}

#[test]
fn sizes_of_heads_and_orders_of_modes_are_right() {
    let what = Attention {
        group: 2,
        lse: true,
        mask: window(-1, 0, Align::BottomRight),
        ..Attention::new(Element::Bf16, 64)
    };
    let (portable, on_hopper) = (&[64, 128][..], &[64, 96, 128, 192, 256][..]);
    for (which, sizes) in [portable, on_hopper].into_iter().enumerate() {
        for &head_dim in sizes {
            for value_dim in [head_dim, 128] {
                for order in [Order::BatchHeadSequence, Order::BatchSequenceHead] {
                    let what = Attention {
                        head_dim,
                        value_dim,
                        order,
                        sinks: order == Order::BatchSequenceHead,
                        ..what
                    };
                    let problem = Heads {
                        what,
                        design: [
                            Design::Portable(Tile::of(what)),
                            Design::Hopper(hopper::Tile::of(what)),
                        ][which],
                        batch: 2,
                        kv_heads: 2,
                        ..head(35, 90)
                    };
                    right(&problem, &problem.random(4), &format!("{problem:?}"));
                }
            }
        }
    }
}

/// Default tiles, with few options and with all of them.
#[test]
fn ptxas_spills_nothing() {
    let found = ptxas::for_tests().expect("ptxas is here or left out by TILEWRIGHT_NO_PTXAS=1");
    let Some(ptxas) = found else {
        return;
    };
    let all = |what| Attention {
        group: 8,
        softcap: Some(30.0),
        sinks: true,
        lse: true,
        mask: window(100, 20, Align::BottomRight),
        ..what
    };
    let (portable, on_hopper) = (
        [(64, 64), (64, 128), (128, 128)],
        [(96, 96), (192, 128), (256, 256)],
    );
    let sizes = portable.iter().map(|&of| (Arch(80), "sm_80", of));
    let of_hopper = portable.iter().chain(&on_hopper);
    for (arch, target, (head_dim, value_dim)) in
        sizes.chain(of_hopper.map(|&of| (Arch(90), "sm_90a", of)))
    {
        let plain = Attention {
            value_dim,
            ..Attention::new(Element::Bf16, head_dim)
        };
        let causal = Attention {
            mask: Mask::CAUSAL,
            ..plain
        };
        let strided = Attention {
            order: Order::BatchSequenceHead,
            ..all(plain)
        };
        for what in [causal, strided] {
            let problem = Heads {
                what,
                design: Design::Auto,
                ..head(1, 1)
            };
            let kernel = problem.kernel(arch).expect("proven");
            let assembly = ptxas.assemble(&kernel.ptx, target);
            let assembly = assembly.unwrap_or_else(|e| panic!("{what:?} {target}: {e}"));
            for resources in &assembly.kernels {
                assert!(!resources.spills(), "{what:?} {target}: {resources:?}");
            }
            let warnings = &assembly.warnings;
            assert!(warnings.is_empty(), "{what:?} {target}: {warnings:?}");
        }
    }
}
