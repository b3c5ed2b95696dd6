"""The kernels that come with Tilewright, with their launch contracts."""

from dataclasses import dataclass, field
from typing import Any, Optional

from tilewright import _native
from tilewright._run import Report, run_contract


@dataclass(frozen=True)
class Option:
    """An option of a kernel: what it says, its default, and whether it is True or False."""

    name: str
    about: str
    default: Optional[str]
    is_flag: bool


@dataclass(frozen=True)
class KernelInfo:
    """What a kernel computes, and its options."""

    name: str
    computes: str
    options: "tuple[Option, ...]"


@dataclass(frozen=True)
class Launch:
    """One launch: its geometry and its parameters in order, each a dict of `name`, `type` and `value` as in the launch contract.

    `cluster_declared` says that the PTX declares the cluster, so that the launch needs no attribute, and `beside_previous` that the kernel waits for the
    one before it on the stream (programmatic dependent launch).
    """

    kernel: str
    grid: "tuple[int, int, int]"
    block: "tuple[int, int, int]"
    cluster: "tuple[int, int, int]"
    cluster_declared: bool
    beside_previous: bool
    shared_bytes: int
    params: "list[dict[str, Any]]"


@dataclass(frozen=True)
class Kernel:
    """A kernel that is proven and printed for one configuration.

    `ptx` is its text, `launches` what a host enqueues in order, `report` what the command prints with `--json`, of which `report["launch"]` is the launch
    contract.
    """

    ptx: str = field(repr=False)
    report: "dict[str, Any]" = field(repr=False)
    name: str = ""

    @property
    def contract(self) -> "Optional[dict[str, Any]]":
        """The launch contract; None if there is nothing to launch."""
        return self.report["launch"]

    @property
    def launches(self) -> "list[Launch]":
        """The launches in order."""
        contract = self.contract
        if contract is None:
            return []
        steps = [*contract["before"], contract, *contract["after"]]
        return [
            Launch(
                step["kernel"],
                tuple(step["grid"]),
                tuple(step["block"]),
                tuple(step["cluster"]),
                step["cluster_declared"],
                step["beside_previous"],
                step["shared_bytes"],
                step["params"],
            )
            for step in steps
        ]

    @property
    def buffers(self) -> "list[dict[str, Any]]":
        """The buffers by name, with their bytes, alignment and usage: input, output or in_out."""
        return [] if self.contract is None else self.contract["memory"]["buffers"]

    @property
    def arch(self) -> str:
        """The architecture that the kernel is printed for."""
        return self.report["arch"]

    def run(self, **arrays: Any) -> Report:
        """Runs the launches on the emulator, with an array for each of `buffers`; what is written is in the arrays afterwards.

        Arrays are anything with a buffer of bytes, such as those of numpy. The workspace needs none.
        """
        return run_contract(self.ptx, self.launches, self.buffers, arrays)


def kernels() -> "dict[str, KernelInfo]":
    """The kernels by name.

    >>> kernels()["softmax"].computes
    'Softmax of each row'
    """
    return {
        name: KernelInfo(name, computes, tuple(Option(*option) for option in options))
        for name, (computes, options) in _native.kernels().items()
    }


def kernel(name: str, **options: Any) -> Kernel:
    """A kernel that comes with Tilewright, proven and printed for these options, which are those of `tilewright kernel NAME`.

    The architecture is the first that the kernel runs on unless `arch="sm_90"` or another is given.
    """
    ptx, report = _native.kernel(name, options)
    return Kernel(ptx, report, name)


def gemm(**options: Any) -> Kernel:
    """A GEMM, proven and printed for these options, which are those of `tilewright gemm`: `dtype`, `m`, `n`, `k`, `trans`, `plan`, `arch`, …

    >>> gemm(dtype="f16", m=512, n=512, k=512, arch="sm_80").report["ctype"]
    'f16'
    """
    ptx, report = _native.gemm(options)
    return Kernel(ptx, report, "gemm")
