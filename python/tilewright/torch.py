"""Operators for PyTorch from kernels that come with Tilewright: matmul, scaled_mm, grouped_mm, attention, rms_norm, softmax.

>>> import tilewright.torch as tt                                                    # doctest: +SKIP
>>> y = tt.matmul(x, w.t(), bias=b, activation="gelu")                               # doctest: +SKIP

A configuration (shapes, strides, types, device) is proven and printed when it is first met, kept on disk (`TILEWRIGHT_CACHE`, by default
`~/.cache/tilewright`) and compiled by the driver; no compiler and no toolkit is needed. Operators run on the current stream, under `torch.compile` and in
CUDA graphs; warm each configuration up before a graph is captured. They have gradients where it is said. Tensors of the CPU go to the emulator, which is slow and
raises what it finds: a test needs no GPU.

`layout_of` is the layout of a tensor, and `view_of` the tensor of a layout.
"""

from typing import Any, Optional, Sequence, Union

import torch
from torch import Tensor

from tilewright import Layout
from tilewright._driver import Compiled, Emulated, compiled

__all__ = ["attention", "grouped_mm", "layout_of", "matmul", "rms_norm", "scaled_mm", "softmax", "view_of"]

_LIBRARY = torch.library.Library("tilewright", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag,)

_NAMES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "s8",
    torch.int32: "s32",
    torch.float8_e4m3fn: "e4m3",
    torch.float8_e5m2: "e5m2",
}

# A kernel that is ready to be launched.
_Plan = Union[Compiled, Emulated]

# The number of a stream, without an object of it.
_stream = torch._C._cuda_getCurrentRawStream
_current_device = torch._C._cuda_getDevice


def _launch(plan: _Plan, *addresses: int) -> None:
    """Enqueues a kernel on the current stream of its device."""
    device = plan.device
    if device < 0:
        plan.launch(0, *addresses)
    elif device == _current_device():
        plan.launch(_stream(device), *addresses)
    else:
        with torch.cuda.device(device):
            plan.launch(_stream(device), *addresses)


def _enqueue(plan: _Plan, **tensors: Tensor) -> None:
    """Enqueues a kernel whose buffers are given by name."""
    _launch(plan, *(tensors[name].data_ptr() for name in plan.buffers if name != "workspace"))


def _name(dtype: torch.dtype, what: str) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        raise TypeError(f"{what} has elements of {dtype}; there are {', '.join(map(str, _NAMES))}")
    return name


def _aligned(address: int) -> int:
    """The bytes up to 16 that addresses, joined by |, are a multiple of."""
    address |= 16
    return address & -address


