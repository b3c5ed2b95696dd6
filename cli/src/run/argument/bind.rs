//! The arguments of the command line, assigned to the parameters of a kernel.
//!
//! An argument with a name is for that parameter; those without take the parameters that are left, in order. What a pointer points to is a
//! buffer of the run: that of a `buf:` argument, which has its parameter's name, or one of `--buffer`.

use tilewright::emulator::{TENSOR_MAP_BYTES, TensorMap, Texture};

use super::{Argument, Buffer, Content, Given, Reference, Value};
use crate::error::CliError;

/// The alignment of a tensor map in a structure, that of `CUtensorMap`.
const TENSOR_MAP_ALIGN: usize = 64;

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

/// A `.global` or `.const` variable of the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModuleVariable {
    /// Its name.
    pub(crate) name: String,
    /// Its bytes; none if the module leaves the size open.
    pub(crate) bytes: Option<u64>,
}

/// What a run is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// All buffers and their names.
    pub(crate) buffers: Vec<(String, Buffer)>,
    /// What each parameter gets, in their order.
    pub(crate) passed: Vec<Passed>,
    /// What variables of the module get.
    pub(crate) variables: Vec<(String, SetVariable)>,
}

/// What a variable of the module gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SetVariable {
    /// It is this one of [`Bound::buffers`].
    Buffer(usize),
    /// Its bytes.
    Bytes(Passed),
}

/// What a parameter gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Passed {
    /// A number, or bytes.
    Value(Value),
    /// The address of a byte of a buffer.
    Address(Place),
    /// The bytes of a structure or a tensor map, and what only the machine knows in it, each with its first byte.
    Structure(Vec<u8>, Vec<(usize, Piece)>),
}

