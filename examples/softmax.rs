//! Calls a kernel of `tilewright::kernels` from a program: softmax, on the first GPU or, without one, on the emulator.
//!
//! `cargo run --release --example softmax`

use std::error::Error;

use tilewright::codegen::Arch;
use tilewright::codegen::ir::Element;
use tilewright::host::{Arg, On, run};
use tilewright::kernels::rows::RowTile;
use tilewright::kernels::softmax::softmax;

fn main() -> Result<(), Box<dyn Error>> {
    let (rows, cols) = (100, 700);
    let kernel = softmax(&RowTile::new(Element::F32, cols)?, Arch(80))?;
    let x: Vec<f32> = (0..rows * cols).map(|i| (i % 97) as f32 / 10.0).collect();
    let args = [
        ("rows", Arg::from(rows as u32)),
        ("cols", Arg::from(cols as u32)),
        ("x", Arg::input(&x)),
        ("y", Arg::output::<f32>(x.len())),
    ];
    let outcome = run(&kernel, On::Auto, args)?;
    outcome.clean()?; // nothing outside of the buffers, no race, every element written once
    let y: Vec<f32> = outcome.get("y")?;
    let worst = y
        .chunks(cols as usize)
        .map(|row| (row.iter().sum::<f32>() - 1.0).abs());
    println!(
        "on {}: rows add up to 1 within {:.1e}",
        outcome.device,
        worst.fold(0.0, f32::max)
    );
    Ok(())
}
