//! Runs the command: expressions in, one answer a line out.
//!
//! Expressions go in chunks, each to one process. Where a chunk does not come back whole, its expressions are asked one by
//! one, so that a panic or a hang is known by its expression.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::Answer;

const CHUNK: usize = 4000;

pub(crate) fn ask(expressions: &[&str]) -> Vec<Answer> {
    expressions.chunks(CHUNK).flat_map(ask_chunk).collect()
}

fn ask_chunk(chunk: &[&str]) -> Vec<Answer> {
    let (text, end) = run(chunk, Duration::from_secs(40));
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() == chunk.len() {
        return lines.into_iter().map(Answer::of_line).collect();
    }
    if let [one] = chunk {
        return vec![Answer::Dead(format!("{end} after {one:?}"))];
    }
    // Halves: all but the culprit come back whole.
    let (left, right) = chunk.split_at(chunk.len() / 2);
    let mut answers = ask_chunk(left);
    answers.extend(ask_chunk(right));
    answers
}

/// All output, and how the process ended.
fn run(chunk: &[&str], limit: Duration) -> (String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["eval", "--stdin", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut stdout = child.stdout.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    let input = chunk.join("\n") + "\n";
    let limit = if chunk.len() == 1 { limit / 8 } else { limit };
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        let output = scope.spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let log = scope.spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let start = Instant::now();
        let end = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status.to_string();
            }
            if start.elapsed() > limit {
                let _ = child.kill();
                let _ = child.wait();
                break format!("no answer in {limit:?}");
            }
            thread::sleep(Duration::from_millis(5));
        };
        let log = log.join().expect("read");
        (output.join().expect("read"), format!("{end} {log}"))
    })
}
