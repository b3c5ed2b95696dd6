//! The plans of warpgroups on the emulator, with every check of the sanitizer on: numbers, gaps, findings, wavefronts.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{GemmKernel, Inputs, On, Outcome, check, run};
use tilewright::kernels::gemm::mma_sync::WAYS_TO_STORE;
use tilewright::kernels::gemm::{
    Activation, Batch, Bias, Config, DataType, Epilogue, Gemm, Operands, Order, Schedule,
    Scheduler, Specialized, TileSchedule,
};

/// Runs a problem: right, clean, and as proven.
fn holds(plan: &Specialized, problem: &Gemm, schedule: Schedule) {
    let what = format!("{} {problem:?} {schedule:?}", plan.name());
    let kernel = GemmKernel::new(plan, problem, schedule, Arch(90));
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    right(&what, &kernel, problem, plan.data_type);
}

/// A kernel may have two ways to store C, and a problem takes one of them. What it executes is as proven, and what it leaves out is a whole way.
fn counted_as_proven(outcome: &Outcome) {
    outcome.assert_counted_as_proven();
    let left: Vec<&str> = outcome.not_taken.iter().map(String::as_str).collect();
    assert!(
        left.is_empty() || WAYS_TO_STORE.contains(&&left[..]),
        "{left:?}"
    );
    for access in &outcome.accesses {
        let executed = access.wavefronts.is_some();
        assert_eq!(
            executed,
            !left.contains(&&*access.proof.access),
            "{access:?}"
        );
    }
}

fn right(what: &str, kernel: &GemmKernel<'_>, problem: &Gemm, data_type: DataType) {
    let inputs = Inputs::random(problem, data_type, 7);
    let args = kernel.args(&inputs).expect("they fit");
    let outcome = run(kernel, On::Emulator, args);
    let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
    eprintln!("{what}");
    outcome.assert_clean();
    // Without products nothing is packed, transposed or read.
    if problem.k > 0 && problem.alpha != 0.0 {
        counted_as_proven(&outcome);
    }
    let c = kernel.result(&inputs, &outcome).expect("C");
    let found = check(problem, data_type, &inputs, &c).expect("a check");
    assert!(found.passed, "{what}: {found:?}");
}

#[test]
fn ragged_sizes_of_all_transposes() {
    let sizes = [
        [128, 256, 64],
        [1, 1, 1],
        [136, 264, 200],
        [200, 72, 330],
        [8, 520, 8],
        [64, 64, 0],
    ];
    let mut sizes = sizes.iter().cycle();
    let one_tile = |c: &Config| c.is_wgmma() && !c.scheduler.is_persistent();
    for config in Config::table().filter(one_tile) {
        let plan = &config.kernel();
        for operands in Operands::ALL {
            let &[m, n, k] = sizes.next().expect("endless");
            holds(plan, &Gemm::packed(m, n, k, operands), Schedule::default());
        }
        // 4 transposes and 6 sizes: another pairing with the next plan.
        sizes.next();
    }
}

/// Numbers of stages that are no powers of two: rings that go round several times, and end anywhere.
#[test]
fn any_number_of_stages() {
    let named = [
        ("wgmma-f16-128x128x64+stages5", [136, 136, 1000]),
        ("wgmma-bf16-64x128x64+stages7", [72, 130, 970]),
        (
            "wgmma-tf32-128x256x32+persistent+cluster2x1+stages3",
            [256, 264, 200],
        ),
        ("wgmma-tf32-192x128x32+swapab+stages5", [192, 132, 404]),
        ("wgmma-s8-64x128x256+stages3", [64, 128, 1040]),
        ("wgmma-e4m3-128x128x128+promoted+stages5", [130, 128, 2000]),
    ];
    for (i, (name, [m, n, k])) in named.into_iter().enumerate() {
        let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
        let problem = Gemm::packed(m, n, k, Operands::ALL[i % 4]);
        holds(&plan, &problem, Schedule::default());
    }
}

