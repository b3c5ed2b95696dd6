//! `tilewright doctor`: what this machine can do.
//!
//! Nothing that is missing is an error: each line says what was found or why not, and what it would be good for.

use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::gpu::cublas::{self, Cublas};
use tilewright::gpu::{DeviceInfo, Gpu, GpuError, cublaslt, devices, driver_version, ptxas};

use crate::output;

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON value
    #[arg(long)]
    json: bool,
}

/// One thing that a machine may have.
struct Finding {
    /// Its key in the JSON.
    key: &'static str,
    /// Its name for people.
    name: &'static str,
    /// What Tilewright uses it for.
    purpose: &'static str,
    /// What was found, as lines for people and as JSON, or why nothing was.
    found: Result<(Vec<String>, Value), String>,
}

/// Runs `doctor`.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let findings = [cpu(), driver(), gpus(), cublas(), cublaslt(), assembler()];
    if args.json {
        let mut value = json!({"version": version, "profile": profile});
        for finding in &findings {
            value[finding.key] = finding.to_json();
        }
        output::print_json(&value);
    } else {
        output::print_line(&format!("tilewright {version}, {profile} build"));
        for finding in &findings {
            output::print_line(&finding.text());
        }
    }
    ExitCode::SUCCESS
}

impl Finding {
    fn to_json(&self) -> Value {
        match &self.found {
            Ok((_, value)) => value.clone(),
            Err(reason) => json!({"found": false, "reason": reason, "purpose": self.purpose}),
        }
    }

    fn text(&self) -> String {
        let indent = " ".repeat(10);
        let (lines, missing) = match &self.found {
            Ok((lines, _)) => (lines.clone(), false),
            Err(reason) => (vec![format!("none: {reason}")], true),
        };
        let text = format!("\n{:<10}{}", self.name, lines.join(&format!("\n{indent}")));
        let verb = if missing { "would serve" } else { "serves" };
        text + &format!("\n{indent}({verb} {})", self.purpose)
    }
}

fn cpu() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let arch = std::env::consts::ARCH;
    let (name, features) = (cpu_name(), cpu_features());
    let shown = name
        .clone()
        .unwrap_or_else(|| "a processor without a name".to_owned());
    let line = format!("{shown}, {arch}, {cores} cores, {}", features.join(" "));
    let value =
        json!({"found": true, "name": name, "arch": arch, "cores": cores, "features": features});
    let purpose = "to prove, to emit, and to run kernels on the emulator";
    Finding {
        key: "cpu",
        name: "CPU",
        purpose,
        found: Ok((vec![line.trim_end_matches([',', ' ']).to_owned()], value)),
    }
}

/// The model's name, where the system tells it in a file.
fn cpu_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The vector features that the emulator and the reference product profit from.
fn cpu_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("sse4.2", std::arch::is_x86_feature_detected!("sse4.2")),
            ("avx", std::arch::is_x86_feature_detected!("avx")),
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("f16c", std::arch::is_x86_feature_detected!("f16c")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ];
        known
            .into_iter()
            .filter(|(_, here)| *here)
            .map(|(name, _)| name)
            .collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        Vec::new()
    }
}

fn driver() -> Finding {
    let found = driver_version()
        .map_err(|error: GpuError| error.to_string())
        .map(|(major, minor)| {
            let version = format!("{major}.{minor}");
            (
                vec![format!("CUDA {version}")],
                json!({"found": true, "cuda_version": version}),
            )
        });
    Finding {
        key: "driver",
        name: "driver",
        purpose: "to compile PTX for the GPU and to launch it",
        found,
    }
}

fn gpus() -> Finding {
    let found = devices()
        .map_err(|error: GpuError| error.to_string())
        .map(|devices| {
            let values: Vec<Value> = devices.iter().map(device_json).collect();
            (
                devices.iter().map(device_line).collect(),
                json!({"found": true, "devices": values}),
            )
        });
    Finding {
        key: "gpu",
        name: "GPU",
        purpose: "to run and time kernels (`--on gpu`, `bench`)",
        found,
    }
}

fn device_line(device: &DeviceInfo) -> String {
    format!(
        "{}: {}, {}, {} SMs at {} MHz, {} GiB, {} MiB of L2, {} KiB of shared memory a block",
        device.ordinal,
        device.name,
        device.arch(),
        device.sm_count,
        device.clock_khz / 1000,
        device.memory_bytes >> 30,
        device.l2_bytes >> 20,
        device.shared_bytes_per_block >> 10
    )
}

fn device_json(device: &DeviceInfo) -> Value {
    json!({
        "ordinal": device.ordinal,
        "name": device.name,
        "arch": device.arch(),
        "compute_capability": [device.compute_capability.0, device.compute_capability.1],
        "sm_count": device.sm_count,
        "memory_bytes": device.memory_bytes,
        "l2_bytes": device.l2_bytes,
        "shared_bytes_per_block": device.shared_bytes_per_block,
        "shared_bytes_per_sm": device.shared_bytes_per_sm,
        "registers_per_sm": device.registers_per_sm,
        "clock_khz": device.clock_khz,
        "memory_clock_khz": device.memory_clock_khz,
        "memory_bus_bits": device.memory_bus_bits,
    })
}

fn cublas() -> Finding {
    let found = cublas::find()
        .map_err(|error: GpuError| error.to_string())
        .map(|path| {
            // Its version can be asked for only through a GPU.
            let version = Gpu::open(0)
                .and_then(|gpu| Cublas::new(&gpu)?.version())
                .ok();
            let version = version.map(|(major, minor, patch)| format!("{major}.{minor}.{patch}"));
            let line = version
                .as_ref()
                .map_or_else(|| path.clone(), |version| format!("{version} at {path}"));
            (
                vec![line],
                json!({"found": true, "path": path, "version": version}),
            )
        });
    Finding {
        key: "cublas",
        name: "cuBLAS",
        purpose: "as the yardstick of `bench`",
        found,
    }
}

fn cublaslt() -> Finding {
    let found = cublaslt::find().map_err(|error: GpuError| error.to_string());
    let found = found.map(|path| (vec![path.clone()], json!({"found": true, "path": path})));
    Finding {
        key: "cublaslt",
        name: "cublasLt",
        purpose: "as the yardstick of `bench` for 8-bit types",
        found,
    }
}

fn assembler() -> Finding {
    let found = ptxas::find()
        .map_err(|error| error.to_string())
        .map(|ptxas| {
            let (path, version) = (
                ptxas.path().display().to_string(),
                ptxas.version().to_owned(),
            );
            (
                vec![format!("{version} at {path}")],
                json!({"found": true, "path": path, "version": version}),
            )
        });
    Finding {
        key: "ptxas",
        name: "ptxas",
        purpose: "to tell a kernel's registers and spills without a GPU",
        found,
    }
}
