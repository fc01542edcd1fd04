"""The work that ``gradlint kernels bench`` counts, against what operators save and return."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from gradlint.native._workloads import REACHED, Sizes, Work, unusual, workloads

SIZES = Sizes(elements=2**18, matrix=64)

#: For rows whose parameters would be a large share of so few elements.
LARGER = Sizes(elements=2**21, matrix=64)

#: Beside the large tensors: parameters, and means of rows or channels.
SMALL = 0.02


def work(name: str) -> Work:
    torch.manual_seed(0)
    sizes = LARGER if name.endswith("long rows") else SIZES
    return {**workloads(), **unusual()}[name](sizes, {"dtype": torch.float32})


def size(tensors: Iterable[Tensor]) -> int:
    """Bytes of tensors, each memory counted once."""
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())


def measured(name: str) -> tuple[int, int]:
    """Bytes of what forward takes and returns, and of what backward takes and returns."""
    it = work(name)
    leaves = [x.requires_grad_() for x in it.inputs[: it.differentiable]]
    in_place = name.endswith("_")
    given = [leaf.clone() if in_place else leaf for leaf in leaves]
    saved: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        output = it.native(*given, *it.inputs[it.differentiable :])
    forward = size([*given, *it.inputs[it.differentiable :]]) + size([output])
    cotangent = torch.randn_like(output)
    gradients = torch.autograd.grad(output, leaves, cotangent)
    return forward, size([cotangent, *saved]) + size(gradients)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in (*workloads(), *unusual())
        if name not in {"soft_rank", "linear", "attention", "roi_align"}
    ],
)
def test_bytes(name: str) -> None:
    counted = work(name)
    assert counted.floor == "memory"
    forward, backward = measured(name)
    if name == "batch_norm":  # all of a channel before the first output, then all of it again
        x = size(counted.inputs)
        forward, backward = forward + x, backward + 2 * x
    if name.endswith("every second"):  # what lies between is moved too
        x = size(counted.inputs)
        forward, backward = forward + x, backward + x
    assert counted.forward == pytest.approx(forward, rel=SMALL)
    assert counted.backward == pytest.approx(backward, rel=SMALL)


def test_bytes_of_roi_align() -> None:
    counted = work("roi_align")
    x, boxes = counted.inputs
    x.requires_grad_()
    output = counted.native(x, boxes)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    read = (gradient[0, 0] != 0).float().mean().item()  # the share of pixels that boxes reach
    assert read == pytest.approx(REACHED, abs=0.005)
    assert counted.forward == REACHED * size([x]) + size([output])
    assert counted.backward == size([output]) + size([gradient])


def test_operations_of_products() -> None:
    x, weight, _ = work("linear").inputs
    product = 2 * x.shape[0] * x.shape[1] * weight.shape[0]
    assert (work("linear").forward, work("linear").backward) == (product, 2 * product)
    query, key, _ = work("attention").inputs
    product = 2 * query.numel() * key.shape[1]
    assert (work("attention").forward, work("attention").backward) == (2 * product, 4 * product)
