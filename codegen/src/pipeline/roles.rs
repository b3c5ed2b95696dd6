//! Warp specialisation: the warps of a block split into roles, each with its own code.
//!
//! ```text
//! producer     one thread issues the TMA copies into the stages   few registers
//! consumers    wgmma on the stages, and the epilogue              the registers that the producer releases
//! ```
//!
//! Roles synchronise through the mbarriers of rings and through order barriers ([`Kernel::order_barrier`]). Shared memory outside of rings belongs to one role; its threads
//! synchronise with [`Kernel::barrier`].

use crate::index::Expr;
use crate::ir::{Cmp, Kernel};
use crate::view::ViewError;

/// Threads of a warpgroup.
const WARPGROUP: u32 = 128;

/// 32-bit registers of a multiprocessor.
const REGISTERS: u32 = 65_536;

/// A role: its name, the number of its warps, and the registers of each thread.
///
/// ```
/// use layout_codegen::pipeline::WarpRole;
///
/// // A warpgroup that needs few registers.
/// let producer = WarpRole::new("producer", 4).registers(40);
/// # let _ = producer;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarpRole<'n> {
    name: &'n str,
    warps: u32,
    registers: Option<u32>,
}

impl<'n> WarpRole<'n> {
    /// A role of `warps` warps.
    ///
    /// ```
    /// use layout_codegen::pipeline::WarpRole;
    ///
    /// WarpRole::new("consumers", 8);
    /// ```
    pub fn new(name: &'n str, warps: u32) -> Self {
        Self {
            name,
            warps,
            registers: None,
        }
    }

    /// Sets the registers of each thread by `setmaxnreg`: a multiple of 8 from 24 to 240. This role and the roles before it then consist of whole warpgroups. All roles together
    /// have at most the 65,536 registers of a multiprocessor.
    ///
    /// ```
    /// use layout_codegen::pipeline::WarpRole;
    ///
    /// WarpRole::new("consumers", 8).registers(240);
    /// ```
    #[must_use]
    pub fn registers(self, count: u32) -> Self {
        Self {
            registers: Some(count),
            ..self
        }
    }
}

impl Kernel {
    /// Gives the next warps of the block a role, until the kernel ends. `body` gets the index of a thread within the role. Every thread of the block has a role, and no code
    /// follows the last one.
    ///
    /// Rings over TMA are declared before the first role. The example of [`Kernel::tma_ring`] has two roles.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::WarpRole;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 128);
    /// k.role(WarpRole::new("first", 1), |k, lane| {
    ///     assert_eq!(k.range(lane), (0, 31));
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// assert!(k.build(Arch(90)).is_err()); // three warps have no role
    /// # Ok::<(), ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of the body. Roles that the block has no threads for, and a role within another one, are mistakes that [`Kernel::build`] reports.
    #[track_caller]
    pub fn role<E: From<ViewError>>(
        &mut self,
        role: WarpRole<'_>,
        body: impl FnOnce(&mut Self, Expr) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        let Some(thread) = self.begin_warps(role)? else {
            return Ok(());
        };
        let (done, same) = self.around(|k| body(k, thread));
        if same {
            self.end_warps();
        }
        done
    }

    /// A role whose first thread alone runs `body`. It issues the TMA copies ([`Kernel::produce`]).
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::pipeline::WarpRole;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 32);
    /// k.producer(WarpRole::new("nothing", 1), |_| Ok::<(), ViewError>(()))?;
    /// assert!(k.build(Arch(90)).is_ok());
    /// # Ok::<(), ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Kernel::role`].
    #[track_caller]
    pub fn producer<E: From<ViewError>>(
        &mut self,
        role: WarpRole<'_>,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        self.role(role, |k, thread| {
            let zero = k.pool.constant(0);
            let only = k.compare(Cmp::Eq, thread, zero);
            k.begin_if(only, false);
            k.open_region();
            let (done, same) = k.around(body);
            if same {
                k.close_region();
                k.end_if();
            }
            done
        })
    }

    /// Begins a role and returns the index of a thread within it; `None` for an invalid role.
    fn begin_warps(&mut self, role: WarpRole<'_>) -> Result<Option<Expr>, ViewError> {
        let WarpRole {
            name,
            warps,
            registers,
        } = role;
        let name = self.checked_name("a role", name);
        let (first, threads) = (self.end_of_roles(), self.block[0]);
        let all = u64::from(first) + 32 * u64::from(warps);
        if self.in_role() || !self.is_closed() {
            self.mistake(format!(
                "the role `{name}` begins in a role, loop, region or branch: threads part outside of all"
            ));
            return Ok(None);
        }
        if warps == 0 || all > threads.into() || self.parting.ended {
            self.mistake(format!(
                "the role `{name}` of {warps} warps: the block has {threads} threads, of which {first} have a role"
            ));
            return Ok(None);
        }
        if first == 0 {
            self.make_all_rings()?;
            self.parting.before = self.nodes_before_roles();
        } else if self.parting.before != self.nodes_before_roles() {
            self.mistake(format!(
                "something is done between the role `{name}` and the one before: it belongs in a role, or before the first"
            ));
        }
        let end = all as u32;
        self.begin_role(&name, end);
        if let Some(count) = registers {
            let whole = first.is_multiple_of(WARPGROUP) && end.is_multiple_of(WARPGROUP);
            if !whole || count % 8 != 0 || !(24..=240).contains(&count) {
                self.mistake(format!(
                    "{count} registers a thread of the role `{name}`: whole warpgroups have a multiple of 8 from 24 to 240"
                ));
            }
            self.set_registers(count, count > REGISTERS / threads / 8 * 8);
        }
        let (thread, before) = (self.thread(), self.pool.constant(first.into()));
        let within = self.pool.sub(thread, before);
        let within = self.bounded(within, i64::from(end - first) - 1);
        self.parting.thread = Some(within);
        Ok(Some(within))
    }

    fn end_warps(&mut self) {
        self.boxes_are_read();
        self.end_role();
        if self.end_of_roles() == self.block[0] {
            self.end_roles();
            self.parting.ended = true;
            self.count_consumers();
        }
    }

    /// One thread initialises the mbarriers of all rings.
    fn make_all_rings(&mut self) -> Result<(), ViewError> {
        let rings = self.parting.rings.clone();
        if rings.is_empty() {
            return Ok(());
        }
        let (thread, zero) = (self.thread(), self.pool.constant(0));
        let first = self.compare(Cmp::Eq, thread, zero);
        Ok(self.make_rings(&rings, first)?)
    }

    /// Sets the arrival counts of the empty barriers to the number of consumer warps.
    fn count_consumers(&mut self) {
        let blocks: u32 = self.cluster.iter().product();
        for ring in self.parting.rings.clone() {
            let readers = self.parting.readers.get(&ring.number());
            let warps: u32 = readers.map_or(0, |all| all.values().sum());
            let blocks = if self.parting.per_block.contains(&ring.number()) {
                1
            } else {
                blocks
            };
            self.set_consumers(&ring, warps * blocks / ring.ordered_roles());
        }
    }
}
