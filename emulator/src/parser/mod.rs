//! Tokens to the syntax tree (PTX ISA, chapters 4, 5, 6 and 11).
//!
//! Recursive descent with one token of look-ahead and no recursion on nesting. It accepts what assemblers accept around a kernel
//! (`.file`, `.loc`, `.section`, `.pragma`, performance directives) and ignores what has no meaning on a CPU. Names are
//! not resolved here. The first error ends it: PTX comes from generators, and one exact place is worth more than a list of
//! consequences.

mod constants;
mod declarations;
mod statements;

use crate::ast::{FunctionAst, KernelAst, ModuleAst, Space, Stmt};
use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::lexer::{Span, Tok, Token, lex};
use crate::source::{Lines, Loc};
use crate::types::ScalarType;

type Result<T> = std::result::Result<T, ParseError>;

/// More elements than this in one declaration is refused: 1 GiB.
const MAX_VARIABLE_BYTES: u64 = 1 << 30;

/// The syntax tree of `text`.
pub(crate) fn parse(text: &str) -> Result<ModuleAst<'_>> {
    let tokens = lex(text)?;
    Parser {
        tokens,
        pos: 0,
        lines: Lines::default(),
    }
    .module()
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    pos: usize,
    lines: Lines,
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
        if let Tok::Dot(w) = self.peek()
            && let Some(t) = ScalarType::from_name(w)
        {
            self.pos += 1;
            return Ok(t);
        }
        self.unexpected("a type")
    }

    /// The tokens on the rest of this line (`.loc`, `.file` end with the line).
    fn rest_of_line(&mut self) -> &[Token<'a>] {
        let (line, start) = (self.span().line, self.pos);
        while self.span().line == line && self.peek() != Tok::End {
            self.pos += 1;
        }
        self.tokens.get(start..self.pos).unwrap_or_default()
    }

    /// `.file NUMBER "NAME"`.
    fn file(&mut self) {
        if let [_, number, name, ..] = self.rest_of_line()
            && let (Tok::Int(number), Tok::Str(name)) = (number.tok, name.tok)
        {
            let name = name.to_owned();
            self.lines.files.push((number as u32, name));
        }
    }

    /// `.loc FILE LINE COLUMN`, perhaps with `inlined_at FILE LINE COLUMN`.
    fn loc(&mut self) {
        let at = self.span().line;
        let tokens = self.rest_of_line();
        let place = |tokens: &[Token<'a>]| {
            let mut place = [0; 3];
            for (part, token) in place.iter_mut().zip(tokens) {
                let Tok::Int(number) = token.tok else {
                    return None;
                };
                *part = number as u32;
            }
            (tokens.len() >= 2).then_some(place)
        };
        let own = place(tokens.get(1..tokens.len().min(4)).unwrap_or_default());
        let inlined = tokens.iter().position(|t| t.tok == Tok::Word("inlined_at"));
        let inlined_at = inlined.and_then(|i| place(tokens.get(i + 1..i + 4)?));
        let place = own;
        self.lines.locs.push(Loc {
            at,
            place,
            inlined_at,
        });
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
                    m.short_addresses = match self.int()? {
                        64 => false,
                        32 => true,
                        other => {
                            return Err(at.error(Kind::OutOfRange(format!(
                                ".address_size {other}: it is 32 or 64"
                            ))));
                        }
                    };
                }
                Tok::Dot("file") => self.file(),
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
                Tok::Dot("alias") => {
                    self.pos += 1;
                    let (alias, _) = self.word("a function name")?;
                    self.expect(',')?;
                    let (target, _) = self.word("a function name")?;
                    self.expect(';')?;
                    m.aliases.push((alias, target));
                }
                Tok::Dot(
                    "visible" | "extern" | "weak" | "common" | "entry" | "func" | "global"
                    | "const" | "shared" | "local" | "tex",
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
        m.lines = self.lines;
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

    /// A `.func`, defined or declared. A definition replaces its prototypes.
    fn function(&mut self, m: &mut ModuleAst<'a>) -> Result<()> {
        self.attributes()?;
        let returns = if self.is('(') {
            self.formals()?
        } else {
            Vec::new()
        };
        let (name, span) = self.word("the name of the function")?;
        let params = if self.is('(') {
            self.formals()?
        } else {
            Vec::new()
        };
        self.attributes()?;
        let body = if self.eat(';') {
            None
        } else {
            let mut body = Vec::new();
            self.body(&mut body)?;
            Some(body)
        };
        let function = FunctionAst {
            name,
            span,
            returns,
            params,
            body,
        };
        match m.functions.iter_mut().find(|f| f.name == name) {
            Some(known) if known.body.is_some() && function.body.is_some() => {
                return Err(span.error(Kind::Redeclared(name.to_owned())));
            }
            Some(known) if known.body.is_none() => *known = function,
            Some(_) => {}
            None => m.functions.push(function),
        }
        Ok(())
    }

    /// Directives of a function that mean nothing here: `.noreturn`, `.attribute(…)`, `.abi_preserve 4` and the like.
    fn attributes(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                Tok::Dot("noreturn") => self.pos += 1,
                Tok::Dot("attribute") => {
                    self.pos += 1;
                    self.skip_parentheses()?;
                }
                Tok::Dot("abi_preserve" | "abi_preserve_control" | "maxnreg" | "unique") => {
                    self.pos += 1;
                    if let Tok::Int(_) = self.peek() {
                        self.pos += 1;
                    }
                }
                Tok::Dot("pragma") => self.pragma()?,
                _ => return Ok(()),
            }
        }
    }

    /// Skips a balanced `( … )`.
    fn skip_parentheses(&mut self) -> Result<()> {
        let open = self.span();
        self.expect('(')?;
        let mut depth = 1u32;
        while depth > 0 {
            match self.next().tok {
                Tok::Punct('(') => depth += 1,
                Tok::Punct(')') => depth -= 1,
                Tok::End => return Err(open.error(Kind::Unterminated("the parenthesis"))),
                _ => {}
            }
        }
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
            max_cluster: None,
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
                Tok::Dot("maxclusterrank") => {
                    self.pos += 1;
                    k.max_cluster = Some(self.int32()?);
                }
                Tok::Dot("minnctapersm" | "maxnctapersm" | "maxnreg") => {
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
        self.lines.locs.push(Loc {
            at: open.line,
            place: None,
            inlined_at: None,
        });
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
                Tok::Dot("loc") => self.loc(),
                Tok::Dot("file") => self.file(),
                Tok::Dot("pragma") => self.pragma()?,
                Tok::Dot(w) => return Err(span.error(Kind::UnknownDirective(format!(".{w}")))),
                Tok::Word(_) | Tok::Punct('@') => self.statement(out)?,
                _ => return self.unexpected("a statement"),
            }
        }
    }
}
