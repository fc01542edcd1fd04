"""GL404: outputs beside a reference, in float64 and in dtypes in which the reference rounds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.value.differs_from_reference import RULE
from gradlint.targets.build import from_object

#: Their products cancel: in bfloat16 the rounded ones add up to 0.0078, the exact ones to 0.0002.
X = [1.0, 1.0078125, -2.0, 3.015625]
WEIGHT = [1.0078125, 1.0078125, 2.53125, 1.0078125]


def probed(op: Any, reference: Any, dtype: torch.dtype) -> Outcome:
    found = from_object(op)
    found.reference = reference
    values = tuple(torch.tensor(v, dtype=dtype).requires_grad_() for v in (X, WEIGHT))
    return RULE.probe(Subject(found, Sample("s", "given", values), Settings(seed=0)))


def rounded(x: Tensor, weight: Tensor) -> Tensor:
    return (x * weight).sum()


def exact(x: Tensor, weight: Tensor) -> Tensor:
    return (x.double() * weight.double()).sum().to(x.dtype)


def off(x: Tensor, weight: Tensor) -> Tensor:
    return exact(x, weight) + 0.25


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_an_op_may_round_less_than_its_reference(dtype: torch.dtype) -> None:
    assert probed(exact, rounded, dtype).verdict == "pass"
    assert probed(rounded, exact, torch.float64).verdict == "pass"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_what_is_farther_off_is_found(dtype: torch.dtype) -> None:
    outcome = probed(off, rounded, dtype)
    assert (outcome.verdict, len(outcome.findings)) == ("fail", 1)
    assert outcome.findings[0].output == "output"


def test_the_case_is_one_in_which_the_reference_rounds() -> None:
    x, weight = (torch.tensor(v, dtype=torch.bfloat16) for v in (X, WEIGHT))
    difference = abs(float(rounded(x, weight)) - float(exact(x, weight)))
    assert difference > 0.05 * abs(float(exact(x, weight)))
