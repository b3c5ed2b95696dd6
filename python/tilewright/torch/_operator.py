"""What operators have in common: their registration, and the launch of a kernel that is ready."""

from typing import Any, Optional, Union

import torch
from torch import Tensor

from tilewright.torch._driver import Compiled, Emulated

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
Plan = Union[Compiled, Emulated]

# The number of a stream, without an object of it. A PyTorch for the CPU alone has neither.
_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_current_device: Any = getattr(torch._C, "_cuda_getDevice", None)


def launch(plan: Plan, *addresses: int) -> None:
    """Enqueues a kernel on the current stream of its device."""
    device = plan.device
    if device < 0:
        plan.launch(0, *addresses)
    elif device == _current_device():
        plan.launch(_stream(device), *addresses)
    else:
        with torch.cuda.device(device):
            plan.launch(_stream(device), *addresses)


def enqueue(plan: Plan, **tensors: Tensor) -> None:
    """Enqueues a kernel whose buffers are given by name."""
    launch(plan, *(tensors[name].data_ptr() for name in plan.buffers if name != "workspace"))


def element(dtype: torch.dtype, what: str) -> str:
    """The kernels' name of an element type."""
    name = _NAMES.get(dtype)
    if name is None:
        raise TypeError(f"{what} has elements of {dtype}; there are {', '.join(map(str, _NAMES))}")
    return name


def define(schema: str, kernel: Any, fake: Any) -> Any:
    """An operator with its kernel and its shapes."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema, tags=_TAGS)
    _LIBRARY.impl(name, kernel, "CUDA")
    _LIBRARY.impl(name, kernel, "CPU")
    torch.library.register_fake(f"tilewright::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.tilewright, name).default


def differentiable(name: str, backward: Any, setup: Any) -> None:
    """Gives an operator gradients."""
    torch.library.register_autograd(f"tilewright::{name}", backward, setup_context=setup, lib=_LIBRARY)


def not_differentiable(name: str) -> None:
    """Makes gradients through an operator an error, and not silence."""

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise NotImplementedError(f"tilewright.torch.{name} has no gradients: call it under torch.no_grad(), or on detached tensors")

    differentiable(name, backward, lambda ctx, inputs, output: None)


def check_devices(first: Tensor, *others: Optional[Tensor]) -> None:
    """An address of another device is no address."""
    for other in others:
        if other is not None and other.device != first.device:
            raise ValueError(f"tensors are on {first.device} and on {other.device}: move them to one device")
