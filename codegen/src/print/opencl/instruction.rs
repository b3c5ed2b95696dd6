//! The value that an instruction computes, as an expression.

use super::expression::Operands;
use crate::ir::{Axis, Binary, Cmp, Inst, Logic, Rounding, Special, Src, Type, Unary};

/// What has no form, and what would be accepted.
pub(super) type Missing = (String, &'static str);

const PLAIN: &str = "kernels of f32 and f64 arithmetic with plain loads and stores have one (such as sgemm-maxas-128)";

pub(super) fn missing<T>(what: &str) -> Result<T, Missing> {
    Err((what.to_owned(), PLAIN))
}

/// The expression of an instruction with one result.
pub(super) fn value(o: &Operands<'_>, inst: &Inst) -> Result<String, Missing> {
    Ok(match inst {
        Inst::Index {
            op,
            ty,
            from,
            to,
            args,
        } => o.index(*op, *ty, *from, args, o.is_pointer(*to)),
        Inst::Special { register, .. } => special(*register),
        Inst::SharedBase { .. } => "0u".to_owned(),
        Inst::Param { name, .. } => o.names.parameter(name).to_owned(),
        Inst::ToGlobal { to, from } => {
            let cast = o.declared(*to);
            format!("({cast}){}", o.register(*from))
        }
        Inst::Move { ty, to, from } => match from {
            Src::Reg(r) if o.is_pointer(*to) => o.register(*r),
            _ => o.source(*from, *ty),
        },
        Inst::Compare {
            cmp, ty, a, b, and, ..
        } => {
            let compared = compare(o, *cmp, *ty, *a, *b);
            match and {
                None => compared,
                Some(p) => format!("{compared} && {}", o.register(*p)),
            }
        }
        Inst::Logic { op, a, b, .. } => {
            let op = match op {
                Logic::And => "&&",
                Logic::Or => "||",
                Logic::Xor => "!=",
            };
            format!("{} {op} {}", o.register(*a), o.register(*b))
        }
        Inst::Select { ty, to, a, b, p } => {
            let side = |s: Src| match s {
                Src::Reg(r) if o.is_pointer(*to) => o.register(r),
                _ => o.source(s, unsigned(*ty)),
            };
            format!("{} ? {} : {}", o.register(*p), side(*a), side(*b))
        }
        Inst::Binary { op, ty, to, a, b } => match (a, b) {
            (Src::Reg(a), b) if o.is_pointer(*to) && o.is_pointer(*a) => {
                format!("{} + {}", o.register(*a), o.source(*b, Type::U64))
            }
            (a, Src::Reg(b)) if o.is_pointer(*to) => {
                format!("{} + {}", o.register(*b), o.source(*a, Type::U64))
            }
            _ => binary(o, *op, *ty, *a, *b)?,
        },
        Inst::MulAdd { ty, a, b, c, .. } => {
            let ty = unsigned(arithmetic(*ty)?);
            let [a, b, c] = [a, b, c].map(|s| o.source(*s, ty));
            if is_float(ty) {
                format!("fma({a}, {b}, {c})")
            } else {
                format!("{a} * {b} + {c}")
            }
        }
        Inst::Unary { op, ty, a, .. } => unary(o, *op, *ty, *a)?,
        Inst::Convert {
            to_ty,
            from_ty,
            from,
            ..
        } => convert(o, *to_ty, *from_ty, (*from).into())?,
        Inst::Round {
            to_ty,
            rounding,
            from,
            ..
        } => {
            let to = match to_ty {
                Type::S32 => "int",
                Type::U32 => "uint",
                // Through `int`, which repeats the sign.
                Type::S8 => "char",
                _ => {
                    return missing(
                        "a conversion of f32 to an integer that is not of 8 or 32 bits",
                    );
                }
            };
            let rounding = match rounding {
                Rounding::Nearest => "rte",
                Rounding::Zero => "rtz",
                Rounding::Down => "rtn",
                Rounding::Up => "rtp",
            };
            let narrow = if *to_ty == Type::S8 { "(int)" } else { "" };
            format!(
                "(uint){narrow}convert_{to}_sat_{rounding}({})",
                o.register(*from)
            )
        }
        Inst::Pack { parts, .. } => match &parts[..] {
            [low, high] => format!(
                "(uint){} | (uint){} << 16",
                o.register(*low),
                o.register(*high)
            ),
            _ => return missing("a pack of other than two halves"),
        },
        Inst::Permute { a, b, selector, .. } => {
            let bytes: Vec<String> = (0..4)
                .map(|i| (selector >> (4 * i) & 0xf).to_string())
                .collect();
            if selector & 0x8888 != 0 {
                return missing("a byte permutation that spreads signs");
            }
            format!(
                "as_uint(shuffle2(as_uchar4({}), as_uchar4({}), (uchar4)({})))",
                o.register(*a),
                o.register(*b),
                bytes.join(", ")
            )
        }
        Inst::ConvertPair { to_ty, .. } => {
            return missing(match to_ty {
                Type::E4m3x2 | Type::E5m2x2 => "a conversion to 8-bit floats",
                _ => "a conversion to a pair of halves",
            });
        }
        Inst::Shuffle { .. } => return missing("a warp shuffle, which needs warps of 32 threads"),
        Inst::CopyAsync { .. } | Inst::CommitGroup | Inst::WaitGroup { .. } | Inst::WaitAll => {
            return missing("cp.async, an asynchronous copy to shared memory");
        }
        Inst::LoadMatrix { .. } => return missing("ldmatrix"),
        Inst::StoreMatrix { .. } => return missing("stmatrix"),
        Inst::Hopper(_) => return missing("an instruction of Hopper"),
        Inst::Mma { atom, .. } => return missing(atom.name),
        Inst::Unpack { .. }
        | Inst::Load { .. }
        | Inst::Store { .. }
        | Inst::Barrier
        | Inst::WarpBarrier => return missing("an instruction without a value"),
    })
}

fn special(register: Special) -> String {
    let number = |axis: Axis| axis as usize;
    match register {
        Special::Thread(axis) => format!("(uint)get_local_id({})", number(axis)),
        Special::Block(axis) => format!("(uint)get_group_id({})", number(axis)),
    }
}

/// Selections take bits as they are.
fn unsigned(ty: Type) -> Type {
    match ty {
        Type::S32 | Type::B32 => Type::U32,
        Type::S64 | Type::B64 => Type::U64,
        other => other,
    }
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F64)
}

