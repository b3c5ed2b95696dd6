//! Registers of roles: `setmaxnreg` waits until the block has as many registers free, which may be never.
//!
//! ```text
//! 384 threads start with 65536 / 384 = 168 registers each, rounded down to a multiple of 8
//! 256 of them set 232, 128 set 40      232·256 + 40·128 = 64512 of 65536
//! without the 40                       232·256 + 168·128 = 80896: the 256 wait forever
//! ```

use crate::ir::{Entry, Hopper, Inst, Node, RoleRegion};
use crate::prove::ProofError;
use crate::prove::protocol::meant::each;

/// 32-bit registers of a multiprocessor (CUDA C++ Programming Guide, technical specifications).
const REGISTERS: u32 = 65_536;

/// Roles set no more registers together than the block has.
pub(in crate::prove) fn kept(entry: &Entry) -> Result<(), ProofError> {
    entry.nodes.iter().try_for_each(|node| match node {
        Node::Roles(roles) => of_roles(entry, roles),
        _ => Ok(()),
    })
}

fn of_roles(entry: &Entry, roles: &[RoleRegion]) -> Result<(), ProofError> {
    let share = REGISTERS / entry.min_blocks.unwrap_or(1).max(1);
    let threads: u32 = entry.block.iter().product();
    let launched = share / threads.max(1) / 8 * 8;
    let (mut begin, mut all, mut any) = (0, 0, false);
    for role in roles {
        let mut set = Vec::new();
        each(&role.body, &mut |inst| {
            if let Inst::Hopper(h) = inst
                && let Hopper::SetRegisters { count, .. } = **h
            {
                set.push(count);
            }
        });
        any |= !set.is_empty();
        let most = set.into_iter().max().unwrap_or(launched);
        all += u64::from(most) * u64::from(role.end.saturating_sub(begin));
        begin = role.end;
    }
    if any && all > share.into() {
        return Err(ProofError::Malformed {
            what: format!(
                "its roles have {all} registers, and a block has {share}: `setmaxnreg` would wait forever; set fewer registers in some role"
            ),
        });
    }
    Ok(())
}
