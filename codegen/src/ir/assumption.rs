//! Assumptions: what the author of a kernel states and the prover takes as a fact.
//!
//! The prover follows what parameters, block indices and loop counters do to addresses; what it cannot see is what a caller keeps to. An author may state it,
//! with a reason. An assumption holds from the place where it is stated to the end of the loop or branch that it stands in. It is part of the proof: the report
//! names it, the text carries it as a comment, and one of parameters alone, stated for the whole kernel, is checked at every launch. The kernels that come
//! with this crate need none.
//!
//! Of the elements of an input of integers an author may state that they are distinct, or in a range (`Kernel::assume_distinct`, `Kernel::assume_range`).
//!
//! ```text
//! k.assume(n, Cmp::Ge, one, "callers have no empty rows")     a fact for the prover
//!                                                              // assumed: n >= 1 (callers have no empty rows)
//!                                                              a launch with n = 0 is refused
//! ```

use std::fmt;

use super::kernel::{Kernel, is_comment};
use super::node::Node;
use super::param::{Param, ParamKind};
use super::value::Cmp;
use crate::index::{Expr, Node as Index, Pool};

/// A condition that is taken as a fact, and why.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Assumption {
    /// How the two compare.
    pub(crate) cmp: Cmp,
    /// The first value.
    pub(crate) a: Expr,
    /// The second value.
    pub(crate) b: Expr,
    /// Why it holds, in the author's words.
    pub(crate) reason: String,
    /// The condition as text.
    text: String,
}

/// An assumption that cannot be stated.
///
/// ```
/// use layout_codegen::ir::{AssumptionError, Cmp, Kernel};
///
/// let mut k = Kernel::new("k", 32);
/// let (n, one) = (k.size("n", 100), k.constant(1));
/// let error = k.assume(n, Cmp::Ge, one, " ").unwrap_err();
/// assert_eq!((error.code(), error.clone()), ("no_reason", AssumptionError::NoReason));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AssumptionError {
    /// The reason is empty.
    NoReason,
    /// The reason has a line break or another control character, which a comment of the text cannot hold.
    ControlCharacter,
}

impl AssumptionError {
    /// A stable name of this error.
    ///
    /// ```
    /// use layout_codegen::ir::AssumptionError;
    ///
    /// assert_eq!(AssumptionError::ControlCharacter.code(), "control_character");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoReason => "no_reason",
            Self::ControlCharacter => "control_character",
        }
    }
}

impl fmt::Display for AssumptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReason => "an assumption without a reason: say in a few words why it holds",
            Self::ControlCharacter => {
                "the reason of an assumption has a line break, another control character, or a backslash at its end: give one line of text"
            }
        })
    }
}

impl std::error::Error for AssumptionError {}

impl Assumption {
    /// The condition as text, such as `n >= 1`.
    pub(crate) fn condition(&self, pool: &Pool) -> String {
        format!(
            "{} {} {}",
            text(pool, self.a),
            sign(self.cmp),
            text(pool, self.b)
        )
    }

    /// The line that the text has of it.
    pub(crate) fn comment(&self) -> String {
        format!("assumed: {} ({})", self.text, self.reason)
    }

    /// Whether it is of parameters alone, whose values a launch knows.
    pub(crate) fn is_of(&self, params: &[Param], pool: &Pool) -> bool {
        let known = |name: &String| {
            let mut all = params.iter();
            all.any(|p| p.kind == ParamKind::U32 && p.name == *name)
        };
        [self.a, self.b]
            .iter()
            .all(|e| pool.variables(*e).iter().all(known))
    }

    /// Whether it holds for values of parameters.
    pub(crate) fn holds(&self, pool: &Pool, value: &impl Fn(&str) -> i64) -> bool {
        let (a, b) = (pool.evaluate(self.a, value), pool.evaluate(self.b, value));
        match self.cmp {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Eq => a == b,
            Cmp::Ne | Cmp::Neu => a != b,
        }
    }
}

/// What an author states of all elements of an input of integers, and why.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Stated {
    /// What it is.
    pub(crate) elements: Elements,
    /// Why it holds, in the author's words.
    pub(crate) reason: String,
}

/// What holds of all elements of an input.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Elements {
    /// No two are equal.
    Distinct,
    /// They are at least the first, and less than the second, which are made of sizes.
    Within(Expr, Expr),
}

impl Elements {
    /// The condition as text.
    pub(crate) fn condition(self, name: &str, pool: &Pool) -> String {
        match self {
            Elements::Distinct => format!("the elements of `{name}` are distinct"),
            Elements::Within(low, high) => {
                let [low, high] = [low, high].map(|e| text(pool, e));
                format!("the elements of `{name}` are in {low}..{high}")
            }
        }
    }
}

