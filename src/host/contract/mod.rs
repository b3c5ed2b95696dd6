//! The launch contract of any kernel: what a host program passes to the driver, as values, as JSON and as source text.
//!
//! ```text
//! Runnable, scalar arguments ──▶ Contract ──▶ to_json() | host(Rust | Cudarc | C | Python)
//! ```
//!
//! The values are those for the given sizes and numbers, and so is the JSON; the addresses of the buffers stay open. The source text of a host takes sizes and
//! numbers as arguments, and computes grid and checks from them for every size that the kernel was proven for:
//!
//! ```text
//! launches(x, y, n=1000)     grid ((n + 511) / 512, 1, 1), x and y of n * 4 bytes, n at most 2^30
//! ```

mod c;
mod cudarc;
mod formula;
mod json;
mod language;
mod python;
mod rust;

use layout_codegen::Formulas;
use layout_codegen::prove::Assumed;
use layout_codegen::tensor_map::MapEncoding;
use tilewright_kernels::gemm::Declared;

pub use language::{Language, UnknownLanguage};

use super::run::bind::check_scalars;
use super::run::{
    Launches, Param, ParamType, Role, RunError, Runnable, Scalar, Scalars, Step, StepArg,
};

/// What the workspace's address is a multiple of, in bytes.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// The launches of a kernel for given scalar arguments, complete but for the addresses of its buffers.
///
/// ```
/// use tilewright::codegen::{Arch, ir::{Axis, Element, Kernel}};
/// use tilewright::host::{Contract, Language, Scalar};
/// use tilewright::layout;
///
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let (block, thread, share) = (k.tiles(Axis::X, n, 512)?, k.thread(), layout!((128,4):(1,128)));
/// let x = x.tile(&mut k, &[512], &[block])?.partition(&mut k, &share, thread)?;
/// let y = y.tile(&mut k, &[512], &[block])?.partition(&mut k, &share, thread)?;
/// k.copy(&x, &y)?;
/// let copy = k.build(Arch(80))?;
///
/// let contract = Contract::new(&copy, [("n", Scalar::U32(1000))])?;
/// assert_eq!((contract.launches[0].step.grid, contract.buffers[1].bytes), ([2, 1, 1], Some(4000)));
/// assert_eq!(contract.to_json()["params"][0]["value"], 1000);
/// let host = contract.host(Language::Python)?;
/// assert!(host.contains("def launches(x, y, *, n):") && host.contains("(n + 511) // 512"));
///
/// let error = Contract::new(&copy, [("n", Scalar::U32(1 << 31))]).unwrap_err();
/// assert_eq!(error.to_string(), "`n` is 2147483648, and the kernel was proven for at most 1073741824");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Contract {
    /// What the launches do, a sentence each: the head of a host's source text.
    pub about: Vec<String>,
    /// The name of the main kernel's entry.
    pub entry: String,
    /// The sizes of the problem, by name: the integers among the scalar arguments.
    pub sizes: Vec<(String, u64)>,
    /// The buffers of the launches; the workspace is the last, if there is one.
    pub buffers: Vec<ContractBuffer>,
    /// Bytes of device memory that the launches pass data through, at a multiple of 256; its contents before the launches do not matter.
    pub workspace_bytes: u64,
    /// The launches, in order, on one stream; none if there is nothing to do.
    pub launches: Vec<ContractLaunch>,
    /// What the kernel's author states and the proof takes as facts.
    pub assumptions: Vec<Assumed>,
    /// What is launched for any sizes, if that is known.
    any_size: Option<AnySize>,
}

/// The launch of a kernel for any sizes.
#[derive(Clone, PartialEq, Debug)]
struct AnySize {
    formulas: Formulas,
    /// The parameters that are no buffers.
    scalars: Vec<(String, ParamType)>,
    /// Its grid is that of no sizes.
    launch: ContractLaunch,
}

