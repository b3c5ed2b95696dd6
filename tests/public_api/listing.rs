//! The public items of a crate as lines of text, from its source.
//!
//! Everything that is `pub` counts, also in private modules: the lint `unreachable_pub` makes sure that it is re-exported. An item's path has its
//! public modules alone, so that it may move between private ones. Items that macros define are not seen.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Visibility};

/// The lines of the crate whose root file this is.
pub(crate) fn of(root: &Path) -> BTreeSet<String> {
    let mut listing = Listing::default();
    let folder = root.parent().expect("a folder").to_path_buf();
    listing.file(root, &folder, "");
    listing.lines
}

#[derive(Default)]
struct Listing {
    lines: BTreeSet<String>,
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether an item is left out: of tests, or hidden.
fn is_left_out(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.to_token_stream().to_string();
        text.contains("cfg (test)") || text.contains("doctest") || text.contains("doc (hidden)")
    })
}

fn has(attributes: &[Attribute], name: &str) -> bool {
    attributes.iter().any(|a| a.path().is_ident(name))
}

fn text(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}

impl Listing {
    fn add(&mut self, module: &str, line: &str) {
        self.lines.insert(format!("{module}{line}"));
    }

    fn file(&mut self, path: &Path, folder: &Path, module: &str) {
        let source = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file =
            syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.items(&file.items, folder, module);
    }

    /// `folder` is where the modules of these items are.
    fn items(&mut self, items: &[Item], folder: &Path, module: &str) {
        for item in items {
            self.item(item, folder, module);
        }
    }

    fn item(&mut self, item: &Item, folder: &Path, module: &str) {
        match item {
            Item::Mod(m) if !is_left_out(&m.attrs) => {
                let inner = if is_public(&m.vis) {
                    self.add(module, &format!("mod {}", m.ident));
                    format!("{module}{}::", m.ident)
                } else {
                    module.to_owned()
                };
                let below = folder.join(m.ident.to_string());
                if let Some((_, items)) = &m.content {
                    self.items(items, &below, &inner);
                } else {
                    let (path, folder) = module_file(folder, &m.ident.to_string());
                    self.file(&path, &folder, &inner);
                }
            }
            Item::Fn(f) if !is_left_out(&f.attrs) => {
                let macros = ["proc_macro", "proc_macro_derive", "proc_macro_attribute"];
                if let Some(kind) = macros.iter().find(|kind| has(&f.attrs, kind)) {
                    self.add(module, &format!("{kind} {}", f.sig.ident));
                } else if is_public(&f.vis) {
                    self.add(module, &text(&f.sig));
                }
            }
            Item::Struct(s) if is_public(&s.vis) && !is_left_out(&s.attrs) => {
                let line = format!("struct {} {}", s.ident, text(&s.generics));
                self.add(module, line.trim_end());
                self.fields(&s.fields, &format!("{module}{}", s.ident), true);
            }
            Item::Enum(e) if is_public(&e.vis) && !is_left_out(&e.attrs) => {
                let line = format!("enum {} {}", e.ident, text(&e.generics));
                self.add(module, line.trim_end());
                for variant in &e.variants {
                    let path = format!("{module}{}::{}", e.ident, variant.ident);
                    self.add("", &path);
                    self.fields(&variant.fields, &path, false);
                }
            }
            Item::Trait(t) if is_public(&t.vis) && !is_left_out(&t.attrs) => {
                let line = format!(
                    "trait {} {} : {}",
                    t.ident,
                    text(&t.generics),
                    text(&t.supertraits)
                );
                self.add(module, line.trim_end_matches([' ', ':']));
                for item in &t.items {
                    let line = match item {
                        TraitItem::Fn(f) => text(&f.sig),
                        TraitItem::Const(c) => format!("const {} : {}", c.ident, text(&c.ty)),
                        TraitItem::Type(a) => format!("type {}", a.ident),
                        _ => continue,
                    };
                    self.add(module, &format!("{}::{line}", t.ident));
                }
            }
            Item::Impl(i) if !is_left_out(&i.attrs) => self.implementation(i, module),
            Item::Const(c) if is_public(&c.vis) && !is_left_out(&c.attrs) => {
                self.add(module, &format!("const {} : {}", c.ident, text(&c.ty)));
            }
            Item::Static(s) if is_public(&s.vis) && !is_left_out(&s.attrs) => {
                self.add(module, &format!("static {} : {}", s.ident, text(&s.ty)));
            }
            Item::Type(t) if is_public(&t.vis) && !is_left_out(&t.attrs) => {
                self.add(module, &format!("type {} = {}", t.ident, text(&t.ty)));
            }
            Item::Use(u) if is_public(&u.vis) && !is_left_out(&u.attrs) => {
                let tree = text(&u.tree);
                self.uses(module, &tree);
            }
            Item::Macro(m) if has(&m.attrs, "macro_export") => {
                if let Some(name) = &m.ident {
                    self.add(module, &format!("macro {name}"));
                }
            }
            _ => {}
        }
    }

    /// A re-export, one line a name: `a :: { b , c }` is `b` and `c`. Where they come from is private.
    fn uses(&mut self, module: &str, tree: &str) {
        let tree = tree.trim();
        if let Some(inner) = tree.find('{') {
            let group = tree[inner + 1..].trim_end().trim_end_matches('}');
            let mut depth = 0;
            let mut start = 0;
            for (i, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        self.uses(module, &group[start..i]);
                        start = i + 1;
                    }
                    _ => {}
                }
            }
            self.uses(module, &group[start..]);
        } else if !tree.is_empty() {
            let name = tree.rsplit("::").next().unwrap_or(tree).trim();
            // `a :: *` names nothing but what `a` has.
            let line = if name == "*" { tree } else { name };
            self.add(module, &format!("use {line}"));
        }
    }

    fn fields(&mut self, fields: &Fields, owner: &str, only_public: bool) {
        for (i, field) in fields.iter().enumerate() {
            if only_public && !is_public(&field.vis) {
                continue;
            }
            let name = field
                .ident
                .as_ref()
                .map_or(i.to_string(), ToString::to_string);
            self.add("", &format!("{owner}.{name} : {}", text(&field.ty)));
        }
    }

    fn implementation(&mut self, i: &ItemImpl, module: &str) {
        let owner = text(&i.self_ty);
        if let Some((of, _)) = &i.trait_ {
            self.add(module, &format!("impl {} for {owner}", text(of)));
            return;
        }
        for item in &i.items {
            let (visibility, attributes, line) = match item {
                ImplItem::Fn(f) => (&f.vis, &f.attrs, text(&f.sig)),
                ImplItem::Const(c) => (
                    &c.vis,
                    &c.attrs,
                    format!("const {} : {}", c.ident, text(&c.ty)),
                ),
                _ => continue,
            };
            if is_public(visibility) && !is_left_out(attributes) {
                // `const fn` and `fn` are both called so.
                let line = line
                    .strip_prefix("const fn")
                    .map_or(line.clone(), |rest| format!("fn{rest}"));
                self.add(module, &format!("{owner}::{line}"));
            }
        }
    }
}

/// The file of `mod name;`, and the folder of the modules below it.
fn module_file(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let flat = folder.join(format!("{name}.rs"));
    let below = folder.join(name);
    if flat.exists() {
        (flat, below)
    } else {
        (below.join("mod.rs"), below)
    }
}