/// The assumptions of a kernel that a launch can check: stated outside of loops and branches, before a thread may have left, of parameters alone.
pub(crate) fn checked<'n>(
    nodes: &'n [Node],
    params: &'n [Param],
    pool: &'n Pool,
) -> impl Iterator<Item = &'n Assumption> {
    let stay = nodes.iter().take_while(|node| !leaves(node));
    stay.filter_map(move |node| match node {
        Node::Assume(assumption) if assumption.is_of(params, pool) => Some(&**assumption),
        _ => None,
    })
}

/// Whether threads may leave the kernel in a node.
fn leaves(node: &Node) -> bool {
    match node {
        Node::Exit { .. } => true,
        Node::If(branch) => branch.then.iter().chain(&branch.otherwise).any(leaves),
        Node::Loop(iterations) => iterations.body.iter().any(leaves),
        Node::Roles(roles) => roles.iter().any(|role| role.body.iter().any(leaves)),
        _ => false,
    }
}

fn sign(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
        Cmp::Eq => "=",
        Cmp::Ne | Cmp::Neu => "!=",
    }
}

/// An expression as text.
fn text(pool: &Pool, e: Expr) -> String {
    let of = |e: &Expr| text(pool, *e);
    match pool.node(e) {
        Index::Const(c) => c.to_string(),
        Index::Var { name } => name.clone(),
        Index::Sum(terms, k) => {
            let term = |(c, x): &(i64, Expr)| match c {
                1 => of(x),
                c => format!("{c}*{}", of(x)),
            };
            let mut all: Vec<String> = terms.iter().map(term).collect();
            if *k != 0 {
                all.push(k.to_string());
            }
            let sum = all.join(" + ").replace("+ -", "- ");
            if all.len() > 1 {
                format!("({sum})")
            } else {
                sum
            }
        }
        Index::Field { x, shift, mask } if *shift >= 0 => {
            format!("((({} << {shift})) & {mask:#x})", of(x))
        }
        Index::Field { x, shift, mask } => format!("(({} >> {}) & {mask:#x})", of(x), -shift),
        Index::Xor(items) => {
            let all: Vec<String> = items.iter().map(of).collect();
            format!("({})", all.join(" ^ "))
        }
        Index::Mul(a, b) => format!("{}*{}", of(a), of(b)),
        Index::Div(x, d) => format!("({} / {d})", of(x)),
        Index::DivFast { .. } => "(a quotient)".to_owned(),
        Index::Pin(x) => of(x),
    }
}

impl Kernel {
    /// States that `a cmp b` holds from here to the end of the loop or branch that this stands in: a fact for the prover, with the author's reason. The
    /// values are of parameters, block indices and loop counters. The proof lists it; what is stated of parameters alone, outside of loops and
    /// branches, is checked at every launch.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
    /// use layout_core::Layout;
    ///
    /// // A copy of whole tiles: no predicate is needed where n is a multiple of 128, which its author knows.
    /// let mut k = Kernel::new("copy", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, y) = (k.input("x", Element::F32, &[n]), k.output("y", Element::F32, &[n]));
    /// let (whole, most) = (k.constant(128), k.constant(1 << 20));
    /// k.assume(n, Cmp::Ge, whole, "short vectors go elsewhere")?;
    /// k.assume(n, Cmp::Le, most, "what one launch of the service has")?;
    /// let (block, thread, one) = (k.tiles(Axis::X, n, 128)?, k.thread(), Layout::parse("(128,1):(1,0)")?);
    /// let x = x.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
    /// let y = y.tile(&mut k, &[128], &[block])?.partition(&mut k, &one, thread)?;
    /// k.copy(&x, &y)?;
    /// let copy = k.build(Arch(80))?;
    /// let stated: Vec<_> = copy.proof.assumptions.iter().map(|a| a.to_string()).collect();
    /// assert_eq!(stated[0], "n >= 128: short vectors go elsewhere (checked at launch)");
    /// assert!(copy.ptx.contains("// assumed: n >= 128 (short vectors go elsewhere)"));
    /// assert_eq!(copy.grid(|_| Some(100)).unwrap_err().code(), "assumption");
    /// assert_eq!(copy.grid(|_| Some(256))?, [2, 1, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A reason that is empty, or has control characters. What contradicts what is known at its place, or differs between threads, is refused when the kernel
    /// is proven.
    pub fn assume(
        &mut self,
        a: Expr,
        cmp: Cmp,
        b: Expr,
        reason: &str,
    ) -> Result<(), AssumptionError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(AssumptionError::NoReason);
        }
        if !is_comment(reason) {
            return Err(AssumptionError::ControlCharacter);
        }
        self.still_there(a);
        self.still_there(b);
        let mut assumption = Assumption {
            cmp,
            a,
            b,
            reason: reason.to_owned(),
            text: String::new(),
        };
        assumption.text = assumption.condition(&self.pool);
        self.state(Node::Assume(Box::new(assumption)));
        Ok(())
    }
}
