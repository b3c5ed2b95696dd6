//! Mutants of kernels that are written with the layer: rings over TMA between roles, persistent blocks, clusters, products in a row, boxes of fragments, and bounds that come from data.
//!
//! The kernels are those of `examples/hopper_gemm.rs`, `tests/layer` and the pages on custom kernels, with smaller tiles. Their launch contract says how they are run. A mutant that is
//! proven must be clean and have the result of the kernel, bit by bit.

mod attention;
mod data;
pub(super) mod hopper;
mod remote;

use ptx_emulator::{
    Arg, GlobalMemory, Launch, Module, Options, TensorElement, TensorMap, TensorSwizzle, run,
};

use super::mma::encoded;
use super::{Subject, judged};
use crate::ir::{Element, Entry, Kernel, ParamKind};
use crate::view::ViewError;
use crate::{Arch, Proven, Usage};

/// What a launch is given: sizes and inputs by the names of their parameters, inputs as whole numbers.
struct Given {
    sizes: Vec<(&'static str, u64)>,
    inputs: Vec<(&'static str, Vec<i64>)>,
}

impl Given {
    fn size(&self, name: &str) -> Option<u64> {
        let (_, size) = self.sizes.iter().find(|(known, _)| *known == name)?;
        Some(*size)
    }

    /// Runs a text in place of the kernel's: its outputs, one after the other, or what is found.
    fn outputs(&self, kernel: &Proven, text: &str) -> Result<Vec<Vec<u8>>, String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let module = Module::parse(text).map_err(|e| said(&e))?;
        let mut memory = GlobalMemory::new();
        let size = |name: &str| self.size(name);
        let mut places = Vec::new();
        for buffer in kernel.buffers(size).map_err(|e| said(&e))? {
            let at = memory
                .alloc(buffer.bytes.max(1), 256)
                .map_err(|e| said(&e))?;
            let given = self.inputs.iter().find(|(name, _)| *name == buffer.name);
            let element = kernel
                .buffer(&buffer.name)
                .and_then(|(element, ..)| element);
            if let (Some((_, all)), Some(element)) = (given, element) {
                let bytes: Vec<u8> = all.iter().flat_map(|&x| encoded(x, element)).collect();
                memory.write(at, &bytes).map_err(|e| said(&e))?;
            }
            places.push((buffer, at));
        }
        let address = |name: &str| {
            let place = places.iter().find(|(buffer, _)| buffer.name == name);
            place.map(|(_, at)| *at).expect("a buffer")
        };
        let maps = kernel.tensor_maps(size).map_err(|e| said(&e))?;
        let args = kernel.params().iter().map(|p| match p.kind {
            ParamKind::Pointer => Arg::Ptr(address(&p.name)),
            ParamKind::TensorMap => {
                let (_, of, map) = maps
                    .iter()
                    .find(|(name, ..)| *name == p.name)
                    .expect("a map");
                let element = match map.element.bytes() {
                    1 => TensorElement::U8,
                    2 => TensorElement::U16,
                    _ => TensorElement::U32,
                };
                let mut own = TensorMap::new(element, address(of));
                (own.sizes, own.strides) = (map.sizes(), map.strides_bytes());
                own.box_sizes = map.box_sizes();
                own.swizzle = match map.swizzle_bytes {
                    32 => TensorSwizzle::Bytes32,
                    64 => TensorSwizzle::Bytes64,
                    _ => TensorSwizzle::Bytes128,
                };
                Arg::Bytes(own.encode().expect("a map").to_vec())
            }
            _ => Arg::U32(self.size(&p.name).expect("a size") as u32),
        });
        let launch = Launch {
            grid: kernel.grid(size).map_err(|e| said(&e))?,
            block: kernel.block(),
            cluster: kernel.cluster(),
            dynamic_shared: kernel.shared_bytes(),
            args: args.collect(),
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 17,
            global_races: true,
            lane_races: true,
            ..Options::default()
        };
        let report = run(&module, kernel.name(), &launch, &mut memory, &options);
        if let Some(finding) = report.map_err(|e| said(&e))?.findings.first() {
            return Err(format!("{finding:?}"));
        }
        let written = places.iter().filter(|(b, _)| b.usage != Usage::Input);
        let read = written.map(|(b, at)| memory.read(*at, b.bytes as usize));
        read.collect::<Result<_, _>>().map_err(|e| said(&e))
    }
}

/// Whole numbers from -3 to 3.
fn numbers(count: u64, seed: u64) -> Vec<i64> {
    let number = |i: u64| ((i * 7 + seed * 5 + i / 13 + i / 64) % 7) as i64 - 3;
    (0..count).map(number).collect()
}

/// A kernel with its launches, each with its outputs as whole numbers of a type; without outputs, a run has to be clean and nothing else.
fn subject(
    name: &str,
    kernel: Result<Kernel, ViewError>,
    launches: Vec<(Given, Vec<i64>, Element)>,
) -> Subject {
    let kernel = kernel.expect("it is built").build(Arch(90));
    let kernel = kernel.unwrap_or_else(|e| panic!("{name}: {e}"));
    let entry: Entry = kernel.entry().clone();
    let judge = move |text: &str| {
        launches.iter().find_map(|(given, wanted, element)| {
            let sizes = &given.sizes;
            let found = match given.outputs(&kernel, text) {
                Ok(found) => found.concat(),
                Err(finding) => return Some(format!("{sizes:?}: {finding}")),
            };
            let wanted: Vec<u8> = wanted.iter().flat_map(|&x| encoded(x, *element)).collect();
            let size = element.bytes() as usize;
            let (found, mut pairs) = (found.chunks(size), wanted.chunks(size).enumerate());
            if wanted.is_empty() {
                return None;
            }
            if found.len() != wanted.len() / size {
                return Some(format!("{sizes:?}: {} elements", found.len()));
            }
            let mut found = found;
            let wrong = pairs.find(|(_, wanted)| found.next() != Some(wanted));
            wrong.map(|(i, _)| format!("{sizes:?}: element {i} is wrong"))
        })
    };
    Subject {
        name: name.to_owned(),
        entry,
        others: Vec::new(),
        judge: Box::new(judge),
    }
}

/// Tries the mutants of kernels, at most `most` of a kind each, of which there must be `least`.
fn none_is_refuted(subjects: Vec<Subject>, most: usize, least: usize) {
    let mut all = 0;
    for subject in subjects {
        let (made, refuted) = judged(&subject, most);
        assert!(
            refuted.is_empty(),
            "accepted, and refuted:\n{}",
            refuted.join("\n")
        );
        all += made;
    }
    assert!(all >= least, "{all} mutants");
}
