//! Which shared-memory access an instruction of SASS or PTX is.
//!
//! | text | access |
//! |---|---|
//! | `LDS R0, [R4]`, `@P0 LDS.64 …`, `LDS.128`, `LDS.U16`, `LDS.U8` | `ld.32`, `ld.64`, `ld.128`, `ld.16`, `ld.8` |
//! | `STS`, `STS.128` | `st.32`, `st.128` |
//! | `LDSM.16.M88.4`, `LDSM.16.MT88.2` | `ldmatrix.x4`, `ldmatrix.x2.trans` |
//! | `STSM.16.M88.4` | `stmatrix.x4` |
//! | `LDGSTS.E.BYPASS.128` | `cp.async.16` |
//! | `ld.shared.v4.f32`, `ldmatrix.sync.aligned.m8n8.x4.shared.b16` | `ld.128`, `ldmatrix.x4` |

/// The name of the access, as `banks` and `derive` have it; nothing for other instructions.
pub(super) fn access(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let mut opcode = words.next()?;
    // A predicate, `@P0` or `@!%p1`.
    while opcode.starts_with('@') {
        opcode = words.next()?;
    }
    let opcode = opcode.trim_end_matches(';');
    let mut parts = opcode.split('.');
    let name = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let has = |part: &str| rest.contains(&part);
    match name {
        "LDS" => Some(format!("ld.{}", width(&rest))),
        "STS" => Some(format!("st.{}", width(&rest))),
        "LDGSTS" => {
            let bits = width(&rest);
            Some(format!("cp.async.{}", bits / 8))
        }
        "LDSM" | "STSM" => {
            let count = ["4", "2"].into_iter().find(|n| has(n)).unwrap_or("1");
            let trans = rest.iter().any(|part| part.starts_with("MT")) || has("T");
            let name = if name == "LDSM" {
                "ldmatrix"
            } else {
                "stmatrix"
            };
            Some(format!(
                "{name}.x{count}{}",
                if trans { ".trans" } else { "" }
            ))
        }
        "ldmatrix" | "stmatrix" => {
            let count = ["x4", "x2"].into_iter().find(|n| has(n)).unwrap_or("x1");
            let trans = if has("trans") { ".trans" } else { "" };
            Some(format!("{name}.{count}{trans}"))
        }
        "ld" | "st" if rest.iter().any(|part| part.starts_with("shared")) => {
            let lanes = if has("v4") {
                4
            } else if has("v2") {
                2
            } else {
                1
            };
            let element = rest.last()?.trim_start_matches(|c: char| c.is_alphabetic());
            let bits: u32 = element.parse().ok()?;
            Some(format!("{name}.{}", bits * lanes))
        }
        _ => None,
    }
}

/// Bits a lane of a SASS instruction, 32 if it does not say.
fn width(parts: &[&str]) -> u32 {
    parts
        .iter()
        .find_map(|part| match *part {
            "128" => Some(128),
            "64" => Some(64),
            "U16" | "S16" | "16" => Some(16),
            "U8" | "S8" | "8" => Some(8),
            _ => None,
        })
        .unwrap_or(32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_accesses() {
        for (text, name) in [
            ("LDS R0, [R4]", Some("ld.32")),
            ("      @P0 LDS.64 R2, [R4+UR4+0x40] ;", Some("ld.64")),
            ("@!P1 STS.128 [R7], R8", Some("st.128")),
            ("LDS.U16 R0, [R4]", Some("ld.16")),
            ("LDSM.16.M88.4 R4, [R20]", Some("ldmatrix.x4")),
            ("LDSM.16.MT88.2 R4, [R20]", Some("ldmatrix.x2.trans")),
            ("STSM.16.M88.4 [R5], R8", Some("stmatrix.x4")),
            (
                "LDGSTS.E.BYPASS.128 [R7], desc[UR4][R2.64]",
                Some("cp.async.16"),
            ),
            ("LDGSTS.E [R7], [R2.64]", Some("cp.async.4")),
            ("ld.shared.v4.f32 {%f1,%f2,%f3,%f4}, [%r1];", Some("ld.128")),
            ("st.volatile.shared.u16 [%r1], %h2;", Some("st.16")),
            (
                "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];",
                Some("ldmatrix.x4.trans"),
            ),
            ("LDG.E R0, [R2.64]", None),
            ("ld.global.f32 %f1, [%rd1];", None),
            ("", None),
            ("@P0", None),
        ] {
            assert_eq!(access(text).as_deref(), name, "{text}");
        }
    }
}