/// A type of which there is arithmetic.
fn arithmetic(ty: Type) -> Result<Type, Missing> {
    match ty {
        Type::F16 | Type::F16x2 => missing("arithmetic in f16"),
        Type::Bf16 | Type::Bf16x2 => missing("arithmetic in bf16"),
        Type::E4m3x2 | Type::E5m2x2 => missing("arithmetic in 8-bit floats"),
        Type::U8 | Type::S8 | Type::U16 | Type::B16 => missing("arithmetic in 8 or 16 bits"),
        other => Ok(other),
    }
}

fn compare(o: &Operands<'_>, cmp: Cmp, ty: Type, a: Src, b: Src) -> String {
    let (a, b) = (o.source(a, ty), o.source(b, ty));
    let op = match cmp {
        Cmp::Eq => "==",
        // False if one side is NaN.
        Cmp::Ne if is_float(ty) => return format!("islessgreater({a}, {b})"),
        Cmp::Ne | Cmp::Neu => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    };
    format!("{a} {op} {b}")
}

fn binary(o: &Operands<'_>, op: Binary, ty: Type, a: Src, b: Src) -> Result<String, Missing> {
    if let (Type::B16 | Type::U16, Some(op)) = (ty, bits_operator(op, b)) {
        // Done in 32 bits, of which the low half is the result.
        let (a, b) = (o.source(a, ty), o.source(b, ty));
        return Ok(format!("(ushort)({a} {op} {b})"));
    }
    let ty = arithmetic(ty)?;
    // The smaller and the larger, and bits that come down, depend on the sign; sums and low halves of products do not.
    let at = match op {
        Binary::Min | Binary::Max | Binary::Shr | Binary::MulHi => ty,
        _ => unsigned(ty),
    };
    let by = b;
    let (a, b) = (o.source(a, at), o.source(b, at));
    let back = |text: String| match ty {
        Type::S32 => format!("(uint)({text})"),
        Type::S64 => format!("(ulong)({text})"),
        _ => text,
    };
    let bits = 8 * i64::from(ty.bytes());
    let distance = |shifted: String, none: &str| match by {
        Src::Int(k) if (0..bits).contains(&k) => shifted,
        // PTX shifts everything out, OpenCL C takes the distance modulo the width.
        _ => format!("{b} < {bits}u ? {shifted} : {none}"),
    };
    Ok(match op {
        Binary::Add => format!("{a} + {b}"),
        Binary::Sub => format!("{a} - {b}"),
        Binary::Mul => format!("{a} * {b}"),
        Binary::MulHi => back(format!("mul_hi({a}, {b})")),
        Binary::Div => format!("{a} / {b}"),
        Binary::Rem => format!("{a} % {b}"),
        Binary::Min if is_float(ty) => format!("fmin({a}, {b})"),
        Binary::Max if is_float(ty) => format!("fmax({a}, {b})"),
        Binary::Min => back(format!("min({a}, {b})")),
        Binary::Max => back(format!("max({a}, {b})")),
        Binary::MinNan => format!("isnan({a}) ? {a} : isnan({b}) ? {b} : fmin({a}, {b})"),
        Binary::MaxNan => format!("isnan({a}) ? {a} : isnan({b}) ? {b} : fmax({a}, {b})"),
        Binary::Shl => distance(format!("{a} << {b}"), "0"),
        Binary::Shr if matches!(ty, Type::S32 | Type::S64) => match by {
            Src::Int(k) if (0..bits).contains(&k) => back(format!("{a} >> {b}")),
            _ => back(format!("{a} >> min({b}, {})", bits - 1)),
        },
        Binary::Shr => distance(format!("{a} >> {b}"), "0"),
        Binary::And => format!("{a} & {b}"),
        Binary::Or => format!("{a} | {b}"),
        Binary::Xor => format!("{a} ^ {b}"),
    })
}

