//! The end of each element: D = activation(α·sum + β·C + bias), in C's own type.
//!
//! Sums are in the type of the scalars: f32, f64 or s32. What C has in fewer bits is widened when it is read and rounded once when it is
//! stored.

use super::{MmaPlan, scalar_kind};
use crate::gemm::{Activation, Epilogue, GELU, PlanError};
use crate::index::Expr;
use crate::ir::{Address, Binary, Cache, Class, Cmp, Element, Kernel, Pred, Reg, Src, Type, Unary};
use crate::view::View;

/// What an epilogue needs.
#[derive(Clone, Copy)]
pub(super) struct Finish {
    /// The type that it computes in.
    pub(super) scalar: Element,
    /// The type of C.
    pub(super) output: Element,
    pub(super) epilogue: Epilogue,
    /// There is an instruction that rounds two numbers at once (from `sm_80`).
    packs: bool,
    alpha: Reg,
    beta: Reg,
    /// β is not 0.
    reads_c: Reg,
}

/// Registers of a scalar, their type where they are moved, and zero.
pub(super) fn scalar_type(scalar: Element) -> (Class, Type, Src) {
    match scalar {
        Element::F64 => (Class::F64, Type::F64, 0.0f64.into()),
        Element::S32 => (Class::B32, Type::B32, 0.into()),
        _ => (Class::F32, Type::F32, 0.0f32.into()),
    }
}

/// The type of a scalar's arithmetic, from the one that it is moved in.
pub(super) fn arithmetic(ty: Type) -> Type {
    if ty == Type::B32 { Type::S32 } else { ty }
}

/// The type of a 16-bit element, alone and in pairs.
fn halves(element: Element) -> (Type, Type) {
    if element == Element::F16 {
        (Type::F16, Type::F16x2)
    } else {
        (Type::Bf16, Type::Bf16x2)
    }
}

/// Where one vector of C is, and what of it is inside.
pub(super) struct Place {
    /// Its elements.
    pub(super) targets: Vec<Address>,
    /// Its row is inside.
    pub(super) row: Reg,
    /// All of it is inside, and aligned for one store; none if there is but one element.
    pub(super) whole: Option<Reg>,
    /// Columns from its first to the end of the row.
    pub(super) left: Expr,
}

impl Place {
    /// The addresses of the `count` elements of a row from `row` and `col` in a view on.
    pub(super) fn targets(
        k: &mut Kernel,
        c: &View,
        (row, col): (Expr, Expr),
        count: i64,
    ) -> Result<Vec<Address>, PlanError> {
        (0..count)
            .map(|j| {
                let step = k.pool.constant(j);
                let col = k.pool.add(col, step);
                Ok(c.element(k, &[row, col])?)
            })
            .collect()
    }
}

impl Finish {
    /// α and β are the kernel's parameters.
    pub(super) fn new(k: &mut Kernel, plan: &MmaPlan) -> Self {
        let scalar = plan.data_type.scalar();
        let [alpha, beta] = ["alpha", "beta"].map(|p| k.param_scalar(p, scalar_kind(scalar)));
        let reads_c = not_zero(k, scalar, beta);
        Self {
            scalar,
            output: plan.variant.output,
            epilogue: plan.variant.epilogue,
            packs: plan.arch >= 80,
            alpha,
            beta,
            reads_c,
        }
    }

    /// α is 0: there is no product.
    pub(super) fn no_product(&self, k: &mut Kernel) -> Reg {
        let (_, ty, zero) = scalar_type(self.scalar);
        k.compare_scalar(Cmp::Eq, arithmetic(ty), self.alpha, zero)
    }

    fn narrow(&self) -> bool {
        matches!(self.output, Element::F16 | Element::Bf16)
    }

    /// One element of C's type in the type that this computes in, 0 where `guard` does not hold.
    pub(super) fn load_one(&self, k: &mut Kernel, guard: Option<Pred>, at: Address) -> Reg {
        let (class, ty, zero) = scalar_type(self.scalar);
        if !self.narrow() {
            let c = k.reg(class);
            if guard.is_some() {
                k.set(ty, c, zero);
            }
            k.load(guard, Cache::Coherent, ty, &[c], at);
            return c;
        }
        let h = k.reg(Class::B16);
        if guard.is_some() {
            k.set(Type::B16, h, 0);
        }
        k.load(guard, Cache::Coherent, Type::B16, &[h], at);
        widen(k, self.output, h)
    }

    /// The C that is added to: `count` elements at once.
    fn load_all(&self, k: &mut Kernel, count: usize, at: Address) -> Vec<Reg> {
        let (class, ty, _) = scalar_type(self.scalar);
        if count == 1 {
            return vec![self.load_one(k, None, at)];
        }
        if !self.narrow() {
            let old = k.regs(class, count);
            k.load(None, Cache::Coherent, ty, &old, at);
            return old;
        }
        let packed = k.regs(Class::B32, count / 2);
        k.load(None, Cache::Coherent, Type::B32, &packed, at);
        packed
            .iter()
            .flat_map(|&p| widen_pair(k, self.output, p))
            .collect()
    }

