import torch
from torch.autograd import Function


class _EdgeLengthGrad(Function):
    @staticmethod
    def forward(ctx, pos, src, dst, g, eps):
        ctx.save_for_backward(pos, src, dst, g)
        ctx.eps = eps
        vec = pos[dst] - pos[src]
        d = (vec.square().sum(-1, keepdim=True) + eps).sqrt()
        pull = g.unsqueeze(-1) * vec / d
        return torch.zeros_like(pos).index_add(0, dst, pull).index_add(0, src, -pull)

    @staticmethod
    def backward(ctx, h):
        pos, src, dst, g = ctx.saved_tensors
        vec = pos[dst] - pos[src]
        d = (vec.square().sum(-1, keepdim=True) + ctx.eps).sqrt()
        h_vec = h[dst] - h[src]
        d_g = (h_vec * vec / d).sum(-1)
        g = g.unsqueeze(-1)
        d_vec = g * (h_vec / d - vec * (h_vec * vec).sum(-1, keepdim=True) / d.pow(3))
        d_pos = torch.zeros_like(pos).index_add(0, dst, d_vec).index_add(0, src, -d_vec)
        return d_pos, None, None, d_g, None


class EdgeLength(Function):
    """Lengths sqrt(|r_dst - r_src|^2 + eps), usable for models trained on forces.

    pos (N, 3), src (E,), dst (E,) -> (E,)
    """

    @staticmethod
    def forward(ctx, pos, src, dst, eps=1e-12):
        ctx.save_for_backward(pos, src, dst)
        ctx.eps = eps
        return ((pos[dst] - pos[src]).square().sum(-1) + eps).sqrt()

    @staticmethod
    def backward(ctx, grad):
        pos, src, dst = ctx.saved_tensors
        return _EdgeLengthGrad.apply(pos, src, dst, grad, ctx.eps), None, None, None
