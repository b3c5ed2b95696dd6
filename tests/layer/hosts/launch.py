#!/usr/bin/env python3
"""Launches kernels from Python by their generated stubs, with ctypes and the CUDA driver alone."""

import ctypes
import importlib.util
import json
import math
import struct
import sys

FORMATS = {"f32": "f", "f16": "e", "s32": "i", "bf16": "H", "e4m3": "B"}


def stop(text, status):
    print(text)
    sys.exit(status)


try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    stop("Python: no GPU: not run: there is no driver libcuda.so.1", 77)


def call(name, *arguments):
    error = getattr(cuda, name)(*arguments)
    if error:
        stop(f"{name}: error {error} of the driver", 1)


def value(element, bits):
    if element == "bf16":
        return struct.unpack("f", struct.pack("I", bits << 16))[0]
    if element == "e4m3":
        exponent, fraction = bits >> 3 & 15, bits & 7
        size = fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)
        return math.nan if bits & 127 == 127 else -size if bits & 128 else size
    return bits


def wrong(buffer, got, right, tolerance):
    """What is wrong with the bytes of a buffer, if anything is."""
    if got == right:
        return None
    if not (buffer["written"] and tolerance > 0):
        return f"{buffer['name']} differs"
    element = buffer["element"]
    count = len(got) // struct.calcsize(FORMATS[element])
    pairs = [struct.unpack(f"{count}{FORMATS[element]}", b) for b in (got, right)]
    for i, (x, y) in enumerate(zip(*pairs)):
        x, y = value(element, x), value(element, y)
        near = abs(y) / 8 + 1 / 512 if element == "e4m3" else tolerance * max(abs(y), 1)
        if x != y and not abs(x - y) <= near:
            return f"{buffer['name']}[{i}] is {x} and not {y}"
    return None


def run(module, stub, case, data):
    addresses, sizes = {}, stub.buffer_bytes(**case["scalars"])
    for b in case["buffers"]:
        bytes_ = b["bytes"]
        if sizes[b["name"]] > bytes_:
            return f"{b['name']} has {bytes_} bytes, and the stub asks for {sizes[b['python']]}"
        first = b"\xff" * bytes_ if b["before"] is None else data[b["before"] : b["before"] + bytes_]
        at = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(bytes_ + 1))
        if bytes_:
            call("cuMemcpyHtoD_v2", at, first, ctypes.c_size_t(bytes_))
        addresses[b["name"]] = at.value
    for launch in stub.launches(**addresses, **case["scalars"]):
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, launch.kernel.encode())
        if launch.shared_bytes:
            call("cuFuncSetAttribute", function, 8, launch.shared_bytes)
        params = (ctypes.c_void_p * max(len(launch.args), 1))()
        for i, a in enumerate(launch.args):
            params[i] = ctypes.cast(ctypes.byref(a), ctypes.c_void_p)
        call("cuLaunchKernel", function, *launch.grid, *launch.block, launch.shared_bytes, None, params, None)
    call("cuCtxSynchronize")
    found = None
    for b in case["buffers"]:
        at, got = ctypes.c_uint64(addresses[b["name"]]), ctypes.create_string_buffer(b["bytes"] + 1)
        if b["bytes"]:
            call("cuMemcpyDtoH_v2", got, at, ctypes.c_size_t(b["bytes"]))
        right = data[b["after"] : b["after"] + b["bytes"]]
        found = found or wrong(b, got.raw[: b["bytes"]], right, case["tolerance"])
        call("cuMemFree_v2", at)
    return found


def main():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        stop("Python: no GPU: not run: the driver finds none", 77)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    with open("data.bin", "rb") as file:
        data = file.read()
    with open("cases.json") as file:
        kernels = json.load(file)
    failed = False
    for kernel in kernels:
        name = kernel["name"]
        spec = importlib.util.spec_from_file_location(name, f"python/{name}.py")
        stub = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(stub)
        module = ctypes.c_void_p()
        with open(f"{name}.ptx", "rb") as file:
            call("cuModuleLoadData", ctypes.byref(module), file.read() + b"\0")
        found = None
        for case in kernel["cases"]:
            found = found or run(module, stub, case, data)
        if found:
            print(f"    {found}")
        failed |= bool(found)
        print("FAIL" if found else "PASS", "Python", name)
    sys.exit(failed)


main()
