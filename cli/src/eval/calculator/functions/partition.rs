//! Partitioning: tiles of blocks, shares of threads, fragments of instructions.
//!
//! An instruction is named by its PTX name or by some of its parts in order, `ldmatrix.x4`, `mma.m16n8k16.f32.bf16`: of those that
//! match, the one with the shortest name is meant.

use tilewright::atoms::{COPY_ATOMS, CopyAtom, MMA_ATOMS, MmaAtom};
use tilewright::{Operand, TiledCopy, TiledMma};

use super::super::error::EvalError;
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
        "atom_a" | "atom_b" | "atom_c" => {
            args.count(1, 1)?;
            let atom = mma_atom(args)?;
            Ok(Value::layout(match operand(args.name) {
                Operand::A => atom.a,
                Operand::B => atom.b,
                Operand::C => atom.c,
            }))
        }
        "atom_src" | "atom_dst" => {
            args.count(1, 1)?;
            let atom = copy_atom(args)?;
            Ok(Value::layout(if args.name == "atom_src" {
                atom.src
            } else {
                atom.dst
            }))
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
    args.done(TiledMma::new(mma_atom(args)?, &args.layout(1)?))
}

fn tiled_copy(args: &Args<'_>) -> Result<TiledCopy, EvalError> {
    args.done(TiledCopy::new(
        copy_atom(args)?,
        &args.layout(1)?,
        &args.layout(2)?,
    ))
}

fn mma_atom(args: &Args<'_>) -> Result<MmaAtom, EvalError> {
    named(args, MMA_ATOMS, |atom| atom.name, "mma.m16n8k16.f32.f16")
}

fn copy_atom(args: &Args<'_>) -> Result<CopyAtom, EvalError> {
    named(args, COPY_ATOMS, |atom| atom.name, "ldmatrix.x4")
}

/// The atom that the first argument names.
fn named<T: Copy>(
    args: &Args<'_>,
    atoms: &[&T],
    name: fn(&T) -> &'static str,
    example: &str,
) -> Result<T, EvalError> {
    let (value, span) = &args.items[0];
    let Value::Form(form) = value else {
        return Err(args.wrong(0, &format!("the name of an instruction, such as {example}")));
    };
    let wanted = form.to_string();
    atoms
        .iter()
        .filter(|atom| abbreviates(&wanted, name(atom)))
        .min_by_key(|atom| name(atom).split('.').count())
        .map(|atom| **atom)
        .ok_or_else(|| {
            let known = |name: &str| abbreviates(&wanted, name);
            let message = if MMA_ATOMS.iter().any(|atom| known(atom.name)) {
                format!(
                    "{wanted} multiplies; {} takes an instruction that copies, such as {example}",
                    args.name
                )
            } else if COPY_ATOMS.iter().any(|atom| known(atom.name)) {
                format!(
                    "{wanted} copies, it has no operands A, B and C; {} takes an instruction that multiplies, such as {example}",
                    args.name
                )
            } else {
                format!("no such instruction; name its parts in order, such as {example}")
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
