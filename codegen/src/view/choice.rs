//! Two views of which each thread takes one, by one address.

use layout_core::LayoutError;

use super::View;
use super::element::{Alternating, address_in, strided_distance};
use crate::index::Expr;
use crate::ir::{Address, Arrangement, Kernel, LoopHandle, Place, Reg, Stride};

/// A place in one view where a predicate holds, and in another elsewhere: the same instructions then touch both.
///
/// Modes are those of the views, in their order ([`View::transposed`] reverses them), so that one mode may be contiguous on one
/// side only.
#[derive(Clone, Debug)]
pub struct Choice {
    when: Reg,
    /// Where it holds, and where it does not.
    sides: [View; 2],
    /// The address of the place that was chosen.
    base: Expr,
    /// The side that is known to be taken here.
    known: Option<usize>,
}

impl Choice {
    /// The first view where `when` holds, else the second.
    ///
    /// # Errors
    ///
    /// [`LayoutError`](layout_core::LayoutError) for layouts or coordinates that do not fit.
    pub fn new(k: &mut Kernel, when: Reg, sides: [&View; 2]) -> Result<Self, LayoutError> {
        let bases = [sides[0].base(k)?, sides[1].base(k)?];
        let base = choose(k, when, bases);
        Ok(Self {
            when,
            sides: [sides[0].located(k)?, sides[1].located(k)?],
            base,
            known: None,
        })
    }

    /// The place that is at coordinates in each of two views, its address kept as one value: strides are chosen where the coordinates are the
    /// same, and addresses where they are not.
    ///
    /// # Errors
    ///
    /// [`LayoutError`](layout_core::LayoutError) for layouts or coordinates that do not fit.
    pub fn at(
        k: &mut Kernel,
        when: Reg,
        sides: [&View; 2],
        by: [&[Expr]; 2],
    ) -> Result<Self, LayoutError> {
        if by[0] == by[1] {
            let mut first = Self::new(k, when, sides)?.moved(k, by)?;
            first.base = k.pool.pin(first.base);
            return Ok(first);
        }
        let [a, b] = [0, 1].map(|i: usize| {
            let by = sides[i].ordered(by[i]);
            Ok(sides[i].moved(k, &by)?.pinned(k))
        });
        Self::new(k, when, [&a?, &b?])
    }

    /// The same place where it is known which side is taken: inside a branch.
    #[must_use]
    pub fn known(&self, when: bool) -> Self {
        Self {
            known: Some(usize::from(!when)),
            ..self.clone()
        }
    }

    /// The place that is `by` further, on either side.
    ///
    /// # Errors
    ///
    /// [`LayoutError`](layout_core::LayoutError) for layouts or coordinates that do not fit.
    pub fn moved(&self, k: &mut Kernel, by: [&[Expr]; 2]) -> Result<Self, LayoutError> {
        let distance = self.distance(k, by)?;
        let mut sides = self.sides.clone();
        for (side, by) in sides.iter_mut().zip(by) {
            let by = side.ordered(by);
            *side = side.moved(k, &by)?;
        }
        Ok(Self {
            base: k.pool.add(self.base, distance),
            sides,
            ..self.clone()
        })
    }

    /// The same place by an address that a loop carries: it moves by one addition an iteration.
    #[must_use]
    pub fn carried(&self, k: &mut Kernel, name: &str, of: &LoopHandle) -> Self {
        Self {
            base: k.induction_value(name, self.base, of),
            ..self.clone()
        }
    }

    /// The address of the element that is `by` further: nowhere, if that is empty.
    ///
    /// # Errors
    ///
    /// [`LayoutError`](layout_core::LayoutError) for layouts or coordinates that do not fit.
    pub fn element(
        &self,
        k: &mut Kernel,
        by: [&[Expr]; 2],
        stage: Option<&Alternating<'_>>,
    ) -> Result<Address, LayoutError> {
        let distance = self.distance(k, by)?;
        let e = k.pool.add(self.base, distance);
        let mut place = |i: usize| {
            let by = self.sides[i].ordered(by[i]);
            self.sides[i].place(k, &by, stage)
        };
        let place = if let Some(i) = self.known {
            place(i)
        } else {
            let (then, otherwise) = (place(0), place(1));
            k.place(Place::Either {
                when: self.when,
                then,
                otherwise,
            })
        };
        let space = self.sides[0].space(k);
        Ok(address_in(k, space, e, place, stage))
    }

    /// Bytes from the first element.
    fn distance(&self, k: &mut Kernel, by: [&[Expr]; 2]) -> Result<Expr, LayoutError> {
        let of = |k: &mut Kernel, i: usize| {
            let by = self.sides[i].ordered(by[i]);
            self.sides[i].distance(k, &by)
        };
        if let Some(i) = self.known {
            return of(k, i);
        }
        if by[0] == by[1]
            && let (Some(a), Some(b)) = (strides(k, &self.sides[0]), strides(k, &self.sides[1]))
        {
            let (mut chosen, mut at) = (Vec::new(), Vec::new());
            for ((&a, &b), &e) in a.iter().zip(&b).zip(by[0]) {
                if k.pool.as_const(e) != Some(0) {
                    chosen.push(self.chosen(k, [a, b]));
                    at.push(e);
                }
            }
            let bytes = k.buffer(self.sides[0].buffer).bytes;
            return strided_distance(k, bytes, &chosen, &at);
        }
        let both = [of(k, 0)?, of(k, 1)?];
        Ok(choose(k, self.when, both))
    }

    fn chosen(&self, k: &mut Kernel, both: [Stride; 2]) -> Stride {
        if both[0] == both[1] {
            return both[0];
        }
        let [a, b] = both.map(|stride| match stride {
            Stride::Fixed(s) => k.pool.constant(s),
            Stride::Value(e) => e,
        });
        Stride::Value(k.select(self.when, a, b))
    }
}

/// The strides in a view's order; none in shared memory.
fn strides(k: &Kernel, view: &View) -> Option<Vec<Stride>> {
    let Arrangement::Global { strides, .. } = &k.buffer(view.buffer).arrangement else {
        return None;
    };
    let mut strides = strides.clone();
    if view.reversed {
        strides.reverse();
    }
    Some(strides)
}

/// The first value where `when` holds, else the second: what they share is added to what is chosen.
fn choose(k: &mut Kernel, when: Reg, [a, b]: [Expr; 2]) -> Expr {
    let (of_a, of_b) = (k.pool.terms(a).0, k.pool.terms(b).0);
    let mut shared = k.pool.constant(0);
    for (c, x) in of_a {
        if of_b.contains(&(c, x)) {
            let part = k.pool.scale(x, c);
            shared = k.pool.add(shared, part);
        }
    }
    let (a, b) = (k.pool.sub(a, shared), k.pool.sub(b, shared));
    let chosen = k.select(when, a, b);
    k.pool.add(shared, chosen)
}
