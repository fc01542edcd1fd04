"""Wrong exactly where a label points, an index names rows, or a mask is False. Near them: ranges of
values that have nothing to do with an argument, and arguments that tell too little apart."""

from __future__ import annotations

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.diagnosis._pointed import pointed_cause
from gradlint.diagnosis.evidence import Evidence
from gradlint.model.events import Found
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

LABELS = torch.tensor([2, 0, 4, 2])
MASK = torch.tensor([[True, False, True, True, False]])


def draw(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def evidence(wrong: torch.Tensor, *, small: bool = False, **arguments: object) -> Evidence:
    """A gradient of ``wrong``'s shape that is 0.7 of the derivative where ``wrong``."""
    derivative = 2.0 + draw(*wrong.shape).abs()
    own = torch.where(wrong, 0.7 * derivative, derivative)
    count = 3 if small else own.numel()
    return Evidence(
        0, ["x"], [own], torch.arange(count), derivative.reshape(-1)[:count],
        torch.full((count,), 1e-9, dtype=torch.float64), [], arguments=arguments,
    )  # fmt: skip


def at_labels(labels: torch.Tensor, classes: int = 5) -> torch.Tensor:
    return torch.nn.functional.one_hot(labels, classes).bool()


def rows(*named: int) -> torch.Tensor:
    return torch.isin(torch.arange(6), torch.tensor(named))[:, None].expand(6, 2).clone()


@pytest.mark.parametrize(
    ("wrong", "argument", "words"),
    [
        (at_labels(LABELS), LABELS, "that `y` points at"),
        (at_labels(LABELS).mT, LABELS, "that `y` points at"),
        (~at_labels(LABELS), LABELS, "that `y` does not point at"),
        (at_labels(LABELS), LABELS - 5 * (LABELS == 4), "that `y` points at"),
        (rows(1, 4), torch.tensor([4, 1, 4]), "that `y` names"),
        (rows(0, 2, 3, 5), torch.tensor([4, 1, 4]), "that `y` does not name"),
        (MASK.expand(3, 5), MASK, "where `y` is True"),
        (~MASK.expand(3, 5), MASK, "where `y` is False"),
        (~MASK[0][:, None].expand(5, 3), MASK[0], "where `y` is False"),
        (rows(1, 4), torch.tensor([7, 9, 7, 7, 9, 8]), "where `y` is 9"),
        (rows(0, 1, 2, 3), torch.tensor([7, 7, 9, 9, -100, -100]), "where `y` is not -100"),
    ],
)
def test_what_an_argument_points_at(wrong: torch.Tensor, argument: torch.Tensor, words: str):
    cause = pointed_cause([evidence(wrong, y=argument)], "x")
    assert cause is not None
    assert cause.slug == "pointed-at"
    assert f"of `x` {words}, right for the others" in cause.text
    assert words in cause.help


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        (at_labels(LABELS), {"y": LABELS[:3]}),  # labels of other rows
        (at_labels(LABELS) & (torch.arange(4) != 1)[:, None], {"y": LABELS}),  # not all of them
        (at_labels(LABELS) | (torch.arange(5) == 3), {"y": LABELS}),  # and others
        (torch.ones(4, 5, dtype=torch.bool), {"y": LABELS}),
        (at_labels(LABELS), {"y": LABELS.double()}),  # no labels: numbers
        (at_labels(LABELS[:1], 3), {"y": LABELS[:1]}),  # one of three may be chance
        (at_labels(LABELS), {}),
    ],
)
def test_what_no_argument_points_at(wrong: torch.Tensor, arguments: dict[str, object]):
    assert pointed_cause([evidence(wrong, **arguments)], "x") is None


def test_too_few_measured_elements_say_nothing():
    assert pointed_cause([evidence(at_labels(LABELS), small=True, y=LABELS)], "x") is None


class Margin(torch.autograd.Function):
    """The sum of squares, tripled where a label points: backward forgets that."""

    @staticmethod
    def forward(ctx, x, label):
        ctx.save_for_backward(x, label)
        there = torch.nn.functional.one_hot(label, x.shape[1])
        return (x.square() * (1 + 2 * there)).sum()

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return g * 2 * x, None


class Shrinks(Margin):
    """The same, wrong where x is negative: a range of values, whatever the labels are."""

    @staticmethod
    def backward(ctx, g):
        x, label = ctx.saved_tensors
        there = torch.nn.functional.one_hot(label, x.shape[1])
        return g * 2 * x * (1 + 2 * there) * torch.where(x < 0, 0.8, 1.0), None


@pytest.mark.parametrize(
    ("op", "words"), [(Margin, "that `label` points at"), (Shrinks, "where `x` is negative")]
)
def test_the_finding_names_it(op: type[torch.autograd.Function], words: str):
    events = []
    sample = Sample("s", "given", (draw(4, 5).requires_grad_(), LABELS))
    settings = Settings(seed=1, select=("GL401",))
    examine(from_object(op), [sample], settings, events.append)
    (found,) = [event.finding for event in events if isinstance(event, Found)]
    assert words in found.cause_text
    assert found.severity == "error"
