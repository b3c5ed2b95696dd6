//! Decoding of textures and surfaces (PTX ISA, sections 9.7.10 and 9.7.11).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{Address, NONE, Op, Outside, TextureAction, TextureOp, TextureQuery};
use crate::types::ScalarType;

impl<'a> Decoder<'a> {
    /// Decodes `i` if it is of this family.
    pub(super) fn texture(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let op = match i.name {
            "tex" => self.sample(i, m)?,
            "tld4" => self.gather(i, m)?,
            "suld" | "sust" => self.surface(i, m)?,
            "txq" | "suq" => self.query(i, m)?,
            _ => return Ok(None),
        };
        Ok(Some(Op::Texture(Box::new(op))))
    }

    /// Dimensions, and whether there are layers.
    fn geometry(m: &mut Mods<'a>) -> Result<(u8, bool)> {
        let known = m.find(|s| {
            Some(match s {
                "1d" => (1, false),
                "2d" => (2, false),
                "3d" => (3, false),
                "a1d" => (1, true),
                "a2d" => (2, true),
                _ => return None,
            })
        });
        match known {
            Some(geometry) => Ok(geometry),
            None if m
                .find(|s| matches!(s, "cube" | "acube" | "2dms" | "a2dms").then_some(()))
                .is_some() =>
            {
                m.unsupported("cube maps and multisample textures")
            }
            None => m.invalid("one of .1d, .2d, .3d, .a1d, .a2d is needed"),
        }
    }

    /// `[handle, {coordinates}]`: the handle and rows of the layer and the coordinates; the ISA pads three of them to four.
    fn texture_address(
        &mut self,
        m: &Mods<'a>,
        o: &OperandAst<'a>,
        (dims, layered): (u8, bool),
        ty: ScalarType,
    ) -> Result<(Address, Vec<u32>)> {
        let OperandKind::Address { coords, .. } = &o.kind else {
            return Self::type_error(o, "a texture and coordinates in brackets");
        };
        if coords.is_empty() {
            return m.unsupported("an explicit sampler; the emulator has unified mode only");
        }
        let count = usize::from(dims) + usize::from(layered);
        let padded = if count == 3 { 4 } else { count };
        if coords.len() != count && coords.len() != padded {
            return Self::type_error(o, &format!("{padded} coordinates in braces"));
        }
        let handle = self.handle(o)?;
        let mut rows = Vec::new();
        for (k, o) in coords.iter().take(count).enumerate() {
            let ty = if layered && k == 0 {
                ScalarType::U32
            } else {
                ty
            };
            // Layers and coordinates share one vector, whose registers may be of either type.
            let ty = match o.kind {
                OperandKind::Int(_) | OperandKind::F32(_) => ty,
                _ if layered => ScalarType::B32,
                _ => ty,
            };
            rows.push(self.bits32(o, ty)?);
        }
        Ok((handle, rows))
    }

    /// A 32-bit operand, whatever the type of its register.
    fn bits32(&mut self, o: &OperandAst<'a>, ty: ScalarType) -> Result<u32> {
        let immediate = matches!(
            o.kind,
            OperandKind::Int(_) | OperandKind::F32(_) | OperandKind::F64(_)
        );
        self.src(o, if immediate { ty } else { ScalarType::B32 })
    }

    /// The texture of an operand in brackets.
    fn handle(&mut self, o: &OperandAst<'a>) -> Result<Address> {
        let OperandKind::Address { base, offset, .. } = &o.kind else {
            return Self::type_error(o, "a texture in brackets");
        };
        let plain = OperandAst {
            span: o.span,
            kind: OperandKind::Address {
                base: *base,
                offset: *offset,
                coords: Vec::new(),
            },
        };
        self.address(&plain)
    }

