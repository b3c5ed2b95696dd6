//! Registers, instructions and addresses: the level below views and values.
//!
//! Most kernels are written with [views](crate::view), [values](crate::value) and [pipelines](crate::pipeline) alone. This level is for what those have no call for:
//! a particular instruction, a place for a comparison, a loop that is opened here and closed there. The traits are imported on purpose, and what they write is held
//! to the same: addresses come out of views, never out of numbers, and the prover reads every instruction before it is printed.
//!
//! ```
//! use layout_codegen::Arch;
//! use layout_codegen::ir::instructions::{Addresses, Cache, Class, Instructions, Type};
//! use layout_codegen::ir::{Axis, Element, Kernel};
//!
//! // y = x of one warp, an element a lane, by a load and a store.
//! let mut k = Kernel::new("copy", 32);
//! let n = k.constant(32);
//! let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
//! let (lane, value) = (k.thread(), k.reg(Class::F32));
//! let (from, to) = (x.element(&mut k, &[lane])?, y.element(&mut k, &[lane])?);
//! k.load(None, Cache::Coherent, Type::F32, &[value], from);
//! k.store(None, Type::F32, &[value], to);
//! k.blocks(Axis::X, 1)?;
//! assert!(k.build(Arch(80))?.ptx.contains("ld.global"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use layout_core::atoms::MmaAtom;
use layout_core::{Layout, LayoutError, MatrixDescriptor, Swizzled};

use super::inst::Axis;
use super::param::ParamKind;
use super::{Cmp, Element, Kernel};
use crate::index::{Expr, Level};
use crate::value::{Kind, Predicate, Value};
use crate::view::View;

pub use super::address::Address;
pub use super::hopper::{Factor, Matrix, OrderArrival, Side};
pub use super::inst::{Binary, Cache, Unary};
pub use super::kernel::{LoopHandle, MapHandle, RingHandle};
pub use super::place::{Extent, Role, Stride};
pub use super::value::{Class, Logic, Pred, Reg, Src, Type};
pub use crate::value::moved;
pub use crate::view::choice::Choice;
pub use crate::view::element::Alternating;

mod sealed {
    /// Types of this crate.
    pub trait Sealed {}
    impl Sealed for super::Kernel {}
    impl Sealed for super::View {}
    impl<T> Sealed for super::Value<T> {}
}

/// Bytes of shared memory that the mbarriers of a ring take: `stages` stages, and of a ping-pong schedule the number of consumer roles and whether their MMAs
/// overlap.
pub fn barriers_of_ring(stages: i64, schedule: (u32, bool)) -> i64 {
    Kernel::barriers_of_ring(stages, schedule)
}

