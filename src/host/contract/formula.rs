//! Formulas of sizes as source text: infix in every language, with functions for what may not fit 64 bits.
//!
//! ```text
//! n · m · 4     C    tilewright_times(tilewright_times((int64_t)scalars->n, (int64_t)scalars->m), 4)
//!               Rust i64::saturating_mul(i64::saturating_mul(i64::from(self.n), i64::from(self.m)), 4)
//!               Python n * m * 4
//! ```

use layout_codegen::Formula;
use layout_codegen::ir::Cmp;

/// How a language writes formulas.
pub(super) struct Syntax<'s> {
    /// A size.
    pub(super) size: &'s dyn Fn(&str) -> String,
    /// The operator that divides and rounds down, of numbers that are not negative.
    pub(super) quotient: &'s str,
    /// The function of two that multiplies and stops at 2⁶³ − 1; none where integers have any size.
    pub(super) times: Option<&'s str>,
    /// The function of two that gives the larger.
    pub(super) larger: &'s str,
}

impl Syntax<'_> {
    /// A formula.
    pub(super) fn text(&self, f: &Formula) -> String {
        match f {
            Formula::Sum(terms) => self.joined(terms, " + ").replace("+ -", "- "),
            Formula::Xor(items) => self.joined(items, " ^ "),
            Formula::Scaled(factor, x) => format!("{factor} * {}", self.inner(x)),
            Formula::Product(factors) => {
                // Numbers are one factor, the last.
                let number = |f: &Formula| match f {
                    Formula::Number(n) => Some(*n),
                    _ => None,
                };
                let constant = factors.iter().filter_map(number);
                let constant = constant.fold(1, i64::saturating_mul);
                let mut all = factors.clone();
                all.retain(|f| number(f).is_none());
                if constant != 1 || all.is_empty() {
                    all.push(Formula::Number(constant));
                }
                match self.times {
                    None => self.joined(&all, " * "),
                    Some(times) => {
                        let all = all.iter().map(|f| self.text(f));
                        let product = all.reduce(|a, b| format!("{times}({a}, {b})"));
                        product.unwrap_or_default()
                    }
                }
            }
            Formula::Quotient(x, d) => format!("{} {} {d}", self.inner(x), self.quotient),
            Formula::Larger(both) => {
                let [a, b] = [&both[0], &both[1]].map(|f| self.text(f));
                format!("{}({a}, {b})", self.larger)
            }
            Formula::Bits { x, shift, mask } if *shift >= 0 => {
                format!("({} << {shift}) & {mask}", self.inner(x))
            }
            Formula::Bits { x, shift, mask } => {
                format!("({} >> {}) & {mask}", self.inner(x), -shift)
            }
            Formula::Number(_) | Formula::Size(_) => self.inner(f),
        }
    }

    /// Two formulas compared.
    pub(super) fn compared(&self, a: &Formula, cmp: Cmp, b: &Formula) -> String {
        let sign = match cmp {
            Cmp::Lt => "<",
            Cmp::Le => "<=",
            Cmp::Gt => ">",
            Cmp::Ge => ">=",
            Cmp::Eq => "==",
            Cmp::Ne | Cmp::Neu => "!=",
        };
        format!("{} {sign} {}", self.inner(a), self.inner(b))
    }

    fn joined(&self, all: &[Formula], operator: &str) -> String {
        let all: Vec<String> = all.iter().map(|f| self.inner(f)).collect();
        all.join(operator)
    }

    /// A formula as an operand.
    fn inner(&self, f: &Formula) -> String {
        match f {
            Formula::Number(n) => n.to_string(),
            Formula::Size(name) => (self.size)(name),
            _ => format!("({})", self.text(f)),
        }
    }
}
