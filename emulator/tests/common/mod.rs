//! Shared by the tests: small kernels around a few instructions, and random numbers.
#![allow(dead_code)] // each test uses a part

pub(crate) mod exhibit;
#[path = "../../../tests/common/generated.rs"]
pub(crate) mod generated;
pub(crate) mod mutate;
pub(crate) mod sparse;

use ptx_emulator::{Arg, FindingKind, GlobalMemory, Launch, Module, Options, Report, run};

/// A small deterministic generator (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Bits with the corners of integer and float formats over-represented.
    pub(crate) fn nasty(&mut self) -> u64 {
        const CORNERS: [u64; 20] = [
            0,
            1,
            2,
            31,
            32,
            33,
            63,
            64,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x7fff_ffff_ffff_ffff,
            0x8000_0000_0000_0000,
            u64::MAX,
            0x3f80_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0001,
            0x0000_0001_0080_0000,
            0x3ff0_0000_0000_0000,
        ];
        match self.bits() % 4 {
            0 => CORNERS[(self.bits() % 20) as usize],
            1 => self.bits() >> (self.bits() % 64),
            _ => self.bits(),
        }
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }
}

/// PTX around `body`: a kernel `k` of the given parameters.
pub(crate) fn kernel(params: &str, body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k({params})\n{{\n{body}\n    ret;\n}}\n"
    )
}

/// Runs `body` once for every triple (a, b, c), a thread each. The body finds them in `%a %b %c` (b32), `%A %B %C` (b64) and `%ha %hb %hc`
/// (b16), and leaves results in any of `%d` (b32), `%D` (b64), `%hd` (b16), `%p`; these come back in that order.
pub(crate) fn evaluate(body: &str, cases: &[[u64; 3]]) -> Vec<(u32, u64, u16, bool)> {
    let text = kernel(
        ".param .u64 in, .param .u64 out, .param .u32 n",
        &format!(
            ".reg .b32 %a, %b, %c, %d, %e, %f, %t<8>;
    .reg .b64 %A, %B, %C, %D, %E, %in, %out, %x<8>;
    .reg .b16 %ha, %hb, %hc, %hd, %he;
    .reg .pred %p, %q, %p0, %p1, %past;
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    ld.param.u32 %t0, [n];
    mov.u32 %t1, %ctaid.x;
    mov.u32 %t2, %ntid.x;
    mov.u32 %t3, %tid.x;
    mad.lo.u32 %t4, %t1, %t2, %t3;
    setp.ge.u32 %past, %t4, %t0;
    @%past exit;
    mad.wide.u32 %x0, %t4, 24, %in;
    ld.global.b64 %A, [%x0];
    ld.global.b64 %B, [%x0+8];
    ld.global.b64 %C, [%x0+16];
    cvt.u32.u64 %a, %A;
    cvt.u32.u64 %b, %B;
    cvt.u32.u64 %c, %C;
    cvt.u16.u64 %ha, %A;
    cvt.u16.u64 %hb, %B;
    cvt.u16.u64 %hc, %C;
    mov.u32 %d, 0;
    mov.u64 %D, 0;
    mov.u16 %hd, 0;
    setp.ne.u32 %p, 0, 0;
    {body}
    mad.wide.u32 %x1, %t4, 24, %out;
    cvt.u64.u32 %x2, %d;
    st.global.b64 [%x1], %x2;
    st.global.b64 [%x1+8], %D;
    selp.u32 %t5, 1, 0, %p;
    cvt.u32.u16 %t6, %hd;
    st.global.v2.b32 [%x1+16], {{%t6, %t5}};"
        ),
    );
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}\n{body}"));
    let mut memory = GlobalMemory::new();
    let bytes = 24 * cases.len() as u64;
    let (input, output) = (
        memory.alloc(bytes, 256).expect("memory"),
        memory.alloc(bytes, 256).expect("memory"),
    );
    let data: Vec<u8> = cases
        .iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    memory.write(input, &data).expect("a write");
    let n = cases.len() as u32;
    let args = vec![Arg::Ptr(input), Arg::Ptr(output), Arg::U32(n)];
    let launch = Launch {
        grid: [n.div_ceil(128), 1, 1],
        block: [128, 1, 1],
        args,
        ..Launch::default()
    };
    let report =
        run(&module, "k", &launch, &mut memory, &Options::default()).expect("a possible launch");
    assert!(report.is_clean(), "{body}: {}", report.findings[0]);
    let data = memory.read(output, bytes as usize).expect("a read");
    let word = |b: &[u8]| b.iter().rev().fold(0u64, |v, x| v << 8 | u64::from(*x));
    data.chunks_exact(24)
        .map(|r| {
            (
                word(&r[..4]) as u32,
                word(&r[8..16]),
                word(&r[16..18]) as u16,
                r[20] != 0,
            )
        })
        .collect()
}

