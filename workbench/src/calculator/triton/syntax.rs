//! The text of an encoding, of a type that has one, or of a printed `LinearLayout`, as fields with their places.

use super::super::{EvalError, Span};

/// A value of a field.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// `8`
    Int(i64),
    /// `true`, or a type
    Word(String),
    /// `[1, 0]`
    List(Vec<(Item, Span)>),
}

/// `#ttg.blocked<{sizePerThread = [1, 4], …}>`
#[derive(Clone, Debug)]
pub(super) struct Encoding {
    /// `blocked`
    pub(super) kind: String,
    pub(super) span: Span,
    /// Names, values and where each stands.
    pub(super) fields: Vec<(String, Item, Span)>,
}

/// What a text is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// An encoding, with the shape of the tensor if the text is its type.
    Encoding(Encoding, Option<(Vec<i64>, Span)>),
    /// The input dimensions of a printed map, each with the images of its bits, and the sizes of the output dimensions.
    Printed(Vec<(String, Vec<Vec<i64>>)>, Vec<i64>),
}

const ENCODINGS: [&str; 2] = ["#ttg.", "#triton_gpu."];
const TYPES: [&str; 4] = [
    "tensor<",
    "!ttg.memdesc<",
    "!triton_gpu.memdesc<",
    "!tt.memdesc<",
];

/// The bytes of Triton's text at the start of `text`, if it starts so.
pub(crate) fn extent(text: &str) -> Option<usize> {
    if is_printed(text) {
        return Some(text.len());
    }
    let body = alias(text);
    if !ENCODINGS.iter().chain(&TYPES).any(|s| body.starts_with(s)) {
        return None;
    }
    let mut depth = 0_u32;
    for (i, c) in body.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if body[..i].ends_with('-') => {}
            '>' if depth <= 1 => return Some(text.len() - body.len() + i + 1),
            '>' => depth -= 1,
            _ => {}
        }
    }
    Some(text.len())
}

/// The text after `#shared = `, which names what follows.
fn alias(text: &str) -> &str {
    let rest = text.strip_prefix('#').and_then(|rest| rest.split_once('='));
    match rest {
        Some((name, rest))
            if name
                .trim_end()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_') =>
        {
            rest.trim_start()
        }
        _ => text,
    }
}

/// `- register=1 -> (0, 1)` or `- warp is a size 1 dimension`: the first line of a printed map.
fn is_printed(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else {
        return false;
    };
    let rest = rest.trim_start();
    let name = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    name.is_some_and(|end| {
        end > 0
            && (rest[end..].starts_with(" is a size 1 dimension")
                || (rest[end..].starts_with("=1 ->")))
    })
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

pub(super) fn parse(text: &str) -> Result<Source, EvalError> {
    if is_printed(text) {
        return printed(text);
    }
    let mut scanner = Scanner {
        text,
        at: text.len() - alias(text).len(),
    };
    let typed = TYPES.iter().find(|s| scanner.rest().starts_with(**s));
    let Some(start) = typed else {
        return Ok(Source::Encoding(scanner.encoding()?, None));
    };
    scanner.at += start.len();
    let shape = scanner.shape()?;
    scanner.require(",")?;
    let encoding = scanner.encoding()?;
    // What follows names the memory and its mutability.
    while scanner.take(",") {
        let rest = scanner.rest();
        scanner.at += rest.find([',', '>']).unwrap_or(rest.len());
    }
    scanner.require(">")?;
    Ok(Source::Encoding(encoding, Some(shape)))
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn require(&mut self, word: &str) -> Result<(), EvalError> {
        if self.take(word) {
            return Ok(());
        }
        Err(self.expected(&format!("'{word}'")))
    }

    /// The error that something else stands here.
    fn expected(&mut self, what: &str) -> EvalError {
        self.skip();
        let found = self.rest().chars().next();
        let end = self.at + found.map_or(0, char::len_utf8);
        let found = found.map_or("the end".to_owned(), |c| {
            format!("'{}'", c.escape_default())
        });
        EvalError::syntax(format!("expected {what}, found {found}"), (self.at, end))
    }

    fn word(&mut self) -> Option<(String, Span)> {
        self.skip();
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        let span = (self.at, self.at + end);
        self.at += end;
        (end > 0).then_some((word, span))
    }

    /// `64x32xf16`
    fn shape(&mut self) -> Result<(Vec<i64>, Span), EvalError> {
        self.skip();
        let start = self.at;
        let mut extents = Vec::new();
        loop {
            let rest = self.rest();
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let Ok(extent) = rest[..digits].parse() else {
                break;
            };
            if !rest[digits..].starts_with('x') {
                break;
            }
            extents.push(extent);
            self.at += digits + 1;
        }
        if extents.is_empty() {
            return Err(self.expected("the tensor's extents and type, as in 64x32xf16"));
        }
        let span = (start, self.at - 1);
        // The element's type, which no map depends on.
        if self.take("!") || self.word().is_none() {
            let rest = self.rest();
            self.at += rest.find(',').unwrap_or(rest.len());
        }
        Ok((extents, span))
    }

    fn encoding(&mut self) -> Result<Encoding, EvalError> {
        if !ENCODINGS.iter().any(|prefix| self.take(prefix)) {
            return Err(self.expected("an encoding such as #ttg.blocked<{…}>, written out"));
        }
        let Some((kind, kind_span)) = self.word() else {
            return Err(self.expected("the name of an encoding"));
        };
        let mut fields = Vec::new();
        if self.take("<") {
            let braces = self.take("{");
            let close = if braces { "}" } else { ">" };
            while !self.take(close) {
                fields.push(self.field()?);
                if !self.take(",") {
                    self.require(close)?;
                    break;
                }
            }
            if braces {
                while self.take(",") {
                    fields.push(self.field()?);
                }
                self.require(">")?;
            }
        }
        Ok(Encoding {
            kind,
            span: kind_span,
            fields,
        })
    }

    fn field(&mut self) -> Result<(String, Item, Span), EvalError> {
        let Some((name, span)) = self.word() else {
            return Err(self.expected("a field such as order = [1, 0]"));
        };
        self.require("=")?;
        let (item, item_span) = self.item(0)?;
        Ok((name, item, (span.0, item_span.1)))
    }

    fn item(&mut self, depth: usize) -> Result<(Item, Span), EvalError> {
        self.skip();
        let start = self.at;
        if self.take("[") {
            if depth == 3 {
                return Err(self.expected("an integer: lists nest three deep at most"));
            }
            let mut items = Vec::new();
            while !self.take("]") {
                items.push(self.item(depth + 1)?);
                if !self.take(",") {
                    self.require("]")?;
                    break;
                }
            }
            return Ok((Item::List(items), (start, self.at)));
        }
        let negative = self.take("-");
        let Some((word, span)) = self.word() else {
            return Err(self.expected("an integer, true, false or a list"));
        };
        let span = (start, span.1);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let value = word.parse::<i64>().map_err(|_| {
                EvalError::new(
                    "integer_too_large",
                    "expected an integer that fits in 64 bits",
                    span,
                )
            })?;
            return Ok((Item::Int(if negative { -value } else { value }), span));
        }
        Ok((Item::Word(word), span))
    }
}

