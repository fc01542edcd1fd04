"""Ops that free memory and keep its tensor: whoever reads that ends the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.examine import examine
from gradlint.model.events import CheckDone, Found, TorchVerdictMade
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.ops.backed import is_backed
from gradlint.targets.build import from_object

#: Elements: enough that memory is given back to the system and can't be read by accident.
MANY = 120_000


class FreesWhatItSaved(Function):
    """Frees a saved tensor after forward and fills it again in backward, as FSDP does."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        kept = x.detach().clone()
        ctx.save_for_backward(kept)
        ctx.full = x.detach().clone()
        kept.untyped_storage().resize_(0)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (kept,) = ctx.saved_tensors
        kept.untyped_storage().resize_(kept.numel() * kept.element_size())
        kept.copy_(ctx.full)
        found = 2 * grad * kept
        kept.untyped_storage().resize_(0)
        return found


class FreesItsGradient(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        found = 2 * grad * ctx.saved_tensors[0]
        grad.untyped_storage().resize_(0)
        return found


class FreesItsInput(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.full = x.detach().clone()
        found = x * x
        x.untyped_storage().resize_(0)
        return found

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 2 * grad * ctx.full


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (FreesWhatItSaved, set()),
        (FreesItsGradient, {"GL602"}),
        (FreesItsInput, {"GL601"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_no_check_reads_it(op: Any, expected: set[str]) -> None:
    x = torch.linspace(-1.0, 1.0, MANY, dtype=torch.float64).requires_grad_()
    events: list[Any] = []
    settings = Settings(order=1, ignore=("GL7", "GL8", "GL9"))
    examine(from_object(op), [Sample("s", "sample_inputs", (x,))], settings, events.append)
    found = {e.finding.code for e in events if isinstance(e, Found) and not _is_info(e)}
    assert found - {"GL604", "GL605"} == expected
    verdicts = {e.check.code: e.check.verdict for e in events if isinstance(e, CheckDone)}
    assert verdicts["GL401"] == "pass"
    (torchs,) = [e.verdict for e in events if isinstance(e, TorchVerdictMade)]
    assert ("frees memory" in torchs.message) == bool(expected)


def _is_info(event: Found) -> bool:
    return event.finding.severity == "info"


@pytest.mark.parametrize(
    ("make", "backed"),
    [
        (lambda: torch.ones(3, 4), True),
        (lambda: torch.ones(3, 4).mT[1:], True),
        (lambda: torch.ones(1).expand(5), True),
        (lambda: torch.empty(0), True),
        (lambda: torch.empty(3, device="meta"), True),
        (lambda: torch.eye(3).to_sparse(), True),
        (lambda: _shrunk(torch.ones(3, 4), 0), False),
        (lambda: _shrunk(torch.ones(3, 4), 44), False),
        (lambda: _shrunk(torch.ones(3, 4), 48), True),
    ],
)
def test_is_backed(make: Callable[[], torch.Tensor], backed: bool) -> None:
    assert is_backed(make()) is backed


def _shrunk(tensor: torch.Tensor, nbytes: int) -> torch.Tensor:
    tensor.untyped_storage().resize_(nbytes)
    return tensor
