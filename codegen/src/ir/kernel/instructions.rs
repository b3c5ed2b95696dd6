//! What stands where it is written: comparisons of rare paths, arithmetic, loads and stores, barriers, comments.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;

use layout_core::atoms::MmaAtom;

use super::Kernel;
use crate::index::Expr;
use crate::index::code::type_of;
use crate::ir::Address;
use crate::ir::inst::{Binary, Cache, Inst, Metadata, Shuffle, Statement, Unary};
use crate::ir::meaning::Meaning;
use crate::ir::node::{Comment, Node};
use crate::ir::value::{Class, Cmp, Logic, Pred, Reg, Src, Type};

impl Kernel {
    /// The predicate `a cmp k`, `and` another if given, computed right here: for paths that are rarely taken, whose predicates must not
    /// occupy registers elsewhere.
    pub(crate) fn compare_here(&mut self, cmp: Cmp, a: Expr, k: i64, and: Option<Reg>) -> Reg {
        let ty = super::values::by_type(type_of(&self.pool, a));
        // A bound below 0 is a signed number.
        let ty = match ty {
            Type::U32 if k < 0 && self.pool.facts(a).hi <= i32::MAX.into() => Type::S32,
            Type::U64 if k < 0 => Type::S64,
            ty => ty,
        };
        let (value, b) = (self.value(a), self.pool.constant(k));
        let to = self.compare_value_here(cmp, ty, value, k, and);
        self.meanings
            .insert(to, Meaning::Compare { cmp, a, b, and });
        to
    }

    /// The predicate `a cmp b` of two values, `and` another if given, right here.
    pub(crate) fn compare_value_here(
        &mut self,
        cmp: Cmp,
        ty: Type,
        a: impl Into<Src>,
        b: impl Into<Src>,
        and: Option<Reg>,
    ) -> Reg {
        let to = self.reg(Class::Pred);
        self.push(Inst::Compare {
            cmp,
            ty,
            to,
            a: a.into(),
            b: b.into(),
            and,
        });
        to
    }

    /// The predicate `a and b`, right here.
    pub(crate) fn and_here(&mut self, a: Reg, b: Reg) -> Reg {
        let (to, op) = (self.reg(Class::Pred), Logic::And);
        self.push(Inst::Logic { op, to, a, b });
        self.meanings.insert(to, Meaning::Logic { op, a, b });
        to
    }

    /// How many bytes of a vector of `most` elements of `bytes` bytes are inside, where `left + less` elements are left in its row, and none
    /// where `row` does not hold: what an asynchronous copy reads.
    pub(crate) fn bytes_inside(
        &mut self,
        row: Reg,
        (left, less): (Expr, i64),
        (most, bytes): (i64, i64),
    ) -> Reg {
        let value = self.value(left);
        if value.class != Class::B32 {
            self.mistake(
                "an asynchronous copy counts the elements up to an edge in 32 bits, and an index or a size there may need more: give it a smaller bound",
            );
        }
        let (size, s32) = (self.reg(Class::B32), Type::S32);
        self.binary(Binary::Sub, s32, size, value, less);
        self.binary(Binary::Max, s32, size, size, 0);
        self.binary(Binary::Min, s32, size, size, most);
        if bytes > 1 {
            let shift = i64::from(bytes.trailing_zeros());
            self.binary(Binary::Shl, Type::B32, size, size, shift);
        }
        self.pick(Type::B32, size, size, 0, row);
        let less = self.pool.constant(less);
        let left = self.pool.sub(left, less);
        let p = row;
        self.meanings.insert(
            size,
            Meaning::Inside {
                p,
                left,
                most,
                bytes,
            },
        );
        size
    }

    /// Names the instruction written last: proofs and counters call it so, and the text carries the name.
    pub(crate) fn tag(&mut self, name: &str) {
        if let Some(Node::Inst(statement)) = self.scope().body.last_mut() {
            statement.tag = Some(name.to_owned());
        }
    }

    /// A comment in the text, of one or more lines.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.comment("the first tile");
    /// ```
    #[track_caller]
    pub fn comment(&mut self, text: impl Display) {
        self.at_line();
        let lines = self.comment_lines(&text.to_string());
        self.scope().body.extend(
            lines
                .into_iter()
                .map(|line| Node::Comment(Comment::Text(line))),
        );
    }

    fn push_if(&mut self, guard: Option<Pred>, inst: Inst) {
        self.scope().body.push(Node::Inst(Statement {
            inst,
            guard,
            tag: None,
        }));
    }

    /// `to = from`
    pub(crate) fn set(&mut self, ty: Type, to: Reg, from: impl Into<Src>) {
        let from = from.into();
        self.push(Inst::Move { ty, to, from });
    }

