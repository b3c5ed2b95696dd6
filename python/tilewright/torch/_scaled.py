"""Products with scales, and of groups."""

from typing import Any, Optional

import torch
from torch import Tensor

from tilewright.torch._driver import compiled
from tilewright.torch._matmul import check_product
from tilewright.torch._operator import Plan, check_devices, define, element, enqueue, not_differentiable


def _columns(b: Tensor) -> Tensor:
    """The rows of n × k that kernels take, of b as PyTorch has it: k × n, by columns."""
    return b.transpose(-2, -1).contiguous()


_SCALED: "dict[Any, Plan]" = {}


def _scaled_kernel(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, out_dtype: torch.dtype) -> Tensor:
    check_product(a, b)
    check_devices(a, scale_a, scale_b)
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
        options = {"dtype": element(a.dtype, "a"), "ctype": element(out_dtype, "the result"), "scales": kind, "m": m, "n": n, "k": k}
        plan = _SCALED[key] = compiled("block_scaled", options, a.get_device())
    c = a.new_empty((m, n), dtype=out_dtype)
    enqueue(plan, a=a, b=rows, scale_a=scale_a, scale_b=scale_b, c=c)
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
    check_product(a, b)
    return a.new_empty((a.shape[0], b.shape[1]), dtype=out_dtype)


_scaled = define(
    "scaled_mm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, ScalarType out_dtype) -> Tensor", _scaled_kernel, _scaled_fake
)


not_differentiable("scaled_mm")


def scaled_mm(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, *, out_dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """The product of 8-bit floats with scales, as `torch._scaled_mm` has it: a (m, k) by rows, b (k, n) by columns. On Hopper; not differentiable.

    Scales are float32: one number each; (m, 1) and (1, n); (m, k/128) and (k/128, n/128), that is 1x128 and 128x128; or (m, k/128) and (k/128, n).
    k is a multiple of 16.
    """
    return _scaled(a, b, scale_a, scale_b, out_dtype)


_GROUPED: "dict[Any, Plan]" = {}


def _check_grouped(a: Tensor, b: Tensor) -> None:
    torch._check(a.dim() == 2 and b.dim() == 3, lambda: "a is (m, k), and b (groups, k, n)")
    torch._check(a.shape[1] == b.shape[1], lambda: f"a has {a.shape[1]} columns, and the matrices of b {b.shape[1]} rows")
    torch._check(a.dtype == b.dtype, lambda: f"a has elements of {a.dtype}, and b of {b.dtype}")


def _grouped_kernel(
    a: Tensor, b: Tensor, offsets: Tensor, scale_a: Optional[Tensor], scale_b: Optional[Tensor], out_dtype: torch.dtype
) -> Tensor:
    _check_grouped(a, b)
    check_devices(a, b, offsets, scale_a, scale_b)
    (m, k), (groups, _, n) = a.shape, b.shape
    a, rows, offsets = a.contiguous(), _columns(b), offsets.to(torch.int32).contiguous()
    scaled = scale_a is not None and scale_b is not None
    key = (m, n, k, groups, a.dtype, out_dtype, scaled, a.get_device())
    plan = _GROUPED.get(key)
    if plan is None:
        options = {"kind": "offsets", "groups": groups, "m": m, "n": n, "k": k}
        options.update(dtype=element(a.dtype, "a"), ctype=element(out_dtype, "the result"), scales="row" if scaled else "none")
        if a.is_cuda:
            options["blocks"] = torch.cuda.get_device_properties(a.get_device()).multi_processor_count
        plan = _GROUPED[key] = compiled("grouped", options, a.get_device())
    c = a.new_empty((m, n), dtype=out_dtype)
    scales = {} if scale_a is None or scale_b is None else {"scale_a": scale_a.contiguous(), "scale_b": scale_b.contiguous()}
    enqueue(plan, offsets=offsets, a=a, b=rows, c=c, **scales)
    return c


def _grouped_fake(
    a: Tensor, b: Tensor, offsets: Tensor, scale_a: Optional[Tensor], scale_b: Optional[Tensor], out_dtype: torch.dtype
) -> Tensor:
    _check_grouped(a, b)
    return a.new_empty((a.shape[0], b.shape[2]), dtype=out_dtype)


_grouped = define(
    "grouped_mm(Tensor a, Tensor b, Tensor offsets, Tensor? scale_a, Tensor? scale_b, ScalarType out_dtype) -> Tensor",
    _grouped_kernel,
    _grouped_fake,
)


not_differentiable("grouped_mm")


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
