//! The product's own epilogue: D = activation(α·sum + β·C + bias).

use layout_codegen::ir::instructions::{Binary, Class, Instructions, Reg, Type, Unary};
use layout_codegen::ir::{Cmp, Element, Kernel};

use super::convert::{arithmetic, scalar_type};
use super::end::is_not_zero;
use super::{Activation, Bias, End, Epilogue, Finish, Fragment, Input, gelu_exponent};
use crate::gemm::{DataType, PlanError};

/// D = activation(α·sum + β·C + bias), computed in the type of the scalars and rounded once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Linear {
    /// Bias and activation.
    epilogue: Epilogue,
    /// The type of C, and of the bias.
    output: Element,
    /// The type of α and β.
    scalar: Element,
}

impl Linear {
    /// The epilogue of products in `data_type` with C in `output`.
    pub(crate) fn new(epilogue: Epilogue, output: Element, data_type: DataType) -> Self {
        let scalar = data_type.scalar();
        Self {
            epilogue,
            output,
            scalar,
        }
    }

    /// Where C is not read, each element is a function of its own sum, α and nothing else.
    pub(crate) fn is_of_sums_alone(self) -> bool {
        self.epilogue.bias == Bias::None
    }

    /// What a vector of sums, which are [scaled](End::scaled), becomes with what C held, or nothing of it, where there is no bias: in place.
    pub(crate) fn update(self, k: &mut Kernel, end: &End<'_>, (sums, previous): (&[Reg], &[Reg])) {
        let ty = arithmetic(scalar_type(self.scalar).1);
        if let Some(beta) = end.scalar("beta") {
            for (&s, &old) in sums.iter().zip(previous) {
                k.mul_add(ty, s, beta, old, s);
            }
        }
        for &s in sums {
            self.activate(k, s);
        }
    }

    /// `s ← activation(s)`.
    pub(crate) fn activate(self, k: &mut Kernel, s: Reg) {
        let (_, moved, zero) = scalar_type(self.scalar);
        let ty = arithmetic(moved);
        match self.epilogue.activation {
            Activation::Identity => {}
            Activation::Relu => {
                // Not max: that would lose a NaN.
                let negative = k.compare_value_here(Cmp::Lt, ty, s, zero, None);
                k.pick(moved, s, zero, s, negative);
            }
            Activation::Gelu => gelu(k, s),
        }
    }
}

/// [`gelu_exponent`] says the formula.
fn gelu(k: &mut Kernel, s: Reg) {
    let ty = Type::F32;
    let t = k.reg(Class::F32);
    let [cubic, linear] = gelu_exponent();
    k.binary(Binary::Mul, ty, t, s, s);
    k.mul_add(ty, t, t, cubic, linear);
    k.binary(Binary::Mul, ty, t, t, s);
    k.unary(Unary::Exp2, ty, t, t);
    k.binary(Binary::Add, ty, t, t, 1.0f32);
    k.unary(Unary::Reciprocal, ty, t, t);
    k.binary(Binary::Mul, ty, s, s, t);
}

impl Finish for Linear {
    /// Nothing: bias and activation are in the name of the variant.
    fn name(&self) -> String {
        String::new()
    }

    fn linear(&self) -> Option<Linear> {
        Some(*self)
    }

    fn inputs(&self) -> Vec<Input> {
        let bias = match self.epilogue.bias {
            Bias::None => None,
            Bias::Row => Some(Input::by_row("bias", self.output)),
            Bias::Column => Some(Input::by_column("bias", self.output)),
        };
        let scalars = ["alpha", "beta"].map(Input::scalar);
        bias.into_iter().chain(scalars).collect()
    }

    fn computes_in(&self, _: DataType) -> Element {
        self.scalar
    }

    fn factor(&self) -> Option<&str> {
        Some("alpha")
    }

    /// β is not 0: C is read. NaN is not 0.
    fn prepare(&self, k: &mut Kernel, scalars: &[Reg]) -> Result<Vec<Reg>, PlanError> {
        Ok(vec![is_not_zero(k, self.scalar, scalars[1])])
    }

    fn finish(&self, k: &mut Kernel, c: &mut Fragment<'_>) -> Result<(), PlanError> {
        let (ty, beta, reads_c) = (c.ty(), c.scalar_register("beta")?, c.prepared()[0]);
        c.with_previous(k, Some(reads_c), |k, s, old| {
            k.mul_add(ty, s, beta, old, s);
        });
        for (j, s) in c.registers().into_iter().enumerate() {
            if self.epilogue.bias != Bias::None {
                let bias = c.vector_register("bias", j)?;
                k.binary(Binary::Add, ty, s, s, bias);
            }
            self.activate(k, s);
        }
        Ok(())
    }
}
