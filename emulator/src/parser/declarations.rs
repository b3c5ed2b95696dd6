//! Declarations: registers, and variables of every memory space with their dimensions and initialisers (PTX ISA, chapter 5).

use super::{MAX_VARIABLE_BYTES, Parser, Result};
use crate::ast::{Formal, Init, OperandKind, Registers, Space, Stmt, Variable};
use crate::error::ParseErrorKind as Kind;
use crate::lexer::Tok;
use crate::types::ScalarType;

impl<'a> Parser<'a> {
    pub(super) fn registers(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        self.pos += 1;
        let (ty, vector) = self.register_type()?;
        loop {
            let (name, span) = self.word("a register name")?;
            let mut count = None;
            if self.eat('<') {
                count = Some(self.int32()?);
                self.expect('>')?;
            }
            out.push(Stmt::Registers(Registers {
                name,
                span,
                ty,
                vector,
                count,
            }));
            if !self.eat(',') {
                return self.expect(';');
            }
        }
    }

    /// The type of a register and its elements; the vector may stand before the type or after it.
    fn register_type(&mut self) -> Result<(ScalarType, u8)> {
        let mut vector = self.vector();
        let ty = self.ty()?;
        if vector == 1 {
            vector = self.vector();
        }
        Ok((ty, vector))
    }

    /// `.v2`, `.v4` or nothing: 2, 4 or 1.
    fn vector(&mut self) -> u8 {
        let n = match self.peek() {
            Tok::Dot("v2") => 2,
            Tok::Dot("v4") => 4,
            _ => return 1,
        };
        self.pos += 1;
        n
    }

    /// The formal parameters in parentheses of a function or of a prototype.
    pub(super) fn formals(&mut self) -> Result<Vec<Formal<'a>>> {
        let mut all = Vec::new();
        self.expect('(')?;
        while !self.eat(')') {
            if self.eat_dot("reg") {
                let (ty, vector) = self.register_type()?;
                let (name, span) = self.word("a parameter name")?;
                all.push(Formal::Register(Registers {
                    name,
                    span,
                    ty,
                    vector,
                    count: None,
                }));
            } else if self.eat_dot("param") {
                all.push(Formal::Param(self.variable(Space::Param, true)?));
            } else {
                return self.unexpected("`.param`, `.reg` or `)`");
            }
            if !self.eat(',') && !self.is(')') {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(all)
    }

    /// A declaration of one or more variables, from its space to its semicolon.
    pub(super) fn variables(&mut self, is_extern: bool) -> Result<Vec<Variable<'a>>> {
        let space = match self.peek() {
            Tok::Dot("global" | "tex") => Space::Global,
            Tok::Dot("const") => Space::Const,
            Tok::Dot("shared" | "shared::cta") => Space::Shared,
            Tok::Dot("local") => Space::Local,
            Tok::Dot("param") => Space::Param,
            _ => return self.unexpected("a state space"),
        };
        self.pos += 1;
        let first = self.variable(space, is_extern)?;
        let (ty, align, vector) = (first.ty, first.align, first.vector);
        let is_managed = first.is_managed;
        let mut all = vec![first];
        while self.eat(',') {
            let (name, span) = self.word("a variable name")?;
            all.push(self.variable_tail(Variable {
                name,
                span,
                space,
                ty,
                vector,
                align,
                dims: 0,
                size: None,
                is_extern,
                is_managed,
                is_pointer: false,
                init: Vec::new(),
            })?);
        }
        self.expect(';')?;
        Ok(all)
    }

