//! Instructions by name, for pictures: the calculator's list and its errors, underlined.

use crate::Refusal;
pub(crate) use crate::calculator::instructions::Atom;
use crate::calculator::instructions::{Named, named};

/// The atom of that name.
pub(crate) fn atom_named(text: &str) -> Result<Named, Refusal> {
    let name = text.trim();
    named(name).map_err(|(code, message)| Refusal::usage(code, message).at((0, text.len()), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calculator::instructions::{all, names, unknown};

    #[test]
    fn every_name_finds_its_own_instruction() {
        let list = all();
        for one in &list {
            for name in one.others.iter().chain([&one.name]) {
                let found = atom_named(name).unwrap_or_else(|_| panic!("{name} is not found"));
                assert_eq!(found.name, one.name, "{name}");
            }
        }
        let mut names: Vec<&String> = list.iter().map(|one| &one.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list.len());
    }

    /// Every name that is listed is read back by pictures and by the calculator, and is the name of what is read.
    #[test]
    fn every_name_of_the_list_works_everywhere() {
        let list = names();
        for known in ["wgmma.m64n128k16.bf16.f32", "tcgen05.mma.m256n32.cta2"] {
            assert!(list.iter().any(|name| name == known), "{known}");
        }
        for name in &list {
            let found = atom_named(name).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(&found.name, name);
            let functions: &[&str] = match found.atom {
                Atom::Mma(_) | Atom::Sparse(_) => &["atom_a", "atom_b", "atom_c"],
                Atom::Copy(_) => &["atom_src", "atom_dst"],
                Atom::TmemCopy(_) => &["atom_src", "atom_dst", "atom_tmem"],
                Atom::Accumulator(..) => &["atom_c", "atom_tmem"],
            };
            for function in functions {
                let text = format!("{function}({name})");
                let value = crate::calculator::evaluate(&text);
                assert!(value.is_ok(), "{text}: {}", value.unwrap_err().message);
            }
        }
    }

    /// A name in a message is read: the examples of what names look like, the nearest ones, and those that begin alike.
    #[test]
    fn every_name_that_is_suggested_works() {
        let wrong = [
            "hello",
            "mma",
            "wgmma",
            "wgmma.m64n128",
            "wgmma.m64n100k16.bf16",
            "wgmma.m64n128k16.bf17",
            "wgmma.m64n128k8.bf16",
            "tcgen05",
            "tcgen05.mma",
            "tcgen05.mma.m128",
            "tcgen05.mma.m128n256.cta3",
            "tcgen05.ld",
            "ldmatrx.x4",
            "mma.m16n8k17.f16",
            "mfma_f32_32x32x8_f61",
            "cp.async.3",
            "stmatrix",
        ];
        let mut suggested = 0;
        for name in wrong {
            let mut messages = vec![atom_named(name).expect_err(name).message().to_owned()];
            for function in ["atom_a", "atom_c", "atom_src", "atom_meta", "atom_tmem"] {
                let text = format!("{function}({name})");
                messages.extend(
                    crate::calculator::evaluate(&text)
                        .err()
                        .map(|e| e.message.into_owned()),
                );
            }
            for message in messages {
                let words = message.split(|c: char| c.is_whitespace() || ",;?:`'".contains(c));
                for word in words.filter(|word| {
                    *word != name
                        && !["TYPE", "mMnN"].iter().any(|place| word.contains(place))
                        && word.chars().any(|c| c.is_ascii_digit())
                        && [
                            "mma.", "wgmma.", "tcgen05.", "ldmatrix", "stmatrix", "mfma", "wmma",
                            "cp.async",
                        ]
                        .iter()
                        .any(|start| word.starts_with(start))
                }) {
                    suggested += 1;
                    assert!(atom_named(word).is_ok(), "{name}: {word} in {message}");
                }
            }
        }
        assert!(suggested > 60, "{suggested}");
    }

    #[test]
    fn fragments_of_a_warpgroup_are_evaluated() {
        let eval = |text: &str| crate::calculator::evaluate(text).map(|v| v.to_string());
        for name in [
            "wgmma.m64n128k16.bf16",
            "wgmma.m64n128k16.bf16.f32",
            "wgmma.m64n128.bf16",
        ] {
            assert_eq!(
                eval(&format!("atom_c({name})")).unwrap(),
                "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))"
            );
        }
        assert_eq!(
            eval("atom_tmem(tcgen05.mma.m256n32.cta2)").unwrap(),
            "((128,2),32):((1,65536),128)"
        );
        assert_eq!(
            eval("size(layout_tv_c(wgmma.m64n128k16.bf16, (1,1,1):(0,0,0)))").unwrap(),
            "8192"
        );
    }

    #[test]
    fn types_may_be_written_out() {
        for (name, short) in [
            ("mma.m16n8k16.f16.f32", "mma.m16n8k16.f16"),
            ("mma.m16n8k32.s8.s32", "mma.m16n8k32.s8"),
            ("mma.m16n8k16.f16.f16", "mma.m16n8k16.f16.f16"),
        ] {
            assert_eq!(atom_named(name).unwrap().name, short);
        }
    }

    #[test]
    fn names_nearby_are_offered() {
        let message = |name: &str| unknown(name);
        assert_eq!(
            message("ldmatrx.x4"),
            "there is no such instruction; did you mean ldmatrix.x4, ldmatrix.x1 or ldmatrix.x2?"
        );
        assert!(
            message("mma.m16n8")
                .starts_with("mma.m16n8 is not the whole name; there are mma.m16n8k")
        );
        assert!(message("mma").ends_with("more: show --atom list"));
        assert!(message("mma.m16n8k17.f16").contains("mma.m16n8k16.f16"));
        assert!(message("mfma_f32_32x32x8_f61").contains("mfma_f32_32x32x8_f16"));
        assert!(message("hello").contains("show --atom list"));
    }

    #[test]
    fn accumulators_of_any_n_have_names() {
        for good in [
            "m128n256",
            "m64n8",
            "m64n64.ws",
            "m256n16.cta2",
            "m128n32.cta2.sp",
        ] {
            assert!(atom_named(&format!("tcgen05.mma.{good}")).is_ok(), "{good}");
        }
        for bad in [
            "",
            "m128",
            "m128n7",
            "m256n16",
            "m128n16.cta3",
            "m128n16.cta2.ws",
            "mxn8",
        ] {
            assert!(atom_named(&format!("tcgen05.mma.{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn wgmma_names_are_checked() {
        for good in [
            "wgmma.m64n8k16.f16",
            "wgmma.m64n256.bf16.f32",
            "wgmma.m64n32k32.s8",
        ] {
            assert!(atom_named(good).is_ok(), "{good}");
        }
        for bad in [
            "wgmma",
            "wgmma.m64n8k16",
            "wgmma.m64n7k16.f16",
            "wgmma.m64n8k8.f16",
            "wgmma.m64n264k16.f16",
            "wgmma.m64n-8k16.f16",
            "wgmma.m64n8k16.f64",
            "wgmma.m32n8k16.f16",
            "wgmma.m64n8k16.f16.f32.x",
        ] {
            assert!(atom_named(bad).is_err(), "{bad}");
        }
    }
}
