//! What pycute, CuTe C++ and the CuTe DSL write in place of our notation.
//!
//! Their printed forms are ours or nearly so; what is read here is their source text, so that a layout can be pasted from a kernel:
//!
//! ```text
//! Layout((4, 8), (1, 4))                                              pycute
//! ComposedLayout(Swizzle(3,4,3), 0, Layout((8, 64), (64, 1)))         pycute
//! make_layout(make_shape(_4{}, Int<8>{}), make_stride(_1{}, ld))      CuTe C++
//! Layout<Shape<_4,_8>, Stride<_1,_4>>{}                               CuTe C++
//! composition(Swizzle<3,4,3>{}, Layout<Shape<_8,_64>, Stride<_64,_1>>{})
//! Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)                CuTe C++, printed: the swizzle counts bytes
//! size<0>(L)  layout<0,1>(L)  get<1>(L)  take<0,2>(L)  upcast<2>(L)    CuTe C++: numbers of modes and factors
//! recast_layout<half_t, uint128_t>(L)                                 CuTe C++: from elements of one type to those of another
//! slice_((_, 1), L)  slice_(L, (None, 1))  recast_layout(8, 16, L)    CuTe, and the CuTe DSL
//! cute.make_layout((4, 8), stride=(1, 4))                             CuTe DSL
//! cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, cute.make_layout((8, 64), stride=(64, 1)))
//! ```
//!
//! The names are read only where they are followed as above, so that a stride may still be called `C`.

use tilewright::Swizzle;

use super::error::{EvalError, Span};
use super::lexer::Token;
use super::parser::{Parser, Spanned, make_tuple};
use super::value::Value;
use super::{functions, operators};

/// Whether a name begins a form of another library, with what comes after it.
pub(super) fn begins(name: &str, next: Token<'_>) -> bool {
    match next {
        Token::Symbol("(") => matches!(
            name,
            "Layout"
                | "ComposedLayout"
                | "Swizzle"
                | "make_layout"
                | "make_ordered_layout"
                | "make_composed_layout"
                | "make_shape"
                | "make_stride"
                | "make_coord"
                | "make_tuple"
                | "make_step"
                | "Int"
                | "slice_"
                | "recast_layout"
                | "group_modes"
        ),
        Token::Symbol("<") if is_template(name) => true,
        Token::Symbol("<") => matches!(
            name,
            "Layout" | "Shape" | "Stride" | "Step" | "Coord" | "Int" | "C"
        ),
        _ => name == "None" || swizzle_of(name).is_some(),
    }
}

/// Functions of CuTe C++ that take numbers of modes, factors or types in angle brackets.
fn is_template(name: &str) -> bool {
    is_of_modes(name)
        || matches!(
            name,
            "take"
                | "select"
                | "group"
                | "group_modes"
                | "append"
                | "prepend"
                | "replace"
                | "upcast"
                | "downcast"
                | "recast_layout"
        )
}

/// Functions of which `f<i, j>(x)` is `f` of mode j of mode i of x.
fn is_of_modes(name: &str) -> bool {
    matches!(
        name,
        "size" | "rank" | "depth" | "cosize" | "shape" | "stride" | "layout" | "get"
    )
}

/// Bits of the types that CUTLASS writes.
fn type_bits(name: &str) -> Option<i64> {
    let name = name.trim_end_matches("_t");
    Some(match name {
        "uint1b" | "bin1" => 1,
        "uint2b" | "int2b" => 2,
        "int4b" | "uint4b" | "float_e2m1" => 4,
        "float_e3m2" | "float_e2m3" | "uint6b" | "int6b" => 6,
        "char" | "int8" | "uint8" | "float_e4m3" | "float_e5m2" | "float_ue8m0" | "float_ue4m3" => {
            8
        }
        "half" | "bfloat16" | "int16" | "uint16" | "short" => 16,
        "float" | "tfloat32" | "int" | "int32" | "uint32" | "unsigned" => 32,
        "double" | "int64" | "uint64" => 64,
        "uint128" => 128,
        _ => return None,
    })
}

