"""Kernels on a GPU, launched by the CUDA driver through `ctypes` on PyTorch's current stream.

    options ──▶ Kernel (proven, printed; kept on disk) ──▶ Compiled (module, functions, parameters) ──▶ launch(stream, addresses)

A `Compiled` is one configuration on one device. What a launch takes is laid out once: a call stores addresses and makes one call of the driver for each
launch. Tensor maps are encoded once an address.
"""

import ctypes
import hashlib
import json
import os
import pathlib
import tempfile
import threading
from typing import Any, Optional, Sequence, Union

import torch

from tilewright import Kernel, KernelError, _native, gemm, kernel
from tilewright._run import place_of

CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
MAP_CONSTANTS = ["data_type", "interleave", "swizzle", "l2_promotion", "oob_fill"]  # those of a tensor map, in the function's order

# Encoded tensor maps of one parameter that are kept. Addresses of an allocator come back.
MOST_MAPS = 1024

SCALARS: "dict[str, Any]" = {
    "u32": ctypes.c_uint32,
    "s32": ctypes.c_int32,
    "u64": ctypes.c_uint64,
    "s64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
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


class Driver:
    """The few functions of the driver that it takes, each checked."""

    def __init__(self) -> None:
        # Loading compiles, for seconds: other threads go on. Launches take microseconds, and must not be interleaved.
        self.loading, self.short = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")
        self.launch = self.short.cuLaunchKernelEx

    def check(self, name: str, status: int, explain: str = "") -> None:
        """Raises what the driver says of a status."""
        if status != 0:
            text = ctypes.c_char_p()
            self.short.cuGetErrorString(status, ctypes.byref(text))
            reason = text.value.decode() if text.value else "unknown error"
            raise RuntimeError(f"{name} failed with {status}: {reason}{explain}")

    def call(self, name: str, *arguments: Any) -> None:
        """A function by its name."""
        self.check(name, getattr(self.short, name)(*arguments))

    def load(self, ptx: str) -> ctypes.c_void_p:
        """The module of a text; a refusal shows the compiler's log."""
        log = ctypes.create_string_buffer(1 << 14)
        options = (ctypes.c_uint * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        status = self.loading.cuModuleLoadDataEx(ctypes.byref(module), ctypes.c_char_p(ptx.encode() + b"\0"), 2, options, values)
        self.check("cuModuleLoadDataEx", status, "\n" + log.value.decode(errors="replace"))
        return module

    def make_current(self, device: int) -> None:
        """PyTorch's context, in a thread that has none yet."""
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.call("cuCtxSetCurrent", context)


class TensorMap:
    """A parameter that is a tensor map: 128 bytes at a multiple of 64 for each address of its array."""

    def __init__(self, driver: Driver, value: "dict[str, Any]") -> None:
        rank = value["rank"]
        self.driver, self.rank = driver, ctypes.c_uint32(rank)
        self.arrays = (
            (ctypes.c_uint64 * rank)(*value["sizes"]),
            (ctypes.c_uint64 * rank)(*value["strides_bytes"]),
            (ctypes.c_uint32 * rank)(*value["box"]),
            (ctypes.c_uint32 * rank)(*value["element_strides"]),
        )
        self.constants = [ctypes.c_int(value[key]["value"]) for key in MAP_CONSTANTS]
        # The place of the encoded bytes by the array's address, and what keeps them.
        self.places: "dict[int, int]" = {}
        self.kept: "list[Any]" = []

    def encode(self, address: int) -> int:
        """Encodes the map of an address that has none yet."""
        if len(self.places) >= MOST_MAPS:
            self.places.clear()
            self.kept.clear()
        space = ctypes.create_string_buffer(128 + 63)
        place = (ctypes.addressof(space) + 63) & ~63
        data_type, *others = self.constants
        self.driver.call(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(place), data_type, self.rank, ctypes.c_void_p(address), *self.arrays, *others
        )
        self.kept.append(space)
        self.places[address] = place
        return place


class Step:
    """One launch: the function, its configuration, and a place for each parameter."""

    def __init__(self, driver: Driver, module: ctypes.c_void_p, launch: Any, names: "list[str]") -> None:
        self.driver = driver
        self.function = ctypes.c_void_p()
        driver.call("cuModuleGetFunction", ctypes.byref(self.function), module, launch.kernel.encode())
        x, y, z = launch.cluster
        if x * y * z > 8:
            driver.call("cuFuncSetAttribute", self.function, NON_PORTABLE_CLUSTER, 1)
        if launch.shared_bytes > 0:
            driver.call("cuFuncSetAttribute", self.function, MAX_DYNAMIC_SHARED, launch.shared_bytes)
        self.config = LaunchConfig()
        self.config.grid[:], self.config.block[:] = launch.grid, launch.block
        self.config.shared_bytes = launch.shared_bytes
        attributes = []
        if x * y * z > 1 and not launch.cluster_declared:
            attributes.append(LaunchAttribute(id=CLUSTER_DIMENSION))
            attributes[-1].value[:3] = launch.cluster
        if launch.beside_previous:
            attributes.append(LaunchAttribute(id=PROGRAMMATIC_STREAM_SERIALIZATION))
            attributes[-1].value[0] = 1
        self.attributes = (LaunchAttribute * len(attributes))(*attributes)
        self.config.attributes = self.attributes
        self.config.attribute_count = len(attributes)
        self.at_config = ctypes.byref(self.config)
        self.parameters = (ctypes.c_void_p * max(1, len(launch.params)))()
        # (place of the address, buffer, bytes into it), and (parameter, buffer, bytes into it, map).
        self.pointers: "list[tuple[Any, int, int]]" = []
        self.maps: "list[tuple[int, int, int, TensorMap]]" = []
        self.values: "list[Any]" = []
        for i, param in enumerate(launch.params):
            kind, value = param["type"], param["value"]
            if kind in ("ptr", "tensor_map"):
                buffer, offset = place_of(value if kind == "ptr" else value["tensor_map"])
                if kind == "tensor_map":
                    self.maps.append((i, names.index(buffer), offset, TensorMap(driver, value)))
                    continue
                held: Any = ctypes.c_uint64()
                self.pointers.append((held, names.index(buffer), offset))
            else:
                held = SCALARS[kind](float(value) if kind in ("f32", "f64") else int(value))
            self.values.append(held)
            self.parameters[i] = ctypes.addressof(held)

    def launch(self, stream: int, addresses: "Sequence[int]") -> int:
        """Enqueues the launch; the result is the driver's status."""
        for held, buffer, offset in self.pointers:
            held.value = addresses[buffer] + offset
        for i, buffer, offset, encoded in self.maps:
            address = addresses[buffer] + offset
            place = encoded.places.get(address)
            self.parameters[i] = encoded.encode(address) if place is None else place
        self.config.stream = stream
        return self.driver.launch(self.at_config, self.function, self.parameters, None)


class Compiled:
    """A kernel on a device, ready to be launched."""

    def __init__(self, driver: Driver, made: Kernel, device: int) -> None:
        self.driver, self.device = driver, device
        self.buffers = [one["name"].lower() for one in made.buffers]
        contract = made.contract or {}
        self.workspace_bytes = contract.get("workspace_bytes", 0)
        self.lock = threading.Lock()
        with torch.cuda.device(device):
            driver.make_current(device)
            module = driver.load(made.ptx)
            self.steps = [Step(driver, module, launch, self.buffers) for launch in made.launches]

    def launch(self, stream: int, *addresses: int) -> None:
        """Enqueues all launches on a stream: addresses in the order of `buffers`, but for the workspace."""
        if self.workspace_bytes:
            # PyTorch's allocator orders its reuse by the stream, so that it may go when this returns.
            workspace = torch.empty(self.workspace_bytes, dtype=torch.uint8, device=self.device)
            addresses = (*addresses, workspace.data_ptr())
        # Places of parameters are the configuration's own.
        with self.lock:
            for step in self.steps:
                status = step.launch(stream, addresses)
                if status == INVALID_CONTEXT:
                    self.driver.make_current(self.device)
                    status = step.launch(stream, addresses)
                if status != 0:
                    self.driver.check("cuLaunchKernelEx", status)


class Emulated:
    """A kernel on the emulator, for tensors in the CPU's memory: slow, and what it finds is an error."""

    device = -1

    def __init__(self, made: Kernel) -> None:
        self.made = made
        self.buffers = [one["name"].lower() for one in made.buffers]

    def launch(self, stream: int, *addresses: int) -> None:
        """Runs all launches, as `Compiled.launch` does."""
        places = {one["name"].lower(): one["bytes"] for one in self.made.buffers if one["name"] != "workspace"}
        arrays = {name: bytearray(ctypes.string_at(at, size)) for (name, size), at in zip(places.items(), addresses)}
        self.made.run(**arrays).raise_findings()
        for array, address in zip(arrays.values(), addresses):
            ctypes.memmove(address, (ctypes.c_char * len(array)).from_buffer(array), len(array))


_DRIVER: Optional[Driver] = None


def driver() -> Driver:
    """The driver, once PyTorch has initialised it."""
    global _DRIVER
    if _DRIVER is None:
        torch.cuda.init()
        _DRIVER = Driver()
    return _DRIVER


def architecture(device: int) -> str:
    """The newest architecture that kernels are generated for and a device runs; the emulator has the instructions of Hopper."""
    if device < 0:
        return "sm_90"
    major, minor = torch.cuda.get_device_capability(device)
    known = [number for number in _native.architectures() if number <= 10 * major + minor]
    if not known:
        raise KernelError(f"this GPU has compute capability {major}.{minor}, and kernels need {_native.architectures()[0] / 10} or later")
    return f"sm_{max(known)}"


def folder() -> pathlib.Path:
    """Where kernels are kept: `TILEWRIGHT_CACHE`, else the user's folder for caches."""
    named = os.environ.get("TILEWRIGHT_CACHE")
    if named:
        return pathlib.Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home) / "tilewright"


def _build() -> str:
    """What tells one build of the package from another."""
    file = os.stat(_native.__file__)
    return f"{file.st_size} {file.st_mtime_ns}"


def made(name: str, options: "dict[str, Any]") -> Kernel:
    """A kernel by its name, or the GEMM, from the disk if it is there."""
    key = json.dumps([_build(), name, options], sort_keys=True)
    path = folder() / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    try:
        kept = json.loads(path.read_text())
        return Kernel(kept["ptx"], kept["report"], name)
    except (OSError, ValueError, KeyError):
        pass
    fresh = gemm(**options) if name == "gemm" else kernel(name, **options)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump({"ptx": fresh.ptx, "report": fresh.report}, file)
        os.replace(file.name, path)
    except OSError:
        pass  # Where nothing can be kept, the next process makes it again.
    return fresh


def compiled(
    name: str, options: "dict[str, Any]", device: int, numbers: "Optional[dict[str, float]]" = None
) -> "Union[Compiled, Emulated]":
    """A kernel for a device, or for the emulator if it is −1, with other values for parameters that are numbers, such as eps."""
    fresh = made(name, {**options, "arch": architecture(device)})
    for launch in fresh.launches:
        for param in launch.params:
            if numbers and param["name"] in numbers:
                param["value"] = numbers[param["name"]]
    return Emulated(fresh) if device < 0 else Compiled(driver(), fresh, device)
