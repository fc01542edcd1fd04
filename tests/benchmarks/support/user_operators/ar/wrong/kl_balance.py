import torch
from torch.autograd.function import once_differentiable


class BalancedKL(torch.autograd.Function):
    """KL balancing of Dreamer for categorical latents.

        value    = mean_b sum_k KL(post || prior)
        gradient = that of  alpha * KL(sg(post) || prior) + (1 - alpha) * KL(post || sg(prior))

    (sg is stop-gradient, so the gradient is on purpose not that of the value.)
    post_logits, prior_logits: (B, K, C).
    """

    @staticmethod
    def forward(ctx, post_logits, prior_logits, alpha=0.8):
        lp, lq = post_logits.log_softmax(-1), prior_logits.log_softmax(-1)
        ctx.save_for_backward(lp, lq)
        ctx.alpha = alpha
        return (lp.exp() * (lp - lq)).sum((1, 2)).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        lp, lq = ctx.saved_tensors
        p, q = lp.exp(), lq.exp()
        g = g / lp.size(0)
        kl = (p * (lp - lq)).sum(-1, keepdim=True)
        g_post = g * ctx.alpha * p * (lp - lq - kl)
        g_prior = g * (1 - ctx.alpha) * (q - p)
        return g_post, g_prior, None
