//! Order barriers: a ping-pong schedule of consumer roles.
//!
//! ```text
//! role r       wait at barrier r, issue MMAs, arrive at barrier r + 1       the last role arrives at barrier 0
//! ```
//!
//! Order barriers do not order memory accesses: MMAs may still be in flight when a role arrives at the next barrier. Each is a named barrier of the block (`bar.sync`, `bar.arrive`).

use crate::ir::Kernel;
use crate::view::ViewError;

/// The named barriers of a ping-pong schedule ([`Kernel::order_barrier`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderBarrier {
    /// The number of the named barrier at which role 0 waits; the others follow.
    first: u32,
    roles: u32,
}

impl Kernel {
    /// An order barrier: `roles` roles with the same number of threads issue their MMAs one after the other, first role 0, then role 1, and after the last one role 0 again. It uses one
    /// named barrier for each role; a block has 15.
    ///
    /// All of these roles have the same loops, wait for the same stages in them, and call [`Kernel::in_order`] at the same places.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::WarpRole;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// let (order, steps) = (k.order_barrier(2)?, k.size("n", 100));
    /// for (role, name) in [(0, "first"), (1, "second")] {
    ///     k.role(WarpRole::new(name, 2), |k, _| {
    ///         k.for_loop("step", 0, 1, steps, |k, _| {
    ///             k.in_order(&order, role, |k| {
    ///                 // MMAs of this role
    ///                 Ok::<(), ViewError>(())
    ///             })
    ///         })
    ///     })?;
    /// }
    /// let ptx = k.build(Arch(90))?.ptx;
    /// assert!(ptx.contains("bar.sync 1, 128;") && ptx.contains("bar.arrive 2, 128;"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] for fewer than 2 or more than 15 roles.
    #[track_caller]
    pub fn order_barrier(&mut self, roles: u32) -> Result<OrderBarrier, ViewError> {
        self.at_line();
        if !(2..=15).contains(&roles) {
            return Err(ViewError::Pipeline {
                given: format!("an order barrier of {roles} roles"),
                accepted: "2 to 15 roles".to_owned(),
            });
        }
        let first = self.named_barriers(roles);
        Ok(OrderBarrier { first, roles })
    }

    /// All threads of the open role, which is number `role` of the order barrier, wait for the role before, run `body`, and arrive for the next role. The body issues MMAs. It does not wait
    /// for stages, and does not call `in_order` again.
    ///
    /// The example of [`Kernel::order_barrier`] has two roles.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] outside of roles, and for a role number that the order barrier does not have; those of the body.
    #[track_caller]
    pub fn in_order<E: From<ViewError>>(
        &mut self,
        order: &OrderBarrier,
        role: u32,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let OrderBarrier { first, roles } = *order;
        if role >= roles || self.thread_of_role().is_none() {
            return Err(E::from(ViewError::Pipeline {
                given: format!("role {role} of an order barrier of {roles} roles"),
                accepted: "a role number from 0, within `Kernel::role`".to_owned(),
            }));
        }
        let threads = 2 * self.threads_of_role();
        let next = first + (role + 1) % roles;
        if role + 1 == roles && self.parting.armed.insert(first) {
            self.arrive_at_begin(next, threads);
        }
        self.named_barrier(first + role, threads, true);
        body(self)?;
        self.named_barrier(next, threads, false);
        Ok(())
    }
}
