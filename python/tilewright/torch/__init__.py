"""Operators for PyTorch from kernels that come with Tilewright: matmul, scaled_mm, grouped_mm, attention, rms_norm, softmax.

>>> import tilewright.torch as tt                                                    # doctest: +SKIP
>>> y = tt.matmul(x, w.t(), bias=b, activation="gelu")                               # doctest: +SKIP

A configuration (shapes, strides, types, device) is proven and printed when it is first met, kept on disk (`TILEWRIGHT_CACHE`, by default
`~/.cache/tilewright`) and compiled by the driver; no compiler and no toolkit is needed. Operators run on the current stream, under `torch.compile` and in
CUDA graphs; warm each configuration up before a graph is captured. They have gradients where it is said. Tensors of the CPU go to the emulator, which is slow and
raises what it finds: a test needs no GPU.

`layout_of` is the layout of a tensor, and `view_of` the tensor of a layout.
"""

from tilewright.torch._attention import attention
from tilewright.torch._layouts import layout_of, view_of
from tilewright.torch._matmul import matmul
from tilewright.torch._rows import rms_norm, softmax
from tilewright.torch._scaled import grouped_mm, scaled_mm

__all__ = ["attention", "grouped_mm", "layout_of", "matmul", "rms_norm", "scaled_mm", "softmax", "view_of"]