    /// A vector operand of `n` registers, or one register.
    fn registers_in<'o>(o: &'o OperandAst<'a>, n: usize) -> Result<&'o [OperandAst<'a>]> {
        match &o.kind {
            OperandKind::Vector(list) if list.len() == n => Ok(list),
            OperandKind::Vector(_) => Self::type_error(o, &format!("{n} registers in braces")),
            _ if n == 1 => Ok(std::slice::from_ref(o)),
            _ => Self::type_error(o, &format!("{n} registers in braces")),
        }
    }

    fn sample(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<TextureOp> {
        let _ = m.take("base");
        // A texture has one level here, which any level of detail is.
        let extra = if m.take("level") {
            1
        } else if m.take("grad") {
            2
        } else {
            0
        };
        let geometry = Self::geometry(m)?;
        let halves = m.take("v2");
        if !halves && !m.take("v4") {
            return m.invalid(".v4, or .v2 with .f16x2, is needed");
        }
        let (dtype, ctype) = (m.ty()?, m.ty()?);
        let known = if halves {
            dtype == ScalarType::F16x2
        } else {
            matches!(dtype, ScalarType::U32 | ScalarType::S32 | ScalarType::F32)
        };
        if !known || !matches!(ctype, ScalarType::S32 | ScalarType::F32) {
            return m.invalid(
                "results are .u32, .s32 or .f32, or .v2.f16x2, and coordinates .s32 or .f32",
            );
        }
        self.lookup_of(i, m, geometry, extra, (dtype, ctype), |_| {
            TextureAction::Sample {
                float: ctype == ScalarType::F32,
            }
        })
    }

    fn gather(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<TextureOp> {
        let component = m.find(|s| ["r", "g", "b", "a"].iter().position(|c| *c == s));
        let Some(component) = component else {
            return m.invalid("one of .r, .g, .b, .a is needed");
        };
        let geometry = Self::geometry(m)?;
        if geometry.0 != 2 || !m.take("v4") {
            return m.invalid(".2d or .a2d and .v4 are needed");
        }
        let (dtype, ctype) = (m.ty()?, m.ty()?);
        if !matches!(dtype, ScalarType::U32 | ScalarType::S32 | ScalarType::F32)
            || ctype != ScalarType::F32
        {
            return m.invalid("results are .u32, .s32 or .f32, and coordinates .f32");
        }
        self.lookup_of(i, m, geometry, 0, (dtype, ctype), |_| {
            TextureAction::Gather {
                component: component as u8,
            }
        })
    }

    /// What `tex` and `tld4` share: destination, address, `extra` operands for the level of detail, offsets.
    fn lookup_of(
        &mut self,
        i: &InstrAst<'a>,
        m: &Mods<'a>,
        geometry: (u8, bool),
        extra: usize,
        (dtype, ctype): (ScalarType, ScalarType),
        action: impl Fn(u8) -> TextureAction,
    ) -> Result<TextureOp> {
        Self::count(i, 2 + extra..=4 + extra)?;
        let halves = dtype == ScalarType::F16x2;
        let (d, p) = match &i.operands[0].kind {
            OperandKind::Pair(d, p) => (&**d, Some(&**p)),
            _ => (&i.operands[0], None),
        };
        let (handle, coords) = self.texture_address(m, &i.operands[1], geometry, ctype)?;
        for o in &i.operands[2..2 + extra] {
            let list = match &o.kind {
                OperandKind::Vector(list) => list.as_slice(),
                _ => std::slice::from_ref(o),
            };
            for o in list {
                self.bits32(o, ScalarType::F32)?;
            }
        }
        let mut offsets = Vec::new();
        for o in &i.operands[2 + extra..] {
            let OperandKind::Vector(list) = &o.kind else {
                return m.unsupported("a depth comparison");
            };
            for o in list.iter().take(usize::from(geometry.0)) {
                offsets.push(self.bits32(o, ScalarType::S32)?);
            }
        }
        if !offsets.is_empty() && offsets.len() != usize::from(geometry.0) {
            return Self::type_error(
                &i.operands[2 + extra],
                &format!("{} offsets in braces", geometry.0),
            );
        }
        let mut regs = Vec::new();
        for o in Self::registers_in(d, if halves { 2 } else { 4 })? {
            regs.push(self.dst_reg(o, ScalarType::B32, false)?);
        }
        let resident = match p {
            Some(p) => self.dst(p, ScalarType::Pred)?,
            None => NONE,
        };
        Ok(TextureOp {
            action: action(0),
            dims: geometry.0,
            layered: geometry.1,
            handle,
            coords,
            offsets,
            regs,
            halves,
            float: halves || dtype == ScalarType::F32,
            resident,
        })
    }

    fn surface(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<TextureOp> {
        let store = i.name == "sust";
        if m.take("p") {
            return m.unsupported("formatted stores to surfaces");
        }
        if !m.take("b") {
            return m.invalid("`.b` is needed");
        }
        let geometry = Self::geometry(m)?;
        let _ = m.find(|s| matches!(s, "ca" | "cg" | "cs" | "cv" | "wb" | "wt").then_some(()));
        let n = m.find(|s| match s {
            "v2" => Some(2),
            "v4" => Some(4),
            _ => None,
        });
        let n = n.unwrap_or(1);
        let ty = m.ty()?;
        if !matches!(
            ty,
            ScalarType::B8 | ScalarType::B16 | ScalarType::B32 | ScalarType::B64
        ) || n as u32 * ty.bytes() > 16
        {
            return m.invalid("elements are .b8, .b16, .b32 or .b64, and at most 16 bytes in all");
        }
        let outside = m.find(|s| {
            Some(match s {
                "trap" => Outside::Trap,
                "clamp" => Outside::Clamp,
                "zero" => Outside::Zero,
                _ => return None,
            })
        });
        let Some(outside) = outside else {
            return m.invalid("one of .trap, .clamp, .zero is needed");
        };
        Self::count(i, 2..=2)?;
        let (at, data) = if store { (0, 1) } else { (1, 0) };
        let (handle, coords) =
            self.texture_address(m, &i.operands[at], geometry, ScalarType::S32)?;
        let mut regs = Vec::new();
        for o in Self::registers_in(&i.operands[data], n)? {
            regs.push(if store {
                self.src_reg(o, ty, true)?
            } else {
                self.dst_reg(o, ty, true)?
            });
        }
        let bytes = ty.bytes() as u8;
        Ok(TextureOp {
            action: if store {
                TextureAction::Store { bytes, outside }
            } else {
                TextureAction::Load { bytes, outside }
            },
            dims: geometry.0,
            layered: geometry.1,
            handle,
            coords,
            offsets: Vec::new(),
            regs,
            halves: false,
            float: false,
            resident: NONE,
        })
    }

    fn query(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<TextureOp> {
        use TextureQuery as Q;
        let level = m.take("level");
        let query = m.find(|s| {
            Some(match s {
                "width" => Q::Extent(0),
                "height" => Q::Extent(1),
                "depth" => Q::Extent(2),
                "array_size" => Q::Layers,
                "normalized_coords" => Q::Normalized,
                "filter_mode" => Q::Linear,
                "addr_mode_0" => Q::Mode(0),
                "addr_mode_1" => Q::Mode(1),
                "addr_mode_2" => Q::Mode(2),
                "num_mipmap_levels" | "num_samples" => Q::Levels,
                _ => return None,
            })
        });
        let Some(query) = query else {
            return m.unsupported("this query");
        };
        let ty = m.ty()?;
        Self::count(i, 2 + usize::from(level)..=2 + usize::from(level))?;
        let handle = self.handle(&i.operands[1])?;
        if level {
            self.bits32(&i.operands[2], ScalarType::S32)?;
        }
        let d = self.dst_reg(&i.operands[0], ty, false)?;
        Ok(TextureOp {
            action: TextureAction::Query(query),
            dims: 0,
            layered: false,
            handle,
            coords: Vec::new(),
            offsets: Vec::new(),
            regs: vec![d],
            halves: false,
            float: false,
            resident: NONE,
        })
    }
}
