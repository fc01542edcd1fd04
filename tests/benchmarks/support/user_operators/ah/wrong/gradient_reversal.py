import torch
from torch import nn
from torch.autograd import Function


class GradientReversalFunction(Function):
    """Identity forward; multiplies the gradient with ``-alpha`` on the way back."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg_() * ctx.alpha, None


class GradientReversal(nn.Module):
    def __init__(self, alpha: float = 1.0, warmup_steps: int = 0) -> None:
        super().__init__()
        if alpha < 0:
            raise ValueError(f"alpha must not be negative, got {alpha}")
        self.alpha = alpha
        self.warmup_steps = warmup_steps
        self.current_step = 0

    def step(self) -> None:
        self.current_step += 1

    @property
    def current_alpha(self) -> float:
        if self.warmup_steps <= 0:
            return self.alpha
        return self.alpha * min(1.0, self.current_step / self.warmup_steps)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return GradientReversalFunction.apply(x, self.current_alpha)
