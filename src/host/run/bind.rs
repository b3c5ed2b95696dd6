//! Arguments matched with parameters by name and type: what both devices then launch.

use layout_codegen::tensor_map::MapArgument;

use super::arg::{Arg, Buffer, Role, Scalar};
use super::error::{ArgError, RunError};
use super::runnable::{Param, ParamType, Runnable, Scalars, Step, StepArg, Stores};

/// What the launches of a run pass data through lies at a multiple of this many bytes.
pub(crate) const WORKSPACE_ALIGNMENT: u64 = 256;

/// The largest alignment of a buffer.
const MAX_ALIGNMENT: u64 = 1 << 20;

/// A run that can be launched: buffers to place, and launches whose arguments are known but for the addresses.
#[derive(Debug)]
pub(crate) struct Bound<'a> {
    /// By the order of the parameters, each with its parameter's name.
    pub(crate) buffers: Vec<(String, Buffer<'a>)>,
    pub(crate) steps: Vec<BoundStep>,
    pub(crate) workspace_bytes: u64,
    /// By buffer: what the kernel promises to store there, if it does ([`Launches::stores`](super::Launches::stores)), and the bytes of its elements.
    #[cfg_attr(not(feature = "emulator"), expect(dead_code))]
    pub(crate) promised: Vec<Option<(Stores, u64)>>,
}

/// A launch and the value of each of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct BoundStep {
    pub(crate) step: Step,
    pub(crate) values: Vec<Value>,
}

/// A value that a launched entry gets.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The address of a buffer, by its number.
    Buffer(usize),
    /// The address of the workspace plus so many bytes.
    Workspace(u64),
    Scalar(Scalar),
    /// A tensor map of a buffer, by its number, or of the workspace without one, from so many bytes on.
    TensorMap(Option<usize>, u64, MapArgument),
}

/// Where the buffers and the workspace lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Addresses {
    pub(crate) buffers: Vec<u64>,
    pub(crate) workspace: u64,
}

impl Addresses {
    /// What a value stands for here.
    pub(crate) fn of<'v>(&self, value: &'v Value) -> Here<'v> {
        let buffer = |i: usize| self.buffers.get(i).copied().unwrap_or_default();
        match value {
            Value::Buffer(i) => Here::Address(buffer(*i)),
            Value::Workspace(offset) => Here::Address(self.workspace + offset),
            Value::Scalar(scalar) => Here::Scalar(scalar),
            Value::TensorMap(of, offset, map) => {
                let array = of.map_or(self.workspace, buffer);
                Here::TensorMap(array + offset, map)
            }
        }
    }
}

/// What a value stands for where buffers have their addresses.
pub(crate) enum Here<'v> {
    /// An address.
    Address(u64),
    /// A number.
    Scalar(&'v Scalar),
    /// A tensor map of the array at an address.
    TensorMap(u64, &'v MapArgument),
}

/// Matches arguments with the parameters of a kernel, and asks it for its launches.
pub(crate) fn bind<'n, 'a, K: Runnable + ?Sized>(
    kernel: &K,
    args: impl IntoIterator<Item = (&'n str, Arg<'a>)>,
) -> Result<Bound<'a>, RunError> {
    let params = kernel.params();
    let mut given: Vec<Option<Arg<'a>>> = params.iter().map(|_| None).collect();
    for (name, arg) in args {
        let Some(i) = params.iter().position(|param| param.name == name) else {
            let known = params.iter().map(|p| format!("`{}` ({})", p.name, p.ty));
            let (name, known) = (name.to_owned(), known.collect());
            return Err(ArgError::Unknown { name, known }.into());
        };
        if given[i].replace(arg).is_some() {
            let name = name.to_owned();
            return Err(ArgError::Twice { name }.into());
        }
    }
    let mut buffers = Vec::new();
    let mut values: Vec<(&str, Value)> = Vec::new();
    for (param, arg) in params.iter().zip(given) {
        let arg = arg.ok_or_else(|| ArgError::Missing {
            name: param.name.clone(),
            expected: param.ty.to_string(),
        })?;
        fits(param, &arg)?;
        let value = match arg {
            Arg::Buffer(buffer) => {
                buffers.push((param.name.clone(), buffer));
                Value::Buffer(buffers.len() - 1)
            }
            Arg::Scalar(scalar) => Value::Scalar(scalar),
        };
        values.push((&param.name, value));
    }
    let scalars: Vec<(&str, &Scalar)> = values
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Scalar(scalar) => Some((*name, scalar)),
            _ => None,
        })
        .collect();
    let launches = kernel.launches(&Scalars(&scalars))?;
    for (name, needed) in &launches.least_bytes {
        let buffer = buffers.iter().find(|(known, _)| known == name);
        if let Some((_, buffer)) = buffer
            && (buffer.len as u64) < *needed
        {
            return Err(RunError::Arg(ArgError::TooShort {
                name: name.clone(),
                needed: *needed,
                found: buffer.len as u64,
                element: buffer.element.bytes() as u64,
            }));
        }
    }
    for (name, stated) in &launches.stated {
        let content = buffers.iter().find(|(known, _)| known == name);
        let content = content.and_then(|(_, b)| b.content.as_deref());
        // What a buffer has beyond its array is not read.
        let least = launches.least_bytes.iter().find(|(known, _)| known == name);
        let (Some(content), Some((_, bytes))) = (content, least) else {
            continue;
        };
        let (words, _) = content.as_chunks::<4>();
        let words = words.iter().take((*bytes / 4) as usize);
        let refuted = stated.refuted_by(words.map(|word| i32::from_le_bytes(*word)));
        if let Some((element, value)) = refuted {
            let (name, stated) = (name.clone(), stated.clone());
            return Err(ArgError::NotAsStated {
                name,
                element,
                value,
                stated,
            }
            .into());
        }
    }
    let promised = buffers.iter().map(|(name, _)| {
        let (_, stores) = launches.stores.iter().find(|(known, _)| known == name)?;
        let (_, bytes) = launches
            .least_bytes
            .iter()
            .find(|(known, _)| known == name)?;
        Some((*stores, *bytes))
    });
    let promised = promised.collect();
    let value = |arg: &StepArg| match arg {
        StepArg::Workspace(offset) => Ok(Value::Workspace(*offset)),
        StepArg::Value(scalar) => Ok(Value::Scalar(scalar.clone())),
        StepArg::TensorMap(None, offset, map) => Ok(Value::TensorMap(None, *offset, *map)),
        StepArg::TensorMap(Some(name), offset, map) => {
            let found = buffers.iter().position(|(known, _)| known == name);
            let reason = || format!("its launch has a tensor map of `{name}`, which is no buffer");
            found
                .map(|i| Value::TensorMap(Some(i), *offset, *map))
                .ok_or_else(|| RunError::Refused { reason: reason() })
        }
        StepArg::Argument(name) => {
            let found = values.iter().find(|(known, _)| known == name);
            let reason = || format!("its launch names an argument `{name}` that it does not take");
            found
                .map(|(_, value)| value.clone())
                .ok_or_else(|| RunError::Refused { reason: reason() })
        }
    };
    let steps = launches.steps.into_iter().map(|step| {
        let values = step.args.iter().map(value).collect::<Result<_, _>>()?;
        Ok::<_, RunError>(BoundStep { step, values })
    });
    Ok(Bound {
        steps: steps.collect::<Result<_, _>>()?,
        buffers,
        workspace_bytes: launches.workspace_bytes,
        promised,
    })
}

