//! `tilewright run FILE.ptx --list`: the kernels of a file and what they take.

use std::process::ExitCode;

use serde_json::{Value, json};
use tilewright::emulator::{Kernel, Module, Param};

use super::RunArgs;
use super::argument::{ModuleVariable, Parameter};
use crate::error::{CliError, Outcome};
use crate::output;

/// Lists the kernels of the file, or the one that is asked for.
pub(super) fn list(args: &RunArgs) -> Outcome {
    let module = args.module(&args.text()?)?;
    let kernels: Vec<&Kernel> = module
        .kernels()
        .filter(|name| args.kernel.as_deref().is_none_or(|asked| asked == *name))
        .filter_map(|name| module.kernel(name))
        .collect();
    if let (Some(name), []) = (&args.kernel, &kernels[..]) {
        let known: Vec<&str> = module.kernels().collect();
        let file = args.file.display();
        let message = format!(
            "{file} has no kernel `{name}`; it has: {}",
            known.join(", ")
        );
        return Err(CliError::usage("no_such_kernel", message));
    }
    if args.json {
        let all: Vec<Value> = kernels.into_iter().map(to_json).collect();
        let variables = variables(&module).into_iter();
        let variables = variables.map(|v| json!({ "name": v.name, "bytes": v.bytes }));
        let variables: Vec<Value> = variables.collect();
        output::print_json(&json!({ "kernels": all, "variables": variables }));
    } else if kernels.is_empty() {
        output::print_line(&format!("{} has no kernel", args.file.display()));
    } else {
        let all: Vec<String> = kernels.into_iter().map(text).collect();
        let lines = all.join("\n") + &variable_lines(&module);
        output::print_line(&lines);
    }
    Ok(ExitCode::SUCCESS)
}

/// A parameter as the assignment of arguments needs it.
pub(super) fn parameter(param: &Param) -> Parameter {
    let ty = param.ty.name();
    let array = u64::from(param.size) != u64::from(param.ty.bits()) / 8;
    let (takes, example) = if array && param.size == 128 && param.align >= 64 {
        ("a tensor map".to_owned(), "tensor:f16:64x64:box=64x64:of=x")
    } else if array && param.size > 128 && param.align >= 64 {
        let example = "struct:tensor:f16:64x64:box=64x64:of=x,zero:…";
        (format!("{} bytes", param.size), example)
    } else if array {
        (format!("{} bytes", param.size), "struct:u64:0,…")
    } else {
        let example = match ty {
            _ if param.is_pointer => "buf:f32:1024",
            "u64" | "b64" => "buf:f32:1024",
            "s64" => "s64:0",
            "f64" => "f64:0",
            "f32" => "f32:0",
            "s32" => "s32:0",
            "u32" | "b32" => "u32:0",
            _ => "bytes:00…",
        };
        (ty.to_owned(), example)
    };
    Parameter {
        name: param.name.clone(),
        takes,
        example,
    }
}

/// The variables of the file as the assignment of `--variable` needs them.
pub(super) fn variables(module: &Module) -> Vec<ModuleVariable> {
    let all = module.variables().map(|(name, bytes)| ModuleVariable {
        name: name.to_owned(),
        bytes,
    });
    all.collect()
}

/// A line for each variable that is set by `--variable`.
fn variable_lines(module: &Module) -> String {
    let all = variables(module).into_iter().map(|v| {
        let bytes = v
            .bytes
            .map_or("of any size".to_owned(), |n| format!("{n} bytes"));
        let count = v.bytes.unwrap_or(1024);
        format!(
            "\nvariable {}  {bytes}  --variable {0}=buf:u8:{count}",
            v.name
        )
    });
    all.collect()
}

fn text(kernel: &Kernel) -> String {
    let mut lines = vec![kernel.name().to_owned()];
    let parameters: Vec<Parameter> = kernel.params().iter().map(parameter).collect();
    let widest = parameters.iter().map(|p| p.name.chars().count()).max();
    let widest = widest.unwrap_or(0);
    for Parameter {
        name,
        takes,
        example,
    } in parameters
    {
        lines.push(format!(
            "  {name:<widest$}  {takes:<9}  --arg {name}={example}"
        ));
    }
    let shape = |[x, y, z]: [u32; 3]| format!("{x}×{y}×{z}");
    if let Some(threads) = kernel.required_threads() {
        lines.push(format!("  blocks of {} threads", shape(threads)));
    } else if let Some(threads) = kernel.max_threads() {
        lines.push(format!("  blocks of at most {} threads", shape(threads)));
    }
    if kernel.static_shared() > 0 {
        let bytes = kernel.static_shared();
        lines.push(format!("  {bytes} bytes of static shared memory"));
    }
    lines.join("\n")
}

fn to_json(kernel: &Kernel) -> Value {
    let params = kernel.params().iter().map(|param| {
        json!({
            "name": param.name,
            "type": param.ty.name(),
            "bytes": param.size,
            "align": param.align,
            "offset": param.offset,
            "pointer": param.is_pointer,
        })
    });
    json!({
        "name": kernel.name(),
        "params": params.collect::<Vec<_>>(),
        "required_threads": kernel.required_threads(),
        "max_threads": kernel.max_threads(),
        "static_shared_bytes": kernel.static_shared(),
    })
}
