//! PTX: a block that leaves nothing behind but its result.
//!
//! ```text
//! // The offset of `(32,32):(33,1)`
//! // at `row` in 0..32, `col` in 0..32: from 0 to 1054.
//! // reads %row (.b32), %col (.b32); writes %offset (.b32)
//! {
//!     mad.lo.s32 %offset, %row, 33, %col;
//! }
//! ```

use std::fmt::Write as _;

use super::program::{Argument, Program};
use crate::index::code::{Op, Ty};
use crate::index::spec::IndexError;

/// Names of special registers (PTX ISA 9.0, Special Registers) and of the predefined constant.
const SPECIAL: [&str; 25] = [
    "tid",
    "ntid",
    "laneid",
    "warpid",
    "nwarpid",
    "ctaid",
    "nctaid",
    "smid",
    "nsmid",
    "gridid",
    "is_explicit_cluster",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
    "cluster_ctarank",
    "cluster_nctarank",
    "clock",
    "clock_hi",
    "clock64",
    "globaltimer",
    "globaltimer_lo",
    "globaltimer_hi",
    "total_smem_size",
    "dynamic_smem_size",
];

fn check(name: &str) -> Result<(), IndexError> {
    let numbered = ["lanemask_", "pm", "envreg", "reserved_smem"];
    if SPECIAL.contains(&name) || numbered.iter().any(|p| name.starts_with(p)) {
        return Err(IndexError::Name {
            name: name.to_owned(),
            reason: "is a special register of PTX",
        });
    }
    Ok(())
}

pub(super) fn text(program: &Program) -> Result<String, IndexError> {
    for p in &program.parameters {
        check(&p.name)?;
    }
    check(&program.name)?;
    let kind = |ty: Ty| if ty.wide() { ".b64" } else { ".b32" };
    let prefix = program.temporary_prefix();
    let first = program.parameters.len();
    let last = first + program.statements.len();
    // A 64-bit temporary has a `d` in its name.
    let (mut narrow, mut wide) = (0, 0);
    let mut names: Vec<String> = program
        .parameters
        .iter()
        .map(|p| format!("%{}", p.name))
        .collect();
    for (i, s) in program.statements.iter().enumerate() {
        names.push(if program.result == Argument::Value(first + i) {
            format!("%{}", program.name)
        } else if s.result.wide() {
            wide += 1;
            format!("%{prefix}d{}", wide - 1)
        } else {
            narrow += 1;
            format!("%{prefix}{}", narrow - 1)
        });
    }
    let spell = |a: Argument| match a {
        Argument::Constant(k) => k.to_string(),
        Argument::Value(v) => names[v].clone(),
    };

    let mut out = String::new();
    for line in &program.about {
        let _ = writeln!(out, "// {line}");
    }
    let reads: Vec<_> = program
        .parameters
        .iter()
        .map(|p| format!("%{} ({})", p.name, kind(p.ty)))
        .collect();
    let _ = writeln!(
        out,
        "// reads {}; writes %{} ({})",
        reads.join(", "),
        program.name,
        kind(program.ty)
    );
    out.push_str("{\n");
    if narrow > 0 {
        let _ = writeln!(out, "    .reg .b32 %{prefix}<{narrow}>;");
    }
    if wide > 0 {
        let _ = writeln!(out, "    .reg .b64 %{prefix}d<{wide}>;");
    }
    for (i, s) in program.statements.iter().enumerate() {
        let from = match s.arguments.first() {
            Some(Argument::Value(v)) => program.type_of(*v),
            _ => s.ty,
        };
        let args: Vec<_> = s.arguments.iter().map(|&a| spell(a)).collect();
        let _ = writeln!(
            out,
            "    {} {}, {};",
            mnemonic(s.op, s.ty, from),
            names[first + i],
            args.join(", ")
        );
    }
    let copied = match program.result {
        Argument::Constant(_) => true,
        Argument::Value(v) => v < first || v >= last,
    };
    if copied {
        let _ = writeln!(
            out,
            "    mov{} %{}, {};",
            kind(program.ty),
            program.name,
            spell(program.result)
        );
    }
    out.push_str("}\n");
    Ok(out)
}

/// The mnemonic of `op` on `ty`, where the first argument is of type `from`.
pub(crate) fn mnemonic(op: Op, ty: Ty, from: Ty) -> &'static str {
    match (op, ty) {
        (Op::Add, Ty::U32 | Ty::S32) => "add.s32",
        (Op::Add, _) => "add.s64",
        (Op::Sub, Ty::U32 | Ty::S32) => "sub.s32",
        (Op::Sub, _) => "sub.s64",
        (Op::Mul, Ty::U32 | Ty::S32) => "mul.lo.s32",
        (Op::Mul, _) => "mul.lo.s64",
        (Op::Mad, Ty::U32 | Ty::S32) => "mad.lo.s32",
        (Op::Mad, _) => "mad.lo.s64",
        (Op::MulWide, Ty::S32) => "mul.wide.s32",
        (Op::MulWide, _) => "mul.wide.u32",
        (Op::MadWide, Ty::S32) => "mad.wide.s32",
        (Op::MadWide, _) => "mad.wide.u32",
        (Op::MulHi, Ty::U32) => "mul.hi.u32",
        (Op::MulHi, Ty::S32) => "mul.hi.s32",
        (Op::MulHi, Ty::U64) => "mul.hi.u64",
        (Op::MulHi, Ty::S64) => "mul.hi.s64",
        (Op::Shl, Ty::U32 | Ty::S32) => "shl.b32",
        (Op::Shl, _) => "shl.b64",
        (Op::Shr, Ty::U32) => "shr.u32",
        (Op::Shr, Ty::S32) => "shr.s32",
        (Op::Shr, Ty::U64) => "shr.u64",
        (Op::Shr, Ty::S64) => "shr.s64",
        (Op::And, Ty::U32 | Ty::S32) => "and.b32",
        (Op::And, _) => "and.b64",
        (Op::Xor, Ty::U32 | Ty::S32) => "xor.b32",
        (Op::Xor, _) => "xor.b64",
        (Op::Div, Ty::U32) => "div.u32",
        (Op::Div, Ty::S32) => "div.s32",
        (Op::Div, Ty::U64) => "div.u64",
        (Op::Div, Ty::S64) => "div.s64",
        (Op::Widen, _) if from.signed() => "cvt.s64.s32",
        (Op::Widen, _) => "cvt.u64.u32",
        (Op::Narrow, _) => "cvt.u32.u64",
    }
}
