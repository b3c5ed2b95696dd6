//! Labels, instructions and their operands (PTX ISA, sections 4.3 and 6.4).

use super::{Parser, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind, Stmt};
use crate::error::ParseErrorKind as Kind;
use crate::lexer::Tok;

impl<'a> Parser<'a> {
    /// A label, `.branchtargets` or instruction.
    pub(super) fn statement(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        let mut guard = None;
        if self.eat('@') {
            let negated = self.eat('!');
            let (name, span) = self.word("a predicate register")?;
            guard = Some((name, negated, span));
        }
        let (name, span) = self.word("an instruction")?;
        if guard.is_none() && self.eat(':') {
            if let Tok::Dot(directive @ ("branchtargets" | "calltargets" | "callprototype")) =
                self.peek()
            {
                if directive != "branchtargets" {
                    return Err(self
                        .span()
                        .error(Kind::Unsupported(format!(".{directive}"))));
                }
                self.pos += 1;
                let mut targets = vec![self.word("a label")?];
                while self.eat(',') {
                    targets.push(self.word("a label")?);
                }
                self.expect(';')?;
                out.push(Stmt::BranchTargets(name, span, targets));
                return Ok(());
            }
            out.push(Stmt::Label(name, span));
            return Ok(());
        }
        let mut mods = Vec::new();
        while let Tok::Dot(m) = self.peek() {
            mods.push((m, self.span()));
            self.pos += 1;
        }
        let mut operands = Vec::new();
        if !self.is(';') {
            loop {
                operands.push(self.operand()?);
                if !self.eat(',') {
                    break;
                }
            }
        }
        if !self.eat(';') {
            return self.unexpected("`,` or `;`");
        }
        out.push(Stmt::Instr(InstrAst {
            span,
            guard,
            name,
            mods,
            operands,
        }));
        Ok(())
    }

    pub(super) fn operand(&mut self) -> Result<OperandAst<'a>> {
        let first = self.simple_operand()?;
        if self.eat('|') {
            let second = self.simple_operand()?;
            return Ok(OperandAst {
                span: first.span,
                kind: OperandKind::Pair(Box::new(first), Box::new(second)),
            });
        }
        Ok(first)
    }

    pub(super) fn simple_operand(&mut self) -> Result<OperandAst<'a>> {
        let span = self.span();
        let kind = match self.peek() {
            Tok::Punct(c @ ('{' | '(')) => {
                self.pos += 1;
                let close = if c == '{' { '}' } else { ')' };
                let mut all = Vec::new();
                while !self.eat(close) {
                    let element = self.scalar()?;
                    all.push(element);
                    if !self.eat(',') && !self.is(close) {
                        return self.unexpected(&format!("`,` or `{close}`"));
                    }
                }
                if c == '{' {
                    OperandKind::Vector(all)
                } else {
                    OperandKind::List(all)
                }
            }
            Tok::Punct('[') => {
                self.pos += 1;
                let address = self.address()?;
                self.expect(']')?;
                address
            }
            Tok::Punct('!') => {
                self.pos += 1;
                OperandKind::Not(self.word("a predicate register")?.0)
            }
            _ => return self.scalar(),
        };
        Ok(OperandAst { span, kind })
    }

    /// A name or a number.
    pub(super) fn scalar(&mut self) -> Result<OperandAst<'a>> {
        let span = self.span();
        let kind = match self.peek() {
            Tok::Word("_") => {
                self.pos += 1;
                OperandKind::Sink
            }
            Tok::Word(name) => {
                self.pos += 1;
                let mut dim = None;
                if let Tok::Dot(d) = self.peek() {
                    dim = Some(d);
                    self.pos += 1;
                }
                OperandKind::Name {
                    name,
                    dim,
                    offset: self.offset()?,
                }
            }
            Tok::Punct('-') | Tok::Int(_) | Tok::F32(_) | Tok::F64(_) => {
                let negative = self.eat('-');
                match self.next().tok {
                    Tok::Int(v) if negative => OperandKind::Int((v as i64).wrapping_neg()),
                    Tok::Int(v) => OperandKind::Int(v as i64),
                    Tok::F32(b) if negative => OperandKind::F32(b ^ 0x8000_0000),
                    Tok::F32(b) => OperandKind::F32(b),
                    Tok::F64(v) if negative => OperandKind::F64(-v),
                    Tok::F64(v) => OperandKind::F64(v),
                    _ => {
                        self.pos -= 1;
                        return self.unexpected("a number");
                    }
                }
            }
            _ => return self.unexpected("an operand"),
        };
        Ok(OperandAst { span, kind })
    }

    /// `+4`, `-4`, `+-4` or nothing.
    pub(super) fn offset(&mut self) -> Result<i64> {
        let mut total = 0i64;
        loop {
            let negative = match self.peek() {
                Tok::Punct('+') => false,
                Tok::Punct('-') => true,
                _ => return Ok(total),
            };
            self.pos += 1;
            let negative = negative ^ self.eat('-');
            let v = self.int()? as i64;
            total = if negative {
                total.wrapping_sub(v)
            } else {
                total.wrapping_add(v)
            };
        }
    }

    pub(super) fn address(&mut self) -> Result<OperandKind<'a>> {
        let (base, offset) = match self.peek() {
            Tok::Word(name) => {
                self.pos += 1;
                (Some(name), self.offset()?)
            }
            Tok::Int(_) | Tok::Punct('-') => {
                let negative = self.eat('-');
                let v = self.int()? as i64;
                (None, if negative { v.wrapping_neg() } else { v })
            }
            _ => return self.unexpected("an address"),
        };
        let mut coords = Vec::new();
        if self.eat(',') {
            self.expect('{')?;
            while !self.eat('}') {
                coords.push(self.scalar()?);
                if !self.eat(',') && !self.is('}') {
                    return self.unexpected("`,` or `}`");
                }
            }
        }
        Ok(OperandKind::Address {
            base,
            offset,
            coords,
        })
    }
}
