#!/usr/bin/env python3
"""Launches an emitted kernel with nothing but the CUDA driver and numpy, and checks the result of a GEMM.

    tilewright gemm --m 1000 --n 500 --k 300 --emit kernel.ptx --json > gemm.json
    python3 examples/launch.py kernel.ptx gemm.json

    tilewright kernel transpose --rows 1000 --cols 700 --on none --emit transpose.ptx --json > transpose.json
    python3 examples/launch.py transpose.ptx transpose.json --give x=x.bin --keep y=y.bin

The PTX file and the launch contract (the value of "launch" in the JSON) are all that a host program needs:

    {"kernel": "...", "grid": [x,y,z], "block": [x,y,z], "cluster": [x,y,z], "shared_bytes": n,
     "params": [{"name": "A", "type": "ptr", "value": {"matrix": "A", ...}}, {"name": "m", "type": "u32", "value": 1000}, ...],
     "workspace_bytes": n, "before": [...], "after": [...]}

The launches of "before" come first, then the kernel itself, then those of "after"; each has a kernel of the same file and parameters
of its own. Numbers are passed as the contract says. Pointers are this program's to fill in, by what their value says: a "matrix" (A, B
or C), a vector of so many "elements" (the bias), a "tensor" of a kernel that comes with Tilewright, a "buffer" of a custom one, or so many bytes into the "workspace". A parameter of type "tensor_map" is encoded by the
driver (cuTensorMapEncodeTiled) from its value, which has the function's arguments under their names, and says in "tensor_map" where the
array is. A kernel that declares its cluster in the PTX ("cluster_declared") is launched without the attribute.

Tensors and buffers hold the bytes of the files of --give, or zeros, and are written to those of --keep. Of a GEMM all memory is
allocated here, filled with random numbers, the workspace with NaN, and C is compared with
C <- activation(alpha * op(A) @ op(B) + beta * C + bias) in double precision. examples/hosts/compare_pytorch.py launches the same files through
this program beside torch.matmul, and times both.
"""

import argparse
import ctypes
import json
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("this program needs numpy: python3 -m pip install numpy")

# How the contract's types look in memory.
SCALARS = {
    "u8": ctypes.c_uint8, "s8": ctypes.c_int8, "u16": ctypes.c_uint16, "s16": ctypes.c_int16,
    "u32": ctypes.c_uint32, "s32": ctypes.c_int32, "u64": ctypes.c_uint64, "s64": ctypes.c_int64,
    "f32": ctypes.c_float, "f64": ctypes.c_double, "ptr": ctypes.c_uint64,
}  # fmt: skip

# Elements that numpy has, with the unit roundoff of each. It has no bf16, e4m3 or e5m2.
ELEMENTS = {
    "f64": (np.float64, 2.0**-53),
    "f32": (np.float32, 2.0**-24),
    "f16": (np.float16, 2.0**-11),
    "s8": (np.int8, 0.0),
    "s32": (np.int32, 0.0),
}

# For each --dtype: elements of A and B, of C unless the JSON says otherwise, and of the sums.
DTYPES = {
    "f64": ("f64", "f64", "f64"),
    "f32": ("f32", "f32", "f32"),
    "tf32": ("f32", "f32", "f32"),
    "f16": ("f16", "f16", "f32"),
    "f16acc16": ("f16", "f16", "f16"),
    "bf16": ("bf16", "bf16", "f32"),
    "s8": ("s8", "s32", "s32"),
    "e4m3": ("e4m3", "f32", "f32"),
    "e5m2": ("e5m2", "f32", "f32"),
}

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: x / (1.0 + np.exp(-np.maximum(1.5957691216057308 * (x + 0.044715 * x**3), -700.0))),
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


class TensorMap(ctypes.Structure):
    """CUtensorMap of cuda.h: 128 bytes, which the driver writes at a multiple of 64."""

    _fields_ = [("opaque", ctypes.c_uint64 * 16)]


CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
MAP_CONSTANTS = ["data_type", "interleave", "swizzle", "l2_promotion", "oob_fill"]  # those of a tensor map, in the function's order
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size


