"""GL608: what a module keeps of one call and reads in the next."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradlint.model.rule import Outcome
from gradlint.rules.state.state_shared_between_calls import RULE as GL608

Probed = Callable[..., Outcome]

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(4, 5, generator=GENERATOR)
SCALE = torch.rand(4, 5, generator=GENERATOR) + 0.5


class Keeps(nn.Module):
    """A module with an empty cache."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 5, dtype=torch.float64))
        self.cache = {}
        self.kept = None


# Planted faults.


class ValuesUnderALength(Keeps):
    """A table of each length, with the values of the first batch in it."""

    def forward(self, x, scale):
        length = x.shape[1]
        if length not in self.cache:
            self.cache[length] = torch.arange(length) * scale
        return (x * self.cache[length]).sum(1)


class DetachedValuesUnderALength(Keeps):
    def forward(self, x, scale):
        key = (x.shape[1], x.dtype)
        if key not in self.cache:
            self.cache[key] = x.detach().abs().mean()
        return x / self.cache[key] * scale


class GraphOfTheFirstBatch(Keeps):
    def forward(self, x, scale):
        if self.kept is None:
            self.kept = scale.exp()
        return x * self.kept


class ParameterUsedUp(Keeps):
    """The graph from the parameter is that of the first call."""

    def forward(self, x):
        if self.kept is None:
            self.kept = torch.softmax(self.weight, 0)
        return x * self.kept


class PlacesOfTheFirstLength(Keeps):
    """Relative places, cut from those of the longest sequence so far."""

    def forward(self, x):
        length = x.shape[1]
        if self.kept is None or len(self.kept) < length:
            self.kept = torch.linspace(0, 1, length, dtype=x.dtype)
        return x * self.kept[:length]


class TableThatNeverGrows(Keeps):
    def forward(self, x):
        if self.kept is None:
            self.kept = torch.arange(x.shape[1], dtype=x.dtype)
        return x + self.kept[: x.shape[1]]


class Inside(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *args):
        return self.part(*args) * 2


@pytest.mark.parametrize(
    ("op", "args", "said"),
    [
        (ValuesUnderALength, (X, SCALE), "`output` is another one after a call with other values"),
        (
            DetachedValuesUnderALength,
            (X, SCALE),
            "`output` is another one after a call with other values",
        ),
        (GraphOfTheFirstBatch, (X, SCALE), "`output` is another one after a call with other"),
        (ParameterUsedUp, (X,), "the gradient for `"),
        (PlacesOfTheFirstLength, (X,), "`output` is another one after a call with other sizes"),
        (TableThatNeverGrows, (X,), "forward raises after a call with other sizes: RuntimeError"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda part: part, Inside])
def test_a_cache_that_is_kept_too_long(probed: Probed, wrap, op, args, said) -> None:
    (finding,) = probed(GL608, wrap(op()), *args).findings
    assert finding.message.startswith(said)
    assert finding.severity == "error"
    assert finding.cause_text.endswith("is kept from that call and not computed anew")


def test_the_assignment_is_shown(probed: Probed) -> None:
    (finding,) = probed(GL608, ValuesUnderALength(), X, SCALE).findings
    assert finding.excerpt is not None
    shown = dict(finding.excerpt.lines)[finding.location.line]
    assert shown.strip() == "self.cache[length] = torch.arange(length) * scale"


# Near misses.


class TableOfEachLength(Keeps):
    def forward(self, x):
        length = x.shape[1]
        if length not in self.cache:
            self.cache[length] = torch.linspace(0, 1, length, dtype=x.dtype)
        return x * self.cache[length]


class TableThatGrows(Keeps):
    def forward(self, x):
        if self.kept is None or len(self.kept) < x.shape[1]:
            self.kept = torch.arange(x.shape[1], dtype=x.dtype)
        return x + self.kept[: x.shape[1]]


class HiddenState(Keeps):
    """Of one batch size; the state is written at each call."""

    def forward(self, x):
        hidden = torch.zeros_like(x) if self.kept is None else self.kept
        hidden = torch.tanh(x * self.weight + hidden)
        self.kept = hidden.detach()
        return hidden


class MovingAverage(Keeps):
    def forward(self, x):
        mean = x.detach().mean(0)
        self.kept = mean if self.kept is None else 0.9 * self.kept + 0.1 * mean
        return x - self.kept


class AverageUnderANumber(Keeps):
    """A moving average that is changed in place, under a key that is no name."""

    def forward(self, x):
        average = self.cache.setdefault(0, torch.zeros_like(x[0]))
        average.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return x - average.clone()


class Recorded(Keeps):
    """What was computed last, for whoever wants to look at it."""

    def forward(self, x):
        out = x.sin() * self.weight
        self.cache["last"] = out
        return out


class FirstBatchDecides(Keeps):
    """An initialisation that depends on data."""

    def forward(self, x):
        if self.kept is None:
            self.kept = x.detach().std(0)
        return x / self.kept * self.weight


class FirstBatchDecidesByName(Keeps):
    def forward(self, x):
        if "scale" not in self.cache:
            self.cache["scale"] = x.detach().std(0)
        return x / self.cache["scale"]


class OneSizeOnly(Keeps):
    def forward(self, x):
        if self.kept is None:
            self.kept = torch.ones(x.shape[1], dtype=x.dtype)
        if len(self.kept) != x.shape[1]:
            raise ValueError("the width is that of the first batch")
        return x * self.kept


class PlainTensorFromTheStart(Keeps):
    def __init__(self):
        super().__init__()
        self.kept = torch.linspace(1, 2, 5, dtype=torch.float64)

    def forward(self, x):
        return x * self.kept


@pytest.mark.parametrize(
    "op",
    [
        TableOfEachLength,
        TableThatGrows,
        HiddenState,
        MovingAverage,
        AverageUnderANumber,
        Recorded,
        FirstBatchDecides,
        FirstBatchDecidesByName,
        OneSizeOnly,
        PlainTensorFromTheStart,
    ],
)
def test_what_a_module_may_keep(probed: Probed, op: type[nn.Module]) -> None:
    outcome = probed(GL608, op(), X)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
