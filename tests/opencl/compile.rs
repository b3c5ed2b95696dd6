//! The text compiled for AMD's chips by clang 16 with libclc, and what its main loop is made of.

use std::path::Path;
use std::process::Command;

use tilewright::banks::AMD_GCN;
use tilewright::kernels::gemm::Config;
use tilewright::kernels::gemm::Operands;
use tilewright::kernels::gemm::opencl::emit;

use super::isa::{Assembly, read};
use super::{common, left_out};

/// A chip of AMD and its library of functions; libclc 16 knows no gfx90a, and gfx906 has the same functions.
const CHIPS: [(&str, &str); 2] = [
    ("tahiti", "/usr/lib/clc/tahiti-amdgcn--.bc"),
    ("gfx90a", "/usr/lib/clc/gfx906-amdgcn--.bc"),
];

/// The assembly of a plan's kernel for a chip.
fn compiled(plan: &str, operands: Operands, (chip, library): (&str, &str)) -> Assembly {
    let plan = plan.parse::<Config>().map(Config::kernel).expect("a plan");
    let emitted = emit(&plan, operands, &AMD_GCN).expect("it proves and has a form");
    let folder = tempfile::tempdir().expect("a folder");
    let (source, assembly) = (folder.path().join("k.cl"), folder.path().join("k.s"));
    std::fs::write(&source, &emitted.source).expect("written");
    assert!(
        Path::new(library).exists(),
        "{library} is not there: install clang-16 and libclc-16, or leave these tests out with TILEWRIGHT_NO_OPENCL=1"
    );
    let output = Command::new("clang-16")
        .args(["-x", "cl", "-cl-std=CL1.2", "-target", "amdgcn--amdhsa"])
        .args(["-O3", "-S", "-nogpulib", "-Werror", "-Wno-linker-warnings"])
        .arg(format!("-mcpu={chip}"))
        .args(["-Xclang", "-mlink-builtin-bitcode", "-Xclang", library])
        .arg(&source)
        .arg("-o")
        .arg(&assembly)
        .output()
        .expect("clang-16 starts: install it, or set TILEWRIGHT_NO_OPENCL=1");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}, {chip}: {log}", emitted.kernel);
    read(&std::fs::read_to_string(assembly).expect("text"))
}

#[test]
fn the_main_loop_of_the_dgemm() {
    if left_out() {
        return;
    }
    for way in ["tn", "nn", "nt", "tt"] {
        let operands: Operands = way.parse().expect("a way");
        for chip in CHIPS {
            let assembly = compiled("dgemm-4x4", operands, chip);
            let counts = assembly.main_loop;
            let what = format!("{way}, {}: {assembly:?}", chip.0);
            common::say(&format!(
                "dgemm-4x4 {what}, {:.1} % neither FMA nor load",
                100.0 * counts.others()
            ));
            // Two tiles of 8 k a turn, 16 products each.
            assert_eq!((counts.fma, counts.fma_f64), (256, 256), "{what}");
            // Four vectors of 16 bytes for each k, and the next tiles.
            assert_eq!(counts.lds_loads, 64, "{what}");
            assert_eq!(counts.memory_stores, 0, "{what}");
            // In the walk-through 43 % are.
            assert!(counts.others() < 0.15, "{what}");
            assert_eq!(assembly.scratch, 0, "{what}");
            // Of tahiti's 256 registers a lane four wavefronts a SIMD have 64 each, and three 84; of gfx90a's 512 eight have 64.
            let four = chip.0 == "gfx90a" || ["tn", "nt"].contains(&way);
            let most = if four { 64 } else { 84 };
            assert!(assembly.registers <= most, "{what}");
        }
    }
}

#[test]
fn the_main_loops_of_the_sgemm() {
    if left_out() {
        return;
    }
    for (way, chip) in ["nn", "nt", "tn", "tt"]
        .into_iter()
        .flat_map(|way| CHIPS.map(|c| (way, c)))
    {
        let operands: Operands = way.parse().expect("a way");
        let assembly = compiled("sgemm-r700-64", operands, chip);
        let counts = assembly.main_loop;
        let what = format!("{way}, {}: {assembly:?}", chip.0);
        common::say(&format!(
            "sgemm-r700-64 {what}, {:.1} % neither FMA nor load",
            100.0 * counts.others()
        ));
        // Two tiles of 8 k a turn, 64 products each, two by two where the chip has that.
        assert!(counts.fma >= 512, "{what}");
        assert!(counts.others() < 0.15, "{what}");
        assert_eq!(assembly.scratch, 0, "{what}");
        // gfx90a has 128 for each of four wavefronts a SIMD, and three take 168; tahiti has room for one.
        let most = if chip.0 == "tahiti" { 160 } else { 136 };
        assert!(assembly.registers <= most, "{what}");
    }
}
