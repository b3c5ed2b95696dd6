//! How each instruction carries undefined bits from its sources to its destinations, for warps that watch all ([`super::undefined`]).
//!
//! What moves bits moves their marks: moves, selections, shifts by a known amount, permutations, exchanges between lanes, loads and stores. Bitwise
//! operations leave undefined only what depends on an undefined bit (`and` with a zero does not), sums what is at or above the lowest one, products
//! with zero nothing, and a register less itself or exclusive-or itself is zero. Of other arithmetic all of the result is undefined.
//! What is not listed uses its operands, which is a finding.
//!
//! Example: `and.b32 %r2, %r1, 255` with the upper half of `%r1` undefined defines all of `%r2`.

use super::alu::{Row64, bfi, int32_rare, shift64};
use super::mem::{addresses, extended, inside, lanes_of};
use super::places::by_rank;
use super::step::comparison;
use super::undefined::{ALL, Bits, COMPUTED, PATIENCE, Use, report_use};
use super::warp::Warp;
use super::wide::wide;
use super::{Context, Env, lanes, matrix, wgmma};
use crate::ast::Space;
use crate::ir::{
    Access, Bool, Callee, Cmp, CmpType, Compare, Convert, FloatOp, Format, Inst, IntOp, Mma,
    MmaType, NONE, Op, Packed, Reg, Row, Vote,
};
use crate::types::File;
use crate::windows::{LOCAL_WINDOW, SHARED_WINDOW};

const fn r32(row: Row) -> Reg {
    Reg {
        file: File::R32,
        row,
    }
}

const fn r64(row: Row) -> Reg {
    Reg {
        file: File::R64,
        row,
    }
}

const fn pred(row: Row) -> Reg {
    Reg {
        file: File::Pred,
        row,
    }
}

/// Before an instruction that the warp watches: lanes `mask` reach it and `active` execute it.
///
/// Cold, as what else is rare in the main loop: where it is not, the loop keeps its state in memory for the sake of the call.
#[cold]
#[inline(never)]
pub(super) fn before(
    cx: &Context<'_>,
    env: &mut Env,
    w: &mut Warp,
    pc: usize,
    mask: u32,
    active: u32,
) {
    let inst = &cx.program.insts[pc];
    if !cx.program.touches.is_empty() {
        wgmma::touch(cx, env, w, pc, active);
    }
    if w.watch == ALL && w.bits.as_ref().is_some_and(|b| b.ran >= PATIENCE) {
        w.watch_less(cx.program);
    }
    if w.watch != ALL {
        let checks = &cx.program.checks[inst.checks.0 as usize..inst.checks.1 as usize];
        let needed = |r: &Reg| if *r == pred(inst.guard) { mask } else { active };
        if checks
            .iter()
            .all(|r| needed(r) & !w.defined(r.file, r.row) == 0)
        {
            return;
        }
        w.watch_all(cx.program);
    }
    // What lanes get from others is known when these have come; the instruction begins again then.
    if super::rare::will_wait(w, inst, mask, active) {
        return;
    }
    let Some(mut bits) = w.bits.take() else {
        return;
    };
    bits.ran += 1;
    let mut t = Transfer {
        cx,
        env,
        w,
        bits: &mut bits,
        pc,
        inst,
        active,
    };
    if inst.guard != NONE {
        t.used(pred(inst.guard), mask, Use::Guard);
    }
    if active != 0 {
        t.step();
    }
    w.bits = Some(bits);
}

struct Transfer<'a, 'b> {
    cx: &'a Context<'b>,
    env: &'a mut Env,
    w: &'a Warp,
    bits: &'a mut Bits,
    pc: usize,
    inst: &'a Inst,
    active: u32,
}

/// Undefined bits of a bitwise operation, with the values of its sources and their undefined bits.
fn and(a: u64, b: u64, ua: u64, ub: u64) -> u64 {
    (ua | ub) & (ua | a) & (ub | b)
}

fn or(a: u64, b: u64, ua: u64, ub: u64) -> u64 {
    and(!a, !b, ua, ub)
}

/// The bits that a truth table leaves undefined, where its sources have the values `x` and undefined bits `u`: those that the undefined bits decide. `same` sources
/// have the same bits.
fn undecided<const N: usize>(lut: u8, x: [u64; N], u: [u64; N], same: bool) -> u64 {
    let (mut ones, mut zeros) = (0, 0);
    for k in (0..1u8 << N).filter(|k| !same || *k == 0 || *k == (1 << N) - 1) {
        // The bits in which the sources may be combination k.
        let possible = (0..N).fold(u64::MAX, |m, i| {
            let is = if k >> (N - 1 - i) & 1 == 1 {
                x[i]
            } else {
                !x[i]
            };
            m & (u[i] | is)
        });
        if lut >> k & 1 == 1 {
            ones |= possible;
        } else {
            zeros |= possible;
        }
    }
    ones & zeros
}

