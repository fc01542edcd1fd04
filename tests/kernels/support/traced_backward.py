"""Backward passes that ``torch.compile`` traces as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._dynamo.backends.debugging import aot_eager


@contextmanager
def traced_backward() -> Iterator[list[torch.fx.GraphModule]]:
    """In the body, backward passes are traced and run as graphs, which are in the list afterwards.

    The graphs run as they are: compiling what inductor writes of them would test nothing of ours,
    and takes most of a minute.
    """
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
        graphs.append(graph)
        return aot_eager(graph, inputs)

    compiler = torch.compile(backend=backend, dynamic=True)
    with torch._dynamo.compiled_autograd._enable(compiler):
        yield graphs
