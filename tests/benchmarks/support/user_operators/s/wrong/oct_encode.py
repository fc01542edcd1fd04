import torch


def _sgn(v):
    return torch.where(v >= 0, 1.0, -1.0).to(v.dtype)


class OctEncode(torch.autograd.Function):
    """Octahedral map of directions (..., 3) to (..., 2) in [-1, 1]^2; they need not be unit."""

    @staticmethod
    def forward(ctx, n):
        ctx.save_for_backward(n)
        p = n[..., :2] / n.abs().sum(-1, keepdim=True)
        folded = (1 - p.flip(-1).abs()) * _sgn(p)
        return torch.where(n[..., 2:] < 0, folded, p)

    @staticmethod
    def backward(ctx, g):
        (n,) = ctx.saved_tensors
        s = n.abs().sum(-1, keepdim=True)
        p = n[..., :2] / s
        both = _sgn(p).prod(-1, keepdim=True)
        gp = torch.where(n[..., 2:] < 0, both * g.flip(-1), g)
        gs = -(gp * p).sum(-1, keepdim=True) / s
        return torch.cat([gp / s, torch.zeros_like(s)], -1) + gs * _sgn(n)
