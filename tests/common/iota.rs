//! A kernel of a few lines, and what a GPU makes of it.

use tilewright::host::{Outcome, PtxKernel, Ran};

/// out[i] = i for every thread i of 32.
pub(crate) fn iota() -> PtxKernel {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n\
        .visible .entry iota(.param .u64 out) {\n\
            .reg .b32 %r<1>; .reg .b64 %d<3>;\n\
            ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;\n\
            st.global.u32 [%d2], %r0; ret;\n\
        }\n";
    PtxKernel::new(text, "iota").expect("it has this entry")
}

/// A launch of [`iota`] on a GPU: the right numbers, no finding, and a time.
pub(crate) fn assert_timed(outcome: &Outcome) {
    outcome.assert_clean();
    assert_eq!(outcome.ran, Ran::Gpu);
    let out: Vec<u32> = outcome.get("out").expect("u32");
    assert!(out.into_iter().eq(0..32));
    assert!(outcome.time_ms.is_some_and(|ms| ms > 0.0), "{outcome:?}");
}
