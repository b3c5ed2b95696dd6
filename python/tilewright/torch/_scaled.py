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


def _blocks(extent: int) -> int:
    """The blocks of 128 elements that cover an extent."""
    return -(-extent // 128)


def _padded(scales: Tensor) -> Tensor:
    """Scales (blocks of k, rows), with rows padded to 16 bytes, as TMA reads them."""
    more = -scales.shape[1] % 4
    return torch.nn.functional.pad(scales, (0, more)) if more else scales.contiguous()


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
        scale_a = _padded(scale_a.t())
        scale_b = scale_b.t().contiguous() if kind == "1x128,128x128" else _padded(scale_b)
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
    blocks_n, blocks_k = _blocks(n), _blocks(k)
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
    torch._check(offsets.shape == (b.shape[0],), lambda: f"there are {b.shape[0]} groups, and offsets of the shape {tuple(offsets.shape)}")
    (m, k), (groups, _, n) = a.shape, b.shape
    a, rows, offsets = a.contiguous(), _columns(b), offsets.to(torch.int32).contiguous()
    scales: "dict[str, Tensor]" = {}
    kind = "none"
    if scale_a is not None and scale_b is not None:
        kind = _grouped_scales((m, n, k, groups), scale_a, scale_b)
        by_rows = kind == "row,row"
        scales = {
            "scale_a": scale_a.contiguous() if by_rows else _padded(scale_a.t()),
            "scale_b": scale_b.contiguous() if by_rows else scale_b.transpose(1, 2).contiguous(),
        }
    key = (m, n, k, groups, a.dtype, out_dtype, kind, a.get_device())
    plan = _GROUPED.get(key)
    if plan is None:
        options = {"kind": "offsets", "groups": groups, "m": m, "n": n, "k": k, "scales": kind}
        options.update(dtype=element(a.dtype, "a"), ctype=element(out_dtype, "the result"))
        if a.is_cuda:
            options["blocks"] = torch.cuda.get_device_properties(a.get_device()).multi_processor_count
        plan = _GROUPED[key] = compiled("grouped", options, a.get_device())
    c = a.new_empty((m, n), dtype=out_dtype)
    enqueue(plan, offsets=offsets, a=a, b=rows, c=c, **scales)
    return c


def _grouped_scales(shape: "tuple[int, int, int, int]", scale_a: Tensor, scale_b: Tensor) -> str:
    """Which elements have a scale in common."""
    (m, n, k, groups), of_a, of_b = shape, tuple(scale_a.shape), tuple(scale_b.shape)
    if (of_a, of_b) == ((m,), (groups, n)):
        return "row,row"
    blocks = (m, _blocks(k)), (groups, _blocks(k), _blocks(n))
    if (of_a, of_b) == blocks:
        return "1x128,128x128"
    raise ValueError(f"scales have the shapes {of_a} and {of_b}; there are ({m},) and ({groups}, {n}), and {blocks[0]} and {blocks[1]}")


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
    with float32 scales: (m) of rows of a and (groups, n) of columns of b, or (m, k/128) and (groups, k/128, n/128), that is 1x128 and 128x128. Rows behind the last
    group are not written.
    """
    return _grouped(a, b, offs, scale_a, scale_b, out_dtype or torch.bfloat16)