class Cuda:
    """The few calls of the driver that it takes, each checked."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"no GPU: not run (there is no CUDA driver here: {error})")
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

    def load(self, ptx):
        """The module of the PTX text; a refusal shows the compiler's log."""
        log = ctypes.create_string_buffer(1 << 16)
        options = (ctypes.c_uint * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        module = ctypes.c_void_p()
        self.call(
            "cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx), 2, options, values,
            explain=lambda: "\n" + log.value.decode(errors="replace"),
        )  # fmt: skip
        return module

    def upload(self, array, alignment=256):
        """The address of device memory with the bytes of `array`: a multiple of `alignment` and, below 16, of no more."""
        odd = alignment if alignment < 16 else 0
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes + odd + 1))
        address = pointer.value + odd  # allocations are multiples of 256
        if array.nbytes:
            source, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, size)
        return address

    def download(self, address, array):
        """Fills `array` from device memory."""
        if array.nbytes:
            target, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
            self.call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), size)

    def tensor_map(self, value, address):
        """The parameter that the driver encodes for the array at an address, from what the contract says of it."""
        space = ctypes.create_string_buffer(ctypes.sizeof(TensorMap) + 63)
        encoded = TensorMap.from_buffer(space, -ctypes.addressof(space) % 64)
        rank = value["rank"]
        constant = {key: ctypes.c_int(value[key]["value"]) for key in MAP_CONSTANTS}
        self.call(
            "cuTensorMapEncodeTiled", ctypes.byref(encoded), constant["data_type"], ctypes.c_uint32(rank), ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*value["sizes"]), (ctypes.c_uint64 * rank)(*value["strides_bytes"]),
            (ctypes.c_uint32 * rank)(*value["box"]), (ctypes.c_uint32 * rank)(*value["element_strides"]),
            *(constant[key] for key in MAP_CONSTANTS[1:]),
        )  # fmt: skip
        return encoded

    def function(self, module, launch):
        """The kernel of a launch, allowed the shared memory and the clusters that it takes."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, launch["kernel"].encode())
        if np.prod(launch["cluster"]) > 8:
            self.call("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER, 1)
        if launch["shared_bytes"] > 0:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, launch["shared_bytes"])
        return function

    def launch(self, function, launch, values, stream=None):
        """One launch on a stream; `values` are ctypes values in the order of the parameters."""
        config = LaunchConfig()
        config.grid[:], config.block[:] = launch["grid"], launch["block"]
        config.shared_bytes, config.stream = launch["shared_bytes"], stream
        attributes = []
        if np.prod(launch["cluster"]) > 1 and not launch["cluster_declared"]:
            attributes.append(LaunchAttribute(id=CLUSTER_DIMENSION))
            attributes[-1].value[:3] = launch["cluster"]
        if launch["beside_previous"]:
            attributes.append(LaunchAttribute(id=PROGRAMMATIC_STREAM_SERIALIZATION))
            attributes[-1].value[0] = 1
        config.attributes = (LaunchAttribute * len(attributes))(*attributes)
        config.attribute_count = len(attributes)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)

    def synchronize(self):
        """Waits for all launches; an error of a kernel shows here."""
        self.call("cuCtxSynchronize")


def strided(memory, matrix):
    """The elements of a matrix, or of a batch of them, in memory: an array of (count, rows, cols)."""
    steps = (matrix.get("stride", 0), matrix["ld"], 1)
    shape = (matrix.get("count", 1), matrix["rows"], matrix["cols"])
    return np.lib.stride_tricks.as_strided(memory, shape, [step * memory.itemsize for step in steps])


def stored(matrix, element, rng):
    """Row-major matrices as the contract describes them, random in [-1, 1) or -127..127; what lies in between is NaN, or -128."""
    dtype = ELEMENTS[element][0]
    size = 0
    if matrix["rows"] and matrix["cols"]:
        last = (matrix.get("count", 1) - 1) * matrix.get("stride", 0)
        size = last + (matrix["rows"] - 1) * matrix["ld"] + matrix["cols"]
    integer = np.issubdtype(dtype, np.integer)
    memory = np.full(size, -128 if integer else np.nan, dtype)
    view = strided(memory, matrix)
    if size:
        numbers = rng.integers(-127, 128, view.shape) if integer else rng.uniform(-1, 1, view.shape)
        # Matrices that are one and the same are written more than once, and read as they ended.
        view[...] = numbers.astype(dtype)
    return memory, view


def address(of, addresses):
    """Where that lies which a contract's value names."""
    if "matrix" in of:
        return addresses[of["matrix"]]
    for kind in ("tensor", "buffer"):
        if kind in of:
            return addresses[of[kind]]
    if "elements" in of:
        return addresses["bias"]
    if "workspace" in of:
        return addresses["workspace"] + of["workspace"]
    sys.exit(f"this program does not know where {of} is")


