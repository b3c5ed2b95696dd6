//! The kernel under construction: scopes, variables, and values placed as far out as they allow.

mod branches;
mod bulk_store;
mod cluster;
mod hopper;
mod index;
mod instructions;
mod lines;
mod loops;
mod names;
mod roles;
mod scopes;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Address;
use super::entry::{Deal, DealOrder, Entry, Shared, TileAxis, Tiling};
use super::hopper::{DESCRIPTOR_BITS, Ring, TensorMap, last_shared_address};
use super::inst::{Axis, Inst, Special, class_of};
use super::meaning::Meaning;
use super::node::{Line, Node, RoleRegion};
use super::param::{Param, ParamKind};
use super::place::{Buffer, Extent, Place, Role, Stride};
use super::value::{Class, Cmp, Reg};
use crate::index::code::{Memo, Op, Operand, Sink, Ty, emit};
use crate::index::{Expr, Level, Pool};
use crate::ir::Element;
use crate::quick::QuickMap;
use crate::view::View;
pub(crate) use hopper::Strides;
pub use hopper::{MapHandle, RingHandle};
pub use loops::LoopHandle;
pub(crate) use names::is_comment;
use roles::Parting;
pub(crate) use scopes::Origin;

/// One scope: the kernel's, a loop body's, or that of a region.
#[derive(Default, Debug)]
struct Scope {
    /// What must stand before the scope: the initial values of what its loop carries.
    before: Vec<Node>,
    /// Values that depend on nothing inside the scope.
    top: Vec<Node>,
    /// The scope's own instructions, up to the innermost open branch.
    body: Vec<Node>,
    /// Branches that are open in it.
    branches: Vec<branches::Open>,
    /// What a loop does at the end of each iteration.
    advance: Vec<Node>,
    memo: Memo,
    compared: QuickMap<(Expr, Expr, Cmp), Reg>,
    selected: QuickMap<(Reg, Expr, Expr), Expr>,
    bounded: QuickMap<(Expr, i64), Expr>,
    carried: HashMap<(Expr, String), Reg>,
    /// Its variables, which end with it.
    variables: Vec<String>,
    /// A region without a loop: values of outer levels that are first asked for in it stay in it.
    region: bool,
    /// A region that computes what it needs anew, even where an outer scope has it.
    fresh: bool,
}

/// A kernel being written.
///
/// ```
/// use layout_codegen::ir::{Axis, Kernel};
/// use layout_codegen::Arch;
/// use layout_codegen::ir::Element;
/// use layout_core::Layout;
///
/// // y = x, an element a thread.
/// let mut k = Kernel::new("copy", 128);
/// let n = k.size("n", 1 << 30);
/// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
/// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
/// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
/// k.copy(&x, &y)?;
/// assert_eq!(k.build(Arch(80))?.proof.covered, ["y"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Kernel {
    /// The index expressions of this kernel.
    pub(crate) pool: Pool,
    name: String,
    /// What its author did wrong.
    mistakes: Vec<String>,
    open: scopes::Open,
    /// How often registers of fragments were set again.
    versions: QuickMap<Reg, u32>,
    /// Variables that have ended with their scopes.
    ended: HashSet<String>,
    /// Variables that all threads of a block agree on.
    uniform: HashSet<String>,
    /// A function of another author's runs, which declares nothing: its name.
    within: Option<String>,
    /// The line of the author's program that called last.
    line: Option<Line>,
    /// The text has such lines.
    lines: bool,
    comments: Vec<String>,
    pub(crate) block: [u32; 3],
    grid_limit: [u64; 3],
    pub(crate) cluster: [u32; 3],
    min_blocks: Option<u32>,
    params: Vec<Param>,
    shared: Option<Shared>,
    scopes: Vec<Scope>,
    variables: HashMap<String, Operand>,
    /// Those that values give: indices from data.
    indices: HashSet<String>,
    /// The numbers that loaded integers are in, where an author states them.
    ranges: HashMap<Reg, (i64, i64)>,
    names: u32,
    registers: BTreeMap<Class, u32>,
    addresses: BTreeSet<Reg>,
    tile_axes: Vec<TileAxis>,
    tilings: Vec<Tiling>,
    deals: Vec<Deal>,
    whole_axes: Vec<(Axis, u64)>,
    buffers: Vec<Buffer>,
    places: Vec<Place>,
    widths: Vec<u32>,
    meanings: HashMap<Reg, Meaning>,
    promises: Vec<(Expr, Expr)>,
    /// Something is stated of its launches that no contract of ours holds them to.
    for_modules: bool,
    /// Pipelines of stages between roles.
    rings: Vec<Ring>,
    /// The arrays that copies by TMA read.
    tensor_maps: Vec<TensorMap>,
    /// The roles before the one that is open.
    roles: Vec<RoleRegion>,
    pub(crate) parting: Parting,
}

