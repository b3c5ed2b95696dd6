//! The CUDA driver API without a GPU: a shared library that programs load as `libcuda.so.1`, and that runs their kernels on the PTX emulator.
//!
//! Programs stay as they are: they allocate, copy, launch and synchronise, and every kernel runs under the sanitizer of [`ptx_emulator`]. The report says what it
//! found, kernel by kernel. `docs/driver.md` says how to use it; `tilewright check -- PROGRAM` does so in one command.
//!
//! # How it is built
//!
//! One module a part of the API, each with its functions in one `api!` block, which exports them under their C names and lists them for `cuGetProcAddress`. All state
//! is in `state::Driver`, behind one lock. Work of streams, captured or not, and nodes of graphs are one type, `stream::Work`, that one function performs. Memory of the device
//! is the emulator's, so that bounds and uninitialised bytes are known to the byte; memory that the host reaches too is at one address for both.
//!
//! What the library lacks answers `CUDA_ERROR_NOT_SUPPORTED` and says so once: `stubs` has the names.

#![allow(non_snake_case)] // the API's names

mod c;
mod capture;
mod context;
mod copy;
mod device;
mod entry;
mod event;
mod export;
mod fatbin;
mod graph;
mod launch;
mod memory;
mod module;
mod occupancy;
mod pool;
mod report;
mod settings;
mod state;
mod status;
mod stream;
mod stubs;
mod tensor_map;
