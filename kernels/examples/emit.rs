//! Writes the PTX of a plan to standard output: `emit PLAN nn sm_80`, for a problem whose matrices are packed.
//!
//! Further arguments adapt it: `m=…`, `n=…`, `k=…`, `ctype=f32`, `bias=row`, `activation=gelu`, `batch=3`, `align=2`, `split=4`, `pack=1`.
use std::io::Write as _;

use layout_codegen::ir::Element;
use tilewright_kernels::gemm::{Batch, Config, Gemm, Schedule};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, operands, arch, options @ ..] = &args[..] else {
        return Err("usage: emit PLAN nn sm_80 [name=value]...".into());
    };
    let operands = operands.parse()?;
    let option = |name: &str| {
        let mut all = options.iter().filter_map(|o| o.split_once('='));
        all.find(|(n, _)| *n == name).map(|(_, value)| value)
    };
    let size = |name| option(name).map_or(Ok(1024), str::parse::<u64>);
    let (m, n, k) = (size("m")?, size("n")?, size("k")?);
    let mut problem = Gemm::packed(m, n, k, operands);
    let elements = [Element::F32, Element::F16, Element::Bf16];
    problem.output = match option("ctype") {
        Some(name) => {
            let named = elements.into_iter().find(|e| e.to_string() == name);
            Some(named.ok_or("ctype is f32, f16 or bf16")?)
        }
        None => None,
    };
    problem.epilogue.bias = option("bias").unwrap_or("none").parse()?;
    problem.epilogue.activation = option("activation").unwrap_or("none").parse()?;
    if let Some(count) = option("batch") {
        problem.batch = Batch {
            count: count.parse()?,
            strides: [m * k, k * n, m * n],
        };
    }
    if let Some(align) = option("align") {
        let align = align.parse()?;
        (
            problem.alignment.a,
            problem.alignment.b,
            problem.alignment.c,
        ) = (align, align, u32::max(align, 4));
    }
    let schedule = Schedule {
        split: option("split").unwrap_or("1").parse()?,
        pack: option("pack").is_some_and(|p| p != "0"),
    };
    let plan = name
        .parse::<Config>()
        .map(Config::kernel)?
        .specialize(&problem, schedule)?;
    let kernel = plan.emit(operands, arch.parse()?)?;
    Ok(std::io::stdout().write_all(kernel.ptx.as_bytes())?)
}