/// The operator of an operation on bits of 16-bit values; a shift by a literal that the width holds.
fn bits_operator(op: Binary, by: Src) -> Option<&'static str> {
    let within = matches!(by, Src::Int(0..16));
    match op {
        Binary::And => Some("&"),
        Binary::Or => Some("|"),
        Binary::Xor => Some("^"),
        Binary::Shl if within => Some("<<"),
        Binary::Shr if within => Some(">>"),
        _ => None,
    }
}

fn unary(o: &Operands<'_>, op: Unary, ty: Type, a: Src) -> Result<String, Missing> {
    let ty = arithmetic(ty)?;
    let a = o.source(a, ty);
    if !is_float(ty) {
        return match (op, ty) {
            (Unary::Neg, _) => Ok(format!("-{a}")),
            (Unary::Abs, Type::S32 | Type::S64) => Ok(format!("abs({a})")),
            _ => missing("a function of an integer"),
        };
    }
    Ok(match op {
        Unary::Exp2 => format!("exp2({a})"),
        Unary::Reciprocal if ty == Type::F64 => format!("1.0 / {a}"),
        Unary::Reciprocal => format!("1.0f / {a}"),
        Unary::ReciprocalSqrt => format!("rsqrt({a})"),
        Unary::Sqrt => format!("sqrt({a})"),
        Unary::Log2 => format!("log2({a})"),
        Unary::Tanh => format!("tanh({a})"),
        Unary::Neg => format!("-{a}"),
        Unary::Abs => format!("fabs({a})"),
    })
}

fn convert(o: &Operands<'_>, to: Type, from: Type, value: Src) -> Result<String, Missing> {
    let halves = |ty: Type| matches!(ty, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2);
    if halves(to) || halves(from) {
        return missing("a conversion of f16 or bf16");
    }
    let value = o.source(value, from);
    let name = |ty: Type| match ty {
        Type::U8 => "uchar",
        Type::S8 => "char",
        Type::U16 | Type::B16 => "ushort",
        Type::S32 => "int",
        Type::U64 | Type::B64 => "ulong",
        Type::S64 => "long",
        Type::F32 => "float",
        Type::F64 => "double",
        _ => "uint",
    };
    // A narrow value is in the low bits of its register.
    let value = match from {
        Type::U8 | Type::S8 => format!("(({}){value})", name(from)),
        _ => value,
    };
    Ok(match (is_float(to), is_float(from)) {
        (false, true) => {
            let wide = if to.bytes() == 8 { "ulong" } else { "uint" };
            format!("({wide})convert_{}_sat_rte({value})", name(to))
        }
        (true, _) => format!("convert_{}({value})", name(to)),
        (false, false) if matches!(to, Type::U8 | Type::S8) => {
            format!("convert_{}_sat({value})", name(to))
        }
        (false, false) if matches!(to, Type::S32 | Type::S64) => {
            let wide = if to.bytes() == 8 { "ulong" } else { "uint" };
            format!("({wide})({}){value}", name(to))
        }
        (false, false) => format!("({}){value}", name(to)),
    })
}
