"""A VJP with what backward needs saved in another way: recomputed under checkpointing, or packed
and unpacked by saved-tensor hooks."""

from __future__ import annotations

import torch
from torch.utils.checkpoint import checkpoint

from gradlint.trace._problem import OpRaised, Problem
from gradlint.trace._random import common_random_numbers

Gradients = list["torch.Tensor | None"]


def pull_checkpointed(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Gradients:
    """Gradients under ``torch.utils.checkpoint`` (non-reentrant): forward runs again in backward.

    Random numbers start from the problem's seed once: for the second forward checkpointing itself
    must bring them back.

    Args:
        cotangents: output name → cotangent of every differentiable output, in their order.

    Raises:
        OpRaised: when a forward or backward raises.
    """
    leaves = problem.leaves()
    problem.own_generators.reset()
    with common_random_numbers(problem.seed), torch.enable_grad():
        try:
            returned = checkpoint(
                lambda *given: tuple(problem.unwatched(given)), *leaves, use_reentrant=False
            )
        except Exception as error:
            raise OpRaised("forward", error) from error
        outputs = [t for t in returned if _differentiable(t)]
        return problem.backward(outputs, leaves, list(cotangents.values()))


def pull_packed(problem: Problem, cotangents: dict[str, torch.Tensor]) -> Gradients:
    """Gradients under saved-tensor hooks that keep copies.

    Raises:
        OpRaised: when forward or backward raises.
    """
    hooks = torch.autograd.graph.saved_tensors_hooks(_copied, lambda copy: copy)
    with hooks:
        leaves, outputs = problem.linearize()
    chosen = [item for item in outputs if item.name in cotangents and item.differentiable]
    return problem.backward(chosen, leaves, [cotangents[item.name] for item in chosen])


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _differentiable(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
