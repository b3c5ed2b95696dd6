//! The picture of what is proven of the transpose of `docs/proofs.md`, drawn from its proof (`TILEWRIGHT_UPDATE=1` draws it anew).

use std::fmt::Write;

use tilewright::codegen::Arch;
use tilewright::codegen::Proven;
use tilewright::codegen::ir::{Axis, Element::F32, Kernel};
use tilewright::{Swizzled, layout};

use crate::generated;

/// The kernel of the page.
fn transpose() -> Result<Proven, Box<dyn std::error::Error>> {
    let mut k = Kernel::new("transpose", 256);
    let (rows, cols) = (k.size("rows", 1 << 30), k.size("cols", 1 << 30));
    let x = k.input("x", F32, &[rows, cols]);
    let y = k.output("y", F32, &[cols, rows]);
    let (b, c) = (k.tiles(Axis::X, rows, 64)?, k.tiles(Axis::Y, cols, 64)?);
    let (thread, tv) = (k.thread(), layout!(((32,8),(8,2)):((64,1),(8,2048))));
    let tile = k.shared("tile", F32, &Swizzled::parse("Sw<5,0,6> o (64,64):(64,1)")?)?;
    let from = x
        .tile(&mut k, &[64, 64], &[b, c])?
        .partition(&mut k, &tv, thread)?;
    let put = tile.partition(&mut k, &tv, thread)?;
    k.copy(&from, &put)?;
    k.barrier();
    let take = tile.transposed().partition(&mut k, &tv, thread)?;
    let to = y
        .tile(&mut k, &[64, 64], &[c, b])?
        .partition(&mut k, &tv, thread)?;
    k.copy(&take, &to)?;
    Ok(k.build(Arch(80))?)
}

/// Columns: what is proven of an instruction.
const COLUMNS: [&str; 5] = [
    "address and bounds",
    "value defined",
    "order (races)",
    "coverage",
    "cost",
];

const LEFT: usize = 190;
const WIDTH: usize = 168;
const HEIGHT: usize = 58;
const TOP: usize = 34;

/// An instruction, how often a thread executes it, and what is proven of it, by column; nothing where a column asks nothing.
struct Row {
    instruction: &'static str,
    count: usize,
    cells: [Vec<String>; 5],
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn rows(kernel: &Proven) -> Vec<Row> {
    let count = |instruction: &str| kernel.ptx.matches(instruction).count();
    let wavefronts = |i: usize| {
        let a = &kernel.proof.shared[i];
        let (actual, ideal) = (a.wavefronts, a.ideal);
        vec![format!("{actual} wavefront, ideal {ideal}")]
    };
    let sectors = |i: usize| {
        let a = &kernel.proof.global[i];
        vec![format!("{} sectors, ideal {}", a.sectors, a.ideal)]
    };
    let inside = lines("layout of the view;\nguard ⇔ inside the tensor");
    let shared = lines("layout of the view;\n64·64 elements");
    let covered = kernel.proof.covered.join(", ");
    let none = Vec::new;
    let row = |instruction, cells| Row {
        instruction,
        count: count(instruction),
        cells,
    };
    vec![
        row(
            "ld.global",
            [
                inside.clone(),
                none(),
                lines("x is never written"),
                none(),
                sectors(0),
            ],
        ),
        row(
            "st.shared",
            [
                shared.clone(),
                lines("loaded, or 0 where the\nguard fails"),
                lines("no other access to the\nbyte before the barrier"),
                none(),
                wavefronts(0),
            ],
        ),
        row(
            "bar.sync",
            [
                none(),
                none(),
                lines("reached by all 256\nthreads"),
                none(),
                none(),
            ],
        ),
        row(
            "ld.shared",
            [
                shared,
                lines("each byte was written\nbefore the barrier"),
                lines("the barrier orders the\nwrite before the read"),
                none(),
                wavefronts(1),
            ],
        ),
        row(
            "st.global",
            [
                inside,
                lines("loaded from the tile"),
                lines("no thread reads y"),
                vec![
                    format!("each element of {covered}"),
                    "exactly once".to_owned(),
                ],
                sectors(1),
            ],
        ),
    ]
}

fn text(svg: &mut String, (x, y): (usize, usize), style: &str, text: &str) {
    let text = text.replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{style}>{text}</text>");
}

fn draw(kernel: &Proven) -> String {
    let rows = rows(kernel);
    let (width, height) = (
        LEFT + COLUMNS.len() * WIDTH + 8,
        TOP + rows.len() * HEIGHT + 8,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (i, column) in COLUMNS.iter().enumerate() {
        let at = (LEFT + i * WIDTH + WIDTH / 2, 22);
        text(
            &mut svg,
            at,
            " text-anchor=\"middle\" font-weight=\"bold\"",
            column,
        );
    }
    for (r, row) in rows.iter().enumerate() {
        let y = TOP + r * HEIGHT;
        let label = format!("{} × {}", row.count, row.instruction);
        text(
            &mut svg,
            (8, y + HEIGHT / 2 + 4),
            " font-family=\"monospace\" font-size=\"14\"",
            &label,
        );
        for (c, cell) in row.cells.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
            let x = LEFT + c * WIDTH;
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\"/>",
                x + 3,
                y + 3,
                WIDTH - 6,
                HEIGHT - 6,
                if c == 4 { "#fdeccd" } else { "#dcebdc" }
            );
            let first = y + HEIGHT / 2 + 4 - 8 * (cell.len() - 1);
            for (i, line) in cell.iter().enumerate() {
                let at = (x + WIDTH / 2, first + 16 * i);
                text(&mut svg, at, " text-anchor=\"middle\"", line);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn what_is_proven_of_the_transpose() -> Result<(), Box<dyn std::error::Error>> {
    let kernel = transpose()?;
    let rows = rows(&kernel);
    let accesses: usize = rows.iter().map(|row| row.count).sum::<usize>() - 1;
    assert_eq!(accesses, kernel.proof.addresses);
    generated::file("plots/proof.svg", &draw(&kernel));
    Ok(())
}
