import torch
from torch import nn


def cubic_basis(n_pixels: int, n_ctrl: int) -> torch.Tensor:
    """(n_pixels, n_ctrl) uniform cubic B-spline weights, control points one cell beyond the border"""
    u = torch.arange(n_pixels, dtype=torch.float64) * (n_ctrl - 3) / max(n_pixels, 1) + 1
    d = (u[:, None] - torch.arange(n_ctrl)).abs()
    near = 2 / 3 - d ** 2 + d ** 3 / 2
    far = (2 - d).clamp(min=0) ** 3 / 6
    return torch.where(d < 1, near, far).float()


class _TensorProduct(torch.autograd.Function):
    # ctrl: (D, p, q), By: (H, p), Bx: (W, q) -> (H, W, D), the layout of grid_sample

    @staticmethod
    def forward(ctx, ctrl, By, Bx):
        ctx.save_for_backward(By, Bx)
        return torch.einsum("hp,dpq,wq->hwd", By, ctrl, Bx).contiguous()

    @staticmethod
    def backward(ctx, grad):
        By, Bx = ctx.saved_tensors
        H, W, D = grad.shape
        rows = By.t() @ grad.as_strided((H, W * D), (W * D, 1))
        rows = rows.reshape(-1, W, D)
        return torch.einsum("pwd,wq->dpq", rows, Bx), None, None


class FreeFormDeformation(nn.Module):
    """Dense displacement added to the identity coordinates xy (H, W, 2)."""

    def __init__(self, size=(4, 3), ctrl=(5, 4), seed=0):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.ctrl = nn.Parameter(0.1 * torch.randn(2, *ctrl, generator=gen))
        self.register_buffer("By", cubic_basis(size[0], ctrl[0]))
        self.register_buffer("Bx", cubic_basis(size[1], ctrl[1]))

    def forward(self, xy, strength: float = 1.0):
        return xy + strength * _TensorProduct.apply(self.ctrl, self.By, self.Bx)
