#!/usr/bin/env python3
"""A PyTorch operator from an emitted kernel: `torch.library`, `torch.compile`, gradients, streams, graphs.

    tilewright gemm --dtype f16 --arch sm_80 --m 384 --n 256 --k 192 --on none --emit kernel.ptx --emit-host python kernel.py
    python3 examples/hosts/pytorch.py kernel.ptx kernel.py

`kernel.py` is the contract of the launch as `--emit-host` writes it. The kernel is loaded and launched by the CUDA driver through
`ctypes`, in PyTorch's own context and on its current stream, so that it is ordered with everything else that PyTorch does. The operator
computes C = A @ B for the one problem that the contract is of; the program checks it against `torch.mm` in double precision, alone, compiled,
in a model's training step, on a second stream and in a CUDA graph.
"""

import argparse
import ctypes
import importlib.util
import re
import sys

import torch

DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class Kernels:
    """The kernels of a PTX file, loaded once, and the launches of their contract."""

    def __init__(self, ptx_path, stub_path):
        spec = importlib.util.spec_from_file_location("tilewright_contract", stub_path)
        self.contract = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.contract)
        # PyTorch makes its context current in this thread.
        torch.cuda.init()
        torch.empty(1, device="cuda")
        self.driver = ctypes.CDLL("libcuda.so.1")
        with open(ptx_path, "rb") as file:
            ptx = file.read() + b"\0"
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), ptx)
        self.functions = {}

    def call(self, name, *args):
        status = getattr(self.driver, name)(*args)
        if status != 0:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")

    def function(self, launch):
        """The kernel of a launch, allowed the shared memory that it needs."""
        if launch.kernel not in self.functions:
            if launch.cluster != (1, 1, 1) and not launch.cluster_declared:
                raise RuntimeError("a kernel whose text does not declare its clusters needs cuLaunchKernelEx: see examples/launch.py")
            function = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(function), self.module, launch.kernel.encode())
            self.call("cuFuncSetAttribute", function, DYNAMIC_SHARED_BYTES, launch.shared_bytes)
            self.functions[launch.kernel] = function
        return self.functions[launch.kernel]

    def parameter(self, value):
        """A parameter as it lies in memory: the contract's number, or 128 bytes that the driver makes of a tensor map, at a multiple of 64."""
        if isinstance(value, ctypes._SimpleCData):
            return value
        space = ctypes.create_string_buffer(128 + 63)
        encoded = (ctypes.c_uint64 * 16).from_buffer(space, -ctypes.addressof(space) % 64)
        rank = len(value.sizes)
        self.call(
            "cuTensorMapEncodeTiled", encoded, value.data_type, rank, ctypes.c_void_p(value.address),
            (ctypes.c_uint64 * rank)(*value.sizes), (ctypes.c_uint64 * rank)(*value.strides_bytes),
            (ctypes.c_uint32 * rank)(*value.box_sizes), (ctypes.c_uint32 * rank)(*value.element_strides),
            value.interleave, value.swizzle, value.l2_promotion, value.oob_fill,
        )  # fmt: skip
        return encoded

    def launch(self, *tensors, **sizes):
        """Enqueues the launches on the current stream: tensors in the order of the contract's buffers, and sizes by name if it takes any."""
        buffers = [tensor.data_ptr() for tensor in tensors]
        workspace = None
        if self.contract.WORKSPACE_BYTES:
            # PyTorch's allocator orders its reuse by the stream, so that it may go when this returns.
            workspace = torch.empty(self.contract.WORKSPACE_BYTES, dtype=torch.uint8, device=tensors[0].device)
            buffers.append(workspace.data_ptr())
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for launch in self.contract.launches(*buffers, **sizes):
            values = [self.parameter(value) for value in launch.args]
            parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            shared = ctypes.c_uint(launch.shared_bytes)
            self.call("cuLaunchKernel", self.function(launch), *launch.grid, *launch.block, shared, stream, parameters, None)


def shape_of(contract):
    """m, n and k, from the first line of the contract."""
    found = re.search(r"C (\d+)x(\d+) = .*k = (\d+), nn", contract.__doc__.splitlines()[0])
    if not found:
        sys.exit("this program multiplies row-major matrices: emit the kernel with --trans nn")
    return tuple(int(n) for n in found.groups())


def define(kernels):
    """The operator `tilewright::gemm`, which torch.compile keeps as one node of its graph."""
    m, n, k = shape_of(kernels.contract)

    @torch.library.custom_op("tilewright::gemm", mutates_args=(), device_types="cuda")
    def gemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        torch._check(a.shape == (m, k) and b.shape == (k, n), lambda: f"the contract is of {m}x{k} times {k}x{n}")
        torch._check(a.dtype == b.dtype == torch.float16, lambda: "the kernel multiplies float16")
        a, b = a.contiguous(), b.contiguous()
        c = a.new_empty((m, n))
        kernels.launch(a, b, c)
        return c

    @gemm.register_fake
    def _(a, b):
        return a.new_empty((a.shape[0], b.shape[1]))

    # PyTorch passes these by name.
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient @ b.T, a.T @ gradient

    gemm.register_autograd(backward, setup_context=setup_context)
    return gemm, (m, n, k)


def check(what, value, exact, k):
    """The largest relative error, against the bound of a sum of k products in float32 that is rounded to float16."""
    error = ((value.double() - exact).abs().max() / exact.abs().max()).item()
    bound = 2.0**-11 + k * 2.0**-24
    passed = error <= bound
    print(f"{'ok  ' if passed else 'FAIL'} {what}: relative error {error:.2e}, bound {bound:.2e}")
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ptx")
    parser.add_argument("contract", help="what --emit-host python wrote")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("this program needs a GPU that PyTorch can use")
    kernels = Kernels(args.ptx, args.contract)
    gemm, (m, n, k) = define(kernels)
    torch.manual_seed(1)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    exact = a.double() @ b.double()
    passed = [check("eager", gemm(a, b), exact, k)]

    torch.library.opcheck(gemm, (a, b))
    print("ok   torch.library.opcheck")

    model = torch.compile(lambda x, w: torch.relu(gemm(x, w) * 2), fullgraph=True)
    passed.append(check("torch.compile", model(a, b), torch.relu(exact * 2), k))

    weight = torch.nn.Parameter(b.clone())
    (gemm(a, weight).float() ** 2).sum().backward()
    reference = torch.nn.Parameter(b.clone())
    ((a @ reference).float() ** 2).sum().backward()
    passed.append(check("gradient", weight.grad, reference.grad.double(), k + m))

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        other = gemm(a, b)
    torch.cuda.current_stream().wait_stream(stream)
    passed.append(check("second stream", other, exact, k))

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gemm(a, b)
    captured.zero_()
    graph.replay()
    passed.append(check("CUDA graph", captured, exact, k))

    try:
        gemm(a[:1], b)
    except RuntimeError as error:
        print(f"ok   another shape is refused: {str(error).splitlines()[0]}")
    else:
        print("FAIL another shape is taken")
        passed.append(False)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
