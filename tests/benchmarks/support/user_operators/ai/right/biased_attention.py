import math
import torch
from torch.autograd.function import once_differentiable


class BiasedAttention(torch.autograd.Function):
    """Attention with an additive bias and optional soft cap of the scores.

    q: (B, H, T, D)   k, v: (B, H, S, D)   bias: broadcastable to (B, H, T, S), four dimensions
    """

    @staticmethod
    def forward(ctx, q, k, v, bias, scale=None, softcap=None):
        scale = 1 / math.sqrt(q.size(-1)) if scale is None else scale
        raw = scale * torch.matmul(q, k.transpose(-2, -1))
        scores = softcap * torch.tanh(raw / softcap) if softcap else raw
        prob = torch.softmax(scores + bias, dim=-1)
        ctx.save_for_backward(q, k, v, raw, prob)
        ctx.bias_shape = bias.shape
        ctx.scale = scale
        ctx.softcap = softcap
        return prob @ v

    @staticmethod
    @once_differentiable
    def backward(ctx, do):
        q, k, v, raw, prob = ctx.saved_tensors
        dq = dk = dv = dbias = None
        if ctx.needs_input_grad[2]:
            dv = prob.transpose(-2, -1) @ do
        dp = do @ v.transpose(-2, -1)
        ds = prob * (dp - (dp * prob).sum(-1, keepdim=True))
        if ctx.needs_input_grad[3]:
            dims = [i for i, n in enumerate(ctx.bias_shape) if n == 1]
            dbias = ds.sum(dims, keepdim=True) if dims else ds
        if ctx.softcap:
            ds = ds * (1 - torch.tanh(raw / ctx.softcap) ** 2)
        ds = ds * ctx.scale
        if ctx.needs_input_grad[0]:
            dq = ds @ k
        if ctx.needs_input_grad[1]:
            dk = ds.transpose(-2, -1) @ q
        return dq, dk, dv, dbias, None, None
