import torch
from torch.autograd.function import once_differentiable


class FusedLinearCrossEntropy(torch.autograd.Function):
    """lm_head + cross entropy chunk by chunk, the full logits never exist.

    The gradients are made in forward while a chunk of logits is there and are only scaled in backward.
    x: (N, H), weight: (V, H), target: (N,), bias: (V,) or None
    """

    @staticmethod
    def forward(ctx, x, weight, target, bias=None, ignore_index=-100, reduction="mean", chunk_size=2):
        valid = target != ignore_index
        denom = valid.sum().clamp(min=1) if reduction == "mean" else 1
        dx = torch.zeros_like(x)
        dw = torch.zeros_like(weight)
        db = torch.zeros_like(bias) if bias is not None else None
        loss = x.new_zeros(())
        for s in range(0, x.shape[0], chunk_size):
            xc, ok = x[s:s + chunk_size], valid[s:s + chunk_size]
            t = target[s:s + chunk_size].masked_fill(~ok, 0)
            logits = xc @ weight.t()
            if bias is not None:
                logits = logits + bias
            logp = logits.log_softmax(-1)
            loss -= (logp.gather(1, t[:, None])[:, 0] * ok).sum() / denom
            d = logp.exp()
            d[torch.arange(len(t)), t] -= 1
            d = d * ok[:, None] / denom
            dx[s:s + chunk_size] = d @ weight
            dw += d.t() @ xc
            if db is not None:
                db += d.sum(0)
        ctx.save_for_backward(dx, dw, db)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        dx, dw, db = ctx.saved_tensors
        dx = dx * grad_output
        if db is not None:
            db = db * grad_output
        return dx, dw, None, db, None, None, None
