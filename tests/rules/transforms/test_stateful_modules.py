"""Modules that keep state: every call, export and transform starts from that of the sample."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradlint.checking.examine import examine
from gradlint.model.events import Event, Note
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE, by_code
from gradlint.targets.build import from_object

EXPORT = by_code("GL905")
assert EXPORT is not None
Probed = Callable[..., Outcome]


def point(*shape: int) -> Tensor:
    """Random values, the same ones every time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


class Centred(nn.Module):
    """Subtracts a moving average that is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 4))
        self.register_buffer("centre", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        out = (x - self.centre) * self.weight
        with torch.no_grad():
            self.centre.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return out.tanh()


class Counted(nn.Module):
    """Scales by a number of steps, which it counts in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 4))
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        return torch.sin(self.weight * x) * min(1.0, self.steps / 1000)


class Recurrent(nn.Module):
    """Keeps its hidden state from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(4, 4)
        self.hidden: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        out = torch.tanh(self.cell(x) + (0.0 if self.hidden is None else self.hidden))
        self.hidden = out.detach()
        return out


class Cached(nn.Module):
    """Makes masks by size, and keeps them in a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))
        self.masks: dict[int, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        if len(x) not in self.masks:
            self.masks[len(x)] = torch.ones(len(x), len(x), dtype=x.dtype).triu(1) * -1e9
        scores = x @ self.weight @ x.mT + self.masks[len(x)]
        return scores.softmax(-1) @ x


class Tied(nn.Module):
    """Two layers with one weight, which has one gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


class Follower(nn.Module):
    """A second network follows the first, found through ``parameters()``."""

    def __init__(self) -> None:
        super().__init__()
        self.leader, self.follower = nn.Linear(4, 3), nn.Linear(4, 3)
        self.follower.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            for a, b in zip(self.follower.parameters(), self.leader.parameters(), strict=True):
                a.mul_(0.5).add_(b, alpha=0.5)
            goal = F.normalize(self.follower(point(5, 4).to(x.dtype)), dim=-1)
        return ((self.leader(x) - goal) ** 2).sum()


@pytest.mark.parametrize("module", [Centred, Counted, Recurrent, Cached, Tied])
def test_state_makes_no_finding(module: type[nn.Module], probed: Probed) -> None:
    torch.manual_seed(0)
    checked = module()
    found = {
        rule.code: [item.message for item in outcome.findings]
        for rule in CATALOGUE
        if rule.has_probe and rule.code not in ("GL802", "GL803", "GL804", "GL806")
        if (outcome := probed(rule, checked, point(5, 4))).findings
    }
    assert found == {}


def test_a_network_that_follows_another_is_exported(probed: Probed) -> None:
    outcome = probed(EXPORT, Follower(), point(5, 4))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class OtherWhenTraced(nn.Module):
    """Computes another function in a TorchScript trace."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() if torch.jit.is_tracing() and not torch.compiler.is_exporting() else x.tanh()


class OtherWhenExported(nn.Module):
    """Computes another function in torch.export."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sin() if torch.compiler.is_exporting() else x.tanh()


@pytest.mark.parametrize(
    ("module", "where", "severity", "verdict"),
    [
        (OtherWhenTraced, "a TorchScript trace", "info", "pass"),
        (OtherWhenExported, "torch.export", "error", "fail"),
    ],
)
def test_a_trace_alone_is_information(
    module: type[nn.Module], where: str, severity: str, verdict: str, probed: Probed
) -> None:
    outcome = probed(EXPORT, module(), point(3))
    (finding,) = outcome.findings
    assert finding.message == f"`output` differs in {where}"
    assert (finding.severity, outcome.verdict) == (severity, verdict)


def test_what_changes_is_said() -> None:
    events: list[Event] = []
    sample = Sample("s", "given", (point(5, 4).requires_grad_(),))
    examine(from_object(Counted()), [sample], Settings(select=("GL401",)), events.append)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == [
        "forward changes `steps` of its module: every call starts from the first state"
    ]
