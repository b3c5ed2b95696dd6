#!/usr/bin/env python3
"""The operators of `tilewright.torch` in one run: agreement with PyTorch, opcheck, gradients, torch.compile, and on a GPU CUDA graphs, streams, host time.

    python3 python/tests/torch_operators.py [--only matmul] [--on cpu]

Each line is one check; the exit code is 0 if all passed. On the CPU the kernels run on the emulator, in half a minute. Host times are medians of a call's
enqueueing, beside PyTorch's own operator.
"""

import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import tilewright.torch as tt

FAILED = []
DEVICE = "cuda"


def on_gpu():
    return DEVICE == "cuda"


def has_hopper():
    """Whether Hopper's instructions are there: the emulator has them."""
    return not on_gpu() or torch.cuda.get_device_capability() == (9, 0)


def told(passed, what, more=""):
    print(f"{'ok  ' if passed else 'FAIL'} {what}{': ' if more else ''}{more}", flush=True)
    if not passed:
        FAILED.append(what)


def attempt(what, check):
    """Runs a check; an exception is a failure of it."""
    try:
        check()
    except Exception as error:  # every check runs, whatever one of them raises
        told(False, what, f"{type(error).__name__}: {str(error)[:500]}")


def close(what, value, exact, relative):
    """The largest error, relative to the largest element."""
    largest = exact.double().abs().max().clamp_min(1e-30)
    error = ((value.double() - exact.double()).abs().max() / largest).item()
    told(error <= relative, what, f"error {error:.2e}, at most {relative:.0e}")


def randn(*shape, dtype=torch.bfloat16, grad=False):
    return torch.randn(*shape, device=DEVICE, dtype=torch.float32).to(dtype).requires_grad_(grad)


UNITS = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-9, torch.float32: 1e-5, torch.float64: 1e-13}


def matmul():
    for dtype in UNITS:
        for shape in [(384, 256, 192), (1, 4096, 4096), (77, 130, 61)] if on_gpu() else [(1, 50, 128), (40, 50, 61)]:
            m, n, k = shape
            a, b = randn(m, k, dtype=dtype), randn(k, n, dtype=dtype)
            w = randn(n, k, dtype=dtype)
            exact = a.double() @ b.double()
            attempt(f"matmul {dtype} {shape}", lambda: close(f"matmul {dtype} {shape}", tt.matmul(a, b), exact, UNITS[dtype]))
            what = f"matmul {dtype} {shape}, b by columns, a a view"
            view = randn(m, 2 * k, dtype=dtype)[:, :k]
            attempt(what, lambda: close(what, tt.matmul(view, w.t()), view.double() @ w.double().t(), UNITS[dtype]))
    x, w, bias = randn(2, 64, 512), randn(768, 512), randn(768)
    for activation, function in [("none", lambda y: y), ("relu", torch.relu), ("gelu", lambda y: F.gelu(y, approximate="tanh"))]:
        exact = function(x.double() @ w.double().t() + bias.double())
        what = f"matmul with a bias and {activation}"
        attempt(what, lambda: close(what, tt.matmul(x, w.t(), bias=bias, activation=activation), exact, 2.0**-7))
    attempt("matmul int8", lambda: told(
        torch.equal(tt.matmul(ints(64, 128), ints(96, 128).t()).cpu(), (ints(64, 128).cpu().int() @ ints(96, 128).cpu().int().t())), "matmul int8"
    ))  # fmt: skip
    attempt("matmul float32 result", lambda: close("matmul float32 result", tt.matmul(x, w.t(), out_dtype=torch.float32), x.double() @ w.double().t(), 1e-5))
    attempt("matmul of nothing", lambda: told(tt.matmul(randn(0, 16), randn(16, 8)).shape == (0, 8), "matmul of nothing"))
    a, b, c = (randn(*shape, dtype=torch.float64, grad=True) for shape in [(6, 8), (8, 5), (5,)])
    attempt("matmul gradcheck", lambda: told(torch.autograd.gradcheck(tt.matmul, (a, b), fast_mode=True), "matmul gradcheck"))
    for activation in ["none", "relu"]:
        what = f"matmul gradcheck with a bias and {activation}"
        function = lambda a, b, c: tt.matmul(a, b, bias=c, activation=activation)  # noqa: E731
        attempt(what, lambda: told(torch.autograd.gradcheck(function, (a, b, c), fast_mode=True), what))
    attempt("matmul gelu, gradients", gelu_gradients)
    a, b = randn(64, 96, dtype=torch.float16, grad=True), randn(96, 80, dtype=torch.float16, grad=True)
    bias = randn(80, dtype=torch.float16, grad=True)
    opcheck("mm", torch.ops.tilewright.mm.default, (a, b))
    opcheck("linear", torch.ops.tilewright.linear.default, (a, b, bias, "gelu", None))
    everywhere("matmul", tt.matmul, (randn(100, 64), randn(64, 80)))
    if on_gpu():
        many_threads()
    refusals()