/// Blocks that take tile after tile: along rows, along columns, both, with tiles that are not in C, with and without products.
#[test]
fn blocks_take_tile_after_tile() {
    let blocks = [(1, 1), (2, 1), (1, 2), (1, 4)];
    let sizes = [
        [272, 528, 208],
        [144, 272, 336],
        [400, 256, 64],
        [144, 1040, 0],
    ];
    let mut cases = blocks.into_iter().zip(sizes).cycle();
    for plan in Config::table().filter(|c| c.scheduler.is_persistent()) {
        let [nn, nt, tn, tt] = Operands::ALL;
        // One as the plan takes it, one that is transposed first.
        let both = if plan.swap_ab { [nn, tt] } else { [nt, tn] };
        for operands in both {
            let ((rows, columns), [m, n, k]) = cases.next().expect("endless");
            let packed = Gemm::packed(m, n, k, operands);
            let problem = Gemm {
                alpha: 2.0,
                beta: 1.0,
                // Rows of no element, too, begin at multiples of 16 bytes.
                lda: packed.lda.max(16),
                ldb: packed.ldb.max(16),
                ..packed
            };
            persistent(plan, &problem, (rows, columns));
        }
    }
}

/// Runs a problem with so many clusters of blocks one below the other and side by side.
fn persistent(config: Config, problem: &Gemm, (rows, columns): (u32, u32)) {
    let [down, across] = config.cluster;
    let [tm, tn, _] = config.tile.map(u64::from);
    let tiles = [problem.m.div_ceil(tm), problem.n.div_ceil(tn)].map(|n| n as u32);
    let tiles = if config.scheduler == Scheduler::Persistent(Order::Linear) {
        let blocks = rows * columns;
        TileSchedule::Linear { blocks, tiles }
    } else {
        TileSchedule::Rectangle([rows * down, columns * across])
    };
    let what = format!("{config} {problem:?} {rows}x{columns}");
    let plan = specialized_with(config, problem, tiles);
    let kernel = plan.emit(problem.operands, Arch(90)).expect("it proves");
    let kernel = GemmKernel::emitted(&plan, &kernel, problem).expect("it serves");
    right(&what, &kernel, problem, plan.data_type);
}

/// A persistent kernel with so many blocks, for a problem whose operands are aligned.
fn specialized_with(config: Config, problem: &Gemm, tiles: TileSchedule) -> Specialized {
    let whole = Schedule::default();
    let for_problem = config.specialize(problem, whole).expect("it serves");
    for_problem.with_tiles(tiles).expect("whole clusters")
}

fn listed(name: &str) -> Config {
    name.parse().expect("a configuration")
}

/// Linear tile schedules: of fewer and more blocks than tiles, in groups of rows that the tiles do not fill, with and without a ping-pong schedule.
#[test]
fn linear_schedules() {
    let [nn, nt, tn, _] = Operands::ALL;
    let bf16 = Config {
        scheduler: Scheduler::Persistent(Order::Linear),
        ..listed("wgmma-bf16-256x128x64+pingpong")
    };
    let plain = Config {
        scheduler: Scheduler::Persistent(Order::Linear),
        ..listed("wgmma-f16-128x96x64+persistent")
    };
    let sizes = [
        (bf16, [520, 440, 72], nn, 5),
        (bf16, [264, 1160, 136], nt, 2),
        (bf16, [776, 136, 200], tn, 4),
        (plain, [1300, 200, 72], nt, 7),
        (plain, [136, 1000, 136], tn, 3),
    ];
    for (plan, [m, n, k], operands, blocks) in sizes {
        let problem = Gemm {
            alpha: 2.0,
            beta: 1.0,
            ..Gemm::packed(m, n, k, operands)
        };
        persistent(plan, &problem, (blocks, 1));
    }
    // As it is launched.
    holds(
        &bf16.kernel(),
        &Gemm::packed(300, 300, 200, nn),
        Schedule::default(),
    );
    // An empty C has a kernel, too; as many tiles as can be are counted, and no more.
    let kernel = |m, n| {
        let problem = Gemm::packed(m, n, 64, nt);
        GemmKernel::new(bf16, &problem, Schedule::default(), Arch(90))
    };
    for (m, n) in [(0, 100), (100, 0)] {
        assert!(kernel(m, n).is_ok(), "{m}x{n}");
    }
    let (down, across) = (512, 1024);
    assert!(kernel(256 * down, 128 * across).is_ok());
    let Err(error) = kernel(256 * (down + 1), 128 * across) else {
        panic!("more tiles than are counted");
    };
    assert!(error.to_string().contains("513x1024"), "{error}");
    // A kernel is for as many tiles as it was made for.
    let tiles = TileSchedule::Linear {
        blocks: 2,
        tiles: [1, 2],
    };
    let few = bf16.kernel().with_tiles(tiles).expect("a linear scheduler");
    let error = few
        .launch(&Gemm::packed(257, 144, 64, nn))
        .expect_err("a refusal");
    assert!(error.to_string().contains("257"), "{error}");
    let clustered = Config {
        cluster: [2, 1],
        ..bf16
    };
    let error = clustered
        .kernel()
        .emit(nn, Arch(90))
        .expect_err("a refusal");
    assert!(error.to_string().contains("clusters"), "{error}");
}

