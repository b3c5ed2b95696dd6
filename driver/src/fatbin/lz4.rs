//! LZ4 blocks (`lz4_Block_format.md` of the LZ4 repository): literals and matches in turn, without a header.

/// Adds the bytes that follow a length of 15.
fn length(input: &mut std::slice::Iter<'_, u8>, first: u8) -> Option<usize> {
    let mut length = usize::from(first);
    if first == 15 {
        loop {
            let next = *input.next()?;
            length = length.checked_add(usize::from(next))?;
            if next != 255 {
                break;
            }
        }
    }
    Some(length)
}

/// The content of a block, of at most `most` bytes; nothing if it is broken.
pub(crate) fn unpack(block: &[u8], most: usize) -> Option<Vec<u8>> {
    let (mut input, mut out) = (block.iter(), Vec::new());
    while let Some(token) = input.next() {
        let literals = length(&mut input, token >> 4)?;
        let rest = input.as_slice();
        out.extend_from_slice(rest.get(..literals)?);
        input = rest[literals..].iter();
        if input.as_slice().is_empty() {
            break;
        }
        let offset = usize::from(*input.next()?) | usize::from(*input.next()?) << 8;
        let count = length(&mut input, token & 15)? + 4;
        let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if out.len() + count > most {
            return None;
        }
        // Byte by byte: a match may reach into itself.
        for i in 0..count {
            out.push(out[start + i]);
        }
    }
    (out.len() <= most).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn a_block_of_literals_and_a_match_that_overlaps() {
        // "ab", then 6 bytes from 2 back, then "c".
        let block = [0x22, b'a', b'b', 2, 0, 0x10, b'c'];
        assert_eq!(unpack(&block, 64).as_deref(), Some(&b"ababababc"[..]));
        assert_eq!(unpack(&block, 4), None);
        assert_eq!(unpack(&[0x22, b'a', b'b', 3, 0], 64), None);
        assert_eq!(unpack(&[0xf0, 255], 64), None);
    }
}
