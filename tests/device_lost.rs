//! A GPU that is lost in the middle of a run over several: one error that names it, before the time limit, and no hang. Alone in its file, because the
//! process can't use that GPU afterwards.

mod common;

use std::time::{Duration, Instant};

use tilewright::codegen::Arch;
use tilewright::gpu::LaunchConfig;
use tilewright::host::Inputs;
use tilewright::host::devices::{DeviceGemm, Devices, DevicesRunError, OnDevices};
use tilewright::kernels::devices::Placement;
use tilewright::kernels::gemm::{Config, DataType, Gemm, Operands, Schedule};

/// Ends the context of the GPU that it runs on.
const TRAP: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry lost() { trap; }\n";

/// Whether an error is about the lost GPU; the driver may give up others as well.
fn named(text: &str) -> bool {
    let (who, _) = text.split_once(": ").unwrap_or_default();
    let numbers = who.strip_prefix("devices ").or(who.strip_prefix("device "));
    numbers.is_some_and(|numbers| numbers.split(", ").any(|number| number == "1"))
}

#[test]
fn a_gpu_that_is_lost_in_the_middle_is_one_error_and_no_hang() {
    let count = tilewright::gpu::devices().map_or(2, |gpus| gpus.len().max(2));
    let devices = match Devices::open(count) {
        Ok(devices) => devices,
        Err(error) => return common::say(&format!("no two GPUs: not run ({error})")),
    };
    let problem = Gemm::packed(4096, 4096, 4096, Operands::ALL[0]);
    let placement = Placement::parse("rows,columns,columns", &problem, count).unwrap();
    let plan = |local: &Gemm| {
        Ok::<_, DevicesRunError>(
            "sgemm-128x128x16"
                .parse::<Config>()
                .map(Config::kernel)?
                .specialize(local, Schedule::default())?,
        )
    };
    let product = DeviceGemm::new(&problem, &placement, DataType::F32, Arch(80), plan).unwrap();
    let inputs = Inputs::random(&problem, DataType::F32, 1);
    // How long it takes until the first run is over: the driver compiles the kernel.
    let begun = Instant::now();
    product
        .launch_on(&devices, &inputs, OnDevices::default())
        .unwrap();
    let prepared = begun.elapsed();
    // More runs than a queue of the driver holds, some seconds of work.
    let options = OnDevices {
        limit: Duration::from_mins(2),
        repeats: 4000,
    };
    let (error, after) = std::thread::scope(|scope| {
        let run = scope.spawn(|| product.launch_on(&devices, &inputs, options));
        std::thread::sleep(prepared + Duration::from_secs(1));
        assert!(!run.is_finished(), "the run is over before the GPU is lost");
        let gpu = &devices.gpus()[1];
        let trap = gpu.load_ptx(TRAP).unwrap().kernel("lost").unwrap();
        let lost = Instant::now();
        trap.launch(&LaunchConfig::new([1, 1, 1], [1, 1, 1]), &[])
            .unwrap();
        (run.join().unwrap().unwrap_err(), lost.elapsed())
    });
    let text = error.to_string();
    assert!(named(&text), "{text}");
    assert!(!text.contains("has not ended"), "{text}");
    assert!(after < Duration::from_secs(30), "{text} after {after:?}");
    common::say(&format!(
        "on {count} GPUs, after {:.1} s: {text}",
        after.as_secs_f64()
    ));
    // The other GPUs may wait for the lost one still: who tries again is told at once.
    let again = Instant::now();
    let error = product.launch_on(&devices, &inputs, OnDevices::default());
    let (text, after) = (error.unwrap_err().to_string(), again.elapsed());
    assert!(named(&text), "{text}");
    assert!(after < Duration::from_secs(10), "{text} after {after:?}");
}
