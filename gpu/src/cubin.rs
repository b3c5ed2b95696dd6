//! The extent of a cubin, which the driver reads from the file itself.
//!
//! `cuModuleLoadData` takes a pointer and no length: how far it reads is in the ELF header. So the header is read here first, and a file
//! whose header, sections or segments lie behind its end is refused (System V ABI, "Object Files", 64-bit little-endian).

/// Bytes of the ELF header.
const HEADER: usize = 64;

/// A section that has no bytes in the file.
const NO_BITS: u64 = 8;

/// The number of `bytes` bytes at `at`; none behind the end.
fn number(file: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let field = file.get(at..at.checked_add(bytes)?)?;
    let number = field
        .iter()
        .rev()
        .fold(0, |n, &byte| n << 8 | u64::from(byte));
    Some(number)
}

/// Whether `offset..offset + len` lies within the file.
fn within(file: &[u8], offset: u64, len: u64) -> Option<()> {
    let end = offset.checked_add(len)?;
    (end <= file.len() as u64).then_some(())
}

/// Walks the table of `count` entries of `size` bytes at `offset`, each at least `least` bytes long.
fn table(
    file: &[u8],
    [offset, size, count]: [u64; 3],
    least: u64,
    entry: impl Fn(u64) -> Option<()>,
) -> Option<()> {
    if count == 0 {
        return Some(());
    }
    within(file, offset, size.checked_mul(count)?)?;
    (size >= least).then_some(())?;
    (0..count).try_for_each(|i| entry(offset + i * size))
}

/// Whether everything that the header tells of lies within the file.
fn is_complete(file: &[u8]) -> Option<()> {
    // 64-bit, little-endian, the current version.
    (file.len() >= HEADER && file.starts_with(b"\x7fELF\x02\x01\x01")).then_some(())?;
    let at = |at, bytes| number(file, at, bytes);
    let segments = [at(0x20, 8)?, at(0x36, 2)?, at(0x38, 2)?];
    let sections = [at(0x28, 8)?, at(0x3a, 2)?, at(0x3c, 2)?];
    // Without section headers there is no code.
    (sections[2] > 0).then_some(())?;
    table(file, segments, 56, |entry| {
        within(file, at(entry + 8, 8)?, at(entry + 32, 8)?)
    })?;
    table(file, sections, 64, |entry| {
        if at(entry + 4, 4)? == NO_BITS {
            return Some(());
        }
        within(file, at(entry + 24, 8)?, at(entry + 32, 8)?)
    })
}

/// Why the driver must not see this file; none if it may.
pub(crate) fn refusal(file: &[u8]) -> Option<String> {
    if is_complete(file).is_some() {
        return None;
    }
    Some(format!(
        "these {} bytes are not a complete cubin: a 64-bit ELF file with all of its sections",
        file.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, one section of 8 bytes, and its section header.
    fn small() -> Vec<u8> {
        let mut file = vec![0; HEADER];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[0x28..0x30].copy_from_slice(&72_u64.to_le_bytes());
        file[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
        file[0x3c..0x3e].copy_from_slice(&1_u16.to_le_bytes());
        file.extend([0; 8]);
        let mut section = vec![0; 64];
        section[4] = 1;
        section[24..32].copy_from_slice(&64_u64.to_le_bytes());
        section[32..40].copy_from_slice(&8_u64.to_le_bytes());
        file.extend(section);
        file
    }

    #[test]
    fn a_file_that_ends_too_early_is_refused() {
        let file = small();
        assert_eq!(refusal(&file), None);
        for len in 0..file.len() {
            assert!(refusal(&file[..len]).is_some(), "{len} bytes");
        }
    }

    #[test]
    fn a_section_behind_the_end_is_refused() {
        for (at, value) in [
            (72 + 32, 100_u64),
            (72 + 24, u64::MAX),
            (0x28, u64::MAX - 8),
            (0x28, 73),
        ] {
            let mut file = small();
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            assert!(refusal(&file).is_some(), "{value} at {at}");
        }
        // What has no bytes in the file can be as large as it likes.
        let mut file = small();
        file[72 + 4] = NO_BITS as u8;
        file[72 + 32] = 255;
        assert_eq!(refusal(&file), None);
    }

    #[test]
    fn what_ptxas_makes_is_taken() {
        let Some(ptxas) = crate::ptxas::for_tests()
            .expect("ptxas is here or is left out by TILEWRIGHT_NO_PTXAS=1")
        else {
            println!("no ptxas: not run");
            return;
        };
        let ptx = include_str!("vector_add.ptx");
        let assembly = ptxas.assemble(ptx, "sm_90").expect("accepted");
        assert_eq!(refusal(&assembly.cubin), None);
        let half = &assembly.cubin[..assembly.cubin.len() / 2];
        let text = refusal(half).expect("refused");
        assert!(text.contains("not a complete cubin"), "{text}");
    }
}
