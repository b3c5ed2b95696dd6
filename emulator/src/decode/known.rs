//! What PTX has and the emulator lacks: such an instruction fails when it is reached, and anything that is not PTX when it is read.

use crate::error::{ParseError, ParseErrorKind as Kind};

/// Instructions of PTX 9.0 that no decoder knows.
const INSTRUCTIONS: [&str; 21] = [
    "alloca",
    "applypriority",
    "clusterlaunchcontrol",
    "discard",
    "istypep",
    "multimem",
    "stackrestore",
    "stacksave",
    "sured",
    "tcgen05",
    "vabsdiff",
    "vadd",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmin",
    "vset",
    "vshl",
    "vshr",
    "vsub",
];

/// Modifiers of PTX that some known instruction has and its decoder does not know.
const MODIFIERS: [&str; 18] = [
    "b6x16_p32",
    "bf16x2",
    "block_scale",
    "e2m1",
    "e2m3",
    "e3m2",
    "level::eviction_priority",
    "multimem",
    "m16n16",
    "m16n8",
    "ordered_metadata",
    "rs",
    "scaled",
    "sp::ordered_metadata",
    "ue8m0",
    "v2",
    "v4",
    "v8",
];

/// Whether `name` is an instruction of textures or surfaces.
pub(super) fn is_texture(name: &str) -> bool {
    matches!(
        name,
        "tex" | "tld4" | "txq" | "istypep" | "suld" | "sust" | "sured" | "suq"
    )
}

/// Whether `name` is an instruction of PTX that no decoder knows.
pub(super) fn is_instruction(name: &str) -> bool {
    INSTRUCTIONS.contains(&name)
}

/// Whether `error` says that the emulator lacks something of PTX, in an instruction `name`, rather than that the text is wrong.
pub(super) fn is_lacking(error: &ParseError, name: &str) -> bool {
    match &error.kind {
        Kind::Unsupported(_) => true,
        Kind::UnknownInstruction(_) => is_instruction(name),
        Kind::UnknownModifier { modifier, .. } => {
            MODIFIERS.contains(&modifier.trim_start_matches('.'))
        }
        _ => false,
    }
}