/// A buffer of a [`Contract`]. One that is written overlaps no other: kernels read their inputs by `ld.global.nc` and by TMA, for which memory does not
/// change while the kernel runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContractBuffer {
    /// Its name.
    pub name: String,
    /// The type of its elements, where it is known.
    pub element: Option<super::BufferType>,
    /// Bytes from its address on that the kernels touch; `None` if nobody says.
    pub bytes: Option<u64>,
    /// What its address is a multiple of, in bytes.
    pub alignment: u64,
    /// What the kernels do with it; [`Role::InOut`] if nobody says.
    pub role: Role,
}

/// One launch of a [`Contract`].
#[derive(Clone, PartialEq, Debug)]
pub struct ContractLaunch {
    /// The entry, its grid, block and cluster, and a value for each parameter. A [`StepArg::Argument`] is the address of the buffer of that name.
    pub step: Step,
    /// The names of the parameters.
    pub names: Vec<String>,
    /// The text declares the cluster, so that the launch needs no attribute.
    pub cluster_declared: bool,
    /// The kernel waits for the one before it on the stream, and may begin beside it.
    pub beside_previous: bool,
}

impl Contract {
    /// The contract of a kernel for these scalar arguments, one for each parameter that is not a buffer.
    ///
    /// # Errors
    ///
    /// [`RunError`] for an argument that is missing, of another type, out of range, or not a parameter of the kernel, for what the kernel itself refuses, and
    /// for a parameter that is a structure, which has no text.
    pub fn new<'s>(
        kernel: &dyn Runnable,
        scalars: impl IntoIterator<Item = (&'s str, Scalar)>,
    ) -> Result<Self, RunError> {
        let given: Vec<(&str, Scalar)> = scalars.into_iter().collect();
        let params = kernel.params();
        let pairs: Vec<(&str, &Scalar)> = given.iter().map(|(name, s)| (*name, s)).collect();
        let launches = kernel.launches(&Scalars(&pairs))?;
        check_scalars(&params, &given)?;
        let buffers = buffers(&params, &given, &launches)?;
        let steps = launches.steps.into_iter();
        let steps = steps.map(|step| launch(kernel, step, &given));
        let any_size = kernel.any_size().map(|(step, formulas)| {
            let scalars = params
                .iter()
                .filter(|p| scalar_of(&given, &p.name).is_some());
            Ok::<_, RunError>(AnySize {
                formulas,
                scalars: scalars.map(|p| (p.name.clone(), p.ty)).collect(),
                launch: launch(kernel, step, &[])?,
            })
        });
        let any_size = any_size.transpose()?;
        let sizes: Vec<(String, u64)> = given
            .iter()
            .filter_map(|(name, s)| Some(((*name).to_owned(), s.integer()?.try_into().ok()?)))
            .collect();
        let of_sizes = if any_size.is_some() { &[] } else { &given[..] };
        let about = about(kernel.entry(), of_sizes);
        Ok(Self {
            about,
            entry: kernel.entry().to_owned(),
            sizes,
            buffers,
            workspace_bytes: launches.workspace_bytes,
            launches: steps.collect::<Result<_, _>>()?,
            assumptions: kernel.assumptions().to_vec(),
            any_size,
        })
    }

    /// Source text of a host in a language. It depends on nothing: it names the kernels, their grids and the values of their parameters, checks the buffers'
    /// addresses, and leaves the launch to the program that includes it; that for cudarc launches.
    ///
    /// The text of a custom kernel takes its sizes and other numbers as arguments, and checks that it was proven for them. The text of a GEMM, of PTX
    /// from elsewhere, and of a kernel with tensor maps is for the sizes of this contract.
    ///
    /// # Errors
    ///
    /// [`RunError::Refused`] for cudarc and launches with tensor maps or clusters, which its interface does not have.
    pub fn host(&self, language: Language) -> Result<String, RunError> {
        match language {
            Language::Rust => Ok(rust::text(self)),
            Language::Cudarc => cudarc::text(self),
            Language::C => Ok(c::text(self)),
            Language::Python => Ok(python::text(self)),
        }
    }

