//! Plans whose blocks share operands by multicast, on the emulator with every check of the sanitizer on: what a problem may ask for, blocks that fill up a
//! cluster, and the bytes that are copied.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{GemmKernel, Inputs, On, check, run};
use tilewright::kernels::gemm::compile;
use tilewright::kernels::gemm::epilogue::Function;
use tilewright::kernels::gemm::{
    Activation, ArgumentValue, Batch, Bias, Config, Epilogue, Gemm, Operands, Schedule,
    Specialized, TileSchedule,
};

/// The plans with clusters.
fn clustered() -> impl Iterator<Item = Config> {
    Config::table().filter(|config| config.cluster_blocks() > 1)
}

fn named(name: &str) -> Config {
    name.parse().expect("a configuration")
}

/// Runs a problem: right, and clean.
fn holds(plan: impl Into<Specialized>, problem: &Gemm, schedule: Schedule) {
    let plan = plan.into();
    let what = format!("{plan} {problem:?} {schedule:?}");
    let kernel = GemmKernel::new(&plan, problem, schedule, Arch(90));
    let kernel = kernel.unwrap_or_else(|e| panic!("{what}: {e}"));
    let inputs = Inputs::random(problem, plan.data_type, 13);
    let args = kernel.args(&inputs).expect("they fit");
    let outcome = run(&kernel, On::Emulator, args);
    let outcome = outcome.unwrap_or_else(|e| panic!("{what}: {e}"));
    eprintln!("{what}");
    outcome.assert_clean();
    let c = kernel.result(&inputs, &outcome).expect("C");
    let found = check(problem, plan.data_type, &inputs, &c).expect("a check");
    assert!(found.passed, "{what}: {found:?}");
}

/// Rows and columns of tiles that are no whole clusters, with narrow rows, several groups of rows, and nothing to multiply.
#[test]
fn blocks_without_a_tile_take_part() {
    let [nn, nt, tn, tt] = Operands::ALL;
    let whole = Schedule::default();
    let problems = [
        Gemm::packed(1, 1, 1, nn),
        // Nine rows of tiles: a second group of rows with one cluster.
        Gemm::packed(8 * 128 + 5, 24, 72, nt),
        Gemm {
            alpha: -0.5,
            beta: 2.0,
            ldc: 141,
            ..Gemm::packed(129, 139, 333, tn)
        },
        Gemm::packed(257, 65, 520, tt),
        Gemm {
            beta: 1.5,
            ..Gemm::packed(130, 40, 0, nn)
        },
    ];
    for problem in &problems {
        holds(named("wgmma-f16-128x128x64+cluster2x1"), problem, whole);
    }
}

/// Factors, types of C, bias and activation, split sums, packed operands, batches.
#[test]
fn everything_that_a_problem_asks_for() {
    let [nn, nt, _, tt] = Operands::ALL;
    let whole = Schedule::default();
    let bf16 = named("wgmma-bf16-128x128x64+cluster2x1");
    let epilogue = |bias, activation| Epilogue { bias, activation };
    let bias = epilogue(Bias::Column, Activation::Gelu);
    let problem = Gemm {
        epilogue: bias,
        output: Some(Element::F32),
        ..Gemm::packed(140, 136, 264, nn)
    };
    holds(bf16, &problem, whole);
    let bias = epilogue(Bias::Row, Activation::Relu);
    let problem = Gemm {
        epilogue: bias,
        beta: -1.0,
        ..Gemm::packed(72, 200, 72, tt)
    };
    holds(bf16, &problem, whole);
    let split = Schedule { split: 3, ..whole };
    let problem = Gemm {
        alpha: 2.0,
        beta: 1.0,
        ..Gemm::packed(130, 72, 712, nt)
    };
    holds(bf16, &problem, split);
    let pack = Schedule {
        pack: true,
        ..whole
    };
    holds(bf16, &Gemm::packed(136, 72, 200, tt), pack);
    let batch = Batch {
        count: 3,
        strides: [136 * 72, 72 * 136, 136 * 136],
    };
    let problem = Gemm {
        batch,
        ..Gemm::packed(130, 128, 72, nn)
    };
    holds(bf16, &problem, whole);
}

