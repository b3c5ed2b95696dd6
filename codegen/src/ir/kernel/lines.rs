//! The lines of the author's program: refusals name them, and the text has them on request.

use std::panic::Location;

use super::Kernel;
use crate::ir::node::{Comment, Node};

/// This file, within the crate.
const HERE: &str = "ir/kernel/lines.rs";

impl Kernel {
    /// Prints the kernel with the lines of the author's program (`.file` and `.loc`), which the emulator's sanitizer names. `ptxas -lineinfo` keeps them for
    /// profilers.
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

    /// Notes the author's line that calls the public function around this call. Calls from within this crate keep the line noted before.
    #[track_caller]
    pub(crate) fn at_line(&mut self) {
        let line = Location::caller();
        let own = &file!()[..file!().len() - HERE.len()];
        if self.line != Some(line) && !line.file().starts_with(own) {
            self.line = Some(line);
            let body = &mut self.scope().body;
            if let Some(Node::Comment(Comment::Line(last))) = body.last_mut() {
                *last = line;
            } else {
                body.push(Node::Comment(Comment::Line(line)));
            }
        }
    }
}
