//! What the written means: values of the algebra, made and checked by `layout-core`. Every error points at the token whose
//! number is at fault.

use layout_core::{Affine, Function, IntTuple, Layout, LayoutError, Swizzle, Swizzled};
use proc_macro2::{Span, TokenStream};

use crate::ast::{Composition, Leaf, Operand, Tree};
use crate::errors::{Errors, Place};

/// What a call of `layout!` expands to.
pub(crate) enum Model {
    /// A plain layout.
    Plain(Box<Layout>),
    /// A composed layout.
    Swizzled(Box<Swizzled>),
    /// A layout with named strides, in the notation.
    Affine(String),
    /// A layout with named strides under a swizzle or an offset, in the notation.
    SwizzledAffine(String),
    /// A composition in which constants of the caller take part: for the compiler to evaluate.
    Deferred(Vec<Part>),
}

/// An operand of a deferred composition, from left to right.
pub(crate) enum Part {
    /// Known here.
    Layout(Box<Layout>),
    /// Known here.
    Swizzle(Swizzle),
    /// Known here.
    Offset(i64),
    /// The caller's.
    Constant(TokenStream, Span),
}

/// A value on the way, with where it stands.
enum Value {
    Plain(Box<Layout>),
    Affine(Box<Affine>),
    Swizzle(Swizzle),
    Offset(i64),
    Constant(TokenStream),
}

/// The value of a tuple without names.
pub(crate) fn int_tuple(tree: &Tree, errors: &mut Errors) -> Option<IntTuple> {
    match tree {
        Tree::Leaf(leaf) => Some(IntTuple::int(leaf.constant)),
        Tree::Tuple(elements, span) => {
            let elements: Vec<IntTuple> = elements
                .iter()
                .filter_map(|element| int_tuple(element, errors))
                .collect();
            match IntTuple::tuple(&elements) {
                Ok(tuple) => Some(tuple),
                Err(error) => {
                    errors.at(*span, error);
                    None
                }
            }
        }
    }
}

/// Reports every place where two tuples are nested differently.
fn congruent(shape: &Tree, stride: &Tree, errors: &mut Errors) -> bool {
    match (shape, stride) {
        (Tree::Leaf(_), Tree::Leaf(_)) => true,
        (Tree::Tuple(left, _), Tree::Tuple(right, span)) => {
            if left.len() != right.len() {
                errors.at(
                    *span,
                    format!(
                        "{} strides for {} extents; write one stride for each extent, nested alike",
                        right.len(),
                        left.len()
                    ),
                );
                return false;
            }
            // No short circuit: every difference is reported.
            left.iter()
                .zip(right)
                .fold(true, |good, (l, r)| congruent(l, r, errors) && good)
        }
        (Tree::Tuple(extents, _), Tree::Leaf(leaf)) => {
            errors.at(
                leaf.span,
                format!(
                    "one stride for a tuple of {} extents; write one for each, in parentheses",
                    extents.len()
                ),
            );
            false
        }
        (Tree::Leaf(_), Tree::Tuple(strides, span)) => {
            errors.at(
                *span,
                format!(
                    "a tuple of {} strides for one extent; write one stride without parentheses",
                    strides.len()
                ),
            );
            false
        }
    }
}

/// Reports every extent below 1 (also for `shape!`).
pub(crate) fn extents(shape: &Tree, errors: &mut Errors) -> bool {
    let mut good = true;
    for leaf in shape.leaves() {
        if leaf.constant < 1 {
            errors.at(
                leaf.span,
                format!("extents are at least 1, and this one is {}", leaf.constant),
            );
            good = false;
        }
    }
    good
}

/// The shape with its strides in the notation, names included.
fn notation(tree: &Tree) -> String {
    match tree {
        Tree::Leaf(leaf) => leaf_notation(leaf),
        Tree::Tuple(elements, _) => {
            let elements: Vec<String> = elements.iter().map(notation).collect();
            format!("({})", elements.join(","))
        }
    }
}

fn leaf_notation(leaf: &Leaf) -> String {
    let mut terms: Vec<String> = leaf
        .names
        .iter()
        .map(|(factor, name, _)| match factor {
            1 => name.clone(),
            _ => format!("{factor}*{name}"),
        })
        .collect();
    if leaf.constant != 0 || terms.is_empty() {
        terms.push(leaf.constant.to_string());
    }
    // A negative term brings its own sign.
    terms.join("+").replace("+-", "-")
}

fn value(operand: &Operand, errors: &mut Errors) -> Option<Value> {
    match operand {
        Operand::Layout {
            shape,
            stride,
            span,
        } => layout(shape, stride, *span, errors),
        Operand::Swizzle { b, m, s, span } => {
            let made = match (u32::try_from(*b), u32::try_from(*m), i32::try_from(*s)) {
                (Ok(b), Ok(m), Ok(s)) => Swizzle::new(b, m, s).map_err(|error| error.to_string()),
                _ => Err(format!(
                    "Sw<{b},{m},{s}>: B and M are at least 0, and B + M + |S| is at most 62"
                )),
            };
            match made {
                Ok(swizzle) => Some(Value::Swizzle(swizzle)),
                Err(error) => {
                    errors.at(*span, error);
                    None
                }
            }
        }
        Operand::Offset { value, .. } => Some(Value::Offset(*value)),
        Operand::Constant { tokens, .. } => Some(Value::Constant(tokens.clone())),
    }
}

