"""Describe a wrong gradient: which output and input, the cause, the worst elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradlint.dropin._function import Function
from gradlint.dropin._options import Options
from gradlint.dropin.failure import Failure
from gradlint.experiments.mismatch import mismatch
from gradlint.numerics.decide import Decision
from gradlint.numerics.judge import judge, outputs_that_differ
from gradlint.numerics.map import Map
from gradlint.numerics.verdict import DIFFERS
from gradlint.report.wording import measurement, plain, signed, small


def describe(
    function: Function,
    judged: Map,
    decision: Decision,
    wrong: Sequence[int],
    options: Options,
    only_output: int | None = None,
) -> list[Failure]:
    """One failure for every pair of output and input whose gradient is wrong, in torch's order.

    Args:
        wrong: positions in ``decision.judgement.inputs``.
        only_output: number of the only output of ``judged``, if that is not the map of all.
    """
    names = [f"input {k}" for k in range(len(judged.values))]
    pairs: list[tuple[int, int, int]] = []
    for place in wrong:
        index = decision.judgement.inputs[place].index
        pairs += [(output, index, place) for output in faulty_outputs(judged, index, options.seed)]
    described: set[int] = set()
    failures = []
    for output, index, place in sorted(pairs):
        opening = (
            f"{_part(judged, output, index, options.seed)}Jacobian mismatch for output "
            f"{output if only_output is None else only_output} "
            f"with respect to input {index},"
        )
        lines = [f"see the gradient of input {index} above; this output contributes to the error"]
        if place not in described:
            described.add(place)
            found = mismatch(judged, decision, place, names, seed=options.seed)
            lines = _lines(function, index, found, decision, place)
            if only_output is not None:
                lines.append(
                    "note       it is right if all outputs receive a gradient, and wrong if only "
                    f"output {only_output} does"
                )
        failures.append(Failure(opening, lines))
    return failures


def faulty_outputs(judged: Map, index: int, seed: int) -> list[int]:
    """The outputs whose share of the gradient of input ``index`` is wrong; all of them if each is
    right by itself."""
    everything = list(range(len(judged.outputs)))
    if len(everything) == 1:
        return everything
    return outputs_that_differ(judged, index, seed=seed) or everything


def _part(judged: Map, output: int, index: int, seed: int) -> str:
    """Torch's words for the part of a complex output that disagrees: the imaginary one, which torch
    examines first, unless only the real one disagrees."""
    if not judged.outputs[output].is_complex():
        return ""
    differs = [
        judge(_part_of(judged, output, unit), seed=seed, inputs=[index]).inputs[0].verdict
        == DIFFERS
        for unit in (1j, 1.0)
    ]
    part = "real" if differs == [False, True] else "imaginary"
    return f"While considering the {part} part of complex outputs only, "


def _part_of(judged: Map, output: int, unit: complex) -> Map:
    """Real or imaginary part of one output alone: Re⟨w·unit, y⟩ for real w."""

    def taken(y: torch.Tensor) -> torch.Tensor:
        return y.imag if unit == 1j else y.real

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        found = judged.evaluate(values)
        return None if found is None else [taken(found[output])]

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        vs = [torch.zeros_like(y) for y in judged.outputs]
        vs[output] = (cotangents[0] * unit).to(judged.outputs[output].dtype)
        return judged.pull_at(values, vs)

    return Map(
        judged.values,
        [taken(judged.outputs[output]).clone()],
        evaluate,
        pull_at,
        project=judged.project,
    )


def _lines(function: Function, index: int, found: Any, decision: Decision, place: int) -> list[str]:
    value = function.values[index]
    shape = list(value.shape)
    dtype = str(value.dtype).removeprefix("torch.")
    lines = [f"wrong gradient for input {index}: {dtype}{shape}"]
    if function.positions[index] != index:
        lines[0] += f", argument {function.positions[index]} (inputs are those that require grad)"
    if found.cause is not None:
        lines.append(f"cause      {found.cause.text}")
    first, *rest = measurement(found.numbers, verbose=True)
    lines += [f"measured   {first}", *(f"           {line}" for line in rest)]
    elements = found.numbers.get("elements") or []
    if elements:
        rows = [("index", "returned", "measured", "error")]
        rows += [
            (
                plain(row.get("index")),
                signed(row.get("returned")),
                signed(row.get("measured")),
                small(row.get("error")),
            )
            for row in elements
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in rows:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("           " + "  ".join(cells))
    note = decision.notes.get(index)
    if note:
        lines.append(f"note       {note}")
    if found.cause is not None:
        lines.append(f"help       {found.cause.help.replace('{expression}', '…')}")
    return lines
