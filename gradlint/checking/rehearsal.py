"""A check before the checks: what takes long only the first time is done once for many workers.

PyTorch's compiler makes tables, reads source and derives facts about sizes when it is first used,
which is half of what the rules that compile take of a small operator. A process from which workers
are forked does it for all of them.
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.checking.examine import examine
from gradlint.inputs.samples import samples_for
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE
from gradlint.targets.build import from_object
from gradlint.trace.global_state import preserved_state


class _Affine(torch.autograd.Function):
    """input @ weightᵀ + bias. Of products, sums and broadcasting most operators are made."""

    @staticmethod
    def forward(
        ctx: Any, input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        return 2.0 * (input @ weight.mT) + bias

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, ...]:
        input, weight = ctx.saved_tensors
        gradient = 2.0 * grad_output
        return gradient @ weight, gradient.mT @ input, grad_output.sum(0)


def rehearse() -> bool:
    """Run the rules that compile on an operator of gradlint's own, and forget what they find.

    Nothing is done where PyTorch is built for more than the CPU: its engine would start a thread
    for each device, which forks of this process would lack.

    Returns:
        Whether it was done.
    """
    if torch.accelerator.current_accelerator() is not None:
        return False
    compiling = [rule.code for rule in CATALOGUE if "torch.compile" in rule.needs]
    settings = Settings(select=tuple(compiling), seed=0)
    with preserved_state():
        op = from_object(_Affine)
        examine(op, samples_for(op, settings), settings, lambda event: None)
    return True
