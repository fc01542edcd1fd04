"""roi_align against a plain form of its definition: for each box two matrices of weights."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from torch import Tensor
from torch.autograd import grad, gradcheck
from torch.testing import assert_close

ops = torch.ops.gradlint
NAN, INF = float("nan"), float("inf")

#: Inside, mostly outside, without area, at a corner, inverted, the whole image, far away, on edges.
BOXES = torch.tensor(
    [
        [0, 1.25, 2.25, 9.0, 7.75],
        [1, -3.0, -4.0, 50.0, 30.0],
        [0, 5.0, 5.0, 5.0, 5.0],
        [1, 36.0, 18.0, 40.0, 22.0],
        [1, 7.75, 3.25, 6.0, 2.0],
        [0, 0.0, 0.0, 36.0, 18.0],
        [1, -20.0, -20.0, -10.0, -10.0],
        [0, 10.0, 2.0, 12.0, 17.0],
    ],
    dtype=torch.float64,
)


def drawn(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def weights(
    low: float, high: float, scale: float, bins: int, pixels: int, ratio: int, aligned: bool
) -> tuple[Tensor, int]:
    """Weights (bins, pixels) of the samples of each bin, summed, and how many samples it has."""
    start = low * scale - (0.5 if aligned else 0.0)
    length = (high - low) * scale
    if not aligned:
        length = max(length, 1.0)
    samples = ratio or max(math.ceil(length / bins), 0)
    result = torch.zeros(bins, pixels, dtype=torch.float64)
    for index, sample in product(range(bins), range(samples)):
        at = start + (index + (sample + 0.5) / samples) * length / bins
        if -1 <= at <= pixels:
            distance = (
                torch.arange(pixels, dtype=torch.float64) - min(max(at, 0.0), pixels - 1.0)
            ).abs()
            result[index] += (1 - distance).clamp_min(0)
    return result, samples


def plain(
    image: Tensor,
    boxes: Tensor,
    scale: float,
    height: int,
    width: int,
    ratio: int = 0,
    aligned: bool = False,
) -> Tensor:
    """RoI align by its definition, slowly."""
    pooled = []
    for number, left, top, right, bottom in boxes.tolist():
        rows, down = weights(top, bottom, scale, height, image.shape[2], ratio, aligned)
        columns, across = weights(left, right, scale, width, image.shape[3], ratio, aligned)
        pooled.append(rows @ image[int(number)] @ columns.mT / max(down * across, 1))
    return torch.stack(pooled)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize(("scale", "size"), [(1.0, (7, 7)), (0.5, (2, 3)), (0.0625, (1, 1))])
def test_values_and_gradients(
    scale: float, size: tuple[int, int], ratio: int, aligned: bool
) -> None:
    image = drawn(2, 3, 19, 37).requires_grad_()
    arguments = (image, BOXES, scale, *size, ratio, aligned)
    got, expected = ops.roi_align(*arguments), plain(*arguments)
    assert_close(got, expected)
    cotangent = drawn(*got.shape)
    assert_close(grad(got, image, cotangent), grad(expected, image, cotangent))


def test_many_boxes_and_channels() -> None:
    corners = 8 + 8 * drawn(70, 2)
    numbers = torch.arange(70, dtype=torch.float64)[:, None] % 2
    boxes = torch.cat([numbers, corners, corners + 9 * drawn(70, 2).abs()], 1)
    image = drawn(2, 11, 19, 37).requires_grad_()
    got, expected = ops.roi_align(image, boxes, 1.0, 3, 3), plain(image, boxes, 1.0, 3, 3)
    assert_close(got, expected)
    cotangent = drawn(*got.shape)
    first, second = (grad(got, image, cotangent, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    assert_close(first, grad(expected, image, cotangent)[0])


def test_first_derivative() -> None:
    image = drawn(2, 1, 4, 5).requires_grad_()
    boxes = BOXES[[0, 2, 4]] * torch.tensor([1, 0.5, 0.5, 0.5, 0.5])
    assert gradcheck(lambda x: ops.roi_align(x, boxes, 1.0, 2, 2, 2, True), (image,))


def test_differentiable_once_and_in_the_image_alone() -> None:
    image, boxes = drawn(2, 1, 4, 5).requires_grad_(), BOXES[:1].clone().requires_grad_()
    output = ops.roi_align(image, boxes, 0.5, 2, 2)
    first, none = grad(output.pow(2).sum(), (image, boxes), create_graph=True, allow_unused=True)
    assert none is None
    with pytest.raises(RuntimeError, match="derivative for gradlint::roi_align_backward is not"):
        grad(first.sum(), image)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1.5e-2)],
)
def test_lower_precision(dtype: torch.dtype, tolerance: float) -> None:
    image = drawn(2, 3, 19, 37).to(dtype).requires_grad_()
    exact = image.detach().double().requires_grad_()
    got = ops.roi_align(image, BOXES.to(dtype), 1.0, 7, 7, 2, True)
    expected = plain(exact, BOXES, 1.0, 7, 7, 2, True)
    assert got.dtype == dtype
    assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)
    (gradient,) = grad(got.sum(), image)
    (wanted,) = grad(expected.sum(), exact)
    assert_close(gradient.double(), wanted, rtol=tolerance, atol=tolerance)


def test_any_strides() -> None:
    image = drawn(2, 38, 3, 37).permute(0, 2, 1, 3)[:, :, ::2].requires_grad_()
    boxes = BOXES.mT.contiguous().mT
    got, expected = ops.roi_align(image, boxes, 1.0, 3, 2), plain(image, boxes, 1.0, 3, 2)
    assert_close(got, expected)
    for cotangent in (drawn(1).expand(8, 3, 3, 2), drawn(2, 3, 3, 8).permute(3, 1, 2, 0)):
        gradients = (
            grad(output, image, cotangent, retain_graph=True) for output in (got, expected)
        )
        assert_close(*gradients)


@pytest.mark.parametrize(
    ("shape", "boxes"), [((1, 2, 5, 6), 0), ((1, 0, 5, 6), 1), ((1, 2, 0, 6), 1), ((0, 2, 5, 6), 0)]
)
def test_empty(shape: tuple[int, ...], boxes: int) -> None:
    image = drawn(*shape).requires_grad_()
    output = ops.roi_align(image, BOXES[:boxes], 1.0, 3, 2)
    assert torch.equal(output, torch.zeros(boxes, shape[1], 3, 2, dtype=torch.float64))
    assert torch.equal(grad(output.sum(), image)[0], torch.zeros(shape, dtype=torch.float64))


def test_boxes_that_are_not_finite_give_nan_and_no_gradient() -> None:
    image = drawn(1, 1, 5, 6).requires_grad_()
    good = [0, 1, 1, 3, 3]
    bad = [[0, 0, 0, INF, 2], [0, NAN, 0, 1, 1], [0, -INF, 0, INF, 1]]
    boxes = torch.tensor([good, *bad], dtype=torch.float64)
    output = ops.roi_align(image, boxes, 1.0, 2, 2)
    assert bool(output[1:].isnan().all())
    assert_close(output[:1], plain(image, boxes[:1], 1.0, 2, 2))
    (got,), (expected,) = (grad(y.sum(), image, retain_graph=True) for y in (output, output[:1]))
    assert torch.equal(got, expected)


@pytest.mark.parametrize("ratio", [0, 3])
def test_huge_boxes(ratio: int) -> None:
    image = drawn(1, 1, 5, 6).requires_grad_()
    boxes = torch.tensor([[0, -1e30, -1e30, 1e30, 1e30], [0, 1e18, 1, 1e19, 3]]).double()
    output = ops.roi_align(image, boxes, 1.0, 2, 2, ratio)
    assert_close(output, torch.zeros_like(output), rtol=0, atol=1e-50)
    assert bool(grad(output.sum(), image)[0].isfinite().all())


def test_infinite_pixels_stay_where_they_are() -> None:
    image = torch.zeros(1, 1, 4, 4)
    image[0, 0, 1, 2] = INF
    output = ops.roi_align(image, torch.tensor([[0, 0.5, 0.5, 2.5, 2.5]]), 1.0, 2, 2, 1)
    assert output.tolist() == [[[[0, INF], [0, 0]]]]


def test_opcheck() -> None:
    image = drawn(2, 1, 4, 5).requires_grad_()
    torch.library.opcheck(ops.roi_align.default, (image, BOXES[:2], 0.5, 2, 2, 2, True))
    backward = (drawn(2, 1, 2, 2), BOXES[:2], 0.5, 2, True, [2, 1, 4, 5])
    torch.library.opcheck(ops.roi_align_backward.default, backward)


IMAGE, BOX = torch.ones(1, 2, 5, 6), torch.tensor([[0, 1.0, 1.0, 3.0, 3.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (IMAGE[0], BOX, 1.0, 2, 2),
            r"`input` must have the shape \(N, C, H, W\), got \[2, 5, 6\]",
        ),
        ((IMAGE, BOX[0], 1.0, 2, 2), r"`boxes` must have the shape \(K, 5\), .*, got \[5\]"),
        ((IMAGE, BOX[:, 1:], 1.0, 2, 2), r"`boxes` must have the shape \(K, 5\), .*, got \[1, 4\]"),
        ((IMAGE, BOX.double(), 1.0, 2, 2), "`boxes` must have the dtype of `input`, Float, got Do"),
        ((IMAGE, BOX.to("meta"), 1.0, 2, 2), "`boxes` must be on the device of `input`, cpu, got"),
        ((IMAGE.int(), BOX.int(), 1.0, 2, 2), "`input` must be float64, .*, got Int"),
        ((IMAGE, BOX, 0.0, 2, 2), "`spatial_scale` must be positive and finite, got 0"),
        ((IMAGE, BOX, INF, 2, 2), "`spatial_scale` must be positive and finite, got inf"),
        (
            (IMAGE, BOX, 1.0, 0, 2),
            "`pooled_height` and `pooled_width` must be positive, got 0 and 2",
        ),
        ((IMAGE, BOX, 1.0, 2, 2, -1), "`sampling_ratio` must be positive, or 0 .*, got -1"),
        ((IMAGE, BOX + 1, 1.0, 2, 2), r"`boxes`\[0, 0\] must be .* and below 1, got 1"),
        ((IMAGE, BOX - 0.5, 1.0, 2, 2), r"`boxes`\[0, 0\] must be .* a whole number .*, got -0.5"),
    ],
)
def test_bad_input(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError), match=message):
        ops.roi_align(*arguments)