/// The sink that places instructions in the scope of their level.
struct Placer<'a> {
    scopes: &'a mut Vec<Scope>,
    floor: usize,
    registers: &'a mut BTreeMap<Class, u32>,
    variables: &'a HashMap<String, Operand>,
    ended: &'a HashSet<String>,
    mistakes: &'a mut Vec<String>,
}

fn fresh(registers: &mut BTreeMap<Class, u32>, class: Class) -> Reg {
    let next = registers.entry(class).or_insert(0);
    *next += 1;
    Reg {
        class,
        id: *next - 1,
    }
}

impl Sink for Placer<'_> {
    fn op(&mut self, level: Level, ty: Ty, op: Op, args: &[Operand]) -> Operand {
        let result = match op {
            Op::MulWide | Op::MadWide if ty.signed() => Ty::S64,
            Op::MulWide | Op::MadWide => Ty::U64,
            _ => ty,
        };
        let to = fresh(self.registers, class_of(result));
        let from = match args {
            [Operand::Reg(_, from), ..] => *from,
            _ => ty,
        };
        let inst = Inst::Index {
            op,
            ty,
            from,
            to,
            args: args.to_vec(),
        };
        let innermost = self.scopes.len() - 1;
        self.scopes[usize::from(level).max(self.floor).min(innermost)]
            .top
            .push(Node::Inst(inst.into()));
        Operand::Reg(to.id, result)
    }

    fn var(&mut self, name: &str, _: Ty) -> Operand {
        if self.ended.contains(name) {
            self.mistakes.push(
                "an index expression of a loop's counter, or one that a branch or region chose, is used outside of it: it has no value there".to_owned(),
            );
        }
        self.variables.get(name).copied().unwrap_or(Operand::Imm(0))
    }
}

/// The variables of the block's index along x, y, z.
const CTAID: [&str; 3] = ["ctaid.x", "ctaid.y", "ctaid.z"];

impl Kernel {
    /// An empty kernel for blocks of `threads` threads along x.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let nothing = Kernel::new("nothing", 64).build(layout_codegen::Arch(80))?;
    /// assert_eq!((nothing.name(), nothing.block()), ("nothing", [64, 1, 1]));
    /// # Ok::<(), layout_codegen::prove::ProofError>(())
    /// ```
    pub fn new(name: &str, threads: u32) -> Self {
        let pool = Pool::new();
        scopes::remember(pool.id(), name);
        let mut kernel = Self {
            pool,
            name: name.to_owned(),
            mistakes: Vec::new(),
            open: scopes::Open::new(),
            versions: QuickMap::default(),
            ended: HashSet::new(),
            uniform: HashSet::new(),
            within: None,
            line: None,
            lines: false,
            comments: Vec::new(),
            block: [threads, 1, 1],
            grid_limit: [1; 3],
            cluster: [1; 3],
            min_blocks: None,
            params: Vec::new(),
            shared: None,
            scopes: vec![Scope::default()],
            variables: HashMap::new(),
            indices: HashSet::new(),
            ranges: HashMap::new(),
            names: 0,
            registers: BTreeMap::new(),
            addresses: BTreeSet::new(),
            tile_axes: Vec::new(),
            tilings: Vec::new(),
            deals: Vec::new(),
            whole_axes: Vec::new(),
            buffers: Vec::new(),
            places: Vec::new(),
            widths: Vec::new(),
            meanings: HashMap::new(),
            promises: Vec::new(),
            for_modules: false,
            rings: Vec::new(),
            tensor_maps: Vec::new(),
            roles: Vec::new(),
            parting: Parting::default(),
        };
        kernel.checked_name("the kernel", name);
        if !(1..=1024).contains(&threads) {
            kernel.mistake(format!(
                "blocks of {threads} threads: a block has 1 to 1024"
            ));
        }
        kernel
    }

