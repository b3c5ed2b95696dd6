"""Attention."""

from typing import Any, Optional, Sequence

import torch
from torch import Tensor

from tilewright.torch._driver import compiled
from tilewright.torch._operator import Plan, check_devices, define, element, enqueue, not_differentiable

_ATTENTION: "dict[Any, Plan]" = {}


def _by_heads(tensors: "Sequence[Tensor]") -> bool:
    """Whether tensors (batch, head, sequence, d) lie as (batch, sequence, head, d), as a projection leaves them."""
    return all(x.transpose(1, 2).is_contiguous() for x in tensors) and not all(x.is_contiguous() for x in tensors)


def _check_attention(q: Tensor, k: Tensor, v: Tensor) -> None:
    torch._check(q.dim() == k.dim() == v.dim() == 4, lambda: "q, k and v are (batch, head, sequence, d)")
    torch._check(q.dtype == k.dtype == v.dtype, lambda: f"q, k and v have elements of {q.dtype}, {k.dtype} and {v.dtype}")
    alike = k.shape[:3] == v.shape[:3] and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3]
    torch._check(
        alike, lambda: f"q, k and v have the shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}, which do not go together"
    )


def _attention_kernel(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: "list[int]", softcap: float) -> Tensor:
    _check_attention(q, k, v)
    check_devices(q, k, v)
    by_heads = _by_heads((q, k, v))
    if not by_heads:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    key = (q.shape, k.shape, v.shape, q.dtype, causal, tuple(window), softcap, by_heads, q.get_device())
    plan = _ATTENTION.get(key)
    if plan is None:
        options = {"dtype": element(q.dtype, "q"), "batch": q.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1]}
        options.update(queries=q.shape[2], keys=k.shape[2], head_dim=q.shape[3], value_dim=v.shape[3], causal=causal)
        options["layout"] = "bshd" if by_heads else "bhsd"
        if window:
            options["window"] = f"{window[0]},{window[1]}"
        if softcap:
            options["softcap"] = softcap
        plan = _ATTENTION[key] = compiled("attention", options, q.get_device())
    o = _attention_fake(q, k, v, causal, window, softcap)
    enqueue(plan, q=q, k=k, v=v, o=o)
    return o


def _attention_fake(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: "list[int]", softcap: float) -> Tensor:
    _check_attention(q, k, v)
    batch, heads, queries, _ = q.shape
    if _by_heads((q, k, v)):
        return q.new_empty((batch, queries, heads, v.shape[3])).transpose(1, 2)
    return q.new_empty((batch, heads, queries, v.shape[3]))


_attention = define(
    "attention(Tensor q, Tensor k, Tensor v, bool causal, int[] window, float softcap) -> Tensor", _attention_kernel, _attention_fake
)


not_differentiable("attention")


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
