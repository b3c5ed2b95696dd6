//! The buffers of a launch: how much of each is touched, what its address is a multiple of, and what is written.
//!
//! A buffer that is written overlaps no other: kernels read their inputs by `ld.global.nc` and by TMA, for which memory does not change while the kernel runs.

use serde_json::{Value, json};
use tilewright::codegen::gemm::{Bias, DataType, Gemm, Launch};

/// What the workspace's address is a multiple of.
const WORKSPACE_ALIGNMENT: u64 = 256;

/// One buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffer {
    /// What stubs call it.
    pub(super) name: &'static str,
    /// Bytes from its address on that the kernels touch.
    pub(super) bytes: u64,
    /// What its address is a multiple of.
    pub(super) alignment: u64,
    pub(super) written: bool,
    pub(super) read: bool,
}

/// The product's buffers, and the workspace if the launches pass data through one.
pub(super) fn of(problem: &Gemm, data_type: DataType, launch: &Launch) -> Vec<Buffer> {
    let (operand, result) = (
        data_type.operand().bytes(),
        problem.result(data_type).bytes(),
    );
    // Without α nobody reads A and B.
    let factors = problem.alpha != 0.0;
    let bytes = |(rows, cols): (u64, u64), ld: u64, stride: u64, element: u32| {
        if rows == 0 || cols == 0 {
            return 0;
        }
        let before = (problem.batch.count.max(1) - 1).saturating_mul(stride);
        let last = before.saturating_add((rows - 1).saturating_mul(ld));
        last.saturating_add(cols).saturating_mul(element.into())
    };
    let [stride_a, stride_b, stride_c] = problem.batch.strides;
    let alignment = problem.alignment;
    let input = |name, bytes, alignment: u32| Buffer {
        name,
        bytes: if factors { bytes } else { 0 },
        alignment: if factors { alignment.into() } else { 1 },
        written: false,
        read: factors,
    };
    let mut all = vec![
        input(
            "a",
            bytes(problem.stored_a(), problem.lda, stride_a, operand),
            alignment.a,
        ),
        input(
            "b",
            bytes(problem.stored_b(), problem.ldb, stride_b, operand),
            alignment.b,
        ),
        Buffer {
            name: "c",
            bytes: bytes((problem.m, problem.n), problem.ldc, stride_c, result),
            alignment: alignment.c.into(),
            written: true,
            read: problem.beta != 0.0,
        },
    ];
    let elements = match problem.epilogue.bias {
        Bias::None => None,
        Bias::Row => Some(problem.m),
        Bias::Column => Some(problem.n),
    };
    if let Some(elements) = elements {
        all.push(Buffer {
            name: "bias",
            bytes: elements.saturating_mul(result.into()),
            alignment: result.into(),
            written: false,
            read: true,
        });
    }
    if launch.workspace_bytes > 0 {
        all.push(Buffer {
            name: "workspace",
            bytes: launch.workspace_bytes,
            alignment: WORKSPACE_ALIGNMENT,
            written: true,
            read: true,
        });
    }
    all
}

/// The buffers in the contract.
pub(super) fn to_json(all: &[Buffer]) -> Value {
    let one = |b: &Buffer| {
        let usage = match (b.written, b.read) {
            (true, true) => "in_out",
            (true, false) => "output",
            (false, _) => "input",
        };
        json!({"name": b.name, "bytes": b.bytes, "alignment": b.alignment, "usage": usage})
    };
    json!({
        "buffers": all.iter().map(one).collect::<Vec<_>>(),
        "overlap": "a buffer that is written overlaps no other",
    })
}
