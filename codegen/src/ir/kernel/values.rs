//! Values and predicates of index expressions, each computed as far out as its variables allow and once where it serves.

use super::Kernel;
use crate::index::code::{Op, Operand, Sink, Ty, type_of};
use crate::index::{Expr, Level};
use crate::ir::inst::{Binary, Inst, class_of, source};
use crate::ir::meaning::Meaning;
use crate::ir::node::Node;
use crate::ir::value::{Class, Cmp, Logic, Reg, Src, Type};

impl Kernel {
    /// The register that holds `e`, computed as far out as its variables allow.
    pub(crate) fn value(&mut self, e: Expr) -> Reg {
        match self.emit_expr(e) {
            Operand::Reg(id, ty) => Reg {
                class: class_of(ty),
                id,
            },
            Operand::Imm(k) => {
                let class = class_of(type_of(&self.pool, e));
                let to = self.reg(class);
                let ty = if class == Class::B64 {
                    Type::U64
                } else {
                    Type::U32
                };
                let from = Src::Int(k);
                let level = self.pool.facts(e).level;
                self.at_top(level, Inst::Move { ty, to, from });
                to
            }
        }
    }

    /// `e` as a register or an immediate.
    pub(crate) fn operand(&mut self, e: Expr) -> Src {
        source(self.emit_expr(e))
    }

    /// The predicate `a cmp b`, computed as far out as possible.
    pub(crate) fn compare(&mut self, cmp: Cmp, a: Expr, b: Expr) -> Reg {
        let level = self.home(self.pool.facts(a).level.max(self.pool.facts(b).level));
        let seen = self.horizon().min(level)..=level;
        if let Some(&p) = self.scopes[seen]
            .iter()
            .find_map(|s| s.compared.get(&(a, b, cmp)))
        {
            return p;
        }
        let (ta, tb) = (type_of(&self.pool, a), type_of(&self.pool, b));
        let wide = ta.wide() || tb.wide();
        let signed = ta.signed() || tb.signed();
        let (mut x, mut y) = (self.emit_expr(a), self.emit_expr(b));
        for v in [&mut x, &mut y] {
            if let Operand::Reg(_, from) = *v
                && wide
                && !from.wide()
            {
                let ty = if signed { Ty::S64 } else { Ty::U64 };
                *v = self.placer().op(level as Level, ty, Op::Widen, &[*v]);
            }
        }
        let to = self.reg(Class::Pred);
        let ty = match (signed, wide) {
            (false, false) => Type::U32,
            (true, false) => Type::S32,
            (false, true) => Type::U64,
            (true, true) => Type::S64,
        };
        let inst = Inst::Compare {
            cmp,
            ty,
            to,
            a: source(x),
            b: source(y),
            and: None,
        };
        self.scopes[level].top.push(Node::Inst(inst.into()));
        self.scopes[level].compared.insert((a, b, cmp), to);
        let and = None;
        self.meanings
            .insert(to, Meaning::Compare { cmp, a, b, and });
        to
    }

    /// The predicate `a cmp b` of a register that takes no part in addresses, at the kernel's entry.
    pub(crate) fn compare_at_entry(
        &mut self,
        cmp: Cmp,
        ty: Type,
        a: Reg,
        b: impl Into<Src>,
    ) -> Reg {
        let to = self.reg(Class::Pred);
        let inst = Inst::Compare {
            cmp,
            ty,
            to,
            a: a.into(),
            b: b.into(),
            and: None,
        };
        self.at_top(0, inst);
        to
    }

    /// A predicate computed at `level` from two others.
    pub(crate) fn combine(&mut self, op: Logic, a: Reg, b: Reg, level: Level) -> Reg {
        let to = self.reg(Class::Pred);
        self.at_top(level, Inst::Logic { op, to, a, b });
        self.meanings.insert(to, Meaning::Logic { op, a, b });
        to
    }

    /// The variable that equals `a` where `p` holds and `b` elsewhere, at the kernel's entry.
    pub(crate) fn select(&mut self, p: Reg, a: Expr, b: Expr) -> Expr {
        self.select_at(p, (a, b), 0)
    }

    /// As [`Kernel::select`], of values and a predicate of `level`.
    fn select_at(&mut self, p: Reg, (a, b): (Expr, Expr), level: Level) -> Expr {
        if a == b {
            return a;
        }
        let seen = &self.scopes[self.horizon()..];
        if let Some(&e) = seen.iter().find_map(|s| s.selected.get(&(p, a, b))) {
            return e;
        }
        let (fa, fb) = (self.pool.facts(a), self.pool.facts(b));
        let (lo, hi) = (
            fa.lo.min(fb.lo),
            i64::try_from(fa.hi.max(fb.hi)).unwrap_or(i64::MAX / 4),
        );
        let name = self.unique("select");
        let e = match i64::try_from(lo) {
            Ok(lo) if lo < 0 => self.pool.var(&name, lo, hi, level),
            _ => {
                let zeros = (fa.bits | fb.bits).trailing_zeros().min(32);
                self.pool.var_aligned(&name, hi, zeros, level)
            }
        };
        // The range of both may be wider than that of each: −4 to 0 and 0 to 2³¹ fit 32 bits, −4 to 2³¹ does not.
        let wide = type_of(&self.pool, e).wide();
        let (x, y) = (self.widened(a, wide), self.widened(b, wide));
        let (class, ty) = if wide {
            (Class::B64, Type::B64)
        } else {
            (Class::B32, Type::B32)
        };
        let to = self.reg(class);
        let inst = Inst::Select {
            ty,
            to,
            a: x,
            b: y,
            p,
        };
        self.at_top(level, inst);
        self.meanings.insert(to, Meaning::Select { p, a, b });
        self.bind_in(level, &name, to, type_of(&self.pool, e));
        let home = self.home(level);
        self.scopes[home].selected.insert((p, a, b), e);
        e
    }

