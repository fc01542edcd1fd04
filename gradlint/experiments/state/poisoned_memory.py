"""Calls under deterministic algorithms, with fresh memory filled or not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from gradlint.experiments.baseline_comparison import Baseline, Difference, make_baseline
from gradlint.experiments.state.repeated_calls import differing_outputs
from gradlint.experiments.subject import Subject
from gradlint.trace.altered import pull_altered
from gradlint.trace.op_io import OpRaised

Found = tuple["OpRaised | None", list["Difference"], list["Difference"]]


def compare_with_filled_memory(subject: Subject) -> Found:
    """What filled memory changes: (raised, outputs, gradients).

    Deterministic algorithms are different algorithms: a difference that they cause alone, without
    filled memory, is ignored.
    """
    baseline = subject.once(make_baseline)
    assert baseline is not None
    found = _pulled(subject, baseline, fill=True)
    if not any(found):
        return found
    control = _pulled(subject, baseline, fill=False)
    if control[0] is not None:
        return None, [], []
    outputs, gradients = (
        [item for item in items if item.kind == "NaN" or item.position not in _positions(same)]
        for items, same in zip(found[1:], control[1:], strict=True)
    )
    return found[0], outputs, gradients


def _positions(items: list[Difference]) -> set[int]:
    return {item.position for item in items}


def _pulled(subject: Subject, baseline: Baseline, *, fill: bool) -> Found:
    try:
        with deterministic(fill):
            outputs, gradients = pull_altered(subject.problem, baseline.cotangents)
    except OpRaised as raised:
        return raised, [], []
    values = {item.name: item.value.detach() for item in outputs}
    wrong = differing_outputs(baseline, values)
    if fill:
        # Repeated runs say nothing about filled memory: NaN is NaN in each of them.
        baseline = replace(baseline, repeats=[])
    return None, wrong, baseline.differences(gradients)


@contextmanager
def deterministic(fill: bool) -> Iterator[None]:
    """Deterministic algorithms in the body, without their warnings; all flags are put back."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    # torch.use_deterministic_algorithms does this, and imports the compiler, which takes seconds.
    use = torch._C._set_deterministic_algorithms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        use(True, warn_only=True)
        memory.fill_uninitialized_memory = fill
        try:
            yield
        finally:
            memory.fill_uninitialized_memory = filled
            use(before, warn_only=warn_only)