def refusals():
    """What does not go together is refused, also after a call that was right."""
    a, b = randn(16, 24), randn(24, 8)
    tt.matmul(a, b)
    for what, call in {
        "another type": lambda: tt.matmul(a, b.half()),
        "another shape": lambda: tt.matmul(a, b[:20]),
        "another device": lambda: tt.matmul(a, b.to("cpu" if on_gpu() else "meta")),
        "a bias of another type": lambda: tt.matmul(a, b, bias=randn(8, dtype=torch.float16)),
        "a weight of another length": lambda: tt.rms_norm(a, randn(23)),
        "an unknown activation": lambda: tt.matmul(a, b, activation="sine"),
    }.items():
        try:
            call()
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            told(True, f"{what} is refused", str(error).splitlines()[0][:100])
        else:
            told(False, f"{what} is refused")


def gelu_gradients():
    """Of a product with a bias and gelu, in float32: gelu has no float64."""
    operands = [randn(*shape, dtype=torch.float32, grad=True) for shape in [(40, 64), (64, 50), (50,)]]
    dy = randn(40, 50, dtype=torch.float32)
    a, b, bias = operands
    own = torch.autograd.grad(tt.matmul(a, b, bias=bias, activation="gelu"), operands, dy)
    exact = torch.autograd.grad(F.gelu(a.double() @ b.double() + bias.double(), approximate="tanh"), operands, dy.double())
    for name, value, expected in zip(("a", "b", "the bias"), own, exact):
        close(f"matmul gelu, gradient of {name}", value, expected, 1e-4)


def ints(rows, cols):
    generator = torch.Generator(device=DEVICE).manual_seed(rows)
    return torch.randint(-127, 128, (rows, cols), dtype=torch.int8, device=DEVICE, generator=generator)


def many_threads():
    """Launches of one configuration from several threads, each with tensors of its own."""
    import threading

    pairs = [(randn(256, 512), randn(512, 384)) for _ in range(8)]
    wrong = []

    def work(a, b):
        exact = a @ b
        for _ in range(200):
            if (tt.matmul(a, b) - exact).abs().max() > 0.5:
                wrong.append(1)

    threads = [threading.Thread(target=work, args=pair) for pair in pairs]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    told(not wrong, "matmul from eight threads")


