import torch
from torch import Tensor, nn


class _Pacejka(torch.autograd.Function):
    @staticmethod
    def forward(ctx, slip, stiffness, shape, peak, curvature):
        ctx.save_for_backward(slip, stiffness, shape, peak, curvature)
        bx = stiffness * slip
        inner = bx - curvature * (bx - torch.atan(bx))
        return peak * torch.sin(shape * torch.atan(inner))

    @staticmethod
    def backward(ctx, grad):
        slip, stiffness, shape, peak, curvature = ctx.saved_tensors
        bx = stiffness * slip
        inner = bx - curvature * (bx - torch.atan(bx))
        angle = torch.atan(inner)
        swing = grad * peak * torch.cos(shape * angle)
        grad_inner = swing * shape / (1 + inner**2)
        grad_bx = grad_inner * (1 - curvature / (1 + bx**2))
        lead = tuple(range(slip.dim() - 1))
        return (
            grad_bx * stiffness,
            (grad_bx * slip).sum(lead),
            (swing * angle).sum(lead),
            (grad * torch.sin(shape * angle)).sum(lead),
            (grad_inner * (torch.atan(bx) - bx)).sum(lead),
        )


class PacejkaTire(nn.Module):
    """Lateral force of the magic formula with learned coefficients for each wheel.

    Args:
        wheels: number of wheels.

    Shape: slip angles (..., wheels) -> forces (..., wheels).
    """

    def __init__(self, wheels: int = 4) -> None:
        super().__init__()
        self.wheels = wheels
        self.stiffness = nn.Parameter(torch.full((wheels,), 10.0))
        self.shape = nn.Parameter(torch.full((wheels,), 1.4))
        self.peak = nn.Parameter(torch.ones(wheels))
        self.curvature = nn.Parameter(torch.full((wheels,), -0.5))

    def forward(self, slip: Tensor) -> Tensor:
        if slip.dim() < 2 or slip.size(-1) != self.wheels:
            raise ValueError(f"slip must be (..., {self.wheels}) with a batch dimension")
        return _Pacejka.apply(slip, self.stiffness, self.shape, self.peak, self.curvature)