/// Ping-pong schedules: rows for the first of them alone, other numbers of stages, other tiles, clusters, no products, a bias.
#[test]
fn ping_pong_schedules() {
    let [nn, nt, tn, _] = Operands::ALL;
    let f16 = listed("wgmma-f16-256x128x64+pingpong");
    let s8 = listed("wgmma-s8-256x128x128+pingpong");
    let stages = Config { stages: 5, ..f16 };
    let cases = [
        (stages, Gemm::packed(100, 136, 712, nn)),
        (s8, Gemm::packed(520, 272, 1040, nt)),
        (
            Config {
                tile: [256, 144, 64],
                ..stages
            },
            Gemm::packed(264, 328, 136, tn),
        ),
        (
            Config {
                cluster: [2, 1],
                ..f16
            },
            Gemm::packed(776, 264, 200, nt),
        ),
        (
            Config {
                cluster: [1, 2],
                ..s8
            },
            Gemm::packed(300, 520, 400, nt),
        ),
        (f16, Gemm::packed(272, 256, 0, tn)),
    ];
    for (plan, problem) in &cases {
        persistent(*plan, problem, (1, 1));
    }
    let nothing = Gemm {
        alpha: 0.0,
        beta: 0.5,
        ..Gemm::packed(264, 136, 72, nt)
    };
    persistent(f16, &nothing, (1, 1));
    let problem = Gemm {
        alpha: 0.5,
        beta: 2.0,
        epilogue: Epilogue {
            bias: Bias::Row,
            activation: Activation::Relu,
        },
        ..Gemm::packed(392, 264, 200, nt)
    };
    holds(&f16.kernel(), &problem, Schedule::default());
    // What is no such plan.
    let others = [
        Config {
            scheduler: Scheduler::Grid,
            ..f16
        },
        Config {
            tile: [512, 128, 64],
            stages: 2,
            ..f16
        },
    ];
    for config in others {
        let refused = config.kernel().emit(nt, Arch(90)).expect_err("refused");
        assert_eq!(refused.code(), "unsupported", "{refused}");
        assert!(
            refused.to_string().contains("ping-pong schedule"),
            "{refused}"
        );
    }
}

