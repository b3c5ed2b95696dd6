"""PTX on the emulator, with arrays as arguments and a report of what was found."""

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from tilewright import _native

# What the alignment of buffers is where nobody says more.
ALIGNMENT = 256


@dataclass(frozen=True)
class Finding:
    """What a kernel did wrong: the kind, such as "out_of_bounds" or "race", the place in the PTX, and the buffer that it is about."""

    kind: str
    message: str
    line: int
    column: int
    opcode: str
    kernel: str
    block: "tuple[int, int, int]"
    warp: int
    lanes: int
    address: Optional[int]
    buffer: Optional[str]
    count: int
    source: "Optional[dict[str, Any]]"
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text if self.buffer is None else f"{self.text}, buffer `{self.buffer}`"


@dataclass(frozen=True)
class Counters:
    """What a launch cost: instructions, and wavefronts of shared memory in all and by access."""

    kernel: str
    warp_instructions: int
    lane_instructions: int
    wavefronts: int
    ideal_wavefronts: int
    shared: "list[dict[str, Any]]"


@dataclass(frozen=True)
class Report:
    """What a run on the emulator found and counted. It is true if nothing was found."""

    findings: "list[Finding]"
    notes: "list[Finding]"
    total_findings: int
    counters: "list[Counters]"
    printed: str
    blocks: int
    time_ms: float

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return self.total_findings == 0

    def __bool__(self) -> bool:
        return self.passed

    def raise_findings(self) -> "Report":
        """The report itself, or a KernelError that lists the findings."""
        if self.passed:
            return self
        more = self.total_findings - len(self.findings)
        lines = [*map(str, self.findings), *([f"{more} more"] if more > 0 else [])]
        error = _native.KernelError("\n".join(lines))
        error.code, error.message, error.span, error.text = "findings", lines[0], None, None
        raise error


def _finding(value: "dict[str, Any]") -> Finding:
    value = {key: item for key, item in value.items() if key != "also"}
    return Finding(**{**value, "block": tuple(value["block"])})


def _report(value: "dict[str, Any]") -> Report:
    value["findings"] = [_finding(one) for one in value["findings"]]
    value["notes"] = [_finding(one) for one in value["notes"]]
    value["counters"] = [Counters(**one) for one in value["counters"]]
    return Report(**value)


def _triple(extent: "Union[int, Sequence[int]]", what: str) -> "list[int]":
    """x, y and z of a grid, block or cluster."""
    given = [extent] if hasattr(extent, "__index__") else list(extent)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{what} has one to three extents, not {len(given)}")
    return [*given, 1, 1][:3]


def _bytes_of(array: Any) -> Optional[memoryview]:
    """The bytes of an array where it lies, or None if it is none."""
    try:
        view = memoryview(array)
    except TypeError:
        return None
    except ValueError:  # elements that the buffer protocol has no letter for, such as those of ml_dtypes
        view = memoryview(array.view("uint8"))
    if not view.c_contiguous:
        raise ValueError("an array's elements lie one after the other, the last index fastest: give a contiguous copy")
    if view.nbytes == 0:
        return memoryview(b"")
    if view.ndim != 1 or view.format != "B":
        try:
            view = view.cast("B")
        except (TypeError, ValueError):
            view = memoryview(array.view("uint8")).cast("B")
    return view


def _is_scalar(value: Any) -> bool:
    """A number, also one of numpy, which has a buffer too."""
    return isinstance(value, (int, float)) or (getattr(value, "shape", None) == () and hasattr(value, "item"))


def _write_back(views: "Iterable[Optional[memoryview]]", contents: "Sequence[bytes]") -> None:
    for view, content in zip(views, contents):
        if view is not None and not view.readonly and view.nbytes:
            view[:] = content


