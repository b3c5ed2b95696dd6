//! Roles: threads of a block that part, each group with a region of its own.

use super::Kernel;
use crate::ir::node::{Node, RoleRegion};
use crate::ir::value::Cmp;

impl Kernel {
    /// Begins what the threads from the end of the role before to `end` do, until the kernel ends; `end` is a multiple of 128, and of the last role the
    /// number of threads. Barriers of the block are behind the threads then: roles meet at mbarriers.
    ///
    /// # Panics
    ///
    /// Inside of a loop or a branch.
    pub(crate) fn begin_role(&mut self, name: &'static str, end: u32) {
        self.end_role();
        assert!(
            self.is_closed(),
            "roles begin outside of loops and branches"
        );
        let is = (end < self.block[0]).then(|| {
            let (thread, end) = (self.thread(), self.pool.constant(end.into()));
            self.compare(Cmp::Lt, thread, end)
        });
        self.roles.push(RoleRegion {
            name,
            end,
            is,
            body: Vec::new(),
        });
        self.open_region();
    }

    /// Ends the last role, and with it the kernel.
    pub(crate) fn end_roles(&mut self) {
        self.end_role();
        let roles = std::mem::take(&mut self.roles);
        self.scope().body.push(Node::Roles(roles));
    }

    fn end_role(&mut self) {
        if self.roles.is_empty() {
            return;
        }
        let inner = self.pop_scope();
        let body = &mut self.roles.last_mut().expect("a role is open").body;
        body.extend(inner.before);
        body.extend(inner.top);
        body.extend(inner.body);
    }
}
