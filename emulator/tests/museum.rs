//! The museum: each kernel `bug` of `museum/*.ptx` gets the finding that its file names, at the line that it names; its twin `fixed` gets none. The
//! pages `docs/museum.md` and `docs/museum-hopper.md` show what is printed; `TILEWRIGHT_UPDATE=1` writes it anew.

mod common;

use std::fmt::Write;
use std::path::Path;

use common::assembles;
use ptx_emulator::{
    Arg, GlobalMemory, Launch, Module, Options, Report, TensorElement, TensorMap, TensorSwizzle,
    run,
};

/// Words of each of the two buffers.
const WORDS: u32 = 16384;

struct Exhibit {
    name: String,
    text: String,
}

impl Exhibit {
    /// What stands in the file's head behind `key: `.
    fn head(&self, key: &str) -> &str {
        let mut lines = self.text.lines().take_while(|l| l.starts_with("//"));
        let found =
            lines.find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    fn title(&self) -> &str {
        self.text
            .lines()
            .next()
            .unwrap_or("")
            .trim_start_matches("// ")
            .trim_end_matches('.')
    }

    /// The numbers behind `grid`, `block` and `cluster`.
    fn size(&self, which: &str) -> u32 {
        let mut words = self.head("launch").split(' ').skip_while(|w| *w != which);
        words.nth(1).and_then(|n| n.parse().ok()).expect("a number")
    }

    fn run(&self, kernel: &str) -> Report {
        let module =
            Module::parse_strict(&self.text).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let mut memory = GlobalMemory::new();
        let bytes = u64::from(4 * WORDS);
        let (out, input) = (
            memory.alloc(bytes, 256).expect("memory"),
            memory.alloc(bytes, 256).expect("memory"),
        );
        let words: Vec<u8> = (0..WORDS).flat_map(u32::to_le_bytes).collect();
        memory.write(input, &words).expect("a write");
        let mut args = vec![Arg::Ptr(out), Arg::Ptr(input)];
        if self.text.contains("map[128]") {
            let rows = if self.head("map").contains("box=64x8:") {
                8
            } else {
                64
            };
            let map = TensorMap {
                sizes: vec![64, 64],
                strides: vec![128],
                box_sizes: vec![64, rows],
                swizzle: TensorSwizzle::Bytes128,
                ..TensorMap::new(TensorElement::F16, input)
            };
            args.push(Arg::Bytes(map.encode().expect("a correct map").to_vec()));
        }
        let launch = Launch {
            grid: [self.size("grid"), 1, 1],
            block: [self.size("block"), 1, 1],
            cluster: [self.size("cluster"), 1, 1],
            args,
            ..Launch::default()
        };
        let options = Options {
            step_limit: 1 << 20,
            workers: 1,
            lane_races: true,
            ..Options::default()
        };
        run(&module, kernel, &launch, &mut memory, &options).expect("a launch")
    }
}

fn exhibits() -> Vec<Exhibit> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("museum");
    let mut all: Vec<Exhibit> = std::fs::read_dir(folder)
        .expect("the museum")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .map(|path| Exhibit {
            name: path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            text: std::fs::read_to_string(&path).expect("text"),
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

#[test]
fn each_bug_is_found_and_each_twin_is_clean() {
    let all = exhibits();
    assert!(all.len() >= 30, "{} exhibits", all.len());
    let mut wrong = Vec::new();
    for e in &all {
        let report = e.run("bug");
        let expected = (e.head("finding"), e.head("at"), e.head("says"));
        let fits = report.findings.iter().any(|f| {
            f.kind.code() == expected.0
                && f.opcode.starts_with(expected.1)
                && f.message.contains(expected.2)
        });
        if !fits {
            wrong.push(format!(
                "{}: no {expected:?} in {:#?}",
                e.name, report.findings
            ));
        }
        let report = e.run("fixed");
        if !report.is_clean() {
            wrong.push(format!("{} fixed: {:#?}", e.name, report.findings));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_kernels_of_each_exhibit_assemble() {
    for e in exhibits() {
        assembles(&e.name, &e.text);
    }
}

/// The pages: exhibits with the asynchronous copies, barriers in memory and products of Hopper have one of their own.
const PAGES: [(&str, bool); 2] = [("museum.md", false), ("museum-hopper.md", true)];

fn is_of_hopper(text: &str) -> bool {
    ["mbarrier.", "wgmma.", "cp.async.bulk."]
        .iter()
        .any(|word| text.contains(word))
}

/// A page from its introduction and its exhibits.
fn page(introduction: &str, hopper: bool) -> String {
    let mut page = introduction.to_owned();
    for e in exhibits()
        .into_iter()
        .filter(|e| is_of_hopper(&e.text) == hopper)
    {
        let story: Vec<_> = e
            .text
            .lines()
            .skip(2)
            .take_while(|l| *l != "//")
            .map(|l| l.trim_start_matches("// "))
            .collect();
        let report = e.run("bug");
        let found = report
            .findings
            .iter()
            .find(|f| f.kind.code() == e.head("finding") && f.message.contains(e.head("says")));
        let line = found.map_or(1, |f| f.line as usize);
        let found = found.map(ToString::to_string).unwrap_or_default();
        let text = e.text.lines().nth(line - 1).unwrap_or("").trim();
        let _ = write!(
            page,
            "\n## {}\n\n[`{name}.ptx`](../emulator/museum/{name}.ptx). {}\n\n```text\n{line:>4} | {text}\n{found}\n```\n",
            e.title(),
            story.join(" "),
            name = e.name,
        );
    }
    page
}

#[test]
fn the_pages_show_what_is_printed() {
    for (name, hopper) in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../docs")
            .join(name);
        let old = std::fs::read_to_string(&path).expect(name);
        let introduction = old.split("\n## ").next().expect("an introduction");
        let new = page(&format!("{}\n", introduction.trim_end()), hopper);
        if std::env::var_os("TILEWRIGHT_UPDATE").is_some_and(|v| v == "1") {
            std::fs::write(&path, &new).expect("a write");
            continue;
        }
        assert!(
            old == new,
            "docs/{name} is old: run this test with TILEWRIGHT_UPDATE=1"
        );
    }
}