/// A product of 8-bit floats keeps about 14 bits of its sum. Sums of stages, added in f32, lose less; the more products, the more it shows.
#[test]
fn promoted_sums_are_nearer() {
    let problem = Gemm::packed(64, 64, 8192, Operands::ALL[1]);
    for data_type in [DataType::E4m3, DataType::E5m2] {
        let inputs = Inputs::random(&problem, data_type, 11);
        let error = |suffix: &str| {
            let plan = format!("wgmma-{data_type}-128x128x128{suffix}")
                .parse::<Config>()
                .map(Config::kernel);
            let plan = plan.expect("listed");
            let kernel = GemmKernel::new(&plan, &problem, Schedule::default(), Arch(90));
            let kernel = kernel.expect("it serves");
            let args = kernel.args(&inputs).expect("they fit");
            let outcome = run(&kernel, On::Emulator, args).expect("a run");
            outcome.assert_clean();
            let c = kernel.result(&inputs, &outcome).expect("C");
            let found = check(&problem, data_type, &inputs, &c).expect("a check");
            assert!(found.passed, "{found:?}");
            found.max_abs_err
        };
        let (plain, promoted) = (error(""), error("+promoted"));
        eprintln!("{data_type}: {plain:.3e}, promoted {promoted:.3e}");
        assert!(
            4.0 * promoted < plain,
            "{data_type}: {plain:e}, {promoted:e}"
        );
    }
}

/// What BLAS promises and what a problem may ask for: factors, types of C, bias and activation, batches, split sums, packed operands.
#[test]
fn everything_that_a_problem_asks_for() {
    let plan = |name: &str| name.parse::<Config>().map(Config::kernel).expect("listed");
    let (f16, bf16) = (plan("wgmma-f16-128x256x64"), plan("wgmma-bf16-128x128x64"));
    let [nn, nt, tn, tt] = Operands::ALL;
    let whole = Schedule::default();
    let split = |split| Schedule { split, ..whole };
    let packed = |m, n, k, operands| Gemm::packed(m, n, k, operands);
    holds(
        &f16,
        &Gemm {
            alpha: 0.5,
            beta: -2.0,
            ..packed(100, 264, 130, nn)
        },
        whole,
    );
    // Nothing is read.
    holds(
        &f16,
        &Gemm {
            alpha: 0.0,
            beta: 1.5,
            ..packed(100, 264, 130, nt)
        },
        whole,
    );
    let output = Some(Element::F32);
    holds(
        &bf16,
        &Gemm {
            output,
            beta: 1.0,
            ..packed(130, 136, 64, tn)
        },
        whole,
    );
    let epilogue = Epilogue {
        bias: Bias::Column,
        activation: Activation::Gelu,
    };
    holds(
        &bf16,
        &Gemm {
            epilogue,
            ..packed(65, 129, 100, tt)
        },
        whole,
    );
    // Parts of the sums, the last of them shorter.
    holds(&f16, &packed(60, 300, 700, nn), split(3));
    holds(
        &bf16,
        &Gemm {
            alpha: 2.0,
            beta: 1.0,
            ..packed(129, 40, 1000, tt)
        },
        split(4),
    );
    // Rows of 16 bytes that begin no lines, copied to rows that do.
    let pack = Schedule {
        pack: true,
        ..whole
    };
    for operands in Operands::ALL {
        holds(&f16, &packed(136, 264, 200, operands), pack);
    }
    for operands in Operands::ALL {
        let batch = Batch {
            count: 3,
            strides: [128 * 72, 72 * 256, 128 * 256],
        };
        holds(
            &f16,
            &Gemm {
                batch,
                ..packed(120, 248, 72, operands)
            },
            whole,
        );
    }
}

/// The exchanged product, of which lanes store what they hold: whatever C is, and however it is aligned.
#[test]
fn exchanged_products_of_any_c() {
    let [nn, nt, tn, _] = Operands::ALL;
    // B through registers; by descriptors with every swizzle of A.
    exchanged("wgmma-tf32-256x128x32+swapab", nn);
    exchanged("wgmma-bf16-16x64x128+swapab", nn);
    exchanged("wgmma-f16-32x64x128+swapab+stages3", tn);
    exchanged("wgmma-f16-16x64x128+swapab", tn);
    exchanged("wgmma-bf16-32x64x128+swapab", nt);
}

