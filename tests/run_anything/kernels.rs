//! Kernels of every kind: plans, constants of `kernel!`, types of one's own; on any device.

use std::collections::BTreeSet;

use half::f16;
use tilewright::codegen::Arch;
use tilewright::host::{
    Arg, BufferType, GemmKernel, Inputs, Launches, On, Param, ParamType, Ran, RunError, Runnable,
    Scalar, Scalars, Step, StepArg, check, run,
};
use tilewright::kernel;
use tilewright::kernels::gemm::{
    Bias, CompiledKernel, Config, DataType, Epilogue, Gemm, Operands, Schedule,
};

use super::{HEAD, module, on_emulator, racing, refusal};

#[test]
fn auto_says_where_it_ran_and_why() {
    let outcome = run(&racing(), On::Auto, [("out", Arg::output::<u32>(64))]).expect("it runs");
    match outcome.ran {
        Ran::Gpu => assert_eq!(outcome.why, "there is a GPU"),
        Ran::OpenCl => panic!("an OpenCL device is never chosen"),
        Ran::Emulator => {
            assert!(
                outcome.why.contains("GPU") || outcome.why.contains("CUDA"),
                "{}",
                outcome.why
            );
            let refused = run(&racing(), On::Gpu, [("out", Arg::output::<u32>(64))]);
            let code = refused.expect_err("there is no GPU").code();
            assert!(
                ["no_cuda_driver", "no_gpu", "not_built"].contains(&code),
                "{code}"
            );
        }
    }
}

/// Two launches: the first fills the workspace behind its first 256 bytes with 7, the second adds n to it.
struct Twice(String);

impl Runnable for Twice {
    fn ptx(&self) -> &str {
        &self.0
    }

    fn entry(&self) -> &'static str {
        "second"
    }

    fn params(&self) -> Vec<Param> {
        vec![
            Param::pointer("out", BufferType::U32),
            Param::new("n", ParamType::U64),
        ]
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let n = scalars.size("n")?;
        let step = |entry: &str, args| Step {
            entry: entry.to_owned(),
            grid: [1, 1, 1],
            block: [1, 1, 1],
            cluster: [1, 1, 1],
            shared_bytes: 0,
            args,
        };
        let (space, n) = (
            StepArg::Workspace(256),
            StepArg::Value(Scalar::U32(n as u32)),
        );
        Ok(Launches {
            steps: vec![
                step("first", vec![space.clone()]),
                step(
                    "second",
                    vec![StepArg::Argument("out".to_owned()), space, n],
                ),
            ],
            workspace_bytes: 260,
            least_bytes: vec![("out".to_owned(), 4)],
            stores: Vec::new(),
            stated: Vec::new(),
        })
    }
}

#[test]
fn launches_pass_data_through_the_workspace() {
    let first = module(
        "first",
        ".param .u64 space",
        "ld.param.u64 %d0, [space]; mov.u32 %r0, 7; st.global.u32 [%d0], %r0;",
    );
    let second = module(
        "second",
        ".param .u64 out, .param .u64 space, .param .u32 n",
        "ld.param.u64 %d0, [out]; ld.param.u64 %d1, [space]; ld.param.u32 %r0, [n];
        ld.global.u32 %r1, [%d1]; add.s32 %r2, %r1, %r0; st.global.u32 [%d0], %r2;",
    );
    let kernel = Twice(first + second.strip_prefix(HEAD).expect("a module"));
    let args = |count| [("n", Arg::from(5_u64)), ("out", Arg::output::<u32>(count))];
    let outcome = on_emulator(&kernel, args(1));
    outcome.assert_clean();
    assert_eq!(outcome.launches, 2);
    assert_eq!(outcome.get::<u32>("out").expect("u32"), [12]);
    assert_eq!(
        refusal(&kernel, args(0)).to_string(),
        "the buffer for `out` has 0 elements (0 bytes), and the kernel needs 1 (4 bytes) for these sizes"
    );
}

#[test]
fn a_plan_runs_as_emulate_runs_it() {
    let plan = "mma-f16-64x64x32"
        .parse::<Config>()
        .map(Config::kernel)
        .expect("a plan");
    for (split, pack, bias) in [
        (1, false, Bias::None),
        (3, false, Bias::Row),
        (2, true, Bias::Column),
    ] {
        let mut problem = Gemm::packed(70, 90, 130, Operands::ALL[2]);
        (problem.lda, problem.beta, problem.epilogue) = (
            71,
            0.5,
            Epilogue {
                bias,
                ..Epilogue::default()
            },
        );
        problem.alignment.a = 2;
        let schedule = Schedule { split, pack };
        let kernel = GemmKernel::new(&plan, &problem, schedule, Arch(80)).expect("it serves");
        let inputs = Inputs::random(&problem, DataType::F16, 4);
        let outcome = on_emulator(&kernel, kernel.args(&inputs).expect("they fit"));
        outcome.assert_clean();
        assert_eq!(outcome.launches > 1, split > 1);
        let c = kernel.result(&inputs, &outcome).expect("C");
        assert!(
            check(&problem, DataType::F16, &inputs, &c)
                .expect("shapes")
                .passed
        );
    }
    // Nothing to do: C stays, and nothing counts as proven.
    let problem = Gemm::packed(0, 90, 130, Operands::ALL[0]);
    let kernel =
        GemmKernel::new(&plan, &problem, Schedule::default(), Arch(80)).expect("it serves");
    let inputs = Inputs::random(&problem, DataType::F16, 4);
    let outcome = on_emulator(&kernel, kernel.args(&inputs).expect("they fit"));
    outcome.assert_clean();
    assert_eq!((outcome.launches, outcome.report.is_none()), (0, true));
    let error = outcome.counted_as_proven().expect_err("nothing ran");
    assert!(error.to_string().contains("was never executed"), "{error}");
}

