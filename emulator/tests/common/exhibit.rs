//! The exhibits of the museum of bugs, and how they are launched.

use std::path::Path;

use ptx_emulator::{
    Arg, GlobalMemory, Launch, Module, Options, Report, RunError, TensorElement, TensorMap,
    TensorSwizzle, run,
};

/// Words of each of the two buffers.
const WORDS: u32 = 16384;

/// Bytes of each.
pub(crate) const BYTES: usize = 4 * WORDS as usize;

pub(crate) struct Exhibit {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Exhibit {
    /// What stands in the file's head behind `key: `.
    pub(crate) fn head(&self, key: &str) -> &str {
        let mut lines = self.text.lines().take_while(|l| l.starts_with("//"));
        let found =
            lines.find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    pub(crate) fn title(&self) -> &str {
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

    pub(crate) fn run(&self, kernel: &str) -> Report {
        let module =
            Module::parse_strict(&self.text).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let none = |_: &mut GlobalMemory, _: [u64; 2]| {};
        self.launch(&module, kernel, 1 << 20, none)
            .expect("a launch")
            .0
    }

    /// Runs a kernel of `module` on buffers that `prepare` may change before: the report, the memory, and the addresses of the result and of the input.
    pub(crate) fn launch(
        &self,
        module: &Module,
        kernel: &str,
        step_limit: u64,
        prepare: impl Fn(&mut GlobalMemory, [u64; 2]),
    ) -> Result<(Report, GlobalMemory, [u64; 2]), RunError> {
        let mut memory = GlobalMemory::new();
        let (out, input) = (
            memory.alloc(BYTES as u64, 256).expect("memory"),
            memory.alloc(BYTES as u64, 256).expect("memory"),
        );
        let words: Vec<u8> = (0..WORDS).flat_map(u32::to_le_bytes).collect();
        memory.write(input, &words).expect("a write");
        prepare(&mut memory, [out, input]);
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
            step_limit,
            workers: 1,
            lane_races: true,
            ..Options::default()
        };
        let report = run(module, kernel, &launch, &mut memory, &options)?;
        Ok((report, memory, [out, input]))
    }
}

/// All of them, by name.
pub(crate) fn exhibits() -> Vec<Exhibit> {
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
