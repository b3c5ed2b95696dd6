//! `kernel!`: a compiled kernel launches as its plan does.

use tilewright::codegen::Arch;
use tilewright::codegen::ir::ParamKind;
use tilewright::codegen::tensor_map::MapArgument;
use tilewright::kernel;
use tilewright::kernels::gemm::{
    ArgumentValue, CompiledKernel, Config, Gemm, Operands, Order, Schedule, Scheduler, compile,
};

const SGEMM: CompiledKernel = kernel!(plan = "sgemm-maxas-128", trans = nt, arch = sm_80);

#[test]
fn a_compiled_kernel_is_its_plan() {
    let operands: Operands = "nt".parse().expect("operands");
    let plan = SGEMM
        .plan
        .parse::<Config>()
        .map(Config::kernel)
        .expect("the plan");
    let emitted = plan.emit(operands, Arch(80)).expect("emitted");
    assert_eq!(SGEMM.ptx, emitted.ptx);
    assert_eq!(SGEMM.entry, emitted.kernel);
    // The grid, at sizes that nobody chose.
    let mut state = 1u64;
    for _ in 0..2000 {
        let mut size = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            1 + (state >> 33) % (1 << (1 + (state >> 20) % 31))
        };
        let (m, n) = (size(), size());
        let own = match plan.launch(&Gemm::packed(m, n, 7, operands)) {
            Ok(launch) => launch.map(|l| l.grid),
            Err(_) => None,
        };
        assert_eq!(SGEMM.grid(m, n), own, "m={m} n={n}");
    }
    // Parameters as PTX lays them out: in order, each aligned to its size.
    let mut end = 0;
    for p in SGEMM.params {
        assert!(p.offset >= end && p.offset % p.kind.bytes() == 0, "{p:?}");
        end = p.offset + p.kind.bytes();
    }
    assert_eq!(SGEMM.params_bytes(), end);
    assert_eq!(SGEMM.params[0].kind, ParamKind::Pointer);
    let declared: Vec<&str> = SGEMM
        .ptx
        .lines()
        .filter_map(|l| l.trim().strip_prefix(".param ")?.split_whitespace().nth(1))
        .map(|name| name.trim_end_matches(','))
        .collect();
    let named: Vec<&str> = SGEMM.params.iter().map(|p| p.name).collect();
    assert_eq!(declared, named);
}

#[test]
fn every_plan_can_be_compiled_in() {
    for plan in Config::table().map(Config::kernel) {
        let transposes = |operands: &Operands| plan.transposed(*operands) != [false; 2];
        let mut all = Operands::ALL.into_iter();
        let operands = all.find(|o| !transposes(o)).expect("one as it lies");
        let parts = compile(&plan, operands, plan.min_arch())
            .unwrap_or_else(|e| panic!("{}: {e}", plan.name()));
        // The tiles of a linear schedule are those of 8192x8192, in both directions of C.
        let least = match plan.scheduler {
            Scheduler::Persistent(Order::Linear) => (1 << 13) - 1,
            Scheduler::Grid | Scheduler::Persistent(Order::Rectangle) => 1 << 20,
        };
        assert!(parts.limits.iter().all(|&l| l > least), "{parts:?}");
        if let Some(other) = Operands::ALL.into_iter().find(transposes) {
            let error = compile(&plan, other, plan.min_arch()).expect_err("a transpose");
            let take = format!("take {operands}");
            assert!(error.to_string().contains(&take), "{error}");
        }
    }
}

/// Kernels that copy by TMA, of transposed operands and of clusters.
const BOXES: [CompiledKernel; 2] = [
    kernel!(plan = "wgmma-f16-128x256x64", trans = tn, arch = sm_90),
    kernel!(
        plan = "wgmma-tf32-128x256x32+persistent+cluster2x1",
        trans = nt,
        arch = sm_90
    ),
];

#[test]
fn a_compiled_kernel_has_the_tensor_maps_of_its_plan() {
    for kernel in BOXES {
        let operands: Operands = kernel.trans.parse().expect("operands");
        let plan = kernel
            .plan
            .parse::<Config>()
            .map(Config::kernel)
            .expect("the plan");
        // Rows that begin lines, some of them apart from each other.
        for (sizes, more) in [
            ([128, 256, 64], 0),
            ([1088, 704, 320], 0),
            ([64, 1984, 4032], 64),
        ] {
            let [m, n, k] = sizes;
            let mut problem = Gemm::packed(m, n, k, operands);
            for ld in [&mut problem.lda, &mut problem.ldb, &mut problem.ldc] {
                *ld += more;
            }
            let plan = plan.specialize(&problem, Schedule::default());
            let launch = plan
                .expect("it serves")
                .launch(&problem)
                .expect("it serves");
            let launch = launch.expect("something to do");
            let own: Vec<(&str, MapArgument)> = launch
                .arguments
                .iter()
                .filter_map(|a| match a.value {
                    ArgumentValue::TensorMap(_, map) => Some((a.name.as_str(), map)),
                    _ => None,
                })
                .collect();
            assert!(own.len() >= 2, "{own:?}");
            let lds = [problem.lda, problem.ldb, problem.ldc];
            let named = kernel.maps.iter().map(|(name, _)| *name);
            let compiled = named.filter_map(|n| Some((n, kernel.tensor_map(n, sizes, lds)?)));
            assert_eq!(compiled.collect::<Vec<_>>(), own, "{}", kernel.plan);
            // Each is a parameter of the constant.
            for (name, _) in own {
                let kind = kernel.param(name).map(|p| p.kind);
                assert_eq!(kind, Some(ParamKind::TensorMap), "{name}");
            }
        }
    }
    assert!(SGEMM.maps.is_empty());
}
