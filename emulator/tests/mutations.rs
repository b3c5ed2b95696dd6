//! Kernels with random damage: lines of the museum's files dropped, doubled, exchanged, and numbers and registers replaced. Whatever is left is refused with an
//! error or runs to an end with a report; nothing panics.

mod common;

use common::Random;
use ptx_emulator::{Arg, GlobalMemory, Launch, Module, Options, TensorElement, TensorMap, run};
use rayon::prelude::*;

/// Damages `lines` somewhere.
fn damage(lines: &mut Vec<String>, random: &mut Random) {
    let n = lines.len() as u64;
    let (i, j) = (random.below(n) as usize, random.below(n) as usize);
    match random.below(6) {
        0 => {
            lines.remove(i);
        }
        1 => {
            let line = lines[i].clone();
            lines.insert(j, line);
        }
        2 => lines.swap(i, j),
        3 => {
            // Another number.
            let numbers = [
                "0",
                "1",
                "2",
                "15",
                "16",
                "4294967295",
                "-1",
                "1024",
                "0x7fffffffffffffff",
            ];
            let number = numbers[random.below(9) as usize];
            let line = &lines[i];
            let is_digit = |c: char| c.is_ascii_digit();
            if let Some(at) = line.rfind(is_digit) {
                let start = line[..at]
                    .rfind(|c: char| !is_digit(c))
                    .map_or(0, |p| p + 1);
                lines[i] = format!("{}{number}{}", &line[..start], &line[at + 1..]);
            }
        }
        4 => {
            // A modifier less.
            let line = &lines[i];
            if let Some(at) = line.find('.') {
                let rest = line[at + 1..]
                    .find(['.', ' '])
                    .map_or(line.len(), |p| at + 1 + p);
                lines[i] = format!("{}{}", &line[..at], &line[rest..]);
            }
        }
        _ => {
            // The operands of another line.
            let cut = |l: &str| {
                l.trim_start()
                    .find(' ')
                    .map_or(l.len(), |p| p + l.len() - l.trim_start().len())
            };
            let (a, b) = (lines[i].clone(), lines[j].clone());
            lines[i] = format!("{}{}", &a[..cut(&a)], &b[cut(&b)..]);
        }
    }
}

#[test]
fn damaged_kernels_never_panic() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the museum")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    let rounds: u64 = std::env::var("MUTATION_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(40);
    let outcomes = files.par_iter().enumerate().map(|(i, file)| {
        // Numbers of its own for each file.
        let mut random = Random(rounds + 1000 * i as u64);
        let (mut parsed, mut ran) = (0, 0);
        let text = std::fs::read_to_string(file).expect("text");
        for _ in 0..rounds {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for _ in 0..=random.below(3) {
                damage(&mut lines, &mut random);
            }
            let Ok(module) = Module::parse(&lines.join("\n")) else {
                continue;
            };
            parsed += 1;
            for kernel in module.kernels() {
                let mut memory = GlobalMemory::new();
                let out = memory.alloc(65536, 256).expect("memory");
                memory.write(out, &vec![0; 65536]).expect("a write");
                let map = TensorMap {
                    sizes: vec![64, 64],
                    strides: vec![128],
                    box_sizes: vec![64, 64],
                    ..TensorMap::new(TensorElement::F16, out)
                };
                let map = map.encode().expect("a correct map").to_vec();
                let mut args = vec![Arg::Ptr(out), Arg::Ptr(out), Arg::Bytes(map)];
                args.truncate(module.kernel(kernel).map_or(0, |k| k.params().len()));
                for cluster in [1, 2] {
                    let launch = Launch {
                        grid: [2, 1, 1],
                        block: [if random.below(4) == 0 { 96 } else { 128 }, 1, 1],
                        cluster: [cluster, 1, 1],
                        args: args.clone(),
                        ..Launch::default()
                    };
                    let options = Options {
                        step_limit: 1 << 12,
                        workers: 1,
                        sanitize: random.below(5) > 0,
                        undefined_global: random.below(2) > 0,
                        global_races: random.below(2) > 0,
                        ..Options::default()
                    };
                    ran += u32::from(run(&module, kernel, &launch, &mut memory, &options).is_ok());
                }
            }
        }
        (parsed, ran)
    });
    let (parsed, ran) = outcomes.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert!(parsed > 100 && ran > 200, "{parsed} parsed, {ran} ran");
}