    /// Lines of the comment above the kernel.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.describe("y = x");
    /// assert!(k.build(layout_codegen::Arch(80))?.ptx.contains("// y = x"));
    /// # Ok::<(), layout_codegen::prove::ProofError>(())
    /// ```
    pub fn describe(&mut self, lines: impl AsRef<str>) {
        let lines = self.comment_lines(lines.as_ref());
        self.comments.extend(lines);
    }

    /// Asks for registers so few that `blocks` blocks share a multiprocessor.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.blocks_per_multiprocessor(4);
    /// assert!(k.build(layout_codegen::Arch(80))?.ptx.contains(".minnctapersm 4"));
    /// # Ok::<(), layout_codegen::prove::ProofError>(())
    /// ```
    #[track_caller]
    pub fn blocks_per_multiprocessor(&mut self, blocks: u32) {
        self.at_line();
        if !(1..=32).contains(&blocks) {
            self.mistake(format!(
                "{blocks} blocks a multiprocessor: there are 1 to 32"
            ));
        }
        self.min_blocks = Some(blocks);
    }

    /// The parameters so far.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.size("n", 100);
    /// assert_eq!(k.params()[0].most, Some(100));
    /// ```
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    pub(super) fn record_address(&mut self, reg: Reg) {
        self.addresses.insert(reg);
    }