/// Runs kernel `k` of `text` with the given block and a buffer of `words` zeroed words as its only parameter; returns the buffer.
pub(crate) fn launch_with(
    text: &str,
    grid: [u32; 3],
    block: [u32; 3],
    words: usize,
    options: &Options,
) -> (Vec<u32>, Report) {
    let module = Module::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = GlobalMemory::new();
    let out = memory.alloc(4 * words as u64, 256).expect("memory");
    memory.write(out, &vec![0; 4 * words]).expect("a write");
    let launch = Launch {
        grid,
        block,
        args: vec![Arg::Ptr(out)],
        ..Launch::default()
    };
    let report = run(&module, "k", &launch, &mut memory, options).expect("a possible launch");
    let data = memory.read(out, 4 * words).expect("a read");
    (
        data.chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect(),
        report,
    )
}

/// Like [`launch_with`], one block, default options; `body` finds the buffer in `%out`, its thread in `%tid`.
pub(crate) fn block(body: &str, threads: u32, words: usize) -> (Vec<u32>, Report) {
    launch_with(
        &with_out(body),
        [1; 3],
        [threads, 1, 1],
        words,
        &Options {
            step_limit: 1 << 20,
            ..Options::default()
        },
    )
}

/// A kernel with the usual registers around `body`.
pub(crate) fn with_out(body: &str) -> String {
    kernel(
        ".param .u64 out",
        &format!(
            ".reg .b32 %r<40>, %tid, %lane, %warp;
    .reg .b64 %rd<20>, %out, %mine;
    .reg .f32 %f<10>;
    .reg .b16 %h<10>;
    .reg .pred %p<10>;
    ld.param.u64 %out, [out];
    mov.u32 %tid, %tid.x;
    mov.u32 %lane, %laneid;
    shr.u32 %warp, %tid, 5;
    mad.wide.u32 %mine, %tid, 4, %out;
    {body}"
        ),
    )
}

/// The kinds of the findings, in order, once each.
pub(crate) fn kinds(report: &Report) -> Vec<FindingKind> {
    let mut kinds: Vec<_> = report.findings.iter().map(|f| f.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Runs of the assembler: tests of one program run side by side.
static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Assembles `text`, as PTX 9.0 for `sm_90a`, by NVIDIA's assembler: that of `PTXAS`, or the one that `cargo xtask ptxas` has fetched. Without one this fails,
/// unless `TILEWRIGHT_NO_PTXAS=1` says that it is meant to be missing.
pub(crate) fn assembles(name: &str, text: &str) {
    if let Err(said) = assemble(name, text) {
        panic!("{name}: {said}\n{text}");
    }
}

/// What ptxas says of `text`, if it refuses it.
fn assemble(name: &str, text: &str) -> Result<(), String> {
    let cached = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../target/tools/ptxas-13.0.88/ptxas"
    );
    let set = std::env::var_os("PTXAS").filter(|path| !path.is_empty());
    let path = set.unwrap_or_else(|| cached.into());
    if !std::path::Path::new(&path).exists() {
        let meant = std::env::var_os("TILEWRIGHT_NO_PTXAS").is_some_and(|v| v == "1");
        assert!(meant, "there is no ptxas at {}", path.display());
        eprintln!("{name} is not assembled: TILEWRIGHT_NO_PTXAS=1");
        return Ok(());
    }
    let text = text
        .replace(".version 8.0\n", ".version 9.0\n")
        .replace(".target sm_90\n", ".target sm_90a\n");
    let number = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("emulator-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (ptx, cubin) = (folder.join("k.ptx"), folder.join("k.cubin"));
    std::fs::write(&ptx, &text).expect("a file");
    let run = std::process::Command::new(&path)
        .args(["-arch=sm_90a", "-o"])
        .args([&cubin, &ptx])
        .output()
        .expect("ptxas starts");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
    if run.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&run.stderr).into_owned())
}

/// Kernels `k` of one target that ptxas shall take, several to a process: to start it takes longer than to assemble most of them. The last are
/// assembled when it goes.
#[allow(dead_code)] // not every test file uses all of this
#[derive(Default)]
pub(crate) struct Assembly(Vec<(String, String)>);

#[allow(dead_code)] // not every test file uses all of this
impl Assembly {
    pub(crate) fn add(&mut self, name: String, text: &str) {
        self.0.push((name, text.to_owned()));
        if self.0.len() == 32 {
            self.assemble();
        }
    }

    fn assemble(&mut self) {
        let kernels = std::mem::take(&mut self.0);
        let Some((name, first)) = kernels.first() else {
            return;
        };
        let head = first.find(".visible").expect("a kernel");
        let mut all = first[..head].to_owned();
        for (i, (_, text)) in kernels.iter().enumerate() {
            assert!(text.starts_with(&first[..head]), "another target");
            all += &text[head..].replacen(".entry k(", &format!(".entry k{i}("), 1);
        }
        if let Err(said) = assemble(name, &all) {
            // Which one is it?
            for (name, text) in &kernels {
                assembles(name, text);
            }
            panic!("each alone assembles: {said}");
        }
    }
}

impl Drop for Assembly {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assemble();
        }
    }
}
