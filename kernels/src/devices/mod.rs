//! Products over several devices: who multiplies what, what moves when, and the proof that nothing is read before it is there.
//!
//! **What.** [`Placement`] says how A, B and C lie on the devices ([`Distribution`]). [`Program::derive`] makes of it a list of operations on
//! streams: copies between devices, products of blocks, and flags that order them. A program knows nothing of GPUs; the emulator runs it, and so
//! does a host with several GPUs.
//!
//! ```text
//! a=rows b=columns c=columns, device 0 of 2          a=columns b=rows c=rows, device 0 of 2
//!
//! copies    products                                 products                     copies
//! A1 ─┐     C[rows of A0] = A0 B0                    part = A0 B0 [rows of 1] ──▶ to device 1
//!     └flag▶C[rows of A1] = A1 B0                    C = A0 B0 [rows of 0] + part of device 1
//! ```
//!
//! **Why.** A collective followed by a product leaves the multiprocessors idle while the links work. Here each device begins with what it has;
//! the shards of the others arrive behind that product. The order is a layout, (device, step) → shard
//! ([`Rotation`](layout_core::devices::Rotation)), so that every link carries one shard at a time.
//!
//! **What is small** is over before a run's calls are made. [`Program::collective`] has one all-gather or reduce-scatter and one product a device instead;
//! in [`Program::direct`] products store terms of C into the memory of the next device, without a copy; [`Program::quickest`] chooses.
//!
//! **The proof** ([`Program::prove`]) does not trust the derivation. It orders operations by streams, flags and collectives alone, finds pairs that touch
//! the same elements without an order, and follows what every block of every buffer holds: each product must find its operands complete, each
//! element of C must get every index of the sums once, the old C once if β ≠ 0, and the epilogue last.
//!
//! ```
//! use tilewright_kernels::devices::{Placement, Program};
//! use tilewright_kernels::gemm::{Gemm, Operands};
//!
//! let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
//! let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
//! let program = Program::derive(&problem, &placement)?;
//! let proof = program.prove()?;
//! // Each device gets half of A, 32 x 32 elements, from the other.
//! assert_eq!(proof.links[&(0, 1)], 32 * 32);
//! assert_eq!((proof.products, proof.copies), (4, 2));
//! # Ok::<(), tilewright_kernels::devices::DevicesError>(())
//! ```
//!
//! [`Distribution`]: layout_core::devices::Distribution

mod alone;
mod block;
mod collective;
mod error;
mod gather;
mod order;
mod placement;
mod plans;
mod program;
mod prove;
mod reduce;
mod submission;
mod transport;
use crate::gemm::{Batch, DataType, Gemm};
use collective::Way;
pub use error::{DevicesError, Fault};
pub use placement::{Movements, Placement};
pub use plans::Plans;
pub use program::{
    Action, Addend, Buffer, Collective, CollectiveKind, Content, Op, Operand, Product, Program,
    Region,
};
pub use prove::ProgramProof;
pub use transport::Transport;

impl Program {
    /// What the devices do for a product whose matrices lie as `placement` says: factors move to where C belongs, or, if both are cut along k alike
    /// ([`Placement::sums_move`]), terms of C.
    ///
    /// # Errors
    ///
    /// [`DevicesError::Unsupported`] for batches, shards that are no rectangles, and cuts along k whose sums belong to other devices than those that
    /// add them.
    pub fn derive(problem: &Gemm, placement: &Placement) -> Result<Self, DevicesError> {
        possible(problem)?;
        if placement.sums_move() {
            reduce::program(problem, placement, reduce::First::Copied)
        } else {
            gather::program(problem, placement)
        }
    }

