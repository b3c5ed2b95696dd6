"""A layout algebra for GPU tiles: exact composition, proven bank-conflict freedom, PTX kernels, and an emulator with a sanitizer.

>>> import tilewright as tw
>>> tw.layout("(6,2):(8,2)") @ tw.layout("(4,3):(3,1)")
Layout('((2,2),3):((24,2),8)')
>>> tw.derive("64x64", "f16", ["ldmatrix.x4 @ (16,2):(64,8)"])["layout"]
'Sw<3,3,3> o (64,64):(64,1)'
>>> tw.kernel("softmax", dtype="bf16", rows=64, cols=700).launches[0].block
(128, 1, 1)

Layouts are in CuTe's notation, and the functions have CuTe's names, those of pycute among them. `tilewright.algebra` has all functions of the calculator.
`tilewright.torch` gives operators for PyTorch.
"""

from typing import TYPE_CHECKING, Any, Union

from tilewright._kernels import Kernel, KernelInfo, Launch, Option, gemm, kernel, kernels
from tilewright._native import (
    Error,
    KernelError,
    Layout,
    LayoutError,
    Picture,
    derive,
    evaluate,
    index,
    instruction,
    instructions,
    wavefronts,
    written,
)
from tilewright._run import Counters, Finding, Report, run
from tilewright.algebra import (
    blocked_product,
    coalesce,
    complement,
    composition,
    congruent,
    cosize,
    crd2idx,
    depth,
    flat_divide,
    flat_product,
    flatten,
    idx2crd,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_layout,
    make_swizzle,
    nullspace,
    raked_product,
    rank,
    right_inverse,
    shape_div,
    size,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)

if TYPE_CHECKING:
    from tilewright._native import Operand


def layout(shape: "Operand", stride: "Operand" = None) -> Layout:
    """A layout: of the notation or any expression of the calculator, or of a shape and a stride.

    >>> layout("Sw<3,3,3> o (64,64):(64,1)")((1, 0))
    72
    >>> layout((4, 8), (8, 1)) == layout("(4,8):(8,1)")
    True
    """
    return Layout(shape, stride)


def swizzle(b: int, m: int, s: int) -> Layout:
    """The swizzle `Sw<b,m,s>`, to be composed with a layout: `swizzle(3, 3, 3) @ layout("(64,64):(64,1)")`.

    `s` is relative, as in CuTe: the source bits are m+s to m+s+b.
    """
    return make_swizzle(b, m, s)


def banks(
    *accesses: str, layout: "Operand" = None, tile: "Union[None, str, tuple[int, int]]" = None, elem: "Union[str, int]" = "f32"
) -> "list[dict[str, Any]]":
    """The wavefronts of warp accesses to a tile, the fewest that they could take, and the best layout for each.

    An access is "OP @ LAYOUT", whose layout maps the lane to the row-major index of its first element. Without a layout the tile is row-major.

    >>> [access["wavefronts"] for access in banks("ld.32 @ 32:32", tile=(32, 32))]
    [32]
    """
    return wavefronts(list(accesses), layout=layout, tile=tile, elem=elem)


__all__ = [
    "Counters",
    "Error",
    "Finding",
    "Kernel",
    "KernelError",
    "KernelInfo",
    "Launch",
    "Layout",
    "LayoutError",
    "Option",
    "Picture",
    "Report",
    "banks",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "congruent",
    "cosize",
    "crd2idx",
    "depth",
    "derive",
    "evaluate",
    "flat_divide",
    "flat_product",
    "flatten",
    "gemm",
    "idx2crd",
    "index",
    "instruction",
    "instructions",
    "kernel",
    "kernels",
    "layout",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_layout",
    "make_swizzle",
    "nullspace",
    "raked_product",
    "rank",
    "right_inverse",
    "run",
    "shape_div",
    "size",
    "swizzle",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "written",
    "zipped_divide",
    "zipped_product",
]
