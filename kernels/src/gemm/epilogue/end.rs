//! The end of a kernel: an epilogue with its inputs in registers and memory, called for each vector of C, and its stores.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Address, Addresses, Binary, Extent, Instructions, Pred, Reg, Role, Stride,
};
use layout_codegen::ir::{Cmp, Element, Kernel, ParamKind};
use layout_codegen::view::View;

use super::convert::{self, arithmetic, from_integer, scalar_type};
use super::{Finish, Fragment, Input, InputKind, Linear};
use crate::gemm::{PlanError, scalar_kind};

/// The types on the way from sums to C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types {
    /// Of the sums: f32, f64 or s32.
    pub(crate) sum: Element,
    /// Of what the epilogue computes in.
    pub(crate) scalar: Element,
    /// Of C.
    pub(crate) output: Element,
    /// There is an instruction that rounds two numbers at once (from `sm_80`).
    pub(crate) packs: bool,
}

/// An input in a kernel.
pub(crate) struct Bound {
    pub(crate) input: Input,
    pub(crate) source: Source,
}

/// Where an input is.
pub(crate) enum Source {
    Scalar(Reg),
    Memory(View),
}

/// An epilogue in a kernel.
pub(crate) struct End<'f> {
    finish: &'f dyn Finish,
    pub(crate) types: Types,
    pub(crate) inputs: Vec<Bound>,
    pub(crate) prepared: Vec<Reg>,
    /// What each sum is multiplied with first.
    factor: Option<Reg>,
}

/// The parameters of an epilogue's pointers, which stand behind C's.
pub(crate) fn pointers(finish: &dyn Finish) -> Vec<(String, ParamKind)> {
    let inputs = finish.inputs().into_iter();
    inputs
        .filter(|i| i.element().is_some())
        .map(|i| (i.name, ParamKind::Pointer))
        .collect()
}

/// The parameters of an epilogue's leading dimensions and scalars, which stand behind the sizes.
pub(crate) fn values(finish: &dyn Finish, scalar: Element) -> Vec<(String, ParamKind)> {
    let inputs = finish.inputs();
    let matrices = inputs
        .iter()
        .filter(|i| matches!(i.kind, InputKind::Matrix { .. }))
        .map(|i| (i.leading_dimension(), ParamKind::U32));
    let scalars = inputs
        .iter()
        .filter(|i| i.kind == InputKind::Scalar)
        .map(|i| (i.name.clone(), scalar_kind(scalar)));
    matrices.chain(scalars).collect()
}

/// The predicate that a factor is 0, so that there is no product.
pub(crate) fn is_zero(k: &mut Kernel, scalar: Element, factor: Reg) -> Reg {
    let (_, ty, zero) = scalar_type(scalar);
    k.compare_at_entry(Cmp::Eq, arithmetic(ty), factor, zero)
}

/// The predicate that a scalar is not 0; NaN is not.
pub(crate) fn is_not_zero(k: &mut Kernel, scalar: Element, value: Reg) -> Reg {
    let (_, ty, zero) = scalar_type(scalar);
    let ne = if scalar == Element::S32 {
        Cmp::Ne
    } else {
        Cmp::Neu
    };
    k.compare_at_entry(ne, arithmetic(ty), value, zero)
}

/// Vector inputs in registers, by the number of the input: one register for a row, one for each column; none for other inputs.
#[derive(Clone, Default)]
pub(crate) struct Loaded(pub(crate) Vec<Vec<Reg>>);

/// Where one vector of C is, and what of it is inside.
pub(crate) struct Place<'a> {
    /// The row and the first column in C.
    pub(crate) at: (Expr, Expr),
    /// The addresses of its elements.
    pub(crate) targets: Vec<Address>,
    /// The epilogue's matrices, moved to where the thread begins, by the number of the input.
    pub(crate) matrices: &'a [Option<View>],
    /// Rows and columns from there to this vector.
    pub(crate) by: (Expr, Expr),
    /// Its row is inside.
    pub(crate) row: Reg,
    /// All of it is inside, and aligned for one store; none if there is but one element.
    pub(crate) whole: Option<Reg>,
    /// Columns from its first to the end of the row.
    pub(crate) left: Expr,
}

impl Place<'_> {
    /// The addresses of the `count` elements of a row from `row` and `col` in a view on.
    pub(crate) fn targets(
        k: &mut Kernel,
        c: &View,
        (row, col): (Expr, Expr),
        count: i64,
    ) -> Result<Vec<Address>, PlanError> {
        (0..count)
            .map(|j| {
                let step = k.constant(j);
                let col = k.add(col, step);
                Ok(c.element(k, &[row, col])?)
            })
            .collect()
    }
}