    /// The variable that equals `then` where `a cmp b`, and `otherwise` elsewhere, computed as far out as possible.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (m, n, zero) = (k.size("m", 200), k.size("n", 100), k.constant(0));
    /// let rest = k.choose(m, Cmp::Lt, n, m, zero);
    /// assert_eq!(k.range(rest), (0, 200));
    /// ```
    #[track_caller]
    pub fn choose(&mut self, a: Expr, cmp: Cmp, b: Expr, then: Expr, otherwise: Expr) -> Expr {
        self.at_line();
        let all = [a, b, then, otherwise];
        let level = all.map(|e| self.pool.facts(e).level).into_iter().max();
        let p = self.compare(cmp, a, b);
        let chosen = self.select_at(p, (then, otherwise), level.unwrap_or(0));
        if all.into_iter().all(|e| self.agrees(e)) {
            for name in self.pool.variables(chosen) {
                self.note_uniform(&name);
            }
        }
        chosen
    }

    /// The variable that equals the smaller of two values.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (n, m) = (k.size("n", 100), k.size("m", 200));
    /// let smaller = k.smaller(n, m);
    /// assert_ne!(smaller, n);
    /// assert_eq!(k.smaller(n, n), n);
    /// ```
    #[track_caller]
    pub fn smaller(&mut self, a: Expr, b: Expr) -> Expr {
        self.at_line();
        self.choose(a, Cmp::Lt, b, a, b)
    }

    pub(super) fn widened(&mut self, e: Expr, wide: bool) -> Src {
        let (v, level) = (self.emit_expr(e), self.pool.facts(e).level);
        source(match v {
            Operand::Reg(_, from) if wide && !from.wide() => {
                self.placer().op(level, Ty::U64, Op::Widen, &[v])
            }
            _ => v,
        })
    }

    /// Notes the range that an author states of what a register is loaded with, or 0 where nothing is.
    pub(crate) fn loaded_from(&mut self, buffer: usize, reg: Reg) {
        let bounds = self.buffers[buffer].ranges().map(|(low, high)| {
            let (least, end) = (self.pool.facts(low).lo, self.pool.facts(high).hi);
            (least.min(0) as i64, (end - 1).max(0) as i64)
        });
        if let Some(range) = bounds.reduce(|a, b| (a.0.max(b.0), a.1.min(b.1))) {
            self.ranges.insert(reg, range);
        }
    }

    /// The variable that a register holds from here to the end of the scope that is open: an index that the value `of` gives.
    pub(crate) fn index_in(&mut self, (reg, of): (Reg, Src), ty: Ty) -> Expr {
        let scope = self.scope();
        if !scope.branches.is_empty() {
            self.mistake(
                "an index from data where values of an epilogue are computed: compute it before",
            );
            return self.constant(0);
        }
        // What is computed from it stands at the top of a scope, behind the instruction that sets the register.
        let before = std::mem::take(&mut scope.body);
        scope.top.extend(before);
        let (name, level) = (self.unique("index"), self.level());
        self.bind_in(level, &name, reg, ty);
        self.indices.insert(name.clone());
        let (least, most) = ty.range();
        let (least, most) = (least as i64, most as i64);
        let stated = match of {
            Src::Reg(of) => self.ranges.get(&of).copied(),
            _ => None,
        };
        let stated = stated.filter(|(low, high)| (least..=*high).contains(low) && *high <= most);
        let (least, most) = stated.unwrap_or((least, most));
        self.pool.var(&name, least, most, level)
    }

    /// The variable that equals `e` where that is in `least..=most`, and the nearer of the two ends elsewhere: what bounds an index from data.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (n, m) = (k.size("n", 100), k.size("m", 200));
    /// let rest = k.sub(n, m);
    /// let rest = k.clamp(rest, 0, 50);
    /// assert_eq!(k.range(rest), (0, 50));
    /// ```
    #[track_caller]
    pub fn clamp(&mut self, e: Expr, least: i64, most: i64) -> Expr {
        self.at_line();
        if least > most {
            self.mistake(format!(
                "an index clamped to {least} to {most}: the first is at most the second"
            ));
            return e;
        }
        let not_less = self.extreme(Binary::Max, e, least);
        self.extreme(Binary::Min, not_less, most)
    }