fn layout(shape: &Tree, stride: &Tree, span: Place, errors: &mut Errors) -> Option<Value> {
    let good = extents(shape, errors) & congruent(shape, stride, errors);
    if !good {
        return None;
    }
    if stride.leaves().iter().any(|leaf| !leaf.names.is_empty()) {
        return affine(shape, stride, span, errors);
    }
    let shape = int_tuple(shape, errors)?;
    let stride = int_tuple(stride, errors)?;
    match Layout::new(shape, stride) {
        Ok(layout) => Some(Value::Plain(Box::new(layout))),
        Err(error) => {
            errors.at(span, error);
            None
        }
    }
}

fn affine(shape: &Tree, stride: &Tree, span: Place, errors: &mut Errors) -> Option<Value> {
    let mut seen: Vec<&str> = Vec::new();
    for (_, name, at) in stride.leaves().into_iter().flat_map(|leaf| &leaf.names) {
        if let Err(error) = layout_core::Parameter::new(name) {
            errors.at(*at, error);
            return None;
        }
        if !seen.contains(&name.as_str()) {
            seen.push(name);
            if seen.len() > layout_core::MAX_PARAMETERS {
                errors.at(
                    *at,
                    format!(
                        "at most {} stride names in one layout",
                        layout_core::MAX_PARAMETERS
                    ),
                );
                return None;
            }
        }
    }
    match Affine::parse(&format!("{}:{}", notation(shape), notation(stride))) {
        Ok(affine) => Some(Value::Affine(Box::new(affine))),
        Err(error) => {
            errors.at(span, error.message());
            None
        }
    }
}

/// The value of a whole composition.
pub(crate) fn composition(ast: &Composition, errors: &mut Errors) -> Option<Model> {
    let values: Vec<Option<Value>> = ast
        .operands
        .iter()
        .map(|operand| value(operand, errors))
        .collect();
    if !errors.is_empty() {
        return None;
    }
    let values: Vec<Value> = values.into_iter().flatten().collect();
    places(&values, &ast.operands, errors);
    if !errors.is_empty() {
        return None;
    }
    if values
        .iter()
        .any(|value| matches!(value, Value::Constant(_)))
    {
        return deferred(values, &ast.operands, errors);
    }
    evaluate(&values, &ast.operands, errors)
}

/// Reports operands that cannot end a composition.
fn places(values: &[Value], operands: &[Operand], errors: &mut Errors) {
    let Some((value, operand)) = values.last().zip(operands.last()) else {
        return;
    };
    match value {
        Value::Swizzle(_) => errors.at(
            operand.span(),
            "a swizzle needs a layout to its right: `Sw<B,M,S> o layout`",
        ),
        Value::Offset(_) => errors.at(
            operand.span(),
            "an integer alone is not a layout: write `extent:stride`, or `offset o layout`",
        ),
        _ => {}
    }
    let constant = values.iter().any(|v| matches!(v, Value::Constant(_)));
    for (value, operand) in values.iter().zip(operands) {
        if constant && matches!(value, Value::Affine(_)) {
            errors.at(
                operand.span(),
                "stride names do not compose with constants of yours; write the layout out",
            );
        }
    }
}

/// Puts an error of `outer ∘ inner` at the leaf of `inner` that it is about.
fn not_composable(error: &LayoutError, inner: &Operand, errors: &mut Errors) {
    let leaf = match *error {
        LayoutError::NotComposable { mode, .. } | LayoutError::ModesCarry { mode, .. } => {
            Some(mode)
        }
        _ => None,
    };
    let span = match (inner, leaf) {
        (Operand::Layout { stride, .. }, Some(mode)) => {
            stride.leaves().get(mode).map(|leaf| leaf.span)
        }
        _ => None,
    };
    errors.at(span.unwrap_or_else(|| inner.span()), error);
}

fn evaluate(values: &[Value], operands: &[Operand], errors: &mut Errors) -> Option<Model> {
    let function = |value: &Value| match value {
        Value::Plain(layout) => Some(Function::from(**layout)),
        Value::Affine(layout) => Some(Function::from(**layout)),
        Value::Swizzle(swizzle) => Some(Function::Swizzle(*swizzle)),
        Value::Offset(offset) => Some(Function::Offset(*offset)),
        Value::Constant(_) => None,
    };
    let (last, outer) = values.split_last()?;
    let mut result = function(last)?;
    for (i, value) in outer.iter().enumerate().rev() {
        match function(value)?.compose(&result) {
            Ok(next) => result = next,
            Err(error) => {
                not_composable(&error, &operands[i + 1], errors);
                return None;
            }
        }
    }
    let plain = values
        .iter()
        .all(|v| matches!(v, Value::Plain(_) | Value::Affine(_)));
    match result {
        Function::Layout(layout) => Some(match layout.as_plain() {
            Some(layout) if plain => Model::Plain(Box::new(layout)),
            _ => Model::Swizzled(Box::new(layout)),
        }),
        Function::Affine(layout) => Some(match layout.as_plain() {
            Some(layout) if plain => Model::Affine(layout.to_string()),
            _ => Model::SwizzledAffine(layout.to_string()),
        }),
        _ => {
            errors.at(operands[0].span(), LayoutError::SeveralSteps);
            None
        }
    }
}

fn deferred(values: Vec<Value>, operands: &[Operand], errors: &mut Errors) -> Option<Model> {
    let parts: Vec<Part> = values
        .into_iter()
        .zip(operands)
        .map(|(value, operand)| match value {
            Value::Plain(layout) => Part::Layout(layout),
            Value::Swizzle(swizzle) => Part::Swizzle(swizzle),
            Value::Offset(offset) => Part::Offset(offset),
            Value::Constant(tokens) => Part::Constant(tokens, operand.span().0),
            // Refused by `places`.
            Value::Affine(_) => Part::Offset(0),
        })
        .collect();
    errors.is_empty().then_some(Model::Deferred(parts))
}