impl<'f> End<'f> {
    /// Reads the parameters of leading dimensions and scalars, and says what lies at the pointers, which are those of
    /// [`pointers`] in their order. `extents` are the rows and columns of C.
    pub(crate) fn new(
        k: &mut Kernel,
        finish: &'f dyn Finish,
        types: Types,
        at: &[Expr],
        extents: [Extent; 2],
    ) -> Result<Self, PlanError> {
        let all = finish.inputs();
        let mut strides = Vec::new();
        for input in &all {
            strides.push(match input.kind {
                InputKind::Matrix { .. } => {
                    let name = input.leading_dimension();
                    Some(k.param_u32(&name, crate::gemm::LIMIT as i64))
                }
                _ => None,
            });
        }
        let mut at = at.iter();
        let mut inputs = Vec::new();
        for (input, stride) in all.into_iter().zip(strides) {
            let [rows, cols] = extents;
            let unit = Stride::Fixed(1);
            let (extents, strides) = match (input.kind, stride) {
                (InputKind::Row(_), _) => (vec![rows], vec![unit]),
                (InputKind::Column(_), _) => (vec![cols], vec![unit]),
                (InputKind::Matrix { .. }, Some(ld)) => {
                    (vec![rows, cols], vec![Stride::Value(ld), unit])
                }
                _ => {
                    let kind = scalar_kind(types.scalar);
                    let source = Source::Scalar(k.param_scalar(&input.name, kind));
                    inputs.push(Bound { input, source });
                    continue;
                }
            };
            let Some((&base, element)) = at.next().zip(input.element()) else {
                continue;
            };
            let bytes = element.bytes().into();
            let view = k.launch_global(&input.name, base, bytes, extents, strides, Role::Input);
            if let InputKind::Matrix { aligned, .. } = input.kind
                && aligned > element.bytes()
            {
                k.rows_aligned(&view, aligned.into());
            }
            let source = Source::Memory(view);
            inputs.push(Bound { input, source });
        }
        let scalar = |i: &Bound| match i.source {
            Source::Scalar(reg) => Some(reg),
            Source::Memory(_) => None,
        };
        let scalars: Vec<Reg> = inputs.iter().filter_map(scalar).collect();
        let named = |name: &str| inputs.iter().find(|i| i.input.name == name);
        let factor = finish.factor().and_then(named).and_then(scalar);
        let prepared = finish.prepare(k, &scalars)?;
        Ok(Self {
            finish,
            types,
            inputs,
            prepared,
            factor,
        })
    }

    /// The types on the way from sums to C.
    pub(crate) fn types(&self) -> Types {
        self.types
    }

    /// The factor is 0: there is no product. None without a factor.
    pub(crate) fn no_product(&self, k: &mut Kernel) -> Option<Reg> {
        self.factor.map(|f| is_zero(k, self.types.scalar, f))
    }

    /// The factor is not 0: there is a product. None without a factor.
    pub(crate) fn has_product(&self, k: &mut Kernel) -> Option<Reg> {
        self.factor.map(|f| is_not_zero(k, self.types.scalar, f))
    }

    /// The product's own epilogue, if it is that.
    pub(crate) fn linear(&self) -> Option<Linear> {
        self.finish.linear()
    }

    /// The scalar of this name is 0.
    pub(crate) fn is_zero(&self, k: &mut Kernel, name: &str) -> Option<Reg> {
        let reg = self.scalar(name)?;
        Some(is_zero(k, self.types.scalar, reg))
    }

    /// Stores neighbouring values at once, as elements of C, where `guard` holds.
    pub(crate) fn store_rounded(
        &self,
        k: &mut Kernel,
        guard: Option<Reg>,
        values: &[Reg],
        at: Address,
    ) {
        let types = (self.types.output, self.types.scalar);
        let guard = guard.map(Pred::from);
        convert::store_all(k, types, self.types.packs, guard, values, at);
    }

    /// `count` neighbouring elements of C as they lie in memory, where `guard` holds: for [`widened`](Self::widened).
    pub(crate) fn load_previous(
        &self,
        k: &mut Kernel,
        guard: Reg,
        count: usize,
        at: Address,
    ) -> Vec<Reg> {
        convert::load_words(k, self.types.output, Some(guard.into()), count, at)
    }

    /// The numbers in what [`load_previous`](Self::load_previous) read.
    pub(crate) fn widened(&self, k: &mut Kernel, words: &[Reg]) -> Vec<Reg> {
        convert::widen_words(k, (self.types.output, self.types.scalar), words)
    }

    /// The register of a scalar input.
    pub(crate) fn scalar(&self, name: &str) -> Option<Reg> {
        let found = self.inputs.iter().find(|i| i.input.name == name)?;
        match found.source {
            Source::Scalar(reg) => Some(reg),
            Source::Memory(_) => None,
        }
    }

    /// The matrices from a row and a column on, where a thread begins.
    pub(crate) fn matrices(
        &self,
        k: &mut Kernel,
        (row, col): (Expr, Expr),
    ) -> Result<Vec<Option<View>>, PlanError> {
        let mut all = Vec::new();
        for Bound { input, source } in &self.inputs {
            all.push(match (input.kind, source) {
                (InputKind::Matrix { .. }, Source::Memory(view)) => {
                    Some(view.moved(k, &[row, col])?.pinned(k))
                }
                _ => None,
            });
        }
        Ok(all)
    }

