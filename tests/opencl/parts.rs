//! Packing and partial sums on an OpenCL device: the kernels around a product that have a form in OpenCL C where the product itself, by tensor
//! cores or `cp.async`, has none. Each is launched as the contract says, over random ragged problems.

use std::collections::HashMap;

use tilewright::codegen::ir::{Element, ParamKind};
use tilewright::codegen::print::opencl::program;
use tilewright::gpu::opencl::{ClArg, ClBuffer, ClDevice, ClProgram};
use tilewright::kernels::gemm::{
    ArgumentValue, Config, DataType, Gemm, Launch, Operands, Schedule, Specialized, Trans,
};

use super::common::Random;
use super::left_out;
use super::run::device;

/// Problems of each plan.
const PROBLEMS: u64 = 100;

/// The name of a kernel in a program.
const NAME: &str = "part_of_a_product";

/// A byte that nothing writes on purpose.
const POISON: u8 = 0xff;

/// Programs by their text, in which every kernel has the same name: plans share most of these kernels.
struct Programs<'d> {
    device: &'d ClDevice,
    built: HashMap<String, ClProgram>,
}

impl Programs<'_> {
    /// Launches one kernel of a plan on these buffers: A, B, C and the workspace.
    fn launch(
        &mut self,
        plan: &Specialized,
        operands: Operands,
        launch: &Launch,
        [a, b, c, workspace]: [&ClBuffer; 4],
    ) {
        let device = self.device;
        let entries = plan.entries(operands, plan.min_arch()).expect("entries");
        let entry = entries.into_iter().find(|e| e.name() == launch.kernel);
        let entry = entry.expect("an entry of this name");
        let text = program(&[entry], &[]).expect("a form");
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let text = code
            .collect::<Vec<_>>()
            .join("\n")
            .replace(&launch.kernel, NAME);
        let program = self.built.entry(text).or_insert_with_key(|text| {
            let built = device.build(text);
            built.unwrap_or_else(|e| panic!("{}: {e}", launch.kernel))
        });
        // A pointer into the workspace is a buffer of its own.
        let parts: Vec<Option<ClBuffer>> = launch
            .arguments
            .iter()
            .map(|argument| match argument.value {
                ArgumentValue::Workspace(at) => {
                    Some(device.part(workspace, at as usize).expect("a part"))
                }
                _ => None,
            })
            .collect();
        let arguments = launch.arguments.iter().zip(&parts);
        let arguments = arguments.map(|(argument, part)| match argument.value {
            ArgumentValue::A => ClArg::Buffer(a),
            ArgumentValue::B => ClArg::Buffer(b),
            ArgumentValue::C => ClArg::Buffer(c),
            ArgumentValue::Workspace(_) => ClArg::Buffer(part.as_ref().expect("made above")),
            ArgumentValue::Int(v) => ClArg::U32(v as u32),
            ArgumentValue::Float(v) if argument.kind == ParamKind::F64 => ClArg::F64(v),
            ArgumentValue::Float(v) => ClArg::F32(v as f32),
            ref other => panic!("{}: {other:?}", argument.name),
        });
        let arguments: Vec<ClArg<'_>> = arguments.collect();
        let kernel = program.kernel(NAME).expect("the kernel");
        let run = kernel.launch(launch.grid, launch.block, &arguments);
        run.unwrap_or_else(|e| panic!("{}: {e}", launch.kernel));
    }
}

/// Memory with these bytes.
fn memory(device: &ClDevice, bytes: &[u8]) -> ClBuffer {
    let mut memory = device.alloc(bytes.len()).expect("memory");
    device.write(&mut memory, 0, bytes).expect("written");
    memory
}

/// What the contract gives a parameter.
fn int(launch: &Launch, name: &str) -> usize {
    let argument = launch.arguments.iter().find(|a| a.name == name);
    match argument.expect("a parameter of this name").value {
        ArgumentValue::Int(v) => v as usize,
        ref other => panic!("{name}: {other:?}"),
    }
}

/// Where in the workspace a launch's pointer leads.
fn place(launch: &Launch) -> usize {
    let mut places = launch.arguments.iter().filter_map(|a| match a.value {
        ArgumentValue::Workspace(at) => Some(at as usize),
        _ => None,
    });
    places.next().expect("a pointer into the workspace")
}

