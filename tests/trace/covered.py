"""What a call reaches of the user's code: support for the tests of ``gradlint.trace.coverage``."""

from __future__ import annotations

from contextlib import suppress

import torch

from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.trace.coverage import Coverage, Place
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


def coverage_of_call(op: Op, sample: Sample, seed: int = 0) -> Coverage:
    """What one forward and one backward of ``op`` on ``sample`` reach; a call that raises has
    reached what ran before."""
    found, problem = Coverage(op), Problem(op, sample, seed=seed)
    with suppress(OpRaised):
        with found.watching():
            leaves, outputs = problem.linearize()
        chosen = [output for output in outputs if output.differentiable]
        ones = [torch.ones_like(output.value) for output in chosen]
        with found.in_backward():
            problem.backward(chosen, leaves, ones)
    return found


def unreached(coverage: Coverage) -> frozenset[Place]:
    """The places that were not reached, of the functions that ran and of the op's backward."""
    found: set[Place] = set()
    for item in coverage.functions():
        found.update((item.file, line, "") for line in item.missed)
        found.update((item.file, way.line, way.text) for way in item.ways if not way.ran)
    return frozenset(found)
