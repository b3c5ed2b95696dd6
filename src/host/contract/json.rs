//! The launch contract as JSON: enough for any other host program.
//!
//! The main kernel's launch is the value itself; those of the kernels around it are in `before` and `after`. A parameter is a number, the address of
//! something, or a tensor map, which says what `cuTensorMapEncodeTiled` takes:
//!
//! ```text
//! {"name": "x", "type": "tensor_map", "value": {
//!     "tensor_map": {"buffer": "x", …},                                       the array: its address is that of x
//!     "rank": 2, "dimensions": ["k", "m"],                                    innermost first, in terms of the problem
//!     "sizes": [64, 256], "strides_bytes": [128], "box": [64, 128], "element_strides": [1, 1],
//!     "data_type": {"name": "CU_TENSOR_MAP_DATA_TYPE_UINT16", "value": 1}, …  constants of cuda.h
//! }}
//! ```

use layout_codegen::tensor_map::MapArgument;
use serde_json::{Value, json};

use super::{Contract, ContractBuffer, ContractLaunch, Source, WORKSPACE, number};
use crate::host::run::{Role, Scalar, StepArg};

impl Contract {
    /// The contract as the value of `launch` in `tilewright gemm --json`; null if there is nothing to launch.
    ///
    /// A parameter that is the address of a buffer has `{"buffer": name, "elements": n, "element": "f32"}` for its value; what is not known of it is left out.
    pub fn to_json(&self) -> Value {
        self.to_json_with(buffer)
    }

    /// The same with other values for the addresses of buffers: `tilewright gemm --json` names the matrices of the product.
    pub fn to_json_with(&self, buffer: impl Fn(&ContractBuffer) -> Value) -> Value {
        let address = |name: &str, offset: u64| {
            if name == WORKSPACE && self.workspace_bytes > 0 {
                return json!({"workspace": offset});
            }
            let found = self.buffers.iter().find(|b| b.name == name);
            found.map_or(Value::Null, &buffer)
        };
        let launches = self.launches.iter();
        let launches: Vec<Value> = launches.map(|l| one(self, l, &address)).collect();
        let main = self
            .launches
            .iter()
            .position(|l| l.step.entry == self.entry);
        let Some(mut value) = launches.get(main.unwrap_or(0)).cloned() else {
            return Value::Null;
        };
        let main = main.unwrap_or(0);
        value["workspace_bytes"] = json!(self.workspace_bytes);
        value["before"] = launches[..main].iter().cloned().collect();
        value["after"] = launches[main + 1..].iter().cloned().collect();
        let stated = self.assumptions.iter();
        let stated = stated
            .map(|a| json!({"condition": a.condition, "reason": a.reason, "checked": a.checked}));
        value["assumptions"] = stated.collect();
        value["memory"] = json!({
            "buffers": self.buffers.iter().map(memory).collect::<Vec<_>>(),
            "overlap": "a buffer that is written overlaps no other",
        });
        value
    }
}

/// One launch.
fn one(
    contract: &Contract,
    launch: &ContractLaunch,
    address: &impl Fn(&str, u64) -> Value,
) -> Value {
    let step = &launch.step;
    let params = step.args.iter().zip(&launch.names).map(|(arg, name)| {
        let (kind, value) = match (contract.source(arg), arg) {
            (Source::Number(scalar), _) => typed(scalar),
            (Source::Map(buffer, offset, _), StepArg::TensorMap(_, _, map)) => {
                ("tensor_map", tensor_map(&address(buffer, offset), map))
            }
            (Source::Buffer(buffer, offset) | Source::Map(buffer, offset, _), _) => {
                ("ptr", address(buffer, offset))
            }
            // The launches of a contract have values.
            (Source::Scalar(..), _) => ("u32", Value::Null),
        };
        json!({"name": name, "type": kind, "value": value})
    });
    json!({
        "kernel": step.entry,
        "grid": step.grid,
        "block": step.block,
        "cluster": step.cluster,
        "cluster_declared": launch.cluster_declared,
        "beside_previous": launch.beside_previous,
        "shared_bytes": step.shared_bytes,
        "params": params.collect::<Vec<_>>(),
    })
}

/// The type and the value of a number. JSON has no numbers for infinities and NaN: those are strings.
fn typed(scalar: &Scalar) -> (&'static str, Value) {
    let float = |v: f64| {
        if v.is_finite() {
            json!(v)
        } else {
            json!(number(scalar))
        }
    };
    match scalar {
        Scalar::U32(v) => ("u32", json!(v)),
        Scalar::I32(v) => ("s32", json!(v)),
        Scalar::U64(v) => ("u64", json!(v)),
        Scalar::I64(v) => ("s64", json!(v)),
        // The shortest decimal that gives the same f32.
        Scalar::F32(v) => ("f32", float(v.to_string().parse().unwrap_or(f64::from(*v)))),
        Scalar::F64(v) => ("f64", float(*v)),
        Scalar::Bytes(bytes) => ("bytes", json!(bytes)),
    }
}

fn buffer(b: &ContractBuffer) -> Value {
    let mut value = json!({"buffer": b.name});
    if let Some(element) = b.element {
        value["element"] = json!(element.to_string());
        if let Some(bytes) = b.bytes {
            value["elements"] = json!(bytes / element.bytes() as u64);
        }
    }
    value
}

fn memory(b: &ContractBuffer) -> Value {
    let usage = match b.role {
        Role::Input => "input",
        Role::Output => "output",
        Role::InOut => "in_out",
    };
    json!({"name": b.name, "bytes": b.bytes, "alignment": b.alignment, "usage": usage})
}

/// A tensor map: what the driver's encoding takes, dimensions innermost first.
fn tensor_map(of: &Value, map: &MapArgument) -> Value {
    let encoding = map.encoding();
    let mut dimensions = map.dimensions.to_vec();
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
