//! The texts that the page carries its modules in, because a page from a disk may load scripts and nothing else.
//!
//! A module's code is sorted by kind, then it is packed with LZMA: a third smaller than with gzip. In base 64 it is a text, which a server that
//! sends gzip turns back into little more than the packed bytes (0.8 % more); a text with fewer letters for a byte would save what gzip saves already.

use std::io::Write as _;
use std::process::{Command, Stdio};

use lzma_rust2::{LzmaOptions, LzmaWriter};
use tilewright_unpack::streams::{merge, sort};
use tilewright_unpack::{LITERAL_BITS, unpack};

/// The module with its code sorted, which is what is packed.
pub(super) fn sorted(module: &[u8]) -> Result<Vec<u8>, String> {
    let sorted = sort(module).ok_or("an instruction that web/unpack/src/streams.rs lacks")?;
    match merge(&sorted) {
        Ok(again) if again == module => Ok(sorted),
        _ => Err("the code of a module is not what it was before it was sorted".to_owned()),
    }
}

/// Packed as `tilewright-unpack` reads it; `known` are bytes that the reader will have.
pub(super) fn lzma(bytes: &[u8], known: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("LZMA: {error}");
    let mut options = LzmaOptions::with_preset(9);
    (options.lc, options.lp, options.pb) = (LITERAL_BITS, 0, 0);
    (options.nice_len, options.depth_limit) = (LzmaOptions::NICE_LEN_MAX, 1000);
    options.preset_dict = (!known.is_empty()).then(|| known.to_vec());
    let length = u32::try_from(bytes.len()).map_err(|_| "LZMA: more than 4 GiB".to_owned())?;
    let mut packed = length.to_le_bytes().to_vec();
    let mut writer = LzmaWriter::new_no_header(&mut packed, &options, false).map_err(failed)?;
    writer.write_all(bytes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    match unpack(&packed, known) {
        Ok(again) if again == bytes => Ok(packed),
        _ => Err("LZMA: what unpacks the page gives other bytes than were packed".to_owned()),
    }
}

/// Compressed by the program `gzip`, which every system with a shell has.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut child = Command::new("gzip")
        .args(["-9", "-n", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let input = child.stdin.take();
    // Written beside the reading: a full pipe would stop both.
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.map_or(Ok(()), |mut input| input.write_all(bytes)));
        let output = child.wait_with_output().map_err(failed);
        match writer.join() {
            Ok(Ok(())) => output,
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err("gzip: its input could not be written".to_owned()),
        }
    })?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("gzip: {}", output.status))
    }
}

/// Base 64 of RFC 4648, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let word = part.iter().enumerate().fold(0u32, |word, (i, &byte)| {
            word | u32::from(byte) << (16 - 8 * i)
        });
        for i in 0..4 {
            text.push(if i <= part.len() {
                char::from(LETTERS[(word >> (18 - 6 * i)) as usize & 63])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let vectors = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        for (bytes, text) in vectors.into_iter().zip(expected) {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn gzip_compresses_and_is_read_back() {
        let bytes = vec![7; 1 << 20];
        let packed = gzip(&bytes).expect("gzip is there");
        assert!(packed.len() < 4096 && packed.starts_with(&[0x1f, 0x8b]));
    }

    #[test]
    fn lzma_is_read_back_and_copies_from_what_is_known() {
        let known: Vec<u8> = (0..20_000u32).map(|i| ((i * i) >> 7) as u8).collect();
        let bytes: Vec<u8> = known.iter().rev().chain(&known).copied().collect();
        // `lzma` compares what it packed with what is unpacked from it.
        let alone = lzma(&bytes, b"").expect("packed");
        let with = lzma(&bytes, &known).expect("packed");
        assert!(
            with.len() < alone.len() - 5_000,
            "{}, {}",
            with.len(),
            alone.len()
        );
        assert!(lzma(b"", b"").is_ok() && lzma(b"", &known).is_ok() && lzma(b"a", b"").is_ok());
        assert_ne!(unpack(&with, b"").ok(), Some(bytes));
    }
}
