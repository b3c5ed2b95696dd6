//! Writes the PTX of a plan to standard output: `emit PLAN nn sm_80`.
use layout_codegen::plan::plan_named;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, operands, arch] = &args[..] else {
        return Err("usage: emit PLAN nn sm_80".into());
    };
    let plan = plan_named(name)?;
    print!("{}", plan.emit(operands.parse()?, arch.parse()?)?.ptx);
    Ok(())
}