/// Bytes of a structure that only the machine knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// An address.
    Address(Place),
    /// A tensor map of the array that begins there.
    Tensor(Box<TensorMap>, Place),
    /// The handle of a texture whose first texel is there.
    Texture(Box<Texture>, Place),
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
    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Value(value) => value.bytes().len(),
            Self::Address(_) => 8,
            Self::Structure(bytes, _) => bytes.len(),
        }
    }

    /// The bytes, where the buffers lie at `addresses` and `make` makes the bytes of a piece whose array lies at an address.
    pub(crate) fn bytes(
        &self,
        addresses: &[u64],
        make: &mut impl FnMut(&Piece, u64) -> Result<Vec<u8>, CliError>,
    ) -> Result<Vec<u8>, CliError> {
        let (mut bytes, pieces) = match self {
            Self::Value(value) => return Ok(value.bytes()),
            Self::Address(place) => return Ok(place.address(addresses).to_le_bytes().into()),
            Self::Structure(bytes, pieces) => (bytes.clone(), pieces),
        };
        for (at, piece) in pieces {
            let (Piece::Address(place) | Piece::Tensor(_, place) | Piece::Texture(_, place)) =
                piece;
            let address = place.address(addresses);
            let piece = match piece {
                Piece::Address(_) => address.to_le_bytes().into(),
                _ => make(piece, address)?,
            };
            bytes[*at..at + piece.len()].copy_from_slice(&piece);
        }
        Ok(bytes)
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
    variables: &[(String, Given)],
    (parameters, known): (Option<&[Parameter]>, &[ModuleVariable]),
) -> Result<Bound, CliError> {
    let ordered = in_order(arguments, parameters)?;
    let mut bound = Bound {
        buffers: buffers.to_vec(),
        passed: Vec::new(),
        variables: Vec::new(),
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
    let first_variable = bound.buffers.len();
    for (name, given) in variables {
        if let Given::Buffer(buffer) = given {
            bound.buffers.push((name.clone(), buffer.clone()));
        }
    }
    for (i, (name, _)) in bound.buffers.iter().enumerate() {
        if bound.buffers[..i].iter().any(|(other, _)| other == name) {
            return Err(wrong(format!("there are two buffers `{name}`")));
        }
    }
    let mut own = buffers.len()..;
    for argument in ordered {
        let passed = bound.passed(&argument.given)?.unwrap_or_else(|| {
            let buffer = own.next().unwrap_or_default();
            Passed::Address(Place { buffer, offset: 0 })
        });
        bound.passed.push(passed);
    }
    let mut own = first_variable..;
    for (i, (name, given)) in variables.iter().enumerate() {
        if variables[..i].iter().any(|(other, _)| other == name) {
            return Err(wrong(format!("the variable `{name}` is set twice")));
        }
        let Some(variable) = known.iter().find(|v| v.name == *name) else {
            let all: Vec<_> = known.iter().map(|v| &*v.name).collect();
            return Err(wrong(if all.is_empty() {
                format!("there is no variable `{name}`; the file has no .global or .const variable")
            } else {
                format!(
                    "there is no variable `{name}`; the file has {}",
                    all.join(", ")
                )
            }));
        };
        let set = match bound.passed(given)? {
            None => SetVariable::Buffer(own.next().unwrap_or_default()),
            Some(passed) => SetVariable::Bytes(passed),
        };
        // The size of a file's content shows when it is read.
        let bytes = match (&set, given) {
            (SetVariable::Bytes(passed), _) => Some(passed.len() as u64),
            (_, Given::Buffer(buffer)) => match buffer.content {
                Content::Filled(count, _) => Some(count * buffer.element.bytes() as u64),
                Content::File(_) => None,
            },
            _ => None,
        };
        variable.check(bytes)?;
        bound.variables.push((name.clone(), set));
    }
    Ok(bound)
}

impl ModuleVariable {
    /// Whether it takes so many bytes.
    pub(crate) fn check(&self, given: Option<u64>) -> Result<(), CliError> {
        match (self.bytes, given) {
            (Some(has), Some(given)) if has != given => Err(wrong(format!(
                "the variable `{}` has {has} bytes, not {given}: give all of them, such as --variable {0}=buf:u8:{has}:zero",
                self.name
            ))),
            _ => Ok(()),
        }
    }
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
    let missing = slots
        .iter()
        .zip(parameters)
        .filter(|(slot, _)| slot.is_none());
    let missing: Vec<&Parameter> = missing.map(|(_, parameter)| parameter).collect();
    let Some(first) = missing.first() else {
        return Ok(slots.into_iter().flatten().collect());
    };
    let options = missing
        .iter()
        .map(|p| format!("--arg {}={}", p.name, p.example));
    let (name, takes) = (&first.name, &first.takes);
    let more = match missing.len() - 1 {
        0 => String::new(),
        n => format!(", nor have {n} more"),
    };
    Err(wrong(format!(
        "the parameter `{name}` ({takes}) has no argument{more}: add {}",
        options.collect::<Vec<_>>().join(" ")
    )))
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

    /// What `given` passes; nothing for a buffer, which is passed by its place.
    fn passed(&self, given: &Given) -> Result<Option<Passed>, CliError> {
        Ok(Some(match given {
            Given::Value(value) => Passed::Value(value.clone()),
            Given::Buffer(_) => return Ok(None),
            Given::Reference(reference) => Passed::Address(self.place(reference)?),
            Given::Structure(members) => self.structure(members)?,
            Given::Tensor(_) | Given::Texture(_) => self.structure(std::slice::from_ref(given))?,
        }))
    }

    /// The members of a structure side by side, each aligned to its size, padded to the largest alignment: as in C.
    fn structure(&self, members: &[Given]) -> Result<Passed, CliError> {
        let (mut bytes, mut pieces, mut widest) = (Vec::new(), Vec::new(), 1);
        for member in members {
            let (content, align, piece) = match member {
                Given::Value(Value::Bytes(content)) => (content.clone(), 1, None),
                Given::Value(value) => (value.bytes(), value.bytes().len(), None),
                Given::Reference(reference) => {
                    let piece = Piece::Address(self.place(reference)?);
                    (vec![0; 8], 8, Some(piece))
                }
                Given::Tensor(tensor) => {
                    let place = self.place(&tensor.of)?;
                    let piece = Piece::Tensor(Box::new(tensor.map.clone()), place);
                    (vec![0; TENSOR_MAP_BYTES], TENSOR_MAP_ALIGN, Some(piece))
                }
                Given::Texture(texture) => {
                    let place = self.place(&texture.of)?;
                    let piece = Piece::Texture(Box::new(texture.texture.clone()), place);
                    (vec![0; 8], 8, Some(piece))
                }
                // The reader of arguments lets nothing else into a structure.
                Given::Buffer(_) | Given::Structure(_) => continue,
            };
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            pieces.extend(piece.map(|piece| (bytes.len(), piece)));
            bytes.extend(content);
            widest = widest.max(align);
        }
        bytes.resize(bytes.len().next_multiple_of(widest), 0);
        Ok(Passed::Structure(bytes, pieces))
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
        bind(&arguments, &buffers, &[], (Some(&parameters()), &[]))
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
        assert_eq!(addresses, &[(8, Piece::Address(place(8)))]);
        let bytes = |i: usize| {
            let mut none = |_: &Piece, _| Err(wrong("a map".to_owned()));
            bound.passed[i].bytes(&[0x1000], &mut none).expect("bytes")
        };
        assert_eq!(bytes(1)[8..16], 0x1008u64.to_le_bytes());
        assert_eq!(bytes(0), 0x1004u64.to_le_bytes());
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (arguments, buffers, message) in [
            (
                vec![],
                vec![],
                "the parameter `x` (u64) has no argument, nor have 1 more: add --arg x=buf:f32:1024 --arg n=u32:0",
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