/// A trait of the kernel's own methods, with one line a method.
macro_rules! instructions {
    ($($(#[$doc:meta])* fn $name:ident $(<$t:ident>)? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;)*) => {
        /// Instructions, branches, loops, roles and rings, by registers.
        ///
        /// A method that fails returns the error of a layout: coordinates that are not those of a view.
        #[allow(clippy::missing_errors_doc)]
        pub trait Instructions: sealed::Sealed {
            $($(#[$doc])* fn $name $(<$t>)? (&mut self $(, $arg: $ty)*) $(-> $ret)?;)*
        }

        impl Instructions for Kernel {
            $(#[track_caller] fn $name $(<$t>)? (&mut self $(, $arg: $ty)*) $(-> $ret)? { Kernel::$name(self $(, $arg)*) })*
        }
    };
}

instructions! {
    /// The predicate `a and b`, right here.
    fn and_here(a: Reg, b: Reg) -> Reg;
    /// Runs `body` in the scope that was opened last. Whether the kernel is still the one that it was opened in.
    fn around<T>(body: impl FnOnce(&mut Kernel) -> T) -> (T, bool);
    /// What follows is a custom function, which may compute and not declare: until [`Instructions::end_function`].
    fn begin_function(name: &str);
    /// Opens a branch: what follows is executed where `when` holds. All threads of a block agree if `uniform`.
    fn begin_if(when: impl Into<Pred>, uniform: bool);
    /// Begins what the threads from the end of the role before to `end` do until the kernel ends; `end` is a multiple of 32, and of the last role the number
    /// of threads. Roles meet at mbarriers.
    fn begin_role(name: &str, end: u32);
    /// `to = a op b`
    fn binary(op: Binary, ty: Type, to: Reg, a: impl Into<Src>, b: impl Into<Src>);
    /// How many bytes of a vector of `vector` (elements at most, bytes of one) are inside, where the sum of `left` is the number of elements left in its row,
    /// and none where `row` does not hold: the size of an asynchronous copy.
    fn bytes_inside(row: Reg, left: (Expr, i64), vector: (i64, i64)) -> Reg;
    /// Closes a loop that only [`Instructions::leave_loop`] leaves; the text calls the place behind it so.
    fn close_endless_loop(handle: &LoopHandle, behind: &'static str);
    /// Closes a loop that runs while its counter is below `limit`, which may be never.
    fn close_loop(handle: &LoopHandle, limit: Expr);
    /// Closes a loop that runs at least once and runs again while `again`, computed in its body, holds.
    fn close_loop_while(handle: &LoopHandle, again: Reg);
    /// Closes the innermost region.
    fn close_region();
    /// A predicate computed at `level` from two others.
    fn combine(op: Logic, a: Reg, b: Reg, level: Level) -> Reg;
    /// Closes a group of boxes of the threads where `only` holds.
    fn commit_boxes(only: Reg);
    /// The predicate `a cmp b`, computed as far out as possible.
    fn compare(cmp: Cmp, a: Expr, b: Expr) -> Reg;
    /// The predicate `a cmp b` of a register that takes no part in addresses, at the kernel's entry.
    fn compare_at_entry(cmp: Cmp, ty: Type, a: Reg, b: impl Into<Src>) -> Reg;
    /// The predicate `a cmp k`, `and` another if given, computed right here: for paths that are rarely taken, whose predicates must not occupy registers
    /// elsewhere.
    fn compare_here(cmp: Cmp, a: Expr, k: i64, and: Option<Reg>) -> Reg;
    /// The predicate `a cmp b` of two values, `and` another if given, right here.
    fn compare_value_here(cmp: Cmp, ty: Type, a: impl Into<Src>, b: impl Into<Src>, and: Option<Reg>) -> Reg;
    /// `to` = what `from` holds, of type `from_ty`, as `to_ty`: exact, or rounded to nearest even.
    fn convert(to_ty: Type, to: Reg, from_ty: Type, from: Reg);
    /// Two `f32` rounded to 16-bit floats in one register.
    fn convert_pair(to_ty: Type, low: Reg, high: Reg) -> Reg;
    /// Copies `bytes` bytes from global to shared memory; only `size` of them are read, if it is given, and the rest are 0.
    fn copy_async(to: Address, from: Address, bytes: (u32, bool), size: Option<Reg>);
    /// The box that begins at `from` (rows, columns, before them leading modes) to the element `to` of a stage, of the block itself or of those blocks of the
    /// cluster whose bits are set.
    fn copy_box(map: MapHandle, from: &[Expr], to: (Address, Option<u16>), ring: &RingHandle, index: Expr) -> Result<(), LayoutError>;
    /// The iterations of the open loop and the blocks of a launch have each tile of a matrix once: `origin` is where an iteration's tile begins, and `matrix`
    /// has the extents of the matrix and those of a tile. The prover counts all tiles.
    fn deal(counter: Expr, origin: [Expr; 2], matrix: ([Expr; 2], [i64; 2]));
    /// Waits until every stage of the first `uses` pipeline iterations is released: behind it no arrival is on its way to this block.
    fn drain_ring(ring: &RingHandle, uses: Expr) -> Result<(), LayoutError>;
    /// Ends a custom function.
    fn end_function();
    /// Closes the innermost open branch.
    fn end_if();
    /// Ends the last role, and with it the kernel.
    fn end_roles();
    /// Ends the kernel for threads where `when` holds.
    fn exit(when: impl Into<Pred>, uniform: bool);
    /// Announces the bytes that copies bring to a stage.
    fn expect_bytes(ring: &RingHandle, index: Expr, bytes: i64) -> Result<(), LayoutError>;
    /// What each thread has written to shared memory can be seen by copies by TMA that come behind it.
    fn fence_for_copies();
    /// Neighbours of a row of a stage, from `at` on, to registers of 4 bytes.
    fn fetch(to: &[Reg], at: Address, ring: &RingHandle, index: Expr);
    /// A role arrives on the order barrier of the next one, by the threads where `only` holds; `by` is the role's number and its iteration.
    fn arrive_in_order(what: OrderArrival, ring: &RingHandle, by: (u32, Expr), only: Reg) -> Result<(), LayoutError>;
    /// Leaves the innermost loop where `when` holds.
    fn leave_loop(when: impl Into<Pred>, uniform: bool);
    /// Loads `to` (1, 2 or 4 of one class) from `at`.
    fn load(guard: Option<Pred>, cache: Cache, ty: Type, to: &[Reg], at: Address);
    /// Four 8×8 matrices of 16-bit elements to four registers; each lane points at a row.
    fn load_matrix(to: Vec<Reg>, trans: bool, at: Address);
    /// The mbarriers of rings are made by the one thread where `only` holds; one barrier of the block publishes all of them.
    fn make_rings(rings: &[RingHandle], only: Reg) -> Result<(), LayoutError>;
    /// An operand of `wgmma` in the stage of a pipeline iteration: its first element is that of the view at coordinates, and the descriptor is that of the
    /// view's layout, with whether K is contiguous.
    fn matrix(of: (&View, &[Expr]), descriptor: (&MatrixDescriptor, bool), stage: (&RingHandle, Expr)) -> Result<Matrix, LayoutError>;
    /// `to = a·b + c`
    fn mul_add(ty: Type, to: Reg, a: impl Into<Src>, b: impl Into<Src>, c: impl Into<Src>);
    /// `d += a·b` by a warp.
    fn multiply_accumulate(atom: &Arc<MmaAtom>, d: &[Reg], a: &[Reg], b: &[Reg]);
    /// Names the other side and the end of the innermost open branch, for the reader of the text.
    fn name_branch(other: &'static str, end: &'static str);
    /// A view of a buffer whose elements are of a type, so that tiles of it can be copied.
    fn of_element(view: View, element: Element) -> View;
    /// Opens a region that recomputes every value it uses: only parameters and the thread's index stay in registers for it.
    fn open_fresh_region();
    /// Opens a loop whose counter takes the values `start`, `start + step`, … below the limit that [`Instructions::close_loop`] gets, which is at most
    /// `limit_hi`.
    fn open_loop(stem: &str, start: i64, step: i64, limit_hi: i64) -> LoopHandle;
    /// Opens a region: from here on, new values are computed at its top and not at the kernel's entry, so that what only the end of a kernel needs does not
    /// occupy registers through its main loop.
    fn open_region();
    /// The other side of the innermost open branch.
    fn otherwise();
    /// Registers side by side in one of 32 bits, the first in the lowest bits.
    fn pack(to: Reg, parts: &[Reg]);
    /// Says that a parameter is a multiple of a number, in bytes for an address; the launch contract refuses others.
    fn param_multiple(name: &str, multiple: u64);
    /// A pointer parameter, as the variable of its address in the global state space.
    fn param_pointer(name: &str) -> Expr;
    /// A parameter that takes no part in addresses, such as α.
    fn param_scalar(name: &str, kind: ParamKind) -> Reg;
    /// An unsigned 32-bit parameter in `0..=most`, as a variable; the launch contract refuses more.
    fn param_u32(name: &str, most: i64) -> Expr;
    /// Four bytes of `a` (0 to 3) and `b` (4 to 7), a hexadecimal digit each, the lowest byte last.
    fn permute(a: Reg, b: Reg, selector: u16) -> Reg;
    /// `to = a` where `p` holds, else `b`.
    fn pick(ty: Type, to: Reg, a: impl Into<Src>, b: impl Into<Src>, p: Reg);
    /// Prefetches a tensor map by the threads where `only` holds, so that the first TMA copy does not stall.
    fn prefetch_map(map: MapHandle, only: Reg);
    /// A new register.
    fn reg(class: Class) -> Reg;
    /// `n` new registers.
    fn regs(class: Class, n: usize) -> Vec<Reg>;
    /// Releases the stage of pipeline iteration `index` − lag: the threads where `only` holds arrive at its empty barrier.
    fn release_stage(ring: &RingHandle, index: Expr, only: Reg) -> Result<(), LayoutError>;
    /// As [`Instructions::release_stage`], to each block of the cluster: every thread where `to.1` holds tells the block of rank `to.0`.
    fn release_stage_to(ring: &RingHandle, index: Expr, to: (Expr, Reg)) -> Result<(), LayoutError>;
    /// Sets the kernel's shared memory to `bytes` bytes at a multiple of `align`; `dynamic` if the launch gives its size.
    fn reserve_shared(bytes: u64, align: u32, dynamic: bool);
    /// Opens a loop that goes on where another ended: its counter starts with the other's last value.
    fn resume_loop(name: &str, after: &LoopHandle, step: i64, limit_hi: i64) -> LoopHandle;
    /// Says that the address of a buffer and its rows are multiples of `bytes` bytes; the launch contract refuses others.
    fn rows_aligned(view: &View, bytes: i64);
    /// The variable that equals `a` where `p` holds and `b` elsewhere, at the kernel's entry.
    fn select(p: Reg, a: Expr, b: Expr) -> Expr;
    /// `to = from`
    fn set(ty: Type, to: Reg, from: impl Into<Src>);
    /// From here on a thread of this role has so many registers.
    fn set_registers(count: u32, more: bool);
    /// Notes that registers which values may have been taken from are set again here.
    fn sets(registers: &[Reg]);
    /// A buffer of shared memory at a byte of it: the first modes by a layout to bytes, the others by strides in bytes.
    fn shared_at(name: &str, bytes: i64, layout: Swizzled, offset: i64, extents: Vec<Extent>, outer: Vec<i64>) -> View;
    /// A ring over the stages of `views`, each with the rows and columns of a stage that are read. `shape` is the number of stages, the lag (a stage is
    /// released so many iterations after the one that reads it), and of a ping-pong schedule the number of consumer roles and whether their MMAs overlap;
    /// else (1, false). Its mbarriers lie at `offset` of shared memory, and `consumers` threads of all blocks of a cluster release a stage.
    fn shared_ring(name: &str, shape: (i64, i64, (u32, bool)), offset: i64, consumers: u32, views: &[(&View, [i64; 2])]) -> Result<RingHandle, LayoutError>;
    /// The stage of a pipeline iteration, as a coordinate of its views.
    fn slot(ring: &RingHandle, index: Expr) -> Expr;
    /// Stores `from` (1, 2 or 4 of one class) to `at`.
    fn store(guard: Option<Pred>, ty: Type, from: &[Reg], at: Address);
    /// The box at the element `from` of shared memory to where it begins at `to` (rows, columns, before them leading modes), by the threads where `only`
    /// holds.
    fn store_box(map: MapHandle, to: &[Expr], from: Address, only: Reg);
    /// Four registers of 16-bit pairs to four 8×8 matrices of 16-bit elements; each lane points at a row.
    fn store_matrix(from: Vec<Reg>, trans: bool, at: Address);
    /// Names the instruction written last: proofs and counters call it so, and the text carries the name.
    fn tag(name: &str);
    /// A tensor map of a view of a whole array, for boxes of `extents` rows and columns.
    fn tensor_map(name: &str, of: &View, extents: [i64; 2], swizzle: i64) -> MapHandle;
    /// `to = op(a)`
    fn unary(op: Unary, ty: Type, to: Reg, a: impl Into<Src>);
    /// The two halves of a register, the lower first.
    fn unpack(from: Reg) -> [Reg; 2];
    /// The threads where `only` holds wait until all of their groups but the youngest `pending` have read shared memory.
    fn wait_for_boxes(pending: u32, only: Reg);
    /// Waits for one barrier of a stage, or for a role's order barrier, of that pipeline iteration.
    fn wait_stage(ring: &RingHandle, side: Side, index: Expr) -> Result<(), LayoutError>;
    /// `d += a·b` by a warpgroup. `sums` says whether sums begin with this MMA, and has the predicate of the opposite.
    fn wgmma(atom: &Arc<MmaAtom>, d: &[Reg], factors: (Factor, Matrix), sums: (bool, Reg));
    /// The MMAs since the last commit are a group: `wgmma.commit_group`.
    fn wgmma_commit();
    /// The warpgroup's registers are written before MMAs that follow read them: `wgmma.fence`.
    fn wgmma_fence();
    /// Waits until at most `pending` groups of MMAs are in flight: `wgmma.wait_group`.
    fn wgmma_wait(pending: u32);
    /// So many blocks along an axis, rounded up to whole clusters.
    fn whole_clusters(axis: Axis, blocks: u64) -> u64;
    /// A launch keeps to `e <= most`, in every block. Only the launches of a [`Module`](crate::Module) are described by the program that states this:
    /// [`Kernel::build`] refuses it.
    fn launch_keeps(e: Expr, most: Expr);
    /// A launch has clusters of so many blocks along x, y and z, and whole ones. As [`Instructions::launch_keeps`], for modules.
    fn launch_clusters(blocks: [u32; 3]);
    /// A buffer of global memory whose address is a value that the kernel has already. As [`Instructions::launch_keeps`], for modules.
    fn launch_global(name: &str, base: Expr, bytes: i64, extents: Vec<Extent>, strides: Vec<Stride>, role: Role) -> View;
    /// Every launch has exactly so many blocks along an axis. As [`Instructions::launch_keeps`], for modules.
    fn launch_blocks(axis: Axis, count: u64);
    /// The blocks of a launch count tiles of `tile` elements along an extent by a value of their indices: each tile is one block's. As
    /// [`Instructions::launch_keeps`], for modules.
    fn launch_tiles(index: Expr, extent: Expr, tile: i64);
}

/// Where the elements of a view are. The addresses of a view in global memory are those of its parameter.
#[allow(clippy::missing_errors_doc)]
pub trait Addresses: sealed::Sealed + Sized {
    /// The view from where a layout points: `map` gives the element `c₀ + n₀·(c₁ + …)` of the modes with a layout (first mode fastest, as everywhere in the
    /// algebra), in shared memory without a swizzle. The two layouts are composed, so that one index is computed and not one for each mode.
    fn at_index(&self, k: &mut Kernel, map: &Layout, at: &[Expr]) -> Result<Self, LayoutError>;
    /// The view moved by coordinates in the buffer's order; leading ones that are left out are 0.
    fn moved(&self, k: &mut Kernel, by: &[Expr]) -> Result<Self, LayoutError>;
    /// The address of this view's first element.
    fn base(&self, k: &mut Kernel) -> Result<Expr, LayoutError>;
    /// The place of the element at coordinates (in the buffer's order, leading zeros left out) from the view's first.
    fn element(&self, k: &mut Kernel, by: &[Expr]) -> Result<Address, LayoutError>;
    /// The view with its address kept as one value, so that what is added to it is computed once.
    #[must_use]
    fn pinned(&self, k: &mut Kernel) -> Self;
    /// The same place by an address that a loop carries: it moves by one addition an iteration.
    #[must_use]
    fn carried(&self, k: &mut Kernel, name: &str, of: &LoopHandle) -> Self;
    /// The same, where coordinates may have the stage of an iteration in them.
    fn element_in(
        &self,
        k: &mut Kernel,
        by: &[Expr],
        stage: Option<&Alternating<'_>>,
    ) -> Result<Address, LayoutError>;
}

impl Addresses for View {
    fn at_index(&self, k: &mut Kernel, map: &Layout, at: &[Expr]) -> Result<Self, LayoutError> {
        View::at_index(self, k, map, at)
    }
    fn moved(&self, k: &mut Kernel, by: &[Expr]) -> Result<Self, LayoutError> {
        View::moved(self, k, by)
    }
    fn base(&self, k: &mut Kernel) -> Result<Expr, LayoutError> {
        View::base(self, k)
    }
    fn element(&self, k: &mut Kernel, by: &[Expr]) -> Result<Address, LayoutError> {
        View::element(self, k, by)
    }
    fn pinned(&self, k: &mut Kernel) -> Self {
        View::pinned(self, k)
    }
    fn carried(&self, k: &mut Kernel, name: &str, of: &LoopHandle) -> Self {
        View::carried(self, k, name, of)
    }
    fn element_in(
        &self,
        k: &mut Kernel,
        by: &[Expr],
        stage: Option<&Alternating<'_>>,
    ) -> Result<Address, LayoutError> {
        View::element_in(self, k, by, stage)
    }
}

/// The registers of values.
pub trait InRegister: sealed::Sealed + Sized {
    /// What a register of this type's class holds now.
    fn held(k: &Kernel, register: Reg) -> Self;
    /// The value in a register of its own, which nothing else is set through.
    #[must_use]
    fn copied(self, k: &mut Kernel) -> Self;
    /// The operand of an instruction here; 0, and a mistake on record, if the value may not be used here.
    fn src(self, k: &mut Kernel) -> Src;
    /// A register that holds the value; a literal is moved to one.
    fn register(self, k: &mut Kernel) -> Reg;
}

impl<T: Kind> InRegister for Value<T> {
    fn held(k: &Kernel, register: Reg) -> Self {
        Value::held(k, register)
    }
    fn copied(self, k: &mut Kernel) -> Self {
        Value::copied(self, k)
    }
    fn src(self, k: &mut Kernel) -> Src {
        Value::src(self, k)
    }
    fn register(self, k: &mut Kernel) -> Reg {
        Value::register(self, k)
    }
}

/// The predicate register that holds where `p` does.
pub fn predicate_register(p: Predicate, k: &mut Kernel) -> Reg {
    p.plain(k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arch, Module};

    /// Reads an element of `x` of the kernel `k`.
    fn read(k: &mut Kernel) -> (Reg, Address) {
        let n = k.constant(32);
        let x = k.input("x", Element::F32, &[n]);
        let (lane, to) = (k.thread(), k.reg(Class::F32));
        (to, x.element(k, &[lane]).expect("inside"))
    }

    fn refusal(k: Kernel) -> String {
        let error = Module::build([k.finish()], Arch(90)).expect_err("refused");
        error.to_string()
    }

    #[test]
    fn what_is_of_another_kernel_is_refused() {
        let mut other = Kernel::new("other", 32);
        let (_, foreign) = read(&mut other);
        let foreign_reg = other.regs(Class::F32, 9)[8];
        let mut k = Kernel::new("own", 32);
        let (to, _) = read(&mut k);
        k.load(None, Cache::Coherent, Type::F32, &[to], foreign);
        let text = refusal(k);
        assert!(
            text.contains("an address of the kernel `other` is used in the kernel `own`"),
            "{text}"
        );
        let mut k = Kernel::new("own", 32);
        let (_, from) = read(&mut k);
        k.load(None, Cache::Coherent, Type::F32, &[foreign_reg], from);
        let text = refusal(k);
        assert!(
            text.contains("a register of another kernel is used in the kernel `own`"),
            "{text}"
        );
    }

    #[test]
    fn what_is_left_open_is_refused() {
        let mut k = Kernel::new("own", 32);
        let _ = k.open_loop("i", 0, 1, 3);
        assert!(refusal(k).contains("a loop, region or branch is still open"));
        let mut k = Kernel::new("own", 32);
        k.end_if();
        k.close_region();
        assert!(!refusal(k).is_empty());
    }

    /// What a launch is to keep to is known to whoever launches a module, and to no contract of a single kernel.
    #[test]
    fn statements_of_launches_are_for_modules() {
        let states = || {
            let mut k = Kernel::new("own", 32);
            let (n, m) = (k.size("n", 100), k.size("m", 100));
            k.launch_keeps(n, m);
            k
        };
        assert!(Module::build([states().finish()], Arch(80)).is_ok());
        let text = states().build(Arch(80)).expect_err("refused").to_string();
        assert!(text.contains("`Module::build`"), "{text}");
        let mut k = Kernel::new("own", 32);
        k.launch_clusters([2, 1, 1]);
        assert!(k.build(Arch(90)).is_err());
    }
}
