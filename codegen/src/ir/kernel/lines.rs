//! The lines of the author's program: refusals name them, and the text has them on request.

use std::panic::Location;

use super::Kernel;
use crate::ir::node::{Comment, Node};

/// This file, within the crate.
const HERE: &str = "ir/kernel/lines.rs";

impl Kernel {
    /// Prints the kernel with the lines of the author's program (`.file` and `.loc`): ncu, `tilewright run` and the sanitizer then name them. `ptxas` keeps
    /// them with `-lineinfo`.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::Kernel;
    ///
    /// let mut k = Kernel::new("waits", 64);
    /// k.lines();
    /// k.barrier();
    /// assert!(k.build(Arch(80))?.ptx.contains(".loc 1 "));
    /// # Ok::<(), layout_codegen::prove::ProofError>(())
    /// ```
    pub fn lines(&mut self) {
        self.lines = true;
    }

    /// Notes the line that calls the public function which calls this. A function that the layer itself calls keeps the line of its author.
    #[track_caller]
    pub(crate) fn at_line(&mut self) {
        let line = Location::caller();
        let own = &file!()[..file!().len() - HERE.len()];
        if self.line != Some(line) && !line.file().starts_with(own) {
            self.line = Some(line);
            self.scope().body.push(Node::Comment(Comment::Line(line)));
        }
    }
}
