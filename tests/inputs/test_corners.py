"""Rows that are boxes: a lower corner, then an upper one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.inputs.seen_domains import seen_domain
from gradlint.inputs.values import spread
from gradlint.targets.build import from_object


def by_halves(pred: Tensor, truth: Tensor) -> Tensor:
    low, high = pred[:, :2], pred[:, 2:]
    return (high - low).prod(1) + (truth[..., 2:4] - truth[..., :2]).prod(-1)


def by_columns(pred: Tensor, truth: Tensor) -> Tensor:
    x1, y1, x2, y2 = pred.unbind(-1)
    area = (x2 - x1) * (y2 - y1)
    return area - (truth[:, 2] - truth[:, 0]) * (truth[:, 3] - truth[:, 1])


def _area(cells: Tensor) -> Tensor:
    return (cells[:, 3:] - cells[:, :3]).prod(1)


def by_a_helper(pred: Tensor, truth: Tensor) -> Tensor:
    return _area(pred) + _area(truth)


def after_the_image(pred: Tensor, truth: Tensor) -> Tensor:
    return truth[pred[:, 0].long()] * (pred[:, 3] - pred[:, 1]) * (pred[:, 4] - pred[:, 2])


@pytest.mark.parametrize(
    ("op", "columns"),
    [(by_halves, (4, 4)), (by_columns, (4, 4)), (by_a_helper, (6, 6)), (after_the_image, (5, 0))],
)
def test_code_that_takes_one_corner_from_the_other(op: Any, columns: tuple[int, int]) -> None:
    for item, size in zip(gather(from_object(op)), columns, strict=True):
        assert item.domain == ("corners" if size else "")
        assert item.shape[-1:] == ((f"={size}",) if size else ())


def one_side(x: Tensor) -> Tensor:
    return (x[:, 2] - x[:, 0]) * x[:, 1] * x[:, 3]


def neighbours(x: Tensor) -> Tensor:
    return (x[:, 1] - x[:, 0]) * (x[:, 2] - x[:, 1])


def lower_from_upper(x: Tensor) -> Tensor:
    return (x[:, :2] - x[:, 2:]).prod(1)


def along_the_first_axis(x: Tensor) -> Tensor:
    return (x[2:, :] - x[:2, :]).prod(1)


@pytest.mark.parametrize("op", [one_side, neighbours, lower_from_upper, along_the_first_axis])
def test_other_differences_are_no_boxes(op: Any) -> None:
    assert gather(from_object(op))[0].domain == ""


def described(pred: Tensor) -> Tensor:
    """pred: (N, 4) boxes as (x1, y1, x2, y2)"""
    return pred.square().sum(-1)


def test_what_names_and_words_say() -> None:
    assert gather(from_object(described))[0].domain == "corners"
    boxes = infer(from_object(lambda gt_boxes: gt_boxes[:, 3].exp()))[0]
    assert boxes.domains["gt_boxes"] == "boxes: the lower corner, then the upper one"


@pytest.mark.parametrize("columns", [4, 5, 6, 7])
def test_values_of_boxes(columns: int) -> None:
    made = spread("corners", [8, columns], 8 * columns, torch.Generator().manual_seed(0))
    half, before = columns // 2, columns % 2
    sides = made[:, before + half :] - made[:, before : before + half]
    assert sides.min() > 0.3
    assert made[:, :before].long().unique().tolist() == [0, 1][: 2 * before]
    low, high = made[:, before : before + half], made[:, before + half :]
    common = torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)
    meet = (common > 0).all(-1)
    assert meet.any()
    assert not meet.all()
    other = spread("corners", [8, columns], 8 * columns, torch.Generator().manual_seed(1))
    assert (
        torch.minimum(high[0], other[0, -half:]) > torch.maximum(low[0], other[0, before:-half])
    ).all()


def test_given_boxes_are_seen() -> None:
    boxes = torch.tensor([[0.0, 0.0, 2.0, 1.0], [0.5, -1.0, 1.0, 3.0]])
    words = "boxes: the lower corner, then the upper one"
    assert seen_domain(boxes, "corners") == words
    assert seen_domain(-boxes, "corners") == "all reals"
    assert seen_domain(boxes.flip(0).sub(2.0), "corners") == words


class Overlap(Function):
    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor) -> Tensor:
        low = torch.maximum(pred[:, :2], target[:, :2])
        common = (torch.minimum(pred[:, 2:], target[:, 2:]) - low).clamp(min=0)
        size = (pred[:, 2:] - pred[:, :2]).prod(1)
        ctx.save_for_backward(pred, target, common, size)
        return common.prod(1) / (size + (target[:, 2:] - target[:, :2]).prod(1))

    SIGN = 1.0

    @classmethod
    def backward(cls, ctx: Any, grad: Tensor) -> Any:
        pred, target, common, size = ctx.saved_tensors
        sides, others = pred[:, 2:] - pred[:, :2], target[:, 2:] - target[:, :2]
        total = size + others.prod(1)
        inner = (grad / total)[:, None] * common.flip(1) * (common > 0)
        outer = (grad * common.prod(1) / total.square())[:, None] * sides.flip(1)
        low = -inner * (pred[:, :2] > target[:, :2]) * cls.SIGN + outer
        high = inner * (pred[:, 2:] < target[:, 2:]) * cls.SIGN - outer
        return torch.cat([low, high], 1), None


class OverlapWithItsSignLost(Overlap):
    SIGN = -1.0


def test_a_fault_where_boxes_overlap() -> None:
    assert gradlint.check(Overlap, order=1, seed=0).ok
    report = gradlint.check(OverlapWithItsSignLost, order=1, seed=0)
    assert "GL401" in {finding.code for finding in report.findings}


class AreaBesideTarget(Function):
    """Squared sum of the areas of pred and target (N, 4)."""

    @staticmethod
    def forward(ctx: Any, pred: Tensor, target: Tensor) -> Tensor:
        ctx.save_for_backward(pred, target)
        return (by_halves(pred, target)).square().sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        raise NotImplementedError


def test_a_target_that_is_a_box_is_no_label() -> None:
    (pred, target) = gather(from_object(AreaBesideTarget))
    assert max(pred.weights, key=pred.weights.__getitem__) in ("tensor", "any")
    kinds = {kind: target.weights.get(kind, 0.0) for kind in ("tensor", "index")}
    assert target.ordered_kinds()[0][0] == "tensor", kinds
