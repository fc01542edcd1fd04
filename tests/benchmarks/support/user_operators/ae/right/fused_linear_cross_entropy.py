import torch
from torch.autograd.function import once_differentiable


class _FusedLinearCE(torch.autograd.Function):
    """Projection and loss chunk by chunk, so that the logits of all tokens never exist at once;
    gradients are made on the way forward."""

    @staticmethod
    def forward(ctx, x, weight, target, ignore_index, softcap, chunk):
        valid = target != ignore_index
        n = valid.sum().clamp(min=1)
        loss = x.new_zeros(())
        gx = torch.zeros_like(x)
        gw = torch.zeros_like(weight)
        for start in range(0, x.shape[0], chunk):
            part = slice(start, start + chunk)
            xs, ok = x[part], valid[part]
            t = target[part].masked_fill(~ok, 0)
            logits = xs @ weight.t()
            slope = None
            if softcap is not None:
                squashed = torch.tanh(logits / softcap)
                slope = 1 - squashed * squashed
                logits = softcap * squashed
            logp = logits.log_softmax(-1)
            loss = loss - (logp.gather(1, t[:, None]).squeeze(1) * ok).sum()
            d = logp.exp()
            d.scatter_add_(1, t[:, None], -torch.ones_like(d[:, :1]))
            d = d * ok[:, None] / n
            if slope is not None:
                d = d * slope
            gx[part] = d @ weight
            gw += d.t() @ xs
        ctx.save_for_backward(gx, gw)
        return loss / n

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        gx, gw = ctx.saved_tensors
        return g * gx, g * gw, None, None, None, None


def fused_linear_cross_entropy(x, weight, target, ignore_index=-100, softcap=None, chunk_size=1024):
    """Mean cross entropy of softcap(x W'), x: (N, D), weight: (V, D), target: (N,)"""
    return _FusedLinearCE.apply(x, weight, target, ignore_index, softcap, chunk_size)
