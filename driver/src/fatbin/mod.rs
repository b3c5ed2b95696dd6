//! Images of modules: PTX text, and fat binaries that hold it.
//!
//! A fat binary is a header and then files, each with a header of its own: PTX or machine code, for an architecture, compressed or not. nvcc hands the runtime a wrapper that
//! points to it. No document of NVIDIA's describes the format; the fields here are those that `fatbinary_section.h` of the toolkit and open readers
//! of the format name. Compression is an LZ4 block or a Zstandard frame, by flags of the file.
//!
//! Machine code cannot run on the emulator. A fat binary with nothing else is refused with the option of nvcc that adds PTX.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

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
    // A byte of an LZ4 block adds 255 bytes at most.
    let size = size.min(MOST).min(255 * content.len() as u64) as usize;
    let end = (packed as usize).min(content.len());
    if flags & BY_LZ4 != 0 {
        lz4_flex::block::decompress(&content[..end], size).map_err(|_| broken("LZ4"))
    } else if flags & BY_ZSTD != 0 {
        zstd(&content[..end], MOST).ok_or_else(|| broken("Zstandard"))
    } else {
        Ok(content.to_vec())
    }
}

/// The content of a Zstandard frame, of at most `most` bytes; none if the frame is broken.
fn zstd(frame: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let frame = StreamingDecoder::new(frame).ok()?;
    frame.take(most + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= most).then_some(content)
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
    use std::fmt::Write as _;

    use super::{BY_LZ4, BY_ZSTD, runs, unpacked, zstd};

    /// "ab", then 6 bytes from 2 back, then "c".
    #[test]
    fn an_lz4_block() {
        let block = [0x22, b'a', b'b', 2, 0, 0x10, b'c'];
        let unpack = |block: &[u8], size| unpacked(block, [BY_LZ4, block.len() as u64, size]);
        assert_eq!(unpack(&block, 9).expect("unpacked"), b"ababababc");
        assert!(unpack(&block, 8).is_err() && unpack(&block[..4], 9).is_err());
        assert!(unpack(&[0x20, b'a', b'b', 3, 0], 9).is_err()); // from ahead of the start
    }

    /// A frame that zstd 1.5 made at level 19: a Huffman code, and sequences with codes of their own.
    #[test]
    fn a_zstandard_frame() {
        const FRAME: &str = "\
            28b52ffd60ef10bd1700e6654b15b0198603b80a55251901524a99524a42d6af98ae04500041004000ae16fdec046d38a71530941eb44d6806cf5029\
            c43bc56c3167e6a86bb392ec208b880dd5e294dc0779dda28ca5cff1b5040c32da3060a89102067b0b18360004613084824000bb3090703060508010\
            10c22a5a5108e7fff3d667e45b743fa454d9648d3239b32f46ec63ee2d5ed1bab5b45342251bfc389a34e549fd2385c89da37763e299052bd395cb35\
            24caec6962242142d1f722a6d1d512d6f7ce89a17a1b8b852c5dbc4fec77eb7c12e5efd21c96ec9c2a176bbabc951a9ae17a6746ddc6913c07e75211\
            f4d4e73f9f864b6cb6f1c585a96d452b0cd7ca51fba12bc2e5a7be8b237695209bb38d54636fa9345471776a6ed251352ea483bee9893ccd9d7f6634\
            d3e6f2b8731a46190f927453526f813ca821609893f60db1b94024cd4c1d6124a5942781c449701243eb01327f7fbc7cac5a22472e483957358da4d0\
            41db17494650693d2ed059271c4235a20ba95c95c6fc56022586efa323d8ba15c8bb15a8044863c73f4da98233843041726013a42759ddb8ac9faaaa\
            4abad996f78001e546e855a84ac673129b50de5172cf0cdff823f90c20900463900a397947275598a515362dd1d87e3ea734af24a3cac4d8154f0b9a\
            5420e470a98a6f628d8b93a4879b57fa1e49d91af90a15ff3a91af06e751e625aae04a080c0925b5a421dcbed215e102a21c007e59a5edda8ed6c124\
            67378c42d1dc6e44c8312f7b9799d7cf296d8f18840f755a820a84abaa6aa54ab9187665733b578498481a0a94336460e6914898317dfc35f99e2378\
            79d9f8a41b1eb5481872af4991bfaa403b219af09047a7aa826f420871b77e823f8109004890bb38975b5b980aa02026ada0d291e2d113d472cc9e60\
            b703ec040d08b4fc069d35114973c0dc4814563aa89328aa0f65729c237bc92463d6619ba41491400281511917aa9a20d0cdfbe912c4472a20cc351b\
            4d7ac194f7538dd82e6b7743a4051a2c088269079a90723b3302a2368c403bb4ce33e338ee1620def20cb5e601e440f606\
            ";
        let bytes: Option<Vec<u8>> = (0..FRAME.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(FRAME.get(i..i + 2)?, 16).ok())
            .collect();
        let frame = bytes.expect("hexadecimal digits");
        let mut text = String::new();
        for i in 0..120u32 {
            let [a, b, c, d] = [i * 7 % 61, i * i % 43, i * i * i % 1009, i / 3];
            let _ = writeln!(text, "    mad.lo.u32 %r{a}, %r{b}, {c}, %rd{d};");
        }
        let sizes = [BY_ZSTD, frame.len() as u64, text.len() as u64];
        assert_eq!(unpacked(&frame, sizes).expect("unpacked"), text.as_bytes());
        assert_eq!(zstd(&frame, 100), None);
        // A broken frame is refused or gives other bytes; none panics.
        for i in 0..frame.len() {
            let mut broken = frame.clone();
            broken[i] ^= 1 << (i % 8);
            let _ = zstd(&broken, 1 << 16);
            assert_eq!(zstd(&frame[..i], 1 << 16), None);
        }
    }

    #[test]
    fn targets_of_devices() {
        assert!(runs("sm_50", 90) && runs("sm_90", 90) && runs("sm_90a", 90));
        assert!(!runs("sm_90a", 100) && !runs("sm_100", 90) && !runs("sm_80a", 89));
        assert!(runs("sm_100f", 103) && !runs("sm_100f", 120));
    }
}
