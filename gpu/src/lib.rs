//! CUDA at run time.
