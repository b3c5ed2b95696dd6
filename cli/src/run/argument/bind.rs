//! The arguments of the command line, assigned to the parameters of a kernel.
//!
//! An argument with a name is for that parameter; those without take the parameters that are left, in order. What a pointer points to is a
//! buffer of the run: that of a `buf:` argument, which has its parameter's name, or one of `--buffer`.

use tilewright::emulator::TensorMap;

use super::{Argument, Buffer, Given, Reference, Value};
use crate::error::CliError;

/// A parameter of the kernel, where it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Its name.
    pub(crate) name: String,
    /// What it takes, for a reader: `u32`, `16 bytes`.
    pub(crate) takes: String,
    /// An argument for it, as an example.
    pub(crate) example: &'static str,
}

/// What a run is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// All buffers and their names.
    pub(crate) buffers: Vec<(String, Buffer)>,
    /// What each parameter gets, in their order.
    pub(crate) passed: Vec<Passed>,
}

/// What a parameter gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Passed {
    /// A number, or bytes.
    Value(Value),
    /// The address of a byte of a buffer.
    Address(Place),
    /// The bytes of a structure, and the addresses in it, each with its first byte.
    Structure(Vec<u8>, Vec<(usize, Place)>),
    /// A tensor map of the array that begins there.
    Tensor(Box<TensorMap>, Place),
}

/// A byte of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which of [`Bound::buffers`].
    pub(crate) buffer: usize,
    /// Bytes from its start.
    pub(crate) offset: u64,
}

impl Place {
    /// Its address, where the buffers lie at `addresses`.
    pub(crate) fn address(self, addresses: &[u64]) -> u64 {
        let base = addresses.get(self.buffer).copied().unwrap_or_default();
        base.wrapping_add(self.offset)
    }
}

impl Passed {
    /// The bytes of the parameter, where the buffers lie at `addresses`; of a tensor map, whose bytes only the machine knows, its address.
    pub(crate) fn bytes(&self, addresses: &[u64]) -> Vec<u8> {
        match self {
            Self::Value(value) => value.bytes(),
            Self::Address(place) | Self::Tensor(_, place) => {
                place.address(addresses).to_le_bytes().into()
            }
            Self::Structure(bytes, places) => {
                let mut bytes = bytes.clone();
                for (at, place) in places {
                    let address = place.address(addresses).to_le_bytes();
                    bytes[*at..at + address.len()].copy_from_slice(&address);
                }
                bytes
            }
        }
    }
}

/// Assigns arguments to parameters. Without `parameters`, which only a reader of the text knows, arguments go by their place alone.
///
/// # Errors
///
/// A name that no parameter has, a parameter with two arguments or none, an argument too many, a reference to a buffer that is not there.
pub(crate) fn bind(
    arguments: &[Argument],
    buffers: &[(String, Buffer)],
    parameters: Option<&[Parameter]>,
) -> Result<Bound, CliError> {
    let ordered = in_order(arguments, parameters)?;
    let mut bound = Bound {
        buffers: buffers.to_vec(),
        passed: Vec::new(),
    };
    let name_of = |index: usize| match parameters {
        Some(all) => all[index].name.clone(),
        None => format!("argument {index}"),
    };
    for (index, argument) in ordered.iter().enumerate() {
        if let Given::Buffer(buffer) = &argument.given {
            bound.buffers.push((name_of(index), buffer.clone()));
        }
    }
    for (i, (name, _)) in bound.buffers.iter().enumerate() {
        if bound.buffers[..i].iter().any(|(other, _)| other == name) {
            return Err(wrong(format!("there are two buffers `{name}`")));
        }
    }
    let mut own = buffers.len()..;
    for argument in ordered {
        let passed = match &argument.given {
            Given::Value(value) => Passed::Value(value.clone()),
            Given::Buffer(_) => {
                let buffer = own.next().unwrap_or_default();
                Passed::Address(Place { buffer, offset: 0 })
            }
            Given::Reference(reference) => Passed::Address(bound.place(reference)?),
            Given::Structure(members) => bound.structure(members)?,
            Given::Tensor(tensor) => {
                let place = bound.place(&tensor.of)?;
                Passed::Tensor(Box::new(tensor.map.clone()), place)
            }
        };
        bound.passed.push(passed);
    }
    Ok(bound)
}

