//! Products over several devices on the emulator: random problems in random schedules, and mistakes that must show.

use std::time::Duration;

use tilewright::codegen::Arch;
use tilewright::devices::Block;
use tilewright::host::devices::{
    DeviceGemm, Devices, DevicesRun, DevicesRunError, Emulation, OnDevices,
};
use tilewright::host::{Inputs, check};
use tilewright::kernels::devices::{
    Action, Addend, Buffer, Content, DevicesError, Operand, Placement, Program, Region,
};
use tilewright::kernels::gemm::{
    Activation, Bias, Config, DataType, Epilogue, Gemm, Operands, Schedule, Specialized,
};

mod common;

use common::Random;

/// One of several.
fn one<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

const SHARDS: [&str; 9] = [
    "rows,columns,columns",
    "rows,columns,rows",
    "rows,replicas,rows",
    "columns,columns,rows",
    "rows,rows,columns",
    "columns,rows,rows",
    "columns,rows,columns",
    "columns,rows,replicas",
    "rows,columns,replicas",
];

fn named(name: &'static str) -> impl Fn(&Gemm) -> Result<Specialized, DevicesRunError> {
    move |local| {
        let plan = name.parse::<Config>().map(Config::kernel)?;
        Ok(plan.specialize(local, Schedule::default())?)
    }
}

/// A random product: sizes that the devices do not divide, and shards that are empty.
struct Case {
    problem: Gemm,
    data_type: DataType,
    plan: &'static str,
    shards: &'static str,
    devices: usize,
    what: String,
}

impl Case {
    fn new(rng: &mut Random, number: usize, devices: usize, largest: u64) -> Self {
        let size = |rng: &mut Random| match rng.below(4) {
            0 => 1 + rng.below(8),
            _ => 1 + rng.below(largest),
        };
        let (m, n, k) = (size(rng), size(rng), size(rng));
        let mut problem = Gemm::packed(m, n, k, one(rng, &Operands::ALL));
        problem.alpha = one(rng, &[1.0, -0.5]);
        problem.beta = one(rng, &[0.0, 0.0, 0.25]);
        problem.epilogue = Epilogue {
            bias: one(rng, &[Bias::None, Bias::None, Bias::Row, Bias::Column]),
            activation: one(
                rng,
                &[Activation::Identity, Activation::Identity, Activation::Relu],
            ),
        };
        let shards = match number % 10 {
            9 if devices == 4 => "2x2,2x2,2x2",
            9 if devices == 8 => "4x2,2x4,4x2",
            i => SHARDS[i % SHARDS.len()],
        };
        let (data_type, plan) = one(
            rng,
            &[
                (DataType::F32, "sgemm-64x64x16"),
                (DataType::F16, "mma-f16-64x64x32"),
                (DataType::Bf16, "mma-bf16-64x64x32"),
                (DataType::S8, "mma-s8-64x64x64"),
            ],
        );
        if data_type == DataType::S8 {
            problem.alpha = problem.alpha.signum();
            problem.beta = problem.beta.ceil();
            problem.epilogue = Epilogue::default();
        }
        let what = format!("{number}: {problem:?} {data_type} {shards} on {devices}");
        Self {
            problem,
            data_type,
            plan,
            shards,
            devices,
            what,
        }
    }

    /// A product whose matrices move by one collective: equal shards, nothing behind a reduce-scatter.
    fn of_a_collective(rng: &mut Random, number: usize, devices: usize, largest: u64) -> Self {
        let mut case = Self::new(rng, number, devices, largest);
        let shards = [
            "rows,columns,columns",
            "columns,rows,rows",
            "rows,columns,rows",
        ];
        case.shards = shards[number % 3];
        let multiple = |size: u64| size.next_multiple_of(devices as u64);
        let (m, n, k) = (
            multiple(case.problem.m),
            multiple(case.problem.n),
            multiple(case.problem.k),
        );
        let operands = match case.shards {
            "rows,columns,rows" => one(rng, &[Operands::ALL[1], Operands::ALL[3]]),
            _ => one(rng, &[Operands::ALL[0], Operands::ALL[1]]),
        };
        let packed = Gemm::packed(m, n, k, operands);
        case.problem = match case.shards {
            "columns,rows,rows" => Gemm {
                alpha: case.problem.alpha,
                ..packed
            },
            _ => Gemm {
                alpha: case.problem.alpha,
                beta: case.problem.beta,
                epilogue: case.problem.epilogue,
                ..packed
            },
        };
        case.what = format!("{} by a collective: {:?}", case.what, case.problem);
        case
    }

