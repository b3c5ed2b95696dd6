//! What an author states of the elements of an input of integers: facts for the prover, which the launches of this library check.

use super::View;
use crate::index::Expr;
use crate::ir::{Element, Elements, Kernel, Role, Stated};

impl Kernel {
    /// States that no two elements of an input of integers are equal, such as those of a permutation, with the author's reason: what is stored at indices from it
    /// is then stored once. The proof lists it. The launches of this library check it where they have the elements; other hosts keep to it.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
    /// use layout_codegen::value::Predicate;
    ///
    /// // y[to[i]] = x[i]
    /// let mut k = Kernel::new("scatter", 128);
    /// let n = k.size("n", 1 << 30);
    /// let (x, to) = (k.input("x", Element::F32, &[n]), k.input("to", Element::S32, &[n]));
    /// let y = k.partial_output("y", Element::F32, &[n]);
    /// k.assume_distinct(&to, "a permutation");
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let inside = Predicate::of(&mut k, i, Cmp::Lt, n);
    /// k.when(inside, |k| {
    ///     let (at, value) = (to.load::<u32>(k, &[i])?.to_index(k), x.load::<f32>(k, &[i])?);
    ///     y.store(k, &[at], value)
    /// })?;
    /// let scatter = k.build(Arch(80))?;
    /// // No launch of another host checks it.
    /// let stated = &scatter.proof.assumptions[0];
    /// assert_eq!(stated.to_string(), "the elements of `to` are distinct: a permutation (not checked)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn assume_distinct(&mut self, input: &View, reason: &str) {
        self.stated(input, Elements::Distinct, reason);
    }

    /// States that the elements of an input of integers are at least `low` and less than `high`, such as the numbers of rows of a table, with the author's
    /// reason: an index from it needs no clamp and no comparison. Bounds are made of sizes and numbers. The proof lists it. The launches of this library check it
    /// where they have the elements; other hosts keep to it.
    ///
    /// ```
    /// use layout_codegen::Arch;
    /// use layout_codegen::ir::{Axis, Cmp, Element, Kernel};
    /// use layout_codegen::value::Predicate;
    ///
    /// // y[i] = table[row[i]]
    /// let mut k = Kernel::new("gather", 128);
    /// let (n, rows, zero) = (k.size("n", 1 << 30), k.size("rows", 1 << 30), k.constant(0));
    /// let (table, row) = (k.input("table", Element::F32, &[rows]), k.input("row", Element::S32, &[n]));
    /// let y = k.output("y", Element::F32, &[n]);
    /// k.assume_range(&row, zero, rows, "rows of the table");
    /// let (block, thread) = (k.tiles(Axis::X, n, 128)?, k.thread());
    /// let i = k.linear(&[(128, block), (1, thread)], 0);
    /// let inside = Predicate::of(&mut k, i, Cmp::Lt, n);
    /// k.when(inside, |k| {
    ///     let at = row.load::<u32>(k, &[i])?.to_index(k);
    ///     let value = table.load::<f32>(k, &[at])?;
    ///     y.store(k, &[i], value)
    /// })?;
    /// let gather = k.build(Arch(80))?;
    /// let stated = &gather.proof.assumptions[0];
    /// assert_eq!(stated.to_string(), "the elements of `row` are in 0..rows: rows of the table (not checked)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn assume_range(&mut self, input: &View, low: Expr, high: Expr, reason: &str) {
        self.at_line();
        let [least, most] = [low, high].map(|bound| {
            self.sized(bound, || "a bound of `assume_range`".to_owned());
            self.pool.facts(bound)
        });
        if least.lo < i32::MIN.into() || most.hi > 1 << 31 || least.lo >= most.hi {
            self.mistake(
                "a range of `assume_range` that has no 32-bit integer, or others: give bounds between -2^31 and 2^31, the lower one first",
            );
            return;
        }
        self.stated(input, Elements::Within(low, high), reason);
    }

    fn stated(&mut self, input: &View, elements: Elements, reason: &str) {
        let reason = reason.trim();
        if reason.is_empty() || reason.contains(char::is_control) {
            self.mistake(
                "an assumption without a reason of one line: say in a few words why it holds",
            );
            return;
        }
        let own = input.own(self).is_ok();
        let is_fit =
            |b: &crate::ir::Buffer| b.role == Role::Input && b.element == Some(Element::S32);
        if !own || !is_fit(&self.buffers_mut()[input.buffer]) {
            self.mistake("an assumption of the elements of what is no input of s32 of this kernel");
            return;
        }
        let name = input.name(self).escape_default().to_string();
        let condition = elements.condition(&name, &self.pool);
        self.describe(format!("assumed: {condition} ({reason})"));
        let reason = reason.to_owned();
        self.buffers_mut()[input.buffer]
            .stated
            .push(Stated { elements, reason });
    }
}
