//! A bound run on the emulator.

use std::collections::HashMap;
use std::time::Duration;

use layout_codegen::prove::AccessProof;
use layout_codegen::tensor_map::{MapArgument, MapType};
use ptx_emulator::{
    Arg, Counters, GlobalMemory, InstructionCounter, Launch, Module, Options, Report,
    TensorElement, TensorMap, TensorSwizzle, run,
};

use super::arg::{Role, Scalar};
use super::bind::{Addresses, Bound, Here, Value, WORKSPACE_ALIGNMENT};
use super::error::RunError;
use super::outcome::CountedAccess;
use super::runnable::Runnable;
use super::stores;

/// What the emulator saw, and the buffers in the order of the parameters.
pub(crate) struct Emulated {
    pub(crate) report: Report,
    pub(crate) buffers: Vec<Vec<u8>>,
    /// Where they lay.
    pub(crate) addresses: Vec<u64>,
    /// What was stored otherwise than the kernel promises.
    pub(crate) miscounted: Vec<String>,
}

/// Places the buffers, each in an allocation of its own, and runs the launches in order.
///
/// Outputs and the workspace are NaN, and never written: reading them is a finding with [`Options::undefined_global`].
pub(crate) fn emulate(
    ptx: &str,
    bound: &Bound<'_>,
    options: &Options,
) -> Result<Emulated, RunError> {
    let module = Module::parse(ptx)?;
    let mut memory = GlobalMemory::new();
    let mut addresses = Addresses {
        buffers: Vec::new(),
        workspace: 0,
    };
    for (_, buffer) in &bound.buffers {
        let address = memory.alloc(buffer.len as u64, buffer.alignment)?;
        match &buffer.content {
            Some(content) if buffer.role != Role::Output => memory.write(address, content)?,
            _ => memory.poison(address, buffer.len as u64)?,
        }
        addresses.buffers.push(address);
    }
    addresses.workspace = memory.alloc(bound.workspace_bytes, WORKSPACE_ALIGNMENT)?;
    memory.poison(addresses.workspace, bound.workspace_bytes)?;
    stores::count(bound, &mut memory, &addresses)?;
    let mut runs: Vec<(&str, Report)> = Vec::new();
    for bound in &bound.steps {
        let step = &bound.step;
        let args = bound.values.iter().map(|v| arg(v, &addresses));
        let launch = Launch {
            grid: step.grid,
            block: step.block,
            cluster: step.cluster,
            dynamic_shared: step.shared_bytes,
            args: args.collect::<Result<_, _>>()?,
            ..Launch::default()
        };
        let report = run(&module, &step.entry, &launch, &mut memory, options)?;
        runs.push((&step.entry, report));
    }
    let buffers = bound
        .buffers
        .iter()
        .zip(&addresses.buffers)
        .map(|((_, buffer), &address)| memory.read(address, buffer.len))
        .collect::<Result<_, _>>()?;
    Ok(Emulated {
        report: merged(runs),
        miscounted: stores::miscounted(bound, &memory, &addresses)?,
        buffers,
        addresses: addresses.buffers,
    })
}

fn arg(value: &Value, addresses: &Addresses) -> Result<Arg, RunError> {
    let scalar = match addresses.of(value) {
        Here::Address(address) => return Ok(Arg::Ptr(address)),
        Here::TensorMap(address, map) => return tensor_map(address, map),
        Here::Scalar(scalar) => scalar,
    };
    Ok(match scalar {
        Scalar::U32(v) => Arg::U32(*v),
        Scalar::I32(v) => Arg::S32(*v),
        Scalar::U64(v) => Arg::U64(*v),
        Scalar::I64(v) => Arg::U64(*v as u64),
        Scalar::F32(v) => Arg::F32(*v),
        Scalar::F64(v) => Arg::F64(*v),
        Scalar::Bytes(bytes) => Arg::Bytes(bytes.clone()),
    })
}

