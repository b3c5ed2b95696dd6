#!/usr/bin/env python3
"""Compares emitted kernels with PyTorch's products: the numbers of both with double precision, and the times of both.

    tilewright gemm --plan wgmma-f16-128x256x64+persistent --m 4096 --n 4096 --k 4096 --on none --emit kernel.ptx --json > gemm.json
    python3 examples/hosts/compare_pytorch.py kernel.ptx gemm.json [kernel.ptx gemm.json ...]

or, with the command at hand, which emits the kernel then and there (a shape alone lets it choose the plan):

    python3 examples/hosts/compare_pytorch.py --dtype bf16 --shape 8192x8192x8192 --trans nt [--plan wgmma-bf16-128x256x64+persistent]

A table of the book is measured anew by its name, with a line for each case and geometric means:

    python3 examples/hosts/compare_pytorch.py --table attention|block_scaled|cross_entropy|cublas|expert_layer|gemm|gemv|grouped|layers|norms_backward|rows|transpose|varlen|weight_only

No code of Tilewright's host takes part: examples/launch.py loads the text, encodes the tensor maps and launches, through ctypes and the CUDA
driver. Both sides are captured in CUDA graphs that rotate through operands larger than the caches, and the graphs are replayed
alternately, so that both run at the same clocks. Printed are medians.

A kernel passes if every element is within the bound of a sum of k products, and the largest error is at most four times PyTorch's.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    sys.exit("this program needs PyTorch: python3 -m pip install torch")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import expert_layer  # noqa: E402
import launch as host  # noqa: E402  examples/launch.py

# Elements of A and B, the unit roundoff of the sums, and what cutting off and rounding of the factors add, relative, for k products.
DTYPES = {
    "f64": (torch.float64, 2.0**-53, lambda k: 0.0),
    "f32": (torch.float32, 2.0**-24, lambda k: 0.0),
    "tf32": (torch.float32, 2.0**-24, lambda k: 2.0**-10),
    "f16": (torch.float16, 2.0**-24, lambda k: 0.0),
    "bf16": (torch.bfloat16, 2.0**-24, lambda k: 0.0),
    "s8": (torch.int8, 0.0, lambda k: 0.0),
    # Tensor cores keep the sums of 8-bit floats to 13 bits.
    "e4m3": (torch.float8_e4m3fn, 2.0**-24, lambda k: k / 16 * 2.0**-12),
    "e5m2": (torch.float8_e5m2, 2.0**-24, lambda k: k / 16 * 2.0**-12),
}

# Elements of C, with the unit roundoff of each.
RESULTS = {
    "f64": (torch.float64, 2.0**-53),
    "f32": (torch.float32, 2.0**-24),
    "f16": (torch.float16, 2.0**-11),
    "bf16": (torch.bfloat16, 2.0**-8),
    "s32": (torch.int32, 0.0),
}

ROTATION_BYTES = 256 << 20  # operands rotate through so much memory: several times the level 2 cache
ROUNDS = 15


class Contract:
    """One product: what `gemm --json` says of it."""

    def __init__(self, report, launch):
        self.dtype, self.ctype, self.trans = (report.get(key) for key in ("dtype", "ctype", "trans"))
        self.m, self.n, self.k = (report.get(key) for key in "mnk")
        self.plan = report.get("plan")
        self.launches = [*launch.get("before", []), launch, *launch.get("after", [])]
        self.workspace_bytes = launch.get("workspace_bytes", 0)
        plain = {"alpha": 1, "beta": 0, "bias": "none", "activation": "none", "batch": {"count": 1}}
        for key, value in plain.items():
            given = report.get(key)
            if key == "batch":
                given = {"count": (given or {}).get("count")}
            if given != value:
                sys.exit(f"this program compares C = op(A) op(B) alone: the contract has {key} {given}, and not {value}")
        if self.dtype not in DTYPES or self.ctype not in RESULTS:
            sys.exit(f"this program does not compare {self.dtype} with C in {self.ctype}")
        rows_a = self.m if self.trans[0] == "n" else self.k
        rows_b = self.k if self.trans[1] == "n" else self.n
        self.shape_a = (rows_a, self.m + self.k - rows_a)
        self.shape_b = (rows_b, self.k + self.n - rows_b)

    def __str__(self):
        return f"{self.plan} {self.m}x{self.n}x{self.k} {self.trans} {self.dtype}, C in {self.ctype}"


class Operands:
    """A, B and C of one product; C of PyTorch's product beside it."""

    def __init__(self, contract):
        dtype = DTYPES[contract.dtype][0]
        self.trans = contract.trans
        self.a, self.b = (self.random(shape, dtype) for shape in (contract.shape_a, contract.shape_b))
        result = RESULTS[contract.ctype][0]
        # What a kernel leaves out shows.
        fill = float("nan") if result.is_floating_point else -(2**31)
        self.c, self.theirs = (torch.full((contract.m, contract.n), fill, dtype=result, device="cuda") for _ in range(2))

    @staticmethod
    def random(shape, dtype):
        if dtype == torch.int8:
            return torch.randint(-127, 128, shape, dtype=dtype, device="cuda")
        return torch.randn(shape, dtype=torch.float32, device="cuda").to(dtype)

    def factors(self):
        """op(A) and op(B), as views."""
        return (x.t() if trans == "t" else x for x, trans in zip((self.a, self.b), self.trans))

    def bytes(self):
        return sum(x.nbytes for x in (self.a, self.b, self.c))

    def torch_product(self):
        """PyTorch's product, into memory of its own."""
        a, b = self.factors()
        if self.a.dtype == torch.int8:
            torch._int_mm(a, b, out=self.theirs)
        elif self.a.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            one = ONE.setdefault("one", torch.ones((), device="cuda"))
            self.theirs = torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=self.c.dtype, use_fast_accum=True)
        else:
            torch.matmul(a, b, out=self.theirs)


ONE = {}


class Kernels:
    """The kernels of a contract on the current stream, launched by examples/launch.py."""

    def __init__(self, cuda, module, contract):
        self.cuda, self.contract = cuda, contract
        self.functions = [cuda.function(module, one) for one in contract.launches]
        # Nobody may rely on what is in the workspace: these bytes are NaN in every floating-point type.
        self.workspace = torch.full((contract.workspace_bytes + 1,), 0xFF, dtype=torch.uint8, device="cuda")

    def bind(self, operands):
        """The parameters of each launch, tensor maps encoded."""
        addresses = {"A": operands.a.data_ptr(), "B": operands.b.data_ptr(), "C": operands.c.data_ptr()}
        addresses["workspace"] = self.workspace.data_ptr()
        return [[host.parameter(self.cuda, p, addresses) for p in one["params"]] for one in self.contract.launches]

    def launch(self, bound):
        stream = torch.cuda.current_stream().cuda_stream
        for function, one, values in zip(self.functions, self.contract.launches, bound):
            self.cuda.launch(function, one, values, stream)


