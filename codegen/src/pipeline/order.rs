//! Order barriers: consumer roles that take turns, as in a ping-pong schedule of attention.
//!
//! ```text
//! role r       wait for its turn, issue MMAs, pass the turn to role r + 1       the last one passes it to the first
//! ```
//!
//! Nothing about memory follows from a turn: MMAs of a turn may be in flight behind it. Each barrier is a named one of the block (`bar.sync`, `bar.arrive`).

use crate::ir::Kernel;
use crate::view::ViewError;

/// The order in which some roles take turns ([`Kernel::order_barrier`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderBarrier {
    /// The named barrier that the first role waits at; the others follow.
    first: u32,
    roles: u32,
}

impl Kernel {
    /// An order barrier for `roles` roles of the same number of threads, which take turns: role 0, role 1, …, and role 0 again. It takes as many named barriers, of 15.
    ///
    /// The roles run the same loops, wait for the same stages of rings in them, and take their turns at the same places ([`Kernel::in_order`]).
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
    /// [`ViewError::Pipeline`] for less than two roles, or more than there are named barriers for.
    #[track_caller]
    pub fn order_barrier(&mut self, roles: u32) -> Result<OrderBarrier, ViewError> {
        self.at_line();
        if !(2..=15).contains(&roles) {
            return Err(ViewError::Pipeline {
                given: format!("an order barrier of {roles} roles"),
                accepted: "2 to 15 roles take turns".to_owned(),
            });
        }
        let first = self.named_barriers(roles);
        Ok(OrderBarrier { first, roles })
    }

    /// Runs `body` when it is the turn of role number `role` of an order barrier, by all threads of the open role, then passes the turn on to the next role. The body issues MMAs;
    /// it waits for no stage and takes no other turn.
    ///
    /// The example of [`Kernel::order_barrier`] has two roles.
    ///
    /// # Errors
    ///
    /// [`ViewError::Pipeline`] outside of roles, and for a number that is not of a role of the order barrier; those of the body.
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
                given: format!("the turn of role {role} of an order barrier of {roles}"),
                accepted: "the threads of a role take it (`Kernel::role`), numbered from 0"
                    .to_owned(),
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
