"""What ``gradlint kernels bench`` times: each operator, eager PyTorch for it, and the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch.nn import functional

#: Columns of row-wise operators: a model's width.
COLUMNS = 1024

#: Columns of rows that are too long for the registers of a block.
LONG = 8192

#: Sequence length, heads times batch, and width of one head, of attention.
SEQUENCE, HEADS, HEAD_WIDTH = 1024, 32, 64

#: Elements of a row that are ranked: the operator compares all pairs.
RANKED = 256

#: Axes of batch normalisation's input that are not summed over, and summed over with the batch.
CHANNELS, LENGTH = 256, 64

#: Regions, their size after pooling, channels and side of the feature maps, for RoI align.
REGIONS, POOLED, MAPS, SIDE = 256, 7, 256, 64

#: Share of the maps' elements that the samples in those regions read, as counted by a test.
REACHED = 0.87


@dataclass(frozen=True)
class Sizes:
    """How large the inputs are.

    Args:
        elements: of the input of an operator that is bound by memory.
        matrix: rows and columns of the factors of a matrix product.
    """

    elements: int
    matrix: int


@dataclass(frozen=True)
class Work:
    """An operator on inputs, and what it can't do without.

    Args:
        inputs: differentiable tensors first.
        native: calls ``torch.ops.gradlint``.
        eager: the same in eager PyTorch; None where PyTorch has nothing like it.
        differentiable: how many of the inputs need a gradient.
        floor: "memory": bytes that must be moved; "arithmetic": floating-point operations.
        forward, backward: how many of them.
        size: of the inputs, in words.
    """

    inputs: tuple[torch.Tensor, ...]
    native: Callable[..., torch.Tensor]
    eager: Callable[..., torch.Tensor] | None
    differentiable: int
    floor: Literal["memory", "arithmetic"]
    forward: float
    backward: float
    size: str


Maker = Callable[[Sizes, dict[str, Any]], Work]


def _elementwise(
    name: str,
    eager: Callable[..., Any],
    *scalars: float,
    tensors: int = 1,
    forward: int = 2,
    backward: int = 3,
) -> Maker:
    """Tensors that are read or written once: ``forward`` and ``backward`` of them.

    By default x and y; then grad_output, what the derivative is a function of, and the gradient.
    """

    def make(sizes: Sizes, like: dict[str, Any]) -> Work:
        op = getattr(torch.ops.gradlint, name)
        inputs = tuple(torch.randn(sizes.elements, **like) for _ in range(tensors))
        moved = sizes.elements * inputs[0].element_size()
        return Work(
            inputs,
            lambda *xs: op(*xs, *scalars),
            lambda *xs: eager(*xs, *scalars),
            tensors,
            "memory",
            forward * moved,
            backward * moved,
            f"{sizes.elements}",
        )

    return make


def _view(operator: str, view: str) -> Maker:
    """An elementwise operator on a tensor that is not dense and aligned."""

    def make(sizes: Sizes, like: dict[str, Any]) -> Work:
        op, eager = getattr(torch.ops.gradlint, operator), _eager()[operator]
        rows = max(1, sizes.elements // COLUMNS)
        read = 1
        if view == "unaligned":
            x = torch.randn(sizes.elements + 1, **like)[1:]
        elif view == "every second":
            x = torch.randn(2 * sizes.elements, **like)[::2]
            read = 2  # memory comes in sectors of 32 bytes, half of each unused
        else:
            x = torch.randn(rows, COLUMNS + COLUMNS // 2, **like)[:, :COLUMNS]
        moved = x.numel() * x.element_size()
        shape = "x".join(map(str, x.shape))
        return Work((x,), op, eager, 1, "memory", (read + 1) * moved, (read + 2) * moved, shape)

    return make


def _layer_norm(sizes: Sizes, like: dict[str, Any], columns: int = COLUMNS) -> Work:
    rows = max(1, sizes.elements // columns)
    x = torch.randn(rows, columns, **like)
    weight, bias = torch.randn(columns, **like), torch.randn(columns, **like)
    moved = x.numel() * x.element_size()
    return Work(
        (x, weight, bias),
        lambda x, w, b: torch.ops.gradlint.layer_norm(x, w, b, 1e-5),
        lambda x, w, b: torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5),
        3,
        "memory",
        2 * moved,
        3 * moved,
        f"{rows}x{columns}",
    )


def _batch_norm(sizes: Sizes, like: dict[str, Any]) -> Work:
    batch = max(2, sizes.elements // (CHANNELS * LENGTH))
    x = torch.randn(batch, CHANNELS, LENGTH, **like)
    moved = x.numel() * x.element_size()
    return Work(
        (x,),
        lambda x: torch.ops.gradlint.batch_norm(x, 1e-5),
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-5),
        1,
        "memory",
        # A channel does not fit on the chip: its mean must be known before the first output, and
        # backwards its sums of g and g·n. So x is read twice, and g too.
        3 * moved,
        5 * moved,
        f"{batch}x{CHANNELS}x{LENGTH}",
    )


def _gumbel_softmax(sizes: Sizes, like: dict[str, Any], columns: int = COLUMNS) -> Work:
    rows = max(1, sizes.elements // columns)
    logits, noise = torch.randn(rows, columns, **like), torch.randn(rows, columns, **like)
    moved = logits.numel() * logits.element_size()
    return Work(
        (logits, noise),
        lambda x, noise: torch.ops.gradlint.gumbel_softmax(x, noise, 0.7),
        lambda x, noise: torch.softmax((x + noise) / 0.7, -1),
        2,
        "memory",
        3 * moved,
        3 * moved,
        f"{rows}x{columns}",
    )


def _soft_rank(sizes: Sizes, like: dict[str, Any]) -> Work:
    # The square of a row in memory, in eager PyTorch, is as large as other operators' inputs.
    rows = max(1, sizes.elements // RANKED**2)
    x = torch.randn(rows, RANKED, **like)
    pairs = rows * RANKED**2

    def eager(x: torch.Tensor) -> torch.Tensor:
        ranks: torch.Tensor = ((x.unsqueeze(2) - x.unsqueeze(1)) / 0.5).sigmoid().sum(2) + 0.5
        return ranks

    return Work(
        (x,),
        lambda x: torch.ops.gradlint.soft_rank(x, 0.5),
        eager,
        1,
        "arithmetic",
        # A difference, a quotient, the exponential, 1 + e, its inverse, the sum.
        6 * pairs,
        10 * pairs,
        f"{rows}x{RANKED}",
    )


def _linear(sizes: Sizes, like: dict[str, Any]) -> Work:
    side = sizes.matrix
    inputs = (
        torch.randn(side, side, **like),
        torch.randn(side, side, **like) / side**0.5,
        torch.randn(side, **like),
    )
    return Work(
        inputs,
        lambda x, w, b: torch.ops.gradlint.linear(x, w, b),
        torch.nn.functional.linear,
        3,
        "arithmetic",
        2.0 * side**3,
        4.0 * side**3,
        f"{side}x{side}x{side}",
    )


def _attention(sizes: Sizes, like: dict[str, Any]) -> Work:
    length = min(SEQUENCE, sizes.matrix)
    inputs = tuple(torch.randn(HEADS, length, HEAD_WIDTH, **like) for _ in range(3))
    product = 2.0 * HEADS * length**2 * HEAD_WIDTH
    return Work(
        inputs,
        lambda q, k, v: torch.ops.gradlint.attention(q, k, v),
        torch.nn.functional.scaled_dot_product_attention,
        3,
        "arithmetic",
        # q·kᵀ and p·v; backwards the gradients of p, v, q and k.
        2 * product,
        4 * product,
        f"{HEADS}x{length}x{HEAD_WIDTH}",
    )


def _roi_align(sizes: Sizes, like: dict[str, Any]) -> Work:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(1, MAPS, SIDE, SIDE, **like)
    corners = torch.rand(REGIONS, 2, generator=generator) * SIDE / 2
    extents = torch.rand(REGIONS, 2, generator=generator) * SIDE / 2 + 1
    boxes = torch.cat([torch.zeros(REGIONS, 1), corners, corners + extents], 1).to(**like)
    outputs = REGIONS * MAPS * POOLED**2 * features.element_size()
    whole = features.numel() * features.element_size()
    return Work(
        (features, boxes),
        lambda x, boxes: torch.ops.gradlint.roi_align(x, boxes, 1.0, POOLED, POOLED, 2, True),
        None,
        1,
        "memory",
        REACHED * whole + outputs,
        # The gradient is 0 where nothing was read.
        whole + outputs,
        f"{MAPS}x{SIDE}x{SIDE}, {REGIONS} boxes",
    )


def _eager() -> dict[str, Callable[..., Any]]:
    return {
        "square": torch.square,
        "exp": torch.exp,
        "scale": torch.mul,
        "scale_": lambda x, factor: x.mul_(factor),
        "scaled_sigmoid": lambda x, scale: torch.sigmoid(x * scale),
        "weighted_sum": lambda x, weight: (x * weight).sum(),
        "relu": torch.relu,
        "clipped_relu": lambda x, ceiling: x.clamp(0, ceiling),
        "soft_threshold": functional.softshrink,
        "add_relu": lambda x, y: torch.relu(x + y),
        "sign_ste": lambda x: x.clamp(-1, 1) + (x.sign() - x.clamp(-1, 1)).detach(),
        "gelu": functional.gelu,
        "silu": functional.silu,
    }


def workloads() -> dict[str, Maker]:
    """Operator → what makes its work, in the order of the report."""
    eager = _eager()

    def one(name: str, *scalars: float, **more: int) -> Maker:
        return _elementwise(name, eager[name], *scalars, **more)

    return {
        "square": one("square"),
        "exp": one("exp"),
        "scale": one("scale", 2.5, backward=2),
        "scale_": one("scale_", 2.5, backward=2),
        "scaled_sigmoid": one("scaled_sigmoid", 1.5),
        # Backwards each of two gradients is a number times the other tensor.
        "weighted_sum": one("weighted_sum", tensors=2, backward=4),
        "relu": one("relu"),
        "clipped_relu": one("clipped_relu", 1.5),
        "soft_threshold": one("soft_threshold", 0.5),
        # Backwards both inputs have the same gradient, which is written once.
        "add_relu": one("add_relu", tensors=2, forward=3),
        "sign_ste": one("sign_ste"),
        "gelu": one("gelu"),
        "silu": one("silu"),
        "gumbel_softmax": _gumbel_softmax,
        "layer_norm": _layer_norm,
        "batch_norm": _batch_norm,
        "soft_rank": _soft_rank,
        "linear": _linear,
        "attention": _attention,
        "roi_align": _roi_align,
    }


def unusual() -> dict[str, Maker]:
    """The same for inputs that are not dense, not aligned, or of long rows: name → maker. What
    stands before the comma is the operator."""
    views = ("unaligned", "every second", "parts of rows")
    return {
        **{f"{op}, {view}": _view(op, view) for op in ("relu", "gelu") for view in views},
        "gumbel_softmax, long rows": partial(_gumbel_softmax, columns=LONG),
        "layer_norm, long rows": partial(_layer_norm, columns=LONG),
    }
