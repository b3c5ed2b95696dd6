//! Programs without movement: what a product over devices would cost if everything were in its place.

use layout_core::devices::Block;

use super::block::is_empty;
use super::error::DevicesError;
use super::placement::Placement;
use super::program::{Action, Addend, Content, Operand, Product, Program, Region};
use crate::gemm::Gemm;

pub(super) fn program(problem: &Gemm, placement: &Placement) -> Result<Program, DevicesError> {
    let terms = placement.sums_move();
    // A device's own term is the product over its part of k.
    let mut program = Program::new(problem, placement.devices());
    let addend = if problem.beta == 0.0 {
        Addend::Nothing
    } else {
        Addend::Old
    };
    let old = if problem.beta == 0.0 {
        Content::Nothing
    } else {
        Content::Everything
    };
    for device in 0..placement.devices() {
        let (a, b, c) = if terms {
            let a = placement.block(Operand::A, device)?;
            let b = placement.block(Operand::B, device)?;
            let c = Block {
                rows: a.rows.clone(),
                columns: b.columns.clone(),
            };
            (a, b, c)
        } else {
            let c = placement.block(Operand::C, device)?;
            let a = Block {
                rows: c.rows.clone(),
                columns: 0..problem.k,
            };
            let b = Block {
                rows: 0..problem.k,
                columns: c.columns.clone(),
            };
            (a, b, c)
        };
        let mut region = |operand: Operand, block: Block, content| {
            let buffer =
                program.buffer(device, operand.to_string(), operand, block.clone(), content);
            Region { buffer, block }
        };
        let a = region(Operand::A, a, Content::Everything);
        let b = region(Operand::B, b, Content::Everything);
        let c = region(Operand::C, c, old.clone());
        program.results.push(c.clone());
        if is_empty(&c.block) {
            continue;
        }
        let product = Product {
            a,
            b,
            c,
            addend,
            finishes: true,
        };
        program.push(device, 0, Action::Product(Box::new(product)));
    }
    if terms {
        // Nobody adds the terms: no device has a result.
        program.results.clear();
    }
    Ok(program)
}