/// `SW_3_4_3`, as pycute prints a swizzle.
fn swizzle_of(name: &str) -> Option<[i64; 3]> {
    let mut parts = name.strip_prefix("SW_")?.split('_');
    let mut number = || parts.next()?.parse().ok();
    let numbers = [number()?, number()?, number()?];
    parts.next().is_none().then_some(numbers)
}

/// A swizzle of byte addresses as one of elements of `bits` bits, which is how a printed `Sw<3,4,3> o smem_ptr[16b](…) o layout` acts
/// on the layout's elements.
pub(super) fn in_elements(swizzle: &Spanned, bits: i64) -> Result<Spanned, EvalError> {
    let (value, span) = swizzle;
    let refuse = |message: String| EvalError::new("swizzle_in_bytes", message, *span);
    let Value::Swizzle(bytes) = value else {
        return Err(refuse(format!(
            "a pointer after {} has no meaning; it follows a swizzle, which then counts bytes, or begins the text",
            value.kind()
        )));
    };
    let bits = bits as u64;
    if !bits.is_power_of_two() {
        return Err(refuse(format!(
            "elements of {bits} bits: a swizzle of bytes moves elements of a power of two of bits only"
        )));
    }
    // Bit `i` of a byte address is bit `i - log2(bytes)` of an element's number.
    let kept = i64::from(bytes.m()) + 3 - i64::from(bits.trailing_zeros());
    let kept = u32::try_from(kept).map_err(|_| {
        refuse(format!(
            "{bytes} of bytes moves parts of an element of {bits} bits; its second number must be at least {}",
            bits.trailing_zeros() - 3
        ))
    })?;
    Swizzle::new(bytes.b(), kept, bytes.s())
        .map(|swizzle| (Value::Swizzle(swizzle), *span))
        .map_err(|error| EvalError::layout(error, *span))
}

impl<'a> Parser<'a> {
    /// The form that [`begins`] here.
    pub(super) fn foreign(
        &mut self,
        name: &'a str,
        next: Token<'a>,
        span: Span,
    ) -> Result<Spanned, EvalError> {
        self.at += 1;
        match (name, next) {
            (_, Token::Symbol("<")) if is_template(name) => self.template(name, span),
            ("slice_" | "recast_layout" | "group_modes", _) => {
                let (items, end) = self.arguments()?;
                reordered(name, items, (span.0, end))
            }
            ("Int" | "C", Token::Symbol("<")) => {
                let (items, end, _) = self.items(">", Self::constant)?;
                let end = self.braces()?.unwrap_or(end);
                let [(value, _)] = &items[..] else {
                    let message = format!("{name} takes one integer, as in {name}<4>{{}}");
                    return Err(EvalError::syntax(message, (span.0, end)));
                };
                Ok((value.clone(), (span.0, end)))
            }
            ("Int", _) => {
                let (items, end, _) = self.items(")", Self::expression)?;
                let [(value @ Value::Int(_), _)] = &items[..] else {
                    let message = "Int takes one integer, as in Int(4)";
                    return Err(EvalError::syntax(message, (span.0, end)));
                };
                Ok((value.clone(), (span.0, end)))
            }
            ("Layout", Token::Symbol("<")) => {
                let (items, end, _) = self.items(">", Self::chain)?;
                let end = self.braces()?.unwrap_or(end);
                construct("make_layout", &items, (span.0, end))
            }
            (_, Token::Symbol("<")) => {
                let (items, end, _) = self.items(">", Self::chain)?;
                let end = self.braces()?.unwrap_or(end);
                let span = (span.0, end);
                Ok((make_tuple(items, true, span)?, span))
            }
            ("make_shape" | "make_stride" | "make_coord" | "make_tuple" | "make_step", _) => {
                let (items, end, _) = self.items(")", Self::expression)?;
                let span = (span.0, end);
                Ok((make_tuple(items, true, span)?, span))
            }
            ("Layout" | "make_layout" | "make_ordered_layout" | "Swizzle", _) => {
                let (items, end) = self.arguments_with_keywords(name)?;
                let function = match name {
                    "Layout" => "make_layout",
                    "Swizzle" => "make_swizzle",
                    other => other,
                };
                construct(function, &items, (span.0, end))
            }
            ("ComposedLayout" | "make_composed_layout", _) => {
                let (items, end) = self.arguments_with_keywords(name)?;
                composed(name, &items, (span.0, end))
            }
            _ => match swizzle_of(name) {
                Some(numbers) => {
                    super::parser::make_swizzle(numbers, span).map(|value| (value, span))
                }
                None => Ok((Value::hole(), span)),
            },
        }
    }

