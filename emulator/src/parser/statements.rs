//! Labels, instructions and their operands (PTX ISA, sections 4.3 and 6.4).

use super::{Parser, Result};
use crate::ast::{InstrAst, OperandAst, OperandKind, Stmt};
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
                if directive == "callprototype" {
                    self.pos += 1;
                    return self.prototype(out);
                }
                let is_call = directive == "calltargets";
                self.pos += 1;
                let mut targets = vec![self.word("a label")?];
                while self.eat(',') {
                    targets.push(self.word("a label")?);
                }
                self.expect(';')?;
                out.push(if is_call {
                    Stmt::CallShape
                } else {
                    Stmt::BranchTargets(name, span, targets)
                });
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
                // Parentheses are lists in calls, and group constant expressions elsewhere.
                operands.push(if name == "call" && self.is('(') {
                    self.list()?
                } else {
                    self.operand()?
                });
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

    /// The rest of `.callprototype`: `(returns) _ (parameters);`, perhaps with attributes.
    fn prototype(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        if self.is('(') {
            self.formals()?;
        }
        self.word("`_`")?;
        if self.is('(') {
            self.formals()?;
        }
        self.attributes()?;
        self.expect(';')?;
        out.push(Stmt::CallShape);
        Ok(())
    }

    /// `(a, b)`.
    fn list(&mut self) -> Result<OperandAst<'a>> {
        let span = self.span();
        self.expect('(')?;
        let mut all = Vec::new();
        while !self.eat(')') {
            all.push(self.scalar()?);
            if !self.eat(',') && !self.is(')') {
                return self.unexpected("`,` or `)`");
            }
        }
        Ok(OperandAst {
            span,
            kind: OperandKind::List(all),
        })
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
            Tok::Punct('{') => {
                self.pos += 1;
                let mut all = Vec::new();
                while !self.eat('}') {
                    all.push(self.scalar()?);
                    if !self.eat(',') && !self.is('}') {
                        return self.unexpected("`,` or `}`");
                    }
                }
                OperandKind::Vector(all)
            }
            Tok::Punct('[') => {
                self.pos += 1;
                let address = self.address()?;
                self.expect(']')?;
                address
            }
            Tok::Punct('!')
                if self
                    .tokens
                    .get(self.pos + 1)
                    .is_some_and(|t| matches!(t.tok, Tok::Word(_))) =>
            {
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
                } else if self.eat('[') {
                    let (index, offset) = match self.peek() {
                        Tok::Word(register) => {
                            self.pos += 1;
                            (Some(register), self.offset()?)
                        }
                        _ => (None, self.constant_int()?),
                    };
                    self.expect(']')?;
                    let kind = OperandKind::Element {
                        array: name,
                        index,
                        offset,
                    };
                    return Ok(OperandAst { span, kind });
                }
                OperandKind::Name {
                    name,
                    dim,
                    offset: self.offset()?,
                }
            }
            Tok::Punct('-' | '+' | '~' | '!' | '(') | Tok::Int(_) | Tok::F32(_) | Tok::F64(_) => {
                self.constant()?
            }
            _ => return self.unexpected("an operand"),
        };
        Ok(OperandAst { span, kind })
    }

    /// `+4`, `-4`, `+-4`, `+4*2` or nothing.
    pub(super) fn offset(&mut self) -> Result<i64> {
        let mut total = 0i64;
        loop {
            let negative = match self.peek() {
                Tok::Punct('+') => false,
                Tok::Punct('-') => true,
                _ => return Ok(total),
            };
            self.pos += 1;
            let v = self.product()?;
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
            Tok::Int(_) | Tok::Punct('-' | '(') => (None, self.constant_int()?),
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