def errors(contract, operands, theirs):
    """The largest error relative to the largest element, of ours and of PyTorch's, and the largest share of its bound that an error of ours has."""
    a, b = (x.double() for x in operands.factors())
    exact = a @ b
    _, unit, more = DTYPES[contract.dtype]
    relative = 2 * (contract.k + 4) * unit + more(contract.k)
    bound = (relative + (1 + relative) * RESULTS[contract.ctype][1]) * (a.abs() @ b.abs())
    error = (operands.c.double() - exact).abs()
    share = (error / bound.clamp_min(0.5 if operands.c.dtype == torch.int32 else 1e-30)).max().item()
    largest = exact.abs().max().item() or 1.0
    their_error = (operands.theirs.double() - exact).abs().max().item() / largest if theirs else None
    return error.max().item() / largest, their_error, share


def graph(work):
    """A CUDA graph of some work."""
    # Once outside of the graph: libraries make their plans and their memory.
    for one in work:
        one()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for one in work:
            one()
    return captured


def milliseconds(graphs, products):
    """Medians of the time of one product, of graphs that are replayed alternately."""
    times = [[] for _ in graphs]
    for repeat in range(ROUNDS + 3):
        for captured, own in zip(graphs, times):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            captured.replay()
            end.record()
            end.synchronize()
            if repeat >= 3:  # the first ones warm up
                own.append(start.elapsed_time(end) / products)
    return [statistics.median(own) for own in times]


def compare(cuda, module, contract):
    """One line about one product: the ratio of its speed to PyTorch's, none where PyTorch has no such product, and whether it is right."""
    # PyTorch rounds the factors to tf32 only if it may.
    torch.backends.cuda.matmul.allow_tf32 = contract.dtype == "tf32"
    kernels = Kernels(cuda, module, contract)
    operands = [Operands(contract)]
    while len(operands) < 32 and len(operands) * operands[0].bytes() < ROTATION_BYTES:
        operands.append(Operands(contract))
    bound = [kernels.bind(one) for one in operands]
    work = [[lambda values=values: kernels.launch(values) for values in bound]]
    missing = ""
    try:
        operands[0].torch_product()
        torch.cuda.synchronize()
        work.append([one.torch_product for one in operands])
    except (RuntimeError, TypeError, ValueError) as error:
        missing = str(error).splitlines()[0]
    times = milliseconds([graph(one) for one in work], len(operands))
    ours, theirs, share = errors(contract, operands[-1], not missing)
    passed = share <= 1 and ours == ours and (theirs is None or ours <= 4 * theirs + 1e-12)
    speed = [2 * contract.m * contract.n * contract.k / ms / 1e9 for ms in times]
    line = f"{'ok  ' if passed else 'FAIL'} {contract}: error {ours:.2e}, {share:.3f} of its bound; {times[0]:.4f} ms, {speed[0]:.0f} T/s"
    if missing:
        line += f"; PyTorch has no such product ({missing})"
    else:
        line += f"; PyTorch error {theirs:.2e}, {times[1]:.4f} ms, {speed[1]:.0f} T/s; {times[1] / times[0]:.3f} of its speed"
    print(line, flush=True)
    return None if missing else times[1] / times[0], passed


class Kernel:
    """A kernel that comes with Tilewright, emitted for one configuration, and the tensors that its contract names."""

    def __init__(self, gpu, name, arguments):
        self.gpu = gpu
        path = os.path.join(gpu.folder, name + ".ptx")
        report = json.loads(gpu.command(["kernel", name, *arguments, "--on", "none", "--emit", path]))
        if "error" in report:
            sys.exit(f"tilewright kernel {name} {' '.join(arguments)}: {report['error']['message']}")
        launch = report["launch"]
        self.launches = [*launch.get("before", []), launch, *launch.get("after", [])]
        self.workspace_bytes = launch.get("workspace_bytes", 0)
        module = gpu.module(host.read(path))
        self.functions = [gpu.cuda.function(module, one) for one in self.launches]

    def bind(self, tensors):
        """The parameters of each launch for tensors by their names."""
        addresses = {name: tensor.data_ptr() for name, tensor in tensors.items()}
        return [[host.parameter(self.gpu.cuda, p, addresses) for p in one["params"]] for one in self.launches]

    def launch(self, bound):
        stream = torch.cuda.current_stream().cuda_stream
        for function, one, values in zip(self.functions, self.launches, bound):
            self.gpu.cuda.launch(function, one, values, stream)


class Gpu:
    """The driver, the modules that are loaded, and the command that emits kernels."""

    def __init__(self, options, folder):
        self.cuda, self.options, self.folder, self.modules = host.Cuda(), options, folder, {}

    def module(self, text):
        if text not in self.modules:
            self.modules[text] = self.cuda.load(text + b"\0")
        return self.modules[text]

    def command(self, arguments):
        """What the command prints for this GPU's architecture, as JSON."""
        line = [self.options.tilewright, *arguments, "--json", "--arch", "sm_%d%d" % torch.cuda.get_device_capability()]
        return self.run(line)

    def run(self, line):
        try:
            return subprocess.run(line, stdout=subprocess.PIPE, check=False).stdout
        except OSError as error:
            sys.exit(f"{self.options.tilewright}: {error.strerror}; give the command with --tilewright, or files that it wrote")

    def gemm(self, dtype, trans, shape, plan=None):
        """A GEMM that the command emits: its module and contract. Without a plan, the command chooses."""
        path = os.path.join(self.folder, "gemm.ptx")
        line = ["gemm", "--on", "none", "--emit", path, "--trans", trans]
        for name, value in [*zip("mnk", shape), ("plan", plan), ("dtype", dtype)]:
            if value:
                line += [f"--{name}", str(value)]
        report = json.loads(self.command(line))
        if "error" in report:
            sys.exit(f"tilewright {' '.join(line)}: {report['error']['message']}")
        return self.module(host.read(path)), Contract(report, report["launch"])


def attention_cases():
    """Batch, heads, heads of keys, sequence, elements of a head, causal: 16,384 tokens of 2048 elements, and 32 heads on 8 of keys."""
    for d in (64, 128, 256):
        for causal in (False, True):
            for length in (2048, 4096, 8192, 16384):
                yield 16384 // length, 2048 // d, 2048 // d, length, d, causal
    for causal in (False, True):
        for length in (2048, 4096, 8192, 16384):
            yield 16384 // length, 32, 8, length, 128, causal


