//! Strong loads that may find an old value.
//!
//! Strong accesses without fences are no race by themselves; mostly they are loads that wait for a value. But no fence orders the accesses of a thread either. A
//! block that has seen a later strong access of a thread, and then loads what the thread stored before it, may find the old value. That is wrong where it uses
//! the value as data ([`data_loads`]): `part[block] = sum; atomicInc(&count)` with a volatile `part`, and the block that counts last adds the parts.

use std::collections::HashMap;

use crate::fences::Strong;
use crate::ir::{Op, Program, Reg};
use crate::types::File;

/// The strong accesses of all blocks.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// By block: how many strong accesses it has made.
    pub(super) counts: HashMap<u32, u32>,
    words: HashMap<u64, Message>,
    /// By block: the accesses that it has learnt of, as block, thread and number.
    pub(super) read: HashMap<u32, HashMap<(u32, u32), u32>>,
}

/// What a word tells those who read it.
#[derive(Debug)]
pub(super) enum Message {
    /// By block: the thread that accessed it, and the number of that access.
    From(HashMap<u32, (u32, u32)>),
    /// Nothing: two threads of one block have updated it, or too many blocks. It counts events, and nobody waits for a thread by it.
    Counter,
}

/// The most blocks of a message.
pub(super) const BLOCKS: usize = 512;

impl Late {
    /// Thread `by` of block `me` accesses a word.
    pub(super) fn access(&mut self, (me, by): (u32, u32), word: u64, access: Strong) {
        match (self.words.get(&word), access) {
            (_, Strong::Store) | (None, Strong::Update) => {}
            (None, Strong::Load) | (Some(Message::Counter), _) => return,
            (Some(Message::From(known)), _) => {
                let read = self.read.entry(me).or_default();
                for (block, (thread, number)) in known {
                    let to = read.entry((*block, *thread)).or_default();
                    *to = (*to).max(*number);
                }
            }
        }
        if access == Strong::Load {
            return;
        }
        let count = self.counts.entry(me).or_default();
        *count += 1;
        let message = self
            .words
            .entry(word)
            .or_insert_with(|| Message::From(HashMap::new()));
        if access == Strong::Store {
            *message = Message::From(HashMap::from([(me, (by, *count))]));
            return;
        }
        let Message::From(known) = message else {
            return;
        };
        let other = known.get(&me).is_some_and(|(thread, _)| *thread != by);
        if other || known.len() == BLOCKS {
            *message = Message::Counter;
        } else {
            known.insert(me, (by, *count));
        }
    }
}

/// The strong loads whose values are data: no predicate, function or atomic operation depends on them. The others wait for a value, or choose by it.
pub(super) fn data_loads(p: &Program) -> Vec<bool> {
    let mut out = vec![false; p.insts.len()];
    for body in &p.bodies {
        let range = body.start as usize..body.end as usize;
        for pc in range.clone() {
            let is_load = matches!(&p.insts[pc].op, Op::Ld(a) if a.strong);
            let Some((_, loaded)) = p.uses.get(pc).filter(|_| is_load) else {
                continue;
            };
            let mut depends: Vec<Reg> = loaded.clone();
            let mut before = 0;
            while before != depends.len() {
                before = depends.len();
                for (reads, writes) in &p.uses[range.clone()] {
                    if reads.iter().any(|r| depends.contains(r)) {
                        let new = writes.iter().filter(|w| !depends.contains(w));
                        depends.extend(new.copied().collect::<Vec<_>>());
                    }
                }
            }
            let chooses = depends.iter().any(|r| r.file == File::Pred);
            out[pc] = !chooses
                && range.clone().all(|k| {
                    let other = matches!(
                        p.insts[k].op,
                        Op::Call(_) | Op::Atom(_) | Op::Atoms(_) | Op::Atom128(_) | Op::Brx { .. }
                    );
                    !other || !p.uses[k].0.iter().any(|r| depends.contains(r))
                });
        }
    }
    out
}
