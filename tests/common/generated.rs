//! Files of the book that tests generate: each is compared with what it should be, and written anew with `TILEWRIGHT_UPDATE=1`.

#![allow(dead_code)] // Each test binary uses its part.

use std::path::{Path, PathBuf};

/// A file in `docs`, of which `new` makes what it should be from what it is.
fn file_by(name: &str, new: impl FnOnce(&str) -> String) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut docs = own.ancestors().map(|folder| folder.join("docs"));
    let docs: PathBuf = docs.find(|docs| docs.is_dir()).expect("the book");
    let path = docs.join(name);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let new = new(&old);
    if std::env::var_os("TILEWRIGHT_UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(&path, &new).expect("a write");
        return;
    }
    assert!(
        old == new,
        "docs/{name} is old: run this test with TILEWRIGHT_UPDATE=1"
    );
}

/// A whole file.
pub(crate) fn file(name: &str, text: &str) {
    file_by(name, |_| text.to_owned());
}

/// The generated parts of a page, by their names.
pub(crate) fn parts(page: &str, parts: &[(&str, String)]) {
    file_by(page, |old| {
        let mut new = old.to_owned();
        for (name, text) in parts {
            let begin = format!("<!-- generated: {name} -->\n");
            let part = new.split_once(&begin);
            let (before, rest) = part.unwrap_or_else(|| panic!("docs/{page} has no part {name}"));
            let (_, after) = rest.split_once("<!-- /generated -->").expect("its end");
            new = format!("{before}{begin}{text}<!-- /generated -->{after}");
        }
        new
    });
}
