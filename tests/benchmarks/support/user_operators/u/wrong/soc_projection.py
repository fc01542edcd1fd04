import torch


class SOCProjection(torch.autograd.Function):
    """Projection of (t, z) onto the second-order cone |z| <= t.  v: (batch, 1 + n), t first."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        t, z = v[:, :1], v[:, 1:]
        nz = z.norm(dim=1, keepdim=True)
        a = (t + nz) / 2
        safe = torch.where(nz > 0, nz, torch.ones_like(nz))
        edge = torch.cat([a, a * z / safe], 1)
        return torch.where(nz <= t, v, torch.where(nz <= -t, torch.zeros_like(v), edge))

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        t, z = v[:, :1], v[:, 1:]
        nz = (z * z).sum(1, keepdim=True)
        nz = torch.where(nz > 0, nz, torch.ones_like(nz)).sqrt() * (nz > 0)
        safe = torch.where(nz > 0, nz, torch.ones_like(nz))
        u = z / safe
        r = t / safe
        gt, gz = g[:, :1], g[:, 1:]
        uz = (u * gz).sum(1, keepdim=True)
        edge_t = (gt + uz) / 2
        edge_z = (u * gt + (1 + r) * gz + u * uz) / 2
        edge = torch.cat([edge_t, edge_z], 1)
        return torch.where(nz <= t, g, torch.where(nz <= -t, torch.zeros_like(g), edge))
