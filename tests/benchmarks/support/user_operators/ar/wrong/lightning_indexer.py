import torch
from torch.autograd import Function


class LightningIndexer(Function):

    @staticmethod
    def forward(ctx, q, k, weights, softmax_scale=None):
        """q [b,t,h,d], k [b,s,d] (one key head), weights [b,t,h] -> index scores [b,t,s]"""
        scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
        ctx.scale = scale
        ctx.save_for_backward(q, k, weights)
        logits = torch.einsum("bthd,bsd->bths", q, k).relu()
        return torch.einsum("bths,bth->bts", logits, weights) * scale

    @staticmethod
    def backward(ctx, dout):
        q, k, weights = ctx.saved_tensors
        dout = dout * ctx.scale
        raw = torch.einsum("bthd,bsd->bths", q, k)
        dweights = torch.einsum("bts,bths->bth", dout, raw)
        draw = dout[:, :, None] * weights[..., None] * (raw > 0)
        dq = torch.einsum("bths,bsd->bthd", draw, k)
        dk = torch.einsum("bths,bthd->bsd", draw, q)
        return dq, dk, dweights, None
