//! CUDA C: one function for host and device.
//!
//! Arithmetic that may wrap is done without sign, where C defines it; a right shift of a negative value keeps the sign, as every CUDA
//! compiler does it and C++20 says. High halves of 64-bit products use `unsigned __int128` (nvcc 11.5 and later, gcc, clang).

use std::fmt::Write as _;

use super::program::{Argument, Program, Statement};
use crate::index::code::{Op, Ty};
use crate::index::spec::IndexError;

/// Words of C and C++ (and of CUDA) that look like identifiers.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "typeid",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "blockIdx",
    "blockDim",
    "threadIdx",
    "gridDim",
    "warpSize",
];

fn type_name(ty: Ty) -> &'static str {
    match ty {
        Ty::U32 => "unsigned",
        Ty::S32 => "int",
        Ty::U64 => "unsigned long long",
        Ty::S64 => "long long",
    }
}

fn unsigned(ty: Ty) -> Ty {
    if ty.wide() { Ty::U64 } else { Ty::U32 }
}

fn check(name: &str) -> Result<(), IndexError> {
    if RESERVED.contains(&name) || name.starts_with("__") {
        return Err(IndexError::Name {
            name: name.to_owned(),
            reason: "is reserved in C++",
        });
    }
    Ok(())
}

pub(super) fn text(program: &Program) -> Result<String, IndexError> {
    for p in &program.parameters {
        check(&p.name)?;
    }
    check(&program.name)?;
    let prefix = program.temporary_prefix();
    let first = program.parameters.len();
    let mut names: Vec<String> = program.parameters.iter().map(|p| p.name.clone()).collect();
    names.extend((0..program.statements.len()).map(|i| format!("{prefix}{i}")));
    let printer = Printer {
        program,
        names: &names,
    };

    let mut out = String::new();
    for line in &program.about {
        let _ = writeln!(out, "// {line}");
    }
    let parameters: Vec<_> = program
        .parameters
        .iter()
        .map(|p| format!("{} {}", type_name(p.ty), p.name))
        .collect();
    let _ = writeln!(
        out,
        "__host__ __device__ __forceinline__ {} {}({}) {{",
        type_name(program.ty),
        program.name,
        parameters.join(", ")
    );
    for (p, _) in program
        .parameters
        .iter()
        .zip(program.uses())
        .filter(|(_, uses)| *uses == 0)
    {
        let _ = writeln!(out, "    (void){};", p.name);
    }
    for (i, s) in program.statements.iter().enumerate() {
        let _ = writeln!(
            out,
            "    {} {} = {};",
            type_name(s.result),
            names[first + i],
            printer.statement(s)
        );
    }
    let _ = writeln!(
        out,
        "    return {};\n}}",
        printer.argument(program.result, program.ty)
    );
    Ok(out)
}

struct Printer<'a> {
    program: &'a Program,
    names: &'a [String],
}

impl Printer<'_> {
    /// `a` as an operand of type `ty`.
    fn argument(&self, a: Argument, ty: Ty) -> String {
        match a {
            Argument::Constant(k) => match ty {
                Ty::U32 => format!("{}u", k as u32),
                Ty::S32 if k as i32 == i32::MIN => "(-2147483647 - 1)".to_owned(),
                Ty::S32 => (k as i32).to_string(),
                Ty::U64 => format!("{}ull", k as u64),
                Ty::S64 if k == i64::MIN => "(-9223372036854775807ll - 1)".to_owned(),
                Ty::S64 => format!("{k}ll"),
            },
            Argument::Value(v) if self.program.type_of(v) == ty => self.names[v].clone(),
            Argument::Value(v) => format!("({}){}", type_name(ty), self.names[v]),
        }
    }

    fn statement(&self, s: &Statement) -> String {
        let wide = if s.ty.signed() { Ty::S64 } else { Ty::U64 };
        // Where the result wraps, C wants it without sign.
        let at = if s.exact { s.ty } else { unsigned(s.ty) };
        let arg = |i: usize, ty: Ty| self.argument(s.arguments[i], ty);
        let value = match s.op {
            Op::Add => match s.arguments[1] {
                Argument::Constant(k) if k < 0 && k != i64::MIN => {
                    let less = self.argument(Argument::Constant(-k), at);
                    format!("{} - {less}", arg(0, at))
                }
                _ => format!("{} + {}", arg(0, at), arg(1, at)),
            },
            Op::Sub => format!("{} - {}", arg(0, at), arg(1, at)),
            Op::Mul => format!("{} * {}", arg(0, at), arg(1, at)),
            Op::Mad => format!("{} * {} + {}", arg(0, at), arg(1, at), arg(2, at)),
            Op::MulWide => format!("({}){} * {}", type_name(wide), arg(0, s.ty), arg(1, s.ty)),
            Op::MadWide => {
                let at = if s.exact { wide } else { Ty::U64 };
                format!(
                    "({}){} * {} + {}",
                    type_name(at),
                    // A product of signed values is formed with its sign.
                    self.widened(s.arguments[0], s.ty, wide),
                    self.widened(s.arguments[1], s.ty, wide),
                    arg(2, at)
                )
            }
            Op::MulHi if s.ty.wide() => format!(
                "(unsigned long long)(((unsigned __int128){} * {}) >> 64)",
                arg(0, Ty::U64),
                arg(1, Ty::U64)
            ),
            Op::MulHi => format!(
                "(unsigned)(((unsigned long long){} * {}) >> 32)",
                arg(0, Ty::U32),
                arg(1, Ty::U32)
            ),
            // Shifting a negative value up is undefined before C++20.
            Op::Shl => {
                let at = unsigned(s.ty);
                let shifted = format!("{} << {}", arg(0, at), plain(&arg(1, Ty::S32)));
                return Self::typed(shifted, at, s.result);
            }
            Op::Shr => format!("{} >> {}", arg(0, s.ty), plain(&arg(1, Ty::S32))),
            Op::And => format!("{} & {}", arg(0, s.ty), arg(1, s.ty)),
            Op::Xor => format!("{} ^ {}", arg(0, s.ty), arg(1, s.ty)),
            Op::Div => format!("{} / {}", arg(0, s.ty), arg(1, s.ty)),
            Op::Widen | Op::Narrow => return arg(0, s.result),
        };
        let computed = match s.op {
            Op::MulWide | Op::MadWide if s.exact => wide,
            Op::MulWide | Op::MadWide => Ty::U64,
            _ => at,
        };
        Self::typed(value, computed, s.result)
    }

    fn widened(&self, a: Argument, ty: Ty, wide: Ty) -> String {
        match a {
            Argument::Constant(_) => self.argument(a, wide),
            Argument::Value(_) => format!("({}){}", type_name(wide), self.argument(a, ty)),
        }
    }

    fn typed(value: String, from: Ty, to: Ty) -> String {
        if from == to {
            value
        } else {
            format!("({})({value})", type_name(to))
        }
    }
}

/// A shift distance without its suffix.
fn plain(text: &str) -> &str {
    text.trim_end_matches('u')
}
