#!/usr/bin/env python3
"""Launches an emitted GEMM kernel with nothing but the CUDA driver and numpy, and checks the result.

    tilewright gemm --m 1000 --n 500 --k 300 --emit kernel.ptx --json > gemm.json
    python3 examples/launch.py kernel.ptx gemm.json

The PTX file and the launch contract (the value of "launch" in the JSON) are all that a host program needs:

    {"kernel": "...", "grid": [x,y,z], "block": [x,y,z], "cluster": [x,y,z], "shared_bytes": n,
     "params": [{"name": "A", "type": "ptr", "value": ...}, {"name": "m", "type": "u32", "value": 1000}, ...]}

Pointers are this program's to fill in: A, B and C are allocated here, filled with random numbers, and compared with
C <- alpha * op(A) @ op(B) + beta * C in double precision. Everything else is passed as the contract says.
"""

import argparse
import ctypes
import json
import sys

import numpy as np

# How the contract's types look in memory.
SCALARS = {
    "u8": ctypes.c_uint8, "s8": ctypes.c_int8, "u16": ctypes.c_uint16, "s16": ctypes.c_int16,
    "u32": ctypes.c_uint32, "s32": ctypes.c_int32, "u64": ctypes.c_uint64, "s64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double, "ptr": ctypes.c_uint64,
}  # fmt: skip

# Element types of A and B, of C, and the unit roundoff of the products and sums.
ELEMENTS = {
    "f32": (np.float32, np.float32, 2.0**-24),
    "f64": (np.float64, np.float64, 2.0**-53),
    "f16": (np.float16, np.float32, 2.0**-11),
}


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h; the union is 64 bytes, of which a cluster uses three integers."""

    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size


class Cuda:
    """The few calls of the driver that it takes, each checked."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"there is no CUDA driver here: {error}")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments, explain=lambda: ""):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            reason = text.value.decode() if text.value else "unknown"
            sys.exit(f"{name} failed with {status}: {reason}{explain()}")

    def load(self, ptx, kernel):
        """The function `kernel` of the PTX text; a refusal shows the compiler's log."""
        log = ctypes.create_string_buffer(1 << 16)
        options = (ctypes.c_uint * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call(
            "cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx), 2, options, values,
            explain=lambda: "\n" + log.value.decode(errors="replace"),
        )  # fmt: skip
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        return function

    def upload(self, array):
        """Device memory with the bytes of `array`."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(array.nbytes, 1)))
        if array.nbytes:
            self.call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return pointer

    def download(self, pointer, array):
        """Fills `array` from device memory."""
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), pointer, ctypes.c_size_t(array.nbytes))

    def launch(self, function, launch, values):
        """One launch; `values` are ctypes numbers in the order of the parameters."""
        config = LaunchConfig()
        config.grid[:], config.block[:] = launch["grid"], launch["block"]
        config.shared_bytes = launch["shared_bytes"]
        attribute = LaunchAttribute(id=CLUSTER_DIMENSION)
        attribute.value[:3] = launch["cluster"]
        blocks = int(np.prod(launch["cluster"]))
        if blocks > 1:
            config.attributes, config.attribute_count = ctypes.pointer(attribute), 1
        if blocks > 8:
            self.call("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER, 1)
        if config.shared_bytes > 0:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, config.shared_bytes)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        self.call("cuCtxSynchronize")


def stored(rows, cols, ld, dtype, rng):
    """A row-major matrix with leading dimension `ld`, random in [-1, 1); what lies between the rows is NaN."""
    memory = np.full((rows - 1) * ld + cols if rows and cols else 0, np.nan, dtype)
    view = np.lib.stride_tricks.as_strided(memory, (rows, cols), (ld * memory.itemsize, memory.itemsize))
    if memory.size:
        view[...] = rng.uniform(-1, 1, (rows, cols)).astype(dtype)
    return memory, view


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("ptx", help="the file that `tilewright gemm --emit` wrote")
    arguments.add_argument("json", help="what `tilewright gemm --json` printed, or its \"launch\" alone")
    arguments.add_argument("--dtype", choices=ELEMENTS, help="element type; default as in the JSON, else f32")
    arguments.add_argument("--trans", choices=["nn", "nt", "tn", "tt"], help="default as in the JSON, else nn")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()

    with open(options.json, encoding="utf-8") as file:
        report = json.load(file)
    launch = report.get("launch", report)
    if not launch:
        print("nothing to launch: the product is empty")
        return
    number = {p["name"]: p["value"] for p in launch["params"] if p["type"] != "ptr"}
    dtype = options.dtype or report.get("dtype", "f32")
    trans = options.trans or report.get("trans", "nn")
    if dtype not in ELEMENTS:
        sys.exit(f"numpy has no elements of type {dtype}")
    ab_type, c_type, roundoff = ELEMENTS[dtype]

    m, n, k = number["m"], number["n"], number["k"]
    alpha, beta = number["alpha"], number["beta"]
    rng = np.random.default_rng(options.seed)
    a_memory, a = stored(*((k, m) if trans[0] == "t" else (m, k)), number["lda"], ab_type, rng)
    b_memory, b = stored(*((n, k) if trans[1] == "t" else (k, n)), number["ldb"], ab_type, rng)
    c_memory, c = stored(m, n, number["ldc"], c_type, rng)

    cuda = Cuda()
    with open(options.ptx, "rb") as file:
        function = cuda.load(file.read() + b"\0", launch["kernel"])
    pointers = {"A": cuda.upload(a_memory), "B": cuda.upload(b_memory), "C": cuda.upload(c_memory)}
    values = []
    for p in launch["params"]:
        if p["type"] not in SCALARS or (p["type"] == "ptr" and p["name"] not in pointers):
            sys.exit(f"this program does not know how to fill in parameter {p['name']} of type {p['type']}")
        values.append(SCALARS[p["type"]](pointers[p["name"]].value if p["type"] == "ptr" else p["value"]))
    cuda.launch(function, launch, values)

    result_memory = np.empty_like(c_memory)
    cuda.download(pointers["C"], result_memory)
    result = np.lib.stride_tricks.as_strided(result_memory, c.shape, c.strides)

    op_a = (a.T if trans[0] == "t" else a).astype(np.float64)
    op_b = (b.T if trans[1] == "t" else b).astype(np.float64)
    # beta = 0 never reads C.
    old = beta * c.astype(np.float64) if beta != 0 else 0.0
    reference = alpha * (op_a @ op_b) + old
    # |error| <= (k + 2) * roundoff * (|alpha| |A| |B| + |beta| |C|), the standard bound of a sum of k products.
    bound = (k + 2) * roundoff * (abs(alpha) * (np.abs(op_a) @ np.abs(op_b)) + np.abs(old)) + np.finfo(c_type).tiny
    error = np.abs(result - reference)
    passed = bool(np.all(error <= bound))  # NaN compares false
    gaps = np.ones(c_memory.size, bool)
    np.lib.stride_tricks.as_strided(gaps, c.shape, (number["ldc"], 1))[...] = False
    untouched = bool(np.all(np.isnan(result_memory[gaps])))

    print(f"{launch['kernel']}: {m}x{n}x{k} {trans} {dtype}, grid {launch['grid']}, block {launch['block']}")
    print(f"largest error {error.max():.3e}, {np.max(error / bound):.3f} of its bound")
    if not untouched:
        print("the kernel wrote between the rows of C")
    print("passed" if passed and untouched else "FAILED")
    sys.exit(0 if passed and untouched else 1)


if __name__ == "__main__":
    main()
