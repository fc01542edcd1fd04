import torch


class FrictionContact(torch.autograd.Function):
    """Penalty contact with regularised Coulomb friction.

    gap (N,): signed distance, negative in contact; vt (N, 2): tangential velocity;
    stiffness and mu: scalars (0-dim tensors). Returns normal force (N,) and friction force (N, 2).
    """

    @staticmethod
    def forward(ctx, gap, vt, stiffness, mu, eps=1e-2):
        ctx.eps = eps
        ctx.save_for_backward(gap, vt, stiffness, mu)
        normal = stiffness * torch.relu(-gap)
        speed = (vt.square().sum(-1) + eps**2).sqrt()
        return normal, -(mu * normal / speed).unsqueeze(-1) * vt

    @staticmethod
    def backward(ctx, g_normal, g_fric):
        gap, vt, stiffness, mu = ctx.saved_tensors
        depth = torch.relu(-gap)
        normal = stiffness * depth
        speed = (vt.square().sum(-1) + ctx.eps**2).sqrt()
        slip = (g_fric * vt).sum(-1) / speed
        d_normal = g_normal - mu * slip
        d_gap = -stiffness * d_normal * (gap < 0)
        d_vt = -(mu * normal / speed).unsqueeze(-1) * (g_fric - vt * (slip / speed).unsqueeze(-1))
        d_stiffness = (d_normal * depth).sum()
        return d_gap, d_vt, d_stiffness, None, None
