//! The grammar, evaluated as it is read.
//!
//! ```text
//! program  = { "let" NAME "=" expr ";" } expr
//! expr     = chain [ ("==" | "!=" | "<" | "<=" | ">" | ">=") chain ]
//! chain    = layout { ("o" | "∘") layout }                     right to left: Sw o 16 o L
//! layout   = sum [ ":" sum ] { "(" args ")" }
//! sum      = product { ("+" | "-") product }
//! product  = sign { ("*" | "/" | "%") sign }
//! sign     = { "+" | "-" } postfix
//! postfix  = primary { "(" args ")" }
//! primary  = INT { "@" INT } | "E" "<" INT { "," INT } ">" | "_" | NAME | NAME "(" args ")"
//!          | "Sw" "<" INT "," INT "," INT ">" [ "^" "-1" ] | "[" [ INT { "," INT } ] "]"
//!          | "(" expr { "," expr } [ "," ] ")" | "<" chain { "," chain } ">"
//! ```
//!
//! What other libraries write in these places ([`super::foreign`]) is read as well.
//!
//! `4:1(3)` and `(4,8):(1,4)(3)` apply the layout, not its stride: after `:` a call is left for the layout.

use std::collections::HashMap;

use tilewright::f2::LinearMap;
use tilewright::{Affine, CoordLayout, Function, IntTuple, Layout, MAX_AXES, MAX_DEPTH, Swizzle};

use super::error::{EvalError, Span};
use super::form::Form;
use super::lexer::{self, Token};
use super::value::Value;
use super::{foreign, functions, operators};

/// How deep parentheses and calls may nest.
pub(crate) const MAX_NESTING: usize = 2 * MAX_DEPTH;

/// Elements of one tuple, or arguments of one call.
const MAX_ITEMS: usize = 64;

/// Values in one tuple of layouts, inner tuples included.
const MAX_VALUES: usize = 1024;

/// A value and the bytes that it was read from.
pub(crate) type Spanned = (Value, Span);

