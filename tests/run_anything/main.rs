//! `host::run`: arguments by name and type, what is refused, and what the outcome says of kernels that are wrong.

mod arguments;
mod kernels;
mod wrong;

use tilewright::host::{Arg, On, Outcome, PtxKernel, RunError, Runnable, run};

pub(crate) const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A module of one entry. Its registers are `%p0`, `%r0` to `%r7`, `%d0` to `%d7`.
pub(crate) fn module(entry: &str, params: &str, body: &str) -> String {
    format!(
        "{HEAD}.visible .entry {entry}({params}) {{\n.reg .pred %p<1>; .reg .b32 %r<8>; .reg .b64 %d<8>;\n{body}\nret;\n}}\n"
    )
}

/// One block of 32 threads.
pub(crate) fn one_block(entry: &str, params: &str, body: &str) -> PtxKernel {
    PtxKernel::new(module(entry, params, body), entry).expect("it has this entry")
}

pub(crate) fn on_emulator<'a>(
    kernel: &impl Runnable,
    args: impl IntoIterator<Item = (&'static str, Arg<'a>)>,
) -> Outcome {
    run(kernel, On::Emulator, args).unwrap_or_else(|e| panic!("{}: {e}", kernel.entry()))
}

pub(crate) fn refusal<'a>(
    kernel: &impl Runnable,
    args: impl IntoIterator<Item = (&'static str, Arg<'a>)>,
) -> RunError {
    run(kernel, On::Emulator, args).expect_err("it must be refused")
}

/// Every thread stores to shared memory, and reads its neighbour's word without a barrier.
pub(crate) fn racing() -> PtxKernel {
    let body = ".shared .align 16 .b8 tile[256];
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.s32 %r3, %r2, %r1;
        st.shared.u32 [%r3], %r0; // write
        xor.b32 %r4, %r3, 128; ld.shared.u32 %r5, [%r4]; // read
        cvt.u64.u32 %d1, %r1; add.s64 %d2, %d0, %d1; st.global.u32 [%d2], %r5;";
    one_block("racing", ".param .u64 out", body).block([64, 1, 1])
}