/// The arguments in the order of the parameters.
fn in_order<'a>(
    arguments: &'a [Argument],
    parameters: Option<&[Parameter]>,
) -> Result<Vec<&'a Argument>, CliError> {
    let Some(parameters) = parameters else {
        return match arguments.iter().find_map(|a| a.name.as_ref()) {
            Some(name) => Err(wrong(format!(
                "the parameters' names are not known here, since the emulator cannot read the file: give `{name}` by its place, without a name"
            ))),
            None => Ok(arguments.iter().collect()),
        };
    };
    let mut slots: Vec<Option<&Argument>> = vec![None; parameters.len()];
    for argument in arguments {
        let Some(name) = &argument.name else { continue };
        let Some(index) = parameters.iter().position(|p| p.name == *name) else {
            return Err(wrong(format!(
                "there is no parameter `{name}`; the kernel has {}",
                list(parameters)
            )));
        };
        if slots[index].replace(argument).is_some() {
            return Err(wrong(format!("`{name}` has two arguments")));
        }
    }
    let mut unnamed = arguments.iter().filter(|a| a.name.is_none());
    for slot in slots.iter_mut().filter(|slot| slot.is_none()) {
        *slot = unnamed.next();
    }
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    if unnamed.next().is_some() {
        return Err(wrong(format!(
            "{} for {}: {}",
            count(arguments.len(), "argument"),
            count(parameters.len(), "parameter"),
            list(parameters)
        )));
    }
    let mut ordered = Vec::new();
    for (slot, parameter) in slots.into_iter().zip(parameters) {
        let Parameter {
            name,
            takes,
            example,
        } = parameter;
        ordered.push(slot.ok_or_else(|| {
            wrong(format!(
                "the parameter `{name}` ({takes}) has no argument: add --arg {name}={example}"
            ))
        })?);
    }
    Ok(ordered)
}

fn list(parameters: &[Parameter]) -> String {
    if parameters.is_empty() {
        return "no parameters".to_owned();
    }
    let all = parameters.iter();
    let all = all.map(|p| format!("{} ({})", p.name, p.takes));
    all.collect::<Vec<_>>().join(", ")
}

fn wrong(message: String) -> CliError {
    CliError::usage("wrong_arguments", message)
}

impl Bound {
    /// The place that a reference names.
    fn place(&self, reference: &Reference) -> Result<Place, CliError> {
        let Reference { name, offset } = reference;
        let found = self.buffers.iter().position(|(known, _)| known == name);
        let Some(buffer) = found else {
            let known: Vec<_> = self.buffers.iter().map(|(name, _)| &**name).collect();
            return Err(wrong(format!(
                "there is no buffer `{name}`; {}",
                if known.is_empty() {
                    "add --buffer NAME=buf:…".to_owned()
                } else {
                    format!("there are {}", known.join(", "))
                }
            )));
        };
        let offset = *offset;
        Ok(Place { buffer, offset })
    }

