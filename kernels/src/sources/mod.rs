//! Kernels of published sources, with their layouts as the sources give them.
//!
//! | source | kernels |
//! |---|---|
//! | maxas, the SGEMM for Maxwell | [`maxas`] |
//! | the DGEMM walk-through for the HD 7970 and the sources before it | [`outer`] |

pub mod maxas;
pub mod outer;
