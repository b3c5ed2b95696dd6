//! The subjects of `tilewright::kernels` and of the examples.

#![allow(clippy::duplicate_mod)] // Each example is a program of its own, with what they share.

#[path = "../../../examples/gemm_quantize.rs"]
#[allow(dead_code)]
mod gemm_quantize;
#[path = "../../../examples/gemm_swiglu.rs"]
#[allow(dead_code)]
mod gemm_swiglu;
#[path = "../../../examples/gemm_tile.rs"]
#[allow(dead_code)]
mod gemm_tile;
#[path = "../../../examples/hopper_gemm.rs"]
#[allow(dead_code)]
mod hopper_gemm;

use half::{bf16, f16};
use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::kernels::{
    CombinedRows, CrossEntropy, Design, FewRows, GatheredRows, GroupedProduct, Heads, NormBackward,
    Problem, Quantized, Repacked, Routing, RowOperation, Rows, ScaledProduct, Transposed, Varlen,
    WeightOnlyProduct,
};
use tilewright::host::{Arg, GemmKernel, Role, Runnable as _};
use tilewright::kernels::attention::{Align, Attention, Mask, Tile, hopper};
use tilewright::kernels::block_scaled::{self, BlockScaled, Scales};
use tilewright::kernels::experts::{Combine, Gather, Route};
use tilewright::kernels::gemm::{
    Activation, Bias, Config, Epilogue, Gemm, PlanError, Schedule, Specialized,
};
use tilewright::kernels::gemv::Gemv;
use tilewright::kernels::grouped::{self, Grouped, Kind};
use tilewright::kernels::norm::{Norm, RmsNorm};
use tilewright::kernels::quantize::{Quantize, Scales as Scales128, Source};
use tilewright::kernels::weight_only::repack::Order;
use tilewright::kernels::weight_only::{self, Weights};

use super::{Runs, Subject, outcome, seen};

/// A kernel of an example, with runs of it: the first two are its problems.
fn example(name: &str, text: &str, mut problems: Vec<Runs>) -> Subject {
    let others = problems.split_off(2);
    Subject {
        name: name.to_owned(),
        text: text.to_owned(),
        problems,
        others,
    }
}

/// A kernel on problems of several sizes, with random tensors.
fn shipped<P: Problem + Clone + 'static>(name: &str, first: &P, problems: Vec<P>) -> Subject {
    shipped_for(first.least_arch(), name, first, problems)
}

/// The same for an architecture.
fn shipped_for<P: Problem + Clone + 'static>(
    arch: Arch,
    name: &str,
    first: &P,
    problems: Vec<P>,
) -> Subject {
    let kernel = first.sequence(arch).expect("proven");
    let outputs = first
        .tensors()
        .into_iter()
        .filter(|t| t.role != Role::Input);
    let outputs: Vec<&str> = outputs.map(|t| t.name).collect();
    let runs = problems.into_iter().map(|problem| -> Runs {
        let (kernel, outputs) = (kernel.clone(), outputs.clone());
        let inputs = problem.random(7);
        Box::new(move |text, how| {
            let args = problem.args(&inputs);
            seen(outcome(&kernel, text, args, how)?, &outputs)
        })
    });
    example(name, kernel.ptx(), runs.collect())
}

pub(super) fn transposed() -> Subject {
    let of = |rows, cols| Transposed {
        element: Element::F32,
        rows,
        cols,
    };
    // The last row in every eighth of a tile, the last column in both halves.
    let eighths = (0..16).map(|i| of(8 * (i % 8) + 3 + i / 4, 32 * (i / 8) + 9 + i));
    let problems = [of(67, 65), of(130, 33)].into_iter().chain(eighths);
    shipped("transpose", &of(67, 65), problems.collect())
}

