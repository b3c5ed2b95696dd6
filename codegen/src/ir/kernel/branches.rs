//! Branches, and what leaves a loop or the kernel.

use super::Kernel;
use super::loops::DEEPEST;
use crate::ir::node::{If, Node};
use crate::ir::value::Pred;
use crate::value::Predicate;

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
    pub(crate) fn begin_if(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        self.open.enter();
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

    /// Does `body` where `when` holds; what only it needs is computed there. Where all threads of a block agree, they may wait for each other in it; the
    /// prover refuses a barrier that only some of them would meet.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    /// use layout_codegen::view::ViewError;
    ///
    /// // All threads of a block have one size: they wait together, or not at all.
    /// let mut k = Kernel::new("k", 64);
    /// let (n, many) = (k.size("n", 100), k.constant(50));
    /// let p = Predicate::of(&mut k, n, Cmp::Gt, many);
    /// k.when(p, |k| {
    ///     k.barrier();
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// assert!(k.build(Arch(80)).is_ok());
    ///
    /// // Half of the block waits for the other: the prover refuses that.
    /// let mut k = Kernel::new("k", 64);
    /// let (thread, half) = (k.thread(), k.constant(32));
    /// let p = Predicate::of(&mut k, thread, Cmp::Lt, half);
    /// k.when(p, |k| {
    ///     k.barrier();
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// assert_eq!(k.build(Arch(80)).unwrap_err().code(), "divergent");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`.
    #[track_caller]
    pub fn when<E>(
        &mut self,
        when: Predicate,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        self.branch(when, body, None::<fn(&mut Self) -> Result<(), E>>)
    }

    /// Does `then` where `when` holds, and `otherwise` elsewhere, as [`Kernel::when`].
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::{F32, Predicate};
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("k", 64);
    /// let (n, many, x) = (k.size("n", 100), k.constant(50), k.variable(F32::from(0.0)));
    /// let p = Predicate::of(&mut k, n, Cmp::Gt, many);
    /// let set = |value| move |k: &mut Kernel| Ok::<(), ViewError>(x.set(k, value));
    /// k.when_else(p, set(1.0), set(2.0))?;
    /// # Ok::<(), ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of both sides.
    #[track_caller]
    pub fn when_else<E>(
        &mut self,
        when: Predicate,
        then: impl FnOnce(&mut Self) -> Result<(), E>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.at_line();
        self.branch(when, then, Some(otherwise))
    }

    fn branch<E>(
        &mut self,
        when: Predicate,
        then: impl FnOnce(&mut Self) -> Result<(), E>,
        otherwise: Option<impl FnOnce(&mut Self) -> Result<(), E>>,
    ) -> Result<(), E> {
        let (when, uniform) = when.guard(self);
        self.begin_if(when, uniform);
        let (mut done, mut same) = self.apart(then);
        if let (Some(otherwise), true) = (otherwise, same) {
            self.otherwise();
            let (other, kept) = self.apart(otherwise);
            (done, same) = (done.and(other), kept);
        }
        if same {
            self.end_if();
        }
        done
    }

    /// Does `body`, and computes there what only it needs: what the end of a kernel needs does not occupy registers through its main loop.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::view::ViewError;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// k.region(|k| {
    ///     k.comment("what only the end needs");
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// # Ok::<(), ViewError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `body`.
    #[track_caller]
    pub fn region<E>(&mut self, body: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        self.at_line();
        self.apart(body).0
    }

    /// Does `body` in a region, and says whether the kernel is still the one that it was given.
    fn apart<E>(&mut self, body: impl FnOnce(&mut Self) -> Result<(), E>) -> (Result<(), E>, bool) {
        if self.level() >= DEEPEST {
            self.mistake(format!(
                "a branch or region is nested deeper than {DEEPEST} loops and branches: nest fewer"
            ));
            return (Ok(()), true);
        }
        self.open_region();
        let (done, same) = self.around(body);
        if same {
            self.close_region();
        }
        (done, same)
    }

    /// Leaves the innermost loop where `when` holds. Threads that leave alone are behind it at no barrier in it any more, which the prover checks: a value
    /// that [`Kernel::reduce`] gives to the whole block is the same for all of them.
    ///
    /// ```
    /// use layout_codegen::ir::Kernel;
    /// use layout_codegen::value::F32;
    /// use layout_codegen::view::ViewError;
    ///
    /// // Doubled until it is 1 or more, ten times at most.
    /// let mut k = Kernel::new("example", 32);
    /// let (x, most): (F32, _) = (k.argument("x"), k.constant(10));
    /// let x = k.variable(x);
    /// k.for_loop("i", 0, 1, most, |k, _| {
    ///     let now = x.get(k);
    ///     let done = now.ge(k, 1.0);
    ///     k.break_when(done);
    ///     let twice = now.add(k, now);
    ///     x.set(k, twice);
    ///     Ok::<(), ViewError>(())
    /// })?;
    /// # Ok::<(), ViewError>(())
    /// ```
    #[track_caller]
    pub fn break_when(&mut self, when: Predicate) {
        self.at_line();
        let (when, uniform) = when.guard(self);
        if self.in_loop() {
            self.leave_loop(when, uniform);
        } else {
            self.mistake("`break_when` outside of a loop: use it in the body of `for_loop`");
        }
    }

    /// Ends the kernel for threads where `when` holds.
    ///
    /// ```
    /// use layout_codegen::ir::{Cmp, Kernel};
    /// use layout_codegen::value::Predicate;
    ///
    /// let mut k = Kernel::new("example", 32);
    /// let (thread, n) = (k.thread(), k.size("n", 100));
    /// let outside = Predicate::of(&mut k, thread, Cmp::Ge, n);
    /// k.exit_when(outside);
    /// ```
    #[track_caller]
    pub fn exit_when(&mut self, when: Predicate) {
        self.at_line();
        let (when, uniform) = when.guard(self);
        self.exit(when, uniform);
    }

    /// Names the other side and the end of the innermost open branch, for the reader of the text.
    pub(crate) fn name_branch(&mut self, other: &'static str, end: &'static str) {
        if let Some(open) = self.scope().branches.last_mut() {
            open.names = [other, end];
        }
    }

    /// The other side of the innermost open branch.
    pub(crate) fn otherwise(&mut self) {
        self.open.leave();
        self.open.enter();
        let scope = self.scope();
        let then = std::mem::take(&mut scope.body);
        match scope.branches.last_mut() {
            Some(open) if open.then.is_none() => open.then = Some(then),
            _ => self.mistake("a second side of a branch that is not open, or has one"),
        }
    }

    /// Closes the innermost open branch.
    pub(crate) fn end_if(&mut self) {
        self.open.leave();
        let scope = self.scope();
        let last = std::mem::take(&mut scope.body);
        let Some(open) = scope.branches.pop() else {
            self.mistake("the end of a branch that is not open");
            return;
        };
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
    pub(crate) fn leave_loop(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        self.scope().body.push(Node::Leave { when, uniform });
    }

    /// Ends the kernel for threads where `when` holds.
    pub(crate) fn exit(&mut self, when: impl Into<Pred>, uniform: bool) {
        let when = when.into();
        self.scope().body.push(Node::Exit { when, uniform });
    }
}