    /// A product whose terms are stored into the memory of other devices: factors cut along k, no old C.
    fn of_terms(rng: &mut Random, number: usize, devices: usize, largest: u64) -> Self {
        loop {
            let mut case = Self::new(rng, number, devices, largest);
            case.shards = [
                "columns,rows,rows",
                "columns,rows,columns",
                "columns,rows,replicas",
            ][number % 3];
            case.problem.beta = 0.0;
            case.what = format!("{} by stores: {:?}", case.what, case.problem);
            let placement = Placement::parse(case.shards, &case.problem, devices).unwrap();
            // One device has all of a short k.
            if placement.sums_move() {
                return case;
            }
        }
    }

    fn placed(
        &self,
        program: impl Fn(&Gemm, &Placement) -> Result<Option<Program>, DevicesError>,
    ) -> DeviceGemm {
        let placement = Placement::parse(self.shards, &self.problem, self.devices).unwrap();
        let program = program(&self.problem, &placement).unwrap();
        let program = program.unwrap_or_else(|| panic!("{}: no such program", self.what));
        DeviceGemm::with(program, self.data_type, Arch(80), named(self.plan))
            .unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    fn by_a_collective(&self) -> DeviceGemm {
        self.placed(Program::collective)
    }

    fn by_stores(&self) -> DeviceGemm {
        self.placed(Program::direct)
    }

    fn product(&self) -> DeviceGemm {
        let placement = Placement::parse(self.shards, &self.problem, self.devices).unwrap();
        DeviceGemm::new(
            &self.problem,
            &placement,
            self.data_type,
            Arch(80),
            named(self.plan),
        )
        .unwrap_or_else(|e| panic!("{}: {e}", self.what))
    }

    /// No finding, and right numbers. Terms that travel are rounded to C's type once a device.
    fn passes(&self, inputs: &Inputs, run: &DevicesRun) {
        let Self { problem, what, .. } = self;
        assert!(run.findings.is_empty(), "{what}: {:?}", run.findings);
        let made = check(problem, self.data_type, inputs, &run.c).unwrap();
        let placement = Placement::parse(self.shards, problem, self.devices).unwrap();
        let rounded = match self.data_type {
            DataType::F16 | DataType::Bf16 if placement.sums_move() => self.devices as f64,
            _ => 1.0,
        };
        assert!(
            made.gaps_untouched && made.max_rel_err <= rounded * made.tolerance,
            "{what}: {made:?}"
        );
    }
}

/// Draws a product: its number, its devices, its largest size.
type Draw = fn(&mut Random, usize, usize, u64) -> Case;

/// Makes its program and kernels.
type Make = fn(&Case) -> DeviceGemm;

/// Random problems on 2, 3, 4 and 8 emulated devices, each in a schedule of its own.
fn emulated(seed: u64, count: usize, draw: Draw, product: Make) {
    let mut rng = Random::new(seed);
    for number in 0..count {
        let case = draw(&mut rng, number, [2, 3, 4, 8][number % 4], 90);
        let inputs = Inputs::random(&case.problem, case.data_type, number as u64);
        let emulation = Emulation {
            seed: number as u64,
            ..Emulation::default()
        };
        let run = product(&case).emulate(&inputs, &emulation);
        let run = run.unwrap_or_else(|e| panic!("{}: {e}", case.what));
        case.passes(&inputs, &run);
    }
}

#[test]
fn a_hundred_random_problems_on_two_to_eight_devices() {
    emulated(2026, 100, Case::new, Case::product);
}

#[test]
fn thirty_random_problems_by_collectives() {
    emulated(61, 30, Case::of_a_collective, Case::by_a_collective);
}

#[test]
fn thirty_random_problems_by_stores() {
    emulated(43, 30, Case::of_terms, Case::by_stores);
}

#[test]
fn thirty_random_problems_on_gpus() {
    let count = match tilewright::gpu::devices() {
        Ok(gpus) if gpus.len() > 1 => gpus.len(),
        Ok(_) => return common::say("one GPU: not run (it takes two)"),
        Err(error) if error.means_no_gpu() => {
            return common::say(&format!("no GPU: not run ({error})"));
        }
        Err(error) => panic!("{error}"),
    };
    let mut rng = Random::new(30);
    let all: Vec<Devices> = (2..=count).map(|n| Devices::open(n).unwrap()).collect();
    let kinds: [(&str, Draw, Make); 3] = [
        ("by copies", Case::new, Case::product),
        ("by stores", Case::of_terms, Case::by_stores),
        (
            "by collectives",
            Case::of_a_collective,
            Case::by_a_collective,
        ),
    ];
    for (kind, draw, product) in kinds {
        for number in 0..30 {
            let devices = &all[number % all.len()];
            let case = draw(&mut rng, number, devices.gpus().len(), 3000);
            let inputs = Inputs::random(&case.problem, case.data_type, number as u64);
            match product(&case).launch_on(devices, &inputs, OnDevices::default()) {
                Ok(run) => case.passes(&inputs, &run),
                Err(DevicesRunError::Gpu { error, .. }) if error.code() == "no_nccl" => {
                    return common::say(&format!("no NCCL: {kind} not run ({error})"));
                }
                Err(error) => panic!("{}: {error}", case.what),
            }
        }
        common::say(&format!("30 problems {kind} on up to {count} GPUs"));
    }
}

#[test]
fn a_product_that_takes_too_long_is_an_error_and_no_hang() {
    let devices = match Devices::open(2) {
        Ok(devices) => devices,
        Err(error) => return common::say(&format!("no two GPUs: not run ({error})")),
    };
    let problem = Gemm::packed(8192, 8192, 8192, Operands::ALL[0]);
    let placement = Placement::parse("rows,columns,columns", &problem, 2).unwrap();
    let inputs = Inputs::random(&problem, DataType::F32, 1);
    let hurried = OnDevices {
        limit: Duration::from_millis(1),
        repeats: 0,
    };
    let copies = Program::derive(&problem, &placement).unwrap();
    let collective = Program::collective(&problem, &placement).unwrap();
    for program in [Some(copies), collective].into_iter().flatten() {
        let plan = named("sgemm-64x64x16");
        let product = DeviceGemm::with(program, DataType::F32, Arch(80), plan).unwrap();
        let error = match product.launch_on(&devices, &inputs, hurried) {
            Err(DevicesRunError::Gpu { error, .. }) if error.code() == "no_nccl" => {
                return common::say(&format!("no NCCL: collectives not run ({error})"));
            }
            other => other.unwrap_err().to_string(),
        };
        assert!(error.contains("has not ended after 1 ms"), "{error}");
        // The devices are well: the next run is right.
        let run = product.launch_on(&devices, &inputs, OnDevices::default());
        assert!(run.unwrap().findings.is_empty());
    }
}

/// What a mistaken program does in some schedule: a finding or a wrong number.
fn shows(program: &Program, inputs: &Inputs) -> Option<String> {
    let product = DeviceGemm::unproven(
        program.clone(),
        DataType::F32,
        Arch(80),
        named("sgemm-64x64x16"),
    )
    .unwrap();
    (0..8).find_map(|seed| {
        let emulation = Emulation {
            seed,
            ..Emulation::default()
        };
        let run = product.emulate(inputs, &emulation).unwrap();
        let made = check(&program.problem, DataType::F32, inputs, &run.c).unwrap();
        let finding = run.findings.first().cloned();
        finding.or_else(|| (!made.passed).then(|| "wrong numbers".to_owned()))
    })
}

/// Columns of a matrix that is stored by rows are no run of bytes, whatever their rows are padded to.
#[test]
fn shards_that_are_no_runs_are_refused() {
    let problem = Gemm::packed(8, 4, 4, Operands::ALL[0]);
    let placement = Placement::parse("rows,columns,columns", &problem, 2).unwrap();
    let mut program = Program::collective(&problem, &placement).unwrap().unwrap();
    for device in 0..2 {
        let whole = program.find(device, "A").unwrap();
        program.buffers[whole].content = Content::Nothing;
        let shard = Block {
            rows: 0..8,
            columns: 2 * device as u64..2 * device as u64 + 2,
        };
        program.buffers.push(Buffer {
            device,
            name: "shard".to_owned(),
            operand: Operand::A,
            block: shard.clone(),
            content: Content::Everything,
        });
        let buffer = program.buffers.len() - 1;
        if let Action::Collective(part) = &mut program.ops[device].action {
            part.from = Region {
                buffer,
                block: shard,
            };
        }
    }
    assert!(program.prove().is_ok());
    let made = DeviceGemm::with(program, DataType::F32, Arch(80), named("sgemm-64x64x16"));
    let error = made.unwrap_err().to_string();
    assert!(error.contains("not runs of whole rows"), "{error}");
}

#[test]
fn mistaken_collectives_show_on_the_emulator() {
    let problem = Gemm::packed(60, 48, 36, Operands::ALL[0]);
    let inputs = Inputs::random(&problem, DataType::F32, 3);
    for (shards, devices) in [("rows,columns,columns", 2), ("columns,rows,rows", 3)] {
        let placement = Placement::parse(shards, &problem, devices).unwrap();
        let right = Program::collective(&problem, &placement).unwrap().unwrap();
        assert_eq!(shows(&right, &inputs), None, "{shards}");
        // Before the product instead of behind it, or the other way round.
        let mut late = right.clone();
        late.ops.rotate_left(devices);
        assert!(late.prove().is_err(), "{shards}: proven");
        assert!(shows(&late, &inputs).is_some(), "{shards}: does not show");
        // Added to what nobody wrote.
        let mut twice = right.clone();
        for op in &mut twice.ops {
            if let Action::Product(product) = &mut op.action {
                product.addend = Addend::Partial;
            }
        }
        assert!(twice.prove().is_err(), "{shards}: proven");
        assert!(shows(&twice, &inputs).is_some(), "{shards}: does not show");
        // A device that stays away.
        let mut alone = right.clone();
        let part =
            |op: &tilewright::kernels::devices::Op| matches!(op.action, Action::Collective(_));
        let at = alone.ops.iter().position(part).unwrap();
        alone.ops.remove(at);
        let error = alone.prove().unwrap_err().to_string();
        assert!(
            error.contains("take part in collective 0; each of the"),
            "{error}"
        );
    }
}

/// A mistake: what it is, and how a program gets it.
type Change<'c> = (&'c str, &'c dyn Fn(&mut Program));

#[test]
fn mistaken_stores_show_on_the_emulator() {
    let problem = Gemm::packed(60, 44, 36, Operands::ALL[0]);
    let inputs = Inputs::random(&problem, DataType::F32, 3);
    for devices in [2, 3] {
        let placement = Placement::parse("columns,rows,rows", &problem, devices).unwrap();
        let right = Program::direct(&problem, &placement).unwrap().unwrap();
        assert_eq!(shows(&right, &inputs), None);
        // The first store and the flag behind it.
        let store = right.ops.iter().position(|op| Some(op) == right.reaching());
        let store = store.unwrap();
        let changes: [Change<'_>; 4] = [
            ("no waits", &|p| {
                p.ops.retain(|op| !matches!(op.action, Action::Wait(_)));
            }),
            ("a flag early", &|p| p.ops.swap(store, store + 1)),
            ("a store twice, another never", &|p| {
                p.ops[store + 2] = p.ops[store].clone();
            }),
            ("a term that stays at home", &|p| {
                let device = p.ops[store].device;
                let Action::Product(product) = &mut p.ops[store].action else {
                    panic!("{}", p.ops[store]);
                };
                let described = Buffer {
                    device,
                    name: "at home".to_owned(),
                    ..p.buffers[product.c.buffer].clone()
                };
                product.c.buffer = p.buffers.len();
                p.buffers.push(described);
            }),
        ];
        for (what, change) in changes {
            let mut mutant = right.clone();
            change(&mut mutant);
            assert_ne!(mutant, right, "{what}");
            assert!(mutant.prove().is_err(), "{what} on {devices} was proven");
            assert!(
                shows(&mutant, &inputs).is_some(),
                "{what} on {devices} does not show"
            );
        }
    }
}

#[test]
fn mistakes_show_on_the_emulator() {
    let problem = Gemm::packed(60, 44, 36, Operands::ALL[0]);
    let inputs = Inputs::random(&problem, DataType::F32, 3);
    for shards in ["rows,columns,columns", "columns,rows,rows"] {
        for devices in [2, 3] {
            let placement = Placement::parse(shards, &problem, devices).unwrap();
            let right = Program::derive(&problem, &placement).unwrap();
            assert_eq!(shows(&right, &inputs), None, "{shards}");
            let mut mutants: Vec<(&str, Program)> = Vec::new();
            let mut mutant = |what, change: &dyn Fn(&mut Program)| {
                let mut program = right.clone();
                change(&mut program);
                assert_ne!(program, right, "{what}");
                mutants.push((what, program));
            };
            mutant("no waits", &|p| {
                p.ops.retain(|op| !matches!(op.action, Action::Wait(_)));
            });
            mutant("a flag early", &|p| {
                let set = p
                    .ops
                    .iter()
                    .position(|op| matches!(op.action, Action::Set(_)))
                    .unwrap();
                let (device, stream) = (p.ops[set].device, p.ops[set].stream);
                let before = (0..set)
                    .rev()
                    .find(|&i| (p.ops[i].device, p.ops[i].stream) == (device, stream));
                p.ops.swap(before.unwrap(), set);
            });
            mutant("a shard twice, another never", &|p| {
                let copies: Vec<usize> = (0..p.ops.len())
                    .filter(|&i| matches!(p.ops[i].action, Action::Copy { .. }))
                    .collect();
                let first = p.ops[copies[0]].action.clone();
                let other = copies.iter().rev().find(|&&i| {
                    p.ops[i].device == p.ops[copies[0]].device && p.ops[i].action != first
                });
                match other {
                    Some(&other) => p.ops[other].action = first,
                    None => {
                        p.ops.remove(copies[0]);
                    }
                }
            });
            mutant("a rotation off by one", &|p| {
                let names: Vec<(usize, String)> = p
                    .buffers
                    .iter()
                    .map(|b| (b.device, b.name.clone()))
                    .collect();
                let count = p.devices;
                for op in &mut p.ops {
                    if let Action::Copy { from, .. } = &mut op.action {
                        let (device, name) = &names[from.buffer];
                        let wrong = ((device + 1) % count, name.clone());
                        if let Some(buffer) = names.iter().position(|known| *known == wrong) {
                            from.buffer = buffer;
                        }
                    }
                }
            });
            mutant("a flag that nobody sets", &|p| {
                let set = p
                    .ops
                    .iter()
                    .position(|op| matches!(op.action, Action::Set(_)))
                    .unwrap();
                p.ops.remove(set);
            });
            if shards == "columns,rows,rows" {
                mutant("a partial sum that is not added", &|p| {
                    for op in &mut p.ops {
                        if let Action::Product(product) = &mut op.action {
                            product.addend = Addend::Nothing;
                        }
                    }
                });
            }
            for (what, program) in &mutants {
                assert!(
                    program.prove().is_err(),
                    "{shards} on {devices}: {what} was proven"
                );
                // A program that names what does not exist is refused before it runs.
                if program.well_formed().is_err() {
                    continue;
                }
                assert!(
                    shows(program, &inputs).is_some(),
                    "{shards} on {devices}: {what} does not show"
                );
            }
        }
    }
}
