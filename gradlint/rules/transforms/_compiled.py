"""An op called through ``torch.compile``: traced by Dynamo and AOTAutograd, run op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from gradlint.inputs import map_tensors

if TYPE_CHECKING:
    from gradlint.trace._problem import Problem


class Graphs:
    """How many graphs were compiled."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def compiled(problem: Problem) -> Iterator[tuple[Problem, Graphs]]:
    """The op behind ``torch.compile``, with graph breaks allowed, and what it compiled.

    The partitioner is the plain one: that of the backend "aot_eager" imports Inductor, which takes
    a second and decides what is saved, not what is computed. Calls are counted as ``problem``'s.
    """
    import torch._dynamo
    from torch._dynamo.backends.debugging import aot_eager_default_partitioner

    graphs = Graphs()

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.count += 1
        return aot_eager_default_partitioner(graph, inputs)

    def transform(invoke: Callable[..., Any]) -> Callable[..., Any]:
        def on_copies(*given: Any) -> Any:
            return invoke(*map_tensors(given, torch.Tensor.clone))

        # Compiled by PyTorch 2.13, mark_dirty on an input of the graph loses the op's gradient.
        body = on_copies if problem.in_place else invoke
        found: Callable[..., Any] = torch.compile(body, backend=backend, dynamic=False)
        return found

    other = problem.through(transform)
    torch._dynamo.reset()
    try:
        yield other, graphs
    finally:
        torch._dynamo.reset()
        problem.forward_calls += other.forward_calls
        problem.backward_calls += other.backward_calls


def compiled_backward() -> Any:
    """Backward calls of the body go through compiled autograd, where this PyTorch has it."""
    from torch._dynamo import compiled_autograd

    enable = getattr(compiled_autograd, "_enable", None) or getattr(
        compiled_autograd, "enable", None
    )
    if enable is None:
        return nullcontext()
    return enable(torch.compile(backend="eager", dynamic=False))


def unavailable() -> str:
    """Why ``torch.compile`` can't run here; else ""."""
    import torch._dynamo

    if not torch._dynamo.is_dynamo_supported():
        return "torch.compile does not work with this Python or on this platform"
    return ""
