//! The files of a kernel: its text, and its launches for a host program in some language.

use std::path::{Path, PathBuf};

use tilewright::host::{Contract, Language, UnknownLanguage};

use crate::error::CliError;
use crate::output;

/// Writes what `--emit FILE` and `--emit-host LANGUAGE FILE` ask for: both files or none.
pub(crate) fn files(
    emit: Option<&Path>,
    emit_host: Option<&[String]>,
    ptx: &str,
    contract: &Contract,
) -> Result<(), CliError> {
    let written = match emit_host {
        Some([language, path]) => {
            let language: Language = language
                .parse()
                .map_err(|e: UnknownLanguage| CliError::usage("unknown_language", e.to_string()))?;
            if contract.launches.is_empty() {
                let message =
                    "there is nothing to launch for this problem, of which a host could be written";
                return Err(CliError::new("nothing_to_launch", message));
            }
            let text = contract
                .host(language)
                .map_err(|e| CliError::new(e.code(), e.to_string()))?;
            Some((PathBuf::from(path), text))
        }
        _ => None,
    };
    let mut files = Vec::new();
    if let Some(path) = emit {
        files.push((path, ptx.as_bytes()));
    }
    if let Some((path, text)) = &written {
        files.push((path.as_path(), text.as_bytes()));
    }
    output::write_together(&files)
}