    /// Takes back the instructions that set registers to 0, if they stand in the innermost loop or branch that is open and nothing behind them reads or sets the
    /// registers. Whether it did.
    pub(crate) fn withdraw_clears(&mut self, registers: &[Reg]) -> bool {
        let wanted: HashSet<Reg> = registers.iter().copied().collect();
        let clears = |node: &Node| match node {
            Node::Inst(Statement {
                inst: Inst::Move { to, from, .. },
                guard: None,
                ..
            }) if matches!(from, Src::Int(0)) || *from == Src::from(0.0f32) => {
                Some(*to).filter(|to| wanted.contains(to))
            }
            _ => None,
        };
        let body = &mut self.scope().body;
        let mut found = Vec::new();
        for (at, node) in body.iter().enumerate().rev() {
            if found.len() == wanted.len() {
                break;
            }
            if clears(node).is_some() {
                found.push(at);
                continue;
            }
            let touches = match node {
                Node::Inst(s) => {
                    let guard = s.guard.map(|p| p.reg);
                    let mut all = s
                        .inst
                        .sources()
                        .into_iter()
                        .chain(s.inst.results())
                        .chain(guard);
                    all.any(|reg| wanted.contains(&reg))
                }
                Node::Comment(_) | Node::Assume(_) => false,
                _ => true,
            };
            if touches {
                return false;
            }
        }
        let cleared: HashSet<Reg> = found.iter().filter_map(|at| clears(&body[*at])).collect();
        if cleared.len() < wanted.len() || wanted.is_empty() {
            return false;
        }
        let mut at = 0;
        body.retain(|_| {
            at += 1;
            !found.contains(&(at - 1))
        });
        true
    }

    /// `to = a op b`
    pub(crate) fn binary(
        &mut self,
        op: Binary,
        ty: Type,
        to: Reg,
        a: impl Into<Src>,
        b: impl Into<Src>,
    ) {
        let (a, b) = (a.into(), b.into());
        self.push(Inst::Binary { op, ty, to, a, b });
    }

    /// `to = a·b + c`
    pub(crate) fn mul_add(
        &mut self,
        ty: Type,
        to: Reg,
        a: impl Into<Src>,
        b: impl Into<Src>,
        c: impl Into<Src>,
    ) {
        let (a, b, c) = (a.into(), b.into(), c.into());
        self.push(Inst::MulAdd { ty, to, a, b, c });
    }

    /// `to = op(a)`
    pub(crate) fn unary(&mut self, op: Unary, ty: Type, to: Reg, a: impl Into<Src>) {
        let a = a.into();
        self.push(Inst::Unary { op, ty, to, a });
    }

    /// `to = a` where `p` holds, else `b`.
    pub(crate) fn pick(&mut self, ty: Type, to: Reg, a: impl Into<Src>, b: impl Into<Src>, p: Reg) {
        let (a, b) = (a.into(), b.into());
        self.push(Inst::Select { ty, to, a, b, p });
    }

    /// `to` = what `from` holds, of type `from_ty`, as `to_ty`: exact, or rounded to nearest even.
    pub(crate) fn convert(&mut self, to_ty: Type, to: Reg, from_ty: Type, from: Reg) {
        self.push(Inst::Convert {
            to_ty,
            from_ty,
            to,
            from,
        });
    }

    /// Two `f32` rounded to 16-bit floats in one register.
    pub(crate) fn convert_pair(&mut self, to_ty: Type, low: Reg, high: Reg) -> Reg {
        let to = self.reg(Class::B32);
        self.push(Inst::ConvertPair {
            to_ty,
            to,
            high,
            low,
        });
        to
    }

    /// Registers side by side in one of 32 bits, the first in the lowest bits.
    pub(crate) fn pack(&mut self, to: Reg, parts: &[Reg]) {
        let parts = parts.to_vec();
        self.push(Inst::Pack { to, parts });
    }

    /// The two halves of a register, the lower first.
    pub(crate) fn unpack(&mut self, from: Reg) -> [Reg; 2] {
        let halves = [self.reg(Class::B16), self.reg(Class::B16)];
        self.push(Inst::Unpack {
            to: halves.to_vec(),
            from,
        });
        halves
    }

    /// Four bytes of `a` (0 to 3) and `b` (4 to 7), a hexadecimal digit each, the lowest byte last.
    pub(crate) fn permute(&mut self, a: Reg, b: Reg, selector: u16) -> Reg {
        let to = self.reg(Class::B32);
        self.push(Inst::Permute { to, a, b, selector });
        to
    }

