//! Symbolic execution: the instructions are followed once, with exact values for every thread of a block.
//!
//! [`execute`] has the machine and its state; the other files have the instructions of one kind each. Addresses, guards and convergence are checked on the way. What is left is a
//! [`Trace`](execute::Trace): a tree of events, which the other rooms judge.

pub(super) mod arithmetic;
pub(super) mod assumed;
pub(super) mod bounds;
pub(super) mod bulk;
pub(super) mod cluster;
pub(super) mod counted;
pub(super) mod data;
pub(super) mod execute;
pub(super) mod hopper;
pub(super) mod index;
pub(super) mod loops;
pub(super) mod memory;
pub(super) mod quotient;
pub(super) mod remote;
pub(super) mod scoped;
