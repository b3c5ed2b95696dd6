//! Writes the index function of a layout to standard output: `index 'Sw<3,4,3> o (8,64):(ld,1)' rust`.
use layout_codegen::index::{IndexSpec, Target, function};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [layout, target] = &args[..] else {
        return Err("usage: index LAYOUT ptx|rust|cuda".into());
    };
    let target = Target::named(target).ok_or("the targets are ptx, rust and cuda")?;
    print!(
        "{}",
        function(&IndexSpec::parse("offset", layout)?, target)?
    );
    Ok(())
}
