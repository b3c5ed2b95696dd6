//! What static layouts cost to compile: `cargo bench --bench compile_time`.
//!
//! Compiles generated crates with rustc against the library that this program links to, as a debug build does, and prints the
//! least of several runs. The crates: an empty one, one with 200 distinct static compositions (types, evaluated), and one static GEMM tiling (a tiled mma, two tiled copies, swizzled shared memory). The budget: at most 0.3 s over
//! the empty crate for the compositions, and under 2 s for the tiling.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RUNS: usize = 7;

/// The newest facade library beside this program.
fn facade() -> PathBuf {
    let exe = std::env::current_exe().expect("the path of this program");
    let mut found: Vec<PathBuf> = std::fs::read_dir(exe.parent().expect("a directory"))
        .expect("the directory of this program")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            path.extension().is_some_and(|e| e == "rlib")
                && path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("libtilewright-"))
        })
        .collect();
    found.sort_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    found
        .pop()
        .expect("libtilewright-*.rlib beside this program")
}

/// Least time to compile `text` (noise only adds), code generation included.
fn compile(name: &str, text: &str, facade: &Path) -> Duration {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = out.join(format!("{name}.rs"));
    std::fs::write(&source, text).expect("write the source");
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let result = Command::new(option_env!("RUSTC").unwrap_or("rustc"))
                .args(["--edition", "2024", "--crate-type", "lib"])
                .args(["--emit", "link", "-C", "debuginfo=2"])
                .arg("--extern")
                .arg(format!("tilewright={}", facade.display()))
                .arg("-L")
                .arg(format!(
                    "dependency={}",
                    facade.parent().expect("a directory").display()
                ))
                .arg("--out-dir")
                .arg(out)
                .arg(&source)
                .output()
                .expect("rustc");
            assert!(
                result.status.success(),
                "{}",
                String::from_utf8_lossy(&result.stderr)
            );
            start.elapsed()
        })
        .collect();
    times.sort();
    times[0]
}

/// `n` distinct compositions of types, evaluated by `check`, and with `index` also used in a function each.
fn compositions(n: usize, index: bool) -> String {
    let mut text =
        String::from("use tilewright::typed::{C, Compose, Layout, StaticLayout, check};\n");
    for i in 0..n {
        let (s, d) = (1 << (1 + i % 3), 1 << (i % 5));
        let (pitch, far) = (64 + 8 * i, 128 + 128 * i);
        writeln!(
            text,
            "pub type A{i} = Compose<Layout<(C<16>, C<64>), (C<{pitch}>, C<1>)>, Layout<(C<{s}>, C<8>), (C<{d}>, C<{far}>)>>;\n\
             const _: () = check::<A{i}>();",
        )
        .expect("write to a string");
        if index {
            writeln!(text, "pub fn f{i}(i: i64) -> i64 {{ A{i}::index(i) }}")
                .expect("write to a string");
        }
    }
    text
}

/// A 128x128x32 tile of bf16 by 2x2 warps, all of it in constants.
const TILING: &str = r"
use tilewright::typed::{C, Compose, Layout as L, StaticLayout, Swizzle};
use tilewright::{
    Layout, Operand, Swizzled, ThreadMma, TiledCopy, TiledMma, atoms, conflict_free, expect, layout,
};

pub const WARPS: Layout = layout!((2,2,1):(1,2,0));
pub const MMA: TiledMma = expect(TiledMma::with_tile(
    atoms::MMA_M16N8K16_BF16,
    &WARPS,
    &[layout!(32:1), layout!(32:1), layout!(16:1)],
));
pub const SMEM_A: Swizzled = conflict_free!(
    tile = (128, 32), element = bf16, write = cp_async_16(threads = 128), read = ldmatrix_x4
);
pub const SMEM_B: Swizzled = layout!(Sw<2,3,3> o (128,32):(32,1));
pub const GLOBAL_TO_SHARED: TiledCopy = expect(TiledCopy::new(
    expect(atoms::CP_ASYNC_16.recast(16)),
    &layout!((32,4):(4,1)),
    &layout!((1,8):(0,1)),
));
pub const SHARED_TO_A: TiledCopy = expect(TiledCopy::for_operand(atoms::LDMATRIX_X4, &MMA, Operand::A));
pub const SHARED_TO_B: TiledCopy = expect(TiledCopy::for_operand(atoms::LDMATRIX_X4, &MMA, Operand::B));
pub const FIRST: ThreadMma = expect(MMA.get_slice(0));
pub const A_OF_FIRST: Swizzled = expect(FIRST.partition_a(&SMEM_A));
pub const B_OF_FIRST: Swizzled = expect(FIRST.partition_b(&SMEM_B));
pub const C_OF_FIRST: Swizzled = expect(FIRST.partition_c(&Swizzled::plain(layout!((128,128):(128,1)))));
pub const POINTS_A: Swizzled = expect(expect(SHARED_TO_A.get_slice(5)).partition_s(&SMEM_A));
pub const POINTS_B: Swizzled = expect(expect(SHARED_TO_B.get_slice(5)).partition_s(&SMEM_B));
pub const WRITES_A: Swizzled = expect(expect(GLOBAL_TO_SHARED.get_slice(5)).partition_d(&SMEM_A));
pub type Address = Compose<Swizzle<2, 4, 3>, L<(C<16>, C<2>), (C<64>, C<16>)>>;
pub fn address(lane: i64) -> i64 { Address::index(lane) }
";

fn main() {
    let facade = facade();
    let empty = compile("empty", "use tilewright as _;\n", &facade);
    let many = compile("compositions", &compositions(200, false), &facade);
    let used = compile("compositions_used", &compositions(200, true), &facade);
    let tiling = compile("tiling", TILING, &facade);
    let seconds = |time: Duration| time.as_secs_f64();
    println!("empty crate                 {:.3} s", seconds(empty));
    println!(
        "200 static compositions     {:.3} s, {:+.3} s over the empty crate (budget 0.3)",
        seconds(many),
        seconds(many) - seconds(empty)
    );
    println!(
        "with 200 index functions    {:.3} s, {:+.3} s over the empty crate",
        seconds(used),
        seconds(used) - seconds(empty)
    );
    println!(
        "one static GEMM tiling      {:.3} s (budget 2)",
        seconds(tiling)
    );
}
