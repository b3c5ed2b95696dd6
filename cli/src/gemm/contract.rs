//! The launch contract as JSON: enough for any other host program.
//!
//! The main kernel's launch is the value itself; those of the kernels around it are in `before` and `after`. A parameter is a number, the address of
//! something, or a tensor map, which says what `cuTensorMapEncodeTiled` takes:
//!
//! ```text
//! {"name": "A", "type": "tensor_map", "value": {
//!     "tensor_map": {"matrix": "A", "rows": 256, "cols": 64, "ld": 64},       the array: its address is A's
//!     "rank": 2, "dimensions": ["k", "m"],                                    innermost first, in terms of the problem
//!     "sizes": [64, 256], "strides_bytes": [128], "box": [64, 128], "element_strides": [1, 1],
//!     "data_type": {"name": "CU_TENSOR_MAP_DATA_TYPE_UINT16", "value": 1}, …  constants of cuda.h
//! }}
//! ```

use serde_json::{Value, json};
use tilewright::codegen::gemm::{
    ArgumentValue, Batch, Bias, Declared, Gemm, Launch, MapArgument, MapSource, Mode,
};
use tilewright::codegen::ir::ParamKind;

/// The launches of kernels of this text.
pub(super) fn launches(problem: &Gemm, ptx: &str, launch: &Launch) -> Value {
    let one = |l: &Launch| one(problem, ptx, l);
    let others = |all: &[Launch]| -> Vec<Value> { all.iter().map(one).collect() };
    let mut value = one(launch);
    value["workspace_bytes"] = json!(launch.workspace_bytes);
    value["before"] = json!(others(&launch.before));
    value["after"] = json!(others(&launch.after));
    value
}

/// One launch.
fn one(problem: &Gemm, ptx: &str, launch: &Launch) -> Value {
    let params: Vec<Value> = launch
        .arguments
        .iter()
        .map(|a| {
            let value = match a.value {
                ArgumentValue::A => matrix(problem, 0),
                ArgumentValue::B => matrix(problem, 1),
                ArgumentValue::C => matrix(problem, 2),
                ArgumentValue::Bias => json!({"elements": bias_elements(problem)}),
                ArgumentValue::Given => json!({"given": a.name}),
                ArgumentValue::Workspace(offset) => json!({"workspace": offset}),
                ArgumentValue::Int(v) => json!(v),
                // A parameter of integers has an integer for its value.
                ArgumentValue::Float(v) if a.kind == ParamKind::S32 => json!(v as i32),
                ArgumentValue::Float(v) => json!(v),
                ArgumentValue::TensorMap(map) => tensor_map(problem, &a.name, &map),
            };
            json!({"name": a.name, "type": a.kind.name(), "value": value})
        })
        .collect();
    let declared = Declared::of(ptx, &launch.kernel);
    json!({
        "kernel": launch.kernel,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "cluster_declared": declared.cluster.is_some(),
        "beside_previous": declared.waits,
        "shared_bytes": launch.shared_bytes,
        "params": params,
    })
}

/// A, B or C (0, 1, 2) as it lies in memory.
fn matrix(problem: &Gemm, i: usize) -> Value {
    let (rows, cols) = [
        problem.stored_a(),
        problem.stored_b(),
        (problem.m, problem.n),
    ][i];
    let (name, ld) = [("A", problem.lda), ("B", problem.ldb), ("C", problem.ldc)][i];
    let Batch { count, strides } = problem.batch;
    let mut value = json!({"matrix": name, "rows": rows, "cols": cols, "ld": ld});
    if count > 1 {
        value["count"] = json!(count);
        value["stride"] = json!(strides[i]);
    }
    value
}

/// A tensor map: what the driver's encoding takes, dimensions innermost first.
fn tensor_map(problem: &Gemm, parameter: &str, map: &MapArgument) -> Value {
    let of = match map.of {
        MapSource::A => matrix(problem, 0),
        MapSource::B => matrix(problem, 1),
        MapSource::C => matrix(problem, 2),
        MapSource::Given => json!({"given": parameter}),
        MapSource::Workspace(offset) => json!({"workspace": offset}),
    };
    let encoding = map.encoding();
    let mut dimensions = map.modes.map(Mode::name).to_vec();
    dimensions.extend(map.layers.map(|_| "batch"));
    let mut value = json!({
        "tensor_map": of,
        "rank": encoding.sizes.len(),
        "dimensions": dimensions,
        "sizes": encoding.sizes,
        "strides_bytes": encoding.strides_bytes,
        "box": encoding.box_sizes,
        "element_strides": encoding.element_strides,
        // What hosts written for 0.2 read: the same as the data type and the swizzle.
        "element_bytes": map.element.bytes(),
        "rounds_to_tf32": map.rounded,
        "swizzle_bytes": encoding.swizzle_bytes,
    });
    for (key, constant) in encoding.constants() {
        value[key] = json!({"name": constant.name, "value": constant.value});
    }
    value
}

/// The length of the bias.
fn bias_elements(problem: &Gemm) -> u64 {
    match problem.epilogue.bias {
        Bias::None => 0,
        Bias::Row => problem.m,
        Bias::Column => problem.n,
    }
}
