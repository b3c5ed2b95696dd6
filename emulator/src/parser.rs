//! Tokens to the syntax tree (PTX ISA, chapters 4, 5, 6 and 11).
//!
//! Recursive descent with one token of look-ahead and no recursion on nesting. It accepts what assemblers accept around a kernel
//! (`.file`, `.loc`, `.section`, `.pragma`, performance directives) and ignores what has no meaning on a CPU. Names are
//! not resolved here. The first error ends it: PTX comes from generators, and one exact place is worth more than a list of
//! consequences.

use crate::ast::{
    Init, InstrAst, KernelAst, ModuleAst, OperandAst, OperandKind, Registers, Space, Stmt, Variable,
};
use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::lexer::{Span, Tok, Token, lex};
use crate::types::ScalarType;

type Result<T> = std::result::Result<T, ParseError>;

/// More elements than this in one declaration is refused: 1 GiB.
const MAX_VARIABLE_BYTES: u64 = 1 << 30;

/// The syntax tree of `text`.
pub(crate) fn parse(text: &str) -> Result<ModuleAst<'_>> {
    let tokens = lex(text)?;
    Parser { tokens, pos: 0 }.module()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    pos: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Tok<'a> {
        self.tokens[self.pos.min(self.tokens.len() - 1)].tok
    }

    fn span(&self) -> Span {
        self.tokens[self.pos.min(self.tokens.len() - 1)].span
    }

    fn next(&mut self) -> Token<'a> {
        let t = self.tokens[self.pos.min(self.tokens.len() - 1)];
        self.pos += 1;
        t
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = self.peek().describe();
        Err(self.span().error(Kind::Unexpected {
            expected: expected.to_owned(),
            found,
        }))
    }

    fn is(&self, c: char) -> bool {
        self.peek() == Tok::Punct(c)
    }

    fn eat(&mut self, c: char) -> bool {
        let yes = self.is(c);
        self.pos += usize::from(yes);
        yes
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c) {
            Ok(())
        } else {
            self.unexpected(&format!("`{c}`"))
        }
    }

    fn eat_dot(&mut self, word: &str) -> bool {
        let yes = self.peek() == Tok::Dot(word);
        self.pos += usize::from(yes);
        yes
    }

    fn word(&mut self, what: &str) -> Result<(&'a str, Span)> {
        let span = self.span();
        if let Tok::Word(w) = self.peek() {
            self.pos += 1;
            return Ok((w, span));
        }
        self.unexpected(what)
    }

    fn int(&mut self) -> Result<u64> {
        if let Tok::Int(v) = self.peek() {
            self.pos += 1;
            return Ok(v);
        }
        self.unexpected("an integer")
    }

    fn int32(&mut self) -> Result<u32> {
        let span = self.span();
        let v = self.int()?;
        u32::try_from(v)
            .map_err(|_| span.error(Kind::OutOfRange(format!("{v} does not fit in 32 bits"))))
    }

    fn ty(&mut self) -> Result<ScalarType> {
        if let Tok::Dot(w) = self.peek() {
            if let Some(t) = ScalarType::from_name(w) {
                self.pos += 1;
                return Ok(t);
            }
        }
        self.unexpected("a type")
    }

    /// Skips what stands on the rest of this line (`.loc`, `.file` end with the line).
    fn skip_line(&mut self) {
        let line = self.span().line;
        while self.span().line == line && self.peek() != Tok::End {
            self.pos += 1;
        }
    }

    /// Skips a balanced `{ … }`.
    fn skip_braces(&mut self) -> Result<()> {
        let open = self.span();
        self.expect('{')?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.next().tok {
                Tok::Punct('{') => depth += 1,
                Tok::Punct('}') => depth -= 1,
                Tok::End => return Err(open.error(Kind::Unterminated("the brace"))),
                _ => {}
            }
        }
        Ok(())
    }

    fn module(mut self) -> Result<ModuleAst<'a>> {
        let mut m = ModuleAst::default();
        let (mut has_version, mut has_target) = (false, false);
        loop {
            let span = self.span();
            match self.peek() {
                Tok::End => break,
                Tok::Punct(';') => self.pos += 1,
                Tok::Dot("version") => {
                    self.pos += 1;
                    has_version = true;
                    m.version = match self.next().tok {
                        Tok::F64(v) => format!("{v:.1}"),
                        Tok::Int(v) => v.to_string(),
                        _ => {
                            self.pos -= 1;
                            return self.unexpected("a version such as 8.0");
                        }
                    };
                }
                Tok::Dot("target") => {
                    self.pos += 1;
                    has_target = true;
                    m.target = self.word("a target such as sm_80")?.0.to_owned();
                    while self.eat(',') {
                        self.word("a target option")?;
                    }
                }
                Tok::Dot("address_size") => {
                    self.pos += 1;
                    let at = self.span();
                    if self.int()? != 64 {
                        return Err(
                            at.error(Kind::Unsupported(".address_size other than 64".to_owned()))
                        );
                    }
                }
                Tok::Dot("file") => self.skip_line(),
                Tok::Dot("section") => {
                    self.pos += 1;
                    while !self.is('{') {
                        if self.peek() == Tok::End {
                            return self.unexpected("`{`");
                        }
                        self.pos += 1;
                    }
                    self.skip_braces()?;
                }
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(
                    "visible" | "extern" | "weak" | "common" | "entry" | "func" | "global"
                    | "const" | "shared",
                ) => {
                    self.module_item(&mut m)?;
                }
                Tok::Dot(w) => return Err(span.error(Kind::UnknownDirective(format!(".{w}")))),
                _ => return self.unexpected("a directive"),
            }
        }
        if !has_version {
            return Err(Span { line: 1, column: 1 }.error(Kind::Missing("the .version directive")));
        }
        if !has_target {
            return Err(Span { line: 1, column: 1 }.error(Kind::Missing("the .target directive")));
        }
        Ok(m)
    }

    fn pragma(&mut self) -> Result<()> {
        self.pos += 1;
        loop {
            if !matches!(self.next().tok, Tok::Str(_)) {
                self.pos -= 1;
                return self.unexpected("a string");
            }
            if !self.eat(',') {
                return self.expect(';');
            }
        }
    }

    fn module_item(&mut self, m: &mut ModuleAst<'a>) -> Result<()> {
        let mut is_extern = false;
        while let Tok::Dot(w @ ("visible" | "extern" | "weak" | "common")) = self.peek() {
            is_extern |= w == "extern";
            self.pos += 1;
        }
        if self.eat_dot("entry") {
            m.kernels.push(self.kernel()?);
            return Ok(());
        }
        if self.eat_dot("func") {
            return self.function(m);
        }
        for v in self.variables(is_extern)? {
            m.variables.push(v);
        }
        Ok(())
    }

    /// A `.func`, kept by name only.
    fn function(&mut self, m: &mut ModuleAst<'a>) -> Result<()> {
        let open = self.span();
        let mut depth = 0u32;
        let mut name = None;
        loop {
            match self.peek() {
                Tok::End => return Err(open.error(Kind::Unterminated("the function"))),
                Tok::Punct('(') => depth += 1,
                Tok::Punct(')') => depth = depth.saturating_sub(1),
                Tok::Word(w) if depth == 0 && name.is_none() => name = Some(w),
                Tok::Punct(';') => {
                    self.pos += 1;
                    break;
                }
                Tok::Punct('{') => {
                    self.skip_braces()?;
                    break;
                }
                _ => {}
            }
            self.pos += 1;
        }
        m.functions.extend(name);
        Ok(())
    }

    fn dims(&mut self) -> Result<[u32; 3]> {
        let mut d = [self.int32()?, 1, 1];
        for slot in d.iter_mut().skip(1) {
            if self.eat(',') {
                *slot = self.int32()?;
            }
        }
        Ok(d)
    }

    fn kernel(&mut self) -> Result<KernelAst<'a>> {
        let (name, span) = self.word("the name of the kernel")?;
        let mut k = KernelAst {
            name,
            span,
            params: Vec::new(),
            max_threads: None,
            required_threads: None,
            required_cluster: None,
            body: Vec::new(),
        };
        if self.eat('(') {
            while !self.eat(')') {
                if !matches!(self.peek(), Tok::Dot("param")) {
                    return self.unexpected("`.param` or `)`");
                }
                self.pos += 1;
                k.params.push(self.variable(Space::Param, false)?);
                if !self.eat(',') && !self.is(')') {
                    return self.unexpected("`,` or `)`");
                }
            }
        }
        loop {
            let span = self.span();
            match self.peek() {
                Tok::Punct('{') => break,
                Tok::Dot("maxntid") => {
                    self.pos += 1;
                    k.max_threads = Some(self.dims()?);
                }
                Tok::Dot("reqntid") => {
                    self.pos += 1;
                    k.required_threads = Some(self.dims()?);
                }
                Tok::Dot("reqnctapercluster") => {
                    self.pos += 1;
                    k.required_cluster = Some(self.dims()?);
                }
                Tok::Dot("minnctapersm" | "maxnctapersm" | "maxnreg" | "maxclusterrank") => {
                    self.pos += 1;
                    self.int32()?;
                }
                Tok::Dot("noreturn" | "explicitcluster" | "blocksareclusters") => self.pos += 1,
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(w) => return Err(span.error(Kind::UnknownDirective(format!(".{w}")))),
                _ => return self.unexpected("`{` or a performance directive"),
            }
        }
        self.body(&mut k.body)?;
        Ok(k)
    }

    fn body(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
        let open = self.span();
        self.expect('{')?;
        let mut depth = 0u32;
        loop {
            let span = self.span();
            match self.peek() {
                Tok::End => return Err(open.error(Kind::Unterminated("the body"))),
                Tok::Punct(';') => self.pos += 1,
                Tok::Punct('{') => {
                    self.pos += 1;
                    depth += 1;
                    out.push(Stmt::Open);
                }
                Tok::Punct('}') => {
                    self.pos += 1;
                    if depth == 0 {
                        return Ok(());
                    }
                    depth -= 1;
                    out.push(Stmt::Close);
                }
                Tok::Dot("reg") => self.registers(out)?,
                Tok::Dot("shared" | "local" | "param" | "global" | "const" | "extern") => {
                    let is_extern = self.eat_dot("extern");
                    for v in self.variables(is_extern)? {
                        out.push(Stmt::Variable(v));
                    }
                }
                Tok::Dot("loc" | "file") => self.skip_line(),
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(w) => return Err(span.error(Kind::UnknownDirective(format!(".{w}")))),
                Tok::Word(_) | Tok::Punct('@') => self.statement(out)?,
                _ => return self.unexpected("a statement"),
            }
        }
    }

    fn registers(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
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
    fn variables(&mut self, is_extern: bool) -> Result<Vec<Variable<'a>>> {
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
    fn variable(&mut self, space: Space, is_extern: bool) -> Result<Variable<'a>> {
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
    fn variable_tail(&mut self, mut v: Variable<'a>) -> Result<Variable<'a>> {
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

    /// A label, `.branchtargets` or instruction.
    fn statement(&mut self, out: &mut Vec<Stmt<'a>>) -> Result<()> {
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

    fn operand(&mut self) -> Result<OperandAst<'a>> {
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

    fn simple_operand(&mut self) -> Result<OperandAst<'a>> {
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
    fn scalar(&mut self) -> Result<OperandAst<'a>> {
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
    fn offset(&mut self) -> Result<i64> {
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

    fn address(&mut self) -> Result<OperandKind<'a>> {
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
