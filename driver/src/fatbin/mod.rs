//! Images of modules: PTX text, and fat binaries that hold it.
//!
//! A fat binary is a header and then files, each with a header of its own: PTX or machine code, for an architecture, compressed or not. nvcc hands the runtime a wrapper that
//! points to it. No document of NVIDIA's describes the format; the fields here are those that `fatbinary_section.h` of the toolkit and open readers
//! of the format name. Compression is an LZ4 block or a Zstandard frame, by flags of the file.
//!
//! Machine code cannot run on the emulator. A fat binary with nothing else is refused with the option of nvcc that adds PTX.

mod lz4;
mod zstd;

use crate::c::{In, Text, host_read};
use crate::status::{INVALID_IMAGE, INVALID_PTX, INVALID_VALUE, NO_BINARY_FOR_GPU, Status};

/// Why an image is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}

const WRAPPER: u32 = 0x4662_43b1;
const FAT: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// Bytes of the header of a fat binary, and of a file in it, at least.
const HEADER: usize = 16;
const FILE_HEADER: usize = 64;

/// Kinds of files.
const PTX: u64 = 1;

/// Flags of a file.
const BY_LZ4: u64 = 1 << 13;
const BY_ZSTD: u64 = 1 << 15;

/// Bytes that a file may have when it is unpacked.
const MOST: u64 = 1 << 30;

const MACHINE_CODE: &str = "the module holds machine code and no PTX, which is what the emulator runs: \
    compile with PTX (nvcc -gencode arch=compute_90,code=compute_90)";

/// The number of `len` bytes at `at`.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(len)?)?;
    Some(field.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// The PTX of an image in memory, for an architecture such as 90.
pub(crate) fn text_of(image: In<u8>, architecture: u32) -> Result<String, Refusal> {
    let refuse = |status: Status| Refusal::new(status, "no image");
    // Anything begins with four bytes: a text has at least a `.version`.
    let first = image.cast::<u32>().get().map_err(refuse)?;
    match first {
        WRAPPER => {
            let address = image.cast::<u64>().at(1).map_err(refuse)?;
            let inside = In(std::ptr::with_exposed_provenance::<u8>(address as usize));
            let again = inside.cast::<u32>().get().map_err(refuse)?;
            if again == WRAPPER {
                return Err(Refusal::new(
                    INVALID_IMAGE,
                    "a wrapper of a fat binary in another",
                ));
            }
            text_of(inside, architecture)
        }
        FAT => {
            let header = host_read(image.address(), HEADER);
            let sizes = number(&header, 6, 2).zip(number(&header, 8, 8));
            let all = sizes.map_or(0, |(header, files)| header + files);
            text_in(&host_read(image.address(), all as usize), architecture)
        }
        ELF => Err(Refusal::new(NO_BINARY_FOR_GPU, MACHINE_CODE)),
        _ => text(In(image.0)),
    }
}

/// The PTX of an image of a known size.
pub(crate) fn text_in(image: &[u8], architecture: u32) -> Result<String, Refusal> {
    match number(image, 0, 4).map(|n| n as u32) {
        Some(FAT) => best(image, architecture),
        Some(ELF) => Err(Refusal::new(NO_BINARY_FOR_GPU, MACHINE_CODE)),
        _ if image.starts_with(b"!<arch>") => Err(Refusal::new(
            NO_BINARY_FOR_GPU,
            "a static library such as cudadevrt holds machine code, which the emulator can't link",
        )),
        _ => decoded(image),
    }
}

fn text(image: In<u8>) -> Result<String, Refusal> {
    let text = Text::from(image).bytes();
    let bytes = text.map_err(|status| Refusal::new(status, "no image"))?;
    decoded(bytes)
}

/// Text without the NULs at its end.
fn decoded(bytes: &[u8]) -> Result<String, Refusal> {
    let end = bytes
        .iter()
        .rposition(|b| *b != 0)
        .map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&bytes[..end]);
    text.map(str::to_owned).map_err(|e| {
        let at = e.valid_up_to();
        Refusal::new(
            INVALID_PTX,
            format!("the module is neither PTX nor a fat binary (byte {at} is not text)"),
        )
    })
}

