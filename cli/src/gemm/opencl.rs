//! `gemm --target opencl`: the kernel as OpenCL C, and on an OpenCL device if the command was built for that (feature `opencl`).
//!
//! ```text
//! --on auto      the first OpenCL device; without one, like `none`
//! --on opencl    the first OpenCL device
//! --on none      nowhere: the proofs, the text and the launch contract
//! ```

use std::collections::BTreeMap;

use tilewright::banks::{BankModel, MODELS, model_named};
use tilewright::host::{On, RunError, RunOptions};
use tilewright::kernels::gemm::opencl::EmittedOpenCl;
use tilewright::kernels::gemm::{DataType, Emitted};

use super::GemmArgs;
use super::select::{Device, Target};
use crate::error::CliError;

/// What the arguments mean: PTX, or OpenCL C with the banks of local memory.
pub(super) fn target(args: &GemmArgs) -> Result<Option<&'static BankModel>, CliError> {
    let wrong = |message: &str| Err(CliError::usage("target", message.to_owned()));
    let opencl = match (args.target, args.on) {
        (Some(Target::Ptx), Device::Opencl) => {
            return wrong(
                "an OpenCL device runs no PTX: leave out `--target ptx`, or give another `--on`",
            );
        }
        (Some(Target::Opencl), Device::Gpu | Device::Emulator) => {
            return wrong("OpenCL C runs on OpenCL devices: give `--on opencl` or `--on none`");
        }
        (Some(Target::Opencl), _) | (None, Device::Opencl) => true,
        (Some(Target::Ptx) | None, _) => false,
    };
    if !opencl {
        return match args.banks {
            Some(_) => {
                wrong("`--banks` goes with `--target opencl`: PTX is proven on NVIDIA's banks")
            }
            None => Ok(None),
        };
    }
    if args.arch != "auto" {
        return wrong(
            "`--arch` goes with `--target ptx`: OpenCL C is compiled for a device when it runs",
        );
    }
    let name = args.banks.as_deref().unwrap_or("amd-gcn");
    model_named(name)
        .filter(|model| !model.registers)
        .map(Some)
        .ok_or_else(|| {
            let known = MODELS.iter().filter(|m| !m.registers).map(|m| m.name);
            let known: Vec<_> = known.collect();
            CliError::usage(
                "unknown_model",
                format!(
                    "there is no model `{name}` of a banked memory; known are {}",
                    known.join(", ")
                ),
            )
        })
}

/// The name of the plan: for `auto` the one of the element type that has a form in OpenCL C.
pub(super) fn plan_name(asked: &str, data_type: DataType) -> Result<&str, CliError> {
    match (asked, data_type) {
        ("auto", DataType::F32) => Ok("sgemm-r700-64"),
        ("auto", DataType::F64) => Ok("dgemm-4x4"),
        ("auto", other) => Err(CliError::new(
            "no_opencl_form",
            format!("no plan in {other} has a form in OpenCL C: give `--dtype f32` or `f64`"),
        )),
        (name, _) => Ok(name),
    }
}

/// What the report reads of a kernel; its text is OpenCL C.
pub(super) fn emitted(kernel: &EmittedOpenCl) -> Emitted {
    Emitted {
        ptx: kernel.source.clone(),
        kernel: kernel.kernel.clone(),
        proof: kernel.proof.clone(),
        mix: None,
        address_registers: BTreeMap::new(),
    }
}

/// Where to run; none means nowhere.
pub(super) fn device(on: Device) -> Result<Option<On>, CliError> {
    if on == Device::None {
        return Ok(None);
    }
    match RunOptions::default().find(On::OpenCl) {
        Ok(_) => Ok(Some(On::OpenCl)),
        Err(error) if on == Device::Auto && error.means_no_device() => Ok(None),
        Err(RunError::NotBuilt { .. }) => {
            let message = "this tilewright was built without OpenCL devices: build it with `--features opencl`, or give `--on none`, which writes the kernel";
            Err(CliError::new("not_built", message))
        }
        Err(error) => {
            let message = format!("{error}; `--on none` needs no device");
            Err(CliError::new(error.code(), message))
        }
    }
}