/// Whether an operation has a third source. Where it has none, the row repeats another.
fn has_third(f: IntOp) -> bool {
    use IntOp as I;
    !matches!(
        f,
        I::Add
            | I::Sub
            | I::AddSat
            | I::SubSat
            | I::MulLo
            | I::MulHiU
            | I::MulHiS
            | I::Mul24LoU
            | I::Mul24LoS
            | I::Mul24HiU
            | I::Mul24HiS
            | I::DivU
            | I::DivS
            | I::RemU
            | I::RemS
            | I::Neg
            | I::Abs
            | I::MinU
            | I::MinS
            | I::MaxU
            | I::MaxS
            | I::MinRelu
            | I::MaxRelu
            | I::And
            | I::Or
            | I::Xor
            | I::Not
            | I::Cnot
            | I::Shl
            | I::ShrU
            | I::ShrS
            | I::Brev
            | I::Popc
            | I::Clz
    )
}

/// All bits from the lowest undefined one on.
fn upwards(u: u64) -> u64 {
    u | u.wrapping_neg()
}

fn all(u: u64) -> u64 {
    if u == 0 { 0 } else { u64::MAX }
}

impl Transfer<'_, '_> {
    /// `lanes` use `r`.
    fn used(&mut self, r: Reg, lanes: u32, how: Use) {
        let lanes = self.bits.lanes(r) & lanes;
        if lanes != 0 && r.row != NONE {
            let at = (self.pc, self.w.index);
            report_use(self.cx, self.env, self.bits, at, (r, lanes), how);
        }
    }

    /// The origin of the undefined bits of the first of `sources` that has some.
    fn origin(&mut self, sources: &[Reg]) -> u32 {
        let some = sources.iter().find(|r| self.bits.lanes(**r) != 0);
        let lanes = some.map_or(0, |r| self.bits.lanes(*r));
        some.map_or(u32::MAX, |r| {
            self.bits.origin(*r, &mut self.env.origins, self.pc, lanes)
        })
    }

