//! Decoding of packed integers: `add.s16x2` and its kin, the video instructions, `cvt.pack` (PTX ISA, sections 9.7.1, 9.7.9.22, 9.7.18).

use super::{Decoder, Mods, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind};
use crate::ir::{Cmp, IntOp, Join, NONE, Op, Row, Video, VideoOp};
use crate::types::ScalarType;

/// All of a register, as the part that a scalar video instruction takes or writes.
const WHOLE: u8 = 6;

impl<'a> Decoder<'a> {
    /// `add`, `sub`, `min`, `max`, `neg` of `.u16x2` and `.s16x2`; `None` for other types.
    pub(super) fn packed16(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let signed = match (m.take("s16x2"), m.take("u16x2")) {
            (false, false) => return Ok(None),
            (signed, _) => signed,
        };
        let relu = signed && m.take("relu");
        let (f, n) = match (i.name, signed, relu) {
            ("add", _, false) => (IntOp::Add, 2),
            ("sub", _, false) => (IntOp::Sub, 2),
            ("min", false, _) => (IntOp::MinU, 2),
            ("max", false, _) => (IntOp::MaxU, 2),
            ("min", true, false) => (IntOp::MinS, 2),
            ("max", true, false) => (IntOp::MaxS, 2),
            ("min", ..) => (IntOp::MinRelu, 2),
            ("max", ..) => (IntOp::MaxRelu, 2),
            ("neg", true, false) => (IntOp::Neg, 1),
            _ => return m.invalid("this operation on packed integers"),
        };
        Self::no_constants(i)?;
        let (d, [a, b, _]) = self.operands(i, ScalarType::B32, n)?;
        Ok(Some(Op::Packed16 { f, signed, d, a, b }))
    }

    /// `cvt.pack`.
    pub(super) fn cvt_pack(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Op> {
        let saturates = m.take("sat");
        let narrow = m.find(|s| {
            Some(match s {
                "u2" => (false, 2u8),
                "s2" => (true, 2),
                "u4" => (false, 4),
                "s4" => (true, 4),
                "u8" => (false, 8),
                "s8" => (true, 8),
                "u16" => (false, 16),
                "s16" => (true, 16),
                _ => return None,
            })
        });
        let (true, Some((signed, bits)), true) = (saturates, narrow, m.take("s32")) else {
            return m.invalid("it is cvt.pack.sat.TYPE.s32");
        };
        let joins = m.take("b32");
        if joins == (bits == 16) {
            return m.invalid("16-bit types take two operands, narrower ones three and .b32");
        }
        let n = if joins { 4 } else { 3 };
        Self::count(i, n..=n)?;
        let a = self.src(&i.operands[1], ScalarType::S32)?;
        let b = self.src(&i.operands[2], ScalarType::S32)?;
        let c = if joins {
            self.src(&i.operands[3], ScalarType::B32)?
        } else {
            NONE
        };
        let d = self.dst_some(&i.operands[0], ScalarType::B32)?;
        Ok(Op::CvtPack {
            signed,
            bits,
            d,
            a,
            b,
            c,
        })
    }

    /// A video instruction, if `i` is one.
    /// Sources that must be registers.
    fn no_constants(i: &InstrAst<'a>) -> Result<()> {
        let constant = |o: &&OperandAst<'a>| matches!(o.kind, OperandKind::Int(_));
        match i.operands.iter().find(constant) {
            Some(o) => Self::type_error(o, "a register, as packed numbers have no constants"),
            None => Ok(()),
        }
    }

    pub(super) fn video(&mut self, i: &InstrAst<'a>, m: &mut Mods<'a>) -> Result<Option<Op>> {
        let (name, count) = match i.name.as_bytes().last() {
            Some(b'2') => (&i.name[..i.name.len() - 1], 2u8),
            Some(b'4') => (&i.name[..i.name.len() - 1], 4),
            _ => (i.name, 1),
        };
        let op = match (name, count) {
            ("vadd", _) => VideoOp::Add,
            ("vsub", _) => VideoOp::Sub,
            ("vabsdiff", _) => VideoOp::AbsDiff,
            ("vmin", _) => VideoOp::Min,
            ("vmax", _) => VideoOp::Max,
            ("vavrg", 2 | 4) => VideoOp::Average,
            ("vshl", 1) => VideoOp::Shl,
            ("vshr", 1) => VideoOp::Shr,
            ("vset", _) => VideoOp::Set(Cmp::Eq),
            ("vmad", 1) => VideoOp::Mad {
                shift: 0,
                plus_one: false,
            },
            _ => return Ok(None),
        };
        self.video_operands(i, m, op, count).map(Some)
    }

    fn video_operands(
        &mut self,
        i: &InstrAst<'a>,
        m: &mut Mods<'a>,
        op: VideoOp,
        count: u8,
    ) -> Result<Op> {
        let sign = |m: &mut Mods<'a>| match m.ty()? {
            ScalarType::S32 => Ok(true),
            ScalarType::U32 => Ok(false),
            _ => m.invalid("the types are .u32 or .s32"),
        };
        let mut op = op;
        let mut signed = [false; 3];
        if let VideoOp::Set(cmp) = &mut op {
            signed = [false, sign(m)?, sign(m)?];
            let found = m.find(|s| {
                Some(match s {
                    "eq" => Cmp::Eq,
                    "ne" => Cmp::Ne,
                    "lt" | "lo" => Cmp::Lt,
                    "le" | "ls" => Cmp::Le,
                    "gt" | "hi" => Cmp::Gt,
                    "ge" | "hs" => Cmp::Ge,
                    _ => return None,
                })
            });
            match found {
                Some(c) => *cmp = c,
                None => return m.invalid("a comparison operator is needed"),
            }
        } else {
            for s in &mut signed {
                *s = sign(m)?;
            }
        }
        let saturate = m.take("sat");
        if let VideoOp::Mad { shift, plus_one } = &mut op {
            *shift = m
                .find(|s| match s {
                    "shr7" => Some(7),
                    "shr15" => Some(15),
                    _ => None,
                })
                .unwrap_or(0);
            *plus_one = m.take("po");
        }
        let wraps = m.take("wrap");
        if matches!(op, VideoOp::Shl | VideoOp::Shr) && !wraps && !m.take("clamp") {
            return m.invalid("one of .clamp, .wrap is needed");
        }
        let mut join = m
            .find(|s| match s {
                "add" => Some(Join::Add),
                "min" if count == 1 => Some(Join::Min),
                "max" if count == 1 => Some(Join::Max),
                _ => None,
            })
            .unwrap_or(Join::None);
        Self::count(i, 3..=4)?;
        if count > 1 {
            Self::no_constants(i)?;
        }
        let (part, select) = if count == 1 {
            let part = Self::part(&i.operands[0])?;
            let select = [Self::part(&i.operands[1])?, Self::part(&i.operands[2])?];
            if part != WHOLE {
                join = Join::Merge;
            }
            (part, select.map(|p| [p; 4]))
        } else {
            if join == Join::None {
                join = Join::Merge;
            }
            let a = Self::elements(&i.operands[1], count, 0)?;
            let b = Self::elements(&i.operands[2], count, count)?;
            (Self::mask(&i.operands[0], count)?, [a, b])
        };
        let needs_c = join != Join::None || matches!(op, VideoOp::Mad { .. });
        let n = if needs_c { 4 } else { 3 };
        Self::count(i, n..=n)?;
        let a = self.plain_source(&i.operands[1])?;
        let b = self.plain_source(&i.operands[2])?;
        let c = if needs_c {
            self.plain_source(&i.operands[3])?
        } else {
            a
        };
        let d = self.dst_some(&Self::without_selector(&i.operands[0]), ScalarType::B32)?;
        if wraps {
            signed[2] = true;
        }
        Ok(Op::Video(Box::new(Video {
            op,
            count,
            signed,
            saturate,
            join,
            select,
            part,
            d,
            a,
            b,
            c,
        })))
    }

