//! The launch contract of a product: that of its kernel, with the matrices of the product for the buffers.

use serde_json::{Value, json};
use tilewright::host::{Contract, ContractBuffer, GemmKernel};
use tilewright::kernels::gemm::{Batch, Gemm};

use crate::error::CliError;

/// The contract of a kernel for this problem.
pub(super) fn of(kernel: &GemmKernel<'_>, problem: &Gemm) -> Result<Contract, CliError> {
    let contract = Contract::new(kernel, []);
    let mut contract = contract.map_err(|e| CliError::new(e.code(), e.to_string()))?;
    let Gemm { m, n, k, .. } = *problem;
    contract.sizes = [("m", m), ("n", n), ("k", k)]
        .map(|(name, size)| (name.to_owned(), size))
        .to_vec();
    contract.about = vec![
        format!(
            "Launches of C {m}x{n} = {} op(A) op(B) + {} C, k = {k}, {}; written by `tilewright gemm --emit-host`.",
            problem.alpha, problem.beta, problem.operands
        ),
        format!(
            "Leading dimensions in elements: A {}, B {}, C {}. Buffers are device addresses.",
            problem.lda, problem.ldb, problem.ldc
        ),
    ];
    Ok(contract)
}

/// The contract as JSON.
pub(super) fn to_json(contract: &Contract, problem: &Gemm) -> Value {
    let mut value = contract.to_json_with(|buffer| address(problem, buffer));
    // The names that source texts have.
    let buffers = value.pointer_mut("/memory/buffers");
    for buffer in buffers.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(name) = buffer["name"].as_str() {
            buffer["name"] = name.to_ascii_lowercase().into();
        }
    }
    value
}

/// A, B or C as it lies in memory, or the length of the bias.
fn address(problem: &Gemm, buffer: &ContractBuffer) -> Value {
    let (i, (rows, cols), ld) = match buffer.name.as_str() {
        "A" => (0, problem.stored_a(), problem.lda),
        "B" => (1, problem.stored_b(), problem.ldb),
        "C" => (2, (problem.m, problem.n), problem.ldc),
        _ => {
            let element = buffer.element.map_or(1, |e| e.bytes() as u64);
            return json!({"elements": buffer.bytes.unwrap_or(0) / element});
        }
    };
    let Batch { count, strides } = problem.batch;
    let mut value = json!({"matrix": buffer.name, "rows": rows, "cols": cols, "ld": ld});
    if count > 1 {
        value["count"] = json!(count);
        value["stride"] = json!(strides[i]);
    }
    value
}
