"""Where an op's samples come from: the user, the op itself, or inference."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from gradlint.base.clock import had_seconds
from gradlint.inputs._fitted import fit_construction
from gradlint.inputs._gather import objects_for
from gradlint.inputs._given import from_function, from_option, samples_from
from gradlint.inputs._infer import infer
from gradlint.inputs._search import PATIENT_SECONDS
from gradlint.inputs.needed import Lacking
from gradlint.inputs.not_found import NoInputsFound
from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.model.settings import Settings
from gradlint.targets.build import made_otherwise

#: Modules made with other arguments, where none of the inputs suits the first (heuristic: each
#: takes a search, and equal sizes are the second guess).
MOST_CONSTRUCTIONS = 3


def samples_for(op: Op, settings: Settings, given: Any = None) -> list[Sample]:
    """Samples to run ``op`` on: given, from ``settings.inputs``, its own, or inferred.

    Args:
        op: the operator.
        settings: ``inputs`` and ``seed`` are read.
        given: live inputs, as ``gradlint.check`` takes them; None to look further.

    Returns:
        At least one sample; floating tensors are float64 on the CPU (float32 where the op runs
        in nothing else), and those that are differentiable require grad.

    Raises:
        InputsError: what the user gave can't be used.
        NoInputsFound: nothing was given and inference found nothing that runs.
    """
    found = _given(op, settings, given)
    if found is None:
        return _inferred(op, settings.seed)
    fit_construction(op, found)
    return found


def _inferred(op: Op, seed: int) -> list[Sample]:
    """Inferred samples. Where an op takes none, it may be that arguments of a constructor which are
    guesses are at fault, or that it takes objects of its own package's classes; the latter as well
    where there is nothing to differentiate."""
    started = had_seconds()
    try:
        samples = infer(op, seed)
    except NoInputsFound as error:
        made = itertools.islice(made_otherwise(op), MOST_CONSTRUCTIONS)
        ways = itertools.chain(((other, {}) for other in made), _with_objects(op))
        found = _otherwise(op, ways, seed, started)
        if found is None:
            raise error from None
        return found
    if _differentiable(samples[0]) or op.module is not None:
        return samples
    return _otherwise(op, _with_objects(op), seed, started) or samples


def _differentiable(sample: Sample) -> bool:
    found: list[bool] = []

    def look(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor.requires_grad)
        return tensor

    map_tensors((sample.args, sample.kwargs), look)
    return any(found)


def _with_objects(op: Op) -> Iterator[tuple[Op, dict[str, Any]]]:
    return ((op, held) for held in _objects(op))


def _otherwise(
    op: Op, ways: Iterable[tuple[Op, dict[str, Any]]], seed: int, started: float
) -> list[Sample] | None:
    for other, held in ways:
        if had_seconds() - started > PATIENT_SECONDS:
            return None
        try:
            samples = infer(other, seed, held)
        except (NoInputsFound, Lacking):
            continue
        op.module, op.call = other.module, other.call
        op.constructor, op.notes = other.constructor, other.notes
        return samples
    return None


def _objects(op: Op) -> Iterator[dict[str, Any]]:
    """Objects of the package's own classes for the parameters that need one: the likeliest, then
    each of the others of one parameter."""
    found = objects_for(op)
    first = {name: objects[0] for name, objects in found.items()}
    if first:
        yield first
    for name, objects in found.items():
        for made in objects[1:]:
            yield {**first, name: made}


def _given(op: Op, settings: Settings, given: Any) -> list[Sample] | None:
    if callable(given):
        return from_function(op, given, settings.seed, "given", "inputs")
    if given is not None:
        return samples_from(op, given, "given", "inputs")
    if settings.inputs is not None:
        return from_option(op, settings.inputs, settings.seed)
    if op.sample_inputs is not None:
        place = f"{op.target}, sample_inputs"
        return from_function(op, op.sample_inputs, settings.seed, "sample_inputs", place)
    return None