def parameter(cuda, p, addresses):
    """The ctypes value of one parameter."""
    value = p["value"]
    if p["type"] == "tensor_map":
        return cuda.tensor_map(value, address(value["tensor_map"], addresses))
    if p["type"] not in SCALARS:
        sys.exit(f"this program does not know parameters of type {p['type']}, such as {p['name']}")
    scalar = SCALARS[p["type"]]
    if p["type"] == "ptr":
        return scalar(address(value, addresses))
    return scalar(float(value)) if p["type"] in ("f32", "f64") else scalar(int(value))


class Problem:
    """What the kernels compute: from the whole JSON, or from the launch contract and the command line."""

    def __init__(self, report, launches, options):
        def choose(name, default):
            return getattr(options, name, None) or report.get(name, default)

        self.dtype = choose("dtype", "f32")
        self.trans = choose("trans", "nn")
        if self.dtype not in DTYPES:
            sys.exit(f"there is no type {self.dtype}; known are {', '.join(DTYPES)}")
        self.operand, ctype, self.sums = DTYPES[self.dtype]
        self.ctype = choose("ctype", ctype)
        for element in (self.operand, self.ctype):
            if element not in ELEMENTS:
                sys.exit(f"numpy has no elements of type {element}, so this program can't check {self.dtype} with C in {self.ctype}")
        self.activation = choose("activation", "none")
        self.bias = choose("bias", "none")

        # Which matrices there are: a parameter of some launch points at each.
        params = [p for launch in launches for p in launch["params"]]
        pointers = [p["value"] for p in params if p["type"] == "ptr"]
        pointers += [p["value"]["tensor_map"] for p in params if p["type"] == "tensor_map"]
        self.matrices = {value["matrix"]: value for value in pointers if "matrix" in value}
        if set(self.matrices) != {"A", "B", "C"}:
            sys.exit(f"the launch contract names the matrices {sorted(self.matrices)}, and not A, B and C")
        scalars = {p["name"]: p["value"] for p in params if p["type"] in SCALARS and p["type"] != "ptr"}
        self.alpha, self.beta = (report.get(name, scalars.get(name)) for name in ("alpha", "beta"))
        if self.alpha is None or self.beta is None:
            sys.exit("neither the JSON nor a parameter says what alpha and beta are")
        if self.sums != "f64":
            self.alpha, self.beta = float(np.float32(self.alpha)), float(np.float32(self.beta))
        alignment = report.get("alignment", [16, 16, 16])
        self.alignment = dict(zip("ABC", alignment))
        c = self.matrices["C"]
        self.m, self.n = c["rows"], c["cols"]
        self.k = self.matrices["A"]["rows" if self.trans[0] == "t" else "cols"]

    def reference(self, a, b, c, bias):
        """C in double precision, and how far from it rounding may lead."""
        a, b, c = (x.astype(np.float64) for x in (a, b, c))
        op_a = a.swapaxes(1, 2) if self.trans[0] == "t" else a
        op_b = b.swapaxes(1, 2) if self.trans[1] == "t" else b
        # beta = 0 does not read C, alpha = 0 neither A nor B.
        old = self.beta * c if self.beta != 0 else np.zeros_like(c)
        new = self.alpha * (op_a @ op_b) if self.alpha != 0 else np.zeros_like(c)
        size = abs(self.alpha) * (np.abs(op_a) @ np.abs(op_b)) if self.alpha != 0 else np.zeros_like(c)
        added = {"none": 0.0, "row": bias[:, None], "column": bias[None, :]}[self.bias]
        expected = ACTIVATIONS[self.activation](new + old + added)
        size = size + np.abs(old) + np.abs(added)

        # The standard bound of a sum of k products, scaled, with C and a bias: k + 4 roundings, each of two units where tensor cores cut
        # off. tf32 rounds both factors of a product. GELU has a slope below 1.13 and an evaluation of its own within 8 units.
        unit, result_unit = ELEMENTS[self.sums][1], ELEMENTS[self.ctype][1]
        relative = 2.0 * (self.k + 4) * unit + (2.0**-10 if self.dtype == "tf32" else 0.0)
        if self.activation == "gelu":
            relative = 1.13 * relative + 8.0 * ELEMENTS["f32"][1]
        bound = (relative + (1.0 + relative) * result_unit) * size
        # Subnormal numbers round to their spacing: sums in f16 at every step, and C once.
        for element, steps in ((self.sums, 1.13 * self.k * abs(self.alpha)), (self.ctype, 1.0)):
            dtype = ELEMENTS[element][0]
            if np.issubdtype(dtype, np.floating):
                bound = bound + steps * float(np.finfo(dtype).smallest_subnormal)
        return expected, bound


