//! Rust: a `const fn` that needs no library, as tokens for macros and as text for build scripts.
//!
//! Values that are used once are written where they are used, so that short functions read like ones written by hand:
//!
//! ```text
//! pub const fn offset(row: u32, col: u32) -> u32 {
//!     debug_assert!(row < 8 && col < 64);
//!     (row << 6) + col ^ row << 3
//! }
//! ```
//!
//! Arithmetic that is exact is written with operators, arithmetic that is meant to wrap as `wrapping_add` and its like, so the
//! function computes the same in every profile. Coordinates are checked where debug assertions are on.

// A token such as `+` has no content: `Default::default()` says so without importing one type for each operator.
#![allow(clippy::default_trait_access)]

use proc_macro2::{Literal, Punct, Spacing, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{
    BinOp, Expr, ExprBinary, ExprCast, ExprLit, ExprMethodCall, ExprParen, Ident, Item, ItemFn,
    Lit, Type, parse_quote,
};

use super::program::{Argument, Program, Statement};
use crate::index::code::{Op, Ty};
use crate::index::spec::{IndexError, Parameter};

/// Nested operations after which a value gets a name of its own.
const DEPTH: usize = 5;

/// The function as an item: `pub const fn name(…) -> …`.
///
/// # Errors
///
/// [`IndexError::Name`] for keywords.
pub fn item(program: &Program) -> Result<ItemFn, IndexError> {
    let name = identifier(&program.name)?;
    let mut names = Vec::new();
    for p in &program.parameters {
        names.push(identifier(&p.name)?);
    }
    let types: Vec<Type> = program.parameters.iter().map(|p| rust_type(p.ty)).collect();
    let result = rust_type(program.ty);
    let docs = program.about.iter().map(|line| format!(" {line}"));

    let uses = program.uses();
    let first = program.parameters.len();
    let mut printer = Printer {
        program,
        values: names
            .iter()
            .map(|n| (parse_quote!(#n), 0))
            .collect::<Vec<(Expr, usize)>>(),
    };
    let mut body: Vec<syn::Stmt> = Vec::new();
    let checks: Vec<TokenStream> = program
        .parameters
        .iter()
        .zip(&names)
        .flat_map(|(p, n)| in_range(p, n))
        .collect();
    if let Some(all) = checks.iter().cloned().reduce(|a, b| quote!(#a && #b)) {
        body.push(parse_quote!(debug_assert!(#all);));
    }
    for (i, n) in names.iter().enumerate() {
        if uses[i] == 0 {
            body.push(parse_quote!(let _ = #n;));
        }
    }
    let prefix = program.temporary_prefix();
    for (i, s) in program.statements.iter().enumerate() {
        let (value, depth) = printer.statement(s);
        let last = program.result == Argument::Value(first + i);
        if uses[first + i] == 1 && (depth < DEPTH || last) {
            printer.values.push((value, depth));
        } else {
            let name = format_ident!("{prefix}{i}");
            body.push(parse_quote!(let #name = #value;));
            printer.values.push((parse_quote!(#name), 0));
        }
    }
    let (value, _) = printer.argument(program.result, program.ty);
    Ok(parse_quote! {
        #(#[doc = #docs])*
        #[inline]
        #[must_use]
        pub const fn #name(#(#names: #types),*) -> #result {
            #(#body)*
            #value
        }
    })
}

/// The function as an item whose signature has types of the caller's choosing, `usize` for one: the parameters are cast to their types
/// in the program, and the result from its.
///
/// # Errors
///
/// As [`item`].
pub fn wrapped_item(
    program: &Program,
    parameters: &[Type],
    result: &Type,
) -> Result<ItemFn, IndexError> {
    let inner = item(program)?;
    let own: Vec<Type> = program.parameters.iter().map(|p| rust_type(p.ty)).collect();
    if own == parameters && rust_type(program.ty) == *result {
        return Ok(inner);
    }
    let (attrs, name) = (&inner.attrs, &inner.sig.ident);
    let mut names = Vec::new();
    for p in &program.parameters {
        names.push(identifier(&p.name)?);
    }
    let (inputs, output, block) = (&inner.sig.inputs, &inner.sig.output, &inner.block);
    Ok(parse_quote! {
        #(#attrs)*
        pub const fn #name(#(#names: #parameters),*) -> #result {
            #[inline]
            const fn narrow(#inputs) #output #block
            narrow(#(#names as #own),*) as #result
        }
    })
}

pub(super) fn text(program: &Program) -> Result<String, IndexError> {
    let item = Item::Fn(item(program)?);
    Ok(prettyplease::unparse(&syn::File {
        shebang: None,
        frontmatter: None,
        attrs: Vec::new(),
        items: vec![item],
    }))
}

/// A Rust type, by its name.
fn rust_type(ty: Ty) -> Type {
    let name = format_ident!("{}", ty.name());
    parse_quote!(#name)
}

fn identifier(name: &str) -> Result<Ident, IndexError> {
    // A keyword since the edition of 2024, which the parser takes for a name.
    syn::parse_str(name)
        .ok()
        .filter(|_| name != "gen")
        .ok_or_else(|| IndexError::Name {
            name: name.to_owned(),
            reason: "is a keyword of Rust",
        })
}

/// What `p` must satisfy beyond its type.
fn in_range(p: &Parameter, name: &Ident) -> Vec<TokenStream> {
    let (least, most) = p.ty.range();
    // The checks stand in a macro, whose tokens are printed apart unless they are joint.
    let literal = |k: i64| match constant(k, p.ty) {
        Expr::Unary(negative) => {
            let (sign, number) = (Punct::new('-', Spacing::Joint), negative.expr);
            quote!(#sign #number)
        }
        number => number.into_token_stream(),
    };
    let mut checks = Vec::new();
    if i128::from(p.lo) > least {
        let lo = literal(p.lo);
        checks.push(quote!(#name >= #lo));
    }
    if i128::from(p.hi) < most && p.hi < i64::MAX {
        let end = i128::from(p.hi) + 1;
        checks.push(if end <= most {
            let end = literal(p.hi + 1);
            quote!(#name < #end)
        } else {
            let hi = literal(p.hi);
            quote!(#name <= #hi)
        });
    }
    checks
}

/// `k` as a literal of type `ty`: masks and large multipliers in hexadecimal.
fn constant(k: i64, ty: Ty) -> Expr {
    let digits = match ty {
        Ty::U32 => (k as u32).to_string(),
        Ty::U64 => (k as u64).to_string(),
        Ty::S32 => (k as i32).to_string(),
        Ty::S64 => k.to_string(),
    };
    let (minus, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest.to_owned()),
        None => (false, digits),
    };
    let literal: Literal = digits
        .parse()
        .unwrap_or_else(|_| Literal::u64_unsuffixed(0));
    let lit = Expr::Lit(ExprLit {
        attrs: Vec::new(),
        lit: Lit::new(literal),
    });
    if minus { parse_quote!(-#lit) } else { lit }
}

fn mask_constant(k: i64, ty: Ty) -> Expr {
    let bits = if ty.wide() {
        k as u64
    } else {
        u64::from(k as u32)
    };
    if bits < 10 || ty.signed() {
        return constant(k, ty);
    }
    let literal: Literal = format!("{bits:#x}")
        .parse()
        .unwrap_or_else(|_| Literal::u64_unsuffixed(bits));
    Expr::Lit(ExprLit {
        attrs: Vec::new(),
        lit: Lit::new(literal),
    })
}

/// `e` as an operand: in parentheses if it is itself an operation, which leaves no precedence to remember.
fn grouped(e: Expr) -> Expr {
    match e {
        Expr::Binary(_) | Expr::Cast(_) | Expr::Unary(_) => Expr::Paren(ExprParen {
            attrs: Vec::new(),
            paren_token: syn::token::Paren::default(),
            expr: Box::new(e),
        }),
        _ => e,
    }
}

/// `left op right`, without parentheses around products in sums.
fn binary(left: Expr, op: BinOp, right: Expr) -> Expr {
    let product = |e: &Expr| {
        matches!(
            e,
            Expr::Binary(ExprBinary {
                op: BinOp::Mul(_),
                ..
            })
        )
    };
    let sum = |e: &Expr| {
        matches!(
            e,
            Expr::Binary(ExprBinary {
                op: BinOp::Add(_) | BinOp::Sub(_),
                ..
            })
        )
    };
    let xor = |e: &Expr| {
        matches!(
            e,
            Expr::Binary(ExprBinary {
                op: BinOp::BitXor(_),
                ..
            })
        )
    };
    let adds = matches!(op, BinOp::Add(_) | BinOp::Sub(_));
    let keeps_left =
        (adds && (product(&left) || sum(&left))) || (matches!(op, BinOp::BitXor(_)) && xor(&left));
    let left = if keeps_left { left } else { grouped(left) };
    let right = if adds && product(&right) {
        right
    } else {
        grouped(right)
    };
    Expr::Binary(ExprBinary {
        attrs: Vec::new(),
        left: Box::new(left),
        op,
        right: Box::new(right),
    })
}

fn cast(e: Expr, ty: &Type) -> Expr {
    Expr::Cast(ExprCast {
        attrs: Vec::new(),
        expr: Box::new(grouped(e)),
        as_token: syn::token::As::default(),
        ty: Box::new(ty.clone()),
    })
}

fn method(receiver: Expr, name: &str, arguments: &[Expr]) -> Expr {
    let name = format_ident!("{name}");
    let mut call: ExprMethodCall = parse_quote!(x.#name(#(#arguments),*));
    call.receiver = Box::new(match receiver {
        // A bare literal has no type to call a method of.
        Expr::MethodCall(_) | Expr::Path(_) => receiver,
        other => grouped(other),
    });
    Expr::MethodCall(call)
}

struct Printer<'a> {
    program: &'a Program,
    /// Each value with the operations nested in it.
    values: Vec<(Expr, usize)>,
}

impl Printer<'_> {
    fn argument(&self, a: Argument, ty: Ty) -> (Expr, usize) {
        match a {
            Argument::Constant(k) => (constant(k, ty), 0),
            Argument::Value(v) if self.program.type_of(v) == ty => self.values[v].clone(),
            Argument::Value(v) => {
                let (e, depth) = self.values[v].clone();
                (cast(e, &rust_type(ty)), depth)
            }
        }
    }

    fn statement(&self, s: &Statement) -> (Expr, usize) {
        let wide = if s.ty.signed() { Ty::S64 } else { Ty::U64 };
        let mut depth = 0;
        let mut arg = |i: usize, ty: Ty| {
            let (e, d) = self.argument(s.arguments[i], ty);
            depth = depth.max(d + 1);
            e
        };
        let plus = || BinOp::Add(<syn::Token![+]>::default());
        let minus = || BinOp::Sub(<syn::Token![-]>::default());
        let times = || BinOp::Mul(<syn::Token![*]>::default());
        let shift_right = || BinOp::Shr(<syn::Token![>>]>::default());
        let sum = |arg: &mut dyn FnMut(usize, Ty) -> Expr, left: Expr, i: usize, ty: Ty| match (
            s.exact,
            s.arguments[i],
        ) {
            (true, Argument::Constant(k)) if k < 0 && k != i64::MIN => {
                binary(left, minus(), constant(-k, ty))
            }
            (true, _) => binary(left, plus(), arg(i, ty)),
            (false, Argument::Constant(k)) if k < 0 && k != i64::MIN => {
                method(left, "wrapping_sub", &[constant(-k, ty)])
            }
            (false, _) => method(left, "wrapping_add", &[arg(i, ty)]),
        };
        let value = match s.op {
            Op::Add => {
                let left = arg(0, s.ty);
                sum(&mut arg, left, 1, s.ty)
            }
            Op::Sub => match (s.exact, s.arguments[0]) {
                (true, _) => binary(arg(0, s.ty), minus(), arg(1, s.ty)),
                (false, Argument::Constant(0)) => method(arg(1, s.ty), "wrapping_neg", &[]),
                (false, _) => method(arg(0, s.ty), "wrapping_sub", &[arg(1, s.ty)]),
            },
            Op::Mul if s.exact => binary(arg(0, s.ty), times(), arg(1, s.ty)),
            Op::Mul => method(arg(0, s.ty), "wrapping_mul", &[arg(1, s.ty)]),
            Op::Mad => {
                let product = if s.exact {
                    binary(arg(0, s.ty), times(), arg(1, s.ty))
                } else {
                    method(arg(0, s.ty), "wrapping_mul", &[arg(1, s.ty)])
                };
                sum(&mut arg, product, 2, s.ty)
            }
            Op::MulWide | Op::MadWide => {
                let mut widened = |i: usize| match s.arguments[i] {
                    Argument::Constant(k) => constant(k, wide),
                    Argument::Value(_) => {
                        let narrow = arg(i, s.ty);
                        cast(narrow, &rust_type(wide))
                    }
                };
                let (a, b) = (widened(0), widened(1));
                // The product of two words always fits twice the width.
                let product = binary(a, times(), b);
                if s.op == Op::MadWide {
                    sum(&mut arg, product, 2, wide)
                } else {
                    product
                }
            }
            Op::MulHi => {
                let (double, width): (Type, Expr) = if s.ty.wide() {
                    (parse_quote!(u128), parse_quote!(64))
                } else {
                    (parse_quote!(u64), parse_quote!(32))
                };
                let (a, b) = (arg(0, s.ty), arg(1, s.ty));
                let product = binary(cast(a, &double), times(), cast(b, &double));
                cast(binary(product, shift_right(), width), &rust_type(s.ty))
            }
            Op::Shl => {
                let by = shift_distance(s.arguments[1], &mut arg);
                let value = arg(0, s.ty);
                // Bits that leave a signed value are cut off as in every other type.
                binary(value, BinOp::Shl(<syn::Token![<<]>::default()), by)
            }
            Op::Shr => {
                let by = shift_distance(s.arguments[1], &mut arg);
                binary(arg(0, s.ty), shift_right(), by)
            }
            Op::And => {
                let mask = match s.arguments[1] {
                    Argument::Constant(k) => mask_constant(k, s.ty),
                    Argument::Value(_) => arg(1, s.ty),
                };
                binary(
                    arg(0, s.ty),
                    BinOp::BitAnd(<syn::Token![&]>::default()),
                    mask,
                )
            }
            Op::Xor => {
                let right = match s.arguments[1] {
                    Argument::Constant(k) => mask_constant(k, s.ty),
                    Argument::Value(_) => arg(1, s.ty),
                };
                binary(
                    arg(0, s.ty),
                    BinOp::BitXor(<syn::Token![^]>::default()),
                    right,
                )
            }
            Op::Div => method(arg(0, s.ty), "div_euclid", &[arg(1, s.ty)]),
            Op::Widen | Op::Narrow => arg(0, s.result),
        };
        (value, depth)
    }
}

fn shift_distance(a: Argument, arg: &mut dyn FnMut(usize, Ty) -> Expr) -> Expr {
    match a {
        Argument::Constant(k) => constant(k, Ty::S32),
        Argument::Value(_) => arg(1, Ty::U32),
    }
}

impl Program {
    /// The Rust function as tokens: what macros expand to.
    ///
    /// # Errors
    ///
    /// As [`item`].
    pub fn rust_tokens(&self) -> Result<TokenStream, IndexError> {
        Ok(item(self)?.into_token_stream())
    }
}