    /// `size<0>(L)`: the numbers, then the arguments.
    fn template(&mut self, name: &'a str, span: Span) -> Result<Spanned, EvalError> {
        let (numbers, _, _) = self.items(">", Self::number_or_type)?;
        if self.peek() != Token::Symbol("(") {
            let shown = if is_of_modes(name) { "0" } else { "…" };
            return Err(self.unexpected(&format!("'(', as in {name}<{shown}>(L)")));
        }
        let (mut items, end) = self.arguments()?;
        let span = (span.0, end);
        if is_of_modes(name) {
            let first = items.first().map(|item| item.1);
            let path = items.drain(..).chain(numbers).collect::<Vec<_>>();
            let mode = construct("get", &path, first.unwrap_or(span))?;
            return match name {
                "layout" | "get" => Ok(mode),
                _ => construct(name, &[mode], span),
            };
        }
        // Our functions take the numbers as their last arguments; `replace(x, i, y)` alone has them in the middle.
        let place = if name == "replace" {
            items.len().min(1)
        } else {
            items.len()
        };
        items.splice(place..place, numbers);
        let function = match name {
            "group_modes" => "group",
            "recast_layout" => "recast",
            _ => name,
        };
        construct(function, &items, span)
    }

    /// An integer, or the bits of a type's name.
    fn number_or_type(&mut self) -> Result<Spanned, EvalError> {
        let (token, span) = (self.peek(), self.span());
        match token {
            Token::Name(name) => {
                let Some(bits) = type_bits(name) else {
                    let message = format!(
                        "'{name}' is not a type whose bits are known; write the bits, as in recast(L, 16, 32)"
                    );
                    return Err(EvalError::syntax(message, span));
                };
                self.at += 1;
                Ok((Value::Int(bits), span))
            }
            _ => self.constant(),
        }
    }

    /// `{}` after a type makes it a value; where it ends, if it is here.
    pub(super) fn braces(&mut self) -> Result<Option<usize>, EvalError> {
        if !self.take("{") {
            return Ok(None);
        }
        let end = self.span().1;
        self.require("}")?;
        Ok(Some(end))
    }

    /// The integer of `Int<4>`: no comparison, which would take the `>`.
    fn constant(&mut self) -> Result<Spanned, EvalError> {
        let start = self.span().0;
        let negative = self.take("-");
        let Token::Int(value) = self.peek() else {
            return Err(self.unexpected("an integer, as in Int<4>{}"));
        };
        let end = self.span().1;
        self.at += 1;
        Ok((
            Value::Int(if negative { -value } else { value }),
            (start, end),
        ))
    }

