"""Backward that raises at sizes for which gradlint made the integers among given inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint

T = torch.tensor


class Merges(torch.autograd.Function):
    """Products of a tree: row k of `children` names the two nodes that make node n + k."""

    @staticmethod
    def forward(ctx, leaves, children):
        nodes = list(leaves.unbind(1))
        for left, right in children.tolist():
            nodes.append(nodes[left] * nodes[right])
        ctx.nodes, ctx.children = nodes, children.tolist()
        return nodes[-1]

    @staticmethod
    def backward(ctx, g):
        count = len(ctx.nodes) - len(ctx.children)
        grads: list[Any] = [None] * len(ctx.nodes)
        grads[-1] = g
        for k in reversed(range(len(ctx.children))):
            left, right = ctx.children[k]
            grads[left] = grads[count + k] * ctx.nodes[right]
            grads[right] = grads[count + k] * ctx.nodes[left]
        return torch.stack(grads[:count], 1), None


class Four(torch.autograd.Function):
    """A square; backward has gradients for four rows."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grads: list[Any] = [None] * len(x)
        for k in range(4):
            grads[k] = 2 * g[k] * x[k]
        return torch.stack(grads)


def findings(op: Any, *inputs: torch.Tensor) -> list[tuple[str, str]]:
    report = gradlint.check(op, [inputs], seed=0, select=["GL401", "GL706"]).targets[0]
    return [(item.code, item.severity) for item in report.findings]


@pytest.mark.filterwarnings("ignore")
def test_nobody_gave_a_tree_of_that_size():
    leaves = T([[0.5, -1.2, 0.7, 1.1], [1.3, 0.4, -0.8, 0.9], [0.6, 1.4, -0.3, -1.5]])
    children = T([[0, 1], [2, 3], [4, 5]])  # as many merges as rows of leaves, by chance
    assert all(severity == "info" for _, severity in findings(Merges, leaves, children))


def test_without_integers_it_is_a_fault():
    assert ("GL706", "error") in findings(Four, T([0.5, -1.2, 0.7, 1.1]))
