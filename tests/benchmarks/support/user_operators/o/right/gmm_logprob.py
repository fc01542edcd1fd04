import math

import torch


class GaussianMixtureLogProb(torch.autograd.Function):
    """log p(x) of a diagonal Gaussian mixture.

    x: (N, D); logits: (K,) unnormalised; means, log_scales: (K, D) -> (N,)
    """

    @staticmethod
    def _joint(x, logits, means, log_scales):
        z = (x.unsqueeze(1) - means) * torch.exp(-log_scales)
        lp = -0.5 * z.square().sum(-1) - log_scales.sum(-1) - 0.5 * x.size(1) * math.log(2 * math.pi)
        return z, logits.log_softmax(0) + lp

    @staticmethod
    def forward(x, logits, means, log_scales):
        if x.is_complex():
            raise TypeError("x must be real")
        if means.shape != log_scales.shape or means.shape != (logits.numel(), x.size(1)):
            raise ValueError("means and log_scales must be (K, D)")
        return GaussianMixtureLogProb._joint(x, logits, means, log_scales)[1].logsumexp(1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, logits, means, log_scales = ctx.saved_tensors
        z, joint = GaussianMixtureLogProb._joint(x, logits, means, log_scales)
        gr = grad.unsqueeze(1) * joint.softmax(1)
        pull = gr.unsqueeze(-1) * z * torch.exp(-log_scales)
        g_logits = (gr - grad.unsqueeze(1) * logits.softmax(0)).sum(0)
        g_scales = (gr.unsqueeze(-1) * (z.square() - 1)).sum(0)
        return -pull.sum(1), g_logits, pull.sum(0), g_scales
