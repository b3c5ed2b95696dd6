//! Kernels that are launched one after the other, as one that can be run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use layout_codegen::prove::AccessProof;
use layout_codegen::{Arch, Formulas, Module, ModuleError, Proven};
use tilewright_kernels::KernelError;

use crate::host::run::bind::WORKSPACE_ALIGNMENT;
use crate::host::run::proven::program;
use crate::host::{Launches, Param, Role, RunError, Runnable, Scalars, Step, StepArg};

/// Kernels in one module, launched in order on one stream. What one writes and a later one reads lies in the workspace of the launches; all other tensors are parameters.
///
/// ```
/// use tilewright::codegen::Arch;
/// use tilewright::codegen::ir::Element;
/// use tilewright::host::Runnable as _;
/// use tilewright::host::kernels::{NormBackward, Problem as _};
/// use tilewright::kernels::norm::Norm;
///
/// let problem = NormBackward::new(Norm::Rms, Element::Bf16, 100, 512);
/// let kernels = problem.sequence(Arch(80))?;
/// assert_eq!(kernels.entry(), "rms_norm_backward_bf16");
/// assert!(kernels.ptx().contains(".entry rms_norm_backward_bf16_sums"));
/// assert_eq!(kernels.results(), ["dx", "dw"]);
/// # Ok::<(), tilewright::kernels::KernelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sequence {
    ptx: String,
    kernels: Vec<Proven>,
}

impl Sequence {
    /// Kernels in the order of their launches; the first gives the sequence its name.
    ///
    /// # Errors
    ///
    /// [`KernelError::Proof`] for what the architecture does not have.
    pub fn new(kernels: Vec<Proven>, arch: Arch) -> Result<Self, KernelError> {
        let ptx = match &kernels[..] {
            [one] => one.ptx.clone(),
            all => {
                let entries = all.iter().map(|kernel| kernel.entry().clone());
                match Module::build(entries, arch) {
                    Ok(module) => module.ptx,
                    Err(ModuleError::Unproven { error, .. }) => return Err(error.into()),
                    // That is of another language.
                    Err(ModuleError::OpenCl(_)) => String::new(),
                }
            }
        };
        Ok(Self { ptx, kernels })
    }

    /// The kernels.
    pub fn kernels(&self) -> &[Proven] {
        &self.kernels
    }

    /// The outputs of which every element is written exactly once, without those that a later kernel reads.
    pub fn results(&self) -> Vec<&str> {
        let passed = self.passed();
        let covered = self.kernels.iter().flat_map(|k| &k.proof.covered);
        let covered = covered.map(String::as_str);
        covered.filter(|name| !passed.contains(name)).collect()
    }

    /// The names of the tensors that one kernel writes and a later one reads.
    fn passed(&self) -> Vec<&str> {
        let mut written: Vec<&str> = Vec::new();
        let mut passed: Vec<&str> = Vec::new();
        for kernel in &self.kernels {
            let covered = &kernel.proof.covered;
            for param in Proven::params(kernel) {
                let name = param.name.as_str();
                if written.contains(&name) && !passed.contains(&name) {
                    passed.push(name);
                }
            }
            written.extend(covered.iter().map(String::as_str));
        }
        passed
    }

    /// The name of an access of kernel `number`: that of the kernel comes first where there are several kernels.
    fn named(&self, number: usize, access: &str) -> String {
        match number {
            0 => access.to_owned(),
            _ => format!("{}: {access}", self.kernels[number].name()),
        }
    }
}

impl Runnable for Sequence {
    fn ptx(&self) -> &str {
        &self.ptx
    }

    fn entry(&self) -> &str {
        self.kernels.first().map_or("", Proven::name)
    }

    fn opencl(&self) -> Result<Cow<'_, str>, RunError> {
        let kernels = self.kernels.iter().map(|kernel| kernel.entry().clone());
        program(&kernels.collect::<Vec<_>>())
    }

    fn params(&self) -> Vec<Param> {
        let passed = self.passed();
        let mut all: Vec<Param> = Vec::new();
        for param in self.kernels.iter().flat_map(Runnable::params) {
            if passed.contains(&param.name.as_str()) {
                continue;
            }
            match all.iter_mut().find(|known| known.name == param.name) {
                None => all.push(param),
                // The kernels take what each of them takes.
                Some(known) => {
                    known.alignment = known.alignment.max(param.alignment);
                    known.range = match (known.range, param.range) {
                        (Some(a), Some(b)) => Some((a.0.max(b.0), a.1.min(b.1))),
                        (a, b) => a.or(b),
                    };
                    if known.role != param.role {
                        known.role = Some(Role::InOut);
                    }
                }
            }
        }
        all
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let passed = self.passed();
        let mut offsets: BTreeMap<String, u64> = BTreeMap::new();
        let mut all = Launches::default();
        for kernel in &self.kernels {
            let mut one = Runnable::launches(kernel, scalars)?;
            for (name, bytes) in one.least_bytes {
                if passed.contains(&name.as_str()) {
                    if let std::collections::btree_map::Entry::Vacant(new) = offsets.entry(name) {
                        new.insert(all.workspace_bytes);
                        all.workspace_bytes += bytes.next_multiple_of(WORKSPACE_ALIGNMENT);
                    }
                    continue;
                }
                match all.least_bytes.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = bytes.max(*known),
                    None => all.least_bytes.push((name, bytes)),
                }
            }
            let new = |(name, _): &(String, _)| {
                !passed.contains(&name.as_str())
                    && all.stores.iter().all(|(known, _)| known != name)
            };
            let stores: Vec<_> = one.stores.into_iter().filter(new).collect();
            all.stores.extend(stores);
            all.stated.extend(one.stated);
            for arg in one.steps.iter_mut().flat_map(|step| &mut step.args) {
                if let StepArg::Argument(name) = arg
                    && let Some(offset) = offsets.get(name)
                {
                    *arg = StepArg::Workspace(*offset);
                }
            }
            all.steps.extend(one.steps);
        }
        Ok(all)
    }

    fn any_size(&self) -> Option<(Step, Formulas)> {
        match &self.kernels[..] {
            [one] => one.any_size(),
            _ => None,
        }
    }

    fn accesses(&self) -> Vec<AccessProof> {
        let mut all = Vec::new();
        for (number, kernel) in self.kernels.iter().enumerate() {
            all.extend(Proven::accesses(kernel).into_iter().map(|a| AccessProof {
                access: self.named(number, &a.access),
                ..a
            }));
        }
        all
    }

    /// Of the kernel that the access is of.
    fn lines_of(&self, access: &str) -> Vec<usize> {
        let own = |line: &str, tag: &str| {
            let rest = line.trim_end().strip_suffix(tag);
            rest.is_some_and(|rest| rest.trim_end().ends_with("//"))
        };
        let (mut lines, mut number) = (Vec::new(), None);
        for (i, line) in self.ptx.lines().enumerate() {
            if line.contains(".entry ") {
                number = Some(number.map_or(0, |n: usize| n + 1));
            }
            let tag = match number {
                None | Some(0) => Some(access),
                Some(n) => {
                    let of = self.kernels.get(n).map_or("", Proven::name);
                    access.strip_prefix(of).and_then(|a| a.strip_prefix(": "))
                }
            };
            if tag.is_some_and(|tag| own(line, tag)) {
                lines.push(i + 1);
            }
        }
        lines
    }
}