    fn store_all(&self, k: &mut Kernel, sums: &[Reg], at: Address) {
        if !self.narrow() {
            k.store(None, scalar_type(self.scalar).1, sums, at);
            return;
        }
        if sums.len() == 1 {
            return self.store_one(k, None, sums[0], at);
        }
        let packed: Vec<Reg> = sums
            .chunks(2)
            .map(|pair| {
                let (single, two) = halves(self.output);
                if self.packs {
                    return k.convert_pair(two, pair[0], pair[1]);
                }
                let packed = k.reg(Class::B32);
                let parts = [k.reg(Class::B16), k.reg(Class::B16)];
                for (h, s) in parts.iter().zip(pair) {
                    k.convert(single, *h, Type::F32, *s);
                }
                k.pack(packed, &parts);
                packed
            })
            .collect();
        k.store(None, Type::B32, &packed, at);
    }

    fn store_one(&self, k: &mut Kernel, guard: Option<Pred>, sum: Reg, at: Address) {
        if self.narrow() {
            let out = k.reg(Class::B16);
            k.convert(halves(self.output).0, out, Type::F32, sum);
            k.store(guard, Type::B16, &[out], at);
        } else {
            k.store(guard, scalar_type(self.scalar).1, &[sum], at);
        }
    }

    /// `s ← s + β·c`.
    fn add_old(&self, k: &mut Kernel, s: Reg, c: Reg) {
        let ty = arithmetic(scalar_type(self.scalar).1);
        k.mul_add(ty, s, self.beta, c, s);
    }

    /// `s ← activation(s + bias)`.
    fn end(&self, k: &mut Kernel, s: Reg, bias: Option<Reg>) {
        let (_, moved, zero) = scalar_type(self.scalar);
        let ty = arithmetic(moved);
        if let Some(bias) = bias {
            k.binary(Binary::Add, ty, s, s, bias);
        }
        match self.epilogue.activation {
            Activation::Identity => {}
            Activation::Relu => {
                // Not max: that would lose a NaN.
                let negative = k.compare_value(Cmp::Lt, ty, s, zero, None);
                k.choose(moved, s, zero, s, negative);
            }
            Activation::Gelu => {
                // x / (1 + exp(-u)), u = x·(g + g·c·x²); exp by a power of two.
                let t = k.reg(Class::F32);
                let [g, c] = GELU;
                let up = -std::f64::consts::LOG2_E;
                let (cubic, linear) = ((g * c * up) as f32, (g * up) as f32);
                k.binary(Binary::Mul, ty, t, s, s);
                k.mul_add(ty, t, t, cubic, linear);
                k.binary(Binary::Mul, ty, t, t, s);
                k.unary(Unary::Exp2, ty, t, t);
                k.binary(Binary::Add, ty, t, t, 1.0f32);
                k.unary(Unary::Reciprocal, ty, t, t);
                k.binary(Binary::Mul, ty, s, s, t);
            }
        }
    }

    /// Finishes and stores one vector; `bias` has a register for each of its elements, or one for all, or none.
    pub(super) fn update(&self, k: &mut Kernel, sums: &[Reg], bias: &[Reg], place: &Place) {
        let ty = arithmetic(scalar_type(self.scalar).1);
        let bias_of = |j: usize| bias.get(j).or(bias.first()).copied();
        for s in sums {
            k.binary(Binary::Mul, ty, *s, *s, self.alpha);
        }
        k.begin_if(place.row, false);
        k.name_branch("outside", "stored");
        if let Some(whole) = place.whole {
            k.begin_if(whole, false);
            k.name_branch("single", "stored");
            k.begin_if(self.reads_c, true);
            k.name_branch("keeps_c", "no_c");
            let old = self.load_all(k, sums.len(), place.targets[0]);
            for (s, c) in sums.iter().zip(old) {
                self.add_old(k, *s, c);
            }
            k.end_if();
            for (j, s) in sums.iter().enumerate() {
                self.end(k, *s, bias_of(j));
            }
            self.store_all(k, sums, place.targets[0]);
            k.otherwise();
        }
        // One element after the other.
        for (j, s) in sums.iter().enumerate() {
            let inside = k.compare_here(Cmp::Gt, place.left, j as i64, None);
            let both = k.and_here(inside, self.reads_c);
            let at = place.targets[j];
            let c = self.load_one(k, Some(both.into()), at);
            self.add_old(k, *s, c);
            self.end(k, *s, bias_of(j));
            self.store_one(k, Some(inside.into()), *s, at);
        }
        if place.whole.is_some() {
            k.end_if();
        }
        k.end_if();
    }
}

/// The predicate that a scalar is not 0; NaN is not.
fn not_zero(k: &mut Kernel, scalar: Element, value: Reg) -> Reg {
    let (_, ty, zero) = scalar_type(scalar);
    let ne = if scalar == Element::S32 {
        Cmp::Ne
    } else {
        Cmp::Neu
    };
    k.compare_scalar(ne, arithmetic(ty), value, zero)
}

/// A 16-bit float as f32.
fn widen(k: &mut Kernel, from: Element, h: Reg) -> Reg {
    let wide = k.reg(Class::F32);
    if from == Element::F16 {
        k.convert(Type::F32, wide, Type::F16, h);
    } else {
        let low = k.reg(Class::B16);
        k.set(Type::B16, low, 0);
        k.pack(wide, &[low, h]);
    }
    wide
}

/// The two 16-bit floats of a register as f32.
pub(super) fn widen_pair(k: &mut Kernel, from: Element, packed: Reg) -> [Reg; 2] {
    k.unpack(packed).map(|h| widen(k, from, h))
}
