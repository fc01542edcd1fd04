import torch
from torch.autograd import Function


class CIFFunction(Function):
    """Continuous integrate-and-fire: token k takes what the integral of alpha from k to k + 1 covers.

    alpha: (B, T) non-negative, hidden: (B, T, C), num_tokens: int -> (B, num_tokens, C)
    """

    @staticmethod
    def forward(ctx, alpha, hidden, num_tokens, beta=1.0):
        ctx.save_for_backward(alpha, hidden)
        ctx.num_tokens = num_tokens
        ctx.beta = beta
        return CIFFunction.overlap(alpha, num_tokens, beta)[0] @ hidden

    @staticmethod
    def overlap(alpha, num_tokens, beta):
        end = alpha.cumsum(1).unsqueeze(1)
        begin = torch.cat([torch.zeros_like(end[..., :1]), end[..., :-1]], -1)
        lo = torch.arange(num_tokens, dtype=alpha.dtype, device=alpha.device).view(1, -1, 1) * beta
        hi = lo + beta
        w = (torch.minimum(end, hi) - torch.maximum(begin, lo)).clamp(min=0)
        return w, end, begin, lo, hi

    @staticmethod
    def backward(ctx, grad_output):
        alpha, hidden = ctx.saved_tensors
        w, end, begin, lo, hi = CIFFunction.overlap(alpha, ctx.num_tokens, ctx.beta)
        grad_hidden = w.transpose(1, 2) @ grad_output
        gw = grad_output @ hidden.transpose(1, 2) * (w > 0)
        g_end = (gw * (end < hi)).sum(1)
        g_begin = -(gw * (begin > lo)).sum(1)
        # begin is end of the frame before
        g_cum = g_end + g_begin
        grad_alpha = g_cum.flip(1).cumsum(1).flip(1)
        return grad_alpha, grad_hidden, None, None