    /// The elements of vectors by column for `count` columns from `col` on, of which `left` are inside.
    pub(crate) fn load_columns(
        &self,
        k: &mut Kernel,
        col: Expr,
        left: Expr,
        count: i64,
    ) -> Result<Loaded, PlanError> {
        let mut all = vec![Vec::new(); self.inputs.len()];
        for (Bound { input, source }, to) in self.inputs.iter().zip(&mut all) {
            let (InputKind::Column(element), Source::Memory(view)) = (input.kind, source) else {
                continue;
            };
            for j in 0..count {
                let inside = k.compare_here(Cmp::Gt, left, j, None);
                let step = k.constant(j);
                let col = k.add(col, step);
                let at = view.element(k, &[col])?;
                let types = (element, self.types.scalar);
                to.push(convert::load_one(k, types, Some(inside.into()), at));
            }
        }
        Ok(Loaded(all))
    }

    /// The elements of vectors by row, for a row that is inside where the predicate holds.
    pub(crate) fn load_rows(
        &self,
        k: &mut Kernel,
        row: Expr,
        inside: Option<Reg>,
        loaded: &mut Loaded,
    ) -> Result<(), PlanError> {
        loaded.0.resize(self.inputs.len(), Vec::new());
        for (Bound { input, source }, to) in self.inputs.iter().zip(&mut loaded.0) {
            let (InputKind::Row(element), Source::Memory(view)) = (input.kind, source) else {
                continue;
            };
            let at = view.element(k, &[row])?;
            let types = (element, self.types.scalar);
            *to = vec![convert::load_one(k, types, inside.map(Pred::from), at)];
        }
        Ok(())
    }

    /// The sums as numbers that the epilogue computes with, times the factor.
    pub(crate) fn scaled(&self, k: &mut Kernel, sums: &[Reg]) -> Vec<Reg> {
        let scalar = self.types.scalar;
        let sums = if self.types.sum == Element::S32 {
            sums.iter().map(|s| from_integer(k, scalar, *s)).collect()
        } else {
            sums.to_vec()
        };
        if let Some(factor) = self.factor {
            let ty = arithmetic(scalar_type(scalar).1);
            for s in &sums {
                k.binary(Binary::Mul, ty, *s, *s, factor);
            }
        }
        sums
    }

    /// Calls the function: it computes, and leaves the kernel as it was built around it.
    fn finished(&self, k: &mut Kernel, c: &mut Fragment<'_>) -> Result<(), PlanError> {
        k.begin_function(&self.finish.name());
        let (done, same) = k.around(|k| self.finish.finish(k, c));
        k.end_function();
        done?;
        if same {
            return Ok(());
        }
        Err(PlanError::Epilogue {
            what: "it leaves another kernel behind than it was given: compute with the kernel that the function gets".to_owned(),
        })
    }

    /// Finishes single elements, which are [`scaled`](Self::scaled), and stores them when all are finished, so that what they read is in flight
    /// at the same time. `row` of a place says that the element is inside, its column too.
    pub(crate) fn update_each(
        &self,
        k: &mut Kernel,
        elements: &[(Reg, Loaded, Place<'_>)],
    ) -> Result<(), PlanError> {
        let types = (self.types.output, self.types.scalar);
        let mut finished = Vec::new();
        for (value, loaded, place) in elements {
            let mut c = Fragment {
                end: self,
                place,
                loaded,
                values: vec![*value],
                second: Vec::new(),
                first: 0,
                guard: Some(place.row),
            };
            self.finished(k, &mut c)?;
            finished.push(c.values[0]);
        }
        for (value, (_, _, place)) in finished.into_iter().zip(elements) {
            convert::store_one(k, types, Some(place.row.into()), value, place.targets[0]);
        }
        Ok(())
    }

    /// Finishes and stores one vector, from the sums of one product, or of two, which are [`scaled`](Self::scaled).
    pub(crate) fn update(
        &self,
        k: &mut Kernel,
        [sums, second]: [&[Reg]; 2],
        loaded: &Loaded,
        place: &Place<'_>,
    ) -> Result<(), PlanError> {
        let types = (self.types.output, self.types.scalar);
        let fragment = |first: usize, values: &[Reg], second: &[Reg], guard| Fragment {
            end: self,
            place,
            loaded,
            values: values.to_vec(),
            second: second.to_vec(),
            first,
            guard,
        };
        k.begin_if(place.row, false);
        k.name_branch("outside", "stored");
        if let Some(whole) = place.whole {
            k.begin_if(whole, false);
            k.name_branch("single", "stored");
            let mut c = fragment(0, sums, second, None);
            self.finished(k, &mut c)?;
            convert::store_all(
                k,
                types,
                self.types.packs,
                None,
                &c.values,
                place.targets[0],
            );
            k.otherwise();
        }
        // One element after the other.
        for j in 0..sums.len() {
            let inside = k.compare_here(Cmp::Gt, place.left, j as i64, None);
            let second = second.get(j..=j).unwrap_or_default();
            let mut c = fragment(j, &sums[j..=j], second, Some(inside));
            self.finished(k, &mut c)?;
            let (guard, at) = (Some(inside.into()), place.targets[j]);
            convert::store_one(k, types, guard, c.values[0], at);
        }
        if place.whole.is_some() {
            k.end_if();
        }
        k.end_if();
        Ok(())
    }
}