/// A block has its portion of the shared operand alone: as many bytes as without a cluster less those that the others copy.
#[test]
fn a_shared_operand_is_copied_once() {
    let mut tried = 0;
    for plan in clustered().filter(|plan| !plan.scheduler.is_persistent()) {
        let alone = Config {
            cluster: [1, 1],
            ..plan
        };
        let [m, n, depth] = plan.tile.map(u64::from);
        let [rows, columns] = plan.cluster;
        let [rows, columns] = [rows, columns].map(u64::from);
        // Whole clusters, and at least two tiles along each side.
        let (down, across, steps) = (rows.max(2), columns.max(2), 3);
        for operands in Operands::ALL {
            let problem = Gemm::packed(down * m, across * n, steps * depth, operands);
            let [of_a, of_b] = copied(&plan.kernel(), &problem);
            let bytes = u64::from(plan.data_type.bytes());
            let all = |side: u64| side * depth * bytes * down * across * steps;
            assert_eq!(copied(&alone.kernel(), &problem), [all(m), all(n)]);
            assert_eq!([of_a, of_b], [all(m) / columns, all(n) / rows]);
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried}");
}

/// Bytes of A and of B that boxes bring out of global memory.
fn copied(plan: &Specialized, problem: &Gemm) -> [u64; 2] {
    let kernel = plan.emit(problem.operands, Arch(90)).expect("it proves");
    let launch = plan.launch(problem).expect("it serves").expect("not empty");
    let sizes = launch.arguments.iter().filter_map(|a| match a.value {
        ArgumentValue::TensorMap(_, map) => {
            let elements = map.box_sizes().into_iter().map(u64::from);
            Some(elements.product::<u64>() * u64::from(map.element.bytes()))
        }
        _ => None,
    });
    let sizes: Vec<u64> = sizes.collect();
    let inputs = Inputs::random(problem, plan.data_type, 3);
    let product = GemmKernel::emitted(plan, &kernel, problem).expect("it serves");
    let args = product.args(&inputs).expect("they fit");
    let outcome = run(&product, On::Emulator, args).expect("it runs");
    outcome.assert_clean();
    let report = outcome.report.expect("it was launched");
    // The map of A has its address in the first register that a parameter's address goes to.
    let lines: Vec<&str> = kernel.ptx.lines().collect();
    let map_of = |name: &str| {
        let line = lines
            .iter()
            .find(|l| l.ends_with(&format!(", {name};")) && l.contains("mov.b64"));
        let line = line.unwrap_or_else(|| panic!("no address of {name}"));
        let register = line.trim().trim_start_matches("mov.b64 ");
        format!("[{},", register.split(',').next().expect("a register"))
    };
    let maps = ["A", "B"].map(map_of);
    let mut bytes = [0; 2];
    for counted in &report.counters.instructions {
        if !counted.opcode.starts_with("cp.async.bulk.tensor") {
            continue;
        }
        let line = lines[counted.line as usize - 1];
        let of = maps.iter().position(|map| line.contains(map));
        let of = of.unwrap_or_else(|| panic!("whose copy is {line}"));
        bytes[of] += counted.lanes * sizes[of];
    }
    bytes
}

/// Blocks that take tile after tile are whole clusters, and so is what is launched.
#[test]
fn launches_are_whole_clusters() {
    let nn = Operands::ALL[0];
    for plan in clustered() {
        for (m, n) in [(1, 1), (130, 70), (1000, 1000), (40, 5000), (5000, 40)] {
            let problem = Gemm::packed(m, n, 64, nn);
            let adapted = plan
                .specialize(&problem, Schedule::default())
                .expect("it serves");
            let launch = adapted
                .launch(&problem)
                .expect("it serves")
                .expect("not empty");
            let [rows, columns] = plan.cluster;
            assert_eq!(launch.cluster, [rows, columns, 1]);
            let whole = |axis: usize| launch.grid[axis].is_multiple_of(launch.cluster[axis]);
            assert!((0..3).all(whole), "{plan}: {:?}", launch.grid);
            // What comes before and after has none.
            let beside = launch.before.iter().chain(&launch.after);
            assert!(beside.into_iter().all(|l| l.cluster == [1; 3]));
        }
        let kernel = plan.kernel().emit(nn, Arch(90)).expect("it proves");
        let [rows, columns] = plan.cluster;
        // One that is compiled in computes the same grid.
        if plan.transposed(nn) == [false; 2] {
            let parts = compile(&plan.kernel(), nn, Arch(90)).expect("its grid follows a rule");
            assert_eq!(parts.cluster, [rows, columns, 1]);
        }
        let declared = format!(".reqnctapercluster {rows}, {columns}, 1\n");
        assert_eq!(kernel.ptx.matches(&declared).count(), 1, "{plan}");
    }
}

/// Two products of one A, whose B and B2 are both shared.
#[test]
fn a_dual_product_shares_both() {
    let bilinear = || {
        Function::new("bilinear", |k, c| {
            for (j, (s, t)) in c
                .values::<f32>(k)?
                .into_iter()
                .zip(c.second(k)?)
                .enumerate()
            {
                let product = s.mul(k, t);
                c.set(k, j, product)?;
            }
            Ok(())
        })
    };
    let plan = named("wgmma-f16-128x256x64+cluster2x1").with_dual_epilogue(bilinear());
    let plan = plan.expect("it is wide enough");
    for operands in Operands::ALL {
        let kernel = plan.emit(operands, Arch(90)).expect("it proves");
        let shared = kernel.ptx.matches(".multicast::cluster").count();
        // One box of B and one of B2, each a half.
        assert_eq!(shared, 2, "{operands}");
    }
}

/// What clusters cannot be is said.
#[test]
fn what_cannot_be_is_refused() {
    let plan = named("wgmma-f16-128x256x64+persistent+cluster2x1");
    let nn = Operands::ALL[0];
    let error = |plan: Config| {
        plan.kernel()
            .emit(nn, Arch(90))
            .expect_err("refused")
            .to_string()
    };
    let square = error(Config {
        cluster: [2, 2],
        ..plan
    });
    assert!(
        square.contains("a cluster of 2x2 blocks") && square.contains("take 2x1 or 1x2"),
        "{square}"
    );
    let odd = plan.kernel().with_tiles(TileSchedule::Rectangle([1, 128]));
    let odd = odd.expect_err("refused").to_string();
    assert!(odd.contains("1x128 blocks of a persistent kernel"), "{odd}");
    // A panel of 144 rows is not four times as many by eights.
    let narrow = Config {
        cluster: [4, 1],
        tile: [128, 144, 64],
        ..named("wgmma-f16-128x256x64+cluster2x1")
    };
    let nt = "nt".parse().expect("transposes");
    let rows = narrow
        .kernel()
        .emit(nt, Arch(90))
        .expect_err("refused")
        .to_string();
    assert!(rows.contains("1 boxes of 144 rows"), "{rows}");
    // Three panels are divided by rows.
    let three = Config {
        cluster: [2, 1],
        tile: [128, 192, 64],
        ..narrow
    };
    let three = three.kernel().emit(nn, Arch(90)).expect("it proves").ptx;
    assert_eq!(three.matches(".multicast::cluster").count(), 3);
    let batch = Gemm {
        batch: Batch {
            count: 2,
            strides: [4096; 3],
        },
        ..Gemm::packed(64, 64, 64, nn)
    };
    let batch = plan
        .specialize(&batch, Schedule::default())
        .map(|p| p.name());
    let batch = batch.expect_err("refused").to_string();
    assert!(batch.ends_with("take wgmma-f16-128x256x64"), "{batch}");
}
