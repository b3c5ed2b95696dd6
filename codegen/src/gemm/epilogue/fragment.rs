//! What an epilogue sees of C: neighbours of one row, or one element.

use super::InputKind;
use super::convert::{arithmetic, chunk, load_all, load_one, scalar_type};
use super::end::{End, Loaded, Place, Source};
use crate::gemm::PlanError;
use crate::index::Expr;
use crate::ir::{Class, Element, Kernel, Pred, Reg, Type};

/// The elements of C that one call of an epilogue finishes: neighbours of one row, all inside C; or, at an edge, one element that may be
/// outside, whose reads give 0 there and whose store is left out.
///
/// All numbers are in registers of the type that the epilogue computes in ([`Fragment::element`], [`Fragment::class`]); instructions of
/// [`Kernel`] take its [`Type`] from [`Fragment::ty`].
///
/// ```
/// use layout_codegen::Arch;
/// use layout_codegen::gemm::epilogue::Function;
/// use layout_codegen::gemm::mma_sync::PLANS;
/// use layout_codegen::gemm::{Operands, Plan};
/// use layout_codegen::ir::{Binary, Cmp, Element};
///
/// // On and below the diagonal: sum·scale[row] + residual + what C holds; 0 right of it.
/// let masked = Function::new("masked", |k, c| {
///     let (ty, row) = (c.ty(), c.row());
///     assert!(!c.is_empty() && c.len() <= 8);
///     let residual = c.matrix(k, "residual")?;
///     for (j, s) in c.values().into_iter().enumerate() {
///         let scale = c.vector("scale", j)?;
///         k.mul_add(ty, s, s, scale, residual[j]);
///     }
///     c.previous(k, None, |k, s, old| k.binary(Binary::Add, ty, s, s, old));
///     for (j, s) in c.values().into_iter().enumerate() {
///         let column = c.column(k, j);
///         let right = k.compare(Cmp::Gt, column, row);
///         let out = k.reg(c.class());
///         k.choose(ty, out, 0.0f32, s, right);
///         c.set(j, out)?;
///     }
///     Ok(())
/// })
/// .by_row("scale", Element::F32)
/// .matrix("residual", Element::F16);
/// let kernel = PLANS[0].with_epilogue(masked)?.emit(Operands::ALL[0], Arch(80))?;
/// assert!(kernel.ptx.contains(".param .u32 ld_residual"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fragment<'a> {
    pub(super) end: &'a End<'a>,
    pub(super) place: &'a Place<'a>,
    pub(super) loaded: &'a Loaded,
    pub(super) values: Vec<Reg>,
    /// The sums of the second product of a dual one; else none.
    pub(super) second: Vec<Reg>,
    /// The first of these among the elements of the place.
    pub(super) first: usize,
    /// It is inside; none if that is known.
    pub(super) guard: Option<Reg>,
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

    /// The sums on entry and the stored values on return: one register for each element, the first for [`column`](Self::column) 0 of the
    /// fragment. Instructions may write them in place.
    pub fn values(&self) -> Vec<Reg> {
        self.values.clone()
    }

    /// The sums of A·B2 in a dual product ([`with_dual_epilogue`](crate::gemm::mma_sync::MmaPlan::with_dual_epilogue)), element by element those at the
    /// coordinates of [`values`](Self::values). Instructions may write them in place; they are not stored.
    ///
    /// # Errors
    ///
    /// The plan has one product.
    pub fn second(&self) -> Result<Vec<Reg>, PlanError> {
        if self.second.is_empty() {
            let what = "it reads the sums of a second product, and the plan has one: take                         `MmaPlan::with_dual_epilogue`";
            return Err(PlanError::Epilogue {
                what: what.to_owned(),
            });
        }
        Ok(self.second.clone())
    }

    /// Element `j` is stored from another register, of the same class.
    ///
    /// # Errors
    ///
    /// A register of another class, or an element beyond the last.
    pub fn set(&mut self, j: usize, value: Reg) -> Result<(), PlanError> {
        let (class, len) = (self.class(), self.len());
        match self.values.get_mut(j) {
            Some(slot) if value.class == class => *slot = value,
            Some(_) => {
                return Err(PlanError::Epilogue {
                    what: format!(
                        "element {j} cannot be stored from a register of class {:?}: {class:?} is what this epilogue computes in",
                        value.class
                    ),
                });
            }
            None => {
                return Err(PlanError::Epilogue {
                    what: format!("there is no element {j}: the fragment has {len}"),
                });
            }
        }
        Ok(())
    }

    /// The row of C.
    pub fn row(&self) -> Expr {
        self.place.at.0
    }

    /// The column of C of element `j`.
    pub fn column(&self, k: &mut Kernel, j: usize) -> Expr {
        let step = k.pool.constant((self.first + j) as i64);
        k.pool.add(self.place.at.1, step)
    }

    /// The type that is computed in.
    pub fn element(&self) -> Element {
        self.end.types.scalar
    }

    /// The class of its registers.
    pub fn class(&self) -> Class {
        scalar_type(self.element()).0
    }

    /// The type of its arithmetic.
    pub fn ty(&self) -> Type {
        arithmetic(scalar_type(self.element()).1)
    }

    /// What [`Finish::prepare`](super::Finish::prepare) computed at the kernel's entry.
    pub fn prepared(&self) -> &[Reg] {
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
    /// No scalar of this name is declared.
    pub fn scalar(&self, name: &str) -> Result<Reg, PlanError> {
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
    /// No vector of this name is declared, or an element beyond the last.
    pub fn vector(&self, name: &str, j: usize) -> Result<Reg, PlanError> {
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
    /// No matrix of this name is declared.
    pub fn matrix(&self, k: &mut Kernel, name: &str) -> Result<Vec<Reg>, PlanError> {
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
            let step = k.pool.constant(j as i64);
            let col = k.pool.add(across, step);
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

    /// What C holds so far: `f` gets each element's register and what was read. Where `when` does not hold, which is the same for all
    /// threads, C is not read: `f` is skipped, or gets 0.
    pub fn previous(
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