    /// The variable that equals the smaller or the larger of a value and a number.
    fn extreme(&mut self, op: Binary, e: Expr, end: i64) -> Expr {
        let (lo, hi) = self.range(e);
        let (lo, hi) = match op {
            Binary::Max if end <= lo => return e,
            Binary::Max if end >= hi => return self.constant(end),
            Binary::Max => (end, hi),
            _ if end >= hi => return e,
            _ if end <= lo => return self.constant(end),
            _ => (lo, end),
        };
        let (ty, level) = (type_of(&self.pool, e), self.pool.facts(e).level);
        let from = self.operand(e);
        let mut to = self.reg(class_of(ty));
        let b = end.into();
        let inst = Inst::Binary {
            op,
            ty: by_type(ty),
            to,
            a: from,
            b,
        };
        self.at_top(level, inst);
        self.meanings
            .insert(to, Meaning::Extreme { op, of: e, end });
        let name = self.unique("clamped");
        if self.agrees(e) {
            self.note_uniform(&name);
        }
        let clamped = self.pool.var(&name, lo, hi, level);
        let narrow = type_of(&self.pool, clamped);
        if ty.wide() && !narrow.wide() {
            let from = std::mem::replace(&mut to, self.reg(Class::B32));
            let (to_ty, from_ty) = (Type::U32, Type::U64);
            self.at_top(
                level,
                Inst::Convert {
                    to_ty,
                    from_ty,
                    to,
                    from,
                },
            );
        }
        self.bind_in(level, &name, to, narrow);
        clamped
    }

    /// The variable that equals `x / d` rounded down, for `x ≥ 0` and `d ≥ 1` below 2³² of which `d` may be known at run time alone.
    pub(crate) fn quotient(&mut self, x: Expr, d: Expr) -> Expr {
        let most = self.range(x).1 / self.range(d).0.max(1);
        self.divided(Binary::Div, x, d, most)
    }

    /// The variable that equals what `x / d` leaves, as [`Kernel::quotient`].
    pub(crate) fn remainder(&mut self, x: Expr, d: Expr) -> Expr {
        let most = self.range(x).1.min(self.range(d).1 - 1);
        self.divided(Binary::Rem, x, d, most)
    }

    fn divided(&mut self, op: Binary, x: Expr, d: Expr, most: i64) -> Expr {
        if most <= 0 {
            return self.pool.constant(0);
        }
        if op == Binary::Div && self.pool.as_const(d) == Some(1) {
            return x;
        }
        let level = self.pool.facts(x).level.max(self.pool.facts(d).level);
        let a = Src::Reg(self.value(x));
        let (b, to) = (self.operand(d), self.reg(Class::B32));
        let ty = Type::U32;
        self.at_top(level, Inst::Binary { op, ty, to, a, b });
        let (of, by) = (x, d);
        self.meanings.insert(to, Meaning::Divided { op, of, by });
        let name = self.unique("quotient");
        if self.agrees(x) && self.agrees(d) {
            self.note_uniform(&name);
        }
        self.bind_in(level, &name, to, Ty::U32);
        self.pool.var(&name, 0, most, level)
    }

    /// The variable that equals `e`, which what is launched keeps in `0..=hi` where the expression alone does not show it.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let n = k.size("n", 100);
    /// let ten = k.constant(10);
    /// let rest = k.sub(n, ten);
    /// let rest = k.bounded(rest, 90);
    /// assert_eq!(k.range(rest), (0, 90));
    /// ```
    #[track_caller]
    pub fn bounded(&mut self, e: Expr, hi: i64) -> Expr {
        self.at_line();
        let seen = &self.scopes[self.horizon()..];
        if let Some(&e) = seen.iter().find_map(|s| s.bounded.get(&(e, hi))) {
            return e;
        }
        let level = self.pool.facts(e).level;
        let reg = self.value(e);
        let wide = hi > i64::from(u32::MAX);
        let reg = if reg.class == Class::B64 && !wide {
            let to = self.reg(Class::B32);
            let inst = Inst::Convert {
                to_ty: Type::U32,
                from_ty: Type::U64,
                to,
                from: reg,
            };
            self.at_top(level, inst);
            to
        } else {
            reg
        };
        let ty = if reg.class == Class::B64 {
            Ty::U64
        } else {
            Ty::U32
        };
        let name = self.unique("bounded");
        self.bind_in(level, &name, reg, ty);
        if self.agrees(e) {
            self.note_uniform(&name);
        }
        let variable = self.pool.var(&name, 0, hi, level);
        let home = self.home(level);
        self.scopes[home].bounded.insert((e, hi), variable);
        variable
    }
}

/// The type that instructions call it by.
pub(super) fn by_type(ty: Ty) -> Type {
    match ty {
        Ty::U32 => Type::U32,
        Ty::S32 => Type::S32,
        Ty::U64 => Type::U64,
        Ty::S64 => Type::S64,
    }
}