/// A random problem whose sizes are odd or even, with gaps behind its rows.
fn problem(random: &mut Random, number: u64, least_k: u64) -> Gemm {
    let operands = Operands::ALL[number as usize % 4];
    let [m, n, k] =
        [(90, 0), (90, 0), (300, least_k)].map(|(most, more)| 1 + more + random.below(most));
    let mut problem = Gemm::packed(m, n, k, operands);
    let step = [1, 2, 4, 8][random.below(4) as usize];
    let row = |trans: Trans, [across, along]: [u64; 2]| {
        if trans == Trans::N { along } else { across }
    };
    problem.lda = row(operands.a, [m, k]).next_multiple_of(step) + step * random.below(3);
    problem.ldb = row(operands.b, [k, n]).next_multiple_of(step) + step * random.below(3);
    problem.ldc = n.next_multiple_of(step) + step * random.below(3);
    problem
}

/// A hundred problems' operands, packed: every element in its place, zeros behind the rows, and nothing else touched.
fn packs(name: &str) {
    let device = device();
    let mut programs = Programs {
        device: &device,
        built: HashMap::new(),
    };
    let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
    let bytes = plan.data_type.bytes() as usize;
    let (mut random, mut packed) = (Random::new(5), 0);
    for number in 0..PROBLEMS {
        let problem = problem(&mut random, number, 0);
        let schedule = Schedule {
            pack: true,
            split: 1,
        };
        let adapted = plan.specialize(&problem, schedule).expect("it serves all");
        let Some(launch) = adapted.launch(&problem).expect("a launch") else {
            continue;
        };
        let [(rows_a, cols_a), (rows_b, cols_b)] = [problem.stored_a(), problem.stored_b()];
        let lengths = [rows_a * problem.lda, rows_b * problem.ldb].map(|n| n as usize * bytes);
        let operands = lengths.map(|n| (0..n).map(|_| random.next() as u8).collect::<Vec<u8>>());
        let [a, b] = [0, 1].map(|i: usize| memory(&device, &operands[i]));
        let none = memory(&device, &[0; 16]);
        let before = vec![POISON; launch.workspace_bytes as usize];
        let workspace = memory(&device, &before);
        let mut expected = before;
        for pack in &launch.before {
            let second = pack.kernel.ends_with("_b");
            let what = format!("{}, {problem:?}", pack.kernel);
            let (rows, cols) = if second {
                (rows_b, cols_b)
            } else {
                (rows_a, cols_a)
            };
            let (ld, pitch, at) = (int(pack, "ld"), int(pack, "pitch"), place(pack));
            assert_eq!(int(pack, "cols"), cols as usize, "{what}");
            for row in 0..rows as usize {
                let to = at + row * pitch * bytes;
                let from = row * ld * bytes;
                let length = cols as usize * bytes;
                expected[to..to + pitch * bytes].fill(0);
                expected[to..to + length]
                    .copy_from_slice(&operands[usize::from(second)][from..from + length]);
            }
            programs.launch(
                &adapted,
                problem.operands,
                pack,
                [&a, &b, &none, &workspace],
            );
            packed += 1;
        }
        let got = device.read(&workspace, 0, expected.len()).expect("read");
        let wrong = (0..got.len()).find(|&i| got[i] != expected[i]);
        assert_eq!(wrong, None, "{name}, {problem:?}");
    }
    assert!(packed >= 20, "{name}: {packed} operands were packed");
}

#[test]
fn a_hundred_problems_are_packed() {
    if left_out() {
        return;
    }
    for name in [
        "mma-s8-64x64x64",
        "mma-f16-64x64x64",
        "sgemm-64x64x16",
        "mma-f64-64x64x16",
    ] {
        packs(name);
    }
}

/// The numbers of a buffer.
fn numbers(bytes: &[u8], element: Element) -> Vec<f64> {
    match element {
        Element::F64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|&b| f64::from_le_bytes(b))
            .collect(),
        _ => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|&b| f32::from_le_bytes(b).into())
            .collect(),
    }
}

