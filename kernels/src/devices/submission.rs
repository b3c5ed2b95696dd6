//! In which order a host may hand a program to its driver.
//!
//! A driver puts the work of all streams into fewer queues, in the order in which it gets it, and what waits at the head of a queue holds up all behind it.
//! Which streams share a queue is the driver's choice: on four H100s every copy that leaves a device for another one goes through one queue of that
//! device, whatever its stream (measured, driver 580.159.04), and `CUDA_DEVICE_MAX_CONNECTIONS` lets streams of one device share theirs.
//!
//! So an operation may be held up by anything that was submitted before it. Suppose that a wait is submitted before its flag is set: the wait may then hold
//! up the set, and both wait for ever. If every wait comes behind its set, no choice of queues is a deadlock: of the operations that have not
//! ended, the one submitted first has nothing to wait for.
//!
//! [`Program::ops`] is the order of submission.

use super::error::Fault;
use super::program::{Action, Program};

/// Checks that no operation is submitted before one that it waits for.
pub(super) fn in_order(program: &Program) -> Result<(), Fault> {
    let mut set_at = vec![None; program.flags];
    for (index, op) in program.ops.iter().enumerate() {
        if let Action::Set(flag) = op.action {
            set_at[flag].get_or_insert(index);
        }
    }
    for (index, op) in program.ops.iter().enumerate() {
        if let Action::Wait(flag) = op.action
            && let Some(set) = set_at[flag].filter(|&set| set > index)
        {
            return Err(Fault::HeldUp {
                wait: op.to_string(),
                held: program.ops[set].to_string(),
            });
        }
    }
    Ok(())
}
