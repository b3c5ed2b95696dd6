//! Branches, and what leaves a loop or the kernel.

use super::Kernel;
use crate::ir::node::{If, Node};
use crate::ir::value::Pred;

/// An open branch.
#[derive(Debug)]
pub(super) struct Open {
    when: Pred,
    uniform: bool,
    /// What stands before the branch.
    outer: Vec<Node>,
    /// Its first side, once the second is open.
    then: Option<Vec<Node>>,
    names: [&'static str; 2],
}

impl Kernel {
    /// Opens a branch: what follows is executed where `when` holds. All threads of a block agree if `uniform`.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// // Half of the block waits for the other: the prover refuses that.
    /// let mut k = Kernel::new("k", 64);
    /// let (thread, half) = (k.thread(), k.pool.constant(32));
    /// let p = k.compare(Cmp::Lt, thread, half);
    /// k.begin_if(p, false);
    /// k.barrier();
    /// k.end_if();
    /// assert_eq!(k.build(Arch(80)).unwrap_err().code(), "divergent");
    /// ```
    pub fn begin_if(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        let scope = self.scope();
        let outer = std::mem::take(&mut scope.body);
        scope.branches.push(Open {
            when,
            uniform,
            outer,
            then: None,
            names: ["else", "end"],
        });
    }

    /// Does `body` where `when` holds, in which all threads of a block agree; what only it needs is computed there. A step that few turns of a loop take,
    /// such as a mask at the edge.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    ///
    /// let mut k = Kernel::new("k", 64);
    /// let (n, many) = (k.size("n", 100), k.pool.constant(50));
    /// let p = Predicate::of(&mut k, n, Cmp::Gt, many);
    /// k.when(p, |k| {
    ///     k.barrier(); // all threads are here
    ///     Ok::<(), layout_codegen::view::ViewError>(())
    /// })?;
    /// assert!(k.build(Arch(80)).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`.
    pub fn when<E>(
        &mut self,
        when: impl Into<Pred>,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.begin_if(when, true);
        self.open_region();
        let done = body(self);
        self.close_region();
        self.end_if();
        done
    }

    /// Names the other side and the end of the innermost open branch, for the reader of the text.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let p = k.compare(Cmp::Lt, thread, n);
    /// k.begin_if(p, false);
    /// k.name_branch("outside", "stored");
    /// k.end_if();
    /// ```
    pub fn name_branch(&mut self, other: &'static str, end: &'static str) {
        if let Some(open) = self.scope().branches.last_mut() {
            open.names = [other, end];
        }
    }

    /// The other side of the innermost open branch.
    ///
    /// # Panics
    ///
    /// Without an open branch, or with one whose other side is open already: a mistake of the emitter, not of its input.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let p = k.compare(Cmp::Lt, thread, n);
    /// k.begin_if(p, false);
    /// k.comment("inside");
    /// k.otherwise();
    /// k.comment("outside");
    /// k.end_if();
    /// ```
    pub fn otherwise(&mut self) {
        let scope = self.scope();
        let then = std::mem::take(&mut scope.body);
        let open = scope.branches.last_mut().expect("a branch is open");
        assert!(open.then.is_none(), "a branch has two sides");
        open.then = Some(then);
    }

    /// Closes the innermost open branch.
    ///
    /// # Panics
    ///
    /// Without an open branch: a mistake of the emitter, not of its input.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let p = k.compare(Cmp::Lt, thread, n);
    /// k.begin_if(p, false);
    /// k.end_if();
    /// ```
    pub fn end_if(&mut self) {
        let scope = self.scope();
        let last = std::mem::take(&mut scope.body);
        let open = scope.branches.pop().expect("a branch is open");
        let (then, otherwise) = match open.then {
            Some(then) => (then, last),
            None => (last, Vec::new()),
        };
        scope.body = open.outer;
        scope.body.push(Node::If(Box::new(If {
            when: open.when,
            uniform: open.uniform,
            then,
            otherwise,
            names: open.names,
            meant: open.when,
        })));
    }

    /// Leaves the innermost loop where `when` holds.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let n = k.size("n", 100);
    /// let turn = k.open_loop("i", 0, 1, 100);
    /// let last = k.compare(Cmp::Ge, turn.counter, n);
    /// k.leave_loop(last, true);
    /// k.close_endless_loop(&turn, "counted");
    /// ```
    pub fn leave_loop(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        self.scope().body.push(Node::Leave { when, uniform });
    }

    /// Ends the kernel for threads where `when` holds.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let outside = k.compare(Cmp::Ge, thread, n);
    /// k.exit(outside, false);
    /// ```
    pub fn exit(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        self.scope().body.push(Node::Exit { when, uniform });
    }
}
