import torch
import torch.nn as nn


class _Torus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pts, major, minor):
        ctx.save_for_backward(pts, major)
        rho = pts[..., [0, 2]].norm(dim=-1)
        return torch.hypot(rho - major, pts[..., 1]) - minor

    @staticmethod
    def backward(ctx, grad):
        pts, major = ctx.saved_tensors
        x, y, z = pts.unbind(-1)
        tiny = torch.finfo(pts.dtype).tiny
        rho = torch.sqrt((x * x + z * z).clamp(min=tiny))
        q = rho - major
        length = torch.sqrt((q * q + y * y).clamp(min=tiny))
        s = grad * q / length
        d_pts = torch.stack([s * x / rho, grad * y / length, s * z / rho], -1)
        return d_pts, -grad.sum(), -grad.sum()


class TorusSDF(nn.Module):
    def __init__(self, major=1.0, minor=0.25):
        super().__init__()
        self.major = nn.Parameter(torch.tensor(major))
        self.minor = nn.Parameter(torch.tensor(minor))

    def forward(self, pts):
        return _Torus.apply(pts, self.major, self.minor)
