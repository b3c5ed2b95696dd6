//! What an epilogue sees of C: neighbours of one row, or one element.

use layout_codegen::index::Expr;
use layout_codegen::ir::instructions::{
    Addresses, InRegister, Instructions, Pred, Reg, Type, predicate_register,
};
use layout_codegen::ir::{Element, Kernel};
use layout_codegen::value::{Kind, Predicate, Value, moved};

use super::InputKind;
use super::convert::{arithmetic, chunk, load_all, load_one, scalar_type};
use super::end::{End, Loaded, Place, Source};
use crate::gemm::PlanError;

/// The elements of C that one call of an epilogue finishes: neighbours of one row, all inside C; or, at an edge, one element that may be
/// outside, whose reads give 0 there and whose store is left out.
///
/// All numbers have the type that the epilogue computes in ([`Fragment::element`]): `f32`, `f64` or, for integers, `i32`.
///
/// ```
/// use layout_codegen::Arch;
/// use tilewright_kernels::gemm::epilogue::Function;
/// use tilewright_kernels::gemm::{Config, Operands};
/// use layout_codegen::ir::{Cmp, Element};
/// use layout_codegen::value::Predicate;
///
/// // On and below the diagonal: sum·scale[row] + residual + what C holds; 0 right of it.
/// let masked = Function::new("masked", |k, c| {
///     let row = c.row();
///     assert!(!c.is_empty() && c.len() <= 8);
///     let residual = c.matrix::<f32>(k, "residual")?;
///     for (j, sum) in c.values(k)?.into_iter().enumerate() {
///         let scale = c.vector(k, "scale", j)?;
///         let sum = sum.fma(k, scale, residual[j]);
///         c.set(k, j, sum)?;
///     }
///     c.previous::<f32>(k, None, |k, sum, old| sum.add(k, old))?;
///     for (j, sum) in c.values::<f32>(k)?.into_iter().enumerate() {
///         let column = c.column(k, j);
///         let right = Predicate::of(k, column, Cmp::Gt, row);
///         let out = right.select(k, 0.0.into(), sum);
///         c.set(k, j, out)?;
///     }
///     Ok(())
/// })
/// .by_row("scale", Element::F32)
/// .matrix("residual", Element::F16);
/// let config: Config = "mma-f16-128x256x64".parse()?;
/// let kernel = config.with_epilogue(masked)?.emit(Operands::ALL[0], Arch(80))?;
/// assert!(kernel.ptx.contains(".param .u32 ld_residual"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fragment<'a> {
    pub(crate) end: &'a End<'a>,
    pub(crate) place: &'a Place<'a>,
    pub(crate) loaded: &'a Loaded,
    pub(crate) values: Vec<Reg>,
    /// The sums of the second product of a dual one; else none.
    pub(crate) second: Vec<Reg>,
    /// The first of these among the elements of the place.
    pub(crate) first: usize,
    /// It is inside; none if that is known.
    pub(crate) guard: Option<Reg>,
}

