//! Kernels of one's own, proven, as kernels that can be run: everything a launch needs is in their contract.

use std::borrow::Cow;
use std::slice;

use layout_codegen::ir::{Entry, ParamKind};
use layout_codegen::print::opencl::{self, OpenClError};
use layout_codegen::prove::{AccessProof, Assumed};
use layout_codegen::{Formulas, Proven, Usage};

use super::arg::Role;
use super::error::RunError;
use super::runnable::{Launches, Param, ParamType, Runnable, Scalars, Step, StepArg, Stores};

/// Kernels as one program in OpenCL C.
pub(in crate::host) fn program<'t>(kernels: &[Entry]) -> Result<Cow<'t, str>, RunError> {
    let refused = |e: OpenClError| RunError::NoOpenCl {
        reason: e.to_string(),
    };
    let text = opencl::program(kernels, &[]).map_err(refused)?;
    Ok(text.into())
}

/// Ranges of sizes and alignments of pointers are those that the kernel was proven for. The grid covers the sizes; if it has no
/// blocks along an axis, nothing is launched.
///
/// ```
/// use tilewright::Layout;
/// use tilewright::codegen::Arch;
/// use tilewright::codegen::ir::{Axis, Element, Kernel};
/// use tilewright::host::{Arg, On, run};
///
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let block = k.tiles(Axis::X, n, 512)?;
/// let (thread, threads) = (k.thread(), Layout::parse("(128,4):(1,128)")?);
/// let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &threads, thread)?;
/// k.copy(&x, &y)?;
/// let copy = k.build(Arch(80))?;
///
/// let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
/// let args = |n: u32| [("n", Arg::from(n)), ("x", Arg::input(&values)), ("y", Arg::output::<f32>(1000))];
/// let outcome = run(&copy, On::Emulator, args(1000))?;
/// outcome.assert_clean();
/// assert_eq!(outcome.get::<f32>("y")?, values);
///
/// assert_eq!(run(&copy, On::Emulator, args(0))?.launches, 0);
/// let error = run(&copy, On::Emulator, args(1001)).unwrap_err();
/// assert_eq!(error.code(), "buffer_too_short");
/// let error = run(&copy, On::Emulator, args(1 << 31)).unwrap_err();
/// assert_eq!(error.to_string(), "`n` is 2147483648, and the kernel takes 0 to 1073741824");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Runnable for Proven {
    fn ptx(&self) -> &str {
        &self.ptx
    }

    fn entry(&self) -> &str {
        self.name()
    }

    fn opencl(&self) -> Result<Cow<'_, str>, RunError> {
        program(slice::from_ref(Proven::entry(self)))
    }

    fn params(&self) -> Vec<Param> {
        let param = |param: &layout_codegen::ir::Param| match param.kind {
            ParamKind::Pointer => {
                let buffer = self.buffer(&param.name);
                let (element, alignment, usage) = buffer.unwrap_or((None, 1, Usage::InOut));
                let role = match usage {
                    Usage::Input => Role::Input,
                    Usage::Output => Role::Output,
                    Usage::InOut | Usage::Partial | Usage::Combined => Role::InOut,
                };
                Param::new(&param.name, ParamType::Pointer(element.map(Into::into)))
                    .aligned_to(alignment)
                    .used_as(role)
            }
            kind => {
                let typed = Param::new(&param.name, kind.into());
                match param.most {
                    Some(most) => typed.in_range(0..=most.into()),
                    None => typed,
                }
            }
        };
        // Tensor maps are made of the buffers.
        let given = Proven::params(self).iter();
        let given = given.filter(|p| p.kind != ParamKind::TensorMap);
        given.map(param).collect()
    }

    fn launches(&self, scalars: &Scalars<'_>) -> Result<Launches, RunError> {
        let size = |name: &str| scalars.size(name).ok();
        let grid = self.grid(size)?;
        let buffers = self.buffers(size)?;
        let stores = buffers.iter().filter_map(|b| {
            let stores = match b.usage {
                Usage::Input => Stores::Never,
                Usage::Output | Usage::InOut => Stores::Once,
                Usage::Partial => Stores::AtMostOnce,
                Usage::Combined => return None,
            };
            Some((b.name.clone(), stores))
        });
        let stores = stores.collect();
        let stated = self.stated(size);
        let least_bytes = buffers.into_iter().map(|b| (b.name, b.bytes)).collect();
        if grid.contains(&0) {
            return Ok(Launches {
                least_bytes,
                stores,
                stated,
                ..Launches::default()
            });
        }
        let maps = self.tensor_maps(size)?;
        let args = Proven::params(self).iter().map(|p| {
            let map = maps.iter().find(|(name, ..)| *name == p.name);
            match map {
                Some((_, buffer, map)) => StepArg::TensorMap(Some(buffer.clone()), 0, *map),
                None => StepArg::Argument(p.name.clone()),
            }
        });
        let step = Step {
            entry: self.name().to_owned(),
            grid,
            block: self.block(),
            cluster: self.cluster(),
            shared_bytes: self.shared_bytes(),
            args: args.collect(),
        };
        Ok(Launches {
            steps: vec![step],
            workspace_bytes: 0,
            least_bytes,
            stores,
            stated,
        })
    }

    /// The grid of the step is that of no sizes.
    fn any_size(&self) -> Option<(Step, Formulas)> {
        let args = Proven::params(self).iter();
        let step = Step {
            entry: self.name().to_owned(),
            grid: [0; 3],
            block: self.block(),
            cluster: self.cluster(),
            shared_bytes: self.shared_bytes(),
            args: args.map(|p| StepArg::Argument(p.name.clone())).collect(),
        };
        Some((step, self.formulas()?))
    }

    fn accesses(&self) -> Vec<AccessProof> {
        Proven::accesses(self)
    }

    fn assumptions(&self) -> &[Assumed] {
        &self.proof.assumptions
    }
}