    /// The same with products that store the first term of each sum straight into the memory of the device that adds to it: between two devices nothing is
    /// copied. None if no terms move, or if a sum begins with the old C (β ≠ 0). The devices' memory must be in one address space: GPUs of one process.
    ///
    /// # Errors
    ///
    /// As [`Program::derive`].
    ///
    /// ```
    /// use tilewright_kernels::devices::{Placement, Program};
    /// use tilewright_kernels::gemm::{Gemm, Operands};
    ///
    /// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
    /// let placement = Placement::parse("columns,rows,rows", &problem, 2)?;
    /// let proof = Program::direct(&problem, &placement)?.unwrap().prove()?;
    /// assert_eq!((proof.products, proof.copies, proof.links[&(0, 1)]), (8, 0, 32 * 48));
    /// let old = Gemm { beta: 1.0, ..problem };
    /// assert_eq!(Program::direct(&old, &placement)?, None);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn direct(problem: &Gemm, placement: &Placement) -> Result<Option<Self>, DevicesError> {
        possible(problem)?;
        if !placement.sums_move() || problem.beta != 0.0 {
            return Ok(None);
        }
        let program = reduce::program(problem, placement, reduce::First::Stored)?;
        Ok(Some(program))
    }

    /// The same by one collective operation and one product a device, one after the other; none if no single one of equal parts, each a run of stored
    /// rows, moves everything, or if something is added behind a reduce-scatter (β, bias, activation).
    ///
    /// # Errors
    ///
    /// As [`Program::derive`].
    ///
    /// ```
    /// use tilewright_kernels::devices::{Placement, Program};
    /// use tilewright_kernels::gemm::{Gemm, Operands};
    ///
    /// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
    /// let placement = Placement::parse("columns,rows,rows", &problem, 2)?;
    /// let proof = Program::collective(&problem, &placement)?.unwrap().prove()?;
    /// assert_eq!((proof.products, proof.collectives, proof.copies), (2, 1, 0));
    /// // 63 rows are no two equal parts.
    /// let problem = Gemm { m: 63, ..problem };
    /// let placement = Placement::parse("columns,rows,rows", &problem, 2)?;
    /// assert_eq!(Program::collective(&problem, &placement)?, None);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn collective(problem: &Gemm, placement: &Placement) -> Result<Option<Self>, DevicesError> {
        possible(problem)?;
        collective::program(problem, placement)
    }

    /// The program that takes the least time on GPUs of one process that have NCCL, by the bytes over the busiest link, as measured on two H200 and four H100: up to 6 MiB
    /// [`Program::collective`] for an all-gather, and up to 5 MiB for a reduce-scatter; up to 20 MiB [`Program::direct`] for a reduce-scatter; else, and where
    /// there is no such program, [`Program::derive`].
    ///
    /// # Errors
    ///
    /// As [`Program::derive`].
    ///
    /// ```
    /// use tilewright_kernels::devices::{Placement, Program};
    /// use tilewright_kernels::gemm::{DataType, Gemm, Operands};
    ///
    /// let quickest = |size| {
    ///     let problem = Gemm::packed(size, size, size, Operands::ALL[0]);
    ///     let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
    ///     Program::quickest(&problem, &placement, DataType::Bf16)?.prove()
    /// };
    /// assert_eq!(quickest(1024)?.collectives, 1);
    /// assert_eq!(quickest(8192)?.collectives, 0);
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn quickest(
        problem: &Gemm,
        placement: &Placement,
        data_type: DataType,
    ) -> Result<Self, DevicesError> {
        possible(problem)?;
        let quickest = match collective::quickest(problem, placement, data_type)? {
            Way::Collective => match collective::program(problem, placement)? {
                // As few bytes, in a form that no single collective moves.
                None => Self::direct(problem, placement)?,
                program => program,
            },
            Way::Direct => Self::direct(problem, placement)?,
            Way::Copies => None,
        };
        match quickest {
            Some(program) => Ok(program),
            None => Self::derive(problem, placement),
        }
    }

    /// The products alone, with every factor in its place and nothing to be added: what the movement's overhead is measured against. Of terms of C, each
    /// device keeps its own.
    ///
    /// # Errors
    ///
    /// As [`Program::derive`].
    ///
    /// ```
    /// use tilewright_kernels::devices::{Placement, Program};
    /// use tilewright_kernels::gemm::{Gemm, Operands};
    ///
    /// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
    /// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
    /// let proof = Program::alone(&problem, &placement)?.prove()?;
    /// assert_eq!((proof.products, proof.copies), (2, 0));
    /// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
    /// ```
    pub fn alone(problem: &Gemm, placement: &Placement) -> Result<Self, DevicesError> {
        possible(problem)?;
        alone::program(problem, placement)
    }
}

/// What holds for all programs.
fn possible(problem: &Gemm) -> Result<(), DevicesError> {
    problem.validate(u64::MAX)?;
    if problem.batch != Batch::ONE && problem.batch.count != 1 {
        return Err(DevicesError::unsupported(format!(
            "a batch of {} products is not spread over devices; give each device some of the batch, as products of their own",
            problem.batch.count
        )));
    }
    Ok(())
}
