//! The end of each element: D = activation(α·sum + β·C + bias), in C's own type.
//!
//! Sums are in the type of the scalars: f32, f64 or s32. What C has in fewer bits is widened when it is read and rounded once when it is
//! stored.

use super::{MmaPlan, scalar_kind};
use crate::index::Expr;
use crate::plan::{Activation, Element, Epilogue, GELU};
use crate::ptx::{Address, Class, Kernel, Pred, Reg};

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

/// Registers of a scalar, their type in instructions, and zero.
pub(super) fn scalar_text(scalar: Element) -> (Class, &'static str, &'static str) {
    match scalar {
        Element::F64 => (Class::F64, "f64", "0d0000000000000000"),
        Element::S32 => (Class::B32, "b32", "0"),
        _ => (Class::F32, "f32", "0f00000000"),
    }
}

/// The literal of a single-precision constant.
fn literal(value: f64) -> String {
    format!("0f{:08X}", (value as f32).to_bits())
}

/// Where one vector of C is, and what of it is inside.
pub(super) struct Place {
    pub(super) target: Address,
    /// Its row is inside.
    pub(super) row: Reg,
    /// All of it is inside, and aligned for one store; none if there is but one element.
    pub(super) whole: Option<Reg>,
    /// Columns from its first to the end of the row.
    pub(super) left: Expr,
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
        match self.scalar {
            Element::S32 => k.compare_register("eq", self.alpha, 0),
            _ => k.compare_float("eq", self.alpha, scalar_text(self.scalar).2),
        }
    }

    fn narrow(&self) -> bool {
        matches!(self.output, Element::F16 | Element::Bf16)
    }

    /// One element of C's type in the type that this computes in, 0 where `guard` does not hold.
    pub(super) fn load_one(&self, k: &mut Kernel, guard: Option<Pred>, at: Address) -> Reg {
        let (class, suffix, zero) = scalar_text(self.scalar);
        if !self.narrow() {
            let c = k.reg(class);
            if guard.is_some() {
                k.ins(format!("mov.{suffix} {c}, {zero}"));
            }
            k.load(guard, "", suffix, &[c], at);
            return c;
        }
        let h = k.reg(Class::B16);
        if guard.is_some() {
            k.ins(format!("mov.b16 {h}, 0"));
        }
        k.load(guard, "", "b16", &[h], at);
        widen(k, self.output, h)
    }

    /// The C that is added to: `count` elements at once.
    fn load_all(&self, k: &mut Kernel, count: usize, at: Address) -> Vec<Reg> {
        let (class, suffix, _) = scalar_text(self.scalar);
        if count == 1 {
            return vec![self.load_one(k, None, at)];
        }
        if !self.narrow() {
            let old = k.regs(class, count);
            k.load(None, "", suffix, &old, at);
            return old;
        }
        let packed = k.regs(Class::B32, count / 2);
        k.load(None, "", "b32", &packed, at);
        packed
            .iter()
            .flat_map(|&p| widen_pair(k, self.output, p))
            .collect()
    }

    fn store_all(&self, k: &mut Kernel, sums: &[Reg], at: Address) {
        if !self.narrow() {
            k.store(None, scalar_text(self.scalar).1, sums, at);
            return;
        }
        if sums.len() == 1 {
            return self.store_one(k, None, sums[0], at);
        }
        let packed: Vec<Reg> = sums
            .chunks(2)
            .map(|pair| {
                let packed = k.reg(Class::B32);
                if self.packs {
                    k.ins(format!(
                        "cvt.rn.{}x2.f32 {packed}, {}, {}",
                        self.output, pair[1], pair[0]
                    ));
                } else {
                    let halves = [k.reg(Class::B16), k.reg(Class::B16)];
                    for (h, s) in halves.iter().zip(pair) {
                        k.ins(format!("cvt.rn.{}.f32 {h}, {s}", self.output));
                    }
                    k.ins(format!(
                        "mov.b32 {packed}, {{{}, {}}}",
                        halves[0], halves[1]
                    ));
                }
                packed
            })
            .collect();
        k.store(None, "b32", &packed, at);
    }

    fn store_one(&self, k: &mut Kernel, guard: Option<Pred>, sum: Reg, at: Address) {
        if self.narrow() {
            let out = k.reg(Class::B16);
            k.ins(format!("cvt.rn.{}.f32 {out}, {sum}", self.output));
            k.store(guard, "b16", &[out], at);
        } else {
            k.store(guard, scalar_text(self.scalar).1, &[sum], at);
        }
    }

    /// `s ← s + β·c`.
    fn add_old(&self, k: &mut Kernel, s: Reg, c: Reg) {
        let mad = match self.scalar {
            Element::S32 => "mad.lo.s32",
            Element::F64 => "fma.rn.f64",
            _ => "fma.rn.f32",
        };
        k.ins(format!("{mad} {s}, {}, {c}, {s}", self.beta));
    }

    /// `s ← activation(s + bias)`.
    fn end(&self, k: &mut Kernel, s: Reg, bias: Option<Reg>) {
        let ty = match self.scalar {
            Element::S32 => "s32",
            Element::F64 => "f64",
            _ => "f32",
        };
        if let Some(bias) = bias {
            k.ins(format!("add.{ty} {s}, {s}, {bias}"));
        }
        match self.epilogue.activation {
            Activation::Identity => {}
            Activation::Relu => {
                // Not max: that would lose a NaN.
                let (negative, zero) = (k.reg(Class::Pred), scalar_text(self.scalar).2);
                k.ins(format!("setp.lt.{ty} {negative}, {s}, {zero}"));
                let move_ty = if self.scalar == Element::S32 {
                    "b32"
                } else {
                    ty
                };
                k.ins(format!("selp.{move_ty} {s}, {zero}, {s}, {negative}"));
            }
            Activation::Gelu => {
                // x / (1 + exp(-u)), u = x·(g + g·c·x²); exp by a power of two.
                let t = k.reg(Class::F32);
                let [g, c] = GELU;
                let up = -std::f64::consts::LOG2_E;
                k.ins(format!("mul.f32 {t}, {s}, {s}"));
                let (cubic, linear) = (literal(g * c * up), literal(g * up));
                k.ins(format!("fma.rn.f32 {t}, {t}, {cubic}, {linear}"));
                k.ins(format!("mul.f32 {t}, {t}, {s}"));
                k.ins(format!("ex2.approx.ftz.f32 {t}, {t}"));
                k.ins(format!("add.f32 {t}, {t}, 0f3F800000"));
                k.ins(format!("rcp.approx.ftz.f32 {t}, {t}"));
                k.ins(format!("mul.f32 {s}, {s}, {t}"));
            }
        }
    }

    /// Finishes and stores one vector; `bias` has a register for each of its elements, or one for all, or none.
    pub(super) fn update(&self, k: &mut Kernel, sums: &[Reg], bias: &[Reg], place: &Place) {
        let (done, single) = (k.label("stored"), k.label("single"));
        let mul = match self.scalar {
            Element::S32 => "mul.lo.s32",
            Element::F64 => "mul.f64",
            _ => "mul.f32",
        };
        let bias_of = |j: usize| bias.get(j).or(bias.first()).copied();
        for s in sums {
            k.ins(format!("{mul} {s}, {s}, {}", self.alpha));
        }
        k.branch(Some(Pred::from(place.row).not()), &done, false);
        if let Some(whole) = place.whole {
            k.branch(Some(Pred::from(whole).not()), &single, false);
            let skip = k.label("no_c");
            k.branch(Some(Pred::from(self.reads_c).not()), &skip, true);
            let old = self.load_all(k, sums.len(), place.target);
            for (s, c) in sums.iter().zip(old) {
                self.add_old(k, *s, c);
            }
            k.place(&skip);
            for (j, s) in sums.iter().enumerate() {
                self.end(k, *s, bias_of(j));
            }
            self.store_all(k, sums, place.target);
            k.branch(None, &done, false);
        }
        // One element after the other.
        k.place(&single);
        for (j, s) in sums.iter().enumerate() {
            let inside = k.compare_here("gt", place.left, j as i64, None);
            let both = k.and_here(inside, self.reads_c);
            let bytes = k.pool.constant(j as i64 * i64::from(self.output.bytes()));
            let at = k.offset(place.target, bytes).unwrap_or(place.target);
            let c = self.load_one(k, Some(both.into()), at);
            self.add_old(k, *s, c);
            self.end(k, *s, bias_of(j));
            self.store_one(k, Some(inside.into()), *s, at);
        }
        k.place(&done);
    }
}

/// The predicate that a scalar is not 0; NaN is not.
fn not_zero(k: &mut Kernel, scalar: Element, value: Reg) -> Reg {
    match scalar {
        Element::S32 => k.compare_register("ne", value, 0),
        _ => k.compare_float("neu", value, scalar_text(scalar).2),
    }
}

/// A 16-bit float as f32.
fn widen(k: &mut Kernel, from: Element, h: Reg) -> Reg {
    let wide = k.reg(Class::F32);
    if from == Element::F16 {
        k.ins(format!("cvt.f32.f16 {wide}, {h}"));
    } else {
        let low = k.reg(Class::B16);
        k.ins(format!("mov.b16 {low}, 0"));
        k.ins(format!("mov.b32 {wide}, {{{low}, {h}}}"));
    }
    wide
}

/// The two 16-bit floats of a register as f32.
pub(super) fn widen_pair(k: &mut Kernel, from: Element, packed: Reg) -> [Reg; 2] {
    let halves = [k.reg(Class::B16), k.reg(Class::B16)];
    k.ins(format!(
        "mov.b32 {{{}, {}}}, {packed}",
        halves[0], halves[1]
    ));
    halves.map(|h| widen(k, from, h))
}