    /// Exchanges a 32-bit register between the lanes of a warp, all of which take part.
    pub(crate) fn shuffle(&mut self, mode: Shuffle, from: Reg, lane: impl Into<Src>) -> Reg {
        let to = self.reg(from.class);
        let lane = lane.into();
        self.push(Inst::Shuffle {
            mode,
            to,
            from,
            lane,
        });
        to
    }

    /// Loads `to` (1, 2 or 4 of one class) from `at`.
    pub(crate) fn load(
        &mut self,
        guard: Option<Pred>,
        cache: Cache,
        ty: Type,
        to: &[Reg],
        at: Address,
    ) {
        self.note_width(at, ty.bytes() * to.len() as u32);
        let to = to.to_vec();
        self.push_if(guard, Inst::Load { at, cache, ty, to });
    }

    /// Stores `from` (1, 2 or 4 of one class) to `at`.
    pub(crate) fn store(&mut self, guard: Option<Pred>, ty: Type, from: &[Reg], at: Address) {
        self.stored(guard, ty, from, at, None);
    }

    /// Stores, or combines what is there with a value by an atomic operation.
    pub(crate) fn stored(
        &mut self,
        guard: Option<Pred>,
        ty: Type,
        from: &[Reg],
        at: Address,
        atomic: Option<Binary>,
    ) {
        self.note_width(at, ty.bytes() * from.len() as u32);
        let from = from.to_vec();
        self.push_if(
            guard,
            Inst::Store {
                at,
                ty,
                from,
                atomic,
            },
        );
    }

    /// Copies `bytes` bytes from global to shared memory; only `size` of them are read, if it is given, and the rest are 0.
    pub(crate) fn copy_async(
        &mut self,
        to: Address,
        from: Address,
        (bytes, cached): (u32, bool),
        size: Option<Reg>,
    ) {
        self.note_width(to, bytes);
        self.note_width(from, bytes);
        self.push(Inst::CopyAsync {
            to,
            from,
            bytes,
            cached,
            size,
        });
    }

    /// Four 8×8 matrices of 16-bit elements to four registers; each lane points at a row.
    pub(crate) fn load_matrix(&mut self, to: Vec<Reg>, trans: bool, at: Address) {
        self.note_width(at, 16);
        self.push(Inst::LoadMatrix { at, to, trans });
    }

    /// `d += a·b` by a warp.
    pub(crate) fn multiply_accumulate(
        &mut self,
        atom: &Arc<MmaAtom>,
        d: &[Reg],
        a: &[Reg],
        b: &[Reg],
    ) {
        self.multiply_accumulate_by(atom, d, (a, None), b);
    }

    /// The same, of an A that is sparse if it has metadata.
    pub(crate) fn multiply_accumulate_by(
        &mut self,
        atom: &Arc<MmaAtom>,
        d: &[Reg],
        (a, metadata): (&[Reg], Option<Metadata>),
        b: &[Reg],
    ) {
        self.push(Inst::Mma {
            atom: Arc::clone(atom),
            d: d.to_vec(),
            a: a.to_vec(),
            b: b.to_vec(),
            c: d.to_vec(),
            metadata,
        });
    }

    /// Closes a group of asynchronous copies.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.commit_group();
    /// k.wait_group(0);
    /// ```
    #[track_caller]
    pub fn commit_group(&mut self) {
        self.at_line();
        self.push(Inst::CommitGroup);
    }

    /// Waits until all groups of asynchronous copies but the youngest `pending` have arrived.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.commit_group();
    /// k.commit_group();
    /// k.wait_group(1); // the older one is there
    /// ```
    #[track_caller]
    pub fn wait_group(&mut self, pending: u32) {
        self.at_line();
        self.push(Inst::WaitGroup { pending });
    }

    /// Waits until every asynchronous copy has arrived.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.wait_all();
    /// k.barrier();
    /// ```
    #[track_caller]
    pub fn wait_all(&mut self) {
        self.at_line();
        self.push(Inst::WaitAll);
    }

    /// All threads of the block arrive before any goes on; within a [role](Kernel::role), all threads of the role.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("k", 64);
    /// k.barrier();
    /// assert!(k.build(Arch(80))?.ptx.contains("bar.sync 0;"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn barrier(&mut self) {
        self.at_line();
        if self.thread_of_role().is_some() {
            self.barrier_of_role();
        } else {
            self.push(Inst::Barrier);
        }
    }

    /// All lanes of the warp arrive before any goes on. It may stand in a branch that whole warps take.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.warp_barrier();
    /// ```
    #[track_caller]
    pub fn warp_barrier(&mut self) {
        self.at_line();
        self.push(Inst::WarpBarrier);
    }
}
