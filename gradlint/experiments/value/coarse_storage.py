"""Tensors that forward keeps with fewer digits for backward than it computes with.

In 8 bits, as an option that saves memory does, what comes out of backward is right to two digits,
by design. In 16 bits it is a fault: the gradient that is asked for in float64 has three digits. The
gradient is judged again without the casts, by its own measurement: a wrong formula is still wrong.
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.subject import Subject
from gradlint.numerics.judge import judge
from gradlint.numerics.products import equal
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.ops.backed import is_backed
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised

#: Floating dtypes of 8 bits or fewer, where this PyTorch has them.
EIGHT_BITS = frozenset(
    getattr(torch, name) for name in dir(torch) if name.startswith(("float8_", "float4_"))
)


#: Those of 16 bits.
SIXTEEN_BITS = frozenset((torch.bfloat16, torch.float16))


class KeptFine(DispatchMode):
    """Leaves out casts to ``dtypes``.

    Attributes:
        seen: the dtype of the last one, if there was one.
    """

    def __init__(self, dtypes: frozenset[torch.dtype]) -> None:
        super().__init__()
        self.dtypes = dtypes
        self.seen: torch.dtype | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and kwargs.get("dtype") in self.dtypes:
            self.seen = kwargs["dtype"]
            kwargs = {**kwargs, "dtype": args[0].dtype}
        return func(*args, **kwargs)


def right_when_kept_fine(subject: Subject, position: int) -> bool:
    """Whether forward returns the same without its casts to 8 bits, and the gradient of input
    ``position`` is right then. One forward call where there is no such cast."""
    return _spoiling_cast(subject, position, EIGHT_BITS) is not None


def kept_coarse(subject: Subject, position: int) -> Cause | None:
    """The cause that forward keeps numbers in 16 bits for backward, where the gradient of input
    ``position`` is right without these casts. One forward call where there is none."""
    dtype = _spoiling_cast(subject, position, SIXTEEN_BITS)
    if dtype is None:
        return None
    short = str(dtype).removeprefix("torch.")
    return Cause(
        "low-precision",
        f"low-precision: forward casts to {short} what it keeps for backward alone; without that "
        "cast it returns the same, and the gradient is right",
        f"keep for backward what forward computed with, not .to({short})",
    )


def _spoiling_cast(
    subject: Subject, position: int, dtypes: frozenset[torch.dtype]
) -> torch.dtype | None:
    """The dtype of a cast without which forward returns the same and the gradient is right."""
    problem = subject.problem.through(lambda invoke: invoke)
    problem.put(dict(enumerate(subject.problem.values())))
    watched = KeptFine(dtypes)
    problem.surroundings = lambda: watched
    try:
        fine = problem.forward()
        if watched.seen is None or not all(is_backed(item.value) for item in fine):
            return None
        coarse = {item.name: item.value for item in subject.problem.forward()}
        if any(not equal(item.value, coarse[item.name]) for item in fine):
            return None
        judged = judge(first_order(problem), seed=subject.seed, inputs=[position]).inputs
    except (OpRaised, KeyError):
        return None
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    return watched.seen if all(item.verdict in (AGREES, ROUNDED) for item in judged) else None
