"""Layouts of tensors."""

import torch
from torch import Tensor

from tilewright import Layout


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
            raise ValueError(
                f"a dimension has one stride, a number; the mode `{mode}` of `{layout}` has others: flatten it, and bind names"
            )
        shape.append(mode.shape)
        strides.append(mode.stride)
    if not isinstance(layout.offset, int):
        raise ValueError(f"a view begins at a number, and `{layout}` at `{layout.offset}`: bind the names")
    return torch.as_strided(tensor, shape, strides, tensor.storage_offset() + layout.offset)
