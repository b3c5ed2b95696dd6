//! Partitioning: tiles of blocks, shares of threads, fragments of instructions.
//!
//! An instruction has a name of the list that pictures use too (`show --atom list`): `ldmatrix.x4`, `mma.sp.m16n8k32.f16`,
//! `mfma_f32_32x32x8_f16`, `wgmma.m64n128k16.bf16`, `tcgen05.mma.m128n256`. Some parts of the manual's name in order do as well, `mma.m16n8k16.f32.bf16`: of those that match, the
//! one with the shortest name is meant.

use tilewright::atoms::{CopyAtom, MmaAtom, SparseMmaAtom};
use tilewright::{Layout, Operand, TiledCopy, TiledMma};

use super::super::error::EvalError;
use super::super::instructions::{self, Atom, Named};
use super::super::operators::on_any;
use super::super::value::Value;
use super::args::{Answer, Args, on_argument};
use super::tiler;

/// The value of a partitioning function; the name must be one of them.
pub(super) fn partition(args: &Args<'_>) -> Answer {
    match args.name {
        "local_tile" => {
            args.count(3, 3)?;
            let slicer = args.slicer(2)?;
            let tiler = tiler(&args.items[1].0, args.items[1].1)?;
            on_argument!(args, 0, layout => tiler.with(|tiler| {
                layout.local_tile(tiler, &slicer).map(|part| part.rounded_up())
            }))
        }
        "local_partition" => {
            args.count(3, 3)?;
            let (threads, thread) = (args.layout(1)?, args.int(2)?);
            on_argument!(args, 0, layout => {
                layout.local_partition(&threads, thread).map(|part| part.rounded_up())
            })
        }
        "thread_partition" => {
            args.count(4, 4)?;
            let tile = args.shape(1)?;
            let (tv, thread) = (args.layout(2)?, args.int(3)?);
            on_argument!(args, 0, layout => layout.thread_partition(&tile, &tv, thread))
        }
        "atom_meta" => {
            args.count(1, 1)?;
            Ok(Value::layout(sparse_atom(args)?.metadata))
        }
        "atom_a" | "atom_b" | "atom_c" => {
            args.count(1, 1)?;
            let take: Take<Layout> = match args.name {
                "atom_a" => |atom| multiplies(atom).map(|mma| mma.a),
                "atom_b" => |atom| multiplies(atom).map(|mma| mma.b),
                _ => |atom| match atom {
                    Atom::Accumulator(d, _) => Some(d.layout),
                    _ => multiplies(atom).map(|mma| mma.c),
                },
            };
            Ok(Value::layout(named(args, take, MULTIPLIES)?))
        }
        "atom_src" | "atom_dst" => {
            args.count(1, 1)?;
            let take: Take<Layout> = if args.name == "atom_src" {
                |atom| copies(atom).map(|copy| copy.src).or(tensor_copy(atom))
            } else {
                |atom| copies(atom).map(|copy| copy.dst).or(tensor_copy(atom))
            };
            Ok(Value::layout(named(args, take, COPIES)?))
        }
        "atom_tmem" => {
            args.count(1, 1)?;
            let take: Take<Layout> = |atom| match atom {
                Atom::Accumulator(d, _) => Some(d.layout),
                _ => tensor_copy(atom),
            };
            Ok(Value::layout(named(args, take, TENSOR_MEMORY)?))
        }
        "layout_tv_a" | "layout_tv_b" | "layout_tv_c" => {
            args.count(2, 2)?;
            Ok(Value::layout(
                args.done(tiled_mma(args)?.layout_tv(operand(args.name)))?,
            ))
        }
        "thrfrg_a" | "thrfrg_b" | "thrfrg_c" => {
            args.count(3, 3)?;
            let (mma, operand) = (tiled_mma(args)?, operand(args.name));
            on_argument!(args, 2, tensor => {
                mma.thrfrg(operand, &tensor.layout()).and_then(|inner| tensor.with_layout(inner))
            })
        }
        "partition_a" | "partition_b" | "partition_c" => {
            args.count(4, 4)?;
            let slice = args.done(tiled_mma(args)?.get_slice(args.int(3)?))?;
            let operand = operand(args.name);
            on_argument!(args, 2, tensor => slice.partition(operand, tensor))
        }
        "layout_tv" => {
            args.count(3, 3)?;
            Ok(Value::layout(tiled_copy(args)?.layout_tv()))
        }
        "partition_s" | "partition_d" => {
            args.count(5, 5)?;
            let slice = args.done(tiled_copy(args)?.get_slice(args.int(4)?))?;
            if args.name == "partition_s" {
                on_argument!(args, 3, tensor => slice.partition_s(tensor))
            } else {
                on_argument!(args, 3, tensor => slice.partition_d(tensor))
            }
        }
        _ => {
            args.count(4, 4)?;
            let (copy, fragment) = (tiled_copy(args)?, args.layout(3)?);
            Ok(Value::layout(args.done(copy.retile(&fragment))?))
        }
    }
}