/// `count` random numbers in [-1, 1).
fn random_numbers(random: &mut Random, count: usize, element: Element) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let x = (random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        match element {
            Element::F64 => bytes.extend(x.to_le_bytes()),
            _ => bytes.extend((x as f32).to_le_bytes()),
        }
    }
    bytes
}

/// A hundred problems' partial sums, added in their order: C = α·Σ + β·C where the product has not multiplied with α already; β = 0 does not read C,
/// and what lies between its rows stays.
fn adds(name: &str, element: Element, scaled: bool) {
    let device = device();
    let mut programs = Programs {
        device: &device,
        built: HashMap::new(),
    };
    let plan = name.parse::<Config>().map(Config::kernel).expect("a plan");
    let (bytes, mut random, mut added) = (element.bytes() as usize, Random::new(6), 0);
    let unit = element.unit_roundoff();
    for number in 0..PROBLEMS {
        let mut problem = problem(&mut random, number, 200);
        problem.output = (plan.data_type != DataType::F64).then_some(element);
        (problem.alpha, problem.beta) = (random.scalar(), random.scalar());
        if element == Element::F32 {
            let round = |x: f64| f64::from(x as f32);
            (problem.alpha, problem.beta) = (round(problem.alpha), round(problem.beta));
        }
        let schedule = Schedule {
            pack: false,
            split: 2 + (number % 3) as u32,
        };
        let adapted = plan.specialize(&problem, schedule).expect("it serves all");
        let launch = adapted.launch(&problem).expect("a launch");
        let launch = launch.expect("C is not empty");
        let [reduce] = &launch.after[..] else {
            panic!("{problem:?}: {:?}", launch.after)
        };
        let [m, n, ldc] = [problem.m, problem.n, problem.ldc].map(|v| v as usize);
        let (parts, pitch) = (int(reduce, "parts"), int(reduce, "pitch"));
        let at = place(reduce);
        let mut sums = vec![POISON; launch.workspace_bytes as usize];
        let partial = random_numbers(&mut random, parts * m * pitch, element);
        sums[at..at + partial.len()].copy_from_slice(&partial);
        let old = if problem.beta == 0.0 {
            vec![POISON; m * ldc * bytes]
        } else {
            random_numbers(&mut random, m * ldc, element)
        };
        let none = memory(&device, &[0; 16]);
        let (c, workspace) = (memory(&device, &old), memory(&device, &sums));
        programs.launch(
            &adapted,
            problem.operands,
            reduce,
            [&none, &none, &c, &workspace],
        );
        let got = device.read(&c, 0, old.len()).expect("read");
        let (partial, before, after) = (
            numbers(&partial, element),
            numbers(&old, element),
            numbers(&got, element),
        );
        for row in 0..m {
            for col in 0..ldc {
                let (i, what) = (
                    row * ldc + col,
                    format!("{name}, ({row}, {col}), {problem:?}"),
                );
                if col >= n {
                    assert_eq!(
                        got[i * bytes..][..bytes],
                        old[i * bytes..][..bytes],
                        "{what}"
                    );
                    continue;
                }
                let terms = (0..parts).map(|p| partial[(p * m + row) * pitch + col]);
                let (sum, size) = terms.fold((0.0, 0.0), |(s, z), t| (s + t, z + t.abs()));
                let factor = if scaled { 1.0 } else { problem.alpha };
                let rest = if problem.beta == 0.0 {
                    0.0
                } else {
                    problem.beta * before[i]
                };
                let error = (after[i] - (factor * sum + rest)).abs();
                let allowed = (parts + 3) as f64 * 2.0 * unit * (factor.abs() * size + rest.abs());
                assert!(error <= allowed, "{what}: {} is off by {error}", after[i]);
            }
        }
        added += 1;
    }
    assert_eq!(added, PROBLEMS, "{name}");
}

#[test]
fn a_hundred_problems_have_their_partial_sums_added() {
    if left_out() {
        return;
    }
    // Plans by multiply-adds scale each part themselves.
    adds("sgemm-64x64x16", Element::F32, true);
    adds("mma-f16-64x64x64", Element::F32, false);
    adds("mma-f64-64x64x16", Element::F64, false);
}
