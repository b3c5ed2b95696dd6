//! What the options mean: warp patterns, the search, and whether its result will do.

use layout_core::banks::Access;
use layout_core::derive::{
    Derivation, DeriveError, Family, MAX_EXTENT, Pattern, Tile, derive as search, recount,
};
use layout_core::{Layout, Swizzled};
use proc_macro2::Span;

use super::ast::{AccessOption, Direction, Form, Options};
use crate::errors::Errors;

/// A layout that will do, with what the expansion says about it.
pub(super) struct Found {
    pub(super) tile: Tile,
    pub(super) layout: Swizzled,
    pub(super) patterns: Vec<Pattern>,
    /// Wavefronts of each access, and without conflicts.
    pub(super) counts: Vec<(Access, u32, u32)>,
    pub(super) family: &'static str,
    pub(super) certificate: String,
}

/// Runs the derivation that `options` ask for.
pub(super) fn derive(options: &Options, place: Span, errors: &mut Errors) -> Option<Found> {
    // What could not be read is not missing.
    let all_read = errors.is_empty();
    if all_read && options.tile.is_none() {
        errors.at(place, "which tile? write `tile = (rows, columns)`");
    }
    if all_read && options.element.is_none() {
        errors.at(
            place,
            "elements of which type? write `element = f16` (or its bytes)",
        );
    }
    if all_read && options.accesses.is_empty() {
        errors.at(
            place,
            "which accesses? write at least one: `write = cp_async_16(threads = 128), read = ldmatrix_x4`",
        );
    }
    let family = family(options, errors);
    let (rows, cols, tile_span) = options.tile?;
    let (elem_bytes, element_span) = options.element?;
    let tile = Tile {
        rows,
        cols,
        elem_bytes,
    };
    // What is wrong with the tile or its elements is not the fault of an access.
    if !(1..=MAX_EXTENT).contains(&rows) || !(1..=MAX_EXTENT).contains(&cols) {
        errors.at(tile_span, DeriveError::BadTile { rows, cols });
        return None;
    }
    if !(1..=16).contains(&elem_bytes) {
        errors.at(element_span, DeriveError::BadElement { bytes: elem_bytes });
        return None;
    }
    let patterns: Vec<Option<Pattern>> = options
        .accesses
        .iter()
        .map(|access| pattern(access, tile, errors))
        .collect();
    if !errors.is_empty() {
        return None;
    }
    let patterns: Vec<Pattern> = patterns.into_iter().flatten().collect();
    match best(tile, &patterns, family?) {
        Err(error) => {
            let span = match error.pattern() {
                Some(i) => options.accesses.get(i).map_or(place, |access| access.span),
                None => tile_span,
            };
            errors.at(span, error);
            None
        }
        Ok((derivation, layout)) => {
            judge(options, tile, &patterns, &derivation, &layout, errors);
            errors.is_empty().then(|| Found {
                tile,
                layout,
                counts: derivation
                    .accesses()
                    .iter()
                    .map(|count| (count.access, count.wavefronts, count.ideal))
                    .collect(),
                patterns,
                family: derivation.family.name(),
                certificate: derivation.certificate.to_string(),
            })
        }
    }
}

fn family(options: &Options, errors: &mut Errors) -> Option<Family> {
    let Some((name, span)) = &options.family else {
        return Some(Family::Any);
    };
    match Family::named(name) {
        Some(Family::F2) => {
            errors.at(
                *span,
                "a general F2 matrix is no layout, so no type can stand for it; take plain, swizzle, permuted, padded, tma or any",
            );
            None
        }
        Some(Family::Rotated) => {
            errors.at(
                *span,
                "a rotation is a composition of two layouts, so no type can stand for it; take plain, swizzle, permuted, padded, tma or any. \
                 `tilewright derive --family rotated` writes its index function in Rust",
            );
            None
        }
        Some(family) => Some(family),
        None => {
            errors.at(
                *span,
                format!(
                    "no family is called `{name}`; there are plain, swizzle, permuted, padded, tma and any"
                ),
            );
            None
        }
    }
}

