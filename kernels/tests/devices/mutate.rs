//! Programs with one mistake.

use tilewright_kernels::devices::{
    Action, Addend, Buffer, CollectiveKind, Content, Operand, Program,
};

use super::interpret::Rng;

/// A program with one mistake, and what it is; none if there is no place for it.
pub(crate) fn mutate(program: &Program, kind: usize, rng: &mut Rng) -> Option<(String, Program)> {
    let mut mutant = program.clone();
    let of = |wanted: fn(&Action) -> bool| -> Vec<usize> {
        let ops = program.ops.iter().enumerate();
        ops.filter(|(_, op)| wanted(&op.action))
            .map(|(i, _)| i)
            .collect()
    };
    let pick = |from: Vec<usize>, rng: &mut Rng| -> Option<usize> {
        (!from.is_empty()).then(|| from[rng.below(from.len())])
    };
    let is_wait = |action: &Action| matches!(action, Action::Wait(_));
    let is_copy = |action: &Action| matches!(action, Action::Copy { .. });
    let is_part = |action: &Action| matches!(action, Action::Collective(_));
    let is_product = |action: &Action| matches!(action, Action::Product(_));
    let name = match kind {
        0 => {
            let at = pick(of(is_wait), rng)?;
            mutant.ops.remove(at);
            "a wait dropped"
        }
        1 => {
            // A flag early: before the copy or product that it announces.
            let sets = of(|action| matches!(action, Action::Set(_)));
            let at = pick(sets, rng)?;
            let before = (0..at).rev().find(|&i| {
                let (a, b) = (&program.ops[i], &program.ops[at]);
                a.device == b.device && a.stream == b.stream && !is_wait(&a.action)
            })?;
            mutant.ops.swap(before, at);
            "a flag early"
        }
        2 => {
            let at = pick(of(is_copy), rng)?;
            mutant.ops.remove(at);
            "a copy dropped"
        }
        3 => {
            // The shard of another device: a rotation off by one.
            let at = pick(of(is_copy), rng)?;
            let Action::Copy { from, .. } = &mut mutant.ops[at].action else {
                return None;
            };
            let buffer = &program.buffers[from.buffer];
            let other = (0..program.buffers.len()).find(|&i| {
                let b = &program.buffers[i];
                b.name == buffer.name && b.device == (buffer.device + 1) % program.devices
            })?;
            from.buffer = other;
            "a rotation off by one"
        }
        4 => {
            let at = pick(of(is_product), rng)?;
            mutant.ops.remove(at);
            "a product dropped"
        }
        5 => {
            let at = pick(of(is_product), rng)?;
            let again = mutant.ops[at].clone();
            mutant.ops.insert(at + 1, again);
            "a product twice"
        }
        6 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            product.addend = match product.addend {
                Addend::Nothing | Addend::Old => Addend::Partial,
                Addend::Partial => Addend::Nothing,
            };
            "an addend mistaken"
        }
        7 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            product.finishes = !product.finishes;
            "the epilogue at the wrong time"
        }
        8 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            if product.c.block.rows.end - product.c.block.rows.start < 2 {
                return None;
            }
            product.c.block.rows.end -= 1;
            product.a.block.rows.end -= 1;
            "a row forgotten"
        }
        9 => {
            let at = pick(of(is_wait), rng)?;
            let Action::Wait(flag) = &mut mutant.ops[at].action else {
                return None;
            };
            *flag = rng.below(program.flags);
            "a wait for another flag"
        }
        10 => {
            let at = pick(of(is_copy), rng)?;
            let Action::Copy { from, to } = &mut mutant.ops[at].action else {
                return None;
            };
            if from.block.columns.end - from.block.columns.start < 2 {
                return None;
            }
            from.block.columns.end -= 1;
            to.block.columns.end -= 1;
            "a column forgotten"
        }
        11 => {
            // The copy on another stream than the flag behind it.
            let at = pick(of(is_copy), rng)?;
            mutant.ops[at].stream = (mutant.ops[at].stream + 1) % program.streams;
            "a copy on another stream"
        }
        12 => {
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            if product.depth().end - product.depth().start < 2 {
                return None;
            }
            product.a.block.columns.end -= 1;
            product.b.block.rows.end -= 1;
            "an index of the sums forgotten"
        }
        13 => {
            let at = pick(of(is_part), rng)?;
            mutant.ops.remove(at);
            "a part of a collective dropped"
        }
        14 => {
            // What another device should give or get.
            let parts = of(is_part);
            let at = pick(parts.clone(), rng)?;
            let other = pick(parts, rng)?;
            let Action::Collective(other) = program.ops[other].action.clone() else {
                return None;
            };
            let Action::Collective(part) = &mut mutant.ops[at].action else {
                return None;
            };
            match part.kind {
                CollectiveKind::AllGather => part.from.block = other.from.block,
                CollectiveKind::ReduceScatter => part.to.block = other.to.block,
            }
            "another device's block in a collective"
        }
        15 => {
            // The product that needs it first, or what it needs after it.
            let at = pick(of(is_part), rng)?;
            let device = program.ops[at].device;
            let other = (0..program.ops.len())
                .find(|&i| program.ops[i].device == device && is_product(&program.ops[i].action))?;
            mutant.ops.swap(at, other);
            "a collective at the wrong time"
        }
        16 => {
            // What another device should have gets a term of this one, or the other way round.
            let at = pick(of(is_product), rng)?;
            let Action::Product(product) = &mut mutant.ops[at].action else {
                return None;
            };
            let block = product.c.block.clone();
            let holds = |b: &Buffer| {
                b.operand == Operand::C
                    && b.block.rows.start <= block.rows.start
                    && block.rows.end <= b.block.rows.end
                    && b.block.columns.start <= block.columns.start
                    && block.columns.end <= b.block.columns.end
            };
            let others = program.buffers.iter().enumerate();
            let others = others.filter(|(i, b)| *i != product.c.buffer && holds(b));
            let others: Vec<_> = others.map(|(i, _)| i).collect();
            product.c.buffer = pick(others, rng)?;
            "a result in another buffer"
        }
        17 => {
            // Each device submits all that it has by itself, and one of them first.
            mutant.ops.sort_by_key(|op| op.device);
            mutant.prove().is_err().then_some(())?;
            "devices that submit on their own"
        }
        _ => {
            let buffer = pick((0..program.buffers.len()).collect(), rng)?;
            if program.buffers[buffer].content == Content::Nothing {
                return None;
            }
            mutant.buffers[buffer].content = Content::Nothing;
            "a shard that is not there"
        }
    };
    (mutant != *program).then(|| (name.to_owned(), mutant))
}

pub(crate) const KINDS: usize = 19;
