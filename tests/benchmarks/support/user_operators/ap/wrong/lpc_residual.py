import torch
import torch.nn.functional as F


def _delays(x, p):
    return torch.stack([F.pad(x, (k, 0))[:, : x.shape[1]] for k in range(1, p + 1)], -1)


class _LPCResidual(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, hop):
        ctx.save_for_backward(x, a)
        ctx.hop = hop
        return x - (_delays(x, a.shape[2]) * a.repeat_interleave(hop, 1)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        T, p = x.shape[1], a.shape[2]
        gx = ga = None
        if ctx.needs_input_grad[0]:
            at = a.repeat_interleave(ctx.hop, 1)
            gx = g
            for k in range(1, p + 1):
                gx = gx - at[..., k - 1] * F.pad(g[:, k:], (0, k))[:, :T]
        if ctx.needs_input_grad[1]:
            ga = -(g.unsqueeze(-1) * _delays(x, p)).unflatten(1, (-1, ctx.hop)).sum(2)
        return gx, ga, None


def lpc_residual(x, a, hop):
    """e[t] = x[t] - sum_k a[t // hop, k] x[t - 1 - k].   x: (B, F * hop), a: (B, F, P), P < F * hop"""
    return _LPCResidual.apply(x, a, hop)