    /// Registers that the instruction reads, without its guard.
    fn reads(&self) -> impl Iterator<Item = Reg> + use<'_> {
        let guard = pred(self.inst.guard);
        let reads = self.cx.program.uses[self.pc].0.iter();
        reads.copied().filter(move |r| *r != guard)
    }

    /// The undefined bits of `r`, if the instruction reads it.
    fn row(&self, r: Reg) -> Row64 {
        self.bits.row(r)
    }

    /// `d` gets the undefined bits `value(lane)`, moved from `sources`.
    fn put(&mut self, d: Reg, sources: &[Reg], value: impl Fn(usize) -> u64) {
        let from = self.origin(sources);
        self.set(d, from, value);
    }

    /// `d` gets the undefined bits `value(lane)`, computed from `sources`.
    fn compute(&mut self, d: Reg, sources: &[Reg], value: impl Fn(usize) -> u64) {
        let from = self.origin(sources) | COMPUTED;
        self.set(d, from, value);
    }

    fn set(&mut self, d: Reg, from: u32, value: impl Fn(usize) -> u64) {
        let mut row = [0; 32];
        for l in lanes_of(self.active) {
            row[l] = value(l);
        }
        self.bits.set(d, &row, self.active, from);
    }

    /// All written registers are undefined in the lanes in which some source is.
    fn spread(&mut self) {
        let reads: Vec<Reg> = self.reads().collect();
        let lanes = reads.iter().fold(0, |all, r| all | self.bits.lanes(*r));
        self.spread_lanes(&reads, lanes);
    }

    fn spread_lanes(&mut self, sources: &[Reg], lanes: u32) {
        let from = self.origin(sources) | COMPUTED;
        for d in &self.cx.program.uses[self.pc].1 {
            self.bits.clear(*d, self.active);
            self.bits.spoil(*d, lanes & self.active, from);
        }
    }

    /// All operands are used.
    fn sink(&mut self) {
        let reads: Vec<Reg> = self.reads().collect();
        for r in reads {
            self.used(r, self.active, Use::Operand);
        }
        self.define();
    }

    /// All written registers are defined.
    fn define(&mut self) {
        for d in &self.cx.program.uses[self.pc].1 {
            self.bits.clear(*d, self.active);
        }
    }

    fn copy(&mut self, d: Reg, a: Reg) {
        let row = self.row(a);
        self.put(d, &[a], |l| row[l]);
    }

    /// The values of a register.
    fn value(&self, r: Reg) -> Row64 {
        match r.file {
            File::Pred => {
                let p = self.w.p[r.row as usize];
                std::array::from_fn(|l| u64::from(p >> l & 1))
            }
            _ => wide(self.w, r),
        }
    }

    fn step(&mut self) {
        let clean = self.reads().all(|r| self.bits.lanes(r) == 0);
        let memory = matches!(&self.inst.op, Op::Ld(_) | Op::St(_));
        let carries = matches!(&self.inst.op, Op::Carry { .. } | Op::MadCarry { .. });
        if clean && !memory && !carries {
            return self.define();
        }
        let op = &self.inst.op;
        match op {
            Op::Mov32 { d, a } => self.copy(r32(*d), r32(*a)),
            Op::Mov64 { d, a } | Op::Cvta { d, a, .. } => self.copy(r64(*d), r64(*a)),
            Op::MovPred { d, a } => self.copy(pred(*d), pred(*a)),
            Op::Mov16 { d, a } => {
                let row = self.row(r32(*a));
                self.put(r32(*d), &[r32(*a)], |l| row[l] & 0xffff);
            }
            Op::Moves(moves) => {
                let rows: Vec<Row64> = moves.iter().map(|(_, a)| self.row(*a)).collect();
                let from: Vec<u32> = moves.iter().map(|(_, a)| self.origin(&[*a])).collect();
                for (((d, _), row), from) in moves.iter().zip(&rows).zip(from) {
                    self.bits.set(*d, row, self.active, from);
                }
            }
            Op::Pack { d, bits, parts } => {
                let mask = (1u64 << bits) - 1;
                let rows: Vec<Row64> = parts.iter().map(|r| self.row(*r)).collect();
                self.put(*d, parts, |l| {
                    let each = rows.iter().enumerate();
                    each.fold(0, |out, (k, row)| {
                        out | (row[l] & mask) << (k as u32 * u32::from(*bits))
                    })
                });
            }
            Op::Unpack { a, bits, parts } => {
                let mask = (1u64 << bits) - 1;
                let row = self.row(*a);
                for (k, d) in parts.iter().enumerate() {
                    self.put(*d, &[*a], |l| {
                        row[l] >> (k as u32 * u32::from(*bits)) & mask
                    });
                }
            }
            Op::I32 { f, d, a, b, c } => self.integers(*f, r32(*d), [*a, *b, *c].map(r32)),
            Op::I64 { f, d, a, b, c } => self.integers(*f, r64(*d), [*a, *b, *c].map(r64)),
            Op::I16 {
                f,
                wide,
                d,
                a,
                b,
                c,
                ..
            } => self.halves(*f, *wide, r32(*d), [*a, *b, *c].map(r32)),
            Op::Shift64 { f, d, a, b, c } => {
                let (ua, amount) = (self.row(r64(*a)), [r32(*b), r32(*c)]);
                let unknown = self.reads().filter(|r| amount.contains(r));
                let unknown = unknown.fold(0, |m, r| m | self.bits.lanes(r));
                let [b, c] = [b, c].map(|r| &self.w.r32[*r as usize]);
                let moved = shift64(*f, &ua, b, c);
                self.put(r64(*d), &[r64(*a), amount[0], amount[1]], |l| {
                    if unknown >> l & 1 == 1 {
                        u64::MAX
                    } else {
                        moved[l]
                    }
                });
            }
            Op::Bfi {
                wide,
                d,
                a,
                b,
                pos,
                len,
            } => {
                let reg = if *wide { r64 } else { r32 };
                let (ua, ub) = (self.row(reg(*a)), self.row(reg(*b)));
                let [pos, len] = [r32(*pos), r32(*len)];
                let unknown = self.bits.lanes(pos) | self.bits.lanes(len);
                let (p, n) = (self.value(pos), self.value(len));
                self.put(reg(*d), &[reg(*a), reg(*b), pos, len], |l| {
                    if unknown >> l & 1 == 1 {
                        return u64::MAX;
                    }
                    let width = if *wide { 64 } else { 32 };
                    bfi(ua[l], ub[l], p[l] as u32, n[l] as u32, width)
                });
            }
            Op::Wide { d, a, b, .. } => {
                let (a, b) = (r32(*a), r32(*b));
                let zero = self.zeros(a) | self.zeros(b);
                let factors = (self.bits.lanes(a) | self.bits.lanes(b)) & !zero;
                let reads: Vec<Reg> = self.reads().collect();
                let wide = reads.iter().filter(|r| r.file == File::R64);
                let lanes = wide.fold(factors, |m, r| m | self.bits.lanes(*r));
                self.bits.clear(r64(*d), self.active);
                let from = self.origin(&reads);
                self.bits.spoil(r64(*d), lanes & self.active, from);
            }
            Op::Lop3 { lut, d, a, b, c } => {
                let regs = [*a, *b, *c].map(r32);
                let (x, u) = (regs.map(|r| self.value(r)), regs.map(|r| self.row(r)));
                let at = |rows: &[Row64; 3], l: usize| [rows[0][l], rows[1][l], rows[2][l]];
                self.put(r32(*d), &regs, |l| {
                    undecided(*lut, at(&x, l), at(&u, l), false)
                });
            }
            Op::PredLogic { lut, d, a, b } => {
                let regs = [pred(*a), pred(*b)];
                let (x, u) = (regs.map(|r| self.value(r)), regs.map(|r| self.row(r)));
                self.put(pred(*d), &regs, |l| {
                    undecided(*lut, [x[0][l], x[1][l]], [u[0][l], u[1][l]], a == b) & 1
                });
            }
            Op::Setp { cmp, p, q } => self.compare(cmp, *p, *q),
            Op::Selp32 { d, a, b, p } => {
                let holds = self.w.p[*p as usize];
                self.select(r32(*d), [r32(*a), r32(*b)], holds, pred(*p));
            }
            Op::Selp64 { d, a, b, p } => {
                let holds = self.w.p[*p as usize];
                self.select(r64(*d), [r64(*a), r64(*b)], holds, pred(*p));
            }
            Op::Slct {
                wide,
                float,
                d,
                a,
                b,
                c,
                ..
            } => {
                let reg = if *wide { r64 } else { r32 };
                let c = r32(*c);
                let x = &self.w.r32[c.row as usize];
                // Minus zero is not below zero; NaN selects b.
                let first = |l: &usize| {
                    let x = x[*l];
                    if *float {
                        f32::from_bits(x) >= 0.0
                    } else {
                        x as i32 >= 0
                    }
                };
                let holds = (0..32).filter(first).fold(0u32, |m, l| m | 1 << l);
                self.select(reg(*d), [reg(*a), reg(*b)], holds, c);
            }
            Op::Cvt(c) => self.convert(c),
            Op::Half {
                f,
                packed,
                d,
                a,
                b,
                c,
                ..
            } => {
                let binary = !matches!(f, FloatOp::Abs | FloatOp::Neg);
                let mut u = self.row(r32(*a));
                for row in [b, c] {
                    let other = self.row(r32(*row));
                    let counts = binary && self.reads().any(|r| r == r32(*row));
                    for l in lanes_of(if counts { u32::MAX } else { 0 }) {
                        u[l] |= other[l];
                    }
                }
                let high = if *packed { 0xffff_0000 } else { 0 };
                self.put(r32(*d), &[*a, *b, *c].map(r32), |l| {
                    all(u[l] & 0xffff) & 0xffff | all(u[l] >> 16) & high
                });
            }
            Op::Packed16 { d, a, b, .. } => {
                let (ua, ub) = (self.row(r32(*a)), self.row(r32(*b)));
                self.put(r32(*d), &[r32(*a), r32(*b)], |l| {
                    let u = ua[l] | ub[l];
                    all(u & 0xffff) & 0xffff | all(u >> 16) & 0xffff_0000
                });
            }
            Op::Carry {
                carry_in,
                carry_out,
                ..
            }
            | Op::MadCarry {
                carry_in,
                carry_out,
                ..
            } => {
                let reads: Vec<Reg> = self.reads().collect();
                let mut lanes = reads.iter().fold(0, |m, r| m | self.bits.lanes(*r));
                let mut from = self.origin(&reads);
                if *carry_in && self.bits.carry & self.active != 0 {
                    from = if lanes == 0 {
                        self.bits.carry_from
                    } else {
                        from
                    };
                    lanes |= self.bits.carry;
                }
                for d in &self.cx.program.uses[self.pc].1 {
                    self.bits.clear(*d, self.active);
                    self.bits.spoil(*d, lanes & self.active, from);
                }
                if *carry_out {
                    let active = self.active;
                    self.bits.carry = (self.bits.carry & !active) | (lanes & active);
                    self.bits.carry_from = from;
                }
            }
            Op::F32 { .. }
            | Op::F64 { .. }
            | Op::Count64 { .. }
            | Op::Lop3Pred(_)
            | Op::CvtPack { .. }
            | Op::Video(_)
            | Op::Set { .. }
            | Op::SetHalf2 { .. }
            | Op::SetpHalf2 { .. }
            | Op::Testp { .. }
            | Op::Isspacep { .. }
            | Op::Mapa { .. }
            | Op::CtaRank { .. }
            | Op::PendingCount { .. } => self.spread(),
            Op::Ld(a) => self.load(a),
            Op::St(a) => self.store(a),
            Op::LdMatrix(m) | Op::StMatrix(m) => {
                // Lanes 8j to 8j + 7 give the addresses of matrix j.
                let givers = (u64::from(u32::MAX) >> (32 - 8 * u32::from(m.count))) as u32;
                if let Some(base) = m.address.base {
                    self.used(base, self.active & givers, Use::Address);
                }
                self.define();
            }
            Op::Shfl {
                mode,
                d,
                p,
                a,
                b,
                c,
                mask,
            } => {
                for r in [*b, *c, *mask] {
                    self.used(r32(r), self.active, Use::Operand);
                }
                let [b, c] = [b, c].map(|r| &self.w.r32[*r as usize]);
                let (from, _) = lanes::shuffled(*mode, b, c);
                let row = self.row(r32(*a));
                if *d != NONE {
                    self.put(r32(*d), &[r32(*a)], |l| row[from[l]]);
                }
                if *p != NONE {
                    self.bits.clear(pred(*p), self.active);
                }
            }
            Op::MovMatrix { d, a } => {
                let row = self.row(r32(*a)).map(|x| x as u32);
                let out = matrix::transposed(&row);
                self.put(r32(*d), &[r32(*a)], |l| out[l].into());
            }
            Op::Vote {
                mode,
                d,
                a,
                negated,
                mask,
            } => {
                self.used(r32(*mask), self.active, Use::Operand);
                self.vote(*mode, *d, pred(*a), *negated);
            }
            Op::Match { mask, .. } | Op::Redux { mask, .. } => {
                self.used(r32(*mask), self.active, Use::Operand);
                let reads: Vec<Reg> = self.reads().collect();
                let lanes = reads.iter().fold(0, |m, r| m | self.bits.lanes(*r));
                let some = if lanes & self.active == 0 {
                    0
                } else {
                    u32::MAX
                };
                self.spread_lanes(&reads, some);
            }
            Op::Mma(m) => self.mma(m),
            Op::WmmaMultiply(m) => {
                let regs = |rows: &[Row]| -> Vec<Reg> {
                    let reg = if m.d.ty == MmaType::F64 { r64 } else { r32 };
                    rows.iter().copied().map(reg).collect()
                };
                let lanes =
                    |t: &Self, regs: &[Reg]| regs.iter().fold(0, |m, r| m | t.bits.lanes(*r));
                let factors = [regs(&m.a.regs), regs(&m.b.regs)].concat();
                let all = if lanes(self, &factors) == 0 {
                    0
                } else {
                    u32::MAX
                };
                let reads: Vec<Reg> = self.reads().collect();
                let sums = lanes(self, &regs(&m.c.regs));
                self.spread_lanes(&reads, all | sums);
            }
            // The arguments of a function are passed on, and its results back; a register with its address is used.
            Op::Call(call) if !matches!(call.callee, Callee::Service(_)) => {
                if let Callee::Register(r) = call.callee {
                    self.used(r, self.active, Use::Address);
                }
            }
            _ => self.sink(),
        }
    }

    /// Lanes in which `r` is defined and zero.
    fn zeros(&self, r: Reg) -> u32 {
        let x = self.value(r);
        let zero = lanes_of(self.active).filter(|l| x[*l] == 0);
        zero.fold(0u32, |m, l| m | 1 << l) & !self.bits.lanes(r)
    }

    /// Integer operations of 32 and 64 bits.
    fn integers(&mut self, f: IntOp, d: Reg, [a, b, c]: [Reg; 3]) {
        use IntOp as I;
        let reads: Vec<Reg> = self.reads().collect();
        let row = |t: &Self, r: Reg| {
            if reads.contains(&r) {
                t.row(r)
            } else {
                [0; 32]
            }
        };
        let (ua, ub) = (row(self, a), row(self, b));
        let uc = if has_third(f) { row(self, c) } else { [0; 32] };
        let (x, y) = (self.value(a), self.value(b));
        let wide = d.file == File::R64;
        let moves = matches!(
            f,
            I::Shl
                | I::ShrU
                | I::ShrS
                | I::BfeU
                | I::BfeS
                | I::Brev
                | I::Prmt
                | I::PrmtF4e
                | I::PrmtB4e
                | I::PrmtRc8
                | I::PrmtEcl
                | I::PrmtEcr
                | I::PrmtRc16
                | I::ShfLWrap
                | I::ShfLClamp
                | I::ShfRWrap
                | I::ShfRClamp
        );
        let mut moved = [0; 32];
        if moves && !wide {
            // These move the bits of `a`, and some those of `b`; what is left says where to.
            let [low, high, last] = [&ua, &ub, &uc].map(|u| u.map(|x| x as u32));
            let both = !matches!(f, I::Shl | I::ShrU | I::ShrS | I::BfeU | I::BfeS | I::Brev);
            let second = if both {
                high
            } else {
                self.w.r32[b.row as usize]
            };
            let out = int32_rare(f, &low, &second, &self.w.r32[c.row as usize]);
            for l in 0..32 {
                let unknown = last[l] != 0 || !both && high[l] != 0 && f != I::Brev;
                moved[l] = if unknown { u64::MAX } else { out[l].into() };
            }
        }
        let product = matches!(
            f,
            I::MulLo
                | I::MulHiU
                | I::MulHiS
                | I::MadLo
                | I::MadHiU
                | I::MadHiS
                | I::Mul24LoU
                | I::Mul24LoS
                | I::Mul24HiU
                | I::Mul24HiS
                | I::Mad24LoU
                | I::Mad24LoS
        );
        let from = self.origin(&reads);
        let by_bits = moves || matches!(f, I::And | I::Or | I::Xor | I::Not);
        let from = if by_bits { from } else { from | COMPUTED };
        self.set(d, from, |l| {
            let (ua, ub, uc) = (ua[l], ub[l], uc[l]);
            match f {
                I::And => and(x[l], y[l], ua, ub),
                I::Or => or(x[l], y[l], ua, ub),
                I::Xor | I::Sub if a == b => 0,
                I::Xor => ua | ub,
                I::Not => ua,
                I::Add | I::Sub => upwards(ua | ub),
                I::Neg => upwards(ua),
                _ if moves && !wide => moved[l],
                _ if product => {
                    let zero = (ua == 0 && x[l] == 0) || (ub == 0 && y[l] == 0);
                    let u = if zero { uc } else { ua | ub | uc };
                    if matches!(f, I::MulLo | I::MadLo) {
                        upwards(u)
                    } else {
                        all(u)
                    }
                }
                _ => all(ua | ub | uc),
            }
        });
    }

    /// Integer operations of 16 bits.
    fn halves(&mut self, f: IntOp, wide: bool, d: Reg, [a, b, c]: [Reg; 3]) {
        let reads: Vec<Reg> = self.reads().collect();
        let row = |t: &Self, r: Reg| {
            if reads.contains(&r) {
                t.row(r)
            } else {
                [0; 32]
            }
        };
        let (ua, ub) = (row(self, a), row(self, b));
        let uc = if has_third(f) { row(self, c) } else { [0; 32] };
        let (x, y) = (self.value(a), self.value(b));
        let mask = if wide { u64::MAX } else { 0xffff };
        let from = self.origin(&reads);
        let by_bits = matches!(f, IntOp::And | IntOp::Or | IntOp::Xor | IntOp::Not);
        let from = if by_bits { from } else { from | COMPUTED };
        self.set(d, from, |l| {
            let (ua, ub) = (ua[l] & 0xffff, ub[l] & 0xffff);
            let zero = (ua == 0 && x[l] as u16 == 0) || (ub == 0 && y[l] as u16 == 0);
            let u = match f {
                IntOp::And => and(x[l], y[l], ua, ub),
                IntOp::Or => or(x[l], y[l], ua, ub),
                IntOp::Xor | IntOp::Sub if a == b => 0,
                IntOp::Xor => ua | ub,
                IntOp::Not => ua,
                IntOp::MulLo | IntOp::MadLo if zero => all(uc[l]),
                _ => all(ua | ub | uc[l]),
            };
            u & mask
        });
    }

    fn compare(&mut self, cmp: &Compare, p: Row, q: Row) {
        let wide = matches!(cmp.ty, CmpType::U64 | CmpType::S64 | CmpType::F64);
        let reg = if wide { r64 } else { r32 };
        let (a, b) = (reg(cmp.a), reg(cmp.b));
        let narrow = matches!(
            cmp.ty,
            CmpType::U16 | CmpType::S16 | CmpType::F16 | CmpType::F16Ftz | CmpType::Bf16
        );
        let mask = if narrow { 0xffff } else { u64::MAX };
        let integer = matches!(
            cmp.ty,
            CmpType::U16 | CmpType::S16 | CmpType::U32 | CmpType::S32 | CmpType::U64 | CmpType::S64
        );
        let equality = integer && matches!(cmp.cmp, Cmp::Eq | Cmp::Ne);
        let (x, y, ua, ub) = (self.value(a), self.value(b), self.row(a), self.row(b));
        let holds = comparison(self.env, self.w, cmp, false);
        let unknown = |l: usize| {
            let u = (ua[l] | ub[l]) & mask;
            let differ = equality && (x[l] ^ y[l]) & mask & !u != 0;
            u != 0 && !differ && !(integer && a == b)
        };
        let unknown = lanes_of(self.active)
            .filter(|l| unknown(*l))
            .fold(0u32, |m, l| m | 1 << l);
        let mut sources = vec![a, b];
        let other = cmp.combine.map(|(op, row, negated)| {
            sources.push(pred(row));
            let value = self.w.p[row as usize] ^ if negated { u32::MAX } else { 0 };
            (op, value, self.bits.lanes(pred(row)))
        });
        for (d, holds) in [(p, holds), (q, !holds)] {
            let undefined = match other {
                None => unknown,
                Some((op, value, u)) => {
                    let [x, y, ux, uy] = [holds, value, unknown, u].map(u64::from);
                    let out = match op {
                        Bool::And => and(x, y, ux, uy),
                        Bool::Or => or(x, y, ux, uy),
                        Bool::Xor => ux | uy,
                    };
                    out as u32
                }
            };
            if d != NONE {
                self.put(pred(d), &sources, |l| u64::from(undefined >> l & 1));
            }
        }
    }

    /// `a` in the lanes `p` and `b` elsewhere; where `by`, which decides that, is undefined, what the two differ in.
    fn select(&mut self, d: Reg, [a, b]: [Reg; 2], p: u32, by: Reg) {
        let (x, y, ua, ub) = (self.value(a), self.value(b), self.row(a), self.row(b));
        let up = self.bits.lanes(by);
        let active = self.active;
        let any = |u: &Row64, lanes: u32| lanes_of(lanes & active).any(|l| u[l] != 0);
        let mut sources = Vec::new();
        for (r, u, lanes) in [(a, &ua, p), (b, &ub, !p)] {
            if any(u, lanes | up) {
                sources.push(r);
            }
        }
        sources.push(by);
        self.put(d, &sources, |l| {
            if up >> l & 1 == 1 {
                ua[l] | ub[l] | (x[l] ^ y[l])
            } else if p >> l & 1 == 1 {
                ua[l]
            } else {
                ub[l]
            }
        });
    }

    fn convert(&mut self, c: &Convert) {
        let low = |bits: u8| u64::MAX >> (64 - u32::from(bits));
        let (ua, ub) = (self.row(c.a), self.row(c.b));
        let joins = c.packed == Packed::Join && matches!(c.to, Format::F16 | Format::Bf16);
        if joins {
            return self.compute(c.d, &[c.a, c.b], |l| {
                all(ua[l]) & 0xffff_0000 | all(ub[l]) & 0xffff
            });
        }
        let bits = |f: Format| match f {
            Format::U(n) | Format::S(n) => n,
            Format::F16 | Format::Bf16 => 16,
            Format::F64 => 64,
            Format::E4m3 | Format::E5m2 => 8,
            Format::F32 | Format::Tf32 => 32,
        };
        let (Format::U(to) | Format::S(to), Format::U(from) | Format::S(from)) = (c.to, c.from)
        else {
            if c.packed != Packed::No {
                return self.spread();
            }
            let narrow = low(bits(c.from));
            return self.compute(c.d, &[c.a], |l| all(ua[l] & narrow) & low(bits(c.to)));
        };
        let signed = matches!(c.from, Format::S(_));
        let to_mask = if matches!(c.to, Format::S(_)) {
            u64::MAX
        } else {
            low(to)
        };
        self.put(c.d, &[c.a], |l| {
            let u = ua[l] & low(from);
            if c.sat {
                return all(u) & low(to);
            }
            let u = if signed {
                extended(u, u32::from(from) / 8, true)
            } else {
                u
            };
            let u = u & low(to);
            if to_mask == u64::MAX {
                extended(u, u32::from(to) / 8, true)
            } else {
                u
            }
        });
    }

    fn vote(&mut self, mode: Vote, d: Row, a: Reg, negated: bool) {
        let unknown = self.bits.lanes(a) & self.active;
        let holds = self.w.p[a.row as usize] ^ if negated { u32::MAX } else { 0 };
        let known = self.active & !unknown;
        let from = self.origin(&[a]);
        let everywhere = |u: u64| [u; 32];
        match mode {
            Vote::Ballot => {
                let row = everywhere(unknown.into());
                self.bits.set(r32(d), &row, self.active, from);
            }
            Vote::All | Vote::Any | Vote::Uni => {
                let decided = match mode {
                    Vote::All => known & !holds != 0,
                    Vote::Any => known & holds != 0,
                    _ => known & holds != 0 && known & !holds != 0,
                };
                let row = everywhere(u64::from(unknown != 0 && !decided));
                self.bits.set(pred(d), &row, self.active, from);
            }
        }
    }

    /// A product: element (i, j) depends on row i of A, column j of B and its own element of C.
    fn mma(&mut self, m: &Mma) {
        let reg = if m.d_ty == MmaType::F64 { r64 } else { r32 };
        let reads: Vec<Reg> = self.reads().collect();
        let lanes = |rows: &[Row]| {
            rows.iter()
                .fold(0, |all, row| all | self.bits.lanes(reg(*row)))
        };
        let quads = m.m == 8 && m.a_ty == MmaType::F16;
        if quads {
            let some = if lanes(&m.a) | lanes(&m.b) | lanes(&m.c) == 0 {
                0
            } else {
                u32::MAX
            };
            return self.spread_lanes(&reads, some);
        }
        let halves = usize::from(m.m) / 8;
        let (mut rows, mut columns) = ([false; 16], [false; 8]);
        for (r, row) in m.a.iter().enumerate() {
            for l in lanes_of(self.bits.lanes(reg(*row))) {
                rows[l / 4 + 8 * (r % halves)] = true;
            }
        }
        for l in lanes_of(lanes(&m.b)) {
            columns[l / 4] = true;
        }
        if let Some(s) = &m.sparse {
            self.used(r32(s.meta), self.active, Use::Operand);
        }
        let from = self.origin(&reads);
        let sums: Vec<Row64> = m.c.iter().map(|row| self.row(reg(*row))).collect();
        let mut out = vec![[0u64; 32]; m.d.len()];
        for l in lanes_of(self.active) {
            let (g, q) = (l / 4, l % 4);
            for i in 0..usize::from(m.m) / 4 {
                let part = |t: MmaType| match t {
                    MmaType::F16 => (i / 2, 0xffff << (16 * (i % 2))),
                    _ => (i, u64::MAX),
                };
                let ((of, mask), (to, bits)) = (part(m.c_ty), part(m.d_ty));
                let own = sums.get(of).is_some_and(|row| row[l] & mask != 0);
                if own || rows[g + 8 * (i / 2)] || columns[2 * q + i % 2] {
                    out[to][l] |= bits;
                }
            }
        }
        for (row, bits) in m.d.iter().zip(&out) {
            self.bits.set(reg(*row), bits, self.active, from);
        }
    }

    /// The active lanes that access local memory, and those that access neither that nor the block's own shared memory.
    fn memories(&self, a: &Access, at: &Row64) -> [u32; 2] {
        let own = |window: u64, lanes: u32| {
            let ranks = by_rank(at, lanes, window);
            let own = ranks.filter(|(rank, _)| *rank == self.env.rank);
            own.fold(0, |m, (_, lanes)| m | lanes)
        };
        let active = self.active;
        let (local, shared) = match a.space {
            Space::Local => (active, 0),
            Space::Shared => (0, active),
            Space::Cluster => (0, own(0, active)),
            Space::Generic => {
                let shared = active & inside(at, SHARED_WINDOW);
                (
                    active & inside(at, LOCAL_WINDOW),
                    own(SHARED_WINDOW, shared),
                )
            }
            _ => (0, 0),
        };
        [local, active & !local & !shared]
    }

    /// Where in local memory an address is.
    fn local_place(a: &Access, at: u64) -> u64 {
        if a.space == Space::Local {
            at
        } else {
            at.wrapping_sub(LOCAL_WINDOW)
        }
    }

    /// A load: what is undefined in the memory of other spaces shows when it is read.
    fn load(&mut self, a: &Access) {
        if let Some(base) = a.address.base {
            self.used(base, self.active, Use::Address);
        }
        self.define();
        if !self.bits.has_local() || !matches!(a.space, Space::Local | Space::Generic) {
            return;
        }
        let at = addresses(self.w, a.address);
        let [local, _] = self.memories(a, &at);
        let bytes = u32::from(a.bytes);
        for (e, reg) in a.regs.iter().enumerate().take(usize::from(a.count)) {
            let (mut row, mut origin) = ([0; 32], u32::MAX);
            for l in lanes_of(local) {
                let place = Self::local_place(a, at[l]).wrapping_add(u64::from(e as u32 * bytes));
                let (bits, from) = self.bits.local(l, place, bytes);
                row[l] = if a.signed {
                    extended(bits, bytes, true)
                } else {
                    bits
                };
                origin = if bits == 0 { origin } else { from };
            }
            if local != 0 {
                self.bits.set(*reg, &row, local, origin);
            }
        }
    }

    /// A store: to local memory the marks go along, to the block's shared memory they do when it is carried out, and elsewhere it is a use.
    fn store(&mut self, a: &Access) {
        if let Some(base) = a.address.base {
            self.used(base, self.active, Use::Address);
        }
        let regs = &a.regs[..usize::from(a.count)];
        let clean = regs.iter().all(|r| self.bits.lanes(*r) & self.active == 0);
        if clean && !self.bits.has_local() {
            return;
        }
        let at = addresses(self.w, a.address);
        let [local, seen] = self.memories(a, &at);
        let bytes = u32::from(a.bytes);
        for (e, reg) in regs.iter().enumerate().filter(|(_, r)| r.row != NONE) {
            let row = self.row(*reg);
            let from = self.origin(&[*reg]);
            for l in lanes_of(local) {
                let place = Self::local_place(a, at[l]).wrapping_add(u64::from(e as u32 * bytes));
                self.bits.set_local(l, place, bytes, row[l], from);
            }
            let computed = from != u32::MAX && from & COMPUTED != 0;
            let is_used = |l: &usize| {
                if computed {
                    row[*l] << (64 - 8 * bytes) != 0
                } else {
                    is_value(row[*l], bytes)
                }
            };
            let visible = lanes_of(seen).filter(is_used);
            let visible = visible.fold(0u32, |m, l| m | 1 << l);
            let elsewhere = matches!(a.space, Space::Cluster)
                || a.space == Space::Generic && visible & inside(&at, SHARED_WINDOW) != 0;
            let to = if elsewhere {
                "the shared memory of another block"
            } else {
                "global memory"
            };
            self.used(*reg, visible, Use::Store(to));
        }
    }
}

/// Whether `undefined` bits of an element of `bytes` bytes are more than the padding of a structure: whole bytes next to others that are defined.
pub(super) fn is_value(undefined: u64, bytes: u32) -> bool {
    let each = (0..bytes).map(|i| undefined >> (8 * i) & 0xff);
    let (mut whole, mut none) = (false, false);
    let mut parts = false;
    for byte in each {
        whole |= byte == 0xff;
        none |= byte == 0;
        parts |= byte != 0 && byte != 0xff;
    }
    parts || whole && !none
}