    /// One variable, from after its space.
    pub(super) fn variable(&mut self, space: Space, is_extern: bool) -> Result<Variable<'a>> {
        let mut align = None;
        let mut vector = 1u8;
        let mut ty = None;
        let mut is_pointer = false;
        let mut is_managed = false;
        loop {
            let span = self.span();
            match self.peek() {
                Tok::Dot("align") => {
                    self.pos += 1;
                    let a = self.int32()?;
                    if !a.is_power_of_two() || a > 65_536 {
                        return Err(span.error(Kind::OutOfRange(format!("alignment {a}"))));
                    }
                    // `.ptr … .align` speaks of the pointee.
                    if !is_pointer {
                        align = Some(a);
                    }
                }
                Tok::Dot("ptr") => {
                    self.pos += 1;
                    is_pointer = true;
                    if let Tok::Dot("global" | "shared" | "local" | "const" | "generic") =
                        self.peek()
                    {
                        self.pos += 1;
                    }
                }
                Tok::Dot("v2") => {
                    self.pos += 1;
                    vector = 2;
                }
                Tok::Dot("v4") => {
                    self.pos += 1;
                    vector = 4;
                }
                // `.attribute(.managed)`; others have no meaning here.
                Tok::Dot("attribute") => {
                    let start = self.pos + 1;
                    self.pos = start;
                    self.skip_parentheses()?;
                    let inside = &self.tokens[start..self.pos];
                    is_managed |= inside.iter().any(|t| t.tok == Tok::Dot("managed"));
                }
                // Handles of textures and surfaces can be declared; the instructions that use them are what is missing.
                Tok::Dot("texref" | "samplerref" | "surfref") if ty.is_none() => {
                    self.pos += 1;
                    ty = Some(ScalarType::B64);
                }
                Tok::Dot(w) => match ScalarType::from_name(w) {
                    Some(t) if ty.is_none() && t != ScalarType::Pred => {
                        ty = Some(t);
                        self.pos += 1;
                    }
                    _ => return Err(span.error(Kind::UnknownDirective(format!(".{w}")))),
                },
                _ => break,
            }
        }
        let Some(ty) = ty else {
            return self.unexpected("a type");
        };
        let (name, span) = self.word("a variable name")?;
        let natural = ty.bytes() * u32::from(vector);
        self.variable_tail(Variable {
            name,
            span,
            space,
            ty,
            vector,
            align: align.unwrap_or(natural).max(1),
            dims: 0,
            size: None,
            is_extern,
            is_managed,
            is_pointer,
            init: Vec::new(),
        })
    }

    /// What stands after `=`: one value or nested lists, whose nesting matches the dimensions; short lists leave zeros.
    fn initialisers(&mut self, v: &mut Variable<'a>, extents: &[u64]) -> Result<()> {
        let mut extents = extents.to_vec();
        if v.vector > 1 {
            extents.push(u64::from(v.vector));
        }
        // For each open brace: how many elements the next item of its list spans, and where the list starts.
        let mut open: Vec<(u64, u64)> = Vec::new();
        let mut at = 0u64;
        loop {
            if self.eat('{') {
                let inner: u64 = extents.iter().skip(open.len() + 1).product::<u64>().max(1);
                open.push((inner, at));
                if open.len() > 16 {
                    return self.unexpected("at most 16 nested lists");
                }
                if !self.is('}') {
                    continue;
                }
            } else {
                let value = self.initialiser()?;
                v.init.push((at, value));
                at += 1;
                if v.init.len() as u64 > MAX_VARIABLE_BYTES {
                    return self.unexpected("fewer initialisers");
                }
            }
            // After an item: a comma goes on, a brace closes its list.
            loop {
                let Some(&(inner, start)) = open.last() else {
                    return Ok(());
                };
                if self.eat(',') && !self.is('}') {
                    at = start + (at - start).next_multiple_of(inner);
                    break;
                }
                self.expect('}')?;
                open.pop();
                // The whole list counts, however short.
                let span = open.last().map_or(0, |outer| outer.0);
                at = at.max(start + span);
            }
        }
    }

    /// One initialiser: a number, `name`, `name+4`, `generic(name)+4`, or `0xff00(…)` of these.
    fn initialiser(&mut self) -> Result<Init<'a>> {
        if let Tok::Int(mask) = self.peek()
            && self
                .tokens
                .get(self.pos + 1)
                .is_some_and(|t| t.tok == Tok::Punct('('))
        {
            let span = self.span();
            self.pos += 1;
            let shift = mask.trailing_zeros();
            if mask == 0 || !shift.is_multiple_of(8) || mask >> shift != 0xff {
                return Err(span.error(Kind::OutOfRange(format!(
                    "mask {mask:#x}; it selects one byte, such as 0xff00"
                ))));
            }
            self.expect('(')?;
            let inner = self.initialiser()?;
            self.expect(')')?;
            return Ok(match inner {
                Init::Int(v) => Init::Int((v as u64 >> shift & 0xff) as i64),
                Init::Symbol {
                    name, span, offset, ..
                } => Init::Symbol {
                    name,
                    span,
                    offset,
                    shift: Some(shift as u8),
                },
                Init::Float(_) => return self.unexpected("an integer or a name"),
            });
        }
        if let Tok::Word(word) = self.peek() {
            self.pos += 1;
            let (mut name, mut span, mut offset) = (word, self.tokens[self.pos - 1].span, 0);
            if word == "generic" && self.eat('(') {
                (name, span) = self.word("a variable")?;
                offset = self.offset()?;
                self.expect(')')?;
            }
            offset = self.offset()?.wrapping_add(offset);
            return Ok(Init::Symbol {
                name,
                span,
                offset,
                shift: None,
            });
        }
        Ok(match self.constant()? {
            OperandKind::F32(bits) => Init::Float(f64::from(f32::from_bits(bits))),
            OperandKind::F64(x) => Init::Float(x),
            OperandKind::Int(i) => Init::Int(i),
            _ => return self.unexpected("a number or a name"),
        })
    }

    /// The array dimensions and initialiser after a name.
    pub(super) fn variable_tail(&mut self, mut v: Variable<'a>) -> Result<Variable<'a>> {
        let span = self.span();
        let mut elements = Some(1u64);
        // Extents of the dimensions, 0 for an open one.
        let mut extents = Vec::new();
        if v.vector > 1 {
            elements = Some(u64::from(v.vector));
        }
        while self.eat('[') {
            if self.eat(']') {
                elements = None;
                extents.push(0);
                continue;
            }
            let n = self.constant_int()? as u64;
            extents.push(n);
            self.expect(']')?;
            elements = match elements {
                Some(e) => match e.checked_mul(n).filter(|&t| t <= MAX_VARIABLE_BYTES) {
                    Some(t) => Some(t),
                    None => {
                        return Err(
                            span.error(Kind::OutOfRange(format!("{n} elements of `{}`", v.name)))
                        );
                    }
                },
                None => None,
            };
        }
        v.dims = extents.len().min(255) as u8;
        let closed = extents
            .iter()
            .filter(|&&n| n != 0)
            .try_fold(1u64, |all, n| all.checked_mul(*n));
        if closed.is_none_or(|n| n > MAX_VARIABLE_BYTES) {
            return Err(span.error(Kind::OutOfRange(format!("the elements of `{}`", v.name))));
        }
        if self.eat('=') {
            self.initialisers(&mut v, &extents)?;
            let last = v.init.iter().map(|(at, _)| at + 1).max().unwrap_or(0);
            if elements.is_none() {
                // The open extent is the first: as many rows as the initialisers need.
                let row: u64 = extents.iter().skip(1).product::<u64>().max(1);
                elements = Some(last.next_multiple_of(row));
            }
            if elements.is_some_and(|e| last > e) {
                return Err(span.error(Kind::OutOfRange(format!(
                    "more initialisers than elements in `{}`",
                    v.name
                ))));
            }
        }
        v.size = match elements {
            Some(e) => Some(e * u64::from(v.ty.bytes())),
            None if v.is_extern || v.space == Space::Param => None,
            None => return Err(span.error(Kind::Missing("the size of the array"))),
        };
        Ok(v)
    }
}
