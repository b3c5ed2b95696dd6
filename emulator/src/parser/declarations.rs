//! Declarations: registers, and variables of every memory space with their dimensions and initialisers (PTX ISA, chapter 5).

use super::{MAX_VARIABLE_BYTES, Parser, Result};
use crate::ast::{Init, Registers, Space, Stmt, Variable};
use crate::error::ParseErrorKind as Kind;
use crate::lexer::Tok;
use crate::types::ScalarType;

impl<'a> Parser<'a> {
    pub(super) fn registers(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        self.pos += 1;
        if let Tok::Dot("v2" | "v4") = self.peek() {
            let what = "vector registers; declare scalars and use {a,b}".to_owned();
            return Err(self.span().error(Kind::Unsupported(what)));
        }
        let ty = self.ty()?;
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
                count,
            }));
            if !self.eat(',') {
                return self.expect(';');
            }
        }
    }

    /// A declaration of one or more variables, from its space to its semicolon.
    pub(super) fn variables(&mut self, is_extern: bool) -> Result<Vec<Variable<'a>>> {
        let space = match self.peek() {
            Tok::Dot("global") => Space::Global,
            Tok::Dot("const") => Space::Const,
            Tok::Dot("shared" | "shared::cta") => Space::Shared,
            Tok::Dot("local") => Space::Local,
            Tok::Dot("param") => Space::Param,
            _ => return self.unexpected("a state space"),
        };
        self.pos += 1;
        let first = self.variable(space, is_extern)?;
        let (ty, align) = (first.ty, first.align);
        let mut all = vec![first];
        while self.eat(',') {
            let (name, span) = self.word("a variable name")?;
            all.push(self.variable_tail(Variable {
                name,
                span,
                space,
                ty,
                align,
                size: None,
                is_extern,
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
        let mut vector = 1;
        let mut ty = None;
        let mut is_pointer = false;
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
        let natural = ty.bytes() * vector;
        let mut v = self.variable_tail(Variable {
            name,
            span,
            space,
            ty,
            align: align.unwrap_or(natural).max(1),
            size: None,
            is_extern,
            is_pointer,
            init: Vec::new(),
        })?;
        v.size = v.size.map(|s| s * u64::from(vector));
        Ok(v)
    }

    /// The array dimensions and initialiser after a name.
    pub(super) fn variable_tail(&mut self, mut v: Variable<'a>) -> Result<Variable<'a>> {
        let span = self.span();
        let mut elements = Some(1u64);
        let mut dims = 0;
        while self.eat('[') {
            dims += 1;
            if self.eat(']') {
                elements = None;
                continue;
            }
            let n = self.int()?;
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
        if self.eat('=') {
            let mut depth = 0u32;
            loop {
                match self.peek() {
                    Tok::Punct('{') => {
                        depth += 1;
                        self.pos += 1;
                    }
                    Tok::Punct('}') if depth > 0 => {
                        depth -= 1;
                        self.pos += 1;
                    }
                    Tok::Punct(',') if depth > 0 => self.pos += 1,
                    Tok::Punct('-') | Tok::Int(_) | Tok::F32(_) | Tok::F64(_) => {
                        let negative = self.eat('-');
                        v.init.push(match self.next().tok {
                            Tok::Int(i) if negative => Init::Int((i as i64).wrapping_neg()),
                            Tok::Int(i) => Init::Int(i as i64),
                            Tok::F32(b) => Init::Float(f64::from(f32::from_bits(b))),
                            Tok::F64(f) if negative => Init::Float(-f),
                            Tok::F64(f) => Init::Float(f),
                            _ => {
                                self.pos -= 1;
                                return self.unexpected("a number");
                            }
                        });
                    }
                    _ => return self.unexpected("a number or a brace"),
                }
                if depth == 0 {
                    break;
                }
            }
            if dims == 1 && elements.is_none() {
                elements = Some(v.init.len() as u64);
            }
            if elements.is_some_and(|e| (v.init.len() as u64) > e) {
                return Err(span.error(Kind::OutOfRange(format!(
                    "more initialisers than elements in `{}`",
                    v.name
                ))));
            }
        }
        v.size = match elements {
            Some(e) => Some(e * u64::from(v.ty.bytes())),
            None if v.is_extern => None,
            None => return Err(span.error(Kind::Missing("the size of the array"))),
        };
        Ok(v)
    }
}