/// Where in the text we are, and what names are bound to.
pub(crate) struct Parser<'a> {
    pub(super) tokens: Vec<(Token<'a>, Span)>,
    pub(super) at: usize,
    nesting: usize,
    bound: HashMap<&'a str, Value>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, EvalError> {
        Ok(Self {
            tokens: lexer::tokens(text)?,
            at: 0,
            nesting: 0,
            bound: HashMap::new(),
        })
    }

    pub(crate) fn program(mut self) -> Result<Value, EvalError> {
        while self.peek() == Token::Name("let") {
            self.binding()?;
        }
        let first = self.at;
        let (value, span) = self.expression()?;
        if self.peek() != Token::End {
            return Err(self.unexpected("the end of the expression"));
        }
        match (&value, self.tokens[first].0) {
            // A name alone is a mistake, not an unknown stride.
            (Value::Form(form), Token::Name(name)) if self.at == first + 1 && !form.has_axes() => {
                Err(functions::unknown(name, span))
            }
            _ => Ok(value),
        }
    }

    fn binding(&mut self) -> Result<(), EvalError> {
        self.at += 1;
        let Token::Name(name) = self.peek() else {
            return Err(self.unexpected("a name"));
        };
        if matches!(name, "o" | "let" | "true" | "false") || functions::exists(name) {
            let message = format!("'{name}' has a meaning already; choose another name");
            return Err(EvalError::new("reserved_name", message, self.span()));
        }
        self.at += 1;
        self.require("=")?;
        let (value, _) = self.expression()?;
        self.require(";")?;
        self.bound.insert(name, value);
        Ok(())
    }

    pub(super) fn expression(&mut self) -> Result<Spanned, EvalError> {
        self.enter()?;
        let left = self.chain()?;
        let result = match self.peek() {
            Token::Symbol(operator @ ("==" | "!=" | "<" | "<=" | ">" | ">=")) => {
                self.at += 1;
                let right = self.chain()?;
                let span = (left.1.0, right.1.1);
                operators::compare(operator, &left, &right).map(|value| (Value::Bool(value), span))
            }
            _ => Ok(left),
        };
        self.nesting -= 1;
        result
    }

    pub(super) fn chain(&mut self) -> Result<Spanned, EvalError> {
        // A pointer in front is where a tensor begins, which its layout does not say.
        if self.pointer().is_some() && !self.take_compose() {
            return Err(self.unexpected("'o' and the layout"));
        }
        let first = self.layout()?;
        if !self.at_compose() && !matches!(self.peek(), Token::Pointer(_)) {
            return Ok(first);
        }
        let mut operands = vec![first];
        loop {
            let composes = self.take_compose();
            if let Some(bits) = self.pointer() {
                if let Some(last) = operands.last_mut() {
                    *last = foreign::in_elements(last, bits)?;
                }
            } else if composes {
                operands.push(self.layout()?);
            } else {
                break;
            }
        }
        let mut operands = operands.into_iter().rev();
        let Some(mut result) = operands.next() else {
            return Err(self.unexpected("an operand"));
        };
        for left in operands {
            result = operators::compose(&left, &result)?;
        }
        Ok(result)
    }

    fn at_compose(&self) -> bool {
        matches!(self.peek(), Token::Name("o") | Token::Symbol("∘"))
    }

    fn take_compose(&mut self) -> bool {
        let found = self.at_compose();
        self.at += usize::from(found);
        found
    }

    /// The bits of the element, if a pointer is here.
    fn pointer(&mut self) -> Option<i64> {
        let Token::Pointer(bits) = self.peek() else {
            return None;
        };
        self.at += 1;
        Some(bits)
    }

    fn layout(&mut self) -> Result<Spanned, EvalError> {
        let shape = self.sum(true)?;
        if !self.take(":") {
            return Ok(shape);
        }
        let stride = self.sum(false)?;
        let span = (shape.1.0, stride.1.1);
        let layout = make_layout(&shape, &stride)?;
        self.calls((layout, span))
    }

    /// `calls` says whether a parenthesis after the last operand is a call.
    fn sum(&mut self, calls: bool) -> Result<Spanned, EvalError> {
        let mut left = self.product(calls)?;
        while let Token::Symbol(operator @ ("+" | "-")) = self.peek() {
            self.at += 1;
            let right = self.product(calls)?;
            left = operators::arithmetic(operator, &left, &right)?;
        }
        Ok(left)
    }

    fn product(&mut self, calls: bool) -> Result<Spanned, EvalError> {
        let mut left = self.signed(calls)?;
        while let Token::Symbol(operator @ ("*" | "/" | "%")) = self.peek() {
            self.at += 1;
            let right = self.signed(calls)?;
            left = operators::arithmetic(operator, &left, &right)?;
        }
        Ok(left)
    }

    fn signed(&mut self, calls: bool) -> Result<Spanned, EvalError> {
        let start = self.span().0;
        let mut negative = false;
        let mut signs = 0;
        while let Token::Symbol(sign @ ("+" | "-")) = self.peek() {
            negative ^= sign == "-";
            signs += 1;
            self.at += 1;
        }
        if self.peek() == Token::MinMagnitude {
            let span = (start, self.span().1);
            if !negative {
                let message = "the integer does not fit in 64 bits";
                return Err(EvalError::new("integer_too_large", message, span));
            }
            self.at += 1;
            return Ok((Value::Int(i64::MIN), span));
        }
        let (value, span) = if calls {
            self.postfix()?
        } else {
            self.primary()?
        };
        if signs == 0 {
            return Ok((value, span));
        }
        let factor = (Value::Int(if negative { -1 } else { 1 }), (start, span.0));
        operators::arithmetic("*", &factor, &(value, span))
    }

    fn postfix(&mut self) -> Result<Spanned, EvalError> {
        let primary = self.primary()?;
        self.calls(primary)
    }

    /// Applies `callee` to the argument lists that follow.
    fn calls(&mut self, mut callee: Spanned) -> Result<Spanned, EvalError> {
        while self.peek() == Token::Symbol("(") {
            let (args, end) = self.arguments()?;
            let span = (callee.1.0, end);
            callee = (operators::apply(&callee, &args, span)?, span);
        }
        Ok(callee)
    }

    fn primary(&mut self) -> Result<Spanned, EvalError> {
        let (token, span) = self.tokens[self.at];
        match token {
            Token::Int(value) => {
                self.at += 1;
                if self.peek() == Token::Symbol("@") {
                    return self.axis(value, span.0);
                }
                let end = self.braces()?.unwrap_or(span.1);
                Ok((Value::Int(value), (span.0, end)))
            }
            Token::Symbol("[") => self.matrix(span.0),
            Token::Hole => {
                self.at += 1;
                Ok((Value::hole(), span))
            }
            Token::Name(name) => self.name(name, span),
            Token::Triton(text) => {
                self.at += 1;
                let value = super::triton::read(text, span)?;
                Ok((value, span))
            }
            Token::Symbol("(") => {
                let (items, end, comma) = self.items(")", Self::expression)?;
                let span = (span.0, end);
                Ok((make_tuple(items, comma, span)?, span))
            }
            Token::Symbol("<") => {
                let (items, end, _) = self.items(">", Self::chain)?;
                let span = (span.0, end);
                Ok((make_list(items, span)?, span))
            }
            Token::Symbol(_) | Token::End | Token::MinMagnitude | Token::Pointer(_) => {
                Err(self.unexpected("a value"))
            }
        }
    }

    fn name(&mut self, name: &'a str, span: Span) -> Result<Spanned, EvalError> {
        if let Some(value) = self.bound.get(name) {
            let value = value.clone();
            self.at += 1;
            return Ok((value, span));
        }
        let next = self
            .tokens
            .get(self.at + 1)
            .map_or(Token::End, |token| token.0);
        match (name, next) {
            ("true" | "false", _) => {
                self.at += 1;
                Ok((Value::Bool(name == "true"), span))
            }
            ("let", _) => Err(EvalError::syntax(
                "'let' belongs in front: let name = value; expression",
                span,
            )),
            ("Sw" | "S" | "Swizzle", Token::Symbol("<")) => {
                let (swizzle, span) = self.swizzle(span.0)?;
                let end = self.braces()?.unwrap_or(span.1);
                Ok((swizzle, (span.0, end)))
            }
            _ if foreign::begins(name, next) => self.foreign(name, next, span),
            ("E", Token::Symbol("<")) => self.basis(span.0),
            (_, Token::Symbol("(")) => {
                self.at += 1;
                if !functions::exists(name) {
                    return Err(functions::unknown_function(name, span));
                }
                let (args, end) = self.arguments()?;
                let span = (span.0, end);
                Ok((functions::call(name, &args, span)?, span))
            }
            _ => {
                self.at += 1;
                if functions::exists(name) {
                    let message = format!(
                        "'{name}' is a function; call it: {}",
                        functions::usage(name)
                    );
                    return Err(EvalError::syntax(message, span));
                }
                Ok((Value::Form(Form::name(name)), span))
            }
        }
    }

    /// `Sw<3,4,3>`, after which come no arithmetic operands, so that `>` always ends it.
    fn swizzle(&mut self, start: usize) -> Result<Spanned, EvalError> {
        self.at += 1;
        let mut numbers = [0i64; 3];
        for (number, open) in numbers.iter_mut().zip(["<", ",", ","]) {
            self.require(open)?;
            let negative = self.take("-");
            let Token::Int(value) = self.peek() else {
                return Err(self.unexpected("an integer"));
            };
            *number = if negative { -value } else { value };
            self.at += 1;
        }
        self.require(">")?;
        let span = (start, self.tokens[self.at - 1].1.1);
        let swizzle = make_swizzle(numbers, span)?;
        if !self.take("^") {
            return Ok((swizzle, span));
        }
        // Printed for the swizzles that are not their own inverses.
        self.require("-")?;
        let Token::Int(1) = self.peek() else {
            return Err(self.unexpected("1: only the inverse of a swizzle is a power of it"));
        };
        self.at += 1;
        let span = (start, self.tokens[self.at - 1].1.1);
        let inverse = Function::parse(&format!("{swizzle}^-1"))
            .map_err(|error| EvalError::notation(&error, span))?;
        Ok((Value::function(inverse), span))
    }

    /// `1@0@1` after its integer: the path of an axis, from the inside out.
    fn axis(&mut self, factor: i64, start: usize) -> Result<Spanned, EvalError> {
        let mut path = Vec::new();
        while self.take("@") {
            path.push(self.axis_index()?);
        }
        let span = (start, self.tokens[self.at - 1].1.1);
        let form = Form::constant(0).add(factor, &Form::axis(&path));
        let form = form.unwrap_or_else(|| Form::constant(0));
        Ok((Value::form(form), span))
    }

    /// `E<1,0>`: the path of an axis, from the outside in.
    fn basis(&mut self, start: usize) -> Result<Spanned, EvalError> {
        self.at += 1;
        let mut path = Vec::new();
        self.require("<")?;
        loop {
            path.push(self.axis_index()?);
            if !self.take(",") {
                break;
            }
        }
        self.require(">")?;
        path.reverse();
        let span = (start, self.tokens[self.at - 1].1.1);
        Ok((Value::form(Form::axis(&path)), span))
    }

    fn axis_index(&mut self) -> Result<i64, EvalError> {
        let Token::Int(index) = self.peek() else {
            return Err(self.unexpected("the number of an axis"));
        };
        if index >= MAX_AXES as i64 {
            let message = format!("axis {index}: coordinates have at most {MAX_AXES} axes");
            return Err(EvalError::new("too_many_axes", message, self.span()));
        }
        self.at += 1;
        Ok(index)
    }

    /// `[1,3,4]`: a matrix over F2, the images of the index bits.
    fn matrix(&mut self, start: usize) -> Result<Spanned, EvalError> {
        self.at += 1;
        let mut columns = Vec::new();
        while self.peek() != Token::Symbol("]") {
            let Token::Int(column) = self.peek() else {
                return Err(self.unexpected("the image of an index bit"));
            };
            columns.push(column.cast_unsigned());
            self.at += 1;
            if !self.take(",") {
                break;
            }
        }
        self.require("]")?;
        let span = (start, self.tokens[self.at - 1].1.1);
        let rows = columns.iter().fold(0, |all, column| all | column);
        LinearMap::from_columns(&columns, 64 - rows.leading_zeros())
            .map(|matrix| (Value::Matrix(Box::new(matrix)), span))
            .map_err(|error| EvalError::new(error.code(), error.to_string(), span))
    }

    /// The arguments of a call, and where it ends.
    pub(super) fn arguments(&mut self) -> Result<(Vec<Spanned>, usize), EvalError> {
        if self.tokens[self.at + 1].0 == Token::Symbol(")") {
            self.at += 2;
            return Ok((Vec::new(), self.tokens[self.at - 1].1.1));
        }
        let (items, end, _) = self.items(")", Self::expression)?;
        Ok((items, end))
    }

    /// Elements between an opening symbol, which is here, and `close`; where that ends; whether a comma stood before it.
    pub(super) fn items(
        &mut self,
        close: &'static str,
        element: fn(&mut Self) -> Result<Spanned, EvalError>,
    ) -> Result<(Vec<Spanned>, usize, bool), EvalError> {
        self.enter()?;
        let open = self.span();
        self.at += 1;
        let mut items = Vec::new();
        let mut comma = false;
        loop {
            if self.peek() == Token::Symbol(close) && (comma || items.is_empty()) {
                break;
            }
            if items.len() == MAX_ITEMS {
                let message = format!("more than {MAX_ITEMS} elements");
                return Err(EvalError::new(
                    "too_many_modes",
                    message,
                    (open.0, self.span().1),
                ));
            }
            items.push(element(self)?);
            comma = self.take(",");
            if !comma {
                break;
            }
        }
        if self.peek() != Token::Symbol(close) {
            return Err(self.unexpected(if close == ")" {
                "',' or ')'"
            } else {
                "',' or '>'"
            }));
        }
        let end = self.span().1;
        self.at += 1;
        if items.is_empty() {
            let message = "an empty tuple; a tuple needs at least one element";
            return Err(EvalError::new("empty_tuple", message, (open.0, end)));
        }
        self.nesting -= 1;
        Ok((items, end, comma))
    }

    fn enter(&mut self) -> Result<(), EvalError> {
        self.nesting += 1;
        if self.nesting > 2 * MAX_NESTING {
            let message =
                format!("more than {MAX_NESTING} nested parentheses; flatten the expression");
            return Err(EvalError::new("too_deep", message, self.span()));
        }
        Ok(())
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.at].0
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    pub(super) fn take(&mut self, symbol: &'static str) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn require(&mut self, symbol: &'static str) -> Result<(), EvalError> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{symbol}'")))
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> EvalError {
        let found = match self.peek() {
            Token::Int(value) => value.to_string(),
            Token::MinMagnitude => "9223372036854775808".to_owned(),
            Token::Name(name) => format!("'{}'", name.chars().take(40).collect::<String>()),
            Token::Hole => "'_'".to_owned(),
            Token::Pointer(bits) => format!("a pointer to elements of {bits} bits"),
            Token::Triton(_) => "a layout of Triton".to_owned(),
            Token::Symbol(symbol) => format!("'{symbol}'"),
            Token::End => "the end of the expression".to_owned(),
        };
        EvalError::syntax(format!("expected {expected}, found {found}"), self.span())
    }
}