fn exchanged(plan: &str, operands: Operands) {
    let plan = plan.parse::<Config>().map(Config::kernel).expect("listed");
    let whole = Schedule::default();
    let packed = |m, n, k| Gemm::packed(m, n, k, operands);
    let epilogue = |bias, activation| Epilogue { bias, activation };
    let (alpha, beta) = (-1.5, 0.5);
    let problems = [
        // Both straight lines: C is not read, and C is read; the second tile down and the third across are parts.
        packed(264, 264, 136),
        Gemm {
            alpha,
            beta,
            ..packed(264, 136, 136)
        },
        // Columns that are no pairs, and rows that begin anywhere.
        Gemm {
            beta,
            ldc: 131,
            ..packed(37, 129, 68)
        },
        Gemm {
            ldc: 134,
            ..packed(70, 130, 36)
        },
        // C of 16 bits.
        Gemm {
            output: Some(Element::F16),
            beta,
            ..packed(72, 136, 40)
        },
        Gemm {
            output: Some(Element::Bf16),
            ..packed(40, 264, 40)
        },
        // An element for each row, an element for each column, and a function.
        Gemm {
            epilogue: epilogue(Bias::Row, Activation::Relu),
            ..packed(65, 132, 33)
        },
        Gemm {
            epilogue: epilogue(Bias::Column, Activation::Gelu),
            beta,
            ..packed(66, 131, 34)
        },
        // Nothing is multiplied.
        Gemm {
            alpha: 0.0,
            beta,
            ..packed(40, 72, 64)
        },
        // Rows of B that begin where no box does, which are copied first.
        Gemm {
            ldb: 137,
            lda: 77,
            ..packed(36, 135, 75)
        },
    ];
    for problem in &problems {
        holds(&plan, problem, whole);
    }
    let split = Schedule { split: 3, ..whole };
    let parts = Gemm {
        alpha,
        beta,
        ..packed(70, 133, 500)
    };
    holds(&plan, &parts, split);
    let batch = Batch {
        count: 3,
        strides: [48 * 72, 72 * 136, 48 * 136],
    };
    holds(
        &plan,
        &Gemm {
            batch,
            ..packed(40, 136, 72)
        },
        whole,
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let plan = "wgmma-f16-128x256x64"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("listed");
    let nn = Operands::ALL[0];
    let error = |problem: &Gemm, arch| {
        let kernel = GemmKernel::new(&plan, problem, Schedule::default(), arch);
        kernel.expect_err("a refusal").to_string()
    };
    let newer = error(&Gemm::packed(64, 64, 64, nn), Arch(100));
    assert!(newer.contains("only sm_90 has"), "{newer}");
    let older = error(&Gemm::packed(64, 64, 64, nn), Arch(80));
    assert!(older.contains("needs sm_90"), "{older}");
    let batch = Batch {
        count: 2,
        strides: [64 * 64, 0, 64 * 64],
    };
    let same = error(
        &Gemm {
            batch,
            ..Gemm::packed(64, 64, 64, nn)
        },
        Arch(90),
    );
    assert!(same.contains("the same operand"), "{same}");
    let turns = "wgmma-f16-128x256x64+persistent"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("listed");
    let long = Gemm::packed((1 << 24) + 8, 8, 8, nn);
    let long = GemmKernel::new(&turns, &long, Schedule::default(), Arch(90));
    let long = long.expect_err("a refusal").to_string();
    assert!(
        long.contains("m = 16777224") && long.contains("2^24; take wgmma-f16-128x256x64"),
        "{long}"
    );
    let batch = Batch {
        count: 2,
        strides: [63 * 63; 3],
    };
    // What must be transposed has no batch.
    let swapped = "wgmma-tf32-256x128x32+swapab"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("listed");
    let apart = Batch {
        count: 2,
        strides: [64 * 64; 3],
    };
    let nt = Gemm {
        batch: apart,
        ..Gemm::packed(64, 64, 64, Operands::ALL[1])
    };
    let nt = GemmKernel::new(&swapped, &nt, Schedule::default(), Arch(90));
    let nt = nt.expect_err("a refusal").to_string();
    assert!(nt.contains("k contiguous in A and n in B (nn)"), "{nt}");
    let narrow = error(
        &Gemm {
            batch,
            ..Gemm::packed(63, 63, 63, nn)
        },
        Arch(90),
    );
    assert!(narrow.contains("not aligned to 16 bytes"), "{narrow}");
}
