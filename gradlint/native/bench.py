"""Times the reference operators, in a worker that loads them."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradlint.base.errors import GradlintError
from gradlint.base.text import did_you_mean
from gradlint.model.settings import DTYPES
from gradlint.native import _tools
from gradlint.native._workloads import Maker, Sizes, Work, unusual, workloads
from gradlint.native.progress import Progress, progress_sink
from gradlint.native.reference import load_reference

#: Sizes by device: large enough that no cache holds the inputs, small enough for seconds.
DEFAULTS = {"cuda": Sizes(2**26, 4096), "cpu": Sizes(2**20, 512)}

#: Seconds of calls that are not counted, and their least number: allocator and caches need some to
#: settle, and a GPU that was idle takes tenths of a second to raise its clock rates (heuristic).
_WARM_UP_S = {"cuda": 0.25, "cpu": 0.0}
_WARM_UP = 3

#: Seconds for the calls that are timed, and their least and greatest number.
_SECONDS = 0.3
_FEWEST, _MOST = 5, 100


def bench(
    device: str | None,
    dtype: str,
    elements: int | None,
    matrix: int | None,
    names: Sequence[str],
) -> dict[str, Any]:
    """Time forward and backward of the operators, and of eager PyTorch for the same.

    Args:
        device: "cpu" or "cuda"; None for CUDA where there is one.
        dtype: such as "float32".
        elements, matrix: see :class:`Sizes`; None for the default of the device.
        names: operators; all where empty.

    Returns:
        ``device``, ``dtype``, ``versions``, the measured ``copy_bytes_per_s`` (the better of
        the two before and after) and ``matmul_flops_per_s``, and ``rows``: for each operator and
        pass its ``seconds``, those of eager PyTorch (None where it has nothing like it), and
        ``of_floor``, the share of the time that a copy of as many bytes, or a matrix product of as
        many operations, would have taken.

    Raises:
        GradlintError: the device is absent, or an operator or dtype is unknown.
        BuildError: the operators can't be built.
    """
    kind = _device(device)
    torch.set_num_threads(_tools.cores())  # a worker has one
    chosen = _chosen(names)
    load_reference(("cuda",) if kind == "cuda" else None)
    default = DEFAULTS[kind]
    sizes = Sizes(elements or default.elements, matrix or default.matrix)
    like = {"device": kind, "dtype": _dtype(dtype)}
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    started = time.monotonic()
    with progress_sink(None) as sink:
        before, product = _copy_rate(sizes, like), _product_rate(sizes, like)
        for done, (name, make) in enumerate(chosen.items()):
            sink(Progress("timing", done, len(chosen), name, time.monotonic() - started))
            work = make(sizes, like)
            rows += _rows(name, work, kind)
            del work
        after = _copy_rate(sizes, like)
    # Whatever slowed the machine during one of them made the floor too easy.
    copy = max(before, after)
    for row in rows:
        rate = copy if row["floor"] == "memory" else product
        row["of_floor"] = row["work"] / rate / row["seconds"]
    return {
        "device": torch.cuda.get_device_name() if kind == "cuda" else _processor(),
        "kind": kind,
        "dtype": dtype,
        "threads": None if kind == "cuda" else torch.get_num_threads(),
        "date": time.strftime("%Y-%m-%d"),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda if kind == "cuda" else None,
        },
        "copy_bytes_per_s": copy,
        "copies_bytes_per_s": [before, after],
        "matmul_flops_per_s": product,
        "rows": rows,
    }


def _rows(name: str, work: Work, kind: str) -> list[dict[str, Any]]:
    in_place = name.endswith("_")
    native = _timed(work, work.native, kind, in_place)
    eager = _timed(work, work.eager, kind, in_place) if work.eager is not None else (None, None)
    return [
        {
            "operator": name,
            "pass": label,
            "size": work.size,
            "seconds": seconds,
            "eager_seconds": other,
            "floor": work.floor,
            "work": amount,
        }
        for label, seconds, other, amount in zip(
            ("forward", "backward"), native, eager, (work.forward, work.backward), strict=True
        )
        if seconds is not None
    ]


def _timed(
    work: Work, function: Callable[..., torch.Tensor], kind: str, in_place: bool
) -> tuple[float, float]:
    """Seconds of forward, with nothing recorded, and of backward alone."""
    with torch.no_grad():
        forward = _median(lambda: function(*work.inputs), kind)
    leaves = [x.detach().requires_grad_() for x in work.inputs[: work.differentiable]]
    passed = [leaf.clone() if in_place else leaf for leaf in leaves]
    output = function(*passed, *work.inputs[work.differentiable :])
    cotangent = torch.randn_like(output)
    backward = _median(
        lambda: torch.autograd.grad(output, leaves, cotangent, retain_graph=True), kind
    )
    return forward, backward


def _median(call: Callable[[], Any], kind: str) -> float:
    """Seconds of one call, by the median: other programs disturb a few calls, not most."""
    started = time.monotonic()
    calls = 0
    while calls < _WARM_UP or time.monotonic() - started < _WARM_UP_S[kind]:
        call()
        calls += 1
        if kind == "cuda":
            torch.cuda.synchronize()  # or calls would pile up
    once = _clocked(call, kind, 1)[0]
    count = max(_FEWEST, min(_MOST, round(_SECONDS / max(once, 1e-9))))
    return statistics.median(_clocked(call, kind, count))


def _clocked(call: Callable[[], Any], kind: str, count: int) -> list[float]:
    if kind != "cuda":
        found = []
        for _ in range(count):
            started = time.perf_counter()
            call()
            found.append(time.perf_counter() - started)
        return found

    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * count)]
    for index in range(count):
        marks[2 * index].record()
        call()
        marks[2 * index + 1].record()
    torch.cuda.synchronize()
    # elapsed_time is in milliseconds.
    pairs = zip(marks[::2], marks[1::2], strict=True)
    return [start.elapsed_time(end) / 1e3 for start, end in pairs]


def _copy_rate(sizes: Sizes, like: dict[str, Any]) -> float:
    """Bytes per second of a copy: each element is read and written."""
    source = torch.randn(sizes.elements, **like)
    target = torch.empty_like(source)
    seconds = _median(lambda: target.copy_(source), like["device"])
    return 2 * source.numel() * source.element_size() / seconds


def _product_rate(sizes: Sizes, like: dict[str, Any]) -> float:
    """Floating-point operations per second of ``torch.mm``."""
    a, b = (torch.randn(sizes.matrix, sizes.matrix, **like) for _ in range(2))
    return 2 * sizes.matrix**3 / _median(lambda: torch.mm(a, b), like["device"])


def _device(wanted: str | None) -> str:
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise GradlintError(
            "cuda is not available here", place="--device", hint="`gradlint env` shows why"
        )
    return wanted or ("cuda" if there else "cpu")


def _dtype(name: str) -> Any:
    if name not in DTYPES:
        raise GradlintError(
            f"{name!r} is not a dtype", place="--dtype", hint=f"choose from {', '.join(DTYPES)}"
        )
    return getattr(torch, name)


def _chosen(names: Sequence[str]) -> dict[str, Maker]:
    known = workloads()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, f"choose from {', '.join(known)}")
            raise GradlintError(f"no operator `{name}`", place="--op", hint=hint)
    every = {**known, **unusual()}
    return {
        name: make for name, make in every.items() if not names or name.partition(",")[0] in names
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()
