"""The sample's own values, so far apart in memory that offsets between them pass 2³¹ elements.

A tensor of a few elements gets a stride with which its last row lies beyond the largest 32-bit
index, without the memory that a tensor of that size needs: its addresses are many views of one
small piece of memory. An offset that wraps around leads to addresses that belong to the tensor's
memory too, and to other values, so that the op is wrong there instead of crashing.

This finds a product of a number and a stride that is kept in 32 bits. A count of elements beyond
2³¹ takes as many elements.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from gradlint.experiments.baseline_comparison import (
    Difference,
    compare,
    make_baseline,
    share_of,
)
from gradlint.experiments.device.interpreted_kernels import has_loop, kernels_that_run
from gradlint.experiments.device.tiled_sample import INDEX_LIMIT
from gradlint.experiments.subject import Subject
from gradlint.numerics.products import widened
from gradlint.trace.altered import pull_altered
from gradlint.trace.op_io import OpRaised

#: Bytes of the memory behind a tensor. No power of two: an offset that wraps around, by 2³²
#: elements, must not lead to the same place in it.
PIECE = 3 * 2**24

#: Bytes of values at most, so that they lie apart in the piece (heuristic).
MOST_BYTES = PIECE // 64

#: Strides that are tried until no two slices share a place in the piece.
TRIES = 64

#: Linux: reserve addresses without memory, and map at the address that is given.
_NORESERVE, _FIXED = 0x4000, 0x10


@dataclass
class FarRun:
    """The result: ``reason`` why it could not be tried, or what differs; ``offset``, the largest
    one between elements of an input; ``loops``, names of kernels that ran and have a loop."""

    reason: str = ""
    outputs: list[Difference] = field(default_factory=list)
    gradients: list[Difference] = field(default_factory=list)
    offset: int = 0
    loops: list[str] = field(default_factory=list)


def run_far_apart(subject: Subject) -> FarRun:
    """The op of ``subject`` with inputs and cotangents far apart, against the op as it is."""
    baseline = subject.once(make_baseline)
    if baseline is None:
        return FarRun(reason="an identical call raises")
    placed: dict[int, torch.Tensor] = {}
    try:
        for position, value in enumerate(subject.problem.values()):
            far = far_apart(value)
            if far is not None:
                placed[position] = far
        if not placed:
            return FarRun(reason="no input has an axis of three elements or more to spread")
        given = {name: far_apart(v) for name, v in baseline.cotangents.items()}
    except OSError as error:
        return FarRun(reason=f"addresses can't be reserved: {error.strerror}")
    offset = max(_reach(far) for far in placed.values())
    vs = baseline.cotangents
    cotangents = {name: vs[name] if far is None else far for name, far in given.items()}
    close = {name: vs[name] if far is None else _padded(far) for name, far in given.items()}
    near = _differing(subject, close, {k: _padded(v) for k, v in placed.items()})
    if near is None or any(near):
        return FarRun(reason="already wrong, or refused, where rows have a gap between them")
    with kernels_that_run() as ran:
        found = _differing(subject, cotangents, placed)
    loops = ["a kernel"] if ran is None else [each.__name__ for each in ran if has_loop(each)]
    if found is None:
        return FarRun(reason="refused where inputs are far apart")
    return FarRun("", *found, offset, loops)


def far_apart(tensor: torch.Tensor) -> torch.Tensor | None:
    """The values of ``tensor`` with offsets beyond 2³¹ elements; None where no axis is long enough:
    a stride beyond 2³¹ has 64 bits itself.

    Raises:
        OSError: where so many addresses can't be reserved.
    """
    axis = next((axis for axis, size in enumerate(tensor.shape) if size >= 3), None)
    if axis is None or tensor.layout != torch.strided or tensor.is_nested:
        return None
    if tensor.numel() * tensor.element_size() > MOST_BYTES:
        return None
    size, each = tensor.shape[axis], tensor.numel() // tensor.shape[axis]
    stride = _stride(size, each, tensor.element_size())
    if stride is None:
        return None
    others = tensor.movedim(axis, 0)[0].contiguous().stride()
    strides = [*others[:axis], stride, *others[axis:]]
    count = (size - 1) * stride + each
    found = _memory(count, tensor.dtype).as_strided(tensor.shape, strides)
    return found.copy_(tensor.detach())


def _stride(size: int, each: int, item: int) -> int | None:
    """The distance of slices with which the last one lies beyond 2³¹ elements, and no two lie at
    one place in the piece."""
    first = INDEX_LIMIT // (size - 1) + each
    for stride in range(first, first + TRIES * each, each):
        starts = sorted(k * stride * item % PIECE for k in range(size))
        gaps = [b - a for a, b in zip(starts, [*starts[1:], starts[0] + PIECE], strict=True)]
        if min(gaps) >= each * item and stride < INDEX_LIMIT:
            return stride
    return None


def _padded(far: torch.Tensor) -> torch.Tensor:
    """The values of ``far`` with a gap behind each slice, close together."""
    axis = max(range(far.dim()), key=far.stride)
    size, each = far.shape[axis], far.numel() // far.shape[axis]
    strides = [*far.stride()[:axis], each + 1, *far.stride()[axis + 1 :]]
    return far.new_zeros(size * (each + 1)).as_strided(far.shape, strides).copy_(far)


def _reach(tensor: torch.Tensor) -> int:
    return sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))


def _differing(
    subject: Subject, cotangents: dict[str, torch.Tensor], placed: dict[int, torch.Tensor]
) -> tuple[list[Difference], list[Difference]] | None:
    """Outputs and gradients that are not the baseline's; None where the op raises."""
    baseline = subject.once(make_baseline)
    assert baseline is not None
    try:
        outputs, gradients = pull_altered(
            subject.problem, cotangents, inputs=lambda k, _: placed.get(k), exact=True
        )
    except OpRaised:
        return None
    found = []
    for number, item in enumerate(outputs):
        expected = baseline.outputs.get(item.name)
        if expected is not None and expected.is_floating_point():
            wide = widened(expected)
            top = float(wide.abs().max()) if wide.numel() else 0.0
            allowed = torch.full(wide.shape, share_of(expected.dtype) * top, dtype=torch.float64)
            found.append(compare(number, item.name, item.value.detach(), expected, allowed))
    wrong = [item for item in found if item is not None]
    return wrong, baseline.differences(gradients, among=baseline.comparable_inputs())