    /// A name that no variable has.
    pub(crate) fn unique(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}.{}", self.names)
    }

    /// A new register.
    pub(crate) fn reg(&mut self, class: Class) -> Reg {
        fresh(&mut self.registers, class)
    }

    /// How many registers of a class there are: later ones have this number and higher ones.
    pub(crate) fn made(&self, class: Class) -> u32 {
        self.registers.get(&class).copied().unwrap_or(0)
    }

    /// `n` new registers.
    pub(crate) fn regs(&mut self, class: Class, n: usize) -> Vec<Reg> {
        (0..n).map(|_| self.reg(class)).collect()
    }

    fn bind(&mut self, name: &str, reg: Reg, ty: Ty) {
        self.variables
            .insert(name.to_owned(), Operand::Reg(reg.id, ty));
    }

    /// As [`Kernel::bind`], of a variable that ends with the scope that values of `level` have now.
    fn bind_in(&mut self, level: Level, name: &str, reg: Reg, ty: Ty) {
        self.bind(name, reg, ty);
        let home = self.home(level);
        if home > 0 {
            self.scopes[home].variables.push(name.to_owned());
        }
    }

    /// Adds to the kernel's entry.
    fn at_entry(&mut self, inst: Inst) {
        self.scopes[0].top.push(Node::Inst(inst.into()));
    }

    /// Adds to the top of the scope that values of `level` have now.
    fn at_top(&mut self, level: Level, inst: Inst) {
        let home = self.home(level);
        self.scopes[home].top.push(Node::Inst(inst.into()));
    }

    /// Adds here.
    pub(crate) fn push(&mut self, inst: Inst) {
        self.scope().body.push(Node::Inst(inst.into()));
    }

    fn special(&mut self, name: &str, register: Special, most: i64) -> Expr {
        if matches!(register, Special::Block(_)) {
            self.note_uniform(name);
        }
        if !self.variables.contains_key(name) {
            let to = self.reg(Class::B32);
            self.at_entry(Inst::Special { to, register });
            self.bind(name, to, Ty::U32);
        }
        self.pool.var(name, 0, most, 0)
    }

    /// The thread's index within its block, along x: in `0..threads`.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 96);
    /// let thread = k.thread();
    /// assert_eq!(k.range(thread).1, 95);
    /// ```
    #[track_caller]
    pub fn thread(&mut self) -> Expr {
        self.at_line();
        let most = i64::from(self.block[0].max(1)) - 1;
        self.special("tid.x", Special::Thread(Axis::X), most)
    }

    /// The thread's lane in its warp: in `0..32`, or `0..threads` of a smaller block.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 96);
    /// let lane = k.lane();
    /// assert_eq!(k.range(lane).1, 31);
    /// ```
    #[track_caller]
    pub fn lane(&mut self) -> Expr {
        self.at_line();
        let thread = self.thread();
        self.pool.rem(thread, 32)
    }

    /// The thread's warp in its block: in `0..threads / 32`, rounded up.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 96);
    /// let warp = k.warp();
    /// assert_eq!(k.range(warp).1, 2);
    /// ```
    #[track_caller]
    pub fn warp(&mut self) -> Expr {
        self.at_line();
        let thread = self.thread();
        self.pool.shr(thread, 5)
    }

    /// The block's index within the grid along an axis: in `0..count`, which the launch contract keeps.
    ///
    /// ```
    /// use layout_codegen::ir::{Axis, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let block = k.block_index(Axis::Y, 1000);
    /// assert_eq!(k.range(block).1, 999);
    /// ```
    #[track_caller]
    pub fn block_index(&mut self, axis: Axis, count: u64) -> Expr {
        self.at_line();
        let name = CTAID[axis as usize];
        let limit = &mut self.grid_limit[axis as usize];
        if !self.variables.contains_key(name) {
            *limit = count;
        }
        let most = i64::try_from(*limit).unwrap_or(i64::MAX) - 1;
        self.special(name, Special::Block(axis), most)
    }

    /// An unsigned 32-bit parameter in `0..=most`, as a variable; the launch contract refuses more.
    pub(crate) fn param_u32(&mut self, name: &str, most: i64) -> Expr {
        if !(0..=u32::MAX.into()).contains(&most) {
            self.mistake(format!(
                "the size `{}` of at most {most}: a size is a u32, and at most {}",
                name.escape_default(),
                u32::MAX
            ));
        }
        let most = most.clamp(0, u32::MAX.into());
        let reg = self.param_reg(name, ParamKind::U32, Class::B32, u64::try_from(most).ok());
        self.bind(name, reg, Ty::U32);
        self.note_uniform(name);
        self.pool.var(name, 0, most, 0)
    }

    /// A pointer parameter, as the variable of its address in the global state space.
    pub(crate) fn param_pointer(&mut self, name: &str) -> Expr {
        let from = self.param_reg(name, ParamKind::Pointer, Class::B64, None);
        let to = self.reg(Class::B64);
        self.at_entry(Inst::ToGlobal { to, from });
        self.bind(name, to, Ty::U64);
        self.pool.var(name, 0, i64::MAX / 4, 0)
    }

    /// A parameter that takes no part in addresses, such as α.
    pub(crate) fn param_scalar(&mut self, name: &str, kind: ParamKind) -> Reg {
        let class = match kind {
            ParamKind::F32 => Class::F32,
            ParamKind::F64 => Class::F64,
            ParamKind::U32 | ParamKind::S32 => Class::B32,
            // Of a tensor map the address is used: `Kernel::tensor_map`.
            ParamKind::Pointer | ParamKind::U64 | ParamKind::TensorMap => Class::B64,
        };
        self.param_reg(name, kind, class, None)
    }

    /// Says that a parameter is a multiple of a number, in bytes for an address; the launch contract refuses others.
    pub(crate) fn param_multiple(&mut self, name: &str, multiple: u64) {
        if let Some(param) = self.params.iter_mut().find(|p| p.name == name) {
            param.multiple = param.multiple.max(multiple);
        }
    }

    fn param_reg(&mut self, name: &str, kind: ParamKind, class: Class, most: Option<u64>) -> Reg {
        self.declares("a parameter");
        self.checked_new_name("a parameter", name);
        self.params.push(Param {
            name: name.to_owned(),
            kind,
            most,
            multiple: 1,
        });
        let to = self.reg(class);
        let name = name.to_owned();
        self.at_entry(Inst::Param { to, kind, name });
        to
    }

    /// Sets the kernel's shared memory to `bytes` bytes at a multiple of `align`; `dynamic` if the launch gives its size.
    pub(crate) fn reserve_shared(&mut self, bytes: u64, align: u32, dynamic: bool) {
        self.declares("shared memory");
        if self.shared.is_none() {
            let to = self.reg(Class::B32);
            self.at_entry(Inst::SharedBase { to });
            self.bind("smem", to, Ty::U32);
        }
        self.shared = Some(Shared {
            bytes,
            align,
            dynamic,
        });
        // Its address is older than what is added to it, so that sums begin with the same term wherever they are written.
        self.shared_base();
    }

    /// Bytes of shared memory that are reserved.
    pub(crate) fn shared_bytes(&self) -> u64 {
        self.shared.map_or(0, |s| s.bytes)
    }

    /// The variable of the address of the kernel's shared memory.
    pub(crate) fn shared_base(&mut self) -> Expr {
        let align = self.shared.map_or(1, |s| s.align);
        let limit = last_shared_address(self.cluster);
        self.pool
            .var_aligned("smem", limit, align.trailing_zeros(), 0)
    }

    /// An address in shared memory, a sum with [`Kernel::shared_base`], as matrix descriptors have it: without the rank of the block.
    pub(crate) fn within_block(&mut self, address: Expr) -> Expr {
        if !self.has_clusters() {
            return address;
        }
        let base = self.shared_base();
        let within = self.pool.and(base, (1 << DESCRIPTOR_BITS) - 1);
        let within = self.pool.pin(within);
        self.pool.substitute(address, "smem", within)
    }

    /// A new buffer; returns its number.
    pub(crate) fn add_buffer(&mut self, buffer: Buffer) -> usize {
        self.buffers.push(buffer);
        self.buffers.len() - 1
    }

    /// The buffer of a number.
    pub(crate) fn buffer(&self, number: usize) -> &Buffer {
        &self.buffers[number]
    }

    /// The buffers, by number.
    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffers.
    pub(crate) fn buffers_mut(&mut self) -> &mut [Buffer] {
        &mut self.buffers
    }

    /// Says what the elements of a buffer are.
    pub(crate) fn set_element(&mut self, buffer: usize, element: Element) {
        self.buffers[buffer].element = Some(element);
    }

    /// A new place; returns its number.
    pub(crate) fn place(&mut self, place: Place) -> u32 {
        self.places.push(place);
        self.widths.push(0);
        (self.places.len() - 1) as u32
    }

    /// Notes how many bytes an access at an address moves.
    fn note_width(&mut self, at: Address, bytes: u32) {
        self.own(at.kernel(), "an address");
        if let Some(width) = self.widths.get_mut(at.place() as usize) {
            *width |= bytes;
        }
    }

    /// Notes that an axis of the grid counts tiles; false if it counts something else already.
    pub(crate) fn tile_axis(&mut self, axis: Axis, extent: Expr, tile: i64) -> bool {
        let new = TileAxis { axis, extent, tile };
        if let Some(old) = self.tile_axes.iter().find(|t| t.axis == axis) {
            return *old == new;
        }
        if self.whole_axes.iter().any(|(whole, _)| *whole == axis) {
            return false;
        }
        self.tile_axes.push(new);
        true
    }

    /// Notes that an axis of the grid has so many blocks in every launch; false if it counts something else already.
    pub(crate) fn whole_axis(&mut self, axis: Axis, count: u32) -> bool {
        let most = crate::proven::GRID[axis as usize];
        if count == 0 || u64::from(count) > most {
            self.mistake(format!(
                "{count} blocks along {}: a grid has 1 to {most}",
                ['x', 'y', 'z'][axis as usize]
            ));
        }
        let new = (axis, u64::from(count));
        if let Some(old) = self.whole_axes.iter().find(|(known, _)| *known == axis) {
            return *old == new;
        }
        // A block index that is in use has the range that it was given.
        let in_use = self.variables.contains_key(CTAID[axis as usize]);
        let tiled = self.tile_axes.iter().any(|t| t.axis == axis);
        if tiled || in_use && self.grid_limit[axis as usize] != new.1 {
            return false;
        }
        self.whole_axes.push(new);
        true
    }

    /// Whether a block index is in use.
    pub(super) fn uses_grid(&self) -> bool {
        CTAID.iter().any(|name| self.variables.contains_key(*name))
    }

    fn level(&self) -> Level {
        (self.scopes.len() - 1) as Level
    }

    /// Whether every loop, region and branch is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.scopes.len() == 1 && self.scopes.iter().all(|s| s.branches.is_empty())
    }

    /// Whether a loop is open.
    pub(crate) fn in_loop(&self) -> bool {
        self.scopes.iter().skip(1).any(|s| !s.region)
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("the kernel's own scope is never closed")
    }

    /// The innermost open region: nothing is placed outside it any more.
    fn floor(&self) -> usize {
        self.scopes.iter().rposition(|s| s.region).unwrap_or(0)
    }

    /// The outermost scope whose values serve here.
    fn horizon(&self) -> usize {
        self.scopes.iter().rposition(|s| s.fresh).unwrap_or(0)
    }

    /// The scope in which a value of `level` is placed now.
    fn home(&self, level: Level) -> usize {
        let innermost = self.scopes.len() - 1;
        usize::from(level).max(self.floor()).min(innermost)
    }

    fn placer(&mut self) -> Placer<'_> {
        let floor = self.floor();
        Placer {
            scopes: &mut self.scopes,
            floor,
            registers: &mut self.registers,
            variables: &self.variables,
            ended: &self.ended,
            mistakes: &mut self.mistakes,
        }
    }

    fn emit_expr(&mut self, e: Expr) -> Operand {
        let floor = self.floor();
        let seen = &self.scopes[self.horizon()..];
        if let Some(&v) = seen.iter().rev().find_map(|s| s.memo.get(&e)) {
            return v;
        }
        // Each scope remembers what was computed in it or around it.
        let mut memo = Memo::new();
        for scope in seen {
            memo.extend(scope.memo.iter().map(|(&e, &v)| (e, v)));
        }
        let before: Vec<Expr> = memo.keys().copied().collect();
        let mut placer = Placer {
            scopes: &mut self.scopes,
            floor,
            registers: &mut self.registers,
            variables: &self.variables,
            ended: &self.ended,
            mistakes: &mut self.mistakes,
        };
        let v = emit(&mut self.pool, e, &mut memo, &mut placer);
        for e in before {
            memo.remove(&e);
        }
        for (e, v) in memo {
            let at = self.home(self.pool.facts(e).level);
            self.scopes[at].memo.insert(e, v);
        }
        v
    }

    /// Opens a region: from here on, new values are computed at its top and not at the kernel's entry, so that what only the end
    /// of a kernel needs does not occupy registers through its main loop.
    pub(crate) fn open_region(&mut self) {
        self.push_scope(Scope {
            region: true,
            ..Scope::default()
        });
    }

    /// Opens a region that computes all it needs anew: nothing but parameters and the identity of the thread has to be kept for it.
    pub(crate) fn open_fresh_region(&mut self) {
        self.open_region();
        self.scope().fresh = true;
    }

    /// Closes the innermost region.
    pub(crate) fn close_region(&mut self) {
        let inner = self.pop_scope();
        let outer = &mut self.scope().body;
        outer.extend(inner.before);
        outer.extend(inner.top);
        outer.extend(inner.body);
    }

    fn pop_scope(&mut self) -> Scope {
        self.open.leave();
        let innermost = self.scopes.len() > 1;
        let Some(inner) = self.scopes.pop_if(|_| innermost) else {
            self.mistake("the end of a loop, region or role that is not open");
            return Scope::default();
        };
        if !inner.branches.is_empty() {
            self.mistake("a branch ends behind the loop or region that it began in");
        }
        self.ended.extend(inner.variables.iter().cloned());
        inner
    }

    /// Says that the blocks of a launch count tiles of `tile` elements along an extent by a value of their indices: each tile is one block's.
    pub(crate) fn tiling(&mut self, index: Expr, extent: Expr, tile: i64) {
        self.tilings.push(Tiling {
            index,
            extent,
            tile,
        });
    }

    /// Says that the iterations of the open loop and the blocks of a launch have each tile of a matrix once, by where an iteration's tile begins: `origin`, of tiles
    /// of `tiles` elements, of a matrix of `extents`. The prover shows it by counting all tiles.
    pub(crate) fn deal(
        &mut self,
        counter: Expr,
        origin: [Expr; 2],
        (extents, tiles): ([Expr; 2], [i64; 2]),
    ) {
        self.deal_in_order(counter, origin, (extents, tiles), None);
    }

    /// As [`Kernel::deal`], in an order that is stated.
    pub(crate) fn deal_in_order(
        &mut self,
        iteration: Expr,
        origin: [Expr; 2],
        (extents, tiles): ([Expr; 2], [i64; 2]),
        order: Option<DealOrder<Expr>>,
    ) {
        let counter = self.value(iteration);
        self.deals.push(Deal {
            counter,
            origin,
            extents,
            tiles,
            order,
        });
    }

    /// Puts what is stated as early as it holds: before all of the kernel where nothing is open and no thread may have left, else here.
    pub(super) fn state(&mut self, node: Node) {
        let outermost = self.scopes.len() == 1;
        let scope = self.scope();
        let nothing_before = scope.branches.is_empty()
            && scope
                .top
                .iter()
                .chain(&scope.body)
                .all(|n| matches!(n, Node::Inst(_) | Node::Comment(_) | Node::Assume(_)));
        if outermost && nothing_before {
            scope.top.push(node);
        } else {
            scope.body.push(node);
        }
    }

    /// As [`Kernel::kept_by_launch`], of a launch that the author's program describes.
    pub(crate) fn launch_keeps(&mut self, e: Expr, most: Expr) {
        self.for_modules = true;
        self.kept_by_launch(e, most);
    }

    /// As [`Kernel::in_clusters`], of a launch that the author's program describes.
    pub(crate) fn launch_clusters(&mut self, blocks: [u32; 3]) {
        self.for_modules |= blocks != [1; 3];
        self.in_clusters(blocks);
    }

    /// As [`Kernel::global_at`], of a launch that the author's program describes.
    pub(crate) fn launch_global(
        &mut self,
        name: &str,
        base: Expr,
        bytes: i64,
        extents: Vec<Extent>,
        strides: Vec<Stride>,
        role: Role,
    ) -> View {
        self.for_modules = true;
        self.global_at(name, base, bytes, extents, strides, role)
    }

    /// Says that every launch has exactly so many blocks along an axis; the author's program describes it.
    pub(crate) fn launch_blocks(&mut self, axis: Axis, count: u64) {
        self.for_modules = true;
        self.whole_axes.push((axis, count));
    }

    /// As [`Kernel::tiling`], of a launch that the author's program describes.
    pub(crate) fn launch_tiles(&mut self, index: Expr, extent: Expr, tile: i64) {
        self.for_modules = true;
        self.tiling(index, extent, tile);
    }

    /// What every launch keeps to: `e` is at most `most`, in every block.
    pub(crate) fn kept_by_launch(&mut self, e: Expr, most: Expr) {
        self.promises.push((e, most));
    }

    /// The finished kernel, for [`Module::build`](crate::Module::build). What its author did wrong, an open loop or branch included, is in it, and every proof
    /// refuses it for that.
    pub fn finish(mut self) -> Entry {
        self.boxes_are_read();
        // The launches of a module have whole clusters because its program says so.
        if !self.for_modules {
            self.check_clusters();
        }
        let (with_role, threads) = (self.end_of_roles(), self.block[0]);
        if with_role > 0 {
            self.mistake(format!(
                "roles of {with_role} of the block's {threads} threads: each thread has one"
            ));
        } else if !self.is_closed() {
            self.mistake("a loop, region or branch is still open");
        }
        self.scopes.truncate(1);
        self.own_registers();
        let mistake = self.first_mistake();
        let scope = self.scopes.pop().unwrap_or_default();
        let mut nodes = scope.top;
        nodes.extend(scope.body);
        Entry {
            name: self.name,
            lines: self.lines,
            comments: self.comments,
            block: self.block,
            grid_limit: self.grid_limit,
            cluster: self.cluster,
            min_blocks: self.min_blocks,
            params: self.params,
            shared: self.shared,
            registers: self.registers,
            addresses: self.addresses,
            tile_axes: self.tile_axes,
            tilings: self.tilings,
            deals: self.deals,
            whole_axes: self.whole_axes,
            buffers: self.buffers,
            places: self.places,
            widths: self.widths,
            meanings: self.meanings,
            promises: self.promises,
            for_modules: self.for_modules,
            rings: self.rings,
            tensor_maps: self.tensor_maps,
            pool: self.pool,
            variables: self.variables,
            indices: self.indices,
            nodes,
            mistake,
        }
    }
}
