import torch


class LaserAttention(torch.autograd.Function):
    """o = log(softmax(q k^T * sm_scale) exp(v)), computed against the maximum of v over the sequence.
    q (B,H,T,D), k (B,H,S,D), v (B,H,S,E)."""

    @staticmethod
    def forward(ctx, q, k, v, sm_scale):
        p = torch.softmax(q @ k.mT * sm_scale, -1)
        m = v.amax(-2, keepdim=True)
        o = torch.log(p @ torch.exp(v - m)) + m
        ctx.save_for_backward(q, k, v, o)
        ctx.sm_scale = sm_scale
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, o = ctx.saved_tensors
        p = torch.softmax(q @ k.mT * ctx.sm_scale, -1)
        m = v.amax(-2, keepdim=True)
        e = torch.exp(v - m)
        dz = do * torch.exp(m - o)
        dv = e * (p.mT @ dz)
        dp = dz @ e.mT
        delta = (do * o).sum(-1, keepdim=True)
        ds = p * (dp - delta) * ctx.sm_scale
        return ds @ k, ds.mT @ q, dv, None