/// Every shared access of every plan is executed when the problem is some tiles large, with the old C or without it (plans of warpgroups store C
/// differently where they do not read it), costs what was proven, and none is made besides. The loop over k, which is the same with and without it,
/// takes its turns once, and with the old C.
#[test]
fn every_plan_is_clean_and_counted_as_proven() {
    for plan in Config::table().map(Config::kernel) {
        let [m, n, k] = plan.tile();
        let [m, n, k] = [m, n, k].map(u64::from);
        let mut executed = BTreeSet::new();
        let mut all = BTreeSet::new();
        // The products of 8-bit integers take whole factors.
        for (beta, tiles) in [(2.0, 8), (0.0, 2)] {
            let mut problem = Gemm::packed(m, n, tiles * k, Operands::ALL[0]);
            problem.beta = beta;
            let arch = plan.min_arch();
            let kernel = GemmKernel::new(&plan, &problem, Schedule::default(), arch);
            let kernel = kernel.unwrap_or_else(|e| panic!("{}: {e}", plan.name()));
            let inputs = Inputs::random(&problem, plan.data_type, 5);
            let outcome = on_emulator(&kernel, kernel.args(&inputs).expect("they fit"));
            outcome.assert_clean();
            for access in &outcome.accesses {
                all.insert(access.proof.access.clone());
                if access.wavefronts.is_some() {
                    executed.insert(access.proof.access.clone());
                }
            }
            let wrong = outcome.counted_as_proven();
            assert_eq!(wrong, Ok(()), "{}", plan.name());
        }
        assert_eq!(executed, all, "{}", plan.name());
    }
}

const SGEMM: CompiledKernel = kernel!(plan = "sgemm-maxas-64", trans = tn, arch = sm_80);

/// C ← α·Aᵀ·B of 6×8 by ones and twos, k = 5, with an A of so many elements.
fn product(m: u32, lda: u32, a: usize, alpha: f32) -> Vec<(&'static str, Arg<'static>)> {
    let sizes = [
        ("m", m),
        ("n", 8),
        ("k", 5),
        ("lda", lda),
        ("ldb", 8),
        ("ldc", 8),
    ];
    let mut args = vec![
        ("A", Arg::input(&vec![1.0_f32; a])),
        ("B", Arg::input(&[2.0_f32; 40])),
        ("C", Arg::output::<f32>(48)),
        ("alpha", Arg::from(alpha)),
        ("beta", Arg::from(0.0_f32)),
    ];
    args.extend(sizes.map(|(name, value)| (name, Arg::from(value))));
    args
}

#[test]
fn a_compiled_kernel_takes_its_parameters_by_name() {
    let outcome = on_emulator(&SGEMM, product(6, 6, 30, 0.5));
    outcome.assert_clean();
    assert_eq!(outcome.get::<f32>("C").expect("f32"), [5.0; 48]);
    // Without α nobody reads A.
    let outcome = on_emulator(&SGEMM, product(6, 6, 0, 0.0));
    outcome.assert_clean();
    assert_eq!(outcome.get::<f32>("C").expect("f32"), [0.0; 48]);
    assert_eq!(on_emulator(&SGEMM, product(0, 6, 0, 1.0)).launches, 0);
    for (args, text) in [
        (
            product(6, 6, 29, 1.0),
            "the buffer for `A` has 29 elements (116 bytes), and the kernel needs 30 (120 bytes) for these sizes",
        ),
        (
            product(6, 7, 33, 1.0),
            "the buffer for `A` has 33 elements (132 bytes), and the kernel needs 34 (136 bytes) for these sizes",
        ),
        (
            product(6, 5, 30, 1.0),
            "the kernel cannot be launched: lda is 5, and a row of A has 6 elements",
        ),
    ] {
        assert_eq!(refusal(&SGEMM, args).to_string(), text);
    }
}

const BY_TMA: CompiledKernel = kernel!(plan = "wgmma-f16-64x128x128", trans = tn, arch = sm_90);

#[test]
fn a_compiled_kernel_encodes_its_tensor_maps_from_the_buffers() {
    // C ← Aᵀ·B of 72×136 by ones and twos, k = 40; rows of A are 80 elements apart.
    let [one, two] = [1.0, 2.0].map(f16::from_f32);
    let sizes = [
        ("m", 72_u32),
        ("n", 136),
        ("k", 40),
        ("lda", 80),
        ("ldb", 136),
        ("ldc", 136),
    ];
    let mut args = vec![
        ("A", Arg::input(&[one; 80 * 40]).aligned_to(16)),
        ("B", Arg::input(&[two; 40 * 136]).aligned_to(16)),
        ("C", Arg::output::<f16>(72 * 136).aligned_to(16)),
        ("alpha", Arg::from(0.5_f32)),
        ("beta", Arg::from(0.0_f32)),
    ];
    args.extend(sizes.map(|(name, value)| (name, Arg::from(value))));
    let maps: Vec<_> = BY_TMA.maps.iter().map(|(name, _)| *name).collect();
    assert_eq!(maps, ["A", "B"]);
    let outcome = on_emulator(&BY_TMA, args);
    outcome.assert_clean();
    let expected = vec![f16::from_f32(40.0); 72 * 136];
    assert_eq!(outcome.get::<f16>("C").expect("f16"), expected);
}