/// Numbers from -1 to 1 of which no two neighbours are alike.
fn random(n: usize) -> Vec<f32> {
    let word = |i: usize| (i as u32).wrapping_mul(0x9e37_79b1) >> 8;
    (0..n).map(|i| word(i) as f32 / 8_388_608.0 - 1.0).collect()
}

/// An operation on rows of f32, by the kernel for rows of 70.
fn on_rows(name: &str, operation: RowOperation) -> Subject {
    let of = |rows, cols| Rows::new(operation, Element::F32, rows, cols);
    // Every third length.
    let lengths = (1..70).step_by(3).map(|cols| of(1 + cols % 19, cols));
    let problems = [of(5, 70), of(9, 67)].into_iter().chain(lengths);
    shipped(name, &of(5, 70), problems.collect())
}

pub(super) fn normalised() -> Subject {
    on_rows("layer_norm", RowOperation::LayerNorm)
}

pub(super) fn normalised_by_root() -> Subject {
    on_rows("rms_norm", RowOperation::RmsNorm(RmsNorm::default()))
}

pub(super) fn normalised_and_quantised() -> Subject {
    let variant = RmsNorm {
        residual: true,
        quantized: Some(Element::S8),
        ..RmsNorm::default()
    };
    on_rows("rms_norm-fused", RowOperation::RmsNorm(variant))
}

/// Backward of a norm of rows of f32, by the kernels for rows of 70 and 17 blocks, so many that a thread of the last kernel adds two of them. Every second problem has ε = 0: then a row of zeros,
/// as those behind the last are, must not be normed.
fn backward(name: &str, norm: Norm) -> Subject {
    let of = |rows, cols| NormBackward {
        blocks: 17,
        eps: if cols % 2 == 0 { 1e-5 } else { 0.0 },
        ..NormBackward::new(norm, Element::F32, rows, cols)
    };
    // A block has up to three tiles of 8 rows.
    let lengths = (1..70).step_by(3).map(|cols| of(1 + 97 * cols % 401, cols));
    let problems = [of(290, 70), of(139, 67)].into_iter().chain(lengths);
    shipped(name, &of(290, 70), problems.collect())
}

pub(super) fn normalised_backward() -> Subject {
    backward("layer_norm_backward", Norm::Layer)
}

/// The kernels for rows that are not in registers, on shorter ones: of two tiles of a loop, and of one.
pub(super) fn normalised_backward_of_long_rows() -> Subject {
    let of = |rows, cols| NormBackward {
        blocks: 33,
        eps: if cols % 2 == 0 { 1e-5 } else { 0.0 },
        ..NormBackward::new(Norm::Layer, Element::F32, rows, cols)
    };
    // A block has up to three tiles of 16 rows.
    let lengths = (1..70).step_by(3).map(|cols| of(1 + 37 * cols % 141, cols));
    let problems = [of(100, 70), of(19, 4200)].into_iter().chain(lengths);
    shipped("layer_norm_backward-long", &of(1, 8200), problems.collect())
}

pub(super) fn normalised_by_root_backward() -> Subject {
    backward("rms_norm_backward", Norm::Rms)
}

