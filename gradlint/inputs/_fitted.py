"""A module whose constructor was guessed, made anew for the inputs that the user gives.

``Scale(channels)`` made as ``Scale(4)`` refuses an input of three channels, and it is the guess
that is wrong then. The integers of the constructor are tried as sizes of the inputs, as few of them
as will do.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gradlint.inputs._attempt import process_state_restored
from gradlint.inputs.resized import tensors_of
from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.ops.phase import phase
from gradlint.targets.build import made_anew

#: Constructions that are tried, and arguments that are changed at once (heuristic: a cell has an
#: input and a hidden size, a convolution a kernel size besides).
_MOST_TRIED, _MOST_CHANGED = 200, 3


def fit_construction(op: Op, samples: Sequence[Sample]) -> None:
    """Make the module of ``op`` with other sizes, if gradlint chose those that it has, and it takes
    none of ``samples``."""
    module = op.module
    if module is None or not op.constructor_guessed:
        return
    with phase("forward"), process_state_restored():
        if any(_takes(module, sample) for sample in samples):
            return
        for values in itertools.islice(_others(op.constructor, samples[0]), _MOST_TRIED):
            try:
                made = made_anew(op, values)
            except Exception:  # of the user's constructor: anything
                continue
            if made.module is not None and _takes(made.module, samples[0]):
                op.module = op.call = made.module
                op.constructor, op.notes = made.constructor, made.notes
                return


def _others(values: Mapping[str, Any], sample: Sample) -> Iterator[dict[str, Any]]:
    """``values`` with integers exchanged for sizes of the tensors in ``sample``."""
    sizes = list(dict.fromkeys(size for tensor in tensors_of(sample) for size in tensor.shape))
    names = [name for name, value in values.items() if type(value) is int]
    for count in range(1, min(len(names), _MOST_CHANGED) + 1):
        for chosen in itertools.combinations(names, count):
            for found in itertools.product(sizes, repeat=count):
                if all(values[k] != size for k, size in zip(chosen, found, strict=True)):
                    yield {**values, **dict(zip(chosen, found, strict=True))}


def _takes(module: torch.nn.Module, sample: Sample) -> bool:
    """Whether forward runs on copies of the arguments, with parameters of their dtype."""
    dtypes = [t.dtype for t in tensors_of(sample) if t.is_floating_point()]
    try:
        trial = copy.deepcopy(module).to(dtypes[0] if dtypes else None)
        args, kwargs = map_tensors((sample.args, sample.kwargs), lambda t: t.detach().clone())
        with torch.no_grad():
            trial(*args, **kwargs)
    except Exception:  # of the user's forward: anything
        return False
    return True
