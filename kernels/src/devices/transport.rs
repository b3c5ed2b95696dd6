//! How matrices move, where that is decided and not left to [`Program::quickest`].

use layout_core::devices::Movement;

use super::error::DevicesError;
use super::placement::Placement;
use super::program::Program;
use crate::gemm::Gemm;

/// How matrices move between devices.
///
/// ```
/// use tilewright_kernels::devices::{Placement, Transport};
/// use tilewright_kernels::gemm::{Gemm, Operands};
///
/// let problem = Gemm::packed(64, 48, 32, Operands::ALL[0]);
/// let placement = Placement::parse("rows,columns,columns", &problem, 2)?;
/// assert_eq!(Transport::Copies.program(&problem, &placement)?.prove()?.copies, 2);
/// // A and B are not cut along k.
/// let error = Transport::Direct.program(&problem, &placement).unwrap_err();
/// assert_eq!(error.code(), "no_direct");
/// # Ok::<(), tilewright_kernels::devices::DevicesError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// Copies that overlap with products: [`Program::derive`].
    Copies,
    /// Products that store terms of C into the memory of the device that adds them: [`Program::direct`].
    Direct,
    /// One all-gather or reduce-scatter before or after the products: [`Program::collective`].
    Collective,
}

impl Transport {
    /// The program of a placement in which matrices move so.
    ///
    /// # Errors
    ///
    /// [`DevicesError::NoDirect`] and [`DevicesError::NoCollective`] where they can't, and those of [`Program::derive`].
    pub fn program(self, problem: &Gemm, placement: &Placement) -> Result<Program, DevicesError> {
        match self {
            Self::Copies => Program::derive(problem, placement),
            Self::Direct => Program::direct(problem, placement)?.ok_or(DevicesError::NoDirect),
            Self::Collective => {
                let program = Program::collective(problem, placement)?;
                let moves = placement.movements()?;
                let mut moves = [&moves.a, &moves.b, &moves.c].into_iter();
                if moves.all(|moved| moved.movement() == Movement::Nothing) {
                    return Err(DevicesError::NoCollective {
                        nothing_moves: true,
                    });
                }
                program.ok_or(DevicesError::NoCollective {
                    nothing_moves: false,
                })
            }
        }
    }
}