/// Whether a device of an architecture runs PTX for a target, such as `sm_90a`: `a` for that one alone, `f` for its family.
pub(crate) fn runs(target: &str, architecture: u32) -> bool {
    let digits = target.trim_start_matches("sm_");
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let (number, suffix) = digits.split_at(end);
    let Ok(number) = number.parse::<u32>() else {
        return true;
    };
    match suffix {
        "a" => number == architecture,
        "f" => number <= architecture && number / 10 == architecture / 10,
        _ => number <= architecture,
    }
}

/// The target that a text names.
fn target(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .map(str::trim)
        .find(|l| l.starts_with(".target"))?;
    line[".target".len()..].split(',').next().map(str::trim)
}

/// The PTX in a fat binary for the highest architecture that the device has.
fn best(image: &[u8], architecture: u32) -> Result<String, Refusal> {
    let broken = || Refusal::new(INVALID_IMAGE, "the fat binary is not complete");
    let (mut at, mut found, mut others) = (
        number(image, 6, 2).ok_or_else(broken)? as usize,
        None,
        Vec::new(),
    );
    while at + FILE_HEADER <= image.len() {
        let field = |offset, len| number(image, at + offset, len).ok_or_else(broken);
        let (kind, header, size) = (field(0, 2)?, field(4, 4)? as usize, field(8, 8)? as usize);
        let start = at.checked_add(header).ok_or_else(broken)?;
        let end = start.checked_add(size).ok_or_else(broken)?;
        let content = image.get(start..end).ok_or_else(broken)?;
        if kind == PTX {
            let text = decoded(&unpacked(
                content,
                [field(40, 8)?, field(16, 4)?, field(56, 8)?],
            )?)?;
            let target = target(&text).unwrap_or("sm_50").to_owned();
            let version = field(28, 4)?;
            if !runs(&target, architecture) {
                others.push(target);
            } else if found.as_ref().is_none_or(|(best, _)| version >= *best) {
                found = Some((version, text));
            }
        }
        at = end.max(at + FILE_HEADER);
    }
    match found {
        Some((_, text)) => Ok(text),
        None if others.is_empty() => Err(Refusal::new(NO_BINARY_FOR_GPU, MACHINE_CODE)),
        None => {
            let (all, device) = (others.join(", "), architecture);
            let message = format!(
                "the module has PTX for {all}, which a device of sm_{device} does not run: choose another device by TILEWRIGHT_DEVICE"
            );
            Err(Refusal::new(NO_BINARY_FOR_GPU, message))
        }
    }
}

/// The content of a file, by its flags, its compressed size and its size when unpacked.
fn unpacked(content: &[u8], [flags, packed, size]: [u64; 3]) -> Result<Vec<u8>, Refusal> {
    let broken = |how| {
        Refusal::new(
            INVALID_IMAGE,
            format!("the {how} data of the fat binary are broken"),
        )
    };
    let size = size.min(MOST) as usize;
    let end = (packed as usize).min(content.len());
    if flags & BY_LZ4 != 0 {
        lz4::unpack(&content[..end], size).ok_or_else(|| broken("LZ4"))
    } else if flags & BY_ZSTD != 0 {
        zstd::unpack(&content[..end], MOST as usize).ok_or_else(|| broken("Zstandard"))
    } else {
        Ok(content.to_vec())
    }
}

/// What is left of an image for a status alone.
impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        if refusal.status == INVALID_VALUE {
            return INVALID_VALUE;
        }
        eprintln!("tilewright: {}", refusal.message);
        refusal.status
    }
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn targets_of_devices() {
        assert!(runs("sm_50", 90) && runs("sm_90", 90) && runs("sm_90a", 90));
        assert!(!runs("sm_90a", 100) && !runs("sm_100", 90) && !runs("sm_80a", 89));
        assert!(runs("sm_100f", 103) && !runs("sm_100f", 120));
    }
}