def _memory(count: int, dtype: torch.dtype) -> torch.Tensor:
    """``count`` elements of :data:`PIECE` bytes of memory. As many addresses before them as 32 bits
    may lead back to are mapped as well. All are given back with the tensor."""
    libc = _libc()
    before = INDEX_LIMIT * dtype.itemsize
    before += -before % PIECE
    size = before + count * dtype.itemsize
    size += -size % PIECE
    file = os.memfd_create("gradlint")
    try:
        os.ftruncate(file, PIECE)
        base = _mapped(
            libc.mmap(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANON | _NORESERVE, -1, 0)
        )
        shared = mmap.MAP_SHARED | _FIXED | _NORESERVE
        for start in range(base, base + size, PIECE):
            _mapped(libc.mmap(start, PIECE, mmap.PROT_READ | mmap.PROT_WRITE, shared, file, 0))
    finally:
        os.close(file)
    buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(base + before)
    weakref.finalize(buffer, libc.munmap, base, size).atexit = False
    return torch.frombuffer(buffer, dtype=dtype)


def _mapped(address: int | None) -> int:
    if address is None or address == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return address


@lru_cache(maxsize=1)
def _libc() -> Any:
    if sys.platform != "linux":
        raise OSError(0, "this needs Linux")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    numbers = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *numbers)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc
