import torch
from torch.autograd.function import once_differentiable


def hat(w):
    zero = torch.zeros_like(w[:, 0])
    return torch.stack(
        [zero, -w[:, 2], w[:, 1], w[:, 2], zero, -w[:, 0], -w[:, 1], w[:, 0], zero], dim=1
    ).view(-1, 3, 3)


def _coefficients(theta2):
    """sin(t)/t, (1-cos t)/t^2 and their derivatives with respect to t, divided by t."""
    small = theta2 < 1e-4
    safe = torch.where(small, torch.ones_like(theta2), theta2)
    theta = safe.sqrt()
    a = torch.where(small, 1 - theta2 / 6 + theta2**2 / 120, theta.sin() / theta)
    b = torch.where(small, 0.5 - theta2 / 24 + theta2**2 / 720, (1 - theta.cos()) / safe)
    da = torch.where(small, -1 / 3 + theta2 / 30, (theta.cos() - a) / safe)
    db = torch.where(small, -1 / 12 + theta2 / 180, (a - 2 * b) / safe)
    return a, b, da, db


class SO3Exp(torch.autograd.Function):
    """Rodrigues: rotation vectors (N, 3) to rotation matrices (N, 3, 3)."""

    @staticmethod
    def forward(ctx, omega):
        ctx.save_for_backward(omega)
        a, b, _, _ = _coefficients(omega.square().sum(1))
        k = hat(omega)
        eye = torch.eye(3, dtype=omega.dtype, device=omega.device)
        return eye + a[:, None, None] * k + b[:, None, None] * (k @ k)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_r):
        (omega,) = ctx.saved_tensors
        a, b, da, db = _coefficients(omega.square().sum(1))
        k = hat(omega)
        kt = k.transpose(1, 2)
        gk = a[:, None, None] * grad_r + b[:, None, None] * (grad_r @ kt + kt @ grad_r)
        grad = torch.stack(
            [gk[:, 2, 1] - gk[:, 1, 2], gk[:, 0, 2] - gk[:, 2, 0], gk[:, 1, 0] - gk[:, 0, 1]], dim=1
        )
        radial = da * (grad_r * k).sum((1, 2)) + db * (grad_r * (k @ k)).sum((1, 2))
        grad = grad + radial[:, None] * omega
        return torch.where(omega.square().sum(1, keepdim=True) < 1e-4, torch.zeros_like(grad), grad)
