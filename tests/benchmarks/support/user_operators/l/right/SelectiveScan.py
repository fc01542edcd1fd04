"""Reference selective scan (Mamba) with a sequential backward."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


@dataclass
class SSMConfig:
    d_inner: int
    d_state: int = 16


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, u, delta, A, B, C, D):
        dt = F.softplus(delta)
        h = u.new_zeros(u.size(0), u.size(2), A.size(1))
        hs, ys = [h], []
        for t in range(u.size(1)):
            decay = torch.exp(dt[:, t, :, None] * A)
            h = decay * h + (dt[:, t] * u[:, t])[..., None] * B[:, t, None, :]
            hs.append(h)
            ys.append((h * C[:, t, None, :]).sum(-1))
        ctx.save_for_backward(u, delta, A, B, C, D, torch.stack(hs, 1))
        return torch.stack(ys, 1) + D * u

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        u, delta, A, B, C, D, hs = ctx.saved_tensors
        dt = F.softplus(delta)
        gu, gdt = gy * D, torch.zeros_like(dt)
        gA, gB, gC = torch.zeros_like(A), torch.zeros_like(B), torch.zeros_like(C)
        gD = (gy * u).sum((0, 1))
        dh = torch.zeros_like(hs[:, 0])
        for t in range(u.size(1) - 1, -1, -1):
            dh = dh + gy[:, t, :, None] * C[:, t, None, :]
            gC[:, t] = (gy[:, t, :, None] * hs[:, t + 1]).sum(1)
            decay = torch.exp(dt[:, t, :, None] * A)
            d_exp = dh * hs[:, t] * decay
            dhB = (dh * B[:, t, None, :]).sum(-1)
            gdt[:, t] = (d_exp * A).sum(-1) + dhB * u[:, t]
            gA += (d_exp * dt[:, t, :, None]).sum(0)
            gB[:, t] = (dh * (dt[:, t] * u[:, t])[..., None]).sum(1)
            gu[:, t] += dhB * dt[:, t]
            dh = dh * decay
        return gu, gdt * torch.sigmoid(delta), gA, gB, gC, gD


class SelectiveScan(nn.Module):
    """y = SSM(u) + D u with input-dependent delta, B and C.

    u, delta: (batch, L, d_inner); B, C: (batch, L, d_state); delta before its softplus.
    """

    def __init__(self, cfg: SSMConfig):
        super().__init__()
        a = torch.arange(1, cfg.d_state + 1, dtype=torch.float32).repeat(cfg.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(a))
        self.D = nn.Parameter(torch.ones(cfg.d_inner))

    def forward(self, u, delta, B, C):
        return _Scan.apply(u, delta, -torch.exp(self.A_log), B, C, self.D)
