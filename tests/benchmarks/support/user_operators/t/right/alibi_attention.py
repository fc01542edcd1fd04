import torch


class AlibiAttention(torch.autograd.Function):
    """Causal attention with linear biases and learned slopes.  q, k, v: (H, T, d); slopes: (H,)."""

    @staticmethod
    def probs(q, k, slopes):
        t = torch.arange(q.shape[1], device=q.device)
        dist = t[:, None] - t[None, :]
        s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5 - slopes[:, None, None] * dist
        return s.masked_fill(dist < 0, float("-inf")).softmax(-1), dist

    @staticmethod
    def forward(ctx, q, k, v, slopes):
        ctx.save_for_backward(q, k, v, slopes)
        return AlibiAttention.probs(q, k, slopes)[0] @ v

    @staticmethod
    def backward(ctx, do):
        q, k, v, slopes = ctx.saved_tensors
        p, dist = AlibiAttention.probs(q, k, slopes)
        dv = p.transpose(1, 2) @ do
        dp = do @ v.transpose(1, 2)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        scale = q.shape[-1] ** -0.5
        dslopes = -(ds * dist).sum((1, 2))
        return ds @ k * scale, ds.transpose(1, 2) @ q * scale, dv, dslopes
