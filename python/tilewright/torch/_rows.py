"""Softmax and RMS norm of rows."""

from typing import Any, Optional

import torch
from torch import Tensor

from tilewright.torch._driver import compiled
from tilewright.torch._operator import Plan, check_devices, define, differentiable, element, enqueue

_ROWS: "dict[Any, Plan]" = {}


def _rows_plan(kernel: str, x: Tensor, options: "dict[str, Any]", numbers: "Optional[dict[str, float]]" = None) -> Plan:
    rows, cols = x.numel() // max(1, x.shape[-1]), x.shape[-1]
    key = (kernel, rows, cols, x.dtype, tuple(options), tuple((numbers or {}).values()), x.get_device())
    plan = _ROWS.get(key)
    if plan is None:
        options = {"dtype": element(x.dtype, "x"), "rows": rows, "cols": cols, **options}
        plan = _ROWS[key] = compiled(kernel, options, x.get_device(), numbers)
    return plan


def _softmax_kernel(x: Tensor) -> Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    enqueue(_rows_plan("softmax", x, {}), x=x, y=y)
    return y


def _softmax_fake(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_softmax = define("softmax(Tensor x) -> Tensor", _softmax_kernel, _softmax_fake)


def _softmax_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, gradient: Tensor) -> Tensor:
    (y,) = ctx.saved_tensors
    return torch._softmax_backward_data(gradient, y, -1, y.dtype)


differentiable("softmax", _softmax_backward, _softmax_setup)


def softmax(x: Tensor) -> Tensor:
    """Softmax over the last dimension, in float32, float16 or bfloat16. Differentiable."""
    return _softmax(x)


def _rms_norm_kernel(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    _check_weight(x, weight)
    x, weight = x.contiguous(), weight.contiguous()
    y = torch.empty_like(x)
    enqueue(_rows_plan("rms_norm", x, {}, {"eps": eps}), x=x, w=weight, y=y)
    return y


def _check_weight(x: Tensor, weight: Tensor) -> None:
    torch._check(weight.shape == x.shape[-1:], lambda: f"the weight has the shape {tuple(weight.shape)}, and rows {x.shape[-1]} elements")
    torch._check(weight.dtype == x.dtype, lambda: f"the weight has elements of {weight.dtype}, and x of {x.dtype}")
    check_devices(x, weight)


def _rms_norm_fake(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    _check_weight(x, weight)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_rms_norm = define("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor", _rms_norm_kernel, _rms_norm_fake)


def _rms_norm_backward_kernel(gradient: Tensor, x: Tensor, weight: Tensor, eps: float) -> "tuple[Tensor, Tensor]":
    _check_weight(x, weight)
    torch._check(gradient.shape == x.shape and gradient.dtype == x.dtype, lambda: "the gradient has the shape and the type of x")
    check_devices(x, gradient)
    gradient, x, weight = gradient.contiguous(), x.contiguous(), weight.contiguous()
    dx, dw = torch.empty_like(x), torch.empty_like(weight)
    plan = _rows_plan("rms_norm", x, {"backward": True}, {"eps": eps})
    enqueue(plan, x=x, dy=gradient, w=weight, dx=dx, dw=dw)
    return dx, dw


def _rms_norm_backward_fake(gradient: Tensor, x: Tensor, weight: Tensor, eps: float) -> "tuple[Tensor, Tensor]":
    return _rms_norm_fake(x, weight, eps), torch.empty_like(weight, memory_format=torch.contiguous_format)


_rms_norm_gradients = define(
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


differentiable("rms_norm", _rms_norm_backward, _rms_norm_setup)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """`x · weight / √(mean of x² + eps)` over the last dimension, in float32, float16 or bfloat16. Differentiable, by a kernel."""
    return _rms_norm(x, weight, eps)
