//! Modules that are loaded once, assembled by ptxas where there is one.
//!
//! The driver compiles one PTX text at a time in each process, however many threads ask. ptxas is a process of its own, so that a program
//! with many texts (a test suite) assembles as many at a time as there are cores.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::device::Gpu;
use crate::error::GpuError;
use crate::module::Module;
use crate::ptxas::Ptxas;

/// A text's machine code, if ptxas made any, and its module.
#[derive(Default)]
struct Text {
    cubin: OnceLock<Option<Vec<u8>>>,
    module: OnceLock<Result<Module, GpuError>>,
}

/// The modules of one GPU by their texts.
pub(crate) struct Kept {
    ptxas: Option<Ptxas>,
    texts: Mutex<HashMap<String, Arc<Text>>>,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("ptxas", &self.ptxas)
            .finish_non_exhaustive()
    }
}

impl Kept {
    pub(crate) fn new(ptxas: Option<Ptxas>) -> Self {
        Self {
            ptxas,
            texts: Mutex::new(HashMap::new()),
        }
    }

    /// Has ptxas assemble a text, if it is there. Threads that ask for the same text wait for the first; others do not.
    pub(crate) fn assemble(&self, gpu: &Gpu, ptx: &str) {
        self.text(ptx).cubin.get_or_init(|| self.cubin(gpu, ptx));
    }

    /// The module of a text, assembled by ptxas if it is there and takes the text; else by the driver, whose refusal is the one that counts.
    pub(crate) fn load(&self, gpu: &Gpu, ptx: &str) -> Result<Module, GpuError> {
        let text = self.text(ptx);
        let load = || {
            let cubin = text.cubin.get_or_init(|| self.cubin(gpu, ptx));
            let assembled = cubin.as_ref().and_then(|c| gpu.load_cubin(c).ok());
            assembled.map_or_else(|| Module::load_ptx(gpu, ptx), Ok)
        };
        text.module.get_or_init(load).clone()
    }

    fn text(&self, ptx: &str) -> Arc<Text> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        match texts.get(ptx) {
            Some(text) => text.clone(),
            None => texts.entry(ptx.to_owned()).or_default().clone(),
        }
    }

    fn cubin(&self, gpu: &Gpu, ptx: &str) -> Option<Vec<u8>> {
        let ptxas = self.ptxas.as_ref()?;
        let assembly = ptxas.assemble(ptx, &target(ptx, &gpu.info().arch()));
        assembly.ok().map(|assembly| assembly.cubin)
    }
}

/// What to assemble a text for: this GPU's architecture, or the text's own target if it has features of that one alone (`sm_90a`).
fn target(ptx: &str, gpu: &str) -> String {
    let targets = ptx
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(".target"));
    let own = targets
        .filter_map(|rest| {
            rest.split([',', ' ', '\t', '/'])
                .find(|word| !word.is_empty())
        })
        .find(|word| word.ends_with(['a', 'f']));
    own.unwrap_or(gpu).to_owned()
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn a_text_is_assembled_for_the_gpu_unless_it_names_features() {
        for (text, expected) in [
            (".version 8.0\n.target sm_80\n", "sm_90"),
            (".version 8.0\n.target sm_90a\n", "sm_90a"),
            (
                ".version 8.0\n  .target\tsm_100f, texmode_independent // x",
                "sm_100f",
            ),
            ("// .target sm_90a\n.target sm_75, debug\n", "sm_90"),
            ("", "sm_90"),
        ] {
            assert_eq!(target(text, "sm_90"), expected, "{text}");
        }
    }
}