    fn without_selector(o: &OperandAst<'a>) -> OperandAst<'a> {
        match o.kind {
            OperandKind::Name { name, offset, .. } => OperandAst {
                span: o.span,
                kind: OperandKind::Name {
                    name,
                    dim: None,
                    offset,
                },
            },
            _ => o.clone(),
        }
    }

    fn plain_source(&mut self, o: &OperandAst<'a>) -> Result<Row> {
        self.src(&Self::without_selector(o), ScalarType::B32)
    }

    fn selector(o: &OperandAst<'a>) -> Option<&'a str> {
        match o.kind {
            OperandKind::Name { dim, .. } => dim,
            _ => None,
        }
    }

    /// The part that `.b0` to `.b3` and `.h0`, `.h1` select.
    fn part(o: &OperandAst<'a>) -> Result<u8> {
        Ok(match Self::selector(o) {
            None => WHOLE,
            Some("b0") => 0,
            Some("b1") => 1,
            Some("b2") => 2,
            Some("b3") => 3,
            Some("h0") => 4,
            Some("h1") => 5,
            Some(_) => return Self::type_error(o, "a selector of .b0 to .b3, .h0 or .h1"),
        })
    }

    /// The elements that `.h32` or `.b7654` select of a pair of registers, lowest first; those of the register itself by default.
    fn elements(o: &OperandAst<'a>, count: u8, first: u8) -> Result<[u8; 4]> {
        let mut out = [first, first + 1, first + 2, first + 3];
        let Some(text) = Self::selector(o) else {
            return Ok(out);
        };
        let letter = if count == 2 { 'h' } else { 'b' };
        let digits = text
            .strip_prefix(letter)
            .map(str::as_bytes)
            .unwrap_or_default();
        if digits.len() != usize::from(count) {
            return Self::type_error(o, &format!("a selector of {count} elements"));
        }
        for (e, digit) in out.iter_mut().zip(digits.iter().rev()) {
            if !(b'0'..b'0' + 2 * count).contains(digit) {
                return Self::type_error(o, &format!("elements 0 to {}", 2 * count - 1));
            }
            *e = digit - b'0';
        }
        Ok(out)
    }

    /// The elements that a destination selects, as bits; all by default.
    fn mask(o: &OperandAst<'a>, count: u8) -> Result<u8> {
        let Some(text) = Self::selector(o) else {
            return Ok((1 << count) - 1);
        };
        let letter = if count == 2 { 'h' } else { 'b' };
        let digits = text
            .strip_prefix(letter)
            .map(str::as_bytes)
            .unwrap_or_default();
        let mut mask = 0;
        for digit in digits {
            if !(b'0'..b'0' + count).contains(digit) {
                return Self::type_error(o, &format!("elements 0 to {}", count - 1));
            }
            mask |= 1 << (digit - b'0');
        }
        if mask == 0 {
            return Self::type_error(o, &format!("a mask of up to {count} elements"));
        }
        Ok(mask)
    }
}