impl Fragment<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// There are no elements: never.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn of_type<T: Kind>(&self) -> Result<(), PlanError> {
        if T::ELEMENT == self.element() {
            return Ok(());
        }
        Err(PlanError::Epilogue {
            what: format!(
                "it takes values of {}, and this epilogue computes in {}: take those, or say another type by `Function::computes_in`",
                T::ELEMENT,
                self.element()
            ),
        })
    }

    fn typed<T: Kind>(&self, k: &Kernel, registers: &[Reg]) -> Result<Vec<Value<T>>, PlanError> {
        self.of_type::<T>()?;
        Ok(registers.iter().map(|&r| Value::held(k, r)).collect())
    }

    /// The sums at first, then what [`Fragment::set`] made of them: what is stored, element by element, the first for [`column`](Self::column) 0 of the
    /// fragment.
    ///
    /// # Errors
    ///
    /// The epilogue computes in another type.
    pub fn values<T: Kind>(&self, k: &Kernel) -> Result<Vec<Value<T>>, PlanError> {
        self.typed(k, &self.values)
    }

    /// The registers of [`Fragment::values`], which are set in place.
    pub(crate) fn registers(&self) -> Vec<Reg> {
        self.values.clone()
    }

    /// The sums of A·B2 in a dual product ([`with_dual_epilogue`](crate::gemm::Config::with_dual_epilogue)), element by element those at the
    /// coordinates of [`values`](Self::values).
    ///
    /// # Errors
    ///
    /// The plan has one product, or the epilogue computes in another type.
    pub fn second<T: Kind>(&self, k: &Kernel) -> Result<Vec<Value<T>>, PlanError> {
        if self.second.is_empty() {
            let what = "it reads the sums of a second product, and the plan has one: take `MmaPlan::with_dual_epilogue`";
            return Err(PlanError::Epilogue {
                what: what.to_owned(),
            });
        }
        self.typed(k, &self.second)
    }

    /// Element `j` is stored as this value.
    ///
    /// # Errors
    ///
    /// A value of another type than the epilogue computes in, or an element beyond the last.
    pub fn set<T: Kind>(
        &mut self,
        k: &mut Kernel,
        j: usize,
        value: Value<T>,
    ) -> Result<(), PlanError> {
        self.of_type::<T>()?;
        let len = self.len();
        let slot = self.values.get_mut(j);
        let slot = slot.ok_or_else(|| PlanError::Epilogue {
            what: format!("there is no element {j}: the fragment has {len}"),
        })?;
        *slot = value.copied(k).register(k);
        Ok(())
    }

    /// The row of C.
    pub fn row(&self) -> Expr {
        self.place.at.0
    }

    /// The column of C of element `j`.
    pub fn column(&self, k: &mut Kernel, j: usize) -> Expr {
        let step = k.constant((self.first + j) as i64);
        k.add(self.place.at.1, step)
    }

    /// The type that is computed in.
    pub fn element(&self) -> Element {
        self.end.types.scalar
    }

    /// The type of its arithmetic.
    pub(crate) fn ty(&self) -> Type {
        arithmetic(scalar_type(self.element()).1)
    }

    /// What [`Finish::prepare`](super::Finish::prepare) computed at the kernel's entry.
    pub(crate) fn prepared(&self) -> &[Reg] {
        &self.end.prepared
    }

    fn find(&self, name: &str, what: &str) -> Result<usize, PlanError> {
        let found = self.end.inputs.iter().position(|i| {
            i.input.name == name
                && match i.input.kind {
                    InputKind::Scalar => what == "scalar",
                    InputKind::Row(_) | InputKind::Column(_) => what == "vector",
                    InputKind::Matrix { .. } => what == "matrix",
                }
        });
        found.ok_or_else(|| {
            let known: Vec<_> = self.end.inputs.iter().map(|i| &*i.input.name).collect();
            PlanError::Epilogue {
                what: format!(
                    "it reads the {what} `{name}`, which is not among its inputs ({}): declare it",
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                ),
            }
        })
    }

    /// A scalar input.
    ///
    /// # Errors
    ///
    /// No scalar of this name is declared, or the epilogue computes in another type.
    pub fn scalar<T: Kind>(&self, k: &Kernel, name: &str) -> Result<Value<T>, PlanError> {
        self.of_type::<T>()?;
        Ok(Value::held(k, self.scalar_register(name)?))
    }

    pub(crate) fn scalar_register(&self, name: &str) -> Result<Reg, PlanError> {
        let i = self.find(name, "scalar")?;
        match &self.end.inputs[i].source {
            Source::Scalar(reg) => Ok(*reg),
            Source::Memory(_) => Err(PlanError::Epilogue {
                what: format!("`{name}` is not a scalar"),
            }),
        }
    }

    /// The element of a vector input for the row or the column of element `j`.
    ///
    /// # Errors
    ///
    /// No vector of this name is declared, an element beyond the last, or the epilogue computes in another type.
    pub fn vector<T: Kind>(&self, k: &Kernel, name: &str, j: usize) -> Result<Value<T>, PlanError> {
        self.of_type::<T>()?;
        Ok(Value::held(k, self.vector_register(name, j)?))
    }

    pub(crate) fn vector_register(&self, name: &str, j: usize) -> Result<Reg, PlanError> {
        let i = self.find(name, "vector")?;
        let all = &self.loaded.0[i];
        let found = match self.end.inputs[i].input.kind {
            InputKind::Row(_) => all.first(),
            _ => all.get(self.first + j),
        };
        found.copied().ok_or_else(|| PlanError::Epilogue {
            what: format!("there is no element {j}: the fragment has {}", self.len()),
        })
    }

    /// The elements of a matrix input at those of the fragment, read here; 0 outside C.
    ///
    /// # Errors
    ///
    /// No matrix of this name is declared, or the epilogue computes in another type.
    pub fn matrix<T: Kind>(&self, k: &mut Kernel, name: &str) -> Result<Vec<Value<T>>, PlanError> {
        let registers = self.matrix_registers(k, name)?;
        self.typed(k, &registers)
    }

    fn matrix_registers(&self, k: &mut Kernel, name: &str) -> Result<Vec<Reg>, PlanError> {
        let i = self.find(name, "matrix")?;
        let (InputKind::Matrix { element, aligned }, Some(view)) = (
            self.end.inputs[i].input.kind,
            self.place.matrices[i].as_ref(),
        ) else {
            return Ok(Vec::new());
        };
        let types = (element, self.element());
        let (down, across) = self.place.by;
        let mut at = Vec::new();
        for j in self.first..self.first + self.len() {
            let step = k.constant(j as i64);
            let col = k.add(across, step);
            at.push(view.element(k, &[down, col])?);
        }
        Ok(match self.guard {
            None => load_all(k, types, chunk(element, aligned), &at),
            Some(inside) => at
                .into_iter()
                .map(|at| load_one(k, types, Some(Pred::from(inside)), at))
                .collect(),
        })
    }

    /// What C holds so far: `f` gives each element anew, from its value and what was read. Where `when` does not hold, which is the same for all
    /// threads, C is not read: `f` is skipped, or gets 0.
    ///
    /// # Errors
    ///
    /// The epilogue computes in another type.
    pub fn previous<T: Kind>(
        &mut self,
        k: &mut Kernel,
        when: Option<Predicate>,
        mut f: impl FnMut(&mut Kernel, Value<T>, Value<T>) -> Value<T>,
    ) -> Result<(), PlanError> {
        self.of_type::<T>()?;
        let when = when.map(|p| predicate_register(p, k));
        self.with_previous(k, when, |k, to, old| {
            let (value, old) = (Value::held(k, to), Value::held(k, old));
            let new = f(k, value, old).src(k);
            k.set(moved(T::TYPE), to, new);
        });
        k.sets(&self.values);
        Ok(())
    }

    /// As [`Fragment::previous`], in place: `f` gets each element's register and what was read.
    pub(crate) fn with_previous(
        &self,
        k: &mut Kernel,
        when: Option<Reg>,
        mut f: impl FnMut(&mut Kernel, Reg, Reg),
    ) {
        let types = (self.end.types.output, self.element());
        let targets = &self.place.targets[self.first..];
        if let Some(inside) = self.guard {
            let guard = match when {
                Some(when) => k.and_here(inside, when),
                None => inside,
            };
            let old = load_one(k, types, Some(guard.into()), targets[0]);
            f(k, self.values[0], old);
            return;
        }
        if let Some(when) = when {
            k.begin_if(when, true);
            k.name_branch("keeps_c", "no_c");
        }
        let whole = if types.0 == Element::S8 {
            1
        } else {
            self.len()
        };
        let old = load_all(k, types, whole, &targets[..self.len()]);
        for (s, c) in self.values.iter().zip(old) {
            f(k, *s, c);
        }
        if when.is_some() {
            k.end_if();
        }
    }
}
