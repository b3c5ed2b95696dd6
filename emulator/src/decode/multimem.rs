//! Decoding of `multimem` (PTX ISA, section 9.7.9.14).
//!
//! A multimem address stands for one place on each device of a team. The emulator is one device: a team of one, whose multimem addresses are its
//! addresses. So `multimem.ld_reduce` reduces one value, which is a load, and `multimem.st` and `multimem.red` are a store and a reduction. Example:
//! `multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.v4.f16x2` loads four words as `ld.relaxed.gpu.global.v4.b32` does.

use super::memory::space_of;
use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, Space};
use crate::ir::Op;

/// The operations that `multimem` has on type `ty`; with halves, `.ld_reduce` has more than `.red`.
fn has(op: &str, ty: &str, load: bool) -> bool {
    match op {
        "add" => matches!(
            ty,
            "u32" | "u64" | "s32" | "f16" | "f16x2" | "bf16" | "bf16x2" | "f32" | "f64"
        ),
        "and" | "or" | "xor" => matches!(ty, "b32" | "b64"),
        _ => {
            matches!(ty, "u32" | "s32" | "u64" | "s64")
                || load && matches!(ty, "f16" | "f16x2" | "bf16" | "bf16x2")
        }
    }
}

/// Whether elements of `ty` in vectors of `count` make a word, two or four.
fn fits(ty: &str, count: usize) -> bool {
    let bytes = match ty {
        "f16" | "bf16" => 2,
        "f16x2" | "bf16x2" | "f32" => 4,
        // Integers and f64 have no vectors.
        _ => return count == 1,
    };
    matches!(bytes * count, 4 | 8 | 16)
}

impl<'a> Decoder<'a> {
    /// `multimem.ld_reduce`, `multimem.st` and `multimem.red`.
    pub(super) fn multimem(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let kind = m.find(|s| matches!(s, "ld_reduce" | "st" | "red").then_some(s));
        let name = match kind {
            Some("ld_reduce") => "ld",
            Some(other) => other,
            None => return m.invalid("one of .ld_reduce, .st, .red is needed"),
        };
        let op = m.find(|s| matches!(s, "add" | "min" | "max" | "and" | "or" | "xor").then_some(s));
        if op.is_some() == (name == "st") {
            return m.invalid("an operation such as .add is needed, but for .st");
        }
        let Some((ty, span)) = m.list.pop() else {
            return m.invalid("a type is needed");
        };
        let precise = m.take("acc::f32");
        let half = matches!(ty, "f16" | "f16x2" | "bf16" | "bf16x2");
        if precise && !(half && name == "ld") {
            return m.invalid(".acc::f32 is for .ld_reduce of halves");
        }
        let count = match m.list.last() {
            Some(("v2", _)) => 2,
            Some(("v4", _)) => 4,
            Some(("v8", _)) => 8,
            _ => 1,
        };
        let known = match op {
            Some(op) => has(op, ty, name == "ld"),
            None => has("add", ty, false) || has("and", ty, false) || ty == "s64",
        };
        if !known || !fits(ty, count) {
            return m.invalid("this type or vector");
        }
        let space = m.list.iter().find_map(|(s, _)| space_of(s));
        if space.is_some_and(|s| s != Space::Global) {
            return m.invalid("multimem addresses are global");
        }
        let plain = match (ty, name) {
            ("f16" | "bf16", "ld" | "st") => "b16",
            ("f16x2" | "bf16x2", "ld" | "st") => "b32",
            _ => ty,
        };
        if name == "red" {
            m.list.extend(op.map(|op| (op, span)));
            if half {
                m.list.push(("noftz", span));
            }
        }
        m.list.push((plain, span));
        let alias = InstrAst {
            name,
            mods: m.list.clone(),
            ..i.clone()
        };
        match self.memory(&alias, m)? {
            Some(op) => Ok(op),
            None => m.invalid("this form"),
        }
    }
}
