"""scale_ writes over its input, and autograd knows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import grad
from torch.testing import assert_close

from tests.kernels.support.traced_backward import traced_backward


def scale_(x: Tensor, factor: float) -> Tensor:
    result: Tensor = torch.ops.gradlint.scale_(x, factor)
    return result


def leaf() -> Tensor:
    return torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)


def test_returns_its_input_and_counts_the_version_up() -> None:
    x = torch.ones(3)
    before = x._version
    assert scale_(x, 2.0) is x
    assert x._version == before + 1
    assert_close(x, torch.full((3,), 2.0))
    with torch.inference_mode():
        scale_(x, 2.0)
    assert x._version == before + 2


def test_gradients_reach_through() -> None:
    x = leaf()
    y = x * x
    z = scale_(y, 3.0)
    assert z is y
    (first,) = grad((z * z).sum(), x, create_graph=True)
    assert_close(first, 36 * x**3)
    assert_close(grad(first.sum(), x)[0], 108 * x**2)


def test_through_a_view_of_the_base() -> None:
    x = leaf()
    base = x.clone()
    scale_(base[1:], 3.0)
    assert_close(base.detach(), torch.tensor([1.0, 6.0, 9.0], dtype=torch.float64))
    assert_close(grad(base.sum(), x)[0], torch.tensor([1.0, 3.0, 3.0], dtype=torch.float64))


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:]], ids=["leaf", "view of a leaf"])
def test_leaves_are_refused_before_anything_is_written(part: Callable[[Tensor], Tensor]) -> None:
    x = leaf()
    with pytest.raises(RuntimeError) as theirs:
        part(x).mul_(2.0)
    with pytest.raises(RuntimeError) as ours:
        scale_(part(x), 2.0)
    assert str(ours.value) == str(theirs.value)
    assert_close(x, leaf())
    with torch.no_grad():
        scale_(x, 2.0)
    assert_close(x, 2 * leaf())


def test_a_saved_tensor_that_is_overwritten_is_noticed() -> None:
    y = leaf().exp()
    scale_(y, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_strides_and_overlap() -> None:
    x = torch.ones(4, 6)
    scale_(x.mT[1::2], 5.0)
    assert_close(x[:, 0], torch.ones(4))
    assert_close(x[:, 1], torch.full((4,), 5.0))
    with pytest.raises(RuntimeError, match="single memory location"):
        scale_(torch.ones(1).expand(3), 2.0)


def test_opcheck() -> None:
    torch.library.opcheck(torch.ops.gradlint.scale_.default, (leaf().detach(), 2.0))
    torch.library.opcheck(torch.ops.gradlint.scale_.default, (leaf() * 1, 2.0))


def test_compiled_and_traced_without_mutation() -> None:
    def on_part(x: Tensor) -> Tensor:
        y = x.clone()
        scale_(y[1:], 3.0)
        return y

    x = leaf()
    y = torch.compile(on_part, backend="aot_eager", fullgraph=True)(x)
    assert_close(y, on_part(x))
    assert_close(grad(y.sum(), x)[0], torch.tensor([1.0, 3.0, 3.0], dtype=torch.float64))
    assert_close(torch.func.functionalize(on_part)(x.detach()), on_part(x.detach()))


def test_compiled_autograd() -> None:
    x = leaf()
    with traced_backward() as graphs:
        scale_(x * x, 3.0).sum().backward()
    assert graphs
    assert x.grad is not None
    assert_close(x.grad, 6 * leaf().detach())
