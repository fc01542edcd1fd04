"""GL706 where a slice of one element, which broadcasts, has more at another size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.layout.sliced_axes import rest_was_one_element
from gradlint.experiments.subject import Subject
from gradlint.inputs._infer import infer
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object


class Projected(Function):
    """The image of points in space."""

    @staticmethod
    def forward(ctx, points, focal):
        ctx.save_for_backward(points, focal)
        return focal * points[:, :2] / points[:, 2:]

    @staticmethod
    def backward(ctx, g):
        points, focal = ctx.saved_tensors
        xy, z = points[:, :2], points[:, 2:]
        g_xy = g * focal / z
        g_z = -(g_xy * xy).sum(-1, keepdim=True) / z
        return torch.cat([g_xy, g_z], -1), (g * xy / z).sum(0)


class OfTheLast(Function):
    """Near it: the last element is one at any size."""

    @staticmethod
    def forward(ctx, points, focal):
        return focal * points[:, :-1] / points[:, -1:]


class OfAllButTwo(Function):
    """Near it: the rest is one element at no size of the sample."""

    @staticmethod
    def forward(ctx, points, focal):
        return focal * points[:, 1:].sum(-1, keepdim=True) / points[:, :1]


def sample(width: int) -> Sample:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(5, width, generator=generator, dtype=torch.float64) + 0.5
    focal = torch.tensor([1.1, 0.9], dtype=torch.float64)
    return Sample("given", "given", (points.requires_grad_(), focal.requires_grad_()))


@pytest.mark.parametrize(
    ("op", "expected"), [(Projected, True), (OfTheLast, False), (OfAllButTwo, False)]
)
def test_whether_the_rest_of_an_axis_was_one_element(op: type[Function], expected: bool) -> None:
    subject = Subject(from_object(op), sample(3), Settings(seed=0))
    assert rest_was_one_element(subject, sample(4)) is expected


def test_such_a_size_is_information(probed: Callable[..., Outcome]) -> None:
    rule = by_code("GL706")
    assert rule is not None
    outcome = probed(rule, Projected, *sample(3).args)
    assert [item.severity for item in as_loud_as_evidence(outcome).findings] == ["info"]


def test_components_are_taken_from_rows_of_two_axes() -> None:
    points, focal = infer(from_object(Projected), 0)[0].args
    assert (points.shape[1:], focal.shape) == ((3,), (2,))
