//! The timeline of the pipeline in `docs/own-kernels-hopper.md` is drawn from the protocol of a ring (`TILEWRIGHT_UPDATE=1` draws it anew).

#[path = "common/generated.rs"]
mod generated;

use std::fmt::Write;

/// Stages of the ring, and the iterations by which a stage is released after its own.
const STAGES: usize = 4;
const LAG: usize = 1;
const ITERATIONS: usize = 12;

/// Units of time: from the issue of a TMA copy to its last byte, between two issues, and of the MMAs of an iteration.
const LATENCY: usize = 5;
const ISSUE: usize = 1;
const MMAS: usize = 2;

/// What becomes of the stage of an iteration: when it is empty and its copies begin, is full, is read from and until, and is released.
#[derive(Clone, Copy, Default)]
struct Iteration {
    filled_from: usize,
    full: usize,
    read_from: usize,
    read_to: usize,
    released: usize,
}

/// The protocol: iteration i is filled when the consumers have released iteration i − S, and releases iteration i − L.
fn schedule() -> Vec<Iteration> {
    let mut all = vec![Iteration::default(); ITERATIONS + LAG];
    for i in 0..all.len() {
        let issued = if i == 0 {
            0
        } else {
            all[i - 1].filled_from + ISSUE
        };
        let empty = if i < STAGES {
            0
        } else {
            all[i - STAGES].released
        };
        all[i].filled_from = issued.max(empty);
        all[i].full = all[i].filled_from + LATENCY;
        let before = if i == 0 { 0 } else { all[i - 1].read_to };
        all[i].read_from = all[i].full.max(before);
        all[i].read_to = all[i].read_from + MMAS;
        if i >= LAG {
            // The MMAs of iteration i are issued, and those of i − L complete.
            all[i - LAG].released = all[i].read_from.max(all[i - LAG].read_to);
        }
    }
    all.truncate(ITERATIONS);
    all
}

#[test]
fn the_schedule_keeps_the_protocol() {
    let all = schedule();
    for (i, it) in all.iter().enumerate() {
        assert!(it.full <= it.read_from && it.read_to <= it.released, "{i}");
        if i >= STAGES {
            assert!(all[i - STAGES].released <= it.filled_from, "{i}");
        }
    }
}

const UNIT: usize = 26;
const ROW: usize = 34;
const LEFT: usize = 70;

fn bar(svg: &mut String, row: usize, from: usize, to: usize, colour: &str, text: &str) {
    let (x, y, width) = (LEFT + from * UNIT, 8 + row * ROW, (to - from) * UNIT);
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"24\" fill=\"{colour}\" stroke=\"#fff\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
        x + width / 2,
        y + 16
    );
}

fn draw() -> String {
    let all = schedule();
    let end = all.iter().map(|it| it.released).max().expect("iterations");
    let (width, height) = (LEFT + end * UNIT + 10, 8 + STAGES * ROW + 30);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for stage in 0..STAGES {
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{}\">stage {stage}</text>",
            24 + stage * ROW
        );
    }
    for (i, it) in all.iter().enumerate() {
        let row = i % STAGES;
        bar(
            &mut svg,
            row,
            it.filled_from,
            it.full,
            "#bcd9f0",
            &format!("TMA {i}"),
        );
        if it.full < it.read_from {
            bar(&mut svg, row, it.full, it.read_from, "#eeeeee", "full");
        }
        bar(
            &mut svg,
            row,
            it.read_from,
            it.read_to,
            "#f6c28b",
            &format!("MMA {i}"),
        );
    }
    for (i, it) in all.iter().enumerate() {
        let row = i % STAGES;
        let x = LEFT + it.released * UNIT;
        let y = 8 + row * ROW;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\" stroke=\"#c0392b\" stroke-width=\"3\"/>",
            y - 3,
            y + 27
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" fill=\"#444\">time →    red: the stage is released</text>\n</svg>",
        height - 10
    );
    svg
}

#[test]
fn the_timeline_is_drawn_from_the_protocol() {
    generated::file("plots/pipeline.svg", &draw());
}