/// A tensor map in the emulator's encoding.
fn tensor_map(address: u64, of: &MapArgument) -> Result<Arg, RunError> {
    let encoding = of.encoding();
    let element = match encoding.data_type {
        MapType::U8 => TensorElement::U8,
        MapType::U16 => TensorElement::U16,
        MapType::U32 => TensorElement::U32,
        MapType::U64 => TensorElement::U64,
        MapType::Tf32 => TensorElement::Tf32,
    };
    let map = TensorMap {
        sizes: encoding.sizes,
        strides: encoding.strides_bytes,
        box_sizes: encoding.box_sizes,
        element_strides: encoding.element_strides,
        swizzle: match encoding.swizzle_bytes {
            32 => TensorSwizzle::Bytes32,
            64 => TensorSwizzle::Bytes64,
            128 => TensorSwizzle::Bytes128,
            _ => TensorSwizzle::None,
        },
        ..TensorMap::new(element, address)
    };
    let encoded = map.encode().map_err(|e| RunError::Refused {
        reason: e.to_string(),
    })?;
    Ok(Arg::Bytes(encoded.to_vec()))
}

/// One report of several launches, each with the name of its kernel: an entry of the text that is launched twice counts twice.
fn merged(runs: Vec<(&str, Report)>) -> Report {
    let mut all = Report {
        findings: Vec::new(),
        notes: Vec::new(),
        total_findings: 0,
        counters: Counters::default(),
        printed: String::new(),
        blocks: 0,
        wall: Duration::ZERO,
    };
    // Where the instructions of each kernel begin.
    let mut starts: HashMap<&str, usize> = HashMap::new();
    for (kernel, report) in runs {
        all.findings.extend(report.findings);
        all.notes.extend(report.notes);
        all.total_findings += report.total_findings;
        all.printed.push_str(&report.printed);
        all.blocks += report.blocks;
        all.wall += report.wall;
        let (sum, one) = (&mut all.counters, report.counters);
        sum.warp_instructions += one.warp_instructions;
        sum.lane_instructions += one.lane_instructions;
        sum.wavefronts += one.wavefronts;
        sum.ideal_wavefronts += one.ideal_wavefronts;
        let Some(&start) = starts.get(kernel) else {
            starts.insert(kernel, sum.instructions.len());
            sum.instructions.extend(one.instructions);
            continue;
        };
        for (sum, one) in sum.instructions[start..].iter_mut().zip(one.instructions) {
            add(sum, &one);
        }
    }
    all
}

/// Adds the counts of an instruction in another launch.
fn add(sum: &mut InstructionCounter, one: &InstructionCounter) {
    if one.warps > 0 {
        (sum.min_wavefronts, sum.max_wavefronts) = if sum.warps > 0 {
            (
                sum.min_wavefronts.min(one.min_wavefronts),
                sum.max_wavefronts.max(one.max_wavefronts),
            )
        } else {
            (one.min_wavefronts, one.max_wavefronts)
        };
    }
    sum.warps += one.warps;
    sum.lanes += one.lanes;
    sum.wavefronts += one.wavefronts;
    sum.ideal_wavefronts += one.ideal_wavefronts;
}

/// What each proven access of a kernel cost, and the executed shared accesses that no proof covers.
pub(crate) fn accesses<K: Runnable + ?Sized>(
    kernel: &K,
    report: &Report,
) -> (Vec<CountedAccess>, Vec<String>) {
    let mut covered = Vec::new();
    let counted = |proof: AccessProof| {
        let lines = kernel.lines_of(&proof.access);
        let executed = report.counters.instructions.iter();
        let executed = executed.filter(|i| lines.contains(&(i.line as usize)) && i.warps > 0);
        let (mut wavefronts, mut all_lanes) = (None, true);
        for i in executed {
            let (least, most) = wavefronts.unwrap_or((u32::MAX, 0));
            wavefronts = Some((least.min(i.min_wavefronts), most.max(i.max_wavefronts)));
            all_lanes &= i.lanes == 32 * i.warps;
        }
        covered.extend(lines);
        CountedAccess {
            proof,
            wavefronts,
            all_lanes,
        }
    };
    let counted: Vec<CountedAccess> = kernel.accesses().into_iter().map(counted).collect();
    let unproven = report
        .counters
        .shared()
        .filter(|i| !covered.contains(&(i.line as usize)))
        // The bank model is of a block's own memory.
        .filter(|i| !i.opcode.contains("shared::cluster"))
        .map(|i| format!("line {}, {}", i.line, i.opcode))
        .collect();
    (counted, unproven)
}
