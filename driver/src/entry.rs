//! `cuGetProcAddress`: the functions by name, for the version of the API that a client was written for.
//!
//! A name such as `cuCtxCreate` has had several meanings; the version says which is meant. In general that is the last one, `_v4` before `_v3` and so on. [`SINCE`] has
//! those that have changed since CUDA 11, by the versions in `cudaTypedefs.h` of the toolkit.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::c::{Done, Out, Text, api};
use crate::status::{INVALID_VALUE, NOT_FOUND};
use crate::{
    capture, context, copy, device, event, export, graph, launch, memory, module, occupancy, pool,
    state, status, stream, stubs, tensor_map,
};

/// Names whose meaning depends on the version: from which version on which function.
const SINCE: [(&str, &[(c_int, &str)]); 33] = [
    (
        "cuCtxCreate",
        &[
            (0, "cuCtxCreate_v2"),
            (11_040, "cuCtxCreate_v3"),
            (12_050, "cuCtxCreate_v4"),
        ],
    ),
    (
        "cuCtxGetDevice",
        &[(0, "cuCtxGetDevice"), (13_000, "cuCtxGetDevice_v2")],
    ),
    (
        "cuCtxSynchronize",
        &[(0, "cuCtxSynchronize"), (13_000, "cuCtxSynchronize_v2")],
    ),
    (
        "cuDeviceGetUuid",
        &[(0, "cuDeviceGetUuid"), (11_040, "cuDeviceGetUuid_v2")],
    ),
    (
        "cuEventElapsedTime",
        &[(0, "cuEventElapsedTime"), (12_080, "cuEventElapsedTime_v2")],
    ),
    (
        "cuGetProcAddress",
        &[(0, "cuGetProcAddress"), (12_000, "cuGetProcAddress_v2")],
    ),
    (
        "cuGraphAddDependencies",
        &[
            (0, "cuGraphAddDependencies"),
            (12_030, "cuGraphAddDependencies_v2"),
        ],
    ),
    (
        "cuGraphRemoveDependencies",
        &[
            (0, "cuGraphRemoveDependencies"),
            (12_030, "cuGraphRemoveDependencies_v2"),
        ],
    ),
    (
        "cuGraphGetEdges",
        &[(0, "cuGraphGetEdges"), (12_030, "cuGraphGetEdges_v2")],
    ),
    (
        "cuGraphNodeGetDependencies",
        &[
            (0, "cuGraphNodeGetDependencies"),
            (12_030, "cuGraphNodeGetDependencies_v2"),
        ],
    ),
    (
        "cuGraphNodeGetDependentNodes",
        &[
            (0, "cuGraphNodeGetDependentNodes"),
            (12_030, "cuGraphNodeGetDependentNodes_v2"),
        ],
    ),
    (
        "cuGraphAddNode",
        &[(0, "cuGraphAddNode"), (12_030, "cuGraphAddNode_v2")],
    ),
    (
        "cuGraphAddKernelNode",
        &[
            (0, "cuGraphAddKernelNode"),
            (12_000, "cuGraphAddKernelNode_v2"),
        ],
    ),
    (
        "cuGraphKernelNodeGetParams",
        &[
            (0, "cuGraphKernelNodeGetParams"),
            (12_000, "cuGraphKernelNodeGetParams_v2"),
        ],
    ),
    (
        "cuGraphKernelNodeSetParams",
        &[
            (0, "cuGraphKernelNodeSetParams"),
            (12_000, "cuGraphKernelNodeSetParams_v2"),
        ],
    ),
    (
        "cuGraphExecKernelNodeSetParams",
        &[
            (0, "cuGraphExecKernelNodeSetParams"),
            (12_000, "cuGraphExecKernelNodeSetParams_v2"),
        ],
    ),
    (
        "cuGraphExecUpdate",
        &[(0, "cuGraphExecUpdate"), (12_000, "cuGraphExecUpdate_v2")],
    ),
    (
        "cuGraphInstantiate",
        &[
            (0, "cuGraphInstantiate_v2"),
            (12_000, "cuGraphInstantiateWithFlags"),
        ],
    ),
    (
        "cuMemAdvise",
        &[(0, "cuMemAdvise"), (12_020, "cuMemAdvise_v2")],
    ),
    (
        "cuMemPrefetchAsync",
        &[(0, "cuMemPrefetchAsync"), (12_020, "cuMemPrefetchAsync_v2")],
    ),
    (
        "cuMemcpyBatchAsync",
        &[(0, "cuMemcpyBatchAsync"), (13_000, "cuMemcpyBatchAsync_v2")],
    ),
    (
        "cuMemcpy3DBatchAsync",
        &[
            (0, "cuMemcpy3DBatchAsync"),
            (13_000, "cuMemcpy3DBatchAsync_v2"),
        ],
    ),
    (
        "cuStreamBatchMemOp",
        &[(0, "cuStreamBatchMemOp"), (11_070, "cuStreamBatchMemOp_v2")],
    ),
    (
        "cuStreamBeginCapture",
        &[
            (0, "cuStreamBeginCapture"),
            (10_010, "cuStreamBeginCapture_v2"),
        ],
    ),
    (
        "cuStreamGetCaptureInfo",
        &[
            (0, "cuStreamGetCaptureInfo"),
            (11_030, "cuStreamGetCaptureInfo_v2"),
            (12_030, "cuStreamGetCaptureInfo_v3"),
        ],
    ),
    (
        "cuStreamGetCtx",
        &[(0, "cuStreamGetCtx"), (12_050, "cuStreamGetCtx_v2")],
    ),
    (
        "cuStreamUpdateCaptureDependencies",
        &[
            (0, "cuStreamUpdateCaptureDependencies"),
            (12_030, "cuStreamUpdateCaptureDependencies_v2"),
        ],
    ),
    (
        "cuStreamWaitValue32",
        &[
            (0, "cuStreamWaitValue32"),
            (11_070, "cuStreamWaitValue32_v2"),
        ],
    ),
    (
        "cuStreamWaitValue64",
        &[
            (0, "cuStreamWaitValue64"),
            (11_070, "cuStreamWaitValue64_v2"),
        ],
    ),
    (
        "cuStreamWriteValue32",
        &[
            (0, "cuStreamWriteValue32"),
            (11_070, "cuStreamWriteValue32_v2"),
        ],
    ),
    (
        "cuStreamWriteValue64",
        &[
            (0, "cuStreamWriteValue64"),
            (11_070, "cuStreamWriteValue64_v2"),
        ],
    ),
    ("cuTexRefSetAddress2D", &[(0, "cuTexRefSetAddress2D_v3")]),
    ("cuMemHostRegister", &[(0, "cuMemHostRegister_v2")]),
];

