//! Attention on Hopper.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{Design, Heads, Problem};
use tilewright::kernels::attention::hopper::{ARCH, Tile, attention};
use tilewright::kernels::attention::{Attention, ELEMENTS, Mask};

use super::{causal_or_not, head, of_size};
use crate::{ran, right};

/// Two heads that share their keys, of a tile.
fn heads(queries: u64, keys: u64, what: Attention, tile: Tile) -> Heads {
    Heads {
        what: Attention { group: 2, ..what },
        design: Design::Hopper(tile),
        ..head(queries, keys)
    }
}

#[test]
fn ragged_sizes_are_right() {
    let sizes = [(1, 1), (1, 200), (193, 1), (127, 385), (130, 0), (200, 257)];
    for (seed, (queries, keys)) in (1..).zip(sizes) {
        for (head_dim, element) in [(64, 0), (128, 1), (256, 0)] {
            let element = ELEMENTS[element];
            for mask in [Mask::ALL, Mask::CAUSAL] {
                let what = Attention {
                    mask,
                    lse: true,
                    ..Attention::new(element, head_dim)
                };
                let problem = heads(queries, keys, what, Tile::of(what));
                right(&problem, &problem.random(seed), &format!("{problem:?}"));
            }
        }
    }
}

#[test]
fn every_tile_is_right() {
    for (head_dim, warpgroups, keys, stages, ping_pong) in [
        (64, 1, 16, 1, false),
        (64, 2, 48, 3, true),
        (64, 3, 64, 1, true),
        (128, 3, 64, 1, false),
        (128, 2, 80, 2, true),
        (256, 1, 32, 2, false),
    ] {
        for mut problem in causal_or_not(head(140, 300)) {
            problem.what = of_size(problem.what, Element::F16, head_dim);
            problem.design = Design::Hopper(Tile {
                warpgroups,
                keys,
                stages,
                ping_pong,
            });
            right(&problem, &problem.random(5), &format!("{problem:?}"));
        }
    }
}

#[test]
fn batches_and_large_scores_are_right() {
    let mut problem = Heads {
        design: Design::Auto,
        batch: 2,
        kv_heads: 2,
        ..head(100, 150)
    };
    problem.what.element = Element::Bf16;
    problem.what.mask = Mask::CAUSAL;
    problem.what.group = 2;
    let kernel = problem.kernel(ARCH).expect("proven");
    assert!(kernel.ptx.contains("wgmma"));
    problem.design = Design::Hopper(Tile::of(problem.what));
    let mut inputs = problem.random(1);
    right(&problem, &inputs, "batches");
    for matrix in &mut inputs[..2] {
        for (r, c) in (0..matrix.rows).flat_map(|r| (0..64).map(move |c| (r, c))) {
            matrix.set(r, c, 30.0 * matrix.at(r, c));
        }
    }
    let (_, compared) = ran(&problem, &inputs, "large scores");
    assert!(compared.of_allowed <= 4.0, "{compared:?}"); // as of the portable kernel
}

#[test]
fn configurations_out_of_range_are_refused() {
    let what = head(1, 1).what;
    let with = |change: fn(&mut Attention, &mut Tile)| {
        let (mut what, mut tile) = (what, Tile::of(what));
        change(&mut what, &mut tile);
        attention(what, tile, ARCH)
            .expect_err("refused")
            .to_string()
    };
    for (message, part) in [
        (with(|w, _| w.element = Element::F32), "take f16 or bf16"),
        (
            with(|w, _| w.head_dim = 80),
            "80 is not 64, 96, 128, 192 or 256",
        ),
        (with(|_, t| t.warpgroups = 4), "4 is not 1 to 3"),
        (
            with(|_, t| t.warpgroups = 1),
            "at least 2 in a ping-pong schedule",
        ),
        (with(|_, t| t.keys = 24), "24 is not a multiple of 16"),
        (with(|_, t| t.stages = 0), "0 is not 1 to 8"),
        (with(|_, t| t.stages = 8), "shared memory"),
    ] {
        assert!(message.contains(part), "{message}");
    }
    let error = attention(what, Tile::of(what), Arch(80)).expect_err("refused");
    assert!(error.to_string().contains("sm_90a"), "{error}");
}
