//! What is written in `layout!` and `shape!`, with the span of every token that an error may point at.
//!
//! ```text
//! composition = operand { "o" operand }
//! operand     = tuple ":" tuple | "Sw" "<" int "," int "," int ">" | int | path | "{" expression "}"
//! tuple       = element | "(" tuple { "," tuple } ")"
//! element     = int (extents), or a sum of int, name and int "*" name (strides)
//! ```
//!
//! Reading goes on after an error at the next `,` or `o`, so that one call reports all of them.

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

use crate::errors::{Errors, Place};

/// Operands from left to right.
pub(crate) struct Composition {
    pub(crate) operands: Vec<Operand>,
}

/// One operand of a composition.
pub(crate) enum Operand {
    /// `shape:stride`.
    Layout {
        shape: Tree,
        stride: Tree,
        span: Place,
    },
    /// `Sw<b,m,s>`.
    Swizzle { b: i64, m: i64, s: i64, span: Place },
    /// `16` in `Sw<…> o 16 o L`.
    Offset { value: i64, span: Place },
    /// A constant of the caller: a path, or an expression in braces.
    Constant { tokens: TokenStream, span: Place },
}

impl Operand {
    pub(crate) fn span(&self) -> Place {
        match self {
            Self::Layout { span, .. }
            | Self::Swizzle { span, .. }
            | Self::Offset { span, .. }
            | Self::Constant { span, .. } => *span,
        }
    }
}

/// A nested tuple.
pub(crate) enum Tree {
    Leaf(Leaf),
    Tuple(Vec<Tree>, Span),
}

/// An integer, or a sum with stride names in it.
pub(crate) struct Leaf {
    pub(crate) constant: i64,
    /// Factor, name and where the name stands.
    pub(crate) names: Vec<(i64, String, Span)>,
    pub(crate) span: Place,
}

impl Tree {
    /// The leaves in order of writing.
    pub(crate) fn leaves(&self) -> Vec<&Leaf> {
        match self {
            Self::Leaf(leaf) => vec![leaf],
            Self::Tuple(elements, _) => elements.iter().flat_map(Tree::leaves).collect(),
        }
    }
}

/// Which tuples may hold names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Shape,
    Stride,
}

/// Reads `layout!`'s input.
pub(crate) fn composition(input: TokenStream, errors: &mut Errors) -> Composition {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    let mut operands = Vec::new();
    if tokens.is_empty() {
        errors.at(
            Span::call_site(),
            "expected a layout such as `(8,64):(64,1)` or `Sw<3,4,3> o (8,64):(64,1)`",
        );
        return Composition { operands };
    }
    let mut part = Vec::new();
    // The `o` before the part being read.
    let mut before: Option<Span> = None;
    for token in tokens {
        if is_ident(&token, "o") {
            read_part(&part, token.span(), &mut operands, errors);
            part.clear();
            before = Some(token.span());
        } else {
            part.push(token);
        }
    }
    let end = before.unwrap_or_else(Span::call_site);
    read_part(&part, end, &mut operands, errors);
    Composition { operands }
}

/// Reads one operand, beside the `o` at `o`.
fn read_part(part: &[TokenTree], o: Span, operands: &mut Vec<Operand>, errors: &mut Errors) {
    if part.is_empty() {
        errors.at(o, "expected an operand on both sides of `o`");
    } else if let Some(operand) = operand(part, errors) {
        operands.push(operand);
    }
}

