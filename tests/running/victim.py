"""An operator that is right only where nothing of the process was changed before."""

from __future__ import annotations

import os

import torch


class Victim(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert torch.get_default_dtype() == torch.float32
        assert not torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() <= 2
        assert "GRADLINT_HOSTILE" not in os.environ
        assert os.getcwd() != "/"
        print("still here")
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)