    /// The arguments of a constructor, where Python names the second one and C++ may give the order in place of strides.
    fn arguments_with_keywords(
        &mut self,
        name: &'a str,
    ) -> Result<(Vec<Spanned>, usize), EvalError> {
        let keywords: &[&str] = match name {
            "make_layout" => &["shape", "stride"],
            "Layout" => &["_shape", "_stride"],
            "make_ordered_layout" => &["shape", "order"],
            "make_composed_layout" => &["inner", "offset", "outer"],
            "ComposedLayout" => &["layoutB", "offset", "layoutA"],
            _ => &["b", "m", "s"],
        };
        let mut items: Vec<Spanned> = Vec::new();
        self.require("(")?;
        loop {
            if let (Token::Name(word), Some((Token::Symbol("="), _))) =
                (self.peek(), self.tokens.get(self.at + 1))
            {
                if keywords.get(items.len()) != Some(&word) {
                    let message = match keywords.get(items.len()) {
                        Some(expected) => format!(
                            "'{word}=' is not argument {} of {name}; that is '{expected}='",
                            items.len() + 1
                        ),
                        None => format!("{name} takes {} arguments", keywords.len()),
                    };
                    return Err(EvalError::syntax(message, self.span()));
                }
                self.at += 2;
            }
            let item = match (self.majorness(), items.first()) {
                (Some(function), Some(shape)) => {
                    let span = self.tokens[self.at - 1].1;
                    let (layout, _) = construct(function, std::slice::from_ref(shape), span)?;
                    construct_strides(&layout, span)?
                }
                (Some(_), None) => return Err(self.unexpected("a shape")),
                (None, _) => self.expression()?,
            };
            items.push(item);
            if !self.take(",") || self.peek() == Token::Symbol(")") {
                break;
            }
            if items.len() == 64 {
                return Err(self.unexpected("')'; a call takes 64 arguments at most"));
            }
        }
        let end = self.span().1;
        if !self.take(")") {
            return Err(self.unexpected("',' or ')'"));
        }
        Ok((items, end))
    }

    /// `LayoutLeft{}` and its kin in place of strides: the function that gives them.
    fn majorness(&mut self) -> Option<&'static str> {
        let function = match self.peek() {
            Token::Name("LayoutLeft" | "GenColMajor") => "col_major",
            Token::Name("LayoutRight" | "GenRowMajor") => "row_major",
            _ => return None,
        };
        self.at += 1;
        // A missing brace is found where the argument must end.
        let _ = self.braces();
        Some(function)
    }
}

/// Functions of the CuTe DSL whose arguments come in another order than ours.
fn reordered(name: &str, mut items: Vec<Spanned>, span: Span) -> Result<Spanned, EvalError> {
    match name {
        // slice_(L, coord) in Python, slice(coord, L) in C++: the coordinate is the one with open places, or that is no layout.
        "slice_" => {
            if let [a, b] = &items[..] {
                let open = |value: &Value| value.as_slicer().is_some();
                let holes = |value: &Value| open(value) && value.to_string().contains('_');
                if !open(&a.0) && open(&b.0) || !holes(&a.0) && holes(&b.0) {
                    items.swap(0, 1);
                }
            }
            construct("slice", &items, span)
        }
        // recast_layout(new_bits, old_bits, L).
        "recast_layout" => {
            if let [(Value::Int(_), _), (Value::Int(_), _), _] = &items[..] {
                items.swap(0, 2);
            }
            construct("recast", &items, span)
        }
        _ => construct("group", &items, span),
    }
}

/// The value of a function of the calculator.
fn construct(function: &str, items: &[Spanned], span: Span) -> Result<Spanned, EvalError> {
    Ok((functions::call(function, items, span)?, span))
}

/// The strides of a layout as an argument.
fn construct_strides(layout: &Value, span: Span) -> Result<Spanned, EvalError> {
    construct("stride", &[(layout.clone(), span)], span)
}

/// `outer o offset o inner` of three arguments.
fn composed(name: &str, items: &[Spanned], span: Span) -> Result<Spanned, EvalError> {
    let [outer, offset, inner] = items else {
        let message = format!(
            "{name} got {} arguments; it takes three: what is applied last, an offset, a layout",
            items.len()
        );
        return Err(EvalError::new("wrong_arguments", message, span));
    };
    let moved = operators::compose(offset, inner)?;
    let (value, _) = operators::compose(outer, &moved)?;
    Ok((value, span))
}

/// `composition(outer, offset, inner)`, as CuTe C++ writes a composed layout.
pub(super) fn composition_of_three(items: &[Spanned], span: Span) -> Result<Value, EvalError> {
    composed("composition", items, span).map(|composed| composed.0)
}
