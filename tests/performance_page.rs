//! The roofline of `docs/performance.md` is drawn from the page's own table (`TILEWRIGHT_UPDATE=1` draws it anew).

#[path = "common/generated.rs"]
mod generated;

use std::fmt::Write;
use std::path::Path;

/// A row of the table: our time is `milliseconds`, the library's `ratio` times that.
struct Gemm {
    size: [f64; 3],
    data_type: String,
    milliseconds: f64,
    ratio: f64,
}

/// An H100 by its data sheet: TFLOP/s of dense matrix instructions.
fn peak(data_type: &str) -> f64 {
    match data_type {
        "f16" | "bf16" => 989.4,
        "tf32" => 494.7,
        "s8" | "e4m3" => 1978.9,
        _ => panic!("{data_type}"),
    }
}

/// Bytes of an element of A and B, and of C.
fn bytes(data_type: &str) -> (f64, f64) {
    match data_type {
        "f16" | "bf16" => (2.0, 2.0),
        "tf32" => (4.0, 4.0),
        _ => (1.0, 4.0),
    }
}

/// Terabytes a second of the H100's memory, by its data sheet.
const BANDWIDTH: f64 = 3.35;

impl Gemm {
    fn operations(&self) -> f64 {
        2.0 * self.size.iter().product::<f64>()
    }

    /// Operations for each byte of A, B and C.
    fn intensity(&self) -> f64 {
        let [m, n, k] = self.size;
        let (operand, result) = bytes(&self.data_type);
        self.operations() / ((m * k + k * n) * operand + m * n * result)
    }

    fn tflops(&self) -> f64 {
        self.operations() / self.milliseconds / 1e9
    }
}

/// The first number of a cell.
fn number(cell: &str) -> f64 {
    let first = cell.split([',', ' ']).next().expect("a number");
    first.parse().unwrap_or_else(|_| panic!("{cell}"))
}

fn rows(page: &str) -> Vec<Gemm> {
    let header = "| m×n×k | type | ms | TFLOP/s | ratio |";
    let (_, rest) = page.split_once(header).expect("the table");
    let rows = rest
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let size = if let Some(side) = cells[0].strip_suffix('³') {
            [number(side); 3]
        } else {
            let sides: Vec<f64> = cells[0].split('×').map(number).collect();
            sides.try_into().expect("three sides")
        };
        let gemm = Gemm {
            size,
            data_type: cells[1].split(' ').next().expect("a type").to_owned(),
            milliseconds: number(cells[2]),
            ratio: number(cells[4]),
        };
        let stated = number(cells[3]);
        let off = gemm.tflops() / stated - 1.0;
        assert!(off.abs() < 0.02, "{row}: {:.1} TFLOP/s", gemm.tflops());
        gemm
    })
    .collect()
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;

fn x(intensity: f64) -> f64 {
    60.0 + (intensity / 10.0).log10() / 3.0 * (WIDTH - 180.0)
}

fn y(tflops: f64) -> f64 {
    HEIGHT - 45.0 - (tflops / 20.0).log10() / (2500.0_f64 / 20.0).log10() * (HEIGHT - 65.0)
}

fn colour(data_type: &str) -> &'static str {
    match data_type {
        "f16" => "#1f77b4",
        "bf16" => "#17a2b8",
        "tf32" => "#2ca02c",
        "s8" => "#d62728",
        _ => "#ff7f0e",
    }
}

fn draw(gemms: &[Gemm]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for tick in [10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0] {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\" stroke=\"#eee\"/><text x=\"{0:.1}\" y=\"{3:.1}\" text-anchor=\"middle\" fill=\"#444\">{tick}</text>",
            x(tick),
            y(20.0),
            y(2500.0),
            y(20.0) + 16.0
        );
    }
    for tick in [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0] {
        let _ = writeln!(
            svg,
            "<line x1=\"{0:.1}\" x2=\"{1:.1}\" y1=\"{2:.1}\" y2=\"{2:.1}\" stroke=\"#eee\"/><text x=\"{3:.1}\" y=\"{4:.1}\" text-anchor=\"end\" fill=\"#444\">{tick}</text>",
            x(10.0),
            x(10000.0),
            y(tick),
            x(10.0) - 6.0,
            y(tick) + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#222\">operations for each byte of A, B and C</text>\n\
         <text x=\"14\" y=\"{2:.1}\" transform=\"rotate(-90 14 {2:.1})\" text-anchor=\"middle\" fill=\"#222\">TFLOP/s</text>",
        f64::midpoint(x(10.0), x(10000.0)),
        HEIGHT - 8.0,
        HEIGHT / 2.0
    );
    for (name, data_type) in [("f16, bf16", "f16"), ("tf32", "tf32"), ("s8, e4m3", "s8")] {
        let (roof, ridge) = (peak(data_type), peak(data_type) / BANDWIDTH);
        let _ = writeln!(
            svg,
            "<polyline points=\"{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}\" fill=\"none\" stroke=\"#999\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#444\">{name}: {roof:.0}</text>",
            x(10.0),
            y(10.0 * BANDWIDTH),
            x(ridge),
            y(roof),
            x(10000.0),
            y(roof),
            x(10000.0) + 6.0,
            y(roof) + 4.0
        );
    }
    for gemm in gemms {
        let (at, ours, theirs) = (
            x(gemm.intensity()),
            gemm.tflops(),
            gemm.tflops() / gemm.ratio,
        );
        let [m, n, k] = gemm.size;
        let (name, paint) = (&gemm.data_type, colour(&gemm.data_type));
        let _ = writeln!(
            svg,
            "<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"none\" stroke=\"{paint}\"/><circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{paint}\"><title>{name} {m}×{n}×{k}: {ours:.0} TFLOP/s, {:.2} of the library</title></circle>",
            y(theirs),
            y(ours),
            gemm.ratio
        );
    }
    for (i, data_type) in ["f16", "bf16", "tf32", "s8", "e4m3"].iter().enumerate() {
        let (left, top) = (
            x(10000.0) + 20.0,
            y(200.0) + 18.0 * f64::from(u8::try_from(i).expect("few")),
        );
        let _ = writeln!(
            svg,
            "<circle cx=\"{left:.1}\" cy=\"{top:.1}\" r=\"4\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#222\">{data_type}</text>",
            colour(data_type),
            left + 10.0,
            top + 4.0
        );
    }
    svg + "</svg>\n"
}

#[test]
fn the_roofline_is_that_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/performance.md")).expect("the page");
    let gemms = rows(&page);
    assert!(gemms.len() > 10, "{} rows", gemms.len());
    generated::file("plots/roofline.svg", &draw(&gemms));
}