def run(
    ptx: str,
    kernel: Optional[str] = None,
    *,
    grid: "Union[int, Sequence[int]]" = 1,
    block: "Union[None, int, Sequence[int]]" = None,
    args: "Union[Sequence[Any], Mapping[str, Any]]" = (),
    cluster: "Union[None, int, Sequence[int]]" = None,
    shared_bytes: int = 0,
    also: "Sequence[str]" = (),
    device: str = "h100",
    schedule: int = 0,
    step_limit: Optional[int] = None,
) -> Report:
    """Runs a kernel of a PTX text on the emulator, with the sanitizer.

    `args` are the parameters in order, or by name: an array (anything with a buffer of bytes, such as those of numpy) is a buffer, which the
    kernel reads and writes in place; a number has the type of its parameter; bytes are a structure. `kernel` need not be named if the text has one.
    `block` is 32 threads unless the text requires another, and `cluster` as the text requires.

    `also` reports more: "undefined_global", "global_races", "lane_races". `device` says how many blocks run at once. `schedule` is another order of blocks and
    warps, and `step_limit` ends a run after so many instructions.

    >>> text = ".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry seven(.param .u64 x) { .reg .b64 %d<1>; ld.param.u64 %d0, [x]; st.global.u32 [%d0], 7; ret; }"
    >>> x = bytearray(4)
    >>> run(text, block=1, args=[x]).passed, x[0]
    (True, 7)
    >>> run(text, block=1, args=[bytearray(3)]).findings[0].kind
    'out_of_bounds'
    """
    entries = _native.entries(ptx)
    if kernel is None:
        if len(entries) != 1:
            raise ValueError(f"the text has {len(entries)} kernels, choose one by kernel=: {', '.join(sorted(entries))}")
        (kernel,) = entries
    params = entries.get(kernel, [])
    names = [name for name, _, _ in params]
    if isinstance(args, Mapping):
        unknown, missing = [n for n in args if n not in names], [n for n in names if n not in args]
        if unknown or missing:
            raise ValueError(f"the parameters of `{kernel}` are {', '.join(names)}; missing: {missing}, unknown: {unknown}")
        args = [args[name] for name in names]
    buffers: "list[dict[str, Any]]" = []
    views: "list[memoryview]" = []
    values: "list[Any]" = []
    by_array: "dict[int, int]" = {}
    for place, arg in enumerate(args):
        view = None if isinstance(arg, bytes) or _is_scalar(arg) else _bytes_of(arg)
        if view is None:
            values.append(arg.item() if hasattr(arg, "item") else arg)
            continue
        # The same array twice is one buffer.
        if id(arg) not in by_array:
            by_array[id(arg)] = len(buffers)
            name = names[place] if place < len(names) else str(place)
            buffers.append({"name": name, "content": bytes(view), "alignment": ALIGNMENT})
            views.append(view)
        values.append({"buffer": by_array[id(arg)], "offset": 0})
    launch = {
        "kernel": kernel,
        "grid": _triple(grid, "a grid"),
        "block": None if block is None else _triple(block, "a block"),
        "cluster": None if cluster is None else _triple(cluster, "a cluster"),
        "shared_bytes": shared_bytes,
        "params": values,
    }
    options = {"also": list(also), "device": device, "schedule": schedule}
    if step_limit is not None:
        options["step_limit"] = step_limit
    report, contents = _native.run(ptx, buffers, [launch], options)
    _write_back(views, contents)
    return _report(report)


def place_of(value: "dict[str, Any]") -> "tuple[str, int]":
    """The buffer that a contract's value names, in lower case, and bytes into it."""
    if "workspace" in value:
        return "workspace", value["workspace"]
    for kind in ("matrix", "tensor", "buffer"):
        if kind in value:
            return value[kind].lower(), 0
    return "bias", 0


def run_contract(ptx: str, launches: "Sequence[Any]", buffers: "Sequence[dict[str, Any]]", arrays: "Mapping[str, Any]") -> Report:
    """Runs the launches of a contract on the emulator, with an array for each buffer but the workspace."""
    given = {name.lower(): array for name, array in arrays.items()}
    names = [one["name"].lower() for one in buffers]
    wanted = [name for name in names if name != "workspace"]
    unknown, missing = [n for n in given if n not in wanted], [n for n in wanted if n not in given]
    if unknown or missing:
        raise ValueError(f"the buffers are {', '.join(wanted)}; missing: {missing}, unknown: {unknown}")
    placed, views = [], []
    for name, one in zip(names, buffers):
        view = _bytes_of(given[name]) if name in given else None
        if view is not None and one["bytes"] is not None and view.nbytes < one["bytes"]:
            raise ValueError(f"`{name}` has {view.nbytes} bytes, and the kernel takes {one['bytes']}")
        content = one["bytes"] or 0 if view is None else bytes(view)
        placed.append({"name": name, "content": content, "alignment": ALIGNMENT})
        views.append(view)

    def value(param: "dict[str, Any]") -> Any:
        kind, given = param["type"], param["value"]
        if kind not in ("ptr", "tensor_map"):
            return float(given) if kind in ("f32", "f64") else given
        name, offset = place_of(given if kind == "ptr" else given["tensor_map"])
        of = {"buffer": names.index(name), "offset": offset}
        return of if kind == "ptr" else {**of, "map": given}

    jobs = [
        {
            "kernel": one.kernel,
            "grid": list(one.grid),
            "block": list(one.block),
            "cluster": list(one.cluster),
            "shared_bytes": one.shared_bytes,
            "params": [value(param) for param in one.params],
        }
        for one in launches
    ]
    report, contents = _native.run(ptx, placed, jobs, {})
    _write_back(views, contents)
    return _report(report)
