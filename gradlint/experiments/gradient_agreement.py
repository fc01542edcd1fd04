"""Whether two gradients that must be equal agree, and where they do not."""

from __future__ import annotations

from typing import Any

import torch

from gradlint.diagnosis.evidence import unravel
from gradlint.experiments.mismatch import plain_number
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import widened
from gradlint.numerics.verdict import TOLERATED

#: Elements shown of those that differ.
SHOWN = 3


def disagreement(
    subject: Subject,
    position: int,
    gradient: torch.Tensor | None,
    expected: torch.Tensor | None,
) -> dict[str, Any] | None:
    """Numbers on where a gradient of input ``position`` is not ``expected`` (None is zero).

    Rounding is allowed for, relative to the largest element of the ordinary gradient; elements at
    which that one is not finite are left out. None where the two agree.
    """
    value = subject.problem.inputs[position].value
    usual = (subject.run.gradients or [])[position]
    if gradient is None and expected is None:
        return None
    zero = torch.zeros_like(value)
    got, want, ordinary = (
        widened(zero if tensor is None else tensor) for tensor in (gradient, expected, usual)
    )
    if not got.shape == want.shape == ordinary.shape or not got.numel():
        return None
    good = torch.isfinite(ordinary) & torch.isfinite(want)
    if not bool(good.any()):
        return None
    top = max(float(ordinary[good].abs().max()), float(want[good].abs().max()))
    error = torch.where(good, (got - want).abs(), torch.zeros_like(got.abs()))
    broken = ~torch.isfinite(error)
    bits = significand_bits(value.dtype)
    wrong = broken | (error > TOLERATED[max(k for k in TOLERATED if k <= bits)] * top)
    if not bool(wrong.any()):
        return None
    flat = torch.nan_to_num(error, nan=float("inf")).reshape(-1)
    worst = torch.argsort(flat, descending=True)[:SHOWN].tolist()
    return {
        "differing": int(wrong.sum()),
        "not_finite": int(broken.sum()),
        "numel": got.numel(),
        "elements": [
            {
                "index": list(unravel(k, tuple(got.shape))),
                "returned": plain_number(got.reshape(-1)[k]),
                "measured": plain_number(want.reshape(-1)[k]),
                "error": float(error.reshape(-1)[k]),
            }
            for k in worst
            if bool(wrong.reshape(-1)[k])
        ],
    }


def with_stored_indices(subject: Subject, position: int, finding: Finding) -> Finding:
    """``finding`` with its indices into what the op got: of a sparse input, its stored values were
    judged."""
    if not subject.problem.has_sparse_inputs:
        return finding
    if finding.index is not None:
        finding.index = subject.problem.index_of(position, finding.index)
    for row in finding.evidence.get("elements", ()):
        row["index"] = subject.problem.index_of(position, row["index"])
    return finding
