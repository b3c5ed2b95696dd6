//! Looks for panics: reads mutated PTX for a given time.
//!
//! ```text
//! cargo run --release -p ptx-emulator --example fuzz -- parser|decoder|run SECONDS [SEED]
//! ```
//!
//! Seeds are the kernels of the corpus, the museum and the tests. `parser` changes bytes anywhere; `decoder` changes instructions by words that other
//! instructions have, so that most texts are read to the end; `run` also executes what is left valid, for a few thousand steps. An input that panics is
//! written to a file in the working directory, and the exit code is 1.

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, run};

/// A small deterministic generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n.max(1) as u64) as usize
    }

    fn one<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: fuzz parser|decoder|run SECONDS [SEED]";
    let mut args = std::env::args().skip(1);
    let target = args.next().ok_or(usage)?;
    let seconds: u64 = args.next().ok_or(usage)?.parse()?;
    let seed: u64 = args.next().map_or(Ok(1), |s| s.parse())?;
    let texts = seeds()?;
    let words = words(&texts);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut cases, mut valid) = (0u64, 0u64);
    while start.elapsed() < limit {
        let text = &texts[random.below(texts.len())];
        let mutant = match target.as_str() {
            "parser" => bytes(text, &texts, &words, &mut random),
            "decoder" | "run" => tokens(text, &words, &mut random),
            _ => return Err(usage.into()),
        };
        let execute = target == "run";
        let Ok(fine) = catch_unwind(|| attempt(&mutant, execute)) else {
            let file = format!("fuzz-{target}-{seed}-{cases}.ptx");
            std::fs::write(&file, &mutant)?;
            return Err(format!("a panic after {cases} inputs: {file}").into());
        };
        cases += 1;
        valid += u64::from(fine);
    }
    println!("{target}: {cases} inputs in {seconds} s, {valid} of them valid, no panic");
    Ok(())
}

/// Reads the text, and runs its kernels if asked; whether it is valid.
fn attempt(text: &str, execute: bool) -> bool {
    let Ok(module) = Module::parse(text) else {
        return false;
    };
    if !execute {
        return true;
    }
    for name in module.kernels().map(str::to_owned).collect::<Vec<_>>() {
        let Some(kernel) = module.kernel(&name) else {
            continue;
        };
        let mut memory = GlobalMemory::new();
        let Ok(buffer) = memory.alloc(1 << 16, 256) else {
            continue;
        };
        // A write of nothing; the content stays zero.
        let _ = memory.write(buffer, &[]);
        let args = kernel.params().iter().map(|p| match p.size {
            8 => Arg::Ptr(buffer),
            4 if !p.ty.is_float() => Arg::U32(20),
            size => Arg::Bytes(vec![1; size as usize]),
        });
        let launch = Launch {
            grid: [2, 1, 1],
            block: kernel.required_threads().unwrap_or([64, 1, 1]),
            cluster: kernel.required_cluster().unwrap_or([1; 3]),
            dynamic_shared: 4096,
            args: args.collect(),
            ..Launch::default()
        };
        let options = Options {
            step_limit: 4000,
            total_step_limit: 100_000,
            global_races: true,
            lane_races: true,
            undefined_global: true,
            workers: 1,
            ..Options::default()
        };
        // Findings and refusals are fine: only a panic is not.
        let _ = run(&module, &name, &launch, &mut memory, &options);
    }
    true
}

const REGISTERS: &str = "
.reg .pred p, q; .reg .b8 b8; .reg .u8 u8; .reg .s8 s8; .reg .b16 b16, c16; .reg .u16 u16; .reg .s16 s16; .reg .b16 f16, bf16;
.reg .b32 f16x2, bf16x2, u16x2, s16x2; .reg .b32 b32, c32, d32, e32, g32, h32; .reg .u32 u32; .reg .s32 s32; .reg .f32 f32, f1, f2, f3;
.reg .b64 b64, c64; .reg .u64 u64; .reg .s64 s64; .reg .f64 f64, f1d, f2d, f3d; .reg .b128 b128;
";

