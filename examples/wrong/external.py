"""Wrappers of a model that lives outside PyTorch, such as a simulator."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


class Spring:
    """The external model: knows nothing of autograd."""

    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    def energy(self, stretch: Tensor) -> Tensor:
        """½·k·s² for each stretch s."""
        return 0.5 * self.stiffness * stretch**2


class SavesTheModel(Function):
    """E = ½·k·s²; ∂L/∂s = k·s·G. save_for_backward takes tensors, the model belongs on ctx."""

    @staticmethod
    def sample_inputs() -> tuple[Any, ...]:
        return torch.tensor([0.3, -1.2, 2.0]), Spring(stiffness=4.0)

    @staticmethod
    def forward(ctx: Any, stretch: Tensor, model: Spring) -> Tensor:
        ctx.save_for_backward(stretch, model)  # <- GL003
        return model.energy(stretch)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        stretch, model = ctx.saved_tensors
        return model.stiffness * stretch * grad_output, None


class PlaceholderGradient(Function):
    """E = ½·k·s², whose backward was to be written later. Training runs and learns nothing."""

    @staticmethod
    def forward(ctx: Any, stretch: Tensor) -> Tensor:
        return Spring(stiffness=4.0).energy(stretch)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        return torch.zeros_like(grad_output)  # <- GL401
