#!/usr/bin/env python3
"""An emitted kernel in CuPy: `RawModule` loads the PTX, the contract says how to launch it.

    tilewright gemm --dtype f16 --arch sm_80 --m 384 --n 256 --k 192 --on none --emit kernel.ptx --emit-host python kernel.py
    python3 examples/hosts/cupy_raw_module.py kernel.ptx kernel.py
"""

import argparse
import ctypes
import importlib.util
import re
import sys

try:
    import cupy
except ImportError:
    sys.exit("this program needs CuPy: python3 -m pip install cupy-cuda12x")
import numpy as np

# The contract's ctypes as the numpy scalars that CuPy passes by value.
SCALARS = {
    ctypes.c_void_p: np.uint64,
    ctypes.c_uint32: np.uint32,
    ctypes.c_uint64: np.uint64,
    ctypes.c_int32: np.int32,
    ctypes.c_float: np.float32,
    ctypes.c_double: np.float64,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ptx")
    parser.add_argument("contract", help="what --emit-host python wrote")
    args = parser.parse_args()
    spec = importlib.util.spec_from_file_location("tilewright_contract", args.contract)
    contract = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contract)
    found = re.search(r"C (\d+)x(\d+) = .*k = (\d+), nn", contract.__doc__.splitlines()[0])
    if not found:
        sys.exit("this program multiplies row-major matrices: emit the kernel with --trans nn")
    if hasattr(contract, "TensorMap"):
        sys.exit("this program encodes no tensor maps: emit the kernel with --arch sm_80, or see examples/launch.py")
    m, n, k = (int(number) for number in found.groups())
    module = cupy.RawModule(path=args.ptx)
    random = cupy.random.default_rng(1)
    a = random.standard_normal((m, k), dtype=cupy.float32).astype(cupy.float16)
    b = random.standard_normal((k, n), dtype=cupy.float32).astype(cupy.float16)
    c = cupy.empty((m, n), dtype=cupy.float16)
    buffers = [a.data.ptr, b.data.ptr, c.data.ptr]
    if contract.WORKSPACE_BYTES:
        workspace = cupy.empty(contract.WORKSPACE_BYTES, dtype=cupy.uint8)
        buffers.append(workspace.data.ptr)
    for launch in contract.launches(*buffers):
        if launch.cluster != (1, 1, 1):
            sys.exit("a kernel of clusters needs cuLaunchKernelEx: see examples/launch.py")
        kernel = module.get_function(launch.kernel)
        kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
        values = tuple(SCALARS[type(value)](value.value or 0) for value in launch.args)
        kernel(launch.grid, launch.block, values, shared_mem=launch.shared_bytes)
    exact = a.astype(cupy.float64) @ b.astype(cupy.float64)
    error = float(cupy.abs(c.astype(cupy.float64) - exact).max() / cupy.abs(exact).max())
    bound = 2.0**-11 + k * 2.0**-24
    print(f"{'ok  ' if error <= bound else 'FAIL'} CuPy: relative error {error:.2e}, bound {bound:.2e}")
    return 0 if error <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
