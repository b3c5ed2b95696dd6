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
use crate::index::code::Ty;
use crate::index::spec::IndexError;
use crate::ir::class_of;
use crate::print::{class_type, mnemonic};

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
    let kind = |ty: Ty| class_type(class_of(ty));
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
