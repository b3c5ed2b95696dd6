//! The layout algebra of Tilewright.
#![no_std]
#![forbid(unsafe_code)]

pub mod banks;
pub mod f2;
