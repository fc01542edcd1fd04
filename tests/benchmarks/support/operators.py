"""PyTorch's operator database as cases: an operator at one sample, judged by either checker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from gradlint.experiments.differentiable_maps import first_order, second_order
from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.numerics.decide import Decision, decide
from gradlint.trace.problem import Problem
from tests.benchmarks.support.faults import Faulty

#: Directions of the second order: those of GL501.
TWICE = ("aligned", "signs", "equalised")

#: Samples of an operator, from the first.
SAMPLES = 3


@dataclass
class Case:
    """``call(*sample.args, **sample.kwargs)``: operator ``name`` at its sample ``number``.
    ``wrapped`` is ``call`` as PyTorch's own gradient tests want it (matrices made symmetric …);
    ``twice`` says whether PyTorch claims second derivatives."""

    name: str
    number: int
    call: Callable[..., Any]
    sample: Sample
    wrapped: Callable[..., Any]
    dtype: str = "float64"
    twice: bool = True

    def problem(self, dtype: torch.dtype | None = None) -> Problem:
        """The case as gradlint sees any operator; in ``dtype`` where one is given."""
        sample = self.sample if dtype is None else self.sample.converted(dtype, "cpu")
        return Problem(Op(self.name, self.name, "callable", self.call), sample, seed=0)

    def faulty(self, tensor: torch.Tensor, fault: str, place: int) -> Case:
        """The case with ``fault`` planted in the gradient of ``tensor``, one of its inputs.

        The operator sees a copy of the sample, so the faulty input is told by where it sits.
        """
        position = next(k for k, (_, t) in enumerate(self._tensors()) if t is tensor)

        def call(*args: Any, **kwargs: Any) -> Any:
            seen = -1

            def plant(found: torch.Tensor) -> torch.Tensor:
                nonlocal seen
                seen += 1
                return Faulty.apply(found, fault, place) if seen == position else found

            args, kwargs = map_tensors((args, kwargs), plant)
            return self.call(*args, **kwargs)

        return replace(self, call=call)

    def _tensors(self) -> list[tuple[str, torch.Tensor]]:
        found: list[tuple[str, torch.Tensor]] = []
        known: set[int] = set()
        for name, tensor in self.sample.named_tensors(None):
            if id(tensor) not in known:
                known.add(id(tensor))
                found.append((name, tensor))
        return found

    def differentiable(self) -> list[torch.Tensor]:
        """The tensors of the sample that require grad, in the order of ``Problem.inputs``."""
        return [tensor for _, tensor in self._tensors() if tensor.requires_grad]

    def as_function(self) -> tuple[Callable[..., Any], list[torch.Tensor]]:
        """The case as gradcheck wants it: a function, and the tensors that it takes."""
        leaves = self.differentiable()
        slots = {id(leaf): place for place, leaf in enumerate(leaves)}

        def function(*given: torch.Tensor) -> Any:
            def place(tensor: torch.Tensor) -> torch.Tensor:
                slot = slots.get(id(tensor))
                return tensor if slot is None else given[slot]

            args, kwargs = map_tensors((self.sample.args, self.sample.kwargs), place)
            returned = self.wrapped(*args, **kwargs)
            if isinstance(returned, torch.Tensor):
                return returned
            return tuple(
                part for part in returned if isinstance(part, torch.Tensor) and part.requires_grad
            )

        return function, leaves

    def gradcheck(self) -> bool:
        """``torch.autograd.gradcheck`` in fast mode with its defaults on the same sample; False
        where it fails or raises."""
        function, leaves = self.as_function()
        try:
            return torch.autograd.gradcheck(function, leaves, fast_mode=True, raise_exception=False)
        except Exception:
            return False


def judged(problem: Problem, *, seed: int, inputs: list[int] | None = None) -> Decision | None:
    """The judgement behind GL401; None where no output is differentiable."""
    function = first_order(problem)
    return decide(function, seed=seed, inputs=inputs) if function.outputs else None


def judged_twice(problem: Problem, *, seed: int) -> tuple[list[str], Decision] | None:
    """The judgement behind GL501, with the names of what it judges; None where no input has a
    gradient."""
    found = second_order(problem, seed=seed)
    if found is None:
        return None
    return found.names, decide(found.map, seed=seed, kinds=TWICE)


def cases(dtype: torch.dtype, part: str = "", names: set[str] | None = None) -> Iterator[Case]:
    """The first :data:`SAMPLES` samples of every operator that is differentiable in ``dtype``.

    Args:
        part: only operators with this in their name.
        names: only these operators.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        name = info.formatted_name
        if part not in name or (names is not None and name not in names):
            continue
        if not info.supports_autograd or dtype not in info.supported_dtypes("cpu"):
            continue
        if dtype not in info.supported_backward_dtypes("cpu"):
            continue
        found = info.sample_inputs("cpu", dtype, requires_grad=True)
        for number, sample in zip(range(SAMPLES), found, strict=False):
            call = _called(info.op, sample.output_process_fn_grad)
            yield Case(
                name,
                number,
                call,
                Sample("s", "op_db", (sample.input, *sample.args), dict(sample.kwargs)),
                partial(info.gradcheck_wrapper, call),
                str(dtype).removeprefix("torch."),
                info.supports_gradgrad,
            )


def _called(function: Callable[..., Any], process: Callable[..., Any] | None) -> Callable[..., Any]:
    """``function``, then what the database says belongs to its result."""

    def call(*args: Any, **kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        return returned if process is None else process(returned)

    return call