/// The address of each function that the library has; a number, since the table is shared by threads.
fn table() -> &'static HashMap<&'static str, usize> {
    static TABLE: OnceLock<HashMap<&'static str, usize>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut all = HashMap::new();
        let mut add = |name, address: *const c_void| {
            all.insert(name, address.expose_provenance());
        };
        let modules = [
            status::symbols,
            state::symbols,
            device::symbols,
            context::symbols,
            memory::symbols,
            copy::symbols,
            pool::symbols,
            stream::symbols,
            event::symbols,
            graph::symbols,
            capture::symbols,
            module::symbols,
            launch::symbols,
            occupancy::symbols,
            tensor_map::symbols,
            export::symbols,
            symbols,
            stubs::symbols,
        ];
        for symbols in modules {
            symbols(&mut add);
        }
        all
    })
}

/// The function that a name means in a version; with `own`, the one whose stream 0 is the thread's own, where there are both.
fn find(name: &str, version: c_int, own: bool) -> Option<usize> {
    let table = table();
    let get = |name: &str| {
        let suffixes: &[&str] = if own { &["_ptsz", "_ptds", ""] } else { &[""] };
        suffixes
            .iter()
            .find_map(|s| table.get(format!("{name}{s}").as_str()).copied())
    };
    if let Some((_, meanings)) = SINCE.iter().find(|(n, _)| *n == name) {
        let last = meanings.iter().rfind(|(since, _)| *since <= version);
        return get(last?.1);
    }
    let versions = ["_v4", "_v3", "_v2", ""];
    versions.iter().find_map(|v| get(&format!("{name}{v}")))
}

fn look_up(
    name: Text,
    out: Out<*const c_void>,
    version: c_int,
    flags: u64,
    result: Out<c_int>,
) -> Done {
    let name = name.get()?;
    if flags > 2 {
        return Err(INVALID_VALUE);
    }
    let found = find(&name, version, flags == 2);
    out.set(found.map_or(std::ptr::null(), std::ptr::with_exposed_provenance))?;
    result.set_if_wanted(c_int::from(found.is_none()));
    if found.is_none() && crate::settings::trace() {
        eprintln!("tilewright: there is no {name} for version {version}");
    }
    found.map(|_| ()).ok_or(NOT_FOUND)
}

api! {
    fn cuGetProcAddress(name: Text, out: Out<*const c_void>, version: c_int, flags: u64) {
        look_up(name, out, version, flags, Out::none())
    }

    fn cuGetProcAddress_v2(name: Text, out: Out<*const c_void>, version: c_int, flags: u64, result: Out<c_int>) {
        look_up(name, out, version, flags, result)
    }
}

#[cfg(test)]
mod tests {
    use super::{SINCE, find, table};

    #[test]
    fn names_mean_the_function_of_their_version() {
        let address = |name: &str| table().get(name).copied();
        assert_eq!(
            find("cuCtxCreate", 11_000, false),
            address("cuCtxCreate_v2")
        );
        assert_eq!(
            find("cuCtxCreate", 13_000, false),
            address("cuCtxCreate_v4")
        );
        assert_eq!(find("cuMemAlloc", 12_000, false), address("cuMemAlloc_v2"));
        assert_eq!(
            find("cuLaunchKernel", 12_000, true),
            address("cuLaunchKernel_ptsz")
        );
        assert_eq!(
            find("cuMemcpyHtoD", 12_000, true),
            address("cuMemcpyHtoD_v2_ptds")
        );
        assert_eq!(find("cuInit", 12_000, true), address("cuInit"));
        assert_eq!(find("cuNothing", 12_000, true), None);
        for (name, meanings) in SINCE {
            for (_, function) in meanings {
                assert!(address(function).is_some(), "{name}: {function}");
            }
        }
    }
}
