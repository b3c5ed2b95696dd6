//! Decoding of bulk and tensor copies and of asynchronous stores (PTX ISA, sections 9.7.9.12, 9.7.9.25.4 to 9.7.9.25.6 and 9.7.13.7).

use super::memory::hints;
use super::{Decoder, Mods, Result, Symbol};
use crate::ast::{InstrAst, OperandAst, OperandKind, Space};
use crate::ir::{
    Address, AtomOp, Bulk, BulkSide, MapField, NONE, Op, Reduction, Reg, Row, StoreAsync,
    TensorCopy, TensormapReplace,
};
use crate::types::{File, ScalarType};
use crate::windows::PARAM_WINDOW;

fn side(s: &str) -> Option<BulkSide> {
    Some(match s {
        "global" => BulkSide::Global,
        "shared::cta" => BulkSide::Block,
        "shared::cluster" => BulkSide::Cluster,
        _ => return None,
    })
}

fn operation(s: &str) -> Option<&str> {
    let known = matches!(
        s,
        "and" | "or" | "xor" | "add" | "inc" | "dec" | "min" | "max"
    );
    known.then_some(s)
}

/// The operation of a reduction to shared memory.
fn shared_reduction(op: &str, ty: ScalarType) -> Option<AtomOp> {
    use ScalarType as T;
    Some(match (op, ty) {
        ("add", T::U32 | T::S32 | T::U64) => AtomOp::Add,
        ("min", T::U32) => AtomOp::MinU,
        ("min", T::S32) => AtomOp::MinS,
        ("max", T::U32) => AtomOp::MaxU,
        ("max", T::S32) => AtomOp::MaxS,
        ("inc", T::U32) => AtomOp::Inc,
        ("dec", T::U32) => AtomOp::Dec,
        ("and", T::B32) => AtomOp::And,
        ("or", T::B32) => AtomOp::Or,
        ("xor", T::B32) => AtomOp::Xor,
        _ => return None,
    })
}

/// The operation of a bulk reduction to global memory.
fn global_reduction(op: &str, ty: ScalarType) -> Option<AtomOp> {
    use ScalarType as T;
    Some(match (op, ty) {
        ("add", T::F32) => AtomOp::AddF32Ftz,
        ("add", T::F64) => AtomOp::AddF64,
        ("add", T::F16) => AtomOp::AddF16,
        ("add", T::Bf16) => AtomOp::AddBf16,
        ("min", T::U64) => AtomOp::MinU,
        ("min", T::S64) => AtomOp::MinS,
        ("max", T::U64) => AtomOp::MaxU,
        ("max", T::S64) => AtomOp::MaxS,
        ("min", T::F16) => AtomOp::MinF16,
        ("max", T::F16) => AtomOp::MaxF16,
        ("min", T::Bf16) => AtomOp::MinBf16,
        ("max", T::Bf16) => AtomOp::MaxBf16,
        ("and", T::B64) => AtomOp::And,
        ("or", T::B64) => AtomOp::Or,
        ("xor", T::B64) => AtomOp::Xor,
        _ => return shared_reduction(op, ty),
    })
}

