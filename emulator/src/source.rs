//! Lines of the program that the PTX was compiled from: `.file` and `.loc`.
//!
//! A `.loc` holds for the instructions behind it up to the next one or the end of the body. Example: after `.file 1 "sum.cu"` and
//! `.loc 1 12 5` the instructions belong to `sum.cu:12`. A compiler that has inlined a function says where, so that a line may have another
//! behind it: `reduce.cuh:7, inlined at sum.cu:12`.

use std::fmt;

/// A place in the program that the PTX was compiled from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// The file, as `.file` names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if the compiler did not say.
    pub column: u32,
    /// Where the function that has the line was inlined.
    pub inlined_at: Option<Box<SourceLine>>,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        let mut outer = &self.inlined_at;
        while let Some(at) = outer {
            write!(f, ", inlined at {}:{}", at.file, at.line)?;
            outer = &at.inlined_at;
        }
        Ok(())
    }
}

/// File, line and column of a `.loc`.
pub(crate) type Place = [u32; 3];

/// A `.loc`, or the start of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loc {
    /// Line in the PTX text.
    pub(crate) at: u32,
    /// Nothing at the start of a body.
    pub(crate) place: Option<Place>,
    pub(crate) inlined_at: Option<Place>,
}

/// The `.file` and `.loc` directives of a module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lines {
    pub(crate) files: Vec<(u32, String)>,
    /// In the order of the text.
    pub(crate) locs: Vec<Loc>,
}

impl Lines {
    /// The source of the instruction in line `line` of the PTX.
    pub(crate) fn source(&self, line: u32) -> Option<SourceLine> {
        let next = self.locs.partition_point(|loc| loc.at <= line);
        let loc = self.locs.get(next.checked_sub(1)?)?;
        let mut source = self.named(loc.place?)?;
        source.inlined_at = loc.inlined_at.and_then(|p| self.named(p)).map(Box::new);
        Some(source)
    }

    fn named(&self, [file, line, column]: Place) -> Option<SourceLine> {
        let (_, file) = self.files.iter().find(|(number, _)| *number == file)?;
        (line != 0).then(|| SourceLine {
            file: file.clone(),
            line,
            column,
            inlined_at: None,
        })
    }
}