/// The statement of a template such as `add.$t @t, @t, @t; t=u16,u32`, with the first value of each variable.
fn form(line: &str) -> Option<String> {
    if line.is_empty() || line.starts_with("# ") || line.starts_with("brx") {
        return None;
    }
    let mut parts = line.split("; ");
    let mut statement = parts.next()?.to_owned();
    for variable in parts {
        let (name, values) = variable.split_once('=')?;
        let value = values.split(',').next()?;
        let register = if value == "pred" { "p" } else { value };
        statement = statement.replace(&format!("${name}"), value);
        statement = statement.replace(&format!("@{name}"), register);
    }
    Some(format!("{statement};\n"))
}

/// All PTX of the crate, by modules of at most 40 KB.
fn seeds() -> std::io::Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for folder in ["corpus", "museum", "tests/fixtures"] {
        for entry in std::fs::read_dir(root.join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "ptx") {
                let text = std::fs::read_to_string(&path)?;
                if text.len() < 40_000 {
                    texts.push(text);
                }
            }
        }
    }
    // Every form of an instruction with its first choices, twenty in a kernel.
    let forms = std::fs::read_to_string(root.join("tests/fixtures/forms_sm_90.txt"))?;
    let lines: Vec<String> = forms.lines().filter_map(form).collect();
    for part in lines.chunks(20) {
        let body = part.concat();
        texts.push(format!(
            ".version 9.0\n.target sm_90a\n.address_size 64\n.func f {{ ret; }}\n.visible .entry k(.param .u64 out)\n{{{REGISTERS}{body}bra L;\nL: ret;\n}}\n"
        ));
    }
    texts.sort();
    Ok(texts)
}

/// The words of all texts: names, modifiers, numbers, registers.
fn words(texts: &[String]) -> Vec<String> {
    let mut all: Vec<String> = texts
        .iter()
        .flat_map(|t| t.split(|c: char| c.is_whitespace() || ",;(){}[]+:".contains(c)))
        .flat_map(|w| {
            let parts = w.split('.').skip(1).map(|m| format!(".{m}"));
            parts.chain([w.to_owned()]).collect::<Vec<_>>()
        })
        .filter(|w| !w.is_empty() && w.len() < 40)
        .collect();
    all.extend(
        [
            "0xffffffffffffffff",
            "-9223372036854775808",
            "18446744073709551616",
            "0f7fffffff",
            "0d",
            "1e999",
            "-1",
            "{",
            "}",
            "(",
            "[",
            "<2147483647>",
            "\"",
            "/*",
            "é",
        ]
        .map(str::to_owned),
    );
    all.sort();
    all.dedup();
    all
}

/// Some bytes changed, removed, repeated, or taken from another text.
fn bytes(text: &str, texts: &[String], words: &[&str], random: &mut Random) -> String {
    let mut b = text.as_bytes().to_vec();
    for _ in 0..=random.below(6) {
        let at = random.below(b.len());
        let end = (at + 1 + random.below(60)).min(b.len());
        match random.below(6) {
            0 if at < b.len() => b[at] = random.below(256) as u8,
            1 if at < b.len() => b[at] ^= 1 << random.below(8),
            2 => drop(b.drain(at..end)),
            3 => {
                let part = b[at..end].to_vec();
                b.splice(at..at, part);
            }
            4 => {
                let other = texts[random.below(texts.len())].as_bytes();
                let from = random.below(other.len());
                let part = &other[from..(from + 80).min(other.len())];
                b.splice(at..end, part.iter().copied());
            }
            _ => drop(b.splice(at..at, random.one(words).bytes())),
        }
    }
    String::from_utf8_lossy(&b).into_owned()
}

/// Some words of the bodies replaced, removed or doubled.
fn tokens(text: &str, words: &[&str], random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let at = random.below(lines.len());
        let line = lines[at].clone();
        match random.below(8) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, line),
            2 => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            _ => {
                let is_word = |c: char| c.is_ascii_alphanumeric() || "_$%.".contains(c);
                let starts: Vec<usize> = line
                    .char_indices()
                    .filter(|(i, c)| is_word(*c) && (*c == '.' || !line[..*i].ends_with(is_word)))
                    .map(|(i, _)| i)
                    .collect();
                if let Some(&start) = starts.get(random.below(starts.len())) {
                    let rest = &line[start + 1..];
                    let end = rest.find(|c: char| c == '.' || !is_word(c));
                    let end = start + 1 + end.unwrap_or(rest.len());
                    let word = if random.below(8) == 0 {
                        ""
                    } else {
                        random.one(words)
                    };
                    lines[at] = format!("{}{word}{}", &line[..start], &line[end..]);
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}
