"""The decision on a function, with directions inside the domains of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradlint.dropin._function import Function
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.directions import KINDS
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import DIFFERS, UNSURE


def decided(
    function: Function,
    judged: Map,
    seed: int,
    *,
    kinds: Sequence[str] = KINDS,
    inputs: Sequence[int] | None = None,
) -> tuple[Map, Decision]:
    """The map that was finally judged, and the decision on it.

    Some functions read only one triangle of a square input, so that its elements cannot be moved
    independently. This is examined only if something seems wrong, because it takes calls and
    nearly all functions are not of that kind.

    Args:
        kinds: kinds of direction.
        inputs: positions of the inputs to judge; default all.
    """
    decision = decide(judged, seed=seed, kinds=kinds, inputs=inputs)
    if suspects(decision, DIFFERS, UNSURE):
        symmetric = _symmetric(function, judged)
        if symmetric is not None:
            return symmetric, decide(symmetric, seed=seed, kinds=kinds, inputs=inputs)
    return judged, decision


def suspects(decision: Decision, *verdicts: str) -> list[int]:
    """Positions, in the judgement, of the inputs with one of ``verdicts``."""
    return [place for place, verdict in enumerate(decision.verdicts) if verdict in verdicts]


def _symmetric(function: Function, judged: Map) -> Map | None:
    """``judged`` with symmetric directions for square inputs of which the function reads only one
    triangle (as Cholesky factorisation does); None if there are no such inputs."""
    square = any(
        value.dim() >= 2 and value.shape[-1] == value.shape[-2] >= 2 for value in judged.values
    )
    if not square or judged.project is not None:
        return None
    found = function.domain()
    if len(found) != len(judged.values) or all(one is None for one in found):
        return None
    return replace(judged, project=list(found))
