import torch


class CoveragePenalty(torch.autograd.Function):
    """GNMT coverage penalty. attn (B, Ty, Tx), src_len (B,) -> (B,)."""

    @staticmethod
    def forward(ctx, attn, src_len, beta=0.2, eps=1e-8):
        ctx.save_for_backward(attn, src_len)
        ctx.beta, ctx.eps = beta, eps
        cov = attn.sum(1)
        valid = torch.arange(cov.size(1), device=cov.device) < src_len[:, None]
        return beta * (cov.clamp(eps, 1).log() * valid).sum(1)

    @staticmethod
    def backward(ctx, g):
        attn, src_len = ctx.saved_tensors
        cov = attn.sum(1)
        valid = torch.arange(cov.size(1), device=cov.device) < src_len[:, None]
        live = valid & (cov > ctx.eps) & (cov < 1)
        d = ctx.beta * g[:, None] * live / cov.clamp(min=ctx.eps)
        return d.unsqueeze(1).expand_as(attn), None, None, None
