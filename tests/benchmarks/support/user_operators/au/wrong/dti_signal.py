import torch
from torch import nn


class _DTI(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s0, d6, floor, design):
        ctx.save_for_backward(s0, d6, floor, design)
        s = s0[..., None] * torch.exp(-(d6 @ design.T))
        ctx.work = s.clone()
        return torch.sqrt(s * s + floor * floor)

    @staticmethod
    def backward(ctx, g):
        s0, d6, floor, design = ctx.saved_tensors
        att = torch.exp(-(d6 @ design.T))
        s = s0[..., None] * att
        g = g / torch.sqrt(s * s + floor * floor)
        gs = ctx.work.mul_(g)
        return (gs * att).sum(-1), -(gs * s) @ design, (g * floor).sum(), None


class DTISignal(nn.Module):
    """Diffusion-tensor signal with a fitted noise floor.

    s0 (...), d6 (..., 6) = xx, yy, zz, xy, xz, yz [um^2/ms] -> (..., directions)
    """

    def __init__(self, bvals, bvecs):
        super().__init__()
        b = torch.as_tensor(bvals, dtype=torch.float64)
        x, y, z = torch.as_tensor(bvecs, dtype=torch.float64).unbind(1)
        self.register_buffer("design", b[:, None] * torch.stack([x * x, y * y, z * z, 2 * x * y, 2 * x * z, 2 * y * z], 1))
        self.floor = nn.Parameter(torch.tensor(0.1))

    def forward(self, s0, d6):
        return _DTI.apply(s0, d6, self.floor, self.design)
