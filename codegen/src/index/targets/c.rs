//! C: CUDA's, one function for host and device, and OpenCL's, one function for kernels.
//!
//! The two differ in the names of types, in the suffixes of literals and in how the high half of a product is had; everything else is C's.
//! Arithmetic that may wrap is done without sign, where C defines it; a right shift of a negative value keeps the sign, as every CUDA
//! compiler does it and C++20 says. High halves of products are `mul_hi` in OpenCL C; of 64 bits, in CUDA C, they use `unsigned __int128` (nvcc
//! 11.5 and later, gcc, clang).

use std::fmt::Write as _;

use super::program::{Argument, Program, Statement};
use crate::index::code::{Op, Ty};
use crate::index::spec::IndexError;

/// Whose C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// NVIDIA's CUDA C and C++.
    Cuda,
    /// Khronos' OpenCL C.
    OpenCl,
}

/// Words of OpenCL C, besides those of C, that a function or a parameter can't be called.
const RESERVED_OPENCL: &[&str] = &[
    "bool",
    "constant",
    "event_t",
    "fragment",
    "generic",
    "global",
    "half",
    "image1d_t",
    "image2d_t",
    "image3d_t",
    "kernel",
    "local",
    "pipe",
    "private",
    "ptrdiff_t",
    "quad",
    "read_only",
    "read_write",
    "sampler_t",
    "size_t",
    "uchar",
    "uint",
    "ulong",
    "uniform",
    "ushort",
    "write_only",
    "intptr_t",
    "uintptr_t",
    "complex",
    "imaginary",
    "mul_hi",
];

/// Macros of the standard headers: any use of the name is replaced.
const MACROS: &[&str] = &[
    "NULL",
    "EOF",
    "INFINITY",
    "NAN",
    "CHAR_BIT",
    "INT_MAX",
    "INT_MIN",
    "UINT_MAX",
    "LONG_MAX",
    "LONG_MIN",
    "ULONG_MAX",
    "HUGE_VAL",
    "errno",
    "assert",
    "stdin",
    "stdout",
    "stderr",
    "linux",
    "unix",
    "offsetof",
    "I",
];

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

impl Dialect {
    fn type_name(self, ty: Ty) -> &'static str {
        match (self, ty) {
            (Self::Cuda, Ty::U32) => "unsigned",
            (Self::Cuda, Ty::U64) => "unsigned long long",
            (Self::Cuda, Ty::S64) => "long long",
            (Self::OpenCl, Ty::U32) => "uint",
            (Self::OpenCl, Ty::U64) => "ulong",
            (Self::OpenCl, Ty::S64) => "long",
            (_, Ty::S32) => "int",
        }
    }

    /// The suffix of a literal of 64 bits.
    fn suffix(self) -> &'static str {
        match self {
            Self::Cuda => "ll",
            Self::OpenCl => "l",
        }
    }

    fn check(self, name: &str) -> Result<(), IndexError> {
        let refuse = |reason| {
            Err(IndexError::Name {
                name: name.to_owned(),
                reason,
            })
        };
        if MACROS.contains(&name) {
            return refuse("is a macro of C's headers");
        }
        match self {
            Self::Cuda if RESERVED.contains(&name) || name.starts_with("__") => {
                refuse("is reserved in C++")
            }
            Self::OpenCl
                if RESERVED.contains(&name)
                    || RESERVED_OPENCL.contains(&name)
                    || name.starts_with("__") =>
            {
                refuse("is reserved in OpenCL C")
            }
            _ => Ok(()),
        }
    }
}

fn unsigned(ty: Ty) -> Ty {
    if ty.wide() { Ty::U64 } else { Ty::U32 }
}

pub(super) fn text(program: &Program, dialect: Dialect) -> Result<String, IndexError> {
    for p in &program.parameters {
        dialect.check(&p.name)?;
    }
    dialect.check(&program.name)?;
    let prefix = program.temporary_prefix();
    let first = program.parameters.len();
    let mut names: Vec<String> = program.parameters.iter().map(|p| p.name.clone()).collect();
    names.extend((0..program.statements.len()).map(|i| format!("{prefix}{i}")));
    let printer = Printer {
        dialect,
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
        .map(|p| format!("{} {}", dialect.type_name(p.ty), p.name))
        .collect();
    let qualifiers = match dialect {
        Dialect::Cuda => "__host__ __device__ __forceinline__ ",
        Dialect::OpenCl => "",
    };
    let _ = writeln!(
        out,
        "{qualifiers}{} {}({}) {{",
        dialect.type_name(program.ty),
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
            dialect.type_name(s.result),
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
    dialect: Dialect,
    program: &'a Program,
    names: &'a [String],
}

impl Printer<'_> {
    /// `a` as an operand of type `ty`.
    fn argument(&self, a: Argument, ty: Ty) -> String {
        let long = self.dialect.suffix();
        match a {
            Argument::Constant(k) => match ty {
                Ty::U32 => format!("{}u", k as u32),
                Ty::S32 if k as i32 == i32::MIN => "(-2147483647 - 1)".to_owned(),
                Ty::S32 => (k as i32).to_string(),
                Ty::U64 => format!("{}u{long}", k as u64),
                Ty::S64 if k == i64::MIN => {
                    format!("(-9223372036854775807{long} - 1)")
                }
                Ty::S64 => format!("{k}{long}"),
            },
            Argument::Value(v) if self.program.type_of(v) == ty => self.names[v].clone(),
            Argument::Value(v) => format!("({}){}", self.dialect.type_name(ty), self.names[v]),
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
            Op::MulWide => {
                let wide = self.dialect.type_name(wide);
                format!("({wide}){} * {}", arg(0, s.ty), arg(1, s.ty))
            }
            Op::MadWide => {
                let at = if s.exact { wide } else { Ty::U64 };
                format!(
                    "({}){} * {} + {}",
                    self.dialect.type_name(at),
                    // A product of signed values is formed with its sign.
                    self.widened(s.arguments[0], s.ty, wide),
                    self.widened(s.arguments[1], s.ty, wide),
                    arg(2, at)
                )
            }
            Op::MulHi if self.dialect == Dialect::OpenCl => {
                let at = unsigned(s.ty);
                format!("mul_hi({}, {})", arg(0, at), arg(1, at))
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
                return self.typed(shifted, at, s.result);
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
        self.typed(value, computed, s.result)
    }

    fn widened(&self, a: Argument, ty: Ty, wide: Ty) -> String {
        match a {
            Argument::Constant(_) => self.argument(a, wide),
            Argument::Value(_) => {
                let wide = self.dialect.type_name(wide);
                format!("({wide}){}", self.argument(a, ty))
            }
        }
    }

    fn typed(&self, value: String, from: Ty, to: Ty) -> String {
        if from == to {
            value
        } else {
            format!("({})({value})", self.dialect.type_name(to))
        }
    }
}

/// A shift distance without its suffix.
fn plain(text: &str) -> &str {
    text.trim_end_matches('u')
}
