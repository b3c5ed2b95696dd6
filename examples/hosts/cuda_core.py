#!/usr/bin/env python3
"""An emitted kernel in cuda.core, NVIDIA's own Python interface to the driver, with PyTorch's tensors as memory.

    tilewright gemm --dtype f16 --arch sm_80 --m 384 --n 256 --k 192 --on none --emit kernel.ptx --emit-host python kernel.py
    python3 examples/hosts/cuda_core.py kernel.ptx kernel.py
"""

import argparse
import ctypes
import importlib.util
import re
import sys

import torch

try:
    from cuda.core import Device, LaunchConfig, ObjectCode, launch
except ImportError:
    try:
        from cuda.core.experimental import Device, LaunchConfig, ObjectCode, launch
    except ImportError:
        sys.exit("this program needs cuda.core: python3 -m pip install 'cuda-core[cu12]'")


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
    device = Device()
    device.set_current()
    stream = device.create_stream()
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    torch.cuda.synchronize()
    buffers = [a.data_ptr(), b.data_ptr(), c.data_ptr()]
    if contract.WORKSPACE_BYTES:
        workspace = torch.empty(contract.WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        buffers.append(workspace.data_ptr())
    with open(args.ptx, "rb") as file:
        module = ObjectCode.from_ptx(file.read())
    for step in contract.launches(*buffers):
        if step.cluster != (1, 1, 1):
            sys.exit("this program launches without clusters: see examples/launch.py")
        kernel = module.get_kernel(step.kernel)
        config = LaunchConfig(grid=step.grid, block=step.block, shmem_size=step.shared_bytes)
        # More than 48 KiB of shared memory is the driver's to allow.
        allow(kernel, step.shared_bytes)
        # cuda.core takes pointers as integers, and other values as they are.
        values = [value.value if isinstance(value, ctypes.c_void_p) else value for value in step.args]
        launch(stream, config, kernel, *values)
    stream.sync()
    exact = a.double() @ b.double()
    error = ((c.double() - exact).abs().max() / exact.abs().max()).item()
    bound = 2.0**-11 + k * 2.0**-24
    print(f"{'ok  ' if error <= bound else 'FAIL'} cuda.core: relative error {error:.2e}, bound {bound:.2e}")
    return 0 if error <= bound else 1


def allow(kernel, shared_bytes):
    """Lets the kernel have its dynamic shared memory, for which cuda.core's kernel object has no setter."""
    from cuda.bindings import driver

    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    handle = getattr(kernel, "_handle", None) or kernel.handle
    _, device = driver.cuCtxGetDevice()
    (status,) = driver.cuKernelSetAttribute(attribute, shared_bytes, driver.CUkernel(int(handle)), device)
    if status != driver.CUresult.CUDA_SUCCESS:
        sys.exit(f"cuKernelSetAttribute: {status}")


if __name__ == "__main__":
    sys.exit(main())
