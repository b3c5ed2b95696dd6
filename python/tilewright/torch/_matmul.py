"""Products of matrices, with an epilogue."""

from typing import Any, Optional

import torch
from torch import Tensor

from tilewright.torch._driver import compiled
from tilewright.torch._operator import Plan, check_devices, define, differentiable, element, enqueue, launch


def _order(x: Tensor) -> "Optional[tuple[str, int]]":
    """Whether a matrix lies by rows (n) or by columns (t), and its leading dimension; None if neither."""
    (rows, cols), (down, across) = x.shape, x.stride()
    if (across == 1 or cols == 1) and (down >= cols or rows == 1):
        return "n", down if rows > 1 else cols
    if (down == 1 or rows == 1) and (across >= rows or cols == 1):
        return "t", across if cols > 1 else rows
    return None


_PRODUCTS: "dict[Any, Plan]" = {}


def _product(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, result: torch.dtype, align: int) -> Plan:
    """The kernel of a product, whose operands lie by rows or by columns."""
    (order_a, lda), (order_b, ldb) = _order(a), _order(b)  # type: ignore[misc]
    dtype = element(a.dtype, "a")
    if dtype == "f32" and torch.backends.cuda.matmul.allow_tf32:
        dtype = "tf32"
    options = {
        "dtype": dtype,
        "ctype": element(result, "the result"),
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


def check_product(a: Tensor, b: Tensor) -> None:
    torch._check(a.dim() == 2 and b.dim() == 2, lambda: f"a and b are matrices, not of shapes {tuple(a.shape)} and {tuple(b.shape)}")
    torch._check(a.shape[1] == b.shape[0], lambda: f"a has {a.shape[1]} columns, and b {b.shape[0]} rows")
    torch._check(a.dtype == b.dtype, lambda: f"a has elements of {a.dtype}, and b of {b.dtype}")
    check_devices(a, b)


def _alignment(a: Tensor, b: Tensor, bias: Optional[Tensor]) -> int:
    """The bytes up to 16 that all addresses are a multiple of."""
    joined = 16 | a.data_ptr() | b.data_ptr() | (0 if bias is None else bias.data_ptr())
    return joined & -joined


def _key(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, result: torch.dtype) -> Any:
    """What the kernel of a product depends on."""
    tf32 = a.dtype is torch.float32 and torch.backends.cuda.matmul.allow_tf32
    tensors = (a.shape, a.stride(), a.dtype, a.get_device(), b.shape, b.stride(), b.dtype, b.get_device())
    return (*tensors, result, bias is None, activation, _alignment(a, b, bias), tf32)


def _result(a: Tensor) -> torch.dtype:
    """The type of a product where nobody asks for another."""
    return torch.int32 if a.dtype == torch.int8 else a.dtype


def _multiply(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, result: torch.dtype) -> Tensor:
    key = _key(a, b, bias, activation, result)
    plan = _PRODUCTS.get(key)
    if plan is None:
        check_product(a, b)
        # What is empty, or lies neither by rows nor by columns, is rare.
        if _order(a) is None or _order(b) is None:
            return _multiply(a if _order(a) else a.contiguous(), b if _order(b) else b.contiguous(), bias, activation, result)
        if a.numel() == 0 or b.numel() == 0:
            zeros = a.new_zeros((a.shape[0], b.shape[1]), dtype=result)
            return _activated(zeros if bias is None else zeros + bias, activation)
        plan = _PRODUCTS[key] = _product(a, b, bias, activation, result, _alignment(a, b, bias))
        # Plain products pass addresses by their order.
        assert plan.buffers[:3] == ["a", "b", "c"], plan.buffers
    c = a.new_empty((a.shape[0], b.shape[1]), dtype=result)
    if bias is None:
        enqueue(plan, a=a, b=b, c=c)
    else:
        enqueue(plan, a=a, b=b, c=c, bias=bias)
    return c


def _activated(x: Tensor, activation: str) -> Tensor:
    if activation == "relu":
        return torch.relu(x)
    return torch.nn.functional.gelu(x, approximate="tanh") if activation == "gelu" else x


# Plain products by a shorter key, and the shapes of their results: what is most often called does least.
_PLAIN: "dict[Any, tuple[Plan, tuple[int, int]]]" = {}


def _mm_kernel(a: Tensor, b: Tensor) -> Tensor:
    at_a, at_b = a.data_ptr(), b.data_ptr()
    of_a, of_b = (a.shape, a.stride(), a.dtype, a.get_device()), (b.shape, b.stride(), b.dtype, b.get_device())
    key = (of_a, of_b, (at_a | at_b) & 15)
    known = _PLAIN.get(key)
    if known is not None:
        plan, shape = known
        c = a.new_empty(shape)
        launch(plan, at_a, at_b, c.data_ptr())
        return c
    c = _multiply(a, b, None, "none", _result(a))
    # Of float32 the kernel depends on what PyTorch allows at the time.
    if c.dtype == a.dtype and a.dtype is not torch.float32:
        made = _PRODUCTS.get(_key(a, b, None, "none", c.dtype))
        if made is not None:
            _PLAIN[key] = made, (c.shape[0], c.shape[1])
    return c


def _mm_fake(a: Tensor, b: Tensor) -> Tensor:
    check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=_result(a))


_mm = define("mm(Tensor a, Tensor b) -> Tensor", _mm_kernel, _mm_fake)


def _mm_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _mm_backward(ctx: Any, gradient: Tensor) -> Any:
    a, b = ctx.saved_tensors
    to_a, to_b = ctx.needs_input_grad
    return _mm(gradient, b.t()) if to_a else None, _mm(a.t(), gradient) if to_b else None


differentiable("mm", _mm_backward, _mm_setup)


def _linear_kernel(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, out_dtype: Optional[torch.dtype]) -> Tensor:
    result = out_dtype or _result(a)
    if bias is not None:
        shape, dtype = tuple(bias.shape), bias.dtype
        torch._check(shape == (b.shape[1],), lambda: f"the bias has the shape {shape}, and the result {b.shape[1]} columns")
        torch._check(dtype == result, lambda: f"the bias has elements of {dtype}, and the result of {result}")
        check_devices(a, bias)
        bias = bias.contiguous()
    return _multiply(a, b, bias, activation, result)


def _linear_fake(a: Tensor, b: Tensor, bias: Optional[Tensor], activation: str, out_dtype: Optional[torch.dtype]) -> Tensor:
    check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype or _result(a))


_linear = define("linear(Tensor a, Tensor b, Tensor? bias, str activation, ScalarType? out_dtype) -> Tensor", _linear_kernel, _linear_fake)


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


differentiable("linear", _linear_backward, _linear_setup)


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