/// `Sw<b,m,s>` from integers of any size.
pub(crate) fn make_swizzle([b, m, s]: [i64; 3], span: Span) -> Result<Value, EvalError> {
    let bits = (u32::try_from(b), u32::try_from(m), i32::try_from(s));
    let (Ok(bits), Ok(kept), Ok(shift)) = bits else {
        let reason = if b < 0 || m < 0 {
            "B and M count bits: give at least 0"
        } else {
            "uses bits beyond 62: B + M + |S| must be at most 62"
        };
        let separator = if b < 0 || m < 0 { ":" } else { "" };
        let message = format!("Sw<{b},{m},{s}>{separator} {reason}");
        return Err(EvalError::new("invalid_swizzle", message, span));
    };
    Swizzle::new(bits, kept, shift)
        .map(Value::Swizzle)
        .map_err(|error| EvalError::layout(error, span))
}

/// `shape:stride`, with or without names in the stride.
pub(crate) fn make_layout(shape: &Spanned, stride: &Spanned) -> Result<Value, EvalError> {
    let span = (shape.1.0, stride.1.1);
    let Some(extents) = shape.0.as_tuple() else {
        let message = format!(
            "a shape is an integer or a tuple of them, not {}",
            shape.0.kind()
        );
        return Err(EvalError::kind(message, shape.1));
    };
    if stride.0.has_names() && stride.0.is_integral() {
        let text = format!("{extents}:{}", stride.0);
        let layout = if stride.0.has_axes() {
            CoordLayout::parse(&text).map(Value::coords)
        } else {
            Affine::parse(&text).map(|layout| Value::affine(tilewright::Swizzled::plain(layout)))
        };
        return layout.map_err(|error| EvalError::notation(&error, span));
    }
    let Some(strides) = stride.0.as_tuple() else {
        let message = format!(
            "a stride is an integer or a tuple of them, not {}",
            stride.0.kind()
        );
        return Err(EvalError::kind(message, stride.1));
    };
    Layout::new(extents, strides)
        .map(Value::layout)
        .map_err(|error| EvalError::layout(error, span))
}