/// Reads `shape!`'s input.
pub(crate) fn shape(input: TokenStream, errors: &mut Errors) -> Option<Tree> {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    if tokens.is_empty() {
        errors.at(
            Span::call_site(),
            "expected an integer or a tuple such as `(4,(2,2))`",
        );
        return None;
    }
    tree(&tokens, Role::Shape, errors)
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

/// The place of a `:` that is not half of `::`.
fn colon(tokens: &[TokenTree]) -> Option<usize> {
    let mut i = 0;
    while i < tokens.len() {
        if let TokenTree::Punct(punct) = &tokens[i]
            && punct.as_char() == ':'
        {
            let double = punct.spacing() == Spacing::Joint
                && tokens.get(i + 1).is_some_and(|next| is_punct(next, ':'));
            if !double {
                return Some(i);
            }
            i += 1;
        }
        i += 1;
    }
    None
}

fn operand(tokens: &[TokenTree], errors: &mut Errors) -> Option<Operand> {
    let span = Place::of(tokens);
    if tokens.len() > 1
        && matches!(&tokens[0], TokenTree::Ident(name) if name == "Sw" || name == "S" || name == "Swizzle")
        && is_punct(&tokens[1], '<')
    {
        return swizzle(tokens, span, errors);
    }
    if let Some(at) = colon(tokens) {
        let (left, right) = (&tokens[..at], &tokens[at + 1..]);
        if left.is_empty() {
            errors.at(tokens[at].span(), "expected a shape before `:`");
        }
        if right.is_empty() {
            errors.at(
                tokens[at].span(),
                "expected strides after `:`, nested like the shape",
            );
        }
        let shape = (!left.is_empty())
            .then(|| tree(left, Role::Shape, errors))
            .flatten();
        let stride = (!right.is_empty())
            .then(|| tree(right, Role::Stride, errors))
            .flatten();
        return Some(Operand::Layout {
            shape: shape?,
            stride: stride?,
            span,
        });
    }
    match &tokens[0] {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && tokens.len() == 1 => {
            Some(Operand::Constant {
                tokens: group.stream(),
                span,
            })
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
            errors.at(
                span,
                "a shape without strides: write `shape:stride`, both nested alike",
            );
            None
        }
        TokenTree::Ident(ident) if !ident.to_string().starts_with('_') => {
            let path: TokenStream = tokens.iter().cloned().collect();
            let Ok(path) = syn::parse2::<syn::Path>(path) else {
                errors.at(
                    span,
                    "expected the name of a constant here; put other expressions in braces, `{ … }`",
                );
                return None;
            };
            Some(Operand::Constant {
                tokens: quote::quote!(#path),
                span,
            })
        }
        TokenTree::Punct(punct) if punct.as_char() == ':' => {
            let path: TokenStream = tokens.iter().cloned().collect();
            match syn::parse2::<syn::Path>(path) {
                Ok(path) => Some(Operand::Constant {
                    tokens: quote::quote!(#path),
                    span,
                }),
                Err(error) => {
                    errors.add(error);
                    None
                }
            }
        }
        _ => {
            let (value, used) = integer(tokens, errors)?;
            if used < tokens.len() {
                errors.at(
                    tokens[used].span(),
                    "expected `:` and strides, or `o` and a layout, after this integer",
                );
                return None;
            }
            Some(Operand::Offset { value, span })
        }
    }
}

fn swizzle(tokens: &[TokenTree], span: Place, errors: &mut Errors) -> Option<Operand> {
    let Some(close) = tokens.iter().position(|token| is_punct(token, '>')) else {
        errors.at(tokens[1].span(), "expected `>` after `Sw<B,M,S`");
        return None;
    };
    if close + 1 < tokens.len() {
        errors.at(
            tokens[close + 1].span(),
            "expected `o` between a swizzle and what it swizzles",
        );
        return None;
    }
    let mut values = Vec::new();
    for part in tokens[2..close].split(|token| is_punct(token, ',')) {
        if part.is_empty() {
            continue;
        }
        let (value, used) = integer(part, errors)?;
        if used < part.len() {
            errors.at(
                part[used].span(),
                "expected `,` between the numbers of a swizzle",
            );
            return None;
        }
        values.push(value);
    }
    if let [b, m, s] = values[..] {
        Some(Operand::Swizzle { b, m, s, span })
    } else {
        errors.at(
            span,
            format!(
                "a swizzle has three numbers, `Sw<B,M,S>`, and this one has {}",
                values.len()
            ),
        );
        None
    }
}

/// A signed integer at the start of `tokens`, and how many tokens it took.
fn integer(tokens: &[TokenTree], errors: &mut Errors) -> Option<(i64, usize)> {
    let negative = tokens.first().is_some_and(|token| is_punct(token, '-'));
    let at = usize::from(negative);
    let Some(token) = tokens.get(at) else {
        errors.at(Place::of(tokens), "expected an integer");
        return None;
    };
    // CuTe's static integer `_4` is an identifier to Rust.
    let text = match token {
        TokenTree::Literal(literal) => literal.to_string(),
        TokenTree::Ident(ident) => {
            let name = ident.to_string();
            match name.strip_prefix('_') {
                Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                    digits.to_owned()
                }
                _ => {
                    errors.at(token.span(), format!("expected an integer, found `{name}`"));
                    return None;
                }
            }
        }
        _ => {
            errors.at(
                token.span(),
                format!("expected an integer, found `{token}`"),
            );
            return None;
        }
    };
    let digits: String = text.chars().filter(|&c| c != '_').collect();
    let parsed = match (digits.strip_prefix("0x"), digits.strip_prefix("0b")) {
        (Some(hex), _) => i128::from_str_radix(hex, 16).ok(),
        (_, Some(binary)) => i128::from_str_radix(binary, 2).ok(),
        _ => digits.parse::<i128>().ok(),
    };
    let Some(magnitude) = parsed else {
        let too_long = digits.chars().all(|c| c.is_ascii_digit());
        errors.at(
            token.span(),
            if too_long {
                format!("`{text}` does not fit in 64 bits")
            } else {
                format!("expected a plain integer, found `{text}`")
            },
        );
        return None;
    };
    let value = if negative { -magnitude } else { magnitude };
    let Ok(value) = i64::try_from(value) else {
        errors.at(token.span(), format!("`{text}` does not fit in 64 bits"));
        return None;
    };
    Some((value, at + 1))
}

fn tree(tokens: &[TokenTree], role: Role, errors: &mut Errors) -> Option<Tree> {
    if let TokenTree::Group(group) = &tokens[0] {
        if tokens.len() > 1 {
            errors.at(
                tokens[1].span(),
                match role {
                    Role::Shape => "expected `:` after the shape",
                    Role::Stride => "expected the end of the layout, or `o` and another",
                },
            );
            return None;
        }
        return tuple(group, role, errors);
    }
    leaf(tokens, role, errors).map(Tree::Leaf)
}

fn tuple(group: &Group, role: Role, errors: &mut Errors) -> Option<Tree> {
    let span = group.span();
    if group.delimiter() != Delimiter::Parenthesis {
        errors.at(span, "expected parentheses: a tuple is written `(4,(2,2))`");
        return None;
    }
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    if tokens.is_empty() {
        errors.at(span, "an empty tuple; a tuple needs at least one element");
        return None;
    }
    let mut elements = Vec::new();
    let mut good = true;
    let parts: Vec<&[TokenTree]> = tokens.split(|token| is_punct(token, ',')).collect();
    let last = parts.len() - 1;
    for (i, part) in parts.iter().enumerate() {
        if part.is_empty() {
            // A comma at the end is Rust's habit, and harmless.
            if i < last || i == 0 {
                errors.at(span, "an element is missing between two commas");
                good = false;
            }
            continue;
        }
        match tree(part, role, errors) {
            Some(element) => elements.push(element),
            None => good = false,
        }
    }
    good.then_some(Tree::Tuple(elements, span))
}

/// A sum of integers, names and integers times names.
fn leaf(tokens: &[TokenTree], role: Role, errors: &mut Errors) -> Option<Leaf> {
    let span = Place::of(tokens);
    let mut constant = 0i64;
    let mut names = Vec::new();
    let mut rest = tokens;
    let mut sign = 1i64;
    loop {
        let mut factor = sign;
        let is_name = matches!(&rest[0], TokenTree::Ident(ident) if {
            let name = ident.to_string();
            !(name.starts_with('_') && name[1..].starts_with(|c: char| c.is_ascii_digit()))
        });
        if !is_name {
            let (value, used) = integer(rest, errors)?;
            factor = value.checked_mul(sign).or_else(|| {
                errors.at(span, "the stride does not fit in 64 bits");
                None
            })?;
            rest = &rest[used..];
        }
        let times = !is_name && rest.first().is_some_and(|token| is_punct(token, '*'));
        if times {
            rest = &rest[1..];
        }
        if is_name || times {
            let Some(TokenTree::Ident(name)) = rest.first() else {
                errors.at(span, "expected a stride name after `*`, as in `2*ld`");
                return None;
            };
            if role == Role::Shape {
                errors.at(
                    name.span(),
                    format!(
                        "extents are integers; `{name}` is not (strides may have names: `(8,64):({name},1)`)"
                    ),
                );
                return None;
            }
            names.push((factor, name.to_string(), name.span()));
            rest = &rest[1..];
        } else {
            constant = constant.checked_add(factor).or_else(|| {
                errors.at(span, "the stride does not fit in 64 bits");
                None
            })?;
        }
        match rest.first() {
            None => break,
            Some(token) if is_punct(token, '+') || is_punct(token, '-') => {
                if role == Role::Shape {
                    errors.at(token.span(), "an extent is one integer; write the sum out");
                    return None;
                }
                sign = if is_punct(token, '-') { -1 } else { 1 };
                rest = &rest[1..];
                if rest.is_empty() {
                    errors.at(token.span(), "expected a term after the sign");
                    return None;
                }
            }
            Some(token) => {
                errors.at(
                    token.span(),
                    format!("expected `,` or `)`, found `{token}`"),
                );
                return None;
            }
        }
    }
    Some(Leaf {
        constant,
        names,
        span,
    })
}