def _define(schema: str, kernel: Any, fake: Any) -> Any:
    """An operator with its kernel and its shapes."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema, tags=_TAGS)
    _LIBRARY.impl(name, kernel, "CUDA")
    _LIBRARY.impl(name, kernel, "CPU")
    torch.library.register_fake(f"tilewright::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.tilewright, name).default


def _differentiable(name: str, backward: Any, setup: Any) -> None:
    torch.library.register_autograd(f"tilewright::{name}", backward, setup_context=setup, lib=_LIBRARY)


def _not_differentiable(name: str) -> None:
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"tilewright.torch.{name} has no gradients: call it under torch.no_grad(), or on detached tensors")

    _differentiable(name, backward, lambda ctx, inputs, output: None)


# Matrices


def _order(x: Tensor) -> "Optional[tuple[str, int]]":
    """Whether a matrix lies by rows (n) or by columns (t), and its leading dimension; None if neither."""
    (rows, cols), (down, across) = x.shape, x.stride()
    if (across == 1 or cols == 1) and (down >= cols or rows == 1):
        return "n", down if rows > 1 else cols
    if (down == 1 or rows == 1) and (across >= rows or cols == 1):
        return "t", across if cols > 1 else rows
    return None


_PRODUCTS: "dict[Any, _Plan]" = {}


def _product(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, result: torch.dtype, align: int) -> _Plan:
    """The kernel of a product, whose operands lie by rows or by columns."""
    (order_a, lda), (order_b, ldb) = _order(a), _order(b)  # type: ignore[misc]
    dtype = _name(a.dtype, "a")
    if dtype == "f32" and torch.backends.cuda.matmul.allow_tf32:
        dtype = "tf32"
    options = {
        "dtype": dtype,
        "ctype": _name(result, "the result"),
        "m": a.shape[0],
        "n": b.shape[1],
        "k": a.shape[1],
        "trans": order_a + order_b,
        "lda": lda,
        "ldb": ldb,
        "bias": "none" if bias is None else "column",
        "activation": activation,
        "align": align,
    }
    return compiled("gemm", options, a.get_device())


def _check_product(a: Tensor, b: Tensor) -> None:
    torch._check(a.dim() == 2 and b.dim() == 2, lambda: f"a and b are matrices, not of shapes {tuple(a.shape)} and {tuple(b.shape)}")
    torch._check(a.shape[1] == b.shape[0], lambda: f"a has {a.shape[1]} columns, and b {b.shape[0]} rows")
    torch._check(a.dtype == b.dtype, lambda: f"a has elements of {a.dtype}, and b of {b.dtype}")


def _multiply(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, result: torch.dtype) -> Tensor:
    at_a, at_b = a.data_ptr(), b.data_ptr()
    align = _aligned(at_a | at_b | (0 if bias is None else bias.data_ptr()))
    tf32 = a.dtype is torch.float32 and torch.backends.cuda.matmul.allow_tf32
    key = (a.shape, a.stride(), b.shape, b.stride(), a.dtype, result, bias is None, activation, align, a.get_device(), tf32)
    plan = _PRODUCTS.get(key)
    if plan is None:
        _check_product(a, b)
        # What is empty, or lies neither by rows nor by columns, is rare.
        if _order(a) is None or _order(b) is None:
            return _multiply(a if _order(a) else a.contiguous(), b if _order(b) else b.contiguous(), bias, activation, result)
        if a.numel() == 0 or b.numel() == 0:
            zeros = a.new_zeros((a.shape[0], b.shape[1]), dtype=result)
            return _activated(zeros if bias is None else zeros + bias, activation)
        plan = _PRODUCTS[key] = _product(a, b, bias, activation, result, align)
        # Without a bias, addresses go by their order.
        assert plan.buffers[:3] == ["a", "b", "c"], plan.buffers
    c = a.new_empty((a.shape[0], b.shape[1]), dtype=result)
    if bias is None:
        _launch(plan, at_a, at_b, c.data_ptr())
    else:
        _enqueue(plan, a=a, b=b, c=c, bias=bias)
    return c


def _activated(x: Tensor, activation: str) -> Tensor:
    if activation == "relu":
        return torch.relu(x)
    return torch.nn.functional.gelu(x, approximate="tanh") if activation == "gelu" else x


def _mm_kernel(a: Tensor, b: Tensor) -> Tensor:
    return _multiply(a, b, None, "none", torch.int32 if a.dtype == torch.int8 else a.dtype)


def _mm_fake(a: Tensor, b: Tensor) -> Tensor:
    _check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=torch.int32 if a.dtype == torch.int8 else a.dtype)


_mm = _define("mm(Tensor a, Tensor b) -> Tensor", _mm_kernel, _mm_fake)


def _mm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _mm_backward(ctx: Any, gradient: Tensor) -> Any:
    a, b = ctx.saved_tensors
    to_a, to_b = ctx.needs_input_grad
    return _mm(gradient, b.t()) if to_a else None, _mm(a.t(), gradient) if to_b else None


_differentiable("mm", _mm_backward, _mm_setup)


def _linear_kernel(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, out_dtype: Optional[torch.dtype]) -> Tensor:
    result = out_dtype or (torch.int32 if a.dtype == torch.int8 else a.dtype)
    if bias is not None:
        shape, dtype = tuple(bias.shape), bias.dtype
        torch._check(shape == (b.shape[1],), lambda: f"the bias has the shape {shape}, and the result {b.shape[1]} columns")
        torch._check(dtype == result, lambda: f"the bias has elements of {dtype}, and the result of {result}")
        bias = bias.contiguous()
    return _multiply(a, b, bias, activation, result)


def _linear_fake(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, out_dtype: Optional[torch.dtype]) -> Tensor:
    _check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype or (torch.int32 if a.dtype == torch.int8 else a.dtype))


_linear = _define(
    "linear(Tensor a, Tensor b, Tensor? bias, str activation, ScalarType? out_dtype) -> Tensor", _linear_kernel, _linear_fake
)


def _linear_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    a, b, bias, ctx.activation, ctx.out_dtype = inputs
    ctx.save_for_backward(a, b, bias, output if ctx.activation == "relu" else None)


def _linear_backward(ctx: Any, gradient: Tensor) -> Any:
    a, b, bias, output = ctx.saved_tensors
    if ctx.activation == "relu":
        gradient = gradient * (output > 0)
    elif ctx.activation == "gelu":
        before = _linear(a, b, bias, "none", ctx.out_dtype)
        gradient = torch.ops.aten.gelu_backward(gradient, before, approximate="tanh")
    to_a, to_b, to_bias, *_ = ctx.needs_input_grad
    of_bias = gradient.sum(0) if to_bias else None
    gradient = gradient.to(a.dtype)
    return _mm(gradient, b.t()) if to_a else None, _mm(a.t(), gradient) if to_b else None, of_bias, None, None


_differentiable("linear", _linear_backward, _linear_setup)


def matmul(
    a: Tensor,
    b: Tensor,
    *,
    bias: Optional[Tensor] = None,
    activation: str = "none",
    out_dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """`activation(a @ b + bias)` in one kernel: a (…, m, k), b (k, n), bias (n); activation none, relu or gelu (tanh). Differentiable.

    Types are float64, float32 (tf32 if PyTorch may), float16, bfloat16, int8 (with an int32 result), and the 8-bit floats without scales. Operands lie by
    rows or by columns, such as `w.t()`, with any leading dimension; others are copied first. Sums are in float32 at least, and rounded once.
    """
    if bias is None and activation == "none" and out_dtype is None:
        if a.dim() == 2:
            return _mm(a, b)
        return _mm(a.reshape(-1, a.shape[-1]), b).view(*a.shape[:-1], b.shape[1])
    rows = a if a.dim() == 2 else a.reshape(-1, a.shape[-1])
    return _linear(rows, b, bias, activation, out_dtype).view(*a.shape[:-1], b.shape[1])


# Products with scales, and of groups


def _columns(b: Tensor) -> Tensor:
    """The rows of n × k that kernels take, of b as PyTorch has it: k × n, by columns."""
    return b.transpose(-2, -1).contiguous()


_SCALED: "dict[Any, _Plan]" = {}


def _scaled_kernel(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: torch.dtype) -> Tensor:
    (m, k), n = a.shape, b.shape[1]
    a, rows = a.contiguous(), _columns(b)
    kind = _scales((m, n, k), scale_a, scale_b)
    if kind == "row,row":
        scale_a, scale_b = scale_a.reshape(-1).expand(m).contiguous(), scale_b.reshape(-1).expand(n).contiguous()
    else:
        scale_a = scale_a.t().contiguous()
        scale_b = scale_b.t().contiguous() if kind == "1x128,128x128" else scale_b.contiguous()
    key = (m, n, k, a.dtype, out_dtype, kind, a.get_device())
    plan = _SCALED.get(key)
    if plan is None:
        options = {"dtype": _name(a.dtype, "a"), "ctype": _name(out_dtype, "the result"), "scales": kind, "m": m, "n": n, "k": k}
        plan = _SCALED[key] = compiled("block_scaled", options, a.get_device())
    c = a.new_empty((m, n), dtype=out_dtype)
    _enqueue(plan, a=a, b=rows, scale_a=scale_a, scale_b=scale_b, c=c)
    return c


def _scales(shape: "tuple[int, int, int]", scale_a: Tensor, scale_b: Tensor) -> str:
    """Which elements have a scale in common."""
    (m, n, k), of_a, of_b = shape, tuple(scale_a.shape), tuple(scale_b.shape)
    blocks_n, blocks_k = -(-n // 128), -(-k // 128)
    if scale_a.numel() in (1, m) and scale_b.numel() in (1, n) and (of_a in ((), (1,), (1, 1), (m, 1))):
        return "row,row"
    if of_a == (m, blocks_k) and of_b == (blocks_k, blocks_n):
        return "1x128,128x128"
    if of_a == (m, blocks_k) and of_b == (blocks_k, n):
        return "1x128,1x128"
    raise ValueError(
        f"scales have the shapes {of_a} and {of_b}; there are one number each, ({m}, 1) and (1, {n}), "
        f"({m}, {blocks_k}) and ({blocks_k}, {blocks_n}), ({m}, {blocks_k}) and ({blocks_k}, {n})"
    )


def _scaled_fake(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: torch.dtype) -> Tensor:
    _check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype)


_scaled = _define(
    "scaled_mm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, ScalarType out_dtype) -> Tensor", _scaled_kernel, _scaled_fake
)


_not_differentiable("scaled_mm")


def scaled_mm(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, *, out_dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """The product of 8-bit floats with scales, as `torch._scaled_mm` has it: a (m, k) by rows, b (k, n) by columns. On Hopper; not differentiable.

    Scales are float32: one number each; (m, 1) and (1, n); (m, k/128) and (k/128, n/128), that is 1x128 and 128x128; or (m, k/128) and (k/128, n).
    k is a multiple of 16.
    """
    return _scaled(a, b, scale_a, scale_b, out_dtype)


_GROUPED: "dict[Any, _Plan]" = {}


def _grouped_kernel(
    a: Tensor, b: Tensor, offsets: Tensor, scale_a: Optional[Tensor], scale_b: Optional[Tensor], out_dtype: torch.dtype
) -> Tensor:
    (m, k), (groups, _, n) = a.shape, b.shape
    a, rows, offsets = a.contiguous(), _columns(b), offsets.to(torch.int32).contiguous()
    scaled = scale_a is not None and scale_b is not None
    key = (m, n, k, groups, a.dtype, out_dtype, scaled, a.get_device())
    plan = _GROUPED.get(key)
    if plan is None:
        options = {"kind": "offsets", "groups": groups, "m": m, "n": n, "k": k}
        options.update(dtype=_name(a.dtype, "a"), ctype=_name(out_dtype, "the result"), scales="row" if scaled else "none")
        if a.is_cuda:
            options["blocks"] = torch.cuda.get_device_properties(a.get_device()).multi_processor_count
        plan = _GROUPED[key] = compiled("grouped", options, a.get_device())
    c = a.new_empty((m, n), dtype=out_dtype)
    scales = {} if scale_a is None or scale_b is None else {"scale_a": scale_a.contiguous(), "scale_b": scale_b.contiguous()}
    _enqueue(plan, offsets=offsets, a=a, b=rows, c=c, **scales)
    return c


def _grouped_fake(
    a: Tensor, b: Tensor, offsets: Tensor, scale_a: Optional[Tensor], scale_b: Optional[Tensor], out_dtype: torch.dtype
) -> Tensor:
    torch._check(a.dim() == 2 and b.dim() == 3, lambda: "a is (m, k), and b (groups, k, n)")
    torch._check(a.shape[1] == b.shape[1], lambda: f"a has {a.shape[1]} columns, and the matrices of b {b.shape[1]} rows")
    return a.new_empty((a.shape[0], b.shape[2]), dtype=out_dtype)


_grouped = _define(
    "grouped_mm(Tensor a, Tensor b, Tensor offsets, Tensor? scale_a, Tensor? scale_b, ScalarType out_dtype) -> Tensor",
    _grouped_kernel,
    _grouped_fake,
)


_not_differentiable("grouped_mm")


def grouped_mm(
    a: Tensor,
    b: Tensor,
    offs: Tensor,
    *,
    scale_a: Optional[Tensor] = None,
    scale_b: Optional[Tensor] = None,
    out_dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """The product of each group of rows of a with the matrix of its group, as `torch._grouped_mm` has it. On Hopper; not differentiable.

    a is (m, k), b (groups, k, n) with each matrix by columns, such as `w.transpose(1, 2)`, and offs the end of each group's rows. bfloat16, or float8_e4m3fn
    with scales (m) of rows of a and (groups, n) of columns of b. Rows behind the last group are not written.
    """
    return _grouped(a, b, offs, scale_a, scale_b, out_dtype or torch.bfloat16)


# Attention

_ATTENTION: "dict[Any, _Plan]" = {}


def _by_heads(tensors: "Sequence[Tensor]") -> bool:
    """Whether tensors (batch, head, sequence, d) lie as (batch, sequence, head, d), as a projection leaves them."""
    return all(x.transpose(1, 2).is_contiguous() for x in tensors) and not all(x.is_contiguous() for x in tensors)


def _attention_kernel(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: "list[int]", softcap: float) -> Tensor:
    by_heads = _by_heads((q, k, v))
    if not by_heads:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    key = (q.shape, k.shape, v.shape, q.dtype, causal, tuple(window), softcap, by_heads, q.get_device())
    plan = _ATTENTION.get(key)
    if plan is None:
        options = {"dtype": _name(q.dtype, "q"), "batch": q.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1]}
        options.update(queries=q.shape[2], keys=k.shape[2], head_dim=q.shape[3], value_dim=v.shape[3], causal=causal)
        options["layout"] = "bshd" if by_heads else "bhsd"
        if window:
            options["window"] = f"{window[0]},{window[1]}"
        if softcap:
            options["softcap"] = softcap
        plan = _ATTENTION[key] = compiled("attention", options, q.get_device())
    o = _attention_fake(q, k, v, causal, window, softcap)
    _enqueue(plan, q=q, k=k, v=v, o=o)
    return o


def _attention_fake(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: "list[int]", softcap: float) -> Tensor:
    torch._check(q.dim() == k.dim() == v.dim() == 4, lambda: "q, k and v are (batch, head, sequence, d)")
    batch, heads, queries, _ = q.shape
    if _by_heads((q, k, v)):
        return q.new_empty((batch, queries, heads, v.shape[3])).transpose(1, 2)
    return q.new_empty((batch, heads, queries, v.shape[3]))


_attention = _define(
    "attention(Tensor q, Tensor k, Tensor v, bool causal, int[] window, float softcap) -> Tensor", _attention_kernel, _attention_fake
)


_not_differentiable("attention")


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    is_causal: bool = False,
    window: "Optional[tuple[int, int]]" = None,
    softcap: Optional[float] = None,
) -> Tensor:
    """`softmax(q kᵀ / √d) v` for q (batch, heads, queries, d), k and v (batch, kv_heads, keys, d), float16 or bfloat16. Not differentiable.

    Heads of keys are shared if they are fewer. Query i is at key i (`is_causal`, as in PyTorch). `window` is the keys before and after a query, -1 for all; scores s
    become `softcap`·tanh(s/`softcap`). Tensors may lie as (batch, sequence, head, d), transposed.
    """
    return _attention(q, k, v, is_causal, list(window or ()), softcap or 0.0)


# Rows

_ROWS: "dict[Any, _Plan]" = {}


def _rows_plan(name: str, x: Tensor, options: "dict[str, Any]", numbers: "Optional[dict[str, float]]" = None) -> _Plan:
    rows, cols = x.numel() // max(1, x.shape[-1]), x.shape[-1]
    key = (name, rows, cols, x.dtype, tuple(options), tuple((numbers or {}).values()), x.get_device())
    plan = _ROWS.get(key)
    if plan is None:
        options = {"dtype": _name(x.dtype, "x"), "rows": rows, "cols": cols, **options}
        plan = _ROWS[key] = compiled(name, options, x.get_device(), numbers)
    return plan


def _softmax_kernel(x: Tensor) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    _enqueue(_rows_plan("softmax", x, {}), x=x, y=y)
    return y


def _softmax_fake(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_softmax = _define("softmax(Tensor x) -> Tensor", _softmax_kernel, _softmax_fake)


def _softmax_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, gradient: Tensor) -> Tensor:
    (y,) = ctx.saved_tensors
    return torch._softmax_backward_data(gradient, y, -1, y.dtype)


_differentiable("softmax", _softmax_backward, _softmax_setup)


def softmax(x: Tensor) -> Tensor:
    """Softmax over the last dimension, in float32, float16 or bfloat16. Differentiable."""
    return _softmax(x)


def _rms_norm_kernel(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    x, weight = x.contiguous(), weight.contiguous()
    y = torch.empty_like(x)
    _enqueue(_rows_plan("rms_norm", x, {}, {"eps": eps}), x=x, w=weight, y=y)
    return y


def _check_weight(x: Tensor, weight: Tensor) -> None:
    torch._check(weight.shape == x.shape[-1:], lambda: f"the weight has the shape {tuple(weight.shape)}, and rows {x.shape[-1]} elements")
    torch._check(weight.dtype == x.dtype, lambda: f"the weight has elements of {weight.dtype}, and x of {x.dtype}")


def _rms_norm_fake(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    _check_weight(x, weight)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_rms_norm = _define("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor", _rms_norm_kernel, _rms_norm_fake)


def _rms_norm_backward_kernel(gradient: Tensor, x: Tensor, weight: Tensor, eps: float) -> "tuple[Tensor, Tensor]":
    gradient, x, weight = gradient.contiguous(), x.contiguous(), weight.contiguous()
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    plan = _rows_plan("rms_norm", x, {"backward": True}, {"eps": eps})
    _enqueue(plan, x=x, dy=gradient, w=weight, dx=dx, dw=dw)
    return dx, dw


def _rms_norm_backward_fake(gradient: Tensor, x: Tensor, weight: Tensor, eps: float) -> "tuple[Tensor, Tensor]":
    return _rms_norm_fake(x, weight, eps), torch.empty_like(weight, memory_format=torch.contiguous_format)


_rms_norm_gradients = _define(
    "rms_norm_backward(Tensor gradient, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)",
    _rms_norm_backward_kernel,
    _rms_norm_backward_fake,
)


def _rms_norm_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def _rms_norm_backward(ctx: Any, gradient: Tensor) -> Any:
    x, weight = ctx.saved_tensors
    return (*_rms_norm_gradients(gradient, x, weight, ctx.eps), None)


_differentiable("rms_norm", _rms_norm_backward, _rms_norm_setup)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """`x · weight / √(mean of x² + eps)` over the last dimension, in float32, float16 or bfloat16. Differentiable, by a kernel."""
    return _rms_norm(x, weight, eps)


# Layouts


def layout_of(tensor: Tensor) -> Layout:
    """The layout of a tensor: its shape and its strides, in elements.

    >>> layout_of(torch.empty(4, 8).t())
    Layout('(8,4):(1,8)')
    """
    return Layout(tuple(tensor.shape), tuple(tensor.stride()))


def view_of(tensor: Tensor, layout: Layout) -> Tensor:
    """The elements of a tensor's memory in the order of a layout: a view with a dimension for each mode.

    >>> view_of(torch.arange(8), Layout("(2,4):(4,1)"))[1].tolist()
    [4, 5, 6, 7]
    """
    if layout.kind != "layout" or layout.swizzle is not None:
        raise ValueError(f"a tensor has a shape and strides; `{layout}` is not a plain layout")
    shape, strides = [], []
    for mode in layout:
        mode = mode.coalesce()
        if not isinstance(mode.shape, int) or not isinstance(mode.stride, int):
            raise ValueError(f"a dimension has one stride, a number; the mode `{mode}` of `{layout}` has others: flatten it, and bind names")
        shape.append(mode.shape)
        strides.append(mode.stride)
    if not isinstance(layout.offset, int):
        raise ValueError(f"a view begins at a number, and `{layout}` at `{layout.offset}`: bind the names")
    return torch.as_strided(tensor, shape, strides, tensor.storage_offset() + layout.offset)