/// The operand that the last letter of a function's name stands for.
fn operand(name: &str) -> Operand {
    match name.as_bytes().last() {
        Some(b'a') => Operand::A,
        Some(b'b') => Operand::B,
        _ => Operand::C,
    }
}

fn tiled_mma(args: &Args<'_>) -> Result<TiledMma, EvalError> {
    let dense = |atom: &Atom| match atom {
        Atom::Mma(atom) => Some(**atom),
        _ => None,
    };
    let atom = named(args, dense, MULTIPLIES)?;
    if atom.blocks > 1 {
        let message = format!(
            "{} computes {} products at once; {} takes an instruction that computes one, such as {}",
            atom.name, atom.blocks, args.name, MULTIPLIES.1
        );
        return Err(EvalError::new("unsupported", message, args.items[0].1));
    }
    args.done(TiledMma::new(atom, &args.layout(1)?))
}

fn tiled_copy(args: &Args<'_>) -> Result<TiledCopy, EvalError> {
    args.done(TiledCopy::new(
        named(args, copies, COPIES)?,
        &args.layout(1)?,
        &args.layout(2)?,
    ))
}

fn multiplies(atom: &Atom) -> Option<MmaAtom> {
    match atom {
        Atom::Mma(atom) => Some(**atom),
        Atom::Sparse(atom) => Some(atom.mma),
        _ => None,
    }
}

fn copies(atom: &Atom) -> Option<CopyAtom> {
    match atom {
        Atom::Copy(atom) => Some(**atom),
        _ => None,
    }
}

/// `(thread, register)` to the place in tensor memory, which is both the source and the target of the thread's values.
fn tensor_copy(atom: &Atom) -> Option<Layout> {
    match atom {
        Atom::TmemCopy(copy) => Some(copy.layout),
        _ => None,
    }
}

fn sparse_atom(args: &Args<'_>) -> Result<SparseMmaAtom, EvalError> {
    let sparse = |atom: &Atom| match atom {
        Atom::Sparse(atom) => Some(**atom),
        _ => None,
    };
    named(args, sparse, SPARSE)
}

/// What an argument must do, and an example.
type Needed = (&'static str, &'static str);
const MULTIPLIES: Needed = ("an instruction that multiplies", "mma.m16n8k16.f16");
const COPIES: Needed = ("an instruction that copies", "ldmatrix.x4");
const TENSOR_MEMORY: Needed = (
    "an instruction on tensor memory",
    "tcgen05.mma.m128n256 or tcgen05.ld.32x32b.x8",
);
const SPARSE: Needed = ("a sparse instruction", "mma.sp.m16n8k32.f16");

/// What a function needs of an instruction.
type Take<T> = fn(&Atom) -> Option<T>;

/// What `take` takes of the instruction that the first argument names.
fn named<T>(args: &Args<'_>, take: Take<T>, (what, example): Needed) -> Result<T, EvalError> {
    let (value, span) = &args.items[0];
    let Value::Form(form) = value else {
        return Err(args.wrong(0, &format!("the name of an instruction, such as {example}")));
    };
    let name = form.to_string();
    // A name of the list means that instruction alone, even where it is no use here.
    let (other, found) = match instructions::named(&name) {
        Ok(exact) => (exact.atom.clone(), take(&exact.atom)),
        Err((code, message)) => {
            let list = instructions::all();
            let parts = |one: &&Named| one.others.iter().any(|other| abbreviates(&name, other));
            let shortest = list
                .iter()
                .filter(parts)
                .filter(|one| take(&one.atom).is_some())
                .min_by_key(|one| one.others[0].split('.').count());
            let other = shortest.or_else(|| list.iter().find(parts));
            let Some(other) = other else {
                let code = if code == instructions::UNKNOWN {
                    "unknown_name"
                } else {
                    code
                };
                return Err(EvalError::new(code, message, *span));
            };
            (other.atom.clone(), take(&other.atom))
        }
    };
    found.ok_or_else(|| {
        let message = match other {
            Atom::Copy(_) => format!(
                "{name} copies, it has no operands A, B and C; {} takes {what}, such as {example}",
                args.name
            ),
            Atom::Mma(_) | Atom::Sparse(_) => {
                format!(
                    "{name} multiplies; {} takes {what}, such as {example}",
                    args.name
                )
            }
            _ => format!("{} takes {what}, such as {example}, not {name}", args.name),
        };
        EvalError::new("unknown_name", message, *span)
    })
}

/// Whether the parts of `short` occur in `name` in order. A space in a name counts as a dot.
fn abbreviates(short: &str, name: &str) -> bool {
    let mut parts = name.split(['.', ' ']);
    short
        .split('.')
        .all(|wanted| parts.any(|part| part == wanted))
}