    /// The launches that a text has.
    fn written(&self) -> &[ContractLaunch] {
        let any_size = self.any_size.as_ref();
        any_size.map_or(&self.launches, |any| std::slice::from_ref(&any.launch))
    }

    /// The type of a scalar argument that a text takes.
    fn scalar(&self, name: &str) -> Option<ParamType> {
        let mut all = self.any_size.iter().flat_map(|any| &any.scalars);
        all.find(|(known, _)| known == name).map(|(_, ty)| *ty)
    }

    /// Where the value of a parameter comes from.
    fn source<'a>(&self, arg: &'a StepArg) -> Source<'a> {
        match arg {
            StepArg::Argument(name) => match self.scalar(name) {
                Some(ty) => Source::Scalar(name, ty),
                None => Source::Buffer(name, 0),
            },
            StepArg::Workspace(offset) => Source::Buffer(WORKSPACE, *offset),
            StepArg::Value(scalar) => Source::Number(scalar),
            StepArg::TensorMap(name, offset, map) => {
                let buffer = name.as_deref().unwrap_or(WORKSPACE);
                Source::Map(buffer, *offset, map.encoding())
            }
        }
    }

    /// Whether some kernel takes a tensor map.
    fn has_maps(&self) -> bool {
        let mut all = self.written().iter().flat_map(|l| &l.step.args);
        all.any(|arg| matches!(arg, StepArg::TensorMap(..)))
    }

    /// What the proof assumes and no launch of the text checks, a sentence each.
    fn unchecked(&self) -> impl Iterator<Item = String> {
        let unchecked = self.assumptions.iter().filter(|a| !a.checked);
        unchecked.map(|a| {
            let (condition, reason) = (&a.condition, &a.reason);
            format!("The proof assumes, and nothing here checks: {condition} ({reason}).")
        })
    }

    /// The sentences at the head of a source text.
    fn head(&self) -> Vec<String> {
        let mut lines = self.about.clone();
        lines.push(
            "Each buffer is aligned as checked below, and one that is written overlaps no other: inputs must not change while a kernel runs."
                .to_owned(),
        );
        lines.extend(self.unchecked());
        if self.workspace_bytes > 0 {
            lines.push(format!(
                "The workspace has {} bytes at a multiple of {WORKSPACE_ALIGNMENT}; it needs no initial contents.",
                self.workspace_bytes
            ));
        }
        lines
    }
}

/// The buffer that is the workspace.
const WORKSPACE: &str = "workspace";

/// The buffers of the launches: what no scalar is given for, and the workspace.
fn buffers(
    params: &[Param],
    given: &[(&str, Scalar)],
    launches: &Launches,
) -> Result<Vec<ContractBuffer>, RunError> {
    let least = |name: &str| {
        let mut known = launches.least_bytes.iter();
        known.find(|(of, _)| of == name).map(|(_, bytes)| *bytes)
    };
    let own = params
        .iter()
        .filter(|p| scalar_of(given, &p.name).is_none());
    let mut buffers: Vec<ContractBuffer> = own
        .map(|p| ContractBuffer {
            name: p.name.clone(),
            element: match p.ty {
                ParamType::Pointer(element) => element,
                _ => None,
            },
            bytes: least(&p.name),
            alignment: p.alignment.max(1),
            role: p.role.unwrap_or(Role::InOut),
        })
        .collect();
    if launches.workspace_bytes > 0 {
        if buffers.iter().any(|b| b.name == WORKSPACE) {
            let reason = "its launches have a workspace, and a buffer is called `workspace` as well: give it another name";
            return Err(refused(reason));
        }
        buffers.push(ContractBuffer {
            name: WORKSPACE.to_owned(),
            element: None,
            bytes: Some(launches.workspace_bytes),
            alignment: WORKSPACE_ALIGNMENT,
            role: Role::InOut,
        });
    }
    Ok(buffers)
}