class Attention:
    """One case: the tensors, the emitted kernel, and PyTorch's functions."""

    def __init__(self, gpu, case):
        self.batch, self.heads, self.kv_heads, self.length, self.d, self.causal = case
        shapes = [(self.batch, heads, self.length, self.d) for heads in (self.heads, self.kv_heads, self.kv_heads)]
        self.q, self.k, self.v = (torch.randn(shape, device="cuda", dtype=torch.float32).bfloat16() for shape in shapes)
        self.o = torch.full_like(self.q, float("nan"))
        # The rows that are checked: the first of a causal kernel have the largest errors.
        self.rows = torch.randint(0, self.length, (2, 256), device="cuda")
        sizes = {"batch": self.batch, "heads": self.heads, "kv-heads": self.kv_heads, "queries": self.length, "keys": self.length, "head-dim": self.d}
        arguments = ["--dtype", "bf16"] + [word for name, size in sizes.items() for word in (f"--{name}", str(size))]
        self.kernel = Kernel(gpu, "attention", arguments + ["--causal"] * self.causal)
        self.bound = self.kernel.bind({"q": self.q, "k": self.k, "v": self.v, "o": self.o})

    def theirs(self, backend):
        with torch.nn.attention.sdpa_kernel(backend):
            grouped = {"enable_gqa": True} if self.heads > self.kv_heads else {}
            return torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=self.causal, **grouped)

    def error(self, o):
        """The largest error of some rows of the first and the last head, against double precision."""
        worst = 0.0
        for batch, head, rows in ((0, 0, self.rows[0]), (self.batch - 1, self.heads - 1, self.rows[1])):
            k, v = (x[batch, head // (self.heads // self.kv_heads)].double() for x in (self.k, self.v))
            scores = self.q[batch, head, rows].double() @ k.t() / math.sqrt(self.d)
            if self.causal:
                scores.masked_fill_(torch.arange(self.length, device="cuda") > rows[:, None], float("-inf"))
            exact = scores.softmax(-1) @ v
            worst = max(worst, (o[batch, head, rows].double() - exact).abs().max().item())
        return worst

    def compare(self):
        """The ratios of speed to cuDNN and to the flash backend, and whether the result is right."""
        cudnn, flash = torch.nn.attention.SDPBackend.CUDNN_ATTENTION, torch.nn.attention.SDPBackend.FLASH_ATTENTION
        work = [lambda: self.kernel.launch(self.bound), lambda: self.theirs(cudnn), lambda: self.theirs(flash)]
        times = milliseconds([graph([one] * 3) for one in work], 3)
        mine, other = self.error(self.o), self.error(self.theirs(cudnn))
        passed = mine <= 2 * other + 1e-3
        operations = 4 * self.batch * self.heads * self.length**2 * self.d / (2 if self.causal else 1)
        speed = [operations / ms / 1e9 for ms in times]
        print(
            f"{'ok  ' if passed else 'FAIL'} {self.kernel.launches[0]['kernel']} {self.batch}x{self.heads}/{self.kv_heads}x{self.length}x{self.d}"
            f" {'causal' if self.causal else 'full'}: error {mine:.1e} (cuDNN {other:.1e}); {times[0]:.4f} ms, {speed[0]:.0f} TFLOP/s;"
            f" cuDNN {speed[1]:.0f}, flash {speed[2]:.0f}; {times[1] / times[0]:.3f} of cuDNN, {times[2] / times[0]:.3f} of flash",
            flush=True,
        )
        return times[1] / times[0], times[2] / times[0], passed


def mean(ratios):
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def table_of_attention(gpu):
    """All cases of attention, and geometric means."""
    rows = {}
    for case in attention_cases():
        _, heads, kv_heads, _, d, causal = case
        name = f"d {d}, {'causal' if causal else 'full'}{'' if heads == kv_heads else f', {heads} heads on {kv_heads}'}"
        rows.setdefault(name, []).append(Attention(gpu, case).compare())
        torch.cuda.empty_cache()
    for name, of in rows.items():
        print(f"{name}: {mean([row[0] for row in of]):.3f} of cuDNN (least {min(row[0] for row in of):.3f}), {mean([row[1] for row in of]):.3f} of flash")
    plain = [row for name, of in rows.items() if "heads on" not in name for row in of]
    print(f"without groups: {mean([row[0] for row in plain]):.3f} of cuDNN (least {min(row[0] for row in plain):.3f}), {mean([row[1] for row in plain]):.3f} of flash")
    return all(row[2] for of in rows.values() for row in of)


# The shapes of the tables of GEMMs.
SHAPES = [
    *((n, n, n) for n in (1000, 1024, 2048, 4096, 6144, 8192)), (4095, 4097, 4093),
    (16, 8192, 8192), (128, 8192, 8192), (8192, 128, 8192), (4096, 4096, 128), (512, 512, 65536),
]  # fmt: skip
TYPES = {"f16": "nn", "bf16": "nt", "tf32": "nn", "f32": "nn", "f64": "nn", "e4m3": "nt", "s8": "nt"}

# n x k of layers of Llama 3 8B and 70B, Qwen 3 32B and DeepSeek V3, and tokens: those of `tilewright bench --set llm`.
LAYERS = [
    (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096), (10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672),
    (10240, 5120), (5120, 8192), (51200, 5120), (5120, 25600), (2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168),
    (7168, 2048), (36864, 7168), (7168, 18432),
]  # fmt: skip
TOKENS = [1, 2, 4, 8, 16, 32, 64, 100, 128, 200, 256, 300, 512, 700, 1024, 2048, 4096, 8192]


def gemms(gpu, name, cases):
    """GEMMs (type, transposes, shape), and the geometric mean of their ratios to PyTorch."""
    ratios, passed = [], True
    for dtype, trans, shape in cases:
        ratio, right = compare(gpu.cuda, *gpu.gemm(dtype, trans, shape))
        ratios += [ratio] if ratio else []
        passed &= right
        torch.cuda.empty_cache()
    print(f"{name}: {mean(ratios):.3f} of PyTorch's speed ({min(ratios, default=0):.3f} to {max(ratios, default=0):.3f})", flush=True)
    return passed


def table_of_gemm(gpu):
    """Twelve shapes of each type."""
    return all([gemms(gpu, dtype, [(dtype, trans, shape) for shape in SHAPES]) for dtype, trans in TYPES.items()])


def table_of_layers(gpu):
    """Layers of language models by tokens, in bf16 and e4m3."""
    cases = [(dtype, m, [(dtype, "nt", (m, n, k)) for n, k in LAYERS]) for dtype in ("bf16", "e4m3") for m in TOKENS]
    return all([gemms(gpu, f"{dtype}, {m} tokens", of) for dtype, m, of in cases])


def table_of_cublas(gpu):
    """The same shapes against the fastest algorithm of cublasLt, which `tilewright bench` finds."""
    passed = True
    for dtype, trans in TYPES.items():
        shapes = ",".join("x".join(map(str, shape)) for shape in [*SHAPES, (16384, 16384, 16384)])
        line = [gpu.options.tilewright, "bench", "--dtype", dtype, "--trans", trans, "--shapes", shapes, "--repeats", "20"]
        print(f"{dtype} {trans}:", flush=True)
        passed &= subprocess.run(line, check=False).returncode == 0
    return passed


# Kernels of rows: PyTorch's function, of which the operands beside x are the contract's; how far a result in [-1, 1] may be from it.
ROWS = {
    "softmax": lambda x, w: torch.softmax(x, -1),
    "rms_norm": lambda x, w: torch.nn.functional.rms_norm(x, x.shape[-1:], w["w"], 1e-5),
    "layer_norm": lambda x, w: torch.nn.functional.layer_norm(x, x.shape[-1:], w["w"], w["b"], 1e-5),
    "row_sums": lambda x, w: x.sum(-1, dtype=max(x.dtype, torch.float32, key=lambda t: t.itemsize)),
    "transpose": lambda x, w: x.t().contiguous(),
}
MATRICES = [(16384, 4096), (131072, 1024), (4096, 32768)]


def operand_sets(kernel, make):
    """The tensors of a contract by name, as often as rotation takes."""
    all_parameters = [p for launch in kernel.launches for p in launch["params"]]
    values = {p["name"]: p["value"] for p in all_parameters if isinstance(p["value"], dict) and "tensor" in p["value"]}
    element = {"s8": torch.int8, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn, "s32": torch.int32}
    sets = []
    while not sets or len(sets) < 32 and sum(t.nbytes for one in sets for t in one.values()) < ROTATION_BYTES:
        sets.append({t: make(t, tuple(v["shape"]), element[v["dtype"]]) for t, v in values.items()})
    return sets


def streaming(gpu, name, dtype, shape):
    """One kernel that reads a matrix and writes one, beside PyTorch's function and a copy: the shares of the copy's bandwidth, and whether it is right."""
    rows, cols = shape
    kernel = Kernel(gpu, name, ["--dtype", dtype, "--rows", str(rows), "--cols", str(cols)])
    sets = operand_sets(kernel, lambda _, shape, of: Operands.random(shape, of))
    bound = [kernel.bind(one) for one in sets]
    target = torch.empty_like(sets[0]["x"])
    work = [
        [lambda b=b: kernel.launch(b) for b in bound],
        [lambda one=one: ROWS[name](one["x"], one) for one in sets],
        [lambda one=one: target.copy_(one["x"]) for one in sets],
    ]
    ours, theirs, copy = milliseconds([graph(one) for one in work], len(sets))
    doubles = {t: x.double() for t, x in sets[-1].items()}
    exact = ROWS[name](doubles["x"], doubles)
    error = ((doubles["y"] - exact).abs() / (exact.abs() + exact.abs().mean())).max().item()
    passed = error <= {"f32": 1e-4, "f16": 2e-3, "bf16": 1.6e-2, "s8": 0}[dtype]
    moved = sum(sets[0][t].nbytes for t in ("x", "y"))
    # A copy reads and writes as many bytes as x has.
    share = [moved / ms / (2 * sets[0]["x"].nbytes / copy) for ms in (ours, theirs)]
    print(
        f"{'ok  ' if passed else 'FAIL'} {name} {dtype} {rows}x{cols}: error {error:.1e}; {moved / ours / 1e6:.0f} GB/s, {share[0]:.2f} of a copy;"
        f" PyTorch {moved / theirs / 1e6:.0f} GB/s, {share[1]:.2f} of a copy; {theirs / ours:.2f} of its speed",
        flush=True,
    )
    torch.cuda.empty_cache()
    return passed


def table_of_rows(gpu):
    """Softmax, norms and sums of rows."""
    names = [name for name in ROWS if name != "transpose"]
    cases = [(name, dtype, shape) for name in names for dtype in ("f32", "bf16") for shape in MATRICES]
    cases += [(name, "bf16", shape) for name in names for shape in ((16383, 4099), (1024, 131072))]
    return all([streaming(gpu, *case) for case in cases])


def norm_backward(gpu, name, dtype, shape):
    """The backward of a norm beside PyTorch's and a copy."""
    rows, cols = shape
    kernel = Kernel(gpu, name, ["--backward", "--dtype", dtype, "--rows", str(rows), "--cols", str(cols)])
    sets = operand_sets(kernel, lambda _, shape, of: Operands.random(shape, of))
    workspace = torch.empty(kernel.workspace_bytes, dtype=torch.uint8, device="cuda")
    bound = [kernel.bind({**one, "workspace": workspace}) for one in sets]
    target = torch.empty_like(sets[0]["x"])

    def backward(one, of):
        # The functions that autograd calls: it would run on another stream than the graph.
        x, w, dy = (one[t].to(of) for t in ("x", "w", "dy"))
        if name == "rms_norm":
            _, r = torch.ops.aten._fused_rms_norm(x, (cols,), w, 1e-5)
            return lambda: torch.ops.aten._fused_rms_norm_backward(dy, x, (cols,), r, w, [True, True])
        b = torch.zeros_like(w)
        _, mean, r = torch.ops.aten.native_layer_norm(x, (cols,), w, b, 1e-5)
        return lambda: torch.ops.aten.native_layer_norm_backward(dy, x, (cols,), mean, r, w, b, [True] * 3)

    theirs = [backward(one, sets[0]["x"].dtype) for one in sets[:2]]
    work = [
        [lambda b=b: kernel.launch(b) for b in bound],
        [theirs[i % len(theirs)] for i in range(len(sets))],
        [lambda one=one: target.copy_(one["x"]) for one in sets],
    ]
    ours, other, copy = milliseconds([graph(one) for one in work], len(sets))
    error = 0
    for own, exact in zip(("dx", "dw", "db"), backward(sets[-1], torch.float64)()):
        error = max(error, ((sets[-1][own].double() - exact).abs() / (exact.abs() + exact.abs().mean())).max().item())
    passed = error <= {"f32": 1e-4, "f16": 4e-3, "bf16": 3.2e-2}[dtype]
    # x and dy are read, dx is written.
    share = 3 * sets[0]["x"].nbytes / ours / (2 * sets[0]["x"].nbytes / copy)
    print(
        f"{'ok  ' if passed else 'FAIL'} {name} backward {dtype} {rows}x{cols}: error {error:.1e}; {3 * sets[0]['x'].nbytes / ours / 1e6:.0f} GB/s,"
        f" {share:.2f} of a copy; PyTorch {other:.4f} ms, {other / ours:.2f} of its speed",
        flush=True,
    )
    torch.cuda.empty_cache()
    return passed


def table_of_norms_backward(gpu):
    """The backward of norms, of rows that stay in registers and of longer ones."""
    shapes = ((65536, 1024), (32768, 2048), (16384, 4096), (8192, 8192), (16383, 4099), (4096, 16384))
    return all([norm_backward(gpu, name, dtype, shape) for name in ("rms_norm", "layer_norm") for dtype in ("bf16", "f32") for shape in shapes])


def table_of_transpose(gpu):
    """Transposes."""
    return all([streaming(gpu, "transpose", dtype, shape) for dtype in ("f32", "f16", "s8") for shape in MATRICES])


# Rows and columns of weights: 32 MiB to 1 GiB in bf16.
WEIGHTS = [(4096, 4096), (8192, 4096), (8192, 8192), (28672, 4096), (28672, 8192), (128256, 4096)]


def gemv(gpu, dtype, m, shape, most):
    """One product of few rows beside PyTorch's: bytes of w a second, and their share of what `torch.sum` reads."""
    n, k = shape
    kernel = Kernel(gpu, "gemv", ["--dtype", dtype, "--m", str(m), "--n", str(n), "--k", str(k)])
    sets = operand_sets(kernel, lambda _, shape, of: Operands.random(shape, of))
    bound = [kernel.bind(one) for one in sets]
    work = [[lambda b=b: kernel.launch(b) for b in bound]]
    if dtype != "e4m3":
        work.append([lambda one=one: one["x"] @ one["w"].t() for one in sets])
    times = milliseconds([graph(one) for one in work], len(sets))
    last = sets[-1]
    exact = last["x"].double() @ last["w"].double().t()
    bound_of_error = last["x"].double().abs() @ last["w"].double().abs().t() * 2.0 ** (-11 if dtype == "e4m3" else -20) + exact.abs() * 2.0**-8
    passed = bool(((last["y"].double() - exact).abs() <= bound_of_error).all())
    speed = [last["w"].nbytes / ms / 1e6 for ms in times]
    beside = f"; PyTorch {speed[1]:.0f} GB/s, {times[1] / times[0]:.2f} of its speed" if len(times) > 1 else ""
    print(
        f"{'ok  ' if passed else 'FAIL'} {kernel.launches[0]['kernel']} {m}x{n}x{k}: w of {last['w'].nbytes >> 20} MiB in {times[0]:.4f} ms,"
        f" {speed[0]:.0f} GB/s, {speed[0] / most:.2f} of a sum{beside}",
        flush=True,
    )
    torch.cuda.empty_cache()
    return passed


def table_of_gemv(gpu):
    """Products of 1, 8 and 16 rows with weights of 32 MiB and more."""
    large = torch.ones(1 << 29, dtype=torch.bfloat16, device="cuda")
    # The GB/s of a sum over 1 GiB.
    most = large.nbytes / milliseconds([graph([large.sum])], 1)[0] / 1e6
    del large
    print(f"torch.sum over 1 GiB: {most:.0f} GB/s")
    return all([gemv(gpu, dtype, m, shape, most) for dtype in ("bf16", "f16", "e4m3") for shape in WEIGHTS for m in (1, 8, 16)])


def cross_entropy(gpu, dtype, shape):
    """Cross entropy with its gradient beside PyTorch's two passes and a copy of the logits."""
    rows, cols = shape
    kernel = Kernel(gpu, "cross_entropy", ["--dtype", dtype, "--rows", str(rows), "--cols", str(cols)])

    def make(name, shape, of):
        return torch.randint(0, cols, shape, dtype=of, device="cuda") if name == "target" else Operands.random(shape, of)

    sets = operand_sets(kernel, make)
    bound = [kernel.bind(one) for one in sets]
    x, target = sets[0]["x"].clone().requires_grad_(), sets[0]["target"].long()
    copied = torch.empty_like(sets[0]["x"])

    def theirs():
        return torch.autograd.grad(torch.nn.functional.cross_entropy(x, target), x)

    work = [[lambda b=b: kernel.launch(b) for b in bound], [lambda one=one: copied.copy_(one["x"]) for one in sets], [theirs] * len(sets)]
    ours, copy, other = milliseconds([graph(one) for one in work], len(sets))
    some = sets[-1]["x"][:256].double().requires_grad_()
    exact = torch.nn.functional.cross_entropy(some, sets[-1]["target"][:256].long(), reduction="none")
    (slope,) = torch.autograd.grad(exact.sum() / rows, some)
    error = (sets[-1]["loss"][:256].double() - exact).abs().max().item()
    of_gradient = ((sets[-1]["dx"][:256].double() - slope).abs() / (slope.abs() + slope.abs().mean())).max().item()
    passed = error <= 1e-3 and of_gradient <= {"f32": 1e-4, "f16": 2e-2, "bf16": 1.6e-2}[dtype]
    print(
        f"{'ok  ' if passed else 'FAIL'} cross_entropy {dtype} {rows}x{cols}: error {error:.1e}, of the gradient {of_gradient:.1e}; {ours:.4f} ms,"
        f" {copy / ours:.2f} of a copy; PyTorch {other:.4f} ms, {other / ours:.2f} of its speed",
        flush=True,
    )
    torch.cuda.empty_cache()
    return passed


def table_of_cross_entropy(gpu):
    """The vocabularies of language models."""
    return all([cross_entropy(gpu, dtype, shape) for dtype in ("bf16", "f32") for shape in ((8192, 128256), (8192, 32000), (16384, 50257))])


# Groups, rows of a group on average, n, k.
EXPERTS = [(4, 8192, 4096, 7168), (8, 4096, 7168, 2048), (32, 256, 4096, 7168), (32, 64, 7168, 2048)]


def group_ends(groups, rows, even):
    """The ends of groups: of as many rows each, or one with half of the rows and a quarter of the groups empty."""
    if even:
        sizes = [rows] * groups
    else:
        some, left = groups - groups // 4 - 1, groups * rows - groups * rows // 2
        sizes = [groups * rows // 2] + [left * (i + 1) // some - left * i // some for i in range(some)]
        # Empty groups are between others.
        for i in range(groups // 4):
            sizes.insert(4 * i + 1, 0)
    return torch.tensor(sizes, dtype=torch.int32, device="cuda").cumsum(0, dtype=torch.int32)


def grouped(gpu, dtype, case, even):
    """One grouped product beside PyTorch's: the ratio of its speed, and whether it is right."""
    groups, rows, n, k = case
    m = groups * rows
    sizes = {"dtype": dtype, "groups": groups, "m": m, "n": n, "k": k}
    kernel = Kernel(gpu, "grouped", [word for name, size in sizes.items() for word in (f"--{name}", str(size))])
    ends = group_ends(groups, rows, even)

    def make(name, shape, of):
        if name == "offsets":
            return ends.clone()
        if name in ("scale_a", "scale_b"):
            return torch.rand(shape, device="cuda") + 0.5
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(of)

    sets = operand_sets(kernel, make)
    workspace = torch.full((kernel.workspace_bytes,), 0xFF, dtype=torch.uint8, device="cuda")
    bound = [kernel.bind({**one, "workspace": workspace}) for one in sets]

    def theirs(one):
        b = one["b"].transpose(-2, -1)
        if dtype == "bf16":
            return torch._grouped_mm(one["a"], b, offs=one["offsets"])
        scales = one["scale_a"], one["scale_b"]
        return torch._scaled_grouped_mm(one["a"], b, *scales, offs=one["offsets"], out_dtype=torch.bfloat16, use_fast_accum=True)

    work = [[lambda b=b: kernel.launch(b) for b in bound], [lambda one=one: theirs(one) for one in sets]]
    times = milliseconds([graph(one) for one in work], len(sets))
    last, passed, error, other = sets[-1], True, 0.0, theirs(sets[-1])
    kernel.launch(bound[-1])
    begin = 0
    for group, end in enumerate(ends.tolist()):
        # Rows at even distances, and the first and the last.
        some = sorted({begin, end - 1, *range(begin, end, max(1, (end - begin) // 64))}) if end > begin else []
        begin = end
        if not some:
            continue
        a, b = last["a"][some].double(), last["b"][group].double().t()
        exact, size = a @ b, a.abs() @ b.abs()
        if dtype != "bf16":
            scale = last["scale_a"][some, None].double() * last["scale_b"][group].double()
            exact, size = exact * scale, size * scale
        relative = 2 * (k + 4) * DTYPES[dtype][1] + DTYPES[dtype][2](k) + 2.0**-22
        allowed = relative * size + (1 + relative) * RESULTS["bf16"][1] * exact.abs()
        mine = (last["c"][some].double() - exact).abs()
        passed &= bool((mine <= allowed).all())
        error = max(error, (mine.max() / exact.abs().max()).item())
        passed &= mine.max().item() <= 4 * (other[some].double() - exact).abs().max().item() + 1e-12
    speed = [2 * m * n * k / ms / 1e9 for ms in times]
    print(
        f"{'ok  ' if passed else 'FAIL'} {kernel.launches[-1]['kernel']} {groups}x{rows} n{n} k{k} {'even' if even else 'uneven'}: error {error:.1e};"
        f" {times[0]:.4f} ms, {speed[0]:.0f} T/s; PyTorch {times[1]:.4f} ms, {speed[1]:.0f} T/s; {times[1] / times[0]:.3f} of its speed",
        flush=True,
    )
    torch.cuda.empty_cache()
    return times[1] / times[0], passed


def table_of_grouped(gpu):
    """Grouped products of mixtures of experts, groups of as many rows and uneven ones; e4m3 with fast accumulation on both sides."""
    right = True
    for dtype in ("bf16", "e4m3"):
        for even in (True, False):
            rows = [grouped(gpu, dtype, case, even) for case in EXPERTS]
            ratios = [ratio for ratio, _ in rows]
            right &= all(passed for _, passed in rows)
            print(f"{dtype} {'even' if even else 'uneven'}: {mean(ratios):.3f} of PyTorch's speed ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return right


def varlen(gpu, sequences, length, d, causal):
    """Attention over sequences of one length, as any lengths, beside our kernel for sequences of one length: the ratio of its speed, and whether it is right."""
    heads, tokens = 2048 // d, sequences * length
    sizes = {"dtype": "bf16", "heads": heads, "kv-heads": heads, "head-dim": d, "batch": sequences}
    common = [word for name, size in sizes.items() for word in (f"--{name}", str(size))] + ["--causal"] * causal
    both = [
        Kernel(gpu, "attention", common + ["--queries", str(tokens), "--keys", str(tokens), "--varlen"]),
        Kernel(gpu, "attention", common + ["--queries", str(length), "--keys", str(length), "--layout", "bshd"]),
    ]
    q, k, v = (torch.randn((sequences, length, heads, d), device="cuda", dtype=torch.float32).bfloat16() for _ in "qkv")
    results = [torch.full_like(q, float("nan")) for _ in both]
    ends = (torch.arange(1, sequences + 1, device="cuda") * length).to(torch.int32)
    bound = []
    for kernel, o in zip(both, results):
        tensors = {"q": q, "k": k, "v": v, "o": o, "query_ends": ends, "key_ends": ends}
        if kernel.workspace_bytes:
            tensors["workspace"] = torch.full((kernel.workspace_bytes,), 0xFF, dtype=torch.uint8, device="cuda")
        bound.append(kernel.bind(tensors))
    work = [lambda kernel=kernel, one=one: kernel.launch(one) for kernel, one in zip(both, bound)]
    times = milliseconds([graph([one] * 3) for one in work], 3)
    exact = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2)[:1, :2].double() for x in (q, k, v)), is_causal=causal).transpose(1, 2)
    errors = [(o[:1, :, :2].double() - exact).abs().max().item() for o in results]
    difference = (results[0].double() - results[1].double()).abs().max().item()
    passed = errors[0] <= 2 * errors[1] + 1e-3 and difference <= 0.02
    print(
        f"{'ok  ' if passed else 'FAIL'} {both[0].launches[-1]['kernel']} {sequences}x{length}x{d} {'causal' if causal else 'full'}: error {errors[0]:.1e} ({errors[1]:.1e});"
        f" {times[0]:.4f} ms, of one length {times[1]:.4f} ms; {times[1] / times[0]:.3f} of its speed",
        flush=True,
    )
    return times[1] / times[0], passed


def table_of_varlen(gpu):
    """16,384 tokens in sequences of one length."""
    cases = [(16384 // length, length, d, causal) for d in (64, 128, 256) for causal in (False, True) for length in (1024, 2048, 4096)]
    rows = [varlen(gpu, *case) for case in cases]
    ratios = [ratio for ratio, _ in rows]
    print(f"any lengths: {mean(ratios):.3f} of the speed for one length ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return all(passed for _, passed in rows)


# m, n, k.
SCALED = [(4096, 7168, 16384), (4096, 4096, 7168), (4096, 24576, 1536), (4096, 7168, 2048), (64, 7168, 16384), (128, 24576, 1536)]


def block_scaled(gpu, scales, shape):
    """A product of e4m3 with scales beside PyTorch's: the ratio of its speed, and whether it is right."""
    m, n, k = shape
    kernel = Kernel(gpu, "block_scaled", ["--m", str(m), "--n", str(n), "--k", str(k), "--scales", scales])

    def make(name, shape, of):
        if name.startswith("scale"):
            return torch.rand(shape, device="cuda") + 0.5
        return torch.randn(shape, device="cuda", dtype=torch.bfloat16).to(of)

    sets = operand_sets(kernel, make)
    bound = [kernel.bind(one) for one in sets]
    blocks = -(-k // 128)

    def theirs(one):
        of_a, of_b = one["scale_a"], one["scale_b"]
        if scales == "row,row":
            pair = of_a[:, None], of_b[None, :]
        elif scales == "1x128,1x128":
            pair = of_a.t(), of_b
        else:
            # Rows of the scales of b are multiples of 4 elements apart.
            if "padded" not in one:
                one["padded"] = torch.zeros(of_b.shape[0], -(-blocks // 4) * 4, device="cuda")
                one["padded"][:, :blocks] = of_b
            pair = of_a.t(), one["padded"][:, :blocks].t()
        return torch._scaled_mm(one["a"], one["b"].t(), *pair, out_dtype=torch.bfloat16, use_fast_accum=scales == "row,row")

    last = sets[-1]
    other = theirs(last)
    work = [[lambda b=b: kernel.launch(b) for b in bound], [lambda one=one: theirs(one) for one in sets]]
    for one in sets:
        theirs(one)
    times = milliseconds([graph(one) for one in work], len(sets))
    some = torch.arange(0, m, max(1, m // 64), device="cuda")
    a, b = last["a"][some].double(), last["b"].double()
    if scales == "row,row":
        a, b = a * last["scale_a"][some, None].double(), b * last["scale_b"][:, None].double()
    else:
        a = a * last["scale_a"][:, some].t().double().repeat_interleave(128, 1)[:, :k]
        of_b = last["scale_b"].double() if scales == "1x128,128x128" else last["scale_b"].t().double()
        of_b = of_b.repeat_interleave(128, 1)[:, :k]
        b = b * (of_b.repeat_interleave(128, 0)[:n] if scales == "1x128,128x128" else of_b)
    exact, size = a @ b.t(), a.abs() @ b.abs().t()
    relative = DTYPES["e4m3"][2](k if scales == "row,row" else 128) + 2.0**-20
    mine = (last["c"][some].double() - exact).abs()
    passed = bool((mine <= relative * size + RESULTS["bf16"][1] * exact.abs() * (1 + relative)).all())
    error = [((x[some].double() - exact).abs().max() / exact.abs().max()).item() for x in (last["c"], other)]
    speed = [2 * m * n * k / ms / 1e9 for ms in times]
    print(
        f"{'ok  ' if passed else 'FAIL'} {kernel.launches[-1]['kernel']} {m}x{n}x{k} {scales}: error {error[0]:.1e}, PyTorch {error[1]:.1e};"
        f" {times[0]:.4f} ms, {speed[0]:.0f} T/s; PyTorch {times[1]:.4f} ms, {speed[1]:.0f} T/s; {times[1] / times[0]:.3f} of its speed",
        flush=True,
    )
    torch.cuda.empty_cache()
    return times[1] / times[0], passed


def table_of_block_scaled(gpu):
    """Products of e4m3 with scales of 1x128 and 128x128, of 1x128 of both, and of rows."""
    right = True
    for scales in ("1x128,128x128", "1x128,1x128", "row,row"):
        rows = [block_scaled(gpu, scales, shape) for shape in SCALED]
        ratios = [ratio for ratio, _ in rows]
        right &= all(passed for _, passed in rows)
        print(f"{scales}: {mean(ratios):.3f} of PyTorch's speed ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return right


def table_of_expert_layer(gpu):
    """A layer of a mixture of experts, from the logits of the router on."""
    return expert_layer.compare(gpu, Kernel, (graph, milliseconds))


# Rows and columns of 4-bit weights, and rows of a.
WEIGHTS_OF_4_BITS = [(8192, 8192), (10240, 8192), (57344, 8192), (8192, 28672)]
ROWS_OF_A = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def packed(gpu, shape, words):
    """Row-major words of 4-bit weights in the order of our kernels, and the milliseconds of that."""
    n, k = shape
    kernel = Kernel(gpu, "weight_only_repack", ["--order", "row-major", "--n", str(n), "--k", str(k)])
    one = {"from": words, "w": torch.empty((-(-n // 16), -(-k // 64) * 128), dtype=torch.int32, device="cuda")}
    bound = kernel.bind(one)
    return one["w"], milliseconds([graph([lambda: kernel.launch(bound)])], 1)[0]


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


def dequantised(weights, words, scales, group):
    """Row-major words of 4-bit weights and their scales in double precision."""
    n, k = words.shape[0], 8 * words.shape[1]
    q = torch.stack([(words >> (4 * i)) & 15 for i in range(8)], -1).reshape(n, k)
    if weights == "int4":
        return (q.double() - 8) * scales.double().t().repeat_interleave(group, 1)[:, :k]
    # Words of two rows by two groups, eight for 16 rows.
    of_bytes = scales.view(torch.uint8).reshape(n // 16, k // 64, 8, 2, 2).permute(0, 2, 4, 1, 3).reshape(n, k // 32)
    scales = torch.exp2(of_bytes.double() - 127).repeat_interleave(32, 1)
    return torch.tensor(E2M1, device="cuda", dtype=torch.float64)[q.long()] * scales


def weight_only(gpu, m, shape, weights, group):
    """A product with 4-bit weights beside our product of bf16 and PyTorch's with int4: the ratio of its speed to ours of bf16, whether it is right, and its milliseconds."""
    n, k = shape
    kernel = Kernel(gpu, "weight_only", ["--weights", weights, "--group-size", str(group), *(f"--{name}={size}" for name, size in zip("mnk", (m, n, k)))])
    plain = []

    def make(name, shape_of, of):
        if name == "w":
            plain.append(torch.randint(-(2**31), 2**31, (n, k // 8), dtype=torch.int64, device="cuda").to(torch.int32))
            return packed(gpu, shape, plain[-1])[0]
        if name == "scales" and of == torch.int32:
            return torch.randint(118, 124, (shape_of[0], 4 * shape_of[1]), dtype=torch.uint8, device="cuda").view(of)
        if name == "scales":
            return (torch.rand(shape_of, device="cuda") * 0.01 + 0.005).to(of)
        return Operands.random(shape_of, of)

    sets = operand_sets(kernel, make)
    bound = [kernel.bind(one) for one in sets]
    work = [[lambda b=b: kernel.launch(b) for b in bound]]

    product = Kernels(gpu.cuda, *gpu.gemm("bf16", "nt", (m, n, k)))
    operands = [Operands(product.contract)]
    while len(operands) < 32 and len(operands) * operands[0].bytes() < ROTATION_BYTES:
        operands.append(Operands(product.contract))
    of_bf16 = [product.bind(one) for one in operands]
    work.append([lambda b=b: product.launch(b) for b in of_bf16])

    def theirs(words, one):
        # Of two weights in a byte the first is in the upper half; a weight is (q - 8)·scale + zero.
        halves = words.view(torch.uint8)
        swapped = torch.ops.aten._convert_weight_to_int4pack((halves << 4) | (halves >> 4), 8)
        scales = torch.stack([one["scales"], torch.zeros_like(one["scales"])], -1).contiguous()
        return lambda: torch.ops.aten._weight_int4pack_mm(one["a"], swapped, group, scales)

    other = None
    if weights == "int4":
        try:
            of_torch = [theirs(words, one) for words, one in zip(plain, sets)]
            other = of_torch[-1]()
            torch.cuda.synchronize()
            work.append(of_torch)
        except RuntimeError as error:
            print(f"PyTorch has no such product: {str(error).splitlines()[0]}")
    times = milliseconds([graph(one) for one in work], len(sets))
    # The product of bf16 may have fewer operands to rotate through.
    times[1] *= len(sets) / len(operands)

    last = sets[-1]
    factor = dequantised(weights, plain[-1], last["scales"], group)
    exact, size = last["a"].double() @ factor.t(), last["a"].double().abs() @ factor.abs().t()
    # By wgmma weights are rounded to bf16.
    relative = 2.0**-8 if "wgmma" in kernel.launches[-1]["kernel"] else 2.0**-18
    passed = bool(((last["c"].double() - exact).abs() <= size * relative + exact.abs() * 2.0**-8).all())
    error = [((x.double() - exact).abs().max() / exact.abs().max()).item() for x in (last["c"], other) if x is not None]
    beside = f"; PyTorch error {error[1]:.1e}, {times[2]:.4f} ms, {times[2] / times[0]:.2f} of its speed" if other is not None else ""
    read = last["w"].nbytes + last["scales"].nbytes
    print(
        f"{'ok  ' if passed else 'FAIL'} {kernel.launches[-1]['kernel']} {m}x{n}x{k}: error {error[0]:.1e}; {times[0]:.4f} ms, {read / times[0] / 1e6:.0f} GB/s of weights;"
        f" our bf16 product {times[1]:.4f} ms, {times[1] / times[0]:.2f} of its speed{beside}",
        flush=True,
    )
    torch.cuda.empty_cache()
    return times[1] / times[0], passed, times[0]


def table_of_weight_only(gpu):
    """Products with int4 weights in groups of 128, and with mxfp4 weights, by rows of a; and what putting the weights in order takes."""
    right = True
    for m in ROWS_OF_A:
        of_int4 = []
        for weights, group in (("int4", 128), ("mxfp4", 32)):
            rows = [weight_only(gpu, m, shape, weights, group) for shape in WEIGHTS_OF_4_BITS]
            ratios = [ratio for ratio, _, _ in rows]
            right &= all(passed for _, passed, _ in rows)
            of_int4 = of_int4 or [ms for _, _, ms in rows]
            beside = mean([ms / of_row for (_, _, ms), of_row in zip(rows, of_int4)])
            print(
                f"{weights}, {m} rows: {mean(ratios):.3f} of the speed of our bf16 product ({min(ratios):.3f} to {max(ratios):.3f}); {beside:.3f} of the time of int4",
                flush=True,
            )
    for n, k in WEIGHTS_OF_4_BITS:
        words = torch.randint(-(2**31), 2**31, (n, k // 8), dtype=torch.int64, device="cuda").to(torch.int32)
        print(f"{n}x{k} in order: {packed(gpu, (n, k), words)[1]:.4f} ms", flush=True)
    return right


TABLES = {
    "attention": table_of_attention,
    "block_scaled": table_of_block_scaled,
    "cross_entropy": table_of_cross_entropy,
    "cublas": table_of_cublas,
    "expert_layer": table_of_expert_layer,
    "gemm": table_of_gemm,
    "gemv": table_of_gemv,
    "grouped": table_of_grouped,
    "layers": table_of_layers,
    "norms_backward": table_of_norms_backward,
    "rows": table_of_rows,
    "transpose": table_of_transpose,
    "varlen": table_of_varlen,
    "weight_only": table_of_weight_only,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="pairs: what `gemm --emit` wrote, and what `gemm --json` printed")
    parser.add_argument("--shape", help="MxNxK: emit a kernel for it")
    parser.add_argument("--plan", help="its plan; chosen by the command without")
    parser.add_argument("--dtype", help="its type; that of the plan without")
    parser.add_argument("--trans", default="nn", choices=["nn", "nt", "tn", "tt"], help="its transposes")
    parser.add_argument("--table", choices=TABLES, help="a table of the book: all of its cases")
    parser.add_argument("--tilewright", default="tilewright", help="the command that emits it")
    options = parser.parse_args()
    if len(options.files) % 2 or not (options.files or options.shape or options.table):
        parser.error("give pairs of files, kernel.ptx gemm.json, a shape, or a table")
    sizes = (options.shape or "1x1x1").split("x")
    if len(sizes) != 3 or not all(size.isdigit() for size in sizes):
        parser.error(f"a shape is MxNxK, such as 4096x4096x4096, and not {options.shape}")
    if not torch.cuda.is_available():
        sys.exit("no GPU: not run")
    torch.manual_seed(1)
    torch.empty(1, device="cuda")
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        gpu = Gpu(options, folder)
        if options.table:
            passed = TABLES[options.table](gpu)
        for ptx, report in zip(options.files[::2], options.files[1::2]):
            whole, launch = host.contract(report)
            if "plan" not in whole:
                sys.exit(f"{report} has the launch alone; all that `tilewright gemm --json` prints is expected here")
            if not launch:
                sys.exit(f"{report}: nothing to launch: the product is empty")
            passed &= compare(gpu.cuda, gpu.module(host.read(ptx)), Contract(whole, launch))[1]
        if options.shape:
            shape = tuple(map(int, sizes))
            passed &= compare(gpu.cuda, *gpu.gemm(options.dtype, options.trans, shape, options.plan))[1]
    print("passed" if passed else "FAILED")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
