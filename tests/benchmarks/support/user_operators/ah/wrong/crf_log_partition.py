import torch
from torch.autograd.function import once_differentiable

_scratch = {}


def _buffer(key, shape, like):
    buf = _scratch.get(key)
    if buf is None or buf.shape != shape or buf.dtype != like.dtype or buf.device != like.device:
        buf = _scratch[key] = torch.empty(shape, dtype=like.dtype, device=like.device)
    return buf


class CRFLogPartition(torch.autograd.Function):
    """Log normaliser of a linear chain CRF.

    emissions: (batch, seq, tags)
    mask: bool (batch, seq), a prefix of every row, at least one step each
    transitions: (tags, tags), from row to column
    start, end: (tags,)
    """

    @staticmethod
    def forward(ctx, emissions, mask, transitions, start, end):
        if not bool(mask[:, 0].all()):
            raise ValueError("mask of the first timestep must all be on")
        alphas = _buffer("alpha", emissions.shape, emissions)
        alphas[:, 0] = start + emissions[:, 0]
        for i in range(1, emissions.shape[1]):
            nxt = (alphas[:, i - 1, :, None] + transitions).logsumexp(1) + emissions[:, i]
            alphas[:, i] = torch.where(mask[:, i, None], nxt, alphas[:, i - 1])
        logz = (alphas[:, -1] + end).logsumexp(-1)
        ctx.alphas = alphas
        ctx.save_for_backward(mask, transitions, end, logz)
        return logz

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_logz):
        mask, transitions, end, logz = ctx.saved_tensors
        alphas = ctx.alphas
        g = (alphas[:, -1] + end).softmax(-1) * grad_logz[:, None]
        d_end = g.sum(0)
        d_trans = torch.zeros_like(transitions)
        d_emis = torch.zeros_like(alphas)
        for i in range(alphas.shape[1] - 1, 0, -1):
            on = mask[:, i, None]
            step = g * on
            d_emis[:, i] = step
            share = (alphas[:, i - 1, :, None] + transitions).softmax(1) * step[:, None]
            d_trans += share.sum(0)
            g = torch.where(on, share.sum(2), g)
        d_emis[:, 0] = g
        return d_emis, None, d_trans, g.sum(0), d_end
