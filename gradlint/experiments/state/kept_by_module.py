"""What a module keeps of one call in its own attributes, and reads in the next one.

Attributes are put back before every call (:mod:`gradlint.trace.module_state`), so that all calls of
a check compute one function. What is kept too long is not seen then. Here two calls follow each
other as in a program, and the second is compared with the same call of a module that was not called
before.

A module may well have a memory: a hidden state, a moving average, a counter. A memory is told from
a cache by the second call, which writes it again; a cache is only read. What the first batch alone
decides, as in an initialisation that depends on data, is meant as well, unless it carries the graph
of that batch or stands under a key that another batch has too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import torch

from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.raised_errors import raised_on_purpose
from gradlint.experiments.state.interleaved_calls import SCALED, other_value
from gradlint.experiments.state.repeated_calls import differing_outputs
from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import repeats_indices, resizable, resized, tied_axes
from gradlint.model.sample import Sample
from gradlint.trace.module_state import ModuleState, module_state
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

#: Sizes of the sample that are changed, one at a time (heuristic: a batch, a length and a width).
MOST_SIZES = 3

#: Calls with other values, and with one other size.
_CALLS_VALUES, _CALLS_SIZE = 4, 6

#: How deep tensors are looked for in containers: a dict of tuples.
_DEPTH = 2


@dataclass
class KeptByModule:
    """A call that does not return what it returns where it is the first one.

    Args:
        attribute: of the module, which holds what the earlier call left.
        holder: the submodule that has it.
        when: how the earlier call differed, in words.
        outputs, gradients: where they are not those of a first call.
        raised: what the call raised.
    """

    attribute: str
    holder: torch.nn.Module
    when: str
    outputs: list[Difference] = field(default_factory=list)
    gradients: list[Difference] = field(default_factory=list)
    raised: OpRaised | None = None

    @property
    def is_seen(self) -> bool:
        """Whether the earlier call made any difference."""
        return bool(self.outputs or self.gradients or self.raised)


def kept_by_module(subject: Subject) -> KeptByModule | None:
    """Call the module twice, first with other values and then with other sizes. None where the
    second call returns what it should, and where it writes again what the first one kept. A module
    that keeps no tensor costs no call."""
    module = subject.op.module
    if module is None:
        return None
    # What the last call left is there until the next one.
    changed = module_state(module).changed()
    names = [name for name in changed if list(_tensors(_held(module, name)))]
    if not names or not resizable(subject.sample) or not subject.affords(_CALLS_VALUES):
        return None
    path, _, attribute = names[0].rpartition(".")
    found = KeptByModule(attribute, module.get_submodule(path), "a call with other values")
    if _writes_again(subject, names, found):
        return None
    if found.is_seen:
        kept = [_held(module, name) for name in names]
        carries = any(tensor.requires_grad for value in kept for tensor in _tensors(value))
        return found if carries or any(map(_has_keys, kept)) else None
    for sample in _of_other_sizes(subject):
        if not subject.affords(_CALLS_SIZE):
            break
        found.when = "a call with other sizes"
        _compare_sizes(subject, sample, found)
        if found.is_seen:
            return found
    return None


def _held(module: torch.nn.Module, name: str) -> Any:
    try:
        return attrgetter(name)(module)
    except AttributeError:  # it was there before the call, and is no more
        return None


def _tensors(value: Any, depth: int = _DEPTH) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part, depth - 1)


def _has_keys(value: Any) -> bool:
    """Whether ``value`` keeps one result for each key, as for each length; a dict whose keys are
    names is a record."""
    return isinstance(value, dict) and not any(isinstance(key, str) for key in value)


def _writes_again(subject: Subject, names: Sequence[str], found: KeptByModule) -> bool:
    """Call forward and backward with other values and then with the sample's. What differs from a
    first call is put into ``found``. Returns whether the second call changed any attribute, or a
    tensor in those called ``names``."""
    problem, module = subject.problem, subject.op.module
    baseline = subject.once(make_baseline)
    if baseline is None or module is None:
        return True
    count = len(problem.inputs) - len(problem.parameters)
    # Parameters stay: what is computed from them is often kept on purpose. Other values are smaller
    # as well, because a mean does not see another order.
    values = [
        SCALED * other_value(value) if k < count else value
        for k, value in enumerate(problem.values())
    ]
    try:
        leaves, outputs = problem.linearize(values)
        problem.pull_from(outputs, leaves, baseline.cotangents)
    except OpRaised:  # these values may be unsuitable
        return True
    kept = ModuleState(module)
    tensors = [tensor for name in names for tensor in _tensors(_held(module, name))]
    tensors = [tensor for tensor in tensors if not tensor.is_inference()]  # these have no version
    versions = [tensor._version for tensor in tensors]
    try:
        with problem.keeping_state():
            leaves, outputs = problem.linearize()
            found.outputs = differing_outputs(baseline, _detached(outputs))
            gradients = problem.pull_from(outputs, leaves, baseline.cotangents)
            found.gradients = baseline.differences(gradients)
    except OpRaised as raised:
        found.raised = None if raised_on_purpose(raised.error) else raised
    return any(kept.changed()) or versions != [tensor._version for tensor in tensors]


def _detached(outputs: Sequence[Output]) -> dict[str, torch.Tensor]:
    return {item.name: item.value.detach() for item in outputs}


def _of_other_sizes(subject: Subject) -> Iterator[Sample]:
    """The sample with one of its sizes smaller by one."""
    sample = subject.sample
    for size, axes in list(tied_axes(sample).items())[:MOST_SIZES]:
        smaller = resized(sample, dict.fromkeys(axes, size - 1), seed=subject.seed)
        if smaller is not None and not repeats_indices(sample, smaller):
            yield smaller


def _compare_sizes(subject: Subject, sample: Sample, found: KeptByModule) -> None:
    """Call the smaller ``sample`` and then the subject's, and the other way round."""
    here, there = subject.problem, subject.problem.at(sample)
    try:
        for first, second in ((there, here), (here, there)):
            if not found.is_seen:
                _call_after(subject, first, second, found)
    finally:
        here.forward_calls += there.forward_calls


def _call_after(subject: Subject, first: Problem, second: Problem, found: KeptByModule) -> None:
    baseline = subject.once(make_baseline)
    assert baseline is not None
    try:
        alone = replace(baseline, outputs=_detached(second.forward(grad=True)))
        first.forward(grad=True)
    except OpRaised:  # these sizes may be unsuitable
        return
    try:
        with second.keeping_state():
            found.outputs = differing_outputs(alone, _detached(second.forward(grad=True)))
    except OpRaised as raised:
        found.raised = None if raised_on_purpose(raised.error) else raised