/// A tuple of anything. Names can be used many times over, so what it holds in all is bounded here.
fn make_list(items: Vec<Spanned>, span: Span) -> Result<Value, EvalError> {
    let list = Value::List(items.into_iter().map(|item| item.0).collect());
    let (values, depth) = list.extent();
    if values > MAX_VALUES {
        let message = format!("a tuple of {values} values in all, more than {MAX_VALUES}");
        return Err(EvalError::new("too_many_modes", message, span));
    }
    if depth > MAX_DEPTH {
        let message = format!("a tuple nested {depth} deep, more than {MAX_DEPTH}");
        return Err(EvalError::new("too_deep", message, span));
    }
    Ok(list)
}

/// The tuple of the items: of integers and holes where possible. One value other than those in parentheses is that value,
/// unless a comma follows it.
pub(super) fn make_tuple(
    mut items: Vec<Spanned>,
    comma: bool,
    span: Span,
) -> Result<Value, EvalError> {
    let slicers: Option<Vec<_>> = items.iter().map(|item| item.0.as_slicer()).collect();
    let Some(slicers) = slicers else {
        if items.len() == 1 && !comma && !items[0].0.has_names() {
            return Ok(items.remove(0).0);
        }
        return make_list(items, span);
    };
    let tuples: Vec<IntTuple> = slicers.iter().map(tilewright::Slicer::tuple).collect();
    let tuple = IntTuple::tuple(&tuples).map_err(|error| EvalError::layout(error, span))?;
    let mut open = 0;
    let mut leaf = 0;
    for slicer in &slicers {
        for i in 0..slicer.tuple().leaves() {
            open |= u32::from(slicer.is_open(i)) << leaf;
            leaf += 1;
        }
    }
    Ok(Value::Tuple(Box::new(tilewright::Slicer::new(tuple, open))))
}
