"""What is said of a gradient at magnitudes at which forward has lost its digits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.special import ndtr, ndtri

from gradlint.experiments.judge_at_other_inputs import (
    COARSEST,
    RIGHT,
    UNDECIDED,
    WRONG,
    JudgementElsewhere,
    judge_at_other_inputs,
)
from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample, SampleKind
from gradlint.model.settings import Settings
from gradlint.numerics.decide import Decision
from gradlint.targets.build import from_object


class Between(torch.autograd.Function):
    """Quantiles u of a normal variable between low and low + 1: from a low of 7 on, what lies
    there differs from one by few roundings."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, low: Tensor) -> Tensor:
        ctx.save_for_backward(u, low)
        start = ndtr(low)
        return ndtri(start + u * (ndtr(low + 1.0) - start))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        u, low = ctx.saved_tensors
        start = ndtr(low)
        width = ndtr(low + 1.0) - start
        z = ndtri(start + u * width)
        below = (1.0 - u) * torch.exp(0.5 * (z**2 - low**2))
        above = u * torch.exp(0.5 * (z**2 - (low + 1.0) ** 2))
        return grad * width * torch.exp(0.5 * z**2) * (2.0 * torch.pi) ** 0.5, grad * (
            below + above
        )


class Bent(torch.autograd.Function):
    """Three times as steep beyond five, which backward leaves out."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, low: Tensor) -> Tensor:
        return u + low + 2.0 * (low - 5.0).relu()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad


def seen(op: type, least: float, kind: SampleKind, seed: int) -> JudgementElsewhere:
    """The judgement where ``low`` is ``least`` or more."""
    generator = torch.Generator().manual_seed(seed)

    def sample(start: float, kind: SampleKind) -> Sample:
        u = 0.1 + 0.8 * torch.rand(3, 4, generator=generator, dtype=torch.float64)
        low = start + torch.linspace(0.0, 1.0, 12, dtype=torch.float64).reshape(3, 4)
        return Sample("there", "inferred", (u.requires_grad_(), low.requires_grad_()), kind=kind)

    subject = Subject(from_object(op, name=op.__name__), sample(0.0, "same"), Settings(seed=seed))
    assert subject.run.error is None
    return judge_at_other_inputs(subject, sample(least, kind))


@pytest.mark.parametrize(("kind", "verdict"), [("extreme", UNDECIDED), ("same", WRONG)])
def test_a_disagreement_that_was_not_resolved_does_not_count_at_extremes(
    kind: SampleKind, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Decision, "resolution_of", lambda *_: 2.0 * COARSEST)
    assert seen(Bent, 6.5, kind, 0).verdict == verdict


@pytest.mark.parametrize("seed", range(4))
def test_what_is_blamed_was_resolved(seed: int) -> None:
    found = seen(Between, 7.0, "extreme", seed)
    decided = found.decision
    assert decided is None or all(decided.resolution_of(k) <= COARSEST for k in found.positions)


@pytest.mark.parametrize(("op", "least", "verdict"), [(Between, 1.0, RIGHT), (Bent, 6.5, WRONG)])
def test_what_is_resolved_counts(op: type, least: float, verdict: str) -> None:
    found = seen(op, least, "extreme", 0)
    assert (found.verdict, found.positions) == (verdict, [1] if verdict == WRONG else [])