def scaled_mm():
    if not has_hopper():
        return print("scaled_mm: not run, it takes Hopper")
    m, n, k = (320, 512, 768) if on_gpu() else (70, 128, 256)
    a, b = randn(m, k).to(torch.float8_e4m3fn), randn(n, k).to(torch.float8_e4m3fn).t()
    rows = [torch.rand(m, 1, device=DEVICE), torch.rand(1, n, device=DEVICE)]
    blocks = [torch.rand(m, k // 128, device=DEVICE), torch.rand(k // 128, n // 128, device=DEVICE)]
    rows128 = [torch.rand(m, k // 128, device=DEVICE), torch.rand(k // 128, n, device=DEVICE)]
    one = [torch.rand(1, device=DEVICE), torch.rand(1, device=DEVICE)]
    for what, (of_a, of_b) in {"number": one, "row": rows, "1x128 and 128x128": blocks, "1x128": rows128}.items():
        full_a = of_a.double() if of_a.dim() < 2 else of_a.double().repeat_interleave(k // of_a.shape[1], 1)
        full_b = of_b.double() if of_b.dim() < 2 else of_b.double().repeat_interleave(k // of_b.shape[0], 0).repeat_interleave(n // of_b.shape[1], 1)
        exact = (a.double() * full_a) @ (b.double() * full_b)
        what = f"scaled_mm, scales by {what}"
        attempt(what, lambda: close(what, tt.scaled_mm(a, b, of_a, of_b), exact, 2.0**-6))
    opcheck("scaled_mm", torch.ops.tilewright.scaled_mm.default, (a, b, *rows, torch.bfloat16))
    everywhere("scaled_mm", tt.scaled_mm, (a, b, *rows))


def grouped_mm():
    if not has_hopper():
        return print("grouped_mm: not run, it takes Hopper")
    groups, m, n, k = 5, 440, 72, 64
    a, w = randn(m, k), randn(groups, n, k)
    offsets = torch.tensor([100, 100, 221, 300, m], device=DEVICE, dtype=torch.int32)
    starts = [0, *offsets.tolist()]
    exact = torch.cat([a[i:j].double() @ w[g].double().t() for g, (i, j) in enumerate(zip(starts, starts[1:]))])
    attempt("grouped_mm", lambda: close("grouped_mm", tt.grouped_mm(a, w.transpose(1, 2), offsets), exact, 2.0**-7))
    a8, w8 = a.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
    rows = torch.rand(m, device=DEVICE), torch.rand(groups, n, device=DEVICE)
    blocks = torch.rand(m, 1, device=DEVICE), torch.rand(groups, 1, 1, device=DEVICE)
    for what, (of_a, of_b) in {"rows": rows, "blocks": blocks}.items():
        full_a, full_b = of_a.double().view(m, 1), of_b.double().view(groups, -1, 1)
        groups_of = enumerate(zip(starts, starts[1:]))
        exact = torch.cat([(a8[i:j].double() * full_a[i:j]) @ (w8[g].double() * full_b[g]).t() for g, (i, j) in groups_of])
        what = f"grouped_mm, scales of {what}"
        attempt(what, lambda: close(what, tt.grouped_mm(a8, w8.transpose(1, 2), offsets, scale_a=of_a, scale_b=of_b), exact, 2.0**-6))
    opcheck("grouped_mm", torch.ops.tilewright.grouped_mm.default, (a, w.transpose(1, 2), offsets, None, None, torch.bfloat16))
    everywhere("grouped_mm", tt.grouped_mm, (a, w.transpose(1, 2), offsets))


def attention():
    for dtype in (torch.float16, torch.bfloat16):
        for heads, kv_heads, length, d, causal in [(4, 4, 300, 64, False), (8, 2, 512, 128, True)] if on_gpu() else [(1, 1, 70, 64, False), (2, 1, 50, 128, True)]:
            q, k, v = randn(2, heads, length, d, dtype=dtype), randn(2, kv_heads, length, d, dtype=dtype), randn(2, kv_heads, length, d, dtype=dtype)
            exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal, enable_gqa=True)
            what = f"attention {dtype}, {heads} heads on {kv_heads}, causal {causal}"
            attempt(what, lambda: close(what, tt.attention(q, k, v, is_causal=causal), exact, 2.0**-6))
    q, k, v = (randn(2, 70, 2, 64).transpose(1, 2) for _ in range(3))
    exact = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    attempt("attention by heads", lambda: close("attention by heads", tt.attention(q, k, v, is_causal=True), exact, 2.0**-6))
    attempt("attention has no gradients", no_gradients)
    opcheck("attention", torch.ops.tilewright.attention.default, (q, k, v, True, [], 0.0))
    everywhere("attention", tt.attention, (q, k, v))


def no_gradients():
    q = randn(1, 1, 16, 64, grad=True)
    try:
        tt.attention(q, q, q).sum().backward()
    except NotImplementedError as error:
        told("attention has no gradients" in str(error), "attention has no gradients", str(error))
    else:
        told(False, "attention has no gradients")


def rms_norm():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, w = randn(3, 20, 700, dtype=dtype), randn(700, dtype=dtype)
        exact = F.rms_norm(x.double(), (700,), w.double(), 1e-5)
        attempt(f"rms_norm {dtype}", lambda: close(f"rms_norm {dtype}", tt.rms_norm(x, w, 1e-5), exact, UNITS[dtype]))
    x, w, dy = randn(50, 704, dtype=torch.float32, grad=True), randn(704, dtype=torch.float32, grad=True), randn(50, 704, dtype=torch.float32)
    reference = torch.autograd.grad(F.rms_norm(x.double(), (704,), w.double(), 1e-5), (x, w), dy.double())

    def gradients():
        for name, own, exact in zip(("x", "weight"), torch.autograd.grad(tt.rms_norm(x, w, 1e-5), (x, w), dy), reference):
            close(f"rms_norm, gradient of {name}", own, exact, 1e-4)

    attempt("rms_norm, gradients", gradients)
    opcheck("rms_norm", torch.ops.tilewright.rms_norm.default, (x, w, 1e-5))
    everywhere("rms_norm", tt.rms_norm, (randn(64, 1024), randn(1024)))


def softmax():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = randn(3, 20, 700, dtype=dtype)
        attempt(f"softmax {dtype}", lambda: close(f"softmax {dtype}", tt.softmax(x), torch.softmax(x.double(), -1), UNITS[dtype]))
    x = randn(30, 70, dtype=torch.float32, grad=True)
    dy = randn(30, 70, dtype=torch.float32)
    (exact,) = torch.autograd.grad(torch.softmax(x.double(), -1), x, dy.double())
    attempt("softmax, gradient", lambda: close("softmax, gradient", torch.autograd.grad(tt.softmax(x), x, dy)[0], exact, 1e-5))
    opcheck("softmax", torch.ops.tilewright.softmax.default, (x,))
    everywhere("softmax", tt.softmax, (randn(64, 1000),))


def opcheck(name, operator, arguments):
    tests = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    if any(isinstance(x, torch.Tensor) and x.dtype == torch.float8_e4m3fn for x in arguments):
        tests.remove("test_schema")  # it multiplies 8-bit floats, which PyTorch can't
    attempt(f"{name} opcheck", lambda: (torch.library.opcheck(operator, arguments, test_utils=tests), told(True, f"{name} opcheck")))


def everywhere(name, function, arguments):
    """Under torch.compile, on a second stream and in a CUDA graph, the result is the same."""
    with torch.no_grad():
        expected = function(*arguments)

        def same(what, value):
            told(torch.equal(value, expected), f"{name} {what}")

        def compiled():
            same("under torch.compile", torch.compile(lambda *a: function(*a) * 1, fullgraph=True)(*arguments))

        def second_stream():
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                other = function(*arguments)
            torch.cuda.current_stream().wait_stream(stream)
            same("on a second stream", other)

        def graph():
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                result = function(*arguments)
            result.zero_()
            captured.replay()
            torch.cuda.synchronize()
            same("in a CUDA graph", result)

        attempt(f"{name} under torch.compile", compiled)
        if not on_gpu():
            return
        attempt(f"{name} on a second stream", second_stream)
        attempt(f"{name} in a CUDA graph", graph)


def host_microseconds(function, rounds=30, calls=200):
    """The median host time of a call: the queue is never full, since its work is done before the next round."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        times.append((time.perf_counter() - start) / calls * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def host_time():
    if not on_gpu():
        return print("host_time: not run, it takes a GPU")
    a, b, w = randn(64, 64), randn(64, 64), randn(64, 64, grad=True)
    with torch.inference_mode():
        ours, theirs = host_microseconds(lambda: tt.matmul(a, b)), host_microseconds(lambda: torch.mm(a, b))
    told(ours - theirs <= 5, "host time in inference_mode", f"matmul {ours:.2f} µs, torch.mm {theirs:.2f} µs")
    ours, theirs = host_microseconds(lambda: tt.matmul(a, w)), host_microseconds(lambda: torch.mm(a, w))
    told(ours - theirs <= 25, "host time with gradients recorded", f"matmul {ours:.2f} µs, torch.mm {theirs:.2f} µs")


CHECKS = [matmul, scaled_mm, grouped_mm, attention, rms_norm, softmax, host_time]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[check.__name__ for check in CHECKS])
    parser.add_argument("--on", choices=["cuda", "cpu"], default="cuda", help="the CPU's kernels run on the emulator")
    options = parser.parse_args()
    global DEVICE
    only, DEVICE = options.only, options.on
    if on_gpu() and not torch.cuda.is_available():
        sys.exit("there is no GPU that PyTorch can use; --on cpu needs none")
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name() if on_gpu() else 'the emulator'}, PyTorch {torch.__version__}")
    for check in CHECKS:
        if only in (None, check.__name__):
            attempt(check.__name__, check)
    print(f"{len(FAILED)} failed" + "".join(f"\n    {what}" for what in FAILED) if FAILED else "all passed")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