/// The best that is a layout: of all families, or of those that write layouts if a general matrix wins.
fn best(
    tile: Tile,
    patterns: &[Pattern],
    family: Family,
) -> Result<(Derivation, Swizzled), DeriveError> {
    let any = search(tile, patterns, family)?;
    if let Some(layout) = any.layout {
        return Ok((any, layout));
    }
    let mut found: Option<(Derivation, Swizzled)> = None;
    for family in [Family::Swizzle, Family::Permuted, Family::Padded] {
        if let Ok(derivation) = search(tile, patterns, family)
            && let Some(layout) = derivation.layout
            && found
                .as_ref()
                .is_none_or(|(best, _)| derivation.wavefronts() < best.wavefronts())
        {
            found = Some((derivation, layout));
        }
    }
    found.ok_or(DeriveError::FamilyDoesNotApply {
        family: family.name(),
        needs: "a layout; only a general F2 matrix or a rotation was found",
    })
}

/// Refuses conflicts that the user did not allow, at the access that has them.
fn judge(
    options: &Options,
    tile: Tile,
    patterns: &[Pattern],
    derivation: &Derivation,
    layout: &Swizzled,
    errors: &mut Errors,
) {
    let allowed = options.allow.map(|(n, _)| n);
    let mut told = false;
    for (i, count) in derivation.accesses().iter().enumerate() {
        if count.wavefronts <= count.ideal.max(allowed.unwrap_or(0)) {
            continue;
        }
        let Some(option) = options.accesses.get(i) else {
            continue;
        };
        let conflict = recount(tile, &patterns[i], layout)
            .ok()
            .and_then(|counted| counted.worst());
        let lanes = conflict.map_or(String::new(), |(phase, worst)| {
            let lanes: Vec<String> = (0..32)
                .filter(|lane| worst.offenders >> lane & 1 == 1)
                .map(|lane| lane.to_string())
                .collect();
            format!(
                ": in phase {phase}, lanes {} need bank {} for different words",
                lanes.join(", "),
                worst.bank
            )
        });
        let mut message = format!(
            "no layout found is free of conflicts here: `{}` takes {} wavefronts, {} without conflicts{lanes}",
            count.access, count.wavefronts, count.ideal
        );
        // What is of all accesses together is said once.
        if !told {
            told = true;
            message.push_str(&advice(options, tile, patterns, derivation, layout));
        }
        errors.at(option.span, message);
    }
}

/// The cost in all, the nearest layout, and what to write to take it or one without conflicts.
fn advice(
    options: &Options,
    tile: Tile,
    patterns: &[Pattern],
    derivation: &Derivation,
    layout: &Swizzled,
) -> String {
    let (lower, least) = (derivation.lower_bound, derivation.least);
    let total = derivation.wavefronts();
    let searched: Vec<&str> = derivation
        .certificate
        .examined()
        .map(|e| e.family.name())
        .collect();
    let searched = searched.join(", ");
    let most = derivation.accesses().iter().map(|count| count.wavefronts);
    let most = most.max().unwrap_or(0);
    let mut text = format!(
        "\nall accesses together take {total}; at least {lower} in the families searched ({searched}), at least {least} in any layout\n\
         the nearest layout is {layout}\n\
         to take it, write `allow(wavefronts = {most})`"
    );
    let asked = options.family.as_ref().map(|(name, _)| name.as_str());
    for family in [Family::Swizzle, Family::Permuted, Family::Padded] {
        if asked.is_none() || asked == Some(family.name()) {
            continue;
        }
        let free = search(tile, patterns, family).ok().filter(|other| {
            let mut accesses = other.accesses().iter();
            accesses.all(|count| count.wavefronts == count.ideal)
        });
        if let Some(layout) = free.and_then(|other| other.layout) {
            let name = family.name();
            let other = format!("\n`family = {name}` has one without conflicts: {layout}");
            text.push_str(&other);
            break;
        }
    }
    text
}

fn pattern(option: &AccessOption, tile: Tile, errors: &mut Errors) -> Option<Pattern> {
    let found = match &option.form {
        Form::General(text) => general(text),
        Form::Named { name, threads } => named(name, *threads, tile),
    };
    let pattern = match found {
        Ok(pattern) => pattern,
        Err(message) => {
            errors.at(option.span, message);
            return None;
        }
    };
    let loads = pattern.access.is_load();
    let wrong = match option.direction {
        Direction::Write => loads,
        Direction::Read => !loads,
        Direction::Either => false,
    };
    if wrong {
        errors.at(
            option.span,
            format!(
                "`{}` {} the tile; say `{} = …`",
                pattern.access,
                if loads { "reads" } else { "writes" },
                if loads { "read" } else { "write" }
            ),
        );
        return None;
    }
    Some(pattern)
}

