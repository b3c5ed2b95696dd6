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
        let found = self.optional(key);
        found.unwrap_or_else(|| panic!("{} has no {key}", self.name))
    }

    fn optional(&self, key: &str) -> Option<&str> {
        let mut lines = self.text.lines().take_while(|l| l.starts_with("//"));
        lines.find_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "))
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

    /// The tensor map of `kernel`: what stands behind `map of KERNEL: ` or, for both, `map: `, as `tilewright run` takes it.
    fn map(&self, kernel: &str, [out, input]: [u64; 2]) -> TensorMap {
        let own = self.optional(&format!("map of {kernel}"));
        let words = own.unwrap_or_else(|| self.head("map"));
        let list = |text: &str| -> Vec<u64> {
            let numbers = text.split('x').map(|n| n.parse().expect("a number"));
            numbers.collect()
        };
        let words = words.strip_prefix("tensor:f16:").expect("a map of halves");
        let mut words = words.split(':');
        let mut map = TensorMap::new(TensorElement::F16, 0);
        map.sizes = list(words.next().expect("sizes"));
        map.strides = vec![2 * map.sizes[0]];
        for word in words {
            match word.split_once('=').expect("a key and a value") {
                ("strides", x) => map.strides = list(x),
                ("box", x) => map.box_sizes = list(x).iter().map(|n| *n as u32).collect(),
                ("swizzle", "128") => map.swizzle = TensorSwizzle::Bytes128,
                ("of", "in") => map.address = input,
                ("of", "out") => map.address = out,
                other => panic!("{}: {other:?} in a map", self.name),
            }
        }
        map
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
            let map = self.map(kernel, [out, input]);
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