/// Checks the scalar arguments of a kernel, without its buffers: names, types and ranges, and that none is missing.
pub(in crate::host) fn check_scalars(
    params: &[Param],
    given: &[(&str, Scalar)],
) -> Result<(), ArgError> {
    for (i, (name, scalar)) in given.iter().enumerate() {
        let Some(param) = params.iter().find(|param| param.name == *name) else {
            let known = params.iter().map(|p| format!("`{}` ({})", p.name, p.ty));
            let (name, known) = ((*name).to_owned(), known.collect());
            return Err(ArgError::Unknown { name, known });
        };
        if given[..i].iter().any(|(other, _)| other == name) {
            let name = (*name).to_owned();
            return Err(ArgError::Twice { name });
        }
        fits(param, &Arg::Scalar(scalar.clone()))?;
    }
    let missing = params.iter().find(|param| {
        let buffer = matches!(
            param.ty,
            ParamType::Pointer(_) | ParamType::Integer(8) | ParamType::Bits(8)
        );
        !buffer && given.iter().all(|(name, _)| *name != param.name)
    });
    match missing {
        Some(param) => Err(ArgError::Missing {
            name: param.name.clone(),
            expected: param.ty.to_string(),
        }),
        None => Ok(()),
    }
}

/// Whether a parameter takes an argument: its type, its range, its alignment.
fn fits(param: &Param, arg: &Arg<'_>) -> Result<(), ArgError> {
    let name = || param.name.clone();
    if !param.ty.takes(arg) {
        return Err(ArgError::WrongType {
            name: name(),
            expected: param.ty.to_string(),
            found: arg.to_string(),
        });
    }
    match arg {
        Arg::Buffer(buffer) => {
            if let Some(kernel) = param.role {
                let fits = match buffer.role {
                    Role::Input => kernel == Role::Input,
                    Role::Output => kernel == Role::Output,
                    Role::InOut => true,
                };
                if !fits {
                    return Err(ArgError::Role {
                        name: name(),
                        kernel,
                        given: buffer.role,
                    });
                }
            }
            let found = buffer.alignment;
            if !found.is_power_of_two() || found > MAX_ALIGNMENT {
                return Err(ArgError::Alignment {
                    name: name(),
                    found,
                });
            }
            if !found.is_multiple_of(param.alignment.max(1)) {
                return Err(ArgError::Misaligned {
                    name: name(),
                    needed: param.alignment,
                    found,
                });
            }
        }
        Arg::Scalar(scalar) => {
            if let (Some(value), Some(range)) = (scalar.integer(), param.range)
                && !(range.0..=range.1).contains(&value)
            {
                return Err(ArgError::OutOfRange {
                    name: name(),
                    value,
                    range,
                });
            }
        }
    }
    Ok(())
}