def read(path):
    """The bytes of a file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")


def contract(path):
    """What `gemm --json` printed, or its "launch" alone; the latter is empty where there is nothing to launch."""
    expected = "what `tilewright gemm --json` prints is expected here"
    try:
        report = json.loads(read(path))
    except ValueError as error:
        sys.exit(f"{path} is no JSON ({error}); {expected}")
    error = report.get("error") if isinstance(report, dict) else None
    if error is not None:
        sys.exit(f"{path} holds an error of tilewright: {error.get('message', error) if isinstance(error, dict) else error}")
    launch = report.get("launch", report) if isinstance(report, dict) else report
    known = isinstance(launch, dict) and all(key in launch for key in ("kernel", "grid", "block", "params"))
    if not known and not (isinstance(report, dict) and "launch" in report and launch is None):
        sys.exit(f"{path} has no launch contract; {expected}")
    return report, launch


def files(given, known):
    """The files of NAME=FILE by the names of buffers."""
    named = dict(one.partition("=")[::2] for one in given)
    unknown = [name for name in named if name not in known or not named[name]]
    if unknown:
        sys.exit(f"{', '.join(unknown)}: give NAME=FILE, of the buffers {', '.join(known)}")
    return named


def launch_custom(ptx, launches, memory, options):
    """Launches any kernel other than a GEMM, with the contents of its buffers from files."""
    buffers = {b["name"]: b for b in memory["buffers"]}
    given, kept = files(options.give, buffers), files(options.keep, buffers)
    arrays = {}
    for name, buffer in buffers.items():
        content = read(given[name]) if name in given else bytes(buffer["bytes"] or 0)
        if len(content) < (buffer["bytes"] or 0):
            sys.exit(f"{given[name]} has {len(content)} bytes, and {name} takes {buffer['bytes']}")
        arrays[name] = np.frombuffer(bytearray(content), np.uint8)
    cuda = Cuda()
    module = cuda.load(ptx + b"\0")
    addresses = {name: cuda.upload(arrays[name], buffers[name]["alignment"]) for name in buffers}
    for one in launches:
        cuda.launch(cuda.function(module, one), one, [parameter(cuda, p, addresses) for p in one["params"]])
        print(f"{one['kernel']}: grid {one['grid']}, block {one['block']}")
    cuda.synchronize()
    for name, path in kept.items():
        cuda.download(addresses[name], arrays[name])
        arrays[name].tofile(path)
        print(f"{name}: {arrays[name].size} bytes in {path}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("ptx", help="the file that `tilewright gemm --emit` wrote")
    arguments.add_argument("json", help="what `tilewright gemm --json` printed, or its \"launch\" alone")
    alone = "default as in the JSON, else "
    arguments.add_argument("--dtype", choices=DTYPES, help=f"type of the product; {alone}f32")
    arguments.add_argument("--ctype", help=f"element type of C; {alone}what goes with the type of the product")
    arguments.add_argument("--trans", choices=["nn", "nt", "tn", "tt"], help=f"{alone}nn")
    arguments.add_argument("--bias", choices=["none", "row", "column"], help=f"{alone}none")
    arguments.add_argument("--activation", choices=ACTIVATIONS, help=f"{alone}none")
    arguments.add_argument("--give", action="append", default=[], metavar="NAME=FILE", help="the bytes of a tensor or buffer")
    arguments.add_argument("--keep", action="append", default=[], metavar="NAME=FILE", help="where to write such a buffer after the launch")
    arguments.add_argument("--seed", type=int, default=1)
    options = arguments.parse_args()

    report, launch = contract(options.json)
    ptx = read(options.ptx)
    if not ptx.strip():
        sys.exit(f"{options.ptx} is empty; the file that `tilewright gemm --emit` writes is expected here")
    if not launch:
        print("nothing to launch: the product is empty")
        return
    launches = [*launch.get("before", []), launch, *launch.get("after", [])]
    if any(isinstance(p["value"], dict) and p["value"].keys() & {"tensor", "buffer"} for p in launch["params"]):
        launch_custom(ptx, launches, launch["memory"], options)
        return
    problem = Problem(report, launches, options)

    rng = np.random.default_rng(options.seed)
    elements = {"A": problem.operand, "B": problem.operand, "C": problem.ctype}
    memory, view = {}, {}
    for name, matrix in problem.matrices.items():
        memory[name], view[name] = stored(matrix, elements[name], rng)
    length = {"none": 0, "row": problem.m, "column": problem.n}[problem.bias]
    bias, _ = stored({"rows": 1, "cols": length, "ld": length}, problem.ctype, rng)
    # Nobody may rely on what is in the workspace: these bytes are NaN in every floating-point type.
    workspace = np.full(launch.get("workspace_bytes", 0), 0xFF, np.uint8)

    cuda = Cuda()
    module = cuda.load(ptx + b"\0")
    addresses = {name: cuda.upload(memory[name], problem.alignment[name]) for name in memory}
    addresses["bias"], addresses["workspace"] = cuda.upload(bias), cuda.upload(workspace)
    for one in launches:
        cuda.launch(cuda.function(module, one), one, [parameter(cuda, p, addresses) for p in one["params"]])
    cuda.synchronize()
    result_memory = np.empty_like(memory["C"])
    cuda.download(addresses["C"], result_memory)
    result = strided(result_memory, problem.matrices["C"])

    expected, bound = problem.reference(view["A"], view["B"], view["C"], bias.astype(np.float64))
    error = np.abs(result - expected)
    passed = bool(np.all(error <= bound))  # NaN compares false
    gaps = np.ones(result_memory.size, bool)
    strided(gaps, problem.matrices["C"])[...] = False
    untouched = result_memory[gaps].tobytes() == memory["C"][gaps].tobytes()

    what = f"{problem.m}x{problem.n}x{problem.k} {problem.trans} {problem.dtype}, C in {problem.ctype}"
    for one in launches:
        print(f"{one['kernel']}: {what}, grid {one['grid']}, block {one['block']}")
    share = np.max(error / np.maximum(bound, np.finfo(np.float64).tiny))
    print(f"largest error {error.max():.3e}, {share:.3f} of its bound")
    if not untouched:
        print("a kernel wrote between the rows of C or between its matrices")
    print("passed" if passed and untouched else "FAILED")
    sys.exit(0 if passed and untouched else 1)


if __name__ == "__main__":
    main()
