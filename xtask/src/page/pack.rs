//! The texts that the page carries its modules in, because a page from a disk may load nothing else.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A module in gzip and base 64, which the browser's `DecompressionStream` unpacks.
pub(super) fn text(module: &[u8]) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(module).map_err(failed)?;
    Ok(STANDARD.encode(packed.finish().map_err(failed)?))
}
