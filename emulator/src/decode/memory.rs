//! Decoding of loads, stores, atomics and address conversions (PTX ISA, section 9.7.9 and `atom`, `red`).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind, Space};
use crate::ir::{Access, Address, Atom, Atom128, AtomOp, CpAsync, NONE, Op, Order, Reg};
use crate::memory::FIRST;
use crate::types::{File, ScalarType};

/// The state space named by a modifier.
pub(super) fn space_of(s: &str) -> Option<Space> {
    Some(match s {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::Cluster,
        "local" => Space::Local,
        "param" | "param::entry" | "param::func" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}

/// Takes the modifiers that only hint at caches. Returns whether a cache policy operand follows.
pub(super) fn hints(m: &mut Mods<'_>) -> Result<bool> {
    let operators = |s: &str| matches!(s, "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt");
    if m.find(|s| operators(s).then_some(())).is_some()
        && m.find(|s| operators(s).then_some(())).is_some()
    {
        return m.invalid("one cache operator at most");
    }
    while m
        .find(|s| {
            let hint = matches!(s, "nc" | "weak" | "unified")
                || (s.starts_with("L1::") || (s.starts_with("L2::") && s != "L2::cache_hint"));
            hint.then_some(())
        })
        .is_some()
    {}
    Ok(m.take("L2::cache_hint"))
}

/// Takes `.volatile`, `.relaxed.gpu` and so on; returns whether one was there.
fn strength(m: &mut Mods<'_>) -> Result<(bool, Order)> {
    let mmio = m.take("mmio");
    let strong = m.find(|s| {
        matches!(
            s,
            "volatile" | "relaxed" | "acquire" | "release" | "acq_rel"
        )
        .then_some(s)
    });
    let scope = m.find(|s| matches!(s, "cta" | "cluster" | "gpu" | "sys").then_some(()));
    let is_access = m.instruction.starts_with("ld") || m.instruction.starts_with("st");
    if is_access && matches!(strong, Some("relaxed" | "acquire" | "release")) && scope.is_none() {
        return m.invalid("a scope is needed: .cta, .cluster, .gpu or .sys");
    }
    if mmio && strong.is_none() {
        return m.invalid(".mmio goes with .relaxed, .acquire or .release and .sys");
    }
    let order = Order {
        acquires: matches!(strong, Some("acquire" | "acq_rel")),
        releases: matches!(strong, Some("release" | "acq_rel")),
    };
    Ok((strong.is_some(), order))
}

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn memory(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let is_async = || i.mods.iter().any(|(s, _)| *s == "async");
        let op = match i.name {
            "st" | "red" if is_async() => self.store_async(i, m)?,
            "ld" | "ldu" => Op::Ld(Box::new(self.access(i, m, 0, 1)?)),
            "st" => Op::St(Box::new(self.access(i, m, 1, 0)?)),
            "atom" | "red" => self.atom(i, m)?,
            "cvta" => self.cvta(i, m)?,
            "isspacep" => {
                let Some(space) = m.find(space_of) else {
                    return m.invalid("this space");
                };
                Self::count(i, 2..=2)?;
                let a = match self.src_reg(&i.operands[1], ScalarType::U64, false) {
                    Ok(a) => a,
                    // An address of 32 bits.
                    Err(_) => self.src_reg(&i.operands[1], ScalarType::U32, false)?,
                };
                let d = self.dst_some(&i.operands[0], ScalarType::Pred)?;
                Op::Isspacep { space, d, a }
            }
            "multimem" => self.multimem(i, m)?,
            "stacksave" | "stackrestore" | "alloca" => self.stack(i, m)?,
            "cp" => self.cp_async(i, m)?,
            "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                let level =
                    |s: &str| matches!(s, "L1" | "L2" | "tensormap") || s.starts_with("L2::");
                if m.find(|s| level(s).then_some(())).is_none() {
                    return m.invalid("a cache level is needed: .L1 or .L2");
                }
                m.list.clear();
                if matches!(i.name, "discard" | "applypriority") {
                    Self::count(i, 2..=2)?;
                    self.address(&i.operands[0])?;
                    return Ok(Some(Op::Nop));
                }
                Self::count(i, 1..=1)?;
                self.address(&i.operands[0])?;
                Op::Nop
            }
            "createpolicy" => {
                m.list.clear();
                let Some(d) = i.operands.first() else {
                    return m.invalid("no operands");
                };
                let d = self.dst_some(d, ScalarType::B64)?;
                let a = self.constant(File::R64, crate::ir::RowInit::Const(0));
                Op::Mov64 { d, a }
            }
            _ => return Ok(None),
        };
        Ok(Some(op))
    }

    pub(super) fn grain(&mut self, space: Space, bytes: u32) {
        if matches!(space, Space::Shared | Space::Cluster | Space::Generic) {
            self.program.shared_grain = self.program.shared_grain.min(bytes);
        }
        if matches!(space, Space::Global | Space::Generic | Space::Const) {
            self.program.global_grain = self.program.global_grain.min(bytes);
        }
    }

    /// A load (address operand 1, registers operand 0) or a store.
    fn access(
        &mut self,
        i: &InstrAst<'a>,
        m: &mut Mods<'a>,
        regs_at: usize,
        address_at: usize,
    ) -> Result<Access> {
        let load = regs_at == 0;
        let space = m.find(space_of).unwrap_or(Space::Generic);
        let (strong, order) = strength(m)?;
        let cached = m.list.iter().any(|(s, _)| *s == "nc");
        if cached && (!load || space != Space::Global) {
            return m.invalid(".nc is for loads of .global");
        }
        let policy = hints(m)?;
        let count = m.find(|s| match s {
            "v2" => Some(2u8),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        });
        let ty = m.ty()?;
        let most = if space == Space::Global { 32 } else { 16 };
        let is_memory_type =
            ty.is_int() || ty.is_untyped() || matches!(ty, ScalarType::F32 | ScalarType::F64);
        if !is_memory_type || u32::from(count.unwrap_or(1)) * ty.bytes() > most {
            return m.invalid(&format!("more than {most} bytes or this type"));
        }
        let n = 2 + usize::from(policy);
        Self::count(i, n..=n)?;
        let address = self.address(&i.operands[address_at])?;
        let address = self.lengthened(address, space);
        // Parameters of functions and of calls lie in the frame.
        let is_argument = space == Space::Param && self.is_frame(&i.operands[address_at]);
        let space = if is_argument { Space::Local } else { space };
        let whole = std::slice::from_ref(&i.operands[regs_at]);
        let list: &[OperandAst<'a>] = match (&i.operands[regs_at].kind, count) {
            (OperandKind::Vector(v), Some(c)) if v.len() == usize::from(c) => v,
            (OperandKind::Vector(v), None) if v.len() == 1 => v,
            (OperandKind::Vector(_), _) | (_, Some(_)) => {
                return Self::type_error(
                    &i.operands[regs_at],
                    "as many registers in braces as the vector has",
                );
            }
            _ => whole,
        };
        let mut regs = [Reg {
            file: File::R32,
            row: NONE,
        }; 8];
        // 128 bits are two elements of 64.
        let wide = ty == ScalarType::B128;
        let (mut places, ty) = (regs.iter_mut(), if wide { ScalarType::B64 } else { ty });
        let element = self.vector_type(list, ty);
        if !self.is_uniform(list) {
            return Self::type_error(&i.operands[regs_at], "registers of one size");
        }
        for o in list {
            if wide {
                let rows = if load {
                    self.wide_destination(o)?
                } else {
                    self.wide_source(o)?
                };
                for (reg, row) in places.by_ref().zip(rows) {
                    *reg = Reg {
                        file: File::R64,
                        row,
                    };
                }
            } else if let Some(reg) = places.next() {
                *reg = if load {
                    self.dst_reg(o, element, true)?
                } else {
                    self.src_reg(o, element, true)?
                };
            }
        }
        if policy {
            self.src(&i.operands[2], ScalarType::B64)?;
        }
        self.grain(space, ty.bytes());
        self.strong |= strong && space != Space::Global;
        self.orders |= order != Order::default();
        let count = count.unwrap_or(1) * if wide { 2 } else { 1 };
        Ok(Access {
            space,
            address,
            bytes: ty.bytes() as u8,
            count,
            signed: ty.is_signed(),
            strong,
            order,
            regs,
        })
    }

    fn atom(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        use ScalarType as T;
        let red = i.name == "red";
        let space = m.find(space_of).unwrap_or(Space::Generic);
        let (_, order) = strength(m)?;
        let policy = hints(m)?;
        let keeps_subnormals = m.take("noftz");
        let _ = m.take("rn");
        let vector = m.find(|s| match s {
            "v2" => Some(2u32),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        });
        let op = m.find(|s| {
            matches!(
                s,
                "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas" | "inc" | "dec"
            )
            .then_some(s)
        });
        let ty = m.ty()?;
        if let (T::B128, Some(op @ ("exch" | "cas"))) = (ty, op) {
            return self.atom128(i, m, op == "cas", space, policy);
        }
        let op = match (op, ty) {
            (Some("add"), T::U32 | T::S32 | T::U64) => AtomOp::Add,
            (Some("add"), T::F32) => AtomOp::AddF32,
            (Some("add"), T::F64) => AtomOp::AddF64,
            (Some("add"), T::F16x2) => AtomOp::AddF16x2,
            (Some("add"), T::Bf16x2) => AtomOp::AddBf16x2,
            (Some("add"), T::F16) => AtomOp::AddF16,
            (Some("add"), T::Bf16) => AtomOp::AddBf16,
            (Some("min"), T::F16) if vector.is_some() => AtomOp::MinF16,
            (Some("max"), T::F16) if vector.is_some() => AtomOp::MaxF16,
            (Some("min"), T::Bf16) if vector.is_some() => AtomOp::MinBf16,
            (Some("max"), T::Bf16) if vector.is_some() => AtomOp::MaxBf16,
            (Some("min"), T::U32 | T::U64) => AtomOp::MinU,
            (Some("min"), T::S32 | T::S64) => AtomOp::MinS,
            (Some("max"), T::U32 | T::U64) => AtomOp::MaxU,
            (Some("max"), T::S32 | T::S64) => AtomOp::MaxS,
            (Some("and"), T::B32 | T::B64) => AtomOp::And,
            (Some("or"), T::B32 | T::B64) => AtomOp::Or,
            (Some("xor"), T::B32 | T::B64) => AtomOp::Xor,
            (Some("exch"), T::B32 | T::B64) if !red => AtomOp::Exch,
            (Some("cas"), T::B16 | T::B32 | T::B64) if !red => AtomOp::Cas,
            (Some("inc"), T::U32) => AtomOp::Inc,
            (Some("dec"), T::U32) => AtomOp::Dec,
            (_, T::B128 | T::Bf16 | T::F16 | T::Bf16x2 | T::F16x2) => {
                return m.unsupported("this operation on this type");
            }
            _ => return m.invalid("this operation on this type"),
        };
        let half = matches!(
            op,
            AtomOp::AddF16
                | AtomOp::AddF16x2
                | AtomOp::AddBf16
                | AtomOp::AddBf16x2
                | AtomOp::MinF16
                | AtomOp::MaxF16
                | AtomOp::MinBf16
                | AtomOp::MaxBf16
        );
        if half != keeps_subnormals {
            return m.invalid(".noftz goes with sums of halves, which need it");
        }
        let known = [Space::Generic, Space::Global, Space::Shared, Space::Cluster];
        if !known.contains(&space) {
            return m.invalid("this space");
        }
        let n = 3 - usize::from(red) + usize::from(op == AtomOp::Cas) + usize::from(policy);
        Self::count(i, n..=n)?;
        if let Some(count) = vector {
            return self.atom_vector(i, m, (op, ty, space, count), (red, order), policy);
        }
        self.strong |= space != Space::Global;
        self.orders |= order != Order::default();
        let first = usize::from(!red);
        let address = self.address(&i.operands[first])?;
        let address = self.lengthened(address, space);
        let b = self.src_reg(&i.operands[first + 1], ty, false)?;
        let c = if op == AtomOp::Cas {
            self.src_reg(&i.operands[first + 2], ty, false)?
        } else {
            b
        };
        if policy {
            self.src(&i.operands[n - 1], T::B64)?;
        }
        let d = if red {
            Reg {
                file: b.file,
                row: NONE,
            }
        } else {
            self.dst_reg(&i.operands[0], ty, false)?
        };
        self.grain(space, ty.bytes());
        Ok(Op::Atom(Box::new(Atom {
            order,
            op,
            space,
            bytes: ty.bytes() as u8,
            address,
            d,
            b,
            c,
        })))
    }

    /// `address` of `space` with 64 bits, if the module has addresses of 32: those are of global memory.
    fn lengthened(&self, address: Address, space: Space) -> Address {
        let is_short = self.module.short_addresses
            && matches!(space, Space::Global | Space::Generic | Space::Const)
            && address.base.is_some_and(|r| r.file == File::R32);
        let start = if is_short { FIRST as i64 } else { 0 };
        Address {
            offset: address.offset.wrapping_add(start),
            ..address
        }
    }

    /// `atom.exch.b128` and `atom.cas.b128`.
    fn atom128(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        cas: bool,
        space: Space,
        policy: bool,
    ) -> Result<Op> {
        if !matches!(space, Space::Generic | Space::Global) {
            return m.unsupported("128 bits outside of .global");
        }
        let n = 3 + usize::from(cas) + usize::from(policy);
        Self::count(i, n..=n)?;
        let address = self.address(&i.operands[1])?;
        let first = self.wide_source(&i.operands[2])?;
        let (value, expected) = if cas {
            (self.wide_source(&i.operands[3])?, Some(first))
        } else {
            (first, None)
        };
        if policy {
            self.src(&i.operands[n - 1], ScalarType::B64)?;
        }
        let d = self.wide_destination(&i.operands[0])?;
        Ok(Op::Atom128(Box::new(Atom128 {
            address,
            d,
            value,
            expected,
        })))
    }

    /// `atom` and `red` of `.v2`, `.v4` and `.v8`, on global memory.
    fn atom_vector(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        (op, ty, space, count): (AtomOp, ScalarType, Space, u32),
        (red, order): (bool, Order),
        policy: bool,
    ) -> Result<Op> {
        let known = ty.is_float() && ty != ScalarType::F64 && count * ty.bytes() <= 16;
        if !known || space == Space::Shared || space == Space::Cluster {
            return m
                .invalid("vectors are of floats of 16 or 32 bits, at most 16 bytes, in .global");
        }
        let first = usize::from(!red);
        let list = |o: &OperandAst<'a>| match &o.kind {
            OperandKind::Vector(v) if v.len() == count as usize => Ok(v.clone()),
            _ => Self::type_error(o, &format!("{count} registers in braces")),
        };
        let sources = list(&i.operands[first + 1])?;
        let results = if red {
            Vec::new()
        } else {
            list(&i.operands[0])?
        };
        let address = self.address(&i.operands[first])?;
        if policy && let Some(o) = i.operands.last() {
            self.src(o, ScalarType::B64)?;
        }
        let mut all = Vec::new();
        for (k, source) in sources.iter().enumerate() {
            let b = self.src_reg(source, ty, false)?;
            let d = match results.get(k) {
                Some(o) => self.dst_reg(o, ty, false)?,
                None => Reg {
                    file: b.file,
                    row: NONE,
                },
            };
            all.push(Atom {
                order,
                op,
                space,
                bytes: ty.bytes() as u8,
                address: crate::ir::Address {
                    base: address.base,
                    offset: address.offset + i64::from(k as u32 * ty.bytes()),
                },
                d,
                b,
                c: b,
            });
        }
        self.grain(space, ty.bytes());
        Ok(Op::Atoms(all.into_boxed_slice()))
    }

    fn cvta(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let to = m.take("to");
        let Some(space) = m.find(space_of) else {
            return m.invalid("this space");
        };
        let ty = m.ty()?;
        if ty != ScalarType::U64 {
            return m.unsupported("64-bit addresses only");
        }
        Self::count(i, 2..=2)?;
        let element = self.element(&i.operands[1])?;
        let a = self.src(element.as_ref().unwrap_or(&i.operands[1]), ty)?;
        let d = self.dst_some(&i.operands[0], ty)?;
        Ok(Op::Cvta { to, space, d, a })
    }

    /// `cp.async` and its groups, bulk copies and reductions.
    fn cp_async(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let reduce = m.take("reduce");
        if !m.take("async") {
            return m.unsupported("this copy");
        }
        if m.take("bulk") {
            return self.bulk(i, m, reduce);
        }
        if m.take("mbarrier") {
            return self.copy_arrive(i, m);
        }
        if m.take("commit_group") {
            Self::count(i, 0..=0)?;
            return Ok(Op::CpCommit);
        }
        if m.take("wait_all") {
            Self::count(i, 0..=0)?;
            return Ok(Op::CpWaitAll);
        }
        if m.take("wait_group") {
            Self::count(i, 1..=1)?;
            let OperandKind::Int(n @ 0..=0xffff_ffff) = i.operands[0].kind else {
                return Self::type_error(&i.operands[0], "a count of groups");
            };
            return Ok(Op::CpWait(n as u32));
        }
        let (ca, cg) = (m.take("ca"), m.take("cg"));
        let to_shared = m.take("shared") || m.take("shared::cta");
        if ca == cg || !to_shared || !m.take("global") {
            return m.unsupported("this asynchronous copy");
        }
        let policy = hints(m)?;
        let most = 4 + usize::from(policy);
        Self::count(i, most - 1..=most)?;
        let dst = self.address(&i.operands[0])?;
        let src = self.address(&i.operands[1])?;
        let src = self.lengthened(src, Space::Global);
        let bytes = match i.operands[2].kind {
            OperandKind::Int(v @ (4 | 8 | 16)) if ca || v == 16 => v as u8,
            _ => return Self::type_error(&i.operands[2], "4, 8 or 16 bytes (16 for .cg)"),
        };
        let (mut src_bytes, mut ignore) = (NONE, (NONE, false));
        if i.operands.len() == most {
            let o = &i.operands[3];
            let is_predicate = match o.kind {
                OperandKind::Not(_) => true,
                OperandKind::Name { name, .. } => {
                    matches!(
                        self.lookup(name),
                        Some((_, super::Symbol::Register(ScalarType::Pred)))
                    )
                }
                _ => false,
            };
            if is_predicate {
                ignore = self.src_pred(o)?;
            } else if let OperandKind::Int(n) = o.kind
                && !(0..=i64::from(bytes)).contains(&n)
            {
                return Self::type_error(o, &format!("0 to {bytes} bytes of the source"));
            } else {
                src_bytes = self.src(o, ScalarType::U32)?;
            }
        }
        if policy {
            self.src(&i.operands[i.operands.len() - 1], ScalarType::B64)?;
        }
        self.grain(Space::Shared, u32::from(bytes));
        self.grain(Space::Global, u32::from(bytes));
        Ok(Op::CpAsync(Box::new(CpAsync {
            dst,
            src,
            bytes,
            src_bytes,
            ignore,
        })))
    }
}
