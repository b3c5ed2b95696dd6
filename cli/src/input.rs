//! Reading what the user names: files and lines with a limit, so that an endless file ends in an error and not in a full memory.

use std::fs::File;
use std::io::{self, BufRead, Read as _};
use std::path::Path;

use crate::error::CliError;

/// The content of a file of at most `limit` bytes; `what` names the kind of file in the error.
pub(crate) fn file(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>, CliError> {
    let unreadable = |error: io::Error| CliError::io(path, &error);
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    let beyond = limit.saturating_add(1);
    file.take(beyond)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    if content.len() as u64 > limit {
        return Err(CliError::new(
            "too_large",
            format!("{}: {what} has at most {}", path.display(), bytes(limit)),
        ));
    }
    Ok(content)
}

/// A number of bytes as people write it, in the largest unit that divides it.
pub(crate) fn bytes(count: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if count > 0 && count.is_multiple_of(1 << shift) {
            return format!("{} {unit}", count >> shift);
        }
    }
    format!("{count} bytes")
}

/// Reads a line to `line`, its end included, but keeps no more than `limit` bytes of it. The result is its length in bytes without the end, or
/// nothing at the end of the input.
pub(crate) fn line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Option<u64>> {
    line.clear();
    let mut length = 0;
    loop {
        let part = match input.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if part.is_empty() {
            return Ok((length > 0).then_some(length));
        }
        let end = part.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(part.len(), |end| end + 1);
        let kept = used.min(limit.saturating_sub(line.len()));
        line.extend_from_slice(&part[..kept]);
        input.consume(used);
        length += used as u64;
        if end.is_some() {
            return Ok(Some(length - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_counted_whole() {
        let text = b"short\n\nmuch longer than that\nlast";
        let mut input = io::BufReader::with_capacity(3, &text[..]);
        let mut kept = Vec::new();
        let mut all = Vec::new();
        while let Some(length) = line(&mut input, &mut kept, 8).expect("read") {
            all.push((length, String::from_utf8(kept.clone()).expect("text")));
        }
        let expected = [(5, "short\n"), (0, "\n"), (21, "much lon"), (4, "last")];
        assert_eq!(all, expected.map(|(n, text)| (n, text.to_owned())));
    }

    #[test]
    fn a_file_beyond_its_limit_is_refused() {
        let path = Path::new(file!());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        assert!(file(&path, 1 << 20, "a source").is_ok());
        let error = file(&path, 64, "a source").expect_err("longer");
        assert_eq!(error.code(), "too_large");
        assert!(error.message().ends_with("a source has at most 64 bytes"));
        assert_eq!(
            [bytes(3 << 30), bytes(1 << 20), bytes(2000)],
            ["3 GiB", "1 MiB", "2000 bytes"]
        );
    }
}