/// A launch with the values of its scalar arguments.
fn launch(
    kernel: &dyn Runnable,
    mut step: Step,
    given: &[(&str, Scalar)],
) -> Result<ContractLaunch, RunError> {
    for arg in &mut step.args {
        if let StepArg::Argument(name) = arg
            && let Some(scalar) = scalar_of(given, name)
        {
            *arg = StepArg::Value(scalar.clone());
        }
        if matches!(arg, StepArg::Value(Scalar::Bytes(_))) {
            return Err(refused(
                "a parameter that is a structure has no text in a launch contract",
            ));
        }
    }
    let declared = Declared::of(kernel.ptx(), &step.entry);
    Ok(ContractLaunch {
        names: kernel.param_names(&step.entry)?,
        cluster_declared: declared.cluster.is_some(),
        beside_previous: declared.waits,
        step,
    })
}

fn refused(reason: &str) -> RunError {
    RunError::Refused {
        reason: reason.to_owned(),
    }
}

fn scalar_of<'a>(given: &'a [(&str, Scalar)], name: &str) -> Option<&'a Scalar> {
    given
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, s)| s)
}

fn about(entry: &str, given: &[(&str, Scalar)]) -> Vec<String> {
    let values: Vec<String> = given
        .iter()
        .map(|(name, scalar)| format!("{name} = {}", number(scalar)))
        .collect();
    let values = if values.is_empty() {
        String::new()
    } else {
        format!(" for {}", values.join(", "))
    };
    vec![
        format!("Launches of the kernel {entry}{values}; written by Tilewright."),
        "Buffers are device addresses.".to_owned(),
    ]
}

/// A number as every language writes it; floats have a point or an exponent, those that are no numbers are `inf`, `-inf` and `NaN`.
fn number(scalar: &Scalar) -> String {
    match scalar {
        Scalar::U32(v) => v.to_string(),
        Scalar::I32(v) => v.to_string(),
        Scalar::U64(v) => v.to_string(),
        Scalar::I64(v) => v.to_string(),
        Scalar::F32(v) => format!("{v:?}"),
        Scalar::F64(v) => format!("{v:?}"),
        Scalar::Bytes(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// Where the value of a parameter comes from.
enum Source<'a> {
    /// The address of a buffer plus a distance in bytes.
    Buffer(&'a str, u64),
    /// A scalar argument of the text.
    Scalar(&'a str, ParamType),
    Number(&'a Scalar),
    /// What the driver encodes, of the array in a buffer at a distance in bytes.
    Map(&'a str, u64, MapEncoding),
}

/// The values of an encoding's constants, in the function's order: type, interleaving, swizzle, promotion, fill.
fn constants(encoding: &MapEncoding) -> [u32; 5] {
    encoding.constants().map(|(_, constant)| constant.value)
}

/// The type of a scalar argument, of a language's names for u32, i32, u64, f32 and f64.
fn scalar_type(ty: ParamType, names: [&'static str; 5]) -> &'static str {
    let [u32, i32, u64, f32, f64] = names;
    match ty {
        ParamType::I32 => i32,
        ParamType::U64 => u64,
        ParamType::F32 => f32,
        ParamType::F64 => f64,
        _ => u32,
    }
}

fn list(values: &[impl ToString]) -> String {
    let all: Vec<_> = values.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// The names of the sizes as a phrase, and the sizes.
fn sizes(contract: &Contract) -> (String, Vec<u64>) {
    let names: Vec<&str> = contract.sizes.iter().map(|(n, _)| n.as_str()).collect();
    let phrase = match &names[..] {
        [] => "There are no sizes".to_owned(),
        [one] => (*one).to_owned(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    };
    (phrase, contract.sizes.iter().map(|(_, v)| *v).collect())
}