impl<'a> Decoder<'a> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`, after those words.
    pub(super) fn bulk(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>, reduce: bool) -> Result<Op> {
        self.program.uses_async = true;
        if m.take("commit_group") {
            Self::count(i, 0..=0)?;
            return Ok(Op::BulkCommit);
        }
        if m.take("wait_group") {
            let read = m.take("read");
            Self::count(i, 1..=1)?;
            let OperandKind::Int(n @ 0..=0xffff_ffff) = i.operands[0].kind else {
                return Self::type_error(&i.operands[0], "a count of groups");
            };
            let pending = n as u32;
            return Ok(Op::BulkWait { pending, read });
        }
        let prefetch = m.take("prefetch");
        if m.take("tensor") {
            self.program.has_tensor_copies = true;
            return self.tensor(i, m, reduce, prefetch);
        }
        if prefetch {
            if !m.take("L2") || !m.take("global") {
                return m.invalid("`.prefetch.L2.global` is the only form");
            }
            let policy = hints(m)?;
            let n = 2 + usize::from(policy);
            Self::count(i, n..=n)?;
            self.address(&i.operands[0])?;
            self.src(&i.operands[1], ScalarType::U32)?;
            self.policy(i, policy)?;
            return Ok(Op::Nop);
        }
        let (to, from) = (m.find(side), m.find(side));
        let (Some(to), Some(from)) = (to, from) else {
            return m.invalid("two of .global, .shared::cta, .shared::cluster are needed");
        };
        let known = match (to, from) {
            (BulkSide::Block | BulkSide::Cluster, BulkSide::Global) => !reduce,
            (BulkSide::Cluster | BulkSide::Global, BulkSide::Block) => true,
            _ => false,
        };
        if !known {
            return m.invalid("this direction");
        }
        Self::completion(m, to == BulkSide::Global)?;
        let multicast = m.take("multicast::cluster");
        if multicast && (to, from) != (BulkSide::Cluster, BulkSide::Global) {
            return m.invalid(".multicast::cluster is for copies from .global to .shared::cluster");
        }
        if m.take("cp_mask") {
            return m.unsupported("byte masks need sm_100");
        }
        let policy = hints(m)?;
        let reduction = if reduce {
            Some(Self::bulk_reduction(m, to == BulkSide::Global)?)
        } else {
            None
        };
        let has_barrier = to != BulkSide::Global;
        let n = 3 + usize::from(has_barrier) + usize::from(multicast) + usize::from(policy);
        Self::count(i, n..=n)?;
        let dst = self.address(&i.operands[0])?;
        let src = self.address(&i.operands[1])?;
        let size = self.src(&i.operands[2], ScalarType::U32)?;
        let mbarrier = if has_barrier {
            Some(self.address(&i.operands[3])?)
        } else {
            None
        };
        let mask = if multicast {
            self.src(&i.operands[4], ScalarType::U16)?
        } else {
            NONE
        };
        self.policy(i, policy)?;
        Ok(Op::Bulk(Box::new(Bulk {
            to,
            from,
            dst,
            src,
            size,
            mbarrier,
            mask,
            reduction,
        })))
    }

    /// The completion mechanism that goes with the destination.
    fn completion(m: &mut Mods<'a>, to_global: bool) -> Result<()> {
        let (name, what) = if to_global {
            ("bulk_group", ".bulk_group")
        } else {
            (
                "mbarrier::complete_tx::bytes",
                ".mbarrier::complete_tx::bytes",
            )
        };
        if m.take(name) {
            return Ok(());
        }
        m.invalid(&format!("{what} is needed with this destination"))
    }

    fn policy(&mut self, i: &InstrAst<'a>, policy: bool) -> Result<()> {
        if policy && let Some(o) = i.operands.last() {
            self.src(o, ScalarType::B64)?;
        }
        Ok(())
    }

    fn bulk_reduction(m: &mut Mods<'a>, global: bool) -> Result<Reduction> {
        let noftz = m.take("noftz");
        let op = m.find(operation);
        let ty = m.ty()?;
        let found = op.and_then(|op| {
            if global {
                global_reduction(op, ty)
            } else {
                shared_reduction(op, ty)
            }
        });
        let Some(found) = found else {
            return m.invalid("this operation on this type");
        };
        let needs = matches!(found, AtomOp::AddF16 | AtomOp::AddBf16);
        if needs != noftz {
            return m.invalid(".noftz goes with sums of halves, which need it");
        }
        Ok(Reduction {
            op: found,
            bytes: ty.bytes() as u8,
        })
    }

    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` and the prefetch, after those words.
    fn tensor(
        &mut self,
        i: &InstrAst<'a>,
        m: &mut Mods<'a>,
        reduce: bool,
        prefetch: bool,
    ) -> Result<Op> {
        let rank = m.find(|s| match s {
            "1d" => Some(1usize),
            "2d" => Some(2),
            "3d" => Some(3),
            "4d" => Some(4),
            "5d" => Some(5),
            _ => None,
        });
        let Some(rank) = rank else {
            return m.invalid("one of .1d to .5d is needed");
        };
        let (store, cluster) = if prefetch {
            if !m.take("L2") || !m.take("global") {
                return m.invalid("`.L2.global` is needed");
            }
            (false, false)
        } else {
            match (m.find(side), m.find(side)) {
                (Some(BulkSide::Global), Some(BulkSide::Block)) => (true, false),
                (Some(BulkSide::Cluster), Some(BulkSide::Global)) if !reduce => (false, true),
                (Some(BulkSide::Block), Some(BulkSide::Global)) if !reduce => (false, false),
                _ => return m.invalid("this direction"),
            }
        };
        let mode = m.find(|s| (s.starts_with("tile") || s.starts_with("im2col")).then_some(s));
        let im2col = match mode {
            None | Some("tile") => false,
            Some("im2col") if !store || reduce => true,
            Some("im2col_no_offs") if store => true,
            Some("im2col") => return m.invalid("a store is .im2col_no_offs"),
            Some(_) => return m.unsupported("this mode needs sm_100"),
        };
        if im2col && rank < 3 {
            return m.invalid("im2col needs 3 to 5 dimensions");
        }
        if !prefetch {
            Self::completion(m, store)?;
        }
        if m.find(|s| s.starts_with("cta_group").then_some(()))
            .is_some()
        {
            return m.unsupported(".cta_group needs sm_100");
        }
        let multicast = m.take("multicast::cluster");
        if multicast && !cluster {
            return m.invalid(".multicast::cluster is for copies to .shared::cluster");
        }
        let policy = hints(m)?;
        let reduction = if reduce {
            let op = m.find(operation);
            Some(match op {
                Some("add") => AtomOp::Add,
                Some("min") => AtomOp::MinU,
                Some("max") => AtomOp::MaxU,
                Some("inc") => AtomOp::Inc,
                Some("dec") => AtomOp::Dec,
                Some("and") => AtomOp::And,
                Some("or") => AtomOp::Or,
                Some("xor") => AtomOp::Xor,
                _ => return m.invalid("an operation is needed"),
            })
        } else {
            None
        };
        let has_offsets = im2col && !store;
        let sides = match (prefetch, store) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 3,
        };
        let n = sides + usize::from(has_offsets) + usize::from(multicast) + usize::from(policy);
        Self::count(i, n..=n)?;
        let at = usize::from(!store && !prefetch);
        let (map, coords) = self.tensor_address(&i.operands[at], rank)?;
        let shared = match (prefetch, store) {
            (true, _) => Address {
                base: None,
                offset: 0,
            },
            (_, true) => self.address(&i.operands[1])?,
            _ => self.address(&i.operands[0])?,
        };
        let mbarrier = if store || prefetch {
            None
        } else {
            Some(self.address(&i.operands[2])?)
        };
        let mut next = sides;
        let mut offsets = Vec::new();
        if has_offsets {
            let o = &i.operands[next];
            let OperandKind::Vector(list) = &o.kind else {
                return Self::type_error(o, "the offsets in braces");
            };
            if list.len() != rank - 2 {
                return Self::type_error(o, &format!("{} offsets in braces", rank - 2));
            }
            for o in list {
                offsets.push(self.src(o, ScalarType::U16)?);
            }
            next += 1;
        }
        let mask = if multicast {
            self.src(&i.operands[next], ScalarType::U16)?
        } else {
            NONE
        };
        self.policy(i, policy)?;
        Ok(Op::Tensor(Box::new(TensorCopy {
            store,
            cluster,
            prefetch,
            im2col,
            map,
            coords,
            offsets,
            shared,
            mbarrier,
            mask,
            reduction,
        })))
    }

    /// `[map, {coordinates}]`.
    fn tensor_address(&mut self, o: &OperandAst<'a>, rank: usize) -> Result<(Address, Vec<Row>)> {
        let OperandKind::Address {
            base,
            offset,
            coords,
        } = &o.kind
        else {
            return Self::type_error(o, "a tensor map and coordinates in brackets");
        };
        if coords.len() != rank {
            return Self::type_error(o, &format!("{rank} coordinates in braces"));
        }
        let plain = OperandAst {
            span: o.span,
            kind: OperandKind::Address {
                base: *base,
                offset: *offset,
                coords: Vec::new(),
            },
        };
        let mut map = self.address(&plain)?;
        // A parameter that is named itself: its generic address.
        let named = base.and_then(|name| self.lookup(name));
        if let Some((_, Symbol::Variable { space, .. })) = named
            && space == Space::Param
        {
            map.offset = map.offset.wrapping_add(PARAM_WINDOW as i64);
        }
        let rows = coords
            .iter()
            .map(|c| self.src(c, ScalarType::S32))
            .collect::<Result<Vec<_>>>()?;
        Ok((map, rows))
    }

    /// `tensormap.replace` and `tensormap.cp_fenceproxy` (PTX ISA, sections 9.7.9.26 and 9.7.13.16).
    pub(super) fn tensormap(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        if m.take("cp_fenceproxy") {
            let words = [
                "global",
                "shared::cta",
                "tensormap::generic",
                "release",
                "sync",
                "aligned",
            ];
            if !words.iter().all(|w| m.take(w)) {
                return m.invalid("`.global.shared::cta.tensormap::generic.release`, a scope and `.sync.aligned` are needed");
            }
            if m.find(|s| matches!(s, "cta" | "cluster" | "gpu" | "sys").then_some(()))
                .is_none()
            {
                return m.invalid("a scope is needed");
            }
            Self::count(i, 3..=3)?;
            if !matches!(i.operands[2].kind, OperandKind::Int(128)) {
                return Self::type_error(&i.operands[2], "128, the size of a tensor map");
            }
            let dst = self.address(&i.operands[0])?;
            let src = self.address(&i.operands[1])?;
            return Ok(Op::TensormapCopy { dst, src });
        }
        if !m.take("replace") || !m.take("tile") || !m.take("b1024") {
            return m.invalid("`.replace.tile`, a field and `.b1024` are needed");
        }
        let field = m.find(|s| {
            let known = matches!(
                s,
                "global_address"
                    | "rank"
                    | "box_dim"
                    | "global_dim"
                    | "global_stride"
                    | "element_stride"
                    | "elemtype"
                    | "interleave_layout"
                    | "swizzle_mode"
                    | "swizzle_atomicity"
                    | "fill_mode"
            );
            known.then_some(s)
        });
        let Some(field) = field else {
            return m.invalid("this field");
        };
        let space = m.find(super::memory::space_of).unwrap_or(Space::Generic);
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return m.invalid("the space is .global or .shared::cta");
        }
        let wide = matches!(field, "global_address" | "global_stride");
        let ty = m.ty()?;
        if ty.bits() != if wide { 64 } else { 32 } {
            return m.invalid("the type is .b64 for addresses and strides, else .b32");
        }
        let has_ordinal = matches!(
            field,
            "box_dim" | "global_dim" | "global_stride" | "element_stride"
        );
        let n = 2 + usize::from(has_ordinal);
        Self::count(i, n..=n)?;
        let mut ordinal = 0;
        if has_ordinal {
            let OperandKind::Int(k @ 0..=4) = i.operands[1].kind else {
                return Self::type_error(&i.operands[1], "a dimension from 0 to 4");
            };
            ordinal = k as u8;
        }
        let field = match field {
            "global_address" => MapField::Address,
            "rank" => MapField::Rank,
            "box_dim" => MapField::Box(ordinal),
            "global_dim" => MapField::Size(ordinal),
            "global_stride" if ordinal < 4 => MapField::Stride(ordinal),
            "element_stride" => MapField::Step(ordinal),
            "elemtype" => MapField::Element,
            "interleave_layout" => MapField::Interleave,
            "swizzle_mode" => MapField::Swizzle,
            "swizzle_atomicity" => MapField::Atomicity,
            "fill_mode" => MapField::Fill,
            _ => return Self::type_error(&i.operands[1], "a stride from 0 to 3"),
        };
        let value = &i.operands[n - 1];
        let constant = matches!(
            field,
            MapField::Element
                | MapField::Interleave
                | MapField::Swizzle
                | MapField::Atomicity
                | MapField::Fill
        );
        if constant && !matches!(value.kind, OperandKind::Int(0..=15)) {
            return Self::type_error(value, "an immediate from 0 to 15");
        }
        let address = self.address(&i.operands[0])?;
        let value = self.src_reg(value, ty, false)?;
        self.grain(space, 4);
        Ok(Op::TensormapReplace(Box::new(TensormapReplace {
            field,
            space,
            address,
            value,
        })))
    }

    /// `st.async` and `red.async`.
    pub(super) fn store_async(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        self.program.uses_async = true;
        let red = i.name == "red";
        m.take("async");
        let orders = m.take(if red { "relaxed" } else { "weak" });
        let scope = m.take("cluster");
        if red && orders != scope {
            return m.invalid("`.relaxed.cluster` go together");
        }
        let space = if m.take("shared::cluster") {
            Space::Cluster
        } else if m.list.iter().any(|(s, _)| matches!(*s, "global" | "mmio")) {
            return m.unsupported("stores to .global need sm_100");
        } else {
            Space::Generic
        };
        if !m.take("mbarrier::complete_tx::bytes") && red {
            return m.invalid(".mbarrier::complete_tx::bytes is needed");
        }
        let count = if red {
            1
        } else {
            m.find(|s| match s {
                "v2" => Some(2u8),
                "v4" => Some(4),
                _ => None,
            })
            .unwrap_or(1)
        };
        let op = if red { m.find(operation) } else { None };
        let ty = m.ty()?;
        let reduction = if red {
            let Some(op) = op.and_then(|op| shared_reduction(op, ty)) else {
                return m.invalid("this operation on this type");
            };
            let bytes = ty.bytes() as u8;
            Some(Reduction { op, bytes })
        } else {
            None
        };
        if !matches!(ty.bits(), 32 | 64) || u32::from(count) * ty.bytes() > 16 {
            return m.invalid("32 or 64 bits, and at most 16 bytes in all");
        }
        Self::count(i, 3..=3)?;
        let address = self.address(&i.operands[0])?;
        let list = match &i.operands[1].kind {
            OperandKind::Vector(v) if v.len() == usize::from(count) => v.as_slice(),
            OperandKind::Vector(_) => {
                return Self::type_error(&i.operands[1], "as many registers as the vector has");
            }
            _ if count > 1 => {
                return Self::type_error(&i.operands[1], "registers in braces");
            }
            _ => std::slice::from_ref(&i.operands[1]),
        };
        let mut regs = [Reg {
            file: File::R32,
            row: NONE,
        }; 4];
        for (reg, o) in regs.iter_mut().zip(list) {
            *reg = self.src_reg(o, ty, false)?;
        }
        let mbarrier = self.address(&i.operands[2])?;
        self.grain(Space::Shared, ty.bytes());
        Ok(Op::StoreAsync(Box::new(StoreAsync {
            address,
            mbarrier,
            space,
            bytes: ty.bytes() as u8,
            count,
            regs,
            reduction,
        })))
    }
}