/// A product of few rows with every part of the epilogue, stored in f32 so that every rounding shows.
pub(super) fn multiplied_by_few_rows() -> Subject {
    let of = |[m, n, k]: [u64; 3]| FewRows {
        scalars: [-1.5, 0.75],
        ..FewRows::new(
            Gemv {
                epilogue: Epilogue {
                    bias: Bias::Column,
                    activation: Activation::Gelu,
                },
                scaled: true,
                result: Element::F32,
                ..Gemv::new(Element::F16, 40)
            },
            [m, n, k],
        )
    };
    // Each number of rows, and k that vectors of 16, 8, 4 and 2 bytes divide.
    let sizes = (1..16).map(|i| [i, 3 + 7 * i % 40, [520, 300, 1026, 77][i as usize % 4]]);
    let problems = [[16, 37, 1000], [5, 50, 2100]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("gemv", &problems[0].clone(), problems)
}

/// A grouped product with small tiles and few blocks, so that groups end inside of tiles and each block has several of them.
fn grouped(name: &str, kind: Kind, element: Element, scales: Option<Scales>) -> Subject {
    let of = |[groups, m, n, k]: [u64; 4]| {
        let kernel = Grouped {
            tile: grouped::Tile {
                m: 64,
                n: 64,
                stages: 3,
            },
            blocks: 2,
            ..Grouped::new(element, scales, kind, [m, groups])
        };
        GroupedProduct::new(kernel, groups, [m, n, k])
    };
    // Rows of 16 bytes.
    let sizes = (0..10).map(|i| [1 + i % 7, 1 + 37 * i, 2 + 23 * i, 16 * (1 + 5 * i % 17)]);
    // So many groups that each step of a bisection matters.
    let many = [[400, if kind == Kind::Masked { 2 } else { 300 }, 8, 16]];
    let problems = [[3, 150, 130, 208], [5, 90, 66, 96]].into_iter();
    let problems: Vec<_> = problems.chain(many).chain(sizes).map(of).collect();
    shipped(name, &problems[0].clone(), problems)
}

pub(super) fn multiplied_by_groups() -> Subject {
    grouped("grouped", Kind::Offsets, Element::Bf16, None)
}

pub(super) fn multiplied_by_masked_groups() -> Subject {
    grouped(
        "grouped-masked",
        Kind::Masked,
        Element::E4m3,
        Some(Scales::Blocks),
    )
}

/// A product with scales of blocks, by few blocks of small tiles.
pub(super) fn multiplied_with_scales() -> Subject {
    let of = |[m, n, k]: [u64; 3]| {
        let kernel = BlockScaled {
            tile: block_scaled::Tile {
                m: 64,
                n: 64,
                stages: 3,
                multicast: false,
                tma_store: false,
            },
            grid: [2, 1],
            result: Element::F32,
            ..BlockScaled::new(Element::E4m3, Scales::Blocks, [m, n])
        };
        ScaledProduct::new(kernel, [m, n, k])
    };
    let sizes = (0..10).map(|i| [1 + 37 * i % 150, 2 + 23 * i, 16 * (1 + 11 * i % 40)]);
    let problems = [[150, 130, 400], [66, 200, 640]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("block_scaled", &problems[0].clone(), problems)
}

/// Matrices of few blocks, quantised, with scales farther apart than they are many.
fn quantised(name: &str, kernel: Quantize) -> Subject {
    let of = |[m, k]: [u64; 2]| {
        let packed = Quantized::new(kernel, [m, k]);
        Quantized {
            ld_scale: packed.ld_scale + m % 3,
            ..packed
        }
    };
    let sizes = (0..10).map(|i| [1 + 37 * i % 150, 2 + 29 * i]);
    let problems = [[150, 130], [66, 200]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped(name, &problems[0].clone(), problems)
}

pub(super) fn quantised_by_rows() -> Subject {
    let kernel = Quantize::new(Element::Bf16, Element::E4m3, Scales128::Rows128);
    let source = Source::Swiglu;
    quantised("quantize-swiglu", Quantize { source, ..kernel })
}

pub(super) fn quantised_in_order() -> Subject {
    let kernel = Quantize::new(Element::F16, Element::E4m3, Scales128::Rows128);
    let source = Source::Gathered;
    quantised("quantize-gathered", Quantize { source, ..kernel })
}

/// Few and many experts of tokens in several blocks of the tables.
pub(super) fn routed() -> Subject {
    let of = |[tokens, experts]: [u64; 2]| {
        let kernel = Route::new(Element::F32, experts, 3);
        Routing::new(kernel, tokens)
    };
    let sizes = (0..12).map(|i| [1 + 97 * i, 3 + 5 * i]);
    let problems = [[300, 60], [77, 40]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("route", &problems[0].clone(), problems)
}

pub(super) fn gathered() -> Subject {
    let of = |[tokens, rows, k]: [u64; 3]| GatheredRows {
        kernel: Gather {
            element: Element::F32,
        },
        tokens,
        rows,
        k,
    };
    let sizes = (0..12).map(|i| [1 + 3 * i, 1 + 7 * i, 2 + 53 * i]);
    let problems = [[5, 20, 600], [9, 13, 130]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("gather_rows", &problems[0].clone(), problems)
}

pub(super) fn combined() -> Subject {
    let of = |[tokens, rows, n]: [u64; 3]| CombinedRows {
        kernel: Combine {
            element: Element::F32,
            top: 3,
        },
        tokens,
        rows,
        n,
    };
    let sizes = (0..12).map(|i| [1 + 5 * i, 1 + 7 * i, 2 + 53 * i]);
    let problems = [[20, 60, 300], [13, 9, 130]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("combine_rows", &problems[0].clone(), problems)
}

pub(super) fn quantised_by_squares() -> Subject {
    let kernel = Quantize::new(Element::F32, Element::E5m2, Scales128::Squares);
    quantised("quantize-squares", kernel)
}

pub(super) fn normalised_and_quantised_by_blocks() -> Subject {
    let variant = RmsNorm {
        residual: false,
        quantized: Some(Element::E4m3),
        blocks: true,
    };
    let of = |rows, cols| Rows::new(RowOperation::RmsNorm(variant), Element::Bf16, rows, cols);
    let lengths = (1..12).map(|i| of(1 + i % 5, 61 * i));
    let problems = [of(3, 640), of(5, 390)].into_iter().chain(lengths);
    shipped("rms_norm-blocks", &of(3, 640), problems.collect())
}

/// A product with 4-bit weights of a design.
fn of_4_bits(
    name: &str,
    design: weight_only::Design,
    group: i64,
    k: impl Fn(u64) -> u64,
) -> Subject {
    let of = |[m, n, k]: [u64; 3]| WeightOnlyProduct {
        zero_points: true,
        design: Some(design),
        ..WeightOnlyProduct::new(Element::F16, Weights::Int4, group, [m, n, k])
    };
    let sizes = (0..10).map(|i| [1 + 7 * i % 33, 2 + 13 * i, k(i)]);
    let problems = [[17, 70, 600], [5, 33, 200]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped_for(Arch(90), name, &problems[0].clone(), problems)
}

/// By blocks of clusters that share k.
pub(super) fn multiplied_with_weights_of_4_bits() -> Subject {
    let tile = weight_only::Tile {
        m: 16,
        n: 32,
        k: 128,
        warps: [1, 2],
        stages: 2,
        cluster: 2,
    };
    of_4_bits("weight_only", weight_only::Design::MmaSync(tile), 32, |i| {
        1 + 97 * i % 700
    })
}

/// By weights in registers, and blocks of clusters that load their rows of a together.
pub(super) fn multiplied_with_weights_in_registers() -> Subject {
    let tile = weight_only::WgmmaTile {
        m: 32,
        n: 64,
        k: 128,
        stages: 2,
        cluster: 2,
    };
    of_4_bits(
        "weight_only-wgmma",
        weight_only::Design::Wgmma(tile),
        64,
        |i| 8 * (1 + 13 * i % 80),
    )
}

/// Weights of an AWQ checkpoint in the order of the product.
pub(super) fn repacked() -> Subject {
    let of = |[n, k]: [u64; 2]| Repacked {
        order: Order::Awq,
        n,
        k,
    };
    let sizes = (0..10).map(|i| [8 * (1 + 5 * i % 12), 1 + 83 * i % 500]);
    let problems = [[40, 300], [24, 65]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("weight_only_repack", &problems[0].clone(), problems)
}

pub(super) fn summed() -> Subject {
    on_rows("row_sums", RowOperation::RowSums)
}

pub(super) fn softened() -> Subject {
    on_rows("softmax", RowOperation::Softmax)
}

/// Softmax and cross entropy by a cluster of two blocks, of rows that both have a part of, or one of them alone.
fn by_clusters<P: Problem + Clone + 'static>(name: &str, of: impl Fn(u64, u64) -> P) -> Subject {
    let lengths = (0..8).map(|i| of(1 + i % 2, 10 + 2339 * i));
    let problems = [of(2, 16_500), of(3, 9001)].into_iter().chain(lengths);
    shipped_for(Arch(90), name, &of(2, 16_500), problems.collect())
}

pub(super) fn softened_by_clusters() -> Subject {
    by_clusters("softmax-cluster", |rows, cols| {
        Rows::new(RowOperation::Softmax, Element::Bf16, rows, cols)
    })
}

pub(super) fn entropy_by_clusters() -> Subject {
    by_clusters("cross_entropy-cluster", |rows, cols| CrossEntropy {
        element: Element::Bf16,
        rows,
        cols,
    })
}

/// Attention on Hopper with small tiles: two or three roles in turns, or one role of two warpgroups.
fn attend_on_hopper(name: &str, causal: bool, (warpgroups, ping_pong): (i64, bool)) -> Subject {
    let of = |[queries, keys]: [u64; 2]| Heads {
        what: Attention {
            mask: if causal { Mask::CAUSAL } else { Mask::ALL },
            lse: true,
            group: 2,
            ..Attention::new(Element::F16, 64)
        },
        design: Design::Hopper(hopper::Tile {
            warpgroups,
            keys: 32,
            stages: 2,
            ping_pong,
        }),
        batch: 1,
        kv_heads: 1 + queries % 2,
        queries,
        keys,
    };
    let sizes = [
        [67, 100],
        [130, 199],
        [1, 1],
        [129, 32],
        [16, 33],
        [191, 31],
        // Stages are filled so often that an arrival too few at each use makes up a whole use.
        [if causal { 640 } else { 100 }, 640],
    ];
    // More queries than keys, whose first and last step end in each eighth, behind an even and an odd number of them.
    let ends = (0..4)
        .flat_map(|i| [[200, 65], [190, 66], [200, 1], [190, 2]].map(|[m, n]| [m, n + 8 * i]));
    let problems = sizes.into_iter().chain(ends).map(of);
    shipped(name, &of(sizes[0]), problems.collect())
}

pub(super) fn attended_on_hopper() -> Subject {
    attend_on_hopper("attention-hopper", true, (2, true))
}

pub(super) fn attended_on_hopper_by_three() -> Subject {
    attend_on_hopper("attention-hopper-3", false, (3, true))
}

pub(super) fn attended_on_hopper_by_one() -> Subject {
    attend_on_hopper("attention-hopper-1", false, (2, false))
}

/// Attention over sequences of any lengths by one warpgroup and short steps, so that sequences end inside of tiles and have several.
pub(super) fn attended_by_sequences() -> Subject {
    let of = |[sequences, queries, keys]: [u64; 3]| Varlen {
        what: Attention {
            mask: Mask {
                align: Align::BottomRight,
                ..Mask::CAUSAL
            },
            lse: true,
            group: 2,
            ..Attention::new(Element::F16, 64)
        },
        tile: hopper::Tile {
            warpgroups: 1,
            keys: 32,
            stages: 2,
            ping_pong: false,
        },
        sequences,
        kv_heads: 1 + queries % 2,
        queries,
        keys,
    };
    let sizes = (0..5).map(|i| [1 + i, 1 + 61 * i % 200, 2 + 53 * i % 190]);
    let problems = [[3, 150, 160], [300, 130, 110]].into_iter().chain(sizes);
    let problems: Vec<_> = problems.map(of).collect();
    shipped("attention-varlen", &problems[0].clone(), problems)
}

fn attend(causal: bool) -> Subject {
    let of = |[queries, keys]: [u64; 2]| Heads {
        what: Attention {
            mask: if causal { Mask::CAUSAL } else { Mask::ALL },
            lse: true,
            ..Attention::new(Element::F16, 64)
        },
        design: Design::Portable(Tile {
            queries: 64,
            keys: 32,
            warps: 4,
            stages: 2,
        }),
        batch: 1,
        kv_heads: 1,
        queries,
        keys,
    };
    let sizes = [
        [67, 41],
        [66, 130],
        [1, 1],
        [64, 64],
        [130, 199],
        [129, 100],
        [200, 200],
        [16, 33],
        [33, 160],
        [70, 97],
        [191, 31],
        [48, 300],
        [65, 65],
        [257, 257],
        [100, 36],
        // More queries than keys, and the last keys in a tile of an even number: the bound of the keys is not that of the queries.
        [110, 71],
    ];
    let name = if causal { "attention" } else { "attention-all" };
    shipped(name, &of(sizes[0]), sizes.map(of).into())
}

pub(super) fn attended() -> Subject {
    attend(true)
}

pub(super) fn attended_by_all() -> Subject {
    attend(false)
}

pub(super) fn tiled() -> Subject {
    let kernel = gemm_tile::gemm(Arch(80)).expect("proven");
    let problem = |m: usize, n: usize, k: usize| -> Runs {
        let (a, b) = (gemm_tile::numbers(1, m * k), gemm_tile::numbers(2, k * n));
        let kernel = kernel.clone();
        Box::new(move |text, how| {
            let args = vec![
                ("m", Arg::from(m as u32)),
                ("n", Arg::from(n as u32)),
                ("k", Arg::from(k as u32)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<f16>(m * n)),
            ];
            seen(outcome(&kernel, text, args, how)?, &["c"])
        })
    };
    let sizes = (0..16).map(|i| {
        let tiles = 64 * usize::from(i % 5 == 4);
        problem(
            8 * (1 + i % 8) + tiles,
            8 * (1 + (3 * i + 1) % 8) + tiles,
            8 * (1 + 3 * i),
        )
    });
    let more = [problem(72, 72, 40), problem(64, 72, 168)];
    example(
        "gemm_tile",
        &kernel.ptx,
        more.into_iter().chain(sizes).collect(),
    )
}

/// A plan with an epilogue of an example, and its arguments beside C.
fn fused(
    name: &str,
    fuse: impl Fn(Config) -> Result<Specialized, PlanError>,
    output: Element,
    inputs: impl Fn([usize; 3]) -> Vec<(&'static str, Arg<'static>)> + Copy + 'static,
) -> Subject {
    let config = "mma-f16-64x64x32".parse().expect("a configuration");
    let plan = fuse(config).expect("it takes the epilogue");
    let operands = "nt".parse().expect("operands");
    let of = |[m, n, k]: [u64; 3]| Gemm {
        output: Some(output),
        ..Gemm::packed(m, n, k, operands)
    };
    let first = of([72, 80, 40]);
    let adapted = || {
        plan.specialize(&first, Schedule::default())
            .expect("it serves")
    };
    let kernel = adapted().emit(operands, Arch(80)).expect("the plan proves");
    let problem = |size: [u64; 3]| -> Runs {
        let (plan, kernel, problem) = (adapted(), kernel.clone(), of(size));
        Box::new(move |text, how| {
            let kernel = GemmKernel::emitted(&plan, &kernel, &problem);
            let kernel = kernel.map_err(|e| e.to_string())?;
            let [m, n, k] = size.map(|s| s as usize);
            let mut args = inputs([m, n, k]);
            args.push(match output {
                Element::S8 => ("C", Arg::output::<i8>(m * n)),
                _ => ("C", Arg::output::<f32>(m * n)),
            });
            seen(outcome(&kernel, text, args, how)?, &["C"])
        })
    };
    let sizes = (0..16).map(|i| {
        let tiles = 64 * u64::from(i % 5 == 4);
        let (m, n) = (5 * i + 3 + tiles, 8 * (1 + (3 * i + 1) % 8) + tiles);
        problem([m, n, 32 * ((i + 4) % 8) + 8 * (1 + i % 4)])
    });
    let first = [[72, 80, 40], [40, 72, 232]].map(problem);
    example(name, &kernel.ptx, first.into_iter().chain(sizes).collect())
}

/// f16 numbers from -1 to 1.
fn halves(n: usize, shift: usize) -> Vec<f16> {
    let all = random(n + shift);
    all[shift..].iter().map(|x| f16::from_f32(*x)).collect()
}

pub(super) fn quantized() -> Subject {
    let inputs = |[m, n, k]: [usize; 3]| {
        // Sums are of the order of the root of k: some are beyond what 8 bits hold.
        let unit = 250.0 / (k as f32).sqrt();
        let scale: Vec<f32> = random(m).iter().map(|x| unit * x).collect();
        vec![
            ("A", Arg::input(&halves(m * k, 0))),
            ("B", Arg::input(&halves(n * k, 5))),
            ("scale", Arg::input(&scale)),
        ]
    };
    fused(
        "gemm_quantize",
        gemm_quantize::quantized,
        Element::S8,
        inputs,
    )
}

pub(super) fn gated() -> Subject {
    let inputs = |[m, n, k]: [usize; 3]| {
        vec![
            ("A", Arg::input(&halves(m * k, 0))),
            ("B", Arg::input(&halves(n * k, 5))),
            ("B2", Arg::input(&halves(n * k, 9))),
        ]
    };
    // In f32, whose last bits C shows.
    fused("gemm_swiglu", gemm_swiglu::swiglu, Element::F32, inputs)
}

/// A schedule of `hopper_gemm`: the plain one stores elements, the others boxes. (The persistent one has 132 blocks, most without a tile; `wgmma-*-persistent` is its like.)
fn on_hopper(name: &str, schedule: hopper_gemm::Schedule) -> Subject {
    let whole = schedule != hopper_gemm::Schedule::Plain;
    let kernel = schedule.kernel(whole).expect("proven");
    let problem = |m: usize, n: usize, k: usize| -> Runs {
        let pitch = hopper_gemm::pitch(k as u64);
        let of = |count: usize, shift| -> Vec<bf16> {
            let all = halves(count, shift);
            all.into_iter()
                .map(|x| bf16::from_f32(x.to_f32()))
                .collect()
        };
        let (a, b) = (of(m * pitch as usize, 0), of(n * pitch as usize, 5));
        let kernel = kernel.clone();
        Box::new(move |text, how| {
            let size = |n: u64| Arg::from(n as u32);
            let args = vec![
                ("m", size(m as u64)),
                ("n", size(n as u64)),
                ("k", size(k as u64)),
                ("lda", size(pitch)),
                ("ldb", size(pitch)),
                ("a", Arg::input(&a)),
                ("b", Arg::input(&b)),
                ("c", Arg::output::<bf16>(m * n)),
            ];
            seen(outcome(&kernel, text, args, how)?, &["c"])
        })
    };
    let sizes = (0..4).map(|i| problem(64 * i + 57, 8 * (17 * i + 3), 72 * i + 1));
    let first = [problem(136, 264, 72), problem(264, 200, 328)];
    example(name, &kernel.ptx, first.into_iter().chain(sizes).collect())
}

pub(super) fn plain() -> Subject {
    on_hopper("hopper_gemm", hopper_gemm::Schedule::Plain)
}

pub(super) fn ping_pong() -> Subject {
    on_hopper("hopper_gemm-ping-pong", hopper_gemm::Schedule::PingPong)
}

pub(super) fn cluster() -> Subject {
    on_hopper("hopper_gemm-cluster", hopper_gemm::Schedule::Cluster)
}