    /// The members of a structure side by side, each aligned to its size, padded to the largest alignment: as in C.
    fn structure(&self, members: &[Given]) -> Result<Passed, CliError> {
        let (mut bytes, mut addresses, mut widest) = (Vec::new(), Vec::new(), 1);
        for member in members {
            let (content, align, place) = match member {
                Given::Value(Value::Bytes(content)) => (content.clone(), 1, None),
                Given::Value(value) => (value.bytes(), value.bytes().len(), None),
                Given::Reference(reference) => (vec![0; 8], 8, Some(self.place(reference)?)),
                // The reader of arguments lets nothing else into a structure.
                Given::Buffer(_) | Given::Structure(_) | Given::Tensor(_) => continue,
            };
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            addresses.extend(place.map(|place| (bytes.len(), place)));
            bytes.extend(content);
            widest = widest.max(align);
        }
        bytes.resize(bytes.len().next_multiple_of(widest), 0);
        Ok(Passed::Structure(bytes, addresses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Vec<Parameter> {
        let parameter = |name: &str, takes: &str, example| Parameter {
            name: name.to_owned(),
            takes: takes.to_owned(),
            example,
        };
        vec![
            parameter("x", "u64", "buf:f32:1024"),
            parameter("n", "u32", "u32:0"),
        ]
    }

    fn bound(arguments: &[&str], buffers: &[&str]) -> Result<Bound, CliError> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|text| Argument::parse(text, 1).expect("read"))
            .collect();
        let buffers: Vec<_> = buffers
            .iter()
            .map(|text| Argument::parse_buffer(text, 1).expect("read"))
            .collect();
        bind(&arguments, &buffers, Some(&parameters()))
    }

    #[test]
    fn names_and_places_mix() {
        for arguments in [
            ["buf:f32:8", "u32:5"],
            ["n=u32:5", "buf:f32:8"],
            ["n=u32:5", "x=buf:f32:8"],
        ] {
            let bound = bound(&arguments, &[]).expect("bound");
            assert_eq!(bound.buffers[0].0, "x");
            let place = Place {
                buffer: 0,
                offset: 0,
            };
            let passed = [Passed::Address(place), Passed::Value(Value::U32(5))];
            assert_eq!(bound.passed, passed);
        }
    }

    #[test]
    fn structures_lie_as_in_c() {
        let bound = bound(
            &["x=ref:a+4", "n=struct:u32:1,ref:a+8,bytes:ff"],
            &["a=buf:u8:16:zero"],
        )
        .expect("bound");
        let place = |offset| Place { buffer: 0, offset };
        let Passed::Structure(bytes, addresses) = &bound.passed[1] else {
            panic!("a structure")
        };
        assert_eq!(bound.passed[0], Passed::Address(place(4)));
        assert_eq!((bytes.len(), bytes[0], bytes[16]), (24, 1, 255));
        assert_eq!(addresses, &[(8, place(8))]);
        let there = bound.passed[1].bytes(&[0x1000]);
        assert_eq!(there[8..16], 0x1008u64.to_le_bytes());
        assert_eq!(bound.passed[0].bytes(&[0x1000]), 0x1004u64.to_le_bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (arguments, buffers, message) in [
            (
                vec![],
                vec![],
                "the parameter `x` (u64) has no argument: add --arg x=buf:f32:1024",
            ),
            (
                vec!["buf:f32:8"],
                vec![],
                "the parameter `n` (u32) has no argument: add --arg n=u32:0",
            ),
            (
                vec!["y=u32:5"],
                vec![],
                "there is no parameter `y`; the kernel has x (u64), n (u32)",
            ),
            (vec!["n=u32:5", "n=u32:6"], vec![], "`n` has two arguments"),
            (
                vec!["u32:1", "u32:2", "u32:3"],
                vec![],
                "3 arguments for 2 parameters: x (u64), n (u32)",
            ),
            (
                vec!["ref:a", "u32:1"],
                vec![],
                "there is no buffer `a`; add --buffer NAME=buf:…",
            ),
            (
                vec!["ref:b", "u32:1"],
                vec!["a=buf:u8:1"],
                "there is no buffer `b`; there are a",
            ),
            (
                vec!["buf:u8:1", "u32:1"],
                vec!["x=buf:u8:1"],
                "there are two buffers `x`",
            ),
        ] {
            let error = bound(&arguments, &buffers).expect_err(message);
            assert_eq!(error.message(), message);
        }
    }
}