/// The lines of a `LinearLayout`:
///
/// ```text
/// - register=1 -> (0, 1)
///   register=2 -> (8, 0)
/// - warp is a size 1 dimension
/// where out dims are: [dim0 (size 16), dim1 (size 8)]
/// ```
fn printed(text: &str) -> Result<Source, EvalError> {
    let mut ins: Vec<(String, Vec<Vec<i64>>)> = Vec::new();
    let mut outs = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let span = (start, start + line.trim_end().len());
        start += line.len();
        let refuse = |what: &str| Err(EvalError::syntax(format!("expected {what}"), span));
        let content = line.trim();
        if content.is_empty() {
            continue;
        }
        if let Some(list) = content.strip_prefix("where out dims are: [") {
            for part in list.trim_end_matches(']').split("),") {
                let size = part.rsplit_once("(size ").map(|(_, size)| size);
                let size = size.and_then(|size| size.trim_end_matches(')').trim().parse().ok());
                match size {
                    Some(size) => outs.push(size),
                    None => return refuse("the output dimensions, as in [dim0 (size 16)]"),
                }
            }
            continue;
        }
        let item = content.trim_start_matches('-').trim_start();
        if let Some(name) = item.strip_suffix(" is a size 1 dimension") {
            ins.push((name.to_owned(), Vec::new()));
            continue;
        }
        let parts = item
            .split_once("->")
            .and_then(|(left, right)| Some((left.split_once('=')?, right.trim())));
        let Some(((name, bit), image)) = parts else {
            return refuse("a line such as 'register=1 -> (0, 1)'");
        };
        if ins.last().is_none_or(|(last, _)| last != name) {
            ins.push((name.to_owned(), Vec::new()));
        }
        let bases = ins.last_mut().map(|(_, bases)| bases);
        let image = image
            .trim_start_matches('(')
            .trim_end_matches(')')
            .split(',')
            .map(|n| n.trim().parse::<i64>());
        let image: Result<Vec<i64>, _> = image.collect();
        match (bases, bit.trim().parse::<u64>(), image) {
            (Some(bases), Ok(bit), Ok(image)) if bases.len() < 62 && bit == 1 << bases.len() => {
                bases.push(image);
            }
            _ => {
                return refuse(
                    "the image of the next bit of this dimension, as in 'register=2 -> (8, 0)'",
                );
            }
        }
    }
    if outs.is_empty() {
        return Err(EvalError::syntax(
            "expected 'where out dims are: […]' after the bases",
            (text.trim_end().len(), text.len()),
        ));
    }
    Ok(Source::Printed(ins, outs))
}
