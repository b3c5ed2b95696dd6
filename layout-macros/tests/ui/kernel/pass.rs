#![deny(warnings)]

use tilewright::kernels::gemm::CompiledKernel;
use tilewright::kernel;

const GEMM: CompiledKernel = kernel!(plan = "sgemm-maxas-128", trans = nn, arch = sm_90);
const GRID: Option<[u32; 3]> = GEMM.grid(1000, 513);
static OTHER: CompiledKernel = kernel!(arch = "sm_75", trans = tn, plan = "sgemm-maxas-64");

fn main() {
    assert_eq!(GRID, Some([5, 8, 1]));
    assert_eq!(GEMM.grid(0, 1), None);
    assert!(GEMM.ptx.contains(".target sm_90"));
    assert!(GEMM.ptx.contains(&format!(".visible .entry {}(", GEMM.entry)));
    assert_eq!(GEMM.param("C").map(|p| p.offset), Some(16));
    assert_eq!(OTHER.block, [64, 1, 1]);
}
