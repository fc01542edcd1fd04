"""Tensors that forward keeps in 8 bits for backward, as an option that saves memory does.

What comes out of backward is then right to two digits, by design. The gradient is judged again
without the casts, by its own measurement: a wrong formula is still wrong.
"""

from __future__ import annotations

from typing import Any

import torch

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


class KeptFine(DispatchMode):
    """Leaves out casts to 8 bits.

    Attributes:
        seen: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and kwargs.get("dtype") in EIGHT_BITS:
            self.seen = True
            kwargs = {**kwargs, "dtype": args[0].dtype}
        return func(*args, **kwargs)


def right_when_kept_fine(subject: Subject, position: int) -> bool:
    """Whether forward returns the same without its casts to 8 bits, and the gradient of input
    ``position`` is right then. One forward call where there is no such cast."""
    problem = subject.problem.through(lambda invoke: invoke)
    problem.put(dict(enumerate(subject.problem.values())))
    watched = KeptFine()
    problem.surroundings = lambda: watched
    try:
        fine = problem.forward()
        if not watched.seen or not all(is_backed(item.value) for item in fine):
            return False
        coarse = {item.name: item.value for item in subject.problem.forward()}
        if any(not equal(item.value, coarse[item.name]) for item in fine):
            return False
        judged = judge(first_order(problem), seed=subject.seed, inputs=[position]).inputs
    except (OpRaised, KeyError):
        return False
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    return all(item.verdict in (AGREES, ROUNDED) for item in judged)
