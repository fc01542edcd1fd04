import torch
from torch import nn
from torch.nn import functional as F


class _SelectiveScan(torch.autograd.Function):
    # u, dt: (B, L, D); A: (D, N); Bm, Cm: (B, L, N); D: (D,)

    @staticmethod
    def forward(ctx, u, dt, A, Bm, Cm, D):
        dA = torch.exp(dt.unsqueeze(-1) * A)
        dBu = (dt * u).unsqueeze(-1) * Bm.unsqueeze(2)
        h = torch.zeros_like(dA[:, 0])
        hs = []
        for t in range(u.size(1)):
            h = dA[:, t] * h + dBu[:, t]
            hs.append(h)
        hs = torch.stack(hs, 1)
        ctx.save_for_backward(u, dt, A, Bm, Cm, D, hs)
        return torch.einsum("bldn,bln->bld", hs, Cm) + u * D

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        u, dt, A, Bm, Cm, D, hs = ctx.saved_tensors
        dA = torch.exp(dt.unsqueeze(-1) * A)
        gC = torch.einsum("bldn,bld->bln", hs, gy)
        gh = gy.unsqueeze(-1) * Cm.unsqueeze(2)
        adj = torch.zeros_like(hs)
        carry = torch.zeros_like(hs[:, 0])
        for t in range(u.size(1) - 1, -1, -1):
            carry = carry + gh[:, t]
            adj[:, t] = carry
            carry = carry * dA[:, t]
        prev = torch.cat([torch.zeros_like(hs[:, :1]), hs[:, :-1]], 1)
        gdA = adj * prev * dA
        gA = torch.einsum("bldn,bld->dn", gdA, dt)
        gBu = torch.einsum("bldn,bln->bld", adj, Bm)
        gB = torch.einsum("bldn,bld->bln", adj, dt * u)
        gdt = (gdA * A).sum(-1)
        gu = gBu * dt + gy * D
        gD = (gy * u).sum((0, 1))
        return gu, gdt, gA, gB, gC, gD


class SelectiveSSM(nn.Module):
    """Input-dependent diagonal state space layer, (B, L, D) -> (B, L, D)."""

    def __init__(self, d_model: int, d_state: int = 4):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1, dtype=torch.float32)).repeat(d_model, 1))
        self.D = nn.Parameter(torch.ones(d_model))
        self.dt_proj = nn.Linear(d_model, d_model)
        self.bc_proj = nn.Linear(d_model, 2 * d_state, bias=False)

    def forward(self, x):
        dt = F.softplus(self.dt_proj(x))
        Bm, Cm = self.bc_proj(x).chunk(2, dim=-1)
        return _SelectiveScan.apply(x, dt, -torch.exp(self.A_log), Bm, Cm, self.D)
