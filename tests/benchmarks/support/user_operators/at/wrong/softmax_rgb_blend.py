import torch


class _SoftmaxBlend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, colors, prob, zinv, mask, background, gamma, eps):
        ctx.gamma, ctx.eps = gamma, eps
        w, delta = _SoftmaxBlend.weights(prob, zinv, mask, gamma, eps)[:2]
        out = ((w[..., None] * colors).sum(-2) + delta * background) / (w.sum(-1, keepdim=True) + delta)
        ctx.save_for_backward(colors, prob, zinv, mask, background, out)
        return out

    @staticmethod
    def weights(prob, zinv, mask, gamma, eps):
        z = zinv.masked_fill(~mask, 0)
        zmax = z.detach().amax(-1, keepdim=True).clamp(min=eps)
        e = torch.exp((z - zmax) / gamma) * mask
        return prob * e, torch.exp((eps - zmax) / gamma), e

    @staticmethod
    def backward(ctx, grad_out):
        colors, prob, zinv, mask, background, out = ctx.saved_tensors
        w, delta, e = _SoftmaxBlend.weights(prob, zinv, mask, ctx.gamma, ctx.eps)
        g = grad_out / (w.sum(-1, keepdim=True) + delta)
        dw = ((colors - out.unsqueeze(-2)) * g.unsqueeze(-2)).sum(-1)
        d_colors = w.unsqueeze(-1) * g.unsqueeze(-2)
        d_bg = (delta * g).reshape(-1, g.size(-1)).sum(0)
        return d_colors, dw * e, dw * w, None, d_bg, None, None


def softmax_rgb_blend(colors, prob, zinv, mask, background, gamma=0.1, eps=1e-2):
    """Soft z-buffer. colors (..., K, 3), prob and zinv (..., K), mask (..., K) bool, background (3,)"""
    return _SoftmaxBlend.apply(colors, prob, zinv, mask, background, gamma, eps)