/// `OP @ LAYOUT`.
fn general(text: &str) -> Result<Pattern, String> {
    let Some((op, layout)) = text.split_once('@') else {
        return Err("expected `OP @ LAYOUT`, as in `ldmatrix.x4 @ (16,2):(64,8)`".to_owned());
    };
    let access: Access = op.trim().parse().map_err(|_| {
        let names: Vec<&str> = Access::all()
            .filter(|access| *access != Access::Ffma)
            .map(Access::name)
            .collect();
        format!(
            "there is no access `{}`; there are {}",
            op.trim(),
            names.join(", ")
        )
    })?;
    let layout = Swizzled::parse(layout)
        .map_err(|error| format!("in the layout after `@`, {}", error.message()))?;
    Pattern::new(access, &layout).map_err(|error| error.to_string())
}

/// An access by name: `_` for `.`, laid over the tile in the usual way.
fn named(name: &str, threads: Option<i64>, tile: Tile) -> Result<Pattern, String> {
    let dotted = name.replace('_', ".");
    let Some(access) =
        Access::all().find(|access| access.name() == dotted && *access != Access::Ffma)
    else {
        let names: Vec<String> = Access::all()
            .filter(|access| *access != Access::Ffma)
            .map(|access| access.name().replace('.', "_"))
            .collect();
        return Err(format!(
            "there is no access `{name}`; there are {}, or \"OP @ LAYOUT\"",
            names.join(", ")
        ));
    };
    let bytes = i64::from(access.bytes());
    if bytes % tile.elem_bytes != 0 {
        return Err(format!(
            "`{name}` moves {bytes} bytes a lane, no multiple of the element's {}; give the access as \"OP @ LAYOUT\"",
            tile.elem_bytes
        ));
    }
    let vector = bytes / tile.elem_bytes;
    let layout = if let Some(matrices) = access.matrices() {
        if threads.is_some() {
            return Err(format!(
                "`{name}` is executed by a warp; leave `threads` out"
            ));
        }
        matrix_rows(i64::from(matrices.count()), vector, tile)?
    } else {
        thread_vectors(name, threads, vector, tile)?
    };
    Pattern::from_layout(access, &layout).map_err(|error| error.to_string())
}

/// `ldmatrix` and `stmatrix`: rows of 16 bytes; x1 is 8 rows, x2 is 8 rows of 32 bytes, x4 is 16 rows of 32 bytes.
fn matrix_rows(matrices: i64, vector: i64, tile: Tile) -> Result<Layout, String> {
    let (rows, chunks) = match matrices {
        1 => (8, 1),
        2 => (8, 2),
        _ => (16, 2),
    };
    if tile.rows < rows || tile.cols < chunks * vector {
        return Err(format!(
            "the tile of {}x{} elements is smaller than the {rows}x{} that the instruction moves",
            tile.rows,
            tile.cols,
            chunks * vector
        ));
    }
    Layout::flat(&[rows, chunks], &[tile.cols, vector]).map_err(|error| error.to_string())
}

/// Threads in row-major order, one vector each; the pattern is that of one warp.
fn thread_vectors(
    name: &str,
    threads: Option<i64>,
    vector: i64,
    tile: Tile,
) -> Result<Layout, String> {
    let vectors = tile.rows * tile.cols / vector;
    if tile.cols % vector != 0 {
        return Err(format!(
            "a row of {} elements is no multiple of the {vector} that `{name}` moves; widen the tile or narrow the access",
            tile.cols
        ));
    }
    let threads = threads.unwrap_or(32);
    if threads < 32 || threads % 32 != 0 {
        return Err(format!("{threads} threads are not whole warps of 32"));
    }
    if vectors % threads != 0 {
        return Err(format!(
            "the tile has {vectors} vectors of {vector} elements, which {threads} threads do not divide"
        ));
    }
    Layout::mode(32, vector).map_err(|error| error.to_string())
}
